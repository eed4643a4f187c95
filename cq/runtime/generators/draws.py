"""The random numbers of `cq/workloads/draws.py`, natively: bit for bit those of numpy's Philox and its tables.

Sharing: none. Every number is a function of (key, counter), so there is no state between two draws.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import i64_to_f64, ld_f64, shr_u, st_i64, umulhi, wadd, wmul

_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)

# Philox 4x64 with ten rounds, after Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011)
_ROUNDS = 10
_MULTIPLY_0 = 0xD2E7470EE14C6C93 - (1 << 64)
_MULTIPLY_1 = 0xCA5A826395121157 - (1 << 64)
_WEYL_0 = 0x9E3779B97F4A7C15 - (1 << 64)
_WEYL_1 = 0xBB67AE8584CAA73B - (1 << 64)
DRAWS_PER_COUNT = 4

_UNIT = 2.0**-53
_LOW31 = 0x7FFFFFFF


@native("i64(i64, i64)", inline=True)
def mixed_with(hashed: int, value: int) -> int:
    """The hash of a sequence with one more value: `mix` of cq/workloads/draws.py, a step of it."""
    z = wadd(hashed ^ value, _STEP)
    z = wmul(z ^ shr_u(z, 30), _FIRST)
    z = wmul(z ^ shr_u(z, 27), _SECOND)
    return z ^ shr_u(z, 31)


@native("f64(i64)", inline=True)
def share_of(hashed: int) -> float:
    """A hash as a double in [0, 1)."""
    return i64_to_f64(shr_u(hashed, 11)) * _UNIT


@native("f64(i64)", inline=True)
def unit_of(draw: int) -> float:
    """A 63-bit draw as a double in [0, 1)."""
    return i64_to_f64(draw >> 10) * _UNIT


@native("i64(i64, i64)", inline=True)
def below_high(draw: int, bound: int) -> int:
    """A number under `bound` from the high 31 bits of a 63-bit draw."""
    return ((draw >> 32) & _LOW31) * bound >> 31


@native("i64(i64, i64, i64, i64, i64, i64, i64)", inline=True)
def fill_draws(out: int, key_0: int, key_1: int, purpose: int, block: int, first: int, count: int) -> int:
    """Write draws `first` to `first + count` of the generator at (purpose, block) to memory; return their address.

    out: room for count + 6 words. Draws come four for each count, the first four for count 1, as numpy gives them.
    """
    number = first >> 2
    at = 0
    lead = first & 3
    while at < lead + count:
        c0 = number + 1
        c1 = block
        c2 = purpose
        c3 = 0
        k0 = key_0
        k1 = key_1
        for _ in range(_ROUNDS):
            high_0 = umulhi(c0, _MULTIPLY_0)
            low_0 = wmul(c0, _MULTIPLY_0)
            high_1 = umulhi(c2, _MULTIPLY_1)
            low_1 = wmul(c2, _MULTIPLY_1)
            c0 = high_1 ^ c1 ^ k0
            c1 = low_1
            c2 = high_0 ^ c3 ^ k1
            c3 = low_0
            k0 = wadd(k0, _WEYL_0)
            k1 = wadd(k1, _WEYL_1)
        st_i64(out, at, shr_u(c0, 1))
        st_i64(out, at + 1, shr_u(c1, 1))
        st_i64(out, at + 2, shr_u(c2, 1))
        st_i64(out, at + 3, shr_u(c3, 1))
        number += 1
        at += DRAWS_PER_COUNT
    return out + lead * 8


@native("i64(i64, i64, f64)", inline=True)
def picked(table: int, size: int, share: float) -> int:
    """The index that `share` falls on in a table of upper ends: numpy's searchsorted from the right."""
    low = 0
    high = size
    while low < high:
        middle = (low + high) >> 1
        if ld_f64(table, middle) <= share:
            low = middle + 1
        else:
            high = middle
    return low
