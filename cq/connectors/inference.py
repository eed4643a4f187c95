"""The schema of a source that was declared without columns: what its own description, or its first rows, say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyarrow import csv

from cq.connectors import cells
from cq.connectors import compute as pc
from cq.connectors.access import Access
from cq.connectors.csv.blocks import BLOCK_BYTES, Reads, check_encoding
from cq.connectors.csv.rows import complete
from cq.connectors.csv.source import CsvOptions, first_row, header_names, other_delimiter
from cq.connectors.first_bytes import BYTE_ORDER_MARK
from cq.connectors.followed import is_followed
from cq.connectors.formats import TEXT_FORMATS, codec_of, format_of, tabbed
from cq.connectors.generator import generate
from cq.connectors.headers import own_schema
from cq.connectors.json.guess import guessed_fields
from cq.connectors.json.source import check_lines
from cq.connectors.memory import as_reader
from cq.connectors.mixed import is_mixed, unheld
from cq.connectors.native_file import native
from cq.connectors.nested import flat_schema
from cq.connectors.once import Looked, Once, is_pipe
from cq.connectors.options import option
from cq.connectors.packed import unpacked
from cq.connectors.pipes import told, typed_source, unreadable
from cq.connectors.protocol import damaged
from cq.connectors.several import FileColumns, of_all, of_first, unites
from cq.connectors.stdin import NAME as STDIN_NAME
from cq.connectors.stdin import standard_input
from cq.connectors.waiting import LOOK_BYTES, Waiting, end_of_rows
from cq.errors import CqError, Diagnostic, UsageError
from cq.lang.schema import Field, Unheld
from cq.lang.types import VARCHAR, from_arrow

Inferred = tuple[Field | Unheld, ...]
ROWS_FOR_NAMES = "100"  # of a file that is only asked for its columns: fields of JSON may be missing in some rows


def infer(options: Mapping[str, str], access: Access | None = None, stream: str = "") -> Inferred:
    """The columns of the source a WITH clause describes. CSV and JSON are guessed from their first rows.

    stream: what it is called, for whoever is told that a pipe keeps us waiting.
    """
    allowed = access or Access(Path.cwd())
    match options.get("connector", "file"):
        case "file" if options.get("path"):
            return infer_file(options["path"], options, allowed, stream)
        case "generator":
            return fields_of(generate(options)[0])
        case "stdin":
            return _pipe_columns(standard_input(), STDIN_NAME, options, stream)
        case other:
            help = "declare its columns: CREATE STREAM … (column TYPE, …); cq schema FILE prints those of a file"
            raise UsageError(Diagnostic("CQ0602", f"a stream from {other} has no schema of its own", help=(help,)))


def infer_given(given: Any, name: str) -> Inferred:
    """The columns of an object in memory."""
    return fields_of(as_reader(given, None, name).schema)


def infer_file(path: str, options: Mapping[str, str], access: Access, stream: str = "") -> Inferred:
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


def _named(paths: Iterable[str], options: Mapping[str, str], access: Access) -> Iterator[FileColumns]:
    """The columns of those files that can be read, for their names; what is wrong with the others is said when they
    are read."""
    for path in paths:
        with suppress(CqError):
            yield _file_columns(path, {**options, "guess_rows": ROWS_FOR_NAMES}, access)


def _file_columns(path: str, options: Mapping[str, str], access: Access) -> FileColumns:
    """The columns of one file that is no pipe."""
    kind = format_of(path, option(options, "format"))
    codec = codec_of(path, option(options, "compression"), kind)
    follows = is_followed(options)
    if follows and not os.path.lexists(access.base / path):
        cause = f'"{path}" is not there yet, so its columns cannot be known'
        raise UsageError(Diagnostic("CQ0601", cause, help=("declare the columns",)))
    with access.open(path) as file:
        if kind not in TEXT_FORMATS:
            with native(file) as its_own:
                return _of_schema(path, own_schema(its_own, path, kind), guessed=False)
        head = _first_rows(unpacked(file, path, codec), kind, path, options)
    if follows:
        head = Looked(head.text[: head.text.rfind(b"\n") + 1], ended=True)
    if kind == "json":
        return FileColumns(path, _json_fields(head, path), guessed=True)
    return _of_schema(path, _csv_schema(head, path, options), guessed=True)


def _of_schema(path: str, schema: pa.Schema, guessed: bool) -> FileColumns:
    without_values = frozenset(f.name for f in schema if pa.types.is_null(f.type))
    return FileColumns(path, fields_of(schema), without_values, guessed)


def _is_empty(path: Path) -> bool:
    """Whether it is a regular file without a byte."""
    try:
        status = path.stat()
    except OSError:
        return False  # whoever opens it says why it cannot be read
    return stat.S_ISREG(status.st_mode) and not status.st_size


def _pipe_columns(file: Once, name: str, options: Mapping[str, str], stream: str) -> Inferred:
    """The columns of what can be read only once, and is still there for who reads it next."""
    waiting = Waiting(name, stream, options, lambda kind, rows: _text_columns(Looked(rows, True), name, kind, options))
    try:
        with file.looking(waiting.say):
            kind, text = told(file, name, options)
            if kind in TEXT_FORMATS:
                waiting.kind = kind
                head = _first_rows(text, kind, name, options, waiting)
                return _text_columns(head, name, kind, options)
            with typed_source(file, name, kind) as source:
                return fields_of(own_schema(source, name, kind))
    except OSError as e:
        raise unreadable(name, e) from None


def _first_rows(
    text: Reads, kind: str, name: str, options: Mapping[str, str], waiting: Waiting | None = None
) -> Looked:
    """The text that columns are guessed from: the first MiB, fewer bytes where it ends before, or as many rows as are
    asked for. It depends on nothing else: not on how the bytes come."""
    most = int(options.get("guess_rows", 0))
    found = b""
    while len(found) < LOOK_BYTES:
        more = text.read(LOOK_BYTES - len(found))
        if not more:
            return Looked(found, ended=True)
        found += more
        if waiting is not None:
            waiting.text = found
        if most and (end := end_of_rows(found, kind, name, options, most)):
            return Looked(found[:end], ended=True)
    return Looked(found, ended=False)


def _text_columns(head: Looked, name: str, kind: str, options: Mapping[str, str]) -> Inferred:
    if kind == "json":
        return _json_fields(head, name)
    return fields_of(_csv_schema(head, name, options))


def _json_fields(head: Looked, name: str) -> tuple[Field, ...]:
    text = head.text
    check_encoding(text, name, "JSON")
    text = text.removeprefix(BYTE_ORDER_MARK)
    check_lines(text, name)
    whole = text if head.ended else text[: text.rfind(b"\n") + 1]
    if text and not whole:
        raise damaged(name, f"its first line is longer than {BLOCK_BYTES >> 20} MiB", "declare the columns")
    return guessed_fields(whole, name)


def _csv_schema(head: Looked, name: str, options: Mapping[str, str]) -> pa.Schema:
    """Names from the header, types by pyarrow's guess over the first block: the narrowest that changes none of its
    values."""
    csv_options = CsvOptions.of(tabbed(options, name))
    text = head.text
    check_encoding(text, name, "CSV")
    text = text.removeprefix(BYTE_ORDER_MARK)
    if text.startswith(b'{"'):
        cause = "its first line is a JSON object"
        raise damaged(name, cause, "say format = 'json' in WITH; to cq run: -w format=json; to cq schema: -f json")
    whole = complete(text, csv_options.dialect, last=head.ended)
    first = first_row(text[:whole] or text, name, csv_options)
    if text and not whole:
        raise damaged(name, f"its first line is longer than {BLOCK_BYTES >> 20} MiB", "declare the columns")
    text = text[:whole]
    if first is None:
        raise damaged(name, "the file is empty, so its columns cannot be known", "declare the columns")
    names = header_names(first) if csv_options.header else [f"c{i + 1}" for i in range(len(first.cells))]
    other = other_delimiter(names, csv_options) if csv_options.header and "delimiter" not in options else None
    if other:
        cause = f"its first line has one column with {other} in its name"
        way = (
            f"say delimiter = '{other}' in WITH; to cq run: -w delimiter='{other}'; to cq schema: --delimiter '{other}'"
        )
        raise damaged(name, cause, way, "declare the column if that is its name")
    body = text[first.end :].lstrip(b"\r\n") if csv_options.header else text
    if not body:
        return pa.schema([(n, pa.null()) for n in names])
    guessed = _table(body, name, len(names), csv_options)
    types = {f.name: pa.string() if pa.types.is_time(f.type) else f.type for f in guessed.schema}
    numbers = [column for column, type_ in types.items() if pa.types.is_int64(type_) or pa.types.is_float64(type_)]
    if numbers:
        texts = _table(body, name, len(names), csv_options, {column: pa.string() for column in numbers})
        types |= {column: pa.string() for column in numbers if _is_label(texts.column(column), types[column])}
    return pa.schema(list(zip(names, types.values(), strict=True)))


def _table(
    body: bytes, name: str, width: int, options: CsvOptions, types: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """Rows of CSV as columns c0, c1, …, in these types and the others as pyarrow guesses."""
    try:
        return csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=[f"c{i}" for i in range(width)]),
            csv.ParseOptions(
                delimiter=options.dialect.delimiter.decode(),
                quote_char=options.dialect.quote.decode() or False,
                newlines_in_values=True,
                invalid_row_handler=lambda _: "skip",
            ),
            csv.ConvertOptions(
                column_types=types,
                null_values=list(options.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=list(cells.TRUE_TEXTS),
                false_values=list(cells.FALSE_TEXTS),
                timestamp_parsers=[csv.ISO8601],
            ),
        )
    except pa.ArrowInvalid as e:
        cause = f"its columns cannot be guessed: {str(e).splitlines()[0][:200]}"
        raise damaged(name, cause, "declare the columns") from None


def _is_label(texts: pa.ChunkedArray, guess: pa.DataType) -> bool:
    """Whether digits are no numbers: 00501 would lose its zeros, 0x1F is no SQL, and whole numbers that make pyarrow
    guess DOUBLE (beyond BIGINT, +49 …) would become equal to others."""
    if pc.any(pc.match_substring_regex(texts, r"^[ \t]*[+-]?0([0-9]+[ \t]*$|[xX])")).as_py():
        return True
    whole = pc.match_substring_regex(texts, r"^[ \t]*[+-]?[0-9]+[ \t]*$")
    return bool(pa.types.is_float64(guess) and pc.all(whole).as_py())


def fields_of(schema: pa.Schema) -> Inferred:
    """The columns of an Arrow schema as SQL columns, the fields of its structs among them."""
    return tuple(_held(f) or unheld(f) for f in flat_schema(schema))


def _held(column: pa.Field) -> Field | None:
    if is_mixed(column):
        return None
    as_text = pa.types.is_null(column.type) or pa.types.is_binary(column.type)
    type_ = VARCHAR if as_text else from_arrow(column.type)
    return Field(column.name, type_, column.nullable) if type_ is not None else None
