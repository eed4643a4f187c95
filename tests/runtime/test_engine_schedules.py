"""Whole small pipelines in random schedules of several workers, every access to memory watched for races."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from cases import Prepared, spread_out
from engine_kernels import batch, pipeline, stage
from interleave import explore, wander

from cq.records import fields, replace
from cq.runtime.base.host import InterpretedHost
from cq.runtime.base.simulation import Memory
from cq.runtime.engine import stage as s
from cq.runtime.engine.build import build, close
from cq.runtime.engine.ways import parts as q
from cq.runtime.flow import admission_words as m
from cq.runtime.flow.arrow import lend
from cq.runtime.flow.batch import ITEM_STAGE
from cq.runtime.flow.lists import array_of_lists
from cq.runtime.flow.parcel import PARCEL_PORT
from cq.runtime.layout.abi import OUT_WORDS, PORT_COLUMNS, PORT_ROWS
from cq.ways import Way

STEPS = 40  # looks for work of each worker in a schedule; what is left is done by one worker at the end


class Run:
    """A pipeline over rows that are all pushed, as `wander` sets it up: built in the memory that is watched.

    rows: a record batch, or tuples (k, v, t), of the first source.  others: record batches of the other ones.
    """

    def __init__(self, plan, rows, workers, batch_rows, others=()):
        self.plan, self.workers, self.batch_rows = plan, workers, batch_rows
        self.rows = [rows if isinstance(rows, pa.RecordBatch) else batch(rows), *others]

    def setup(self):
        host = InterpretedHost()
        assert Memory.current is not None
        host.memory = Memory.current
        host._active._memory = Memory.current
        plant = build(host, self.plan, self.workers, self.batch_rows, 0)
        loans = [lend(host, rows, storages) for rows, storages in zip(self.rows, plant.storages, strict=True)]
        for source, loan in zip(plant.sources, loans, strict=True):
            ring = host.word(source, m.SOURCE_RING)
            host.function("ring_push")(ring, loan)
            host.function("ring_push")(ring, m.END_OF_SOURCE)
        return host, plant, loans

    def worker(self, number):
        def work(shared):
            host, plant, _ = shared
            work_once = host.function("work_once")
            for _step in range(STEPS):
                work_once(plant.engine, number)

        return work

    def result(self, shared):
        """(rows of the sink, serial of the failure or None), after one worker has done the rest."""
        host, plant, loans = shared
        host.function("run_inline")(plant.engine, 10_000)
        outcome = host.word(plant.engine, s.ENGINE_OUTCOME)
        assert outcome != s.RUNNING
        failed = None
        if outcome != s.FINISHED:
            failed = host.word(host.word(outcome, ITEM_STAGE), s.STAGE_ERROR + s.ERROR_SERIAL)
        found = []
        ring = host.word(plant.sinks[0], s.SINK_RING)
        while (parcel := host.function("ring_pop")(ring)) != 0:
            port = parcel + PARCEL_PORT * 8
            count, columns = host.word(port, PORT_ROWS), host.word(port, PORT_COLUMNS)
            a, b = (
                struct.unpack(f"<{count}q", host.read(host.word(columns, n * OUT_WORDS), 8 * count)) for n in (0, 1)
            )
            found += zip(a, b, strict=True)
            host.function("parcel_return")(parcel)
        if failed is None:
            assert set(locks_of_parts(host, plant)) <= {q.FREE}, "a part nobody can fill any more"
        close(
            replace(plant, **{f.name: list(v) for f in fields(plant) if isinstance(v := getattr(plant, f.name), list)})
        )
        for loan in loans:
            host.function("loan_return")(loan)
        return found, failed


def locks_of_parts(host, plant):
    """The lock of each part that workers fill apart."""
    for spec, address in zip(plant.pipeline.stages, plant.stages, strict=True):
        partials = host.word(address, s.STAGE_OWN)
        for number in range(host.word(partials, q.PARTIALS_COUNT) if spec.way.traits.hands_over else 0):
            yield host.word(partials, q.PARTIALS_PARTS + number * q.PART_WORDS + q.PART_LOCK)


def in_every_schedule(plan, rows, *, batch_rows, workers=2, runs=25, others=()):
    with Memory():
        alone = Run(plan, rows, 1, batch_rows, others)
        expected = alone.result(alone.setup())
    case = Run(plan, rows, workers, batch_rows, others)

    def check(shared, _):
        assert case.result(shared) == expected

    wander(case.setup, [case.worker(n) for n in range(workers)], check, runs=runs, depth=6)
    return expected


ROWS = [(n % 3, n % 2, n * 10) for n in range(9)]


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param((stage("running"),), id="single"),
        pytest.param((stage("passthrough", Way.ANY),), id="shared"),
        pytest.param((stage("repeat", Way.ANY, last=False), stage("running")), id="shared, single"),
        pytest.param((stage("running", Way.LANES),), id="lanes"),
        pytest.param((stage("groups", Way.LANES),), id="lanes, closing"),
        pytest.param(
            (stage("running", Way.LANES, last=False), stage("groups", Way.LANES)),
            id="lanes, lanes",
        ),
        pytest.param((stage("running", Way.LANES, last=False), stage("windows")), id="lanes, single"),
    ],
)
@pytest.mark.one_in(2)
def test_every_schedule_gives_the_rows_of_one_worker(stages):
    found, failed = in_every_schedule(pipeline(*stages, grid_us=40), ROWS, batch_rows=3)
    assert failed is None
    assert found


def test_splits_that_are_used_again_keep_their_tickets():
    """More tickets than splits: one a row."""
    found, failed = in_every_schedule(pipeline(stage("running", Way.LANES)), ROWS, batch_rows=1, runs=60)
    assert failed is None and len(found) == len(ROWS)


@pytest.mark.parametrize("runs", [Way.ANY, Way.LANES])
def test_every_schedule_tells_the_first_failure(runs):
    rows = [(n % 3, -1 if n in {4, 7} else n, n) for n in range(9)]
    found, failed = in_every_schedule(pipeline(stage("strict", runs)), rows, batch_rows=2)
    assert (len(found), failed) == (4, 4)


def test_a_limit_ends_every_schedule_alike():
    found, failed = in_every_schedule(pipeline(stage("passthrough", Way.ANY, limit=4)), ROWS, batch_rows=2)
    assert (len(found), failed) == (4, None)


WAITING = """CREATE STREAM s (k VARCHAR, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND);
CREATE VIEW u AS SELECT {key} AS k, v, ts FROM s{pieces};
SELECT v, n FROM (SELECT k, v, ts, COUNT(*) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n,
                         LAG(v) OVER (PARTITION BY k ORDER BY ts) AS p FROM u)
QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) > 0;"""


@pytest.mark.parametrize(
    ("key", "pieces", "runs"),
    [
        pytest.param("k", "", [Way.LANES], id="lanes"),
        pytest.param("w", ", UNNEST(SPLIT(s.k, ' ')) AS x(w)", [Way.ANY, Way.LANES], id="chain"),
    ],
)
def test_rows_that_wait_leave_alike_in_every_schedule(key, pieces, runs):
    # watermark       -    -    1    -    2    5    -    9: lanes learn of it from each other's rows
    rows = [("a", 1), ("b", 2), ("a c", 4), ("b", 3), ("c", 5), ("a", 8), ("b a", 6), ("c", 12)]
    compiled = Prepared(WAITING.format(key=key, pieces=pieces)).compiled
    with spread_out():
        (plan,), (alone,) = (compiled.for_workers(n).after("emit") for n in (2, 1))
    assert [s.way for s in plan.stages] == runs and plan.watermarks and len(alone.stages) == 1
    columns = {"k": [k for k, _ in rows], "v": list(range(8)), "ts": [t * 1_000_000 for _, t in rows]}

    def given(pipeline):
        return pa.RecordBatch.from_pydict({c.name: columns[c.name] for c in pipeline.sources[0].columns})

    found, failed = in_every_schedule(plan, given(plan), batch_rows=3, runs=12)
    assert failed is None
    assert found == in_every_schedule(alone, given(alone), batch_rows=100, runs=1)[0]
    assert len(found) == sum(len(k.split()) if pieces else 1 for k, _ in rows)


PROBES = """CREATE STREAM c (id BIGINT NOT NULL, weight BIGINT NOT NULL);
CREATE STREAM o (customer BIGINT NOT NULL, price BIGINT NOT NULL);
{query};"""
ITEMS, ORDERS = [(n % 4, n) for n in range(7)], [(n % 5, n) for n in range(12)]


def probed(query):
    """A plan of this query for two workers, and its inputs: all items, then all orders."""
    (plan,) = Prepared(PROBES.format(query=query)).compiled.for_workers(2).after("emit")
    assert [s.way for s in plan.stages] == [Way.SHARED] and [s.name for s in plan.sources] == ["c", "o"]
    columns = dict(zip(("id", "weight"), zip(*ITEMS, strict=True), strict=True))
    columns |= dict(zip(("customer", "price"), zip(*ORDERS, strict=True), strict=True))
    first, second = (
        pa.RecordBatch.from_pydict({c.name: list(columns[c.name]) for c in source.columns}) for source in plan.sources
    )
    return plan, first, second


def probed_in_every_schedule(query, **options):
    plan, first, second = probed(query)
    return in_every_schedule(plan, first, others=(second,), runs=40, **options)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("batch_rows", [2, 5])  # the last item is alone in a ticket, or beside the first orders
def test_shared_probes_give_the_rows_of_one_loop_in_every_schedule(batch_rows, workers):
    query = "SELECT price, weight FROM o JOIN c ON customer = id"
    found, failed = probed_in_every_schedule(query, batch_rows=batch_rows, workers=workers)
    assert failed is None
    assert found == [(p, w) for c, p in ORDERS for i, w in ITEMS if c == i]


@pytest.mark.parametrize("batch_rows", [2, 8])  # of 8: one order comes with all items, and its row waits for company
@pytest.mark.parametrize(
    "condition", ["customer IN (SELECT id FROM c)", "EXISTS (SELECT 1 FROM c WHERE id = customer AND weight > -price)"]
)
def test_shared_probes_give_rows_with_a_match_in_every_schedule(condition, batch_rows):
    query = f"SELECT customer, price FROM o WHERE {condition}"
    found, failed = probed_in_every_schedule(query, batch_rows=batch_rows)
    assert failed is None
    assert found == [(c, p) for c, p in ORDERS if any(c == i for i, w in ITEMS if "weight" not in condition or w > -p)]


class AtTheHandOver(Run):
    """All items are kept, three orders wait, and the first of them is about to be handed over."""

    def setup(self):
        host, plant, loans = super().setup()
        admit, serve = host.function("admit"), host.function("serve_shared")
        assert admit(plant.admission, len(ITEMS)) == serve(plant.stages[0], 0) == len(ITEMS)
        assert admit(plant.admission, 3) == 3
        return host, plant, loans

    def worker(self, number):
        def work(shared):
            host, plant, _ = shared
            for _visit in range(2):
                host.function("serve_shared")(plant.stages[0], number)

        return work


def test_shared_probes_are_handed_over_in_every_schedule():
    """With one preemption, wherever it is."""
    plan, first, second = probed("SELECT price, weight FROM o JOIN c ON customer = id")
    case = AtTheHandOver(plan, first, 2, 1, (second,))

    def check(shared, _):
        assert case.result(shared) == ([(p, w) for c, p in ORDERS for i, w in ITEMS if c == i], None)

    assert explore(case.setup, [case.worker(0), case.worker(1)], check, preemptions=1).complete


def test_shared_probes_tell_the_first_failure_in_every_schedule():
    query = "SELECT price, weight FROM o JOIN c ON customer = id AND 12 / (price - 7) < 100"
    found, failed = probed_in_every_schedule(query, batch_rows=2)
    assert failed == len(ITEMS) + 7
    assert found == [(p, w) for c, p in ORDERS for i, w in ITEMS if c == i and p < 7]


MOVES = """SET transactions = 'chains';
CREATE STREAM s (a BIGINT NOT NULL, b BIGINT NOT NULL, x BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
INSERT INTO t VALUES (0, 5), (1, 5);
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n + new.x WHERE k = new.b;
  UPDATE t SET n = n - new.x WHERE k = new.a;
END;
SELECT a, x FROM moved;"""


@pytest.mark.parametrize("batch_rows", [2, 5])
@pytest.mark.one_in(2)
def test_every_schedule_of_chains_gives_the_rows_of_one_loop(batch_rows):
    #        from, to, what: the second and the last but one have not enough
    rows = [(0, 1, 3), (0, 1, 3), (1, 0, 6), (1, 1, 9), (0, 1, 4), (1, 0, 2), (0, 0, 5), (1, 0, 6), (0, 1, 1)]
    compiled = Prepared(MOVES).compiled
    (plan,) = compiled.for_workers(2).after("emit")
    assert [s.way for s in plan.stages] == [Way.CHAINS]
    columns = {name: [r[n] for r in rows] for n, name in enumerate("abx")} | {"ts": list(range(9))}
    given = pa.RecordBatch.from_pydict({c.name: columns[c.name] for c in plan.sources[0].columns})
    found, failed = in_every_schedule(plan, given, batch_rows=batch_rows, runs=40)
    assert failed is None
    left, expected = [5, 5], []
    for a, b, x in rows:  # 0 and 1 change hands
        if left[a] >= x or a == b:
            left[a] -= x
            left[b] += x
            expected.append((a, x))
    assert found == expected and len(found) < len(rows)


TEXTS = """SET transactions = 'chains';
CREATE STREAM s (a VARCHAR NOT NULL, b VARCHAR NOT NULL, x BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k VARCHAR PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0), seen VARCHAR);
INSERT INTO t VALUES ('the account of ada', 5, ''), ('the account of bob', 5, '');
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n + new.x, seen = seen || '+' WHERE k = new.b;
  UPDATE t SET n = n - new.x, seen = seen || '-' WHERE k = new.a;
  SELECT new.x, CAST(2 * LENGTH(seen) + CASE WHEN seen LIKE '%-+-' THEN 1 ELSE 0 END AS BIGINT) AS told
    FROM t WHERE k = new.a;
