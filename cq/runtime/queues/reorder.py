"""Reorder buffer: workers finish tickets in any order; the next stage sees them in ticket order.

Roles     many writers (reorder_put); one reader at a time, the holder of the flag (reorder_enter … reorder_leave).
Shared    REORDER_HEAD  next ticket to deliver; written by the reader, and once before there is one.
          REORDER_FLAG  1 while there is a reader.
          slot t & mask  the result of ticket t, or 0.
I1        a ticket is delivered once, after all lower ones.                       tests: test_tickets_leave_in_order
I2        put(t) refuses when t >= head + capacity; put(head) never refuses.      tests: test_head_always_fits
I3        a result that could be delivered is not left behind: if a put and a leave overlap, the one that comes
          second sees it.                                                         tests: test_no_result_is_left_behind
I4        a new reader finds the head's result.                          tests: test_no_result_is_left_behind
Progress  no call waits; a thread that finds a reader goes on with other work.
Order     put: slot (seq_cst), then the flag by CAS.  leave: flag = 0 (seq_cst), then slot. Both pairs are
          store-then-load of different words, so neither store may be weaker than seq_cst.
Source    Prasaad et al., Scaling Ordered Stream Processing (2018), section 3.2, figure 4. We differ in that the reader
          may leave with the head undelivered (the next queue is full) and any thread may take over later.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, at_cas, at_load, at_store, ld_i64, release, st_i64, zalloc
from cq.runtime.layout.words import Struct

_reorder = Struct("REORDER")
REORDER_MASK = _reorder.line()
REORDER_HEAD = _reorder.line()
REORDER_FLAG = _reorder.line()
REORDER_SLOTS = _reorder.rest()


@native("i64(i64)", export=True)
def reorder_new(capacity: int) -> int:
    """An empty buffer for `capacity` (a power of two) tickets from 0 on; 0 without memory."""
    assert capacity >= 1 and capacity & (capacity - 1) == 0, "capacity of a reorder buffer"
    buffer = zalloc((REORDER_SLOTS + capacity) * 8)
    if buffer != 0:
        st_i64(buffer, REORDER_MASK, capacity - 1)
    return buffer


@native("void(i64, i64)", export=True)
def reorder_begin(buffer: int, ticket: int) -> None:
    """Let the empty buffer begin with this ticket. No other thread knows the buffer yet."""
    at_store(buffer + REORDER_HEAD * 8, ticket)


@native("void(i64)", export=True)
def reorder_drop(buffer: int) -> None:
    """Free the buffer; no thread uses it. 0 is ignored."""
    release(buffer)


@native("i64(i64)")
def _head_slot(buffer: int) -> int:
    head = at_load(buffer + REORDER_HEAD * 8)
    return buffer + (REORDER_SLOTS + (head & ld_i64(buffer, REORDER_MASK))) * 8


@native("i64(i64, i64, i64)", export=True)
def reorder_put(buffer: int, ticket: int, result: int) -> int:
    """Put the result (not 0) of the ticket into the buffer and return 1; 0 if the ticket is too far ahead.

    Each ticket is put once. The caller then tries to deliver (`reorder_enter`).
    """
    mask = ld_i64(buffer, REORDER_MASK)
    if ticket > at_load(buffer + REORDER_HEAD * 8) + mask:
        return 0
    at_store(buffer + (REORDER_SLOTS + (ticket & mask)) * 8, result)
    return 1


@native("i64(i64)", export=True)
def reorder_ready(buffer: int) -> int:
    """1 if the result of the head ticket is there."""
    return 1 if at_load(_head_slot(buffer)) != 0 else 0


@native("i64(i64)", export=True)
def reorder_enter(buffer: int) -> int:
    """Become the reader and return 1; 0 if another thread is, or if the head's result is not there."""
    while reorder_ready(buffer) == 1:
        if not at_cas(buffer + REORDER_FLAG * 8, 0, 1):
            return 0
        if reorder_ready(buffer) == 1:
            return 1
        at_store(buffer + REORDER_FLAG * 8, 0)  # another reader delivered it in between; look again
    return 0


@native("i64(i64)", export=True)
def reorder_head(buffer: int) -> int:
    """The result of the head ticket, or 0 if it is not there. Reader only."""
    return at_load(_head_slot(buffer))


@native("void(i64)", export=True)
def reorder_next(buffer: int) -> None:
    """Deliver the head ticket; the one after it becomes the head. Reader only."""
    at_store(_head_slot(buffer), 0)
    at_add(buffer + REORDER_HEAD * 8, 1)


@native("i64(i64)", export=True)
def reorder_leave(buffer: int) -> int:
    """Stop being the reader; 1 if the head's result is there, so that a thread has to look again."""
    at_store(buffer + REORDER_FLAG * 8, 0)
    return reorder_ready(buffer)
