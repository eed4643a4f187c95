"""Hostile text: every limit ends in CQ0103, no input ends in anything but a tree or a CompileError."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import pytest
from grammar_trees import Trees, parse_query
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_grammar_errors import CASES
from test_grammar_spellings import EXPRESSIONS, LANGUAGE_EXAMPLE, QUERIES, STATEMENTS

from cq.errors import CompileError, SourceText
from cq.grammar import ast
from cq.grammar.lexer import MAX_DIGITS, MAX_FINDINGS, MAX_NESTING, MAX_TOKENS, Token, tokenize
from cq.grammar.parser import MAX_DEPTH, _statements, parse, parse_expression, tables
from cq.grammar.printer import print_expr, print_script


def parsed(text: str) -> ast.Script | CompileError:
    """The script or the error; anything else is the caller's failure. What parses must also print and compare."""
    try:
        script = parse(SourceText("q.cq", text))
    except CompileError as error:
        str(error)
        return error
    again = parse(SourceText("q.cq", print_script(script)))
    assert again == script and hash(again) == hash(script)
    return script


def refused(text: str, code: str = "CQ0103") -> CompileError:
    result = parsed(text)
    assert isinstance(result, CompileError), "no error"
    assert result.code == code, str(result)
    return result


def test_a_text_of_more_than_a_mebibyte_is_refused() -> None:
    refused("SELECT 1 -- " + "x" * (1 << 20))
    refused("SELECT '" + "\u00e9" * (1 << 19) + "'")


def test_too_many_tokens_are_refused() -> None:
    refused("SELECT " + "1," * (MAX_TOKENS // 2) + "1")


def test_a_list_of_many_values_is_no_problem() -> None:
    query = parse_query(f"SELECT a FROM t WHERE a IN ({','.join(map(str, range(50_000)))})")
    assert isinstance(query.body, ast.Select) and isinstance(query.body.where, ast.InList)
    assert len(query.body.where.items) == 50_000


@pytest.mark.parametrize(
    "opening, closing", ["()", "[]", ("CASE WHEN TRUE THEN ", " END"), ("f(", ")"), ("(SELECT ", ")")]
)
def test_nesting_ends_at_a_limit(opening: str, closing: str) -> None:
    refused("SELECT " + opening * 5_000 + "1" + closing * 5_000)
    refused("SELECT " + opening * 150_000)
    refused("SELECT " + opening * (MAX_NESTING + 1) + "1" + closing * (MAX_NESTING + 1))


def test_deep_parentheses_below_the_limit_are_taken() -> None:
    assert parse_expression("(" * MAX_NESTING + "a" + ")" * MAX_NESTING) == ast.ColumnRef("a")


@pytest.mark.parametrize(
    "chain",
    [
        "1" + " + 1" * 10_000,
        "NOT " * 10_000 + "TRUE",
        "- " * 10_000 + "1",
        "+" * 10_000 + "1",
        "a" + "::INT" * 10_000,
        "a" + "[1]" * 10_000,
        "a" + " IS NULL" * 10_000,
        "a" + " = a" * 10_000,
        "a" + " || 'x'" * 10_000,
        "1" + " AND (1 OR (1" * 90 + "))" * 90,
        "a BETWEEN " * 5_000 + "1",
    ],
)
def test_a_long_chain_is_refused_cleanly(chain: str) -> None:
    with pytest.raises(CompileError):
        parse_expression(chain)


def test_long_chains_of_and_and_or_are_flat() -> None:
    for word in ("AND", "OR"):
        tree = parse_expression(f" {word} ".join(["a = 1"] * 10_000))
        assert isinstance(tree, ast.Logical) and len(tree.operands) == 10_000
        assert parse_expression(print_expr(tree)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1" + " UNION ALL SELECT 1" * 5_000,
        "SELECT 1 FROM a" + " CROSS JOIN a" * 5_000,
        "SELECT a FROM " + "(" * 150 + "t CROSS JOIN u" + ")" * 150,
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN " + "IF TRUE THEN " * 5_000,
        "CREATE TRIGGER g AFTER INSERT ON s BEGIN " + "IF a THEN " * 500 + "SELECT 1;" + " END IF;" * 500 + " END",
        "CREATE STREAM s (a INT" + " ARRAY" * 5_000 + ")",
        "CREATE STREAM s (a " + "ARRAY<" * 5_000 + "INT" + ">" * 5_000 + ")",
    ],
)
def test_deep_statements_are_refused_cleanly(text: str) -> None:
    parsed(text)


def highest(make: str, height: int) -> ast.Expr:
    text = {"call": "f(" * height + "a" + ")" * height, "sum": "a" + " + a" * height}[make]
    return parse_expression(text)


@pytest.mark.parametrize("make", ["call", "sum"])
def test_the_highest_tree_can_be_printed_compared_hashed_shown_and_copied(make: str) -> None:
    tree, same = highest(make, MAX_DEPTH - 1), highest(make, MAX_DEPTH - 1)
    assert tree == same and hash(tree) == hash(same) and tree is not same
    assert parse_expression(print_expr(tree)) == tree
    assert len(list(ast.walk(tree))) >= MAX_DEPTH
    assert repr(tree) and copy.copy(tree) == tree
    with pytest.raises(CompileError, match="CQ0103"):
        highest(make, MAX_DEPTH + 1)


def test_names_and_numbers_have_limits() -> None:
    refused(f"SELECT {'a' * 256}")
    refused(f'SELECT "{"é" * 128}"')
    refused(f"SELECT {'1' * (MAX_DIGITS + 1)}")
    assert parse_expression("a" * 255) == ast.ColumnRef("a" * 255)
    assert parse_expression("1" * MAX_DIGITS) == ast.NumberLiteral("1" * MAX_DIGITS)


def test_a_long_literal_is_kept_whole() -> None:
    assert parse_expression(f"'{'x' * 1_000_000}'") == ast.StringLiteral("x" * 1_000_000)


def test_an_error_far_into_a_long_statement_is_found() -> None:
    error = refused("SELECT " + "a, " * 30_000 + "b c d FROM t", "CQ0100")
    assert error.column == 7 + 3 * 30_000 + 5


def test_a_text_of_mistakes_is_not_explained_to_the_end() -> None:
    """Each would run for minutes if every mistake were explained, or a step looked again at all that came before."""
    signs = [
        "'" * 200_001,
        "''" * 50_000 + "'",
        "/*" * 100_000,
        '"' * 100_001,
        "-" * 200_000,
        "!" * 100_000,
        "1a " * 30_000,
    ]
    words = ["SELCT;" * 10_000, "(;" * 50_000, "a." * 50_000, "BEGIN " * 50_000, "CREATE TRIGGER BEGIN; " * 10_000]
    for text in (*signs, *words, ";" * 100_000, "INTERVAL " * 20_000, "\u2018" * 100_000):
        result = parsed(text)
        assert isinstance(result, ast.Script) or len(result.diagnostics) <= MAX_FINDINGS


def test_the_ends_of_triggers_without_end_are_found_in_one_pass() -> None:
    class Looked(list[Token]):
        times = 0

        def __getitem__(self, at: Any) -> Any:
            self.times += 1
            return super().__getitem__(at)

    looks = []
    for count in (50, 200):
        tokens = Looked(tokenize("CREATE TRIGGER BEGIN CASE; END; " * count, tables().keywords).tokens)
        ranges, _ = _statements(tokens)
        assert len(ranges) == count
        looks.append(tokens.times)
    assert looks[1] < 5 * looks[0]


VALID = [*(f"SELECT {e}" for e in EXPRESSIONS), *QUERIES, *STATEMENTS, LANGUAGE_EXAMPLE]
PIECES = [
    *sorted(tables().keywords), *"'\"`()[],.;:-*/=<>!?#\\\n\t \x00\u202e\ud800\u00e9\uff41\u0430",
    "'x'", '"x"', "1", "1.5e", "a", "t.a", ":p", "--", "/*", "*/", "\ufeff", "INTERVAL '1' DAY", "0x1", "''", '""',
]  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60))
@example("\ud800")
@example("'")
@example("SELECT '\r")
@example("\ufeffSELECT 1")
@example("SELECT 1;;;")
@example("SELECT a AS SELECT")
def test_any_text_is_parsed_or_refused(text: str) -> None:
    parsed(text)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(["", " "]))
