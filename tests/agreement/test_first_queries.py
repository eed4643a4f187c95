"""What people type first gives the rows that DuckDB gives, in any order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from paths import SLT
from slt_format import SltCase, read_cases, read_row, write_row

from cq.compiler.passes import compile
from cq.connectors.physical_rows import batch_of, rows_of
from cq.lang.schema import Field
from cq.lang.types import to_arrow

duckdb = pytest.importorskip("duckdb")

CASES = read_cases(Path(SLT) / "first_queries.slt")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_first_query_gives_the_rows_of_duckdb(case: SltCase) -> None:
    compiled = compile(case.text)
    (output,) = compiled.outputs
    fields = output.node.schema.fields
    expected = Counter(write_row(read_row(line, fields), fields) for line in case.rows["result"])
    with duckdb.connect() as base:
        for source in compiled.sources:
            if source.name in case.data:  # else its rows are in the query
                base.register(source.name, table(source.fields, case.data[source.name]))
        found = base.sql(case.duckdb or case.query).to_arrow_table()
    assert found.num_columns == len(fields)
    columns = [_as(column, field) for column, field in zip(found.columns, fields, strict=True)]
    batches = pa.Table.from_arrays(columns, [f.name for f in fields]).to_batches()
    seen = [row for batch in batches for row in rows_of(batch, [f.type for f in fields])]
    assert Counter(write_row(row, fields) for row in seen) == expected


def table(fields: tuple[Field, ...], lines: list[str]) -> pa.Table:
    loose = [Field(f.name, f.type, True) for f in fields]
    return pa.Table.from_batches([batch_of([read_row(line, fields) for line in lines], loose)])


def _as(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """DuckDB's widths are others than ours; values must fit exactly."""
    kind = to_arrow(field.type)
    wide = pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else kind
    return column.cast(wide).cast(kind)
