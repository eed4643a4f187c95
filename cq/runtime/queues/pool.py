"""A pool of things that are lent and come back: tickets, tasks, splits.

A ring cannot hold them: while one thread is between the claim and the release of a cell, another thread's push can find
the ring full, though there is room for all. Here each thing has a home of its own, so that coming back is one store.

Roles     many takers (pool_take); the holder of a thing puts it back (pool_put).
Shared    one word a home: the thing that is in, or 0 while it is out.
I1        a thing that is in is taken by one thread.                          tests: test_a_thing_is_lent_to_one_thread
I2        a thing that came back can be taken at once; no put ever refuses.   tests: test_what_comes_back_can_be_taken
Progress  no call waits. A take may miss a thing that comes back meanwhile: its caller looks again.
Order     put: all changes to the thing, then its home (seq_cst).  take: the home by CAS, then the thing.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_store, ld_i64, release, st_i64, zalloc
from cq.runtime.layout.words import Struct

_pool = Struct("POOL")
POOL_HOMES = _pool.line()  # how many
POOL_FIRST = _pool.rest()  # the homes, from here on


@native("i64(i64)", export=True)
def pool_new(homes: int) -> int:
    """An empty pool with this many homes; 0 without memory."""
    pool = zalloc((POOL_FIRST + homes) * 8)
    if pool != 0:
        st_i64(pool, POOL_HOMES, homes)
    return pool


@native("void(i64)", export=True)
def pool_drop(pool: int) -> None:
    """Free the pool; the things stay. 0 is ignored."""
    release(pool)


@native("i64(i64, i64)", export=True)
def pool_home(pool: int, number: int) -> int:
    """The address of a home, for `pool_put`."""
    return pool + (POOL_FIRST + number) * 8


@native("void(i64, i64)", export=True)
def pool_put(home: int, thing: int) -> None:
    """Put the thing back in its home."""
    at_store(home, thing)


@native("i64(i64)", export=True)
def pool_take(pool: int) -> int:
    """Take a thing that was in, for the caller to own; 0 if there was none."""
    for number in range(ld_i64(pool, POOL_HOMES)):
        home = pool + (POOL_FIRST + number) * 8
        thing = at_load(home)
        if thing != 0 and at_cas(home, thing, 0):
            return thing
    return 0


@native("i64(i64)", export=True)
def pool_count(pool: int) -> int:
    """How many things are in; each is counted as it was at some moment of the call."""
    count = 0
    for number in range(ld_i64(pool, POOL_HOMES)):
        if at_load(pool + (POOL_FIRST + number) * 8) != 0:
            count += 1
    return count
