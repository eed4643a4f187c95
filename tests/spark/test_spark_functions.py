"""Scalar functions, casts and aggregates on Spark: every example of the registries, in few queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from examples import (
    Example,
    aggregate_examples,
    arguments_of,
    bound,
    cast_examples,
    comparable,
    options_of,
    scalar_examples,
)
from spark_agreement import column, physical
from spark_fixture import spark, view_name  # noqa: F401

from cq.errors import CompileError, CqError
from cq.lang import aggregates
from cq.lang.expressions import Call, Column, Expr, Literal, transform
from cq.lang.types import BOOLEAN, VARCHAR, DataType, Kind, array, to_arrow
from cq.reference.evaluate import evaluate
from cq.spark.context import packed, when
from cq.spark.exchange import forget, query, to_spark
from cq.spark.expressions import CONSTANT_ARGUMENTS, Expressions
from cq.spark.ingest import from_view, stored_type, to_result

pytestmark = pytest.mark.spark

EXAMPLES = [*scalar_examples(), *cast_examples()]
HAVE_VALUES = [e for e in EXAMPLES if not e.error]
FAIL = [e for e in EXAMPLES if e.error]


def lifted(expr: Expr, literals: list[Literal]) -> Expr:
    """`expr` with its literals moved into columns, which `literals` collects: nothing is folded before it runs."""

    def change(e: Expr) -> Expr:
        if isinstance(e, Call):
            places = {CONSTANT_ARGUMENTS.get(e.function.name), *e.function.spark_literals}
            args = [literals[a.index] if i in places and isinstance(a, Column) else a for i, a in enumerate(e.args)]
            return e.with_children(args)
        if not isinstance(e, Literal) or e.type.kind in {Kind.NULL, Kind.ARRAY}:
            return e
        literals.append(e)
        return Column(e.type, e.nullable, len(literals) - 1)

    return transform(expr, change)


def stored(literal: Literal) -> pa.Array:
    if literal.type.kind is Kind.INTERVAL:
        return pa.array([literal.value], pa.int64())
    return column([literal.value], literal.type).cast(stored_type(literal.type))


def values_on_spark(session: Any, exprs: Sequence[Expr], in_columns: bool) -> list[Any]:
    """The values of expressions in one query; their literals stand in the text, or in the columns of a table."""
    literals = [Literal(BOOLEAN, False, True)]
    asked = [lifted(e, literals) for e in exprs] if in_columns else exprs
    view = view_name()
    to_spark(session, pa.table([stored(x) for x in literals], names=[f"l{i}" for i in range(len(literals))]), view)
    write = Expressions()
    columns = [f"({from_view(f'l{i}', x.type)})" for i, x in enumerate(literals)]
    texts = [f"{to_result(write.text(e, columns), e.type)} as x{i}" for i, e in enumerate(asked)]
    try:
        row = query(session, f"select {', '.join(texts)} from {view}", write.constants.values)
    finally:
        forget(session, view)
    counted = {Kind.TIME, Kind.TIMESTAMP_LTZ}
    crossed = (stored_type(e.type) if e.type.kind in counted else to_arrow(e.type) for e in exprs)
    assert [str(c.type) for c in row.columns] == [str(t) for t in crossed]
    return [physical(c, e.type)[0] for c, e in zip(row.columns, exprs, strict=True)]


@pytest.mark.parametrize("in_columns", [False, True], ids=["literals", "columns"])
def test_every_example_with_a_value_has_it_on_spark(spark, in_columns):  # noqa: F811
    exprs = bound(*(e.expression for e in HAVE_VALUES))
    expected = bound(*(e.expected for e in HAVE_VALUES))
    got = values_on_spark(spark, exprs, in_columns)
    wrong = [
        f"{e}, not {value}"
        for e, expr, value, wanted in zip(HAVE_VALUES, exprs, got, expected, strict=True)
        if comparable(value, expr.type) != comparable(evaluate(wanted), wanted.type)
    ]
    assert not wrong


@pytest.mark.parametrize("example", FAIL, ids=str)
@pytest.mark.one_in(4)
def test_every_example_that_fails_fails_with_its_code_on_spark(spark, example: Example):  # noqa: F811
    for in_columns in (False, True):
        with pytest.raises(CqError) as caught:
            values_on_spark(spark, bound(example.expression), in_columns)
        assert caught.value.code == example.error


def test_split_gives_the_pieces_between_separators(spark):  # noqa: F811
    texts = ["split('a,b,,c', ',')", "split('', ',')", "split('a.b', '.')", "split('ab', '')", r"split('a\E.b', '\E.')"]
    exprs = bound(*texts)
    assert all(e.type == array(VARCHAR) for e in exprs)
    assert values_on_spark(spark, exprs, True) == [evaluate(e) for e in exprs]


@pytest.mark.parametrize("text", ["round(2.5e0, CAST(x AS INTEGER))", "'a' LIKE 'a' ESCAPE CAST(x AS VARCHAR)"])
def test_a_computed_argument_where_spark_wants_a_constant_is_refused(text):
    (expr,) = bound(text)
    with pytest.raises(CompileError) as caught:
        Expressions().text(expr, ("c0",))
    assert caught.value.code == "CQ0901" and caught.value.line


def aggregate_on_spark(session: Any, examples: Sequence[Example], over: str) -> list[tuple[Any, DataType]]:
    """The aggregates of examples in one query: a column each, filled up with NULLs, which all of them skip."""
    arguments = [arguments_of(e) for e in examples]
    height = max(len(rows) for _, rows in arguments) + 1
    signatures = [found for found, _ in arguments]
    columns: dict[str, pa.Array] = {}
    texts = []
    names = [f"c{i}" for i in range(len(examples))]
    for example, name, (found, rows) in zip(examples, names, arguments, strict=True):
        entry = aggregates.all_aggregates()[example.owner]
        for n, type_ in enumerate(found.params):
            values = [row[n] for row in rows]
            columns[f"{name}_{n}"] = column([*values, *[None] * (height - len(values))], type_)
        own = [f"{name}_{n}" for n in range(len(found.params))]
        present = [f"n < {len(rows)}"] if entry.keeps_null else [f"{c} is not null" for c in own]
        argument = when(present, packed(own)) if entry.packs(found) else own[0]
        texts.append(f"{entry.spark_text(found, argument, over, POSITION, options_of(example))} as {name}")
    view = view_name()
    to_spark(session, pa.table([*columns.values(), pa.array(range(height))], names=[*columns, "n"]), view)
    order = " order by n desc limit 1" if over else ""
    table = query(session, f"select {', '.join(texts)}{', n' if over else ''} from {view}{order}")
    forget(session, view)
    assert [str(table.column(n).type) for n in names] == [str(to_arrow(s.returns)) for s in signatures]
    return [(physical(table.column(n), s.returns)[0], s.returns) for n, s in zip(names, signatures, strict=True)]


OVERFLOWS_MEANWHILE = "sum over 9223372036854775807, 1, -1 = 9223372036854775807"
# Spark adds DOUBLEs in any order
IN_ORDER = {
    "sum over 0.1e0, 0.2e0, 0.3e0 = 0.6000000000000001e0",
    "skewness over 1, 3, 3, 3, 3, null = -1.5e0",
}
POSITION = "struct(n as _w, n as _s, array(n) as _o)"
RUNNING = " over (order by n rows between unbounded preceding and current row)"


@pytest.mark.parametrize("over", ["", RUNNING], ids=["grouped", "running"])
def test_every_aggregate_example_holds_on_spark(spark, over):  # noqa: F811
    examples = [e for e in aggregate_examples() if not e.error and not (over and e.text == OVERFLOWS_MEANWHILE)]
    expected = bound(*(e.expected for e in examples))
    got = aggregate_on_spark(spark, examples, over)
    wrong = [
        f"{e}, not {value}"
        for e, (value, type_), wanted in zip(examples, got, expected, strict=True)
        if comparable(value, type_) != comparable(evaluate(wanted), wanted.type) and e.text not in IN_ORDER
    ]
    assert not wrong


@pytest.mark.parametrize("example", [e for e in aggregate_examples() if e.error], ids=str)
def test_every_aggregate_example_that_fails_fails_on_spark(spark, example: Example):  # noqa: F811
    with pytest.raises(CqError) as caught:
        aggregate_on_spark(spark, [example], "")
    assert caught.value.code == example.error
