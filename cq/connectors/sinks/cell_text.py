"""Result columns as text columns, all values at once, for CSV, JSON and the terminal.

NULL stays NULL. Numbers are the shortest text that reads back as the same value; a DOUBLE always shows that it is one
(1.0, 1e+20); times drop zeros at the end of the fraction, and instants are the local time in their zone with its UTC
offset; an INTERVAL of days or less reads like a clock, 00:02:00; a BINARY is its hexadecimal digits, 0AFF; an array is
written as in JSON.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from cq.connectors import compute as pc
from cq.connectors.zones import moved, offsets_at
from cq.lang.arrow_buffers import from_numpy, hexadecimal, text_array, text_scalar
from cq.lang.value_text import write_date, write_instant, write_offset, write_span, write_timestamp

NOTHING, QUOTE, NULL = text_scalar(""), text_scalar('"'), text_scalar("null")


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type may be texts of any length, and empty ones."""
    return bool(t.is_string(kind) or t.is_binary(kind) or t.is_nested(kind))


def column_text(column: pa.Array) -> pa.Array:
    """The values of a column as strings."""
    kind = column.type
    if t.is_string(kind):
        return column
    if t.is_binary(kind):
        return hexadecimal(column)
    if t.is_floating(kind):
        return _floats(pc.cast(column, pa.string()))
    if t.is_timestamp(kind):
        return _times(column) if kind.tz is None else _instants(column)
    if t.is_time(kind):
        return _trimmed(column)
    if t.is_date(kind):
        return _checked(pc.cast(column, pa.string()), pc.cast(column, pa.int32()), write_date)
    if t.is_duration(kind):
        return _intervals(column)
    if t.is_null(kind):
        return pa.nulls(len(column), pa.string())
    if t.is_list(kind):
        return _lists(column)
    return pc.cast(column, pa.string())


