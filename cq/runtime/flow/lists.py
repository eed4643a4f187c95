"""Arrow lists as the arrays of kernels, and arrays as lists: whole columns, with numpy. Batches are packed natively
(packing.py): this defines the result.

cq/runtime/values/arrays.py describes how an array is laid out in bytes. A column of arrays crosses as `binary`, laid
out like text. An element's words follow from its Arrow type alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as t

from cq.lang.arrow_buffers import binary_array, booleans, numbers, text_scalar, valid, validity

WORD_DIGITS = 18  # of a decimal that takes one word
MOST_BYTES = 2**31 - 1  # of a column: its offsets have 32 bits

Words = npt.NDArray[np.int64]


def array_of_lists(column: pa.ListArray) -> pa.Array:
    """A column of lists as `binary`: each value is the array of its list. ArrowCapacityError if it is too large."""
    elements = column.flatten()
    texts = _is_text(elements.type)
    if texts:
        import pyarrow.compute as pc  # takes half as long as pyarrow itself, and most queries have no lists of texts

        there, elements = valid(elements), pc.coalesce(elements, _empty(elements.type))
    else:
        there = valid(elements)
    counts = numbers(column.value_lengths(), 0).astype(np.int64)
    shape = _Shape(counts, 1 if texts else _width(elements.type))
    ends = np.zeros(1, np.int64)
    if texts:
        ends = np.frombuffer(elements.buffers()[1], np.int32)[elements.offset :][: len(elements) + 1].astype(np.int64)
        shape.add_texts(ends)
    words = np.zeros(shape.total, np.int64)
    words[shape.starts[:-1]] = counts
    if texts:
        words[shape.places] = ends[1:] - np.repeat(ends[shape.firsts[:-1]], counts)
    else:
        for n, part in enumerate(_words(elements)):
            words[shape.places + n] = part
    data = words.view(np.uint8)
    data[shape.flags] = ~there
    if texts and ends[-1] > ends[0]:
        content = np.frombuffer(elements.buffers()[2], np.uint8)
        data[shape.text_places(ends)] = content[ends[0] : ends[-1]]
    offsets = shape.starts * 8
    if offsets[-1] > MOST_BYTES:
        raise pa.ArrowCapacityError("a batch of arrays takes more than 2 GiB")
    return pa.Array.from_buffers(
        pa.binary(), len(column), [validity(~valid(column)), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    )


def lists_of_array(column: pa.BinaryArray, type_: pa.ListType) -> pa.Array:
    """The column of lists that `array_of_lists` turns into these values."""
    rows = len(column)
    given = valid(column)
    _, offset_buffer, content = column.buffers()
    bounds = np.frombuffer(offset_buffer, np.int32)[column.offset :][: rows + 1] if rows else np.zeros(1, np.int32)
    data = np.frombuffer(content, np.uint8)[: bounds[-1]] if bounds[-1] else np.zeros(0, np.uint8)
    words = data.view(np.int64)
    counts = np.zeros(rows, np.int64)
    there = given & (bounds[1:] > bounds[:-1])
    counts[there] = words[bounds[:-1][there] >> 3]
    texts = _is_text(type_.value_type)
    shape = _Shape(counts, 1 if texts else _width(type_.value_type), bounds.astype(np.int64) >> 3)
    missing = data[shape.flags].astype(bool)
    if texts:
        elements = _texts(type_.value_type, shape, words, data, missing)
    else:
        elements = _elements([words[shape.places + n] for n in range(shape.width)], type_.value_type, missing)
    lengths = pa.py_buffer(shape.firsts.astype(np.int32))
    return pa.Array.from_buffers(type_, rows, [validity(~given), lengths], children=[elements])


class _Shape:
    """Where the parts of arrays are in the words of a column.

    starts: of each array, and the end.  firsts: the number of each array's first element among all, and their number.
    places, flags: for each element its (first) word, and the byte that says whether it is NULL.
    """

    def __init__(self, counts: Words, width: int, starts: Words | None = None) -> None:
        self.counts, self.width = counts, width
        self.firsts = _sums(counts)
        if starts is None:
            starts = _sums(1 + counts * width + (counts + 7 >> 3))  # a NULL is an empty array too: it is never read
        self._lay(starts)

    def _lay(self, starts: Words) -> None:
        self.starts = starts
        own = np.repeat(starts[:-1], self.counts)
        local = np.arange(self.firsts[-1]) - np.repeat(self.firsts[:-1], self.counts)
        self.places = own + 1 + local * self.width
        self.flags = (own + 1 + np.repeat(self.counts, self.counts) * self.width) * 8 + local

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    def add_texts(self, ends: Words) -> None:
        """Make room for texts after the elements. ends: of each element's text, from the start of the first."""
        sizes = np.diff(ends[self.firsts])
        self._lay(_sums(np.diff(self.starts) + (sizes + 7 >> 3)))

    def text_places(self, ends: Words) -> Words:
        """The byte at which each byte of the texts lies."""
        sizes = np.diff(ends[self.firsts])
        begin = (self.starts[:-1] + 1 + self.counts + (self.counts + 7 >> 3)) * 8
        return np.repeat(begin - _sums(sizes)[:-1], sizes) + np.arange(sizes.sum())


