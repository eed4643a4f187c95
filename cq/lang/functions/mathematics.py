"""Functions of DOUBLE, which never fail: outside of their domain they give NaN, or NULL if Spark does.

Angles are in radians. Functions of integers are in `integers.py`.
"""

from __future__ import annotations

import math

from cq.lang.functions.registry import OVERLOADS, scalar
from cq.lang.functions.signatures import fixed
from cq.lang.types import BOOLEAN, DOUBLE

_DOUBLE_TO_DOUBLE = fixed(DOUBLE, returns=DOUBLE)
_NAN = "CAST('NaN' AS DOUBLE)"
_INFINITY = "CAST('Infinity' AS DOUBLE)"


def is_finite(x: float) -> bool:
    """Whether x is neither infinite nor NaN."""
    return x - x == 0.0


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
    "log2",
    "log2(number)",
    _DOUBLE_TO_DOUBLE,
    spark="log2({0})",
    native="log2",
    may_be_null=True,
    examples=["log2(8) = 3e0", "log2(1) = 0e0", "log2(0) = null", "log2(null) = null", f"log2({_NAN}) = {_NAN}"],
)
def log2(x: float) -> float | None:
    """The logarithm to base 2; NULL at or below zero."""
    return None if x <= 0.0 else math.log2(x)


@scalar(
    "log1p",
    "log1p(number)",
    _DOUBLE_TO_DOUBLE,
    spark="log1p({0})",
    native="log1p",
    may_be_null=True,
    examples=["log1p(0) = 0e0", "log1p(1e-20) = 1e-20", "log1p(-1) = null", "log1p(null) = null"],
)
def log1p(x: float) -> float | None:
    """The natural logarithm of 1 + x, accurate for small x; NULL at or below -1."""
    return None if x <= -1.0 else math.log1p(x)


@scalar(
    "log",
    "log([base,] number)",
    fixed(DOUBLE, DOUBLE, returns=DOUBLE),
    spark="log({0}, {1})",
    native="log",
    may_be_null=True,
    examples=[
        "log(2, 8) = 3e0",
        "log(1) = 0e0",
        "log(10, 0) = null",
        "log(-2, 8) = null",
        f"log(1, 5) = {_INFINITY}",
        "log(null, 8) = null",
    ],
)
def log(base: float, x: float) -> float | None:
    """The logarithm to `base`, by default e; NULL if either argument is zero or negative."""
    if base <= 0.0 or x <= 0.0:
        return None
    top, bottom = math.log(x), math.log(base)
    if bottom != 0.0:
        return top / bottom
    return math.nan if top == 0.0 or math.isnan(top) else math.copysign(math.inf, top)


OVERLOADS["log"] = ("ln",)


@scalar(
    "expm1",
    "expm1(number)",
    _DOUBLE_TO_DOUBLE,
    spark="expm1({0})",
    examples=["expm1(0) = 0e0", "expm1(1e-20) = 1e-20", f"expm1(1000) = {_INFINITY}", "expm1(null) = null"],
)
def expm1(x: float) -> float:
    """e to the power x, minus 1, accurate for small x."""
    if x > 709.782712893384:  # as in EXP
        return math.inf
    return math.expm1(x)


@scalar(
    "cbrt",
    "cbrt(number)",
    _DOUBLE_TO_DOUBLE,
    spark="cbrt({0})",
    examples=["cbrt(27) = 3e0", "cbrt(-1000) = -10e0", "cbrt(0) = 0e0", "cbrt(null) = null", f"cbrt({_NAN}) = {_NAN}"],
)
def cbrt(x: float) -> float:
    """The cube root; exact for cubes of whole numbers."""
    root = math.cbrt(x)
    cube = root * root * root
    if cube == 0.0 or not is_finite(cube):
        return root
    return root - (cube - x) / (3.0 * root * root)  # the C library may miss the last digit: one Newton step


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
    """`base` to the power `exponent`, as in C, except that 1 or -1 to a NaN or infinite power is NaN, as in Java."""
    if math.isnan(y) or (abs(x) == 1.0 and math.isinf(y)):
        return math.nan
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and y % 2.0 == 1.0 else math.inf
    except ValueError:  # zero to a negative power, or a negative base to a fraction
        odd = y % 2.0 == 1.0
        return math.nan if x != 0.0 else math.copysign(math.inf, x) if odd else math.inf


