"""Ten weeks of history that is not stored: every value is a function of the seed and its key."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy
from cq.workloads.batches import GENERATED_ROWS
from cq.workloads.draws import Ints, mix, mix_columns

DAYS = 69  # days with one toll row per vehicle; 1 is yesterday
WEEKS = 10
MINUTES = 1440
FIRST_VID = 100

# What a hash is for; a constant first word keeps the functions independent of each other.
_TOLL, HASH_OF_XWAY, _SEGMENT = 1, 2, 3

HISTORY_SCHEMA = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("vid", "day", "xway", "toll")])


def daily_toll(seed: int, vid: int, day: int) -> int:
    """What the vehicle paid on that day: 0 … 98."""
    return mix(_TOLL, seed, vid, day) % 99


def daily_xway(seed: int, vid: int, day: int, xways: int) -> int:
    """The one expressway the vehicle used on that day."""
    return mix(HASH_OF_XWAY, seed, vid, day) % xways


def daily_xways(seed: int, vid: Ints, day: Ints, xways: int) -> Ints:
    """`daily_xway` of every row."""
    return (mix_columns(HASH_OF_XWAY, seed, vid, day) % np.uint64(xways)).view(np.int64)


def expenditure(seed: int, vid: int, day: int, xway: int, xways: int) -> int:
    """The answer to a type-3 query: the toll of that day and expressway, 0 when there is no such row."""
    if not 1 <= day <= DAYS or daily_xway(seed, vid, day, xways) != xway:
        return 0
    return daily_toll(seed, vid, day)


def toll_history(vehicles: int, seed: int, expressways: float) -> Iterator[pa.RecordBatch]:
    """The table behind `expenditure` for `vehicles` vehicles, by (vid, day)."""
    xways = max(1, math.ceil(expressways))
    total = vehicles * DAYS
    for start in range(0, total, GENERATED_ROWS):
        row = np.arange(start, min(start + GENERATED_ROWS, total), dtype=np.int64)
        vid, day = FIRST_VID + row // DAYS, 1 + row % DAYS
        xway = daily_xways(seed, vid, day, xways)
        toll = (mix_columns(_TOLL, seed, vid, day) % np.uint64(99)).view(np.int64)
        yield pa.RecordBatch.from_arrays([from_numpy(c) for c in (vid, day, xway, toll)], schema=HISTORY_SCHEMA)


def weekday(day: int) -> int:
    """Weekday 1 (Sunday) … 7 of the day `day` days ago; today is a Sunday."""
    return -day % 7 + 1


@lru_cache(maxsize=2)
def _peaks() -> tuple[float, ...]:
    """Rush of each minute of a working day: morning at 8:00, evening at 17:30."""
    return tuple(math.exp(-(((m - 480) / 70) ** 2)) + math.exp(-(((m - 1050) / 90) ** 2)) for m in range(MINUTES))


def segment_history(seed: int, day: int, minute: int, xway: int, direction: int, seg: int) -> tuple[int, int, int]:
    """(lav, cars, toll) of a segment at a minute 0 … 1439 of a past day."""
    peak = _peaks()[minute] * (0.3 if weekday(day) in {1, 7} else 1.0)
    share = mix(_SEGMENT, seed, day, minute, xway, direction, seg) / 2.0**64
    lav = min(70, max(8, math.floor(62 - 30 * peak * (0.5 + share) + 0.5)))
    cars = math.floor(20 + 90 * peak + 0.5)
    return lav, cars, 2 * (cars - 50) ** 2 if lav < 40 and cars > 50 else 0


def travel_time(seed: int, xway: int, s_init: int, s_end: int, dow: int, tod: int) -> tuple[int, int]:
    """The answer to a type-4 query: (seconds, toll) from s_init to s_end, mean over the ten past days of weekday dow.

    The clock starts at minute `tod`; a segment is driven at the speed of the minute in which it is reached, and the
    minutes of a day wrap. Means are rounded half up.
    """
    direction = 0 if s_init <= s_end else 1
    step = 1 - 2 * direction
    seconds, tolls = 0.0, 0
    for day in (d for d in range(1, 7 * WEEKS + 1) if weekday(d) == dow):
        driven = 0.0
        for seg in range(s_init, s_end + step, step):
            minute = (tod + int(driven // 60)) % MINUTES
            lav, _, toll = segment_history(seed, day, minute, xway, direction, seg)
            driven += 3600 / lav
            tolls += toll
        seconds += driven
    return math.floor(seconds / WEEKS + 0.5), math.floor(tolls / WEEKS + 0.5)
