"""Turn Arrow lists into the arrays of kernels when a batch is lent: all of a column in one block of memory.

cq/runtime/values/arrays.py describes the layout of an array, `array_of_lists` in lists.py makes the same bytes of one
column. A NULL list is an empty array; the content behind a NULL element is left out.

Sharing: none. The feeder packs before any other thread sees the loan.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    copy,
    f64_bits,
    fill,
    ld_bit,
    ld_f32,
    ld_i8,
    ld_i16,
    ld_i32,
    ld_i64,
    st_i32,
    st_i64,
    st_u8,
)
from cq.runtime.flow.arrow_words import (
    ARROW_BUFFERS,
    ARROW_CHILDREN,
    ARROW_NULL_COUNT,
    ARROW_OFFSET,
    BIT,
    BUFFERS_TEXTS,
    BUFFERS_VALUES,
    F32,
    I8,
    I16,
    I32,
    I128,
    UTF8,
)
from cq.runtime.layout.abi import (
    COLUMN_BIT,
    COLUMN_DATA,
    COLUMN_OFFSETS,
    COLUMN_VALIDITY,
    STRING_SLACK_BYTES,
)
from cq.runtime.values.arrays import array_bytes

# The layout of a list's elements: their Storage, or one of these.
NARROW = 9  # DECIMALs that fit their low words
NOTHING = 10  # of Arrow's type null

MOST_BYTES = 2**31 - 1  # of the arrays of a column: their offsets have 32 bits
TOO_LARGE = -1


@native("i64(i64, i64, i64, i64, i64, i64)")
def open_lists(lists: int, table: int, copied: int, offset: int, rows: int, layout: int) -> int:
    """Make the column table show an array for each list; 1, 0 without memory for them, or TOO_LARGE.

    lists: -> its ArrowArray; the `rows` lists from `offset` on are used.  table: its validity is filled.
    copied: -> the word that keeps the address of their memory.  layout: of the elements.
    """
    offsets = ld_i64(ld_i64(lists, ARROW_BUFFERS), BUFFERS_VALUES) + offset * 4
    elements = ld_i64(ld_i64(lists, ARROW_CHILDREN), 0)
    size = 0
    for row in range(rows):
        size += _packed_bytes(elements, ld_i32(offsets, row), _count(table, offsets, row), layout)
    if size > MOST_BYTES:
        return TOO_LARGE
    head = (rows + 2) >> 1 << 3  # the offsets, padded to a whole word
    block = alloc(head + size + STRING_SLACK_BYTES)
    if block == 0:
        return 0
    used = 0
    for row in range(rows):
        st_i32(block, row, used)
        first, count = ld_i32(offsets, row), _count(table, offsets, row)
        _pack(block + head + used, elements, first, count, layout)
        used += _packed_bytes(elements, first, count, layout)
    st_i32(block, rows, used)
    st_i64(copied, 0, block)
    st_i64(table, COLUMN_OFFSETS, block)
    st_i64(table, COLUMN_DATA, block + head)
    return 1


@native("i64(i64, i64, i64)")
def _count(table: int, offsets: int, row: int) -> int:
    """The number of elements of a row's list; 0 for NULL."""
    validity = ld_i64(table, COLUMN_VALIDITY)
    if validity != 0 and not ld_bit(validity, ld_i64(table, COLUMN_BIT) + row):
        return 0
    return ld_i32(offsets, row + 1) - ld_i32(offsets, row)


@native("i64(i64, i64)")
def _missing(elements: int, place: int) -> int:
    """1 if the element at this place among all is NULL."""
    if ld_i64(elements, ARROW_NULL_COUNT) == 0:
        return 0
    validity = ld_i64(ld_i64(elements, ARROW_BUFFERS), 0)
    if validity == 0 or ld_bit(validity, ld_i64(elements, ARROW_OFFSET) + place):
        return 0
    return 1


