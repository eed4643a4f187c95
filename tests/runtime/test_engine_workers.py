"""The workers' protocol in every schedule: no wake-up is lost, nothing is sent into a full queue, order holds.

The worker loop itself is explored over small jobs of stand-in parts; whole engines run under real threads in
test_engine.py.
"""

from __future__ import annotations

import pytest
from interleave import Failure, explore, wander
from planted import original, planted

from cq.runtime.base.ops import at_add, at_load, at_store, ld_i64, pause, release, st_i64, zalloc
from cq.runtime.engine.ways.parts import PATIENCE
from cq.runtime.flow.admission_words import ADMISSION_WORDS
from cq.runtime.queues import pool, reorder, ring
from cq.runtime.queues.ring import ring_drop, ring_new, ring_pop, ring_push

WORKER = "cq.runtime.engine.worker"
STAGE = "cq.runtime.engine.stage"


class Jobs:
    """A queue of jobs in place of `work_once`: one job done, or nothing to do."""

    def __init__(self, worker, stage, yields=0):
        self.worker, self.stage = worker, stage
        self.patience = {"SPINS": 0, "YIELDS": yields}
        self.scope = worker.worker_loop.__globals__

    def setup(self):
        shared = zalloc(self.stage.ENGINE_WORDS * 8), ring_new(4), zalloc(8)
        _, queue, done = shared

        def work_once(_, worker):
            if ring_pop(queue) == 0:
                return 0
            at_add(done, 1)
            return 1

        self.scope["work_once"] = work_once
        self.scope.update(self.patience)
        return shared

    def work(self, shared):
        return self.worker.worker_loop(shared[0], 0)

    def feed(self, count):
        def body(shared):
            engine, queue, done = shared
            for job in range(count):
                assert ring_push(queue, job + 1) == 1
                self.stage.wake_workers(engine, 1)
            while at_load(done) < count:
                pause()
            at_store(engine + self.stage.ENGINE_STOP * 8, 1)
            self.stage.wake_workers(engine, 2)

        return body

    def check(self, shared, _):
        engine, queue, done = shared
        assert ld_i64(done, 0) > 0
        ring_drop(queue)
        release(engine)
        release(done)


def run_jobs(worker, stage, runner, workers=1, count=1, yields=0, **limits):
    original_work = worker.worker_loop.__globals__["work_once"]
    kept = {name: worker.worker_loop.__globals__[name] for name in ("SPINS", "YIELDS")}
    jobs = Jobs(worker, stage, yields)
    try:
        return runner(jobs.setup, [jobs.feed(count), *[jobs.work] * workers], jobs.check, **limits)
    finally:
        worker.worker_loop.__globals__.update(kept, work_once=original_work)


def test_no_wakeup_is_lost():
    for yields in (0, 1):
        jobs = original(WORKER), original(STAGE)
        assert run_jobs(*jobs, explore, yields=yields, preemptions=2, delays=True).complete
        run_jobs(*jobs, wander, workers=2, count=3, yields=yields, runs=200, delays=True)


def wait_for_the_end(worker, stage, monkeypatch):
    """One worker does all there is to do; the feeder waits until nothing is left."""
    scope = worker.worker_loop.__globals__
    monkeypatch.setitem(scope, "SPINS", 0)
    monkeypatch.setitem(scope, "YIELDS", 0)

    def setup():
        engine, left = zalloc(stage.ENGINE_WORDS * 8), zalloc(8)
        at_store(left, 1)

        def work_once(*_):
            if at_load(left) == 0:
                return 0
            at_store(left, 0)
            return 1

        monkeypatch.setitem(scope, "work_once", work_once)
        monkeypatch.setitem(scope, "engine_idle", lambda _: int(at_load(left) == 0))
        return engine, left

    def feed(shared):
        engine, _ = shared
        seen = at_load(engine + stage.ENGINE_SIGNAL * 8)
        while worker.engine_settled(engine) == 0:
            seen = worker.feeder_wait(engine, seen, 0, 1)
        at_store(engine + stage.ENGINE_STOP * 8, 1)
        stage.wake_workers(engine, 1)

    def check(shared, _):
        engine, left = shared
        assert at_load(left) == at_load(engine + stage.ENGINE_RESTS_HEARD * 8) == 0

    return explore(setup, [feed, lambda shared: worker.worker_loop(shared[0], 0)], check, preemptions=3, delays=True)


