"""The Linear Road generator: its acceptance checks, its statistics, and that a seed fixes every byte."""

import hashlib
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from cq.workloads.linear_road import COLUMNS, SCHEMA, generate
from cq.workloads.linear_road import traffic as model
from cq.workloads.linear_road.incidents import ACCIDENT, BREAKDOWN, NEAR_STOP, SIDE_BY_SIDE
from cq.workloads.linear_road.oracle import Oracle, Toll, rows_of, simple_tolls, tolls_without_accidents
from cq.workloads.linear_road.profiles import LIGHT, PROFILES, TINY
from cq.workloads.linear_road.stream import Simulation


def table(*args, **kwargs):
    return pa.Table.from_batches(generate(*args, **kwargs), SCHEMA)


def columns(rows):
    return {name: rows[name].to_numpy() for name in COLUMNS}


def reports(rows):
    c = columns(rows)
    return {name: c[name][c["type"] == 0] for name in COLUMNS}


def digest(rows):
    numbers = [rows.column(i).cast(pa.int64()).to_numpy() for i in range(rows.num_columns)]
    return hashlib.sha256(np.stack(numbers, axis=1).astype("<i8").tobytes()).hexdigest()[:16]


@pytest.fixture(scope="module")
def tiny():
    return table("tiny", expressways=1.0)


def trips(r):
    """Index arrays of the reports of every trip: one vehicle in one direction, cut where it enters again."""
    order = np.lexsort((r["time"], r["vid"], r["dir"], r["xway"]))
    same = np.ones(len(order), dtype=bool)
    for name in ("vid", "dir", "xway"):
        same[1:] &= r[name][order][1:] == r[name][order][:-1]
    same[0] = False
    starts = np.flatnonzero(~same | (r["lane"][order] == 0))
    return np.split(order, starts[1:])


# --- acceptance ---------------------------------------------------------------------------------------------------


def test_a_trip_reports_every_thirty_seconds_and_never_jumps(tiny):
    r = reports(tiny)
    for trip in trips(r):
        assert (np.diff(r["time"][trip]) == 30).all()
        way = np.diff(r["pos"][trip]) * (1 - 2 * r["dir"][trip[0]])
        assert (way >= 0).all()
        assert (way <= 4400).all()


def test_a_trip_begins_on_the_entry_ramp_and_ends_on_the_exit_ramp(tiny):
    r = reports(tiny)
    for trip in trips(r):
        lanes = r["lane"][trip]
        assert lanes[0] == 0
        assert ((lanes[1:-1] >= 1) & (lanes[1:-1] <= 3)).all()
        if r["time"][trip[-1]] < TINY.duration_s - 30:
            assert lanes[-1] == 4


