"""The spread of values: VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP.

The state is (count, mean, sum of squared distances from the mean), all as DOUBLE and in the order of the rows: each row
updates the mean, which loses no digits when values are large and close to each other. Two states are merged as by Chan,
Golub and LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979). Kernels compute the
same operations in the same order.
"""

from __future__ import annotations

import math
from typing import Any

from cq.lang.aggregates.arguments import number
from cq.lang.aggregates.registry import AggregateFunction, Keeps, register
from cq.lang.functions.registry import Signature

Moments = tuple[int, float, float]


def _add(_: Signature, state: Moments, value: float) -> Moments:
    count, mean, squares = state[0] + 1, state[1], state[2]
    away = value - mean
    mean = mean + away / count
    return count, mean, squares + away * (value - mean)


def _merge(_: Signature, a: Moments, b: Moments) -> Moments:
    if a[0] == 0 or b[0] == 0:
        return a if b[0] == 0 else b
    count, away = a[0] + b[0], b[1] - a[1]
    share = b[0] / count
    return count, a[1] + away * share, a[2] + b[2] + away * away * (a[0] * share)


def _inexact(_: Signature) -> bool:
    return False


for _name, _less, _rooted, _aliases, _examples in (
    ("var_pop", 0, False, (), ("1, 3, null = 1e0", "5 = 0e0", "1.5e0, 2.5e0 = 0.25e0")),
    ("var_samp", 1, False, ("variance", "var"), ("1, 3, null = 2e0", "5 = null", "1e0, 1e0 = 0e0")),
    ("stddev_pop", 0, True, (), ("1, 3, null = 1e0", "5 = 0e0", "2, 6 = 2e0")),
    ("stddev_samp", 1, True, ("stddev", "stdev"), ("1, 3, 5, null = 2e0", "5 = null", "7, 7 = 0e0")),
):

    def _value(_: Signature, state: Moments, less: int = _less, rooted: bool = _rooted) -> Any:
        variance = state[2] / (state[0] - less)
        return math.sqrt(variance) if rooted else variance

    def _too_few(state: Moments, less: int = _less) -> bool:
        return state[0] <= less

    register(
        AggregateFunction(
            name=_name,
            shape=f"{_name}(number)",
            rule=number,
            zero=(0, 0.0, 0.0),
            add=_add,
            merge=_merge,
            empty=_too_few,
            result=_value,
            exact_merge=_inexact,
            may_be_null=bool(_less),
            doc=f"The {'sample' if _less else 'population'} {'standard deviation' if _rooted else 'variance'} of the "
            + ("non-null values; NULL for fewer than two." if _less else "non-null values; NULL if there are none."),
            spark=_name + "({0}){1}",
            native=_name,
            keeps=Keeps.WORDS,
            examples=tuple(f"{_name} over {e}" for e in (*_examples, "nothing = null")),
        ),
        *_aliases,
    )
LOADED = True
