"""The hybrid queue: a lane has one worker at a time, and its items keep their order."""

from __future__ import annotations

import threading

import pytest
from both_ways import Compiled, Interpreted
from interleave import Failure, explore, wander
from planted import original, planted

from cq.runtime.base.ops import at_add, at_load, at_store, release, zalloc
from cq.runtime.queues.hybrid import (
    hybrid_add,
    hybrid_claim,
    hybrid_done,
    hybrid_drop,
    hybrid_has_room,
    hybrid_item,
    hybrid_new,
)

MODULE = "cq.runtime.queues.hybrid"
FUNCTIONS = (hybrid_new, hybrid_drop, hybrid_add, hybrid_claim, hybrid_item, hybrid_done, hybrid_has_room)
MUTANTS = {
    "the lane is announced before its item is there": (
        "    pushed = ring_push(ld_i64(ld_i64(hybrid, HYBRID_QUEUES), lane), item)\n"
        "    pushed += ring_push(ld_i64(hybrid, HYBRID_MASTER), lane + 1)\n",
        "    pushed = ring_push(ld_i64(hybrid, HYBRID_MASTER), lane + 1)\n"
        "    pushed += ring_push(ld_i64(ld_i64(hybrid, HYBRID_QUEUES), lane), item)\n",
    ),
    "a busy lane is served all the same": (
        "        if at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, 1) == 0:",
        "        if at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, 1) >= 0:",
    ),
    "a delegated claim is forgotten": ("lane * 64, -1) > 1 else 0", "lane * 64, -1) > 2 else 0"),
    "a lane is left before its count says so": (
        "    return 1 if at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, -1) > 1 else 0",
        "    more = 1 if at_load(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64) > 1 else 0\n"
        "    at_add(ld_i64(hybrid, HYBRID_COUNTS) + lane * 64, -1)\n    return more",
    ),
}


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


def test_items_of_a_lane_keep_their_order(run):
    hybrid = run.hybrid_new(2, 4)
    for lane, item in ((0, 10), (1, 20), (0, 11), (0, 12)):
        assert run.hybrid_add(hybrid, lane, item) == 1
    assert run.hybrid_claim(hybrid) == 0
    assert run.hybrid_claim(hybrid) == 1  # lane 0's other claims come later
    assert run.hybrid_item(hybrid, 1) == 20
    assert run.hybrid_done(hybrid, 1) == 0
    assert run.hybrid_claim(hybrid) == -1  # both were delegated to whoever serves lane 0
    served = [run.hybrid_item(hybrid, 0)]
    while run.hybrid_done(hybrid, 0):
        served.append(run.hybrid_item(hybrid, 0))
    assert served == [10, 11, 12]
    run.hybrid_drop(hybrid)


def test_a_full_lane_refuses(run):
    hybrid = run.hybrid_new(2, 2)
    assert [run.hybrid_add(hybrid, 1, n) for n in (1, 2, 3)] == [1, 1, 0]
    assert (run.hybrid_has_room(hybrid, 1), run.hybrid_has_room(hybrid, 0)) == (0, 1)
    run.hybrid_drop(hybrid)


def served_in_order(module, runner, items, workers, **limits):
    """One writer adds (lane, item)s while workers serve; at the end one thread serves the rest."""
    h = original(MODULE) if module is None else module

    def setup():
        return h.hybrid_new(2, 2), zalloc(16 * 8), zalloc(16 * 8)  # queue; inside each lane; log: count, entries

    def add(shared):
        for lane, item in items:
            h.hybrid_add(shared[0], lane, item)

    def serve(shared):
        hybrid, inside, log = shared
        while (lane := h.hybrid_claim(hybrid)) >= 0:
            while True:
                assert at_add(inside + lane * 8, 1) == 0, "two workers in a lane"
                item = h.hybrid_item(hybrid, lane)
                place = at_add(log, 1)
                at_store(log + 8 + place * 8, lane * 100 + item)
                at_add(inside + lane * 8, -1)
                if h.hybrid_done(hybrid, lane) == 0:
                    break

    def check(shared, _):
        serve(shared)
        hybrid, inside, log = shared
        seen = [divmod(at_load(log + 8 + n * 8), 100) for n in range(at_load(log))]
        for lane in (0, 1):
            assert [i for at, i in seen if at == lane] == [i for at, i in items if at == lane], seen
        h.hybrid_drop(hybrid)
        release(inside)
        release(log)

    return runner(setup, [add, *[serve] * workers], check, **limits)


def test_a_lane_has_one_worker_at_a_time():
    assert served_in_order(None, explore, [(0, 1), (0, 2)], 2, preemptions=2).complete
    served_in_order(None, wander, [(0, 1), (1, 2), (0, 3), (1, 4)], 3, runs=300)


def test_a_claim_always_finds_its_item():
    assert served_in_order(None, explore, [(1, 5)], 1, preemptions=3).complete


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name):
    broken = planted(MODULE, *MUTANTS[name])
    broken.hybrid_done.__globals__["at_load"] = at_load
    with pytest.raises(Failure):
        served_in_order(broken, explore, [(1, 5)], 1, preemptions=3)
        served_in_order(broken, explore, [(0, 1), (0, 2)], 2, preemptions=2)


def test_real_threads_keep_the_order_of_every_lane():
    count, lanes, workers = 4_000, 4, 3
    served: list[list[int]] = [[] for _ in range(lanes)]
    with Compiled(*FUNCTIONS) as run:
        hybrid = run.hybrid_new(lanes, 16)
        left = threading.Semaphore(0)

        def serve():
            while sum(map(len, served)) < count:
                lane = run.hybrid_claim(hybrid)
                while lane >= 0:
                    served[lane].append(run.hybrid_item(hybrid, lane))
                    if not run.hybrid_done(hybrid, lane):
                        break
            left.release()

        threads = [threading.Thread(target=serve) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for n in range(count):
            while not run.hybrid_add(hybrid, n * n % 7 % lanes, n + 1):
                pass
        for thread in threads:
            thread.join()
        run.hybrid_drop(hybrid)
    for lane in range(lanes):
        assert served[lane] == [n + 1 for n in range(count) if n * n % 7 % lanes == lane]
