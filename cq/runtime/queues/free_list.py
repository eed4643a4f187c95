"""Free lists: things of one kind that anybody may take, such as idle parcels and kept blocks.

A row of places, each a thing or 0, behind the list's level: the place above the last one that was filled, as far as
threads in between have not told otherwise. Putting looks from there upwards for a place, taking downwards for a thing,
so that neither looks over the whole row, and few things are in turn where few are needed, which are still in the cache;
a queue would go through all of them.

Roles     any thread puts and takes.
Shared    one word a place, and the level.
I1        a thing is taken by one thread, once for each time it was put.   tests: test_a_kept_block_has_one_owner_*
I2        the level only says where to begin: whatever it is, I1 holds.    tests: test_a_free_list_with_a_wrong_level_*
Progress  no call waits. A take may miss a thing that is put meanwhile, or that is above the level until things have
          been put up to it; a put a place that becomes free.
Order     put: what was done to the thing, then its place by CAS.  take: the place by exchange, then the thing.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_store, at_xchg


@native("i64(i64, i64, i64)", export=True)
def free_list_put(free: int, places: int, thing: int) -> int:
    """1 and the thing (not 0) is on the free list; 0 when no place was free. free: 1 + places words, 0 at first."""
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
    """A thing that was on the free list and is now the caller's; 0 when there was none."""
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
    """What stood at a place, from 1 on, which is now the caller's; 0 when there was nothing. Whatever the level is."""
    return at_xchg(free + number * 8, 0)
