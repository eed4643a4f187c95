"""A shelf of things of one kind that anybody may take: idle parcels, kept blocks.

A row of places, each a thing or 0. Putting takes the first free place and taking the first thing, so that few things
are in turn where few are needed, and those are still in the cache; a queue would go through all of them.

Roles     any thread puts and takes.
Shared    one word a place.
I1        a thing is taken by one thread, once for each time it was put.   tests: test_a_kept_block_has_one_owner_*
Progress  no call waits. A take may miss a thing that is put meanwhile, a put a place that becomes free.
Order     put: what was done to the thing, then its place by CAS.  take: the place by exchange, then the thing.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_xchg


@native("i64(i64, i64, i64)", export=True)
def shelf_put(shelf: int, places: int, thing: int) -> int:
    """1 and the thing (not 0) is on the shelf; 0 when no place was free."""
    for number in range(places):
        place = shelf + number * 8
        if at_load(place) == 0 and at_cas(place, 0, thing):
            return 1
    return 0


@native("i64(i64, i64)", export=True)
def shelf_take(shelf: int, places: int) -> int:
    """A thing that was on the shelf and is now the caller's; 0 when there was none."""
    for number in range(places):
        place = shelf + number * 8
        if at_load(place) != 0:
            thing = at_xchg(place, 0)
            if thing != 0:
                return thing
    return 0
