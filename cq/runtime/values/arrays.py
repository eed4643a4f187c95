"""Arrays in kernels: one run of bytes each, the same for equal values except for -0.0 and NaN.

An array is (address, length). Its first word is the number of its elements, then comes a word for each (two for a
DECIMAL of more than 18 digits), then a byte for each that is 1 if it is NULL, padded to whole words. The word of a
number or time is its value, for a REAL or DOUBLE the bits of the DOUBLE, for a text the offset of its end in the bytes
that follow, padded to whole words too. The word of a NULL is 0, or where its text would end. The length is a multiple
of 8, but an array may be anywhere. cq/runtime/flow/lists.py turns Arrow's lists into arrays, and arrays into lists.

Conventions as in characters.py: a new array is fresh step bytes with the length in STATE_RESULT.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_f64, ld_i64, ld_u8, mem_eq, st_i64, st_u8, ult
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.layout.words import Struct
from cq.runtime.values.text import split_end, split_next, step_bytes, text_compare

# how elements are compared
WORD, WIDE, FLOAT, TEXT = range(4)

_piece = Struct("PIECE")  # a text that will become an element
PIECE_TEXT = _piece.word()  # its address
PIECE_LENGTH = _piece.word()  # -1 for NULL
PIECE_WORDS = _piece.size()


@native("i64(i64, i64)", export=True, inline=True)
def array_bytes(count: int, width: int) -> int:
    """The length of an array of this many elements of this many words, without its texts."""
    return 8 + count * width * 8 + ((count + 7) & -8)


@native("i64(i64, i64, i64)", export=True, inline=True)
def array_nulls(array: int, count: int, width: int) -> int:
    """Whether, as 1 or 0, one of `count` elements of `width` words is NULL."""
    flags = array + 8 + count * width * 8
    for word in range((count + 7) >> 3):  # a loop with two exits: vectorised it takes longer for the arrays of events
        if ld_i64(flags, word) != 0:
            return 1
    return 0


@native("i64(i64, i64)")
def array_flags(array: int, how: int) -> int:
    """The address of the bytes that mark NULL elements."""
    width = 8
    if how == WIDE:
        width = 16
    return array + 8 + ld_i64(array, 0) * width


@native("i64(i64, i64)", export=True, inline=True)
def array_place(array: int, number: int) -> int:
    """The place, from 0, of the element with this number, from 1, or from -1 at the end; -1 if there is none."""
    count = ld_i64(array, 0)
    if number > 0 and number <= count:
        return number - 1
    if number < 0 and number >= -count:
        return count + number
    return -1


@native("i64(i64, i64)", export=True, inline=True)
def text_start(array: int, place: int) -> int:
    """Where the text of an element begins in the bytes of the texts."""
    if place == 0:
        return 0
    return ld_i64(array, place)


@native("i64(i64, i64, i64)", export=True)
def array_new(state: int, count: int, width: int) -> int:
    """An array of this many elements of this many words, for the caller to fill; none is NULL."""
    size = array_bytes(count, width)
    made = step_bytes(state, size)
    if made != 0:
        st_i64(made, 0, count)
        flags = 8 + count * width * 8
        fill(made + flags, 0, size - flags)
        st_i64(state, STATE_RESULT, size)
    return made


@native("i64(i64, i64, i64)", export=True)
def array_of_texts(state: int, items: int, count: int) -> int:
    """An array of texts. items: -> PIECE_WORDS words for each."""
    size = 0
    for item in range(count):
        length = ld_i64(items, item * PIECE_WORDS + PIECE_LENGTH)
        if length > 0:
            size += length
    head = array_bytes(count, 1)
    whole = (size + 7) & -8
    made = step_bytes(state, head + whole)
    if made == 0:
        return 0
    st_i64(made, 0, count)
    fill(made + 8 + count * 8, 0, head - 8 - count * 8)
    end = 0
    for item in range(count):
        length = ld_i64(items, item * PIECE_WORDS + PIECE_LENGTH)
        if length < 0:
            st_u8(made, 8 + count * 8 + item, 1)
        else:
            copy(made + head + end, ld_i64(items, item * PIECE_WORDS + PIECE_TEXT), length)
            end += length
        st_i64(made, 1 + item, end)
    fill(made + head + size, 0, whole - size)
    st_i64(state, STATE_RESULT, head + whole)
    return made


@native("i64(f64, f64)")
def _float_order(a: float, b: float) -> int:
    """-1, 0 or 1 as SQL orders doubles: NaN equals NaN and is the greatest."""
    if a < b:
        return -1
    if a > b:
        return 1
    if a == b:
        return 0
    return (a != a) - (b != b)  # noqa: PLR0124 - only NaN differs from itself


@native("i64(i64, i64)")
def _word_order(a: int, b: int) -> int:
    return (a > b) - (a < b)


@native("i64(i64, i64, i64, i64)")
def _text_order(array: int, place: int, other: int, at: int) -> int:
    start = text_start(array, place)
    begin = text_start(other, at)
    length = ld_i64(array, 1 + place) - start
    size = ld_i64(other, 1 + at) - begin
    text = array + array_bytes(ld_i64(array, 0), 1) + start
    return text_compare(text, length, other + array_bytes(ld_i64(other, 0), 1) + begin, size)


@native("i64(i64, i64, i64, i64, i64)")
def element_order(array: int, place: int, other: int, at: int, how: int) -> int:
    """-1, 0 or 1 as the element of one array is before, equal to or after that of another; neither is NULL."""
    if how == FLOAT:
        return _float_order(ld_f64(array, 1 + place), ld_f64(other, 1 + at))
    if how == TEXT:
        return _text_order(array, place, other, at)
    if how == WIDE:
        high = _word_order(ld_i64(array, 2 + place * 2), ld_i64(other, 2 + at * 2))
        if high != 0:
            return high
        low = ld_i64(array, 1 + place * 2)
        return ult(ld_i64(other, 1 + at * 2), low) - ult(low, ld_i64(other, 1 + at * 2))
    return _word_order(ld_i64(array, 1 + place), ld_i64(other, 1 + at))


@native("i64(i64, i64)", export=True)
def same_floats(array: int, other: int) -> int:
    """Whether two arrays of REAL or DOUBLE are equal; NULLs are equal, and NaNs."""
    count = ld_i64(array, 0)
    if ld_i64(other, 0) != count:
        return 0
    flags = 8 + count * 8
    if not mem_eq(array + flags, other + flags, count):
        return 0
    for place in range(count):
        if _float_order(ld_f64(array, 1 + place), ld_f64(other, 1 + place)) != 0:
            return 0
    return 1


@native("i64(i64, i64, i64)", export=True)
def array_find(array: int, other: int, how: int) -> int:
    """The number, from 1, of the first element equal to the only one of another array; 0 if there is none."""
    flags = array_flags(array, how)
    for place in range(ld_i64(array, 0)):
        if ld_u8(flags, place) == 0 and element_order(array, place, other, 0, how) == 0:
            return place + 1
    return 0


@native("i64(i64, i64, i64)", export=True)
def sorted_array_has(array: int, other: int, how: int) -> int:
    """1 if an element equals the only one of another array, else 0; the array ascends and has no NULL."""
    low = 0  # elements below it are less than the wanted one, those from `high` on are not
    high = ld_i64(array, 0)
    count = high
    while low < high:
        middle = (low + high) >> 1
        if element_order(array, middle, other, 0, how) < 0:
            low = middle + 1
        else:
            high = middle
    if low < count and element_order(array, low, other, 0, how) == 0:
        return 1
    return 0


@native("i64(i64, i64, i64, i64, i64)", export=True)
def split_array(state: int, text: int, length: int, separator: int, separator_length: int) -> int:
    """The array of the pieces between separators."""
    count = 0
    at = 0
    while at <= length:
        at = split_next(length, split_end(text, length, at, separator, separator_length), separator_length)
        count += 1
    items = step_bytes(state, count * PIECE_WORDS * 8)
    if items == 0:
        return 0
    at = 0
    for item in range(count):
        end = split_end(text, length, at, separator, separator_length)
        st_i64(items, item * PIECE_WORDS + PIECE_TEXT, text + at)
        st_i64(items, item * PIECE_WORDS + PIECE_LENGTH, end - at)
        at = split_next(length, end, separator_length)
    return array_of_texts(state, items, count)
