"""Functions of DOUBLE: they never fail; out of the domain they are NaN, or NULL where Spark says so."""

from __future__ import annotations

import math

from cq.lang.functions.registry import scalar
from cq.lang.functions.signatures import fixed
from cq.lang.types import DOUBLE

_DOUBLE_TO_DOUBLE = fixed(DOUBLE, returns=DOUBLE)
_NAN = "CAST('NaN' AS DOUBLE)"
_INFINITY = "CAST('Infinity' AS DOUBLE)"


@scalar(
    "sign",
    "sign(number)",
    _DOUBLE_TO_DOUBLE,
    spark="sign({0})",
    aliases=("signum",),
    examples=["sign(-3) = -1e0", "sign(0) = 0e0", "sign(2.5) = 1e0", "sign(null) = null", f"sign({_NAN}) = {_NAN}"],
)
def sign(x: float) -> float:
    """-1.0, 0.0 or 1.0."""
    if x > 0.0:
        return 1.0
    return -1.0 if x < 0.0 else x


@scalar(
    "sqrt",
    "sqrt(number)",
    _DOUBLE_TO_DOUBLE,
    spark="sqrt({0})",
    examples=["sqrt(9) = 3e0", "sqrt(0) = 0e0", f"sqrt(-1) = {_NAN}", "sqrt(null) = null", f"sqrt({_NAN}) = {_NAN}"],
)
def sqrt(x: float) -> float:
    """The square root; NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else math.nan


@scalar(
    "exp",
    "exp(number)",
    _DOUBLE_TO_DOUBLE,
    spark="exp({0})",
    examples=[
        "exp(0) = 1e0",
        f"exp(1000) = {_INFINITY}",
        "exp(-1000) = 0e0",
        "exp(null) = null",
        f"exp({_NAN}) = {_NAN}",
    ],
)
def exp(x: float) -> float:
    """e to the power x."""
    if x > 709.782712893384:  # beyond ln of the greatest DOUBLE; Python would raise where C says infinity
        return math.inf
    return math.exp(x)


@scalar(
    "ln",
    "ln(number)",
    _DOUBLE_TO_DOUBLE,
    spark="ln({0})",
    native="ln",
    may_be_null=True,
    examples=["ln(1) = 0e0", "ln(0) = null", "ln(-1) = null", "ln(null) = null", f"ln({_NAN}) = {_NAN}"],
)
def ln(x: float) -> float | None:
    """The natural logarithm; NULL at or below zero."""
    return None if x <= 0.0 else math.log(x)


@scalar(
    "log10",
    "log10(number)",
    _DOUBLE_TO_DOUBLE,
    spark="log10({0})",
    native="log10",
    may_be_null=True,
    examples=[
        "log10(1000) = 3e0",
        "log10(1) = 0e0",
        "log10(0) = null",
        "log10(null) = null",
        f"log10({_NAN}) = {_NAN}",
    ],
)
def log10(x: float) -> float | None:
    """The decimal logarithm; NULL at or below zero."""
    return None if x <= 0.0 else math.log10(x)


@scalar(
    "power",
    "power(base, exponent)",
    fixed(DOUBLE, DOUBLE, returns=DOUBLE),
    spark="power({0}, {1})",
    native="power",
    aliases=("pow",),
    examples=[
        "power(2, 10) = 1024e0",
        "power(0, 0) = 1e0",
        "power(2, -1) = 0.5e0",
        f"power(0, -1) = {_INFINITY}",
        f"power(-8, 0.5) = {_NAN}",
        f"power(10, 400) = {_INFINITY}",
        "power(null, 2) = null",
        f"power({_NAN}, 0) = 1e0",
    ],
)
def power(x: float, y: float) -> float:
    """x to the power y, as C's `pow` but for 1 and -1 to a power that is NaN or infinite, which is NaN as in Java."""
    if math.isnan(y) or (abs(x) == 1.0 and math.isinf(y)):
        return math.nan
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and y % 2.0 == 1.0 else math.inf
    except ValueError:  # zero to a negative power, or a negative base to a fraction
        odd = y % 2.0 == 1.0
        return math.nan if x != 0.0 else math.copysign(math.inf, x) if odd else math.inf
