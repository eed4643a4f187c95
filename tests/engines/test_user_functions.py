"""Functions of the user: the Python function is the meaning, on every engine; what goes wrong in it has a place."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Optional

import pytest
from cases import WAYS, Prepared

import cq
from cq.lang.functions.user import UserFunction

INT64_MAX = 2**63 - 1
LIMIT = 3  # a global that a function reads


@cq.udf
def risk(price: float, n: int) -> float:
    """How much each of n costs."""
    if n == 0:
        return -1
    total = 0.0
    for _ in range(abs(n) % LIMIT):
        total += price / n
    return total


@cq.udf
def either(x: Optional[int], y: int) -> int | None:  # noqa: UP045  both spellings are taken
    return None if y == LIMIT else y if x is None else x


@cq.udf
def known(x: Optional[float]) -> bool:  # noqa: UP045
    return x is not None


@cq.udf
def noted(text: Optional[str], n: int) -> str:  # noqa: UP045  both spellings are taken
    """Sees the NULL of one argument, and not of the other."""
    return f"{n}: {text or 'nothing'}"


@cq.udf
def shout(text: str, day: dt.date) -> str:
    return text.upper() + "!" * day.day


@cq.udf
def later(at: dt.datetime, by: dt.timedelta, go: bool) -> dt.datetime:
    return at + by if go else at


@cq.udf
def day_after(at: dt.datetime) -> dt.date:
    return at.date() + dt.timedelta(days=1)


@cq.udf("DECIMAL(38, 2)", ["DECIMAL(38, 2)", "SMALLINT"])
def share(amount: Decimal, parts: int) -> Decimal:
    return amount / parts


@cq.udf("REAL", ["REAL"], name="halved")
def halved_of_any_name(x: float) -> float:
    return x / 2


@cq.udf
def gap(a: dt.datetime, b: dt.datetime) -> dt.timedelta:
    return a - b


@cq.udf
def salted(content: bytes, n: int) -> bytes:
    return content + bytes([n % 256, 255])


EVERY = (salted, risk, either, known, noted, shout, later, day_after, share, halved_of_any_name, gap)
STREAM = """CREATE STREAM s (p DOUBLE, n BIGINT, t VARCHAR, d DECIMAL(38, 2), r REAL, ts TIMESTAMP, WATERMARK FOR ts);
"""
QUERY = (
    STREAM
    + """CREATE VIEW made AS
SELECT ts, risk(p, n) AS risk, either(n, 2) AS either, either(NULL, n) AS alone, KNOWN(p) AS known,
  noted(t, n) AS noted, noted(t, n) IS NULL AS unknown, shout(t, CAST(ts AS DATE)) AS shout,
  later(ts, INTERVAL '1' DAY, n > 1) AS later, day_after(ts) AS day,
  share(d, CAST(3 AS SMALLINT)) AS share, halved(r) AS half, gap(later(ts, INTERVAL '1' HOUR, TRUE), ts) AS gap,
  salted(CAST(t AS BINARY), n) AS salted
