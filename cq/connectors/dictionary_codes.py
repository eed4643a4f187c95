"""Texts as dictionary codes, for engines that take them: each text is looked at once per batch, not once per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from cq.connectors import compute as pc
from cq.lang.arrow_buffers import valid

# Every batch of rows scans its dictionary, which has at most as many texts as a batch has rows (`protocol.READ_ROWS`):
# beyond that, and where it has more texts than the batch has rows, decoding the texts costs less.
MOST_TEXTS = 1 << 16


def coded(array: pa.DictionaryArray) -> pa.DictionaryArray | None:
    """The texts as 32-bit codes into a dictionary of `string` without NULL, all of them in range.

    None where that is impossible or does not pay.
    """
    texts = array.dictionary
    if not 0 < len(texts) <= min(len(array), MOST_TEXTS) or texts.null_count:
        return None
    if not (t.is_string(texts.type) or t.is_large_string(texts.type)):
        return None
    codes = _in_range(array.indices, len(texts))
    if codes is None:
        return None
    plain = texts if t.is_string(texts.type) else pc.cast(texts, pa.string())
    return pa.DictionaryArray.from_arrays(codes, plain, safe=False)


def _in_range(codes: pa.Array, count: int) -> pa.Array | None:
    """The codes in 32 bits, each from 0 to `count` - 1, also those under NULL; None where others are out of range."""
    numbers = np.frombuffer(codes.buffers()[1], str(codes.type))[codes.offset : codes.offset + len(codes)]
    if codes.null_count:
        numbers = np.where(valid(codes), numbers, 0)
    if numbers.min() < 0 or numbers.max() >= count:
        return None
    if codes.type == pa.int32() and not codes.null_count:
        return codes
    bitmap = pa.py_buffer(np.packbits(valid(codes), bitorder="little")) if codes.null_count else None
    return pa.Array.from_buffers(pa.int32(), len(codes), [bitmap, pa.py_buffer(numbers.astype(np.int32))])
