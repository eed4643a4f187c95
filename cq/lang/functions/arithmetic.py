"""+ - * / % and what goes with them, over numbers, dates, timestamps and intervals.

Integers: the result has the wider operand's type, and leaving its range is an error (CQ0705). `/` truncates towards
zero, `%` has the sign of the dividend. DECIMAL: Spark's result types; if more than 38 digits would be needed, the exact
result is rounded half up to the remaining digits after the point, and is an error if it is still too large. Division by
zero is an error (CQ0706), for DOUBLE too; DOUBLE overflow is infinity. REAL results are rounded to 32 bits.
DATE + INTERVAL (days to microseconds) is a TIMESTAMP; a difference of times is an INTERVAL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cq.lang.functions.registry import OVERLOADS, Constants, Failure, Refusal, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import (
    KEPT_SCALE,
    capped,
    converts,
    decimal_result,
    fixed,
    keeps_number,
    literal_types,
    overloaded,
)
from cq.lang.functions.spark_text import cast_to, spark_type
from cq.lang.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTEGER_BITS,
    INTERVAL,
    INTERVAL_MONTH,
    MAX_DECIMAL_DIGITS,
    TIMESTAMP,
    DataType,
    Kind,
    as_decimal_digits,
    common_type,
    decimal,
    integer_range,
    round_to_real,
)
from cq.lang.value_text import write_decimal

SPARK_TURNED_DIGITS = 34  # of a DECIMAL that Spark negates exactly
_WORD = integer_range(BIGINT)
_HALF_WORD = integer_range(INTEGER)
# the values a result of each kind may have; floats overflow to infinity
RANGES: dict[Kind, tuple[int, int]] = {
    **{kind: integer_range(DataType(kind)) for kind in INTEGER_BITS},
    Kind.TIMESTAMP: _WORD,
    Kind.TIMESTAMP_LTZ: _WORD,
    Kind.INTERVAL: _WORD,
    Kind.DATE: _HALF_WORD,
    Kind.INTERVAL_MONTH: _HALF_WORD,
}


def within(type_: DataType, value: int, shown: str) -> int:
    """`value`, if the type holds it."""
    low, high = RANGES[type_.kind]
    if not low <= value <= high:
        raise Failure("CQ0705", f"{type_} overflow: {shown}")
    return value


def in_digits(type_: DataType, value: int, shown: str) -> int:
    """`value`, the unscaled value of a DECIMAL, if the type has enough digits for it."""
    if abs(value) >= 10**type_.precision:
        raise Failure("CQ0705", f"{type_} overflow: {shown}")
    return value


def only_turns(signature: Signature) -> bool:
    """Whether the type also holds the negated value."""
    return signature.returns.is_float or signature.returns.kind is Kind.DECIMAL


def never_overflows(signature: Signature) -> bool:
    """Whether results of this type need no check; a DECIMAL has all the digits it needs unless it is capped."""
    returns = signature.returns
    return returns.is_float or (returns.kind is Kind.DECIMAL and returns.precision < MAX_DECIMAL_DIGITS)


def _divides(signature: Signature, constants: Constants) -> bool:
    """Whether the divisor is a number by which each can be divided: not 0, nor -1, which turns the least integer."""
    return signature.returns.kind is not Kind.DECIMAL and constants[1] not in {None, 0, -1}


def _settle(signature: Signature, value: Any, shown: str, *operands: Any) -> Any:
    """The result `value`, if its type holds it. shown: the operation, with a placeholder for each operand."""
    returns = signature.returns
    if returns.is_float:
        return value if returns.kind is Kind.DOUBLE else round_to_real(value)
    most = 10**returns.precision - 1
    low, high = (-most, most) if returns.kind is Kind.DECIMAL else RANGES[returns.kind]
    if low <= value <= high:
        return value
    texts = (
        write_decimal(v, t.scale) if t.kind is Kind.DECIMAL else v
        for v, t in zip(operands, signature.params, strict=True)
    )
    raise Failure("CQ0705", f"{returns} overflow: {shown.format(*texts)}")


def _numbers(types: tuple[DataType, ...], constants: Constants) -> tuple[DataType, DataType] | None:
    """Two operands as numbers: NULL takes the other's type, integer literals beside a DECIMAL become DECIMAL."""
    a, b = types
    if a.kind is Kind.NULL and b.kind is Kind.NULL:
        return BIGINT, BIGINT
    a, b = (b if a.kind is Kind.NULL else a), (a if b.kind is Kind.NULL else b)
    if not (a.is_numeric and b.is_numeric):
        return None
    a, b = literal_types((a, b), constants)
    return a, b


def _decimal_parts(a: DataType, b: DataType) -> tuple[int, int, int, int]:
    return (*as_decimal_digits(a), *as_decimal_digits(b))


