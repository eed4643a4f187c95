"""Dates, timestamps and intervals as text and back, equal to cq/lang/value_text.py; the calendar as native functions.

Conventions as in numerals.py. `cq.lang.calendar` holds the calendar itself; its functions are registered here, compiled
unchanged and copied into the loops of stages.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.lang.calendar import (
    DAY_US,
    day_of_days,
    days_from_civil,
    days_in_month,
    days_plus_months,
    iso_week_of_days,
    month_of_days,
    months_of_time,
    time_of_months,
    year_of_days,
)
from cq.runtime.base.native import native
from cq.runtime.base.ops import add_ovf, floordiv, ld_u8, mul_ovf, st_i64, udiv, urem, wadd, wmul, wsub
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.numerals import (
    BAD,
    GOOD,
    MINUS,
    PLUS,
    POINT,
    ZERO,
    digits_end,
    finish_text,
    letters,
    number_at,
    put_byte,
    put_number,
    put_word,
    trimmed,
    word_of,
)
from cq.runtime.values.text import step_bytes

native("i64(i64, i64, i64)", inline=True)(days_from_civil)
native("i64(i64)", inline=True)(year_of_days)
native("i64(i64)", inline=True)(month_of_days)
native("i64(i64)", inline=True)(day_of_days)
native("i64(i64, i64)", inline=True)(days_in_month)
native("i64(i64, i64)", inline=True)(days_plus_months)
native("i64(i64)", inline=True)(iso_week_of_days)
native("i64(i64)", export=True)(months_of_time)
native("i64(i64)", export=True)(time_of_months)

SECOND_US = 1_000_000
INTEGER_LOW, INTEGER_HIGH = -(2**31), 2**31 - 1
BLANK, COLON, LOWER_T = 32, 58, 116
MOST_FRACTION = 9  # accepted digits after the second; those after the sixth are cut
ZULU, SMALL_ZULU, UTC = letters(b"Z"), letters(b"z"), letters(b"UTC")
PLUS_ZERO, MINUS_ZERO = letters(b"+0000"), letters(b"-0000")
PLUS_ZERO_COLON, MINUS_ZERO_COLON = letters(b"+00:00"), letters(b"-00:00")
INTERVAL, OPEN = letters(b"INTERVAL"), letters(b" '")
TO_SECOND, SECOND = letters(b"' DAY TO"), letters(b" SECOND")
TO_MONTH, MONTH = letters(b"' YEAR T"), letters(b"O MONTH")
NO_TIME = -1  # instead of the hour
TEXT_BYTES = 80  # the longest text made here, an INTERVAL, has 55


@native("(i64, i64)(i64, i64)")
def time_of(days: int, micros: int) -> tuple[int, int]:
    """Microseconds since 1970 of a day and the microseconds since its midnight, and whether they fit 64 bits."""
    back = 0
    if days < 0:  # count from the next midnight, so that the first representable day is no exception
        back = 1
    if mul_ovf(days + back, DAY_US):
        return 0, 0
    midnight = wmul(days + back, DAY_US)
    rest = micros - back * DAY_US
    if add_ovf(midnight, rest):
        return 0, 0
    return wadd(midnight, rest), 1


@native("i64(i64, i64, i64)", export=True)
def time_plus_months(state: int, time: int, months: int) -> int:
    """Put the time this many months later into STATE_RESULT; return whether it fits 64 bits. |months| <= 2**31."""
    days = floordiv(time, DAY_US)
    made, fits = time_of(days_plus_months(days, months), wsub(time, wmul(days, DAY_US)))
    st_i64(state, STATE_RESULT, made)
    return fits


# -- text to times ----------------------------------------------------------------------------------------------------


@native("(i64, i64)(i64, i64, i64)")
def _short_number(text: int, at: int, end: int) -> tuple[int, int]:
    """The number of one or two digits and the offset after it; -1 if there are fewer or more."""
    after = digits_end(text, at, end)
    if after == at or after > at + 2:
        return -1, at
    return number_at(text, at, after), after


@native("i64(i64, i64, i64, i64)")
def byte_is(text: int, at: int, end: int, byte: int) -> int:
    """Whether this byte is there."""
    return at < end and ld_u8(text, at) == byte


@native("(i64, i64, i64)(i64, i64, i64)")
def day_of(text: int, first: int, end: int) -> tuple[int, int, int]:
    """The day of `[+-]YYYY-MM-DD`, the offset after it, and whether it is one; years have up to 7 digits."""
    at = first
    negative = False
    if at < end and (ld_u8(text, at) == PLUS or ld_u8(text, at) == MINUS):
        negative = ld_u8(text, at) == MINUS
        at += 1
    after = digits_end(text, at, end)
    if after - at < 4 or after - at > 7 or byte_is(text, after, end, MINUS) == 0:
        return 0, first, 0
    year = number_at(text, at, after)
    if negative:
        year = -year
    month, at = _short_number(text, after + 1, end)
    if month < 1 or month > 12 or byte_is(text, at, end, MINUS) == 0:
        return 0, first, 0
    day, at = _short_number(text, at + 1, end)
    if day < 1 or day > days_in_month(year, month):
        return 0, first, 0
    return days_from_civil(year, month, day), at, 1


@native("(i64, i64, i64, i64, i64, i64)(i64, i64, i64)")
def clock_of(text: int, first: int, end: int) -> tuple[int, int, int, int, int, int]:
    """Hour, minute, second and microseconds of `hh:mm[:ss[.f]]`, the offset after them, and whether they are there.

    Only their form is checked.
    """
    hour, at = _short_number(text, first, end)
    if hour < 0 or byte_is(text, at, end, COLON) == 0:
        return 0, 0, 0, 0, first, 0
    minute, at = _short_number(text, at + 1, end)
    if minute < 0:
        return 0, 0, 0, 0, first, 0
    second = 0
    micros = 0
    if byte_is(text, at, end, COLON) != 0:
        second, at = _short_number(text, at + 1, end)
        if second < 0:
            return 0, 0, 0, 0, first, 0
        if byte_is(text, at, end, POINT) != 0:
            after = digits_end(text, at + 1, end)
            if after - at - 1 > MOST_FRACTION:
                return 0, 0, 0, 0, first, 0
            for place in range(6):
                micros = micros * 10
                if at + 1 + place < after:
                    micros += ld_u8(text, at + 1 + place) - ZERO
            at = after
    return hour, minute, second, micros, at, 1


@native("i64(i64, i64, i64)")
def _is_utc(text: int, first: int, end: int) -> int:
    """Whether the rest is nothing or a name of UTC, after at most one blank."""
    at = first
    if byte_is(text, at, end, BLANK) != 0:
        at += 1
    word = word_of(text, at, end, 0)
    named = word == ZULU or word == SMALL_ZULU or word == UTC
    offset = word == PLUS_ZERO or word == MINUS_ZERO or word == PLUS_ZERO_COLON or word == MINUS_ZERO_COLON
    return at == end or named or offset


@native("(i64, i64, i64, i64, i64, i64)(i64, i64)")
def _moment(text: int, length: int) -> tuple[int, int, int, int, int, int]:
    """Day, hour (NO_TIME for none), minute, second, microseconds, and whether the text is a date or timestamp."""
    first, end = trimmed(text, length)
    days, at, good = day_of(text, first, end)
    if good == 0:
        return 0, 0, 0, 0, 0, 0
    if at == end:
        return days, NO_TIME, 0, 0, 0, 1
    if ld_u8(text, at) != BLANK and ld_u8(text, at) | 32 != LOWER_T:
        return 0, 0, 0, 0, 0, 0
    hour, minute, second, micros, at, good = clock_of(text, at + 1, end)
    if good == 0 or _is_utc(text, at, end) == 0:
        return 0, 0, 0, 0, 0, 0
    return days, hour, minute, second, micros, 1


@native("i64(i64, i64, i64)", export=True)
def read_timestamp(state: int, text: int, length: int) -> int:
    """Microseconds since 1970 of `YYYY-MM-DD[ hh:mm[:ss[.f]]]`; a name of UTC may follow."""
    days, hour, minute, second, micros, good = _moment(text, length)
    if good == 0 or hour > 23 or minute > 59 or second > 59:
        return BAD
    if hour == NO_TIME:
        hour = 0
    made, fits = time_of(days, ((hour * 60 + minute) * 60 + second) * SECOND_US + micros)
    if fits == 0:
        return BAD
    st_i64(state, STATE_RESULT, made)
    return GOOD


@native("i64(i64, i64, i64)", export=True)
def read_date(state: int, text: int, length: int) -> int:
    """Days since 1970 of `YYYY-MM-DD`; a time of day may follow and is ignored."""
    days, hour, minute, second, _, good = _moment(text, length)
    if good == 0 or hour > 23 or minute > 59 or second > 59 or days < INTEGER_LOW or days > INTEGER_HIGH:
        return BAD
    st_i64(state, STATE_RESULT, days)
    return GOOD


@native("i64(i64, i64, i64)", export=True)
def read_time_of_day(state: int, text: int, length: int) -> int:
    """Microseconds since midnight of `hh:mm[:ss[.f]]`."""
    first, end = trimmed(text, length)
    hour, minute, second, micros, at, good = clock_of(text, first, end)
    if good == 0 or at != end or hour > 23 or minute > 59 or second > 59:
        return BAD
    st_i64(state, STATE_RESULT, ((hour * 60 + minute) * 60 + second) * SECOND_US + micros)
    return GOOD


# -- times to text ----------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def put_date(out: int, days: int) -> int:
    year = year_of_days(days)
    if year < 0:
        out = put_byte(out, MINUS)
        year = -year
    elif year > 9999:
        out = put_byte(out, PLUS)
    out = put_byte(put_number(out, year, 4), MINUS)
    out = put_byte(put_number(out, month_of_days(days), 2), MINUS)
    return put_number(out, day_of_days(days), 2)


@native("i64(i64, i64)")
def put_clock(out: int, micros: int) -> int:
    """`hh:mm:ss` and the fraction without its final zeros."""
    seconds = udiv(micros, SECOND_US)
    fraction = urem(micros, SECOND_US)
    out = put_byte(put_number(out, udiv(seconds, 3600), 2), COLON)
    out = put_byte(put_number(out, urem(udiv(seconds, 60), 60), 2), COLON)
    out = put_number(out, urem(seconds, 60), 2)
    if fraction != 0:
        width = 6
        while urem(fraction, 10) == 0:
            fraction = udiv(fraction, 10)
            width -= 1
        out = put_number(put_byte(out, POINT), fraction, width)
    return out


@native("i64(i64, i64)", export=True)
def write_date(state: int, days: int) -> int:
    """`YYYY-MM-DD`; years beyond 9999 with `+`, before 0 with `-`."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    return finish_text(state, text, put_date(text, days))


