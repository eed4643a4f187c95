"""DECIMALs of two words against Python's integers, interpreted and compiled."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from both_ways import Compiled, Interpreted
from test_native_int128 import half_up, words

from cq.runtime.layout.abi import STATE_RESULT, STATE_RESULT_HIGH
from cq.runtime.values import decimals

FUNCTIONS = (
    decimals.decimal_sum, decimals.decimal_product, decimals.decimal_quotient, decimals.decimal_remainder,
    decimals.decimal_rescaled, decimals.decimal_whole, decimals.decimal_mean, decimals.decimal_to_double,
    decimals.long_sum_add,
)  # fmt: skip
MOST = 10**38 - 1
EDGES = [
    s * n
    for b in (0, 1, 31, 32, 53, 62, 63, 64, 65, 95, 96, 126)
    for n in ((1 << b) - 1, 1 << b, (1 << b) + 1)
    for s in (1, -1)
] + [s * (10**d + e) for d in (18, 19, 37, 38) for e in (-1, 0, 1) for s in (1, -1) if 10**d + e <= MOST]
CASES = 1500


class Run:
    """Calls functions over a state; a result of two words is None when the function fails."""

    def __init__(self, way) -> None:
        self.way = way
        self.state = way.zeros(8 * (STATE_RESULT_HIGH + 1))

    def __call__(self, name: str, *arguments: int) -> int | None:
        if getattr(self.way, name)(self.state, *arguments) != 0:
            return None
        found = self.way.words(self.state, STATE_RESULT_HIGH + 1)
        return found[STATE_RESULT_HIGH] << 64 | found[STATE_RESULT] & (1 << 64) - 1


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower(), scope="module")
def run(request):
    with request.param(*FUNCTIONS) as way:
        yield Run(way)


def any_decimal(r: random.Random) -> int:
    if r.random() < 0.2:
        return r.choice(EDGES)
    return r.randint(-(10 ** r.randint(0, 38)) + 1, 10 ** r.randint(0, 38) - 1)


def within(value: int, precision: int) -> int | None:
    return value if abs(value) < 10**precision else None


def test_sums_are_rounded_once_at_the_scale_of_the_result(run):
    r = random.Random(1)
    for _ in range(CASES):
        a, b, cut, precision = any_decimal(r), any_decimal(r), r.randint(0, 38), r.choice([19, 38])
        ups = r.choice([(0, r.randint(0, 38)), (r.randint(0, 38), 0), (0, 0)])
        expected = half_up(Fraction(a * 10 ** ups[0] + b * 10 ** ups[1], 10**cut))
        found = run("decimal_sum", *words(a), ups[0], *words(b), ups[1], cut, precision)
        assert found == within(expected, precision), (a, b, ups, cut, precision)


def test_products_have_all_their_digits_before_they_are_rounded(run):
    r = random.Random(2)
    for _ in range(CASES):
        a, b, cut, precision = any_decimal(r), any_decimal(r), r.choice([0, 0, r.randint(1, 38)]), r.choice([25, 38])
        expected = half_up(Fraction(a * b, 10**cut))
        assert run("decimal_product", *words(a), *words(b), cut, precision) == within(expected, precision), (a, b, cut)


def test_quotients_are_rounded_half_away_from_zero(run):
    r = random.Random(3)
    for _ in range(CASES):
        a, b, up = any_decimal(r), any_decimal(r) or 1, r.randint(0, 76)
        if r.random() < 0.3:  # near a tie
            a, up = max(-MOST, min(MOST, b // 2 * r.choice([1, 3]) + r.randint(-1, 1))), 0
        expected = half_up(Fraction(a * 10**up, b))
        assert run("decimal_quotient", *words(a), up, *words(b), 38) == within(expected, 38), (a, b, up)
        rest = abs(a) % abs(b) * (-1 if a < 0 else 1)
        assert run("decimal_remainder", *words(a), *words(b)) == rest, (a, b)


def test_scales_and_whole_numbers(run):
    r = random.Random(4)
    for _ in range(CASES):
        a, shift, precision = any_decimal(r), r.randint(-45, 45), r.randint(1, 38)
        expected = half_up(a * Fraction(10) ** shift)
        assert run("decimal_rescaled", *words(a), shift, precision) == within(expected, precision), (a, shift)
        cut = r.randint(0, 38)
        exact = Fraction(a, 10**cut)
        assert run("decimal_whole", *words(a), cut, decimals.DOWN) == exact.__floor__(), (a, cut)
        assert run("decimal_whole", *words(a), cut, decimals.UP) == exact.__ceil__(), (a, cut)
        assert run("decimal_whole", *words(a), cut, decimals.CUT) == exact.__trunc__(), (a, cut)


def test_a_decimal_becomes_the_nearest_double(run):
    r = random.Random(5)
    for _ in range(CASES):
        a, scale = any_decimal(r), r.randint(0, 38)
        assert run.way.decimal_to_double(*words(a), scale) == a / 10**scale, (a, scale)


def test_a_sum_of_192_bits_and_its_mean(run):
    r = random.Random(6)
    place = run.way.zeros(24)
    total = 0
    for _ in range(CASES // 4):
        a = r.choice([MOST, -MOST, any_decimal(r)]) if total.bit_length() < 150 else -total // 2**60
        run.way.long_sum_add(place, a >> 127 & -1, *words(a))
        total += a
        lo, hi, top = run.way.words(place, 3)
        assert top << 128 | (hi & (1 << 64) - 1) << 64 | lo & (1 << 64) - 1 == total
        up, count = r.randint(0, 4), r.choice([1, 2, 3, 10**9, 2**63 - 1, r.randint(1, 10**6)])
        expected = half_up(Fraction(total * 10**up, count))
        assert run("decimal_mean", top, hi, lo, up, count, 38) == within(expected, 38), (total, up, count)
