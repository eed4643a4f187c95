"""Dates and timestamps plus and minus months, dates plus and minus days; leaving the range is an error (CQ0705).

`+` and `-` fall back to these entries if they do not take the operands themselves (see OVERLOADS in arithmetic.py).
"""

from __future__ import annotations

from cq.lang.calendar import DAY_US, days_plus_months
from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import Signature, scalar
from cq.lang.functions.signatures import fixed, overloaded
from cq.lang.types import DATE, INTEGER, INTERVAL_MONTH, TIMESTAMP, DataType, Kind

_MONTHS = overloaded(
    Signature((DATE, INTERVAL_MONTH), DATE),
    Signature((TIMESTAMP, INTERVAL_MONTH), TIMESTAMP),
    Signature((INTERVAL_MONTH, DATE), DATE),
    Signature((INTERVAL_MONTH, TIMESTAMP), TIMESTAMP),
)


def _shifted(type_: DataType, time: int, months: int) -> int:
    if type_.kind is Kind.DATE:
        return within(type_, days_plus_months(time, months), "date plus months")
    days = time // DAY_US
    return within(type_, days_plus_months(days, months) * DAY_US + time - days * DAY_US, "timestamp plus months")


@scalar(
    "add_months",
    "add_months(DATE or TIMESTAMP, INTERVAL of months), also as `+`",
    _MONTHS,
    spark="({0} + {1})",
    native="add_months",
    typed=True,
    fails=("CQ0705",),
    examples=[
        "DATE '2024-01-31' + INTERVAL '1' MONTH = DATE '2024-02-29'",
        "TIMESTAMP '2023-01-31 10:00:00' + INTERVAL '1' MONTH = TIMESTAMP '2023-02-28 10:00:00'",
        "DATE '2024-02-29' + INTERVAL '0' MONTH = DATE '2024-02-29'",
        "DATE '2024-02-29' + INTERVAL '1' YEAR = DATE '2025-02-28'",
        "INTERVAL '1' MONTH + DATE '1969-12-31' = DATE '1970-01-31'",
        "CAST(null AS DATE) + INTERVAL '1' MONTH = null",
    ],
)
def add_months(signature: Signature, x: int, y: int) -> int:
    """Add months; a day past the end of the month becomes its last day."""
    if signature.params[0].kind is Kind.INTERVAL_MONTH:
        x, y = y, x
    return _shifted(signature.returns, x, y)


@scalar(
    "subtract_months",
    "subtract_months(DATE or TIMESTAMP, INTERVAL of months), also as `-`",
    overloaded(Signature((DATE, INTERVAL_MONTH), DATE), Signature((TIMESTAMP, INTERVAL_MONTH), TIMESTAMP)),
    spark="({0} - {1})",
    native="subtract_months",
    typed=True,
    fails=("CQ0705",),
    examples=[
        "DATE '2024-03-31' - INTERVAL '1' MONTH = DATE '2024-02-29'",
        "TIMESTAMP '2024-03-31 10:00:00' - INTERVAL '1' YEAR = TIMESTAMP '2023-03-31 10:00:00'",
        "DATE '1970-01-01' - INTERVAL '0' MONTH = DATE '1970-01-01'",
        "CAST(null AS DATE) - INTERVAL '1' MONTH = null",
    ],
)
def subtract_months(signature: Signature, x: int, y: int) -> int:
    """Subtract months; a day past the end of the month becomes its last day."""
    return _shifted(signature.returns, x, -y)


@scalar(
    "date_add",
    "date_add(DATE, days), also as `+`",
    fixed(DATE, INTEGER, returns=DATE),
    spark="date_from_unix_date(unix_date({0}) + {1})",  # DATE_ADD wraps
    native="date_add",
    typed=True,
    fails=("CQ0705",),
    examples=[
        "date_add(DATE '2024-02-28', 2) = DATE '2024-03-01'",
        "DATE '2024-02-28' + 1 = DATE '2024-02-29'",
        "date_add(DATE '1970-01-01', 0) = DATE '1970-01-01'",
        "date_add(DATE '1970-01-01', -1) = DATE '1969-12-31'",
        "date_add(DATE '1970-01-02', 2147483647) = error CQ0705",
        "date_add(null, 1) = null",
    ],
)
def date_add(signature: Signature, x: int, y: int) -> int:
    """Add days to a date."""
    return within(DATE, x + y, "date plus days")


@scalar(
    "date_sub",
    "date_sub(DATE, days), also as `-`",
    fixed(DATE, INTEGER, returns=DATE),
    spark="date_from_unix_date(unix_date({0}) - {1})",
    native="date_sub",
    typed=True,
    fails=("CQ0705",),
    examples=[
        "date_sub(DATE '2024-03-01', 1) = DATE '2024-02-29'",
        "DATE '2024-03-01' - 1 = DATE '2024-02-29'",
        "date_sub(DATE '1970-01-01', 0) = DATE '1970-01-01'",
        "date_sub(DATE '1969-12-01', 2147483647) = error CQ0705",
        "date_sub(null, 1) = null",
    ],
)
def date_sub(signature: Signature, x: int, y: int) -> int:
    """Subtract days from a date."""
    return within(DATE, x - y, "date minus days")
