"""The shape of a distribution, SKEWNESS and KURTOSIS, and PRODUCT.

The state of a shape is (count, mean, sums of the second, third and fourth powers of the distances from the mean), as
DOUBLE in the order of the rows, updated and merged as by Pébay (Formulas for Robust, One-Pass Parallel Computation of
Covariances and Arbitrary-Order Statistical Moments, 2008). Kernels compute the same operations in the same order.
"""

from __future__ import annotations

import math
from typing import Any

from cq.lang.aggregates.arguments import number
from cq.lang.aggregates.registry import AggregateFunction, Keeps, register
from cq.lang.functions.registry import Signature

Shape = tuple[int, float, float, float, float]
Product = tuple[int, float]


def _inexact(_: Signature) -> bool:
    return False


def _add(_: Signature, state: Shape, value: float) -> Shape:
    before, mean, second, third, fourth = state
    n = float(before + 1)
    away = value - mean
    step = away / n
    square = step * step
    more = away * step * float(before)
    fourth = fourth + more * square * (n * n - 3.0 * n + 3.0) + 6.0 * square * second - 4.0 * step * third
    third = third + more * step * (n - 2.0) - 3.0 * step * second
    return before + 1, mean + step, second + more, third, fourth


def _merge(_: Signature, left: Shape, right: Shape) -> Shape:
    if left[0] == 0 or right[0] == 0:
        return left if right[0] == 0 else right
    a, b = float(left[0]), float(right[0])
    n = a + b
    away = right[1] - left[1]
    step = away / n
    square = step * step
    more = away * step * a * b
    second = left[2] + right[2] + more
    third = left[3] + right[3] + more * step * (a - b) + 3.0 * step * (a * right[2] - b * left[2])
    fourth = left[4] + right[4] + more * square * (a * a - a * b + b * b)
    fourth = fourth + 6.0 * square * (a * a * right[2] + b * b * left[2]) + 4.0 * step * (a * right[3] - b * left[3])
    return left[0] + right[0], left[1] + step * b, second, third, fourth


def _flat(state: Shape) -> bool:
    return state[0] == 0 or state[2] == 0.0


def _skewness(_: Signature, state: Shape) -> Any:
    return math.sqrt(float(state[0])) * (state[3] / state[2] / math.sqrt(state[2]))


def _kurtosis(_: Signature, state: Shape) -> Any:
    return float(state[0]) * (state[4] / state[2] / state[2]) - 3.0


for _name, _value, _doc, _examples in (
    ("skewness", _skewness, "The population skewness of the non-null values: 0 if they are symmetric",
     ("1, 3, 3, 3, 3, null = -1.5e0", "1, 2, 3 = 0e0")),
    ("kurtosis", _kurtosis, "The population excess kurtosis of the non-null values: 0 for a normal distribution",
     ("1, 2, 3, null = -1.5e0", "0, 0, 0, 0, 10 = 0.25e0")),
):  # fmt: skip
    register(
        AggregateFunction(
            name=_name,
            shape=f"{_name}(number)",
            rule=number,
            zero=(0, 0.0, 0.0, 0.0, 0.0),
            add=_add,
            merge=_merge,
            empty=_flat,
            result=_value,
            exact_merge=_inexact,
            may_be_null=True,
            doc=f"{_doc}; NULL if they are all equal.",
            spark=_name + "({0}){1}",
            native=_name,
            keeps=Keeps.WORDS,
            examples=tuple(f"{_name} over {e}" for e in (*_examples, "5, 5 = null", "nothing = null")),
        ),
        *(("kurtosis_pop",) if _name == "kurtosis" else ("skewness_pop",)),
    )


def _multiply(_: Signature, state: Product, value: float) -> Product:
    return state[0] + 1, state[1] * value


def _multiply_both(_: Signature, left: Product, right: Product) -> Product:
    return left[0] + right[0], left[1] * right[1]


def _spark_product(_: Signature, argument: str, over: str) -> str:
    return f"aggregate(nullif(collect_list({argument}){over}, cast(array() as array<double>)), 1D, (p, x) -> p * x)"


register(
    AggregateFunction(
        name="product",
        shape="product(number)",
        rule=number,
        zero=(0, 1.0),
        add=_multiply,
        merge=_multiply_both,
        empty=lambda state: bool(state[0] == 0),
        result=lambda _, state: state[1],
        exact_merge=_inexact,
        doc="The product of the non-null values, as DOUBLE; NULL if there are none.",
        spark=_spark_product,
        native="product",
        keeps=Keeps.WORDS,
        examples=(
            "product over 2, 3, null, 4 = 24e0",
            "product over 1.5e0, 2 = 3e0",
            "product over 5, 0 = 0e0",
            "product over nothing = null",
        ),
    )
)
LOADED = True
