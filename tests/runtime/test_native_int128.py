"""128-bit arithmetic against Python's integers and fractions, interpreted and compiled."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.ops import MAX64, MIN64
from cq.runtime.values import int128

FUNCTIONS = (int128.avg_i128, int128.div_half_up, int128.mul_div_half_up, int128.fits_64)


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower(), scope="module")
def run(request):
    with request.param(*FUNCTIONS) as run:
        yield run


def words(x: int) -> tuple[int, int]:
    low = x & (1 << 64) - 1
    return x >> 64, low - (1 << 64) if low > MAX64 else low


def wide_numbers(r: random.Random, count: int) -> list[int]:
    edges = [
        s * ((1 << b) + d)
        for b in (0, 1, 31, 32, 52, 53, 54, 62, 63, 64, 65, 100, 126)
        for d in (-1, 0, 1)
        for s in (1, -1)
    ]
    return edges + [r.randint(-(1 << r.randint(1, 127)), 1 << r.randint(1, 127)) for _ in range(count)]


def counts(r: random.Random) -> int:
    return r.choice([1, 2, 3, 5, 7, 10, 1000, 10**9, (1 << 32) - 1, 1 << 32, (1 << 53) + 1, MAX64, r.randint(1, MAX64)])


def half_up(fraction: Fraction) -> int:
    whole = abs(fraction.numerator) * 2 // fraction.denominator + 1 >> 1
    return whole if fraction >= 0 else -whole


def test_a_wide_integer_becomes_the_nearest_double(run):
    for x in wide_numbers(random.Random(1), 3000):
        assert run.avg_i128(*words(x), 1) == float(x), x


def test_ties_go_to_the_even_double(run):
    assert run.avg_i128(0, (1 << 53) + 1, 1) == float(1 << 53)
    assert run.avg_i128(0, (1 << 53) + 3, 1) == float((1 << 53) + 4)
    assert run.avg_i128(*words((1 << 117) + (1 << 64)), 1) == float(1 << 117)
    assert run.avg_i128(*words((1 << 117) + (1 << 64) + 1), 1) == float((1 << 117) + (1 << 65))


def test_an_average_is_rounded_once(run):
    r = random.Random(2)
    for x in wide_numbers(r, 3000):
        n = counts(r)
        assert run.avg_i128(*words(x), n) == x / n, (x, n)


def test_a_quotient_is_rounded_half_away_from_zero(run):
    r = random.Random(3)
    out = run.zeros(8)
    cases = [(x, counts(r)) for x in wide_numbers(r, 3000)]
    cases += [
        (s * (q * d + d // 2 + e), d)
        for q in (0, 1, MAX64 - 1, MAX64)
        for d in (2, 4, 10, 10**18)
        for e in (-1, 0, 1)
        for s in (1, -1)
    ]
    for x, n in cases:
        expected = half_up(Fraction(x, n))
        fits = run.div_half_up(*words(x), n, out)
        assert bool(fits) == (MIN64 <= expected <= MAX64), (x, n)
        assert not fits or run.words(out, 1)[0] == expected, (x, n)


def test_a_product_is_rescaled_with_all_its_digits(run):
    r = random.Random(4)
    out = run.zeros(8)
    for _ in range(3000):
        a, b = (r.randint(-(10 ** r.randint(0, 18)), 10 ** r.randint(0, 18)) for _ in "ab")
        d = 10 ** r.randint(0, 18)
        expected = half_up(Fraction(a * b, d))
        fits = run.mul_div_half_up(a, b, d, out)
        assert bool(fits) == (MIN64 <= expected <= MAX64), (a, b, d)
        assert not fits or run.words(out, 1)[0] == expected, (a, b, d)


def test_a_value_fits_64_bits_exactly_when_it_does(run):
    for x in wide_numbers(random.Random(5), 200):
        assert bool(run.fits_64(*words(x))) == (MIN64 <= x <= MAX64)
