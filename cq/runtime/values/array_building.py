"""Arrays made from arrays: parts of them, orders of them, several in one. Conventions as in arrays.py.

Most build a list of indices, in step bytes, and take the elements at these. How elements are compared also determines
their layout.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    add128_hi,
    copy,
    ld_f64,
    ld_i64,
    ld_u8,
    max_i64,
    min_i64,
    sdiv,
    srem,
    st_f64,
    st_i64,
    st_u8,
    wadd,
)
from cq.runtime.layout.abi import STATE_RESULT, STATE_RESULT_HIGH, ErrorCode
from cq.runtime.values.arrays import (
    PIECE_LENGTH,
    PIECE_TEXT,
    PIECE_WORDS,
    TEXT,
    WIDE,
    array_bytes,
    array_flags,
    array_new,
    array_of_texts,
    element_order,
    text_start,
)
from cq.runtime.values.json_paths import BACKSLASH, COLON, COMMA, GROWTH, QUOTE, ZERO, put_letter
from cq.runtime.values.text import step_bytes

GOOD, OVERFLOW = int(ErrorCode.NONE), int(ErrorCode.OVERFLOW)
BRACE, CLOSING_BRACE = 0x7B, 0x7D
COUNT_BYTES = 24  # for a number of 20 digits, with quotes, colon and comma
ASCENDING, DESCENDING, NULLS_FIRST = 0, 1, 2  # how a list is ordered: bits


@native("i64(i64)")
def _width_of(how: int) -> int:
    """The words of an element."""
    if how == WIDE:
        return 2
    return 1


# -- elements of one or two arrays ------------------------------------------------------------------------------------


@native("void(i64, i64, i64)")
def _put_piece(piece: int, array: int, index: int) -> None:
    """The text at an index becomes a piece of `array_of_texts`."""
    count = ld_i64(array, 0)
    start = text_start(array, index)
    length = ld_i64(array, 1 + index) - start
    if ld_u8(array, 8 + count * 8 + index) != 0:
        length = -1
    st_i64(piece, PIECE_TEXT, array + array_bytes(count, 1) + start)
    st_i64(piece, PIECE_LENGTH, length)


@native("void(i64, i64, i64, i64, i64)")
def _put_element(made: int, at: int, array: int, index: int, width: int) -> None:
    """Copy the element at an index of another array to the made array; not for texts."""
    for n in range(width):
        st_i64(made, 1 + at * width + n, ld_i64(array, 1 + index * width + n))
    flags = 8 + ld_i64(array, 0) * width * 8
    st_u8(made, 8 + ld_i64(made, 0) * width * 8 + at, ld_u8(array, flags + index))


@native("i64(i64, i64, i64, i64, i64)")
def array_take(state: int, array: int, indices: int, count: int, how: int) -> int:
    """The array of the elements at these indices."""
    if how == TEXT:
        items = step_bytes(state, count * PIECE_WORDS * 8)
        if items == 0:
            return 0
        for n in range(count):
            _put_piece(items + n * PIECE_WORDS * 8, array, ld_i64(indices, n))
        return array_of_texts(state, items, count)
    width = _width_of(how)
    made = array_new(state, count, width)
    if made != 0:
        for n in range(count):
            _put_element(made, n, array, ld_i64(indices, n), width)
    return made


@native("i64(i64, i64, i64, i64)", export=True)
def array_concat(state: int, array: int, other: int, how: int) -> int:
    """The elements of one array, and then those of another."""
    first = ld_i64(array, 0)
    second = ld_i64(other, 0)
    if how == TEXT:
        items = step_bytes(state, (first + second) * PIECE_WORDS * 8)
        if items == 0:
            return 0
        for n in range(first):
            _put_piece(items + n * PIECE_WORDS * 8, array, n)
        for n in range(second):
            _put_piece(items + (first + n) * PIECE_WORDS * 8, other, n)
        return array_of_texts(state, items, first + second)
    width = _width_of(how)
    made = array_new(state, first + second, width)
    if made != 0:
        copy(made + 8, array + 8, first * width * 8)
        copy(made + 8 + first * width * 8, other + 8, second * width * 8)
        flags = array_flags(made, how)
        copy(flags, array_flags(array, how), first)
        copy(flags + first, array_flags(other, how), second)
    return made


@native("i64(i64, i64)")
def ascending_indices(state: int, count: int) -> int:
    """Room for this many indices; the first ones, ascending."""
    indices = step_bytes(state, count * 8)
    if indices != 0:
        for n in range(count):
            st_i64(indices, n, n)
    return indices


@native("i64(i64, i64, i64, i64, i64)", export=True)
def array_slice(state: int, array: int, first: int, last: int, how: int) -> int:
    """The elements from one number to another, from 1, or from -1 at the end."""
    count = ld_i64(array, 0)
    begin = first
    if first < 0:
        begin = max_i64(first, -count) + count + 1
    end = last
    if last < 0:
        end = max_i64(last, -count - 1) + count + 1
    begin = max_i64(begin, 1)
    size = max_i64(min_i64(end, count) - begin + 1, 0)
    if begin > count:
        size = 0
    indices = ascending_indices(state, size)
    if indices == 0:
        return 0
    for n in range(size):
        st_i64(indices, n, begin - 1 + n)
    return array_take(state, array, indices, size, how)


@native("i64(i64, i64, i64)", export=True)
def array_reverse(state: int, array: int, how: int) -> int:
    """The elements from the last to the first."""
    count = ld_i64(array, 0)
    indices = ascending_indices(state, count)
    if indices == 0:
        return 0
    for n in range(count):
        st_i64(indices, n, count - 1 - n)
    return array_take(state, array, indices, count, how)


@native("i64(i64, i64, i64, i64)", export=True)
def array_of_items(state: int, items: int, size: int, how: int) -> int:
    """The array of the values in this many bytes of a list: `ListedValues` in cq/codegen/state/list_accumulators.py."""
    if how == TEXT:
        return _listed_texts(state, items, size)
    width = _width_of(how)
    count = sdiv(size, (width + 1) * 8)
    made = array_new(state, count, width)
    if made != 0:
        for index in range(count):
            item = items + index * (width + 1) * 8
            copy(made + 8 + index * width * 8, item, width * 8)
            st_u8(made, 8 + count * width * 8 + index, ld_i64(item, width))
    return made


@native("i64(i64, i64, i64)")
def _listed_texts(state: int, items: int, size: int) -> int:
    """The array of texts that follow their lengths."""
    count = 0
    at = 0
    while at < size:
        at += 8 + max_i64(ld_i64(items + at, 0), 0)
        count += 1
    texts = step_bytes(state, count * PIECE_WORDS * 8)
    if texts == 0:
        return 0
    at = 0
    for index in range(count):
        length = ld_i64(items + at, 0)
        st_i64(texts, index * PIECE_WORDS + PIECE_TEXT, items + at + 8)
        st_i64(texts, index * PIECE_WORDS + PIECE_LENGTH, length)
        at += 8 + max_i64(length, 0)
    return array_of_texts(state, texts, count)


# -- orders -----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)")
def _goes_before(keys: int, a: int, b: int, how: int, order: int) -> int:
    """Whether the element at an index goes before that at another; not if they are equal."""
    flags = array_flags(keys, how)
    first = ld_u8(flags, a)
    second = ld_u8(flags, b)
    if first != 0 or second != 0:
        if order & NULLS_FIRST:
            return first > second
        return first < second
    if order & DESCENDING:
        return element_order(keys, b, keys, a, how) < 0
    return element_order(keys, a, keys, b, how) < 0


@native("i64(i64, i64, i64, i64)")
def ordered_indices(state: int, keys: int, how: int, order: int) -> int:
    """The indices in the order of their keys, stably: runs of 1, 2, 4, … are merged."""
    count = ld_i64(keys, 0)
    indices = ascending_indices(state, count)
    other = ascending_indices(state, count)
    if indices == 0 or other == 0:
        return 0
    run = 1
    while run < count:
        start = 0
        while start < count:
            middle = min_i64(start + run, count)
            end = min_i64(middle + run, count)
            left = start
            right = middle
            for n in range(start, end):
                take_right = 0
                if left >= middle:
                    take_right = 1
                elif right < end:
                    take_right = _goes_before(keys, ld_i64(indices, right), ld_i64(indices, left), how, order)
                if take_right != 0:
                    st_i64(other, n, ld_i64(indices, right))
                    right += 1
                else:
                    st_i64(other, n, ld_i64(indices, left))
                    left += 1
            start = end
        was = indices
        indices = other
        other = was
        run = run * 2
    return indices


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def array_order(state: int, array: int, how: int, keys: int, keys_how: int, order: int) -> int:
    """The elements in the order of the keys at their indices; there are as many keys."""
    indices = ordered_indices(state, keys, keys_how, order)
    if indices == 0:
        return 0
    return array_take(state, array, indices, ld_i64(array, 0), how)


@native("i64(i64, i64, i64)")
def first_indices(state: int, array: int, how: int) -> int:
    """The indices of elements without an equal one before them, ascending; their number is in the word after the room
    for all. NULLs are equal."""
    count = ld_i64(array, 0)
    indices = ordered_indices(state, array, how, ASCENDING)
    kept = step_bytes(state, (count + 1) * 8)
    if indices == 0 or kept == 0:
        return 0
    for n in range(count):
        index = ld_i64(indices, n)
        st_i64(kept, index, 1)
        if n > 0 and _goes_before(array, ld_i64(indices, n - 1), index, how, ASCENDING) == 0:
            st_i64(kept, index, 0)
    size = 0
    for n in range(count):
        if ld_i64(kept, n) != 0:
            st_i64(kept, size, n)
            size += 1
    st_i64(kept, count, size)
    return kept


@native("i64(i64, i64, i64)", export=True)
def array_distinct(state: int, array: int, how: int) -> int:
    """The elements without an equal one before them; NULLs are equal."""
    indices = first_indices(state, array, how)
    if indices == 0:
        return 0
    return array_take(state, array, indices, ld_i64(indices, ld_i64(array, 0)), how)


@native("i64(i64, i64, i64, i64)", export=True)
def array_remove(state: int, array: int, other: int, how: int) -> int:
    """The elements that do not equal the only one of another array."""
    count = ld_i64(array, 0)
    flags = array_flags(array, how)
    indices = ascending_indices(state, count)
    if indices == 0:
        return 0
    size = 0
    for n in range(count):
        if ld_u8(flags, n) != 0 or element_order(array, n, other, 0, how) != 0:
            st_i64(indices, size, n)
            size += 1
    return array_take(state, array, indices, size, how)


@native("i64(i64, i64, i64)", export=True)
def array_extreme(array: int, how: int, order: int) -> int:
    """The index of the first non-NULL element in this order; -1 if there is none."""
    flags = array_flags(array, how)
    best = -1
    for index in range(ld_i64(array, 0)):
        if ld_u8(flags, index) == 0 and (best < 0 or _goes_before(array, index, best, how, order) != 0):
            best = index
    return best


# -- sums and texts ---------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def array_sum(state: int, array: int, wide: int) -> int:
    """Put the sum of the words into the result words; an ErrorCode: OVERFLOW if it takes both, which `wide` allows."""
    low = 0
    high = 0
    for index in range(ld_i64(array, 0)):
        word = ld_i64(array, 1 + index)
        high = add128_hi(high, low, word)
        low = wadd(low, word)
    if wide == 0 and high != low >> 63:
        return OVERFLOW
    st_i64(state, STATE_RESULT, low)
    st_i64(state, STATE_RESULT_HIGH, high)
    return GOOD


@native("i64(i64, i64)", export=True)
def array_sum_floats(state: int, array: int) -> int:
    """Put the sum of the non-NULL doubles, from first to last, into STATE_RESULT; GOOD."""
    count = ld_i64(array, 0)
    total = 0.0
    for index in range(count):
        if ld_u8(array, 8 + count * 8 + index) == 0:
            total += ld_f64(array, 1 + index)
    st_f64(state, STATE_RESULT, total)
    return GOOD


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def array_join(
    state: int, array: int, separator: int, separator_length: int, missing: int, missing_length: int, shows: int
) -> int:
    """The texts of an array, with separators between them. shows: 1, NULLs are shown as `missing`; 0, they are not."""
    count = ld_i64(array, 0)
    flags = array + 8 + count * 8
    texts = array + array_bytes(count, 1)
    size = 0
    if count > 0:
        size = ld_i64(array, count)
    for index in range(count):
        size += separator_length + missing_length * (ld_u8(flags, index) & shows)
    made = step_bytes(state, size)
    if made == 0:
        return 0
    out = made
    begun = 0
    for index in range(count):
        null = ld_u8(flags, index)
        if null == 0 or shows != 0:
            if begun != 0:
                copy(out, separator, separator_length)
                out += separator_length
            begun = 1
            if null != 0:
                copy(out, missing, missing_length)
                out += missing_length
            else:
                start = text_start(array, index)
                length = ld_i64(array, 1 + index) - start
                copy(out, texts + start, length)
                out += length
    st_i64(state, STATE_RESULT, out - made)
    return made


@native("i64(i64, i64, i64)", export=True)
def array_commonest(state: int, array: int, how: int) -> int:
    """The index of the most frequent non-NULL element, the least of several; -1 if there is none, -2 without memory."""
    indices = ordered_indices(state, array, how, ASCENDING)
    if indices == 0:
        return -2
    flags = array_flags(array, how)
    best = -1
    most = 0
    first = 0
    for n in range(ld_i64(array, 0)):
        index = ld_i64(indices, n)
        if ld_u8(flags, index) == 0:
            if _goes_before(array, ld_i64(indices, first), index, how, ASCENDING) != 0:
                first = n
            if n + 1 - first > most:
                most = n + 1 - first
                best = ld_i64(indices, first)
    return best


@native("i64(i64, i64)", export=True)
def array_counts(state: int, array: int) -> int:
    """The count of each non-NULL text, as JSON in ascending order; the array is in that order."""
    count = ld_i64(array, 0)
    flags = array_flags(array, TEXT)
    texts = array + array_bytes(count, 1)
    size = 2
    if count > 0:
        size += GROWTH * ld_i64(array, count) + COUNT_BYTES * count
    made = step_bytes(state, size)
    if made == 0:
        return 0
    st_u8(made, 0, BRACE)
    out = made + 1
    n = 0
    while n < count:
        first = n
        while n < count and ld_u8(flags, n) == 0 and element_order(array, first, array, n, TEXT) == 0:
            n += 1
        if n == first:
            n += 1  # a NULL
        else:
            if out != made + 1:
                st_u8(out, 0, COMMA)
                out += 1
            st_u8(out, 0, QUOTE)
            out += 1
            for at in range(text_start(array, first), ld_i64(array, 1 + first)):
                byte = ld_u8(texts, at)
                if byte < 32 or byte == QUOTE or byte == BACKSLASH:
                    out = put_letter(out, byte)
                else:
                    st_u8(out, 0, byte)
                    out += 1
            st_u8(out, 0, QUOTE)
            st_u8(out, 1, COLON)
            out = _put_number(out + 2, n - first)
    st_u8(out, 0, CLOSING_BRACE)
    st_i64(state, STATE_RESULT, out + 1 - made)
    return made


@native("i64(i64, i64)")
def _put_number(out: int, number: int) -> int:
    """Write a number above 0; return the address after it."""
    power = 1
    while power <= sdiv(number, 10):
        power = power * 10
    while power > 0:
        st_u8(out, 0, ZERO + srem(sdiv(number, power), 10))
        out += 1
        power = sdiv(power, 10)
    return out
