"""Integers, decimals and truth values as text and back: the native counterpart of cq/lang/value_text.py, equal to it.

Readers take a text and return an `ErrorCode`: 0, with the value in word STATE_RESULT of the state, or the reason for
no value. Writers return the address of fresh step bytes, with the length in STATE_RESULT, or 0 without memory.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    MIN64,
    ld_u8,
    max_i64,
    mul_ovf,
    sdiv,
    shl,
    shr_u,
    srem,
    st_i64,
    st_u8,
    sub_ovf,
    udiv,
    urem,
    wadd,
    wmul,
    wsub,
)
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode
from cq.runtime.values.text import step_bytes

GOOD = int(ErrorCode.NONE)
BAD = int(ErrorCode.BAD_CAST)
OVERFLOW = int(ErrorCode.OVERFLOW)
NO_MEMORY = int(ErrorCode.NO_MEMORY)

MAX_NUMBER_CHARACTERS = 400  # as in cq/lang/value_text.py
WHITE = 32  # bytes up to this one are white space
PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57
LOWER_E, UPPER_E = 101, 69
MOST_DIGITS = 18  # of a significand kept in one word
HALF_OF_MOST = 5 * 10**18  # from here on half up at 19 digits gives 10**19, which does not fit a word


@native("(i64, i64)(i64, i64)", inline=True)
def trimmed(text: int, length: int) -> tuple[int, int]:
    """The offsets of the text without white space around it."""
    first = 0
    last = length
    while first < last and ld_u8(text, first) <= WHITE:
        first += 1
    while last > first and ld_u8(text, last - 1) <= WHITE:
        last -= 1
    return first, last


@native("i64(i64, i64, i64)", inline=True)
def digits_end(text: int, at: int, end: int) -> int:
    """Where the run of digits that begins at `at` ends."""
    stop = at
    while stop < end and ld_u8(text, stop) >= ZERO and ld_u8(text, stop) <= NINE:
        stop += 1
    return stop


@native("i64(i64, i64, i64)", inline=True)
def number_at(text: int, first: int, last: int) -> int:
    """The number of up to 18 digits; 0 if there are none."""
    value = 0
    for at in range(first, last):
        value = value * 10 + ld_u8(text, at) - ZERO
    return value


def letters(text: bytes) -> int:
    """Up to 8 ASCII bytes as the number used by `word_of` and `put_word`; for module constants."""
    return int.from_bytes(text, "big")


@native("i64(i64, i64, i64, i64)", inline=True)
def word_of(text: int, first: int, last: int, fold: int) -> int:
    """Up to 8 bytes, in lower case if `fold` is 1, as one big-endian number; -1 if there are more."""
    if last - first > 8:
        return -1
    word = 0
    for at in range(first, last):
        byte = ld_u8(text, at)
        if fold != 0 and byte >= 65 and byte <= 90:
            byte += 32
        word = shl(word, 8) | byte
    return word


@native("i64(i64, i64, i64)", inline=True)
def put_word(out: int, word: int, count: int) -> int:
    """Write the last `count` bytes of a big-endian number; return the address after them."""
    for at in range(count):
        st_u8(out, at, shr_u(word, 8 * (count - 1 - at)) & 255)
    return out + count


@native("i64(i64, i64, i64)", inline=True)
def put_number(out: int, value: int, width: int) -> int:
    """Write the unsigned value with at least `width` digits; return the address after them."""
    count = 1
    rest = udiv(value, 10)
    while rest != 0:
        count += 1
        rest = udiv(rest, 10)
    at = max_i64(count, width)
    after = out + at
    rest = value
    while at > 0:
        at -= 1
        st_u8(out, at, ZERO + urem(rest, 10))
        rest = udiv(rest, 10)
    return after


@native("i64(i64, i64)", inline=True)
def put_byte(out: int, byte: int) -> int:
    """Write one byte; return the address after it."""
    st_u8(out, 0, byte)
    return out + 1


@native("i64(i64, i64, i64)", inline=True)
def finish_text(state: int, text: int, end: int) -> int:
    """Make the text from `text` to `end` the result."""
    st_i64(state, STATE_RESULT, end - text)
    return text


@native("i64(i64)", inline=True)
def power_of_ten(n: int) -> int:
    """10**n for 0 <= n <= 18."""
    power = 1
    for _ in range(n):
        power = power * 10
    return power


@native("i64(i64)", inline=True)
def digit_count(value: int) -> int:
    """The number of digits of a value >= 0; 1 for 0."""
    count = 1
    rest = udiv(value, 10)
    while rest != 0:
        count += 1
        rest = udiv(rest, 10)
    return count


@native("i64(i64, i64)", export=True)
def divided_half_up(value: int, unit: int) -> int:
    """value / unit for unit > 0 to the nearest integer, halves away from zero."""
    quotient = sdiv(value, unit)
    rest = srem(value, unit)
    if rest < 0:
        if wadd(rest, unit) <= wsub(0, rest):
            quotient -= 1
    elif rest >= unit - rest:
        quotient += 1
    return quotient


# -- integers and decimals --------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)", export=True)
def read_integer(state: int, text: int, length: int, low: int, high: int) -> int:
    """An optional sign and digits, the value between low and high."""
    at, end = trimmed(text, length)
    if end - at > MAX_NUMBER_CHARACTERS:
        return BAD
    negative = False
    if at < end:
        sign = ld_u8(text, at)
        if sign == PLUS or sign == MINUS:
            negative = sign == MINUS
            at += 1
    if at >= end:
        return BAD
    value = 0  # counts downwards: the least integer has no positive counterpart
    while at < end:
        digit = ld_u8(text, at) - ZERO
        if digit < 0 or digit > 9 or mul_ovf(value, 10):
            return BAD
        value = wmul(value, 10)
        if sub_ovf(value, digit):
            return BAD
        value = wsub(value, digit)
        at += 1
    if not negative:
        if value == MIN64:
            return BAD
        value = wsub(0, value)
    if value < low or value > high:
        return BAD
    st_i64(state, STATE_RESULT, value)
    return GOOD


@native("(i64, i64, i64, i64, i64, i64)(i64, i64, i64)", inline=True)
def number_parts(text: int, first: int, end: int) -> tuple[int, int, int, int, int, int]:
    """Where a number's digits before and after its point are, its exponent, and its sign: 1, -1, or 0: no number."""
    at = first
    sign = 1
    if at < end:
        mark = ld_u8(text, at)
        if mark == PLUS or mark == MINUS:
            at += 1
            if mark == MINUS:
                sign = -1
    whole = at
    whole_end = digits_end(text, at, end)
    fraction = whole_end
    fraction_end = whole_end
    if whole_end < end and ld_u8(text, whole_end) == POINT:
        fraction = whole_end + 1
        fraction_end = digits_end(text, fraction, end)
    if whole_end - whole + fraction_end - fraction == 0:
        sign = 0
    at = fraction_end
    exponent = 0
    if at < end and (ld_u8(text, at) == LOWER_E or ld_u8(text, at) == UPPER_E):
        at += 1
        down = False
        if at < end:
            mark = ld_u8(text, at)
            if mark == PLUS or mark == MINUS:
                at += 1
                down = mark == MINUS
        after = digits_end(text, at, end)
        if after == at or after - at > 5:
            return whole, whole_end, fraction, fraction_end, 0, 0
        exponent = number_at(text, at, after)
        if down:
            exponent = -exponent
        at = after
    if at != end:
        sign = 0
    return whole, whole_end, fraction, fraction_end, exponent, sign


