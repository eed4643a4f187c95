"""DuckDB's result for a case of tests/slt, in the form of its expected rows.

Streams are tables with the same names. Besides its columns a table has `arrival`, the number of the row among those of
all streams of the case, `mark`, the watermark of its stream before it (NULL before the first row), and `late`; rows
without an event time are left out. `SELECT *` of a table includes these columns.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import Any

import duckdb
import pyarrow as pa
from slt_format import SltCase, read_row, write_row

from cq.compiler.passes import Compiled
from cq.connectors.physical_rows import batch_of, rows_of
from cq.lang.expressions import Column
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, TIMESTAMP, to_arrow
from cq.planner.plan.source import SourceDef

Row = tuple[Any, ...]
LEAST = -(1 << 62)
MARKS = (Field("arrival", BIGINT, False), Field("mark", TIMESTAMP, True), Field("late", BOOLEAN, False))


def rows_of_duckdb(case: SltCase, compiled: Compiled) -> list[str]:
    """The lines of the rows of the only output."""
    (output,) = compiled.outputs
    fields = output.node.schema.fields
    text = case.duckdb or case.query
    with registered(_tables(case, compiled, marked=bool(re.search(r"\b(arrival|mark|late)\b", text)))) as base:
        found = base.sql(text).to_arrow_table()
    assert found.num_columns == len(fields)
    columns = [_as(column, field) for column, field in zip(found.columns, fields, strict=True)]
    batches = pa.Table.from_arrays(columns, [f.name for f in fields]).to_batches()
    seen = [row for batch in batches for row in rows_of(batch, [f.type for f in fields])]
    return [write_row(row, fields) for row in seen]


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all cases of the process: creating one takes as long as a case."""
    base = duckdb.connect(config={"threads": 1})
    base.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'; SET integer_division = true")
    return base


@contextmanager
def registered(tables: Mapping[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, in which these are tables meanwhile."""
    for name, table in tables.items():
        database().register(name, table)
    try:
        yield database()
    finally:
        for name in tables:
            database().unregister(name)


def _tables(case: SltCase, compiled: Compiled, marked: bool) -> dict[str, pa.Table]:
    made = {}
    sources = [s for s in compiled.sources if s.name in case.data]  # else its rows are in the query
    rows = {s.name: [read_row(line, s.fields) for line in case.data[s.name]] for s in sources}
    for name, arrived in _arrivals({s.name: _timed(s, rows[s.name]) for s in sources}).items():
        (fields,) = (s.fields for s in sources if s.name == name)
        loose = [Field(f.name, f.type, True) for f in fields] + list(MARKS if marked else ())
        made[name] = pa.Table.from_batches(
            [batch_of([row if marked else row[: len(fields)] for row in arrived], loose)]
        )
    return made


def _timed(source: SourceDef, rows: list[Row]) -> Iterator[tuple[int, Row]]:
    """Each row with a time, the running maximum of the times, the watermark before it, and lateness."""
    time = source.event_time
    if time is None:
        yield from ((LEAST, (*row, None, False)) for row in rows)
        return
    assert isinstance(time, Column), "a computed event time"
    rows = [row for row in rows if row[time.index] is not None]
    greatest = list(accumulate((row[time.index] for row in rows), max))
    for n, row in enumerate(rows):
        mark = greatest[n - 1] - source.delay_us if n else None
        yield greatest[n], (*row, mark, mark is not None and row[time.index] < mark)


def _arrivals(timed: dict[str, Iterator[tuple[int, Row]]]) -> dict[str, list[Row]]:
    """The rows of every stream with their numbers: merged by the running maximum, then the position of the stream."""
    made: dict[str, list[Row]] = {name: [] for name in timed}
    named = [[(at, n, row) for at, row in rows] for n, rows in enumerate(timed.values())]
    for number, (_, n, row) in enumerate(heapq.merge(*named, key=lambda r: r[:2])):
        list(made.values())[n].append((*row[:-2], number, *row[-2:]))
    return made


def _as(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """DuckDB's widths differ from ours; values must fit exactly."""
    kind = to_arrow(field.type)
    wide = pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else kind
    return column.cast(wide).cast(kind)