def _arithmetic(sign: str, types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    """The signature of `+ - * / %` over numbers; DECIMAL by Spark's rules."""
    if len(types) != 2 or (numbers := _numbers(types, constants)) is None:
        return None
    a, b = numbers
    if a.is_float or b.is_float or Kind.DECIMAL not in {a.kind, b.kind}:
        common = common_type(a, b)
        return Signature((common, common), common) if common else None
    p1, s1, p2, s2 = _decimal_parts(a, b)
    scale = max(s1, s2)
    operands = decimal(p1, s1), decimal(p2, s2)
    match sign:
        case "+" | "-":
            precision = max(p1 - s1, p2 - s2) + scale + 1
            if precision <= MAX_DECIMAL_DIGITS:
                operands = (decimal(precision, scale),) * 2
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(KEPT_SCALE, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case _:
            precision = min(p1 - s1, p2 - s2) + scale
            widest = decimal_result(f"{a} {sign} {b}", max(p1 - s1, p2 - s2) + scale, scale)
            if isinstance(widest, Refusal):
                return widest
            return Signature((widest, widest), decimal(max(precision, 1), scale))
    return Signature(operands, capped(precision, scale))


def _additive(sign: str) -> SignatureRule:
    """Numbers, intervals, times and intervals; for `-` also two times."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) != 2:
            return None
        a, b = types
        if not any(t.is_interval or t.is_timestamp or t.kind is Kind.DATE for t in types):
            return _arithmetic(sign, types, constants)
        if all(converts(t, INTERVAL_MONTH) for t in types):
            return Signature((INTERVAL_MONTH, INTERVAL_MONTH), INTERVAL_MONTH)
        if Kind.INTERVAL_MONTH in {a.kind, b.kind}:
            return None
        time = next((t for t in types if t.kind is Kind.TIMESTAMP_LTZ), TIMESTAMP)
        forms = [Signature((time, INTERVAL), time), Signature((INTERVAL, INTERVAL), INTERVAL)]
        if sign == "+":
            forms.append(Signature((INTERVAL, time), time))
        else:
            forms.append(Signature((time, time), INTERVAL))
        return overloaded(*forms)(types, constants)

    return rule


def _multiplicative(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    if len(types) != 2 or not any(t.is_interval for t in types):
        return _arithmetic("*", types, constants)
    a, b = types
    if a.is_interval and converts(b, BIGINT):
        return Signature((a, BIGINT), a)
    if b.is_interval and converts(a, BIGINT):
        return Signature((BIGINT, b), b)
    return None


def _spark_binary(sign: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark's operator, with its result converted to our type if Spark's could be wider."""

    def text(signature: Signature, args: tuple[str, ...]) -> str:
        plain = f"({args[0]} {sign} {args[1]})"
        wider = signature.returns.kind is Kind.DECIMAL or (sign == "/" and signature.returns.kind is Kind.REAL)
        return cast_to(plain, signature.returns) if wider else plain

    return text


@scalar(
    "+",
    "number + number, time + INTERVAL, INTERVAL + INTERVAL, DATE + days",
    _additive("+"),
    spark=_spark_binary("+"),
    native="add",
    typed=True,
    fails=("CQ0705",),
    exact=never_overflows,
    examples=[
        "1 + 2 = 3",
        "0.5 + 0.25 = 0.75",
        "9223372036854775807 + 1 = error CQ0705",
        "1 + null = null",
        "CAST('NaN' AS DOUBLE) + 1 = CAST('NaN' AS DOUBLE)",
        "0 + 0 = 0",
        "TIMESTAMP '2024-02-28 23:59:59' + INTERVAL '1' SECOND = TIMESTAMP '2024-02-29 00:00:00'",
        "DATE '2024-01-01' + INTERVAL '90' MINUTE = TIMESTAMP '2024-01-01 01:30:00'",
        "INTERVAL '1' HOUR + INTERVAL '30' MINUTE = INTERVAL '90' MINUTE",
    ],
)
def add(signature: Signature, x: Any, y: Any) -> Any:
    """The sum."""
    return _sum(signature, x, y, 1, "{} + {}")


def _sum(signature: Signature, x: Any, y: Any, sign: int, shown: str) -> Any:
    """x + y or x - y; of DECIMALs exact at the larger scale, then rounded to the result's."""
    returns = signature.returns
    if returns.kind is not Kind.DECIMAL:
        return _settle(signature, x + y if sign > 0 else x - y, shown, x, y)
    left, right = (p.scale for p in signature.params)
    scale = max(left, right)
    exact = x * 10 ** (scale - left) + sign * y * 10 ** (scale - right)
    return _settle(signature, half_up(exact, 10 ** (scale - returns.scale)), shown, x, y)


@scalar(
    "-",
    "number - number, time - INTERVAL, time - time, INTERVAL - INTERVAL, DATE - days",
    _additive("-"),
    spark=_spark_binary("-"),
    native="subtract",
    typed=True,
    fails=("CQ0705",),
    exact=never_overflows,
    examples=[
        "1 - 2 = -1",
        "1.5 - 0.25 = 1.25",
        "-9223372036854775807 - 2 = error CQ0705",
        "null - 1 = null",
        "0 - 0 = 0",
        "TIMESTAMP '2024-03-01 00:00:00' - TIMESTAMP '2024-02-29 23:00:00' = INTERVAL '1' HOUR",
        "DATE '2024-03-01' - DATE '2024-02-01' = INTERVAL '29' DAY",
    ],
)
def subtract(signature: Signature, x: Any, y: Any) -> Any:
    """The difference. Two DATEs or TIMESTAMPs give the INTERVAL between them."""
    return _sum(signature, x, y, -1, "{} - {}")


@scalar(
    "*",
    "number * number, INTERVAL * integer",
    _multiplicative,
    spark=_spark_binary("*"),
    native="multiply",
    typed=True,
    fails=("CQ0705",),
    exact=never_overflows,
    examples=[
        "6 * 7 = 42",
        "1.5 * 1.5 = 2.25",
        "9223372036854775807 * 2 = error CQ0705",
        "null * 0 = null",
        "0 * -5 = 0",
        "CAST('Infinity' AS DOUBLE) * 0 = CAST('NaN' AS DOUBLE)",
        "INTERVAL '90' SECOND * 2 = INTERVAL '3' MINUTE",
    ],
)
def multiply(signature: Signature, x: Any, y: Any) -> Any:
    """The product."""
    product, returns = x * y, signature.returns
    if returns.kind is Kind.DECIMAL:
        product = half_up(product, 10 ** (sum(p.scale for p in signature.params) - returns.scale))
    return _settle(signature, product, "{} * {}", x, y)


def truncated(x: int, y: int) -> int:
    """x / y towards zero."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def half_up(x: int, y: int) -> int:
    """x / y rounded to the nearest integer, halves away from zero."""
    quotient = (2 * abs(x) + abs(y)) // (2 * abs(y))
    return quotient if (x < 0) == (y < 0) else -quotient


def divided(signature: Signature, x: Any, y: Any) -> Any:
    """x / y of the signature's result type for a divisor that is not zero."""
    match signature.returns.kind:
        case Kind.DOUBLE | Kind.REAL:
            return _settle(signature, x / y, "{} / {}", x, y)
        case Kind.DECIMAL:
            (left, right), result = signature.params, signature.returns
            quotient = half_up(x * 10 ** (result.scale - left.scale + right.scale), y)
            return _settle(signature, quotient, "{} / {}", x, y)
        case _:
            return within(signature.returns, truncated(x, y), f"{x} / {y}")


def _spark_division(signature: Signature, args: tuple[str, ...]) -> str:
    if not signature.returns.is_integer:
        return _spark_binary("/")(signature, args)
    x, y = args
    quotient = f"({x} div {y})"
    if signature.returns == BIGINT:
        return quotient
    # the one quotient that does not fit is then an overflow, not a bad cast
    return f"if({y} = -1, (- {x}), {cast_to(quotient, signature.returns)})"


def _division(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    return _arithmetic("/", types, constants)


@scalar(
    "/",
    "number / number",
    _division,
    spark=_spark_division,
    native="divide",
    typed=True,
    fails=("CQ0706", "CQ0705"),
    settled=_divides,
    examples=[
        "7 / 2 = 3",
        "-7 / 2 = -3",
        "1.0 / 3 = 0.333333",
        "1 / 0 = error CQ0706",
        "1e0 / 0 = error CQ0706",
        "(-9223372036854775807 - 1) / -1 = error CQ0705",
        "0 / 5 = 0",
        "null / 2 = null",
        "CAST('NaN' AS DOUBLE) / 2 = CAST('NaN' AS DOUBLE)",
    ],
)
def divide(signature: Signature, x: Any, y: Any) -> Any:
    """The quotient. Integers are truncated towards zero; DECIMALs are rounded half up to the result's scale."""
    if y == 0:
        raise Failure("CQ0706", "division by zero")
    return divided(signature, x, y)


def _spark_try_divide(signature: Signature, args: tuple[str, ...]) -> str:
    x, y = args
    returns = signature.returns
    if not returns.is_integer:
        return cast_to(f"try_divide({x}, {y})", returns, unless=DOUBLE)
    lowest = integer_range(returns)[0]
    bad = f"{y} = 0 or ({y} = -1 and {x} = cast('{lowest}' as {spark_type(returns)}))"
    return f"if({bad}, null, {_spark_division(signature, args)})"


@scalar(
    "try_divide",
    "try_divide(number, number)",
    _division,
    spark=_spark_try_divide,
    native="try_divide",
    typed=True,
    may_be_null=True,
    examples=[
        "try_divide(7, 2) = 3",
        "try_divide(7, 0) = null",
        "try_divide(0, 7) = 0",
        "try_divide(7e0, 0) = null",
        "try_divide(null, 1) = null",
        "try_divide(-9223372036854775807 - 1, -1) = null",
    ],
)
def try_divide(signature: Signature, x: Any, y: Any) -> Any:
    """The quotient, like `/`, but NULL instead of an error."""
    if y == 0:
        return None
    try:
        return divided(signature, x, y)
    except Failure:
        return None


def _remainder(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    return _arithmetic("%", types, constants)


@scalar(
    "%",
    "number % number",
    _remainder,
    spark=_spark_binary("%"),
    native="modulo",
    typed=True,
    aliases=("mod",),
    fails=("CQ0706",),
    settled=lambda _, constants: constants[1] not in {None, 0},
    examples=[
        "7 % 3 = 1",
        "-5 % 3 = -2",
        "5 % -3 = 2",
        "5.5 % 2 = 1.5",
        "5 % 0 = error CQ0706",
        "5e0 % 0 = error CQ0706",
        "0 % 3 = 0",
        "null % 3 = null",
        "CAST('Infinity' AS DOUBLE) % 2 = CAST('NaN' AS DOUBLE)",
    ],
)
def modulo(signature: Signature, x: Any, y: Any) -> Any:
    """The remainder of the truncated division: it has the sign of the dividend."""
    if y == 0:
        raise Failure("CQ0706", "division by zero")
    if signature.returns.is_float:
        # C's fmod; Python's raises where C's gives NaN
        return math.nan if math.isinf(x) or math.isnan(x) or math.isnan(y) else math.fmod(x, y)
    return x - y * truncated(x, y)


@scalar(
    "div",
    "div(integer, integer)",
    fixed(BIGINT, BIGINT, returns=BIGINT),
    spark="({0} div {1})",
    native="divide",
    typed=True,
    fails=("CQ0706", "CQ0705"),
    settled=_divides,
    examples=[
        "div(7, 2) = 3",
        "div(-7, 2) = -3",
        "div(0, 2) = 0",
        "div(7, 0) = error CQ0706",
        "div(null, 2) = null",
        "div(-9223372036854775807 - 1, -1) = error CQ0705",
    ],
)
def div(signature: Signature, x: int, y: int) -> int:
    """The quotient of two integers, truncated towards zero, as BIGINT."""
    if y == 0:
        raise Failure("CQ0706", "division by zero")
    return within(BIGINT, truncated(x, y), f"{x} / {y}")


def _spark_turned(name: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark negates a DECIMAL with up to 34 digits; one with more is negated as text."""

    def text(signature: Signature, args: tuple[str, ...]) -> str:
        (x,), returns = args, signature.returns
        if returns.kind is not Kind.DECIMAL or returns.precision <= SPARK_TURNED_DIGITS:
            return f"abs({x})" if name == "abs" else f"(- {x})"
        positive = cast_to(f"replace(cast({x} as STRING), '-')", returns)
        negative = x if name == "abs" else cast_to(f"concat('-', cast({x} as STRING))", returns)
        return f"if({x} < 0, {positive}, {negative})"

    return text


@scalar(
    "negate",
    "- number, - INTERVAL",
    keeps_number(intervals=True),
    spark=_spark_turned("negate"),
    native="negate",
    typed=True,
    fails=("CQ0705",),
    exact=only_turns,
    examples=[
        "-(3) = -3",
        "-(1.5) = -1.5",
        "-(-9223372036854775807 - 1) = error CQ0705",
        "-(null) = null",
        "-(0) = 0",
        "-INTERVAL '1' DAY + INTERVAL '1' DAY = INTERVAL '0' DAY",
    ],
)
def negate(signature: Signature, x: Any) -> Any:
    """The negated number."""
    return _settle(signature, -x, "-({})", x)


@scalar(
    "abs",
    "abs(number)",
    keeps_number(),
    spark=_spark_turned("abs"),
    native="abs",
    typed=True,
    fails=("CQ0705",),
    exact=only_turns,
    examples=[
        "abs(-3) = 3",
        "abs(-1.5) = 1.5",
        "abs(0) = 0",
        "abs(null) = null",
        "abs(-9223372036854775807 - 1) = error CQ0705",
        "abs(CAST('NaN' AS DOUBLE)) = CAST('NaN' AS DOUBLE)",
    ],
)
def absolute(signature: Signature, x: Any) -> Any:
    """The absolute value."""
    return _settle(signature, abs(x), "abs({})", x)


# from date_arithmetic.py; time_of_day.py adds its own after them
OVERLOADS["+"] = ("date_add", "add_months")
OVERLOADS["-"] = ("date_sub", "subtract_months")
