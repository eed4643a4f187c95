"""Panes that several workers fill apart give the rows of one worker, in every schedule; see
cq/runtime/engine/ways/parts.py."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from interleave import explore
from test_engine_schedules import Run, in_every_schedule

from cq.compiler.passes import compile
from cq.planner.physical import choose
from cq.runtime.base.host import InterpretedHost
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory, function_address
from cq.runtime.containers.pane_words import PANE_TABLES
from cq.runtime.containers.panes import panes_attach, panes_drop, panes_groups, panes_new
from cq.runtime.containers.tables import table_insert
from cq.runtime.engine.build import build
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.ways import partial
from cq.runtime.engine.ways import parts as q
from cq.runtime.engine.ways.any_worker import take_ticket
from cq.runtime.engine.ways.deals import deal_ticket
from cq.runtime.layout.abi import NEVER
from cq.ways import Way

STREAM = """
CREATE STREAM s (k BIGINT NOT NULL, v BIGINT NOT NULL, t BIGINT NOT NULL,
  ts TIMESTAMP AS TIMESTAMP_MICROS(t), WATERMARK FOR ts AS ts - INTERVAL '0.000005' SECOND);
"""
TUMBLE = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00002' SECOND)"
HOP = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00001' SECOND, INTERVAL '0.00003' SECOND)"
# 20 rows out of order, some late, keys that come and go, an empty window between
RUNS = 40  # fewer, and a part collected while it is in use goes unseen
ROWS = [(n * 7 % 4, n % 5, n * 4 + (n * 11 % 9) - 4 + 60 * (n > 14)) for n in range(20)]


@pytest.fixture(autouse=True)
def compared_apart(monkeypatch):
    """The first rows of all are kept by several workers, however little is computed before."""
    monkeypatch.setattr(choose, "CALLS_COMPARED_APART", 0)


@pytest.fixture
def spread(monkeypatch):
    """All parts are filled from the first row on, however few rows a group has."""
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 0)


@pytest.fixture
def by_key(monkeypatch):
    """Parts are filled by key, however many rows a group has, and however few groups there are."""
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 1 << 40)
    monkeypatch.setattr(partial, "MANY_GROUPS", 0)


@pytest.fixture
def changing(monkeypatch):
    """How parts are filled changes at nearly every close: each group has few rows, and some windows have many."""
    monkeypatch.setattr(partial, "ROWS_A_GROUP", 1)
    monkeypatch.setattr(partial, "MANY_GROUPS", 3)


def pipeline_of(text: str, workers: int = 2):
    (pipeline,) = compile(STREAM + text).for_workers(workers).after("emit")
    return pipeline


def windows(window: str, what: str = "k, SUM(v) AS total"):
    return f"SELECT {what} FROM {window} GROUP BY window_start, window_end, k;"


def rows_alone(text: str) -> list[tuple[int, int]]:
    """What the same query gives on one worker, in one loop."""
    return ran(pipeline_of(text, 0), 0)


def given(text: str, rows: Sequence[tuple[int, int, int]] = ROWS) -> list[tuple[int, ...]]:
    """The rows, with their columns in the order in which the pipeline reads them."""
    names = [c.name for c in pipeline_of(text).sources[0].columns]
    return [tuple(dict(zip("kvt", row, strict=True))[name] for name in names) for row in rows]


def batch_for(pipeline) -> pa.RecordBatch:
    columns = {name: pa.array(np.array(values)) for name, values in zip("kvt", zip(*ROWS, strict=True), strict=True)}
    return pa.record_batch(columns).select([c.name for c in pipeline.sources[0].columns])


def rows_of(batches) -> list[tuple[int, int]]:
    return [row for x in batches for row in zip(x.column(0).to_pylist(), x.column(1).to_pylist(), strict=True)]


def ran(pipeline, threads: int, batch_rows: int = 16, rows: pa.RecordBatch | None = None) -> list[tuple[int, int]]:
    found: list[pa.RecordBatch] = []
    given = batch_for(pipeline) if rows is None else rows.select([c.name for c in pipeline.sources[0].columns])
    with Engine(pipeline, threads=threads, batch_rows=batch_rows) as engine:
        engine.run([iter([given])], lambda _sink, result: found.append(result))
    return rows_of(found)


def in_turn(texts: Iterable[str], names: Iterable[str], sizes: tuple[int, ...]) -> list[Any]:
    """Each text with one of the batch sizes in turn, and with the others where tests may take long."""
    return [
        pytest.param(text, size, id=f"{size}-{name}", marks=[pytest.mark.long] * (number % len(sizes) != turn))
        for number, (text, name) in enumerate(zip(texts, names, strict=True))
        for turn, size in enumerate(sizes)
    ]


def test_a_window_that_merges_exactly_is_filled_by_several_workers():
    assert [s.way for s in pipeline_of(windows(TUMBLE)).stages] == [Way.PARTIAL, Way.LOOP]
    assert [s.way for s in pipeline_of(windows(TUMBLE), 1).stages] == [Way.LOOP]


@pytest.mark.parametrize(
    "what", ["k, COUNT(DISTINCT v) AS n", "k, CAST(SUM(CAST(v AS DOUBLE)) AS BIGINT) AS total"], ids=["sets", "doubles"]
)
def test_what_does_not_merge_exactly_or_cheaply_stays_with_one_worker(what):
    assert Way.PARTIAL not in [s.way for s in pipeline_of(windows(TUMBLE, what)).stages]


@pytest.mark.parametrize("window", [TUMBLE, HOP], ids=["tumble", "hop"])
@pytest.mark.parametrize("batch_rows", [4, pytest.param(7, marks=pytest.mark.long)])
@pytest.mark.usefixtures("spread")
@pytest.mark.one_in(2)
def test_panes_of_workers_give_the_rows_of_one_worker(window, batch_rows):
    text = windows(window)
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=batch_rows, runs=RUNS) == (
        rows_alone(text),
        None,
    )


def test_panes_of_workers_are_one_until_rows_pay_for_merging():
    text = windows(TUMBLE)
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=3, runs=RUNS) == (rows_alone(text), None)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("batch_rows", [3, 5])
@pytest.mark.one_in(2)
def test_no_part_stays_held(batch_rows):
    """Whatever the collector held is free again: `in_every_schedule` looks at the end."""
    text = windows(TUMBLE)
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=batch_rows, runs=RUNS) == (
        rows_alone(text),
        None,
    )


@pytest.mark.usefixtures("spread")
def test_a_failure_in_a_part_is_told_where_it_came_first():
    text = windows(TUMBLE, "k, SUM(9 / (v - 4)) AS total")  # fails at rows 4, 9, 14 and 19; one window closes before
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=2, runs=RUNS) == ([(0, -2)], 4)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("threads", [2, 4, 8])
@pytest.mark.parametrize("window", [TUMBLE, HOP], ids=["tumble", "hop"])
def test_panes_of_workers_on_threads(window, threads):
    text = windows(window, "k, COUNT(*) AS n")
    assert ran(pipeline_of(text, threads), threads, 3) == rows_alone(text)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("at", [1, 7, 12, 19])
def test_panes_of_workers_outlive_a_pause_on_threads(at):
    text = windows(HOP)
    pipeline, found = pipeline_of(text), []
    batch = batch_for(pipeline)
    with Engine(pipeline, threads=2, batch_rows=3) as first:
        first.push(0, batch.slice(0, at))
        found += [b for _, b in first.drain()]
        snapshot = first.pause()
        assert snapshot.rows == (at,)
        found += [b for _, b in first.drain()]
    with Engine(pipeline, threads=2, batch_rows=3, snapshot=snapshot) as second:
        second.run([iter([batch.slice(snapshot.rows[0])])], lambda _sink, result: found.append(result))
    assert rows_of(found) == rows_alone(text)


# -- by key -----------------------------------------------------------------------------------------------------------


def test_windows_of_one_pane_can_be_filled_by_key():
    """Sums of overlapping windows are merged anyway, a group without a key is all rows, and of two keys no row shows
    whose group it is."""
    two = windows(TUMBLE) + windows(TUMBLE).replace("k,", "v + k AS k,").replace(", k;", ", v + k;")
    asked = {
        "keys": windows(TUMBLE),
        "whole": ALL,
        "overlapping": windows(HOP),
        "no key": "SELECT COUNT(*) AS n FROM s;",
        "two keys": two,
        "a key of two sources": WHOLE["two ways"],
    }
    found = {name: bool(pipeline_of(text).stages[0].by_key) for name, text in asked.items()}
    assert found == {
        "keys": True, "whole": True, "overlapping": False, "no key": False, "two keys": False,
        "a key of two sources": False,
    }  # fmt: skip


def test_parts_by_key_of_more_workers_than_a_byte_tells_apart_are_refused(monkeypatch):
    """They were filled otherwise, without a word: the plan is to say which."""
    monkeypatch.setattr(partial, "MOST_PARTS", 2)
    host = InterpretedHost()
    with host.active(), pytest.raises(AssertionError, match="parts by key for more workers"):
        build(host, pipeline_of(ALL), 3, 100, 0)


BY_KEY = {
    "tumble": windows(TUMBLE),
    "filtered": windows(TUMBLE).replace(" GROUP BY", " WHERE v <> 2 GROUP BY"),
    "computed": windows(TUMBLE, "CASE WHEN v > 2 THEN k ELSE v END AS x, COUNT(*) AS n").replace(", k;", ", x;"),
    "having": windows(TUMBLE).replace(";", " HAVING SUM(v) > 3;"),
    "whole": "SELECT k, SUM(v) AS total FROM s GROUP BY k;",
    "whole, computed": "SELECT CASE WHEN v > 2 THEN k ELSE v END AS x, SUM(v) AS total FROM s GROUP BY x;",
    "limited": windows(TUMBLE).replace(";", " LIMIT 5;"),
}


# the others differ in what is filled, not in how; with rows of a batch
CHANGED = [("tumble", 3), ("tumble", 5), ("computed", 5), ("whole", 3), ("limited", 5)]


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize(("workers", "batch_rows"), [(2, 3), (2, 7), (3, 4)])
@pytest.mark.parametrize("text", BY_KEY.values(), ids=BY_KEY)
@pytest.mark.one_in(3)
def test_parts_by_key_give_the_rows_of_one_worker(text, batch_rows, workers):
    pipeline = pipeline_of(text, workers)
    assert pipeline.stages[0].by_key
    assert in_every_schedule(pipeline, given(text), batch_rows=batch_rows, workers=workers, runs=RUNS // 4) == (
        rows_alone(text), None,
    )  # fmt: skip


@pytest.mark.usefixtures("changing")
@pytest.mark.parametrize(("name", "batch_rows"), CHANGED)
@pytest.mark.one_in(2)
def test_how_parts_are_filled_may_change_at_any_ticket(name, batch_rows):
    text = BY_KEY[name]
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=batch_rows, runs=RUNS) == (
        rows_alone(text),
        None,
    )


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize("batch_rows", [2, 5, 20])
def test_the_smallest_position_fails_in_parts_by_key(batch_rows):
    text = windows(TUMBLE, "k, SUM(9 / (v - 4)) AS total")  # fails at rows 4, 9, 14 and 19; one window closes before
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=batch_rows, runs=RUNS) == ([(0, -2)], 4)


class Dealt(Run):
    """The rows of a ticket are dealt out, and each worker is about to take those of a part."""

    def setup(self):
        host, plant, loans = super().setup()
        stage = plant.stages[0]
        assert host.function("admit")(plant.admission, 1) == 1
        assert deal_ticket(stage, take_ticket(stage)) == 1
        return host, plant, loans

    def worker(self, number):
        def work(shared):
            host, plant, _ = shared
            host.function("work_once")(plant.engine, number)

        return work


@pytest.mark.usefixtures("by_key")
def test_a_failure_is_known_to_the_part_that_is_done_last():
    """Two rows of two parts, of which the first fails: with one preemption, wherever it is."""
    text = windows(TUMBLE, "k, SUM(9 / (v - 4)) AS total")
    case = Dealt(pipeline_of(text), given(text, [(0, 4, 0), (1, 1, 1)]), 2, 2, ())

    def check(shared, _):
        assert case.result(shared) == ([], 0)

    assert explore(case.setup, [case.worker(0), case.worker(1)], check, preemptions=1).complete


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
@pytest.mark.parametrize("text", BY_KEY.values(), ids=BY_KEY)
def test_parts_by_key_on_threads(text, batch_rows, threads):
    assert ran(pipeline_of(text, threads), threads, batch_rows) == rows_alone(text)


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize("window", [f" FROM {TUMBLE} GROUP BY window_start, window_end, k;", " FROM s GROUP BY k;"])
def test_many_groups_by_key_are_put_in_order_by_rounds_and_stop_at_full_ports(window):
    """Two rows a group, in two windows; a port is full after 100 groups, and a round has 256."""
    keys = np.random.default_rng(7).permutation(np.repeat(np.arange(700), 2))
    rows = pa.record_batch({"k": keys, "v": np.arange(1400), "t": np.arange(1400) // 70})
    text = "SELECT k, SUM(v) AS total" + window
    assert {ran(pipeline_of(text, n), n, 100, rows) == ran(pipeline_of(text, 0), 0, 16, rows) for n in (2, 3)} == {True}


@pytest.mark.usefixtures("by_key")
@pytest.mark.parametrize("at", [1, 7, 12, 19])
@pytest.mark.parametrize(("before", "after"), [(2, 2), (4, 2), (2, 4), (0, 2), (2, 0)])
@pytest.mark.parametrize("text", [windows(TUMBLE), BY_KEY["whole"]], ids=["tumble", "whole"])
def test_parts_by_key_outlive_a_pause(text, before, after, at):
    """Panes filled among so many parts are merged with those filled among another number."""
    found = []
    batch = batch_for(pipeline_of(text))
    with Engine(pipeline_of(text, before), threads=before, batch_rows=3) as first:
        first.push(0, batch.slice(0, at))
        found += [b for _, b in first.drain()]
        snapshot = first.pause()
        assert snapshot.rows == (at,)
        found += [b for _, b in first.drain()]
    with Engine(pipeline_of(text, after), threads=after, batch_rows=3, snapshot=snapshot) as second:
        second.run([iter([batch.slice(snapshot.rows[0])])], lambda _sink, result: found.append(result))
    assert rows_of(found) == rows_alone(text)


# -- groups of the whole input: one pane that never ends ---------------------------------------------------------------

ALL = "SELECT k, SUM(v) AS total FROM s GROUP BY k;"


def test_groups_of_the_whole_input_are_filled_by_several_workers():
    assert [s.way for s in pipeline_of(ALL).stages] == [Way.PARTIAL, Way.LOOP]
    assert [s.way for s in pipeline_of("SELECT COUNT(*) AS n, SUM(v) AS total FROM s;").stages] == [
        Way.PARTIAL,
        Way.LOOP,
    ]
    assert [s.way for s in pipeline_of(ALL.replace("SUM(v)", "COUNT(DISTINCT v)")).stages] == [Way.LOOP]
    assert [s.way for s in pipeline_of(ALL.replace("SUM(v)", "SUM(CAST(v AS DOUBLE))")).stages] == [Way.LOOP]


WHOLE = {
    "groups": ALL,
    "all rows": "SELECT COUNT(*) AS n, SUM(v + k) AS total FROM s;",
    "no row": "SELECT COUNT(*) AS n, COALESCE(SUM(v), -1) AS total FROM s WHERE v > 9 + k;",
    "two ways": "SELECT k, COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT v + 0 * t AS k FROM s) u GROUP BY k;",
    "sorted": ALL.replace(";", " HAVING SUM(v) > 3 ORDER BY total, k;"),
}


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
@pytest.mark.one_in(2)
def test_panes_of_workers_that_never_end_give_the_rows_of_one_worker(text):
    expected = rows_alone(text)
    assert expected and [ran(pipeline_of(text, threads), threads, 3) for threads in (2, 4)] == [expected, expected]
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=4, runs=RUNS) == (expected, None)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("at", [1, 12])
def test_panes_of_workers_that_never_end_outlive_a_pause(at):
    pipeline, found = pipeline_of(ALL), []
    batch = batch_for(pipeline)
    with Engine(pipeline, threads=2, batch_rows=3) as first:
        first.push(0, batch.slice(0, at))
        found += [b for _, b in first.drain()]
        snapshot = first.pause()
        assert snapshot.rows == (at,)
    with Engine(pipeline, threads=2, batch_rows=3, snapshot=snapshot) as second:
        second.run([iter([batch.slice(snapshot.rows[0])])], lambda _sink, result: found.append(result))
    assert rows_of(found) == rows_alone(ALL)


OPEN, CLOSED = 0, 1
FILLED = {  # 8 rows a group in each of two parts are enough; 20 groups are many
    "one, open: too few": (q.ONE, 159, 10, OPEN, q.ONE),
    "one, open: enough": (q.ONE, 160, 10, OPEN, q.ALL),
    "one, open: many groups, but more rows are to come": (q.ONE, 0, 20, OPEN, q.ONE),
    "one, closed: few groups": (q.ONE, 159, 10, CLOSED, q.ONE),
    "one, closed: many groups": (q.ONE, 319, 20, CLOSED, q.BY_KEY),
    "one, closed: enough": (q.ONE, 320, 20, CLOSED, q.ALL),
    "all, open: half is enough": (q.ALL, 40, 10, OPEN, q.ALL),
    "all, open: less than half, few groups": (q.ALL, 39, 10, OPEN, q.ONE),
    "all, open: less than half, many groups": (q.ALL, 79, 20, OPEN, q.BY_KEY),
    "all, closed: each part has counted the groups": (q.ALL, 80, 10, CLOSED, q.ALL),
    "all, closed: half is too few": (q.ALL, 79, 10, CLOSED, q.ONE),
    "by key, open: too few": (q.BY_KEY, 159, 10, OPEN, q.BY_KEY),
    "by key, open: enough": (q.BY_KEY, 160, 10, OPEN, q.ALL),
    "by key, closed: few groups": (q.BY_KEY, 159, 10, CLOSED, q.ONE),
    "by key, closed: many groups": (q.BY_KEY, 319, 20, CLOSED, q.BY_KEY),
}


@pytest.mark.parametrize(("filling", "rows", "groups", "closed", "then"), FILLED.values(), ids=FILLED)
def test_how_parts_are_filled_goes_by_rows_and_groups(filling, rows, groups, closed, then):
    assert q.next_filling(filling, rows, groups, 2, closed, 8, 20) == then


def test_parts_that_cannot_be_filled_by_key_are_not_however_many_the_groups_are():
    assert q.next_filling(q.ONE, 319, 20, 2, CLOSED, 8, -1) == q.ONE
    assert q.next_filling(q.ALL, 79, 20, 2, OPEN, 8, -1) == q.ONE


@pytest.mark.parametrize(
    ("rows", "groups", "then"), [(159, 10, q.ONE), (160, 10, q.ALL), (5, 0, q.ONE)], ids=["few", "enough", "no group"]
)
def test_parts_are_filled_by_all_as_soon_as_rows_pay_for_merging(rows, groups, then):
    """Two parts, one of which has had so many rows, while all others wait."""
    with Memory() as memory:
        words = lambda *values: memory.place(struct.pack(f"<{len(values)}q", *values), True)  # noqa: E731
        panes = panes_new(*[0] * (panes_new.__code__.co_argcount - 2), 1, words(4, 0, 0))
        record = panes_attach(panes, NEVER, 0)
        for key in range(groups):
            table_insert(ld_i64(record, PANE_TABLES), key * 12345, key)
        state, slots = words(panes), words(0, 0, 0, function_address(panes_groups))
        partials = words(*[0] * (q.PARTIALS_PARTS + 2 * q.PART_WORDS))
        for word, value in (
            (q.PARTIALS_COUNT, 2), (q.PARTIALS_ROWS_IN, words(1000)), (q.PARTIALS_SLOTS, slots),
            (q.PARTIALS_SLOT_COUNT, 1), (q.PARTIALS_ROWS_A_GROUP, 8), (q.PARTIALS_FILLING, q.ONE),
            (q.PARTIALS_MANY, 20), (q.PARTIALS_ENTRY, 1),
            (q.PARTIALS_PARTS + q.PART_STATE, state), (q.PARTIALS_PARTS + q.PART_ROWS, rows),
        ):  # fmt: skip
            st_i64(partials, word, value)
        q.parts_balance(partials, partials + q.PARTIALS_PARTS * 8)
        assert ld_i64(partials, q.PARTIALS_FILLING) == then
        panes_drop(panes)


@pytest.mark.parametrize(
    ("rows_a_group", "entry", "filling"), [(8, 1, q.BY_KEY), (8, 0, q.ONE), (0, 1, q.ALL), (0, 0, q.ALL)]
)
def test_parts_are_filled_by_key_from_the_beginning_where_they_can_be(rows_a_group, entry, filling):
    with Memory() as memory:
        partials = memory.place(bytes(8 * q.PARTIALS_PARTS), True)
        for word, value in ((q.PARTIALS_ROWS_A_GROUP, rows_a_group), (q.PARTIALS_MANY, 20), (q.PARTIALS_ENTRY, entry)):
            st_i64(partials, word, value)
        q.filling_begin(partials)
        assert ld_i64(partials, q.PARTIALS_FILLING) == filling


# -- the first rows of each partition ---------------------------------------------------------------------------------

WITHIN = "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY v DESC) <= 2"
FIRST_ROWS = {
    "all": "SELECT k, v FROM s ORDER BY v DESC, k LIMIT 4 OFFSET 1;",
    "ties": "SELECT v, t FROM s ORDER BY k LIMIT 7;",
    "within": "SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 2;",
    "tumble": f"SELECT k, v FROM {TUMBLE} {WITHIN};",
    "hop": f"SELECT k, v FROM {HOP} WHERE k > 1 {WITHIN};",
    "filtered, computed": f"SELECT k, v + t AS x FROM {TUMBLE} WHERE v <> 2 {WITHIN};",
    "limited": f"SELECT k, v FROM {TUMBLE} {WITHIN} LIMIT 5;",
    "two ways": "SELECT k, t FROM (SELECT k, v, t FROM s UNION ALL SELECT v, k, -t AS t FROM s) u ORDER BY k LIMIT 9;",
}


def test_first_rows_are_kept_by_several_workers_where_admission_says_when_they_leave():
    found = {name: [s.way for s in pipeline_of(text).stages] for name, text in FIRST_ROWS.items()}
    assert found == {name: [Way.PARTIAL, Way.LOOP] for name in FIRST_ROWS}
    sessions = FIRST_ROWS["tumble"].replace(TUMBLE, "SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '0.00002' SECOND)")
    assert [s.way for s in pipeline_of(sessions).stages] == [Way.LOOP]
    assert [s.way for s in pipeline_of("SELECT k, v FROM s ORDER BY v;").stages] == [Way.LOOP]


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize(("text", "batch_rows"), in_turn(FIRST_ROWS.values(), FIRST_ROWS, (4, 7)))
@pytest.mark.one_in(3)
def test_first_rows_of_workers_are_those_of_one_in_every_schedule(text, batch_rows):
    expected = rows_alone(text)
    assert len(expected) > 3
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=batch_rows, runs=RUNS // 2) == (expected, None)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
@pytest.mark.parametrize("text", FIRST_ROWS.values(), ids=FIRST_ROWS)
def test_first_rows_of_workers_on_threads(text, batch_rows, threads):
    assert ran(pipeline_of(text, threads), threads, batch_rows) == rows_alone(text)


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("batch_rows", [1, 3, 4096])
def test_first_rows_beside_groups_of_workers_on_threads(batch_rows, threads):
    """What workers keep apart is handed over container by container, each in its own way."""
    both = (windows(TUMBLE), FIRST_ROWS["tumble"])
    pipeline = pipeline_of("".join(both), threads)
    assert pipeline.stages[0].way is Way.PARTIAL
    found: tuple[list[pa.RecordBatch], ...] = ([], [])
    with Engine(pipeline, threads=threads, batch_rows=batch_rows) as engine:
        engine.run([iter([batch_for(pipeline)])], lambda sink, result: found[sink].append(result))
    assert [rows_of(batches) for batches in found] == [rows_alone(text) for text in both]


def test_first_rows_are_of_one_worker_until_rows_pay_for_merging():
    text = FIRST_ROWS["tumble"]
    assert in_every_schedule(pipeline_of(text), given(text), batch_rows=3, runs=RUNS // 2) == (rows_alone(text), None)
