"""Joins give the rows that DuckDB gives, in any order."""

from __future__ import annotations

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
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_join_gives_the_rows_of_duckdb(query: str) -> None:
    assert agreed_rows(A_AND_B, query, a_and_b(seed=8)).total() > 3
