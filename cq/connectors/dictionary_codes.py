"""Texts as codes of a dictionary, for engines that take them: a text is looked at once a batch, not once a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from cq.connectors import compute as pc
from cq.lang.arrow_buffers import valid

# A dictionary is looked over for every batch of rows, which have up to as many (`protocol.READ_ROWS`): beyond it, and
# where it has more texts than the batch has rows, making texts of the codes costs less.
MOST_TEXTS = 1 << 16


def coded(array: pa.DictionaryArray) -> pa.DictionaryArray | None:
    """The texts as 32-bit codes of a dictionary of `string` without NULL, all of them in its range.

    None where they cannot be, or that is not worth it.
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
    """The codes in 32 bits, those under NULL too from 0 to `count` - 1; None where others are not."""
    numbers = np.frombuffer(codes.buffers()[1], str(codes.type))[codes.offset : codes.offset + len(codes)]
    if codes.null_count:
        numbers = np.where(valid(codes), numbers, 0)
    if numbers.min() < 0 or numbers.max() >= count:
        return None
    if codes.type == pa.int32() and not codes.null_count:
        return codes
    bitmap = pa.py_buffer(np.packbits(valid(codes), bitorder="little")) if codes.null_count else None
    return pa.Array.from_buffers(pa.int32(), len(codes), [bitmap, pa.py_buffer(numbers.astype(np.int32))])
