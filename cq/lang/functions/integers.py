"""Functions of integers: divisors, and bits in two's complement."""

from __future__ import annotations

import math
from functools import partial

from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import Constants, Failure, Signature, scalar
from cq.lang.functions.signatures import fixed, overloaded
from cq.lang.types import BIGINT, BOOLEAN, INTEGER, INTEGER_BITS, DataType, Kind, common_type


def _integers(count: int, types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """This many integers of any width; the result has the widest type."""
    widest = DataType(Kind.NULL)
    for t in types:
        both = common_type(widest, t)
        if both is None:
            return None
        widest = both
    if widest.kind is Kind.NULL:
        widest = BIGINT
    return Signature((widest,) * count, widest) if len(types) == count and widest.is_integer else None


_ONE, _TWO = partial(_integers, 1), partial(_integers, 2)


@scalar(
    "pmod",
    "pmod(integer, integer)",
    _TWO,
    spark="if({0} % {1} < 0 and {1} > 0, {0} % {1} + {1}, {0} % {1})",
    native="pmod",
    fails=("CQ0706",),
    examples=[
        "pmod(7, 3) = 1",
        "pmod(-5, 3) = 1",
        "pmod(-5, -3) = -2",
        "pmod(0, 3) = 0",
        "pmod(5, 0) = error CQ0706",
        "pmod(null, 3) = null",
    ],
)
def pmod(x: int, y: int) -> int:
    """The remainder, never negative for a positive divisor; use it to map a hash to a bucket."""
    if y == 0:
        raise Failure("CQ0706", "division by zero")
    return x % y if y > 0 else -(-x % -y) if x < 0 else x % -y


# Euclid's algorithm ends within 93 steps on 64 bits
_SPARK_GCD = (
    "aggregate(sequence(1, 93), named_struct('a', {0}, 'b', {1}), "
    "(s, i) -> if(s.b = 0, s, named_struct('a', s.b, 'b', s.a % s.b)), s -> abs(s.a))"
)
_TWO_BIGINTS = fixed(BIGINT, BIGINT, returns=BIGINT)


@scalar(
    "gcd",
    "gcd(integer, integer)",
    _TWO_BIGINTS,
    spark=_SPARK_GCD,
    native="gcd",
    aliases=("greatest_common_divisor",),
    fails=("CQ0705",),
    examples=[
        "gcd(12, 18) = 6",
        "gcd(-12, 18) = 6",
        "gcd(0, 5) = 5",
        "gcd(0, 0) = 0",
        "gcd(-9223372036854775807 - 1, 0) = error CQ0705",
        "gcd(null, 2) = null",
    ],
)
def gcd(x: int, y: int) -> int:
    """The greatest common divisor, never negative; 0 for 0 and 0."""
    return within(BIGINT, math.gcd(x, y), f"gcd({x}, {y})")


@scalar(
    "lcm",
    "lcm(integer, integer)",
    _TWO_BIGINTS,
    spark=f"if({{0}} = 0 or {{1}} = 0, {{0}} * {{1}}, abs({{0}} div {_SPARK_GCD} * {{1}}))",
    native="lcm",
    aliases=("least_common_multiple",),
    fails=("CQ0705",),
    examples=[
        "lcm(4, 6) = 12",
        "lcm(-4, 6) = 12",
        "lcm(0, 6) = 0",
        "lcm(9223372036854775807, 2) = error CQ0705",
        "lcm(null, 2) = null",
    ],
)
def lcm(x: int, y: int) -> int:
    """The least common multiple, never negative; 0 if either argument is 0."""
    return within(BIGINT, math.lcm(x, y), f"lcm({x}, {y})")


@scalar(
    "factorial",
    "factorial(INTEGER)",
    fixed(INTEGER, returns=BIGINT),
    spark="factorial({0})",
    native="factorial",
    may_be_null=True,
    examples=[
        "factorial(5) = 120",
        "factorial(0) = 1",
        "factorial(20) = 2432902008176640000",
        "factorial(21) = null",
        "factorial(-1) = null",
        "factorial(null) = null",
    ],
)
def factorial(x: int) -> int | None:
    """The factorial; NULL for negative numbers and numbers above 20."""
    return math.factorial(x) if 0 <= x <= 20 else None


# -- bits -------------------------------------------------------------------------------------------------------------


@scalar(
    "bitand",
    "bitand(integer, integer)",
    _TWO,
    spark="({0} & {1})",
    aliases=("bitwise_and",),
    examples=["bitand(12, 10) = 8", "bitand(-1, 7) = 7", "bitand(0, 5) = 0", "bitand(null, 1) = null"],
)
def bitand(x: int, y: int) -> int:
    """Bitwise AND."""
    return x & y


@scalar(
    "bitor",
    "bitor(integer, integer)",
    _TWO,
    spark="({0} | {1})",
    aliases=("bitwise_or",),
    examples=["bitor(12, 10) = 14", "bitor(-8, 7) = -1", "bitor(0, 5) = 5", "bitor(1, null) = null"],
)
def bitor(x: int, y: int) -> int:
    """Bitwise OR."""
    return x | y


@scalar(
    "bitxor",
    "bitxor(integer, integer)",
    _TWO,
    spark="({0} ^ {1})",
    aliases=("xor", "bitwise_xor"),
    examples=["bitxor(12, 10) = 6", "bitxor(-1, 1) = -2", "bitxor(5, 5) = 0", "bitxor(null, 1) = null"],
)
def bitxor(x: int, y: int) -> int:
    """Bitwise exclusive OR."""
    return x ^ y


@scalar(
    "bitnot",
    "bitnot(integer)",
    _ONE,
    spark="(~ {0})",
    aliases=("bitwise_not",),
    examples=["bitnot(0) = -1", "bitnot(7) = -8", "bitnot(-1) = 0", "bitnot(null) = null"],
)
def bitnot(x: int) -> int:
    """Bitwise NOT."""
    return ~x


@scalar(
    "bit_count",
    "bit_count(integer)",
    fixed(BIGINT, returns=INTEGER),
    spark="bit_count({0})",
    examples=["bit_count(7) = 3", "bit_count(0) = 0", "bit_count(-1) = 64", "bit_count(null) = null"],
)
def bit_count(x: int) -> int:
    """The number of 1 bits among the 64 bits."""
    rest = x & 0x7FFFFFFFFFFFFFFF  # sums of pairs, of fours, of bytes, and of all; the sign is added at the end
    rest = (rest & 0x5555555555555555) + ((rest >> 1) & 0x5555555555555555)
    rest = (rest & 0x3333333333333333) + ((rest >> 2) & 0x3333333333333333)
    rest = (rest & 0x0F0F0F0F0F0F0F0F) + ((rest >> 4) & 0x0F0F0F0F0F0F0F0F)
    rest = rest + (rest >> 8)
    rest = rest + (rest >> 16)
    rest = rest + (rest >> 32)
    return (rest & 0x7F) + (1 if x < 0 else 0)


_SHIFTED = overloaded(Signature((INTEGER, INTEGER), INTEGER), Signature((BIGINT, INTEGER), BIGINT))


def _wrapped(signature: Signature, x: int) -> int:
    """The lowest bits of x as a value of the result's type."""
    bits = INTEGER_BITS[signature.returns.kind]
    rest = x & ((1 << bits) - 1)
    return rest - (1 << bits) if rest >> (bits - 1) else rest


def _places(signature: Signature, count: int) -> int:
    """How far to shift: the count modulo the bits of the type."""
    return count & (INTEGER_BITS[signature.returns.kind] - 1)


@scalar(
    "shiftleft",
    "shiftleft(integer, places)",
    _SHIFTED,
    spark="shiftleft({0}, {1})",
    native="shiftleft",
    typed=True,
    examples=[
        "shiftleft(3, 2) = 12",
        "shiftleft(1, 31) = -2147483648",
        "shiftleft(1, 33) = 2",
        "shiftleft(CAST(1 AS BIGINT), 33) = 8589934592",
        "shiftleft(0, 5) = 0",
        "shiftleft(1, null) = null",
    ],
)
def shiftleft(signature: Signature, x: int, count: int) -> int:
    """The bits shifted left; those beyond the type (INTEGER or BIGINT) are lost. `places` counts modulo 32 or 64."""
    return _wrapped(signature, x << _places(signature, count))


@scalar(
    "shiftright",
    "shiftright(integer, places)",
    _SHIFTED,
    spark="shiftright({0}, {1})",
    native="shiftright",
    typed=True,
    examples=["shiftright(12, 2) = 3", "shiftright(-1, 5) = -1", "shiftright(8, 33) = 4", "shiftright(null, 1) = null"],
)
def shiftright(signature: Signature, x: int, count: int) -> int:
    """The bits shifted right; the sign is kept. `places` counts modulo 32 or 64."""
    return x >> _places(signature, count)


@scalar(
    "shiftrightunsigned",
    "shiftrightunsigned(integer, places)",
    _SHIFTED,
    spark="shiftrightunsigned({0}, {1})",
    native="shiftrightunsigned",
    typed=True,
    examples=[
        "shiftrightunsigned(12, 2) = 3",
        "shiftrightunsigned(-1, 28) = 15",
        "shiftrightunsigned(CAST(-1 AS BIGINT), 60) = 15",
        "shiftrightunsigned(-1, 0) = -1",
        "shiftrightunsigned(null, 1) = null",
    ],
)
def shiftrightunsigned(signature: Signature, x: int, count: int) -> int:
    """The bits shifted right, filled with 0 on the left. `places` counts modulo 32 or 64."""
    bits = INTEGER_BITS[signature.returns.kind]
    return _wrapped(signature, (x & ((1 << bits) - 1)) >> _places(signature, count))


SEVERAL_ROWS = "a scalar sub-query gives several rows: write MIN(x) in it, or LIMIT 1"


@scalar(
    "single_row",
    "single_row(rows)",
    fixed(BIGINT, returns=BOOLEAN),
    spark=f"case when {{0}} > 1 then raise_error('CQ0708: {SEVERAL_ROWS}') when {{0}} <= 1 then true end",
    native="single_row",
    fails=("CQ0708",),
    examples=[
        "single_row(1) = true",
        "single_row(0) = true",
        "single_row(2) = error CQ0708",
        "single_row(null) = null",
    ],
)
def single_row(rows: int) -> bool:
    """Internal check that a scalar sub-query returned at most one row; otherwise error CQ0708."""
    if rows > 1:
        raise Failure("CQ0708", SEVERAL_ROWS)
    return True
