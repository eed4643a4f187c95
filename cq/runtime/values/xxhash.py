"""XXH64 of bytes, by xxHash's specification 0.8; the native side of text_bytes.py. Sharing: none."""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, ld_u8, ld_u32, shl, shr_u, wadd, wmul, wsub

PRIME_1, PRIME_2, PRIME_3 = -7046029288634856825, -4417276706812531889, 1609587929392839161
PRIME_4, PRIME_5 = -8796714831421723037, 2870177450012600261
STRIPE = 32


@native("i64(i64, i64)", inline=True)
def _rotated(word: int, count: int) -> int:
    return shl(word, count) | shr_u(word, 64 - count)


@native("i64(i64, i64)", inline=True)
def _round(lane: int, word: int) -> int:
    return wmul(_rotated(wadd(lane, wmul(word, PRIME_2)), 31), PRIME_1)


@native("i64(i64, i64)", inline=True)
def _with_lane(digest: int, lane: int) -> int:
    return wadd(wmul(digest ^ _round(0, lane), PRIME_1), PRIME_4)


@native("i64(i64)")
def _mixed(digest: int) -> int:
    """The digest with its bits spread."""
    digest = wmul(digest ^ shr_u(digest, 33), PRIME_2)
    digest = wmul(digest ^ shr_u(digest, 29), PRIME_3)
    return digest ^ shr_u(digest, 32)


@native("i64(i64, i64, i64)", export=True)
def xxhash_64(text: int, length: int, seed: int) -> int:
    """The hash of the bytes."""
    at = 0
    digest = wadd(seed, PRIME_5)
    if length >= STRIPE:
        one = wadd(wadd(seed, PRIME_1), PRIME_2)
        two = wadd(seed, PRIME_2)
        three = seed
        four = wsub(seed, PRIME_1)
        while at + STRIPE <= length:
            one = _round(one, ld_i64(text + at, 0))
            two = _round(two, ld_i64(text + at, 1))
            three = _round(three, ld_i64(text + at, 2))
            four = _round(four, ld_i64(text + at, 3))
            at += STRIPE
        digest = wadd(wadd(_rotated(one, 1), _rotated(two, 7)), wadd(_rotated(three, 12), _rotated(four, 18)))
        digest = _with_lane(_with_lane(_with_lane(_with_lane(digest, one), two), three), four)
    digest = wadd(digest, length)
    while at + 8 <= length:
        digest = wadd(wmul(_rotated(digest ^ _round(0, ld_i64(text + at, 0)), 27), PRIME_1), PRIME_4)
        at += 8
    if at + 4 <= length:
        digest = wadd(wmul(_rotated(digest ^ wmul(ld_u32(text + at, 0), PRIME_1), 23), PRIME_2), PRIME_3)
        at += 4
    while at < length:
        digest = wmul(_rotated(digest ^ wmul(ld_u8(text, at), PRIME_5), 11), PRIME_1)
        at += 1
    return _mixed(digest)
