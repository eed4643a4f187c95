"""Comparisons and NOT. Both sides have one type; FALSE < TRUE; text compares by its UTF-8 bytes.

NaN equals NaN and is greater than every number; -0.0 equals 0.0. Arrays are only equal or not. IS [NOT] DISTINCT FROM
and BETWEEN are built from these.
"""

from __future__ import annotations

from typing import Any

from cq.lang.functions.registry import Compares, Signature, scalar
from cq.lang.functions.signatures import compared, fixed
from cq.lang.types import BOOLEAN

# Comparing Python strings by code points orders them as their UTF-8 bytes do.


def equals(x: Any, y: Any) -> bool:
    """x = y, where NaN equals NaN; likewise for elements of arrays, whose NULLs are equal."""
    if isinstance(x, tuple):
        return len(x) == len(y) and all(
            a is b or (None not in (a, b) and equals(a, b)) for a, b in zip(x, y, strict=True)
        )
    return bool(x == y or (x != x and y != y))  # noqa: PLR0124 - only NaN differs from itself


def precedes(x: Any, y: Any) -> bool:
    """x < y, where NaN is the greatest number."""
    return bool(x < y or (y != y and x == x))  # noqa: PLR0124 - only NaN differs from itself


_NAN = "CAST('NaN' AS DOUBLE)"


@scalar(
    "=",
    "x = y, of one type",
    compared("=", arrays=True),
    spark="({0} = {1})",
    native="equal",
    compares=Compares.EQUAL,
    typed=True,
    examples=[
        "1 = 1 = true",
        "1.50 = 1.5 = true",
        f"({_NAN} = {_NAN}) = true",
        "(0e0 = -0e0) = true",
        "(1 = null) = null",
        "('a' = 'a ') = false",
        "(ARRAY[1, null] = ARRAY[1, null]) = true",
        "(ARRAY['a', 'b'] = ARRAY['ab']) = false",
        "(DATE '2024-01-01' = TIMESTAMP '2024-01-01 00:00:00') = true",
    ],
)
def equal(_: Signature, x: Any, y: Any) -> bool:
    """Whether both are equal."""
    return equals(x, y)


@scalar(
    "<>",
    "x <> y, of one type",
    compared("<>", arrays=True),
    spark="({0} <> {1})",
    native="not_equal",
    compares=Compares.NOT_EQUAL,
    typed=True,
    examples=[
        "(1 <> 2) = true",
        "(0 <> 0) = false",
        f"({_NAN} <> {_NAN}) = false",
        "('a' <> null) = null",
        "(true <> false) = true",
    ],
)
def not_equal(_: Signature, x: Any, y: Any) -> bool:
    """Whether they differ."""
    return not equals(x, y)


@scalar(
    "<",
    "x < y, of one type",
    compared("<"),
    spark="({0} < {1})",
    native="less",
    compares=Compares.LESS,
    typed=True,
    examples=[
        "(1 < 2) = true",
        "(-9223372036854775807 < 9223372036854775807) = true",
        f"(1e308 < {_NAN}) = true",
        f"({_NAN} < {_NAN}) = false",
        "('Z' < 'a') = true",
        "('' < 'a') = true",
        "(null < 1) = null",
        "(false < true) = true",
        "(-0e0 < 0e0) = false",
    ],
)
def less(_: Signature, x: Any, y: Any) -> bool:
    """Whether x comes before y."""
    return precedes(x, y)


@scalar(
    "<=",
    "x <= y, of one type",
    compared("<="),
    spark="({0} <= {1})",
    native="less_equal",
    compares=Compares.LESS_EQUAL,
    typed=True,
    examples=[
        "(2 <= 2) = true",
        f"({_NAN} <= 1e0) = false",
        f"({_NAN} <= {_NAN}) = true",
        "('b' <= 'a') = false",
        "(1 <= null) = null",
        "(0 <= 0) = true",
    ],
)
def less_equal(_: Signature, x: Any, y: Any) -> bool:
    """Whether x does not come after y."""
    return not precedes(y, x)


@scalar(
    ">",
    "x > y, of one type",
    compared(">"),
    spark="({0} > {1})",
    native="greater",
    compares=Compares.GREATER,
    typed=True,
    examples=[
        "(2 > 1) = true",
        "(0 > 0) = false",
        f"({_NAN} > 1e308) = true",
        "(INTERVAL '1' HOUR > INTERVAL '59' MINUTE) = true",
        "(null > null) = null",
    ],
)
def greater(_: Signature, x: Any, y: Any) -> bool:
    """Whether x comes after y."""
    return precedes(y, x)


@scalar(
    ">=",
    "x >= y, of one type",
    compared(">="),
    spark="({0} >= {1})",
    native="greater_equal",
    compares=Compares.GREATER_EQUAL,
    typed=True,
    examples=[
        "(2 >= 2) = true",
        "(0 >= 1) = false",
        f"(1e0 >= {_NAN}) = false",
        "(DATE '2024-01-02' >= DATE '2024-01-01') = true",
        "(null >= 1) = null",
    ],
)
def greater_equal(_: Signature, x: Any, y: Any) -> bool:
    """Whether x does not come before y."""
    return not precedes(x, y)


@scalar(
    "not",
    "NOT condition",
    fixed(BOOLEAN, returns=BOOLEAN),
    spark="(not {0})",
    native="not",
    examples=["(NOT true) = false", "(NOT false) = true", "(NOT (1 = null)) = null", "(NOT NOT true) = true"],
)
def negation(x: bool) -> bool:
    """TRUE for FALSE, FALSE for TRUE, NULL for NULL."""
    return not x
