"""The queries in queries/ mean what their first line asks: compared with plain Python over the same rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest
from paths import QUERIES
from planner_fixture import infer
from reference_fixture import unfailed

from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.plan.logical import LogicalPlan
from cq.planner.rewriting.rewrite import rewrite
from cq.reference.engine import run
from cq.workloads import WORKLOADS
from cq.workloads.linear_road.oracle import simple_tolls

pytestmark = pytest.mark.optimised

Row = tuple[Any, ...]
TYPE, TIME, VID, SPD, XWAY, LANE, DIR, SEG, POS, QID = range(10)
US = 1_000_000
EXIT_LANE = 4


@cache
def plan(name: str) -> LogicalPlan:
    path = QUERIES / name
    return bind(parse(SourceText(name, path.read_text(encoding="utf-8"))), Environment(infer=infer)).plan


@cache
def traffic() -> tuple[Row, ...]:
    rows: list[Row] = []
    for batch in WORKLOADS["linear_road"].generate(profile="tiny", rows=20_000):
        columns = [c.cast("int64").to_pylist() for c in batch.columns]
        rows += zip(*columns, strict=True)
    return tuple(rows)


@pytest.fixture(params=["bound", "rewritten"])
def result(request: pytest.FixtureRequest) -> Any:
    """`result(query, rows)`: what the reference gives for the plan, and for the rewritten one."""

    def of(name: str, **inputs: Any) -> list[Row]:
        chosen = plan(name) if request.param == "bound" else rewrite(plan(name))
        return unfailed(run(chosen, inputs)).rows()

    return of


def test_tolls_are_those_of_the_oracle(result: Any) -> None:
    tolls = [(t.vid, t.time, t.lav, t.toll) for t in simple_tolls(traffic())]
    assert any(t[3] > 0 for t in tolls)
    assert result("lr_tolls.cq", lr=traffic()) == tolls


def test_segment_statistics_count_cars_and_mean_their_speed(result: Any) -> None:
    groups: dict[Row, list[Row]] = defaultdict(list)
    for r in traffic():
        if r[TYPE] == 0:
            groups[r[TIME] // 60, r[XWAY], r[DIR], r[SEG]].append(r)
    expected = {
        (minute * 60 * US, *key, len({r[VID] for r in rows}), len(rows), sum(r[SPD] for r in rows) / len(rows))
        for (minute, *key), rows in groups.items()
    }
    got = result("lr_segment_statistics.cq", lr=traffic())
    assert len(got) == len(expected) and set(got) == expected
    assert [r[0] for r in got] == sorted(r[0] for r in got)


def test_position_reports_are_the_rows_of_type_zero_in_order(result: Any) -> None:
    expected = [(r[-1], r[VID], r[SPD], r[XWAY], r[LANE], r[DIR], r[SEG], r[POS]) for r in traffic() if r[TYPE] == 0]
    assert result("viper_pos_rep.cq", lr=traffic()) == expected


def test_new_segments_are_reports_from_another_segment_than_the_last(result: Any) -> None:
    last: dict[int, int] = {}
    expected = []
    for r in traffic():
        if r[TYPE] == 0:
            if last.get(r[VID]) != r[SEG]:
                expected.append((r[-1], r[VID], r[XWAY], r[DIR], r[SEG], last.get(r[VID])))
            last[r[VID]] = r[SEG]
    assert result("viper_new_seg.cq", lr=traffic()) == expected


def test_cars_of_a_segment_are_those_that_entered_and_have_not_left(result: Any) -> None:
    inside: Counter[Row] = Counter()
    place: dict[Row, Row | None] = {}
    expected = []
    for r in traffic():
        if r[TYPE] != 0:
            continue
        car, road = (r[XWAY], r[DIR], r[VID]), (r[XWAY], r[DIR])
        before, now = place.get(car), (*road, r[SEG]) if r[LANE] != EXIT_LANE else None
        if before != now:
            if now is not None:
                inside[now] += 1
                toll = 2 * (inside[now] - 50) ** 2 if inside[now] > 50 else 0
                expected.append((r[-1], r[VID], *now, inside[now], toll))
            if before is not None:
                inside[before] -= 1
        place[car] = now
    assert result("viper_tolls.cq", lr=traffic()) == expected


def test_words_are_counted_as_they_come(result: Any) -> None:
    lines = [("a b a", 1), ("b", 2), ("", 3), ("a", 4)]
    # "" is one empty word: SPLIT gives as many words as separators, and one more
    assert result("word_count.cq", sentences=lines) == [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("", 1), ("a", 3)]


def test_accounts_are_charged_when_a_car_leaves_a_segment(result: Any) -> None:
    seen: dict[int, dict[Row, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for r in traffic():
        if r[TYPE] == 0:
            seen[r[TIME] // 60][r[XWAY], r[DIR], r[SEG]].append(r)
    last: dict[Row, int] = {}
    accounts: dict[int, list[int]] = {}
    expected = []
    for r in traffic():
        if r[TYPE] == 2 and r[VID] in accounts:
            expected.append((r[TIME], r[QID], r[VID], accounts[r[VID]][0]))
        if r[TYPE] != 0:
            continue
        car, segment = (r[XWAY], r[DIR], r[VID]), (r[XWAY], r[DIR], r[SEG])
        if last.get(car) != r[SEG]:
            before = seen[r[TIME] // 60 - 1].get(segment, [])
            cars, mph = len({b[VID] for b in before}), sum(b[SPD] for b in before) // max(len(before), 1)
            toll = 2 * (cars - 50) ** 2 if r[LANE] != EXIT_LANE and cars > 50 and mph < 40 else 0
            balance, owed = accounts.setdefault(r[VID], [0, 0])
            accounts[r[VID]] = [balance + owed, toll]
        last[car] = r[SEG]
    assert len(expected) > 50 and any(row[-1] > 0 for row in expected)
    assert result("lr_accounts.cq", lr=traffic()) == expected
