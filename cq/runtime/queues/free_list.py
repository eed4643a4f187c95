"""Free lists: things of one kind that any thread may take, such as idle parcels and kept blocks.

A row of places, each a thing or 0, after the list's level: the place above the last one that was filled, unless other
threads have changed it since. Putting searches upwards from there for a place, taking downwards for a thing, so that
neither searches the whole row, and when few things are needed only a few are used in turn, which are still in the
cache; a queue would go through all of them.

Roles     any thread puts and takes.
Shared    one word a place, and the level.
I1        a thing is taken by one thread, once for each time it was put.   tests: test_a_kept_block_has_one_owner_*
I2        the level only says where to begin: for any level, I1 holds.    tests: test_a_free_list_with_a_wrong_level_*
Progress  no call waits. A take may miss a thing that is put meanwhile, or that is above the level until things have
          been put up to it; a put may miss a place that becomes free.
Order     put: all changes to the thing, then its place by CAS.  take: the place by exchange, then the thing.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_store, at_xchg


@native("i64(i64, i64, i64)", export=True)
def free_list_put(free: int, places: int, thing: int) -> int:
    """Put the thing (not 0) on the free list; 1, or 0 if no place was free. free: 1 + places words, 0 at first."""
    number = at_load(free)
    while number < places:
        number += 1
        place = free + number * 8
        if at_load(place) == 0 and at_cas(place, 0, thing):
            at_store(free, number)
            return 1
    at_store(free, places)
    return 0


@native("i64(i64)", export=True)
def free_list_take(free: int) -> int:
    """Take a thing from the free list, for the caller to own; 0 if there was none."""
    number = at_load(free)
    while number > 0:
        place = free + number * 8
        number -= 1
        if at_load(place) != 0:
            thing = at_xchg(place, 0)
            if thing != 0:
                at_store(free, number)
                return thing
    at_store(free, 0)
    return 0


@native("i64(i64, i64)", export=True)
def free_list_take_at(free: int, number: int) -> int:
    """Take the thing at a place, from 1 on, for the caller to own; 0 if there was none. Works for any level."""
    return at_xchg(free + number * 8, 0)
