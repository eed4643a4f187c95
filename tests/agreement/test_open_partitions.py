"""Partitions that event time closes are forgotten: no row depends on it, and memory does not grow with the input."""

from __future__ import annotations

import random
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from cases import Prepared, Way

from cq.engines.analysis import analyze
from cq.runtime.containers import tables

SECOND = 1_000_000
STREAM = (
    "CREATE STREAM s (k BIGINT NOT NULL, v BIGINT, w VARCHAR NOT NULL, ts TIMESTAMP, "
    "WATERMARK FOR ts AS ts - INTERVAL '3' SECOND) WITH (connector = 'memory');\n"
)
TUMBLE = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '4' SECOND)"
HOP = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)"
SESSIONS = "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND)"
COUNTS = f"SELECT window_end, k, COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, window_end, k"
QUERIES = {
    "distinct": f"SELECT DISTINCT window_end, k, w FROM {TUMBLE}",
    "first of a window": f"SELECT k FROM {HOP} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end, k ORDER BY ts) < 3",
    "rank": f"SELECT k, v, RANK() OVER (PARTITION BY window_end, w ORDER BY v DESC) AS r FROM {TUMBLE}",
    "rank of counts": f"SELECT *, RANK() OVER (PARTITION BY window_end ORDER BY n DESC) AS r FROM ({COUNTS}) AS c",
    "lag": f"SELECT k, LAG(w) OVER (PARTITION BY window_time, k ORDER BY ts) AS p FROM {TUMBLE}",
    "session": f"SELECT DISTINCT window_end, k FROM {SESSIONS}",
}


def rows(seed: int, count: int) -> list[tuple[object, ...]]:
    """In small steps of time, some of them late."""
    rng, now, out = random.Random(seed), -40.0, list[tuple[object, ...]]()
    for _ in range(count):
        now += rng.choice([0, 0.25, 0.5, 1])
        time = int((now - rng.choice([0, 0, 1, 3, 9])) * SECOND)
        out.append((rng.randrange(4), rng.choice([None, 1, 2, 3]), rng.choice("ab") * rng.choice([1, 20]), time))
    return out


@pytest.fixture
def tiny_tables() -> Iterator[None]:
    """Tables begin with four slots, so that they are often full, and are dense from 32 on."""
    with patch.object(tables, "FIRST_LOG_SLOTS", 2), patch.object(tables, "SPREAD_BYTES", 32 * 64):
        yield


@pytest.mark.usefixtures("tiny_tables")
@pytest.mark.parametrize("name", QUERIES)
def test_rows_do_not_depend_on_what_is_forgotten(name: str) -> None:
    made = Prepared(STREAM + QUERIES[name] + ";")
    made.give({"s": rows(2, 150)}, cuts=(7, 64))
    expected = made.reference()
    for way in (Way(0, 1, interpreted=True), Way(4, 64, interpreted=True)):
        assert made.native(way) == expected, way


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.one_in(3)
def test_what_is_kept_does_not_grow_with_the_input(name: str, threads: int) -> None:
    made = Prepared(STREAM + QUERIES[name] + ";")

    def held(count: int) -> int:
        made.give({"s": rows(1, count)})
        return sum(n["held_bytes"] or 0 for n in analyze(made.compiled, threads)["nodes"])

    assert held(135_000) <= 1.5 * held(45_000)


def test_what_time_does_not_close_is_kept() -> None:
    """Late rows come to the first: of a time that has passed there may be more."""
    for query in ("SELECT DISTINCT ts, k FROM s", f"SELECT DISTINCT k, w FROM {TUMBLE}"):
        made = Prepared(STREAM + query + ";")
        made.give({"s": rows(1, 2_000)}, cuts=(11,))
        assert made.native(Way(1)) == made.reference()
        assert "(grows)" in made.compiled.for_workers(1).explain("rewritten")
