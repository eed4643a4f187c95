"""Joins of which one side is complete before the other begins: any worker looks rows up in it (ways/shared.py).

Native equals the reference, row by row in order, over threads and sizes of batches. The side that comes first is `c`,
then `n`, then `o`, as they are declared; none of them has a WATERMARK.
"""

from __future__ import annotations

import random

import pytest
from cases import WAYS, Prepared, Way, watched
from random_lookups import lookups, rows_of_lookups

from cq.connectors.physical_rows import batch_of
from cq.records import replace
from cq.runtime.engine.engine import Engine
from cq.ways import Way as Runs

STREAMS = """
CREATE STREAM c (id BIGINT, name VARCHAR, lo BIGINT);
CREATE STREAM n (id BIGINT, place VARCHAR);
CREATE STREAM o (number BIGINT NOT NULL, customer BIGINT, label VARCHAR, price BIGINT){more};
"""
TIMED = """
CREATE STREAM c (id BIGINT, name VARCHAR, lo BIGINT);
CREATE STREAM o (number BIGINT NOT NULL, customer BIGINT, label VARCHAR, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL '3' SECOND);
"""

CASES = {
    "pairs, several a row": "SELECT o.number, c.name, c.lo FROM o JOIN c ON o.customer = c.id;",
    "text keys": "SELECT o.number, c.lo FROM o JOIN c ON o.label = c.name;",
    "two keys and a condition that is left over": """
        SELECT o.number, c.name FROM o JOIN c ON o.customer = c.id AND o.label = c.name AND o.price > c.lo;""",
    "no key at all": "SELECT o.number, c.name FROM o JOIN c ON o.price < c.lo;",
    "the complete side is written first": "SELECT o.number, c.name FROM c JOIN o ON o.customer = c.id;",
    "rows with a match": "SELECT number, price FROM o WHERE customer IN (SELECT id FROM c);",
    "rows with a match under a condition": """
        SELECT number, price FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.id = o.customer AND c.lo < o.price);""",
    "rows without a match beside NULLs": """
        SELECT o.number, c.name FROM o LEFT JOIN c ON o.customer = c.id AND c.lo < o.price;""",
    "rows without a match": "SELECT number FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.id = o.customer);",
    "rows that no value equals, with NULLs on both sides": """
        SELECT number FROM o WHERE customer NOT IN (SELECT id FROM c WHERE id > 3);""",
    "one side looked up twice": """
        SELECT o.number, c.name, d.lo FROM o JOIN c ON o.customer = c.id LEFT JOIN c AS d ON c.lo = d.id;""",
    "one side looked up three times, for pairs, a match and no match": """
        SELECT o.number, c.name FROM o JOIN c ON o.customer = c.id WHERE o.customer IN (SELECT lo FROM c)
        AND o.label NOT IN (SELECT name FROM c WHERE name <> 'a');""",
    "two joins, one over the other": """
        SELECT o.number, c.name, n.place FROM o JOIN c ON o.customer = c.id JOIN n ON c.lo = n.id;""",
    "a join within the complete side": """
        SELECT o.number, x.name, x.place
        FROM o JOIN (SELECT c.id, c.name, n.place FROM c JOIN n ON c.lo = n.id) AS x ON o.customer = x.id;""",
    "computed before and behind": """
        SELECT o.number * 2 AS twice, UPPER(c.name) || '!' AS loud
        FROM o JOIN c ON o.customer % 7 = c.id WHERE o.price > 10 AND c.lo % 2 = 0;""",
    "a limit": "SELECT o.number, c.name FROM o JOIN c ON o.customer = c.id LIMIT 37;",
    "an error among the pairs": """
        SELECT o.number, 100 / (c.lo - 3 + o.price - o.price) AS q FROM o JOIN c ON o.customer = c.id;""",
    "an error in the condition that is left over": """
        SELECT o.number, c.name FROM o JOIN c ON o.customer = c.id AND 100 / (o.number - 150) < 50;""",
    "two outputs": """
        CREATE VIEW x AS SELECT o.number, o.price, c.name FROM o JOIN c ON o.customer = c.id;
        SELECT number, name FROM x;
        SELECT number, price FROM x WHERE price > 50 LIMIT 11;""",
}


def given(seed: int) -> dict[str, list[tuple[object, ...]]]:
    rng = random.Random(seed)

    def some(value: object) -> object:
        return None if rng.random() < 0.1 else value

    names = ["a", "bb", "a name that is longer than an entry holds", ""]
    return {
        "c": [(some(rng.randrange(12)), some(rng.choice(names)), some(rng.randrange(9))) for _ in range(25)],
        "n": [(some(rng.randrange(9)), some(rng.choice(names))) for _ in range(9)],
        "o": [
            (n, some(rng.randrange(20)), some(rng.choice(names)), some(rng.randrange(100))) for n in range(200)
        ],
    }  # fmt: skip


def ways_of(prepared: Prepared, workers: int) -> list[Runs]:
    return [s.way for part in prepared.compiled.for_workers(workers).after("place") for s in part.stages]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(3)
def test_shared_probes_give_the_rows_of_the_reference_in_order(name: str) -> None:
    prepared = Prepared(STREAMS.format(more="") + CASES[name])
    assert ways_of(prepared, 4) == [Runs.SHARED] and ways_of(prepared, 1) == [Runs.LOOP]
    for seed, cuts in ((1, ()), (2, (3, 1, 50))):
        prepared.give(given(seed), cuts)
        wanted = prepared.reference()
        assert bool(wanted.error) == ("error" in name) and any(wanted.rows.values())
        for way in WAYS:
            with watched(f"{name}, {way}"):
                got = prepared.native(way)
            assert prepared.agree(got, way, wanted), f"{way}: {got.difference(wanted)}"