def test_every_field_is_in_its_range(tiny):
    r = reports(tiny)
    assert (r["seg"] == r["pos"] // 5280).all()
    assert r["pos"].min() >= 0
    assert r["pos"].max() < TINY.road_ft
    assert r["spd"].min() == 0
    assert r["spd"].max() <= 100
    assert set(r["dir"]) == {0, 1}
    assert all((r[name] == -1).all() for name in ("qid", "s_init", "s_end", "dow", "tod", "day"))
    assert tiny["ts"].cast(pa.int64()).to_numpy().tolist() == (columns(tiny)["time"] * 1_000_000).tolist()


def test_rows_come_by_second_then_reports_by_direction_and_vehicle_then_queries(tiny):
    c = columns(tiny)
    keys = np.stack([c["time"], c["type"] > 0, c["xway"], c["dir"], c["vid"]], axis=1)
    r = keys[c["type"] == 0].tolist()
    assert all(a < b for a, b in pairwise(r))
    assert all(a[:2] <= b[:2] for a, b in pairwise(keys.tolist()))
    assert c["qid"][c["type"] > 0].tolist() == list(range(1, (c["type"] > 0).sum() + 1))


def test_one_report_in_a_hundred_brings_a_query(tiny):
    kinds = np.bincount(columns(tiny)["type"], minlength=5)
    asked = kinds[2:].sum()
    assert kinds[1] == 0
    assert abs(asked / kinds[0] - 0.01) < 4 * np.sqrt(0.01 / kinds[0])
    for kind, share in ((2, 0.5), (3, 0.1), (4, 0.4)):
        assert abs(kinds[kind] / asked - share) < 4 * np.sqrt(share * (1 - share) / asked)


def test_a_query_names_a_vehicle_that_reports_in_the_same_second(tiny):
    c = columns(tiny)
    seen = set(zip(c["time"][c["type"] == 0], c["vid"][c["type"] == 0], strict=True))
    assert set(zip(c["time"][c["type"] > 0], c["vid"][c["type"] > 0], strict=True)) <= seen
    journeys = c["type"] == 4
    for name, low, high in (("s_init", 0, 19), ("s_end", 0, 19), ("dow", 1, 7), ("tod", 1, 1440), ("xway", 0, 0)):
        assert low <= c[name][journeys].min() <= c[name][journeys].max() <= high
    days = c["day"][c["type"] == 3]
    assert 1 <= days.min() <= days.max() <= 69


def test_nine_in_ten_expenditure_queries_hit_the_history():
    rows = table("tiny", expressways=2.0, queries=1.0, rows=60_000)
    found = list(Oracle(expressways=2.0).answers(r for r in rows_of(rows.to_batches()) if r[0] == 3))
    assert 0.87 < sum(a.total > 0 for a in found) / len(found) / (98 / 99) < 0.93


@pytest.mark.parametrize(("seed", "expressways"), [(1, 0.5), (2, 1.0), (3, 1.5)])
def test_the_oracle_detects_every_planted_accident_and_no_other(seed, expressways):
    simulation = Simulation(TINY, seed, expressways)
    oracle = Oracle(seed=seed, expressways=expressways)
    tolls = [a for a in oracle.answers(rows_of(simulation.blocks(TINY.duration_s))) if isinstance(a, Toll)]
    planted = {
        (d.xway, d.direction, int(d.position(np.array([i.x]))[0]) // 5280): i.start_s
        for d in simulation.directions
        for i in d.incidents
        if i.kind == ACCIDENT
    }
    assert len(planted) == 2 * len(simulation.directions) == len(oracle.accidents)
    for a in oracle.accidents:
        assert planted[a.xway, a.dir, a.seg] + 90 <= a.detected
        assert a.cleared is not None
        assert a.cleared - a.detected >= 300
    assert any(t.toll > 0 for t in tolls)


def test_every_kind_of_false_alarm_is_planted():
    simulation = Simulation(TINY, 1, 0.5)
    for _ in simulation.blocks(TINY.duration_s):
        pass
    held = {(i.kind, i.held) for i in simulation.directions[0].incidents}
    assert held >= {(BREAKDOWN, 1), (NEAR_STOP, 1), (SIDE_BY_SIDE, 2), (ACCIDENT, 2), (ACCIDENT, 3)}


def test_a_near_stop_is_three_reports_from_one_spot_and_a_breakdown_more():
    simulation = Simulation(TINY, 1, 0.5)
    r = reports(pa.Table.from_batches(simulation.blocks(TINY.duration_s)))
    spots = {int(p): n for p, n in zip(*np.unique(r["pos"][r["spd"] == 0], return_counts=True), strict=True)}
    for incident in simulation.directions[0].incidents:
        if incident.release_s < TINY.duration_s and incident.kind in {NEAR_STOP, BREAKDOWN}:
            assert spots[incident.x] == 3 if incident.kind == NEAR_STOP else spots[incident.x] >= 5


def test_a_tenth_of_the_vehicles_comes_back_between_one_and_eighteen_minutes_later(tiny):
    r = reports(tiny)
    left, gaps = {}, []
    for time, vid, lane in zip(r["time"].tolist(), r["vid"].tolist(), r["lane"].tolist(), strict=True):
        if lane == 4:
            left[vid] = time
        elif lane == 0 and vid in left:
            gaps.append(time - left.pop(vid))
    exits = int((r["lane"] == 4).sum())
    assert min(gaps) >= 61
    assert max(gaps) <= 1061
    assert 0.03 < len(gaps) / exits < 0.1  # some leave too late to be back before the end


def test_with_several_expressways_a_vehicle_comes_back_on_another_one():
    r = reports(table("tiny", expressways=2.0, rows=150_000))
    left, changed = {}, []
    for vid, lane, xway in zip(r["vid"].tolist(), r["lane"].tolist(), r["xway"].tolist(), strict=True):
        if lane == 4:
            left[vid] = xway
        elif lane == 0 and vid in left:
            changed.append(left.pop(vid) != xway)
    assert len(changed) > 100
    assert all(changed)


# --- shape --------------------------------------------------------------------------------------------------------


def test_tiny_keeps_its_published_shape():
    half = table("tiny", expressways=0.5)
    r = reports(half)
    assert set(r["dir"]) == {0}
    assert 50_000 < len(r["vid"]) < 58_000
    assert 3_800 < (r["lane"] == 0).sum() < 4_400
    assert 20 < r["spd"].mean() < 23
    assert 5 < (r["time"] < 600).sum() / 600 < 8
    assert 0.17 < len(simple_tolls(rows_of(half.to_batches()))) / len(r["vid"]) < 0.21


def test_simple_tolls_agree_with_the_full_rules_where_no_vehicle_comes_back():
    rows = list(rows_of(generate("tiny", rows=30_000)))
    full, simple = set(tolls_without_accidents(rows)), set(simple_tolls(rows))
    assert simple <= full
    assert len(full - simple) < 0.01 * len(full)


# --- determinism --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "expressways", "expected"),
    [
        ("tiny", 0.5, "1c367114ea958db6"),
        ("tiny", 1.0, "244303dc3743072d"),
        ("light", 1.0, "47a8235a231af52a"),
        ("heavy", 1.5, "3a95f44c7895f79c"),
        ("classic", 2.0, "e8a0b1e3c408474f"),
    ],
)
def test_the_first_ten_thousand_rows_never_change(profile, expressways, expected):
    assert digest(table(profile, expressways=expressways, rows=10_000)) == expected


def test_another_seed_gives_other_rows():
    assert digest(table("tiny", rows=1000, seed=1)) != digest(table("tiny", rows=1000, seed=2))


def test_fewer_rows_and_less_time_are_prefixes(tiny):
    assert table("tiny", rows=12_345).equals(tiny.slice(0, 12_345))
    until = table("tiny", duration_s=777)
    assert until.equals(tiny.slice(0, until.num_rows))
    assert columns(tiny)["time"][until.num_rows] >= 777


def test_with_rows_alone_the_traffic_goes_on_after_the_profile_ends(tiny):
    more = table("tiny", rows=tiny.num_rows + 5_000)
    assert more.num_rows == tiny.num_rows + 5_000
    assert more.slice(0, tiny.num_rows).equals(tiny)


def test_batches_are_equal_but_the_last(tiny):
    sizes = [b.num_rows for b in generate("tiny")]
    assert set(sizes[:-1]) == {16_384}
    assert sum(sizes) == tiny.num_rows


def test_no_time_and_no_rows_give_nothing():
    assert list(generate("tiny", rows=0)) == list(generate("tiny", duration_s=0)) == []


def test_a_direction_drives_the_same_without_the_others(tiny):
    alone = model.Direction(TINY, 1, 0, 1)
    for block in range(10):
        new = model.arrivals(TINY, 1, alone.stream, block)
        moved = alone.advance(block, new, np.arange(len(new.time), dtype=np.int64))
        r = reports(tiny)
        here = (r["dir"] == 1) & (r["time"] // 60 == block)
        ours = sorted(zip(moved.time.tolist(), alone.position(moved.x).tolist(), moved.speed.tolist(), strict=True))
        theirs = sorted(zip(*(r[name][here].tolist() for name in ("time", "pos", "spd")), strict=True))
        assert ours == theirs


def test_every_profile_is_listed_under_its_name():
    assert list(PROFILES) == ["tiny", "light", "heavy", "classic"]
    assert all(p.name == name for name, p in PROFILES.items())


@pytest.mark.long
def test_light_half_expressway_passes_the_acceptance_checks():
    simulation = Simulation(LIGHT, 1, 0.5)
    batches = list(simulation.blocks(LIGHT.duration_s))
    oracle = Oracle(expressways=0.5)
    tolls = [a for a in oracle.answers(rows_of(batches)) if isinstance(a, Toll)]
    r = reports(pa.Table.from_batches(batches))
    kinds = np.bincount(columns(pa.Table.from_batches(batches))["type"])
    for kind, share in ((0, 0.990), (2, 0.005), (3, 0.001), (4, 0.004)):
        assert abs(kinds[kind] / kinds.sum() / share - 1) < 0.05
    assert {t.time // 3600 for t in tolls if t.toll} >= {1, 2}
    assert 1.25e6 < len(r["vid"]) < 1.35e6
    assert 0.29 < len(tolls) / len(r["vid"]) < 0.32
    planted = [i.segment for i in simulation.directions[0].incidents if i.kind == ACCIDENT]
    assert [a.seg for a in oracle.accidents] == planted
    for trip in trips(r):
        assert (np.diff(r["time"][trip]) == 30).all()
        assert (np.diff(r["pos"][trip]) <= 4400).all()
