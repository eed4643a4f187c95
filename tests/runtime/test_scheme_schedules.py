"""Transactions of every scheme in random schedules of several workers, every access to memory watched for races."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cases import Prepared
from interleave import explore, wander
from test_engine_schedules import Run

from cq.runtime.base.ops import release, st_i64, zalloc
from cq.runtime.base.simulation import Memory
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.engine.ways import lock, lock_a, mvlk, requests
from cq.runtime.engine.ways.requests import ask
from cq.runtime.flow.chained import slots_clear
from cq.runtime.layout.chains import (
    ACCESS_DONE,
    ACCESS_IMAGE,
    ACCESS_TAG,
    ACCESS_TRANSACTION,
    TAG_KEY_SHIFT,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
    TRANSACTION_VALUES,
)
from cq.runtime.layout.requests import ORDER_SLOTS, ORDER_WORDS, READS, REQUEST_BYTES, REQUEST_RECORD, WRITES
from cq.ways import UNCHECKED, WAY_OF_SCHEME

ORDERED = [s for s in WAY_OF_SCHEME if s not in {UNCHECKED, "chains"}]  # of chains: test_engine_schedules.py

# what moves writes two rows, or one that it names twice; what looks reads two; both see what is before them
MOVES = """CREATE STREAM s (a BIGINT NOT NULL, b BIGINT NOT NULL, x BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
INSERT INTO t VALUES (0, 5), (1, 5);
CREATE TRIGGER moved AFTER INSERT ON s WHEN (new.x <> 0) BEGIN ATOMIC
  UPDATE t SET n = n + new.x WHERE k = new.b;
  UPDATE t SET n = n - new.x WHERE k = new.a;
  SELECT new.a, n FROM t WHERE k = new.b;
END;
CREATE TRIGGER seen AFTER INSERT ON s WHEN (new.x = 0) BEGIN ATOMIC
  SELECT 10 * new.a + new.b, n * 100 + (SELECT u.n FROM t AS u WHERE u.k = new.a) FROM t WHERE k = new.b;
END;
SELECT * FROM {shown};"""
#        from, to, what, or 0 to look: the second move has not enough
EVENTS = [(0, 1, 3), (0, 1, 3), (0, 1, 0), (1, 0, 0), (1, 0, 6), (1, 1, 9), (1, 1, 0), (0, 1, 4), (1, 0, 2), (0, 0, 5)]
EVENTS += [(1, 0, 0), (1, 0, 3), (0, 1, 1), (0, 1, 0)]


def expected_of(shown: str) -> list[tuple[int, int]]:
    """The rows of the trigger, from a loop over the events."""
    left, found = [5, 5], {"moved": [], "seen": []}
    for a, b, x in EVENTS:
        if x == 0:
            found["seen"].append((10 * a + b, left[b] * 100 + left[a]))
        elif left[a] >= x or (a == b and left[a] - x + x >= 0):
            left[b] += x
            left[a] -= x
            found["moved"].append((a, left[b]))
    return found[shown]


@pytest.fixture
def one_by_one(monkeypatch, request):
    """Shares claim one event at a time, so that many of them meet, and are given back soon."""
    monkeypatch.setattr(requests, "EVENTS_A_CLAIM", 1)
    monkeypatch.setattr(requests, "SPINS", getattr(request, "param", 2))


def planned(scheme, moves=MOVES, key=int, **shown):
    """The plan and its events. key: what row 0 and row 1 are named by."""
    compiled = Prepared(f"SET transactions = '{scheme}';\n{moves.format(**shown)}").compiled
    (plan,) = compiled.for_workers(2).after("emit")
    assert [s.way for s in plan.stages] == [WAY_OF_SCHEME[scheme]]
    columns = {"a": [key(a) for a, _, _ in EVENTS], "b": [key(b) for _, b, _ in EVENTS]}
    columns |= {"x": [x for _, _, x in EVENTS], "ts": list(range(len(EVENTS)))}
    return plan, pa.RecordBatch.from_pydict({c.name: columns[c.name] for c in plan.sources[0].columns})


@pytest.mark.parametrize(("batch_rows", "one_by_one"), [(5, 2), (20, 0)], indirect=["one_by_one"])
@pytest.mark.parametrize("scheme", ORDERED)
@pytest.mark.one_in(2)
def test_every_schedule_of_a_scheme_gives_the_rows_of_one_loop(scheme, batch_rows, one_by_one):
    for shown in ("moved", "seen"):
        plan, given = planned(scheme, shown=shown)
        expected = (expected_of(shown), None)
        with Memory():
            alone = Run(plan, given, 1, batch_rows)
            assert alone.result(alone.setup()) == expected
        case = Run(plan, given, 2, batch_rows)

        def check(shared, _, case=case, expected=expected):
            assert case.result(shared) == expected

        wander(case.setup, [case.worker(0), case.worker(1)], check, runs=24, depth=6)


TEXTS = """CREATE STREAM s (a VARCHAR NOT NULL, b VARCHAR NOT NULL, x BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE t (k VARCHAR PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0), told VARCHAR);
INSERT INTO t VALUES ('the account of ada', 5, ''), ('the account of bob', 5, '');
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n + new.x, told = told || '+' WHERE k = new.b;
  UPDATE t SET n = n - new.x, told = told || '-' WHERE k = new.a;
  SELECT n, CAST(2 * LENGTH(told) + CASE WHEN told LIKE '%-+-' THEN 1 ELSE 0 END AS BIGINT) AS told
    FROM t WHERE k = new.a;
END;
SELECT n, told FROM moved;"""


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("scheme", ORDERED)
def test_every_schedule_of_a_scheme_gives_them_for_keys_and_columns_of_texts(scheme):
    plan, given = planned(scheme, TEXTS, key=("the account of ada", "the account of bob").__getitem__)
    left, told, rows = [5, 5], ["", ""], []
    for a, b, x in EVENTS:
        if left[a] >= x or a == b:
            left[b] += x
            left[a] -= x
            told[b] += "+"
            told[a] += "-"
            rows.append((left[a], 2 * len(told[a]) + told[a].endswith("-+-")))
    assert len(rows) < len(EVENTS)
    case = Run(plan, given, 2, 5)

    def check(shared, _):
        assert case.result(shared) == (rows, None)

    wander(case.setup, [case.worker(0), case.worker(1)], check, runs=12, depth=6)


@pytest.mark.usefixtures("one_by_one")
def test_every_schedule_without_locks_is_safe():
    """What comes out may be wrong, but every event has a row and no access is a race."""
    plan, given = planned(UNCHECKED, shown="seen")
    case = Run(plan, given, 2, 20)

    def check(shared, _):
        found, failed = case.result(shared)
        assert failed is None and [key for key, _ in found] == [key for key, _ in expected_of("seen")]

    wander(case.setup, [case.worker(0), case.worker(1)], check, runs=20, depth=6)


def test_accesses_of_one_row_have_one_record_in_every_schedule():
    """I3 of requests: two workers look for it at once."""

    def setup():
        order = zalloc(8 * ORDER_WORDS)
        assert slots_clear(order + ORDER_SLOTS * 8, 2) == 1
        accesses = [zalloc(REQUEST_BYTES + 8 * (ACCESS_IMAGE + ENTRY_FIRST + 1)) + REQUEST_BYTES for _ in range(2)]
        for access in accesses:
            st_i64(access, ACCESS_TAG, 1 << TAG_KEY_SHIFT | 7)
        return order, *accesses

    def check(shared, records):
        assert records[0] == records[1]
        requests.order_release(shared[0])
        for made in (shared[0], *(access - REQUEST_BYTES for access in shared[1:])):
            release(made)

    threads = [lambda shared, n=n: requests._record_of(shared[0], shared[n]) for n in (1, 2)]
    assert explore(setup, threads, check, preemptions=2).complete


def admitted(module, *transactions):
    """Each of these asks for the row that all of them name, and has its place."""
    order = zalloc(8 * ORDER_WORDS)
    for transaction, access in transactions:
        st_i64(access - REQUEST_BYTES, REQUEST_RECORD, transactions[0][1] - REQUEST_BYTES)
        assert module(order, transaction) == 1
    return order


def asking(mode):
    """A transaction that asks for one row."""
    transaction = zalloc(8 * TRANSACTION_VALUES)
    access = zalloc(REQUEST_BYTES + 8 * ACCESS_IMAGE) + REQUEST_BYTES
    st_i64(transaction, TRANSACTION_ACCESSES, access)
    st_i64(transaction, TRANSACTION_COUNT, 1)
    st_i64(access, ACCESS_TRANSACTION, transaction)
    ask(access, mode)
    return transaction, access


def test_a_writer_waits_for_the_readers_before_it():
    with Memory():
        first, one, other, last = asking(WRITES), asking(READS), asking(READS), asking(WRITES)
        order = admitted(lock.lock_admit, first, one, other, last)
        left, heads = [first, one, other, last], []
        while left:
            heads.append([t for t in left if lock.lock_ready(order, t[0])])
            done = heads[-1][0]
            st_i64(done[1], ACCESS_DONE, 1)
            lock.lock_finish(order, done[0])
            left.remove(done)
        assert heads == [[first], [one, other], [other], [last]]


def test_a_lock_is_held_until_its_transaction_is_done():
    with Memory():
        writer, reader, other, last = asking(WRITES), asking(READS), asking(READS), asking(WRITES)
        order = admitted(lock_a.lock_a_admit, writer)
        for _, access in (reader, other, last):
            st_i64(access - REQUEST_BYTES, REQUEST_RECORD, writer[1] - REQUEST_BYTES)
        assert lock_a.lock_a_admit(order, reader[0]) == 0
        lock_a.lock_a_finish(order, writer[0])
        assert [lock_a.lock_a_admit(order, t[0]) for t in (reader, other, last)] == [1, 1, 0]
        lock_a.lock_a_finish(order, reader[0])
        assert lock_a.lock_a_admit(order, last[0]) == 0
        lock_a.lock_a_finish(order, other[0])
        assert lock_a.lock_a_admit(order, last[0]) == 1


def test_a_version_is_written_before_those_that_read_the_one_before_it_are_done():
    with Memory():
        reader, writer, another = asking(READS), asking(WRITES), asking(READS)
        order = admitted(mvlk.mvlk_admit, reader, writer, another)
        assert [mvlk.mvlk_ready(order, t[0]) for t in (reader, writer, another)] == [1, 1, 0]
