"""Changes of tables: what a random trigger does to a table is what SQLite logs, and leads to what the table holds."""

from __future__ import annotations

import pytest
from cases import Prepared, Way
from random_chains import random_chains
from random_triggers import Case, Table, by_sqlite, random_case

FIRST, ALL = range(60), range(60, 2_000)
INTERPRETED, COMPILED = range(2, 10), (1000, 1001)
CHAINED, MORE_CHAINED = range(8), range(8, 300)
WAYS = [Way(threads, batch) for threads in (0, 1, 2, 4) for batch in (1, 3, 4096)]


def prepared(case: Case) -> Prepared:
    made = Prepared(case.text() + "".join(f"SELECT * FROM {t.name}_changes;\n" for t in case.logged()))
    made.give(case.inputs(), (3,))
    return made


def replayed(table: Table, log: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The rows of the table, by key, after these changes of what it began with."""
    filled = [(*(k, t)[: table.keys], n, None, "w") for k, t, n in table.rows]
    rows = {row[: table.keys]: row for row in filled}
    for op, *values in log:
        row = tuple(values)
        key = row[: table.keys]
        if op in {"-U", "-D"}:
            assert rows.pop(key) == row, f"{row} is not there"
        else:
            assert key not in rows, f"{key} is there already"
            rows[key] = row
    return [rows[key] for key in sorted(rows)]  # type: ignore[type-var]


@pytest.mark.parametrize("seed", [*FIRST, *(pytest.param(n, marks=pytest.mark.long) for n in ALL)])
@pytest.mark.one_in(2)
def test_changes_are_those_that_sqlite_logs_and_lead_to_the_table(seed: int) -> None:
    case = random_case(seed)
    outcome = prepared(case).reference()
    assert not outcome.error, outcome.message
    expected = by_sqlite(case, changes=True)
    found = dict(zip(expected, ([tuple(r) for r in rows] for rows in outcome.rows.values()), strict=True))
    for table in case.logged():
        name = f"{table.name}_changes"
        log = [row[1:] for row in found[name]]
        assert sorted(log, key=repr) == sorted(expected[name], key=repr), f"{name} of\n{case.text()}"
        assert replayed(table, log) == found[table.name]
    others = {n for n in expected if not n.endswith("_changes")}
    assert {n: found[n] for n in others} == {n: expected[n] for n in others}


@pytest.mark.parametrize("seed", INTERPRETED)
@pytest.mark.one_in(3)
def test_interpreted_kernels_give_what_the_reference_gives(seed: int) -> None:
    made = prepared(random_case(seed))
    assert made.native(Way(interpreted=True)) == made.reference()


@pytest.mark.parametrize("seed", COMPILED)
@pytest.mark.one_in(2)
def test_compiled_kernels_give_it_whatever_the_threads_and_batches(seed: int) -> None:
    made = prepared(random_case(seed))
    expected = made.reference()
    for way in WAYS:
        assert made.native(way) == expected, way


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("seed", [*CHAINED, *(pytest.param(n, marks=pytest.mark.long) for n in MORE_CHAINED)])
@pytest.mark.one_in(3)
def test_transactions_in_chains_give_the_changes_of_one_loop(seed: int, texts: bool) -> None:
    made = random_chains(seed, 40, texts=texts, changes=True)
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference()
