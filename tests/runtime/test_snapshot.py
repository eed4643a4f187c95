"""A paused run goes on with another number of workers: 1, then 4, then 1 again, by every operator with state."""

from __future__ import annotations

import random
from itertools import chain
from unittest.mock import patch

import pyarrow as pa
import pytest

import cq
from cq.compiler.passes import compile
from cq.planner.physical import chain as chains
from cq.planner.physical import choose
from cq.planner.plan.node import OpClass
from cq.planner.plan.registration import OPERATORS
from cq.records import replace
from cq.runtime.containers.state import OutOfMemory
from cq.runtime.engine import engine as engines
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.snapshot import SnapshotMismatch, put_snapshot
from cq.runtime.engine.ways import partial
from cq.ways import Way

STREAM = """
CREATE STREAM s (k VARCHAR, v BIGINT NOT NULL, t BIGINT NOT NULL,
  ts TIMESTAMP AS TIMESTAMP_MICROS(t), WATERMARK FOR ts AS ts - INTERVAL '0.000009' SECOND);
"""
UNORDERED = STREAM.replace("t BIGINT", "w BIGINT").replace("(t)", "(w)").replace("0.000009", "0.00009")
TUMBLE = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00004' SECOND)"
PARTITION = "OVER (PARTITION BY k ORDER BY ts"
OVER = PARTITION + " ROWS UNBOUNDED PRECEDING)"
SESSION = "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.00005' SECOND)"
GROUPED = f"FROM {TUMBLE} GROUP BY window_start, window_end, k;"
LATEST = f"CREATE VIEW w AS SELECT window_start, window_end, k, COUNT(DISTINCT v) AS n {GROUPED}\n"
JOIN = "LEFT JOIN w FOR SYSTEM_TIME AS OF s.ts ON s.k = w.k;"
NEAR = "a.k = b.k AND b.ts BETWEEN a.ts + INTERVAL '0.000003' SECOND AND a.ts + INTERVAL '0.00002' SECOND"
LONGER = TUMBLE.replace("0.00004", "0.0001")
TOGETHER = "a.window_end = b.window_end AND a.k = b.k AND b.v > a.v"
TABLES = """CREATE TABLE seen (k VARCHAR PRIMARY KEY, n BIGINT NOT NULL, last VARCHAR);
INSERT INTO seen VALUES ('a key that is there from the beginning', 3, NULL);
CREATE TRIGGER count AFTER INSERT ON s BEGIN
  IF EXISTS (SELECT 1 FROM seen WHERE k = new.k AND n > 5) THEN DELETE FROM seen WHERE k = new.k; END IF;
  INSERT INTO seen VALUES (COALESCE(new.k, ''), 1, new.k)
    ON CONFLICT DO UPDATE SET n = n + 1, last = excluded.last || CAST(n AS VARCHAR);
  SELECT k, n, last FROM seen WHERE k = new.k;
END;
"""
QUERIES = {
    "window": STREAM + f"SELECT k, COUNT(DISTINCT v) AS n, MIN(k) AS m {GROUPED}",
    "window of sets": STREAM
    + f"SELECT v, COUNT(DISTINCT SUBSTRING(k, 1, 5)) AS n FROM {TUMBLE.replace('0.00004', '0.0001')}"
    " GROUP BY window_start, window_end, v;",
    "session": STREAM
    + f"SELECT k, window_end, SUM(v) AS n, MAX(k) AS m FROM {SESSION} GROUP BY window_start, window_end, k;",
    "over": STREAM + f"SELECT k, SUM(v) {OVER} AS total, LAG(k) {PARTITION}) AS before FROM s;",
    "temporal join": STREAM + LATEST + f"SELECT s.k, v, n FROM s {JOIN}",
    "interval join": STREAM + f"SELECT a.k, a.v, b.v AS w FROM s AS a JOIN s AS b ON {NEAR};",
    "interval left join": STREAM + f"SELECT a.k, b.k AS l, a.v FROM s AS a LEFT JOIN s AS b ON {NEAR} AND b.v > a.v;",
    "asof join ahead": STREAM
    + "SELECT a.k, a.v, b.t, b.k AS l FROM s AS a ASOF LEFT JOIN s AS b ON a.v = b.v AND a.ts < b.ts"
    " AND b.ts - a.ts < INTERVAL '0.00002' SECOND;",
    "full join": STREAM
    + "SELECT a.k, a.v, b.v AS w, b.k AS l FROM s AS a FULL JOIN s AS b ON a.k = b.k AND b.v > a.v + 3;",
    "sort": STREAM + "SELECT k, v, t FROM s ORDER BY v DESC, k LIMIT 40 OFFSET 3;",
    "sort within": STREAM
    + "SELECT k, t FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY v ORDER BY k DESC NULLS FIRST, t) <= 4;",
    "first rows of windows": STREAM + "SELECT k, v, t FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00004' SECOND)"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY v DESC) <= 2;",
    "sort of windows": STREAM + LATEST + "SELECT k, n, RANK() OVER (PARTITION BY window_end ORDER BY n) AS r FROM w;",
    "semi join": STREAM + "SELECT k, v FROM s AS a WHERE EXISTS (SELECT 1 FROM s WHERE s.k = a.k AND s.v = a.v + 1);",
    "anti join": STREAM + "SELECT k, v FROM s AS a WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = a.k AND s.v < a.v);",
    "semi join by time": STREAM + f"SELECT a.k, a.v FROM s AS a SEMI JOIN s AS b ON {NEAR} AND b.v > a.v;",
    "anti join by time": STREAM + f"SELECT a.k, a.v, a.t FROM s AS a ANTI JOIN s AS b ON {NEAR} AND b.v > a.v;",
    "semi join in windows": STREAM + f"SELECT a.k, a.v FROM {LONGER} AS a SEMI JOIN {LONGER} AS b ON {TOGETHER};",
    "anti join in windows": STREAM + f"SELECT a.k, a.v FROM {LONGER} AS a ANTI JOIN {LONGER} AS b ON {TOGETHER};",
    "trigger": STREAM + TABLES + "SELECT * FROM count;",
    "trigger, its tables": STREAM + TABLES + "SELECT * FROM seen;",
    "frames of rows": STREAM
    + f"SELECT k, v, SUM(v) {PARTITION} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS near, MAX(k) {PARTITION}"
    " ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS before FROM s;",
    "frames of times": STREAM
    + f"SELECT k, v, COUNT(*) {PARTITION} RANGE BETWEEN INTERVAL '0.00003' SECOND PRECEDING AND CURRENT ROW) AS n,"
    f" MIN(k) {PARTITION} RANGE BETWEEN INTERVAL '0.00003' SECOND PRECEDING AND CURRENT ROW) AS m FROM s;",
    "frames of rows that come later": STREAM
    + "SELECT k, v, SUM(v) OVER (PARTITION BY v ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS near FROM s;",
    "frames of whole partitions": STREAM
    + "SELECT k, v, SUM(t) OVER (PARTITION BY v ORDER BY k ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS near FROM s;",
    "session rows": STREAM + f"SELECT k, v, t, window_start, window_end FROM {SESSION};",
    "aggregate": STREAM + "SELECT k, COUNT(DISTINCT v) AS n, SUM(v) AS total FROM s GROUP BY k;",
}
IN_ONE_LOOP = {
    "sort",
    "sort within",
    "first rows of windows",
    "trigger",
    "trigger, its tables",
    "frames of rows that come later",
}
CUMULATE = "CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00002' SECOND, INTERVAL '0.0001' SECOND)"
GROWING = STREAM + f"SELECT k, window_end, SUM(v) AS total FROM {CUMULATE} GROUP BY window_start, window_end, k;"
MERGED = STREAM + f"SELECT k, COUNT(*) AS n, SUM(v) AS total {GROUPED}"
Rows = list[tuple[object, ...]]
COUNT = 240
STEPS = (70, 150)  # rows after which the run is paused


