"""Casts of instants: kernels give what the reference gives, on random texts and times and at the ends of 64 bits."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cq
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.lang.zones import CYCLE_END_US, zone_of

QUERY = """SET time_zone = '{zone}';
CREATE STREAM s (ts TIMESTAMPTZ, at TIMESTAMP, d DATE, x VARCHAR) WITH (connector = 'memory');
SELECT TRY_CAST(ts AS TIMESTAMP) AS l, TRY_CAST(ts AS DATE) AS d, TRY_CAST(ts AS TIME) AS t, CAST(ts AS VARCHAR) AS v,
  TRY_CAST(at AS TIMESTAMPTZ) AS i, TRY_CAST(d AS TIMESTAMPTZ) AS m, TRY_CAST(x AS TIMESTAMPTZ) AS r,
  TRY_CAST(CAST(ts AS VARCHAR) AS TIMESTAMPTZ) = ts AS same FROM s;"""
DISTANCES = [
    "",
    "Z",
    "z",
    "UTC",
    "+02:00",
    "-0330",
    "+01",
    "+00:53:28",
    "-235959",
    "+24:00",
    "+1",
    "+02:",
    "+02:6",
    "CET",
]


def texts(rng: random.Random) -> str:
    clock = f"{rng.randrange(26):02}:{rng.randrange(62):02}" + rng.choice(
        ["", f":{rng.randrange(62):02}", ":07.1234567"]
    )
    day = f"{rng.choice([1, 1890, 1969, 2024, 2603, 12024]):04}-{rng.randrange(1, 14):02}-{rng.randrange(1, 33):02}"
    return (
        rng.choice(["", " ", ""]) + day + rng.choice(["", " " + clock + rng.choice(["", " "]) + rng.choice(DISTANCES)])
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "+05:45"])
def test_kernels_cast_instants_as_the_reference_does(zone: str) -> None:
    rng = random.Random(f"instants {zone}")
    known = zone_of(zone)
    changes = [t + by for t in (*known.utc[-6:], *known.local[-6:], CYCLE_END_US) for by in (-1, 0, 1)]
    times = [
        *changes,
        INT64_MIN,
        INT64_MAX,
        INT64_MAX - 7 * 3_600_000_000,
        *(rng.randrange(-(2**62), 2**62) for _ in range(300)),
    ]
    counts = pa.array([*times, None], pa.int64())
    rows = len(times)
    days = [-(2**31), 2**31 - 1, 106751990, *(rng.randrange(-(10**6), 10**6) for _ in range(rows - 3)), None]
    given = pa.table(
        {
            "ts": counts.cast(pa.timestamp("us", "UTC")),
            "at": counts.cast(pa.timestamp("us")),
            "d": pa.array(days, pa.int32()).cast(pa.date32()),
            "x": [*(texts(rng) for _ in range(rows)), None],
        }
    )
    query = cq.sql(QUERY.format(zone=zone))
    wanted = query.run({"s": given}, engine="reference").to_arrow()
    assert 50 < wanted["r"].null_count < rows - 50, "texts of both kinds"
    assert wanted["same"].to_pylist().count(False) == 0
    for threads in (0, 2):
        assert query.run({"s": given}, threads=threads).to_arrow() == wanted


def test_bad_text_fails_with_its_place() -> None:
    text = "CREATE STREAM s (x VARCHAR) WITH (connector = 'memory'); SELECT CAST(x AS TIMESTAMPTZ) AS ts FROM s;"
    for engine in ("reference", "native"):
        with pytest.raises(cq.DataError, match=r"cast.* to TIMESTAMP_LTZ") as failed:
            cq.sql(text).run({"s": [{"x": "2024-02-29"}, {"x": "2024-02-30"}]}, engine=engine)
        assert failed.value.code == "CQ0707" and "<s>:2" in str(failed.value)


def test_event_times_may_be_computed() -> None:
    text = (
        "SET time_zone = 'Europe/Berlin';"
        "CREATE STREAM s (x VARCHAR, ts AS CAST(x AS TIMESTAMPTZ), WATERMARK FOR ts) WITH (connector = 'memory');"
        "CREATE STREAM q (d DATE, ts AS CAST(d AS TIMESTAMPTZ), WATERMARK FOR ts) WITH (connector = 'memory');"
        "SELECT window_start FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start, window_end;"
        "SELECT window_start FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start, window_end;"
    )
    rows = {
        "s": [{"x": "2024-07-01 00:30:00"}],
        "q": pa.table({"d": pa.array([19905], pa.int32()).cast(pa.date32())}),
    }
    for engine, threads in (("reference", None), ("native", 0), ("native", 2)):
        result = cq.sql(text).run(rows, engine=engine, threads=threads)
        hour = pa.array([1719784800000000], pa.int64()).cast(pa.timestamp("us", "Europe/Berlin"))
        assert result["result"].to_arrow()["window_start"].combine_chunks() == hour
        assert result["result_2"].to_arrow()["window_start"].combine_chunks() == hour
