"""The rows of a keyed table as Arrow, from its saved words (cq/runtime/containers/table_saving.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cq.codegen.state.hash_tables import EntryField
from cq.codegen.state.keyed_rows import KeyedLayout
from cq.lang.types import Kind, Physical, to_arrow
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass
from cq.runtime.containers.strings import INLINE_STRING_BYTES
from cq.runtime.containers.table_saving import SAVED_BYTES, SAVED_COUNT, SAVED_HEAD
from cq.runtime.flow.lists import MOST_BYTES, lists_of_array

BATCH_ROWS = 65536  # of the resulting table: one column's values take a few MB at most

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def saved_rows(table: KeyedTable, saved: bytes) -> pa.Table:
    """The rows, by birth."""
    layout = KeyedLayout.of(table)
    fields = dict(zip((*table.key, *table.others), (*layout.keys.fields, *layout.fields), strict=True))
    schema = pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in table.fields])
    entries = _Entries.of(saved)
    batches = [
        pa.RecordBatch.from_arrays([part.column(fields[c]) for c in range(len(fields))], schema=schema)
        for part in entries.parts(BATCH_ROWS)
    ]
    return pa.Table.from_batches(batches, schema)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries as rows of words. content: all saved bytes; entries begin at `start` in it, long texts at `texts`."""

    content: npt.NDArray[np.uint8]
    words: Words
    start: int
    texts: int

    @staticmethod
    def of(saved: bytes) -> _Entries:
        words = np.frombuffer(saved, np.int64)
        count, size = int(words[SAVED_COUNT]), int(words[SAVED_BYTES])
        start = SAVED_HEAD * 8
        entries = words[SAVED_HEAD : SAVED_HEAD + count * size // 8].reshape(count, size // 8)
        return _Entries(np.frombuffer(saved, np.uint8), entries, start, start + count * size)

    def parts(self, rows: int) -> Iterator[_Entries]:
        """The same entries, this many at a time."""
        for first in range(0, len(self.words), rows):
            words = self.words[first : first + rows]
            yield _Entries(self.content, words, self.start + first * self.words.shape[1] * 8, self.texts)

    def column(self, f: EntryField) -> pa.Array:
        """A column of the entries."""
        null: Flags | None = None
        if f.null_bit >= 0:
            null = self.words[:, f.null_word] >> f.null_bit & 1 != 0
        validity = None if null is None else _bitmap(~null)
        type_ = to_arrow(f.type)
        if f.type.physical is not Physical.BYTES:
            return pa.Array.from_buffers(type_, len(self.words), [validity, pa.py_buffer(self._values(f, type_))])
        offsets, content = self._texts(f, null)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
        if f.type.kind is not Kind.ARRAY:
            return pa.Array.from_buffers(type_, len(self.words), buffers)
        return lists_of_array(pa.Array.from_buffers(pa.binary(), len(self.words), buffers), type_)

    def _values(self, f: EntryField, type_: pa.DataType) -> npt.NDArray[Any]:
        """The values of a column that is not a text, in Arrow's form."""
        low = self.words[:, f.word]
        match f.type.kind:
            case Kind.BOOLEAN:
                return np.packbits(low != 0, bitorder="little")
            case Kind.REAL | Kind.DOUBLE:
                return np.ascontiguousarray(low).view(np.float64).astype(f"f{type_.bit_width // 8}")
            case Kind.DECIMAL:
                high = self.words[:, f.at(1)] if f.words == 2 else low >> 63
                return np.stack((low, high), axis=1)
        return low.astype(f"i{type_.bit_width // 8}")

    def _texts(self, f: EntryField, null: Flags | None) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """(offsets, bytes) of a column of texts or arrays."""
        lengths = self.words[:, f.word] & 0xFFFFFFFF
        if null is not None:
            lengths = np.where(null, 0, lengths)
        inline = self.start + np.arange(len(self.words)) * self.words.shape[1] * 8 + f.word * 8 + 4
        starts = np.where(lengths <= INLINE_STRING_BYTES, inline, self.texts + self.words[:, f.at(1)])
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if total > MOST_BYTES:
            raise pa.ArrowCapacityError(f"the texts of {len(ends)} rows take more than 2 GiB")
        places = np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
        return np.concatenate(([0], ends)).astype(np.int32), self.content[places]


def _bitmap(flags: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
