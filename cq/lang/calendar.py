"""The proleptic Gregorian calendar in integer arithmetic: days since 1970-01-01 and back, for any year.

Kernels compile these functions as they stand, so they use integers and floor division only. The conversions count
days from 0000-03-01, so that the leap day is the last of its year, in eras of 400 years (146,097 days).
"""

from __future__ import annotations

DAY_US = 86_400_000_000


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a valid date."""
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    month_from_march = month - 3 if month > 2 else month + 9
    day_of_year = (153 * month_from_march + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def year_of_days(days: int) -> int:
    """The year of a day."""
    z = days + 719468
    era = z // 146097
    day_of_era = z - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return era * 400 + year_of_era + (1 if day_of_year >= 306 else 0)  # January and February end the March year


def month_of_days(days: int) -> int:
    """The month of a day, 1 to 12."""
    z = days + 719468
    era = z // 146097
    day_of_era = z - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    return month_from_march + 3 if month_from_march < 10 else month_from_march - 9


def day_of_days(days: int) -> int:
    """The day of the month of a day, 1 to 31."""
    return days - days_from_civil(year_of_days(days), month_of_days(days), 1) + 1


def days_in_month(year: int, month: int) -> int:
    """How many days a month has."""
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


def days_plus_months(days: int, months: int) -> int:
    """The day `months` later; a day the month does not have becomes its last (Jan 31 + 1 month = Feb 28 or 29)."""
    count = year_of_days(days) * 12 + month_of_days(days) - 1 + months
    year, month = count // 12, count % 12 + 1
    last = days_in_month(year, month)
    day = day_of_days(days)
    return days_from_civil(year, month, day if day < last else last)


def months_of_time(time_us: int) -> int:
    """Months from January 1970 to the month that contains a time."""
    days = time_us // DAY_US
    return (year_of_days(days) - 1970) * 12 + month_of_days(days) - 1


def time_of_months(months: int) -> int:
    """The start of the month that is this many months after January 1970."""
    return days_from_civil(1970 + months // 12, months % 12 + 1, 1) * DAY_US


def most_days_of(months: int) -> int:
    """The days of the longest run of this many months. The calendar repeats after 4,800."""
    rest = months % 4800
    starts = [days_from_civil(1970 + n // 12, n % 12 + 1, 1) for n in range(4800 + rest)]
    return months // 4800 * 146097 + max(starts[n + rest] - starts[n] for n in range(4800))


def iso_week_of_days(days: int) -> int:
    """The ISO week: Monday first, week 1 holds the year's first Thursday."""
    thursday = days - (days + 3) % 7 + 3
    return (thursday - days_from_civil(year_of_days(thursday), 1, 1)) // 7 + 1
