"""DECIMALs of more than 18 digits: two words, hi (signed) and lo (unsigned bits), with less than 10**38 in them.

Results are exact and rounded once, halves away from zero; a magnitude has 256 bits where a product, or a dividend
scaled for its quotient, needs them. Functions put their result into STATE_RESULT and STATE_RESULT_HIGH and return an
`ErrorCode`, as in numerals.py.

Source: D. Knuth, TAOCP volume 2, 4.3.1, algorithm D with two digits of 64 bits.
Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.lang.types import MAX_DECIMAL_DIGITS
from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    add128w_hi,
    bits_f64,
    clz,
    f64_abs,
    ld_i64,
    ld_u8,
    max_i64,
    pick,
    shl,
    shr_u,
    smulhi,
    st_i64,
    st_u8,
    ult,
    umulhi,
    wadd,
    wmul,
    wsub,
)
from cq.runtime.layout.abi import STATE_RESULT, STATE_RESULT_HIGH, ErrorCode
from cq.runtime.layout.words import Struct
from cq.runtime.values.doubles import shortest
from cq.runtime.values.int128 import HIDDEN_BIT, divide_step, negate128, to_double, udivmod128
from cq.runtime.values.numerals import (
    BAD,
    GOOD,
    MAX_NUMBER_CHARACTERS,
    MINUS,
    NO_MEMORY,
    POINT,
    ZERO,
    finish_text,
    number_parts,
    put_byte,
    put_number,
    trimmed,
)
from cq.runtime.values.text import step_bytes

OVERFLOW = int(ErrorCode.OVERFLOW)
MOST = MAX_DECIMAL_DIGITS
HALF_OF_DIGITS = 19  # 10**19 is the largest power of ten in one word, without a sign
TEN_19 = 10**HALF_OF_DIGITS - (1 << 64)
TEN_32_HI, TEN_32_LO = 10**32 >> 64, (10**32 & (1 << 64) - 1) - (1 << 64)
DECIMAL_LIMIT = 1e38  # the first number with too many digits for any DECIMAL
QUOTIENT_BITS = 57  # enough that the bits cut off round a double, of 53
TEXT_BYTES = 48  # the longest text has 38 digits, a sign, a zero and a point
DOWN, CUT, UP = -1, 0, 1  # which integer is taken


@native("(i64, i64)(i64)")
def power_of_ten_128(n: int) -> tuple[int, int]:
    """10**n for 0 <= n <= 38."""
    small = pick(n & 1 != 0, 10, 1) * pick(n & 2 != 0, 100, 1) * pick(n & 4 != 0, 10_000, 1)
    if n >= 32:
        return wadd(wmul(small, TEN_32_HI), umulhi(small, TEN_32_LO)), wmul(small, TEN_32_LO)
    middle = small * pick(n & 8 != 0, 100_000_000, 1)
    large = pick(n & 16 != 0, 10_000_000_000_000_000, 1)
    return umulhi(middle, large), wmul(middle, large)


@native("(i64, i64)(i64, i64)")
def magnitude(hi: int, lo: int) -> tuple[int, int]:
    """|(hi, lo)|."""
    if hi < 0:
        return negate128(hi, lo)
    return hi, lo


@native("i64(i64, i64, i64, i64)")
def below128(hi: int, lo: int, other_hi: int, other_lo: int) -> int:
    """Whether the unsigned (hi, lo) is below the other."""
    return pick(ult(hi, other_hi) or (hi == other_hi and ult(lo, other_lo)), 1, 0)


@native("(i64, i64, i64, i64)(i64, i64, i64, i64)")
def product256(hi: int, lo: int, other_hi: int, other_lo: int) -> tuple[int, int, int, int]:
    """The product of two unsigned values of 128 bits, from the highest word to the lowest."""
    first = umulhi(lo, other_lo)
    cross = wmul(hi, other_lo)
    other = wmul(lo, other_hi)
    second = wadd(first, cross)
    carry = pick(ult(second, cross), 1, 0)
    second = wadd(second, other)
    carry += pick(ult(second, other), 1, 0)
    upper = umulhi(hi, other_lo)
    lower = umulhi(lo, other_hi)
    third = wadd(upper, lower)
    fourth = pick(ult(third, lower), 1, 0)
    last = wmul(hi, other_hi)
    third = wadd(third, last)
    fourth += pick(ult(third, last), 1, 0)
    third = wadd(third, carry)
    fourth += pick(ult(third, carry), 1, 0)
    return wadd(umulhi(hi, other_hi), fourth), third, second, wmul(lo, other_lo)


@native("(i64, i64, i64)(i64, i64, i64, i64, i64)")
def _divide_three(top: int, middle: int, low: int, hi: int, lo: int) -> tuple[int, int, int]:
    """Quotient and remainder of (top, middle, low) by (hi, lo), whose first bit is set; (top, middle) < (hi, lo)."""
    quotient = -1
    rest = wadd(middle, hi)
    carried = ult(rest, hi)
    if top != hi:
        quotient = divide_step(top, middle, hi)
        rest = wsub(middle, wmul(quotient, hi))
        carried = False
    while not carried and below128(rest, low, umulhi(quotient, lo), wmul(quotient, lo)) != 0:
        quotient = wsub(quotient, 1)
        rest = wadd(rest, hi)
        carried = ult(rest, hi)
    taken = wmul(quotient, lo)
    borrow = pick(ult(low, taken), 1, 0)
    return quotient, wsub(wsub(rest, umulhi(quotient, lo)), borrow), wsub(low, taken)


@native("(i64, i64, i64, i64)(i64, i64, i64, i64, i64, i64)")
def divided256(n3: int, n2: int, n1: int, n0: int, hi: int, lo: int) -> tuple[int, int, int, int]:
    """Quotient and remainder, two words each, of unsigned values where (n3, n2) < (hi, lo)."""
    if hi == 0:
        if n2 == 0:
            q_hi, q_lo, rest = udivmod128(n1, n0, lo)
            return q_hi, q_lo, 0, rest
        q_hi = divide_step(n2, n1, lo)
        middle = wsub(n1, wmul(q_hi, lo))
        q_lo = divide_step(middle, n0, lo)
        return q_hi, q_lo, 0, wsub(n0, wmul(q_lo, lo))
    shift = clz(hi)
    if shift > 0:
        back = 64 - shift
        hi = shl(hi, shift) | shr_u(lo, back)
        lo = shl(lo, shift)
        n3 = shl(n3, shift) | shr_u(n2, back)
        n2 = shl(n2, shift) | shr_u(n1, back)
        n1 = shl(n1, shift) | shr_u(n0, back)
        n0 = shl(n0, shift)
    q_hi, n2, n1 = _divide_three(n3, n2, n1, hi, lo)
    q_lo, r_hi, r_lo = _divide_three(n2, n1, n0, hi, lo)
    if shift > 0:
        r_lo = shr_u(r_lo, shift) | shl(r_hi, 64 - shift)
        r_hi = shr_u(r_hi, shift)
    return q_hi, q_lo, r_hi, r_lo


@native("i64(i64, i64, i64, i64, i64)")
def _stored(state: int, hi: int, lo: int, negative: int, precision: int) -> int:
    """Store the magnitude with its sign as the result, if it has at most this many digits."""
    bound_hi, bound_lo = power_of_ten_128(precision)
    if below128(hi, lo, bound_hi, bound_lo) == 0:
        return OVERFLOW
    if negative != 0:
        hi, lo = negate128(hi, lo)
    st_i64(state, STATE_RESULT, lo)
    st_i64(state, STATE_RESULT_HIGH, hi)
    return GOOD


@native("i64(i64, i64, i64, i64, i64, i64, i64, i64, i64)")
def _quotient(
    state: int, n3: int, n2: int, n1: int, n0: int, hi: int, lo: int, negative: int, precision: int
) -> int:  # fmt: skip
    """The quotient of magnitudes, halves away from zero, with its sign."""
    if below128(n3, n2, hi, lo) == 0:
        return OVERFLOW  # a quotient of more than 128 bits
    q_hi, q_lo, r_hi, r_lo = divided256(n3, n2, n1, n0, hi, lo)
    left_lo = wsub(lo, r_lo)
    left_hi = wsub(wsub(hi, r_hi), pick(ult(lo, r_lo), 1, 0))
    if below128(r_hi, r_lo, left_hi, left_lo) == 0:  # a remainder of a half or more
        q_lo = wadd(q_lo, 1)
        q_hi = wadd(q_hi, pick(q_lo == 0, 1, 0))
        if q_hi == 0 and q_lo == 0:
            return OVERFLOW
    return _stored(state, q_hi, q_lo, negative, precision)


# -- arithmetic -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64, i64, i64, i64, i64)", export=True)
def decimal_sum(
    state: int, hi: int, lo: int, up: int, other_hi: int, other_lo: int, other_up: int, cut: int, precision: int
) -> int:  # fmt: skip
    """(hi, lo) * 10**up + (other_hi, other_lo) * 10**other_up, without its last `cut` digits."""
    unit_hi, unit_lo = power_of_ten_128(up)
    a_hi, a_lo = magnitude(hi, lo)
    a3, a2, a1, a0 = product256(a_hi, a_lo, unit_hi, unit_lo)
    unit_hi, unit_lo = power_of_ten_128(other_up)
    b_hi, b_lo = magnitude(other_hi, other_lo)
    b3, b2, b1, b0 = product256(b_hi, b_lo, unit_hi, unit_lo)
    negative = pick(hi < 0, 1, 0)
    if (hi < 0) != (other_hi < 0):  # subtract the smaller magnitude from the larger one: add its complement
        less = below128(a3, a2, b3, b2)
        if a3 == b3 and a2 == b2:
            less = below128(a1, a0, b1, b0)
        if less != 0:
            negative = 1 - negative
            a1, a0, b1, b0 = b1, b0, a1, a0
            a3, a2, b3, b2 = b3, b2, a3, a2
        b1, b0 = negate128(b1, b0)
        b3 = ~b3
        b2 = ~b2
        if b1 == 0 and b0 == 0:
            b2 = wadd(b2, 1)
            b3 = wadd(b3, pick(b2 == 0, 1, 0))
    n0 = wadd(a0, b0)
    n1 = add128w_hi(a1, a0, b1, b0)
    if below128(n1, n0, a1, a0) != 0:  # a carry
        a2 = wadd(a2, 1)
        a3 = wadd(a3, pick(a2 == 0, 1, 0))
    n2 = wadd(a2, b2)
    n3 = add128w_hi(a3, a2, b3, b2)
    cut_hi, cut_lo = power_of_ten_128(cut)
    return _quotient(state, n3, n2, n1, n0, cut_hi, cut_lo, negative, precision)


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def decimal_product(state: int, hi: int, lo: int, other_hi: int, other_lo: int, cut: int, precision: int) -> int:
    """The product without its last `cut` digits."""
    if cut == 0 and hi == lo >> 63 and other_hi == other_lo >> 63:
        made = smulhi(lo, other_lo)
        p_hi, p_lo = magnitude(made, wmul(lo, other_lo))
        return _stored(state, p_hi, p_lo, pick(made < 0, 1, 0), precision)
    a_hi, a_lo = magnitude(hi, lo)
    b_hi, b_lo = magnitude(other_hi, other_lo)
    n3, n2, n1, n0 = product256(a_hi, a_lo, b_hi, b_lo)
    cut_hi, cut_lo = power_of_ten_128(cut)
    negative = pick((hi < 0) != (other_hi < 0), 1, 0)
    return _quotient(state, n3, n2, n1, n0, cut_hi, cut_lo, negative, precision)


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def decimal_quotient(state: int, hi: int, lo: int, up: int, other_hi: int, other_lo: int, precision: int) -> int:
    """(hi, lo) * 10**up / (other_hi, other_lo), which is not 0."""
    a_hi, a_lo = magnitude(hi, lo)
    if up > MOST:  # a dividend of more than 38 digits always has a quotient with too many
        unit_hi, unit_lo = power_of_ten_128(up - MOST)
        n3, n2, a_hi, a_lo = product256(a_hi, a_lo, unit_hi, unit_lo)
        bound_hi, bound_lo = power_of_ten_128(MOST)
        if n3 != 0 or n2 != 0 or below128(a_hi, a_lo, bound_hi, bound_lo) == 0:
            return OVERFLOW
        up = MOST
    unit_hi, unit_lo = power_of_ten_128(up)
    n3, n2, n1, n0 = product256(a_hi, a_lo, unit_hi, unit_lo)
    b_hi, b_lo = magnitude(other_hi, other_lo)
    negative = pick((hi < 0) != (other_hi < 0), 1, 0)
    return _quotient(state, n3, n2, n1, n0, b_hi, b_lo, negative, precision)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def decimal_remainder(state: int, hi: int, lo: int, other_hi: int, other_lo: int) -> int:
    """The remainder of division by (other_hi, other_lo), which is not 0, with the sign of the dividend. Never fails."""
    a_hi, a_lo = magnitude(hi, lo)
    b_hi, b_lo = magnitude(other_hi, other_lo)
    _, _, r_hi, r_lo = divided256(0, 0, a_hi, a_lo, b_hi, b_lo)
    return _stored(state, r_hi, r_lo, pick(hi < 0, 1, 0), MOST)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def decimal_rescaled(state: int, hi: int, lo: int, shift: int, precision: int) -> int:
    """(hi, lo) * 10**shift, rounded if the shift is negative, if it has at most this many digits."""
    a_hi, a_lo = magnitude(hi, lo)
    negative = pick(hi < 0, 1, 0)
    if shift < -MOST or (a_hi == 0 and a_lo == 0):
        return _stored(state, 0, 0, 0, precision)
    if shift > MOST:
        return OVERFLOW
    if shift == 0:
        return _stored(state, a_hi, a_lo, negative, precision)
    if shift < 0:
        unit_hi, unit_lo = power_of_ten_128(-shift)
        return _quotient(state, 0, 0, a_hi, a_lo, unit_hi, unit_lo, negative, precision)
    unit_hi, unit_lo = power_of_ten_128(shift)
    n3, n2, n1, n0 = product256(a_hi, a_lo, unit_hi, unit_lo)
    if n3 != 0 or n2 != 0:
        return OVERFLOW
    return _stored(state, n1, n0, negative, precision)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def decimal_whole(state: int, hi: int, lo: int, cut: int, way: int) -> int:
    """(hi, lo) without its last `cut` digits: the integer below it, nearer to zero, or above it. Never fails."""
    a_hi, a_lo = magnitude(hi, lo)
    if cut == 0:
        return _stored(state, a_hi, a_lo, pick(hi < 0, 1, 0), MOST)
    unit_hi, unit_lo = power_of_ten_128(cut)
    q_hi, q_lo, r_hi, r_lo = divided256(0, 0, a_hi, a_lo, unit_hi, unit_lo)
    away = pick(hi < 0, DOWN, UP)
    if way == away and (r_hi != 0 or r_lo != 0):
        q_lo = wadd(q_lo, 1)
        q_hi = wadd(q_hi, pick(q_lo == 0, 1, 0))
    return _stored(state, q_hi, q_lo, pick(hi < 0, 1, 0), MOST)


# -- sums -------------------------------------------------------------------------------------------------------------


_sum = Struct("SUM")
SUM_LO = _sum.word()
SUM_HI = _sum.word()
SUM_TOP = _sum.word()
SUM_WORDS = _sum.size()


@native("void(i64, i64, i64, i64)", export=True)
def long_sum_add(total: int, top: int, hi: int, lo: int) -> None:
    """Add 192 bits to the sum at this address."""
    old_lo = ld_i64(total, SUM_LO)
    old_hi = ld_i64(total, SUM_HI)
    made_lo = wadd(old_lo, lo)
    made_hi = add128w_hi(old_hi, old_lo, hi, lo)
    carry = below128(made_hi, made_lo, old_hi, old_lo)
    st_i64(total, SUM_LO, made_lo)
    st_i64(total, SUM_HI, made_hi)
    st_i64(total, SUM_TOP, wadd(wadd(ld_i64(total, SUM_TOP), top), carry))


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def decimal_mean(state: int, top: int, hi: int, lo: int, up: int, count: int, precision: int) -> int:
    """A sum of 192 bits * 10**up / count; up <= 18."""
    negative = pick(top < 0, 1, 0)
    if top < 0:
        hi, lo = negate128(hi, lo)
        top = ~top
        if hi == 0 and lo == 0:
            top = wadd(top, 1)
    _, unit = power_of_ten_128(up)
    _, carried, n1, n0 = product256(hi, lo, 0, unit)
    n2 = wadd(carried, wmul(top, unit))
    n3 = wadd(umulhi(top, unit), pick(ult(n2, carried), 1, 0))
    return _quotient(state, n3, n2, n1, n0, 0, count, negative, precision)


# -- conversions ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _bits(hi: int, lo: int) -> int:
    """The number of bits of an unsigned value, from the highest one that is set."""
    if hi != 0:
        return 128 - clz(hi)
    return 64 - clz(lo)


@native("f64(i64, i64, i64)", export=True)
def decimal_to_double(hi: int, lo: int, scale: int) -> float:
    """(hi, lo) / 10**scale as the nearest double: one rounding, ties to even."""
    a_hi, a_lo = magnitude(hi, lo)
    if a_hi == 0 and a_lo == 0:
        return 0.0
    d_hi, d_lo = power_of_ten_128(scale)
    # the dividend * 2**up gives a quotient of at least 56 bits; a factor beyond 2**127 goes into the dividend
    up = max_i64(QUOTIENT_BITS + _bits(d_hi, d_lo) - _bits(a_hi, a_lo), 0)
    step = up
    if up > 127:
        a_lo = shl(a_lo, up - 127)
        step = 127
    factor_hi = 0
    factor_lo = 0
    if step >= 64:
        factor_hi = shl(1, step - 64)
    else:
        factor_lo = shl(1, step)
    n3, n2, n1, n0 = product256(a_hi, a_lo, factor_hi, factor_lo)
    q_hi, q_lo, r_hi, r_lo = divided256(n3, n2, n1, n0, d_hi, d_lo)
    made = to_double(q_hi, q_lo, r_hi | r_lo)
    made = made * bits_f64(shl(1023 - up, HIDDEN_BIT - 1))  # 2**-up, exact: nothing comes near underflow
    if hi < 0:
        return -made
    return made


@native("i64(i64, f64, i64, i64, i64)", export=True)
def double_to_wide_decimal(state: int, x: float, real: int, precision: int, scale: int) -> int:
    """The unscaled value of DECIMAL(precision, scale), the shortest decimal of x half up. An `ErrorCode`."""
    absolute = f64_abs(x)
    if not absolute < DECIMAL_LIMIT:  # NaN too
        return BAD
    if absolute == 0.0:
        return _stored(state, 0, 0, 0, precision)
    significand, exponent = shortest(state, absolute, real)
    if significand == 0:
        return NO_MEMORY
    if x < 0.0:
        significand = -significand
    return _or_bad(decimal_rescaled(state, significand >> 63, significand, exponent + scale, precision))


@native("i64(i64)")
def _or_bad(status: int) -> int:
    """A value with too many digits is not a value of the type."""
    if status == OVERFLOW:
        return BAD
    return status


@native("(i64, i64, i64, i64)(i64, i64, i64, i64, i64, i64, i64)")
def _gathered(
    text: int, first: int, last: int, hi: int, lo: int, count: int, rounds: int
) -> tuple[int, int, int, int]:  # fmt: skip
    """(hi, lo) followed by further digits, and `count` of them from the first that is not 0. MOST are kept; `rounds`
    becomes 1 if the first digit that is not kept is 5 or more."""
    for at in range(first, last):
        digit = ld_u8(text, at) - ZERO
        if count > 0 or digit != 0:
            count += 1
            if count <= MOST:
                moved = wmul(lo, 10)
                hi = wadd(wmul(hi, 10), umulhi(lo, 10))
                lo = wadd(moved, digit)
                hi = wadd(hi, pick(ult(lo, moved), 1, 0))
            elif count == MOST + 1:
                rounds = pick(digit >= 5, 1, 0)
    return hi, lo, count, rounds


@native("i64(i64, i64, i64, i64, i64)", export=True)
def read_wide_decimal(state: int, text: int, length: int, precision: int, scale: int) -> int:
    """The unscaled value of DECIMAL(precision, scale), rounded half up."""
    first, last = trimmed(text, length)
    if last - first > MAX_NUMBER_CHARACTERS:
        return BAD
    whole, whole_end, fraction, fraction_end, exponent, sign = number_parts(text, first, last)
    if sign == 0:
        return BAD
    hi, lo, count, rounds = _gathered(text, whole, whole_end, 0, 0, 0, 0)
    hi, lo, count, rounds = _gathered(text, fraction, fraction_end, hi, lo, count, rounds)
    shift = scale + exponent - (fraction_end - fraction)  # the unscaled value is all digits * 10**shift
    if count > MOST:  # of the dropped digits only the first can decide, and never alone
        shift += count - MOST
        if shift == 0:
            lo = wadd(lo, rounds)
            hi = wadd(hi, pick(rounds != 0 and lo == 0, 1, 0))
    if sign < 0:
        hi, lo = negate128(hi, lo)
    return _or_bad(decimal_rescaled(state, hi, lo, shift, precision))


@native("i64(i64, i64, i64, i64)", export=True)
def write_wide_decimal(state: int, hi: int, lo: int, scale: int) -> int:
    """The plain text with all digits of its scale."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    out = text
    if hi < 0:
        out = put_byte(out, MINUS)
    a_hi, a_lo = magnitude(hi, lo)
    _, upper, lower = udivmod128(a_hi, a_lo, TEN_19)
    end = out
    if scale >= HALF_OF_DIGITS:
        end = put_number(put_number(out, upper, scale + 1 - HALF_OF_DIGITS), lower, HALF_OF_DIGITS)
    elif upper != 0:
        end = put_number(put_number(out, upper, 1), lower, HALF_OF_DIGITS)
    else:
        end = put_number(out, lower, scale + 1)
    if scale > 0:  # the digits after the point move to make room for it
        for n in range(scale):
            st_u8(end, -n, ld_u8(end, -n - 1))
        st_u8(end, -scale, POINT)
        end += 1
    return finish_text(state, text, end)
