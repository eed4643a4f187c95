"""Regular expressions: the meaning against Python's, the automaton against the meaning, and what is refused."""

from __future__ import annotations

import random
import re

import pytest
from examples import bound
from expression_kernels import Kernels
from random_regexes import calls, pattern, text

from cq.errors import CqError
from cq.lang.expressions import format_expr
from cq.lang.regex.automaton import DEAD, automaton_of
from cq.lang.regex.java import java_replacement, java_text
from cq.lang.regex.program import program_of, search
from cq.lang.regex.syntax import BadRegex
from cq.reference.evaluate import evaluate


def python_text(regex: str) -> str:
    """The pattern in Python's words: its `$` also stands before a last line feed, its `\\s` is wider, `\\B` odd."""
    return regex.replace("$", r"\Z").replace(r"\B", r"(?!\b)").replace(r"\s", r"[\t\n\f\r ]")


def test_matches_are_those_of_a_backtracking_matcher() -> None:
    rng = random.Random(1)
    tried = 0
    while tried < 800:
        regex = pattern(rng)
        try:
            groups = program_of(regex, ()).groups
        except BadRegex:
            continue
        tried += 1
        compiled = re.compile(python_text(regex), re.ASCII)
        for _ in range(4):
            x = text(rng)
            match = compiled.search(x)
            wanted = None if match is None else tuple(at for group in range(groups + 1) for at in match.span(group))
            assert search(program_of(regex, tuple(range(groups + 1))), x) == wanted, (regex, x)


@pytest.mark.parametrize(("way", "count"), [("interpreted", 600), ("compiled", 150)])
def test_kernels_give_what_the_reference_gives(way: str, count: int) -> None:
    rng = random.Random(2)
    exprs = []
    while len(exprs) < count:
        exprs += calls(pattern(rng))
    with getattr(Kernels(exprs), way)() as run:
        for number, expr in enumerate(exprs):
            for _ in range(5):
                x = text(rng)
                assert run(number, (x,)) == evaluate(expr, (x,)), (format_expr(expr), x)


@pytest.mark.parametrize(
    ("regex", "message", "way_out"),
    [
        (r"(a)\1", "a back reference at character 4 is not supported", r"a\1"),
        ("a(?=b)", "look-around at character 2 is not supported", "a"),
        ("(?<!a)b", "look-around at character 1 is not supported", "b"),
        ("a*+", "two quantifiers follow each other at character 3", "a*?"),
        ("a{2}{3}", "two quantifiers follow each other at character 5", "(?:a{2}){3}"),
        ("(a*)*", "(a*)* repeats what may be empty", "a*"),
        ("(?:a|b?){2}", "(?:a|b?){2} repeats what may be empty", "(?:a|b)?(?:a|b)?"),
        ("x{", "the { at character 2 begins no quantifier", r"x\{"),
        ("x{3,2}", "{3,2} repeats from 3 to 2 times", "x{2,3}"),
        ("x{2000}", "{2000} repeats 2000 times", "x{100}"),
        ("*a", "the * at character 1 repeats nothing", r"\*a"),
        ("a)", "the ) at character 2 closes nothing", r"a\)"),
        ("(a", "the ( at character 1 is not closed", r"\(a"),
        ("[a", "the [ at character 1 is not closed", r"\[a"),
        ("[a&&b]", "& at character 3 has another meaning elsewhere", r"[a\&&b]"),
        ("[[a]]", "[ at character 2 has another meaning elsewhere", r"[\[a]]"),
        ("[z-a]", "z-a is not a range: its end comes before its start", "[a-z]"),
        (r"[a-\d]", r"a-\d is not a range", r"[a\-\d]"),
        (r"\p{L}", r"\p at character 1 is not supported", "[a-z]"),
        (r"\x{110000}", r"the \x at character 1 names no code point", r"\x{10FFFF}"),
        ("(?<1>a)", "the name of the group at character 1 is none", "(?<one>a)"),
        ("(" * 101 + "a" + ")" * 101, "more than 100 groups stand in each other", "a"),
        ("(?:a{1000}){1000}", "the pattern is too long", "a{100}"),
        ("a.{20}b", "too many ways through it are open at once", "^a.{20}b"),
    ],
)
def test_what_is_refused_says_where_and_its_way_out_works(regex: str, message: str, way_out: str) -> None:
    with pytest.raises(BadRegex) as caught:
        automaton_of(regex, ())
    assert str(caught.value) == message
    assert caught.value.help
    if "\\1" not in way_out:
        automaton_of(way_out, ())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("regexp_extract('ab', '(a)b')", "in the pattern '(a)b' are groups"),
        ("regexp_extract('ab', '(a)b', 2)", "in the pattern '(a)b' there is no group 2"),
        ("regexp_replace('ab', '(a)b', '$2')", "in the pattern '(a)b' there is no group 2"),
        ("regexp_replace('ab', 'a', '5$')", "the replacement has a $ that names no group"),
        ("regexp_like('ab', lower('A'))", "REGEXP_LIKE needs a literal pattern"),
        ("regexp_like('ab', 'a', 'x')", "REGEXP_LIKE takes flags out of i, m, s, as one literal"),
    ],
)
def test_a_call_is_refused_with_the_reason(call: str, message: str) -> None:
    with pytest.raises(CqError, match=re.escape(message)):
        bound(call)


def test_an_operator_is_the_function() -> None:
    texts = ("'b1' RLIKE '[0-9]'", "'b1' REGEXP '[0-9]'", "'b1' ~ '[0-9]'", "'b1' NOT RLIKE 'c'", "'b1' !~ 'c'")
    assert all(evaluate(e) is True for e in bound(*texts))
    (escaped,) = bound("rlike('b1', '\\d$')")
    assert evaluate(escaped) is True


def test_a_text_that_cannot_match_any_more_is_left() -> None:
    made = automaton_of("^ab", ())
    after = made.following[made.starts[0]][made.class_of(ord("b"))]
    assert after == DEAD


def test_spark_sees_no_class_whose_meaning_depends_on_it() -> None:
    assert java_text(r"(?i)^a\d.$") == r"\A[Aa][0-9][\x{0}-\x{9}\x{B}-\x{10FFFF}]\z"
    assert java_text("a+?|(b){2,}") == "(?:(?:a){1,}?|(?:(b)){2,})"
    assert java_replacement((1, "2$")) == r"$1\2\$"
