"""The words of an output's hash, natively; cq/connectors/rowhash.py defines them and computes them with numpy.

A batch takes one pass a column over a word for each row, and one over those words; numpy needs a dozen passes each.

Sharing: none.
"""

from __future__ import annotations

from cq.lang.types import NAN_BITS
from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    f64_bits,
    ld_bit,
    ld_f32,
    ld_f64,
    ld_i8,
    ld_i16,
    ld_i32,
    ld_i64,
    pick,
    shl,
    shr_u,
    st_i64,
    wadd,
    wmul,
)
from cq.runtime.containers.strings import HASH_FACTOR, MIX_FACTOR
from cq.runtime.flow.arrow_words import BIT, F32, I8, I16, I32, I64, I128, UTF8

ROW_START = 0x243F6A8885A308D3
MIX_SECOND = 0x94D049BB133111EB - (1 << 64)
NULL_WORD = 0xD6E8FEB86659FD93 - (1 << 64)
LONG_BYTES = 256  # longer strings are hashed another way, which only the Python form knows


@native("i64(i64)")
def row_mixed(word: int) -> int:
    """The word with its bits spread over the whole word."""
    word ^= shr_u(word, 32)
    word = wmul(word, MIX_FACTOR)
    word ^= shr_u(word, 29)
    word = wmul(word, MIX_SECOND)
    return word ^ shr_u(word, 32)


@native("i64(i64, i64)")
def _text_word(address: int, size: int) -> int:
    """The word of a string, eight bytes a step; up to 7 bytes past its end are read."""
    word = row_mixed(wmul(size, HASH_FACTOR))
    at = 0
    while at < size:
        loaded = ld_i64(address + at, 0)
        left = size - at
        if left < 8:
            loaded &= shl(1, left * 8) - 1
        word = row_mixed(word ^ loaded)
        at += 8
    return word


@native("i64(i64, i64, i64)")
def _fixed_word(storage: int, values: int, place: int) -> int:
    """The word of a value of fixed width, at this place of its column."""
    if storage == I64:
        return ld_i64(values, place)
    if storage == I32:
        return ld_i32(values, place)
    if storage == I128:  # up to 18 digits: the low word, as the high one is its sign
        low = ld_i64(values, place * 2)
        return low ^ wmul(ld_i64(values, place * 2 + 1) ^ low >> 63, HASH_FACTOR)
    if storage == BIT:
        return pick(ld_bit(values, place), 1, 0)
    if storage == I16:
        return ld_i16(values, place)
    if storage == I8:
        return ld_i8(values, place)
    x = ld_f32(values, place) if storage == F32 else ld_f64(values, place)
    return pick(x == x, f64_bits(x), NAN_BITS)  # noqa: PLR0124  false for NaN


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def hash_column(words: int, rows: int, storage: int, values: int, offsets: int, validity: int, first: int) -> int:
    """Mix the value of every row into its word and return 1; 0 if a string is too long for that.

    first: the place in the column of the first row.  validity: 0, or -> bits.
    """
    if storage == UTF8:
        for row in range(rows):
            begin = ld_i32(offsets, first + row)
            size = ld_i32(offsets, first + row + 1) - begin
            word = NULL_WORD
            if validity == 0 or ld_bit(validity, first + row):
                if size > LONG_BYTES:
                    return 0
                word = _text_word(values + begin, size)
            st_i64(words, row, row_mixed(ld_i64(words, row) ^ word))
    elif storage == I64 and validity == 0:
        for row in range(rows):
            st_i64(words, row, row_mixed(ld_i64(words, row) ^ ld_i64(values + first * 8, row)))
    else:
        for row in range(rows):
            word = _fixed_word(storage, values, first + row)
            if validity != 0:
                word = pick(ld_bit(validity, first + row), word, NULL_WORD)
            st_i64(words, row, row_mixed(ld_i64(words, row) ^ word))
    return 1


@native("i64(i64, i64)", export=True)
def hash_begin(words: int, rows: int) -> int:
    """Set the words of rows without columns."""
    for row in range(rows):
        st_i64(words, row, ROW_START)
    return rows


@native("i64(i64, i64, i64)", export=True)
def hash_total(words: int, rows: int, number: int) -> int:
    """The sum over rows of their words mixed with their numbers, which begin at `number`."""
    total = 0
    for row in range(rows):
        total = wadd(total, row_mixed(ld_i64(words, row) ^ wmul(number + row, HASH_FACTOR)))
    return total
