"""Aggregates of the user: a fold over the rows of a group in order, on every engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Optional

import pytest
from cases import WAYS, Prepared

import cq


@cq.udaf
class ema:
    """Exponential moving average: the order of the rows matters."""

    zero = (0.0, False)

    @staticmethod
    def add(state: tuple[float, bool], x: float, weight: int) -> tuple[float, bool]:
        value, begun = state
        if not begun:
            return x, True
        share = 1 / (1 + abs(weight))
        return value + (x - value) * share, True

    @staticmethod
    def result(state: tuple[float, bool]) -> float:
        return state[0]


@cq.udaf("VARCHAR", ["VARCHAR"], name="longest")
class LongestText:
    """Python is asked for every row, and for the result."""

    zero = (0, 1, 2**63 - 1)

    @staticmethod
    def add(state: Any, text: str) -> Any:
        return max(state[0], len(text)), state[1] + 1, state[2]

    @staticmethod
    def result(state: Any) -> str:
        return f"{state[0]} of {state[1] - 1}"


@cq.udaf
class spread:
    zero = (0, 0.0, 0.0)

    @staticmethod
    def add(state: Any, x: float) -> Any:
        if state[0] == 0:
            return 1, x, x
        return state[0] + 1, min(state[1], x), max(state[2], x)

    @staticmethod
    def result(state: Any) -> Optional[float]:  # noqa: UP045
        return None if state[0] < 2 else state[2] - state[1]


@cq.udaf
class times:
    zero = (1,)

    @staticmethod
    def add(state: Any, n: int) -> Any:
        if n == 13:
            raise ValueError("unlucky")
        return (state[0] * n,)

    @staticmethod
    def result(state: Any) -> int:
        return 1000 // (state[0] - 5)


EVERY = (ema, LongestText, spread)
STREAM = """CREATE STREAM s (k BIGINT, x DOUBLE, n BIGINT, t VARCHAR, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
"""
START = 1_704_067_200_000_000
GROUPED = (
    STREAM
    + """
SELECT k, ema(x, n) AS e, longest(t) AS l, SPREAD(x) FILTER (WHERE n > 2) AS s, COUNT(*) AS c FROM s GROUP BY k;
SELECT ema(x, n) AS e, longest(t) AS l, spread(x) AS s FROM s WHERE x > 1000;
"""
)
WINDOWED = (
    STREAM
    + """SELECT window_start, k, ema(x, n) AS e, longest(t) AS l
FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '20' SECOND) GROUP BY window_start, window_end, k;
SELECT window_start, k, ema(x, n) AS e, spread(x) AS s
FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND) GROUP BY window_start, window_end, k;
SELECT k, ts, ema(x, n) OVER (PARTITION BY k ORDER BY ts) AS running FROM s;
"""
)


def rows() -> list[tuple[Any, ...]]:
    seconds = [0, 3, 1, 9, 8, 20, 16, 31, 30, 44, 41, 60]
    return [
        (i % 3, None if i == 5 else i / 4, i * 7 % 5, None if i % 4 == 0 else "é" * i, START + 1_000_000 * t)
        for i, t in enumerate(seconds)
    ]


@pytest.mark.parametrize("text", [GROUPED, WINDOWED], ids=["whole", "windows"])
def test_every_way_to_run_gives_what_python_gives(text: str) -> None:
    prepared = Prepared(text, EVERY)
    prepared.give({"s": rows()}, cuts=(3,))
    meant = prepared.reference()
    assert not meant.error, meant.message
    for way in WAYS:
        found = prepared.native(way)
        assert found == meant, f"{way}: {found.difference(meant)}"


def test_rows_are_added_in_order() -> None:
    prepared = Prepared(GROUPED, EVERY)
    prepared.give({"s": rows()})
    groups, nothing = prepared.reference().rows.values()
    for k, made, texts, _, count in groups:
        state, longest = ema.zero, 0
        for _, x, n, text, _ in (row for row in rows() if row[0] == k):
            state = state if x is None else ema.add.function(state, x, n)
            longest = max(longest, len(text or ""))
        assert (made, count) == (state[0], 4) and texts.startswith(f"{longest} of ")
    assert nothing == ((None, None, None),)


@pytest.mark.spark
def test_spark_gives_the_same_rows() -> None:
    given = [dict(zip(("k", "x", "n", "t", "ts"), row, strict=True)) for row in rows()]
    for row in given:
        row["ts"] = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=row["ts"])
    for text in (GROUPED, WINDOWED):
        query = cq.sql(text, functions=EVERY)
        cq.diff(query, {"s": given}, against="spark", engine="reference").raise_if_different()


FAULTS = [
    ([2, 13], "CQ0708", "times.add() raised ValueError: unlucky"),
    ([5], "CQ0706", "times.result() raised ZeroDivisionError: integer division or modulo by zero"),
    ([2**40, 2**40], "CQ0705", "times.add() returned a value that BIGINT cannot hold"),
]


@pytest.mark.parametrize(("values", "code", "message"), FAULTS)
def test_a_fault_has_its_place(values: list[int], code: str, message: str) -> None:
    prepared = Prepared("CREATE STREAM s (k VARCHAR, n BIGINT); SELECT k, times(n) AS p FROM s GROUP BY k;", [times])
    prepared.give({"s": [("a", n) for n in values]})
    meant = prepared.reference()
    assert meant.error.split()[0] == code and meant.message == message
    found = prepared.native(WAYS[-1])
    assert found == meant and found.message == message


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("ema(DISTINCT x, n) FROM s", "does not take DISTINCT"),
        ("ema(x) FROM s", r"EMA does not take \(DOUBLE\)"),
    ],
)
def test_what_cannot_be_computed_is_refused(select: str, why: str) -> None:
    with pytest.raises(cq.CompileError, match=why):
        cq.sql(f"{STREAM}SELECT {select}", functions=EVERY).check()


def test_check_says_what_is_left_to_python() -> None:
    query = cq.sql("SELECT ema(x, n) AS e, longest(t) AS l FROM s", functions=EVERY, s=[{"x": 1.0, "n": 1, "t": "a"}])
    found = {d.message.split(":")[0] for d in query.check() if d.code == "CQ0903"}
    assert found == {f"Python is called for each value of longest.{part}()" for part in ("add", "result")}


class NoResult:
    zero = (0,)

    @staticmethod
    def add(state: Any, x: int) -> Any:
        return state


class TextState(NoResult):
    zero: Any = ("a",)

    @staticmethod
    def result(state: Any) -> int:
        return 1


class NoValues(TextState):
    zero = (0,)

    @staticmethod
    def add(state: Any) -> Any:  # type: ignore[override]
        return state


class SeesNull(TextState):
    zero = (0,)

    @staticmethod
    def add(state: Any, x: Optional[int]) -> Any:  # noqa: UP045
        return state


MISUSES: list[tuple[Callable[[], object], str]] = [
    (lambda: cq.udaf(NoResult), "has no function result"),
    (lambda: cq.udaf(TextState), "no tuple of int, float and bool"),
    (lambda: cq.udaf(NoValues), r"needs add\(state, value, …\)"),
    (lambda: cq.udaf(SeesNull), "takes Optional values"),
    (lambda: cq.udaf(3), "is not a class"),
    (lambda: cq.sql("SELECT 1", functions=[ema, ema]).check(), "there is a function ema already"),
]


@pytest.mark.parametrize(("misuse", "message"), MISUSES, ids=[m for _, m in MISUSES])
def test_misuse_is_told(misuse: Callable[[], object], message: str) -> None:
    with pytest.raises(cq.UsageError, match=message):
        misuse()


@cq.udaf
class doubled:
    zero = (0.0, 0)

    @staticmethod
    def add(s: tuple[float, int], x: float) -> tuple[float, int]:
        return s[0] + x, s[1] + 1

    @staticmethod
    def result(s: Any) -> float:
        s = s[0] + s[0]
        return s + 0.0  # type: ignore[no-any-return]


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_state_that_is_assigned_again_is_what_it_was_assigned(engine: str) -> None:
    query = cq.sql("SELECT doubled(x) AS d FROM t", functions=[doubled], t={"x": [1.5, -3.5]})
    assert query.run(engine=engine, threads=0)["result"].to_pylist() == [{"d": -4.0}]