def _floats(texts: pa.Array) -> pa.Array:
    whole = pc.match_substring_regex(texts, r"^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(texts, text_scalar(".0"), NOTHING), texts)


def _times(column: pa.Array) -> pa.Array:
    return _checked(_trimmed(column), pc.cast(column, pa.int64()), write_timestamp)


def _instants(column: pa.Array) -> pa.Array:
    """`2024-07-01 12:00:00+02:00`; a zone has few offsets."""
    zone = column.type.tz
    offsets = offsets_at(column, zone)
    local, fits = moved(column, offsets)
    if not fits:
        utc = pc.cast(column, pa.int64()).to_pylist()
        return text_array([None if v is None else write_instant(v, zone) for v in utc])
    few, which = np.unique(offsets, return_inverse=True)
    distances = text_array([write_offset(offset) for offset in few.tolist()]).take(from_numpy(which))
    return pc.binary_join_element_wise(_times(local), distances, NOTHING)


def _trimmed(column: pa.Array) -> pa.Array:
    """Arrow's text without trailing zeros in the fraction."""
    return pc.utf8_rtrim(pc.utf8_rtrim(pc.cast(column, pa.string()), "0"), ".")


def _intervals(column: pa.Array) -> pa.Array:
    distinct = pc.cast(column, pa.int64()).dictionary_encode()
    texts = text_array([write_span(value.as_py()) for value in distinct.dictionary])
    return texts.take(distinct.indices)


def _checked(texts: pa.Array, values: pa.Array, write: object) -> pa.Array:
    """Arrow has no text for the most distant times; use ours for those."""
    if not pc.any(pc.starts_with(texts, "<value out of range")).as_py():
        return texts
    assert callable(write)
    return text_array([None if v is None else write(v) for v in values.to_pylist()])


def csv_rows(batch: pa.RecordBatch, delimiter: str) -> bytes:
    """The rows of a batch as CSV lines: NULL is empty, the empty string is `""`, quotes only where needed."""
    if batch.num_columns == 0:
        return b"\n" * int(batch.num_rows)
    cells = []
    for column in batch.columns:
        text = column_text(column)
        cells.append(_quoted(text, delimiter) if is_text(column.type) else text)
    return _joined(cells, delimiter)


def _joined(cells: list[pa.Array], delimiter: str) -> bytes:
    """Line by line, with line ends: the bytes of one string array whose values are adjacent."""
    rows = len(cells[0])
    if rows == 0:
        return b""
    lines = pc.binary_join_element_wise(*cells, text_scalar(delimiter), nothing_for_null=True)
    return _bytes_of(pc.binary_join_element_wise(lines, text_scalar("\n"), NOTHING))


def _bytes_of(texts: pa.Array) -> bytes:
    assert isinstance(texts, pa.StringArray) and texts.offset == 0, "a fresh array of strings"
    data = texts.buffers()[2]
    return memoryview(data)[: data.size].tobytes()


def _quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    special = pc.match_substring_regex(texts, f'[\r\n"{_in_class(delimiter)}]')
    needs = pc.or_(special, pc.equal(texts, NOTHING))
    if not pc.any(needs).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise(QUOTE, doubled, QUOTE, NOTHING)
    return pc.if_else(needs, quoted, texts)


def _in_class(delimiter: str) -> str:
    return f"\\{delimiter}" if delimiter in "\\]^-[" else delimiter


def csv_header(names: list[str], delimiter: str) -> bytes:
    """The line of column names. Without Arrow: its first look at a Python list imports pandas, which takes 0.3 s."""
    cells = []
    for name in names:
        special = not name or any(c in name for c in ("\r", "\n", '"', delimiter))
        cells.append('"' + name.replace('"', '""') + '"' if special else name)
    return (delimiter.join(cells) + "\n").encode("utf-8", "backslashreplace")


def json_rows(batch: pa.RecordBatch, nan_text: bool = False) -> bytes:
    """The rows as JSON objects, one a line: numbers as numbers, times as texts, NULL as null.

    nan_text: whether NaN and infinities, which are not JSON numbers, are texts such as "nan"; else they are null.
    """
    if batch.num_columns == 0:
        return b"{}\n" * int(batch.num_rows)
    parts: list[pa.Array | pa.StringScalar] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts += [
            text_scalar(f"{', ' if parts else '{'}{json.dumps(name, ensure_ascii=False)}: "),
            json_texts(column, nan_text),
        ]
    lines = pc.binary_join_element_wise(*parts, text_scalar("}\n"), NOTHING)
    return b"" if batch.num_rows == 0 else _bytes_of(lines)


def json_texts(column: pa.Array, nan_text: bool) -> pa.Array:
    """The values of a column as JSON."""
    kind = column.type
    if t.is_list(kind):
        return pc.coalesce(_lists(column, nan_text), NULL)
    texts = column_text(column)
    if t.is_floating(kind):
        finite = pc.invert(pc.match_substring(texts, "n"))
        texts = pc.if_else(finite, texts, _between_quotes(texts) if nan_text else NULL)
    elif not (t.is_boolean(kind) or t.is_integer(kind) or t.is_decimal(kind)):
        texts = _between_quotes(texts)
        special = pc.match_substring_regex(column_text(column), r'["\\\x00-\x1f]')
        if pc.any(special).as_py():
            texts = pc.replace_with_mask(texts, special.fill_null(False), _escaped(column_text(column).filter(special)))
    return pc.coalesce(texts, NULL)


def _between_quotes(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(QUOTE, texts, QUOTE, NOTHING)


def _escaped(texts: pa.Array) -> pa.Array:
    return text_array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()])


def not_numbers(batch: pa.RecordBatch) -> int:
    """How many values are NaN or infinite."""
    count = 0
    for column in batch.columns:
        values = column.flatten() if t.is_list(column.type) else column
        if t.is_floating(values.type):
            count += len(values) - values.null_count - int(pc.sum(pc.is_finite(values)).as_py() or 0)
    return count


def _lists(column: pa.Array, nan_text: bool = True) -> pa.Array:
    """Arrays as JSON."""
    elements, ends = json_texts(column.values, nan_text).to_pylist(), column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    lists = zip(valid, ends, ends[1:], strict=False)
    return text_array([f"[{', '.join(elements[a:b])}]" if there else None for there, a, b in lists])
