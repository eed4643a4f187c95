"""128-bit integers as two words, hi (signed) and lo (unsigned bits): exact SUM and AVG, and decimals.

None is in a hot loop (sums accumulate with the ops `wadd` and `add128_hi`).
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    MAX64,
    MIN64,
    bits_f64,
    clz,
    max_i64,
    shl,
    shr_u,
    smulhi,
    st_i64,
    udiv,
    ult,
    urem,
    wadd,
    wmul,
    wsub,
)

LOW32 = 0xFFFFFFFF
HIDDEN_BIT = 53  # bits of a double's significand, the one not stored included


@native("i64(i64, i64, i64)")
def divide_step(hi: int, lo: int, d: int) -> int:
    """The unsigned quotient of (hi, lo) by d where hi < d, by two 64/32-bit steps on a normalised divisor.

    Knuth, TAOCP volume 2, 4.3.1, algorithm D with two digits of 32 bits.
    """
    s = clz(d)
    dn = shl(d, s)
    d1 = shr_u(dn, 32)
    d0 = dn & LOW32
    top = hi
    if s > 0:
        top = shl(hi, s) | shr_u(lo, 64 - s)
    low = shl(lo, s)
    n1 = shr_u(low, 32)
    n0 = low & LOW32
    q1 = udiv(top, d1)
    r1 = wsub(top, wmul(q1, d1))
    while shr_u(q1, 32) != 0 or ult(shl(r1, 32) | n1, wmul(q1, d0)):
        q1 -= 1
        r1 = wadd(r1, d1)
        if shr_u(r1, 32) != 0:
            break
    mid = wsub(wadd(shl(top, 32), n1), wmul(q1, dn))
    q0 = udiv(mid, d1)
    r0 = wsub(mid, wmul(q0, d1))
    while shr_u(q0, 32) != 0 or ult(shl(r0, 32) | n0, wmul(q0, d0)):
        q0 -= 1
        r0 = wadd(r0, d1)
        if shr_u(r0, 32) != 0:
            break
    return wadd(shl(q1, 32), q0)


@native("(i64, i64, i64)(i64, i64, i64)")
def udivmod128(hi: int, lo: int, d: int) -> tuple[int, int, int]:
    """Quotient (two words) and remainder of the unsigned (hi, lo) by the unsigned d, which is not 0."""
    q_hi = udiv(hi, d)
    rest = urem(hi, d)
    q_lo = divide_step(rest, lo, d)
    return q_hi, q_lo, wsub(lo, wmul(q_lo, d))


@native("f64(i64, i64, i64)")
def to_double(hi: int, lo: int, sticky: int) -> float:
    """The double nearest to the unsigned (hi, lo) and a bit (sticky is not 0: a fraction is cut off); ties to even."""
    zeros = clz(hi)
    if hi == 0:
        zeros = 64 + clz(lo)
    if zeros == 128:
        return 0.0
    top = lo
    rest = sticky
    if zeros < 64:
        if zeros == 0:
            top = hi
            rest |= lo
        else:
            top = shl(hi, zeros) | shr_u(lo, 64 - zeros)
            rest |= shl(lo, zeros)
    else:
        top = shl(lo, zeros - 64)
    # top has its highest bit set; its upper 53 bits are the significand, the lower 11 and rest decide the rounding
    significand = shr_u(top, 11)
    below = top & 0x7FF
    if below > 0x400 or (below == 0x400 and (rest != 0 or significand & 1 == 1)):
        significand += 1  # 2**53 carries into the exponent, which is what rounding up to the next power of two means
    exponent = 1023 + 127 - zeros
    return bits_f64(wadd(shl(exponent - 1, HIDDEN_BIT - 1), significand))


@native("(i64, i64)(i64, i64)")
def negate128(hi: int, lo: int) -> tuple[int, int]:
    """-(hi, lo), wrapped."""
    low = wsub(0, lo)
    if lo == 0:
        return wsub(0, hi), low
    return ~hi, low


@native("f64(i64, i64, i64)", export=True)
def avg_i128(hi: int, lo: int, count: int) -> float:
    """(hi, lo) / count for count > 0 as the nearest double: one rounding of the exact quotient, ties to even."""
    negative = hi < 0
    high = hi
    low = lo
    if negative:
        high, low = negate128(hi, lo)
    if high == 0 and low == 0:
        return 0.0
    # scale the dividend by 2**up so that the quotient has at least 55 significant bits
    zeros = clz(high)
    if high == 0:
        zeros = 64 + clz(low)
    up = 56 + (64 - clz(count)) - (128 - zeros)
    up = max_i64(up, 0)
    if up >= 64:
        high = shl(low, up - 64)
        low = 0
    elif up > 0:
        high = shl(high, up) | shr_u(low, 64 - up)
        low = shl(low, up)
    q_hi, q_lo, rest = udivmod128(high, low, count)
    made = to_double(q_hi, q_lo, rest)
    scale = bits_f64(shl(1023 - up, HIDDEN_BIT - 1))  # 2**-up; exact, since the quotient is far from underflow
    made = made * scale
    if negative:
        return -made
    return made


@native("i64(i64, i64, i64, i64)", export=True)
def div_half_up(hi: int, lo: int, d: int, out: int) -> int:
    """Whether (hi, lo) / d, rounded to nearest with halves away from zero, fits 64 bits; the result is word 0 of `out`.

    d > 0. The rounding of SQL decimals: AVG, and the product or quotient of two decimals at its scale.
    """
    negative = hi < 0
    high = hi
    low = lo
    if negative:
        high, low = negate128(hi, lo)
    q_hi, q_lo, rest = udivmod128(high, low, d)
    if not ult(rest, wsub(d, rest)):  # rest >= d - rest: a half or more
        q_hi = wadd(q_hi, q_lo == -1)
        q_lo = wadd(q_lo, 1)
    if negative:
        if q_hi != 0 or ult(MIN64, q_lo):
            return 0
        st_i64(out, 0, wsub(0, q_lo))
        return 1
    if q_hi != 0 or ult(MAX64, q_lo):
        return 0
    st_i64(out, 0, q_lo)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def mul_div_half_up(a: int, b: int, d: int, out: int) -> int:
    """Whether a * b / d, rounded half away from zero, fits 64 bits; the result is word 0 of `out`. d > 0."""
    return div_half_up(smulhi(a, b), wmul(a, b), d, out)


@native("i64(i64, i64)", export=True)
def fits_64(hi: int, lo: int) -> int:
    """Whether (hi, lo) is the sign extension of lo: a 64-bit value."""
    return hi == lo >> 63