FROM s WHERE known(p) OR n IS NULL;
SELECT * FROM made;
SELECT window_start, either(n, 1) % 2 AS odd, SUM(risk(p, n)) AS total, MAX(shout(t, DATE '2024-01-02')) AS loud
FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, either(n, 1) % 2;
"""
)
START = 1_704_067_200_000_000


def rows() -> list[tuple[Any, ...]]:
    numbers = [0, 1, 2, 3, -4, None, INT64_MAX, 7, 8, -9]
    texts = ["", "a", None, "straße", "é" * 40, "日本", "x\0y", "q", "", "z"]
    money = [0, 1, -1, 10**37, None, 5, 100, -(10**37) + 1, 7, 250]
    return [
        (None if i == 4 else i / 4, n, t, d, None if i == 3 else i / 8, START + 25_000_000 * i)
        for i, (n, t, d) in enumerate(zip(numbers, texts, money, strict=True))
    ]


def test_every_way_to_run_gives_what_python_gives() -> None:
    prepared = Prepared(QUERY, EVERY)
    prepared.give({"s": rows()}, cuts=(3,))
    meant = prepared.reference()
    assert not meant.error, meant.message
    assert [r[1] for r in meant.rows["result"]] == [-1, 0.25, 0.5, 0, None, 1.5 / INT64_MAX, 0.25, 0.5, 0]
    for way in WAYS:
        found = prepared.native(way)
        assert found == meant, f"{way}: {found.difference(meant)}"


@pytest.mark.spark
def test_spark_gives_the_same_rows() -> None:
    given = [dict(zip(("p", "n", "t", "d", "r", "ts"), row, strict=True)) for row in rows()]
    for row in given:
        row["d"] = None if row["d"] is None else Decimal(row["d"]).scaleb(-2)
        row["ts"] = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=row["ts"])
    query = cq.sql(QUERY, functions=EVERY)
    found = cq.diff(query, {"s": given}, against="spark", engine="reference")
    found.raise_if_different()


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@cq.udf
def checked(n: int) -> int:
    if n < 0:
        raise ValueError(f"{n} is too small\nby far")
    return n * n


@cq.udf
def inverse(n: int) -> float:
    return 1 / n


@cq.udf
def nothing(n: int) -> int:
    return None if n else 1  # type: ignore[return-value]


@cq.udf
def other(n: int) -> int:
    return n / 2  # type: ignore[return-value]


@cq.udf
def surrogate(n: int) -> str:
    return chr(0xD800 + n)


FAULTS = [
    (checked, -1, "CQ0708", "checked() raised ValueError: -1 is too small"),
    (checked, 2**32, "CQ0705", "checked() returned a value that BIGINT cannot hold"),
    (inverse, 0, "CQ0706", "inverse() raised ZeroDivisionError: division by zero"),
    (nothing, 5, "CQ0708", "nothing() returned None, and its result is declared BIGINT"),
    (other, 5, "CQ0708", "other() returned float, which is no BIGINT"),
    (surrogate, 5, "CQ0708", "surrogate() returned str, which is no VARCHAR"),
]


@pytest.mark.parametrize(("function", "value", "code", "message"), FAULTS)
def test_a_fault_of_the_function_is_one_of_the_row(function: UserFunction, value: int, code: str, message: str) -> None:
    prepared = Prepared(f"CREATE STREAM s (n BIGINT); SELECT n, {function.name}(n) AS f FROM s;", [function])
    prepared.give({"s": [(1,), (value,), (1,)] if function is not nothing and function is not other else [(value,)]})
    meant = prepared.reference()
    assert meant.error.split()[0] == code and meant.message == message
    found = prepared.native(WAYS[-1])
    assert found == meant and found.message == message


def test_the_first_of_several_faults_is_told_however_many_workers_meet_them() -> None:
    prepared = Prepared("CREATE STREAM s (n BIGINT); SELECT checked(n) AS f, 10 / (n - 9) AS g FROM s;", [checked])
    prepared.give({"s": [(n,) for n in (*range(7), -7, 9, *range(-20, 0))]})
    meant = prepared.reference()
    assert meant.message == "checked() raised ValueError: -7 is too small"
    for way in WAYS:
        found = prepared.native(way)
        assert found == meant and found.message == meant.message, way


def test_what_a_function_said_is_not_told_of_a_fault_that_is_not_its_own() -> None:
    text = """CREATE STREAM s (n BIGINT); CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL DEFAULT 0);
CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC
  INSERT INTO t VALUES (new.n, CASE WHEN new.n < 0 THEN checked(new.n) ELSE 0 END); SELECT new.n AS n; END;
SELECT 1 / n AS f FROM g;"""
    prepared = Prepared(text, [checked])
    prepared.give({"s": [(1,), (-1,), (0,)]})
    meant = prepared.reference()
    for way in WAYS[:1], WAYS[-1:]:
        found = prepared.native(*way)
        assert found == meant and found.message == "division by zero" and len(found.rows["result"]) == 1, way


def test_a_function_that_fails_in_an_event_time_is_told_as_well() -> None:
    @cq.udf
    def started(n: int) -> dt.datetime:
        if n == 2:
            raise ValueError("no start")
        return dt.datetime(2024, 1, 1, 0, 0, n)

    text = """CREATE STREAM s (n BIGINT, at AS started(n), WATERMARK FOR at); SELECT COUNT(*) AS c
