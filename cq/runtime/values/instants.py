"""Instants as text in a zone and back, equal to cq/lang/value_text.py. Conventions as in times.py.

Sharing: none. The state belongs to the kernel that calls, and tables of zones are read only.
"""

from __future__ import annotations

from cq.lang.calendar import DAY_US
from cq.runtime.base.native import native
from cq.runtime.base.ops import floordiv, ld_u8, st_i64, sub_ovf, udiv, urem, wmul, wsub
from cq.runtime.layout.abi import STATE_RESULT
from cq.runtime.values.numerals import (
    BAD,
    GOOD,
    MINUS,
    PLUS,
    digits_end,
    finish_text,
    number_at,
    put_byte,
    put_number,
    trimmed,
    word_of,
)
from cq.runtime.values.text import step_bytes
from cq.runtime.values.times import (
    BLANK,
    COLON,
    LOWER_T,
    SECOND_US,
    SMALL_ZULU,
    TEXT_BYTES,
    UTC,
    ZULU,
    byte_is,
    clock_of,
    day_of,
    put_clock,
    put_date,
    time_of,
)
from cq.runtime.values.zones import zone_offset

NO_PART = -1  # instead of a number of two digits


@native("(i64, i64)(i64, i64, i64, i64)")
def _next_pair(text: int, at: int, end: int, colon: int) -> tuple[int, int]:
    """The number of two digits that begins here, after an optional colon if `colon` allows it, and the offset after it;
    NO_PART if they are not there."""
    if colon != 0 and byte_is(text, at, end, COLON) != 0:
        at += 1
    if at + 2 > end or digits_end(text, at, at + 2) != at + 2:
        return NO_PART, at
    return number_at(text, at, at + 2), at + 2


@native("(i64, i64)(i64, i64, i64)")
def _distance(text: int, at: int, end: int) -> tuple[int, int]:
    """Microseconds from UTC for `Z`, `UTC` or `+hh[:mm[:ss]]`, if that is the rest of the text; and whether it is."""
    word = word_of(text, at, end, 0)
    if word == ZULU or word == SMALL_ZULU or word == UTC:
        return 0, 1
    ahead = byte_is(text, at, end, PLUS)
    if ahead == 0 and byte_is(text, at, end, MINUS) == 0:
        return 0, 0
    hours, at = _next_pair(text, at + 1, end, 0)
    minutes = 0
    seconds = 0
    if at < end:
        minutes, at = _next_pair(text, at, end, 1)
    if at < end and minutes != NO_PART:
        seconds, at = _next_pair(text, at, end, 1)
    if at != end or hours == NO_PART or minutes == NO_PART or seconds == NO_PART:
        return 0, 0
    if hours > 23 or minutes > 59 or seconds > 59:
        return 0, 0
    distance = ((hours * 60 + minutes) * 60 + seconds) * SECOND_US
    if ahead == 0:
        distance = -distance
    return distance, 1


@native("i64(i64, i64, i64, i64)")
def _keep_local(state: int, days: int, micros: int, zone: int) -> int:
    """The instant of a local time in a zone."""
    local, fits = time_of(days, micros)
    if fits == 0:
        return BAD
    offset = zone_offset(zone, local)
    if sub_ovf(local, offset):
        return BAD
    st_i64(state, STATE_RESULT, wsub(local, offset))
    return GOOD


@native("i64(i64, i64, i64, i64)", export=True)
def read_instant(state: int, text: int, length: int, zone: int) -> int:
    """Microseconds since 1970 in UTC of `YYYY-MM-DD[ hh:mm[:ss[.f]][+hh[:mm[:ss]]]]`.

    zone: the table, by local times, of the default zone of a text without one.
    """
    first, end = trimmed(text, length)
    days, at, good = day_of(text, first, end)
    if good == 0:
        return BAD
    if at == end:
        return _keep_local(state, days, 0, zone)
    if ld_u8(text, at) != BLANK and ld_u8(text, at) | 32 != LOWER_T:
        return BAD
    hour, minute, second, micros, at, good = clock_of(text, at + 1, end)
    if good == 0 or hour > 23 or minute > 59 or second > 59:
        return BAD
    since = ((hour * 60 + minute) * 60 + second) * SECOND_US + micros
    if at == end:
        return _keep_local(state, days, since, zone)
    if byte_is(text, at, end, BLANK) != 0:
        at += 1
    distance, good = _distance(text, at, end)
    if good == 0:
        return BAD
    made, fits = time_of(days, since - distance)
    if fits == 0:
        return BAD
    st_i64(state, STATE_RESULT, made)
    return GOOD


@native("i64(i64, i64)")
def _put_distance(out: int, offset: int) -> int:
    """`+hh:mm`, and the seconds if there are any."""
    sign = PLUS
    if offset < 0:
        sign = MINUS
        offset = -offset
    seconds = udiv(offset, SECOND_US)
    out = put_byte(put_number(put_byte(out, sign), udiv(seconds, 3600), 2), COLON)
    out = put_number(out, urem(udiv(seconds, 60), 60), 2)
    if urem(seconds, 60) != 0:
        out = put_number(put_byte(out, COLON), urem(seconds, 60), 2)
    return out


@native("i64(i64, i64, i64)", export=True)
def write_instant(state: int, time: int, zone: int) -> int:
    """`YYYY-MM-DD hh:mm:ss[.f]+hh:mm` in a zone. zone: its table, by instants."""
    text = step_bytes(state, TEXT_BYTES)
    if text == 0:
        return 0
    offset = zone_offset(zone, time)
    days = floordiv(time, DAY_US)
    since = wsub(time, wmul(days, DAY_US)) + offset
    moved = floordiv(since, DAY_US)
    out = put_byte(put_date(text, days + moved), BLANK)
    out = put_clock(out, since - moved * DAY_US)
    return finish_text(state, text, _put_distance(out, offset))
