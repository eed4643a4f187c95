"""Rooms: lists of a struct that grow when a ticket needs more than any before it, and whose content is overwritten.

Sharing: none. A struct has one owner at a time.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, ld_i64, release, st_i64


@native("i64(i64, i64, i64, i64, i64)")
def room_for(struct: int, room: int, word: int, count: int, size: int) -> int:
    """Make the word lead to room for this many things of a size, losing their content if it grew; 1, or 0 without
    memory.

    room: the word with the number of things it has room for.
    """
    if count <= ld_i64(struct, room):
        return 1
    release(ld_i64(struct, word))
    fresh = alloc(count * size)
    st_i64(struct, word, fresh)
    st_i64(struct, room, count if fresh != 0 else 0)
    return 1 if fresh != 0 else 0
