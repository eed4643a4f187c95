"""Native ways to write what `cq/connectors/sinks` defines.

`csv_text` makes lines of CSV; cq/connectors/sinks/cell_text.py defines lines, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.types as t
from numpy.typing import NDArray

from cq.connectors.sinks.cell_text import column_text, csv_rows, is_text
from cq.lang.types import WORD_DIGITS
from cq.runtime.base.arrays import Address, real_address
from cq.runtime.base.interpret import WRITERS
from cq.runtime.base.kernel import library_with
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.writers import csv_lines as c

# digits of a DECIMAL: Arrow, whose text the definition takes, writes small values of larger scales with an exponent
MOST_SCALE = 6

BufferAddress = Callable[[pa.Buffer], int]


def csv_text(delimiter: str) -> Callable[[pa.RecordBatch], bytes]:
    """Makes lines of batches whose strings are readable for 7 bytes past their end, as the engine's are."""
    return CsvText(library_with(WRITERS).function("csv_lines"), delimiter).lines


def _real_buffer(buffer: pa.Buffer) -> int:
    address: int = buffer.address
    return address


class CsvText:
    """The buffer that lines are written into, reused; for one thread.

    address, buffer_address: the address of an array, and of an Arrow buffer, for `run`.
    """

    def __init__(
        self,
        run: Callable[..., int],
        delimiter: str,
        address: Address = real_address,
        buffer_address: BufferAddress = _real_buffer,
    ) -> None:
        self._run, self._delimiter = run, delimiter
        self._address, self._buffer_address = address, buffer_address
        self._out = np.empty(0, np.uint8)

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """The rows as `csv_rows` writes them."""
        if batch.num_columns == 0 or batch.num_rows == 0:
            return csv_rows(batch, self._delimiter)
        call = np.zeros(c.CSV_FIRST + batch.num_columns * c.COLUMN_WORDS, np.int64)
        call[c.CSV_ROWS], call[c.CSV_COLUMNS] = batch.num_rows, batch.num_columns
        call[c.CSV_DELIMITER] = ord(self._delimiter)
        columns = call[c.CSV_FIRST :].reshape(-1, c.COLUMN_WORDS)
        room = batch.num_rows * batch.num_columns + STRING_SLACK_BYTES  # with delimiters and line ends
        kept = [_described(column) for column in batch.columns]
        for words, (kind, column) in zip(columns, kept, strict=True):
            self._describe(words, kind, column)
            room += _room(kind, column)
        if len(self._out) < room:
            self._out = np.empty(room, np.uint8)
        written = self._run(self._address(call), self._address(self._out))
        del kept
        return csv_rows(batch, self._delimiter) if written == c.UNKNOWN else self._out[:written].tobytes()

    def _describe(self, words: NDArray[np.int64], kind: int, column: pa.Array) -> None:
        validity, *others = (self._buffer_address(b) if b is not None else 0 for b in column.buffers())
        words[c.COLUMN_KIND], words[c.COLUMN_VALUES] = kind, others[-1]
        words[c.COLUMN_OFFSETS] = others[0]
        words[c.COLUMN_VALIDITY] = validity if column.null_count else 0
        words[c.COLUMN_PLACE] = column.offset
        words[c.COLUMN_DAY] = c.NO_DAY
        if kind == c.DECIMAL:
            words[c.COLUMN_UNIT], words[c.COLUMN_SCALE] = 10**column.type.scale, column.type.scale


def _described(column: pa.Array) -> tuple[int, pa.Array]:
    """How the values of a column are written, and the column, or the text of its values."""
    kind = _kind(column.type)
    if kind is not None:
        return kind, column
    return c.TEXT if is_text(column.type) else c.BARE, column_text(column)


def _kind(type_: pa.DataType) -> int | None:
    """How values of this type are written; None: as the definition's text."""
    if t.is_signed_integer(type_):
        return {8: c.INT8, 16: c.INT16, 32: c.INT32, 64: c.INT64}[type_.bit_width]
    if t.is_decimal128(type_) and type_.precision <= WORD_DIGITS and 0 <= type_.scale <= MOST_SCALE:
        return c.DECIMAL
    times = {"date32[day]": c.DATE, "time64[us]": c.TIME, "timestamp[us]": c.TIMESTAMP, "duration[us]": c.INTERVAL}
    return {"string": c.TEXT, "bool": c.BOOLEAN, **times}.get(str(type_))


def _room(kind: int, column: pa.Array) -> int:
    """The most bytes of a column's cells: in text each may be a quote, which is doubled."""
    rows = len(column)
    if kind < c.TEXT:
        return c.WIDTHS[kind] * rows
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + rows + 1]
    size = int(ends[-1] - ends[0])
    return 2 * (size + rows) if kind == c.TEXT else size
