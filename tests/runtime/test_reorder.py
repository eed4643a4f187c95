"""The reorder buffer: results leave in ticket order, each once, whoever finishes first."""

from __future__ import annotations

import random
import threading

import pytest
from both_ways import Compiled, Interpreted
from interleave import Failure, explore, wander
from planted import original, planted

from cq.runtime.base.ops import at_load, at_store
from cq.runtime.queues.reorder import (
    reorder_drop,
    reorder_enter,
    reorder_head,
    reorder_leave,
    reorder_new,
    reorder_next,
    reorder_put,
    reorder_ready,
)

MODULE = "cq.runtime.queues.reorder"
FUNCTIONS = (
    reorder_new, reorder_drop, reorder_put, reorder_enter, reorder_head, reorder_next, reorder_leave,
    reorder_ready,
)  # fmt: skip
LEAVE = "    at_store(buffer + REORDER_FLAG * 8, 0)\n    return reorder_ready(buffer)\n"
MUTANTS = {
    "leave looks before it gives up the flag": (
        LEAVE,
        "    ready = reorder_ready(buffer)\n    at_store(buffer + REORDER_FLAG * 8, 0)\n    return ready\n",
    ),
    "the flag is given up by a release store": (LEAVE, LEAVE.replace("at_store", "at_store_rel")),
    "a result is put by a release store": (
        "    at_store(buffer + (REORDER_SLOTS + (ticket & mask)) * 8, result)\n    return 1\n",
        "    at_store_rel(buffer + (REORDER_SLOTS + (ticket & mask)) * 8, result)\n    return 1\n",
    ),
    "the head moves before its slot is empty": (
        "    at_store(_head_slot(buffer), 0)\n    at_add(buffer + REORDER_HEAD * 8, 1)\n",
        "    slot = _head_slot(buffer)\n    at_add(buffer + REORDER_HEAD * 8, 1)\n    at_store(slot, 0)\n",
    ),
    "who has the flag does not look again": (
        "        if reorder_ready(buffer) == 1:\n            return 1\n",
        "        return 1\n",
    ),
    "anybody reads": ("        if not at_cas(buffer + REORDER_FLAG * 8, 0, 1):\n            return 0\n", ""),
    "a ticket may be one too far ahead": (
        "    if ticket > at_load(buffer + REORDER_HEAD * 8) + mask:",
        "    if ticket > at_load(buffer + REORDER_HEAD * 8) + mask + 1:",
    ),
}


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


def drained(run, buffer):
    found = []
    while run.reorder_enter(buffer):
        while head := run.reorder_head(buffer):
            found.append(head)
            run.reorder_next(buffer)
        if not run.reorder_leave(buffer):
            break
    return found


def test_tickets_leave_in_order(run):
    buffer = run.reorder_new(4)
    seen = []
    for ticket in (2, 0, 1, 4, 3):  # in flight: 0 1 2 3, then 4 when 0 has left
        assert run.reorder_put(buffer, ticket, ticket + 100) == 1
        seen.append(drained(run, buffer))
    assert seen == [[], [100], [101, 102], [], [103, 104]]
    run.reorder_drop(buffer)


def test_head_always_fits(run):
    buffer = run.reorder_new(2)
    assert run.reorder_put(buffer, 2, 9) == 0
    assert run.reorder_put(buffer, 1, 9) == 1
    assert run.reorder_put(buffer, 0, 8) == 1
    assert drained(run, buffer) == [8, 9]
    run.reorder_drop(buffer)


def test_a_reader_may_leave_the_head_for_another(run):
    buffer = run.reorder_new(2)
    run.reorder_put(buffer, 0, 5)
    assert run.reorder_enter(buffer) == 1
    assert run.reorder_enter(buffer) == 0
    assert run.reorder_leave(buffer) == 1
    assert drained(run, buffer) == [5]
    run.reorder_drop(buffer)


def all_leave_in_order(module, runner, tickets, **limits):
    """Each thread puts its tickets (again when refused) and delivers what it can into one log."""
    r = original(MODULE) if module is None else module
    capacity = 2

    def setup():
        from cq.runtime.base.ops import zalloc

        return r.reorder_new(capacity), zalloc(8 * 8)

    def deliver(shared):
        buffer, log = shared
        while r.reorder_enter(buffer) == 1:
            head = r.reorder_head(buffer)
            assert head != 0, "who enters finds the head's result"
            while head != 0:
                place = at_load(log)
                at_store(log, place + 1)
                at_store(log + 8 + place * 8, head)
                r.reorder_next(buffer)
                head = r.reorder_head(buffer)
            if r.reorder_leave(buffer) == 0:
                return

    def worker(mine):
        def body(shared):
            refused = []
            for ticket in mine:
                if r.reorder_put(shared[0], ticket, ticket + 1) == 0:
                    refused.append(ticket)
                deliver(shared)
            return refused

        return body

    def check(shared, results):
        buffer, log = shared
        left = sorted(ticket for refused in results for ticket in refused)
        count = sum(len(mine) for mine in tickets)
        sent = [at_load(log + 8 + n * 8) - 1 for n in range(at_load(log))]
        expected = list(range(left[0] if left else count))
        assert sent == expected, f"sent {sent}, refused {left}"
        r.reorder_drop(buffer)
        from cq.runtime.base.ops import release

        release(log)

    return runner(setup, [worker(mine) for mine in tickets], check, **limits)


def test_no_result_is_left_behind():
    assert all_leave_in_order(None, explore, [(0,), (1,)], preemptions=3, delays=True).complete
    assert all_leave_in_order(None, explore, [(1,), (0, 2)], preemptions=2).complete
    all_leave_in_order(None, wander, [(0, 3), (2,), (1, 4)], runs=300, delays=True)


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name):
    old, new = MUTANTS[name]
    broken = planted(MODULE, old, new)
    if "at_store_rel" in new:
        from cq.runtime.base.ops import at_store_rel

        broken.reorder_put.__globals__["at_store_rel"] = at_store_rel
    with pytest.raises(Failure):
        all_leave_in_order(broken, explore, [(0,), (1,)], preemptions=3, delays=True)
        all_leave_in_order(broken, explore, [(1,), (0, 2)], preemptions=2)
        all_leave_in_order(broken, explore, [(2, 3), (0, 1)], preemptions=2)


def test_real_threads_deliver_in_order():
    count, workers = 8_000, 3
    sent: list[int] = []
    with Compiled(*FUNCTIONS) as run:
        buffer = run.reorder_new(8)
        lock, following = threading.Lock(), iter(range(count))

        def work(seed):
            dice = random.Random(seed)
            while True:
                with lock:
                    ticket = next(following, None)
                if ticket is None:
                    break
                for _ in range(dice.randrange(20)):
                    pass
                while run.reorder_put(buffer, ticket, ticket + 1) == 0:
                    sent.extend([])
                    drain()
                drain()

        def drain():
            while run.reorder_enter(buffer):
                while head := run.reorder_head(buffer):
                    sent.append(head - 1)
                    run.reorder_next(buffer)
                if not run.reorder_leave(buffer):
                    break

        threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.reorder_drop(buffer)
    assert sent == list(range(count))
