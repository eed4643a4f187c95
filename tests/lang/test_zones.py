"""The tables of time zones say what zoneinfo says, also beyond what is written out, and names are only names."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cq.lang.zones import CYCLE_US, BadZone, zone_of

ZONES = [
    "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Argentina/San_Luis",
    "Asia/Kolkata", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll", "Asia/Tehran",
    "Etc/GMT+5",
]  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND_US = 1_000_000


def seconds_of(name: str, seed: int) -> list[int]:
    """Random instants of the years 1850 to 2499, and those around each change up to 2040."""
    rng = random.Random(seed)
    changes = [t // SECOND_US for t in zone_of(name).utc if t < 70 * 365 * 86_400 * SECOND_US]
    near = [t + by for t in changes for by in (-7200, -3600, -1, 0, 1, 3600, 7200)]
    return near + [rng.randrange(-3_786_825_600, 16_725_225_600) for _ in range(2_000)]


@pytest.mark.parametrize("name", ZONES)
def test_distance_at_an_instant_is_that_of_zoneinfo(name: str) -> None:
    zone, table = ZoneInfo(name), zone_of(name)
    for t in seconds_of(name, 1):
        expected = (EPOCH + timedelta(seconds=t)).astimezone(zone).utcoffset()
        assert timedelta(microseconds=table.offset_at(t * SECOND_US)) == expected, t


@pytest.mark.parametrize("name", ZONES)
def test_distance_of_a_local_time_is_that_before_a_change(name: str) -> None:
    zone, table = ZoneInfo(name), zone_of(name)
    for t in seconds_of(name, 2):
        local = (EPOCH + timedelta(seconds=t)).replace(tzinfo=zone)  # fold 0
        assert timedelta(microseconds=table.offset_of(t * SECOND_US)) == local.utcoffset(), t


@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Kolkata"])
def test_rules_repeat_after_the_table(name: str) -> None:
    zone, table, rng = ZoneInfo(name), zone_of(name), random.Random(3)
    for _ in range(500):
        t = rng.randrange(16_725_225_600, 250_000_000_000)  # up to the year 9892
        expected = (EPOCH + timedelta(seconds=t)).astimezone(zone).utcoffset()
        assert timedelta(microseconds=table.offset_at(t * SECOND_US)) == expected
        far = t * SECOND_US + 600 * CYCLE_US  # the year 249,892
        assert table.offset_at(far) == table.offset_at(t * SECOND_US)


@pytest.mark.parametrize(
    ("name", "minutes"), [("+02:00", 120), ("-0330", -210), ("UTC", 0), ("Z", 0), ("+18:00", 1080)]
)
def test_distance_is_a_zone(name: str, minutes: int) -> None:
    assert zone_of(name).offset_at(0) == zone_of(name).offset_of(0) == minutes * 60 * SECOND_US


@pytest.mark.parametrize(
    "name",
    ["", "CET", "EST5EDT", "europe/berlin", "Europe/Berlinn", "../etc/passwd", "Europe/../../x", "/etc/localtime",
     "+19:00", "+18:30", "+1:00", "Europe/Berlin\n", "Europe/", "tzdata/zones", "A/B/C/D"],
)  # fmt: skip
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(BadZone):
        zone_of(name)


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("Europe/Berlim", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Germany/Berlin", "did you mean 'Europe/Berlin'?"),
        ("EST", "write the name of a place, 'Europe/Berlin', or an offset, '+02:00'"),
        ("Xx/Yyyyy", "names are those of the IANA database: 'America/New_York'"),
        ("x" * 1_000_000, "write the name of a place, 'Europe/Berlin', or an offset, '+02:00'"),
    ],
)
def test_the_nearest_name_is_proposed(name: str, help: str) -> None:
    with pytest.raises(BadZone) as refused:
        zone_of(name)
    assert refused.value.help == help
