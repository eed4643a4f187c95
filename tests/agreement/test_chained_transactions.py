"""Transactions in chains give the rows, rejections and tables of the serial loop, in its order."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from cases import Prepared, Way
from changed_settings import change_settings
from random_chains import random_chains
from test_transactions import STREAMS, Application

from cq.engines import native
from cq.engines.analysis import analyze
from cq.planner.binding.settings import ADAPTIVE
from cq.planner.physical.printing import reason_text
from cq.runtime.base.kernel import library
from cq.runtime.base.ops import ld_i64, release, st_i64, st_u8, zalloc
from cq.runtime.base.simulation import Memory
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.engine import build
from cq.runtime.engine.ways import pace
from cq.runtime.flow.chained import array_grow, list_transaction, same_row, share_link
from cq.runtime.layout.chains import (
    ACCESS_BEFORE,
    ACCESS_IMAGE,
    ACCESS_SAME,
    ACCESS_STATE,
    ACCESS_TAG,
    ACCESS_TRANSACTION,
    ARRAY_AT,
    ARRAY_COUNT,
    ARRAY_WORDS,
    LATEST,
    LIST_WORDS,
    REPEATED,
    SHARE_LISTS,
    SHARE_WORDS,
    TAG_KEY_SHIFT,
    TAG_KEY_TEXTS,
    TAG_WORDS_SHIFT,
    TRANSACTION_ACCESSES,
    TRANSACTION_COUNT,
    TRANSACTION_VALUES,
)
from cq.ways import PLACEMENTS, UNCHECKED, WAY_OF_SCHEME
from cq.ways import Way as Runs

INTERPRETED, COMPILED, ALL = range(12), (1000, 1001), range(12, 600)
WORKERS, INTERVALS = (1, 2, 4, 8), (1, 7, 500, 5000)


def in_chains(made: Prepared, interval: int = 500) -> Prepared:
    """Its transactions run in chains, so many events together."""
    change_settings(made.compiled, transactions="chains", punctuation_interval=interval)
    (part,) = made.compiled.for_workers(2).after("place")
    assert part.stages[-1].way is Runs.CHAINS, part.stages[-1].reason
    return made


@pytest.mark.parametrize("seed", [*INTERPRETED, *(pytest.param(n, marks=pytest.mark.long) for n in ALL)])
def test_transactions_in_chains_give_the_rows_of_one_loop(seed: int) -> None:
    made = random_chains(seed, 40)
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("seed", [*INTERPRETED, *(pytest.param(n, marks=pytest.mark.long) for n in ALL)])
@pytest.mark.one_in(3)
def test_tables_with_texts_and_keys_of_texts_are_those_of_one_loop(seed: int) -> None:
    made = random_chains(seed, 40, texts=True)
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("seed", COMPILED)
@pytest.mark.one_in(2)
def test_compiled_they_give_them_too(seed: int, texts: bool) -> None:
    made = random_chains(seed, 2_000, texts=texts)
    expected = made.reference()
    for workers in WORKERS:
        assert made.native(Way(workers)) == expected, (seed, workers)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.long) for n in range(8, 300))])
@pytest.mark.one_in(2)
def test_rows_that_bodies_insert_into_streams_are_those_of_one_loop(seed: int, texts: bool) -> None:
    made = random_chains(seed, 40, texts=texts, fills=True)
    assert made.native(Way(2, interpreted=True, batch_rows=9)) == made.reference(), f"seed {seed}"


def test_compiled_they_insert_them_too() -> None:
    made = random_chains(1000, 2_000, texts=True, fills=True)
    expected = made.reference()
    assert expected.rows["result_4"], "the stream has rows"
    for workers in WORKERS:
        assert made.native(Way(workers)) == expected, workers


CONTENTION: list[tuple[str, Mapping[str, Any]]] = [
    ("streaming_ledger", {"accounts": 64, "balance": 20_000}),
    ("streaming_ledger", {"accounts": 2, "balance": 30_000, "transfers": 1.0}),
    ("streaming_ledger", {"accounts": 500, "balance": 0, "theta": 1.2}),
    ("streaming_ledger", {"accounts": 500, "balance": 1_000_000}),
    ("grep_and_sum", {"records": 64, "accesses": 30, "theta": 1.2}),
    ("grep_and_sum", {"records": 10_000, "reads": 0.2}),
    ("online_bidding", {"goods": 100, "quantity": 10, "added": 1}),
    ("online_bidding", {"goods": 10_000, "partitions": 8, "several": 0.5}),
    ("toll_processing", {"segments": 3, "broken": 0.1, "vehicles": 300}),
    ("toll_processing", {"segments": 100}),
]


PAIRS = [*itertools.product(WORKERS, INTERVALS)]
# The knobs of an application take turns: one has every second interval of a number of workers, the next the others.
TURNS = [[p for n, p in enumerate(PAIRS) if (n // len(INTERVALS) + n) % 2 == turn] for turn in (0, 1)]


@pytest.mark.parametrize("number", range(len(CONTENTION)), ids=lambda n: f"{CONTENTION[n][0]}-{n}")
@pytest.mark.one_in(3)
def test_an_application_is_that_of_one_loop_for_all_workers_and_intervals(number: int) -> None:
    name, knobs = CONTENTION[number]
    application = Application(name, knobs, 1_500)
    in_chains(application.prepared, INTERVALS[-1])
    for workers, interval in TURNS[number % 2]:
        application.agrees(Way(workers, batch_rows=interval))


FEW = {"accounts": 64, "segments": 3, "records": 64, "accesses": 5, "goods": 64, "quantity": 10}


@pytest.mark.parametrize("name", STREAMS)
def test_applications_in_chains_give_what_the_oracle_gives(name: str) -> None:
    application = Application(name, FEW, 200)
    in_chains(application.prepared, 7)
    application.agrees(Way(2, interpreted=True))


ACCOUNTS = """CREATE STREAM s (a VARCHAR, b VARCHAR, x BIGINT, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'memory');
CREATE TABLE t (k VARCHAR PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0), seen VARCHAR);
INSERT INTO t VALUES ('the account of ada', 10, NULL), ('the account of bob', 10, NULL), ('cid', 10, NULL);
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n - new.x, seen = new.b WHERE k = new.a;
  UPDATE t SET n = n + new.x, seen = COALESCE(seen, 'nobody') || '+' WHERE k = new.b;
  SELECT new.x, n, seen FROM t WHERE k = new.a;