END;
SELECT x, told FROM moved;"""


@pytest.mark.parametrize("batch_rows", [2, 5])
@pytest.mark.one_in(2)
def test_every_schedule_of_chains_gives_it_for_keys_and_columns_of_texts(batch_rows):
    owners = ("the account of ada", "the account of bob")
    rows = [(0, 1, 3), (0, 1, 3), (1, 0, 6), (1, 1, 9), (0, 1, 4), (1, 0, 2), (0, 0, 5), (1, 0, 6), (0, 1, 1)]
    (plan,) = Prepared(TEXTS).compiled.for_workers(2).after("emit")
    assert [s.way for s in plan.stages] == [Way.CHAINS]
    columns = {"a": [owners[a] for a, _, _ in rows], "b": [owners[b] for _, b, _ in rows]}
    columns |= {"x": [x for _, _, x in rows], "ts": list(range(len(rows)))}
    given = pa.RecordBatch.from_pydict({c.name: columns[c.name] for c in plan.sources[0].columns})
    found, failed = in_every_schedule(plan, given, batch_rows=batch_rows, runs=40)
    assert failed is None
    left, seen, expected = [5, 5], ["", ""], []
    for a, b, x in rows:
        if left[a] >= x or a == b:
            left[a], left[b] = (left[a], left[b]) if a == b else (left[a] - x, left[b] + x)
            seen[b] += "+"
            seen[a] += "-"
            expected.append((x, 2 * len(seen[a]) + seen[a].endswith("-+-")))
    assert found == expected and len(found) < len(rows)


NAMED = """SET transactions = 'chains';
CREATE STREAM s (a BIGINT NOT NULL, d BIGINT ARRAY NOT NULL, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
INSERT INTO t VALUES (0, 3), (1, 3), (2, 3);
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n - 1 FROM UNNEST(new.d) AS u(k) WHERE t.k = u.k;
  UPDATE t SET n = n + 1 WHERE k = new.a;
  SELECT new.a, SUM(n) FROM t, UNNEST(new.d) AS u(k) WHERE t.k = u.k;
END;
SELECT * FROM moved;"""


@pytest.mark.parametrize("batch_rows", [3, 6])
@pytest.mark.one_in(2)
def test_every_schedule_of_chains_gives_it_for_rows_that_arrays_name(batch_rows):
    #        to, from: a row twice, to itself, one that has not enough when another was taken, no row, one that is none
    rows = [(0, [1, 2, 1]), (1, [0, 2, 2]), (0, [0, 1, 1]), (1, [0, 1, 0]), (2, []), (2, [0, 7]), (0, [2, 0, 2])]
    (plan,) = Prepared(NAMED).compiled.for_workers(2).after("emit")
    assert [s.way for s in plan.stages] == [Way.CHAINS]
    columns = {"a": pa.array([a for a, _ in rows]), "d": array_of_lists(pa.array([d for _, d in rows]))}
    columns["ts"] = pa.array(range(len(rows)))
    given = pa.RecordBatch.from_pydict({c.name: columns[c.name] for c in plan.sources[0].columns})
    found, failed = in_every_schedule(plan, given, batch_rows=batch_rows, runs=40)
    assert failed is None
    left, expected = {0: 3, 1: 3, 2: 3}, []
    for a, taken in rows:
        new = dict(left)
        for k in taken:
            if k in new:
                new[k] -= 1
        if min(new.values()) >= 0:
            new[a] += 1
            left = new
            expected.append((a, sum(left.get(k, 0) for k in taken)))
    assert found == expected and len(found) < len(rows)
