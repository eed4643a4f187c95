"""The definition of a measured case, and inputs shared by several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.loops import LoopSpec
from cq.workloads import WORKLOADS

SECOND_US = 1_000_000
START_US = 1_436_918_400_000_000  # 2015-07-15 00:00:00
BID_INTERVAL_US = 10  # 100,000 bids a second

Generate = Callable[[int], pa.RecordBatch]


def file_of(stream: str) -> str:
    """The options of a stream that is read from the Parquet file with its name."""
    return f"WITH (connector = 'file', path = '{stream}.parquet', format = 'parquet');"


BID = (
    "CREATE STREAM bid (auction BIGINT NOT NULL, price BIGINT {null}, ts TIMESTAMP NOT NULL, WATERMARK FOR ts)\n"
    + file_of("bid")
    + "\n"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One query over its inputs.

    query: the text over Parquet files named after the streams.  stream: its input, the first of several.
    others: the further inputs in the order of the query, each made to match the rows of the first.
    units: the number of units in a row (words of a line).
    loop: none if the same algorithm by hand would show nothing new.
    spread: stateless, or windows with at least 100 rows per group: two workers must then match the control.
    halves: whether half of the rows are half of the work, so that two engines on halves are a control.
    peer_bar: the required speed relative to DuckDB, both from memory; file_bar: both from the same file.
    kernel_bar: the required rate of one core's kernel, in millions of units a second.
    loop_bar: the kernel's share of the C++ loop.
    stateless: from a file the bar is pyarrow's decoding, else DuckDB.
    duckdb, polars: none if they cannot express it.
    """

    name: str
    title: str
    query: str
    stream: str
    rows: int
    generate: Generate
    others: Mapping[str, Generate] = field(default_factory=dict)
    loop: LoopSpec | None = None
    duckdb: str = ""
    polars: Callable[..., Any] | None = None
    peer_bar: float = 0.0
    file_bar: float = 1.15
    spread: bool = False
    halves: bool = True
    units: int = 1
    unit: str = "rows"
    kernel_bar: float | None = None
    loop_bar: float = 0.75
    stateless: bool = False
    from_file: bool = False

    def inputs(self, rows: int) -> dict[str, pa.RecordBatch]:
        """Every input, by stream, with this many rows in the first."""
        return {self.stream: self.generate(rows), **{name: make(rows) for name, make in self.others.items()}}


def bids(keys: int, scatter: bool, nulls: float = 0.0) -> Generate:
    """Bids in order of time."""

    def generate(rows: int) -> pa.RecordBatch:
        made = WORKLOADS["bids"].generate(
            rows=rows, keys=keys, scatter=scatter, interval_us=BID_INTERVAL_US, nulls=nulls
        )
        return whole(pa.Table.from_batches(made).select(["auction", "price", "ts"]))

    return generate


def whole(table: pa.Table) -> pa.RecordBatch:
    """The table as a single batch."""
    (batch,) = table.combine_chunks().to_batches()
    return batch


def columns(**arrays: np.ndarray[Any, Any]) -> pa.RecordBatch:
    """Columns without NULLs; `ts` is in microseconds."""
    schema = pa.schema([pa.field(n, pa.timestamp("us") if n == "ts" else pa.int64(), nullable=False) for n in arrays])
    made = [pa.array(a.astype(np.int64)).cast(f.type) for a, f in zip(arrays.values(), schema, strict=True)]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def times(rows: int, interval_us: int = BID_INTERVAL_US, first_us: int = 0) -> np.ndarray[Any, Any]:
    """Times at equal distances."""
    return START_US + first_us + np.arange(rows, dtype=np.int64) * interval_us