def rows() -> dict[str, list[object]]:
    dice = random.Random(5)
    names = [None, "", "a", "a key of more than twelve bytes", "another key of more than twelve"]
    names += [f"key {n}" for n in range(30)]
    return {
        "k": [dice.choice(names) for _ in range(COUNT)],
        "v": [dice.randrange(6) for _ in range(COUNT)],
        "t": [2 * n + dice.randrange(12) for n in range(COUNT)],
        "w": [2 * n + dice.randrange(90) for n in range(COUNT)],
    }


def batches_of(pipeline) -> list[pa.RecordBatch]:
    """For each source its columns, as the pipeline reads them."""
    kinds = {"k": pa.string(), "v": pa.int64(), "t": pa.int64(), "w": pa.int64()}
    made = []
    for source in pipeline.sources:
        names = [c.name for c in source.columns]
        made.append(pa.record_batch([pa.array(rows()[n], kinds[n]) for n in names], names))
    return made


def pipeline_of(text: str, workers: int, functions=()):
    (pipeline,) = compile(text, functions=functions).for_workers(workers).after("emit")
    return pipeline


def run_in_steps(pipeline, workers: tuple[int, ...], batch_rows: int) -> list[Rows]:
    """As `run_plans`; each part has its number of workers."""
    return run_plans([(pipeline, threads) for threads in workers], batch_rows)


