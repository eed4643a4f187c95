"""Where native code gets memory: heaps with a limit, blocks that are recycled, arenas for strings.

Heap      one per job: bytes taken from the C library, and a limit beyond which every request returns 0. Callers must
          handle 0; nothing is changed by a request that fails.
Pool      one per thread of a heap. A block up to 256 KiB is kept after its release for the next request of its size
          class: a fresh 512 KiB batch costs 4.7 times a recycled one, all of it page faults (measured).
Block     has its size and its pool in the 16 bytes before it and 16 spare bytes behind it, so that a string scan by
          words of 8 bytes may run over the end.
Arena     bytes addressed by offsets that never change and only grow: state holds (offset, length), never addresses.

Roles     a pool has one owner thread, which allocates and trims; any thread may release any block. An arena has one
          owner at a time.
Shared    heap word HEAP_USED.  pool word POOL_RETURNED: stack of blocks that other threads released.
I1        a block is in one place: in use, in one list, or with the C library.  tests: test_a_block_is_in_one_place_*
I2        HEAP_USED is what was taken and not given back, and at most the limit.  tests: test_the_limit_holds_*
Progress  nothing waits: a loop around CAS repeats only when another thread's step succeeded.
Order     a releasing thread links the block, then publishes it by CAS; the owner takes the whole stack by exchange and
          then reads the links, so no block can come back between a read and a CAS (no ABA).
"""

from __future__ import annotations

from cq.runtime.native import native
from cq.runtime.ops import (
    alloc,
    at_add,
    at_cas,
    at_load,
    at_xchg,
    clz,
    copy,
    fill,
    ld_i64,
    max_i64,
    realloc,
    release,
    shl,
    st_i64,
    zalloc,
)

WORD = 8
HEADER_BYTES = 16
SPARE_BYTES = 16
OVERHEAD_BYTES = HEADER_BYTES + SPARE_BYTES

# words of a heap
HEAP_USED = 0  # shared, on a line of its own
HEAP_LIMIT = 8
HEAP_POOLS = 9
HEAP_RECYCLE = 10  # 0: every release goes to the C library, so that a checker sees stale addresses
HEAP_WORDS = 16  # the pools follow

# words of a pool
POOL_RETURNED = 0  # shared, on a line of its own
POOL_HEAP = 8
POOL_LISTS = 9
POOL_WORDS = 64

# words before a block
BLOCK_BYTES = -2
BLOCK_POOL = -1

SMALLEST_BYTES = 64
LARGEST_RECYCLED = 256 << 10
CLASSES = 49  # 64 B, then four steps per doubling up to 256 KiB: at most a fifth is wasted


@native("i64(i64)", inline=True)
def size_class(size: int) -> int:
    """The number of the smallest class that holds `size` bytes, 0 < size <= LARGEST_RECYCLED."""
    if size <= SMALLEST_BYTES:
        return 0
    power = 63 - clz(size - 1)
    return 1 + (power - 6) * 4 + ((size - 1 - shl(1, power)) >> (power - 2))


@native("i64(i64)", inline=True)
def class_bytes(number: int) -> int:
    """The size of a class."""
    if number == 0:
        return SMALLEST_BYTES
    power = 6 + ((number - 1) >> 2)
    return shl(1, power) + shl(((number - 1) & 3) + 1, power - 2)


# -- heaps -----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def heap_new(limit: int, pools: int, recycle: int) -> int:
    """A heap of at most `limit` bytes with this many pools, or 0."""
    heap = zalloc((HEAP_WORDS + pools * POOL_WORDS) * WORD)
    if heap == 0:
        return 0
    st_i64(heap, HEAP_LIMIT, limit)
    st_i64(heap, HEAP_POOLS, pools)
    st_i64(heap, HEAP_RECYCLE, recycle)
    for number in range(pools):
        st_i64(heap + (HEAP_WORDS + number * POOL_WORDS) * WORD, POOL_HEAP, heap)
    return heap


@native("i64(i64, i64)", export=True)
def heap_pool(heap: int, number: int) -> int:
    """The pool of one thread."""
    return heap + (HEAP_WORDS + number * POOL_WORDS) * WORD


@native("i64(i64)", export=True)
def heap_used(heap: int) -> int:
    """Bytes taken from the C library and not given back, recycled blocks included."""
    return at_load(heap)


@native("i64(i64)", export=True)
def heap_close(heap: int) -> int:
    """Bytes still in use; when 0 the heap is gone, else it stays for those blocks. No thread may use it meanwhile."""
    for number in range(ld_i64(heap, HEAP_POOLS)):
        pool_trim(heap_pool(heap, number))
    used = at_load(heap)
    if used == 0:
        release(heap)
    return used


@native("i64(i64, i64)")
def _take(heap: int, size: int) -> int:
    """Whether `size` more bytes are within the limit; they then count as used."""
    while True:
        used = at_load(heap)
        if used + size > ld_i64(heap, HEAP_LIMIT):
            return 0
        if at_cas(heap, used, used + size):
            return 1


# -- pools -----------------------------------------------------------------------------------------------------------


@native("void(i64)")
def _collect(pool: int) -> None:
    """What other threads released is in the lists of its owner."""
    block = at_xchg(pool, 0)
    while block != 0:
        following = ld_i64(block, 0)
        place = POOL_LISTS + size_class(ld_i64(block, BLOCK_BYTES))
        st_i64(block, 0, ld_i64(pool, place))
        st_i64(pool, place, block)
        block = following


