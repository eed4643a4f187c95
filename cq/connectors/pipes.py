"""Pipes and standard input: the format is detected from the first bytes where nobody has given it.

Text is read as it arrives, and so are compressed text, a MiB at a time, and Arrow streams. Parquet and Arrow files are
read from the end, so they are first copied to an unnamed file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, cast

import pyarrow as pa

from cq.connectors.first_bytes import codec_of_bytes, format_of_bytes, is_told
from cq.connectors.formats import FORMATS, codec_of, ending_format, with_ending
from cq.connectors.native_file import native
from cq.connectors.natives import NONE, Natives
from cq.connectors.packed import unpacked
from cq.connectors.protocol import Piece, damaged, to_nobody
from cq.connectors.read_once import Once, Peeked
from cq.connectors.readings.protocol import TextReading, TypedReading, reading_of, texts
from cq.connectors.registry import option
from cq.connectors.rules import Rules


def read_pipe(
    file: Once, name: str, options: Mapping[str, str], rules: Rules, natives: Natives = NONE
) -> Iterator[Piece]:
    """The rows as pieces."""
    try:
        kind, text = told(file, name, options)
        reading = reading_of(kind)
        if isinstance(reading, TextReading):
            yield from reading.read(text, name, with_ending(options, name), rules, natives, False)
            return
        with typed_source(file, name, kind, reading) as source:
            yield from reading.read(source, name, rules, to_nobody)
    except OSError as e:
        raise unreadable(name, e) from None


def told(file: Once, name: str, options: Mapping[str, str]) -> tuple[str, Peeked]:
    """(format, input to read): by the options, else the ending of the name, else the first bytes; anything unrecognised
    is CSV. For text, the input to read is unpacked."""
    head = file.peek(is_told)
    given = option(options, "format") or ending_format(name)
    compression = option(options, "compression")
    packs = not given or FORMATS[given].packs
    codec = codec_of(name, compression, given)
    if not codec and not compression and packs:
        codec = codec_of_bytes(head)
    kind = given or (format_of_bytes(head) if not codec else "")
    text = cast(Peeked, unpacked(cast(BinaryIO, file), name, codec))
    if not kind:
        kind = _kind_of_text(text, options)
    return kind, text


def _kind_of_text(text: Peeked, options: Mapping[str, str]) -> str:
    """The format that an option implies, else the one that the text looks like, else the fallback."""
    readings = texts()
    for name in readings:
        if any(key in options for key in FORMATS[name].options):
            return name
    for name, reading in readings.items():
        if reading.begins is not None and reading.told is not None and reading.begins(text.peek(reading.told)):
            return name
    return next(name for name, reading in readings.items() if reading.begins is None)


@contextmanager
def typed_source(file: Once, name: str, kind: str, reading: TypedReading) -> Iterator[pa.NativeFile | BinaryIO]:
    """The input of such a format: the pipe itself if it can be streamed, else a file with all of it."""
    if reading.streams(file.peek(is_told)):
        yield cast(BinaryIO, io.BufferedReader(file))
        return
    try:
        whole = file.as_file()
    except OSError as e:
        cause = f"{FORMATS[kind].title} is read from its end, but it cannot be copied to a file: {e.strerror or e}"
        raise damaged(
            name, cause, "set TMPDIR to a directory with more room", "or write it to a file first: … > FILE"
        ) from None
    with whole, native(whole) as its_own:
        yield its_own


def unreadable(name: str, error: OSError) -> Exception:
    """The error for an input that the system does not let us read."""
    return damaged(name, f"it cannot be read: {error.strerror or str(error)[:200]}")