def run_plans(parts, batch_rows: int, interpreted: bool = False) -> list[Rows]:
    """The rows that each part of a run gives, which is paused after STEPS rows of each source.

    parts: pipeline and number of workers of each.
    """
    given: list[Rows] = []
    snapshot = None
    for (pipeline, threads), until in zip(parts, (*STEPS, COUNT), strict=True):
        batches = batches_of(pipeline)
        options = {"threads": threads, "batch_rows": batch_rows, "interpreted": interpreted}
        found: list[pa.RecordBatch] = []
        with Engine(pipeline, **options, snapshot=snapshot) as engine:
            taken = snapshot.rows if snapshot else (0,) * len(batches)
            if until == COUNT:
                rest = [iter([b.slice(n)]) for b, n in zip(batches, taken, strict=True)]
                engine.run(rest, lambda _, b, found=found: found.append(b))
            else:
                for number, batch in enumerate(batches):
                    engine.push(number, batch.slice(taken[number], until - taken[number]))
                found += [b for _, b in engine.drain()]
                snapshot = engine.pause()
                assert snapshot.rows == (until,) * len(batches)
                found += [b for _, b in engine.drain()]
        given.append(rows_in(found))
    assert sum(map(len, given)) > 20
    return given


def rows_in(batches: list[pa.RecordBatch]) -> Rows:
    return [row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True)]


def with_state() -> list[str]:
    """The operators of queries that keep something."""
    ours = ((n, c) for n, c in OPERATORS.items() if c.__module__.startswith("cq.planner.operators."))
    return sorted(name for name, c in ours if c.op_class is not OpClass.STATELESS)


@pytest.mark.parametrize("operator", with_state())
def test_every_operator_with_state_has_a_case(operator):
    """A new operator fails here, by its name, until a query above has it."""
    plans = (compile(text).after("bind").plan for text in QUERIES.values())
    assert any(n.operator == operator for plan in plans for n in plan.nodes())


@pytest.mark.parametrize("batch_rows", [5, 64])
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.one_in(3, each="name")
def test_lanes_go_on_with_another_number_of_workers(name, batch_rows, monkeypatch):
    monkeypatch.setattr(choose, "ROUTED_FROM_NS", 0)
    alone = run_in_steps(pipeline_of(QUERIES[name], 1), (1, 1, 1), 1000)
    pipeline = pipeline_of(QUERIES[name], 4)
    assert (pipeline.stages[-1].way is Way.LANES) == (name not in IN_ONE_LOOP)
    for workers in ((1, 4, 1), (4, 1, 2), (0, 3, 0)):
        assert run_in_steps(pipeline, workers, batch_rows) == alone


@pytest.mark.parametrize("name", QUERIES)
def test_a_stage_that_takes_one_worker_goes_on_with_more_around_it(name):
    pipeline = pipeline_of(QUERIES[name], 1)
    assert run_in_steps(pipeline, (1, 4, 1), 7) == run_in_steps(pipeline, (1, 1, 1), 1000)


@pytest.mark.parametrize("workers", [(1, 4, 1), (4, 1, 2), (0, 3, 0)])
@pytest.mark.parametrize(
    "text", [MERGED, QUERIES["sort"], QUERIES["first rows of windows"]], ids=["groups", "all", "windows"]
)
def test_panes_of_workers_go_on_with_another_number_of_them(text, workers, monkeypatch):
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 0)
    monkeypatch.setattr(choose, "CALLS_COMPARED_APART", 0)
    alone = run_in_steps(pipeline_of(text, 1), (1, 1, 1), 1000)
    pipeline = pipeline_of(text, 4)
    assert pipeline.stages[0].way is Way.PARTIAL
    assert run_in_steps(pipeline, workers, 5) == alone


def test_what_a_worker_that_is_no_more_has_filled_is_collected(monkeypatch):
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 0)
    pipeline, found = pipeline_of(MERGED, 4), []
    (batch,) = batches_of(pipeline)
    with Engine(pipeline, threads=3) as engine:
        empty = engine.pause().states[0][0]
    with Engine(pipeline, threads=1, batch_rows=5) as engine:
        engine.push(0, batch.slice(0, 100))
        found += [b for _, b in engine.drain()]
        paused = engine.pause()
    moved = replace(paused, states=((empty, empty, *paused.states[0]), *paused.states[1:]))
    with Engine(pipeline, threads=1, batch_rows=5, snapshot=moved) as engine:
        engine.run([iter([batch.slice(paused.rows[0])])], lambda _, b: found.append(b))
    assert rows_in(found) == list(chain.from_iterable(run_in_steps(pipeline_of(MERGED, 1), (1, 1, 1), 1000)))


