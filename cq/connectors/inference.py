"""The schema of a source declared without columns, from its own description or its first rows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from cq.connectors.access import FileAccess
from cq.connectors.csv.blocks import Readable
from cq.connectors.followed import is_followed
from cq.connectors.formats import codec_of, format_of, loaded, with_ending
from cq.connectors.memory import as_reader
from cq.connectors.native_file import native
from cq.connectors.packed import unpacked
from cq.connectors.pipes import told, typed_source, unreadable
from cq.connectors.read_once import Looked, Once, is_pipe
from cq.connectors.readings.protocol import TextReading, reading_of
from cq.connectors.registry import SOURCES, option
from cq.connectors.schemas import Columns, columns_of
from cq.connectors.several import FileColumns, of_all, of_first, unites
from cq.connectors.slow_inputs import LOOK_BYTES, WaitingNotice, end_of_rows
from cq.connectors.stdin import NAME as STDIN_NAME
from cq.connectors.stdin import standard_input
from cq.errors import CqError, DataError, Diagnostic, UsageError
from cq.hints import face

ROWS_FOR_NAMES = "100"  # rows, when only the columns are asked for: fields of JSON may be missing in some rows


def infer(options: Mapping[str, str], access: FileAccess | None = None, stream: str = "") -> Columns:
    """The columns of the source a WITH clause describes. Those of CSV and JSON are guessed from the first rows.

    stream: its name, for the notice that a pipe keeps us waiting.
    """
    allowed = access or FileAccess(Path.cwd())
    connector = SOURCES[options.get("connector", "file")]
    if not connector.columns:
        declare = "declare its columns: CREATE STREAM … (column TYPE, …); cq schema FILE prints those of a file"
        help = tuple(h for h in (declare, face().giving(stream)) if h)
        raise UsageError(Diagnostic("CQ0602", f"a stream from {connector.name} has no schema of its own", help=help))
    found: Columns = loaded(connector.columns)(options, allowed, stream)
    return found


def columns_of_files(options: Mapping[str, str], access: FileAccess, stream: str) -> Columns:
    """The columns of the files named in the options."""
    return infer_file(options["path"], options, access, stream)


def columns_of_stdin(options: Mapping[str, str], access: FileAccess, stream: str) -> Columns:
    """The columns of standard input, whose rows stay available to the next reader."""
    return _pipe_columns(standard_input(), STDIN_NAME, options, stream)


def infer_given(given: Any, name: str) -> Columns:
    """The columns of an object in memory."""
    return columns_of(as_reader(given, None, name).schema)


def infer_file(path: str, options: Mapping[str, str], access: FileAccess, stream: str = "") -> Columns:
    """The columns of a file, or of the first file of a pattern that is not empty, or of all its files
    (cq/connectors/several.py). stream: as for `infer`."""
    paths = access.expand(path)
    access.refuse_directory(paths[0])
    first = next((p for p in paths if not _is_empty(access.base / p)), paths[0])
    if is_pipe(access.base / first):
        with access.open(first) as file:
            return _pipe_columns(cast(Once, file), first, options, stream)
    found = _file_columns(first, options, access)
    whole = (p for p in paths if p != first and not _is_empty(access.base / p) and not is_pipe(access.base / p))
    if unites(options):
        return of_all([found, *(_file_columns(p, options, access) for p in whole)])
    return of_first(found, list(_named(whole, options, access)))


def _named(paths: Iterable[str], options: Mapping[str, str], access: FileAccess) -> Iterator[FileColumns]:
    """The names of the columns of the readable files; errors in the others are reported when they are read."""
    for path in paths:
        with suppress(CqError):
            yield _file_columns(path, {**options, "guess_rows": ROWS_FOR_NAMES}, access)


def _file_columns(path: str, options: Mapping[str, str], access: FileAccess) -> FileColumns:
    """The columns of one file that is not a pipe."""
    follows = is_followed(options)
    if not os.path.lexists(access.base / path):
        if not follows:
            access.open(path).close()  # raises the error, with the file that may be meant
        cause = f'"{path}" is not there yet, so its columns cannot be known'
        raise UsageError(Diagnostic("CQ0601", cause, help=("declare the columns",)))
    kind = format_of(path, option(options, "format"))
    codec, reading = codec_of(path, option(options, "compression"), kind), reading_of(kind)
    with access.open(path) as file:
        if not isinstance(reading, TextReading):
            with native(file) as its_own:
                return _of_schema(path, reading.schema(its_own, path), guessed=False)
        said = with_ending(options, path)
        head = _first_rows(unpacked(file, path, codec), reading, said)
    if follows:
        head = Looked(head.text[: head.text.rfind(b"\n") + 1], ended=True)
    found = reading.guess(head, path, said)
    if isinstance(found, pa.Schema):
        return _of_schema(path, found, guessed=True)
    return FileColumns(path, found, guessed=True)


def _of_schema(path: str, schema: pa.Schema, guessed: bool) -> FileColumns:
    without_values = frozenset(f.name for f in schema if pa.types.is_null(f.type))
    return FileColumns(path, columns_of(schema), without_values, guessed)


def _is_empty(path: Path) -> bool:
    """Whether it is a regular file of zero bytes."""
    try:
        status = path.stat()
    except OSError:
        return False  # opening it raises the error
    return stat.S_ISREG(status.st_mode) and not status.st_size


def _pipe_columns(file: Once, name: str, options: Mapping[str, str], stream: str) -> Columns:
    """The columns of an input that can be read only once, and stays available to the next reader."""
    said = with_ending(options, name)
    waiting = WaitingNotice(name, stream, said, lambda reading, rows: _guessed(reading, Looked(rows, True), name, said))
    try:
        with file.looking(waiting.say):
            kind, text = told(file, name, options)
            reading = reading_of(kind)
            if isinstance(reading, TextReading):
                waiting.reading = reading
                return _guessed(reading, _first_rows(text, reading, said, waiting), name, said)
            with typed_source(file, name, kind, reading) as source:
                return columns_of(reading.schema(source, name))
    except OSError as e:
        raise unreadable(name, e) from None


def _guessed(reading: TextReading, head: Looked, name: str, options: Mapping[str, str]) -> Columns:
    found = reading.guess(head, name, options)
    return columns_of(found) if isinstance(found, pa.Schema) else found


def _first_rows(
    text: Readable, reading: TextReading, options: Mapping[str, str], waiting: WaitingNotice | None = None
) -> Looked:
    """The text that columns are guessed from: the first MiB, fewer bytes where it ends before, or as many rows as are
    asked for. It depends on nothing else: not on how the bytes come. Damage behind a row is left to who reads the rows.
    """
    most = int(options.get("guess_rows", 0))
    found = b""
    while len(found) < LOOK_BYTES:
        try:
            more = text.read(LOOK_BYTES - len(found))
        except DataError:
            if not any(True for _ in reading.ends(found, options)):
                raise
            return Looked(found, ended=False)
        if not more:
            return Looked(found, ended=True)
        found += more
        if waiting is not None:
            waiting.text = found
        if most and (end := end_of_rows(found, reading, options, most)):
            return Looked(found[:end], ended=True)
    return Looked(found, ended=False)
