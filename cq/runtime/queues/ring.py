"""Bounded ring: any number of threads put words in, any number take them out, first in, first out.

Roles     many writers (ring_push), many readers (ring_pop, ring_take).
Shared    RING_TAIL  position of the next push.  RING_HEAD  position of the next take.  Each on a line of its own.
          cell p & mask: its turn (p: free for push p; p + 1: holds value p) and its value.
I1        a value that was pushed is taken once, and takes of one thread see pushes of one thread in order.
                                                                          tests: test_every_value_is_taken_once_in_order
I2        at most `capacity` values are inside; a push beyond that refuses.  tests: test_push_refuses_when_full
I3        takes number the values 0, 1, 2 … in the order of their pushes: the position is a ticket.
                                                                          tests: test_positions_follow_the_pushes
I4        `ring_size` is never less than what is inside.   tests: test_the_size_is_never_less_than_what_is_inside
Progress  no call waits. A push or take repeats only if another thread's step succeeded. While a push is between its
          claim and its publication the ring can look empty; code that relies on a value being there rescans after the
          publication (workers are woken after a push, never before).
Order     push: value, then turn (release).  take: turn (acquire), then value, then turn (release).
Source    D. Vyukov's bounded queue. Values are words other than 0.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_cas, at_load, at_load_acq, at_store_rel, ld_i64, release, st_i64, zalloc
from cq.runtime.layout.words import Struct

_ring = Struct("RING")
RING_MASK = _ring.line()
RING_TAIL = _ring.line()
RING_HEAD = _ring.line()
RING_CELLS = _ring.rest()

_cell = Struct("CELL")
CELL_TURN = _cell.word()
CELL_VALUE = _cell.word()
CELL_WORDS = _cell.size()


@native("i64(i64)", export=True)
def ring_new(capacity: int) -> int:
    """An empty ring for `capacity` (a power of two, at least 2) values; 0 without memory."""
    assert capacity >= 2 and capacity & (capacity - 1) == 0, "capacity of a ring"
    ring = zalloc((RING_CELLS + capacity * CELL_WORDS) * 8)
    if ring == 0:
        return 0
    st_i64(ring, RING_MASK, capacity - 1)
    for cell in range(capacity):
        st_i64(ring, RING_CELLS + cell * CELL_WORDS + CELL_TURN, cell)
    return ring


@native("void(i64)", export=True)
def ring_drop(ring: int) -> None:
    """Free the ring; no thread uses it. 0 is ignored."""
    release(ring)


@native("i64(i64, i64)", export=True)
def ring_push(ring: int, value: int) -> int:
    """Append the value and return 1; 0 if the ring is full."""
    mask = ld_i64(ring, RING_MASK)
    position = at_load(ring + RING_TAIL * 8)
    while True:
        cell = ring + (RING_CELLS + (position & mask) * CELL_WORDS) * 8
        turn = at_load_acq(cell + CELL_TURN * 8)
        if turn == position:
            if at_cas(ring + RING_TAIL * 8, position, position + 1):
                st_i64(cell, CELL_VALUE, value)
                at_store_rel(cell + CELL_TURN * 8, position + 1)
                return 1
        elif turn < position:
            return 0
        position = at_load(ring + RING_TAIL * 8)


@native("(i64, i64)(i64)")
def ring_take(ring: int) -> tuple[int, int]:
    """Remove and return the oldest value, and its position; (0, 0) if there is none."""
    mask = ld_i64(ring, RING_MASK)
    position = at_load(ring + RING_HEAD * 8)
    while True:
        cell = ring + (RING_CELLS + (position & mask) * CELL_WORDS) * 8
        turn = at_load_acq(cell + CELL_TURN * 8)
        if turn == position + 1:
            if at_cas(ring + RING_HEAD * 8, position, position + 1):
                value = ld_i64(cell, CELL_VALUE)
                at_store_rel(cell + CELL_TURN * 8, position + mask + 1)
                return value, position
        elif turn <= position:
            return 0, 0
        position = at_load(ring + RING_HEAD * 8)


@native("i64(i64)", export=True)
def ring_pop(ring: int) -> int:
    """Remove and return the oldest value; 0 if there is none."""
    value, _position = ring_take(ring)
    return value


@native("i64(i64)", export=True)
def ring_size(ring: int) -> int:
    """At least the number of values inside, those in progress included: some may leave between the two loads."""
    head = at_load(ring + RING_HEAD * 8)
    return at_load(ring + RING_TAIL * 8) - head


@native("i64(i64)", export=True)
def ring_has_room(ring: int) -> int:
    """1 if the next push succeeds; holds until then for the only thread that may push."""
    position = at_load(ring + RING_TAIL * 8)
    cell = ring + (RING_CELLS + (position & ld_i64(ring, RING_MASK)) * CELL_WORDS) * 8
    return 1 if at_load_acq(cell + CELL_TURN * 8) == position else 0
