"""Blocks: memory for what grows with the data — tables, buffers, parcels — aligned, and kept for the next user.

Block     begins on a cache line, so that an entry of 64 bytes lies in one; its words are in the line before it.
Large     from LARGE_FROM_BYTES on it has pages of its own, large ones if the system provides them: 128 MiB of new
          small pages cost 65 ms of faults, of large ones 7 ms, zeroing them again 2 ms (measured).
Kept      a released block of at least KEPT_FROM_BYTES waits on the free list of its size class for any thread's next
          request. The C library would keep most of what the main thread releases and give back what a worker does, so
          that each run of an engine with workers paid for its tables and parcels again, a third of the time of tables
          of a million groups. The system may take the pages of a large waiting block if it needs them.
Growing   a block that grows large becomes the largest kept one, whose pages exist already. If it became one of double
          size each time, to which its own pages are moved, the kept blocks would be freed to make room: ORDER BY of
          1 M rows got 80 MB of new pages in each run, 33 of 86 ns of CPU a row (measured).

Roles     any thread requests and releases; a block has one owner.
Shared    KEPT_BYTES, the free lists (cq/runtime/queues/free_list.py).
I1        a block is in one place: with its owner, on a free list, or with the system.
                                                              tests: test_a_kept_block_has_one_owner_in_every_schedule
I2        blocks on free lists hold at most MOST_KEPT_BYTES.                          tests: test_no_more_is_kept_than_*
Progress  no call waits for another thread. If no free list has a block, it asks the system, which may refuse.
Order     what an owner did to a block comes before the CAS that puts it on a free list, and the next owner's work after
          the exchange that takes it (free_list.py). KEPT_BYTES is added to before a block is put and after one is taken
          (seq_cst), so it never counts less than the free lists hold; no memory access depends on it.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    KEPT_WORDS,
    alloc,
    at_add,
    clz,
    copy,
    fill,
    kept_words,
    large_pages,
    ld_i64,
    map_pages,
    move_pages,
    release,
    shl,
    spare_pages,
    st_i64,
    unmap_pages,
    zalloc,
)
from cq.runtime.layout.words import WORDS_A_LINE, Struct
from cq.runtime.queues.free_list import free_list_put, free_list_take

LINE_BYTES = WORDS_A_LINE * 8

# words in the cache line before a block
_block = Struct("BLOCK", after=-WORDS_A_LINE)
BLOCK_BASE = _block.word()  # where its memory begins
BLOCK_SIZE = _block.word()  # bytes requested
BLOCK_CLASS = _block.word()  # its size class; -1: it is not kept
BLOCK_MAPPED = _block.word()  # bytes of its own mapping; 0: it comes from the C library

_kept = Struct("KEPT")
KEPT_BYTES = _kept.line()  # on the free lists
KEPT_LISTS = _kept.rest()
LIST_PLACES = 2048  # in one class: the columns of a result of 10 M rows, which is freed before the next one is made
FIRST_CLASS_LOG = 15
SIZE_CLASSES = (KEPT_WORDS - KEPT_LISTS) // (1 + LIST_PLACES)
EXTRA_BYTES = 2048  # above the power of two: 65 values of 16 bytes past the last row of a ticket, slack after strings

KEPT_FROM_BYTES = 1 << FIRST_CLASS_LOG  # the C library keeps smaller ones
MOST_KEPT_BYTES = 256 << 20  # a table of a million groups and the smaller ones it outgrew
LARGE_BYTES = 2 << 20  # a large page here and on most machines
LARGE_FROM_BYTES = LARGE_BYTES  # a large page costs 0.1 ms, as many small ones 0.5 ms; a block of half of one wastes it
PAGE_BYTES = 4096


@native("i64(i64)")
def size_class(size: int) -> int:
    """The first class whose blocks have room for `size` bytes; -1 if such a block is not kept."""
    if size < KEPT_FROM_BYTES or size > shl(1, FIRST_CLASS_LOG + SIZE_CLASSES - 1) or kept_words() == 0:
        return -1
    return 64 - clz(size - EXTRA_BYTES - 1) - FIRST_CLASS_LOG


@native("i64(i64)")
def class_room(number: int) -> int:
    """The room of a block of this class, in bytes."""
    return shl(1, FIRST_CLASS_LOG + number) + EXTRA_BYTES


@native("i64(i64)")
def _free_list(number: int) -> int:
    """The free list of a size class: its level and its places."""
    return kept_words() + (KEPT_LISTS + number * (1 + LIST_PLACES)) * 8


@native("i64(i64, i64)", export=True)
def block_new(size: int, zero: int) -> int:
    """The address of `size` > 0 bytes, all of them 0 if `zero` is 1; 0 without memory."""
    number = size_class(size)
    room = size
    if number >= 0:
        room = class_room(number)
        block = free_list_take(_free_list(number))
        if block != 0:
            at_add(kept_words(), -room)
            if zero == 1:
                fill(block, 0, size)
            st_i64(block, BLOCK_SIZE, size)
            return block
    if room >= LARGE_FROM_BYTES:
        mapped = (room + LINE_BYTES + 2 * LARGE_BYTES - 1) & ~(PAGE_BYTES - 1)
        base = map_pages(mapped)
        start = (base + LARGE_BYTES - 1) & ~(LARGE_BYTES - 1)
        if base != 0:
            large_pages(start, (room + LINE_BYTES + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1))
    else:
        mapped = 0
        base = zalloc(room + 2 * LINE_BYTES) if zero == 1 else alloc(room + 2 * LINE_BYTES)
        start = (base + LINE_BYTES - 1) & ~(LINE_BYTES - 1)
    if base == 0:
        return 0
    block = start + LINE_BYTES
    st_i64(block, BLOCK_BASE, base)
    st_i64(block, BLOCK_SIZE, size)
    st_i64(block, BLOCK_CLASS, number)
    st_i64(block, BLOCK_MAPPED, mapped)
    return block


@native("void(i64)", export=True)
def block_drop(block: int) -> None:
    """Free a block, in any thread; 0 is ignored."""
    if block == 0 or _keep(block) == 1:
        return
    mapped = ld_i64(block, BLOCK_MAPPED)
    if mapped != 0:
        unmap_pages(ld_i64(block, BLOCK_BASE), mapped)
    else:
        release(ld_i64(block, BLOCK_BASE))


@native("i64(i64)")
def _keep(block: int) -> int:
    """Put a block on the free list of its class and return 1; 0 if it has no class or there is no place for it."""
    number = ld_i64(block, BLOCK_CLASS)
    if number < 0:
        return 0
    room = class_room(number)
    if at_add(kept_words(), room) + room <= MOST_KEPT_BYTES:
        if room >= 2 * LARGE_BYTES:
            spare_pages(block - LINE_BYTES + LARGE_BYTES, (room & ~(LARGE_BYTES - 1)) - LARGE_BYTES)
        if free_list_put(_free_list(number), LIST_PLACES, block) == 1:
            return 1
    at_add(kept_words(), -room)
    return 0


@native("i64(i64, i64)", export=True)
def block_resize(block: int, size: int) -> int:
    """The address of a block with the old content and room for `size` bytes, or 0, with the old one unchanged.

    block: 0 for a new one.  The pages of a large block are moved, so that its content is never there twice; into a kept
    block, whose pages exist anyway, it is copied.
    """
    if block == 0:
        return block_new(size, 0)
    held = ld_i64(block, BLOCK_SIZE)
    number = ld_i64(block, BLOCK_CLASS)
    room = held
    if number >= 0:
        room = class_room(number)
    if size <= room:
        st_i64(block, BLOCK_SIZE, size)
        return block
    moved = _kept_to_grow(size)
    if moved != 0:  # copying what it held before it grew large costs less than the pages that a move gives up
        copy(moved, block, held)
        block_drop(block)
        return moved
    moved = block_new(size, 0)
    if moved == 0:
        return 0
    if ld_i64(block, BLOCK_MAPPED) == 0 or ld_i64(moved, BLOCK_MAPPED) == 0 or _move(block, moved) == 0:
        copy(moved, block, held)
        block_drop(block)
    return moved


@native("i64(i64)")
def _kept_to_grow(size: int) -> int:
    """The largest kept block with room for `size` bytes, for one that has become large and may grow on; 0: none."""
    if size < LARGE_FROM_BYTES:
        return 0
    least = size_class(size)
    if least < 0:
        return 0
    for number in range(SIZE_CLASSES - 1, least - 1, -1):
        block = free_list_take(_free_list(number))
        if block != 0:
            at_add(kept_words(), -class_room(number))
            st_i64(block, BLOCK_SIZE, size)
            return block
    return 0


@native("i64(i64, i64)")
def _move(block: int, to: int) -> int:
    """Move the pages of the first block into the second, delete the first and return 1; 0 if it must be copied."""
    base = ld_i64(to, BLOCK_BASE)
    size = ld_i64(to, BLOCK_SIZE)
    number = ld_i64(to, BLOCK_CLASS)
    mapped = ld_i64(to, BLOCK_MAPPED)
    pages = (ld_i64(block, BLOCK_SIZE) + LINE_BYTES + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1)
    old = ld_i64(block, BLOCK_BASE)
    moved = move_pages(old, ld_i64(block, BLOCK_MAPPED), block - LINE_BYTES, pages, to - LINE_BYTES)
    st_i64(to, BLOCK_BASE, base)
    st_i64(to, BLOCK_SIZE, size)
    st_i64(to, BLOCK_CLASS, number)
    st_i64(to, BLOCK_MAPPED, mapped)
    return moved
