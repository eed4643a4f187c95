"""Heaps, blocks and arenas: the same interpreted (bounds and leaks checked) and compiled."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime import arena, memory, ops
from cq.runtime.memory import block_alloc, block_release
from cq.runtime.native import native
from cq.runtime.ops import at_load, at_store_rel, at_xchg, fill, ld_i64, sched_yield, st_i64
from cq.runtime.simulation import Memory, MemoryFault

BLOCKS = (
    memory.heap_new, memory.heap_pool, memory.heap_used, memory.heap_close, memory.block_alloc, memory.block_zalloc,
    memory.block_bytes, memory.block_release, memory.block_free, memory.block_resize, memory.block_grow,
    memory.pool_trim, memory.size_class, memory.class_bytes,
)  # fmt: skip
ARENAS = (
    arena.arena_init, arena.arena_at, arena.arena_reserve, arena.arena_add, arena.arena_drop, arena.arena_clear,
)  # fmt: skip
K = 1024
PLENTY = 1 << 40


@native("void(i64, i64, i64)", export=True)
def fill_bytes(address: int, byte: int, size: int) -> None:
    """Bytes at the address, written by native code."""
    fill(address, byte, size)


@native("i64(i64, i64, i64)", export=True)
def hand_out(pool: int, slots: int, rounds: int) -> int:
    """Allocates blocks of several sizes, marks them and puts them into 16 slots; returns how many were bad."""
    bad = 0
    for n in range(rounds):
        block = block_alloc(pool, 64 + (n & 15) * 100)
        st_i64(block, 1, block)
        while at_load(slots + (n & 15) * 8) != 0:
            sched_yield()
        bad += ld_i64(block, 1) != block
        at_store_rel(slots + (n & 15) * 8, block)
    return bad


@native("i64(i64, i64)", export=True)
def take_back(slots: int, rounds: int) -> int:
    """Takes blocks out of the slots, checks their marks, and releases them; returns how many were bad."""
    bad = 0
    taken = 0
    n = 0
    while taken < rounds:
        n += 1
        block = at_xchg(slots + (n & 15) * 8, 0)
        if block == 0:
            sched_yield()
        else:
            bad += ld_i64(block, 1) != block
            st_i64(block, 1, 0)
            block_release(block)
            taken += 1
    return bad


def test_blocks_released_by_other_threads_are_intact_under_stress():
    rounds = 100_000
    with Compiled(*BLOCKS, hand_out, take_back) as run, ThreadPoolExecutor(4) as threads:
        heap = run.heap_new(PLENTY, 2, 1)
        work = []
        for number in range(2):
            slots = run.zeros(16 * 8)
            work.append(threads.submit(run.hand_out, run.heap_pool(heap, number), slots, rounds))
            work.append(threads.submit(run.take_back, slots, rounds))
        assert [w.result() for w in work] == [0, 0, 0, 0]
        assert run.heap_used(heap) < 1000 * K  # recycled, not taken anew 200,000 times
        assert run.heap_close(heap) == 0


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*BLOCKS, *ARENAS, fill_bytes) as run:
        yield run


def test_a_size_class_is_the_smallest_that_holds_the_size(run):
    bytes_of = [run.class_bytes(number) for number in range(memory.CLASSES)]
    assert bytes_of[0] == 64
    assert bytes_of[-1] == memory.LARGEST_RECYCLED
    assert bytes_of == sorted(set(bytes_of))
    for size in [*range(1, 700), *(b + d for b in bytes_of for d in (-1, 0, 1) if b + d <= memory.LARGEST_RECYCLED)]:
        number = run.size_class(size)
        assert bytes_of[number] >= size
        assert number == 0 or bytes_of[number - 1] < size


def test_a_released_block_is_given_out_again_and_the_heap_counts_it_once(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    block = run.block_alloc(pool, 100 * K)
    used = run.heap_used(heap)
    run.block_free(pool, block)
    assert run.heap_used(heap) == used
    assert run.block_alloc(pool, 100 * K - 7) == block
    run.block_release(block)
    assert run.block_alloc(pool, 100 * K) == block
    run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_a_block_of_another_pool_returns_to_its_owner(run):
    heap = run.heap_new(PLENTY, 2, 1)
    first, second = run.heap_pool(heap, 0), run.heap_pool(heap, 1)
    block = run.block_alloc(first, 1000)
    run.block_free(second, block)
    other = run.block_alloc(second, 1000)
    assert other != block
    assert run.block_alloc(first, 1000) == block
    run.block_free(first, block)
    run.block_free(second, other)
    assert run.heap_close(heap) == 0


def test_large_blocks_go_back_at_once(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    empty = run.heap_used(heap)
    block = run.block_alloc(pool, 300 * K)
    assert run.block_bytes(block) == 300 * K
    assert run.heap_used(heap) > 300 * K
    run.block_release(block)
    assert run.heap_used(heap) == empty
    assert run.heap_close(heap) == 0


def test_zeroed_blocks_are_zero_even_when_recycled(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    for size in (1000, 300 * K):
        block = run.block_alloc(pool, size)
        run.fill_bytes(block, 255, size)
        run.block_free(pool, block)
        block = run.block_zalloc(pool, size)
        assert run.read(block, size) == bytes(size)
        run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_a_full_heap_refuses_and_nothing_changes(run):
    heap = run.heap_new(1000, 1, 1)
    pool = run.heap_pool(heap, 0)
    block = run.block_alloc(pool, 500)
    used = run.heap_used(heap)
    assert run.block_alloc(pool, 500) == 0
    assert run.block_zalloc(pool, 300 * K) == 0
    assert run.block_resize(pool, block, 900) == 0
    assert run.block_grow(pool, block, 900) == 0
    assert run.heap_used(heap) == used
    run.fill_bytes(block, 1, 512)
    run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_recycled_blocks_make_room_before_a_request_is_refused(run):
    heap = run.heap_new(1000, 1, 1)
    pool = run.heap_pool(heap, 0)
    run.block_free(pool, run.block_alloc(pool, 500))
    block = run.block_alloc(pool, 700)
    assert block != 0
    run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_an_open_heap_says_how_much_is_still_in_use(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    block = run.block_alloc(pool, 64)
    assert run.heap_close(heap) == 64 + memory.OVERHEAD_BYTES
    run.block_free(pool, block)
    assert run.heap_close(heap) == 0


@pytest.mark.parametrize("sizes", [[10, 100, 1000], [1000, 200 * K, 300 * K, 2000 * K], [1, 1]])
def test_a_grown_block_keeps_its_bytes(run, sizes):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    for grow in (run.block_resize, run.block_grow):
        block, content = 0, b""
        for step, size in enumerate(sizes):
            block = grow(pool, block, size)
            assert run.block_bytes(block) >= size
            assert run.read(block, len(content)) == content
            run.fill_bytes(block, 65 + step, size)
            content = bytes([65 + step]) * size
        run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_appending_by_growth_copies_each_byte_a_few_times_at_most(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    block = moves = 0
    for size in range(64, 64 * K, 64):
        grown = run.block_grow(pool, block, size)
        moves += grown != block
        block = grown
    assert moves <= 12
    run.block_free(pool, block)
    assert run.heap_close(heap) == 0


def test_a_heap_without_recycling_shows_stale_addresses():
    with Interpreted(*BLOCKS) as run:
        heap = run.heap_new(PLENTY, 1, 0)
        pool = run.heap_pool(heap, 0)
        block = run.block_alloc(pool, 64)
        run.block_free(pool, block)
        with pytest.raises(MemoryFault, match="already released"):
            ops.ld_i64(block, 0)
        assert run.heap_close(heap) == 0


@pytest.mark.parametrize("fail_at", range(12))
def test_a_failing_c_library_leaves_everything_as_it_was(fail_at):
    with Memory(fail_at=fail_at) as simulated:
        heap = memory.heap_new(PLENTY, 1, 1)
        if heap == 0:
            return
        pool = memory.heap_pool(heap, 0)
        space = simulated.place(bytes(8 * arena.ARENA_WORDS), writable=True)
        arena.arena_init(space, 0)
        held = [b for b in (memory.block_alloc(pool, size) for size in (10, 300 * K, 500 * K)) if b]
        added = [
            (o, n) for n in (3, 70 * K, 5) if (o := arena.arena_add(pool, space, simulated.place(b"x" * n), n)) >= 0
        ]
        for n, block in enumerate(held):
            ops.st_i64(block, 0, n)
            grown = memory.block_grow(pool, block, 600 * K)
            held[n] = grown or block
            assert ops.ld_i64(held[n], 0) == n
        for offset, n in added:
            assert simulated.read(arena.arena_at(space, offset), n) == b"x" * n
        for block in held:
            memory.block_free(pool, block)
        arena.arena_clear(pool, space)
        assert memory.heap_close(heap) == 0
        simulated.check_no_leaks()


def test_arena_offsets_stay_good_while_it_grows_and_drops(run):
    r = random.Random(7)
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    space = run.zeros(8 * arena.ARENA_WORDS)
    run.arena_init(space, 3)
    items: list[tuple[int, bytes]] = []
    for step in range(400):
        content = bytes([step & 255]) * r.choice([0, 1, 7, 100, 5000, 60_000, 70_000, 200_000])
        offset = run.arena_add(pool, space, run.place(content), len(content))
        assert offset >= (items[-1][0] + len(items[-1][1]) if items else 3 * arena.CHUNK_BYTES)
        items.append((offset, content))
        if step % 10 == 9:
            dropped = items[r.randrange(len(items))][0]
            run.arena_drop(pool, space, dropped)
            items = [item for item in items if item[0] >= dropped]
        for offset, content in items[-20:]:
            assert run.read(run.arena_at(space, offset), len(content)) == content
    assert run.heap_used(heap) < 60 * 1000 * K
    run.arena_clear(pool, space)
    assert run.heap_close(heap) == 0


def test_an_arena_is_reusable_after_it_was_cleared(run):
    heap = run.heap_new(PLENTY, 1, 1)
    pool = run.heap_pool(heap, 0)
    space = run.zeros(8 * arena.ARENA_WORDS)
    run.arena_init(space, 0)
    for _ in range(3):
        offset = run.arena_add(pool, space, run.place(b"abc"), 3)
        assert run.read(run.arena_at(space, offset), 3) == b"abc"
        run.arena_clear(pool, space)
    assert run.heap_close(heap) == 0


def test_dropping_an_arena_gives_its_memory_back(run):
    heap = run.heap_new(PLENTY, 1, 0)
    pool = run.heap_pool(heap, 0)
    space = run.zeros(8 * arena.ARENA_WORDS)
    run.arena_init(space, 0)
    peaks = set()
    for _ in range(200):
        offset = run.arena_reserve(pool, space, 50_000)
        run.arena_drop(pool, space, offset)
        peaks.add(run.heap_used(heap))
    assert max(peaks) < 4 * arena.CHUNK_BYTES
    run.arena_clear(pool, space)
    assert run.heap_close(heap) == 0
