"""DISTINCT, set operations and grouping sets give the rows that DuckDB gives, in any order."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from duckdb_agreement import agreed_rows

import cq

STREAMS = """
CREATE STREAM a (k BIGINT, t VARCHAR, v DOUBLE) WITH (connector = 'memory');
CREATE STREAM b (k BIGINT, t VARCHAR, v DOUBLE) WITH (connector = 'memory');
"""
QUERIES = [
    "SELECT DISTINCT * FROM a",
    "SELECT a.* EXCLUDE v REPLACE (k + 1 AS k) FROM a",
    "SELECT DISTINCT k + 1 AS l, COUNT(*) AS n FROM a GROUP BY k, t",
    "SELECT * FROM a UNION SELECT * FROM b",
    "SELECT k, t, COUNT(*) AS n, SUM(v) AS total, GROUPING(t, k) AS g FROM a GROUP BY ROLLUP(k, t)",
    "SELECT k + 1 AS l, t, MAX(v) AS most FROM a GROUP BY GROUPING SETS (t, (l, t), ()), CUBE(v) HAVING COUNT(*) > 2",
    "SELECT t, k, COUNT(*) AS n FROM a WHERE k > 9 GROUP BY CUBE(t, k)",
    "SELECT t, v > 0.7 AS high, AVG(k) AS mean FROM a GROUP BY ALL",
    "SELECT k, v FROM a INTERSECT SELECT k, v FROM b",
    "SELECT k, v FROM a INTERSECT ALL SELECT k, v FROM b",
    "SELECT k, t FROM a EXCEPT SELECT k, t FROM b WHERE k > 2",
    "SELECT t, v FROM a EXCEPT ALL SELECT t, v FROM b",
    "SELECT k FROM a EXCEPT ALL SELECT k FROM b UNION ALL SELECT k FROM b INTERSECT SELECT 3 AS k FROM a",
    "SELECT k FROM a EXCEPT SELECT k FROM b WHERE k = 2 EXCEPT SELECT k FROM b WHERE k = 4",
    "SELECT k FROM a INTERSECT ALL SELECT k FROM b INTERSECT ALL SELECT k FROM a WHERE k < 4",
    "SELECT k FROM a EXCEPT (SELECT k FROM b EXCEPT SELECT k FROM b WHERE k = 1)",
    "SELECT MAX(v) AS most FROM a GROUP BY ALL",
    "SELECT t FROM a UNION ALL (SELECT t FROM b EXCEPT SELECT t FROM a WHERE k > 2) EXCEPT ALL SELECT t FROM b",
]


def tables() -> dict[str, pa.Table]:
    dice = random.Random(15)
    made = {}
    for name in ("a", "b"):
        columns = {"k": pa.array([dice.choice([None, 1, 2, 3, 4]) for _ in range(40)], pa.int64())}
        columns["t"] = pa.array([dice.choice([None, "", "x", "a text of more than twelve bytes"]) for _ in range(40)])
        columns["v"] = pa.array([dice.choice([None, 0.5, 1.0]) for _ in range(40)], pa.float64())
        made[name] = pa.table(columns)
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_sets_gives_the_rows_of_duckdb(query: str) -> None:
    assert agreed_rows(STREAMS, query, tables())


def test_grouping_sets_beside_each_other_multiply_in_the_order_written() -> None:
    text = """CREATE STREAM s (k BIGINT, v BIGINT, w VARCHAR) WITH (connector = 'memory');
    SELECT k, v % 2 AS odd, w, COUNT(*) AS n, GROUPING_ID() AS g FROM s
    GROUP BY w, GROUPING SETS ((k, odd), ()), CUBE(k) HAVING COUNT(*) > 0;"""
    rows = [(1, 5, "m"), (2, 5, "n"), (1, 6, "m")]
    run = cq.sql(text).run(inputs={"s": [dict(zip("kvw", row, strict=True)) for row in rows]}, engine="reference")
    fine = [(1, 1, "m", 1, 0), (2, 1, "n", 1, 0), (1, 0, "m", 1, 0)]
    found = [tuple(row.values()) for row in run["result"].to_arrow().to_pylist()]
    assert found == [
        *fine,
        *fine,
        *[(1, None, "m", 2, 1), (2, None, "n", 1, 1)],
        *[(None, None, "m", 2, 3), (None, None, "n", 1, 3)],
    ]
