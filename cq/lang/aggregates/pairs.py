"""Aggregates of two numbers per row: COVAR_POP, COVAR_SAMP, CORR, and REGR_* of the line through the points (x, y) by
least squares.

The state is (count, mean of x, mean of y, sxx, syy, sxy): sums of the products of distances from the means, all as
DOUBLE and in the order of the rows. Each row moves the means and two states are merged as in
`cq/lang/aggregates/statistics.py`. All these aggregates keep the same state. REGR_* take y first, as in the standard.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cq.lang.aggregates.registry import AggregateFunction, Keeps, register
from cq.lang.functions.registry import Constants, Signature
from cq.lang.types import BIGINT, DOUBLE, DataType, Kind

Points = tuple[int, float, float, float, float, float]
NO_POINTS: Points = (0, 0.0, 0.0, 0.0, 0.0, 0.0)
LEAST_SQUARE, GREATEST_SQUARE = 1e-300, 1e300


def _two_numbers(returns: DataType) -> Callable[[tuple[DataType, ...], Constants], Signature | None]:
    def rule(types: tuple[DataType, ...], _: Constants) -> Signature | None:
        fits = len(types) == 2 and all(t.is_numeric or t.kind is Kind.NULL for t in types)
        return Signature((DOUBLE, DOUBLE), returns) if fits else None

    return rule


def _add(_: Signature, state: Points, first: float, second: float) -> Points:
    """x is the first argument."""
    count, mean_x, mean_y, sxx, syy, sxy = state
    count += 1
    from_x, from_y = first - mean_x, second - mean_y
    mean_x, mean_y = mean_x + from_x / count, mean_y + from_y / count
    behind_y = second - mean_y
    return count, mean_x, mean_y, sxx + from_x * (first - mean_x), syy + from_y * behind_y, sxy + from_x * behind_y


def _add_regr(signature: Signature, state: Points, first: float, second: float) -> Points:
    """x is the second argument."""
    return _add(signature, state, second, first)


def _merge(_: Signature, a: Points, b: Points) -> Points:
    if a[0] == 0 or b[0] == 0:
        return a if b[0] == 0 else b
    count = a[0] + b[0]
    from_x, from_y, share = b[1] - a[1], b[2] - a[2], b[0] / count
    weight = a[0] * share
    return (
        count,
        a[1] + from_x * share,
        a[2] + from_y * share,
        a[3] + b[3] + from_x * from_x * weight,
        a[4] + b[4] + from_y * from_y * weight,
        a[5] + b[5] + from_x * from_y * weight,
    )


def _inexact(_: Signature) -> bool:
    return False


def _none(state: Points) -> bool:
    return state[0] == 0


def _fewer_than_two(state: Points) -> bool:
    return state[0] < 2


def _no_line(state: Points) -> bool:
    """There are no points, or they all have one x."""
    return state[0] == 0 or state[3] == 0.0


def _no_spread(state: Points) -> bool:
    """There are no points, or they all have one x or one y."""
    return _no_line(state) or state[4] == 0.0


def _correlation(state: Points) -> float:
    sxx, syy, sxy = state[3:]
    square = sxx * syy
    # the root of the product is exact more often, but the product may be beyond the doubles
    between = LEAST_SQUARE < square < GREATEST_SQUARE
    return sxy / (math.sqrt(square) if between else math.sqrt(sxx) * math.sqrt(syy))


def _determination(state: Points) -> float:
    if state[4] == 0.0:
        return 1.0
    r = _correlation(state)
    return r * r


def _intercept(state: Points) -> float:
    return state[2] - state[5] / state[3] * state[1]


def _register(
    name: str, doc: str, value: Callable[[Points], float], examples: tuple[str, ...], spark: str,
    empty: Callable[[Points], bool] = _none, returns: DataType = DOUBLE,
) -> None:  # fmt: skip
    regr, counts = name.startswith("regr_"), returns == BIGINT
    register(
        AggregateFunction(
            name=name,
            shape=f"{name}({'y, x' if regr else 'x, y'})",
            rule=_two_numbers(returns),
            zero=NO_POINTS,
            add=_add_regr if regr else _add,
            merge=_merge,
            empty=empty,
            result=lambda _, state: value(state),
            exact_merge=_inexact,
            may_be_null=empty is not _none,
            never_null=counts,
            doc=doc,
            spark=spark,
            native=name,
            keeps=Keeps.WORDS,
            y_first=regr,
            examples=(*(f"{name} over {e}" for e in examples), f"{name} over nothing = {0 if counts else 'null'}"),
        )
    )


_CALL = "({0}.a, {0}.b){1}"
# Spark's own divides by zero where all values of an argument are the same
_CORR = "(covar_pop({0}.a, {0}.b){1} / nullif(stddev_pop({0}.a){1} * stddev_pop({0}.b){1}, 0D))"

_register(
    "covar_pop",
    "The population covariance of the rows where both are not NULL; NULL if there are none.",
    lambda s: s[5] / s[0],
    ("(1, 2), (3, 6), (null, 9) = 2e0", "(5, 1) = 0e0", "(0e0, 1e0), (1e0, 0e0) = -0.25e0"),
    f"covar_pop{_CALL}",
)
_register(
    "covar_samp",
    "The sample covariance of the rows where both are not NULL; NULL for fewer than two.",
    lambda s: s[5] / (s[0] - 1),
    ("(1, 2), (3, 6), (null, 9) = 4e0", "(5, 1) = null", "(0e0, 1e0), (1e0, 0e0) = -0.5e0"),
    f"covar_samp{_CALL}",
    empty=_fewer_than_two,
)
_register(
    "corr",
    "Pearson's correlation of the rows where both are not NULL, from -1 to 1; NULL if x or y is the same in all.",
    _correlation,
    ("(1, 2), (3, 6), (null, 9) = 1e0", "(1, 5), (2, 5) = null", "(0, 4), (4, 0) = -1e0", "(1, 1) = null"),
    _CORR,
    empty=_no_spread,
)
_register(
    "regr_count",
    "The number of rows where both are not NULL.",
    lambda s: s[0],
    ("(1, 2), (3, 6), (null, 9) = 2", "(5, null) = 0", "(0e0, 1e0) = 1"),
    "regr_count" + _CALL,
    returns=BIGINT,
)
_register(
    "regr_avgx",
    "The mean of x in the rows where both are not NULL; NULL if there are none.",
    lambda s: s[1],
    ("(1, 2), (3, 6), (null, 9) = 4e0", "(5, null) = null", "(0e0, 1e0) = 1e0"),
    "regr_avgx" + _CALL,
)
_register(
    "regr_avgy",
    "The mean of y in the rows where both are not NULL; NULL if there are none.",
    lambda s: s[2],
    ("(1, 2), (3, 6), (null, 9) = 2e0", "(5, null) = null", "(0e0, 1e0) = 0e0"),
    "regr_avgy" + _CALL,
)
_register(
    "regr_sxx",
    "The sum of the squared distances of x from its mean, in the rows where both are not NULL; NULL if there are none.",
    lambda s: s[3],
    ("(1, 2), (3, 6), (null, 9) = 8e0", "(5, null) = null", "(0e0, 1e0) = 0e0"),
    "regr_sxx" + _CALL,
)
_register(
    "regr_syy",
    "The sum of the squared distances of y from its mean, in the rows where both are not NULL; NULL if there are none.",
    lambda s: s[4],
    ("(1, 2), (3, 6), (null, 9) = 2e0", "(5, null) = null", "(0e0, 1e0) = 0e0"),
    "regr_syy" + _CALL,
)
_register(
    "regr_sxy",
    "The sum of the products of both distances, in the rows where both are not NULL; NULL if there are none.",
    lambda s: s[5],
    ("(1, 2), (3, 6), (null, 9) = 4e0", "(5, null) = null", "(0, 1), (1, 0) = -0.5e0"),
    "regr_sxy" + _CALL,
)
_register(
    "regr_slope",
    "The slope of the line y = slope * x + intercept; NULL if x is the same in all rows.",
    lambda s: s[5] / s[3],
    ("(1, 2), (3, 6), (null, 9) = 0.5e0", "(5, 1), (6, 1) = null", "(0, 1), (1, 0) = -1e0"),
    "regr_slope" + _CALL,
    empty=_no_line,
)
_register(
    "regr_intercept",
    "The intercept of the line y = slope * x + intercept; NULL if x is the same in all rows.",
    _intercept,
    ("(1, 2), (3, 6), (null, 9) = 0e0", "(5, 1), (6, 1) = null", "(0, 1), (1, 0) = 1e0"),
    "regr_intercept" + _CALL,
    empty=_no_line,
)
_register(
    "regr_r2",
    "The square of the correlation; 1 if y is the same in all rows, NULL if x is.",
    _determination,
    ("(1, 2), (3, 6), (null, 9) = 1e0", "(5, 1), (6, 1) = null", "(5, 1), (5, 2) = 1e0"),
    "regr_r2" + _CALL,
    empty=_no_line,
)
LOADED = True
