"""DuckDB and polars over the same Arrow buffers or the same Parquet file; the whole result is fetched and counted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from benchmarks.case import Case

THREADS = 2  # as many as cq gets
ROW_GROUP = 122_880  # DuckDB spreads an Arrow table over its threads by record batches; this is its own row group

os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))  # polars reads it once, when it is imported


class Duck:
    """One connection; `run` runs the case's query over its streams by name: tables, or Parquet files."""

    def __init__(self, case: Case, inputs: Mapping[str, pa.Table | Path]) -> None:
        import duckdb

        self._case = case
        self._connection = duckdb.connect(config={"threads": THREADS})
        for name, given in inputs.items():
            if isinstance(given, Path):
                self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{given}')")
            else:
                self._connection.register(name, given)

    def run(self) -> int:
        return sum(batch.num_rows for batch in self._reader())

    def batches(self) -> list[pa.RecordBatch]:
        """The result itself."""
        return list(self._reader())

    def _reader(self) -> pa.RecordBatchReader:
        return self._connection.sql(self._case.duckdb).to_arrow_reader(ROW_GROUP)

    def close(self) -> None:
        self._connection.close()


class Bear:
    """polars: the case's query over frames in memory or lazily read files."""

    def __init__(self, case: Case, inputs: Mapping[str, pa.Table | Path]) -> None:
        import polars

        self._query = case.polars
        self._frames: list[Any] = [
            polars.scan_parquet(given) if isinstance(given, Path) else polars.from_arrow(given).lazy()
            for given in inputs.values()
        ]

    def run(self) -> int:
        return int(self._query(*self._frames).collect().height)

    def batches(self) -> list[pa.RecordBatch]:
        """The result itself."""
        made: list[pa.RecordBatch] = self._query(*self._frames).collect().to_arrow().to_batches()
        return made


def versions() -> dict[str, str]:
    """The versions that cq is measured against."""
    import duckdb
    import polars

    return {"duckdb": duckdb.__version__, "polars": polars.__version__, "pyarrow": pa.__version__}