def test_any_sequence_of_pieces_is_parsed_or_refused(pieces: list[str], between: str) -> None:
    parsed(between.join(pieces))


def test_damaged_texts_are_parsed_or_refused() -> None:
    """Valid and invalid texts with pieces taken out, doubled, exchanged or put in."""
    texts = [*VALID, *(t for cases in CASES.values() for t in cases)]
    for seed in range(2_000):
        rng = random.Random(seed)
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
            cut = min(b, a + rng.randint(0, 12))
            text = rng.choice(
                [
                    text[:a] + text[cut:],
                    text[:cut] + text[a:],
                    text[:a] + rng.choice(PIECES) + text[a:],
                    text[:a] + f" {rng.choice(PIECES)} " + text[cut:],
                    text[:a],
                    text[:a] + text[a : a + 1].swapcase() + text[a + 1 :],
                ]
            )
        try:
            parsed(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error


def test_damaged_bytes_are_parsed_or_refused() -> None:
    for seed in range(500):
        rng = random.Random(seed)
        raw = bytearray(rng.choice(VALID).encode())
        for _ in range(rng.randint(1, 4)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        parsed(raw.decode("utf-8", "surrogateescape"))


def test_shuffled_tokens_of_random_scripts_are_parsed_or_refused() -> None:
    for seed in range(300):
        words = print_script(Trees(seed).script(2)).split(" ")
        rng = random.Random(seed)
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        words[i], words[j] = words[j], words[i]
        parsed(" ".join(words))


def test_the_recursion_limit_is_left_as_it_was() -> None:
    before = sys.getrecursionlimit()
    parsed("SELECT " + "(" * 5_000)
    assert sys.getrecursionlimit() == before
