"""Joins give the rows that DuckDB gives, in any order."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import cq

duckdb = pytest.importorskip("duckdb")

STREAMS = """
CREATE STREAM a (k BIGINT, t VARCHAR, v BIGINT) WITH (connector = 'memory');
CREATE STREAM b (k BIGINT, t VARCHAR, w DOUBLE) WITH (connector = 'memory');
"""
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
]


def tables() -> dict[str, pa.Table]:
    dice = random.Random(8)
    keys, texts = [None, 1, 2, 3, 4, 5], [None, "", "x", "y", "a text of more than twelve bytes"]
    made = {}
    for name, value, kind in (("a", "v", pa.int64()), ("b", "w", pa.float64())):
        columns = {"k": pa.array([dice.choice(keys) for _ in range(40)], pa.int64())}
        columns["t"] = pa.array([dice.choice(texts) for _ in range(40)])
        columns[value] = pa.array([dice.randrange(9) for _ in range(40)], kind)
        made[name] = pa.table(columns)
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_a_join_gives_the_rows_of_duckdb(query: str) -> None:
    given = tables()
    run = cq.sql(STREAMS + query + ";").run(inputs=given, engine="reference")
    found = Counter(map(tuple, (row.values() for row in run["result"].to_arrow().to_pylist())))
    with duckdb.connect() as base:
        for name, table in given.items():
            base.register(name, table)
        assert found == Counter(base.execute(query).fetchall())
    assert found.total() > 3
