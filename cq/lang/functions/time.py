"""Dates and timestamps: their parts, and conversion from and to counts since 1970.

Date parts take a DATE (a TIMESTAMP becomes its day), parts of the day a TIMESTAMP or TIME. `EXTRACT(part FROM x)` uses
these entries under the names in EXTRACT_PARTS. Before 1970 everything is rounded down: there is no second 0 that lasts
twice as long.
"""

from __future__ import annotations

from collections.abc import Callable

from cq.lang.calendar import (
    day_of_days,
    days_from_civil,
    iso_week_of_days,
    month_of_days,
    year_of_days,
)
from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import EXTRACT_PARTS, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import fixed, overloaded
from cq.lang.functions.spark_text import time_of_day
from cq.lang.types import BIGINT, DATE, INTEGER, TIME, TIMESTAMP, DataType, Kind, decimal


def _of_date(types: tuple[DataType, ...], _: object) -> Signature | None:
    taken = len(types) == 1 and types[0].kind in {Kind.DATE, Kind.TIMESTAMP, Kind.NULL}
    return Signature((DATE,), INTEGER) if taken else None


def _of_clock(returns: DataType) -> SignatureRule:
    return overloaded(Signature((TIMESTAMP,), returns), Signature((TIME,), returns))


def _spark_of_clock(text: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark's text, which takes a TIMESTAMP: a TIME becomes one on 1970-01-01."""

    def write(signature: Signature, args: tuple[str, ...]) -> str:
        return text.format(time_of_day(args[0]) if signature.params[0] == TIME else args[0])

    return write


@scalar(
    "year",
    "year(DATE or TIMESTAMP)",
    _of_date,
    spark="year({0})",
    examples=[
        "year(DATE '2024-02-29') = 2024",
        "year(TIMESTAMP '1969-12-31 23:59:59') = 1969",
        "year(CAST('0000-03-01' AS DATE)) = 0",
        "year(null) = null",
    ],
)
def year(x: int) -> int:
    """The year."""
    return year_of_days(x)


@scalar(
    "quarter",
    "quarter(DATE or TIMESTAMP)",
    _of_date,
    spark="quarter({0})",
    examples=[
        "quarter(DATE '2024-03-31') = 1",
        "quarter(DATE '2024-04-01') = 2",
        "quarter(DATE '1969-12-31') = 4",
        "quarter(null) = null",
    ],
)
def quarter(x: int) -> int:
    """The quarter, 1 to 4."""
    return (month_of_days(x) + 2) // 3


@scalar(
    "month",
    "month(DATE or TIMESTAMP)",
    _of_date,
    spark="month({0})",
    examples=[
        "month(DATE '2024-02-29') = 2",
        "month(DATE '1970-01-01') = 1",
        "month(TIMESTAMP '1969-12-31 00:00:00') = 12",
        "month(null) = null",
    ],
)
def month(x: int) -> int:
    """The month, 1 to 12."""
    return month_of_days(x)


@scalar(
    "week",
    "week(DATE or TIMESTAMP)",
    _of_date,
    spark="weekofyear({0})",
    aliases=("weekofyear",),
    examples=[
        "week(DATE '2024-12-30') = 1",
        "week(DATE '2021-01-03') = 53",
        "week(DATE '1970-01-01') = 1",
        "week(null) = null",
    ],
)
def week(x: int) -> int:
    """The ISO week, 1 to 53: weeks start on Monday, and week 1 contains the year's first Thursday."""
    return iso_week_of_days(x)


@scalar(
    "day",
    "day(DATE or TIMESTAMP)",
    _of_date,
    spark="day({0})",
    aliases=("dayofmonth",),
    examples=[
        "day(DATE '2024-02-29') = 29",
        "day(DATE '1970-01-01') = 1",
        "day(TIMESTAMP '1969-12-31 23:00:00') = 31",
        "day(null) = null",
    ],
)
def day(x: int) -> int:
    """The day of the month, 1 to 31."""
    return day_of_days(x)


@scalar(
    "dayofweek",
    "dayofweek(DATE or TIMESTAMP)",
    _of_date,
    spark="dayofweek({0})",
    examples=[
        "dayofweek(DATE '2024-03-03') = 1",
        "dayofweek(DATE '2024-03-02') = 7",
        "dayofweek(DATE '1970-01-01') = 5",
        "dayofweek(null) = null",
    ],
)
def dayofweek(x: int) -> int:
    """The day of the week, 1 = Sunday to 7 = Saturday, as in Spark."""
    return (x + 4) % 7 + 1


@scalar(
    "dayofyear",
    "dayofyear(DATE or TIMESTAMP)",
    _of_date,
    spark="dayofyear({0})",
    examples=[
        "dayofyear(DATE '2024-12-31') = 366",
        "dayofyear(DATE '1970-01-01') = 1",
        "dayofyear(DATE '1969-12-31') = 365",
        "dayofyear(null) = null",
    ],
)
def dayofyear(x: int) -> int:
    """The day of the year, 1 to 366."""
    return x - days_from_civil(year_of_days(x), 1, 1) + 1


@scalar(
    "hour",
    "hour(TIMESTAMP or TIME)",
    _of_clock(INTEGER),
    spark=_spark_of_clock("hour({0})"),
    examples=[
        "hour(TIMESTAMP '2024-01-01 13:14:15') = 13",
        "hour(TIMESTAMP '1969-12-31 23:59:59.999999') = 23",
        "hour(DATE '2024-01-01') = 0",
        "hour(TIME '13:14:15') = 13",
        "hour(null) = null",
    ],
)
def hour(x: int) -> int:
    """The hour, 0 to 23."""
    return x // 3600000000 % 24


@scalar(
    "minute",
    "minute(TIMESTAMP or TIME)",
    _of_clock(INTEGER),
    spark=_spark_of_clock("minute({0})"),
    examples=[
        "minute(TIMESTAMP '2024-01-01 13:14:15') = 14",
        "minute(TIMESTAMP '1969-12-31 23:59:59') = 59",
        "minute(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "minute(TIME '13:14:15') = 14",
        "minute(null) = null",
    ],
)
def minute(x: int) -> int:
    """The minute, 0 to 59."""
    return x // 60000000 % 60


@scalar(
    "second",
    "second(TIMESTAMP or TIME)",
    _of_clock(INTEGER),
    spark=_spark_of_clock("second({0})"),
    examples=[
        "second(TIMESTAMP '2024-01-01 13:14:15.9') = 15",
        "second(TIMESTAMP '1969-12-31 23:59:59.1') = 59",
        "second(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "second(null) = null",
    ],
)
def second(x: int) -> int:
    """The whole second, 0 to 59. EXTRACT(SECOND …) includes the fraction."""
    return x // 1000000 % 60


@scalar(
    "extract_second",
    "extract_second(TIMESTAMP or TIME)",
    _of_clock(decimal(8, 6)),
    spark=_spark_of_clock("extract(SECOND FROM {0})"),
    examples=[
        "extract_second(TIMESTAMP '2024-01-01 00:00:15.25') = 15.25",
        "extract_second(TIMESTAMP '1969-12-31 23:59:59.5') = 59.5",
        "extract_second(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "extract_second(TIME '13:14:15.25') = 15.25",
        "extract_second(null) = null",
    ],
)
def extract_second(x: int) -> int:
    """The second with its fraction, DECIMAL(8,6)."""
    return x % 60000000


@scalar(
    "extract_millisecond",
    "extract_millisecond(TIMESTAMP or TIME)",
    _of_clock(INTEGER),
    spark=_spark_of_clock("cast(floor(extract(SECOND FROM {0}) * 1000) as INT)"),
    examples=[
        "extract_millisecond(TIMESTAMP '2024-01-01 00:00:15.2509') = 15250",
        "extract_millisecond(TIMESTAMP '1969-12-31 23:59:59.5') = 59500",
        "extract_millisecond(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "extract_millisecond(TIME '13:14:15.2509') = 15250",
        "extract_millisecond(null) = null",
    ],
)
def extract_millisecond(x: int) -> int:
    """The milliseconds since the minute began."""
    return x % 60000000 // 1000


@scalar(
    "extract_microsecond",
    "extract_microsecond(TIMESTAMP or TIME)",
    _of_clock(INTEGER),
    spark=_spark_of_clock("cast(extract(SECOND FROM {0}) * 1000000 as INT)"),
    examples=[
        "extract_microsecond(TIMESTAMP '2024-01-01 00:00:15.25') = 15250000",
        "extract_microsecond(TIMESTAMP '1969-12-31 23:59:59.999999') = 59999999",
        "extract_microsecond(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "extract_microsecond(null) = null",
    ],
)
def extract_microsecond(x: int) -> int:
    """The microseconds since the minute began."""
    return x % 60000000


@scalar(
    "unix_seconds",
    "unix_seconds(TIMESTAMP)",
    fixed(TIMESTAMP, returns=BIGINT),
    spark="unix_seconds(cast({0} as timestamp))",
    examples=[
        "unix_seconds(TIMESTAMP '1970-01-01 00:01:00') = 60",
        "unix_seconds(TIMESTAMP '1969-12-31 23:59:59.999') = -1",
        "unix_seconds(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "unix_seconds(null) = null",
    ],
)
def unix_seconds(x: int) -> int:
    """Whole seconds since 1970-01-01 00:00:00, rounded down. Also EXTRACT(EPOCH …)."""
    return x // 1000000


@scalar(
    "unix_millis",
    "unix_millis(TIMESTAMP)",
    fixed(TIMESTAMP, returns=BIGINT),
    spark="unix_millis(cast({0} as timestamp))",
    aliases=("epoch_ms",),
    examples=[
        "unix_millis(TIMESTAMP '1970-01-01 00:00:01.0019') = 1001",
        "unix_millis(TIMESTAMP '1969-12-31 23:59:59.9999') = -1",
        "unix_millis(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "unix_millis(null) = null",
    ],
)
def unix_millis(x: int) -> int:
    """Milliseconds since 1970-01-01 00:00:00, rounded down."""
    return x // 1000


@scalar(
    "unix_micros",
    "unix_micros(TIMESTAMP)",
    fixed(TIMESTAMP, returns=BIGINT),
    spark="unix_micros(cast({0} as timestamp))",
    aliases=("epoch_us",),
    examples=[
        "unix_micros(TIMESTAMP '1970-01-01 00:00:00.000001') = 1",
        "unix_micros(TIMESTAMP '1969-12-31 23:59:59') = -1000000",
        "unix_micros(TIMESTAMP '1970-01-01 00:00:00') = 0",
        "unix_micros(null) = null",
    ],
)
def unix_micros(x: int) -> int:
    """Microseconds since 1970-01-01 00:00:00."""
    return x


for _part, _entry in (
    ("year", "year"),
    ("quarter", "quarter"),
    ("month", "month"),
    ("week", "week"),
    ("day", "day"),
    ("dow", "dayofweek"),
    ("dayofweek", "dayofweek"),
    ("doy", "dayofyear"),
    ("dayofyear", "dayofyear"),
    ("hour", "hour"),
    ("minute", "minute"),
    ("second", "extract_second"),
    ("millisecond", "extract_millisecond"),
    ("microsecond", "extract_microsecond"),
    ("epoch", "unix_seconds"),
):
    EXTRACT_PARTS[_part] = _entry
    if _part not in {"dow", "doy", "epoch", "dayofweek", "dayofyear"}:
        EXTRACT_PARTS[_part + "s"] = _entry


@scalar(
    "timestamp_seconds",
    "timestamp_seconds(integer)",
    fixed(BIGINT, returns=TIMESTAMP),
    spark="cast(timestamp_seconds({0}) as TIMESTAMP_NTZ)",
    native="timestamp_seconds",
    fails=("CQ0705",),
    examples=[
        "timestamp_seconds(0) = TIMESTAMP '1970-01-01 00:00:00'",
        "timestamp_seconds(60) = TIMESTAMP '1970-01-01 00:01:00'",
        "timestamp_seconds(-1) = TIMESTAMP '1969-12-31 23:59:59'",
        "timestamp_seconds(9223372036854775807) = error CQ0705",
        "timestamp_seconds(null) = null",
    ],
)
def timestamp_seconds(x: int) -> int:
    """The time that many seconds after 1970-01-01 00:00:00."""
    return within(TIMESTAMP, x * 1000000, f"timestamp_seconds({x})")


@scalar(
    "timestamp_millis",
    "timestamp_millis(integer)",
    fixed(BIGINT, returns=TIMESTAMP),
    spark="cast(timestamp_millis({0}) as TIMESTAMP_NTZ)",
    native="timestamp_millis",
    fails=("CQ0705",),
    examples=[
        "timestamp_millis(0) = TIMESTAMP '1970-01-01 00:00:00'",
        "timestamp_millis(60001) = TIMESTAMP '1970-01-01 00:01:00.001'",
        "timestamp_millis(-1) = TIMESTAMP '1969-12-31 23:59:59.999'",
        "timestamp_millis(9223372036854775807) = error CQ0705",
        "timestamp_millis(null) = null",
    ],
)
def timestamp_millis(x: int) -> int:
    """The time that many milliseconds after 1970-01-01 00:00:00."""
    return within(TIMESTAMP, x * 1000, f"timestamp_millis({x})")


@scalar(
    "timestamp_micros",
    "timestamp_micros(integer)",
    fixed(BIGINT, returns=TIMESTAMP),
    spark="cast(timestamp_micros({0}) as TIMESTAMP_NTZ)",
    examples=[
        "timestamp_micros(0) = TIMESTAMP '1970-01-01 00:00:00'",
        "timestamp_micros(1) = TIMESTAMP '1970-01-01 00:00:00.000001'",
        "timestamp_micros(-1) = TIMESTAMP '1969-12-31 23:59:59.999999'",
        "timestamp_micros(null) = null",
    ],
)
def timestamp_micros(x: int) -> int:
    """The time that many microseconds after 1970-01-01 00:00:00."""
    return x
