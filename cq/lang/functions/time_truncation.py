"""Truncation of times: `DATE_TRUNC('unit', x)` uses these entries under the names in TRUNC_UNITS.

The start of a unit is never after the time, even before 1970.
"""

from __future__ import annotations

from collections.abc import Callable

from cq.lang.calendar import days_from_civil, month_of_days, year_of_days
from cq.lang.functions.registry import TRUNC_UNITS, Signature, scalar
from cq.lang.functions.signatures import fixed, overloaded
from cq.lang.types import TIME, TIMESTAMP

_TO_TIMESTAMP = fixed(TIMESTAMP, returns=TIMESTAMP)
_KEEPS_CLOCK = overloaded(Signature((TIMESTAMP,), TIMESTAMP), Signature((TIME,), TIME))


def _spark_trunc(unit: str, length_us: int) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark's function of a TIMESTAMP; a TIME is a count."""

    def write(signature: Signature, args: tuple[str, ...]) -> str:
        (time,) = args
        if signature.params[0] == TIME:
            return f"({time} - {time} % {length_us}L)"
        return f"cast(date_trunc('{unit}', {time}) as TIMESTAMP_NTZ)"

    return write


def nothing_before(x: int) -> bool:
    """Whether `x` is in the first 14 months that 64 bits can count (year -290308): truncation leaves it unchanged."""
    return x < -9223335000000000000


def start_of_months(days: int, months: int) -> int:
    """The first day of the period of this many months (1, 3, 12), counted from January, that contains the day."""
    month = month_of_days(days)
    return days_from_civil(year_of_days(days), month - (month - 1) % months, 1)


@scalar(
    "date_trunc_microsecond",
    "date_trunc('microsecond', TIMESTAMP or TIME)",
    _KEEPS_CLOCK,
    spark=_spark_trunc("MICROSECOND", 1),
    examples=[
        "date_trunc('microsecond', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 12:34:56.789012'",
        "date_trunc('microsecond', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 23:59:59.999999'",
        "date_trunc('microsecond', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('microsecond', null) = null",
    ],
)
def date_trunc_microsecond(x: int) -> int:
    """The time itself."""
    return x


@scalar(
    "date_trunc_millisecond",
    "date_trunc('millisecond', TIMESTAMP or TIME)",
    _KEEPS_CLOCK,
    spark=_spark_trunc("MILLISECOND", 1000),
    examples=[
        "date_trunc('millisecond', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 12:34:56.789'",
        "date_trunc('millisecond', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 23:59:59.999'",
        "date_trunc('millisecond', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('millisecond', TIME '23:59:59.0005') = TIME '23:59:59'",
        "date_trunc('millisecond', null) = null",
    ],
)
def date_trunc_millisecond(x: int) -> int:
    """The start of the millisecond."""
    return x if nothing_before(x) else x - x % 1000


@scalar(
    "date_trunc_second",
    "date_trunc('second', TIMESTAMP or TIME)",
    _KEEPS_CLOCK,
    spark=_spark_trunc("SECOND", 1000000),
    examples=[
        "date_trunc('second', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 12:34:56'",
        "date_trunc('second', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 23:59:59'",
        "date_trunc('second', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('second', null) = null",
    ],
)
def date_trunc_second(x: int) -> int:
    """The start of the second."""
    return x if nothing_before(x) else x - x % 1000000


@scalar(
    "date_trunc_minute",
    "date_trunc('minute', TIMESTAMP or TIME)",
    _KEEPS_CLOCK,
    spark=_spark_trunc("MINUTE", 60000000),
    examples=[
        "date_trunc('minute', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 12:34:00'",
        "date_trunc('minute', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 23:59:00'",
        "date_trunc('minute', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('minute', TIME '23:59:59.5') = TIME '23:59:00'",
        "date_trunc('minute', null) = null",
    ],
)
def date_trunc_minute(x: int) -> int:
    """The start of the minute."""
    return x if nothing_before(x) else x - x % 60000000


