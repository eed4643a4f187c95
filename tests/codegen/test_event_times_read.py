"""The column of event times is read where they decide what the query gives, and nowhere else."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from cases import Prepared, Way
from pyarrow import parquet

from cq.api import sql

COLUMNS = "k VARCHAR, v BIGINT, ts TIMESTAMP NOT NULL, day DATE NOT NULL"
STREAM = f"CREATE STREAM t ({COLUMNS}, WATERMARK FOR ts);"
WINDOW = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND)"


def read_by(text: str) -> list[list[str]]:
    """The columns that the pipeline reads of each source."""
    compiled = Prepared(text).compiled
    return [[c.name for c in spec.delivered] for pipeline in compiled.after("emit") for spec in pipeline.sources]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT k, COUNT(*) AS n FROM t GROUP BY k", ["k"]),
        ("SELECT v + 1 AS w FROM t WHERE k = 'a'", ["k", "v"]),
        ("SELECT COUNT(*) AS n FROM t", []),
        ("SELECT v, SUM(v) OVER (PARTITION BY k) AS s FROM t", ["k", "v"]),
        ("SELECT v, ts FROM t", ["v", "ts"]),
        (f"SELECT k, COUNT(*) AS n FROM {WINDOW} GROUP BY window_start, window_end, k", ["ts", "k"]),
        ("SELECT v FROM t ORDER BY ts", ["ts", "v"]),
    ],
)
def test_event_times_are_read_where_something_depends_on_them(query, columns):
    assert [sorted(read) for read in read_by(STREAM + query)] == [sorted(columns)]


def test_sources_are_merged_by_their_event_times():
    other = STREAM.replace("STREAM t", "STREAM u")
    assert read_by(STREAM + other + "SELECT k FROM t UNION ALL SELECT k FROM u") == [["k", "ts"], ["k", "ts"]]


def test_late_rows_are_told_by_their_event_times():
    stream = STREAM.removesuffix(");") + ") WITH (late = 'stream:t_late');"
    assert read_by(f"{stream}SELECT k FROM t_late") == [["k", "ts"]]


def test_days_are_read_for_there_are_some_that_are_no_event_times():
    stream = STREAM.replace("WATERMARK FOR ts", "at AS CAST(day AS TIMESTAMP), WATERMARK FOR at")
    assert read_by(stream + "SELECT k FROM t") == [["day", "k"]]


def test_a_row_without_an_event_time_is_a_bad_row_though_nobody_reads_it(tmp_path):
    times = [datetime.datetime(2026, 1, 1), None, datetime.datetime(2026, 1, 1)]
    table = pa.table({"k": ["a", "b", "b"], "v": [1, 2, 3], "ts": pa.array(times, pa.timestamp("us"))})
    parquet.write_table(table, tmp_path / "t.parquet")
    stream = "CREATE STREAM t (k VARCHAR, v BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (on_error = 'skip');"
    for given in (table, tmp_path / "t.parquet"):
        for engine in ("native", "reference"):
            result = sql(stream + "SELECT k, v FROM t", t=given).run(engine=engine)
            assert [tuple(row.values()) for row in result.to_pylist()] == [("a", 1), ("b", 3)]
            assert result.stats.bad_rows == {"t": 1}


def test_rows_out_of_order_are_counted_all():
    """Late rows too: what has no event time to wait for takes every row."""
    asked = Prepared(STREAM + "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t WHERE v > 1 GROUP BY k")
    asked.give({"t": [(k, n, n * 7919 % 97 * 1_000_000, 0) for n, k in enumerate("abcab" * 20)]})
    for threads in (0, 1, 2):
        for batch_rows in (1, 3, 4096):
            way = Way(threads, batch_rows)
            assert not asked.native(way).difference(asked.reference())
