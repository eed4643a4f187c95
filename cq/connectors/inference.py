"""The schema of a source that was declared without columns: what its own description, or its first rows, say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from cq.connectors import cells
from cq.connectors.access import Access
from cq.connectors.arrow.source import ipc_batches
from cq.connectors.csv.blocks import BLOCK_BYTES, BYTE_ORDER_MARK, Reads, check_encoding
from cq.connectors.csv.rows import complete
from cq.connectors.csv.source import CsvOptions, first_row, header_names, other_delimiter
from cq.connectors.files import format_of, tabbed
from cq.connectors.generator import generate
from cq.connectors.json.guess import guessed_fields
from cq.connectors.json.source import check_lines
from cq.connectors.memory import as_reader
from cq.connectors.native_file import native
from cq.connectors.options import option
from cq.connectors.packed import codec_of, unpacked
from cq.connectors.protocol import damaged
from cq.errors import DataError, Diagnostic, UsageError
from cq.lang.schema import Field
from cq.lang.types import VARCHAR, from_arrow


def infer(options: Mapping[str, str], access: Access | None = None) -> tuple[Field, ...]:
    """The columns of the source a WITH clause describes. CSV and JSON are guessed from their first block."""
    allowed = access or Access(Path.cwd())
    match options.get("connector", "file"):
        case "file" if options.get("path"):
            return infer_file(options["path"], options, allowed)
        case "generator":
            return fields_of(generate(options)[0], "the generator")
        case other:
            help = "declare its columns: CREATE STREAM … (column TYPE, …); cq schema FILE prints those of a file"
            raise UsageError(Diagnostic("CQ0602", f"a stream from {other} has no schema of its own", help=(help,)))


def infer_given(given: Any, name: str) -> tuple[Field, ...]:
    """The columns of an object in memory."""
    return fields_of(as_reader(given, None, name).schema, name)


def infer_file(
    path: str, options: Mapping[str, str], access: Access, leave_out: Callable[[str], None] | None = None
) -> tuple[Field, ...]:
    """The columns of a file, or of the first file of a pattern. leave_out: told of each that has no SQL type; without
    it such a column is CQ0603."""
    first = access.expand(path)[0]
    kind = format_of(first, option(options, "format"))
    codec = codec_of(first, option(options, "compression"), kind)
    with access.open(first) as file:
        match kind:
            case "csv":
                return fields_of(_csv_schema(unpacked(file, first, codec), first, options), first, leave_out)
            case "json":
                return _json_fields(unpacked(file, first, codec), first)
        with native(file) as its_own:
            return fields_of(_own_schema(its_own, first, kind), first, leave_out)


def _json_fields(file: Reads, name: str) -> tuple[Field, ...]:
    text = file.read(BLOCK_BYTES)
    check_encoding(text, name, "JSON")
    text = text.removeprefix(BYTE_ORDER_MARK)
    check_lines(text, name)
    whole = text if len(text) < BLOCK_BYTES else text[: text.rfind(b"\n") + 1]
    if text and not whole:
        raise damaged(name, f"its first line is longer than {BLOCK_BYTES >> 20} MiB", "declare the columns")
    return guessed_fields(whole, name)


def _own_schema(file: pa.NativeFile, name: str, kind: str) -> pa.Schema:
    if kind == "arrow":
        return ipc_batches(file, name)[0]
    try:
        from pyarrow import parquet

        return parquet.ParquetFile(file).schema_arrow
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, f"not a readable Parquet file: {str(e).splitlines()[0][:200]}") from None


def _csv_schema(file: Reads, name: str, options: Mapping[str, str]) -> pa.Schema:
    """Names from the header, types by pyarrow's guess over the first block: the narrowest that changes none of its
    values."""
    csv_options = CsvOptions.of(tabbed(options, name))
    text = file.read(BLOCK_BYTES)
    check_encoding(text, name, "CSV")
    text = text.removeprefix(BYTE_ORDER_MARK)
    whole = complete(text, csv_options.dialect, last=len(text) < BLOCK_BYTES)
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
        way = f"say delimiter = '{other}' in WITH, or to cq run: -w delimiter='{other}'"
        raise damaged(name, cause, way, "declare the column if that is its name")
    body = text[first.end :].lstrip(b"\r\n") if csv_options.header else text
    if not body:
        return pa.schema([(n, pa.string()) for n in names])
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
                null_values=[options.null],
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


def fields_of(schema: pa.Schema, name: str, leave_out: Callable[[str], None] | None = None) -> tuple[Field, ...]:
    """The columns of an Arrow schema as SQL columns; `leave_out` is told of one that has no SQL type, else CQ0603."""
    fields = []
    for f in schema:
        type_ = VARCHAR if pa.types.is_null(f.type) or pa.types.is_binary(f.type) else from_arrow(f.type)
        if type_ is None and leave_out is not None:
            leave_out(f"{f.name} {f.type}")
            continue
        if type_ is None:
            raise DataError(
                Diagnostic(
                    "CQ0603",
                    f"column {f.name} of {name} is {f.type}, which cq does not hold",
                    help=("declare the columns you need and leave this one out: cq schema FILE prints them",),
                )
            )
        fields.append(Field(f.name, type_, f.nullable))
    return tuple(fields)