@native("i64(i64, i64)", export=True)
def write_time_of_day(state: int, micros: int) -> int:
    """`hh:mm:ss` of a time of day, then the fraction without its final zeros."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    return finish_text(state, text, put_clock(text, micros))


@native("i64(i64, i64)", export=True)
def write_timestamp(state: int, time: int) -> int:
    """`YYYY-MM-DD hh:mm:ss`, then the fraction without its final zeros."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    days = floordiv(time, DAY_US)
    out = put_byte(put_date(text, days), BLANK)
    return finish_text(state, text, put_clock(out, wsub(time, wmul(days, DAY_US))))


@native("i64(i64, i64)", export=True)
def write_interval(state: int, micros: int) -> int:
    """`INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    out = put_word(put_word(text, INTERVAL, 8), OPEN, 2)
    length = micros
    if micros < 0:
        out = put_byte(out, MINUS)
        length = wsub(0, micros)  # as unsigned bits, correct for the least one too
    out = put_byte(put_number(out, udiv(length, DAY_US), 1), BLANK)
    out = put_clock(out, urem(length, DAY_US))
    return finish_text(state, text, put_word(put_word(out, TO_SECOND, 8), SECOND, 7))


@native("i64(i64, i64)", export=True)
def write_months(state: int, months: int) -> int:
    """`INTERVAL '1-2' YEAR TO MONTH`."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    out = put_word(put_word(text, INTERVAL, 8), OPEN, 2)
    length = months
    if months < 0:
        out = put_byte(out, MINUS)
        length = -months
    out = put_byte(put_number(out, udiv(length, 12), 1), MINUS)
    out = put_number(out, urem(length, 12), 1)
    return finish_text(state, text, put_word(put_word(out, TO_MONTH, 8), MONTH, 7))
