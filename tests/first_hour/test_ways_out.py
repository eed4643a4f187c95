"""Ways out that errors name are run: each of every golden is taken, a name that was meant is the right one.

Those of syntax errors are in tests/grammar/test_syntax_ways_out.py.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from planner_fixture import infer
from ways_out import GOLDEN as GOLDENS
from ways_out import LISTS, ways

from cq.errors import CompileError, CqError, SourceText
from cq.grammar import ast
from cq.grammar.parser import parse, parse_expression
from cq.grammar.unsupported import ELSEWHERE
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.binding.parameters import Untyped

GOLDEN = GOLDENS / "errors"
KNOWN = {
    "ts": "TIMESTAMP",
    "first": "BIGINT",
    "last": "BIGINT",
    "condition": "BOOLEAN",
    "start": "BIGINT",
    "length": "BIGINT",
    "n": "BIGINT",
}
TYPES = ("VARCHAR", "DOUBLE", "BIGINT", "TIMESTAMP", "DATE", "BIGINT ARRAY")
WRITES = {name: way for name, way in ELSEWHERE.items() if way.startswith("write ")}
MEANT = re.compile(r"""did you mean (?:"(\w+)"|('[^']+'))\?""")


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


NAMES = sorted(p.stem for p in GOLDEN.glob("*.txt"))
WAYS = ways("errors")


def query_of(name: str) -> str:
    """The query of a golden."""
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    return re.split(r"\n\n(?=(?:data )?error\[)", golden, maxsplit=1)[0]


def error_of(text: str, variables: Mapping[str, str] | None = None) -> CqError | None:
    """What is wrong with a query, if anything is."""
    given = {name: Untyped(value) for name, value in (variables or {}).items()}
    try:
        bind(parse(SourceText("q.cq", text)), Environment(given, infer=infer))
    except CqError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_way_out_takes_its_mistake_away_and_brings_no_other(name: str) -> None:
    query = query_of(name)
    found = error_of(query)
    assert found is not None, "the query of a golden of errors has none"
    taken = WAYS.get(name, [])
    said = [(d.message, h) for d in found.diagnostics for h in d.help if not LISTS.match(h)]
    stands = "tests/golden/ways_out/errors.txt has the ways out of this golden, in their order"
    assert [w.text for w in taken] == [way for _, way in said], stands
    before = Counter(d.message for d in found.diagnostics)
    for way, (mistake, _) in zip(taken, said, strict=True):
        assert way.takings, (way.text, "is not taken")
        for taking in way.takings:
            left = error_of(taking.of(query), taking.variables)
            after = Counter(d.message for d in left.diagnostics) if left is not None else Counter()
            assert after < before and after[mistake] < before[mistake], (taking.written, after)


def test_every_way_taken_belongs_to_a_golden() -> None:
    assert WAYS.keys() <= set(NAMES)


def test_no_error_leaves_its_reader_without_a_way() -> None:
    assert [n for n in NAMES if not any(d.help for d in error_of(query_of(n)).diagnostics)] == []  # type: ignore[union-attr]


def examples() -> list[str]:
    found = (re.findall(r"= help: example: (.*)", (GOLDEN / f"{n}.txt").read_text(encoding="utf-8")) for n in NAMES)
    return sorted(set(itertools.chain(*found)))


@pytest.mark.parametrize("example", examples())
def test_example_of_a_call_compiles(example: str) -> None:
    stream = "CREATE STREAM s (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv'); "
    windows = f"SELECT COUNT(*) AS n FROM {example} GROUP BY window_start, window_end"
    is_table = example.startswith(("TUMBLE(", "HOP(", "CUMULATE(", "SESSION("))
    by_key = ", k" if example.startswith("SESSION(") else ""
    assert error_of(stream + (windows + by_key if is_table else f"SELECT {example} AS it FROM s")) is None


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
    text = query_of(name)
    with pytest.raises(CqError) as caught:
        bind(parse(SourceText("q.cq", text)), Environment(infer=infer))
    for d in caught.value.diagnostics:
        meant = next((m[1] or m[2] for h in d.help if (m := MEANT.search(h))), None)
        if meant is None:
            continue
        lines = text.split("\n")
        line = lines[d.span.line - 1]
        lines[d.span.line - 1] = line[: d.span.column - 1] + meant + line[d.span.end_column - 1 :]
        left = mistakes("\n".join(lines))
        assert (d.span.line, d.span.column, d.message) not in left, (meant, left)
        assert not any((line, column) == (d.span.line, d.span.column) for line, column, _ in left), (meant, left)
