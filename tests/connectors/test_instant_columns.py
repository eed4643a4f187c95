"""TIMESTAMP_LTZ from and to every format: with a zone or without one, in the zone of the query."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cq
from cq.connectors.sinks.cell_text import column_text
from cq.connectors.zones import moved_to_utc, offsets_at
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.lang.value_text import write_instant
from cq.lang.zones import CYCLE_END_US, zone_of

HEAD = """SET time_zone = 'Europe/Berlin';
CREATE STREAM s (id BIGINT, ts TIMESTAMP_LTZ) WITH (connector = 'file', path = '{}');
"""
TEXTS = {
    "2024-03-31 02:30:00": 1711848600,
    "2024-10-27 02:30:00": 1729989000,
    "2024-10-27 02:30:00+01:00": 1729992600,
    "2024-10-27T00:30:00.25Z": 1729989000.25,
    "1890-01-01 00:00:00+00:53:28": -2524524808,
    "2024-03-31": 1711839600,
}


def micros(result: Any) -> list[int | None]:
    column = result.to_arrow().column("ts")
    assert column.type == pa.timestamp("us", "Europe/Berlin")
    return column.cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("texts", [list(TEXTS), *([t] for t in TEXTS)], ids=lambda t: f"{len(t)} from {t[0]}")
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_is_read_in_its_own_zone_or_that_of_the_query(tmp_path: Path, ending: str, texts: list[str]) -> None:
    rows = [*enumerate(texts), (len(texts), None)]
    file = tmp_path / f"s.{ending}"
    if ending == "csv":
        file.write_text("id,ts\n" + "".join(f"{n},{t or ''}\n" for n, t in rows))
    else:
        file.write_text("".join(json.dumps({"id": n, "ts": t}) + "\n" for n, t in rows))
    found = micros(cq.sql(HEAD.format(file) + "SELECT * FROM s;").run(engine="reference"))
    assert found == [*(int(TEXTS[t] * 1_000_000) for t in texts), None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_columns_with_a_zone_are_instants_and_others_of_the_zone_of_the_query(tmp_path: Path, unit: str) -> None:
    counts = pa.array([1711852200, None, 0], pa.int64()).cast(pa.timestamp("s"))
    for given, first in ((counts.cast(pa.timestamp("s", "America/New_York")), 1711852200), (counts, 1711848600)):
        column = given.cast(pa.timestamp(unit, given.type.tz))
        pq.write_table(pa.table({"id": [1, 2, 3], "ts": column}), tmp_path / "s.parquet")
        query = cq.sql(HEAD.format(tmp_path / "s.parquet") + "SELECT * FROM s;")
        assert micros(query.run(engine="reference"))[:2] == [first * 1_000_000, None]


def test_columns_of_parquet_with_a_zone_are_inferred_and_written_with_that_of_the_query(tmp_path: Path) -> None:
    ts = pa.array([1711848600000000, None], pa.int64()).cast(pa.timestamp("us", "America/New_York"))
    pq.write_table(pa.table({"ts": ts}), tmp_path / "s.parquet")
    text = f"SET time_zone = '+05:30'; CREATE SINK o WITH (connector = 'file', path = '{tmp_path}/o.parquet');"
    cq.sql(f"{text} INSERT INTO o SELECT * FROM '{tmp_path}/s.parquet';").run(engine="reference")
    written = pq.read_table(tmp_path / "o.parquet").column("ts")
    assert written.type == pa.timestamp("us", "+05:30")
    assert written.cast(pa.int64()).to_pylist() == ts.cast(pa.int64()).to_pylist()


def test_rows_of_python_may_have_datetimes_with_a_zone_and_without() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=1))
    stream = "CREATE STREAM s (ts TIMESTAMPTZ) WITH (connector = 'memory');"
    text = f"SET time_zone = 'Europe/Berlin'; {stream} SELECT * FROM s;"
    rows = [{"ts": datetime.datetime(2024, 10, 27, 2, 30)}, {"ts": datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zone)}]
    assert micros(cq.sql(text).run({"s": [*rows, {"ts": None}]}, engine="reference")) == [
        1729989000000000,
        1729992600000000,
        None,
    ]


def test_parameter_with_a_zone_is_an_instant() -> None:
    at = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    query = cq.sql("SELECT :at AS ts, CAST(:at AS VARCHAR) AS v;").with_variables(at=at)
    row = {"ts": datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC), "v": "2024-07-01 10:00:00+00:00"}
    assert query.run(engine="reference").to_arrow().to_pylist() == [row]


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "+05:45"])
@pytest.mark.parametrize("offset", [0, 3])
def test_columns_are_moved_as_single_values_are(name: str, offset: int) -> None:
    zone, rng = zone_of(name), random.Random(name)
    times = [t + by for t in (*zone.utc[-9:], *zone.local[-9:], CYCLE_END_US) for by in (-1, 0, 1)]
    times += [0, *(rng.randrange(-(2**60), 2**60) for _ in range(50))]
    column = pa.array([*times, None], pa.timestamp("us")).slice(offset)
    assert offsets_at(column, name)[: len(times) - offset].tolist() == [zone.offset_at(t) for t in times[offset:]]
    moved = moved_to_utc(column, name).cast(pa.int64()).to_pylist()
    assert moved == [*(t - zone.offset_of(t) for t in times[offset:]), None]
    instants = pa.array([*times, None], pa.timestamp("us", name)).slice(offset)
    assert column_text(instants).to_pylist() == [*(write_instant(t, name) for t in times[offset:]), None]


def test_the_farthest_instants_have_a_text_and_no_others_come_to_be() -> None:
    ends = pa.array([INT64_MAX, INT64_MIN, None], pa.int64())
    for name in ("Asia/Tokyo", "America/New_York"):
        texts = [write_instant(INT64_MAX, name), write_instant(INT64_MIN, name), None]
        assert column_text(ends.cast(pa.timestamp("us", name))).to_pylist() == texts
        with pytest.raises(pa.ArrowInvalid):
            moved_to_utc(ends.cast(pa.timestamp("us")), name)
    assert np.array_equal(offsets_at(ends[2:].cast(pa.timestamp("us")), "UTC"), [0])


def test_text_that_is_written_is_read_back(tmp_path: Path) -> None:
    times = [*zone_of("Europe/Berlin").utc[-40:], -(10**16), 0, 1711846799999999]
    given = {"s": pa.table({"ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))})}
    for ending in ("csv", "jsonl"):
        out = tmp_path / f"o.{ending}"
        sink = f"CREATE SINK o WITH (connector = 'file', path = '{out}');"
        source = "CREATE STREAM s (ts TIMESTAMPTZ) WITH (connector = 'memory');"
        cq.sql(f"SET time_zone = 'Europe/Berlin'; {source} {sink} INSERT INTO o SELECT * FROM s;").run(given)
        again = f"CREATE STREAM s (ts TIMESTAMPTZ) WITH (connector = 'file', path = '{out}'); SELECT * FROM s;"
        found = cq.sql(f"SET time_zone = 'Europe/Berlin'; {again}").run(engine="reference")
        assert micros(found) == times