def test_a_feeder_that_waits_for_the_end_of_all_work_is_told_of_it(monkeypatch):
    assert wait_for_the_end(original(WORKER), original(STAGE), monkeypatch).complete


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        pytest.param(
            "    at_store(engine + ENGINE_RESTS_HEARD * 8, 1)\n    if engine_idle(engine) == 0:\n        return 0\n",
            "    if engine_idle(engine) == 0:\n"
            "        at_store(engine + ENGINE_RESTS_HEARD * 8, 1)\n        return 0\n",
            id="a feeder looks before it listens",
        ),
        pytest.param("                tell_of_rest(engine)\n", "", id="a worker rests without a word"),
    ],
)
def test_a_planted_bug_in_the_wait_for_the_end_is_seen(good, bad, monkeypatch):
    with pytest.raises(Failure):
        wait_for_the_end(planted(WORKER, good, bad), original(STAGE), monkeypatch)


def test_a_worker_that_was_woken_outlasts_its_patience_before_it_sleeps_again(monkeypatch):
    worker, stage, visits = original(WORKER), original(STAGE), [0]

    def setup():
        return zalloc(stage.ENGINE_WORDS * 8)

    def work_once(*_):
        visits[-1] += 1
        return 0

    def futex_wait(epoch, *_):
        at_store(epoch - stage.ENGINE_EPOCH * 8 + stage.ENGINE_STOP * 8, int(len(visits) == 3))
        visits.append(0)

    monkeypatch.setitem(worker.worker_loop.__globals__, "work_once", work_once)
    monkeypatch.setitem(worker.worker_loop.__globals__, "futex_wait", futex_wait)
    wander(setup, [lambda engine: worker.worker_loop(engine, 1)], lambda engine, _: release(engine), runs=1)
    assert len(visits) == 4
    assert min(visits[:3]) > PATIENCE


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("module", "good", "bad"),
    [
        pytest.param(
            STAGE,
            "    fence()\n    if at_load(engine + ENGINE_WAITERS * 8) > 0:",
            "    if at_load(engine + ENGINE_WAITERS * 8) > 0:",
            id="a producer looks for sleepers before its push is seen",
        ),
        pytest.param(
            WORKER,
            "            epoch = at_load(engine + ENGINE_EPOCH * 8)\n"
            "            at_add(engine + ENGINE_WAITERS * 8, 1)\n",
            "            at_add(engine + ENGINE_WAITERS * 8, 1)\n",
            id="a worker reads the epoch after its last look",
        ),
        pytest.param(
            STAGE,
            "        at_add(engine + ENGINE_EPOCH * 8, 1)\n        futex_wake(engine + ENGINE_EPOCH * 8, count)\n",
            "        futex_wake(engine + ENGINE_EPOCH * 8, count)\n",
            id="a wake-up does not move the epoch",
        ),
        pytest.param(
            WORKER,
            "            if work_once(engine, worker) == 0 and at_load(engine + ENGINE_STOP * 8) == 0:",
            "            if at_load(engine + ENGINE_STOP * 8) == 0:",
            id="a worker sleeps without a last look",
        ),
    ],
)
def test_a_planted_bug_in_the_sleep_is_seen(module, good, bad):
    worker, stage = original(WORKER), original(STAGE)
    if module == WORKER:
        if "epoch = " in good:
            good += (
                "            if work_once(engine, worker) == 0 and at_load(engine + ENGINE_STOP * 8) == 0:\n"
                "                tell_of_rest(engine)\n"
                "                slept += rest(engine + ENGINE_EPOCH * 8, epoch, YIELDS, SLEEP_NS)\n"
            )
            bad += (
                "            if work_once(engine, worker) == 0 and at_load(engine + ENGINE_STOP * 8) == 0:\n"
                "                epoch = at_load(engine + ENGINE_EPOCH * 8)\n"
                "                slept += rest(engine + ENGINE_EPOCH * 8, epoch, YIELDS, SLEEP_NS)\n"
            )
        worker = planted(WORKER, good, bad)
    else:
        stage = planted(STAGE, good, bad)
    with pytest.raises(Failure):
        run_jobs(worker, stage, explore, preemptions=2, delays=True)
        run_jobs(worker, stage, explore, workers=2, count=2, preemptions=2)