END;
SELECT * FROM moved; SELECT a, b, x FROM moved_rejected; SELECT * FROM t;"""


def test_keys_that_begin_alike_are_different_rows_and_equal_ones_are_one() -> None:
    made = Prepared(ACCOUNTS)
    ada, bob = "the account of ada", "the account of bob"
    #         to itself; all of it; too much; to a row that is not there; a short key
    rows = [(ada, ada, 4), (ada, bob, 10), (ada, bob, 1), (bob, "the account of eve", 5), (bob, "cid", 15)]
    rows.append(("cid", ada, 1))
    made.give({"s": [(*row, at) for at, row in enumerate(rows)]})
    expected = made.reference()
    assert [r[2] for r in list(expected.rows.values())[1]] == [1]
    in_chains(made)
    for workers, batch in itertools.product((0, 2), (1, 100)):
        assert made.native(Way(workers, batch, interpreted=True)) == expected


def test_texts_of_keys_that_have_one_hash_are_compared() -> None:
    """Two keys of a number and a text, whose hashes are made to meet."""
    tag = TAG_KEY_TEXTS | 3 << TAG_KEY_SHIFT | (ENTRY_FIRST + 3) << TAG_WORDS_SHIFT | 7

    def naming(number: int, text: bytes) -> int:
        at = zalloc(len(text))
        for n, byte in enumerate(text):
            st_u8(at, n, byte)
        access = zalloc(8 * (ACCESS_IMAGE + ENTRY_FIRST + 4))
        for word, value in enumerate((number, at, len(text), 1 << (ENTRY_FIRST + 1)), ACCESS_IMAGE + ENTRY_FIRST):
            st_i64(access, word, value)
        st_i64(access, ACCESS_TAG, tag)
        return access

    with Memory():
        one, equal = naming(1, b"a long account of ada"), naming(1, b"a long account of ada")
        others = [
            naming(1, b"a long account of bob"),
            naming(1, b"a long account"),
            naming(2, b"a long account of ada"),
        ]
        assert same_row(one, equal, tag) == 1
        assert [same_row(one, other, tag) for other in others] == [0, 0, 0]


def test_of_the_accesses_to_a_row_the_last_is_latest() -> None:
    """I3 of chains, and what each access comes after: three transactions, of which one names a row twice."""
    size = 8 * (ACCESS_IMAGE + ENTRY_FIRST + 1)

    def naming(keys: tuple[int, ...]) -> tuple[int, list[int]]:
        transaction, first = zalloc(8 * TRANSACTION_VALUES), zalloc(size * len(keys))
        accesses = [first + size * n for n in range(len(keys))]
        for access, key in zip(accesses, keys, strict=True):
            st_i64(access, ACCESS_TRANSACTION, transaction)
            st_i64(access, ACCESS_TAG, 1 << TAG_KEY_SHIFT | 7)
            st_i64(access, ACCESS_IMAGE + ENTRY_FIRST, key)
        st_i64(transaction, TRANSACTION_ACCESSES, first)
        st_i64(transaction, TRANSACTION_COUNT, len(keys))
        return transaction, accesses

    with Memory():
        share = zalloc(8 * SHARE_WORDS)
        st_i64(share, SHARE_LISTS, zalloc(8 * LIST_WORDS))
        made = [naming(keys) for keys in ((1,), (1, 1), (2, 1))]
        for transaction, _ in made:
            assert list_transaction(share, transaction, 0, size) == 1
        assert share_link(share, 1, 0) == 1
        first, one, again, other, last = (access for _, accesses in made for access in accesses)
        states = [ld_i64(access, ACCESS_STATE) for access in (first, one, again, other, last)]
        assert states == [0, 0, REPEATED, LATEST, LATEST]
        assert ld_i64(again, ACCESS_SAME) == one
        assert [ld_i64(access, ACCESS_BEFORE) for access in (first, one, again, other, last)] == [0, first, 0, 0, one]


SELF = """CREATE STREAM s (a BIGINT, b BIGINT, x BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0));
INSERT INTO t VALUES (1, 10), (2, 10);
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n - new.x WHERE k = new.a;
  UPDATE t SET n = n + new.x WHERE k = new.b;
  SELECT new.x, n FROM t WHERE k = new.a;
