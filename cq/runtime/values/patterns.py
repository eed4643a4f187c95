"""Times written and read with a pattern: the native side of cq/lang/functions/time_formats.py, equal to it.

A pattern is a table made by `pattern_table` in cq/codegen/expressions/times.py: NAMES_BYTES bytes of names (months,
then weekdays, NAME_BYTES each, padded with zeros), then four bytes for each field: its letter, how often the letter is
repeated, the digits after it that belong to the next fields, and, for the letter `'`, a byte of text.

Sharing: none. The state belongs to the kernel that calls.
"""

from __future__ import annotations

from cq.lang.calendar import DAY_US, day_of_days, days_from_civil, days_in_month, month_of_days, year_of_days
from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, floordiv, floormod, ld_u8, max_i64, min_i64, sdiv, st_i64, urem, wmul, wsub
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.numerals import (
    BAD,
    GOOD,
    MINUS,
    PLUS,
    ZERO,
    digits_end,
    finish_text,
    letters,
    power_of_ten,
    put_byte,
    put_number,
    put_word,
)
from cq.runtime.values.text import step_bytes
from cq.runtime.values.times import INTEGER_HIGH, INTEGER_LOW, SECOND_US, time_of

NAME_BYTES, MONTHS, WEEKDAYS = 9, 12, 7
NAMES_BYTES = (MONTHS + WEEKDAYS) * NAME_BYTES
FIELD_BYTES = 4
WIDEST_FIELD = 12  # the most bytes of a field
TEXT, YEAR, MONTH, DAY, DAY_OF_YEAR, WEEKDAY = ord("'"), ord("y"), ord("M"), ord("d"), ord("D"), ord("E")
HOUR, HALF_HOUR, HALF, MINUTE, SECOND, FRACTION = ord("H"), ord("h"), ord("a"), ord("m"), ord("s"), ord("S")
AM, PM = letters(b"AM"), letters(b"PM")
LOWER_A, LOWER_M, LOWER_P = ord("a"), ord("m"), ord("p")
MINUTE_US, HOUR_US = 60 * SECOND_US, 3600 * SECOND_US
MOST_DIGITS, TOO_MUCH = 19, 10**6  # as in time_formats.py
NOWHERE = -1


@native("i64(i64)")
def _name_length(name: int) -> int:
    length = 0
    while length < NAME_BYTES and ld_u8(name, length) != 0:
        length += 1
    return length


@native("i64(i64, i64, i64)")
def _put_name(out: int, name: int, count: int) -> int:
    """Write a whole name for four letters, else its first three."""
    length = 3
    if count == 4:
        length = _name_length(name)
    copy(out, name, length)
    return out + length


@native("i64(i64, i64, i64)")
def _put_year(out: int, year: int, count: int) -> int:
    if count == 2:
        return put_number(out, urem(max_i64(year, -year), 100), 2)
    if year < 0:
        out = put_byte(out, MINUS)
    elif year > 9999:
        out = put_byte(out, PLUS)
    return put_number(out, max_i64(year, -year), 4)


@native("i64(i64, i64, i64, i64)", export=True)
def write_time(state: int, time: int, table: int, count: int) -> int:
    """The time in the form of the pattern's fields."""
    made = step_bytes(state, count * WIDEST_FIELD)
    if made == 0:
        return 0
    days = floordiv(time, DAY_US)
    micros = wsub(time, wmul(days, DAY_US))
    hour = sdiv(micros, HOUR_US)
    out = made
    for number in range(count):
        field = table + NAMES_BYTES + number * FIELD_BYTES
        letter = ld_u8(field, 0)
        width = ld_u8(field, 1)
        if letter == TEXT:
            out = put_byte(out, ld_u8(field, 3))
        elif letter == YEAR:
            out = _put_year(out, year_of_days(days), width)
        elif letter == MONTH and width > 2:
            out = _put_name(out, table + (month_of_days(days) - 1) * NAME_BYTES, width)
        elif letter == WEEKDAY:
            out = _put_name(out, table + (MONTHS + floormod(days + 3, 7)) * NAME_BYTES, width)
        elif letter == HALF:
            word = AM
            if hour >= 12:
                word = PM
            out = put_word(out, word, 2)
        elif letter == FRACTION:
            out = put_number(out, sdiv(urem(micros, SECOND_US), power_of_ten(6 - width)), width)
        else:
            value = hour
            if letter == MONTH:
                value = month_of_days(days)
            elif letter == DAY:
                value = day_of_days(days)
            elif letter == DAY_OF_YEAR:
                value = days - days_from_civil(year_of_days(days), 1, 1) + 1
            elif letter == HALF_HOUR:
                value = urem(hour + 11, 12) + 1
            elif letter == MINUTE:
                value = urem(sdiv(micros, MINUTE_US), 60)
            elif letter == SECOND:
                value = urem(sdiv(micros, SECOND_US), 60)
            out = put_number(out, value, width)
    return finish_text(state, made, out)


# -- reading ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _lower_byte(text: int, at: int) -> int:
    """The byte, an ASCII letter in lower case."""
    byte = ld_u8(text, at)
    if byte >= 65 and byte <= 90:
        byte += 32
    return byte


@native("i64(i64, i64, i64)")
def _is_name(text: int, name: int, length: int) -> int:
    """Whether this many bytes of the text equal a name, in any case."""
    at = 0
    while at < length and _lower_byte(text, at) == _lower_byte(name, at):
        at += 1
    return at == length


