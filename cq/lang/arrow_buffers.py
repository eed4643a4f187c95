"""Conversions between Python, numpy and Arrow through buffers, without pandas.

If pandas is installed, pyarrow imports it as soon as it converts a Python value or a numpy array, in either direction
(`pa.scalar`, `pa.array`, `to_numpy`): 0.3 s wasted in a query on a small input.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

MOST_TEXT_BYTES = 2**31 - 1  # of one array: its offsets have 32 bits

Truths = npt.NDArray[np.bool_]


# -- numpy arrays -----------------------------------------------------------------------------------------------------


def from_numpy(values: npt.NDArray[Any], missing: Truths | None = None) -> pa.Array:
    """An array of truth values, or of numbers as they lie in memory, which is not copied. missing: true for NULL."""
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [validity(missing), _bits_of(values)])
    return of_type(pa.from_numpy_dtype(values.dtype), values, missing)


def of_type(type_: pa.DataType, values: npt.NDArray[Any], missing: Truths | None = None) -> pa.Array:
    """An array of this type over these numbers, without copying."""
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values), [validity(missing), content])


def list_array(elements: pa.Array, sizes: npt.NDArray[Any], missing: Truths | None = None) -> pa.Array:
    """Lists with this many elements each, stored one after the other; missing lists have none."""
    ends = pa.py_buffer(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
    return pa.Array.from_buffers(pa.list_(elements.type), len(sizes), [validity(missing), ends], children=[elements])


# -- arrays of Python values ------------------------------------------------------------------------------------------


def text_array(texts: Sequence[str | None]) -> pa.StringArray:
    """Texts, in UTF-8. Raises OverflowError if they have more bytes than an array can hold."""
    return _bytes_array(pa.string(), [None if text is None else text.encode() for text in texts])


def binary_array(values: Sequence[bytes | None]) -> pa.BinaryArray:
    """Values of BINARY. Raises OverflowError as `text_array` does."""
    return _bytes_array(pa.binary(), values)


def _bytes_array(type_: pa.DataType, values: Sequence[bytes | None]) -> pa.Array:
    encoded = [value or b"" for value in values]
    ends = [0, *accumulate(map(len, encoded))]
    if ends[-1] > MOST_TEXT_BYTES:
        raise OverflowError(f"{ends[-1]} bytes of text in one array")
    offsets, content = pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(type_, len(values), [validity(missing_in(values)), offsets, content])


def hexadecimal(column: pa.BinaryArray) -> pa.StringArray:
    """The text of values of BINARY: two hexadecimal digits for each byte, in upper case. Raises OverflowError as
    `text_array` does."""
    ends, content = _parts(column)
    if 2 * int(ends[-1]) > MOST_TEXT_BYTES:
        raise OverflowError(f"{2 * int(ends[-1])} bytes of text in one array")
    digits = pa.py_buffer(content.hex().upper().encode())
    parts = [validity(~valid(column)), pa.py_buffer((2 * ends).astype(np.int32)), digits]
    return pa.Array.from_buffers(pa.string(), len(column), parts)


def from_hexadecimal(texts: pa.StringArray) -> pa.BinaryArray | None:
    """The values of BINARY that texts denote; None where a text is not pairs of hexadecimal digits."""
    ends, content = _parts(texts)
    if np.any(ends & 1):
        return None
    try:
        values = binascii.unhexlify(content)
    except ValueError:
        return None
    parts = [validity(~valid(texts)), pa.py_buffer((ends // 2).astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(texts), parts)


def _parts(column: pa.Array) -> tuple[npt.NDArray[np.int64], bytes]:
    """Where the values of an array of texts or bytes end, after a 0, and their bytes. The value of a NULL is empty."""
    _, offsets, content = column.buffers()
    if not len(column) or content is None:
        return np.zeros(len(column) + 1, np.int64), b""
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return ends - ends[0], memoryview(content)[ends[0] : ends[-1]].tobytes()


@lru_cache(maxsize=64)
def text_scalar(text: str) -> pa.StringScalar:
    """A string constant for `pyarrow.compute`."""
    return text_array([text])[0]


def boolean_array(values: Sequence[bool | None]) -> pa.Array:
    """Truth values."""
    return from_numpy(np.array([v is True for v in values], np.bool_), missing_in(values))


def number_array(type_: pa.DataType, values: Sequence[float | None]) -> pa.Array:
    """Numbers, times or dates, from the numbers that represent them in this type."""
    return of_type(type_, np.array([0 if v is None else v for v in values], _held(type_)), missing_in(values))


def decimal_array(type_: pa.DataType, unscaled: Sequence[int | None]) -> pa.Array:
    """Values of a decimal128, from unscaled integers."""
    content = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in unscaled)
    return pa.Array.from_buffers(type_, len(unscaled), [validity(missing_in(unscaled)), pa.py_buffer(content)])


def missing_in(values: Sequence[object]) -> Truths:
    """Where the values are None."""
    return np.array([v is None for v in values], np.bool_)


def validity(missing: Truths | None) -> pa.Buffer | None:
    """The bits of Arrow's validity; None where nothing is missing."""
    return None if missing is None or not missing.any() else _bits_of(~missing)


def _bits_of(values: Truths) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


# -- back to numpy ----------------------------------------------------------------------------------------------------


def bits(buffer: pa.Buffer | None, offset: int, length: int) -> Truths:
    """Bits offset..offset+length of a buffer, least significant first; an array without values may have none."""
    first = offset // 8
    raw = np.frombuffer(buffer or b"", np.uint8)[first : (offset + length + 7) // 8]
    return np.unpackbits(raw, count=offset % 8 + length, bitorder="little")[offset % 8 :].view(np.bool_)


def valid(array: pa.Array) -> Truths:
    """Which values are not NULL."""
    buffer = array.buffers()[0]
    if buffer is None:
        return np.full(len(array), array.null_count == 0, np.bool_)
    return bits(buffer, array.offset, len(array))


def numbers(array: pa.Array, under_null: int | None = None) -> npt.NDArray[Any]:
    """The values of a column of numbers, times or dates, as stored.

    under_null: the value for NULL; by default whatever is stored there.
    """
    held = _held(array.type)
    content = array.buffers()[1]
    values = np.frombuffer(content or b"", held)[array.offset :][: len(array)]
    if under_null is None or not array.null_count:
        return values
    return np.where(valid(array), values, held.type(under_null))


def _held(type_: pa.DataType) -> np.dtype[Any]:
    """The numpy type in which values of this type are stored."""
    floating, unsigned = pa.types.is_floating(type_), pa.types.is_unsigned_integer(type_)
    return np.dtype(f"{'f' if floating else 'u' if unsigned else 'i'}{type_.bit_width // 8}")


def booleans(array: pa.Array) -> Truths:
    """The values of a BOOLEAN column; anything under NULL."""
    return bits(array.buffers()[1], array.offset, len(array))
