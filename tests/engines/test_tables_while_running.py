"""The tables of triggers while a query runs: what a loop over exactly the events pushed so far leaves in them."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from random_chains import random_chains

import cq
from cq.codegen.state import saved_rows
from cq.engines.kept_tables import tables_of
from cq.ways import SCHEMES

WAYS = [("reference", 0, "auto"), ("native", 0, "auto")]
WAYS += [("native", threads, "chains") for threads in (1, 2, 4)]
WAYS += [("native", 2, scheme) for scheme in SCHEMES if scheme not in {"auto", "chains", "nolock"}]
ENGINES = [("reference", 0), ("native", 0), ("native", 2)]

TRANSFERS = """CREATE STREAM transfer (payer BIGINT, payee BIGINT, amount BIGINT);
CREATE TABLE account (owner BIGINT PRIMARY KEY, balance BIGINT NOT NULL CHECK (balance >= 0));
INSERT INTO account VALUES (3, 50), (1, 50), (2, 50), (0, 50);
CREATE TRIGGER moved AFTER INSERT ON transfer
BEGIN ATOMIC
  UPDATE account SET balance = balance - new.amount WHERE owner = new.payer;
  UPDATE account SET balance = balance + new.amount WHERE owner = new.payee;
END;
SELECT payer FROM moved_rejected;
"""


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_table_is_what_a_loop_over_the_events_before_leaves(way: tuple[str, int, str]) -> None:
    engine, threads, scheme = way
    r = random.Random(str(way))
    balances, taken, rejected = dict.fromkeys(range(4), 50), 0, 0
    text = f"SET transactions = '{scheme}'; SET punctuation_interval = 7;\n{TRANSFERS}"
    with cq.sql(text).start(engine=engine, threads=threads) as job:
        assert [row["balance"] for row in job.table("account")] == [50] * 4  # no event has come
        for _ in range(60):
            pushed = [(r.randrange(4), r.randrange(4), r.randint(1, 30)) for _ in range(r.choice((0, 1, 5, 40)))]
            job.push("transfer", pa.table(list(zip(*pushed, strict=True)) or [[]] * 3, ["payer", "payee", "amount"]))
            for payer, payee, amount in pushed:
                accepted = balances[payer] >= amount
                rejected += not accepted
                if accepted:
                    balances[payer] -= amount
                    balances[payee] += amount
            taken += len(pushed)
            if r.random() < 0.5:
                table = job.table("account")
                rows = [(row["owner"], row["balance"]) for row in table]
                assert rows == list(balances.items()) and table.events == {"transfer": taken}
                assert sum(balance for _, balance in rows) == 200 and min(balance for _, balance in rows) >= 0
        job.end()
        assert [row["balance"] for row in job.table("account")] == list(balances.values())
    assert sum(b.num_rows for b in job.results()) == rejected > 50  # reading a table has taken no results away


SEEDS = [*range(2), *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 40))]


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_random_triggers_are_those_of_a_run_over_the_events_before(seed: int, texts: bool) -> None:
    made = random_chains(seed, 60, texts=texts)
    text, events = made.compiled.request.source.text, made.given()["s"].combine_chunks()
    names = [t for t in ("t0", "t1") if f"SELECT * FROM {t};" in text]
    outputs = dict(zip(names, [o.name for o in made.compiled.outputs][-len(names) :], strict=True))
    changed = {table.name for *_, table in tables_of(made.compiled.plan.nodes())}  # others have their first rows
    jobs = [cq.sql(text).start(engine=engine, threads=threads, batch_rows=7) for engine, threads in ENGINES]
    r, at = random.Random(seed), 0
    while at < len(events):
        size = r.choice((1, 4, 15))
        for job in jobs:
            job.push("s", events.slice(at, size))
        at += size
        whole = cq.sql(text).run({"s": events.slice(0, at)}, engine="reference")
        for job, (name, output) in itertools.product(jobs, outputs.items()):
            if name not in changed:
                continue
            assert repr(job.table(name).to_pylist()) == repr(whole[output].to_pylist()), (seed, at, name)
    for job in jobs:
        job.close()


COLUMNS: Sequence[tuple[str, Any]] = [
    ("BOOLEAN", True),
    ("TINYINT", -128),
    ("SMALLINT", -32768),
    ("INTEGER", 2**31 - 1),
    ("BIGINT", -(2**63)),
    ("REAL", -0.5),
    ("DOUBLE", 1e300),
    ("DECIMAL(18,4)", Decimal("-12345678901234.5678")),
    ("DECIMAL(38,2)", Decimal("-123456789012345678901234567890123456.78")),
    ("VARCHAR", "twelve bytes"),
    ("VARCHAR", "more than twelve bytes, and ü"),
    ("DATE", dt.date(1969, 12, 31)),
    ("TIME", dt.time(23, 59, 59, 999999)),
    ("TIMESTAMP", dt.datetime(1960, 1, 1, 0, 0, 0, 1)),
    ("TIMESTAMP_LTZ", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("BIGINT ARRAY", [1, None, -3]),
    ("VARCHAR ARRAY", ["", None, "more than twelve bytes"]),
    ("DECIMAL(30,1) ARRAY", []),
]


@pytest.mark.parametrize(("engine", "threads"), ENGINES)
def test_values_of_every_type_and_nulls_are_those_that_were_stored(
    engine: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_rows, "BATCH_ROWS", 3)
    columns = ", ".join(f"c{n} {type_}" for n, (type_, _) in enumerate(COLUMNS))
    values = ", ".join(f"new.c{n}" for n in range(len(COLUMNS)))
    text = f"""CREATE STREAM s (k BIGINT, {columns}); CREATE TABLE t (k BIGINT PRIMARY KEY, {columns});
        CREATE TRIGGER g AFTER INSERT ON s INSERT INTO t VALUES (new.k, {values});
        SELECT k FROM g_rejected;"""
    r = random.Random(engine)
    rows = [
        {"k": k, **{f"c{n}": None if r.random() < 0.3 else value for n, (_, value) in enumerate(COLUMNS)}}
        for k in range(20)
    ]
    with cq.sql(text).start(engine=engine, threads=threads) as job:
        job.push("s", r.sample(rows, len(rows)))
        assert job.table("t").to_pylist() == rows
        types = [str(t) for t in job.table("t").to_arrow().schema.types]
    assert types[6:10] == ["float", "double", "decimal128(18, 4)", "decimal128(38, 2)"]


@pytest.mark.parametrize("key", ["VARCHAR", "DECIMAL(30,2)", "TIMESTAMP", "BOOLEAN", "BIGINT ARRAY"])
def test_rows_come_by_key_whatever_they_came_by(key: str) -> None:
    keys: dict[str, list[Any]] = {
        "VARCHAR": ["", "B", "a", "more than twelve bytes", "ä"],
        "DECIMAL(30,2)": [Decimal("-10000000000000000000.00"), Decimal("-1.00"), Decimal("0.50"), Decimal("2.00")],
        "TIMESTAMP": [dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 1)],
        "BOOLEAN": [False, True],
        "BIGINT ARRAY": [[], [None], [1], [1, 2], [3]],
    }
    text = f"""CREATE STREAM s (k {key}); CREATE TABLE t (k {key}, l BIGINT, PRIMARY KEY (l, k));
        CREATE TRIGGER g AFTER INSERT ON s
        BEGIN ATOMIC INSERT INTO t VALUES (new.k, 2); INSERT INTO t VALUES (new.k, 1); END; SELECT * FROM g;"""
    wanted = [(2 - n, k) for n in (1, 0) for k in keys[key]]
    for engine, threads in ENGINES:
        with cq.sql(text).start(engine=engine, threads=threads) as job:
            job.push("s", [{"k": k} for k in reversed(keys[key])])
            assert repr([(row["l"], row["k"]) for row in job.table("t")]) == repr(wanted)


TWO = """CREATE STREAM a (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts);
CREATE STREAM b (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE n (k BIGINT PRIMARY KEY, times BIGINT NOT NULL);
CREATE TRIGGER of_a AFTER INSERT ON a INSERT INTO n VALUES (new.k, 1) ON CONFLICT (k) DO UPDATE SET times = times + 1;
CREATE TRIGGER of_b AFTER INSERT ON b INSERT INTO n VALUES (new.k, 10) ON CONFLICT (k) DO UPDATE SET times = times + 10;
SELECT * FROM n;"""


@pytest.mark.parametrize(("engine", "threads"), ENGINES)
def test_events_that_wait_for_another_stream_are_not_in_the_table(engine: str, threads: int) -> None:
    def at(*seconds: int) -> list[dict[str, Any]]:
        return [{"k": 1, "ts": dt.datetime(2024, 1, 1, 0, 0, s)} for s in seconds]

    with cq.sql(TWO).start(engine=engine, threads=threads) as job:  # a --1--2--5--   b ----2--3----
        job.push("a", at(1, 2, 5))
        assert (job.table("n").to_pylist(), job.table("n").events) == ([], {"a": 0, "b": 0})
        job.push("b", at(2, 3))
        assert (job.table("n").to_pylist(), job.table("n").events) == ([{"k": 1, "times": 22}], {"a": 2, "b": 2})
        job.end("b")
        assert (job.table("n").to_pylist(), job.table("n").events) == ([{"k": 1, "times": 23}], {"a": 3, "b": 2})


@pytest.mark.parametrize(("engine", "threads"), ENGINES)
def test_table_that_cannot_be_read_is_refused_with_a_way_out(engine: str, threads: int) -> None:
    counting = """CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT NOT NULL);
        CREATE TRIGGER g AFTER INSERT ON s INSERT INTO t VALUES (new.k, 1) ON CONFLICT (k) DO UPDATE SET n = n + 1; """
    with cq.sql(counting + "SELECT * FROM g").start(engine=engine, threads=threads) as job:
        with pytest.raises(cq.UsageError, match='no table "tt"') as unknown:
            job.table("tt")
        assert unknown.value.first.help[0] == 'did you mean "t"?'
    with pytest.raises(cq.UsageError, match="the job is closed"):
        job.table("t")
    with cq.sql(counting + "SELECT 1 AS x FROM s").start(engine=engine, threads=threads) as job:
        job.push("s", [{"k": 1}])
        with pytest.raises(cq.UsageError, match='no table "t"'):  # its trigger does not run
            job.table("t")
    with cq.sql(counting + "SELECT * FROM g LIMIT 2").start(engine=engine, threads=threads) as job:
        job.push("s", [{"k": 1}])
        assert job.table("t").to_pylist() == [{"k": 1, "n": 1}]
        job.push("s", [{"k": 1}])
        with pytest.raises(cq.UsageError, match="LIMIT"):
            job.table("t")


@pytest.mark.parametrize(("engine", "threads"), ENGINES)
def test_error_that_has_ended_the_job_is_raised_for_its_tables(engine: str, threads: int) -> None:
    text = """CREATE STREAM s (k BIGINT); CREATE TABLE t (k BIGINT PRIMARY KEY);
        CREATE TRIGGER g AFTER INSERT ON s INSERT INTO t VALUES (new.k); SELECT 6 / k AS x FROM g;"""
    with cq.sql(text).start(engine=engine, threads=threads) as job:
        job.push("s", [{"k": 1}, {"k": 0}, {"k": 2}])
        with pytest.raises(cq.DataError, match="division by zero"):
            job.table("t")
    assert next(iter(job.results())).to_pylist() == [{"x": 6}]
