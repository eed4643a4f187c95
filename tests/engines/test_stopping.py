"""A run that somebody asks to stop does not wait for rows that test any number of pairs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import cq
from cq.engines.protocol import Delivery
from cq.runtime.engine import engine

ROWS = 5000
TABLE = pa.table({"k": [0] * ROWS, "v": range(ROWS), "ts": pa.array(range(ROWS), pa.timestamp("us"))})
TIMED = "".join(
    f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory'); "
    for name in "ab"
)
QUERIES = {
    "all pairs": "SELECT COUNT(*) AS n FROM a JOIN b ON a.v < b.v;",
    "one key": "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k AND a.v < b.v;",
    "exists": "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.v < a.v - 100000);",
    "interval": TIMED + "SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v + b.v < 0 "
    "AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '1' SECOND;",
}


def stop_at_once(delivery: Delivery, stop: Callable[[], None]) -> None:
    stop()


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("threads", [0, 2])
def test_rows_with_many_pairs_stop_between_two(monkeypatch: pytest.MonkeyPatch, name: str, threads: int) -> None:
    query = cq.sql(QUERIES[name], a=TABLE, b=TABLE)
    assert not query.run(threads=threads).stats.interrupted
    monkeypatch.setattr(engine, "GRACE_NS", -1)
    monkeypatch.setattr(Delivery, "on_interrupt", stop_at_once)
    assert query.run(threads=threads).stats.interrupted
