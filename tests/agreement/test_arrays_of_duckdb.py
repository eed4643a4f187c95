"""Functions of arrays, UNNEST and ARRAY_AGG give what DuckDB gives wherever both mean the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from duckdb_agreement import agreed_rows

STREAM = "CREATE STREAM s (k BIGINT, a BIGINT[], t VARCHAR[], d DOUBLE[]) WITH (connector = 'memory');\n"
QUERIES = [
    "SELECT k, a[1] AS f, a[-1] AS l, a[k] AS ak, a[9] AS none, LEN(t) AS n, t[2] AS t2, d[2] AS d2 FROM s",
    "SELECT k, ARRAY_CONTAINS(a, 3) AS has, LIST_HAS(t, 'x') AS x, a = [1, 2] AS same, t <> ['x'] AS other FROM s",
    "SELECT a || [k] AS ak, t || t AS tt, LIST_SLICE(a, 2, 3) AS part, LIST_SLICE(t, 2, -1) AS rest FROM s",
    "SELECT LIST_REVERSE(t) AS r, LIST_MIN(a) AS low, LIST_MAX(t) AS high, LIST_SUM(d) AS total FROM s",
    "SELECT LIST_SORT(a) AS sa, LIST_SORT(t) AS st, LIST_SORT(d) AS sd, ARRAY_TO_STRING(t, '-') AS text FROM s",
    "SELECT CAST(a AS DOUBLE[]) AS f, CAST(a AS VARCHAR[]) AS t, TRY_CAST(t AS BIGINT[]) AS n FROM s",
    "SELECT k, x FROM s, UNNEST(a) AS u(x)",
    "SELECT x, COUNT(*) AS n FROM s CROSS JOIN UNNEST(t) AS u(x) GROUP BY x",
    "SELECT a, COUNT(*) AS n, COUNT(DISTINCT t) AS texts FROM s GROUP BY a",
    "SELECT k, ARRAY_AGG(a[1] ORDER BY a[1] DESC NULLS LAST) AS xs FROM s GROUP BY k",
    "SELECT k, LIST_SORT(ARRAY_AGG(DISTINCT t[1])) AS ts, ARRAY_AGG(k) FILTER (WHERE k > 1) AS ks FROM s GROUP BY k",
    "SELECT k, STRING_AGG(t[1], '/' ORDER BY t[1] DESC) AS ts FROM s GROUP BY k",
]


def table() -> pa.Table:
    dice = random.Random(8)

    def lists(values: Sequence[object]) -> list[list[object] | None]:
        return [dice.choice([None, [], dice.choices(values, k=dice.randrange(5))]) for _ in range(60)]

    columns = [pa.array([dice.choice([1, 2, 3]) for _ in range(60)], pa.int64())]
    columns.append(pa.array(lists([None, 1, 2, 3, 4]), pa.list_(pa.int64())))
    columns.append(pa.array(lists([None, "", "x", "12", "a text of more than twelve bytes"]), pa.list_(pa.string())))
    columns.append(pa.array(lists([None, 0.5, 1.25, -3.0]), pa.list_(pa.float64())))
    return pa.table(columns, names=["k", "a", "t", "d"])


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_arrays_gives_the_rows_of_duckdb(query: str) -> None:
    assert agreed_rows(STREAM, query, {"s": table()})
