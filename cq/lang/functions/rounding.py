"""CEIL, FLOOR, ROUND and TRUNC."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from cq.lang.functions.arithmetic import half_up, in_digits, never_overflows, truncated, within
from cq.lang.functions.registry import Constants, Failure, Refusal, Signature, scalar
from cq.lang.functions.signatures import converts
from cq.lang.functions.spark_text import cast_to
from cq.lang.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    REAL,
    DataType,
    Kind,
    decimal,
    round_to_real,
)
from cq.lang.value_text import write_decimal, write_double, write_real

EXACT_DIGITS = 800  # more than any DOUBLE has before or after the point, so quantising never rounds twice
_EXACT = Context(prec=EXACT_DIGITS, rounding=ROUND_HALF_UP, Emin=-2000, Emax=2000)


def _to_whole(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """DECIMAL keeps its digits before the point plus one; everything else becomes BIGINT."""
    if len(types) != 1:
        return None
    (t,) = types
    if t.kind is Kind.DECIMAL:
        return Signature((t,), decimal(max(1, t.precision - t.scale + min(t.scale, 1)), 0))
    if t.is_integer:
        return Signature((BIGINT,), BIGINT)
    return Signature((DOUBLE,), BIGINT) if converts(t, DOUBLE) else None


def _never_leaves_bigint(signature: Signature) -> bool:
    return signature.params[0].kind is not Kind.DOUBLE


def _whole_double(x: float, rounded: Any, name: str) -> int:
    if math.isnan(x) or math.isinf(x):
        raise Failure("CQ0705", f"BIGINT overflow: {name}({x})")
    return within(BIGINT, rounded(x), f"{name}({x})")


def _spark_whole(name: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark gives 0 for NaN; for values too large it fails as we do."""

    def text(signature: Signature, args: tuple[str, ...]) -> str:
        return f"{name}(nanvl({args[0]}, 1E19D))" if signature.params[0] == DOUBLE else f"{name}({args[0]})"

    return text