@native("(i64, i64)(i64, i64, i64, i64, i64)", inline=True)
def gathered(text: int, first: int, last: int, value: int, count: int) -> tuple[int, int]:
    """`value` followed by further digits, and `count` of them; from the first that is not 0, MOST_DIGITS are kept."""
    for at in range(first, last):
        digit = ld_u8(text, at) - ZERO
        if count > 0 or digit != 0:
            count += 1
            if count <= MOST_DIGITS:
                value = value * 10 + digit
    return value, count


@native("i64(i64, i64, i64, i64, i64)", export=True)
def read_decimal(state: int, text: int, length: int, precision: int, scale: int) -> int:
    """The unscaled value of DECIMAL(precision, scale), rounded half up."""
    first, last = trimmed(text, length)
    if last - first > MAX_NUMBER_CHARACTERS:
        return BAD
    whole, whole_end, fraction, fraction_end, exponent, sign = number_parts(text, first, last)
    if sign == 0:
        return BAD
    value, count = gathered(text, whole, whole_end, 0, 0)
    value, count = gathered(text, fraction, fraction_end, value, count)
    shift = scale + exponent - (fraction_end - fraction)  # the unscaled value is all digits * 10**shift
    if count > MOST_DIGITS:  # of the dropped digits only the first can decide, and never alone
        shift += count - MOST_DIGITS
        count = MOST_DIGITS
        if shift > 0:
            return BAD
        if shift == 0:  # the first digit not kept rounds
            value += _rounds_up(text, whole, whole_end, fraction, fraction_end)
    return decimal_of(state, value, count, shift, precision, sign)


