"""A silent source holds nobody back: the same on every engine, for one order of what happens."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import cq
from cq.compiler.passes import compile
from cq.connectors.protocol import Place, SourceBatch
from cq.engines.protocol import Feed, Progress
from cq.errors import CqError
from cq.reference.engine import Quiet, ReferenceRun

Event = tuple[str, str] | tuple[str, str, list[tuple[int, int]]]

TEXT = """
CREATE STREAM a (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND
  IDLE TIMEOUT INTERVAL '9' SECOND) WITH (connector = 'memory');
CREATE STREAM b (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts IDLE TIMEOUT INTERVAL '9' SECOND) WITH (connector = 'memory');
CREATE STREAM c (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
  IDLE TIMEOUT INTERVAL '9' SECOND) WITH (connector = 'memory');
CREATE VIEW u AS SELECT 1 AS s, v, ts FROM a UNION ALL SELECT 2, v, ts FROM b UNION ALL SELECT 3, v, ts FROM c;
SELECT window_end, COUNT(*) AS n, SUM(v) AS total FROM TUMBLE(u, ts, INTERVAL '5' SECOND) GROUP BY window_end;
SELECT s, v FROM u;
SELECT a.v, b.ts FROM a JOIN b ON a.v = b.v AND b.ts BETWEEN a.ts - INTERVAL '4' SECOND AND a.ts + INTERVAL '4' SECOND;
"""
MIDNIGHT = datetime.datetime(2024, 1, 1)


def played(query: cq.Query, events: list[Event], engine: str, threads: int = 0, batch_rows: int = 3) -> list[object]:
    """Every row of every output, when the events have happened one after the other."""
    with query.start(engine=engine, threads=threads, batch_rows=batch_rows) as job:
        for what, stream, *rows in events:
            if what == "idle":
                job.idle(stream)
            elif what == "end":
                job.end(stream)
            else:
                job.push(stream, [{"v": v, "ts": MIDNIGHT + datetime.timedelta(seconds=s)} for v, s in rows[0]])
    names = [o.name for o in query.bound().outputs]
    return [tuple(row.values()) for name in names for batch in job.results(name) for row in batch.to_pylist()]


def drawn(dice: random.Random) -> list[Event]:
    """Each stream gives something twice, is silent once and may end, in any order."""
    order = ["a", "b", "c"] * 4
    dice.shuffle(order)
    seconds, seen, events = dict.fromkeys("abc", 0), dict.fromkeys("abc", ""), list[Event]()
    for stream in order:
        what = dice.choice([w for w in ("idle", "push", "push", "end") if seen[stream].count(w) < 1 + (w == "push")])
        if "end" in seen[stream]:
            continue
        seen[stream] += what
        rows = []
        for _ in range(dice.randint(1, 8)):
            seconds[stream] += dice.choice([0, 0, 1, 1, 2, 6])
            rows.append((dice.randint(0, 3), max(0, seconds[stream] - dice.choice([0, 0, 0, 2, 5]))))
        events.append((what, stream, rows) if what == "push" else (what, stream))
    return events


def test_rows_depend_on_the_order_of_what_happens_and_on_nothing_else() -> None:
    query, dice = cq.sql(TEXT), random.Random(8)
    for _ in range(15):
        events = drawn(dice)
        expected = played(query, events, "reference")
        for threads in (0, 1, 2, 4):
            batch_rows = dice.choice([1, 3, 4096])
            assert played(query, events, "native", threads, batch_rows) == expected, (events, threads, batch_rows)


A, B = "a", "b"
PAIR = """
CREATE STREAM a (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts IDLE TIMEOUT INTERVAL '5' SECOND) WITH (connector = 'memory');
CREATE STREAM b (v BIGINT, ts TIMESTAMP, WATERMARK FOR ts IDLE TIMEOUT INTERVAL '5' SECOND) WITH (connector = 'memory');
CREATE VIEW u AS SELECT * FROM a UNION ALL SELECT * FROM b;
SELECT window_end, SUM(v) AS total FROM TUMBLE(u, ts, INTERVAL '10' SECOND) GROUP BY window_end;
"""
S = 1_000_000


def test_silent_source_lets_windows_close_and_is_late_when_it_speaks_again() -> None:
    session = ReferenceRun(compile(PAIR).plan)
    session.push(A, (1, 5 * S))
    session.push(B, (2, 6 * S))
    assert not session.push(A, (4, 12 * S))["result"]  # b may still have rows before 10
    assert [d.row for d in session.silence(B)["result"]] == [(10 * S, 3)]
    session.push(B, (8, 9 * S))
    assert not session.push(A, (16, 13 * S))["result"] and session.result.sources[B].late == 1
    assert [d.row for d in session.finish().outputs["result"]][1:] == [(20 * S, 20)]


def test_nothing_moves_while_all_are_silent() -> None:
    session = ReferenceRun(compile(PAIR).plan)
    session.push(A, (1, 5 * S))
    session.push(B, (2, 6 * S))
    assert not session.silence(A)["result"] and not session.silence(B)["result"]
    assert session.watermark(A) == 6 * S  # that of b, the last that was not
    assert [d.row for d in session.finish().outputs["result"]] == [(10 * S, 3)]


def test_reference_asks_silent_sources_again_when_nothing_else_comes() -> None:
    inputs = {
        A: iter([(1, 5 * S), Quiet.NOW, (2, 15 * S), Quiet.NOW, Quiet.NOW]),
        B: iter([Quiet.NOW, Quiet.SILENT, Quiet.NOW, (4, 25 * S)]),
    }
    result = ReferenceRun(compile(PAIR).plan).feed(inputs)
    assert [d.row for d in result.outputs["result"]] == [(10 * S, 1), (20 * S, 2), (30 * S, 4)]


class Scripted:
    """A source whose batches have so many rows."""

    notes = ()

    def __init__(self, *rows: int) -> None:
        self._rows = rows

    def batches(self) -> Iterator[SourceBatch]:
        import pyarrow as pa

        for rows in self._rows:
            yield SourceBatch(pa.record_batch([pa.nulls(rows, pa.int64())], ["v"]), Place("s", 1))

    def share_done(self) -> None: ...

    def interrupt(self) -> None: ...


def test_source_is_silent_once_when_it_has_had_nothing_for_the_time() -> None:
    stream, progress = compile(PAIR).sources[0], Progress()
    clock = iter([10.0, 10.0, 14.9, 15.0, 20.0, 20.0, 26.0])  # looked at for each batch without rows
    feed = Feed(stream, Scripted(1, 0, 0, 0, 0, 2, 0, 0), progress, idle_s=5.0, now=lambda: next(clock))  # type: ignore[arg-type]
    found = ["silent" if batch.silent else batch.batch.num_rows for batch in feed]
    assert found == [1, 0, 0, 0, "silent", 0, 2, 0, 0, "silent"] and progress.silent == {"a": 2}


def test_spark_refuses_a_pipe_whose_silences_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        os.mkfifo(name)
    text = PAIR.replace("connector = 'memory'", "path = 'a', format = 'csv'", 1).replace(
        "connector = 'memory'", "path = 'b', format = 'csv'"
    )
    held = [os.open(name, os.O_RDWR) for name in ("a", "b")]
    try:
        with pytest.raises(CqError) as error:
            cq.run(text, engine="spark")
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert error.value.code == "CQ0901" and "IDLE TIMEOUT" in str(error.value)
