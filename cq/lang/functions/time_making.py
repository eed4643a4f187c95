"""Dates and timestamps made from numbers, their names, and the distance between two."""

from __future__ import annotations

from cq.lang.calendar import (
    DAY_US,
    day_of_days,
    days_from_civil,
    days_in_month,
    month_of_days,
    year_of_days,
)
from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import EXTRACT_PARTS, Failure, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import fixed
from cq.lang.types import BIGINT, DATE, INTEGER, TIMESTAMP, VARCHAR, DataType, Kind, decimal, integer_range

WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SECONDS = decimal(16, 6)


def _one_date(returns: DataType) -> SignatureRule:
    """One DATE; a TIMESTAMP becomes its day."""

    def rule(types: tuple[DataType, ...], _: object) -> Signature | None:
        taken = len(types) == 1 and types[0].kind in {Kind.DATE, Kind.TIMESTAMP, Kind.NULL}
        return Signature((DATE,), returns) if taken else None

    return rule


def _two_dates(types: tuple[DataType, ...], _: object) -> Signature | None:
    taken = len(types) == 2 and all(t.kind in {Kind.DATE, Kind.TIMESTAMP, Kind.NULL} for t in types)
    return Signature((DATE, DATE), BIGINT) if taken else None


# -- made of numbers --------------------------------------------------------------------------------------------------


def _day(year: int, month: int, day: int) -> int:
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise Failure("CQ0708", f"there is no day {day} of month {month} in the year {year}")
    return days_from_civil(year, month, day)


@scalar(
    "make_date",
    "make_date(year, month, day)",
    fixed(INTEGER, INTEGER, INTEGER, returns=DATE),
    spark="make_date({0}, {1}, {2})",
    native="make_date",
    fails=("CQ0708",),
    examples=[
        "make_date(2024, 2, 29) = DATE '2024-02-29'",
        "make_date(1970, 1, 1) = DATE '1970-01-01'",
        "make_date(2023, 2, 29) = error CQ0708",
        "make_date(2024, 13, 1) = error CQ0708",
        "make_date(2024, null, 1) = null",
    ],
)
def make_date(year: int, month: int, day: int) -> int:
    """The date of a year, a month and a day of the month."""
    days = _day(year, month, day)
    low, high = integer_range(INTEGER)
    if not low <= days <= high:
        raise Failure("CQ0708", f"the year {year} is beyond the range of DATE")
    return days


@scalar(
    "make_timestamp",
    "make_timestamp(year, month, day, hour, minute, second)",
    fixed(INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, SECONDS, returns=TIMESTAMP),
    spark="make_timestamp_ntz({0}, {1}, {2}, {3}, {4}, {5})",
    native="make_timestamp",
    aliases=("make_timestamp_ntz",),
    fails=("CQ0708",),
    examples=[
        "make_timestamp(2024, 2, 29, 12, 34, 56.789) = TIMESTAMP '2024-02-29 12:34:56.789'",
        "make_timestamp(1969, 12, 31, 23, 59, 60) = TIMESTAMP '1970-01-01 00:00:00'",
        "make_timestamp(2024, 1, 1, 24, 0, 0) = error CQ0708",
        "make_timestamp(2024, 1, 1, 0, 0, 60.5) = error CQ0708",
        "make_timestamp(2024, 1, 1, 0, 0, null) = null",
    ],
)
def make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """The time of this date and time of day; second 60 is the start of the next minute."""
    days = _day(year, month, day)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 60_000_000:
        raise Failure("CQ0708", f"there is no time of day {hour}:{minute}:{second / 1e6}")
    time = days * DAY_US + (hour * 60 + minute) * 60_000_000 + second
    low, high = integer_range(BIGINT)
    if not low <= time <= high:
        raise Failure("CQ0708", f"the year {year} is beyond the range of TIMESTAMP")
    return time


@scalar(
    "date_from_unix_date",
    "date_from_unix_date(days)",
    fixed(INTEGER, returns=DATE),
    spark="date_from_unix_date({0})",
    examples=[
        "date_from_unix_date(0) = DATE '1970-01-01'",
        "date_from_unix_date(19782) = DATE '2024-02-29'",
        "date_from_unix_date(-1) = DATE '1969-12-31'",
        "date_from_unix_date(null) = null",
    ],
)
def date_from_unix_date(x: int) -> int:
    """The date that many days after 1970-01-01."""
    return x


