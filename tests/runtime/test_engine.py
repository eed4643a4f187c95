"""The engine from Arrow to Arrow: order, batches, limits, failures, for inline and threaded runs."""

from __future__ import annotations

import random

import pytest
from engine_kernels import batch, pairs, pipeline, stage

from cq.runtime.engine.engine import Engine, EngineFailure
from cq.runtime.flow import merged_lanes
from cq.runtime.layout.abi import NEVER, ErrorCode
from cq.ways import Way

ROWS = [(n % 5, n - 3, n * 10) for n in range(40)]


def cut(rows, size):
    return [batch(rows[n : n + size]) for n in range(0, len(rows), size)]


def run(plan, *sources, **options):
    """(rows of the only sink, failure)"""
    found = []
    with Engine(plan, **options) as engine:
        failure = engine.run([iter(s) for s in sources], lambda _, b: found.append(b))
    return pairs(found), failure


WAYS = [
    {"interpreted": True},
    {"threads": 0},
    {"threads": 1},
    {"threads": 3},
]


@pytest.fixture(params=WAYS, ids=["interpreted", "inline", "one", "three"])
def way(request):
    return request.param


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
def test_rows_pass_through_in_order(way, batch_rows):
    found, failure = run(pipeline(stage("passthrough")), cut(ROWS, 11), batch_rows=batch_rows, **way)
    assert failure is None
    assert found == [(k, v) for k, v, _ in ROWS if v >= 0]


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_state_goes_on_from_ticket_to_ticket(way, batch_rows):
    found, _ = run(pipeline(stage("running")), cut(ROWS, 3), batch_rows=batch_rows, **way)
    assert found == [(n % 5, n // 5 + 1) for n in range(40)]


def test_a_kernel_that_fills_its_port_is_called_again(way):
    rows = [(1, 3, 0), (2, 0, 1), (3, 20, 2)]
    found, _ = run(pipeline(stage("repeat")), [batch(rows)], batch_rows=4, **way)
    assert found == [(k, n) for k, v, _ in rows for n in range(v)]


def test_closing_times_come_before_the_row_that_passed_them(way):
    # time     0 10 20 30 40 | 50 ... grid 50, no delay
    found, _ = run(pipeline(stage("windows"), grid_us=50), cut(ROWS[:8], 3), batch_rows=2, **way)
    assert found == [(0, 0), (50, 5), (NEVER, 3)]


def test_rows_before_a_failure_are_delivered_then_it_is_told_with_source_and_row(way):
    rows = [(n, n, n) for n in range(30)] + [(7, -1, 30), (8, -1, 31)]
    found, failure = run(pipeline(stage("strict")), cut(rows, 9), batch_rows=4, **way)
    assert found == [(n, n) for n in range(30)]
    assert failure == EngineFailure(ErrorCode.OVERFLOW, stage=0, site=0, source=0, row=30, serial=30, instant=0)


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_a_limit_takes_the_first_rows_and_ends_the_run(way, limit):
    rows = [(n, n, n) for n in range(20)]
    found, failure = run(pipeline(stage("passthrough", limit=limit)), cut(rows, 3), batch_rows=4, **way)
    assert failure is None
    assert found == [(n, n) for n in range(min(limit, 20))]


def test_a_failure_behind_the_limit_is_not_seen(way):
    rows = [(n, n, n) for n in range(5)] + [(9, -1, 9)]
    found, failure = run(pipeline(stage("strict", limit=5)), [batch(rows)], batch_rows=64, **way)
    assert (len(found), failure) == (5, None)


def test_an_empty_run_still_sees_its_end(way):
    found, failure = run(pipeline(stage("windows"), grid_us=50), [], **way)
    assert (found, failure) == ([(NEVER, 0)], None)


def test_results_outlive_the_engine():
    found = []
    with Engine(pipeline(stage("passthrough"))) as engine:
        engine.run([iter([batch([(n, n, n) for n in range(10_000)])])], lambda _, b: found.append(b))
    assert sum(sum(b["a"].to_pylist()) for b in found) == sum(range(10_000))


def test_nothing_is_left_allocated_after_close():
    engine = Engine(pipeline(stage("repeat"), stage("running", last=True)), batch_rows=4, interpreted=True)
    engine.push(0, batch([(1, 9, 0)]))
    engine.close()
    engine._host.memory.check_no_leaks()


def test_pushed_rows_come_out_at_once(way):
    with Engine(pipeline(stage("passthrough")), **way) as engine:
        for n in range(5):
            engine.push(0, batch([(n, n, n)]))
            assert pairs([b for _, b in engine.drain()]) == [(n, n)]
        engine.end(0)
        assert engine.drain() == []
        assert engine.finished


def test_stages_in_a_chain_run_in_order(way):
    first = stage("repeat", last=False)
    found, _ = run(pipeline(first, stage("running")), cut([(n % 5, 3, n) for n in range(50)], 7), batch_rows=4, **way)
    counts = dict.fromkeys(range(5), 0)
    expected = []
    for n in range(50):
        for _ in range(3):
            counts[n % 5] += 1
            expected.append((n % 5, counts[n % 5]))
    assert found == expected


@pytest.mark.parametrize("kinds", [("passthrough", "repeat"), ("repeat", "passthrough", "running")])
@pytest.mark.parametrize("batch_rows", [2, 50])
def test_stateless_stages_keep_the_order(way, kinds, batch_rows):
    rows = [(n, n % 9, n) for n in range(300)]
    stages = [
        stage(name, Way.LOOP if name == "running" else Way.ANY, last=n == len(kinds) - 1)
        for n, name in enumerate(kinds)
    ]
    expected, _ = run(pipeline(*stages), cut(rows, 64), interpreted=True)
    found, failure = run(pipeline(*stages), cut(rows, 64), batch_rows=batch_rows, **way)
    assert failure is None
    assert len(found) > 1000
    assert found == expected


def test_the_first_failure_by_position_wins_though_a_later_ticket_failed_first(way):
    rows = [(n, -1 if n in {40, 90, 200} else n, n) for n in range(300)]
    first = stage("strict", Way.ANY, last=False)
    found, failure = run(pipeline(first, stage("running")), cut(rows, 100), batch_rows=5, **way)
    assert [k for k, _ in found] == list(range(40))
    assert (failure.stage, failure.row, failure.serial) == (0, 40, 40)


def test_a_later_stage_that_fails_on_an_earlier_row_wins(way):
    rows = [(n, -1 if n == 60 else 1, n) for n in range(100)]
    plan = pipeline(stage("strict", last=False), stage("brittle"))
    found, failure = run(plan, cut(rows, 100), batch_rows=50, **way)
    assert [k for k, _ in found] == list(range(7))
    assert (failure.stage, failure.code, failure.serial) == (1, ErrorCode.DIVISION_BY_ZERO, 7)


@pytest.mark.parametrize("heuristic", ["ct", "lp", "et", "qst"])
def test_every_heuristic_gives_the_same_rows(heuristic):
    stages = [stage("passthrough", Way.ANY, last=False), stage("running", last=False), stage("passthrough")]
    rows = [(n % 7, n, n) for n in range(5000)]
    expected, _ = run(pipeline(*stages), cut(rows, 500), interpreted=True)
    assert run(pipeline(*stages), cut(rows, 500), batch_rows=64, threads=3, heuristic=heuristic)[0] == expected


def test_a_slow_feeder_and_many_small_batches_lose_no_wakeup():
    with Engine(pipeline(stage("running")), threads=2) as engine:
        for n in range(300):
            engine.push(0, batch([(n % 5, n, n)]))
            if n % 3 == 0:
                engine.drain()
        engine.end(0)
        rest = pairs([b for _, b in engine.drain()])
    assert rest[-1] == (4, 60)


def test_a_sink_that_is_not_drained_stops_the_source():
    with Engine(pipeline(stage("repeat")), threads=1, batch_rows=4) as engine:
        found = engine.results(0)
        engine.push(0, batch([(1, 100_000, 0)]))
        engine.end(0)
        first = next(found)
        assert engine._plant.host.function("ring_size")(engine._host.word(engine._plant.sinks[0], 0)) <= 64
        assert pairs([first, *found]) == [(1, n) for n in range(100_000)]


def random_rows(seed, count, negative=()):
    dice, time, rows = random.Random(seed), 0, []
    for n in range(count):
        time += dice.choice([0, 0, 1, 3, 40])
        rows.append((dice.randrange(8), -1 if n in negative else dice.randrange(5), time))
    return rows


@pytest.mark.parametrize("name", ["running", "repeat", "groups", "passthrough"])
@pytest.mark.parametrize("batch_rows", [1, 16, 1000])
def test_lanes_give_the_rows_of_one_worker(way, name, batch_rows):
    rows = random_rows(5, 600)
    expected, _ = run(pipeline(stage(name), grid_us=100), cut(rows, 400), interpreted=True)
    plan = pipeline(stage(name, Way.LANES), grid_us=100)
    found, failure = run(plan, cut(rows, 400), batch_rows=batch_rows, **way)
    assert failure is None
    assert len(found) > 50
    assert found == expected


@pytest.mark.parametrize("name", ["running", "repeat", "groups"])
@pytest.mark.parametrize("batch_rows", [7, 40, 1000])
def test_lanes_give_the_rows_of_one_worker_where_keys_come_in_runs(way, name, batch_rows):
    """Segments of 7 and of 40 rows are mostly of one lane, those of 400 rows never."""
    rows = [(n // 40 % 8, n % 5, n) for n in range(1200)]
    expected, _ = run(pipeline(stage(name), grid_us=100), cut(rows, 400), interpreted=True)
    plan = pipeline(stage(name, Way.LANES), grid_us=100)
    assert run(plan, cut(rows, 400), batch_rows=batch_rows, **way) == (expected, None)


def test_lanes_return_parcels_before_all_rows_of_a_ticket_are_merged(monkeypatch):
    """So that a closing of many groups is not held twice."""
    events = []
    made, returned = merged_lanes.parcel_get, merged_lanes.parcel_return
    monkeypatch.setattr(merged_lanes, "parcel_get", lambda depot: events.append("new") or made(depot))
    monkeypatch.setattr(merged_lanes, "parcel_return", lambda parcel: events.append("returned") or returned(parcel))
    rows = [(n // 4, n % 5, n) for n in range(16)]
    expected, _ = run(pipeline(stage("repeat")), cut(rows, 16), interpreted=True)
    assert events == []
    assert run(pipeline(stage("repeat", Way.LANES)), cut(rows, 16), batch_rows=16, interpreted=True) == (expected, None)
    assert events.count("new") == 2, "of 32 rows, 16 in a parcel"
    assert "returned" in events[: len(events) - events[::-1].index("new")]


@pytest.mark.parametrize("batch_rows", [3, 50, 1000])
def test_the_smallest_position_fails_in_lanes(way, batch_rows):
    rows = random_rows(7, 900, negative={333, 334, 335, 800})
    expected, failed = run(pipeline(stage("strict")), cut(rows, 400), interpreted=True)
    plan = pipeline(stage("strict", Way.LANES))
    found, failure = run(plan, cut(rows, 400), batch_rows=batch_rows, **way)
    assert failed.serial == 333
    assert (found, failure) == (expected, failed)


def test_a_limit_ends_a_run_in_lanes():
    rows = random_rows(9, 5000)
    expected, _ = run(pipeline(stage("running", limit=77)), cut(rows, 500), interpreted=True)
    plan = pipeline(stage("running", Way.LANES, limit=77))
    assert run(plan, cut(rows, 500), batch_rows=64, threads=3) == (expected, None)


def test_lanes_after_a_stateless_stage_keep_the_order():
    rows = random_rows(3, 2000)
    first = stage("repeat", Way.ANY, last=False)
    expected, _ = run(pipeline(first, stage("running")), cut(rows, 300), interpreted=True)
    plan = pipeline(first, stage("running", Way.LANES))
    assert run(plan, cut(rows, 300), batch_rows=32, threads=3) == (expected, None)


@pytest.mark.parametrize(
    ("name", "runs", "threads"),
    [("running", Way.LOOP, 0), ("groups", Way.LOOP, 1), ("running", Way.LANES, 2)],
)
@pytest.mark.parametrize("at", [0, 1, 250, 499])
def test_a_paused_run_goes_on_in_another_engine(name, runs, threads, at):
    rows = random_rows(11, 500)
    plan = pipeline(stage(name, runs), grid_us=100)
    expected, _ = run(pipeline(stage(name), grid_us=100), cut(rows, 64), interpreted=True)
    with Engine(plan, threads=threads, batch_rows=16) as first:
        for piece in cut(rows[:at], 64):
            first.push(0, piece)
        snapshot = first.pause()
        found = [b for _, b in first.drain()]
    assert snapshot.serial == snapshot.rows[0] <= at
    with Engine(plan, threads=threads, batch_rows=5, snapshot=snapshot) as second:
        second.run([iter(cut(rows[snapshot.rows[0] :], 64))], lambda _, b: found.append(b))
    assert pairs(found) == expected


def test_a_pause_holds_back_what_is_pushed_after_it(way):
    with Engine(pipeline(stage("running")), **way) as engine:
        engine.push(0, batch([(1, 1, 1)]))
        snapshot = engine.pause()
        assert len(pairs([b for _, b in engine.drain()])) == snapshot.serial
        engine.push(0, batch([(1, 1, 2)]))
        assert engine.drain() == []


def test_the_error_of_a_source_comes_after_the_results_of_the_rows_before_it(way):
    def broken():
        yield batch([(n, n, n) for n in range(10)])
        raise OSError("gone")

    found = []
    with Engine(pipeline(stage("windows"), grid_us=5), **way) as engine, pytest.raises(OSError, match="gone"):
        engine.run([broken()], lambda _, b: found.append(b))
    assert pairs(found) == [(0, 0), (5, 5)]  # no end, so no last window


def test_metrics_count_rows_of_every_stage(way):
    plan = pipeline(stage("repeat", Way.ANY, last=False), stage("running"))
    with Engine(plan, **way) as engine:
        engine.run([iter(cut([(1, 3, n) for n in range(100)], 10))], lambda _, b: None)
        numbers = engine.metrics()
    assert numbers.rows == (100,)
    assert [(m.rows_in, m.rows_out) for m in numbers.stages] == [(100, 300), (300, 300)]
    assert numbers.sinks == (300,)
    assert all(m.busy_ns > 0 and m.items > 0 and m.queued == 0 for m in numbers.stages)


@pytest.mark.parametrize("runs", [Way.LOOP, Way.LANES])
def test_state_that_outgrows_the_limit_stops_the_run_and_names_the_stage(way, runs):
    rows = [(n % 8, n, n) for n in range(6000)]
    plan = pipeline(stage("passthrough", last=False), stage("keeps", runs))
    options = {"batch_rows": 10, "memory_limit": 60_000, **way}
    _, failure = run(plan, cut(rows, 100), **options)
    assert (failure.code, failure.stage, failure.site) == (ErrorCode.LIMIT, 1, -1)
    assert run(plan, cut(rows[:200], 100), **options)[1] is None


def test_the_limit_is_for_all_stages_together(way):
    rows = [(n % 8, n, n) for n in range(3000)]
    one = pipeline(stage("passthrough", last=False), stage("keeps"))
    two = pipeline(stage("keeps_and_passes", last=False), stage("keeps"))
    with Engine(one, batch_rows=10, **way) as engine:
        engine.run([iter(cut(rows, 100))], lambda _, b: None)
        held = sum(m.state_bytes for m in engine.metrics().stages)
    options = {"batch_rows": 10, "memory_limit": held * 3 // 2, **way}
    assert run(one, cut(rows, 100), **options)[1] is None
    _, failure = run(two, cut(rows, 100), **options)
    assert failure.code == ErrorCode.LIMIT
    assert failure.held_bytes > failure.limit_bytes == held * 3 // 2


def test_state_bytes_are_told():
    with Engine(pipeline(stage("keeps"))) as engine:
        engine.push(0, batch([(n, n, n) for n in range(100)]))
        engine.drain()
        (told,) = engine.metrics().stages
    assert told.state_bytes >= 256 * 32