@pytest.mark.parametrize("seed", range(12))
def test_random_chains_of_look_ups_are_the_reference(seed: int) -> None:
    prepared = Prepared(lookups(seed))
    for rows in range(3):
        prepared.give(rows_of_lookups(10 * seed + rows), (3, 1))
        wanted = prepared.reference()
        for way in (Way(1, 1, interpreted=True), Way(2, 3, interpreted=True), Way(4, 4096, interpreted=True)):
            got = prepared.native(way)
            assert got == wanted, f"seed {seed}, rows {rows}, {way}: {got.difference(wanted)}"


@pytest.mark.parametrize("given_rows", [{"c": []}, {"o": []}, {"c": [], "o": []}], ids=["no c", "no o", "nothing"])
def test_shared_probes_of_empty_inputs(given_rows: dict[str, list[tuple[object, ...]]]) -> None:
    prepared = Prepared(STREAMS.format(more="") + CASES["pairs, several a row"])
    prepared.give({**given(1), **given_rows})
    wanted = prepared.reference()
    for way in WAYS:
        assert prepared.native(way) == wanted


def test_shared_probes_of_rows_that_have_times() -> None:
    """Late rows match as others do."""
    prepared = Prepared(TIMED + "SELECT o.number, o.ts, c.name FROM o JOIN c ON o.customer = c.id;")
    assert ways_of(prepared, 2) == [Runs.SHARED]
    rng = random.Random(5)
    orders = [(n, rng.randrange(12), "x", 1_000_000 * (n + rng.randrange(-9, 9))) for n in range(100)]
    prepared.give({"c": given(5)["c"], "o": orders}, (7, 30))
    wanted = prepared.reference()
    assert len(wanted.rows["result"]) > 100
    for way in WAYS:
        got = prepared.native(way)
        assert got == wanted, f"{way}: {got.difference(wanted)}"


PLANS = [  # workers of the parts: before any order, while there are orders, to the end
    pytest.param((2, 2, 2), True, id="interpreted, shared"),
    pytest.param((2, 1, 4), True, id="interpreted, shared, a loop, shared"),
    pytest.param((1, 4, 2), False, id="a loop, shared, shared"),
    pytest.param((4, 2, 1), False, id="shared, shared, a loop"),
]


@pytest.mark.parametrize("name", ["two keys and a condition that is left over", "rows with a match"])
@pytest.mark.parametrize(("workers", "interpreted"), PLANS)
def test_shared_probes_that_are_paused_go_on(name: str, workers: tuple[int, ...], interpreted: bool) -> None:
    prepared = Prepared(STREAMS.format(more="") + CASES[name])
    prepared.give(given(7))
    wanted = [tuple(row) for row in prepared.reference().rows["result"]]
    pipelines = {n: prepared.compiled.for_workers(n).after("emit")[0] for n in set(workers)}
    found: list[tuple[object, ...]] = []
    snapshot = None
    for count, until in zip(workers, ({"c": 10, "o": 1}, {"c": 25, "o": 90}, {"c": 25, "o": 200}), strict=True):
        pipeline = pipelines[count]
        with Engine(
            pipeline, threads=0 if interpreted else count, batch_rows=7, interpreted=interpreted, snapshot=snapshot
        ) as engine:
            for number, source in enumerate(pipeline.sources):
                if engine.ended(number):
                    continue
                rows = given(7)[source.name]
                fields = [replace(f, nullable=True) for f in prepared.fields[source.name]]
                first = snapshot.rows[number] if snapshot is not None else 0
                taken = batch_of(rows[first : until[source.name]], fields).select([c.name for c in source.columns])
                engine.push(number, taken)
                if until[source.name] == len(rows):
                    engine.end(number)
            batches = engine.drain()
            if not engine.finished:
                snapshot = engine.pause()
                batches += engine.drain()
        found += [tuple(row.values()) for _, batch in batches for row in batch.to_pylist()]
    assert snapshot is not None and snapshot.rows == (25, 90)  # both sides were paused
    assert found == wanted


NOT_SHARED = {
    "rows of both sides beside pairs": """
        SELECT number FROM o UNION ALL SELECT id FROM c UNION ALL
        SELECT o.number + c.id FROM o JOIN c ON o.customer = c.id;""",
    "rows that wait for the end": "SELECT c.name, o.number FROM c LEFT JOIN o ON o.customer = c.id;",
    "rows of both sides without a match": "SELECT o.number, c.name FROM o FULL JOIN c ON o.customer = c.id;",
    "both sides": "SELECT a.number FROM o AS a JOIN o AS b ON a.customer = b.number;",
    "a count": "SELECT c.name, COUNT(*) FROM o JOIN c ON o.customer = c.id GROUP BY c.name;",
    "groups that are joined": """
        SELECT o.number, x.n FROM o JOIN (SELECT id, COUNT(*) AS n FROM c GROUP BY id) AS x ON o.customer = x.id;""",
}


@pytest.mark.parametrize("name", NOT_SHARED)
def test_what_is_kept_for_later_is_not_shared(name: str) -> None:
    assert Runs.SHARED not in ways_of(Prepared(STREAMS.format(more="") + NOT_SHARED[name]), 4)


def test_sources_with_times_on_both_sides_are_not_complete_first() -> None:
    timed = TIMED.replace("lo BIGINT", "lo BIGINT, at TIMESTAMP NOT NULL, WATERMARK FOR at")
    query = "SELECT o.number, c.name FROM o JOIN c ON o.customer = c.id;"
    assert Runs.SHARED not in ways_of(Prepared(timed + query), 4)
