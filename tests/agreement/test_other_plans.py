"""A run that is paused and goes on in another plan of its query gives the rows of the reference, in their order."""

from __future__ import annotations

import random

import pytest
from cases import Prepared, Way, watched
from random_trial import Plan
from test_chains import CASES, LOOP, STREAM, rows
from wandering import plans_of, wander

FIRST_SEEDS = (73, 69)
SEEDS_EACH = 4  # of which about half have several plans to go on in; which, changes with what is drawn


@pytest.mark.parametrize("name", [name for name, (_, _, ways) in CASES.items() if ways != [LOOP]])
@pytest.mark.one_in(3)
def test_chains_go_on_in_another_plan(name):
    watermark, query, _ = CASES[name]
    prepared = Prepared(STREAM.format(watermark=watermark) + query)
    plans = plans_of(prepared)
    prepared.give({"r": rows(5, 250, strict="error" in name)})
    moves = 0
    for seed in range(2):
        with watched(f"{name}, seed {seed}"):
            outcome, moved = wander(prepared, plans, seed, interpreted=True)
        assert prepared.agree(outcome, Way(), prepared.reference()), outcome.difference(prepared.reference())
        moves += moved
    assert moves > 10 or "error" in name


@pytest.mark.parametrize("bad", [60, 240])
def test_a_row_that_cannot_be_read_ends_the_run_in_its_turn(bad):
    watermark, query, _ = CASES["rows that have waited come at their instants"]
    prepared = Prepared(STREAM.format(watermark=watermark) + query)
    given = rows(5, 250, strict=False)
    given[bad] = (*given[bad][:-1], None)  # --row--row--NULL--row--
    prepared.give({"r": given})
    wanted = prepared.reference()
    assert wanted.error == f"CQ0703 <r>:{bad + 1}"
    outcome, _ = wander(prepared, plans_of(prepared), bad, interpreted=True)
    assert prepared.agree(outcome, Way(), wanted), outcome.difference(wanted)


@pytest.mark.parametrize("first", FIRST_SEEDS)
def test_random_queries_go_on_in_another_plan(first):
    moves = 0
    for seed in range(first, first + SEEDS_EACH):
        plan = Plan.of(seed)
        plan.prepared.give(plan.trial(0, interpreted=True).inputs)
        with watched(f"seed {seed}"):
            outcome, moved = wander(plan.prepared, plans_of(plan.prepared), seed, interpreted=True)
        wanted = plan.prepared.reference()
        assert plan.prepared.agree(outcome, Way(interpreted=True), wanted), f"{seed}: {outcome.difference(wanted)}"
        moves += moved
    assert moves > 5


@pytest.mark.parametrize(
    "call",
    [
        "MIN(t) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL '4' SECOND PRECEDING)",
        "LEAD(t, 2) OVER (PARTITION BY k)",
        "SUM(d) OVER (PARTITION BY k ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING)",
    ],
)
def test_frames_go_on_in_another_plan(call: str) -> None:
    dice = random.Random(3)
    columns = "k BIGINT, t VARCHAR, d DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
    prepared = Prepared(f"CREATE STREAM s ({columns}) WITH (connector = 'memory');\nSELECT k, {call} AS x FROM s;")
    texts, numbers = (None, "", "x", "a text of more than twelve bytes"), (None, 0.1, 1e16, -3.3)
    times = [(n - dice.choice((0, 1, 2))) * 1_000_000 for n in range(5, 65)]
    prepared.give({"s": [(dice.randrange(4), dice.choice(texts), dice.choice(numbers), at) for at in times]})
    outcome, moves = wander(prepared, plans_of(prepared), 1, interpreted=True)
    assert prepared.agree(outcome, Way(), prepared.reference()), outcome.difference(prepared.reference())
    assert moves > 2


def test_both_sides_of_an_event_leave_alone_in_their_order_in_another_plan() -> None:
    columns = "k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
    bounds = "l.ts BETWEEN r.ts - INTERVAL '1' SECOND AND r.ts + INTERVAL '1' SECOND"
    prepared = Prepared(
        f"CREATE STREAM s ({columns}) WITH (connector = 'memory');\n"
        f"SELECT l.k, l.v, r.k AS rk, r.v AS rv FROM s AS l FULL JOIN s AS r ON l.k = r.k AND l.v < r.v AND {bounds};"
    )
    dice = random.Random(5)
    prepared.give({"s": [(dice.randrange(40), dice.randrange(40), n // 3 * 1_000_000) for n in range(120)]})
    wanted, moves = prepared.reference(), 0
    for seed in range(6):
        with watched(f"seed {seed}"):
            outcome, moved = wander(prepared, plans_of(prepared), seed, interpreted=True)
        assert outcome == wanted, outcome.difference(wanted)
        moves += moved
    assert moves > 10
