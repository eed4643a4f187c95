"""XXH64, a fast hash of bytes, by its specification 0.8."""

from __future__ import annotations

import struct

_ALL = 2**64 - 1
_PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
_P1, _P2, _P3, _P4, _P5 = _PRIMES
_STRIPE = 32


def _rotated(word: int, count: int) -> int:
    return (word << count | word >> (64 - count)) & _ALL


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _ALL, 31) * _P1 & _ALL


def xxh64(data: bytes, seed: int) -> int:
    """The hash, unsigned."""
    stripes = len(data) // _STRIPE * _STRIPE
    digest = (seed + _P5) & _ALL
    if stripes:
        lanes = [(seed + _P1 + _P2) & _ALL, (seed + _P2) & _ALL, seed, (seed - _P1) & _ALL]
        for words in struct.iter_unpack("<4Q", data[:stripes]):
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        digest = sum(_rotated(lane, count) for lane, count in zip(lanes, (1, 7, 12, 18), strict=True)) & _ALL
        for lane in lanes:
            digest = ((digest ^ _round(0, lane)) * _P1 + _P4) & _ALL
    digest = (digest + len(data)) & _ALL
    rest = data[stripes:]
    while len(rest) >= 8:
        digest = (_rotated(digest ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4) & _ALL
        rest = rest[8:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little")
        digest = (_rotated(digest ^ word * _P1 & _ALL, 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        digest = _rotated(digest ^ byte * _P5 & _ALL, 11) * _P1 & _ALL
    digest = (digest ^ digest >> 33) * _P2 & _ALL
    digest = (digest ^ digest >> 29) * _P3 & _ALL
    return digest ^ digest >> 32