@scalar(
    "date_trunc_hour",
    "date_trunc('hour', TIMESTAMP or TIME)",
    _KEEPS_CLOCK,
    spark=_spark_trunc("HOUR", 3600000000),
    examples=[
        "date_trunc('hour', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 12:00:00'",
        "date_trunc('hour', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 23:00:00'",
        "date_trunc('hour', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('hour', TIME '12:34:56.789012') = TIME '12:00:00'",
        "date_trunc('hour', null) = null",
    ],
)
def date_trunc_hour(x: int) -> int:
    """The start of the hour."""
    return x if nothing_before(x) else x - x % 3600000000


@scalar(
    "date_trunc_day",
    "date_trunc('day', TIMESTAMP)",
    _TO_TIMESTAMP,
    spark="cast(date_trunc('DAY', {0}) as TIMESTAMP_NTZ)",
    examples=[
        "date_trunc('day', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-29 00:00:00'",
        "date_trunc('day', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-31 00:00:00'",
        "date_trunc('day', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('day', null) = null",
    ],
)
def date_trunc_day(x: int) -> int:
    """The start of the day."""
    return x if nothing_before(x) else x - x % 86400000000


@scalar(
    "date_trunc_week",
    "date_trunc('week', TIMESTAMP)",
    _TO_TIMESTAMP,
    spark="cast(date_trunc('WEEK', {0}) as TIMESTAMP_NTZ)",
    examples=[
        "date_trunc('week', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-26 00:00:00'",
        "date_trunc('week', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-29 00:00:00'",
        "date_trunc('week', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1969-12-29 00:00:00'",
        "date_trunc('week', null) = null",
    ],
)
def date_trunc_week(x: int) -> int:
    """The start of the week's Monday."""
    return x if nothing_before(x) else (x // 86400000000 - (x // 86400000000 + 3) % 7) * 86400000000


@scalar(
    "date_trunc_month",
    "date_trunc('month', TIMESTAMP)",
    _TO_TIMESTAMP,
    spark="cast(date_trunc('MONTH', {0}) as TIMESTAMP_NTZ)",
    examples=[
        "date_trunc('month', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-02-01 00:00:00'",
        "date_trunc('month', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-12-01 00:00:00'",
        "date_trunc('month', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('month', null) = null",
    ],
)
def date_trunc_month(x: int) -> int:
    """The start of the month."""
    return x if nothing_before(x) else start_of_months(x // 86400000000, 1) * 86400000000


@scalar(
    "date_trunc_quarter",
    "date_trunc('quarter', TIMESTAMP)",
    _TO_TIMESTAMP,
    spark="cast(date_trunc('QUARTER', {0}) as TIMESTAMP_NTZ)",
    examples=[
        "date_trunc('quarter', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-01-01 00:00:00'",
        "date_trunc('quarter', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-10-01 00:00:00'",
        "date_trunc('quarter', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('quarter', null) = null",
    ],
)
def date_trunc_quarter(x: int) -> int:
    """The start of the quarter."""
    return x if nothing_before(x) else start_of_months(x // 86400000000, 3) * 86400000000


@scalar(
    "date_trunc_year",
    "date_trunc('year', TIMESTAMP)",
    _TO_TIMESTAMP,
    spark="cast(date_trunc('YEAR', {0}) as TIMESTAMP_NTZ)",
    examples=[
        "date_trunc('year', TIMESTAMP '2024-02-29 12:34:56.789012') = TIMESTAMP '2024-01-01 00:00:00'",
        "date_trunc('year', TIMESTAMP '1969-12-31 23:59:59.999999') = TIMESTAMP '1969-01-01 00:00:00'",
        "date_trunc('year', TIMESTAMP '1970-01-01 00:00:00') = TIMESTAMP '1970-01-01 00:00:00'",
        "date_trunc('year', null) = null",
    ],
)
def date_trunc_year(x: int) -> int:
    """The start of the year."""
    return x if nothing_before(x) else start_of_months(x // 86400000000, 12) * 86400000000


for _unit in ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"):
    TRUNC_UNITS[_unit] = f"date_trunc_{_unit}"
