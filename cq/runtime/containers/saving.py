"""Measuring the containers of a state; buffers for saving them; and moving them to another state.

Sharing: none, as for the containers. The engine calls these while nothing runs, or from the worker that owns the state.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, call1, call4, ld_i64, release, st_i64
from cq.runtime.containers.protocol import ARRIVAL_PLACE, ARRIVAL_WORDS


@native("i64(i64, i64, i64)", export=True)
def state_held_bytes(state: int, slots: int, count: int) -> int:
    """Memory the containers of a state hold. slots: -> (offset, address of `held_bytes`) of each container."""
    held = 0
    for slot in range(count):
        held += call1(ld_i64(slots, slot * 2 + 1), ld_i64(state, ld_i64(slots, slot * 2)))
    return held


@native("i64(i64, i64, i64)", export=True)
def state_settle(state: int, slots: int, count: int) -> int:
    """Settle the containers of a state and return 1; 0 without memory. slots: -> (offset, address of `settle`) of each
    container that needs it."""
    whole = 1
    for slot in range(count):
        if whole == 1:
            whole = call1(ld_i64(slots, slot * 2 + 1), ld_i64(state, ld_i64(slots, slot * 2)))
    return whole


@native("i64(i64)", export=True)
def room_new(size: int) -> int:
    """The address of `size` > 0 bytes, or 0. For Python, which has no other way to allocate."""
    return alloc(size)


@native("void(i64)", export=True)
def room_drop(address: int) -> None:
    """Free memory from `room_new`."""
    release(address)


@native("i64(i64, i64, i64)", export=True)
def renumber(arrivals: int, order: int, count: int) -> int:
    """Replace the arrival numbers of a list (`put_arrival`) by -count .. -1, in place.

    order: -> the places of the list in the order of the new numbers.
    """
    for rank in range(count):
        listed = arrivals + ld_i64(order, rank) * ARRIVAL_WORDS * 8
        st_i64(ld_i64(listed, ARRIVAL_PLACE), 0, rank - count)
    return 0


@native("i64(i64, i64, i64, i64, i64)", export=True)
def call_move(move: int, source: int, target: int, constants: int, routing: int) -> int:
    """The result of a function of `Moving`. For Python, which has only its address."""
    return call4(move, source, target, constants, routing)
