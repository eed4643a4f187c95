"""EMIT CHANGES is accepted where results have no earlier versions: then the changes are the rows."""

from __future__ import annotations

import pytest

from cq.compiler.passes import compile
from cq.errors import CompileError

STREAMS = """
CREATE STREAM t (k BIGINT, v BIGINT) WITH (path = 't.csv');
CREATE STREAM a (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'a.csv');
CREATE STREAM b (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (path = 'b.csv');
"""
BY_TIME = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a UNION ALL SELECT k FROM b",
        f"SELECT a.v FROM a JOIN b ON {BY_TIME}",
        f"SELECT a.v FROM a LEFT JOIN b ON {BY_TIME}",  # emitted once, when no match can come any more
        f"SELECT a.v FROM a FULL JOIN b ON {BY_TIME}",
        f"SELECT a.v FROM a ANTI JOIN b ON {BY_TIME}",
        "SELECT a.v FROM a JOIN b ON a.k = b.k",
        "SELECT a.v FROM a LEFT JOIN t ON a.k = t.k",  # all rows of t come first
        "SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = a.k)",
        "SELECT a.v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
        "SELECT a.v FROM a ASOF LEFT JOIN b ON a.k = b.k AND b.ts >= a.ts AND b.ts <= a.ts + INTERVAL '1' SECOND",
        "SELECT SUM(v) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS s FROM a",
        "SELECT SUM(v) OVER (PARTITION BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM a",
    ],
)
def test_results_with_one_version_are_their_own_changes(query: str) -> None:
    compile(f"{STREAMS} {query} EMIT CHANGES")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM a GROUP BY k",
        "SELECT COUNT(*) AS n FROM a GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        "SELECT COUNT(*) AS n FROM a GROUP BY SESSION(ts, INTERVAL '1' MINUTE)",
        "SELECT v FROM a ORDER BY v",
        "SELECT a.v FROM a LEFT JOIN b ON a.k = b.k",  # any later row may match
        "SELECT a.v FROM a FULL JOIN t ON a.k = t.k",
        "SELECT a.v FROM a ANTI JOIN b ON a.k = b.k",
        "SELECT a.v FROM a LEFT JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS g ON a.k = g.k",
        "SELECT t.v FROM t LEFT JOIN t AS u ON t.k = u.k",
        "SELECT a.v FROM a ASOF JOIN b ON a.k = b.k AND b.ts >= a.ts",
        "SELECT SUM(v) OVER (PARTITION BY k ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS s FROM a",
        "SELECT SUM(v) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND INTERVAL '1' SECOND FOLLOWING) AS s FROM a",
    ],
)
def test_results_with_earlier_versions_have_more_changes_than_rows(query: str) -> None:
    with pytest.raises(CompileError, match="EMIT CHANGES of results that change") as raised:
        compile(f"{STREAMS} {query} EMIT CHANGES")
    assert raised.value.code == "CQ0501"
