"""Blocks: the same interpreted (bounds and leaks checked) and compiled (where released blocks are kept)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from both_ways import Compiled, Interpreted
from interleave import explore

from cq.runtime.base.native import native
from cq.runtime.base.ops import KEPT_WORDS, at_load, at_store_rel, at_xchg, fill, ld_i64, sched_yield, st_i64, zalloc
from cq.runtime.base.simulation import Memory, MemoryFault
from cq.runtime.containers import blocks
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.queues.free_list import free_list_put, free_list_take, free_list_take_at

K = 1024
SIZES = (1, 100, 40 * K, 300 * K, 1500 * K, 5000 * K)


@native("void(i64, i64, i64)", export=True)
def fill_bytes(address: int, byte: int, size: int) -> None:
    """Bytes at the address, written by native code."""
    fill(address, byte, size)


@native("i64(i64, i64)", export=True)
def hand_out(slots: int, rounds: int) -> int:
    """Requests blocks of several sizes, marks them and puts them into 16 slots; returns how many were bad."""
    bad = 0
    for n in range(rounds):
        block = block_new(40_000 + (n & 3) * 30_000, 0)
        st_i64(block, 1, block)
        while at_load(slots + (n & 15) * 8) != 0:
            sched_yield()
        bad += ld_i64(block, 1) != block
        at_store_rel(slots + (n & 15) * 8, block)
    return bad


@native("i64(i64, i64)", export=True)
def take_back(slots: int, rounds: int) -> int:
    """Takes blocks out of the slots, checks their marks, and drops them; returns how many were bad."""
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
            block_drop(block)
            taken += 1
    return bad


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(block_new, block_drop, block_resize, fill_bytes, hand_out, take_back) as run:
        yield run


@pytest.fixture
def keeping(monkeypatch):
    """Simulated memory in which released blocks are kept too."""
    with Memory() as simulated:
        words = zalloc(KEPT_WORDS * 8)
        monkeypatch.setattr(blocks, "kept_words", lambda: words)
        yield simulated


@pytest.mark.parametrize("size", SIZES)
def test_a_block_begins_on_a_line_and_a_large_one_in_a_large_page(run, size):
    block = run.block_new(size, 0)
    assert block % 64 == 0
    assert size < blocks.LARGE_FROM_BYTES or block % blocks.LARGE_BYTES == blocks.LINE_BYTES
    run.block_drop(block)


@pytest.mark.parametrize("size", SIZES)
def test_a_zeroed_block_is_zero_even_when_it_was_kept(run, size):
    for _ in range(3):
        block = run.block_new(size, 1)
        assert run.read(block, size) == bytes(size)
        run.fill_bytes(block, 255, size)
        run.block_drop(block)


@pytest.mark.parametrize(
    "sizes",
    [[10, 100, 1000], [1000, 200 * K, 300 * K, 301 * K, 2000 * K, 2200 * K], [1, 1], [1500 * K, 9000 * K, 40_000 * K]],
)
def test_a_resized_block_keeps_its_bytes(run, sizes):
    block, content = 0, b""
    for step, size in enumerate(sizes):
        block = run.block_resize(block, size)
        assert run.read(block, len(content)) == content
        run.fill_bytes(block, 65 + step, size)
        content = bytes([65 + step]) * size
    run.block_drop(block)


def test_a_block_whose_pages_cannot_be_moved_is_copied():
    with Memory(fail_at=2) as simulated:
        block = block_new(1500 * K, 0)
        fill(block, 7, 1500 * K)
        grown = block_resize(block, 5000 * K)
        assert simulated.read(grown, 1500 * K) == bytes([7]) * (1500 * K)
        block_drop(grown)
        simulated.check_no_leaks()


def test_dropping_block_0_does_nothing(run):
    run.block_drop(0)


def test_a_kept_block_serves_the_next_request_of_its_size(keeping):
    large, small = block_new(300 * K, 0), block_new(40 * K, 0)
    block_drop(large)
    block_drop(small)
    assert block_new(290 * K, 0) == large
    assert block_new(39 * K, 0) == small


@pytest.mark.parametrize(("held", "wanted"), [(500 * K, 2200 * K), (1200 * K, 2500 * K), (40 * K, 9000 * K)])
def test_a_block_that_grows_large_becomes_the_largest_kept_one(keeping, held, wanted):
    first = block_new(held, 0)
    fill(first, 7, held)
    kept = [block_new(size, 0) for size in (3000 * K, 9000 * K, 300 * K)]
    for block in kept:
        block_drop(block)
    grown = block_resize(first, wanted)
    assert grown == kept[1]
    assert keeping.read(grown, held) == bytes([7]) * held
    assert block_resize(grown, 9000 * K) == grown, "it grows on in place"
    assert block_new(held, 0) == first, "what it was is kept"


@pytest.mark.parametrize(("held", "wanted"), [(100 * K, 600 * K), (1500 * K, 10_000 * K)])
def test_a_block_that_stays_small_or_finds_none_large_enough_leaves_those_that_are_kept(keeping, held, wanted):
    first, kept = block_new(held, 0), block_new(5000 * K, 0)
    block_drop(kept)
    assert block_resize(first, wanted) not in {first, kept}
    assert block_new(5000 * K, 0) == kept


def test_a_block_below_the_kept_sizes_shows_stale_addresses(keeping):
    block = block_new(100, 0)
    block_drop(block)
    with pytest.raises(MemoryFault, match="already released"):
        ld_i64(block, 0)


def test_every_size_is_in_a_class_that_has_room_for_it(keeping):
    for power in range(15, 30):
        for size in (1 << power, (1 << power) + blocks.EXTRA_BYTES, (1 << power) + blocks.EXTRA_BYTES + 1):
            number = blocks.size_class(size)
            assert blocks.class_room(number) >= size
            assert number == 0 or blocks.class_room(number - 1) < size


def test_no_more_is_kept_than_the_most_that_may_be(keeping, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_KEPT_BYTES", 2 * blocks.class_room(0))
    taken = [block_new(33_000, 0) for _ in range(3)]
    for block in taken:
        block_drop(block)
    again = [block_new(33_000, 0) for _ in range(3)]
    assert sorted(again[:2]) == sorted(taken[:2])
    assert again[2] not in taken
    assert ld_i64(blocks.kept_words(), blocks.KEPT_BYTES) == 0


def test_a_full_free_list_keeps_no_more(keeping, monkeypatch):
    monkeypatch.setattr(blocks, "LIST_PLACES", 1)
    first, second = block_new(32 * K, 0), block_new(32 * K, 0)
    block_drop(first)
    block_drop(second)
    assert block_new(32 * K, 0) == first
    assert ld_i64(blocks.kept_words(), blocks.KEPT_BYTES) == 0
    with pytest.raises(MemoryFault, match="already released"):
        ld_i64(second, 0)


@pytest.mark.parametrize("fail_at", range(8))
def test_without_memory_everything_is_as_it_was(fail_at):
    with Memory(fail_at=fail_at) as simulated:
        held = [block for block in (block_new(size, 0) for size in SIZES[:4]) if block]
        for n, block in enumerate(held):
            st_i64(block, 0, n) if ld_i64(block, blocks.BLOCK_SIZE) >= 8 else None
            grown = block_resize(block, 400 * K)
            if grown == 0:
                assert ld_i64(block, blocks.BLOCK_SIZE) == SIZES[n]
            held[n] = grown or block
        for block in held:
            block_drop(block)
        simulated.check_no_leaks()


def test_a_kept_block_has_one_owner_in_every_schedule(monkeypatch):
    def one_kept() -> list[int]:
        words = zalloc(KEPT_WORDS * 8)
        monkeypatch.setattr(blocks, "kept_words", lambda: words)
        monkeypatch.setattr(blocks, "LIST_PLACES", 3)
        kept, *held = [block_new(32 * K, 0) for _ in range(3)]
        block_drop(kept)
        return held

    def taker(held: list[int]) -> int:
        return block_new(32 * K, 0)

    def dropper(number: int):
        return lambda held: block_drop(held[number])

    def check(held: list[int], results: list[int | None]) -> None:
        st_i64(blocks._free_list(0), 0, 3)  # threads may have left it too low: then what is above waits for more
        on_list = ld_i64(blocks.kept_words(), blocks.KEPT_BYTES) // blocks.class_room(0)
        again = [block_new(32 * K, 0) for _ in range(on_list)]
        assert ld_i64(blocks.kept_words(), blocks.KEPT_BYTES) == 0
        owned = [block for block in results if block] + again
        assert len(set(owned)) == len(owned)

    assert explore(one_kept, [taker, taker, dropper(0)], check, preemptions=2).complete
    assert explore(one_kept, [dropper(0), dropper(1)], check, preemptions=2).complete


@pytest.mark.parametrize("level", range(4))
def test_a_free_list_with_a_wrong_level_gives_each_thing_once(level):
    places = 3
    with Memory():
        free = zalloc((1 + places) * 8)
        assert [free_list_put(free, places, thing) for thing in (11, 12, 13, 14)] == [1, 1, 1, 0]
        st_i64(free, 0, level)
        taken = [free_list_take(free) for _ in range(level + 1)]
        assert taken == [*(11, 12, 13)[:level][::-1], 0]
        assert [free_list_put(free, places, thing) for thing in (*taken[:level], 14)] == [1] * level + [0]
        assert sorted(free_list_take(free) for _ in range(places)) == [
            11,
            12,
            13,
        ]  # a free list that is full has the top level


def test_every_place_of_a_free_list_can_be_emptied_whatever_its_level():
    with Memory():
        free = zalloc(3 * 8)
        assert [free_list_put(free, 2, thing) for thing in (11, 12)] == [1, 1]
        st_i64(free, 0, 0)
        assert [free_list_take_at(free, number) for number in (1, 2, 2)] == [11, 12, 0]


def test_blocks_dropped_by_other_threads_are_intact_under_stress():
    rounds = 50_000
    with Compiled(block_new, block_drop, hand_out, take_back) as run, ThreadPoolExecutor(4) as threads:
        work = []
        for _ in range(2):
            slots = run.zeros(16 * 8)
            work.append(threads.submit(run.hand_out, slots, rounds))
            work.append(threads.submit(run.take_back, slots, rounds))
        assert [w.result() for w in work] == [0, 0, 0, 0]
