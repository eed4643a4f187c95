"""The CSV format, for code that opens inputs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cq.connectors.csv.blocks import Readable
from cq.connectors.csv.guess import guessed_schema
from cq.connectors.csv.rows import NEVER_CLOSED, rows
from cq.connectors.csv.source import CsvOptions, first_row, header_names, read_csv
from cq.connectors.natives import Natives
from cq.connectors.protocol import Piece
from cq.connectors.read_once import Looked
from cq.connectors.readings.protocol import Options, TextReading
from cq.connectors.rules import Rules


def _check(options: Options) -> None:
    CsvOptions.of(options)


def _read(
    text: Readable, name: str, options: Options, rules: Rules, natives: Natives, may_be_blank: bool
) -> Iterator[Piece]:
    return read_csv(text, name, CsvOptions.of(options), rules, natives.csv_scan, may_be_blank)


def _guess(head: Looked, name: str, options: Options) -> pa.Schema:
    return guessed_schema(head, name, CsvOptions.of(options), "delimiter" in options)


def _header(text: bytes, name: str, options: Options, whole: bool) -> list[str] | None:
    csv = CsvOptions.of(options)
    first = first_row(text, name, csv) if csv.header else None
    return header_names(first) if first is not None and (first.end < len(text) or whole) else None


def _ends(text: bytes, options: Options) -> Iterator[int]:
    """A line end counts if it is an LF, or if the byte after it is there."""
    for row in rows(text, CsvOptions.of(options).dialect):
        ending = text[row.end : row.end + 2]
        if row.fault == NEVER_CLOSED or ending in {b"", b"\r"}:
            return
        if not row.blank:
            yield row.end + (2 if ending == b"\r\n" else 1)


def _header_rows(options: Options) -> int:
    return int(CsvOptions.of(options).header)


READING = TextReading(_check, _read, _guess, _header, _ends, _header_rows, begins=None, told=None)
