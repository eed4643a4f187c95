"""CSV text to columns by native code, as the CSV connector (`cq.connectors.csv.plain`) requires of an engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.connectors.csv.plain import Plain, PlainColumns
from cq.connectors.csv.rows import count_line_feeds
from cq.lang.schema import Field
from cq.lang.types import INT64_MAX, DataType, Kind, integer_range, to_arrow
from cq.runtime.base.arrays import Address, Spare, real_address
from cq.runtime.base.interpret import READERS
from cq.runtime.base.kernel import library_with
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.readers import csv_columns as c
from cq.runtime.values.doubles import SCAN_BYTES
from cq.runtime.values.numerals import MOST_DIGITS

_KINDS = {
    Kind.TINYINT: (c.INTEGER, np.int8),
    Kind.SMALLINT: (c.INTEGER, np.int16),
    Kind.INTEGER: (c.INTEGER, np.int32),
    Kind.BIGINT: (c.INTEGER, np.int64),
    Kind.DOUBLE: (c.DOUBLE, np.float64),
    Kind.DECIMAL: (c.DECIMAL, np.int64),
    Kind.VARCHAR: (c.TEXT, np.uint8),
    Kind.BOOLEAN: (c.BOOLEAN, np.uint8),
    Kind.DATE: (c.DATE, np.int32),
    Kind.TIMESTAMP: (c.TIMESTAMP, np.int64),
}


def csv_scan(plain: Plain) -> Callable[[bytes], PlainColumns | None] | None:
    """Reads rows of this form; None if it does not read the type of some column."""
    if any(f.type.kind not in _KINDS for f in plain.fields):
        return None
    return CsvScan(library_with(READERS).function("csv_columns"), plain).columns


class CsvScan:
    """The form of a file's rows, and the function that reads them. Several threads may use it at once.

    address: the address of an array for `run`.
    """

    def __init__(self, run: Callable[..., int], plain: Plain, address: Address = real_address) -> None:
        self._run, self._plain, self.address = run, plain, address
        self.spare = Spare()
        self._nulls = [np.frombuffer(text + bytes(1), np.uint8) for text in plain.nulls]  # an empty one has an address
        self._fields = np.zeros((plain.width, c.FIELD_WORDS), np.int64)
        for index, field in zip(plain.indices, plain.fields, strict=True):
            self._describe(self._fields[index], field)

    def _describe(self, row: NDArray[np.int64], field: Field) -> None:
        kind, dtype = _KINDS[field.type.kind]
        row[c.FIELD_KIND] = kind
        row[c.FIELD_NULLABLE] = field.nullable
        row[c.FIELD_GUESSED] = self._plain.guessed
        row[c.FIELD_BYTES] = np.dtype(dtype).itemsize
        if kind == c.INTEGER:
            row[c.FIELD_LEAST], row[c.FIELD_GREATEST] = integer_range(field.type)
        elif kind == c.DECIMAL:
            digits, row[c.FIELD_SCALE] = field.type.precision, field.type.scale
            row[c.FIELD_GREATEST] = 10**digits - 1 if digits <= MOST_DIGITS else INT64_MAX

    def columns(self, text: bytes) -> PlainColumns | None:
        """The columns of whole rows of UTF-8; None if the definition has to read one."""
        ended = text if text.endswith(b"\n") else text + b"\n"
        rows = count_line_feeds(ended)
        fields = self._fields.copy()
        made = {i: _Made(self, fields[self._plain.indices[i]], self._plain.fields[i].type, rows, len(ended))
                for i in self._plain.wanted}  # fmt: skip
        digits = np.empty(c.MOST_NUMBER_BYTES + SCAN_BYTES, np.uint8)
        call = np.zeros(c.CSV_WORDS, np.int64)
        call[c.CSV_FIELDS], call[c.CSV_WIDTH] = self.address(fields), self._plain.width
        call[c.CSV_DELIMITER] = self._plain.dialect.delimiter[0]
        call[c.CSV_QUOTE] = self._plain.dialect.quote[0] if self._plain.dialect.quote else -1
        nulls = np.array([(self.address(text), len(text) - 1) for text in self._nulls], np.int64)
        call[c.CSV_NULLS] = self.address(nulls)
        call[c.CSV_NULLS_END] = call[c.CSV_NULLS] + nulls.nbytes
        call[c.CSV_DIGITS] = self.address(digits)
        padded = np.frombuffer(ended + bytes(STRING_SLACK_BYTES), np.uint8)
        result = self._run(self.address(call), self.address(padded), len(ended))
        read = int(call[c.CSV_ROWS])
        columns = {i: column.array(read) for i, column in made.items()} if result == c.DONE else None
        for column in made.values():
            column.give_back()
        return None if columns is None else PlainColumns(read, columns)


class _Made:
    """A column being read."""

    def __init__(self, scan: CsvScan, row: NDArray[np.int64], type_: DataType, rows: int, size: int) -> None:
        """row: its words in the call.  size: of the text."""
        self._scan, self._row, self._type = scan, row, type_
        self._valid = np.full((rows + 7) // 8, 0xFF, np.uint8)
        self._letters: NDArray[np.uint8] | None = None
        if type_.kind is Kind.VARCHAR:
            self._letters = scan.spare.room(size + STRING_SLACK_BYTES)
            self._values = np.zeros(rows + 1, np.int32)
            row[c.FIELD_ENDS] = scan.address(self._values)
            row[c.FIELD_VALUES] = scan.address(self._letters)
        else:
            words = 2 * rows if type_.kind is Kind.DECIMAL else rows
            dtype = _KINDS[type_.kind][1]
            self._values = np.zeros((rows + 7) // 8, dtype) if type_.kind is Kind.BOOLEAN else np.empty(words, dtype)
            row[c.FIELD_VALUES] = scan.address(self._values)
        row[c.FIELD_VALID] = scan.address(self._valid)

    def array(self, rows: int) -> pa.Array:
        """Its first rows."""
        nulls = int(self._row[c.FIELD_NULLS])
        buffers = [pa.py_buffer(self._valid) if nulls else None, pa.py_buffer(self._values)]
        if self._letters is not None:
            buffers.append(pa.py_buffer(self._letters[: self._row[c.FIELD_WRITTEN]].tobytes()))
        return pa.Array.from_buffers(to_arrow(self._type), rows, buffers, nulls)

    def give_back(self) -> None:
        """Free the memory used for reading."""
        if self._letters is not None:
            self._scan.spare.give_back(self._letters)
