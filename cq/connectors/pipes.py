"""Pipes and standard input: what comes out of them is told by its first bytes where nobody has said it.

Text is read as it comes, and so are packed text, a MiB of it at a time, and streams of Arrow. Parquet and Arrow files
are read from their end, so they are copied to a file without a name first.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from cq.connectors.arrow.source import read_arrow
from cq.connectors.csv.source import CsvOptions, read_csv
from cq.connectors.first_bytes import ARROW_FILE, codec_of_bytes, format_of_bytes, is_json, is_json_told, is_told
from cq.connectors.formats import TEXT_FORMATS, codec_of, ending_format, tabbed
from cq.connectors.json.source import read_json
from cq.connectors.native_file import native
from cq.connectors.natives import NONE, Natives
from cq.connectors.once import Once, Peeked
from cq.connectors.options import CSV_OPTIONS, option
from cq.connectors.packed import unpacked
from cq.connectors.protocol import Piece, damaged
from cq.connectors.rules import Rules


def read_pipe(
    file: Once, name: str, options: Mapping[str, str], rules: Rules, natives: Natives = NONE
) -> Iterator[Piece]:
    """The rows as pieces."""
    try:
        kind, text = told(file, name, options)
        if kind == "json":
            yield from read_json(text, name, rules, natives.json_scan, natives.csv_scan)
        elif kind == "csv":
            yield from read_csv(text, name, CsvOptions.of(tabbed(options, name)), rules, natives.csv_scan)
        else:
            yield from _read_typed(file, name, kind, rules)
    except OSError as e:
        raise unreadable(name, e) from None


def _read_typed(file: Once, name: str, kind: str, rules: Rules) -> Iterator[Piece]:
    with typed_source(file, name, kind) as source:
        if kind == "arrow":
            yield from read_arrow(source, name, rules)
            return
        from cq.connectors.parquet.source import read_parquet  # imports 20 ms that other formats do not need

        yield from read_parquet(cast(pa.NativeFile, source), name, rules)


def told(file: Once, name: str, options: Mapping[str, str]) -> tuple[str, Peeked]:
    """(format, what to read): as the options say, else the ending of the name, else the first bytes; what is no other
    format is CSV. Of CSV and JSON the text is what to read."""
    head = file.peek(is_told)
    given = option(options, "format") or ending_format(name)
    compression = option(options, "compression")
    codec = codec_of(name, compression, given or "csv")
    if not codec and not compression and given in {"", *TEXT_FORMATS}:
        codec = codec_of_bytes(head)
    kind = given or (format_of_bytes(head) if not codec else "")
    text = cast(Peeked, unpacked(cast(BinaryIO, file), name, codec))
    if not kind:
        is_csv = any(key in options for key in CSV_OPTIONS)
        kind = "json" if not is_csv and is_json(text.peek(is_json_told)) else "csv"
    return kind, text


@contextmanager
def typed_source(file: Once, name: str, kind: str) -> Iterator[pa.NativeFile | BinaryIO]:
    """What Arrow or Parquet is read from: the pipe itself if that is a stream of Arrow, else a file with all of it."""
    if kind == "arrow" and not file.peek(is_told).startswith(ARROW_FILE):
        yield cast(BinaryIO, io.BufferedReader(file))
        return
    try:
        whole = file.as_file()
    except OSError as e:
        cause = f"{kind.capitalize()} is read from its end, and there is no copying it to a file: {e.strerror or e}"
        raise damaged(
            name, cause, "set TMPDIR to a directory with more room", "or write it to a file first: … > FILE"
        ) from None
    with whole, native(whole) as its_own:
        yield its_own


def unreadable(name: str, error: OSError) -> Exception:
    """The error for an input that the system does not let us read."""
    return damaged(name, f"it cannot be read: {error.strerror or str(error)[:200]}")