@native("(i64, i64)(i64, i64, i64, i64, i64)")
def _number(text: int, at: int, end: int, least: int, most: int) -> tuple[int, int]:
    """The number of `least` to `most` digits and the offset after it; NOWHERE if there are fewer."""
    after = digits_end(text, at, min_i64(end, at + most))
    if after - at < least:
        return 0, NOWHERE
    value = 0
    for place in range(at, after):
        if value < TOO_MUCH:
            value = value * 10 + ld_u8(text, place) - ZERO
    return value, after


@native("(i64, i64)(i64, i64, i64, i64)")
def _year(text: int, at: int, end: int, reserved: int) -> tuple[int, int]:
    """Four digits; more after `+`, four or more after `-`. The last digits of a run may belong to other fields."""
    sign = 0
    if at < end:
        sign = ld_u8(text, at)
    first = at + (sign == PLUS or sign == MINUS)
    value, after = _number(text, first, end, 4, MOST_DIGITS + reserved)
    if after >= 0 and reserved > 0:
        value, after = _number(text, first, end, 4, max_i64(4, after - first - reserved))
    if after < 0 or (sign == PLUS and after - first == 4) or (sign != PLUS and sign != MINUS and after - first > 4):
        return 0, NOWHERE
    if sign != MINUS:
        return value, after
    if value == 0:
        return 0, NOWHERE
    return -value, after


@native("(i64, i64)(i64, i64, i64, i64, i64)")
def _month_name(text: int, at: int, end: int, table: int, count: int) -> tuple[int, int]:
    """The month whose name, whole for four letters, is there, and the offset after it."""
    for number in range(MONTHS):
        name = table + number * NAME_BYTES
        length = 3
        if count == 4:
            length = _name_length(name)
        if at + length <= end and _is_name(text + at, name, length) != 0:
            return number + 1, at + length
    return 0, NOWHERE


@native("(i64, i64)(i64, i64, i64)")
def _half(text: int, at: int, end: int) -> tuple[int, int]:
    """0 for AM, 1 for PM, in any case, and the offset after it."""
    if at + 2 > end or _lower_byte(text, at + 1) != LOWER_M:
        return 0, NOWHERE
    first = _lower_byte(text, at)
    if first != LOWER_A and first != LOWER_P:
        return 0, NOWHERE
    return first == LOWER_P, at + 2


@native("(i64, i64)(i64, i64, i64, i64, i64)")
def _field(text: int, at: int, end: int, table: int, field: int) -> tuple[int, int]:
    """The value of the field that is there and the offset after it, or NOWHERE."""
    letter = ld_u8(field, 0)
    width = ld_u8(field, 1)
    if letter == TEXT:
        if at >= end or _lower_byte(text, at) != _lower_byte(field, 3):
            return 0, NOWHERE
        return 0, at + 1
    if letter == HALF:
        return _half(text, at, end)
    if letter == MONTH and width > 2:
        return _month_name(text, at, end, table, width)
    if letter == YEAR and width == 4:
        return _year(text, at, end, ld_u8(field, 2))
    if letter == FRACTION:
        value, after = _number(text, at, end, 1, width)
        if after < 0:
            return 0, NOWHERE
        return value * power_of_ten(6 - after + at), after
    most = width
    if width == 1:
        most = MOST_DIGITS
    value, after = _number(text, at, end, width, most)
    if letter == YEAR:
        value += 2000
    return value, after


@native("i64(i64, i64, i64, i64, i64)", export=True)
def read_by_pattern(state: int, text: int, length: int, table: int, count: int) -> int:
    """Microseconds since 1970 of the time in the text, read by the fields of the pattern."""
    year = 0
    month = 1
    day = 1
    hour = 0
    half_hour = 12
    half = 0
    minute = 0
    second = 0
    micros = 0
    at = 0
    for number in range(count):
        field = table + NAMES_BYTES + number * FIELD_BYTES
        letter = ld_u8(field, 0)
        value, at = _field(text, at, length, table, field)
        if at < 0:
            return BAD
        if letter == YEAR:
            year = value
        elif letter == MONTH:
            month = value
        elif letter == DAY:
            day = value
        elif letter == HOUR:
            hour = value
        elif letter == HALF_HOUR:
            half_hour = value
        elif letter == HALF:
            half = value
        elif letter == MINUTE:
            minute = value
        elif letter == SECOND:
            second = value
        elif letter == FRACTION:
            micros = value
    if at != length or half_hour < 1 or half_hour > 12 or hour > 23 or second > 59:
        return BAD
    hour += urem(half_hour, 12) + 12 * half
    return make_timestamp(state, year, month, day, hour, minute, second * SECOND_US + micros)


# -- made from numbers ------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _is_day(year: int, month: int, day: int) -> int:
    return month >= 1 and month <= 12 and day >= 1 and day <= days_in_month(year, month)


@native("i64(i64, i64, i64, i64)", export=True)
def make_date(state: int, year: int, month: int, day: int) -> int:
    """Days since 1970 of a date."""
    if _is_day(year, month, day) == 0:
        return BAD
    days = days_from_civil(year, month, day)
    if days < INTEGER_LOW or days > INTEGER_HIGH:
        return BAD
    st_i64(state, STATE_RESULT, days)
    return GOOD


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def make_timestamp(state: int, year: int, month: int, day: int, hour: int, minute: int, micros: int) -> int:
    """Microseconds since 1970 of a date and a time of day; minute 59 may have 60 seconds, like every other."""
    if _is_day(year, month, day) == 0 or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return BAD
    if micros < 0 or micros > MINUTE_US:
        return BAD
    made, fits = time_of(days_from_civil(year, month, day), hour * HOUR_US + minute * MINUTE_US + micros)
    if fits == 0:
        return BAD
    st_i64(state, STATE_RESULT, made)
    return GOOD
