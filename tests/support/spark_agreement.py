"""The reference and Spark over the same text and rows: the results of both, as rows of physical values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from reference_fixture import unfailed

from cq.connectors.physical_rows import array_of, values_of
from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.lang.schema import Field
from cq.lang.types import DataType, Kind, to_arrow
from cq.lang.value_text import read_decimal, write_decimal
from cq.planner.binding.binder import bind
from cq.planner.operators import Scan
from cq.planner.plan.logical import LogicalPlan
from cq.reference.engine import run
from cq.reference.operators.trigger import replayed
from cq.spark.run import run_spark

Rows = list[tuple[Any, ...]]
COUNTED = {
    Kind.DATE: pa.int32(),
    **dict.fromkeys((Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ, Kind.INTERVAL), pa.int64()),
}


def plan_of(text: str) -> LogicalPlan:
    """The bound plan of a query text."""
    return bind(parse(SourceText("test.cq", text))).plan


def column(values: Iterable[Any], type_: DataType) -> pa.Array:
    """Physical values as an Arrow column."""
    if type_.kind is Kind.ARRAY:
        return array_of(list(values), type_)
    if type_.kind is Kind.DECIMAL:
        values = [None if v is None else Decimal(write_decimal(v, type_.scale)) for v in values]
    return pa.array(list(values), COUNTED.get(type_.kind, to_arrow(type_))).cast(to_arrow(type_))


def table(fields: Sequence[Field], rows: Rows) -> pa.Table:
    """Rows as an Arrow table with columns of these names and types."""
    columns = [column((r[i] for r in rows), f.type) for i, f in enumerate(fields)]
    return pa.table(columns, names=[f.name for f in fields])


def physical(values: pa.ChunkedArray, type_: DataType) -> list[Any]:
    """An Arrow column as physical values."""
    if type_.kind in COUNTED:
        return values.cast(COUNTED[type_.kind]).to_pylist()
    if type_.kind is Kind.DECIMAL:
        return [None if v is None else read_decimal(f"{v:f}", type_.precision, type_.scale) for v in values.to_pylist()]
    if type_.kind is Kind.ARRAY:
        return [v for chunk in values.chunks for v in values_of(chunk, type_)]
    return values.to_pylist()


def on_spark(plan: LogicalPlan, inputs: Mapping[str, Rows], ordered: bool = True) -> dict[str, Rows]:
    """The rows of every output, as Spark computes them."""
    sources = {n.source.name: n.source for n in plan.nodes() if isinstance(n, Scan)}
    results = run_spark(
        plan, {n: table(s.fields, inputs[n]) for n, s in sources.items()}, ordered=ordered, loop=replayed
    )
    out = {}
    for o in plan.outputs:
        fields = o.node.schema.fields
        got = results[o.name]
        assert [(f.name, f.type) for f in got.schema] == [(f.name, to_arrow(f.type)) for f in fields]
        columns = [physical(c, f.type) for c, f in zip(got.columns, fields, strict=True)]
        out[o.name] = list(zip(*columns, strict=True))
    return out


def same(x: Any, y: Any) -> bool:
    """Whether they are equal, DOUBLEs within a relative 1e-9."""
    if isinstance(x, float) and isinstance(y, float):
        return (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=1e-9)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(same, x, y))
    return type(x) is type(y) and x == y


def assert_agree(plan: LogicalPlan, inputs: Mapping[str, Rows], note: object = "") -> dict[str, Rows]:
    """Fail unless Spark returns the reference's rows, in the reference's order too. Returns them."""
    wanted = unfailed(run(plan, inputs))
    got = on_spark(plan, inputs)
    for name, rows in got.items():
        expected = wanted.rows(name)
        for i, (x, y) in enumerate(zip(expected, rows, strict=False)):
            assert len(x) == len(y) and all(map(same, x, y)), f"{note} {name}[{i}]: reference {x}, Spark {y}"
        assert len(expected) == len(rows), f"{note} {name}: reference {len(expected)} rows, Spark {len(rows)}"
    return {name: wanted.rows(name) for name in got}