FROM TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, window_end"""
    for engine in ("reference", "native"):
        with pytest.raises(cq.CqError, match=r"started\(\) raised ValueError: no start"):
            cq.sql(text, functions=[started], s=[{"n": n} for n in range(4)]).run(engine=engine, threads=1)


def test_a_time_that_python_has_not_is_a_fault() -> None:
    prepared = Prepared("CREATE STREAM s (t TIMESTAMP); SELECT day_after(t) AS d FROM s;", [day_after])
    prepared.give({"s": [(START,), (2**62,)]})
    assert prepared.reference().error.split()[0] == "CQ0708"
    assert prepared.native(WAYS[-1]) == prepared.reference()


def test_check_says_what_is_left_to_python_and_why() -> None:
    query = cq.sql(
        "SELECT risk(1.0, n) AS a, shout('a', DATE '2024-01-01') AS b, either(n, 1) AS c FROM s",
        functions=EVERY,
        s=[{"n": 1}],
    )
    found = {d.message for d in query.check() if d.code == "CQ0903"}
    assert found == {
        "Python is called for each value of shout(): values of VARCHAR are Python objects",
        "Python is called for each value of either(): it sees or returns NULL",
    }


# -- giving functions --------------------------------------------------------------------------------------------------


def test_a_function_stays_one_in_python() -> None:
    assert risk(4.0, 2) == 4.0 and risk.__name__ == "risk" and "each of n" in (risk.__doc__ or "")
    assert "risk(DOUBLE, BIGINT) -> DOUBLE" in repr(risk)


def test_a_query_keeps_its_functions() -> None:
    query = cq.sql("SELECT checked(n) AS c FROM s WHERE n > :least", functions=[checked], s=[{"n": 3}, {"n": 1}])
    found = query.with_variables(least=2).run(engine="reference")
    assert found.to_pylist() == [{"c": 9}]
    text = "CREATE STREAM s (n BIGINT); SELECT checked(n) AS c FROM s"
    with cq.sql(text, functions=[checked]).start(engine="reference") as job:
        job.push("s", [{"n": 4}])
        assert [b.to_pylist() for b in job.results()] == [[{"c": 16}]]


def test_only_queries_that_are_given_a_function_know_it() -> None:
    with pytest.raises(cq.CompileError, match="unknown function") as found:
        cq.sql("SELECT checkd(n) FROM s", functions=[checked], s=[{"n": 1}]).check()
    assert "checked" in str(found.value)
    with pytest.raises(cq.CompileError, match="unknown function"):
        cq.sql("SELECT checked(n) FROM s", s=[{"n": 1}]).check()
    with pytest.raises(cq.CompileError, match=r"CHECKED does not take \(VARCHAR\)"):
        cq.sql("SELECT checked('a') FROM s", functions=[checked], s=[{"n": 1}]).check()


def plain(n: int) -> int:
    return n


def untyped(n):  # type: ignore[no-untyped-def]
    return n


def listed(n: list[int]) -> int:
    return len(n)


def several(*n: int) -> int:
    return sum(n)


async def waiting(n: int) -> int:
    return n


MISUSES: list[tuple[Callable[[], object], str]] = [
    (lambda: cq.udf(untyped), "no annotation"),
    (lambda: cq.udf(listed), "which is not an SQL type"),
    (lambda: cq.udf(several), "has parameters that are not positional"),
    (lambda: cq.udf(waiting), "generator or asynchronous"),
    (lambda: cq.udf("BIGINT", ["BIGINT", "INT"])(plain), "has 1 parameters, and 2 types are given"),
    (lambda: cq.udf("BIGNUM", ["BIGINT"])(plain), "is no type"),
    (lambda: cq.udf("BIGINT", ["BIGINT ARRAY"])(plain), "cannot take or return BIGINT ARRAY"),
    (lambda: cq.udf(name="a b")(plain), "no name of a function"),
    (lambda: cq.udf(dt.datetime), "not a plain Python function"),
    (lambda: cq.sql("SELECT 1", functions=[plain]).check(), "takes what @cq.udf and @cq.udaf made"),  # type: ignore[list-item]
    (lambda: cq.sql("SELECT 1", functions=[cq.udf(name="Abs")(plain)]).check(), "there is a function abs already"),
    (lambda: cq.sql("SELECT 1", functions=[cq.udf(name="mean")(plain)]).check(), "there is a function mean already"),
    (lambda: cq.sql("SELECT 1", functions=[cq.udf(name="rank")(plain)]).check(), "there is a function rank already"),
    (lambda: cq.sql("SELECT 1", functions=[checked, checked]).check(), "there is a function checked already"),
]


@pytest.mark.parametrize(("misuse", "message"), MISUSES, ids=[m for _, m in MISUSES])
def test_misuse_is_told(misuse: Callable[[], object], message: str) -> None:
    with pytest.raises(cq.UsageError, match=message):
        misuse()


def test_state_knows_a_function_by_its_source_and_types() -> None:
    def one(n: int) -> int:
        return n

    def two(n: int) -> int:
        return n + 1

    keys = {cq.udf(name="f")(f).entry.registry_key for f in (one, two)}
    keys.add(cq.udf("INT", ["INT"], name="f")(one).entry.registry_key)
    assert len(keys) == 3
    assert cq.udf(name="f")(one).entry.registry_key in keys


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_ctrl_c_in_a_function_ends_the_run_and_rejects_no_event(engine: str) -> None:
    seen: list[int] = []

    @cq.udf
    def stopped(v: int) -> str:
        seen.append(v)
        if v == 3:
            raise KeyboardInterrupt
        return "x"

    text = """CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT);
    CREATE STREAM s (k BIGINT, v BIGINT) WITH (connector = 'memory');
    CREATE TRIGGER g AFTER INSERT ON s FOR EACH ROW
    BEGIN ATOMIC INSERT INTO t VALUES (new.k, LENGTH(stopped(new.v))); END;
    SELECT k, reason FROM g_rejected;"""
    rows = [{"k": n, "v": n} for n in range(9)]
    with pytest.raises(KeyboardInterrupt):
        cq.sql(text, functions=[stopped], s=rows).run(engine=engine, threads=0)
    assert seen == [0, 1, 2, 3]
    with pytest.raises(KeyboardInterrupt):
        cq.sql("SELECT stopped(v) AS x FROM s", functions=[stopped], s=rows).run(engine=engine, threads=0)
