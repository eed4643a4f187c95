"""The Parquet format, for code that opens inputs. Loading this costs 20 ms that other formats do not need."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
from pyarrow import parquet

from cq.connectors.parquet.source import read_parquet
from cq.connectors.protocol import damaged
from cq.connectors.readings.protocol import TypedReading


def _schema(file: pa.NativeFile | BinaryIO, name: str) -> pa.Schema:
    try:
        return parquet.ParquetFile(file).schema_arrow
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, f"not a readable Parquet file: {str(e).splitlines()[0][:200]}") from None


def _streams(head: bytes) -> bool:
    """No: the footer has to be read first."""
    return False


READING = TypedReading(read_parquet, _schema, _streams)
