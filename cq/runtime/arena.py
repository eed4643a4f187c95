"""Arenas: bytes in chunks of 64 KiB, addressed by offsets that never change and only grow.

State holds (offset, length) instead of addresses, so it can be written out and read back elsewhere. Chunk n holds the
offsets n * 64 KiB and up; an item larger than a chunk has several chunks in one piece. `arena_drop` gives the oldest
chunks back, which suits streams: what came first expires first. One owner at a time.

The directory is a ring of (address, chunks of this piece or 0 inside one), indexed by chunk number modulo its size.
"""

from __future__ import annotations

from cq.runtime.memory import block_alloc, block_free
from cq.runtime.native import native
from cq.runtime.ops import copy, ld_i64, max_i64, st_i64

CHUNK_SHIFT = 16
CHUNK_BYTES = 1 << CHUNK_SHIFT
CHUNK_MASK = CHUNK_BYTES - 1

# words of an arena; they stand wherever the state puts them
ARENA_RING = 0  # -> directory
ARENA_MASK = 1  # its slots - 1; -1 before there is one
ARENA_FIRST = 2  # number of the oldest chunk
ARENA_NEXT = 3  # number after the newest chunk
ARENA_END = 4  # the offset the next item gets, unless it does not fit the chunk
ARENA_WORDS = 5

SLOT_WORDS = 2
FIRST_SLOTS = 4


@native("void(i64, i64)", export=True)
def arena_init(arena: int, chunk: int) -> None:
    """The arena is empty and its first chunk will have this number (0, or that of a saved arena)."""
    st_i64(arena, ARENA_RING, 0)
    st_i64(arena, ARENA_MASK, -1)
    st_i64(arena, ARENA_FIRST, chunk)
    st_i64(arena, ARENA_NEXT, chunk)
    st_i64(arena, ARENA_END, chunk * CHUNK_BYTES)


@native("i64(i64, i64)", inline=True)
def arena_at(arena: int, offset: int) -> int:
    """The address of a live offset; good until the arena is dropped or freed beyond it."""
    slot = (offset >> CHUNK_SHIFT) & ld_i64(arena, ARENA_MASK)
    return ld_i64(ld_i64(arena, ARENA_RING), slot * SLOT_WORDS) + (offset & CHUNK_MASK)


@native("i64(i64, i64, i64)")
def _make_room(pool: int, arena: int, chunks: int) -> int:
    """Whether the directory has `chunks` free slots."""
    slots = ld_i64(arena, ARENA_MASK) + 1
    first = ld_i64(arena, ARENA_FIRST)
    following = ld_i64(arena, ARENA_NEXT)
    needed = following - first + chunks
    if needed <= slots:
        return 1
    larger = FIRST_SLOTS
    while larger < needed:
        larger = larger * 2
    ring = block_alloc(pool, larger * SLOT_WORDS * 8)
    if ring == 0:
        return 0
    old = ld_i64(arena, ARENA_RING)
    for chunk in range(first, following):
        source = (chunk & (slots - 1)) * SLOT_WORDS
        target = (chunk & (larger - 1)) * SLOT_WORDS
        st_i64(ring, target, ld_i64(old, source))
        st_i64(ring, target + 1, ld_i64(old, source + 1))
    block_free(pool, old)
    st_i64(arena, ARENA_RING, ring)
    st_i64(arena, ARENA_MASK, larger - 1)
    return 1


@native("i64(i64, i64, i64)", export=True)
def arena_reserve(pool: int, arena: int, size: int) -> int:
    """The offset of `size` bytes in one piece that nobody else gets, or -1. size >= 0."""
    end = ld_i64(arena, ARENA_END)
    following = ld_i64(arena, ARENA_NEXT)
    room = max_i64(size, 1)  # an empty item too lies in a live chunk: `arena_at` is good for every offset given out
    if end + room <= following * CHUNK_BYTES:
        st_i64(arena, ARENA_END, end + size)
        return end
    chunks = (room + CHUNK_MASK) >> CHUNK_SHIFT
    if _make_room(pool, arena, chunks) == 0:
        return -1
    piece = block_alloc(pool, chunks * CHUNK_BYTES)
    if piece == 0:
        return -1
    ring = ld_i64(arena, ARENA_RING)
    mask = ld_i64(arena, ARENA_MASK)
    for n in range(chunks):
        slot = ((following + n) & mask) * SLOT_WORDS
        st_i64(ring, slot, piece + n * CHUNK_BYTES)
        st_i64(ring, slot + 1, 0)
    st_i64(ring, (following & mask) * SLOT_WORDS + 1, chunks)
    st_i64(arena, ARENA_NEXT, following + chunks)
    st_i64(arena, ARENA_END, following * CHUNK_BYTES + size)
    return following * CHUNK_BYTES


@native("i64(i64, i64, i64, i64)", export=True)
def arena_add(pool: int, arena: int, source: int, size: int) -> int:
    """The offset of a copy of `size` bytes, or -1."""
    offset = arena_reserve(pool, arena, size)
    if offset >= 0 and size > 0:
        copy(arena_at(arena, offset), source, size)
    return offset


@native("void(i64, i64, i64)", export=True)
def arena_drop(pool: int, arena: int, offset: int) -> None:
    """Every piece that ends at or before `offset` is given back; offsets from there on stay good."""
    ring = ld_i64(arena, ARENA_RING)
    mask = ld_i64(arena, ARENA_MASK)
    first = ld_i64(arena, ARENA_FIRST)
    following = ld_i64(arena, ARENA_NEXT)
    limit = offset >> CHUNK_SHIFT
    while first < following:
        slot = (first & mask) * SLOT_WORDS
        chunks = ld_i64(ring, slot + 1)
        if first + chunks > limit:
            break
        block_free(pool, ld_i64(ring, slot))
        first += chunks
    st_i64(arena, ARENA_FIRST, first)


@native("void(i64, i64)", export=True)
def arena_clear(pool: int, arena: int) -> None:
    """The arena holds nothing and owns no memory; its offsets go on from the next chunk."""
    following = ld_i64(arena, ARENA_NEXT)
    arena_drop(pool, arena, following * CHUNK_BYTES)
    block_free(pool, ld_i64(arena, ARENA_RING))
    arena_init(arena, following)
