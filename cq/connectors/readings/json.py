"""The JSON lines format, for code that opens inputs."""

from __future__ import annotations

from collections.abc import Iterator

from cq.connectors.csv.blocks import BLOCK_BYTES, Readable, check_encoding
from cq.connectors.first_bytes import BYTE_ORDER_MARK, is_json, is_json_told
from cq.connectors.json.guess import guessed_fields
from cq.connectors.json.source import check_lines, read_json
from cq.connectors.natives import Natives
from cq.connectors.protocol import Piece, damaged
from cq.connectors.read_once import Looked
from cq.connectors.readings.protocol import Options, TextReading
from cq.connectors.rules import Rules
from cq.lang.schema import Field


def _check(options: Options) -> None:
    """Nothing to check: it has no options."""


def _read(
    text: Readable, name: str, options: Options, rules: Rules, natives: Natives, may_be_blank: bool
) -> Iterator[Piece]:
    return read_json(text, name, rules, natives.json_scan, natives.csv_scan)


def _guess(head: Looked, name: str, options: Options) -> tuple[Field, ...]:
    text = head.text
    check_encoding(text, name, "JSON")
    text = text.removeprefix(BYTE_ORDER_MARK)
    check_lines(text, name)
    whole = text if head.ended else text[: text.rfind(b"\n") + 1]
    if text and not whole:
        raise damaged(name, f"its first line is longer than {BLOCK_BYTES >> 20} MiB", "declare the columns")
    return guessed_fields(whole, name)


def _header(text: bytes, name: str, options: Options, whole: bool) -> None:
    """None: each row has its own names."""


def _ends(text: bytes, options: Options) -> Iterator[int]:
    start = 0
    while (end := text.find(b"\n", start) + 1) > 0:
        if text[start:end].strip():
            yield end
        start = end


def _header_rows(options: Options) -> int:
    return 0


READING = TextReading(_check, _read, _guess, _header, _ends, _header_rows, is_json, is_json_told)
