"""What the containers of a state hold, weighed; and room for what is saved of them.

Sharing: none, as for the containers. The engine calls these while nothing runs, or from the worker that owns the state.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, call1, ld_i64, release


@native("i64(i64, i64, i64)", export=True)
def state_held_bytes(state: int, slots: int, count: int) -> int:
    """Memory the containers of a state hold. slots: -> (offset, address of `held_bytes`) of each container."""
    held = 0
    for slot in range(count):
        held += call1(ld_i64(slots, slot * 2 + 1), ld_i64(state, ld_i64(slots, slot * 2)))
    return held


@native("i64(i64)", export=True)
def room_new(size: int) -> int:
    """The address of `size` > 0 bytes, or 0. For Python, which has no other way to allocate."""
    return alloc(size)


@native("void(i64)", export=True)
def room_drop(address: int) -> None:
    """Free what `room_new` gave."""
    release(address)
