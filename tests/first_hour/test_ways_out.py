"""Ways out that errors name are run: what stands behind `write` compiles, a name that was meant is the right one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from planner_fixture import infer

from cq.errors import CompileError, CqError, SourceText
from cq.grammar import ast
from cq.grammar.parser import parse, parse_expression
from cq.grammar.unsupported import ELSEWHERE
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment

GOLDEN = Path(__file__).parents[1] / "golden" / "errors"
KNOWN = {"ts": "TIMESTAMP", "condition": "BOOLEAN", "start": "BIGINT", "length": "BIGINT", "n": "BIGINT"}
TYPES = ("VARCHAR", "DOUBLE", "BIGINT", "TIMESTAMP", "DATE", "BIGINT ARRAY")
WRITES = {name: way for name, way in ELSEWHERE.items() if way.startswith("write ")}
MEANT = re.compile(r'did you mean "(\w+)"\?')


def written(way: str) -> Iterator[ast.Expr]:
    """The expressions behind `write`: the longest text that is one, then what follows `or`."""
    for part in re.split(r",? or ", way.removeprefix("write ")):
        ends = [len(part), *(m.start() for m in reversed(list(re.finditer(r"[,:;]| for | of ", part))))]
        for end in ends:
            try:
                yield parse_expression(part[:end].replace("AS T)", "AS BIGINT)"))
                break
            except CompileError:
                continue
        else:
            raise AssertionError(f"nothing of {part!r} is an expression")


def compiles(expression: ast.Expr) -> bool:
    """Whether the expression means something over columns of some types."""
    from cq.grammar.inline import expr

    names = {n.name for n in ast.walk(expression) if isinstance(n, ast.ColumnRef)} | {"ts"}
    for kinds in itertools.product(TYPES, repeat=min(2, len(names - KNOWN.keys()))):
        types = dict(zip(sorted(names - KNOWN.keys()), [*kinds, *kinds[-1:] * len(names)], strict=False))
        columns = ", ".join(f'"{n}" {KNOWN.get(n) or types[n]}' for n in sorted(names))
        text = f"CREATE STREAM s ({columns}); SELECT {expr(expression)} AS it FROM s"
        try:
            bind(parse(SourceText("way", text)), Environment())
            return True
        except CqError:
            continue
    return False


@pytest.mark.parametrize("name", WRITES)
def test_function_of_another_system_has_a_way_that_compiles(name: str) -> None:
    for expression in written(WRITES[name]):
        assert compiles(expression), (name, expression)


def mistakes(text: str) -> list[tuple[int, int, str]]:
    """Where a text is wrong, and how."""
    try:
        bind(parse(SourceText("q.cq", text)), Environment(infer=infer))
    except CqError as error:
        return [(d.span.line, d.span.column, d.message) for d in error.diagnostics]
    return []


def guessed() -> list[str]:
    return sorted(p.stem for p in GOLDEN.glob("*.txt") if MEANT.search(p.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", guessed())
def test_name_that_was_meant_takes_the_mistake_away(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    text = re.split(r"\n\n(?=(?:data )?error\[)", golden, maxsplit=1)[0]
    with pytest.raises(CqError) as caught:
        bind(parse(SourceText("q.cq", text)), Environment(infer=infer))
    for d in caught.value.diagnostics:
        meant = next((m[1] for h in d.help if (m := MEANT.search(h))), None)
        if meant is None:
            continue
        lines = text.split("\n")
        line = lines[d.span.line - 1]
        lines[d.span.line - 1] = line[: d.span.column - 1] + meant + line[d.span.end_column - 1 :]
        left = mistakes("\n".join(lines))
        assert (d.span.line, d.span.column, d.message) not in left, (meant, left)
        assert not any((line, column) == (d.span.line, d.span.column) for line, column, _ in left), (meant, left)
