"""Event times that are computed: what becomes of rows that have none, however the rows come to the engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cq
from cq.connectors.event_times import timed
from cq.connectors.protocol import BadRow, EventTimer, Piece, Place, Times, UnreadableTime

ENGINES = ["reference", "native"]
TEXT = """CREATE STREAM s (k BIGINT, at VARCHAR, ts AS CAST(at AS TIMESTAMP), WATERMARK FOR ts) WITH ({options});
SELECT k, ts FROM s;"""
ROWS = "k,at\n1,1970-01-01 00:00:01\n2,soon\nx,1970-01-01 00:00:02\n4,\n5,1970-01-01 00:00:03\n"


def written(directory: Path, options: str) -> Path:
    """The query over ROWS in a file beside it."""
    (directory / "s.csv").write_text(ROWS)
    (directory / "q.cq").write_text(TEXT.format(options=options))
    return directory / "q.cq"


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_without_an_event_time_are_written_down_among_the_other_bad_rows(tmp_path: Path, engine: str) -> None:
    query = written(tmp_path, "path = 's.csv', on_error = 'dead_letter', bad_rows = 'bad.jsonl'")
    result = cq.load(query).run(engine=engine, threads=0)
    assert result["result"].to_arrow()["k"].to_pylist() == [1, 5]
    assert result.stats.bad_rows == {"s": 3}
    letters = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(x["record"], x["code"]) for x in letters] == [(3, "CQ0707"), (4, "CQ0702"), (5, "CQ0703")]
    assert json.loads(letters[0]["raw"])["at"] == "soon"


@pytest.mark.parametrize("engine", ENGINES)
def test_row_without_an_event_time_stops_a_run_at_its_line_and_its_expression(tmp_path: Path, engine: str) -> None:
    with pytest.raises(cq.DataError) as caught:
        cq.load(written(tmp_path, "path = 's.csv'")).run(engine=engine, threads=0)
    shown = str(caught.value)
    assert (
        caught.value.code == "CQ0707" and "s.csv:3" in shown and "^^^^^" in shown and "CAST(at AS TIMESTAMP)" in shown
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_push_with_a_row_that_has_no_event_time_takes_none_of_its_rows(engine: str) -> None:
    with cq.sql(TEXT.format(options="connector = 'memory'")).start(engine=engine) as job:
        job.push("s", [{"k": 1, "at": "1970-01-01 00:00:01"}])
        with pytest.raises(cq.DataError, match="cast"):
            job.push("s", [{"k": 2, "at": "1970-01-01 00:00:02"}, {"k": 3, "at": "soon"}])
        job.push("s", [{"k": 4, "at": "1970-01-01 00:00:04"}])
        assert [row["k"] for batch in job.results() for row in batch.to_pylist()] == [1, 4]


def test_column_of_the_name_of_the_computed_one_stays_what_it_is() -> None:
    text = """CREATE STREAM s ("event time" BIGINT, ts AS TIMESTAMP_SECONDS("event time" + 1), WATERMARK FOR ts);
    SELECT "event time" AS n, ts FROM s;"""
    rows = cq.run(text, {"s": [{"event time": 1}, {"event time": 2}]}, threads=0)["result"].to_arrow().to_pylist()
    assert [(r["n"], r["ts"].second) for r in rows] == [(1, 2), (2, 3)]


def test_dropped_rows_stand_among_the_bad_ones_by_line_and_count_no_longer_as_good() -> None:
    # lines   1    2 bad   3 no time   4    5 bad   6 cannot be computed   7
    batch = pa.RecordBatch.from_pydict({"v": [10, 30, 40, 60, 70]})
    place = Place("f", 1, np.array([1, 3, 4, 6, 7]))
    bad = (BadRow(1, 2, "CQ0702", "bad"), BadRow(3, 5, "CQ0702", "bad"))
    times = Times(pa.array([1, None, 4, None, 7], pa.int64()), {3: UnreadableTime("CQ0705", "overflow")})
    made = timed(Piece(batch, place, bad), EventTimer(lambda _: times, "t"))
    assert made.batch.to_pydict() == {"t": [1, 4, 7], "v": [10, 40, 70]}
    assert [made.place.line(n) for n in range(3)] == [1, 4, 7]
    assert [(b.before, b.line, b.code) for b in made.bad] == [
        (1, 2, "CQ0702"), (1, 3, "CQ0703"), (2, 5, "CQ0702"), (2, 6, "CQ0705"),
    ]  # fmt: skip