@native("i64(i64, i64)")
def _text_length(elements: int, place: int) -> int:
    """The bytes of the text at this place among all; 0 for NULL."""
    if _missing(elements, place) == 1:
        return 0
    ends = ld_i64(ld_i64(elements, ARROW_BUFFERS), BUFFERS_VALUES) + ld_i64(elements, ARROW_OFFSET) * 4
    return ld_i32(ends, place + 1) - ld_i32(ends, place)


@native("i64(i64)")
def _element_words(layout: int) -> int:
    if layout == I128:
        return 2
    return 1


@native("i64(i64, i64, i64, i64)")
def _packed_bytes(elements: int, first: int, count: int, layout: int) -> int:
    """The length in bytes of the array of the `count` elements from `first` on."""
    size = array_bytes(count, _element_words(layout))
    if layout == UTF8:
        texts = 0
        for place in range(first, first + count):
            texts += _text_length(elements, place)
        size += (texts + 7) & -8
    return size


@native("void(i64, i64, i64, i64, i64)")
def _pack(array: int, elements: int, first: int, count: int, layout: int) -> None:
    """Write the array of the `count` elements from `first` on to this address."""
    width = _element_words(layout)
    flags = array + 8 + count * width * 8
    st_i64(array, 0, count)
    if layout == NOTHING:
        fill(array + 8, 0, count * 8)
        fill(flags, 0, (count + 7) & -8)
        fill(flags, 1, count)
        return
    for word in range(count + 7 >> 3):
        st_i64(flags, word, 0)
    if layout == UTF8:
        _pack_texts(array + 8, flags, elements, first, count)
        return
    _pack_words(array + 8, elements, first, count, layout)
    if ld_i64(elements, ARROW_NULL_COUNT) != 0:
        for n in range(count):
            if _missing(elements, first + n) == 1:
                st_u8(flags, n, 1)
                fill(array + 8 + n * width * 8, 0, width * 8)


@native("void(i64, i64, i64, i64, i64)")
def _pack_words(words: int, elements: int, first: int, count: int, layout: int) -> None:
    """Write the words of `count` elements from `first` on to `words`, even those of NULLs."""
    values, place = ld_i64(ld_i64(elements, ARROW_BUFFERS), BUFFERS_VALUES), ld_i64(elements, ARROW_OFFSET) + first
    if layout == BIT:
        for n in range(count):
            st_i64(words, n, 0)
            if ld_bit(values, place + n):
                st_i64(words, n, 1)
    elif layout == I8:
        for n in range(count):
            st_i64(words, n, ld_i8(values, place + n))
    elif layout == I16:
        for n in range(count):
            st_i64(words, n, ld_i16(values, place + n))
    elif layout == I32:
        for n in range(count):
            st_i64(words, n, ld_i32(values, place + n))
    elif layout == F32:
        for n in range(count):
            st_i64(words, n, f64_bits(ld_f32(values, place + n)))
    elif layout == I128:
        copy(words, values + place * 16, count * 16)
    elif layout == NARROW:
        for n in range(count):
            st_i64(words, n, ld_i64(values, 2 * (place + n)))
    else:
        for n in range(count):
            st_i64(words, n, ld_i64(values, place + n))


@native("void(i64, i64, i64, i64, i64)")
def _pack_texts(ends: int, flags: int, elements: int, first: int, count: int) -> None:
    """Write the ends of `count` texts from `first` on to `ends`, and the texts after their flags."""
    buffers = ld_i64(elements, ARROW_BUFFERS)
    starts, content = (
        ld_i64(buffers, BUFFERS_VALUES) + ld_i64(elements, ARROW_OFFSET) * 4,
        ld_i64(buffers, BUFFERS_TEXTS),
    )
    texts, end = flags + ((count + 7) & -8), 0
    for n in range(count):
        length = _text_length(elements, first + n)
        copy(texts + end, content + ld_i32(starts, first + n), length)
        end += length
        st_i64(ends, n, end)
        st_u8(flags, n, _missing(elements, first + n))
    fill(texts + end, 0, -end & 7)