@scalar(
    "unix_date",
    "unix_date(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark="unix_date({0})",
    examples=[
        "unix_date(DATE '1970-01-01') = 0",
        "unix_date(DATE '2024-02-29') = 19782",
        "unix_date(TIMESTAMP '1969-12-31 23:00:00') = -1",
        "unix_date(null) = null",
    ],
)
def unix_date(x: int) -> int:
    """Days since 1970-01-01."""
    return x


LAST_WHOLE_MONTH = 2147483636  # 5881580-06-30: DATE ends within the next month


@scalar(
    "last_day",
    "last_day(DATE or TIMESTAMP)",
    _one_date(DATE),
    spark=f"if(unix_date({{0}}) > {LAST_WHOLE_MONTH}, raise_error('CQ0705: DATE overflow'), last_day({{0}}))",
    native="last_day",
    fails=("CQ0705",),
    examples=[
        "last_day(DATE '2024-02-01') = DATE '2024-02-29'",
        "last_day(DATE '2023-02-28') = DATE '2023-02-28'",
        "last_day(TIMESTAMP '1969-12-31 23:00:00') = DATE '1969-12-31'",
        "last_day(CAST('+5881580-07-01' AS DATE)) = error CQ0705",
        "last_day(null) = null",
    ],
)
def last_day(x: int) -> int:
    """The last day of the month."""
    year, month = year_of_days(x), month_of_days(x)
    return within(DATE, days_from_civil(year, month, days_in_month(year, month)), "last_day")


# -- days and their names ---------------------------------------------------------------------------------------------


@scalar(
    "weekday",
    "weekday(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark="weekday({0})",
    examples=[
        "weekday(DATE '2024-03-04') = 0",
        "weekday(DATE '2024-03-03') = 6",
        "weekday(DATE '1969-12-31') = 2",
        "weekday(null) = null",
    ],
)
def weekday(x: int) -> int:
    """The day of the week, 0 = Monday to 6 = Sunday."""
    return (x + 3) % 7


@scalar(
    "isodow",
    "isodow(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark="(weekday({0}) + 1)",
    aliases=("dayofweek_iso",),
    examples=[
        "isodow(DATE '2024-03-04') = 1",
        "isodow(DATE '2024-03-03') = 7",
        "isodow(DATE '1969-12-31') = 3",
        "isodow(null) = null",
    ],
)
def isodow(x: int) -> int:
    """The day of the ISO week, 1 = Monday to 7 = Sunday."""
    return (x + 3) % 7 + 1


@scalar(
    "isoyear",
    "isoyear(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark="extract(YEAROFWEEK FROM {0})",
    aliases=("yearofweek",),
    examples=[
        "isoyear(DATE '2024-12-30') = 2025",
        "isoyear(DATE '2021-01-03') = 2020",
        "isoyear(DATE '1970-01-01') = 1970",
        "isoyear(null) = null",
    ],
)
def isoyear(x: int) -> int:
    """The year of the ISO week: that of its Thursday."""
    return year_of_days(x - (x + 3) % 7 + 3)


@scalar(
    "decade",
    "decade(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark="cast(floor(year({0}) / 10) as INT)",
    examples=[
        "decade(DATE '2024-02-29') = 202",
        "decade(DATE '1969-12-31') = 196",
        "decade(TIMESTAMP '1970-01-01 00:00:00') = 197",
        "decade(null) = null",
    ],
)
def decade(x: int) -> int:
    """The year without its last digit."""
    return year_of_days(x) // 10


def _spark_spans(years: int) -> str:
    year = "year({0})"
    return f"cast(if({year} > 0, ({year} + {years - 1}) div {years}, -(({years} - {year}) div {years})) as INT)"


@scalar(
    "century",
    "century(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark=_spark_spans(100),
    examples=[
        "century(DATE '2000-12-31') = 20",
        "century(DATE '2001-01-01') = 21",
        "century(DATE '0001-01-01') = 1",
        "century(DATE '0001-01-01' - 1) = -1",
        "century(null) = null",
    ],
)
def century(x: int) -> int:
    """The century: the 21st is that of 2001 to 2100; the one before the first is -1."""
    year = year_of_days(x)
    return (year + 99) // 100 if year > 0 else -((100 - year) // 100)


@scalar(
    "millennium",
    "millennium(DATE or TIMESTAMP)",
    _one_date(INTEGER),
    spark=_spark_spans(1000),
    examples=[
        "millennium(DATE '2000-12-31') = 2",
        "millennium(DATE '2001-01-01') = 3",
        "millennium(DATE '0001-01-01' - 1) = -1",
        "millennium(null) = null",
    ],
)
def millennium(x: int) -> int:
    """The millennium: the third is that of 2001 to 3000; the one before the first is -1."""
    year = year_of_days(x)
    return (year + 999) // 1000 if year > 0 else -((1000 - year) // 1000)


