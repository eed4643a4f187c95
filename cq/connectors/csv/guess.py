"""The columns of undeclared CSV: names from its header, types from its first rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyarrow import csv

from cq.connectors import cells
from cq.connectors import compute as pc
from cq.connectors.csv.blocks import BLOCK_BYTES, check_encoding
from cq.connectors.csv.rows import complete
from cq.connectors.csv.source import CsvOptions, first_row, header_names, other_delimiter
from cq.connectors.first_bytes import BYTE_ORDER_MARK
from cq.connectors.protocol import damaged
from cq.connectors.read_once import Looked
from cq.hints import face


def guessed_schema(head: Looked, name: str, csv_options: CsvOptions, delimited: bool) -> pa.Schema:
    """Names from the header, types guessed by pyarrow from the first block: the narrowest that changes no value.
    delimited: whether the delimiter is given."""
    text = head.text
    check_encoding(text, name, "CSV")
    text = text.removeprefix(BYTE_ORDER_MARK)
    if text.startswith(b'{"'):
        cause = "its first line is a JSON object"
        raise damaged(
            name, cause, "write format = 'json' in WITH, or pass -w format=json to cq run and -f json to cq schema"
        )
    whole = complete(text, csv_options.dialect, last=head.ended)
    first = first_row(text[:whole] or text, name, csv_options)
    if text and not whole:
        raise damaged(name, f"its first line is longer than {BLOCK_BYTES >> 20} MiB", "declare the columns")
    text = text[:whole]
    if first is None:
        raise damaged(name, "the file is empty, so its columns cannot be known", "declare the columns")
    names = header_names(first) if csv_options.header else [f"c{i + 1}" for i in range(len(first.cells))]
    other = other_delimiter(names, csv_options) if csv_options.header and not delimited else None
    if other:
        cause = f"its first line has one column with {other} in its name"
        options = f", or pass -w delimiter='{other}' to cq run and --delimiter '{other}' to cq schema"
        way = f"write delimiter = '{other}' in WITH{options if face().takes_options else ''}"
        raise damaged(name, cause, way, "declare the column if that is its name")
    body = text[first.end :].lstrip(b"\r\n") if csv_options.header else text
    if not body:
        return pa.schema([(n, pa.null()) for n in names])
    guessed = _table(body, name, len(names), csv_options)
    types = {f.name: pa.string() if _is_varchar(f.type) else f.type for f in guessed.schema}
    numbers = [column for column, type_ in types.items() if pa.types.is_int64(type_) or pa.types.is_float64(type_)]
    if numbers:
        texts = _table(body, name, len(names), csv_options, {column: pa.string() for column in numbers})
        types |= {column: pa.string() for column in numbers if _is_label(texts.column(column), types[column])}
    return pa.schema(list(zip(names, types.values(), strict=True)))


def _table(
    body: bytes, name: str, width: int, options: CsvOptions, types: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """Rows of CSV as columns c0, c1, …, in these types; pyarrow guesses the others."""
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
        cause = f"its columns cannot be inferred: {str(e).splitlines()[0][:200]}"
        raise damaged(name, cause, "declare the columns") from None


def _is_varchar(guess: pa.DataType) -> bool:
    """Whether a column is VARCHAR: one of times of day, and one of text that is not UTF-8, which is a bad row."""
    return bool(pa.types.is_time(guess) or pa.types.is_binary(guess))


def _is_label(texts: pa.ChunkedArray, guess: pa.DataType) -> bool:
    """Whether digits are not a number: 00501 would lose its zeros, 0x1F is no SQL, and whole numbers that make pyarrow
    guess DOUBLE (beyond BIGINT, +49 …) would become equal to others."""
    if pc.any(pc.match_substring_regex(texts, r"^[ \t]*[+-]?0([0-9]+[ \t]*$|[xX])")).as_py():
        return True
    whole = pc.match_substring_regex(texts, r"^[ \t]*[+-]?[0-9]+[ \t]*$")
    return bool(pa.types.is_float64(guess) and pc.all(whole).as_py())