def test_a_ticket_far_ahead_cannot_starve_the_head():
    """Two tasks, three tickets, two workers: the head ticket has a task whatever the schedule."""

    def setup():
        tickets, tasks, order = ring.ring_new(4), pool.pool_new(2), reorder.reorder_new(2)
        for ticket in range(3):
            ring.ring_push(tickets, ticket + 1)
        for task in range(2):
            pool.pool_put(pool.pool_home(tasks, task), task + 1)
        return tickets, tasks, order, zalloc(8 * 8)

    def drain(shared):
        _, tasks, order, log = shared
        while reorder.reorder_enter(order) == 1:
            while (result := reorder.reorder_head(order)) != 0:
                place = at_load(log)
                at_store(log + 8 + place * 8, result)
                at_store(log, place + 1)
                reorder.reorder_next(order)
                pool.pool_put(pool.pool_home(tasks, (result >> 8) - 1), result >> 8)
            if reorder.reorder_leave(order) == 0:
                return

    def work(shared):
        tickets, tasks, order, _ = shared
        for _try in range(3):
            drain(shared)
            task = pool.pool_take(tasks)
            if task == 0:
                continue
            item, ticket = ring.ring_take(tickets)
            if item == 0:
                pool.pool_put(pool.pool_home(tasks, task - 1), task)
                continue
            assert reorder.reorder_put(order, ticket, task << 8 | item) == 1, "a put in flight always fits"
            drain(shared)

    def check(shared, _):
        tickets, tasks, order, log = shared
        work(shared)
        assert [at_load(log + 8 + n * 8) & 255 for n in range(at_load(log))] == [1, 2, 3]
        assert pool.pool_count(tasks) == 2
        for made in (tickets, tasks, order, log):
            release(made)

    assert explore(setup, [work, work], check, preemptions=1).complete
    wander(setup, [work, work, work], check, runs=150)


def test_a_task_is_idle_again_when_its_ticket_has_left_the_buffer(monkeypatch):
    """I2 of any_worker: then the next ticket it takes has a slot, for there are as many slots as tasks."""
    any_worker, stage_words = original("cq.runtime.engine.ways.any_worker"), original(STAGE)
    buffers, later = [], []

    def setup():
        stage = zalloc(stage_words.STAGE_WORDS * 8)
        buffers.append(reorder.reorder_new(2))
        st_i64(stage, stage_words.STAGE_REORDER, buffers[0])
        for ticket in range(2):
            assert reorder.reorder_put(buffers[0], ticket, zalloc(stage_words.TASK_WORDS * 8)) == 1
        return stage

    def pool_put(_, task):
        if len(later) < 2:  # at once it takes one of the tickets behind those that are there
            later.append(reorder.reorder_put(buffers[0], 2 + len(later), task))

    for name, stand_in in (("can_send", lambda _: 1), ("_send_task", lambda *_: (1, 1)), ("pool_put", pool_put)):
        monkeypatch.setitem(any_worker.drain_tickets.__globals__, name, stand_in)
    wander(setup, [any_worker.drain_tickets], lambda *_: None, runs=1)
    assert later == [1, 1]


def test_a_split_is_idle_again_when_its_ticket_has_left_the_buffer(monkeypatch):
    """I2 of lanes: then the next ticket it takes has a slot, for there are as many slots as splits."""
    ways = original("cq.runtime.engine.ways.lanes")
    buffers, later = [], []

    def setup():
        lanes = zalloc(ways.x.LANES_WORDS * 8)
        buffers.append(reorder.reorder_new(2))
        st_i64(lanes, ways.LANES_MERGED, buffers[0])
        for ticket in range(2):
            assert reorder.reorder_put(buffers[0], ticket, zalloc(ways.x.SPLIT_WORDS * 8)) == 1
        return lanes

    def pool_put(_, split):
        if len(later) < 2:  # at once it takes one of the tickets behind those that are there
            later.append(reorder.reorder_put(buffers[0], 2 + len(later), split))

    for name, stand_in in (("can_send", lambda _: 1), ("_send_split", lambda *_: (1, 1)), ("pool_put", pool_put)):
        monkeypatch.setitem(ways._send.__globals__, name, stand_in)
    wander(setup, [lambda lanes: ways._send(0, lanes)], lambda *_: None, runs=1)
    assert later == [1, 1]


