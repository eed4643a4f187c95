"""The reference against definitions that see all rows at once, on random inputs: disorder, late rows, ties, NULLs."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from reference_fixture import S, plan_of, stepped, stream

from cq.reference.engine import run

Row = tuple[Any, ...]
SEEDS = range(40)


def random_rows(rng: random.Random, count: int, spread: int = 8) -> list[Row]:
    """(k, v, x, ts): time walks on and jumps back; everything may be NULL, the event time too."""
    now, rows = rng.randint(-30, 5), []
    for _ in range(count):
        now += rng.choice([0, 0, 1, 1, 2, rng.randint(0, 25) if rng.random() < 0.1 else 1])
        time = None if rng.random() < 0.03 else (now - rng.choice([0, 0, 0, rng.randint(0, spread)])) * S // 2
        k = rng.choice(["a", "b", "c", None])
        v = rng.choice([None, 0, 1, rng.randint(-50, 50)])
        x = rng.choice([None, 0.1, -0.0, 1e16, rng.uniform(-1, 1)])
        rows.append((k, v, x, time))
    return rows


COLUMNS = "k VARCHAR, v BIGINT, x DOUBLE"


def on_time(rows: Iterable[Row], delay_us: int) -> list[Row]:
    """The rows with an event time that are not late, in order of arrival."""
    kept, greatest = [], None
    for row in rows:
        if row[-1] is None:
            continue
        if greatest is None or row[-1] >= greatest - delay_us:
            kept.append(row)
        greatest = row[-1] if greatest is None else max(greatest, row[-1])
    return kept


def windows_of(time: int, size: int, slide: int, offset: int) -> list[int]:
    """The starts of all windows that hold a time."""
    last = (time - offset) // slide * slide + offset
    return [start for start in range(last, time - size, -slide) if start <= time < start + size]


def pane_sum(rows: list[Row], start: int, size: int, pane: int) -> float | None:
    """The sum of x as it associates: arrival order inside a pane, panes from left to right."""
    total: float | None = None
    for left in range(start, start + size, pane):
        inside = [r[2] for r in rows if left <= r[3] < left + pane and r[2] is not None]
        if inside:
            part = 0.0
            for x in inside:
                part += x
            total = part if total is None else total + part
    return total


def defined_windows(rows: list[Row], size: int, slide: int, offset: int, pane: int, distinct: bool) -> list[Row]:
    """Window results from the definition: every window with a row in it, by end, start, first arrival of the group."""
    starts = sorted({s for r in rows for s in windows_of(r[3], size, slide, offset)})
    out = []
    for start in starts:
        inside = [r for r in rows if start <= r[3] < start + size]
        for key in dict.fromkeys(r[0] for r in inside):
            group = [r for r in inside if r[0] == key]
            values = [r[1] for r in group if r[1] is not None]
            out.append(
                (
                    start,
                    start + size,
                    key,
                    len(group),
                    sum(values) if values else None,
                    float(Fraction(sum(values), len(values))) if values else None,
                    min(values, default=None),
                    len({v for v in values if v > 0}) if distinct else sum(v > 0 for v in values),
                    pane_sum(group, start, size, pane),
                )
            )
    return out


WINDOWS = """SELECT window_start, window_end, k, COUNT(*) AS n, SUM(v) AS total, AVG(v) AS mean, MIN(v) AS least,
  COUNT({kind} v) FILTER (WHERE v > 0) AS kinds, SUM(x) AS xs
FROM {window} GROUP BY window_start, window_end, k;"""


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_are_what_their_definition_says(seed: int) -> None:
    rng = random.Random(seed)
    delay = rng.choice([0, 0, 3, 7])
    size, slide = rng.choice([(5, 5), (6, 2), (5, 2), (7, 3), (4, 6), (10, 5)])
    offset = rng.choice([0, 1]) if size == slide else 0
    rows = random_rows(rng, rng.randint(0, 120))
    if size == slide:
        tail = f", INTERVAL '{offset}' SECOND" if offset else ""
        window = f"TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '{size}' SECOND{tail})"
    else:
        window = f"HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND)"
    distinct = size == slide  # COUNT(DISTINCT) in HOP is for later
    kind = "DISTINCT" if distinct else ""
    plan = plan_of(stream("s", COLUMNS, delay) + WINDOWS.format(window=window, kind=kind))
    pane = next(p for p in range(min(size, slide), 0, -1) if size % p == 0 and slide % p == 0)
    kept = on_time(rows, delay * S)
    wanted = defined_windows(kept, size * S, slide * S, offset * S, pane * S, distinct)
    result = run(plan, {"s": rows})
    assert repr(result.rows()) == repr(wanted)
    assert result.sources["s"].late + len(kept) + result.sources["s"].without_time == len(rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_leave_at_the_first_row_whose_watermark_reaches_their_end(seed: int) -> None:
    rng = random.Random(seed)
    delay = rng.choice([0, 4])
    rows = [r for r in random_rows(rng, rng.randint(1, 80)) if r[-1] is not None]
    window = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND)"
    plan = plan_of(stream("s", COLUMNS, delay) + WINDOWS.format(window=window, kind="DISTINCT"))
    (results,) = run(plan, {"s": rows}).outputs.values()
    positions = [d.position for d in results]
    assert positions == sorted(positions) and len(set(positions)) == len(positions)
    for d in results:
        end = d.row[1]
        reached = (i for i in range(len(rows)) if max(r[-1] for r in rows[: i + 1]) - delay * S >= end)
        assert (d.position.serial, d.position.instant) == (next(reached, len(rows)), end)


LOOK_UP = """CREATE VIEW counted AS SELECT window_start, window_end, k, COUNT(*) AS n
  FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY window_start, window_end, k;
