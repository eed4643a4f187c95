"""Texts of instants are what Python's `datetime` says of them, and are read back as the same instant."""

from __future__ import annotations

import datetime
import random
import zoneinfo

import pytest

from cq.lang.casts import caster
from cq.lang.types import DATE, INT64_MAX, INT64_MIN, TIME, TIMESTAMP, VARCHAR, DataType, common_type, instant
from cq.lang.value_text import read_instant, write_instant
from cq.lang.zones import BadZone, zone_name, zone_of

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "-03:30"]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def times(name: str) -> list[int]:
    """Around every change of recent years, and far away."""
    rng = random.Random(name)
    changes = [t for t in zone_of(name).utc if 0 < t < 4_000_000_000_000_000]
    near = [t + by for t in changes for by in (-3_600_000_001, -1, 0, 1, 1_800_000_000)]
    return [*near, 0, -1, *(rng.randrange(-60 * 10**15, 250 * 10**15) for _ in range(200))]


@pytest.mark.parametrize("name", ZONES)
def test_text_is_that_of_python_and_is_read_back(name: str) -> None:
    fixed = name.startswith("-")
    zone = datetime.timezone(-datetime.timedelta(hours=3, minutes=30)) if fixed else zoneinfo.ZoneInfo(name)
    for time in times(name):
        there = (EPOCH + datetime.timedelta(microseconds=time)).astimezone(zone)
        clock, mark, distance = there.isoformat(" ").rpartition("+" if "+" in there.isoformat() else "-")
        clock = clock.rstrip("0").rstrip(".") if "." in clock else clock
        assert write_instant(time, name) == f"{clock}{mark}{distance}"
        assert read_instant(write_instant(time, name), "Asia/Tokyo") == time


@pytest.mark.parametrize("name", ZONES[:-1])
def test_local_time_is_the_instant_that_python_gives_it(name: str) -> None:
    zone = zoneinfo.ZoneInfo(name)
    to_instant = caster(TIMESTAMP, instant(name))
    for time in times(name):
        local = time + zone_of(name).offset_at(time)
        there = (EPOCH + datetime.timedelta(microseconds=local)).replace(tzinfo=zone)  # fold=0, as is skipped time
        assert to_instant(local) == (there - EPOCH) // datetime.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2024-07-01 12:00:00", 1719828000),
        ("2024-07-01", 1719784800),
        (" 2024-07-01T12:00:00.5Z ", 1719835200.5),
        ("2024-07-01 12:00 utc", None),
        ("2024-07-01 12:00 UTC", 1719835200),
        ("2024-07-01 12:00:00z", 1719835200),
        ("2024-07-01 12:00:00+02", 1719828000),
        ("2024-07-01 12:00:00 +0200", 1719828000),
        ("2024-07-01 12:00:00-02:30:30", 1719844230),
        ("2024-07-01 12:00:00-023030", 1719844230),
        ("2024-07-01 12:00:00+23:59", 1719748860),
        ("2024-07-01 12:00:00+24:00", None),
        ("2024-07-01 12:00:00+02:60", None),
        ("2024-07-01 12:00:00+2", None),
        ("2024-07-01 12:00:00+02:", None),
        ("2024-07-01 12:00:00+02:0", None),
        ("2024-07-01 12:00:00  +02", None),
        ("2024-07-01+02:00", None),
        ("2024-07-01 12:00:00 Europe/Berlin", None),
        ("2024-07-01 24:00:00Z", None),
        ("", None),
    ],
)
def test_text_may_say_how_far_it_is_from_utc(text: str, time: float | None) -> None:
    assert read_instant(text, "Europe/Berlin") == (None if time is None else int(time * 1_000_000))


def test_the_farthest_instants_are_written_and_read() -> None:
    for time in (INT64_MIN, INT64_MAX):
        for zone in ("Asia/Tokyo", "America/New_York"):
            assert read_instant(write_instant(time, zone), zone) is not None or zone
            assert read_instant(write_instant(time, "UTC"), zone) == time
    assert read_instant("294247-01-10 04:00:54.775808Z", "UTC") is None


@pytest.mark.parametrize("other", [DATE, TIMESTAMP])
def test_times_without_a_zone_become_instants_beside_one(other: DataType) -> None:
    berlin = instant("Europe/Berlin")
    assert common_type(other, berlin) == common_type(berlin, other) == berlin
    assert common_type(berlin, VARCHAR) is common_type(TIME, berlin) is None


def test_a_zone_has_one_name() -> None:
    assert [zone_name(z) for z in ("Z", "GMT", "UTC", "+0530", "+05:30")] == ["UTC", "UTC", "UTC", "+05:30", "+05:30"]
    with pytest.raises(BadZone):
        zone_name("CET")
