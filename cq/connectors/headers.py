"""What a file says about its columns before its rows: the header of CSV, the schema of Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.first_bytes import BYTE_ORDER_MARK
from cq.connectors.native_file import native
from cq.connectors.nested import flat_schema
from cq.connectors.packed import unpacked
from cq.connectors.readings.protocol import TypedReading, reading_of
from cq.errors import CqError

HEADER_BYTES = 1 << 16  # of text, room for 16,384 columns with names of 3 letters; a longer header is ignored


def columns_said(
    access: FileAccess, path: str, kind: str, codec: str, options: Mapping[str, str]
) -> pa.Schema | list[str] | None:
    """The flat schema of a file, or the names in its header; None where there is none, or it cannot be read."""
    reading = reading_of(kind)
    with suppress(CqError, OSError), access.open(path) as file:
        if isinstance(reading, TypedReading):
            with native(file) as its_own:
                return flat_schema(reading.schema(its_own, path))
        if not reading.header_rows(options):
            return None
        text = unpacked(file, path, codec).read(HEADER_BYTES).removeprefix(BYTE_ORDER_MARK)
        return reading.header(text, path, options, len(text) < HEADER_BYTES)
    return None
