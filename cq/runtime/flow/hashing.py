"""The hash of an output, over record batches as the engine hands them out: `RowHash`, computed natively."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cq.connectors.rowhash import RowHash
from cq.runtime.base.kernel import library
from cq.runtime.flow.arrow import storage_of
from cq.runtime.layout.abi import Storage

CHUNK_ROWS = 8192  # words of this many rows stay in the second-level cache


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
        """Add the rows of a batch to the hash, after all earlier ones."""
        if batch.schema is not self._schema and batch.schema != self._schema:
            self._schema, self._storages = batch.schema, [storage_of(kind) for kind in batch.schema.types]
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
