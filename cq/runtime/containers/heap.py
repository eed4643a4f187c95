"""A binary heap of (time, tie, item) for containers whose contents are due in another order than they came.

The first item has the least time, among equal times the least tie; an item is a word of its owner's. It is not a
container: everything in it can be recovered from the container it is part of, so it is not saved.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i64, release, shr_u, st_i64, zalloc
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.words import Struct

_heap = Struct("HEAP")
HEAP_ITEMS = _heap.word()  # -> items, three words each
HEAP_COUNT = _heap.word()
HEAP_CAPACITY = _heap.word()
HEAP_NEXT = _heap.word()  # time of the first item; NEVER if empty
HEAP_WORDS = _heap.size()

_item = Struct("ITEM")
ITEM_TIME = _item.word()
ITEM_TIE = _item.word()
ITEM_VALUE = _item.word()
ITEM_WORDS = _item.size()
ITEM_BYTES = ITEM_WORDS * 8

FIRST_ITEMS = 32


@native("i64()")
def heap_new() -> int:
    """An empty heap, or 0 without memory."""
    heap = zalloc(HEAP_WORDS * 8)
    if heap == 0:
        return 0
    items = block_new(FIRST_ITEMS * ITEM_BYTES, 0)
    if items == 0:
        release(heap)
        return 0
    st_i64(heap, HEAP_ITEMS, items)
    st_i64(heap, HEAP_CAPACITY, FIRST_ITEMS)
    st_i64(heap, HEAP_NEXT, NEVER)
    return heap


@native("void(i64)")
def heap_drop(heap: int) -> None:
    """Free the heap; 0 is none."""
    if heap != 0:
        block_drop(ld_i64(heap, HEAP_ITEMS))
        release(heap)


@native("void(i64)")
def heap_clear(heap: int) -> None:
    """Empty the heap; its capacity stays."""
    st_i64(heap, HEAP_COUNT, 0)
    st_i64(heap, HEAP_NEXT, NEVER)


@native("i64(i64)")
def heap_held_bytes(heap: int) -> int:
    """Memory the heap holds; 0 is none."""
    return 0 if heap == 0 else HEAP_WORDS * 8 + ld_i64(heap, HEAP_CAPACITY) * ITEM_BYTES


@native("i64(i64, i64, i64, i64)")
def heap_push(heap: int, time: int, tie: int, value: int) -> int:
    """Put the item into the heap and return 1; 0 without memory, and nothing has changed."""
    count = ld_i64(heap, HEAP_COUNT)
    items = ld_i64(heap, HEAP_ITEMS)
    if count >= ld_i64(heap, HEAP_CAPACITY):
        items = block_resize(items, 2 * count * ITEM_BYTES)
        if items == 0:
            return 0
        st_i64(heap, HEAP_ITEMS, items)
        st_i64(heap, HEAP_CAPACITY, 2 * count)
    st_i64(heap, HEAP_COUNT, count + 1)
    place = count
    while place > 0:
        parent = items + shr_u(place - 1, 1) * ITEM_BYTES
        if _due_before(time, tie, parent) == 0:
            break
        copy(items + place * ITEM_BYTES, parent, ITEM_BYTES)
        place = shr_u(place - 1, 1)
    _put_item(items + place * ITEM_BYTES, time, tie, value)
    st_i64(heap, HEAP_NEXT, ld_i64(items, ITEM_TIME))
    return 1


@native("void(i64)")
def heap_pop(heap: int) -> None:
    """Remove the first item of the heap, which is not empty."""
    count = ld_i64(heap, HEAP_COUNT) - 1
    st_i64(heap, HEAP_COUNT, count)
    if count == 0:
        st_i64(heap, HEAP_NEXT, NEVER)
        return
    last = ld_i64(heap, HEAP_ITEMS) + count * ITEM_BYTES
    heap_replace(heap, ld_i64(last, ITEM_TIME), ld_i64(last, ITEM_TIE), ld_i64(last, ITEM_VALUE))


@native("void(i64, i64, i64, i64)")
def heap_replace(heap: int, time: int, tie: int, value: int) -> None:
    """Replace the first item of a heap that is not empty by this one."""
    count = ld_i64(heap, HEAP_COUNT)
    items = ld_i64(heap, HEAP_ITEMS)
    place = 0
    child = 1
    while child < count:
        item = items + child * ITEM_BYTES
        if child + 1 < count:
            other = item + ITEM_BYTES
            if _due_before(ld_i64(other, ITEM_TIME), ld_i64(other, ITEM_TIE), item) == 1:
                child += 1
                item = other
        if _due_before(time, tie, item) == 1:
            break
        copy(items + place * ITEM_BYTES, item, ITEM_BYTES)
        place = child
        child = place * 2 + 1
    _put_item(items + place * ITEM_BYTES, time, tie, value)
    st_i64(heap, HEAP_NEXT, ld_i64(items, ITEM_TIME))


@native("i64(i64, i64, i64)", inline=True)
def _due_before(time: int, tie: int, item: int) -> int:
    """Whether something of this time and tie comes before an item."""
    other = ld_i64(item, ITEM_TIME)
    return 1 if time < other or (time == other and tie < ld_i64(item, ITEM_TIE)) else 0


@native("void(i64, i64, i64, i64)", inline=True)
def _put_item(item: int, time: int, tie: int, value: int) -> None:
    st_i64(item, ITEM_TIME, time)
    st_i64(item, ITEM_TIE, tie)
    st_i64(item, ITEM_VALUE, value)
