"""Joins of which one side is large when the other begins: its rows are deferred (cq/runtime/containers/deferred.py).

Native equals the reference, row by row in order, over threads and sizes of batches: small joins whose rows are deferred
from the first, or the third, on, and one that is large enough as it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from unittest.mock import patch

import pytest
from cases import WAYS, Prepared, Way, watched
from test_shared_joins import CASES, STREAMS, given
from test_shared_joins import test_shared_probes_that_are_paused_go_on as go_on_when_paused
from test_slt import CASES as SLT
from test_slt import CUTS, RUNNING, give, on_the_reference, prepared

from cq.planner.operators import Join, SemiJoin
from cq.runtime.containers import multimap_saving
from cq.runtime.containers.multimap_words import DEFER_FROM_ROWS

FILES = sorted({SLT[n].file for n in RUNNING})
FROM = (0, 2)  # rows: in turn
INTERPRETED = tuple(w for w in WAYS if w.interpreted)
COMPILED = tuple(w for w in WAYS if not w.interpreted)

TIMED = """
CREATE STREAM c (id BIGINT NOT NULL, weight DOUBLE, at TIMESTAMP NOT NULL, WATERMARK FOR at);
CREATE STREAM o (customer BIGINT, label VARCHAR, price BIGINT, at TIMESTAMP NOT NULL, WATERMARK FOR at);
"""
LARGE = {
    "pairs": "SELECT c.id, c.weight, o.label, o.price FROM c JOIN o ON c.id = o.customer;",
    "two keys": "SELECT c.id, c.weight, o.price FROM c JOIN o ON c.id = o.customer AND c.weight = o.price;",
    "rows with a match": """
        SELECT label, price FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.id = o.customer AND c.weight < o.price);""",
}


def from_rows(count: int):
    """Inside, so many rows of a side are put into lists, and all others deferred."""
    return patch.object(multimap_saving, "DEFER_FROM_ROWS", count)


@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.one_in(4)
def test_joins_mean_the_same_whose_rows_are_deferred(file: str, turn: int) -> None:
    """Every second case of the file that has one in its plan, interpreted one way in turn; every thirtieth compiled."""
    cases = [*filter(joins, (n for n in RUNNING if SLT[n].file == file))]
    for number, case_id in enumerate(cases[turn::2]):
        compiled = COMPILED if number % 15 == 7 else ()
        means_the_same(case_id, (INTERPRETED[case_id % len(INTERPRETED)], *compiled))


def joins(case_id: int) -> bool:
    return any(isinstance(o, Join | SemiJoin) for o in prepared(case_id).compiled.plan.nodes())


def means_the_same(case_id: int, ways: Iterable[Way]) -> None:
    made, wanted = prepared(case_id), on_the_reference(case_id)
    for number, way in enumerate(ways, case_id):
        give(made, SLT[case_id], CUTS[way.batch_rows])
        with watched(f"{SLT[case_id].name}, {way}"), from_rows(FROM[number % 2]):
            got = made.native(way)
        assert made.agree(got, way, wanted), f"{SLT[case_id].name}, {way}: {got.difference(wanted)}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(3)
def test_deferred_rows_of_a_complete_side_are_shared(name: str) -> None:
    made = Prepared(STREAMS.format(more="") + CASES[name])
    made.give(given(3), (3, 1, 50))
    wanted = made.reference()
    for number, way in enumerate(WAYS):
        with watched(f"{name}, {way}"), from_rows(FROM[number % 2]):
            got = made.native(way)
        assert made.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"


@pytest.mark.parametrize("workers", [(2, 2, 2), (1, 4, 2)])
def test_deferred_rows_that_are_paused_go_on(workers: tuple[int, ...]) -> None:
    with from_rows(2):
        go_on_when_paused("two keys and a condition that is left over", workers, True)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.one_in(3)
def test_a_side_that_is_large_when_the_other_begins(name: str) -> None:
    """c: [--------------] o: [      --------]: rows of both sides take turns from then on."""
    dice = random.Random(name)
    rows = DEFER_FROM_ROWS + 4000
    made = Prepared(TIMED + LARGE[name])
    made.give(
        {
            "c": [(dice.randrange(9000), dice.choice((None, float(n % 7), -0.0)), n * 10) for n in range(rows)],
            "o": [
                (dice.choice((None, dice.randrange(12_000))), f"label {n}", n % 7, (rows - 3000 + n) * 10)
                for n in range(3500)
            ],
        }
    )
    wanted = made.reference()
    assert len(wanted.rows["result"]) > 500
    for way in (*(Way(t, 4096) for t in (0, 1, 2, 4)), Way(2, 300)):
        with watched(f"{name}, {way}"):
            got = made.native(way)
        assert got == wanted, f"{way}: {got.difference(wanted)}"