CHAINED = {
    "over by a part of the key": STREAM
    + f"SELECT k, v, SUM(v) OVER (PARTITION BY k, v ORDER BY ts ROWS UNBOUNDED PRECEDING)"
    f" AS total, LAG(v) {PARTITION}) AS before FROM s;",
    "rows of two keys meet in a join by one": STREAM
    + f"CREATE VIEW a AS SELECT k, v, ts, LAG(v) {PARTITION}) AS before FROM s;\n"
    "CREATE VIEW b AS SELECT k, v, ts, COUNT(k) OVER (PARTITION BY v ROWS UNBOUNDED PRECEDING) AS n FROM s;\n"
    "SELECT a.k, a.v, a.before, b.n FROM a JOIN b ON a.v = b.v"
    " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '0.000009' SECOND;",
    # the pieces of a row have one time and one arrival number; in the heap, where most wait, they do not lie in order
    "pieces of a row wait together": UNORDERED
    + "SELECT v, piece, LAG(piece) OVER (PARTITION BY v ORDER BY ts) AS before"
    " FROM s, UNNEST(SPLIT(k, ' ')) AS u(piece);",
    "windows over rows numbered by another key": STREAM
    + f"CREATE VIEW n AS SELECT k, v, ts, LAG(v) {PARTITION}) AS before FROM s;\n"
    "SELECT v, window_end, COUNT(*) AS n, SUM(before) AS total"
    " FROM TUMBLE(TABLE n, DESCRIPTOR(ts), INTERVAL '0.00004' SECOND) GROUP BY v, window_start, window_end;",
}


def test_rejected_events_are_counted_on_in_another_plan():
    text = STREAM + (
        "CREATE TABLE seen (k VARCHAR PRIMARY KEY);\n"
        "CREATE TRIGGER put AFTER INSERT ON s INSERT INTO seen VALUES (new.k); SELECT * FROM put;"
    )
    schemes = [pipeline_of(f"SET transactions = '{scheme}';{text}", 2) for scheme in ("serial", "chains", "serial")]
    snapshot, counted = None, []
    for pipeline, until in zip(schemes, (*STEPS, COUNT), strict=True):
        (batch,) = batches_of(pipeline)
        before = snapshot.rows[0] if snapshot else 0
        with Engine(pipeline, threads=2, batch_rows=5, snapshot=snapshot) as engine:
            engine.push(0, batch.slice(before, until - before))
            engine.drain()
            counted.append(dict(engine.metrics().rejected_events)["put"])
            snapshot = engine.pause()
    keys = rows()["k"]
    assert counted == [n - len({*keys[:n]} - {None}) for n in (*STEPS, COUNT)]


def plans_of(text: str, monkeypatch, functions=()) -> list[tuple[object, int]]:
    """A loop, and what else there is for several workers: lanes of two numbers, a chain, panes."""
    plans = [(pipeline_of(text, 1, functions), 1)]
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 0)
    monkeypatch.setattr(choose, "ROUTED_FROM_NS", 0)
    monkeypatch.setattr(choose, "CALLS_APART", 0)
    monkeypatch.setattr(chains, "GAIN", 0.0)
    return [*plans, (pipeline_of(text, 4, functions), 4), (pipeline_of(text, 2, functions), 2)]


ALL = [*QUERIES, *CHAINED, "merged", "growing"]
WAYS = [
    *(pytest.param(name, True, id=f"{name}-interpreted") for name in ALL),
    *(pytest.param(n, False, id=f"{n}-compiled", marks=[pytest.mark.long] * (i % 2)) for i, n in enumerate(ALL)),
]


@pytest.mark.parametrize(("name", "interpreted"), WAYS)
@pytest.mark.one_in(3, each="name")
def test_a_snapshot_of_one_plan_goes_on_in_another(name, interpreted, monkeypatch):
    text = {**QUERIES, **CHAINED, "merged": MERGED, "growing": GROWING}[name]
    plans = plans_of(text, monkeypatch)
    if interpreted:
        plans = [(pipeline, 0) for pipeline, _ in plans]
    wanted = run_plans([plans[0]] * 3, 1000, interpreted)
    for order in ((0, 1, 0), (1, 0, 1), (0, 1, 2), (2, 0, 1)):
        for batch_rows in (5, 64):
            assert run_plans([plans[n] for n in order], batch_rows, interpreted) == wanted, (order, batch_rows)


