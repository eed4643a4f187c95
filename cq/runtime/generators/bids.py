"""Auction bids generated natively: the same rows as `cq/workloads/bids.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cq.runtime.base.interpret import GENERATORS
from cq.runtime.base.kernel import library_with
from cq.runtime.generators import lines as b
from cq.runtime.generators.cells import cells_of
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.bids import SCHEMA, channel_names, null_limit, price_table
from cq.workloads.draws import Zipf

_COLUMNS = (b.BID_AUCTION, b.BID_BIDDER, b.BID_PRICE, b.BID_TS)


def generate(
    rows: int = 1_000_000,
    seed: int = 1,
    keys: int = 1_000,
    theta: float = 0.0,
    scatter: bool = False,
    bidders: int = 10_000,
    interval_us: int = 100,
    delay_us: int = 0,
    nulls: float = 0.0,
) -> Iterator[pa.RecordBatch]:
    """The rows of `cq.workloads.bids.bids`."""
    zipf = Zipf(keys, theta)
    draws = np.empty(GENERATED_ROWS + 6, np.int64)
    kept = (zipf, draws, price_table(), _channels())
    words = np.zeros(b.BID_WORDS, np.int64)
    for word, value in {
        b.BID_SEED: seed, b.BID_KEYS: keys, b.BID_ACCEPT: zipf.accept.ctypes.data, b.BID_ALIAS: zipf.alias.ctypes.data,
        b.BID_SCATTER: int(scatter), b.BID_BIDDERS: bidders, b.BID_INTERVAL_US: interval_us, b.BID_DELAY_US: delay_us,
        b.BID_NULL_BELOW: null_limit(nulls), b.BID_PRICES: kept[2].ctypes.data, b.BID_CHANNELS: kept[3].ctypes.data,
        b.BID_DRAWS: draws.ctypes.data,
    }.items():  # fmt: skip
        words[word] = value
    return _batches(library_with(GENERATORS).function("write_bids"), words, rows, kept)


@lru_cache(maxsize=1)
def _channels() -> NDArray[np.uint8]:
    return cells_of(channel_names())


def _batches(write: Callable[..., int], words: NDArray[np.int64], rows: int, kept: object) -> Iterator[pa.RecordBatch]:
    """The rows in batches. kept: what the words point to, which must stay alive."""
    for start in range(0, rows, GENERATED_ROWS):
        n = min(GENERATED_ROWS, rows - start)
        columns = [pa.allocate_buffer(8 * n) for _ in _COLUMNS]
        for word, column in zip(_COLUMNS, columns, strict=True):
            words[word] = column.address
        ends, text = pa.allocate_buffer(4 * (n + 1)), pa.allocate_buffer((n + 1) * b.CELL_BYTES, resizable=True)
        valid = np.zeros((3, (n + 7) // 8), np.uint8)
        words[b.BID_ENDS], words[b.BID_TEXT] = ends.address, text.address
        words[b.BID_VALID], words[b.BID_VALID_BYTES] = valid.ctypes.data, valid.shape[1]
        text.resize(write(words.ctypes.data, start // GENERATED_ROWS, GENERATED_ROWS, n), shrink_to_fit=False)
        bits = [pa.py_buffer(part) if words[b.BID_NULL_BELOW] else None for part in valid]
        auction, bidder, price, ts = columns
        arrays = [
            pa.Array.from_buffers(pa.int64(), n, [None, auction]),
            pa.Array.from_buffers(pa.int64(), n, [bits[0], bidder]),
            pa.Array.from_buffers(pa.int64(), n, [bits[1], price]),
            pa.Array.from_buffers(pa.timestamp("us"), n, [None, ts]),
            pa.Array.from_buffers(pa.string(), n, [bits[2], ends, text]),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
