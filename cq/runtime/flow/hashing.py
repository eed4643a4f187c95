"""The hash of an output, over record batches as the engine hands them out: `RowHash`, computed natively."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from cq.connectors.rowhash import RowHash
from cq.runtime.base.kernel import library
from cq.runtime.layout.abi import Storage

CHUNK_ROWS = 8192  # words of so many rows stay in the second-level cache


def _storage(kind: pa.DataType) -> Storage | None:
    """How a column of this type lies in memory; None for types the engine does not make."""
    if t.is_boolean(kind):
        return Storage.BIT
    if t.is_string(kind):
        return Storage.UTF8
    if t.is_decimal128(kind):
        return Storage.I128
    if t.is_float32(kind) or t.is_float64(kind):
        return Storage.F32 if t.is_float32(kind) else Storage.F64
    if t.is_signed_integer(kind) or t.is_temporal(kind):
        return {8: Storage.I8, 16: Storage.I16, 32: Storage.I32, 64: Storage.I64}[kind.bit_width]
    return None


class NativeRowHash(RowHash):
    """`RowHash` of batches whose strings are readable for 7 bytes past their end, as the engine's are."""

    def __init__(self) -> None:
        super().__init__()
        self._begin, self._column, self._total = (
            library().function(name) for name in ("hash_begin", "hash_column", "hash_total")
        )
        self._schema: pa.Schema | None = None
        self._storages: list[Storage | None] = []  # of the columns of that schema
        self._scratch = np.empty(CHUNK_ROWS, np.int64)
        self._words = self._scratch.ctypes.data

    def update(self, batch: pa.RecordBatch) -> None:
        """Take the rows of a batch in, after all earlier ones."""
        if batch.schema is not self._schema and batch.schema != self._schema:
            self._schema, self._storages = batch.schema, [_storage(kind) for kind in batch.schema.types]
        columns = [_layout(column, storage) for column, storage in zip(batch.columns, self._storages, strict=True)]
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            rows = min(CHUNK_ROWS, batch.num_rows - start)
            self._begin(self._words, rows)
            for layout in columns:
                if layout is None or not self._column(self._words, rows, *layout[:4], layout[4] + start):
                    super().update(batch.slice(start))
                    return
            self._sum = (self._sum + self._total(self._words, rows, self.rows + 1)) & (2**64 - 1)
            self.rows += rows


def _layout(column: pa.Array, storage: Storage | None) -> tuple[int, int, int, int, int] | None:
    """(storage, values, offsets, validity, place of the first value)."""
    if storage is None:
        return None
    validity, *buffers = (b.address if b is not None else 0 for b in column.buffers())
    offsets = buffers[0] if storage is Storage.UTF8 else 0
    return int(storage), buffers[-1], offsets, validity if column.null_count else 0, column.offset