@native("i64(i64)", export=True)
def pool_trim(pool: int) -> int:
    """All recycled blocks went back to the C library; returns their bytes."""
    _collect(pool)
    given = 0
    for place in range(POOL_LISTS, POOL_LISTS + CLASSES):
        block = ld_i64(pool, place)
        st_i64(pool, place, 0)
        while block != 0:
            following = ld_i64(block, 0)
            given += ld_i64(block, BLOCK_BYTES) + OVERHEAD_BYTES
            release(block - HEADER_BYTES)
            block = following
    at_add(ld_i64(pool, POOL_HEAP), -given)
    return given


# -- blocks ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)")
def _fresh(pool: int, size: int, zero: int) -> int:
    """A block of exactly `size` bytes from the C library, or 0; recycled blocks make room for it if they must."""
    heap = ld_i64(pool, POOL_HEAP)
    whole = size + OVERHEAD_BYTES
    if _take(heap, whole) == 0 and (pool_trim(pool) == 0 or _take(heap, whole) == 0):
        return 0
    base = zalloc(whole) if zero == 1 else alloc(whole)
    if base == 0:
        at_add(heap, -whole)
        return 0
    block = base + HEADER_BYTES
    st_i64(block, BLOCK_BYTES, size)
    st_i64(block, BLOCK_POOL, pool)
    return block


@native("i64(i64, i64)", export=True)
def block_alloc(pool: int, size: int) -> int:
    """The address of at least `size` bytes holding anything, or 0. Called by the owner of the pool. size >= 0."""
    if size > LARGEST_RECYCLED:
        return _fresh(pool, size, 0)
    number = size_class(size)
    block = ld_i64(pool, POOL_LISTS + number)
    if block == 0:
        _collect(pool)
        block = ld_i64(pool, POOL_LISTS + number)
    if block == 0:
        return _fresh(pool, class_bytes(number), 0)
    st_i64(pool, POOL_LISTS + number, ld_i64(block, 0))
    return block


@native("i64(i64, i64)", export=True)
def block_zalloc(pool: int, size: int) -> int:
    """`block_alloc`, and all of the block is zero."""
    if size > LARGEST_RECYCLED:
        return _fresh(pool, size, 1)
    block = block_alloc(pool, size)
    if block != 0:
        fill(block, 0, ld_i64(block, BLOCK_BYTES))
    return block


@native("i64(i64)", inline=True)
def block_bytes(block: int) -> int:
    """The bytes a block has room for: what was asked or more."""
    return ld_i64(block, BLOCK_BYTES)


@native("void(i64)", export=True)
def block_release(block: int) -> None:
    """The block is free. Any thread may call this; 0 is ignored."""
    if block == 0:
        return
    pool = ld_i64(block, BLOCK_POOL)
    heap = ld_i64(pool, POOL_HEAP)
    size = ld_i64(block, BLOCK_BYTES)
    if size > LARGEST_RECYCLED or ld_i64(heap, HEAP_RECYCLE) == 0:
        release(block - HEADER_BYTES)
        at_add(heap, -size - OVERHEAD_BYTES)
        return
    while True:
        head = at_load(pool)
        st_i64(block, 0, head)
        if at_cas(pool, head, block):
            return


@native("void(i64, i64)", export=True)
def block_free(pool: int, block: int) -> None:
    """`block_release` without shared words where the block is of the caller's own pool."""
    if block == 0:
        return
    if ld_i64(block, BLOCK_POOL) != pool or ld_i64(ld_i64(pool, POOL_HEAP), HEAP_RECYCLE) == 0:
        block_release(block)
        return
    size = ld_i64(block, BLOCK_BYTES)
    if size > LARGEST_RECYCLED:
        block_release(block)
        return
    place = POOL_LISTS + size_class(size)
    st_i64(block, 0, ld_i64(pool, place))
    st_i64(pool, place, block)


@native("i64(i64, i64, i64)", export=True)
def block_resize(pool: int, block: int, size: int) -> int:
    """The address of a block with the old content and room for `size` bytes, or 0 and the old block is as it was.

    block: 0 for a new one.  The caller owns the pool; the block may be of another.
    """
    if block == 0:
        return block_alloc(pool, size)
    old = ld_i64(block, BLOCK_BYTES)
    if old >= size:
        return block
    heap = ld_i64(pool, POOL_HEAP)
    if old > LARGEST_RECYCLED and _take(heap, size - old) == 1:
        base = realloc(block - HEADER_BYTES, size + OVERHEAD_BYTES)  # moves pages instead of copying them
        if base == 0:
            at_add(heap, old - size)
            return 0
        st_i64(base, 0, size)
        return base + HEADER_BYTES
    moved = block_alloc(pool, size)
    if moved != 0:
        copy(moved, block, old)
        block_free(pool, block)
    return moved


@native("i64(i64, i64, i64)", export=True)
def block_grow(pool: int, block: int, size: int) -> int:
    """`block_resize` to at least twice the room where the room is not enough: n appends cost O(n) in all."""
    if block == 0:
        return block_alloc(pool, size)
    old = ld_i64(block, BLOCK_BYTES)
    if old >= size:
        return block
    grown = block_resize(pool, block, max_i64(size, 2 * old))
    if grown == 0:
        return block_resize(pool, block, size)
    return grown
