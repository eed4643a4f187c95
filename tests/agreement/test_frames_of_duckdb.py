"""Aggregates of frames, and window functions, give what DuckDB gives."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from duckdb_agreement import agreed_rows

STREAM = "CREATE STREAM s (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts)" + (
    " WITH (connector = 'memory');\n"
)
FRAMES = [  # in the order of id, which is that of ts, or of all rows of one ts
    "ORDER BY id ROWS 3 PRECEDING",
    "ORDER BY id ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
    "ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "PARTITION BY k ORDER BY id DESC ROWS 2 PRECEDING",
    "PARTITION BY k ORDER BY v NULLS FIRST, id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    "PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING",
    "PARTITION BY k ORDER BY ts",
    "ORDER BY ts RANGE CURRENT ROW",
    "PARTITION BY k ORDER BY ts RANGE INTERVAL '4' SECOND PRECEDING",
    "ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND INTERVAL '2' SECOND PRECEDING",
    "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND FOLLOWING AND INTERVAL '3' SECOND FOLLOWING",
    "ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1' SECOND FOLLOWING",
    "ORDER BY ts RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND UNBOUNDED FOLLOWING",
    "ORDER BY ts DESC RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND INTERVAL '1' SECOND FOLLOWING",
    "PARTITION BY k ORDER BY id DESC RANGE BETWEEN 7 PRECEDING AND 4 FOLLOWING",
    "ORDER BY v NULLS FIRST RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ORDER BY v DESC NULLS LAST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "PARTITION BY k ORDER BY v NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "PARTITION BY k ORDER BY v NULLS FIRST RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ORDER BY CAST(v AS DECIMAL(5,1)) / 1 NULLS FIRST RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING",
    "ORDER BY CAST(ts AS DATE) RANGE INTERVAL '1' DAY PRECEDING",
    "PARTITION BY v ORDER BY k DESC NULLS LAST, x NULLS FIRST",
    "ORDER BY k NULLS FIRST GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY v ORDER BY x NULLS FIRST GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ORDER BY id ROWS 3 PRECEDING EXCLUDE CURRENT ROW",
    "ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "ORDER BY id DESC ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
    "PARTITION BY k ORDER BY ts RANGE UNBOUNDED PRECEDING EXCLUDE GROUP",
    "ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND INTERVAL '2' SECOND FOLLOWING EXCLUDE GROUP",
    "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW EXCLUDE TIES",
    "ORDER BY v NULLS FIRST RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
    "PARTITION BY v ORDER BY k DESC NULLS LAST, x NULLS FIRST GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
    "ORDER BY v NULLS FIRST GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES",
]
CALLS = (
    "SUM(v) OVER w AS s, COUNT(*) OVER w AS n, COUNT(v) OVER w AS c, MIN(v) OVER w AS least, MAX(k) OVER w AS text, "
    "AVG(v) OVER w AS a, SUM(x) OVER w AS d, BOOL_OR(v > 4) OVER w AS b, COUNT(*) FILTER (WHERE v > 2) OVER w AS f"
)


def table() -> pa.Table:
    dice, seconds = random.Random(8), 0
    rows = []
    for number in range(80):
        seconds += dice.choice([0, 0, 1, 2, 5])
        text = dice.choice([None, "", "x", "a text of more than twelve bytes", "a text of more than twelve letters"])
        at = datetime(2024, 1, 1) + timedelta(seconds=seconds)
        number_or_null, half = dice.choice([None, *range(9)]), dice.choice([None, -0.5, 1.5, 2.25])
        rows.append({"id": number, "k": text, "v": number_or_null, "x": half, "ts": at})
    types = [("id", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64()), ("ts", pa.timestamp("us"))]
    return pa.Table.from_pylist(rows, pa.schema(types))


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_has_the_rows_that_duckdb_gives_it(frame: str) -> None:
    found = agreed_rows(STREAM, f"SELECT id, {CALLS} FROM s WINDOW w AS ({frame})", {"s": table()})
    assert len(found) == 80


@pytest.mark.parametrize("partition", ["", "PARTITION BY k "])
@pytest.mark.parametrize("order", ["ts, id", "v DESC NULLS LAST, id", "v NULLS FIRST"])
def test_window_functions_give_what_duckdb_gives(partition: str, order: str) -> None:
    calls = ["PERCENT_RANK()", "CUME_DIST()"]
    if order.endswith("id"):  # of peers any may come first
        calls += ["LEAD(v)", "LEAD(k, 2, '-') ", "LEAD(id, 0)", "NTILE(4)", "NTILE(100)", "LAST_VALUE(k IGNORE NULLS)"]
        calls += [f"{name}({args} IGNORE NULLS)" for name in ("LAG", "LEAD") for args in ("v", "k, 2, '-'", "v, 3, id")]
    items = ", ".join(f"{call} OVER ({partition}ORDER BY {order}) AS c{n}" for n, call in enumerate(calls))
    assert len(agreed_rows(STREAM, f"SELECT id, {items} FROM s", {"s": table()})) == 80


NESTED = (
    "NTH_VALUE(id, 3) OVER w AS third, NTH_VALUE(v, 2 IGNORE NULLS) OVER w AS second, COUNT(DISTINCT v) OVER w AS n, "
    "SUM(DISTINCT v) FILTER (WHERE id % 3 > 0) OVER w AS s, MEDIAN(v) OVER w AS m, STRING_AGG(k, ',') OVER w AS texts"
)


@pytest.mark.parametrize(
    "frame",
    [
        "PARTITION BY k ORDER BY id",
        "ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
        "PARTITION BY k ORDER BY v DESC NULLS LAST, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "ORDER BY id DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 5 FOLLOWING",
        "PARTITION BY k ORDER BY id ROWS BETWEEN 4 PRECEDING AND 1 FOLLOWING",
        "ORDER BY id RANGE BETWEEN 6 PRECEDING AND 2 PRECEDING",
        "PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW",
    ],
)
def test_calls_made_of_other_calls_give_what_duckdb_gives(frame: str) -> None:
    query = f"SELECT id, {NESTED}, ROW_NUMBER() OVER (ORDER BY v, id) AS r FROM s WINDOW w AS ({frame})"
    assert len(agreed_rows(STREAM, query.replace("BY v, id", "BY v NULLS FIRST, id"), {"s": table()})) == 80


@pytest.mark.parametrize(
    "frame", ["ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN 4 PRECEDING AND 3 PRECEDING"]
)
def test_the_nth_value_of_a_frame_that_moves_is_that_of_duckdb(frame: str) -> None:
    query = f"SELECT id, NTH_VALUE(k, 2) OVER (PARTITION BY v ORDER BY id {frame}) AS second FROM s"
    assert len(agreed_rows(STREAM, query, {"s": table()})) == 80
