"""Every operator on Spark gives the reference's rows, in the reference's order: hand-made and random data."""

from __future__ import annotations

import random

import pytest
from spark_agreement import assert_agree, plan_of
from spark_fixture import spark  # noqa: F401

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

S = 1_000_000
BASE = 1_700_000_000 * S
DELAYED = """
CREATE STREAM s (k BIGINT, v BIGINT, d DOUBLE, w VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH (connector = 'memory');
"""
PROMPT = DELAYED.replace(" AS ts - INTERVAL '5' SECOND", "")
SECOND = """
CREATE STREAM t (k BIGINT, x BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH (connector = 'memory');
"""
WORDS = ["", "a", "b a", "a  b", "ä,.b", None]
FLOATS = [0.0, -0.0, 1.5, -2.25, float("nan"), None]


def rows_of_s(seed: int, count: int = 120) -> list[tuple]:
    """Rows out of order: some late, some with a NULL time, many with equal times."""
    r = random.Random(seed)
    rows = []
    for i in range(count):
        second = i // 3 + r.choice([0, 0, 0, -1, -2, -4, -6, -9, 3])
        ts = None if r.random() < 0.03 else BASE + second * S + r.choice([0, 0, -1, 400_000])
        v = None if r.random() < 0.1 else r.randrange(-20, 20)
        rows.append((r.choice([None, 1, 2, 3]), v, r.choice(FLOATS), r.choice(WORDS), ts))
    return rows


def rows_of_t(seed: int, count: int = 80) -> list[tuple]:
    r = random.Random(seed)
    return [
        (r.choice([None, 1, 2, 3]), r.randrange(9), BASE + (i // 2 + r.choice([0, 0, -1, -3, 2])) * S)
        for i in range(count)
    ]


def agree(text: str, *, seeds: range = range(2), count: int = 120) -> None:
    plan = plan_of(text)
    for seed in seeds:
        assert_agree(plan, {"s": rows_of_s(seed, count), "t": rows_of_t(seed + 100)}, f"seed {seed}")
    assert_agree(plan, {"s": [], "t": []}, "empty")


@pytest.mark.parametrize("stream", [DELAYED, PROMPT], ids=["delayed", "prompt"])
def test_a_tumbling_window_drops_late_rows_and_leaves_by_end_and_first_arrival(stream):
    agree(
        stream
        + """
        SELECT window_start, window_end, k, COUNT(*) AS n, COUNT(v) AS vs, SUM(v) AS total, AVG(v) AS mean,
               MIN(d) AS least, MAX(d) AS most, COUNT(DISTINCT v) AS kinds, COUNT(*) FILTER (WHERE v > 3) AS big
        FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, k;
        """
    )
