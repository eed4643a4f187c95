"""The bounded ring: first in first out, every value once, in every schedule and under real threads."""

from __future__ import annotations

import threading

import pytest
from both_ways import Compiled, Interpreted
from interleave import Failure, explore, wander
from planted import original, planted

from cq.runtime.queues.ring import ring_drop, ring_has_room, ring_new, ring_pop, ring_push, ring_size

MODULE = "cq.runtime.queues.ring"
INDENT = " " * 16
WRITE = f"{INDENT}st_i64(cell, CELL_VALUE, value)\n"
PUBLISH = f"{INDENT}at_store_rel(cell + CELL_TURN * 8, position + 1)\n"
READ = f"{INDENT}value = ld_i64(cell, CELL_VALUE)\n"
FREE = f"{INDENT}at_store_rel(cell + CELL_TURN * 8, position + mask + 1)\n"
MUTANTS = {
    "a push publishes before it writes": (WRITE + PUBLISH, PUBLISH + WRITE),
    "a take frees the cell before it reads": (READ + FREE, FREE + READ),
    "a push takes any cell": ("        if turn == position:\n", "        if turn >= position - 1:\n"),
    "a claim is no claim": (
        "if at_cas(ring + RING_HEAD * 8, position, position + 1):",
        "if at_store(ring + RING_HEAD * 8, position + 1) is None:",
    ),
    "the size is counted from the other end": (
        "    head = at_load(ring + RING_HEAD * 8)\n    return at_load(ring + RING_TAIL * 8) - head\n",
        "    tail = at_load(ring + RING_TAIL * 8)\n    return tail - at_load(ring + RING_HEAD * 8)\n",
    ),
}


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(ring_new, ring_drop, ring_push, ring_pop, ring_size, ring_has_room) as made:
        yield made


def test_values_leave_in_the_order_they_came(run):
    ring = run.ring_new(4)
    for value in (5, -7, 9):
        assert run.ring_push(ring, value) == 1
    assert run.ring_size(ring) == 3
    assert [run.ring_pop(ring) for _ in range(4)] == [5, -7, 9, 0]
    run.ring_drop(ring)


def test_push_refuses_when_full(run):
    ring = run.ring_new(2)
    for lap in range(5):
        assert [run.ring_push(ring, lap * 10 + n) for n in (1, 2, 3)] == [1, 1, 0]
        assert run.ring_has_room(ring) == 0
        assert [run.ring_pop(ring) for _ in range(3)] == [lap * 10 + 1, lap * 10 + 2, 0]
        assert run.ring_has_room(ring) == 1
    run.ring_drop(ring)


def every_value_once(ring_module, runner, **limits):
    """Two producers of two values each, one consumer that tries thrice, a ring of two."""
    r = ring_module

    def producer(first):
        def body(ring):
            return [value for value in (first, first + 1) if r.ring_push(ring, value) == 1]

        return body

    def consumer(ring):
        return [value for value in (r.ring_pop(ring), r.ring_pop(ring), r.ring_pop(ring)) if value]

    def check(ring, results):
        *pushed, taken = results
        taken = taken + list(iter(lambda: r.ring_pop(ring), 0))
        assert sorted(taken) == sorted(pushed[0] + pushed[1])
        for values in pushed:
            assert [v for v in taken if v in values] == values
        r.ring_drop(ring)

    return runner(lambda: r.ring_new(2), [producer(10), producer(20), consumer], check, **limits)


def positions_follow(ring_module, runner, **limits):
    """Two takers; what was pushed first has the lower position."""
    r = ring_module

    def setup():
        ring = r.ring_new(2)
        r.ring_push(ring, 100)
        r.ring_push(ring, 101)
        return ring

    def check(ring, results):
        assert {value: position for value, position in results if value} == {100: 0, 101: 1}
        r.ring_drop(ring)

    return runner(setup, [r.ring_take, r.ring_take], check, **limits)


def size_is_never_less(ring_module, runner, **limits):
    """While one thread puts a value in before it takes one out, another sees one inside at least."""
    r = ring_module

    def setup():
        ring = r.ring_new(4)
        r.ring_push(ring, 1)
        return ring

    def turns(ring):
        for value in (2, 3):
            assert r.ring_push(ring, value) == 1 and r.ring_pop(ring) == value - 1

    def check(ring, results):
        assert 1 <= results[1] <= 4
        r.ring_drop(ring)

    return runner(setup, [turns, r.ring_size], check, **limits)


def test_the_size_is_never_less_than_what_is_inside():
    assert size_is_never_less(original(MODULE), explore, preemptions=2).complete


def test_every_value_is_taken_once_in_order():
    assert every_value_once(original(MODULE), explore, preemptions=2).complete
    every_value_once(original(MODULE), wander, runs=300)


def test_positions_follow_the_pushes():
    assert positions_follow(original(MODULE), explore, preemptions=3).complete


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name):
    broken = planted(MODULE, *MUTANTS[name])
    with pytest.raises(Failure):
        positions_follow(broken, explore, preemptions=3)
        every_value_once(broken, explore, preemptions=2)
        size_is_never_less(broken, explore, preemptions=2)


def test_real_threads_lose_and_double_nothing():
    count, takers = 8_000, 2
    with Compiled(ring_new, ring_drop, ring_push, ring_pop) as run:
        ring = run.ring_new(64)
        taken: list[list[int]] = [[] for _ in range(takers)]

        def produce(first):
            for value in range(first, first + count):
                while run.ring_push(ring, value) == 0:
                    pass

        def consume(mine):
            while len(taken[0]) + len(taken[1]) < 2 * count:
                if value := run.ring_pop(ring):
                    mine.append(value)

        threads = [threading.Thread(target=produce, args=(1 + n * count,)) for n in range(2)]
        threads += [threading.Thread(target=consume, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.ring_drop(ring)
    assert sorted(taken[0] + taken[1]) == list(range(1, 2 * count + 1))
    for mine in taken:
        for first in (1, count + 1):
            of_one = [v for v in mine if first <= v < first + count]
            assert of_one == sorted(of_one)
