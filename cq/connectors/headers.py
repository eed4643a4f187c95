"""What a file says of its columns before its rows: the header of CSV, the schema of Parquet and Arrow."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa

from cq.connectors.access import Access
from cq.connectors.arrow.source import ipc_batches
from cq.connectors.csv.source import CsvOptions, first_row, header_names
from cq.connectors.first_bytes import BYTE_ORDER_MARK
from cq.connectors.native_file import native
from cq.connectors.nested import flat_schema
from cq.connectors.packed import unpacked
from cq.connectors.protocol import damaged
from cq.errors import CqError

HEADER_BYTES = 1 << 16  # of CSV that are looked at: 16,384 columns with names of 3 letters; a longer one says nothing


def own_schema(file: pa.NativeFile | BinaryIO, name: str, kind: str) -> pa.Schema:
    """The schema of a Parquet or Arrow file. CQ0701 when it is damaged."""
    if kind == "arrow":
        return ipc_batches(file, name)[0]
    try:
        from pyarrow import parquet

        return parquet.ParquetFile(file).schema_arrow
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, f"not a readable Parquet file: {str(e).splitlines()[0][:200]}") from None


def columns_said(access: Access, path: str, kind: str, codec: str, options: CsvOptions) -> pa.Schema | list[str] | None:
    """The flat schema of a file, or the names in its header; None where it says nothing, or cannot be read."""
    if kind == "json" or (kind == "csv" and not options.header):
        return None
    with suppress(CqError, OSError), access.open(path) as file:
        if kind != "csv":
            with native(file) as its_own:
                return flat_schema(own_schema(its_own, path, kind))
        text = unpacked(file, path, codec).read(HEADER_BYTES).removeprefix(BYTE_ORDER_MARK)
        first = first_row(text, path, options)
        if first is not None and (first.end < len(text) or len(text) < HEADER_BYTES):
            return header_names(first)
    return None
