"""Time zones as tables: when a zone's UTC offset changes, read once from the IANA database (zone_database.py).

Kernels search such a table (cq/runtime/values/zones.py), and so does the reference. It has every change up to the year
2500; after that the rules repeat every 400 years, like the calendar. A local time that a zone skips or has twice is
read with the offset before the change, as in Java and Python.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from cq.lang.calendar import DAY_US, days_from_civil
from cq.records import dataclass

SECOND_US = 1_000_000
CYCLE_US = 146_097 * DAY_US  # the calendar, with its days of the week, is the same 400 years later
CYCLE_START_US = days_from_civil(2100, 1, 1) * DAY_US  # no zone has explicit changes after 2087
CYCLE_END_US = CYCLE_START_US + CYCLE_US
_FIXED = re.compile(r"([+-])(\d\d):?(\d\d)|UTC|GMT|Z")
LONGEST_NAME = 64  # of a zone: longer texts are not compared with them
_NAME = re.compile(r"[A-Z][A-Za-z_]+(/[A-Za-z0-9_+-]+){1,2}")


NO_ZONE = "UTC"  # the zone of a query that sets none
_SESSION: ContextVar[str] = ContextVar("session zone", default=NO_ZONE)


@contextmanager
def session_zone(name: str) -> Iterator[None]:
    """Inside, in this thread, TIMESTAMP_LTZ is in this zone, a name from `zone_name`."""
    token = _SESSION.set(name)
    try:
        yield
    finally:
        _SESSION.reset(token)


def zone_of_session() -> str:
    """The zone of TIMESTAMP_LTZ in the query being bound."""
    return _SESSION.get()


class BadZone(Exception):
    """There is no such zone; the message says why. help: a suggestion."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


@dataclass(frozen=True, slots=True)
class Zone:
    """UTC offsets in microseconds: `offsets[n]` from `utc[n - 1]` on, by local time from `local[n - 1]` on."""

    utc: tuple[int, ...]
    local: tuple[int, ...]
    offsets: tuple[int, ...]

    def offset_at(self, utc_us: int) -> int:
        """The offset at an instant."""
        return self.offsets[bisect_right(self.utc, _in_cycle(utc_us))]

    def offset_of(self, local_us: int) -> int:
        """The offset at a local time."""
        return self.offsets[bisect_right(self.local, _in_cycle(local_us))]


def zone_name(text: str) -> str:
    """The canonical name of a zone: `+02:00` for `+0200`, `UTC` for `Z`, `GMT`. BadZone for an unknown one."""
    zone_of(text)
    if text[:1] in {"+", "-"}:
        return text if ":" in text else f"{text[:3]}:{text[3:]}"
    return NO_ZONE if text in {"Z", "GMT"} else text


def _in_cycle(time_us: int) -> int:
    return time_us if time_us < CYCLE_END_US else CYCLE_START_US + (time_us - CYCLE_START_US) % CYCLE_US


@lru_cache(maxsize=64)
def zone_of(name: str) -> Zone:
    """The table of a zone by its name, `Europe/Berlin`, or of an offset, `+02:00`. `BadZone` for anything else."""
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        sign, hours, minutes = fixed[1], int(fixed[2] or 0), int(fixed[3] or 0)
        if hours > 18 or minutes > 59 or hours * 60 + minutes > 18 * 60:
            raise BadZone("is further from UTC than 18 hours")
        seconds = (hours * 60 + minutes) * 60 * (-1 if sign == "-" else 1)
        return Zone((), (), (seconds * SECOND_US,))
    if _NAME.fullmatch(name) is None:
        raise BadZone(
            "is not a time zone", _way_to(name, "write the name of a place, 'Europe/Berlin', or an offset, '+02:00'")
        )
    from cq.lang import zone_database

    zone = zone_database.opened(name)
    if zone is None:
        raise BadZone(
            "is not in the time zone database",
            _way_to(name, "names are those of the IANA database: 'America/New_York'"),
        )
    return _table(zone, zone_database.content(name))


def _way_to(name: str, otherwise: str) -> str:
    """The nearest name, by all of it or by its last part alone."""
    import difflib

    from cq.lang import zone_database

    known = zone_database.names()
    if not known:
        return "there is no database here: pip install tzdata"
    by_text = {z.rpartition("/")[2].lower(): z for z in sorted(known, reverse=True)} | {z.lower(): z for z in known}
    for text in (name.lower(), name.rpartition("/")[2].lower()):
        near = difflib.get_close_matches(text[:LONGEST_NAME], by_text, n=1, cutoff=0.75)
        if near and _NAME.fullmatch(by_text[near[0]]):
            return f"did you mean '{by_text[near[0]]}'?"
    return otherwise


def _table(zone: tzinfo, content: bytes) -> Zone:
    instants = sorted({*_explicit(content), *_by_rule(zone)})
    utc: list[int] = []
    local: list[int] = []
    offsets = [_offset(zone, _FIRST)]
    for instant in instants:
        offset = _offset(zone, instant)
        if offset != offsets[-1]:
            begins = instant + max(offset, offsets[-1])
            utc.append(instant * SECOND_US)
            local.append(max(begins, local[-1] // SECOND_US if local else begins) * SECOND_US)
            offsets.append(offset)
    return Zone(tuple(utc), tuple(local), tuple(o * SECOND_US for o in offsets))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = days_from_civil(1800, 1, 1) * 86_400  # before there were zones
_LAST_EXPLICIT = days_from_civil(2037, 1, 1) * 86_400  # the database lists changes at least up to here


def _offset(zone: tzinfo, instant: int) -> int:
    """Seconds from UTC at an instant, in seconds since 1970."""
    found = (_EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
    assert found is not None, "a zone without a distance"
    return int(found.total_seconds())


def _explicit(content: bytes) -> Iterator[int]:
    """The changes listed in the file of a zone (RFC 8536): those of its second part, with 64 bits each."""
    counts = struct.Struct(">4sc15x6l")
    _, version, utc, standard, leaps, times, types, letters = counts.unpack_from(content)
    if version < b"2":
        raise BadZone("is in an old format in this database", "pip install tzdata")
    second = counts.size + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
    _, _, _, _, _, times, _, _ = counts.unpack_from(content, second)
    yield from (t for t in struct.unpack_from(f">{times}q", content, second + counts.size) if t > _FIRST)


def _by_rule(zone: tzinfo) -> Iterator[int]:
    """The changes by the zone's rule, to the second, up to the end of the cycle. They are weeks apart."""
    step, end = 10 * 86_400, CYCLE_END_US // SECOND_US
    before = _offset(zone, _LAST_EXPLICIT)
    for instant in range(_LAST_EXPLICIT + step, end + step, step):
        after = _offset(zone, instant)
        if after != before:
            low, high = instant - step, instant
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
            yield high
            before = after
