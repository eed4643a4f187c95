"""Small things between Python, numpy and Arrow, without pandas.

pyarrow imports pandas, where it is installed, as soon as it converts a Python value or an array of numpy's, and when it
gives one back (`pa.scalar`, `pa.array`, `to_numpy`): 0.4 s that a query on a small file would spend on nothing. These
go through buffers instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@lru_cache(maxsize=64)
def text_scalar(text: str) -> pa.StringScalar:
    """A string constant for `pyarrow.compute`."""
    return text_array([text])[0]


def text_array(texts: Sequence[str]) -> pa.StringArray:
    """An Arrow array of these strings."""
    cells = [text.encode() for text in texts]
    offsets = np.zeros(len(cells) + 1, np.int32)
    np.cumsum([len(cell) for cell in cells], out=offsets[1:])
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(offsets), pa.py_buffer(b"".join(cells)))


def bits(buffer: pa.Buffer, offset: int, length: int) -> npt.NDArray[np.bool_]:
    """Bits offset..offset+length of a buffer, least significant first."""
    first = offset // 8
    raw = np.frombuffer(buffer, np.uint8)[first : (offset + length + 7) // 8]
    return np.unpackbits(raw, count=offset % 8 + length, bitorder="little")[offset % 8 :].view(np.bool_)


def valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are not NULL."""
    buffer = array.buffers()[0]
    if buffer is None:
        return np.full(len(array), array.null_count == 0, np.bool_)
    return bits(buffer, array.offset, len(array))


def booleans(array: pa.Array) -> npt.NDArray[np.bool_]:
    """The values of a BOOLEAN column; whatever lies under NULL stays."""
    return bits(array.buffers()[1], array.offset, len(array))


def int64_array(values: npt.NDArray[np.int64]) -> pa.Array:
    """An Arrow array over the memory of a numpy array."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
