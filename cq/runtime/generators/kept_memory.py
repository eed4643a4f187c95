"""Memory of columns that is filled again once nobody reads it: new pages cost as much as what is written to them.

Not in blocks (cq/runtime/containers/blocks.py): those of this size begin on large pages, so columns that are filled
together would share sets of the cache. The toll query of the README took 0.94 s with them and 0.78 s with this memory
(medians of ten pairs of processes).
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pyarrow as pa

from cq.runtime.layout.words import WORDS_A_LINE

LINE_BYTES = WORDS_A_LINE * 8  # a buffer begins on a cache line
# Pieces that wait: in the README's toll query, of 16 columns a batch, at most 46 to 64. With 32 or 128 it took as long
# (0.84 to 1.05 s of CPU, least of seven runs each, busy machine); with 8 too, with a quarter more page faults.
MOST_KEPT = 64


class KeptMemory:
    """Gives out buffers, and takes their memory back when the last array over them is gone, in whatever thread."""

    def __init__(self) -> None:
        self._free: deque[np.ndarray] = deque(maxlen=MOST_KEPT)

    def buffer(self, size: int) -> pa.Buffer:
        """A buffer of this many bytes, with whatever was written there before."""
        memory = self._fitting(size + LINE_BYTES)
        address = -(-memory.ctypes.data // LINE_BYTES) * LINE_BYTES
        return pa.foreign_buffer(address, size, base=_Lent(memory, self._free))

    def _fitting(self, size: int) -> np.ndarray:
        """The next free piece that has room and is not twice too large; those before it are given up."""
        while self._free:
            memory = self._free.popleft()
            if size <= memory.size < 2 * size:
                return memory
        return np.empty(size + size // 4 + 1, np.uint8)  # batches grow and shrink with the traffic


class _Lent:
    """Memory of a buffer; with the buffer it ends, and the memory is free again."""

    def __init__(self, memory: np.ndarray, free: deque[np.ndarray]) -> None:
        self._memory, self._free = memory, free

    def __del__(self) -> None:
        self._free.append(self._memory)
