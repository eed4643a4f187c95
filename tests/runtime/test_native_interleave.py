"""The schedule explorer finds known bugs and passes the corrected code."""

from __future__ import annotations

from itertools import chain

import pytest
from interleave import Failure, Stuck, explore, replay, wander

from cq.runtime.base.ops import (
    at_add,
    at_cas,
    at_load,
    at_load_acq,
    at_store,
    at_store_rel,
    at_xchg,
    futex_wait,
    futex_wake,
    ld_i64,
    pause,
    st_i64,
    zalloc,
)  # fmt: skip


def lost_update(at: int) -> None:
    at_store(at, at_load(at) + 1)


def exact_update(at: int) -> None:
    at_add(at, 1)


def cas_update(at: int) -> None:
    while True:
        old = at_load(at)
        if at_cas(at, old, old + 1):
            return


def sum_is(expected: int):
    def check(at: int, results: list[object]) -> None:
        assert ld_i64(at, 0) == expected

    return check


def word() -> int:
    return zalloc(128)


def test_a_lost_update_is_found():
    with pytest.raises(Failure, match="assert 1 == 2") as caught:
        explore(word, [lost_update, lost_update], sum_is(2), preemptions=1)
    assert any("thread 1: write" in line for line in replay(word, [lost_update] * 2, sum_is(2), caught.value.schedule))


@pytest.mark.parametrize("update", [exact_update, cas_update])
def test_exact_counters_pass_in_every_schedule(update):
    assert explore(word, [update] * 3, sum_is(3), preemptions=3).complete


def test_random_schedules_find_a_lost_update_too():
    with pytest.raises(Failure):
        wander(word, [lost_update] * 3, sum_is(3), runs=200)
    assert wander(word, [cas_update] * 3, sum_is(3), runs=200).schedules == 200


def test_the_number_of_schedules_is_the_number_of_ways_to_interleave():
    # two threads with one operation each: either goes first; the point before an operation is the only choice
    assert explore(word, [exact_update] * 2, sum_is(2), preemptions=0).schedules == 2


def test_a_plain_counter_is_a_race_even_when_the_threads_run_one_after_the_other():
    def plain(at: int) -> None:
        st_i64(at, 0, ld_i64(at, 0) + 1)

    with pytest.raises(Failure, match="Race"):
        explore(word, [plain, plain], sum_is(2), preemptions=0)


def publish(at: int) -> None:
    st_i64(at, 1, 42)
    at_store_rel(at, 1)


def publish_too_early(at: int) -> None:
    at_store_rel(at, 1)
    st_i64(at, 1, 42)


def consume(at: int) -> int:
    while at_load_acq(at) == 0:
        pause()
    return ld_i64(at, 1)


def saw_42(at: int, results: list[object]) -> None:
    assert results[1] == 42


def test_publishing_by_release_passes():
    assert explore(word, [publish, consume], saw_42, preemptions=3).complete


def test_publishing_before_writing_is_found():
    with pytest.raises(Failure, match=r"Race|assert .* == 42"):
        explore(word, [publish_too_early, consume], saw_42)


def enter(store):
    def first(at: int) -> int:
        store(at, 1)
        return at_load(at + 64)

    def second(at: int) -> int:
        store(at + 64, 1)
        return at_load(at)

    return [first, second]


def one_saw_the_other(at: int, results: list[object]) -> None:
    assert results != [0, 0]


def test_a_release_where_dekker_needs_sequential_consistency_is_found():
    assert explore(word, enter(at_store), one_saw_the_other, delays=True).complete
    assert explore(word, enter(at_store_rel), one_saw_the_other, delays=False).complete
    with pytest.raises(Failure):
        explore(word, enter(at_store_rel), one_saw_the_other, delays=True)


def sleeper(at: int) -> None:
    epoch = at_load(at)
    if at_load(at + 64) == 0:
        futex_wait(at, epoch, 10**9)


def careless_sleeper(at: int) -> None:
    if at_load(at + 64) == 0:
        futex_wait(at, at_load(at), 10**9)


def waker(at: int) -> None:
    at_store(at + 64, 1)
    at_add(at, 1)
    futex_wake(at, 1)


def test_a_lost_wakeup_is_a_deadlock():
    assert explore(word, [sleeper, waker], lambda *_: None, preemptions=3).complete
    with pytest.raises(Failure, match="wait on a futex for ever") as caught:
        explore(word, [careless_sleeper, waker], lambda *_: None)
    assert isinstance(caught.value.cause, Stuck)


def test_a_spin_that_never_ends_is_found():
    def spin(at: int) -> None:
        while at_load(at) == 0:
            pause()

    with pytest.raises(Failure, match="no end after"):
        explore(word, [spin, spin], lambda *_: None)


# a stack of nodes (word 0: next); popping by CAS alone is the classic ABA bug


def push(at: int, node: int) -> None:
    while True:
        head = at_load(at)
        at_store(node, head)
        if at_cas(at, head, node):
            return


def pop_with_aba(at: int) -> int:
    while True:
        head = at_load(at)
        if head == 0:
            return 0
        if at_cas(at, head, at_load(head)):
            return head


def three_nodes() -> tuple[int, list[int]]:
    at = zalloc(64)
    nodes = [zalloc(8) for _ in range(3)]
    for node in nodes:
        push(at, node)
    return at, nodes


def recycle(shared: tuple[int, list[int]]) -> list[int]:
    first, second = pop_with_aba(shared[0]), pop_with_aba(shared[0])
    push(shared[0], first)
    return [second]


def every_node_is_in_one_place(shared: tuple[int, list[int]], results: list[list[int]]) -> None:
    at, nodes = shared
    left = []
    node = ld_i64(at, 0)
    while node:
        left.append(node)
        node = ld_i64(node, 0)
    assert sorted([*left, *chain(*results)]) == sorted(nodes)


def test_the_aba_bug_of_a_lock_free_stack_is_found():
    with pytest.raises(Failure):
        explore(three_nodes, [lambda s: [pop_with_aba(s[0])], recycle], every_node_is_in_one_place, preemptions=2)


def test_taking_the_whole_stack_has_no_aba_bug():
    def take_all(shared: tuple[int, list[int]]) -> list[int]:
        taken = []
        node = at_xchg(shared[0], 0)
        while node:
            taken.append(node)
            node = at_load(node)
        return taken

    assert explore(three_nodes, [take_all, take_all], every_node_is_in_one_place, preemptions=3).complete