# -- constants and tests ----------------------------------------------------------------------------------------------


@scalar(
    "pi",
    "pi()",
    fixed(returns=DOUBLE),
    spark="pi()",
    native="pi",
    examples=["pi() = 3.141592653589793e0", "(pi() > 3) = true", "cos(pi()) = -1e0", "(pi() + null) = null"],
)
def pi() -> float:
    """The ratio of a circle's circumference to its diameter."""
    return math.pi


@scalar(
    "e",
    "e()",
    fixed(returns=DOUBLE),
    spark="e()",
    native="e",
    examples=["e() = 2.718281828459045e0", "ln(e()) = 1e0", "(e() < 3) = true", "(e() + null) = null"],
)
def e() -> float:
    """The base of the natural logarithm."""
    return math.e


@scalar(
    "isnan",
    "isnan(number)",
    fixed(DOUBLE, returns=BOOLEAN),
    spark="isnan({0})",
    native="isnan",
    handles_null=True,
    never_null=True,
    examples=[f"isnan({_NAN}) = true", "isnan(1) = false", f"isnan({_INFINITY}) = false", "isnan(null) = false"],
)
def isnan(x: float | None) -> bool:
    """Whether the number is NaN; FALSE for NULL."""
    return x is not None and math.isnan(x)


@scalar(
    "isinf",
    "isinf(number)",
    fixed(DOUBLE, returns=BOOLEAN),
    spark="(abs({0}) = double('Infinity'))",
    aliases=("is_inf",),
    examples=[f"isinf({_INFINITY}) = true", f"isinf(-{_INFINITY}) = true", "isinf(1) = false", "isinf(null) = null"],
)
def isinf(x: float) -> bool:
    """Whether the number is positive or negative infinity."""
    return x >= math.inf or x <= -math.inf


@scalar(
    "isfinite",
    "isfinite(number)",
    fixed(DOUBLE, returns=BOOLEAN),
    spark="(abs({0}) < double('Infinity'))",
    aliases=("is_finite",),
    examples=[
        "isfinite(1.5) = true",
        f"isfinite({_INFINITY}) = false",
        f"isfinite({_NAN}) = false",
        "isfinite(null) = null",
    ],
)
def isfinite(x: float) -> bool:
    """Whether the number is neither infinite nor NaN."""
    return x < math.inf and x > -math.inf


# -- angles -----------------------------------------------------------------------------------------------------------


@scalar(
    "sin",
    "sin(angle)",
    _DOUBLE_TO_DOUBLE,
    spark="sin({0})",
    examples=["sin(0) = 0e0", "sin(pi() / 2) = 1e0", f"sin({_INFINITY}) = {_NAN}", "sin(null) = null"],
)
def sin(x: float) -> float:
    """The sine."""
    return math.sin(x) if is_finite(x) else math.nan


@scalar(
    "cos",
    "cos(angle)",
    _DOUBLE_TO_DOUBLE,
    spark="cos({0})",
    examples=["cos(0) = 1e0", "cos(pi()) = -1e0", f"cos({_INFINITY}) = {_NAN}", "cos(null) = null"],
)
def cos(x: float) -> float:
    """The cosine."""
    return math.cos(x) if is_finite(x) else math.nan


@scalar(
    "tan",
    "tan(angle)",
    _DOUBLE_TO_DOUBLE,
    spark="tan({0})",
    examples=["tan(0) = 0e0", "round(tan(pi() / 4), 9) = 1e0", f"tan({_INFINITY}) = {_NAN}", "tan(null) = null"],
)
def tan(x: float) -> float:
    """The tangent."""
    return math.tan(x) if is_finite(x) else math.nan


@scalar(
    "asin",
    "asin(number)",
    _DOUBLE_TO_DOUBLE,
    spark="asin({0})",
    examples=["asin(0) = 0e0", "asin(1) = 1.5707963267948966e0", f"asin(2) = {_NAN}", "asin(null) = null"],
)
def asin(x: float) -> float:
    """The arc sine; NaN outside -1 to 1."""
    return math.asin(x) if -1.0 <= x <= 1.0 else math.nan


