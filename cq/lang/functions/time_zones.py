"""TIMESTAMPs between UTC and the local times of a zone, which is a literal; the tables are in `cq.lang.zones`."""

from __future__ import annotations

from cq.lang.functions.arithmetic import within
from cq.lang.functions.registry import Constants, Refusal, Signature, SignatureRule, scalar
from cq.lang.types import TIMESTAMP, VARCHAR, DataType, Kind, common_type
from cq.lang.zones import BadZone, zone_of


def _in_zone(function: str) -> SignatureRule:
    """A time and a literal zone."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) != 2 or common_type(types[0], TIMESTAMP) != TIMESTAMP:
            return None
        if types[1].kind not in {Kind.VARCHAR, Kind.NULL}:
            return None
        zone = constants[1]
        if not isinstance(zone, str):
            return Refusal("CQ0302", f"{function} needs a literal zone", f"write {function}(ts, 'Europe/Berlin')")
        try:
            zone_of(zone)
        except BadZone as bad:
            return Refusal("CQ0302", f"'{zone}' {bad}", bad.help, argument=1)
        return Signature((TIMESTAMP, VARCHAR), TIMESTAMP)

    return rule


@scalar(
    "from_utc_timestamp",
    "from_utc_timestamp(TIMESTAMP, zone)",
    _in_zone("FROM_UTC_TIMESTAMP"),
    spark="convert_timezone('UTC', {1}, {0})",
    native="from_utc_timestamp",
    fails=("CQ0705",),
    examples=[
        "from_utc_timestamp(TIMESTAMP '2024-03-31 00:59:59.5', 'Europe/Berlin') = TIMESTAMP '2024-03-31 01:59:59.5'",
        "from_utc_timestamp(TIMESTAMP '2024-03-31 01:00:00', 'Europe/Berlin') = TIMESTAMP '2024-03-31 03:00:00'",
        "from_utc_timestamp(TIMESTAMP '2024-10-27 01:00:00', 'Europe/Berlin') = TIMESTAMP '2024-10-27 02:00:00'",
        "from_utc_timestamp(TIMESTAMP '2600-07-01 12:00:00', 'America/New_York') = TIMESTAMP '2600-07-01 08:00:00'",
        "from_utc_timestamp(TIMESTAMP '1970-01-01 00:00:00', '-03:30') = TIMESTAMP '1969-12-31 20:30:00'",
        "from_utc_timestamp(DATE '2024-07-01', 'Asia/Kolkata') = TIMESTAMP '2024-07-01 05:30:00'",
        "from_utc_timestamp(timestamp_micros(9223372036854775807), 'Asia/Tokyo') = error CQ0705",
        "from_utc_timestamp(null, 'Asia/Tokyo') = null",
    ],
)
def from_utc_timestamp(x: int, zone: str) -> int:
    """The local time of a UTC time in a zone, a literal."""
    return within(TIMESTAMP, x + zone_of(zone).offset_at(x), "the local time")


@scalar(
    "to_utc_timestamp",
    "to_utc_timestamp(TIMESTAMP, zone)",
    _in_zone("TO_UTC_TIMESTAMP"),
    spark="convert_timezone({1}, 'UTC', {0})",
    native="to_utc_timestamp",
    fails=("CQ0705",),
    examples=[
        "to_utc_timestamp(TIMESTAMP '2024-03-31 01:59:59.5', 'Europe/Berlin') = TIMESTAMP '2024-03-31 00:59:59.5'",
        "to_utc_timestamp(TIMESTAMP '2024-03-31 02:30:00', 'Europe/Berlin') = TIMESTAMP '2024-03-31 01:30:00'",
        "to_utc_timestamp(TIMESTAMP '2024-10-27 02:30:00', 'Europe/Berlin') = TIMESTAMP '2024-10-27 00:30:00'",
        "to_utc_timestamp(TIMESTAMP '2024-10-27 03:00:00', 'Europe/Berlin') = TIMESTAMP '2024-10-27 02:00:00'",
        "to_utc_timestamp(TIMESTAMP '2600-07-01 08:00:00', 'America/New_York') = TIMESTAMP '2600-07-01 12:00:00'",
        "to_utc_timestamp(TIMESTAMP '1970-01-01 00:00:00', '+05:45') = TIMESTAMP '1969-12-31 18:15:00'",
        "to_utc_timestamp(timestamp_micros(9223372036854775807), 'America/New_York') = error CQ0705",
        "to_utc_timestamp(null, 'Asia/Tokyo') = null",
    ],
)
def to_utc_timestamp(x: int, zone: str) -> int:
    """The UTC time of a local time in a zone, a literal. Ambiguous times map to the earlier instant. Times skipped by
    a DST change are shifted forward by the gap."""
    return within(TIMESTAMP, x - zone_of(zone).offset_of(x), "the time in UTC")