def _is_text(type_: pa.DataType) -> bool:
    """Whether elements are texts, or values of BINARY."""
    return bool(t.is_string(type_) or t.is_binary(type_))


def _empty(type_: pa.DataType) -> pa.Scalar:
    return text_scalar("") if t.is_string(type_) else binary_array([b""])[0]


def _texts(
    type_: pa.DataType, shape: _Shape, words: Words, data: npt.NDArray[np.uint8], missing: npt.NDArray[np.bool_]
) -> pa.Array:
    ends = words[shape.places]  # each from the beginning of its array's texts
    lasts = shape.firsts[1:] - 1
    sizes = np.zeros(len(shape.counts), np.int64)
    filled = shape.counts > 0
    sizes[filled] = ends[lasts[filled]]
    befores = _sums(sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), ends + np.repeat(befores[:-1], shape.counts)])
    content = data[shape.text_places(offsets)]
    parts = [validity(missing), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(type_, len(missing), parts)


def _width(type_: pa.DataType) -> int:
    """How many words an element takes."""
    return 2 if t.is_decimal(type_) and type_.precision > WORD_DIGITS else 1


def _words(elements: pa.Array) -> list[Words]:
    """The words of the elements, one array for each word; those of NULLs are 0."""
    kind = elements.type
    if t.is_null(kind):
        return [np.zeros(len(elements), np.int64)]
    if t.is_decimal(kind):
        if len(elements) == 0:
            return [np.zeros(0, np.int64)] * _width(kind)
        both = np.frombuffer(elements.buffers()[1], np.int64)[2 * elements.offset :][: 2 * len(elements)]
        return [np.where(valid(elements), both[n::2], 0) for n in range(_width(kind))]
    if t.is_boolean(kind):
        return [(booleans(elements) & valid(elements)).astype(np.int64)]
    if t.is_floating(kind):
        return [np.ascontiguousarray(numbers(elements, 0).astype(np.float64)).view(np.int64)]
    return [numbers(elements, 0).astype(np.int64)]


def _elements(parts: list[Words], type_: pa.DataType, missing: npt.NDArray[np.bool_]) -> pa.Array:
    """The elements with these words."""
    low = parts[0]
    content: Any
    if t.is_decimal(type_):
        content = np.stack([low, parts[1] if len(parts) > 1 else low >> 63], axis=1).ravel()
    elif t.is_boolean(type_):
        content = np.packbits(low.astype(bool), bitorder="little")
    elif t.is_floating(type_):
        content = low.view(np.float64).astype(np.float32 if t.is_float32(type_) else np.float64)
    else:
        content = low.astype(f"i{type_.bit_width // 8}")
    return pa.Array.from_buffers(type_, len(low), [validity(missing), pa.py_buffer(np.ascontiguousarray(content))])


def _sums(sizes: Words) -> Words:
    """The sums of the first 0, 1, … sizes."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