for _part, _entry in (
    ("decade", "decade"),
    ("century", "century"),
    ("millennium", "millennium"),
    ("isodow", "isodow"),
    ("dayofweek_iso", "isodow"),
    ("isoyear", "isoyear"),
    ("yearofweek", "isoyear"),
):
    EXTRACT_PARTS[_part] = _entry


@scalar(
    "dayname",
    "dayname(DATE or TIMESTAMP)",
    _one_date(VARCHAR),
    spark="dayname({0})",
    native="dayname",
    examples=[
        "dayname(DATE '2024-02-29') = 'Thu'",
        "dayname(DATE '1969-12-28') = 'Sun'",
        "dayname(TIMESTAMP '1970-01-01 00:00:00') = 'Thu'",
        "dayname(null) = null",
    ],
)
def dayname(x: int) -> str:
    """The first three letters of the weekday, as in Spark; DATE_FORMAT(x, 'EEEE') has the whole name."""
    return WEEKDAY_NAMES[(x + 3) % 7][:3]


@scalar(
    "monthname",
    "monthname(DATE or TIMESTAMP)",
    _one_date(VARCHAR),
    spark="monthname({0})",
    native="monthname",
    examples=[
        "monthname(DATE '2024-02-29') = 'Feb'",
        "monthname(DATE '1969-12-31') = 'Dec'",
        "monthname(TIMESTAMP '1970-01-01 00:00:00') = 'Jan'",
        "monthname(null) = null",
    ],
)
def monthname(x: int) -> str:
    """The first three letters of the month, as in Spark; DATE_FORMAT(x, 'MMMM') has the whole name."""
    return MONTH_NAMES[month_of_days(x) - 1][:3]


# -- distances --------------------------------------------------------------------------------------------------------


@scalar(
    "datediff",
    "datediff(end, start), datediff(unit, start, end)",
    _two_dates,
    spark="(cast(unix_date({0}) as BIGINT) - unix_date({1}))",
    aliases=("date_diff",),
    examples=[
        "datediff(DATE '2024-03-01', DATE '2024-02-28') = 2",
        "datediff(DATE '2024-01-01', DATE '2024-01-02') = -1",
        "datediff(TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP '2024-01-01 23:59:59') = 1",
        "datediff(HOUR, TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01 12:59:59') = 2",
        "datediff(null, DATE '2024-01-01') = null",
    ],
)
def datediff(end: int, start: int) -> int:
    """The days from one date to another. With a unit, the same as TIMESTAMPDIFF: start first, whole units only."""
    return end - start


@scalar(
    "timestampdiff_month",
    "timestampdiff(MONTH, start, end)",
    fixed(TIMESTAMP, TIMESTAMP, returns=BIGINT),
    spark="timestampdiff(MONTH, {0}, {1})",
    examples=[
        "timestampdiff(MONTH, DATE '2024-01-31', DATE '2024-02-29') = 0",
        "timestampdiff(MONTH, DATE '2024-02-29', DATE '2024-03-29') = 1",
        "timestampdiff(MONTH, TIMESTAMP '2024-02-29 12:00:00', TIMESTAMP '2024-03-29 11:59:59') = 0",
        "timestampdiff(MONTH, DATE '2024-03-31', DATE '2024-02-29') = -1",
        "timestampdiff(YEAR, DATE '2000-02-29', DATE '2024-02-28') = 23",
        "timestampdiff(SECOND, TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP '1969-12-31 23:59:58.5') = -1",
        "timestampdiff(MONTH, null, DATE '2024-01-01') = null",
    ],
)
def timestampdiff_month(start: int, end: int) -> int:
    """The whole months from one time to another, truncated towards zero. Other units work the same way."""
    first, last = start // 86400000000, end // 86400000000
    since, until = start - first * 86400000000, end - last * 86400000000
    if last > first and until < since:
        last = last - 1
    elif last < first and until > since:
        last = last + 1
    apart = 32 * months_of(last) + day_of_days(last) - 32 * months_of(first) - day_of_days(first)
    return apart // 32 if apart >= 0 else -(-apart // 32)


def months_of(days: int) -> int:
    """The months from year 0 to the month of a day."""
    return year_of_days(days) * 12 + month_of_days(days)