@scalar(
    "ceil",
    "ceil(number)",
    _to_whole,
    spark=_spark_whole("ceil"),
    native="ceil",
    typed=True,
    aliases=("ceiling",),
    fails=("CQ0705",),
    exact=_never_leaves_bigint,
    examples=[
        "ceil(1.2) = 2",
        "ceil(-1.2) = -1",
        "ceil(-0.5e0) = 0",
        "ceil(7) = 7",
        "ceil(null) = null",
        "ceil(1e300) = error CQ0705",
        "ceil(CAST('NaN' AS DOUBLE)) = error CQ0705",
    ],
)
def ceil(signature: Signature, x: Any) -> int:
    """The smallest integer not below x, as BIGINT; for a DECIMAL, a DECIMAL of scale 0."""
    type_ = signature.params[0]
    if type_.kind is Kind.DECIMAL:
        return int(-(-x // 10**type_.scale))
    return x if type_.is_integer else _whole_double(x, math.ceil, "ceil")


@scalar(
    "floor",
    "floor(number)",
    _to_whole,
    spark=_spark_whole("floor"),
    native="floor",
    typed=True,
    fails=("CQ0705",),
    exact=_never_leaves_bigint,
    examples=[
        "floor(1.8) = 1",
        "floor(-1.2) = -2",
        "floor(0.5e0) = 0",
        "floor(7) = 7",
        "floor(null) = null",
        "floor(-1e300) = error CQ0705",
    ],
)
def floor(signature: Signature, x: Any) -> int:
    """The largest integer not above x, as BIGINT; for a DECIMAL, a DECIMAL of scale 0."""
    type_ = signature.params[0]
    if type_.kind is Kind.DECIMAL:
        return int(x // 10**type_.scale)
    return x if type_.is_integer else _whole_double(x, math.floor, "floor")


def _rounded(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    """Integers and floats keep their type; a DECIMAL's scale becomes the number of digits, which must be a literal."""
    if len(types) not in (1, 2) or (len(types) == 2 and not converts(types[1], INTEGER)):
        return None
    t = DOUBLE if types[0].kind is Kind.NULL else types[0]
    params = (t, INTEGER)[: len(types)]
    if t.is_integer or t.is_float:
        return Signature(params, t)
    if t.kind is not Kind.DECIMAL:
        return None
    digits = constants[1] if len(types) == 2 else 0
    if digits is None:
        return Refusal("CQ0302", "ROUND of a DECIMAL needs a literal number of digits", "write ROUND(x, 2)")
    scale = min(t.scale, max(0, digits))
    whole = t.precision - t.scale + (1 if digits < t.scale else 0)
    precision = max(whole, -digits + 1 if digits < 0 else 1) + scale
    return Signature(params, decimal(min(precision, MAX_DECIMAL_DIGITS), scale))


def round_double(x: float, digits: int, text: str) -> float:
    """`x` rounded half up to this many digits after the point, decided by `text`, its shortest decimal. Never -0.0.

    As long as |x| * 10**(digits + 1) < 1e15, the shortest text reaches a tie exactly when x is not below the DOUBLE
    nearest to it, so a kernel may compare with that DOUBLE.
    """
    if math.isnan(x) or math.isinf(x) or digits > 400:
        return x
    if digits < -400:
        return 0.0
    return float(Decimal(text).quantize(Decimal((0, (1,), -digits)), context=_EXACT)) + 0.0


def _spark_round(signature: Signature, args: tuple[str, ...]) -> str:
    x, digits = args[0], "".join(f", {a}" for a in args[1:])
    if signature.returns == REAL:  # Spark looks at the digits of the DOUBLE, we at those of the REAL
        return f"cast(round(cast(cast({x} as STRING) as DOUBLE){digits}) as FLOAT)"
    plain = f"round({x}{digits})"
    return cast_to(plain, signature.returns) if signature.returns.kind is Kind.DECIMAL else plain


@scalar(
    "round",
    "round(number [, digits])",
    _rounded,
    spark=_spark_round,
    native="round",
    typed=True,
    fails=("CQ0705",),
    exact=never_overflows,
    examples=[
        "round(2.5e0) = 3e0",
        "round(-2.5e0) = -3e0",
        "round(2.675e0, 2) = 2.68e0",
        "round(-0.4e0) = 0e0",
        "round(5e-324, 323) = 0e0",
        "round(1.005, 2) = 1.01",
        "round(0) = 0",
        "round(1250, -2) = 1300",
        "round(9223372036854775807, -1) = error CQ0705",
        "round(CAST('NaN' AS DOUBLE), 1) = CAST('NaN' AS DOUBLE)",
        "round(null) = null",
    ],
)
def round_(signature: Signature, x: Any, digits: int = 0) -> Any:
    """Round half away from zero, to `digits` digits after the point, or before it when negative."""
    type_, returns = signature.params[0], signature.returns
    if type_.is_float:
        if type_ == REAL:
            return round_to_real(round_double(x, digits, write_real(x)))
        return round_double(x, digits, write_double(x))
    scale = type_.scale
    if digits >= scale:
        return x
    step: int = 10 ** min(scale - digits, 40)
    value = half_up(x, step) * step
    if type_.is_integer:
        return within(returns, value, f"round({x}, {digits})")
    shown = f"round({write_decimal(x, scale)}, {digits})"
    return in_digits(returns, value // 10 ** (scale - returns.scale), shown)


def _cut(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    """As for ROUND, except that a DOUBLE takes no digits, and digits are literals."""
    if len(types) not in (1, 2) or (len(types) == 2 and not converts(types[1], INTEGER)):
        return None
    t = DOUBLE if types[0].kind is Kind.NULL else types[0]
    if t.is_float:
        if len(types) == 1:
            return Signature((DOUBLE,), DOUBLE)
        return Refusal(
            "CQ0302", f"TRUNC of a {t} takes no digits", "CAST(x AS DECIMAL(18, 6)) first, or write ROUND(x, 2)"
        )
    if not t.is_numeric:
        return None
    digits = constants[1] if len(types) == 2 else 0
    if digits is None:
        return Refusal("CQ0302", "TRUNC needs a literal number of digits", "write TRUNC(x, 2)")
    params = (t, INTEGER)[: len(types)]
    if t.is_integer:
        return Signature(params, t)
    scale = min(t.scale, max(0, digits))
    return Signature(params, decimal(max(1, t.precision - t.scale + scale), scale))


def _spark_trunc(signature: Signature, args: tuple[str, ...]) -> str:
    x = args[0]
    if signature.returns == DOUBLE:  # from 2**52 on there are no fractions; the sum turns -0.0 into 0.0
        return f"if(abs({x}) < 4503599627370496D, {x} - {x} % 1D + 0D, {x})"
    digits = args[1] if len(args) == 2 else "0"
    return cast_to(f"if({x} < 0, ceil({x}, {digits}), floor({x}, {digits}))", signature.returns)


@scalar(
    "trunc",
    "trunc(number [, digits])",
    _cut,
    spark=_spark_trunc,
    native="trunc",
    typed=True,
    aliases=("truncate",),
    examples=[
        "trunc(2.9e0) = 2e0",
        "trunc(-2.9e0) = -2e0",
        "trunc(-0.5e0) = 0e0",
        "trunc(1.999, 2) = 1.99",
        "trunc(-1.999, 1) = -1.9",
        "trunc(1299, -2) = 1200",
        "trunc(CAST('NaN' AS DOUBLE)) = CAST('NaN' AS DOUBLE)",
        "trunc(null) = null",
    ],
)
def trunc(signature: Signature, x: Any, digits: int = 0) -> Any:
    """Truncate to `digits` digits after the point, or before it when negative. A DOUBLE takes no `digits`."""
    type_ = signature.params[0]
    if type_.is_float:
        return x if math.isnan(x) or math.isinf(x) else float(math.trunc(x))
    if digits >= type_.scale:
        return x
    value = truncated(x, 10 ** min(type_.scale - digits, 40)) if digits > -40 else 0
    return value * 10 ** max(0, -digits) if value else 0
