"""Rows of several inputs in lanes share segments (cq/runtime/flow/shares.py): whatever the number of workers and of
rows at a time, they give the rows of the reference, in their order."""

from __future__ import annotations

import random

import pytest
from cases import WAYS, Prepared, Way, spread_out, watched

from cq import ways

STREAM = """CREATE STREAM {} (k BIGINT, w VARCHAR, v BIGINT NOT NULL, ts TIMESTAMP NOT NULL, at AS {},
  WATERMARK FOR {} AS {} - INTERVAL '2' SECOND) WITH (connector = 'memory');
"""
NEAR = "b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts + INTERVAL '4' SECOND"
AHEAD = "b.ts BETWEEN a.ts + INTERVAL '3' SECOND AND a.ts + INTERVAL '4' SECOND"

CASES = {
    "near": f"SELECT a.k, a.v, b.v AS z, b.w FROM a JOIN b ON a.k = b.k AND {NEAR};",
    "ahead": f"SELECT a.k, a.v, b.v AS z, b.w FROM a FULL JOIN b ON a.w = b.w AND {AHEAD};",
    "last before": "SELECT a.v, b.v AS z, b.w FROM a ASOF JOIN b ON a.k = b.k AND a.{time} >= b.{time};",
    "two inputs without closing times": "SELECT a.v, b.v AS z FROM a JOIN b ON a.w = b.w;",
    "three inputs, in branches": """
        SELECT a.v, b.v AS z FROM a JOIN b ON a.w = b.w;
        SELECT b.v, c.v AS z FROM b JOIN c ON b.k = c.k;""",
    "branches that read one, two and both": """
        SELECT k, COUNT(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM a;
        SELECT w, COUNT(*) OVER (PARTITION BY w ROWS UNBOUNDED PRECEDING) AS n FROM b;
        SELECT a.v, b.v AS z FROM a JOIN b ON a.w = b.w;""",
    "an error among the pairs": f"SELECT a.v, 10 / (b.v - a.v - 60) AS q FROM a JOIN b ON a.k = b.k AND {NEAR};",
    "a limit": f"SELECT a.v, b.v AS z FROM a JOIN b ON a.k = b.k AND {NEAR} LIMIT 17;",
}


def given(seed):
    """Rows of three streams that take turns, those of the second at times for long; some are late."""
    dice, made = random.Random(seed), {}
    for name, steps in (("a", [0, 1, 2]), ("b", [0] * 60 + [1, 90]), ("c", [1, 2, 3])):
        now, made[name] = 0, []
        for n in range(400):
            now += dice.choice(steps) * 100_000
            text = dice.choice([None, "", "x", "Y", "a text of more than twelve bytes"])
            back = dice.choice([0] * 8 + [1, 4]) * 1_000_000
            made[name].append((dice.choice([None, *range(9)]), text, n, now - back))
    return made


def prepared(query, computed):
    time = "ts + INTERVAL '1' SECOND"
    streams = (STREAM.format(s, time, *(["at", "at"] if computed else ["ts", "ts"])) for s in "abc")
    return Prepared("".join(streams) + query.replace("{time}", "at" if computed else "ts"))


def agrees(case, computed, ways, seed, cuts):
    made = prepared(CASES[case], computed)
    made.give(given(seed), cuts)
    wanted = made.reference()
    assert any(wanted.rows.values()) or wanted.error
    for way in ways:
        with spread_out(), watched(f"{case}, {way}"):
            outcome = made.native(way)
        assert outcome == wanted, f"{way}: {outcome.difference(wanted)}"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_in(3)
def test_interpreted_rows_of_several_inputs_in_lanes_are_those_of_the_reference(case):
    agrees(case, False, (Way(2, 5, interpreted=True), Way(2, 100, interpreted=True)), 1, (60,))


@pytest.mark.parametrize("computed", [False, True], ids=["", "by computed times"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_in(3)
def test_rows_of_several_inputs_in_lanes_are_those_of_the_reference(case, computed):
    agrees(case, computed, [w for w in WAYS if w.threads > 1], 2, (7, 100))


@pytest.mark.parametrize("computed", [False, True], ids=["", "by computed times"])
@pytest.mark.parametrize("case", CASES)
def test_they_are_in_lanes_and_share_segments_where_there_are_two(case, computed):
    with spread_out():
        compiled = prepared(CASES[case], computed).compiled.for_workers(2)
        parts, pipelines = compiled.after("place"), compiled.after("emit")
    several = [(part.stages[0].way, p) for part, p in zip(parts, pipelines, strict=True) if len(p.sources) > 1]
    assert several and all(way is ways.Way.LANES and p.mixed == (len(p.sources) == 2) for way, p in several)
