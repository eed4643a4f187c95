"""Every operator on Spark gives the reference's rows, in the reference's order: hand-made and random data."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from spark_agreement import assert_agree, on_spark, plan_of
from spark_fixture import spark  # noqa: F401

from cq.errors import DataError, UsageError
from cq.lang.expressions import Column
from cq.lang.schema import Field
from cq.lang.types import VARCHAR, DataType, Kind, array
from cq.planner.operators import Scan, Unnest
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.source import SourceDef
from cq.reference.engine import run
from cq.spark.exchange import query
from cq.spark.run import run_spark

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

S = 1_000_000
BASE = 1_700_000_000 * S
DELAYED = """
CREATE STREAM s (k BIGINT, v BIGINT, d DOUBLE, w VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH (connector = 'memory');
"""
PROMPT = DELAYED.replace(" AS ts - INTERVAL '5' SECOND", "")
SECOND = """
CREATE STREAM t (k BIGINT, x BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH (connector = 'memory');
"""
WORDS = ["", "a", "b a", "a  b", "ä,.b", None]
FLOATS = [0.0, -0.0, 1.5, -2.25, float("nan"), None]


def rows_of_s(seed: int, count: int = 120) -> list[tuple]:
    """Rows out of order: some late, some with a NULL time, many with equal times."""
    r = random.Random(seed)
    rows = []
    for i in range(count):
        second = i // 3 + r.choice([0, 0, 0, -1, -2, -4, -5, -5, -6, -9, 3])
        ts = None if r.random() < 0.03 else BASE + second * S + r.choice([0, 0, -1, 400_000])
        v = None if r.random() < 0.1 else r.randrange(-20, 20)
        rows.append((r.choice([None, 1, 2, 3]), v, r.choice(FLOATS), r.choice(WORDS), ts))
    return rows


def rows_of_t(seed: int, count: int = 80) -> list[tuple]:
    r = random.Random(seed)
    return [
        (r.choice([None, 1, 2, 3]), r.randrange(9), BASE + (i // 2 + r.choice([0, 0, -1, -3, 2])) * S)
        for i in range(count)
    ]


def agree(text: str, *, seeds: range = range(2), count: int = 120) -> None:
    plan = plan_of(text)
    for seed in seeds:
        assert_agree(plan, {"s": rows_of_s(seed, count), "t": rows_of_t(seed + 100)}, f"seed {seed}")
    assert_agree(plan, {"s": [], "t": []}, "empty")


@pytest.mark.parametrize("stream", [DELAYED, PROMPT], ids=["delayed", "prompt"])
def test_a_tumbling_window_drops_late_rows_and_leaves_by_end_and_first_arrival(stream):
    agree(
        stream
        + """
        SELECT window_start, window_end, k, COUNT(*) AS n, COUNT(v) AS vs, SUM(v) AS total, AVG(v) AS mean,
               MIN(d) AS least, MAX(d) AS most, COUNT(DISTINCT v) AS kinds, COUNT(*) FILTER (WHERE v > 3) AS big
        FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        """
    )


@pytest.mark.parametrize(
    "window",
    [
        "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '7' SECOND, INTERVAL '3' SECOND)",
        "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)",
        "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND)",
        "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '3' SECOND)",
    ],
)
def test_hopping_windows_of_any_ratio_agree(window):
    agree(
        DELAYED
        + f"""
        SELECT window_start, window_end, window_time, k, SUM(v) AS total, MIN(v) AS least, MAX(w) AS most
        FROM {window} WHERE v IS NOT NULL GROUP BY window_start, window_end, window_time, k HAVING COUNT(*) > 1;
        """
    )


def test_windows_of_windows_agree():
    agree(
        DELAYED
        + """
        CREATE VIEW small AS
          SELECT window_start, window_end, window_time, k, COUNT(*) AS n, AVG(v) AS mean
          FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND)
          GROUP BY window_start, window_end, window_time, k;
        SELECT window_start, window_end, MAX(n) AS n, COUNT(DISTINCT k) AS ks FROM small
        GROUP BY window_start, window_end;
        SELECT window_start, k, SUM(n) AS n
        FROM TUMBLE(TABLE small, DESCRIPTOR(window_time), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        """
    )


@pytest.mark.parametrize("stream", [DELAYED, PROMPT], ids=["delayed", "prompt"])
@pytest.mark.parametrize("order", ["", "ORDER BY ts "], ids=["arrival", "time"])
@pytest.mark.one_in(2)
def test_lag_and_running_aggregates_agree(stream, order):
    agree(
        stream
        + f"""
        SELECT k, v, ts, LAG(v) OVER (PARTITION BY k {order}) AS before,
               LAG(v, 2, -1) OVER (PARTITION BY k {order}) AS before_that,
               SUM(v) OVER (PARTITION BY k {order}ROWS UNBOUNDED PRECEDING) AS total,
               AVG(v) OVER (PARTITION BY k {order}ROWS UNBOUNDED PRECEDING) AS mean,
               MAX(d) OVER (PARTITION BY d {order}ROWS UNBOUNDED PRECEDING) AS most,
               COUNT(*) FILTER (WHERE v > 0) OVER ({order}ROWS UNBOUNDED PRECEDING) AS n
        FROM s;
        """
    )


def test_what_waited_for_its_time_is_in_time_order_for_the_next_operator():
    agree(
        DELAYED
        + """
        CREATE VIEW ordered AS SELECT k, v, ts, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before FROM s;
        SELECT k, v, before, COUNT(*) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM ordered;
        SELECT window_end, SUM(v - before) AS change
        FROM TUMBLE(TABLE ordered, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY window_start, window_end;
        """
    )


def test_a_row_at_the_watermark_leaves_at_once():
    agree(
        DELAYED
        + """
        CREATE VIEW ordered AS SELECT k, v, ts, COUNT(*) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM s;
        SELECT n, v FROM ordered UNION ALL SELECT k, v FROM s;
        """
    )


def test_two_sources_are_merged_by_position():
    agree(
        DELAYED
        + SECOND
        + """
        CREATE VIEW both AS
          SELECT k, v, ts FROM s WHERE v > -15 UNION ALL SELECT k, x, ts FROM t UNION ALL SELECT 9, v, ts FROM s;
        SELECT k, v, ts, COUNT(*) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM both;
        SELECT k, v, ts, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS before FROM both;
        SELECT window_end, k, COUNT(*) AS n, SUM(v) AS total
        FROM TUMBLE(TABLE both, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        """
    )


LOOK_UP = """
CREATE VIEW per AS
  SELECT window_start, window_end, k, SUM(v) AS total, COUNT(*) AS n
  FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '2' SECOND) GROUP BY window_start, window_end, k;
"""


@pytest.mark.parametrize("kind", ["", "LEFT "])
@pytest.mark.parametrize("stream", [DELAYED, PROMPT], ids=["delayed", "prompt"])
@pytest.mark.one_in(4)
def test_a_look_up_finds_the_latest_window_of_the_key(kind, stream):
    agree(
        stream
        + SECOND
        + LOOK_UP
        + f"""
        SELECT a.k, a.v, a.ts, b.total, b.window_end FROM s AS a {kind}JOIN per FOR SYSTEM_TIME AS OF a.ts AS b
          ON a.k = b.k;
        SELECT a.k, a.x, a.ts, b.total FROM t AS a {kind}JOIN per FOR SYSTEM_TIME AS OF a.ts AS b
          ON a.k = b.k AND b.window_end = DATE_TRUNC('second', a.ts) AND b.n > 1;
        """
    )


def test_windows_look_up_windows():
    agree(
        DELAYED
        + LOOK_UP
        + """
        CREATE VIEW minutes AS SELECT window_start, window_end, window_time, k, MAX(v) AS most
          FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '3' SECOND) GROUP BY window_start, window_end, window_time, k;
        SELECT a.k, a.window_end, a.most, b.total, b.window_end AS of_end FROM minutes AS a
          LEFT JOIN per FOR SYSTEM_TIME AS OF a.window_time AS b ON a.k = b.k;
        """
    )


def test_unnest_gives_the_elements_in_order():
    agree(
        DELAYED
        + """
        SELECT k, word, COUNT(*) OVER (PARTITION BY word ROWS UNBOUNDED PRECEDING) AS n
        FROM s, UNNEST(SPLIT(w, ' ')) AS words(word);
        SELECT k, piece, i FROM s, UNNEST(SPLIT(w, ',.')) WITH ORDINALITY AS pieces(piece, i);
        """
    )


def test_an_aggregate_of_the_whole_input_counts_late_rows_and_stands_for_nothing_too():
    agree(
        DELAYED
        + """
        SELECT COUNT(*) AS n, SUM(v) AS total, MIN(ts) AS first_ts FROM s;
        SELECT k, COUNT(*) AS n, AVG(d) FILTER (WHERE d < 9) AS mean, BOOL_AND(v > 0) AS up FROM s GROUP BY k;
        SELECT d, COUNT(*) AS n FROM s GROUP BY d;
        """
    )


def test_limit_is_the_first_rows_by_position():
    agree(
        DELAYED
        + """
        SELECT k, v FROM s LIMIT 7;
        SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '3' SECOND)
        GROUP BY window_start, window_end, k LIMIT 5;
        """
    )


def test_a_stream_without_event_time_arrives_first():
    agree(
        DELAYED
        + """
        CREATE STREAM t (k BIGINT, x BIGINT, ts TIMESTAMP) WITH (connector = 'memory');
        SELECT k, v FROM s UNION ALL SELECT k, x FROM t;
        SELECT COUNT(*) OVER (ROWS UNBOUNDED PRECEDING) AS n, k FROM t;
        """
    )


def test_a_computed_event_time_is_computed_before_rows_are_numbered():
    agree(
        """
        CREATE STREAM s (k BIGINT, v BIGINT, d DOUBLE, w VARCHAR, raw TIMESTAMP,
          ts AS raw + INTERVAL '1' SECOND * k, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
        WITH (connector = 'memory');
        SELECT window_end, COUNT(*) AS n, SUM(v) AS total
        FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY window_start, window_end;
        SELECT k, v, COUNT(*) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM s;
        """
    )


def test_a_late_row_fails_where_its_source_says_so():
    strict = DELAYED.replace("'memory'", "'memory', late = 'fail'")
    late = [(1, 1, None, None, BASE + 60 * S), (1, 2, None, None, BASE)]
    window = "SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) {} GROUP BY 1;"
    union = "SELECT k, SUM(v) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM ({} UNION ALL {}) AS u;"
    parts = ("SELECT k, v, ts FROM s", "SELECT k, x AS v, ts FROM t")
    for text in (window.format(""), union.format(*parts), union.format(*reversed(parts))):
        plan = plan_of(strict + SECOND + text)
        inputs = {"s": late, "t": [(1, 1, BASE + 60 * S), (1, 2, BASE)]}
        assert run(plan, inputs).error.code == "CQ0709"
        with pytest.raises(DataError) as caught:
            on_spark(plan, inputs)
        assert caught.value.code == "CQ0709" and "late" in caught.value.first.message
    assert_agree(plan_of(strict + window.format("WHERE v < 2")), {"s": late})
    assert_agree(plan_of(strict + "SELECT k, v FROM s;"), {"s": late})


TYPES = """
CREATE STREAM s (b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INTEGER, i64 BIGINT, f REAL, d DOUBLE, n DECIMAL(12,2),
  w VARCHAR, day DATE, ts TIMESTAMP) WITH (connector = 'memory');
"""


def test_every_type_goes_in_and_comes_out():
    full = (True, -128, 300, -(2**31), 2**63 - 1, 0.5, -1.5, -12345, "ä'\\\0💡", -719528, -62135596800000001)
    nulls = (None,) * len(full)
    agree_with = {"s": [full, nulls]}
    assert_agree(plan_of(TYPES + "SELECT * FROM s;"), agree_with)
    assert_agree(
        plan_of(
            TYPES
            + """
            SELECT ts - TIMESTAMP '2024-01-01 00:00:00' AS span, INTERVAL '14' MONTH AS months,
                   SPLIT(w, '''') AS pieces, n * 1.5 AS more, f + f AS twice,
                   'it''s \\ :k0 -- /*' || w AS text, DATE '2024-02-29' AS leap,
                   CASE WHEN b THEN NULL ELSE 1.25 END AS number, CAST(NULL AS DATE) AS nothing,
                   d = 1e0 OR d IS NULL AS is_one, INTERVAL '-1.5' SECOND AS second
            FROM s;
            """
        ),
        agree_with,
    )


def test_columns_that_are_intervals_or_arrays_are_read():
    interval, months, words = DataType(Kind.INTERVAL), DataType(Kind.INTERVAL_MONTH), array(VARCHAR)
    fields = tuple(Field(n, t) for n, t in (("i", interval), ("m", months), ("a", words)))
    scan = Scan(SourceDef("s", fields))
    plan = LogicalPlan((Output("result", scan), Output("words", Unnest(scan, Column(words, True, 2), "word", "n"))))
    assert_agree(plan, {"s": [(-1, 14, ("a", None, "")), (None, None, None), (10**15, -1, ())]})


def test_a_data_error_is_ours():
    plan = plan_of(DELAYED + "SELECT 10 / v AS x FROM s;")
    with pytest.raises(DataError) as caught:
        on_spark(plan, {"s": [(1, 0, None, None, BASE)]})
    assert caught.value.code == "CQ0706"


def test_views_are_taken_back(spark):  # noqa: F811
    on_spark(plan_of(DELAYED + "SELECT k FROM s;"), {"s": [(1, 0, None, None, BASE)]})
    assert query(spark, "show tables like 'cq_*'").num_rows == 0


def test_inputs_must_be_there_with_their_columns():
    plan = plan_of(DELAYED + "SELECT k FROM s;")
    with pytest.raises(UsageError, match="no input is given for s"):
        run_spark(plan, {})
    with pytest.raises(UsageError, match="no column v, d, w, ts"):
        run_spark(plan, {"s": pa.table({"k": [1]})})


def test_fifty_views_above_each_other_run():
    views = "".join(
        f"CREATE VIEW v{i} AS SELECT k, v, ts FROM {f'v{i - 1}' if i else 's'} WHERE v <> {i};\n" for i in range(50)
    )
    agree(DELAYED + views + "SELECT k, v FROM v49;", seeds=range(1), count=60)
