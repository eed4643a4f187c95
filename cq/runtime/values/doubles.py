"""DOUBLE and REAL as decimals: text to the nearest double, the shortest text of a double, rounding and DECIMAL by it.

Conventions as in numerals.py. A decimal is (significand, exponent) with the value significand * 10**exponent; the
shortest one of a double has the fewest digits that read back as it, among those it is the nearest, and no final zero.
The C library prints and scans, with digits and exponent only; hot loops avoid it: reading a number of up to 15 digits
near 1, and rounding one, is a single exact product or quotient.

Source: W. D. Clinger, How to read floating point numbers accurately, 1990 (the exact case).
Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.lang.types import NAN_BITS
from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    PRINTED_BYTES,
    bits_f64,
    f32_round,
    f64_abs,
    f64_bits,
    f64_div,
    f64_to_i64,
    i64_to_f64,
    ld_u8,
    print_f64,
    scan_f64,
    sdiv,
    srem,
    st_f64,
)
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.numerals import (
    BAD,
    GOOD,
    LOWER_E,
    MAX_NUMBER_CHARACTERS,
    MINUS,
    MOST_DIGITS,
    NINE,
    NO_MEMORY,
    PLUS,
    POINT,
    ZERO,
    decimal_of,
    digit_count,
    divided_half_up,
    finish_text,
    gathered,
    letters,
    number_at,
    number_parts,
    power_of_ten,
    put_byte,
    put_number,
    put_word,
    trimmed,
    word_of,
)
from cq.runtime.values.text import step_bytes, step_give_back

LOWER_D, LOWER_F, UPPER_E = 100, 102, 69
NAN_WORD, INF_WORD, INFINITY_WORD = letters(b"nan"), letters(b"inf"), letters(b"infinity")
JAVA_NAN, JAVA_INFINITY, JAVA_ZERO = letters(b"NaN"), letters(b"Infinity"), letters(b"0.0")
INFINITE_BITS = 0x7FF0000000000000
MANTISSA_MASK = (1 << 52) - 1
EXACT_INTEGER = 1 << 53  # every integer up to here is a double
EXACT_POWER = 22  # 10**22 is the largest power of ten that is a double
SMALLEST_NORMAL, SMALLEST_NORMAL_REAL = 2.2250738585072014e-308, 1.1754943508222875e-38
SCAN_BYTES = 32  # room for 19 digits, `e`, an exponent of up to 6 characters, and a zero byte
SAFE_UNITS = 1e14  # |x| * 10**digits below this: k + 1/2 is exact as k * 10 + 5, a double, over a power of ten
MOST_PLACES = 400  # no double has a digit further from the point
DECIMAL_LIMIT = 1e18  # the first number with too many digits for any DECIMAL
DOUBLE_TEXT_BYTES = 32  # the longest text has 24
PLAIN_LEAST, PLAIN_MOST = -3, 7  # Java writes no `E` for exponents in this range, the upper end excluded


@native("f64(i64)")
def double_power_of_ten(n: int) -> float:
    """10**n for 0 <= n <= EXACT_POWER, exactly."""
    power = 1.0
    for _ in range(n):
        power = power * 10.0
    return power


# -- text to double ---------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)", export=True)
def read_double(state: int, text: int, length: int, real: int) -> int:
    """The nearest double of a number, optionally followed by `d` or `f`, or of `nan`, `inf` or `infinity` in any case.

    For a REAL it is rounded once more.
    """
    first, last = trimmed(text, length)
    if last - first > MAX_NUMBER_CHARACTERS:
        return BAD
    end = last
    if last > first:
        suffix = ld_u8(text, last - 1) | 32
        if suffix == LOWER_D or suffix == LOWER_F:
            end = last - 1
    whole, whole_end, fraction, fraction_end, exponent, sign = number_parts(text, first, end)
    if sign == 0:
        return _read_word(state, text, first, last)
    value, count = gathered(text, whole, whole_end, 0, 0)
    value, count = gathered(text, fraction, fraction_end, value, count)
    power = exponent - (fraction_end - fraction)
    made = 0.0
    if count <= MOST_DIGITS and value <= EXACT_INTEGER and power >= -EXACT_POWER and power <= EXACT_POWER:
        made = exact_double(value, power)
    elif value != 0:
        room = step_bytes(state, MAX_NUMBER_CHARACTERS + SCAN_BYTES)
        if room == 0:
            return NO_MEMORY
        made = scanned_double(room, text, whole, whole_end, fraction, fraction_end, power)
        step_give_back(state, MAX_NUMBER_CHARACTERS + SCAN_BYTES)
    if sign < 0:
        made = -made
    if real != 0:
        made = f32_round(made)
    st_f64(state, STATE_RESULT, made)
    return GOOD


@native("f64(i64, i64)", export=True)
def exact_double(value: int, power: int) -> float:
    """The double nearest to value * 10**power, if both are doubles: up to EXACT_INTEGER and EXACT_POWER."""
    if power >= 0:
        return i64_to_f64(value) * double_power_of_ten(power)
    return f64_div(i64_to_f64(value), double_power_of_ten(-power))


@native("f64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def scanned_double(
    room: int, text: int, whole: int, whole_end: int, fraction: int, fraction_end: int, power: int
) -> float:
    """The double nearest to the digits of a number (`number_parts`), as one number, times 10**power.

    room: for the digits, and SCAN_BYTES.
    """
    out = _copy_digits(room, text, whole, whole_end)
    return _scanned(room, _copy_digits(out, text, fraction, fraction_end), power)


@native("i64(i64, i64, i64, i64)")
def _read_word(state: int, text: int, first: int, last: int) -> int:
    at = first
    negative = False
    if at < last and (ld_u8(text, at) == PLUS or ld_u8(text, at) == MINUS):
        negative = ld_u8(text, at) == MINUS
        at += 1
    word = word_of(text, at, last, 1)
    made = bits_f64(INFINITE_BITS)
    if word == NAN_WORD and at == first:
        made = bits_f64(NAN_BITS)
    elif word != INF_WORD and word != INFINITY_WORD:
        return BAD
    if negative:
        made = -made
    st_f64(state, STATE_RESULT, made)
    return GOOD


@native("i64(i64, i64, i64, i64)")
def _copy_digits(out: int, text: int, first: int, last: int) -> int:
    for at in range(first, last):
        out = put_byte(out, ld_u8(text, at))
    return out


@native("f64(i64, i64, i64)")
def _scanned(digits: int, end: int, exponent: int) -> float:
    """The double nearest to the digits from `digits` to `end` with this exponent; there is room after them."""
    out = put_byte(end, LOWER_E)
    if exponent < 0:
        out = put_byte(out, MINUS)
        exponent = -exponent
    put_byte(put_number(out, exponent, 1), 0)
    return scan_f64(digits)


# -- double to its shortest decimal -----------------------------------------------------------------------------------


@native("f64(i64, i64, i64)")
def _double_of(room: int, significand: int, exponent: int) -> float:
    """The double nearest to significand * 10**exponent; `room` has SCAN_BYTES."""
    return _scanned(room, put_number(room, significand, 1), exponent)


@native("(i64, i64)(i64, f64, i64)")
def _printed(room: int, x: float, digits: int) -> tuple[int, int]:
    """The decimal of this many digits nearest to x; `room` has PRINTED_BYTES."""
    size = print_f64(x, digits, room)
    significand = 0
    at = 0
    while ld_u8(room, at) != LOWER_E:
        byte = ld_u8(room, at)
        if byte >= ZERO and byte <= NINE:
            significand = significand * 10 + byte - ZERO
        at += 1
    exponent = number_at(room, at + 2, size)
    if ld_u8(room, at + 1) == MINUS:
        exponent = -exponent
    return significand, exponent - digits + 1


@native("i64(i64, i64, i64, f64, i64)")
def _gives_back(room: int, significand: int, exponent: int, x: float, real: int) -> int:
    """Whether the decimal reads as x."""
    made = _double_of(room, significand, exponent)
    if real != 0:
        made = f32_round(made)
    return made == x


@native("(i64, i64)(i64, i64)")
def _without_zeros(significand: int, exponent: int) -> tuple[int, int]:
    while significand != 0 and srem(significand, 10) == 0:
        significand = sdiv(significand, 10)
        exponent += 1
    return significand, exponent


@native("(i64, i64)(i64, f64, i64)")
def _shortest_in(room: int, x: float, real: int) -> tuple[int, int]:
    digits = 15  # if fewer digits read back as a normal double, they are these 15 without final zeros
    most = 17
    least_normal = SMALLEST_NORMAL
    if real != 0:
        digits = 6
        most = 9
        least_normal = SMALLEST_NORMAL_REAL
    if x < least_normal:
        digits = 2  # as Java: 4.9E-324, not 5E-324
    # below a power of two doubles are denser: the nearest decimal may read as another, and the next one above as x
    lopsided = f64_bits(x) & MANTISSA_MASK == 0
    while digits < most:
        significand, exponent = _printed(room, x, digits)
        if _gives_back(room + PRINTED_BYTES, significand, exponent, x, real) != 0:
            return _without_zeros(significand, exponent)
        if lopsided and _gives_back(room + PRINTED_BYTES, significand + 1, exponent, x, real) != 0:
            return _without_zeros(significand + 1, exponent)
        digits += 1
    significand, exponent = _printed(room, x, most)
    return _without_zeros(significand, exponent)


@native("(i64, i64)(i64, f64, i64)")
def shortest(state: int, x: float, real: int) -> tuple[int, int]:
    """The shortest decimal of finite x > 0, a DOUBLE or a REAL; (0, 0) without memory."""
    room = step_bytes(state, PRINTED_BYTES + SCAN_BYTES)
    if room == 0:
        return 0, 0
    significand, exponent = _shortest_in(room, x, real)
    step_give_back(state, PRINTED_BYTES + SCAN_BYTES)
    return significand, exponent


# -- by the shortest decimal: rounding, DECIMAL, text -----------------------------------------------------------------


@native("i64(f64, i64)")
def _small_units(x: float, digits: int) -> int:
    """x * 10**digits half up by the shortest decimal of x, for x >= 0 below SAFE_UNITS * 10**-digits.

    There the shortest decimal reaches a tie exactly if x is not below the double nearest to the tie.
    """
    unit = double_power_of_ten(digits)
    units = f64_to_i64(x * unit)  # one too many if the product rounds up to an integer, which is then the result
    if x >= f64_div(i64_to_f64(units * 10 + 5), unit * 10.0):
        units += 1
    return units


@native("i64(f64, i64)")
def _are_small(x: float, digits: int) -> int:
    """Whether `_small_units` applies."""
    return digits >= 0 and digits < EXACT_POWER and x * double_power_of_ten(digits) < SAFE_UNITS


@native("i64(i64, f64, i64, i64)", export=True)
def round_double(state: int, x: float, digits: int, real: int) -> int:
    """x half up at this many digits after the point, by its shortest decimal; never -0.0. An `ErrorCode`."""
    magnitude = f64_abs(x)
    made = x
    if f64_bits(magnitude) < INFINITE_BITS and digits <= MOST_PLACES:
        made = 0.0
        if magnitude > 0.0 and digits >= -MOST_PLACES:
            if real == 0 and _are_small(magnitude, digits) != 0:
                made = f64_div(i64_to_f64(_small_units(magnitude, digits)), double_power_of_ten(digits))
            else:
                significand, exponent = shortest(state, magnitude, real)
                room = step_bytes(state, SCAN_BYTES)
                if significand == 0 or room == 0:
                    return NO_MEMORY
                made = _rounded(room, magnitude, significand, exponent, digits)
                step_give_back(state, SCAN_BYTES)
        if x < 0.0 and made > 0.0:
            made = -made
    if real != 0:
        made = f32_round(made)
    st_f64(state, STATE_RESULT, made)
    return GOOD


@native("f64(i64, f64, i64, i64, i64)")
def _rounded(room: int, x: float, significand: int, exponent: int, digits: int) -> float:
    """The double nearest to the decimal rounded at this many digits; x is the double of the decimal."""
    cut = -(exponent + digits)  # how many of its last digits are dropped
    if cut <= 0:
        return x
    if cut > digit_count(significand):
        return 0.0
    return _double_of(room, divided_half_up(significand, power_of_ten(cut)), -digits)


@native("i64(i64, f64, i64, i64, i64)", export=True)
def double_to_decimal(state: int, x: float, real: int, precision: int, scale: int) -> int:
    """The unscaled value of DECIMAL(precision, scale), the shortest decimal of x half up. An `ErrorCode`."""
    magnitude = f64_abs(x)
    if not magnitude < DECIMAL_LIMIT:  # NaN too
        return BAD
    sign = 1
    if x < 0.0:
        sign = -1
    if magnitude == 0.0:
        return decimal_of(state, 0, 1, 0, precision, 1)
    if real == 0 and _are_small(magnitude, scale) != 0:
        units = _small_units(magnitude, scale)
        return decimal_of(state, units, digit_count(units), 0, precision, sign)
    significand, exponent = shortest(state, magnitude, real)
    if significand == 0:
        return NO_MEMORY
    return decimal_of(state, significand, digit_count(significand), exponent + scale, precision, sign)


@native("i64(i64, f64, i64)", export=True)
def write_double(state: int, x: float, real: int) -> int:
    """Java's text of a DOUBLE or REAL: its shortest decimal, at least one digit after the point, `1.0E7` from 10**7."""
    text = step_bytes(state, DOUBLE_TEXT_BYTES)
    if text == 0:
        return 0
    out = text
    magnitude = f64_abs(x)
    if f64_bits(magnitude) > INFINITE_BITS:
        return finish_text(state, text, put_word(out, JAVA_NAN, 3))
    if f64_bits(x) < 0:
        out = put_byte(out, MINUS)
    if f64_bits(magnitude) == INFINITE_BITS:
        return finish_text(state, text, put_word(out, JAVA_INFINITY, 8))
    if magnitude == 0.0:
        return finish_text(state, text, put_word(out, JAVA_ZERO, 3))
    significand, exponent = shortest(state, magnitude, real)
    if significand == 0:
        return 0
    return finish_text(state, text, _put_decimal(out, significand, exponent))


@native("i64(i64, i64, i64)")
def _put_decimal(out: int, significand: int, exponent: int) -> int:
    """The decimal as Java writes it."""
    count = digit_count(significand)
    first = exponent + count - 1  # the exponent of the first digit
    if first < PLAIN_LEAST or first >= PLAIN_MOST:
        unit = power_of_ten(count - 1)
        out = put_byte(put_byte(out, ZERO + sdiv(significand, unit)), POINT)
        rest = 1
        if count > 1:
            rest = count - 1
        out = put_byte(put_number(out, srem(significand, unit), rest), UPPER_E)
        if first < 0:
            return put_number(put_byte(out, MINUS), -first, 1)
        return put_number(out, first, 1)
    if first < 0:
        out = put_byte(put_byte(out, ZERO), POINT)
        return put_number(out, significand, count - first - 1)
    if exponent >= 0:
        out = put_number(out, significand * power_of_ten(exponent), 1)
        return put_byte(put_byte(out, POINT), ZERO)
    unit = power_of_ten(-exponent)
    out = put_byte(put_number(out, sdiv(significand, unit), 1), POINT)
    return put_number(out, srem(significand, unit), -exponent)
