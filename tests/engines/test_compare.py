"""Comparing two results: as lists or multisets, DOUBLE by tolerance, and what is said about a difference."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from cq.engines.compare import DEFAULT_TOLERANCE, Comparison, compare, compare_runs, tolerance_between
from cq.errors import DataError, Diagnostic

NAN = float("nan")


def table(*rows: tuple[object, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    types = (pa.int64(), pa.string(), pa.float64())
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["k", "s", "x"])


ROWS = [(1, "a", 0.5), (2, None, NAN), (2, None, None), (None, "", -1e300), (1, "a", 0.25)]


def test_same_rows_in_another_order_are_equal_unless_order_counts() -> None:
    other = ROWS[::-1]
    assert compare("o", table(*ROWS), table(*other)).equal
    assert not compare("o", table(*ROWS), table(*other), strict=True).equal
    assert compare("o", table(*ROWS), table(*ROWS), strict=True).equal


def test_how_often_a_row_comes_counts() -> None:
    c = compare("o", table(ROWS[0], ROWS[0], ROWS[1]), table(ROWS[0], ROWS[1], ROWS[1]))
    assert (c.left_only, c.right_only) == (1, 1)


@pytest.mark.parametrize("strict", [True, False])
def test_doubles_are_equal_within_the_tolerance_only(strict: bool) -> None:
    near, far = table((1, "a", 1e6 + 1e-4)), table((1, "a", 1e6 + 1))
    assert compare("o", table((1, "a", 1e6)), near, strict).equal
    assert not compare("o", table((1, "a", 1e6)), far, strict).equal
    assert not compare("o", table((1, "a", 1e6)), near, strict, tolerance=0).equal


@pytest.mark.parametrize(
    ("a", "b"), [(NAN, None), (0.0, None), (NAN, 0.0), (float("inf"), float("-inf")), (-1e308, 1e308)]
)
@pytest.mark.parametrize("strict", [True, False])
def test_null_nan_and_infinity_are_no_neighbours(a: float, b: float | None, strict: bool) -> None:
    assert not compare("o", table((1, "a", a)), table((1, "a", b)), strict).equal


def test_rows_whose_doubles_sort_differently_still_find_their_partner() -> None:
    #  the first doubles agree within the tolerance but sort in the other order
    a = pa.table({"x": [1.0, 1.0 + 1e-12], "y": [5.0, 7.0]})
    b = pa.table({"x": [1.0, 1.0 + 1e-12], "y": [7.0, 5.0]})
    assert compare("o", a, b).equal


def test_null_zero_and_empty_are_different() -> None:
    for a, b in [((0, "", 0.0), (None, "", 0.0)), ((0, "", 0.0), (0, None, 0.0))]:
        assert not compare("o", table(a), table(b)).equal


def test_results_of_different_shape_are_different_with_a_reason() -> None:
    assert compare("o", table(), table()).equal
    assert "columns" in compare("o", table(), table().select(["k"])).reason
    renamed = pa.table({"k": ["x"], "s": ["a"], "x": [0.0]})
    assert "types" in compare("o", table((1, "a", 0.0)), renamed).reason


def test_difference_shows_both_sides_with_positions() -> None:
    left, right = table((1, "a", 0.5), (2, "b", 1.0)), table((1, "a", 0.5), (2, "b", 1.5), (3, "\x1b[2J", None))
    result = compare_runs(("native", {"o": left}, None), ("spark", {"o": right}, None))
    assert not result.equal
    assert str(result).splitlines() == [
        "o: native has 2 rows, spark 3; only in native 1, only in spark 2",
        "        row  k  s        x",
        "native  1    2  b        1.0",
        "spark   1    2  b        1.5",
        "spark   2    3  \\x1b[2J  NULL",
    ]
    with pytest.raises(DataError):
        result.raise_if_different()


def failing(place: str, code: str = "CQ0706") -> DataError:
    return DataError(Diagnostic(code, "division by zero", severity="data error", place=place))


def test_runs_that_fail_at_the_same_place_with_the_same_rows_are_equal() -> None:
    left = ("native", {"o": table(ROWS[0])}, failing("f.csv:3"))
    assert compare_runs(left, ("reference", {"o": table(ROWS[0])}, failing("f.csv:3"))).equal
    assert not compare_runs(left, ("reference", {"o": table()}, failing("f.csv:3"))).equal
    assert not compare_runs(left, ("reference", {"o": table(ROWS[0])}, failing("f.csv:4"))).equal
    assert not compare_runs(left, ("reference", {"o": table(ROWS[0])}, None)).equal
    told = str(compare_runs(left, ("reference", {"o": table(ROWS[0])}, failing("f.csv:3"))))
    assert told.splitlines() == ["both stopped: f.csv:3 CQ0706 division by zero", "o: equal, 1 row"]


def test_several_outputs_that_stop_at_the_same_place_are_compared_as_far_as_both_have_them() -> None:
    left = ("native", {"o": table(ROWS[0]), "p": table()}, failing("f.csv:3"))
    more = {"o": table(), "p": table(ROWS[0])}
    assert compare_runs(left, ("reference", more, failing("f.csv:3"))).equal
    assert not compare_runs(left, ("reference", more, failing("f.csv:4"))).equal
    assert not compare_runs(left, ("reference", {"o": table(ROWS[1]), "p": table()}, failing("f.csv:3"))).equal


def test_spark_knows_no_place_and_gives_nothing_before_an_error() -> None:
    left = ("native", {"o": table(ROWS[0])}, failing("f.csv:3"))
    assert compare_runs(left, ("spark", {"o": table()}, failing(""))).equal
    assert not compare_runs(left, ("spark", {"o": table()}, failing("", "CQ0705"))).equal


def test_spark_may_meet_an_error_of_another_output_first() -> None:
    left = ("native", {"o": table(ROWS[0]), "p": table()}, failing("f.csv:3"))
    other = compare_runs(left, ("spark", {"o": table(), "p": table()}, failing("", "CQ0705")))
    assert other.equal
    assert str(other) == "native stopped: f.csv:3 CQ0706 division by zero; spark stopped: CQ0705 division by zero"
    assert not compare_runs(left, ("spark", {"o": table(), "p": table()}, None)).equal


def brute(a: list[tuple[object, ...]], b: list[tuple[object, ...]]) -> tuple[int, int]:
    rest = [repr(r) for r in b]
    left = 0
    for row in map(repr, a):
        if row in rest:
            rest.remove(row)
        else:
            left += 1
    return left, len(rest)


@pytest.mark.parametrize("seed", range(20))
def test_random_multisets_agree_with_taking_rows_away_one_by_one(seed: int) -> None:
    rng = random.Random(seed)

    def some() -> list[tuple[object, ...]]:
        keys, texts, doubles = [1, 2, None], ["a", "", None], [0.5, NAN, None, 2.0]
        return [(rng.choice(keys), rng.choice(texts), rng.choice(doubles)) for _ in range(rng.randrange(60))]

    a, b = some(), some()
    c: Comparison = compare("o", table(*a), table(*b))
    assert (c.left_only, c.right_only) == brute(a, b), f"seed {seed}"


def test_without_a_tolerance_doubles_are_the_same_bits() -> None:
    a, b = pa.table({"x": [0.0, 1.0, math.nan]}), pa.table({"x": [-0.0, 1.0, math.nan]})
    for strict in (False, True):
        assert compare("o", a, b, strict).equal
        found = compare("o", a, b, strict, 0.0)
        assert (found.left_only, found.right_only) == (1, 1)
        assert compare("o", a, a, strict, 0.0).equal
    many = pa.table({"x": [-0.0, 0.0] * 100}), pa.table({"x": [0.0] * 100 + [-0.0] * 100})
    assert compare("o", *many, tolerance=0.0).equal


def test_engines_other_than_spark_are_compared_by_bits() -> None:
    assert tolerance_between("native", "reference", None) == 0.0
    assert tolerance_between("native", "spark", None) == DEFAULT_TOLERANCE
    assert tolerance_between("native", "reference", 0.5) == 0.5
