"""Joins give the rows that DuckDB gives, in any order."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from duckdb_agreement import A_AND_B, a_and_b, agreed_rows

QUERIES = [
    "SELECT * FROM a JOIN b USING (k)",
    "SELECT * FROM a NATURAL FULL JOIN b",
    "SELECT a.k, b.k AS l, v, w FROM a LEFT JOIN b ON a.k = b.k AND (w > v OR a.t = 'x')",
    "SELECT a.*, b.* FROM a RIGHT JOIN b ON a.t = b.t AND a.k + 1 = b.k",
    "SELECT x.v, y.v AS z, w FROM a AS x, a AS y, b WHERE x.k = y.k AND y.t = b.t AND x.v < y.v",
    "SELECT s.t, n, total FROM (SELECT t, COUNT(*) AS n FROM a GROUP BY t) AS s"
    " FULL JOIN (SELECT t, SUM(k) AS total FROM b GROUP BY t) AS r ON s.t = r.t",
    "SELECT k, COUNT(*) AS n FROM a LEFT JOIN b USING (k, t) GROUP BY k",
    "SELECT a.t, v, w FROM a CROSS JOIN b WHERE a.k = 1 AND b.k = 2",
    "SELECT a.k, v, b.k AS l, w FROM a FULL JOIN b ON v < w AND a.k > b.k",
    "SELECT x.k, total - v AS rest FROM a AS x, (SELECT SUM(v) AS total FROM a) AS s WHERE v * 20 < total",
    "SELECT a.*, n, s FROM a, LATERAL (SELECT COUNT(*) AS n, SUM(w) AS s FROM b WHERE b.k = a.k AND w > 2) AS b",
    "SELECT v, l.t, m FROM a LEFT JOIN LATERAL (SELECT t, w * 2 AS m FROM b WHERE b.k = a.k AND w > v) AS l ON TRUE",
    "SELECT a.k, l.w FROM a CROSS JOIN LATERAL (SELECT w, 1 FROM b WHERE k = a.k ORDER BY 1 DESC LIMIT 2) AS l",
    "SELECT a.v, l.x, l.y FROM a LEFT JOIN LATERAL (SELECT MIN(w), MAX(w) FROM b WHERE b.t = a.t) AS l(x, y) ON TRUE",
    "SELECT a.v, z FROM a, LATERAL (SELECT v + k AS y) AS l, LATERAL (SELECT y * 2 AS z) AS m WHERE z > 9",
    "SELECT v, n FROM a JOIN LATERAL (SELECT COUNT(*) AS n FROM b WHERE b.t = a.t) AS l ON n > v",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_join_gives_the_rows_of_duckdb(query: str) -> None:
    assert agreed_rows(A_AND_B, query, a_and_b(seed=8)).total() > 3


TIMED = """
CREATE STREAM a (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH (connector = 'memory');
CREATE STREAM b (k BIGINT, w VARCHAR, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
"""
SECONDS = "INTERVAL '4' SECOND"
BY_TIME = [
    "SELECT a.*, w, b.ts AS u FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "SELECT k, ts, v, w FROM a ASOF LEFT JOIN b USING (k, ts)",
    "SELECT a.*, w FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts > b.ts AND b.w <> 'x' AND a.v > 2",
    "SELECT a.*, w FROM a ASOF JOIN b ON a.ts <= b.ts AND b.k = 1",
    f"SELECT a.*, b.k AS l FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts < b.ts AND b.ts - a.ts <= {SECONDS}",
    f"SELECT a.*, b.k AS l FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts + {SECONDS}",
    "SELECT x.*, y.v AS before, w FROM a AS x ASOF LEFT JOIN a AS y ON x.k = y.k AND x.ts > y.ts"
    " ASOF JOIN b ON x.ts >= b.ts",
    f"SELECT a.k, v, b.k AS l, w FROM a FULL JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - {SECONDS} AND a.ts",
    f"SELECT a.*, w FROM a JOIN b ON a.k = b.k AND a.ts - b.ts < {SECONDS} AND b.ts - a.ts < {SECONDS}",
]


def timed(seed: int) -> dict[str, pa.Table]:
    """Rows of both streams: no two of one stream have one time, and those of `a` come up to 4 seconds late."""
    dice, start, made = random.Random(seed), datetime(2024, 1, 1), {}
    for name, value, kind, drawn in (("a", "v", pa.int64(), range(9)), ("b", "w", pa.string(), ["x", "y", None])):
        times = [start + timedelta(seconds=n, milliseconds=500 * dice.randrange(2)) for n in range(40)]
        if name == "a":
            times = [t for n in range(0, 40, 4) for t in dice.sample(times[n : n + 4], 3)]
        columns = {"k": pa.array([dice.choice([None, 1, 2, 3]) for _ in times], pa.int64())}
        columns[value] = pa.array([dice.choice(drawn) for _ in times], kind)
        made[name] = pa.table({**columns, "ts": pa.array(times, pa.timestamp("us"))})
    return made


@pytest.mark.parametrize("query", BY_TIME)
def test_a_join_by_time_gives_the_rows_of_duckdb(query: str) -> None:
    assert agreed_rows(TIMED, query, timed(seed=8)).total() > 3
