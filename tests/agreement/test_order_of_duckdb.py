"""ORDER BY, LIMIT and ranks give the rows that DuckDB gives, in the same order."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

import cq

duckdb = pytest.importorskip("duckdb")

STREAM = "CREATE STREAM s (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE) WITH (connector = 'memory');\n"
QUERIES = [
    "SELECT * FROM s ORDER BY x DESC NULLS LAST, k NULLS FIRST, v DESC NULLS LAST, id",
    "SELECT k, v AS w FROM s WHERE v > 1 ORDER BY k DESC NULLS FIRST, w + id % 7, id LIMIT 9 OFFSET 4",
    "SELECT k, SUM(v) AS total FROM s GROUP BY k ORDER BY COUNT(*) DESC, 2 NULLS FIRST, 1 NULLS FIRST",
    "SELECT n, COUNT(*) AS c FROM (SELECT v AS n FROM s ORDER BY id DESC LIMIT 20) AS t GROUP BY n"
    " ORDER BY n NULLS LAST",
    "SELECT k, id, RANK() OVER (PARTITION BY k ORDER BY x NULLS FIRST) AS r,"
    " DENSE_RANK() OVER (ORDER BY v NULLS LAST) AS d,"
    " SUM(v) OVER (ORDER BY x, id ROWS UNBOUNDED PRECEDING) AS total FROM s ORDER BY id",
    "SELECT k, v FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) <= 2 ORDER BY 1, 2",
    "SELECT k FROM s UNION ALL SELECT k || '!' FROM s ORDER BY k DESC NULLS LAST LIMIT 12",
]


def table() -> pa.Table:
    dice = random.Random(4)
    texts = [None, "", "x", "Y", "é", "a text of more than twelve bytes", "a text of more than twelve bytes and one"]
    numbers = [None, -0.0, 0.0, 1.5, -math.inf, math.nan, -2.25, 1e300]
    rows = range(60)
    columns = {"id": pa.array(rows, pa.int64()), "k": pa.array([dice.choice(texts) for _ in rows])}
    columns["v"] = pa.array([dice.choice([None, *range(6)]) for _ in rows], pa.int64())
    columns["x"] = pa.array([dice.choice(numbers) for _ in rows], pa.float64())
    return pa.table(columns)


@pytest.mark.parametrize("query", QUERIES)
def test_an_order_is_that_of_duckdb(query: str) -> None:
    given = table()
    found = cq.sql(STREAM + query + ";").run(inputs={"s": given}, engine="reference")["result"].to_arrow()
    with duckdb.connect() as base:
        base.register("s", given)
        base.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        expected = base.execute(query).fetchall()
    assert repr([tuple(row.values()) for row in found.to_pylist()]) == repr(expected)
    assert len(expected) > 3