def test_a_feeder_that_waits_is_told_of_every_result(monkeypatch):
    """One worker tells of the first result while another one sends the second and counts on being told of with it."""
    worker, stage = original(WORKER), original(STAGE)
    monkeypatch.setitem(stage.announce_results.__globals__, "clock_ns", lambda: 5)

    def setup():
        engine, sent = zalloc(stage.ENGINE_WORDS * 8), zalloc(8)
        st_i64(engine, stage.ENGINE_UNHEARD, 5)
        st_i64(sent, 0, 1)
        return engine, sent

    def tell(shared):
        stage.call_feeder(shared[0])

    def send(shared):
        engine, sent = shared
        at_add(sent, 1)
        stage.announce_results(engine, 1)
        stage.call_feeder(engine)

    def feed(shared):
        engine, sent = shared
        seen = at_load(engine + stage.ENGINE_SIGNAL * 8)
        while at_load(sent) < 2:
            worker.feeder_wait(engine, seen, 0, 1)
            seen = at_load(engine + stage.ENGINE_SIGNAL * 8)

    assert explore(setup, [tell, send, feed], lambda *_: None, preemptions=3).complete


def stage_before_another(stage, queue):
    """A stage of an engine whose rows go to the queue of the stage behind it."""
    engine, sender, following = (zalloc(n * 8) for n in (stage.ENGINE_WORDS, stage.STAGE_WORDS, stage.STAGE_WORDS))
    st_i64(sender, stage.STAGE_ENGINE, engine)
    st_i64(sender, stage.STAGE_NEXT, following)
    st_i64(following, stage.STAGE_INPUT, queue)
    return engine, sender


@pytest.mark.parametrize("what", ["rows", "a failure"])
def test_a_worker_that_falls_asleep_is_woken_for_what_a_stage_sends(what, monkeypatch):
    """I3 of stages: nobody but the sender would wake it."""
    worker, stage = original(WORKER), original(STAGE)
    monkeypatch.setitem(stage.send.__globals__, "parcel_to_batch", lambda *_: None)
    for patience in ("SPINS", "YIELDS"):
        monkeypatch.setitem(worker.worker_loop.__globals__, patience, 0)

    def setup():
        queue = ring_new(2)
        engine, sender = stage_before_another(stage, queue)

        def work_once(*_):
            if ring_pop(queue) == 0:
                return 0
            at_store(engine + stage.ENGINE_STOP * 8, 1)
            return 1

        monkeypatch.setitem(worker.worker_loop.__globals__, "work_once", work_once)
        return engine, sender, zalloc(stage.ITEM_WORDS * 8)

    def send(shared):
        _, sender, item = shared
        if what == "rows":
            stage.send(sender, 0, item)
        else:
            stage.send_failure(sender, item)

    threads = [send, lambda shared: worker.worker_loop(shared[0], 0)]
    assert explore(setup, threads, lambda *_: None, preemptions=2, delays=True).complete


def test_a_feeder_that_waits_is_told_that_the_run_is_over():
    """I4 of stages: the signal for the outcome is the last one there is."""
    worker, stage = original(WORKER), original(STAGE)

    def feed(engine):
        seen = at_load(engine + stage.ENGINE_SIGNAL * 8)
        while at_load(engine + stage.ENGINE_OUTCOME * 8) == stage.RUNNING:
            seen = worker.feeder_wait(engine, seen, 0, 1)

    threads = [lambda engine: stage.conclude(engine, stage.FINISHED), feed]
    assert explore(
        lambda: zalloc(stage.ENGINE_WORDS * 8), threads, lambda *_: None, preemptions=2, delays=True
    ).complete


