"""Windows many times as long as their slide: what is added up from shared sums is what the reference gives."""

from __future__ import annotations

import random

import pytest
from cases import Prepared, Row, Way

STREAM = """CREATE STREAM s (k BIGINT, w VARCHAR, v BIGINT, ts TIMESTAMP NOT NULL,
WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND) WITH (connector = 'memory');
"""
START_US = 1_704_067_200_000_000  # 2024-01-01
EXACT = "COUNT(*) AS n, SUM(v) AS total, MIN(v) AS low, MAX(w) AS last, COUNT(v) FILTER (WHERE v > 3) AS many"
INEXACT = "SUM(CAST(v AS DOUBLE) / 7) AS total, COUNT(DISTINCT v) AS values_"
WAYS = (Way(0, 7), Way(2, 3), Way(4, 4096), Way(0, 5, interpreted=True))


def rows(r: random.Random, count: int, keys: int, delay_s: int, rest: float) -> list[Row]:
    """Rows about a second apart, some a long time after the one before: then there are empty panes and windows."""
    made: list[Row] = []
    now = 0.0
    for _ in range(count):
        now += r.random() * 2 if r.random() > rest else r.choice([9, 31, 70])
        at = START_US + max(0, round((now - r.random() * delay_s * 1.2) * 10)) * 100_000
        value = None if r.random() < 0.1 else r.randrange(10)
        made.append((r.randrange(keys), r.choice([None, "a", "bb", "a text that is longer than twelve"]), value, at))
    return made


def prepared(slide_s: int, size_s: int, delay_s: int, key: str, aggregates: str) -> Prepared:
    groups = f"window_start, window_end, {key}" if key else "window_start, window_end"
    return Prepared(
        STREAM.format(delay=delay_s) + f"SELECT {groups}, {aggregates} FROM HOP(TABLE s, DESCRIPTOR(ts), "
        f"INTERVAL '{slide_s}' SECOND, INTERVAL '{size_s}' SECOND) GROUP BY {groups};"
    )


@pytest.mark.parametrize(
    ("slide_s", "size_s", "delay_s", "key", "aggregates"),
    [
        (1, 40, 0, "k", EXACT),
        (1, 40, 5, "k", EXACT),
        (2, 64, 4, "w", EXACT),
        (3, 50, 4, "k", EXACT),  # the slide is no part of the size: panes of a second
        (1, 25, 3, "", EXACT),
        (1, 40, 5, "k", INEXACT),
    ],
    ids=["no delay", "a delay", "a key of text", "another grid", "no key", "one after the other"],
)
@pytest.mark.one_in(3)
def test_sums_that_windows_share_are_those_of_their_rows(
    slide_s: int, size_s: int, delay_s: int, key: str, aggregates: str
) -> None:
    case = prepared(slide_s, size_s, delay_s, key, aggregates)
    r = random.Random(f"{slide_s} {size_s} {delay_s} {key}")
    for number, way in enumerate(WAYS):
        for keys, rest in ((2, 0.0), (2, 0.05), (30, 0.01)):
            case.give({"s": rows(r, 240, keys, delay_s, rest)}, cuts=(50, 1, 13))
            expected, found = case.reference(), case.native(way)
            assert found == expected, f"{number} {way}: {found.difference(expected)}"
