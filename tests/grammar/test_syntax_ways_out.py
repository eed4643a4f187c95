"""Every way out of every syntax error is taken, and what comes of it can be parsed."""

from __future__ import annotations

import re

import pytest
from test_grammar_errors import CASES
from ways_out import LISTS, ways

from cq.errors import CompileError, Diagnostic, SourceText
from cq.grammar.parser import parse

TEXTS = {f"{group}_{n}": text for group, texts in CASES.items() for n, text in enumerate(texts, 1)}
WAYS = ways("syntax")
MEANT = re.compile(r'did you mean "?(\w+)"?\?')


def error_of(text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        parse(SourceText("q.cq", text))
    return caught.value.diagnostics[0]


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_parsed_once_its_way_out_is_taken(name: str) -> None:
    found = error_of(TEXTS[name])
    taken = WAYS.get(name, [])
    stands = "tests/golden/ways_out/syntax.txt has the ways out of this text, in their order"
    assert [w.text for w in taken] == [h for h in found.help if not LISTS.match(h)], stands
    for way in taken:
        assert way.takings, (way.text, "is not taken")
        for taking in way.takings:
            parse(SourceText("q.cq", taking.of(TEXTS[name])))


@pytest.mark.parametrize("name", TEXTS)
def test_word_that_was_meant_is_the_right_one(name: str) -> None:
    found = error_of(TEXTS[name])
    meant = next((m[1] for h in found.help if (m := MEANT.search(h))), None)
    if meant is None:
        return
    lines = TEXTS[name].split("\n")
    line = lines[found.span.line - 1]
    lines[found.span.line - 1] = line[: found.span.column - 1] + meant + line[found.span.end_column - 1 :]
    parse(SourceText("q.cq", "\n".join(lines)))


def test_every_way_taken_belongs_to_a_text() -> None:
    assert WAYS.keys() <= TEXTS.keys()