SELECT s.k AS k, s.v AS v, s.ts AS ts, c.window_end AS e, c.n AS n
FROM s LEFT JOIN counted FOR SYSTEM_TIME AS OF s.ts AS c ON c.k = s.k;"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_look_up_finds_the_last_window_that_had_closed_at_the_time_of_the_row(seed: int) -> None:
    rng = random.Random(seed)
    delay = rng.choice([0, 3])
    rows = random_rows(rng, rng.randint(0, 80))
    kept = on_time(rows, delay * S)
    wanted = []
    for k, v, _, ts in sorted(kept, key=lambda r: r[-1]):  # stable: by (time, position)
        ends = {(t // (5 * S) + 1) * 5 * S for key, _, _, t in kept if key == k and k is not None}
        end = max((e for e in ends if e <= ts), default=None)
        n = None if end is None else sum(1 for key, _, _, t in kept if key == k and end - 5 * S <= t < end)
        wanted.append((k, v, ts, end, n))
    assert run(plan_of(stream("s", COLUMNS, delay) + LOOK_UP), {"s": rows}).rows() == wanted


OVER = """SELECT k, v, ts, LAG(v, 2, -1) OVER (PARTITION BY k ORDER BY ts) AS before,
  SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS running FROM s;"""


@pytest.mark.parametrize("seed", SEEDS)
def test_running_results_follow_time_then_position(seed: int) -> None:
    rng = random.Random(seed)
    delay = rng.choice([0, 5])
    rows = random_rows(rng, rng.randint(0, 80))
    kept = sorted(on_time(rows, delay * S), key=lambda r: r[-1])
    wanted = []
    for i, (k, v, _, ts) in enumerate(kept):
        values = [r[1] for r in kept[: i + 1] if r[0] == k]
        known = [x for x in values if x is not None]
        before = values[-3] if len(values) > 2 else -1
        wanted.append((k, v, ts, before, sum(known) if known else None))
    assert run(plan_of(stream("s", COLUMNS, delay) + OVER), {"s": rows}).rows() == wanted


BOTH = """CREATE VIEW u AS SELECT k, v, x, ts FROM s UNION ALL SELECT k, v, x, ts FROM r;
SELECT k, v, ts FROM u;
SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(TABLE u, DESCRIPTOR(ts), INTERVAL '5' SECOND)
GROUP BY window_start, window_end, k;"""


def running_maximum(rows: list[Row]) -> list[tuple[int, Row]]:
    out, greatest = [], -(10**18)
    for row in rows:
        if row[-1] is not None:
            greatest = max(greatest, row[-1])
            out.append((greatest, row))
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_two_sources_are_merged_as_defined_and_no_interleaving_shows(seed: int) -> None:
    rng = random.Random(seed)
    query = stream("s", COLUMNS, 2) + stream("r", COLUMNS, rng.choice([0, 4])) + BOTH
    inputs = {name: random_rows(rng, rng.randint(0, 40)) for name in ("s", "r")}
    whole = run(plan_of(query), inputs)
    keyed = [(g, i, row) for i, name in enumerate(("s", "r")) for g, row in running_maximum(inputs[name])]
    merged = sorted(keyed, key=lambda item: item[:2])
    first, second = whole.outputs
    assert whole.rows(first) == [(k, v, ts) for _, _, (k, v, _, ts) in merged]
    assert sum(r[2] for r in whole.rows(second)) == len(merged) - sum(c.late for c in whole.sources.values())

    session = stepped(query)
    left = {name: list(rows) for name, rows in inputs.items()}
    while left:
        name = rng.choice(sorted(left))
        if left[name]:
            session.push(name, left[name].pop(0))
        else:
            session.end(name)
            del left[name]
    assert session.finish().outputs == whole.outputs


@pytest.mark.parametrize("seed", range(10))
def test_running_twice_gives_the_same(seed: int) -> None:
    rows = random_rows(random.Random(seed), 60)
    plan = plan_of(stream("s", COLUMNS, 3) + LOOK_UP)
    assert run(plan, {"s": rows}).outputs == run(plan, {"s": iter(rows)}).outputs
