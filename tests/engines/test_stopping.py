"""A run that somebody asks to stop does not wait for rows that test any number of pairs."""

from __future__ import annotations

import threading
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
    monkeypatch.setattr(engine, "GRACE_NS", 0)
    monkeypatch.setattr(Delivery, "on_interrupt", stop_at_once)
    assert query.run(threads=threads).stats.interrupted


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_ask_python_stop_before_they_do(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    asked: list[int] = []
    told: list[Callable[[], None]] = []

    @cq.udf
    def slow(v: int) -> int:
        asked.append(v)
        told[0]()  # as Ctrl-C while Python works
        assert stopping.wait(20), "kernels are told before the function returns"
        return v

    stopping = threading.Event()
    real = engine._stop_kernels

    def stop_kernels(*plant: object) -> None:
        real(*plant)  # type: ignore[arg-type]
        stopping.set()

    monkeypatch.setattr(engine, "_stop_kernels", stop_kernels)
    monkeypatch.setattr(engine, "GRACE_NS", 0)
    monkeypatch.setattr(Delivery, "on_interrupt", lambda delivery, stop: told.append(stop))
    rows = [{"v": v} for v in range(100)]
    stats = cq.sql("SELECT slow(v) AS y FROM t", t=rows, functions=[slow]).run(threads=threads).stats
    assert stats.interrupted and len(asked) <= threads
