"""The printer's laws: what it prints parses to the same tree, prints the same again, and loses no comment."""

from __future__ import annotations

import inspect
from itertools import pairwise
from random import Random

from grammar_trees import Trees, parse_query
from slt_coverage import all_cases

from cq.errors import CompileError, SourceText
from cq.grammar import ast, inline
from cq.grammar.lexer import tokenize
from cq.grammar.parser import parse, parse_expression, tables
from cq.grammar.printer import format_source, print_expr, print_script


def script(text: str) -> ast.Script:
    return parse(SourceText("test.cq", text))


def test_random_expressions_survive_printing_and_parsing() -> None:
    for seed in range(600):
        tree = Trees(seed).expr(3)
        text = print_expr(tree)
        assert parse_expression(text) == tree, f"seed {seed}: {text}"


def test_random_queries_survive_printing_and_parsing_on_one_line() -> None:
    for seed in range(300):
        tree = Trees(seed).query(3)
        text = inline.query(tree)
        assert parse_query(text) == tree, f"seed {seed}: {text}"


def test_random_scripts_survive_printing_and_parsing() -> None:
    for seed in range(300):
        tree = Trees(seed).script(3)
        text = print_script(tree)
        again = script(text)
        assert again == tree, f"seed {seed}:\n{text}"
        assert print_script(again) == text, f"seed {seed}"


def test_random_trees_have_every_node_type() -> None:
    seen = {type(node) for seed in range(300) for node in ast.walk(Trees(seed).script(3))}
    every = {c for _, c in inspect.getmembers(ast, inspect.isclass) if issubclass(c, ast.Node)}
    assert every - seen == {ast.Node, ast.Comment}


def test_two_nodes_that_say_different_things_are_different() -> None:
    assert parse_expression("a + 1") != parse_expression("a + 2")
    assert parse_expression("a + 1") == parse_expression("a  +  1")
    assert hash(parse_expression("f(a)")) == hash(parse_expression("F ( a )"))


def comments_of(text: str) -> list[str]:
    return [c.text for c in script(text).comments]


def fmt(text: str) -> str:
    """The text as `cq fmt` leaves it; checks that nothing is lost and that a second time changes nothing."""
    printed = format_source(SourceText("test.cq", text))
    assert script(printed) == script(text)
    assert sorted(comments_of(printed)) == sorted(comments_of(text))
    assert print_script(script(printed)) == printed
    return printed


def test_cases_of_the_slt_files_mean_the_same_when_they_are_formatted() -> None:
    for case in all_cases()[::8]:
        try:
            script(case.text)
        except CompileError:
            continue
        fmt(case.text)


def test_comments_stay_where_they_were() -> None:
    text = """\
-- what this file asks,
-- in one sentence

/* about
   the setting */
SET parallelism = 8; -- eight
-- before the query
SELECT a, -- the first
  -- before b
  b
FROM t -- the table
WHERE a > 1 /* why */ AND b > 2
-- the end
"""
    assert (
        fmt(text)
        == """\
-- what this file asks,
-- in one sentence

/* about
   the setting */
SET parallelism = 8; -- eight

-- before the query
SELECT
  a, -- the first
  -- before b
  b
FROM t -- the table
WHERE a > 1 /* why */
  AND b > 2;

-- the end
"""
    )


def test_a_file_of_comments_stays_as_it_is() -> None:
    assert fmt("-- a\n\n/* b */\n") == "-- a\n\n/* b */\n"
    assert fmt("") == ""


def test_long_parts_have_a_row_each() -> None:
    names = [f"a_rather_long_name_{i}" for i in range(8)]
    text = f"SELECT {', '.join(names)} FROM t WHERE {' AND '.join(f'{n} > 0' for n in names)}"
    rows = fmt(text).splitlines()
    assert rows[0] == "SELECT" and rows[1] == "  a_rather_long_name_0," and rows[8] == "  a_rather_long_name_7"
    assert rows[10] == "WHERE a_rather_long_name_0 > 0" and rows[11] == "  AND a_rather_long_name_1 > 0"


def test_joins_and_inner_queries_are_indented() -> None:
    long = "SELECT a_long_name, another_long_name, a_third_long_name FROM a_table_with_a_name WHERE a_long_name > 10"
    relations = f"s JOIN ({long}) AS d ON s.k = d.k LEFT JOIN u USING (k), w"
    assert (
        fmt(f"WITH c AS (SELECT 1) SELECT * FROM {relations} UNION ALL {long}")
        == """\
WITH c AS (
  SELECT 1
)
SELECT *
FROM
  s
    JOIN (
      SELECT a_long_name, another_long_name, a_third_long_name
      FROM a_table_with_a_name
      WHERE a_long_name > 10
    ) AS d ON s.k = d.k
    LEFT JOIN u USING (k),
  w
UNION ALL
SELECT a_long_name, another_long_name, a_third_long_name
FROM a_table_with_a_name
WHERE a_long_name > 10;
"""
    )


def test_no_comment_is_lost_wherever_it_stands() -> None:
    """A comment of either kind between any two tokens, on the line or after it, of a file with every kind of row.

    Up to five at a time, far from each other: the texts are long.
    """
    from test_grammar_spellings import LANGUAGE_EXAMPLE, QUERIES, STATEMENTS

    texts = [LANGUAGE_EXAMPLE, ";\n".join(STATEMENTS), ";".join(QUERIES), "SELECT a, b FROM t, u"]
    for text in texts:
        tokens = tokenize(text, tables().keywords).tokens
        places = [token.start for token in tokens[:: max(1, len(tokens) // 60)]]
        apart = -(-len(places) // 5)
        for first in range(apart):
            commented = text
            for i in reversed(range(first, len(places), apart)):
                comment = ["/* note */", "-- note\n", "\n-- note\n", "\n/* two\nlines */\n", " /* a */ -- b\n"][i % 5]
                commented = commented[: places[i]] + comment + commented[places[i] :]
            fmt(commented)


def test_random_comments_in_random_scripts_survive() -> None:
    for seed in range(150):
        random = Random(seed)
        text = print_script(Trees(seed).script(2))
        tokens = tokenize(text, tables().keywords).tokens
        # behind a point a reserved word is a name only where it stands right there
        starts = [t.start for before, t in pairwise(tokens) if before.text != "."]
        for at in sorted(random.sample(starts, min(len(starts), 4)), reverse=True):
            comment = random.choice(["/* x */", "-- x\n", "\n-- x\n", "\n\n-- x\n\n", "/* x\n y */"])
            text = text[:at] + comment + text[at:]
        fmt(text)