END;
SELECT * FROM moved; SELECT a, b, x FROM moved_rejected; SELECT * FROM t;"""


def test_what_is_in_an_array_stays_when_it_grows() -> None:
    with Memory():
        array = zalloc(8 * ARRAY_WORDS)
        for count in range(100):
            assert array_grow(array, count + 1, 16) == 1
            item = ld_i64(array, ARRAY_AT) + 16 * count
            st_i64(item, 0, count)
            st_i64(item, 1, -count)
            st_i64(array, ARRAY_COUNT, count + 1)
        items = ld_i64(array, ARRAY_AT)
        assert [ld_i64(items, n) for n in range(200)] == [s for n in range(100) for s in (n, -n)]
        release(items)


def test_a_row_that_a_transaction_names_twice_is_one_row() -> None:
    made = Prepared(SELF)
    #                 a  b  x       1 to itself, then all of it; too much; to a row that is not there, and back
    made.give({"s": [(1, 1, 4, 0), (1, 2, 10, 1), (1, 2, 1, 2), (2, 2, 25, 3), (2, 3, 5, 4), (3, 2, 1, 5)]})
    expected = made.reference()
    assert [r[:2] for r in list(expected.rows.values())[1]] == [(1, 2), (2, 2)]
    in_chains(made)
    for workers, batch in itertools.product((0, 2), (1, 100)):
        assert made.native(Way(workers, batch, interpreted=True)) == expected


ARRAYS = """CREATE STREAM s (a BIGINT, d BIGINT ARRAY, e BIGINT ARRAY, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'memory');
CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n < 100));
INSERT INTO t VALUES (1, 10), (2, 10), (3, 10);
CREATE TRIGGER moved AFTER INSERT ON s BEGIN ATOMIC
  UPDATE t SET n = n * 2 WHERE k = new.a;
  UPDATE t SET n = n + u.x FROM UNNEST(new.d, new.e) AS u(k, x) WHERE t.k = u.k;
  UPDATE t SET n = n + 1 WHERE k = new.a;
  SELECT new.a, n, (SELECT SUM(o.n) FROM t AS o, UNNEST(new.d) AS u(k) WHERE o.k = u.k) AS total FROM t WHERE k = new.a;