@native("i64(i64, i64, i64, i64, i64)")
def _rounds_up(text: int, whole: int, whole_end: int, fraction: int, fraction_end: int) -> int:
    """Whether digit MOST_DIGITS + 1, counted from the first that is not 0, is 5 or more."""
    count = 0
    digit = 0
    for at in range(whole, fraction_end):
        if count <= MOST_DIGITS and (at < whole_end or at >= fraction):
            digit = ld_u8(text, at) - ZERO
            if count > 0 or digit != 0:
                count += 1
    return digit >= 5


@native("i64(i64, i64, i64, i64, i64, i64)")
def decimal_of(state: int, value: int, count: int, shift: int, precision: int, sign: int) -> int:
    """value * 10**shift, half up, if it has at most `precision` digits; `value` has `count` digits."""
    made = 0
    if value != 0:
        if count + shift > precision:
            return BAD
        if shift >= 0:
            made = value * power_of_ten(shift)
        elif count + shift >= 0:
            made = divided_half_up(value, power_of_ten(-shift))
        if made >= power_of_ten(precision):
            return BAD
    if sign < 0:
        made = -made
    st_i64(state, STATE_RESULT, made)
    return GOOD


@native("i64(i64, i64)", export=True)
def write_integer(state: int, value: int) -> int:
    """The digits, after `-` below zero."""
    return write_decimal(state, value, 0)


@native("i64(i64, i64, i64)", export=True)
def write_decimal(state: int, value: int, scale: int) -> int:
    """The plain text with all digits of its scale."""
    text = step_bytes(state, 24)
    if text == 0:
        return 0
    out = text
    rest = value
    if value < 0:
        out = put_byte(out, MINUS)
        rest = wsub(0, value)  # as unsigned bits, right for the least integer too
    unit = power_of_ten(scale)
    out = put_number(out, udiv(rest, unit), 1)
    if scale > 0:
        out = put_number(put_byte(out, POINT), urem(rest, unit), scale)
    return finish_text(state, text, out)


T, TRUE, Y, YES, ONE = (letters(w) for w in (b"t", b"true", b"y", b"yes", b"1"))
F, FALSE, N, NO, NONE = (letters(w) for w in (b"f", b"false", b"n", b"no", b"0"))


@native("i64(i64, i64, i64)", export=True)
def read_boolean(state: int, text: int, length: int) -> int:
    """1 for t, true, y, yes, 1 and 0 for f, false, n, no, 0, in any case."""
    first, last = trimmed(text, length)
    word = word_of(text, first, last, 1)
    if word == T or word == TRUE or word == Y or word == YES or word == ONE:
        st_i64(state, STATE_RESULT, 1)
        return GOOD
    if word == F or word == FALSE or word == N or word == NO or word == NONE:
        st_i64(state, STATE_RESULT, 0)
        return GOOD
    return BAD


@native("i64(i64, i64, i64)", export=True)
def round_integer(state: int, value: int, digits: int) -> int:
    """The value half up at this many digits before the point, given as a negative number. OVERFLOW beyond 64 bits."""
    made = value
    if digits < 0:
        made = 0
        if digits >= -MOST_DIGITS:
            step = power_of_ten(-digits)
            steps = divided_half_up(value, step)
            if mul_ovf(steps, step):
                return OVERFLOW
            made = wmul(steps, step)
        elif digits == -MOST_DIGITS - 1 and (value >= HALF_OF_MOST or value <= -HALF_OF_MOST):
            return OVERFLOW
    st_i64(state, STATE_RESULT, made)
    return GOOD
