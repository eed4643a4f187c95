"""Random numbers whose bytes depend on the seed alone.

Only two things of numpy are used, and both are fixed: the raw 64-bit output of its bit generators and IEEE arithmetic
that is exact in the last bit (+ - * / sqrt). `Generator.normal` and friends may change between releases, and vectorised
exp, log, sin differ in the last bit between processors. So every shaped draw here is a look-up in a table made by
scalar `math`, and what is compared or rounded is far coarser than the last bit of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]

MASK = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

NORMAL_BITS = 16  # index width of a normal table: 65 536 quantiles reach 4.2 standard deviations


def splitmix64(x: int) -> int:
    """The splitmix64 finaliser of x + its step: a fixed bijection of 64-bit numbers that looks random."""
    z = (x + _STEP) & MASK
    z = ((z ^ (z >> 30)) * _FIRST) & MASK
    z = ((z ^ (z >> 27)) * _SECOND) & MASK
    return z ^ (z >> 31)


def mix(*values: int) -> int:
    """A 64-bit hash of a sequence of integers: fold them, one splitmix64 each."""
    h = 0
    for v in values:
        h = splitmix64(h ^ (v & MASK))
    return h


def mix_columns(*columns: int | Ints) -> Bits:
    """`mix` of every row; integers stand for constant columns, and at least one column is an array."""
    rows = next(len(c) for c in columns if not isinstance(c, int))
    h = np.zeros(rows, dtype=np.uint64)
    for c in columns:
        h = _splitmix64_rows(h ^ (np.uint64(c & MASK) if isinstance(c, int) else c.view(np.uint64)))
    return h


def mix_more(hashes: Bits, value: int) -> Bits:
    """Each hash mixed with one more value."""
    return _splitmix64_rows(hashes ^ np.uint64(value))


def _splitmix64_rows(x: Bits) -> Bits:
    z = x + np.uint64(_STEP)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return z ^ (z >> np.uint64(31))


def philox(seed: int, stream: int, purpose: int, block: int) -> np.random.Philox:
    """The counter-based generator of one (seed, stream) at the position reserved for (purpose, block).

    Any block can be made without the ones before it, so streams and blocks may be produced in any order.
    """
    key = np.array([seed & MASK, stream & MASK], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, block, purpose, 0], dtype=np.uint64))


def raw(bits: np.random.BitGenerator, rows: int) -> Ints:
    """`rows` non-negative 63-bit integers."""
    return (bits.random_raw(rows) >> np.uint64(1)).view(np.int64)


def below(draws: Ints, bound: int, shift: int = 0) -> Ints:
    """Uniform integers 0 … bound−1 from 31 bits of each 63-bit draw; shift 0 takes the high ones, 32 the low ones."""
    return (((draws >> (32 - shift)) & 0x7FFFFFFF) * bound) >> 31


def under(hashes: Bits, bound: int | Ints) -> Ints:
    """Uniform integers 0 … bound−1 from the upper half of each 64-bit hash."""
    return ((hashes >> np.uint64(33)).view(np.int64) * bound) >> 31


def unit(draws: Ints) -> Floats:
    """Uniform doubles in [0, 1), multiples of 2^-53."""
    return (draws >> 10).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=16)
def normal_table(mean: float, deviation: float) -> Ints:
    """Quantiles of N(mean, deviation), rounded to integers; indexed by NORMAL_BITS random bits."""
    return np.floor(mean + _quantiles() * deviation + 0.5).astype(np.int64)


@lru_cache(maxsize=1)
def _quantiles() -> Floats:
    """Quantiles of the standard normal distribution; mean + deviation * each is what `NormalDist.inv_cdf` computes.

    Those above the middle are exactly the negatives of those below: a generator waits for them before its first row.
    """
    size = 1 << NORMAL_BITS
    inverse = NormalDist().inv_cdf
    below = np.array([inverse((i + 0.5) / size) for i in range(size // 2)])
    return np.concatenate([below, -below[::-1]])


def normal_index(draws: Ints) -> Ints:
    """The low NORMAL_BITS of each draw: an index into a normal table."""
    return draws & ((1 << NORMAL_BITS) - 1)


def poisson(rate: float, u: float) -> int:
    """The quantile u of the Poisson distribution; rate at most a few hundred, since exp(-rate) must not vanish."""
    p = math.exp(-rate)
    k, total = 0, p
    while u >= total and p > 0.0:
        k += 1
        p *= rate / k
        total += p
    return k


def cumulative(weights: Sequence[float]) -> Floats:
    """Upper ends of the weights' shares of [0, 1); `searchsorted(table, u, 'right')` draws an index."""
    ends = np.cumsum(np.array(weights, dtype=np.float64))
    ends /= ends[-1]
    ends[-1] = 1.0
    return ends


class Zipf:
    """Draws ranks 0 … n−1 with P(rank) ∝ (rank+1)^−theta; theta 0 is uniform. Alias method: two look-ups per draw."""

    def __init__(self, n: int, theta: float) -> None:
        """Build the tables in O(n)."""
        self.n = n
        self.accept, self.alias = _alias_table(n, theta)

    def ranks(self, draws: Ints) -> Ints:
        """One rank per 63-bit draw: the high bits choose a column, the low 32 decide between it and its alias."""
        column = below(draws, self.n)
        return np.where((draws & 0xFFFFFFFF) < self.accept[column], column, self.alias[column])


@lru_cache(maxsize=8)
def _alias_table(n: int, theta: float) -> tuple[Ints, Ints]:
    """(acceptance threshold in 2^-32, alias) per column, by Vose's method.

    Weights are rounded to integers first, so that the order of the work cannot depend on the last bit of a power.
    """
    alias = np.arange(n, dtype=np.int64)
    accept = np.full(n, 1 << 32, dtype=np.int64)
    if theta == 0.0:
        return accept, alias
    weights = [max(1, round((1 << 32) * rank**-theta)) for rank in range(1, n + 1)]
    fair = sum(weights)
    share = [w * n for w in weights]
    small = [i for i, s in enumerate(share) if s < fair]
    large = [i for i, s in enumerate(share) if s >= fair]
    while small:
        s, g = small.pop(), large[-1]
        accept[s] = (share[s] << 32) // fair
        alias[s] = g
        share[g] -= fair - share[s]
        if share[g] < fair:
            small.append(large.pop())
    return accept, alias
