"""GREATEST and LEAST. CASE, COALESCE, NULLIF and IF are expressions of their own."""

from __future__ import annotations

from typing import Any

from cq.lang.functions.comparison import precedes
from cq.lang.functions.registry import Signature, scalar
from cq.lang.functions.signatures import same_type


@scalar(
    "greatest",
    "greatest(x, y, …), of one type",
    same_type("greatest", lambda t: t),
    spark=lambda _, args: f"greatest({', '.join(args)})",
    native="greatest",
    typed=True,
    handles_null=True,
    examples=[
        "greatest(1, 3, 2) = 3",
        "greatest(1, null) = 1",
        "greatest(null, null) = null",
        "greatest(1e0, CAST('NaN' AS DOUBLE)) = CAST('NaN' AS DOUBLE)",
        "greatest(-9223372036854775807, 0) = 0",
        "greatest('a', 'b') = 'b'",
    ],
)
def greatest(_: Signature, *values: Any) -> Any:
    """The greatest argument, ignoring NULLs; NULL if all are NULL. Ties return the first."""
    best = None
    for v in values:
        if v is not None and (best is None or precedes(best, v)):
            best = v
    return best


@scalar(
    "least",
    "least(x, y, …), of one type",
    same_type("least", lambda t: t),
    spark=lambda _, args: f"least({', '.join(args)})",
    native="least",
    typed=True,
    handles_null=True,
    examples=[
        "least(2, 1, 3) = 1",
        "least(1, null) = 1",
        "least(null, null) = null",
        "least(1e0, CAST('NaN' AS DOUBLE)) = 1e0",
        "least(0.5, 1) = 0.5",
        "least('b', 'a') = 'a'",
    ],
)
def least(_: Signature, *values: Any) -> Any:
    """The least argument, ignoring NULLs; NULL if all are NULL. Ties return the first."""
    best = None
    for v in values:
        if v is not None and (best is None or precedes(v, best)):
            best = v
    return best