PICKED = (
    STREAM
    + "CREATE VIEW p AS SELECT k, v, ts, piece FROM s, UNNEST(SPLIT(k, ' ')) AS u(piece);\n"
    + f"CREATE VIEW n AS SELECT v, ts, piece, LAG(v) {PARTITION}) AS before FROM p;\n"
    "SELECT v, window_end, FIRST(piece) AS f, LAST(piece) AS l, ARG_MIN(piece, before) AS a, MEDIAN(before) AS m"
    " FROM HOP(TABLE n, DESCRIPTOR(ts), INTERVAL '0.00002' SECOND, INTERVAL '0.00004' SECOND)"
    " GROUP BY v, window_start, window_end;"
)


def test_what_groups_keep_of_rows_by_position_goes_on_in_another_plan(monkeypatch):
    """A loop numbers the pieces of a row below the row's number, a chain counts them."""
    (loop, _), (chain, _), _ = plans_of(PICKED, monkeypatch)
    wanted = run_plans([(loop, 0)] * 3, 1000, True)
    for order in ((loop, chain, loop), (chain, loop, chain)):
        assert run_plans([(pipeline, 0) for pipeline in order], 64, True) == wanted


@cq.udaf
class remembered:
    """Says whether all of the state is there: the order of the rows, and fields of every kind."""

    zero = (7, 0.5, True)

    @staticmethod
    def add(state: tuple[int, float, bool], v: int) -> tuple[int, float, bool]:
        return state[0] * 3 % 1000 + v, state[1] / 2 + v, state[2] ^ (v > 2)

    @staticmethod
    def result(state: tuple[int, float, bool]) -> str:
        return repr(state)


def test_the_state_of_an_aggregate_of_the_user_goes_on_in_another_plan(monkeypatch):
    text = STREAM + f"SELECT k, remembered(v) AS r {GROUPED} SELECT k, remembered(v) {OVER} AS r FROM s;"
    (loop, _), (lanes, _), (others, _) = plans_of(text, monkeypatch, [remembered])
    wanted = run_plans([(loop, 0)] * 3, 1000, True)
    for order in ((loop, lanes, loop), (lanes, loop, others)):
        assert run_plans([(pipeline, 0) for pipeline in order], 64, True) == wanted


def test_a_move_without_memory_leaves_nothing_behind(monkeypatch):
    (loop, _), _, (lanes, _) = plans_of(QUERIES["window"], monkeypatch)
    with Engine(loop, interpreted=True) as engine:
        for number, batch in enumerate(batches_of(loop)):
            engine.push(number, batch.slice(0, STEPS[0]))
        engine.drain()
        snapshot = engine.pause()

    def move(fail_after):
        """The engine that goes on, if it does, and its memory; after so many allocations of the move there is none."""
        hosts = []

        def put(host, plant, snapshot):
            hosts.append((host, host.memory.requests))
            host.memory.fail_at = host.memory.requests + fail_after
            put_snapshot(host, plant, snapshot)

        with patch.object(engines, "put_snapshot", put):
            try:
                made = Engine(lanes, interpreted=True, snapshot=snapshot)
            except (OutOfMemory, SnapshotMismatch):
                made = None
        ((host, before),) = hosts
        return made, host.memory, host.memory.requests - before

    whole, _, asked = move(1 << 40)
    whole.close()
    for fail_after in range(asked):
        made, memory, _ = move(fail_after)
        assert made is None, fail_after
        memory.check_no_leaks()


def test_a_snapshot_that_holds_other_columns_is_refused():
    """What a join keeps depends on which columns are read behind it; its identity does not."""
    view = f"CREATE VIEW x AS SELECT a.k AS k, a.v AS one, a.t AS other FROM s AS a JOIN s AS b ON {NEAR};\n"
    for workers in (1, 4):
        with Engine(pipeline_of(STREAM + view + "SELECT k, one FROM x;", 1)) as engine:
            snapshot = engine.pause()
        with pytest.raises(SnapshotMismatch):
            Engine(pipeline_of(STREAM + view + "SELECT k, other FROM x;", workers), snapshot=snapshot)
        Engine(pipeline_of(STREAM + view + "SELECT k, one AS renamed FROM x;", workers), snapshot=snapshot).close()


def test_a_snapshot_of_another_pipeline_is_refused(monkeypatch):
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 0)
    with Engine(pipeline_of(MERGED, 4), threads=1) as engine:
        snapshot = engine.pause()
    with pytest.raises(SnapshotMismatch):
        Engine(pipeline_of(QUERIES["over"], 1), snapshot=snapshot)
