"""Random triggers: native gives what the reference gives, and both what SQLite does with the same statements."""

from __future__ import annotations

import pytest
from cases import Prepared, Way, watched
from random_triggers import by_sqlite, random_case

INTERPRETED, MORE, COMPILED = range(26, 41), (*range(2, 26), *range(41, 2_300)), (1000, 1005, 1008)
SLICE, ALL = range(0, 150, 50), range(150, 5000, 50)
WAYS = [Way(threads, batch) for threads in (0, 1, 2, 4) for batch in (1, 3, 4096)]


def prepared(seed: int) -> Prepared:
    case = random_case(seed)
    made = Prepared(case.text())
    made.give(case.inputs(), (3,))
    return made


@pytest.mark.parametrize("first", [*SLICE, *(pytest.param(n, marks=pytest.mark.long) for n in ALL)])
def test_the_reference_gives_what_sqlite_does(first: int) -> None:
    for seed in range(first, first + 50):
        case = random_case(seed)
        outcome = prepared(seed).reference()
        assert not outcome.error, (seed, outcome.message)
        expected = by_sqlite(case)
        for rows, name in zip(outcome.rows.values(), expected, strict=True):
            assert [tuple(r) for r in rows] == expected[name], f"seed {seed}: {name} of\n{case.text()}"


@pytest.mark.parametrize("seed", [*INTERPRETED, *(pytest.param(n, marks=pytest.mark.long) for n in MORE)])
@pytest.mark.one_in(2)
def test_interpreted_kernels_give_what_the_reference_gives(seed: int) -> None:
    made = prepared(seed)
    assert made.native(Way(interpreted=True)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("seed", COMPILED)
@pytest.mark.one_in(2)
def test_compiled_kernels_give_it_whatever_the_threads_and_batches(seed: int) -> None:
    made = prepared(seed)
    expected = made.reference()
    for way in WAYS:
        assert made.native(way) == expected, f"seed {seed}, {way}"


def test_an_event_may_cause_more_rows_than_a_port_has_room_for() -> None:
    shown = " ".join(f"SELECT new.k + {n} AS k;" for n in range(150))
    made = Prepared(
        f"CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);"
        f"CREATE TRIGGER g AFTER INSERT ON s BEGIN UPDATE t SET n = 1 WHERE k = new.k; {shown} END; SELECT k FROM g;"
    )
    made.give({"s": [(0,), (None,), (1000,)]})
    expected = made.reference()
    assert len(expected.rows["result"]) == 450
    for batch in (1, 3, 4096):
        way = Way(0, batch, interpreted=True)
        with watched(str(way)):
            assert made.native(way) == expected, way
