"""Time zones: the distance from UTC at a time, looked up in a table of constants. Equal to cq/lang/zones.py.

The table is words: ZONE_COUNT, the number of changes; their times, ascending; then the distances, one more, each valid
from the previous change on. Times beyond the table repeat its last 400 years.

Sharing: none. Tables are read only.
"""

from __future__ import annotations

from cq.lang.zones import CYCLE_END_US, CYCLE_START_US, CYCLE_US
from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, urem
from cq.runtime.layout.words import Struct, name_words

_zone = Struct("ZONE")
ZONE_COUNT = _zone.word()
ZONE_TIMES = _zone.rest()

name_words(globals())


@native("i64(i64, i64)", export=True)
def zone_offset(table: int, time_us: int) -> int:
    """Microseconds from UTC at a time."""
    if time_us >= CYCLE_END_US:
        time_us = CYCLE_START_US + urem(time_us - CYCLE_START_US, CYCLE_US)
    count = ld_i64(table, ZONE_COUNT)
    low = 0  # changes below it are at or before the time, those from `high` on after it
    high = count
    while low < high:
        middle = (low + high) >> 1
        if ld_i64(table, ZONE_TIMES + middle) <= time_us:
            low = middle + 1
        else:
            high = middle
    return ld_i64(table, ZONE_TIMES + count + low)
