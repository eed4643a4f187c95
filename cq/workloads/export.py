"""Writing a workload to a file that is either complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from cq.errors import Diagnostic, UsageError
from cq.workloads.registry import Workload

FORMATS = ("csv", "parquet", "arrow")


def write(workload: Workload, path: str | os.PathLike[str], format: str | None = None, **parameters: object) -> int:
    """Generate the workload into `path` and return the number of rows.

    format: csv (with a header line), parquet or arrow (the IPC file format); None goes by the file's ending. The rows
    go to a file beside `path` that takes its name when all is on disk; on an error or interrupt nothing of it stays.
    """
    target = Path(path)
    chosen = _format(target, format)
    batches = workload.generate(**parameters)
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        with part.open("xb") as out:
            rows = _write_rows(batches, workload.schema, out, chosen)
            out.flush()
            os.fsync(out.fileno())
        part.replace(target)
    except OSError as e:
        raise UsageError(Diagnostic("CQ0605", f"cannot write {str(path)!r}: {e.strerror or e}")) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return rows


def _write_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: IO[bytes], format: str) -> int:
    """Write every batch to `out`, one at a time."""
    rows = 0
    with _writer(schema, out, format) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _writer(schema: pa.Schema, out: IO[bytes], format: str) -> pa.ipc.RecordBatchFileWriter:
    """A pyarrow writer of that format; all of them share `write_batch` and close at the end of a `with`."""
    if format == "csv":
        from pyarrow import csv

        return csv.CSVWriter(out, schema)
    if format == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(out, schema)
    return pa.ipc.new_file(out, schema)


def _format(path: Path, given: str | None) -> str:
    name = (given or path.suffix.removeprefix(".")).lower()
    if name in FORMATS:
        return name
    cause = f"cannot write the format {given!r}" if given else f"the ending of {str(path)!r} names no format"
    raise UsageError(Diagnostic("CQ0208", cause, help=("formats: " + ", ".join(FORMATS),)))
