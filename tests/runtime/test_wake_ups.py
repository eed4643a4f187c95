"""Whoever makes work for others wakes them: nobody but he would, since no sleep here ends by itself.

What a stage sends to the next one is in test_engine_workers.py.
"""

from __future__ import annotations

import pytest
from interleave import explore

from cq.runtime.base.ops import at_load, at_store, st_i64, zalloc
from cq.runtime.base.simulation import function_address
from cq.runtime.engine import worker
from cq.runtime.engine.stage import (
    ENGINE_ADMISSION,
    ENGINE_STOP,
    ENGINE_WORDS,
    ENGINE_WORKERS,
    STAGE_CONSTANTS,
    STAGE_ENGINE,
    STAGE_OWN,
    STAGE_WORDS,
    TASK_WORDS,
)
from cq.runtime.engine.ways import chains, deals, lanes, loop, parts, shared
from cq.runtime.flow.admission_words import ADMISSION_WORDS
from cq.runtime.layout.chains import (
    CHAINS_COUNT,
    CHAINS_EVALUATE,
    CHAINS_OWNED,
    CHAINS_PHASE,
    CHAINS_ROUNDS,
    CHAINS_SHARES,
    CHAINS_STAGE,
    COLLECT,
    EVALUATE,
    SHARE_CURSOR,
    SHARE_LOCK,
    SHARE_STATE,
    SHARE_WORDS,
)
from cq.runtime.queues import reorder


@pytest.fixture
def stand_in(monkeypatch):
    """Replace what a module calls."""
    return lambda module, name, by: monkeypatch.setattr(module, name, by)


def words(count, *known):
    """An address of so many words, some of which are known: (word, value)."""
    made = zalloc(8 * count)
    for word, value in known:
        st_i64(made, word, value)
    return made


def staged():
    """An engine of two workers and one of its stages."""
    engine = words(ENGINE_WORDS, (ENGINE_WORKERS, 2))
    return engine, words(STAGE_WORDS, (STAGE_ENGINE, engine))


def a_phase_begins(_):
    engine, stage = staged()
    address = words(CHAINS_SHARES, (CHAINS_STAGE, stage))
    return (
        engine,
        lambda: chains._next_phase(address),
        lambda: int(at_load(address + CHAINS_PHASE * 8) == COLLECT),
    )


def a_share_of_another_worker_has_moved(_):
    """Each worker has a share of its own; that of the second one is ready when that of the first has been evaluated."""
    engine, stage = staged()
    done = zalloc(8)
    st_i64(stage, STAGE_CONSTANTS, done)

    def evaluate(number, _, share, done):
        if number == 0:
            at_store(done, 1)
        elif at_load(done) == 0:
            return 0
        st_i64(share, SHARE_CURSOR, 0)
        return 1

    rounds = words(2, *((worker, words(2, (0, 1), (1, worker))) for worker in range(2)))
    address = words(
        CHAINS_SHARES + 2 * SHARE_WORDS,
        (CHAINS_STAGE, stage),
        (CHAINS_PHASE, EVALUATE),
        (CHAINS_COUNT, 2),
        (CHAINS_OWNED, 1),
        (CHAINS_ROUNDS, rounds),
        (CHAINS_EVALUATE, function_address(evaluate)),
    )
    for number in range(2):
        share = address + (CHAINS_SHARES + number * SHARE_WORDS) * 8
        for word, value in ((SHARE_LOCK, 2 * EVALUATE), (SHARE_CURSOR, 1), (SHARE_STATE, number)):
            st_i64(share, word, value)
    return engine, lambda: chains._help(address, 0), lambda: chains._help(address, 1)


def tickets_are_shared(stand_in):
    engine, stage = staged()
    begun = words(shared.SHARED_WORDS) + shared.SHARED_BEGUN * 8
    st_i64(stage, STAGE_OWN, begun - shared.SHARED_BEGUN * 8)

    def hand_over(_):
        at_store(begun, 1)
        return 1, 7

    stand_in(shared, "_serve_alone", hand_over)
    stand_in(shared, "serve_ticket", lambda *_: 0)
    return engine, lambda: shared.serve_shared(stage, 0), lambda: at_load(begun)


def a_ticket_is_dealt(stand_in):
    engine, stage = staged()
    partials = words(parts.PARTIALS_PARTS, (parts.PARTIALS_COUNT, 2), (parts.PARTIALS_RING, words(1)))
    st_i64(stage, STAGE_OWN, partials)
    task = words(TASK_WORDS, (deals.TASK_DEAL, words(deals.DEAL_WORDS)))
    stand_in(deals, "_note_parts", lambda *_: 1)
    return engine, lambda: deals.deal_ticket(stage, task), lambda: at_load(partials + parts.PARTIALS_DEALT * 8)


def parts_are_collected(stand_in):
    engine, stage = staged()
    empty = zalloc(8)
    st_i64(stage, STAGE_OWN, empty)

    def collect(*_):
        at_store(empty, 1)
        return parts.COLLECTED

    stand_in(loop, "collect_parts", collect)
    return engine, lambda: loop._collected(stage, words(TASK_WORDS), 0, 0), lambda: at_load(empty)


def rows_are_spread_over_lanes(stand_in):
    engine, stage = staged()
    buffer, spread = reorder.reorder_new(2), zalloc(8)
    assert reorder.reorder_put(buffer, 0, 7) == 1
    address = words(lanes.x.LANES_WORDS, (lanes.LANES_SPREAD, buffer))

    def spread_split(*_):
        at_store(spread, 1)
        return 1

    stand_in(lanes, "_spread_split", spread_split)
    return engine, lambda: lanes._spread(stage, address), lambda: at_load(spread)


def several_tickets_are_admitted(stand_in):
    engine, _ = staged()
    waiting = zalloc(8)
    st_i64(engine, ENGINE_ADMISSION, words(ADMISSION_WORDS))

    def admit(*_):
        at_store(waiting, 1)
        return 2

    stand_in(worker, "admit", admit)
    return engine, lambda: worker.serve_admission(engine), lambda: at_load(waiting)


CASES = (
    a_phase_begins,
    a_share_of_another_worker_has_moved,
    tickets_are_shared,
    a_ticket_is_dealt,
    parts_are_collected,
    rows_are_spread_over_lanes,
    several_tickets_are_admitted,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__.replace("_", " "))
def test_a_worker_that_falls_asleep_is_woken_when(case, stand_in):
    for patience in ("SPINS", "YIELDS"):
        stand_in(worker, patience, 0)

    def setup():
        engine, wake, work = case(stand_in)

        def work_once(*_):
            if work() == 0:
                return 0
            at_store(engine + ENGINE_STOP * 8, 1)
            return 1

        stand_in(worker, "work_once", work_once)
        return engine, wake

    threads = [lambda made: made[1](), lambda made: worker.worker_loop(made[0], 0)]
    assert explore(setup, threads, lambda *_: None, preemptions=2, delays=True).complete
