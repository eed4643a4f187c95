"""The committed LALR tables, their container, and the link from productions to the methods that build nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import pairwise

import pytest

from cq.errors import CompileError, SourceText
from cq.grammar import parser
from cq.grammar.build import KEYWORD_PRODUCTIONS, SIGN_PRODUCTIONS, Builder
from cq.grammar.lexer import ONLY_AFTER, ONLY_BEFORE, RESERVED
from cq.grammar.tables import fingerprint, from_json

GRAMMAR = (parser.HERE / "cq.lark").read_text(encoding="utf-8")
CONTAINER = (parser.HERE / "tables.json").read_text(encoding="utf-8")


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """lark takes six seconds."""
    monkeypatch.setattr(parser, "build_tables", MADE)


MADE = cache(parser.build_tables)


@pytest.mark.usefixtures("made_once")
def test_the_committed_tables_are_those_of_the_grammar() -> None:
    """After a change of cq.lark run: python -m cq.grammar.parser"""
    assert parser.current_container() == CONTAINER


def test_the_grammar_has_no_conflict_but_the_known_ones(capfd: pytest.CaptureFixture[str]) -> None:
    """lark settles a shift/reduce conflict by shifting. Each of these is meant; a new one needs a look."""
    code = (
        "import lark, logging; lark.logger.setLevel(logging.DEBUG)\n"
        "from cq.grammar import parser\n"
        "lark.Lark(parser.HERE.joinpath('cq.lark').read_text(), parser='lalr', lexer='basic', debug=True,"
        " start=list(parser.START_SYMBOLS))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = (run.stderr + run.stdout).splitlines()
    found = {(a.split()[4].rstrip(":"), b.strip(" *<>")) for a, b in pairwise(lines) if "Shift/Reduce" in a}
    assert {terminal for terminal, _ in found} == {
        "LPAR",  # WHEN a (… of a trigger without BEGIN: a call goes on
        "WITH",  # the same with a type: TIMESTAMP WITH TIME ZONE goes on
        "COMMA",  # LATERAL VIEW explode(xs) t AS a, b: names of columns go on
        "IGNORE",  # f(g(x) IGNORE NULLS): belongs to the inner call
        "RESPECT",
        "ON",  # INSERT … ASOF JOIN t MATCH_CONDITION (…) ON CONFLICT: belongs to the join
    }


def test_a_run_with_current_tables_does_not_import_lark() -> None:
    code = (
        "import sys; from cq.errors import SourceText; from cq.grammar.parser import parse\n"
        "parse(SourceText('q', 'SELECT 1')); print('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-20],
        lambda text: text.replace('"format":1', '"format":2'),
        lambda text: text.replace('"grammar":"', '"grammar":"0'),
        lambda text: json.dumps({**json.loads(text), "rules": []}),
        lambda text: json.dumps({**json.loads(text), "states": json.loads(text)["states"][:5]}),
        lambda text: json.dumps({**json.loads(text), "start": {"statement": 10**6}}),
        lambda text: "[1, 2]",
        lambda text: "null",
    ],
)
def test_a_damaged_or_old_container_is_not_used(damage: object) -> None:
    assert callable(damage)
    assert from_json(damage(CONTAINER), fingerprint(GRAMMAR)) is None
    assert from_json(CONTAINER, fingerprint(GRAMMAR)) is not None


@pytest.mark.usefixtures("made_once")
def test_without_a_current_container_the_tables_are_made_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = parser._text
    monkeypatch.setattr(parser, "_text", lambda name: "" if name == "tables.json" else text(name))
    assert parser.tables.__wrapped__() == from_json(CONTAINER, fingerprint(GRAMMAR))


def test_every_production_that_makes_a_value_has_a_method() -> None:
    called = {
        rule.call
        for rule in parser.tables().rules.every()
        if rule.call and not (rule.single and len(rule.keep) == 1 and not rule.keep[0][1] and not rule.nones)
    }
    methods = {name for name in dir(Builder) if not name.startswith("_")} - {"build", "finish"}
    assert called - KEYWORD_PRODUCTIONS - SIGN_PRODUCTIONS == methods


def test_tables_of_words_name_keywords_only() -> None:
    keywords = set(parser.tables().keywords)
    assert keywords >= RESERVED - {"ELSEIF"} and set(ONLY_BEFORE) <= keywords and set(ONLY_AFTER) <= keywords


def test_parsing_leaves_no_state_behind() -> None:
    good, bad = SourceText("q", "SELECT a FROM t"), SourceText("q", "SELECT a FROM")
    first = parser.parse(good)
    with pytest.raises(CompileError):
        parser.parse(bad)
    assert parser.parse(good) == first