def test_who_knows_that_the_run_is_over_finds_its_last_row(monkeypatch):
    """I4 of stages: a sink that has all rows it takes ends the run after the last of them is in its ring."""
    stage = original(STAGE)
    for name, stand_in in (("parcel_truncate", lambda *_: 1), ("parcel_compact", lambda parcel: parcel)):
        monkeypatch.setitem(stage.send.__globals__, name, stand_in)

    def setup():
        engine, sender, sink, table = (
            zalloc(n * 8) for n in (stage.ENGINE_WORDS, stage.STAGE_WORDS, stage.SINK_WORDS, 1)
        )
        st_i64(engine, stage.ENGINE_SINKS, 1)
        st_i64(engine, stage.ENGINE_SINK_TABLE, table)
        st_i64(table, 0, sink)
        st_i64(sink, stage.SINK_RING, ring_new(2))
        st_i64(sink, stage.SINK_LEFT, 1)
        st_i64(sender, stage.STAGE_ENGINE, engine)
        return engine, sender, sink, zalloc((stage.PARCEL_PORT + stage.PORT_WORDS) * 8)

    def take(shared):
        engine, _, sink, parcel = shared
        if at_load(engine + stage.ENGINE_OUTCOME * 8) != stage.RUNNING:
            assert ring_pop(ld_i64(sink, stage.SINK_RING)) == parcel

    threads = [lambda shared: stage.send(shared[1], 0, shared[3]), take]
    assert explore(setup, threads, lambda *_: None, preemptions=2, delays=True).complete


def test_what_a_worker_learns_of_sources_it_learns_before_another_one_admits(monkeypatch):
    """The words of a source are written by who admits: a look at them behind the lock is a race."""
    worker, stage = original(WORKER), original(STAGE)

    def setup():
        engine, admission = zalloc(stage.ENGINE_WORDS * 8), zalloc(ADMISSION_WORDS * 8)
        source, queue = zalloc(worker.SOURCE_WORDS * 8), ring_new(2)
        st_i64(engine, stage.ENGINE_ADMISSION, admission)
        st_i64(engine, stage.ENGINE_WORKERS, 2)
        st_i64(admission, worker.ADMISSION_SOURCES, 1)
        st_i64(admission, worker.ADMISSION_SOURCE_TABLE, source)
        st_i64(source, worker.SOURCE_RING, queue)
        return engine, admission, source, queue

    def admit(admission, _):
        source = ld_i64(admission, worker.ADMISSION_SOURCE_TABLE)
        st_i64(admission, worker.ADMISSION_LOANS, ld_i64(admission, worker.ADMISSION_LOANS) + 1)
        st_i64(source, worker.SOURCE_ENDED, 1)
        return 1

    def check(shared, results):
        admitted = sum(results)
        assert 1 <= admitted == ld_i64(shared[1], worker.ADMISSION_LOANS)
        for made in shared:
            release(made)

    monkeypatch.setitem(worker.serve_admission.__globals__, "admit", admit)
    threads = [lambda shared: worker.serve_admission(shared[0])] * 2
    assert explore(setup, threads, check, preemptions=2).complete


def test_a_thing_is_lent_to_one_thread():
    def setup():
        made = pool.pool_new(2)
        pool.pool_put(pool.pool_home(made, 0), 7)
        return made

    def check(made, results):
        assert sorted(results) == [0, 7]
        pool.pool_drop(made)

    assert explore(setup, [pool.pool_take, pool.pool_take], check, preemptions=3).complete


def test_what_comes_back_can_be_taken():
    """One thing, lent and put back by two threads: never refused, never lost. A ring of two fails here."""

    def setup():
        made = pool.pool_new(1), zalloc(8)
        pool.pool_put(pool.pool_home(made[0], 0), 9)
        return made

    def borrow(shared):
        made, inside = shared
        for _try in range(2):
            if (thing := pool.pool_take(made)) != 0:
                assert at_add(inside, 1) == 0
                at_add(inside, -1)
                pool.pool_put(pool.pool_home(made, 0), thing)

    def check(shared, _):
        assert pool.pool_count(shared[0]) == 1
        for made in shared:
            release(made)

    assert explore(setup, [borrow, borrow], check, preemptions=2).complete
