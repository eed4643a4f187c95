"""A 64-bit hash of an output: equal for equal rows in equal order, however they were cut into batches.

Every value becomes a word, every row a word made of its values' words, and the hash is the sum over rows of that word
mixed with the row's number: so batches can be hashed as they come, with no state but the sum and the count of rows. It
tells results apart; it does not withstand an adversary. Constants are those of well-known 64-bit finalisers.

NaN is one value; -0.0 is not 0.0; NULL differs from every value of any type; a string is its bytes and its length.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as t

from cq.lang.arrow_buffers import booleans, valid
from cq.lang.types import NAN_BITS

Words = npt.NDArray[np.uint64]

_MULTIPLY = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF, _THIRD = np.uint64(32), np.uint64(29)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_NAN = np.uint64(NAN_BITS)
CHUNK_ROWS = 8_192  # the words of a few columns stay in the second-level cache
LONG_BYTES = 256  # strings longer than this are hashed one by one


class RowHash:
    """The hash of the rows given so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, which follow all earlier ones."""
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            part = batch.slice(start, CHUNK_ROWS)
            rows = row_words(part)
            with np.errstate(over="ignore"):
                numbers = np.arange(self.rows + 1, self.rows + 1 + part.num_rows, dtype=np.uint64)
                total = np.sum(_mixed(rows ^ (numbers * _MULTIPLY)), dtype=np.uint64)
            self._sum = (self._sum + int(total)) & (2**64 - 1)
            self.rows += part.num_rows

    @property
    def digest(self) -> str:
        """16 hexadecimal digits."""
        with np.errstate(over="ignore"):
            return f"{int(_mixed(np.array([self._sum ^ self.rows], np.uint64))[0]):016x}"


def row_words(batch: pa.RecordBatch) -> Words:
    """One word for each row: equal rows have equal words, different ones practically never."""
    with np.errstate(over="ignore"):
        rows = np.full(batch.num_rows, 0x243F6A8885A308D3, np.uint64)
        for column in batch.columns:
            rows = _mixed(rows ^ _words(column))
    return rows


def _mixed(words: Words) -> Words:
    """Each word with its bits spread over the whole word; two multiplications, three shifts, in place."""
    words ^= words >> _HALF
    words *= _MIX_1
    words ^= words >> _THIRD
    words *= _MIX_2
    words ^= words >> _HALF
    return words


def _words(column: pa.Array) -> Words:
    """One word for each value."""
    words = _value_words(column)
    if column.null_count:
        words = np.where(valid(column), words, _NULL)
    return words


def _value_words(column: pa.Array) -> Words:
    kind = column.type
    rows = len(column)
    if t.is_null(kind) or rows == 0:
        return np.full(rows, _NULL, np.uint64)
    if t.is_boolean(kind):
        return booleans(column).astype(np.uint64)
    if t.is_decimal(kind):
        both = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset : 2 * (column.offset + rows)]
        low = both[0::2]
        sign = (low.view(np.int64) >> 63).view(np.uint64)
        return low ^ (both[1::2] ^ sign) * _MULTIPLY  # up to 18 digits the low word suffices: the high one is its sign
    if t.is_float32(kind):
        return _float_words(_fixed(column, np.float32).astype(np.float64))
    if t.is_float64(kind):
        return _float_words(_fixed(column, np.float64))
    if t.is_string(kind) or t.is_binary(kind):
        return _string_words(column)
    if t.is_integer(kind) or t.is_temporal(kind):
        signed = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[kind.bit_width]
        return _fixed(column, signed).astype(np.int64).view(np.uint64)
    assert t.is_list(kind), kind
    return _list_words(column)


def _list_words(column: pa.ListArray) -> Words:
    """The sum over a list's elements, each mixed with its place, mixed with their number."""
    bounds = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    offsets = bounds.astype(np.int64) - bounds[0]
    sizes = np.diff(offsets)
    elements = _words(column.values.slice(int(bounds[0]), int(offsets[-1])))
    places = np.arange(1, len(elements) + 1) - np.repeat(offsets[:-1], sizes)
    sums = np.zeros(len(elements) + 1, np.uint64)
    np.cumsum(_mixed(elements ^ places.astype(np.uint64) * _MULTIPLY), out=sums[1:])
    return _mixed((sums[offsets[1:]] - sums[offsets[:-1]]) ^ sizes.astype(np.uint64) * _MULTIPLY)


def _fixed(column: pa.Array, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _float_words(values: npt.NDArray[np.float64]) -> Words:
    words = values.view(np.uint64)
    nan = np.isnan(values)
    return np.where(nan, _NAN, words) if nan.any() else words


def _bytes_word(value: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")


def _string_words(column: pa.Array) -> Words:
    """Strings eight bytes at a time: pass k adds the k-th word of all strings that are that long."""
    _, offset_buffer, data_buffer = column.buffers()
    rows = len(column)
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + rows + 1].astype(np.int64)
    starts, sizes = offsets[:-1], np.diff(offsets)
    if column.null_count:
        sizes = np.where(valid(column), sizes, 0)
    words = _mixed(sizes.astype(np.uint64) * _MULTIPLY)
    used = int(offsets[-1] - offsets[0])
    if data_buffer is None or used == 0:
        return words
    # a copy with room behind it, so that whole words can be loaded at the end
    data = np.zeros(used + 8, np.uint8)
    data[:used] = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    starts = starts - offsets[0]
    loads = np.ndarray((used + 1,), np.dtype("<u8"), data, strides=(1,))
    long = np.flatnonzero(sizes > LONG_BYTES)
    for row in long.tolist():
        words[row] ^= np.uint64(_bytes_word(data[starts[row] : starts[row] + sizes[row]].tobytes()))
    live = np.flatnonzero((sizes > 0) & (sizes <= LONG_BYTES))
    step = 0
    while len(live):
        every = len(live) == rows
        at = (starts if every else starts[live]) + step
        left = (sizes if every else sizes[live]) - step
        loaded = loads[at] & _TAIL_MASKS[np.minimum(left, 8)]
        if every:
            words = _mixed(words ^ loaded)
        else:
            words[live] = _mixed(words[live] ^ loaded)
        step += 8
        live = live[left > 8]
    return words


_TAIL_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)