@scalar(
    "acos",
    "acos(number)",
    _DOUBLE_TO_DOUBLE,
    spark="acos({0})",
    examples=["acos(1) = 0e0", "acos(-1) = 3.141592653589793e0", f"acos(-2) = {_NAN}", "acos(null) = null"],
)
def acos(x: float) -> float:
    """The arc cosine; NaN outside -1 to 1."""
    return math.acos(x) if -1.0 <= x <= 1.0 else math.nan


@scalar(
    "atan",
    "atan(number)",
    _DOUBLE_TO_DOUBLE,
    spark="atan({0})",
    examples=[
        "atan(0) = 0e0",
        f"atan({_INFINITY}) = 1.5707963267948966e0",
        f"atan({_NAN}) = {_NAN}",
        "atan(null) = null",
    ],
)
def atan(x: float) -> float:
    """The arc tangent, between -pi/2 and pi/2."""
    return math.atan(x)


@scalar(
    "atan2",
    "atan2(y, x)",
    fixed(DOUBLE, DOUBLE, returns=DOUBLE),
    spark="atan2({0}, {1})",
    examples=[
        "atan2(0, 1) = 0e0",
        "atan2(1, 0) = 1.5707963267948966e0",
        "atan2(0, -1) = 3.141592653589793e0",
        f"atan2({_NAN}, 1) = {_NAN}",
        "atan2(null, 1) = null",
    ],
)
def atan2(y: float, x: float) -> float:
    """The angle of the point (x, y), between -pi and pi."""
    return math.atan2(y + 0.0, x + 0.0)  # -0.0 counts as 0.0


@scalar(
    "sinh",
    "sinh(number)",
    _DOUBLE_TO_DOUBLE,
    spark="sinh({0})",
    examples=["sinh(0) = 0e0", f"sinh(1000) = {_INFINITY}", f"sinh(-1000) = -{_INFINITY}", "sinh(null) = null"],
)
def sinh(x: float) -> float:
    """The hyperbolic sine."""
    if x > 710.4758600739439:  # beyond this Python raises, as in EXP above
        return math.inf
    if x < -710.4758600739439:
        return -math.inf
    return math.sinh(x)


@scalar(
    "cosh",
    "cosh(number)",
    _DOUBLE_TO_DOUBLE,
    spark="cosh({0})",
    examples=["cosh(0) = 1e0", f"cosh(1000) = {_INFINITY}", f"cosh(-1000) = {_INFINITY}", "cosh(null) = null"],
)
def cosh(x: float) -> float:
    """The hyperbolic cosine."""
    if x > 710.4758600739439 or x < -710.4758600739439:
        return math.inf
    return math.cosh(x)


@scalar(
    "tanh",
    "tanh(number)",
    _DOUBLE_TO_DOUBLE,
    spark="tanh({0})",
    examples=["tanh(0) = 0e0", "tanh(1000) = 1e0", f"tanh({_NAN}) = {_NAN}", "tanh(null) = null"],
)
def tanh(x: float) -> float:
    """The hyperbolic tangent."""
    return math.tanh(x)


@scalar(
    "degrees",
    "degrees(angle)",
    _DOUBLE_TO_DOUBLE,
    spark="degrees({0})",
    aliases=("to_degrees",),
    examples=[
        "degrees(pi()) = 180e0",
        "degrees(0) = 0e0",
        f"degrees({_INFINITY}) = {_INFINITY}",
        "degrees(null) = null",
    ],
)
def degrees(x: float) -> float:
    """The angle converted from radians to degrees."""
    return x * 57.29577951308232


@scalar(
    "radians",
    "radians(degrees)",
    _DOUBLE_TO_DOUBLE,
    spark="radians({0})",
    aliases=("to_radians",),
    examples=[
        "radians(180) = 3.141592653589793e0",
        "radians(0) = 0e0",
        "radians(-180) = -pi()",
        "radians(null) = null",
    ],
)
def radians(x: float) -> float:
    """The angle converted from degrees to radians."""
    return x * 0.017453292519943295
