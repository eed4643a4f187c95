"""Every scheme of running transactions gives the rows, rejections and tables of the serial loop, in its order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest
import transactions
from cases import Prepared, Way
from changed_settings import change_settings
from random_chains import random_chains
from test_transactions import KNOBS, Application

from cq.ways import UNCHECKED, WAY_OF_SCHEME

COMPARED = tuple(s for s in WAY_OF_SCHEME if s not in {UNCHECKED, "chains"})  # of chains: test_chained_transactions.py
WORKERS, INTERVALS = (1, 2, 4, 8), (1, 7, 500, 5000)


def by(scheme: str, made: Prepared) -> Prepared:
    """Its transactions run by this scheme, all of a batch together; one by one where the plan says why not by it."""
    change_settings(made.compiled, transactions=scheme, punctuation_interval=INTERVALS[-1])
    parts = made.compiled.for_workers(2).after("place")  # one without triggers has rows of tables
    lasts = [p.stages[-1] for p in parts]
    by_it = any(stage.way is WAY_OF_SCHEME[scheme] for stage in lasts)
    refused = any(stage.reason.startswith(f"no '{scheme}' of transactions: ") for stage in lasts)
    assert by_it or refused, [stage.reason for stage in lasts]
    return made


@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 200))])
def test_random_triggers_give_the_rows_of_one_loop(scheme: str, seed: int) -> None:
    made = by(scheme, random_chains(seed, 40))
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 200))])
def test_so_they_do_with_texts_in_tables_and_keys(scheme: str, seed: int) -> None:
    made = by(scheme, random_chains(seed, 40, texts=True))
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 200))])
def test_rows_that_bodies_insert_into_streams_are_those_of_one_loop(scheme: str, seed: int) -> None:
    made = by(scheme, random_chains(seed, 40, texts=seed % 2 == 1, fills=True))
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.one_in(3)
def test_compiled_they_give_them_too(scheme: str, texts: bool) -> None:
    made = by(scheme, random_chains(1000, 2_000, texts=texts))
    expected = made.reference()
    for workers in WORKERS:
        assert made.native(Way(workers)) == expected, workers


Knobs = Mapping[str, Any]
CASES: list[tuple[str, Knobs]] = [
    ("streaming_ledger", {"accounts": 64, "balance": 20_000}),
    ("streaming_ledger", {"accounts": 2, "balance": 30_000, "transfers": 1.0}),
    ("streaming_ledger", {"accounts": 500, "balance": 0, "theta": 1.2, "partitions": 8, "several": 0.5}),
    ("toll_processing", {"broken": 0.1, "vehicles": 300, "segments": 3}),
    ("grep_and_sum", {"records": 64, "theta": 1.2}),
    ("online_bidding", {"goods": 100, "quantity": 10, "added": 1, "partitions": 8, "several": 0.5}),
]


@cache
def application(number: int, events: int) -> Application:
    name, knobs = CASES[number]
    return Application(name, knobs, events)


@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.one_in(3)
def test_an_application_is_that_of_one_loop_for_all_workers_and_intervals(number: int, scheme: str) -> None:
    """Each interval with one number of workers, another one for each scheme; with all of them: `-m long`."""
    first = COMPARED.index(scheme)
    everywhere(scheme, application(number, 1_500), zip(INTERVALS, WORKERS[first:] + WORKERS[:first], strict=True))


def everywhere(scheme: str, made: Application, ways: Iterable[tuple[int, int]]) -> None:
    """The application is that of the oracle for these intervals and workers."""
    by(scheme, made.prepared)
    for interval, workers in ways:
        made.agrees(Way(workers, batch_rows=interval))


@pytest.mark.parametrize("scheme", COMPARED)
def test_transfers_keep_the_sum_and_no_balance_is_below_zero(scheme: str) -> None:
    made = by(
        scheme, Application("streaming_ledger", {"accounts": 8, "balance": 20_000, "transfers": 1.0}, 2_000).prepared
    )
    moved, *tables = made.native(Way(2)).rows.values()
    assert {row[1] for row in moved} == {True, False}
    for table in tables:
        assert sum(balance for _, balance in table) == 8 * 20_000 and min(balance for _, balance in table) >= 0


@pytest.mark.parametrize("scheme", ["chains", *COMPARED])
def test_at_every_punctuation_sums_are_kept_and_checks_hold(scheme: str) -> None:
    """The tables at a punctuation are those at the end of the events before it."""
    interval, knobs = 100, {"accounts": 8, "balance": 20_000, "transfers": 1.0}
    made = by(scheme, Application("streaming_ledger", knobs, 10 * interval).prepared)
    goods = by(scheme, Application("online_bidding", {"goods": 64, "quantity": 10, "added": 1}, 10 * interval).prepared)
    ledger, bids = made.given()["ledger"], goods.given()["bidding"]
    balances, quantities = set(), set()
    for events in range(0, 10 * interval + 1, interval):
        for prepared, stream, all_of_them in ((made, "ledger", ledger), (goods, "bidding", bids)):
            prepared.give_tables({stream: all_of_them.slice(0, events)})
        _, *tables = made.native(Way(2, batch_rows=interval)).rows.values()
        for table in tables:
            assert sum(balance for _, balance in table) == 8 * 20_000 and min(balance for _, balance in table) >= 0
        balances.add(tables[0])
        quantities.add([*goods.native(Way(2, batch_rows=interval)).rows.values()][-1])
    assert len(balances) == len(quantities) == 11, "nothing has changed between two punctuations"
    assert all(quantity >= 0 for rows in quantities for _, _, quantity in rows)
    assert any(quantity == 0 for rows in quantities for _, _, quantity in rows), "no bid could have taken too much"


def test_without_locks_every_event_has_its_answer_once_its_accounts_are_there() -> None:
    """Which answer depends on time: a transfer may come before the opening of its account, or change between guard and
    write. After the first punctuation all accounts are open."""
    interval, application = 100, Application("streaming_ledger", {"accounts": 4}, 3_000, more=("made_rejected",))
    made = by(UNCHECKED, application.prepared)
    times = [row[0] for row in application.streams["ledger"]]
    for _ in range(20):
        moved, *tables, rejected = made.native(Way(4, batch_rows=interval)).rows.values()
        answered = [*(row[0] for row in moved), *(row[0] for row in rejected)]
        assert len(set(answered)) == len(answered) and set(times[interval:]) <= set(answered) <= set(times)
        assert [len(t) for t in tables] == [4, 4]


@pytest.mark.parametrize("name", transactions.APPLICATIONS)
@pytest.mark.one_in(4)
def test_a_quarter_of_a_million_transactions_have_one_outcome_in_every_setting(name: str) -> None:
    """Every scheme, chains among them, with 1, 2, 4 and 8 workers and 1, 7, 500 and 5,000 events at a time."""
    (done,) = transactions.rounds(250_000, (name,))
    assert done.transactions == 250_000 and done.events[5_000] > 5_000 and not done.different


@pytest.mark.long
@pytest.mark.timeout(7_200)  # sixteen runs, each compared row by row in Python
@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize(("name", "knobs"), KNOBS)
def test_a_million_events_give_the_same_for_all_workers_and_intervals(name: str, knobs: Knobs, scheme: str) -> None:
    everywhere(scheme, Application(name, knobs, 1_000_000), itertools.product(INTERVALS, WORKERS))
