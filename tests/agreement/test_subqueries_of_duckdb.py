"""Sub-queries give the rows that DuckDB gives, in any order."""

from __future__ import annotations

import pytest
from duckdb_agreement import A_AND_B, a_and_b, agreed_rows

CONDITIONS = [
    "k IN (SELECT k FROM b)",
    "k + 3 IN (SELECT k FROM b WHERE w > 6)",
    "v NOT IN (SELECT w FROM b WHERE w > 5)",
    "k = ANY (SELECT k FROM b WHERE k < 4) AND v <> ALL (SELECT w FROM b WHERE w > 5)",
    "v NOT IN (SELECT k FROM b)",
    "k NOT IN (SELECT k FROM b WHERE k > 3)",
    "k NOT IN (SELECT k FROM b WHERE k > 9)",
    "NOT (v IN (SELECT w FROM b WHERE b.k = a.k))",
    "k NOT IN (SELECT k FROM b WHERE b.t = a.t)",
    "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.v)",
    "EXISTS (SELECT k, w FROM b WHERE b.w < v LIMIT 3)",
    "NOT EXISTS (SELECT * FROM b AS a WHERE a.t = 'x' AND a.k > v)",
    "NOT EXISTS (SELECT * FROM b WHERE b.t = a.t AND w = v)",
    "EXISTS (SELECT DISTINCT t FROM b WHERE b.k = a.k AND w > 2)",
    "v NOT IN (SELECT DISTINCT w FROM b WHERE b.t = a.t)",
    "v IN (SELECT w + a.k FROM b)",
    "v NOT IN (SELECT w + a.k FROM b WHERE b.t = 'x')",
    "EXISTS (SELECT 1 FROM b WHERE w > 100) AND v > 1",
    "NOT EXISTS (SELECT 1 FROM b WHERE w > 100) AND v > 1",
    "t IN (SELECT t FROM b GROUP BY t HAVING COUNT(*) > 6) AND k = 2",
    "k IN (SELECT k FROM b UNION ALL SELECT v FROM a) AND t NOT IN (SELECT t FROM b WHERE t <> 'x')",
    "k IN (SELECT k FROM b WHERE w IN (SELECT v FROM a WHERE t = 'x') AND b.t = a.t)",
    "v > (SELECT AVG(w) FROM b)",
    "v > (SELECT AVG(w) FROM b WHERE b.k = a.k) OR t = 'x'",
    "v BETWEEN (SELECT MIN(w) FROM b WHERE b.t = a.t AND w > 1) AND (SELECT SUM(w) FROM b WHERE a.t = b.t)",
    "(SELECT COUNT(*) FROM b WHERE b.k = a.k + 1 AND a.t = b.t) > 1",
    "v > (SELECT MAX(w) FROM b WHERE w > 100)",
    "v > 3 AND k IN (SELECT k FROM b) AND v > (SELECT AVG(v) FROM a)",
    "v > 6 OR k IN (SELECT k FROM b WHERE w > 6)",
    "v > 6 OR k NOT IN (SELECT k FROM b WHERE k > 3)",
    "v = 1 OR NOT (k IN (SELECT k FROM b WHERE k > 9) OR t = 'x')",
    "v > 6 OR NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND w > 7)",
    "v > 6 OR EXISTS (SELECT DISTINCT t FROM b GROUP BY t)",
    "v >= ALL (SELECT v FROM a WHERE v IS NOT NULL)",
    "v > ALL (SELECT w FROM b WHERE b.k = a.k)",
    "NOT (v <= ANY (SELECT w FROM b WHERE w < 3)) OR k < ALL (SELECT k FROM b)",
    "k < ANY (SELECT k FROM b GROUP BY k HAVING COUNT(*) > 7)",
    "v > ALL (SELECT w FROM b WHERE w > 100)",
    "k = ALL (SELECT k FROM b WHERE b.k = a.k AND w > 2)",
    "NOT (v = ALL (SELECT w FROM b WHERE w > 100))",
    "v = ALL (SELECT w FROM b WHERE w = 3) OR v = ALL (SELECT w FROM b)",
    "v <> ANY (SELECT w FROM b WHERE b.k > a.k)",
    "NOT (k <> ANY (SELECT k FROM b WHERE k = 3))",
    "(k, t) IN (SELECT k, t FROM b WHERE w > 4)",
    "(k, t) IN ((1, 'x'), (2, 'y'))",
    "k IS NOT NULL AND t IS NOT NULL AND (k, t) NOT IN ((1, 'x'), (2, 'y'))",
    "k > 0 AND (k, v) <> (1, 2)",
    "v = ANY ([1, 2, k]) OR k <> ALL ([1, v])",
]
QUERIES = [
    "SELECT k, v - (SELECT MIN(w) FROM b) AS d, (SELECT COUNT(w) FROM b WHERE b.k = a.k) AS n FROM a",
    "SELECT k, (SELECT COALESCE(SUM(w), -1) + COUNT(*) FROM b WHERE b.k = a.k + 2) AS s FROM a",
    "SELECT t, SUM(v) AS s, (SELECT MAX(w) FROM b WHERE b.t = a.t) AS m FROM a GROUP BY t"
    " HAVING SUM(v) > (SELECT AVG(w) FROM b) AND t IN (SELECT t FROM b WHERE k > 4)",
    "SELECT k, COUNT(*) AS n FROM a GROUP BY k HAVING NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND w > 7)",
    "SELECT SUM(v) - (SELECT SUM(k) FROM b) AS s FROM a",
    "SELECT AVG(v) - (SELECT AVG(w) - (SELECT MIN(v) FROM a) FROM b) AS s FROM a",
    "SELECT k, v FROM (SELECT k, v, (SELECT MAX(v) FROM a) AS m FROM a) AS x WHERE v = m",
    "SELECT k, k IN (SELECT k FROM b) AS i, t NOT IN (SELECT t FROM b WHERE t > 'x') AS j,"
    " EXISTS (SELECT 1 FROM b WHERE b.k = a.v) AS e FROM a",
    "SELECT k, (SELECT w FROM b WHERE b.k = a.k AND b.t = a.t ORDER BY w DESC LIMIT 1) AS w FROM a",
    "SELECT k, (SELECT DISTINCT k FROM b WHERE k = 3) AS w FROM a WHERE v = (SELECT v FROM a WHERE k > 99)",
    "SELECT k, (SELECT t FROM (SELECT t, MAX(w) AS m FROM b GROUP BY t) AS b WHERE b.t = a.t) AS w FROM a",
    "SELECT k, (SELECT COUNT(*) FROM b WHERE b.w < a.v) AS n,"
    " (SELECT SUM(w) FROM b WHERE b.k = a.k AND w <> v) AS s FROM a",
    "SELECT t, (SELECT COUNT(*) FROM b WHERE b.t < COALESCE(a.t, 'y') OR a.t IS NULL) AS n FROM a",
    "SELECT k, v FROM a WHERE 3 > (SELECT COUNT(DISTINCT w) FROM b WHERE b.w > a.v AND b.k BETWEEN a.k - 1 AND a.k)",
    "SELECT k, MAX(v) AS m FROM a GROUP BY k HAVING MAX(v) >= (SELECT AVG(w) FROM b WHERE b.k < a.k)",
    "SELECT k, (SELECT w FROM b WHERE b.k = a.k AND b.w <= a.v ORDER BY w DESC LIMIT 1) AS w FROM a",
    "SELECT k, v, n FROM a, LATERAL (SELECT COUNT(*) AS n FROM b WHERE b.k > a.k AND b.w <> a.v) AS l",
    "SELECT k, v > ALL (SELECT w FROM b WHERE b.k < a.k) AS g FROM a",
    "SELECT k, UNNEST([k, v]) AS e FROM a WHERE k > 2 ORDER BY ALL",
    "SELECT n, COUNT(k) AS c FROM generate_series(4, 0, -2) AS r(n) LEFT JOIN a ON k = n GROUP BY n",
    "SELECT x, range FROM UNNEST(['a', NULL]) AS u(x), range(2)",
    "FROM a SELECT k, COUNT(*) FILTER (v > 4) AS n, GROUP BY k",
    "FROM a",
    "SELECT a.* FROM a SEMI JOIN b ON a.k = b.k AND w > v",
    "SELECT v FROM a ANTI JOIN b USING (k, t)",
    "SELECT k, t, SUM(v) AS s FROM a GROUP BY ROLLUP((k, t))",
]


@pytest.mark.parametrize("query", [*(f"SELECT * FROM a WHERE {c}" for c in CONDITIONS), *QUERIES])
def test_a_sub_query_gives_the_rows_of_duckdb(query: str) -> None:
    agreed_rows(A_AND_B, query, a_and_b(seed=9))