END;
SELECT * FROM moved; SELECT a, reason FROM moved_rejected; SELECT * FROM t;"""


def test_an_array_may_name_a_row_several_times_and_one_that_is_named_beside() -> None:
    made = Prepared(ARRAYS)
    #        twice; with the row of `a`; no such row and NULL; more keys than amounts; too much at the end; what is left
    arrays = [(1, [2, 2], [1, 2]), (2, [2, 3, 2], [1, 1, 1]), (3, [9, None, 1], [1, 1, 1]), (1, [2, 3], [5])]
    arrays += [(2, [1, 3, 1], [1, 1, 90]), (None, None, [1]), (3, [1, 2, 3], [0, 0, 0])]
    made.give({"s": [(*row, at) for at, row in enumerate(arrays)]})
    expected = made.reference()
    moved, rejected, rows = expected.rows.values()
    assert [r[:3] for r in moved][:2] == [(1, 21, 26), (2, 29, 69)] and len(rejected) == 2, expected.rows
    assert rows
    in_chains(made)
    for workers, batch in itertools.product((0, 2), (1, 100)):
        assert made.native(Way(workers, batch, interpreted=True)) == expected


@pytest.mark.long
@pytest.mark.parametrize(("name", "knobs"), CONTENTION)
def test_a_million_events_give_the_same_for_all_workers_and_intervals(name: str, knobs: Mapping[str, Any]) -> None:
    application = Application(name, knobs, 1_000_000)
    for workers, interval in itertools.product(WORKERS, INTERVALS):
        in_chains(application.prepared, interval)
        application.agrees(Way(workers, batch_rows=100_000))


# -- how many events run together adapts -----------------------------------------------------------------------------


def adapt_at_once(*where: Any, behind: int, adapt: Callable[..., None]) -> None:
    """Punctuations adapt, and those that are on their way count, too."""
    adapt(*where, behind=0)


@pytest.mark.parametrize("scheme", [s for s in WAY_OF_SCHEME if s != UNCHECKED])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.one_in(3)
def test_any_pace_gives_the_rows_of_one_loop(seed: int, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    made = random_chains(seed, 400, texts=True)
    made.give_tables({"s": made.given()["s"].combine_chunks()})
    expected = made.reference()
    library()  # which hashes results, is compiled from what is there before it is replaced
    monkeypatch.setattr(pace, "LADDER", (1, 2, 3, 5, 8, 13, 21))
    monkeypatch.setattr(pace, "RUNGS", 7)
    monkeypatch.setattr(pace, "FIRST_RUNG", 2)
    monkeypatch.setattr(pace, "WINDOW", 1)  # something is decided after every punctuation, whatever it cost
    monkeypatch.setattr(build, "adapt", partial(adapt_at_once, adapt=build.adapt))
    paces: list[int] = []

    def step(rung: int, *_: int) -> int:
        paces.append(r.choice((-1, 0, 1)) if 0 < rung < 6 else (rung == 0) - (rung == 6))
        return paces[-1]

    monkeypatch.setattr(pace, "pace_step", step)
    change_settings(made.compiled, transactions=scheme, punctuation_interval=ADAPTIVE)
    assert made.native(Way(2, interpreted=True)) == expected, f"seed {seed}"
    assert len(set(paces)) == 3, "the pace has not changed"


@pytest.mark.parametrize("scheme", [s for s in WAY_OF_SCHEME if s != UNCHECKED])
@pytest.mark.one_in(2)
def test_compiled_an_application_is_that_of_one_loop_at_its_own_pace(scheme: str) -> None:
    application = Application("streaming_ledger", {"accounts": 64, "balance": 20_000}, 30_000)
    compiled = application.prepared.compiled
    change_settings(compiled, transactions=scheme, punctuation_interval=ADAPTIVE)
    for way in (Way(0), Way(1), Way(2, 3), Way(2, 4096), Way(4, 100_000)):
        application.agrees(way)
    (stage,) = [s for s in analyze(compiled, 2)["stages"] if "punctuations" in s]
    assert stage["punctuations"]["count"] >= 3 and 50 <= stage["punctuations"]["median"] <= 10_000
    assert "adaptive" in stage["reason"]


# -- which of them a worker takes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("scheme", [s for s in WAY_OF_SCHEME if s != UNCHECKED])
@pytest.mark.one_in(3)
def test_an_application_is_that_of_one_loop_wherever_its_transactions_run(
    scheme: str, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(native, "usable_sockets", lambda: (tuple(here[::2]), tuple(here[1::2] or here)))
    # all want few rows, so that workers wait for shares of others
    application = Application("streaming_ledger", {"accounts": 4, "balance": 20_000, "transfers": 1.0}, 3_000)
    compiled = application.prepared.compiled
    change_settings(compiled, transactions=scheme, placement=placement)
    for workers, interval in ((0, 7), (1, 500), (2, 7), (3, 50), (4, 500)):
        application.agrees(Way(workers, batch_rows=interval))
    (part,) = compiled.for_workers(2).after("place")
    assert ("; a worker takes" in reason_text(part.stages[-1])) == (placement != PLACEMENTS[0])
