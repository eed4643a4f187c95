"""Aggregates: the examples of the registry, and the laws every fold keeps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest
from examples import Example, aggregate_examples, arguments_of, bound, comparable, options_of

from cq.lang import aggregates
from cq.lang.aggregates import AggregateFunction
from cq.lang.aggregates.registry import Grows
from cq.lang.expressions import Column
from cq.lang.functions import Failure, Refusal, Signature
from cq.lang.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    array,
    decimal,
)
from cq.planner.plan.calls import AggregateCall
from cq.records import fields
from cq.reference.evaluate import evaluate
from cq.reference.fold import fold

ENTRIES = sorted(aggregates.all_aggregates().values(), key=lambda e: e.name)
TYPES = [BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, decimal(12, 2), VARCHAR, DATE, TIMESTAMP, INTERVAL]
ARGUMENTS = [*((t,) for t in TYPES), (DOUBLE, DOUBLE), (VARCHAR, DOUBLE), (BIGINT, VARCHAR)]
CASES = [(e, s) for e in ENTRIES for types in ARGUMENTS if (s := e.signature(types)) is not None]


def name_of(case: object) -> str:
    match case:
        case AggregateFunction(name=name):
            return name
        case Signature(params=params):
            return ",".join(map(str, params))
        case _:
            return str(case)


def test_an_entry_that_does_not_say_what_it_keeps_is_refused_when_it_is_made() -> None:
    """Whether panes merge it, frames slide over it and `explain` calls its state bounded hangs on that alone."""
    said = {f.name: getattr(ENTRIES[0], f.name) for f in fields(AggregateFunction) if f.name != "keeps"}
    with pytest.raises(TypeError, match=r"missing .* 'keeps'"):
        AggregateFunction(**said)


@pytest.mark.parametrize("example", aggregate_examples(), ids=str)
def test_the_example_holds_on_the_reference(example: Example) -> None:
    entry = aggregates.lookup(example.owner)
    assert entry is not None
    found, values = arguments_of(example)
    state = folded(entry, found, numbered(values))
    options = options_of(example)
    if example.error:
        with pytest.raises(Failure) as caught:
            entry.value(found, state, options)
        assert caught.value.code == example.error and example.error in entry.fails
        return
    (expected,) = bound(example.expected)
    made = entry.value(found, state, options)
    assert comparable(made, found.returns) == comparable(evaluate(expected), expected.type)
    taken = [row for row in values if None not in row and not entry.keeps_null]
    assert made is not None or not taken or entry.may_be_null, "NULL over rows: the entry does not say that it may be"


def some(rng: random.Random, type_: DataType) -> Any:
    match type_.kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.REAL | Kind.DOUBLE:
            return rng.choice([0.0, -0.0, 1.5, math.nan, 0.1, -1e300, math.inf, rng.uniform(-9, 9)])
        case Kind.VARCHAR:
            return rng.choice(["", "a", "b", "é", "\uffff", "\U0001f600"])
        case Kind.DECIMAL:
            return rng.randint(-(10**12) + 1, 10**12 - 1)
        case _:
            return rng.choice([0, 1, -1, rng.randint(-30000, 30000)])


Rows = list[tuple[int, tuple[Any, ...]]]
"""Rows with their arrivals."""


def folded(entry: AggregateFunction, signature: Signature, rows: Rows, state: Any = None) -> Any:
    state = entry.zero if state is None else state
    for arrival, values in rows:
        if entry.keeps_null or None not in values:
            state = entry.add(signature, state, *([arrival] if entry.by_position else []), *values)
    return state


def numbered(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return list(enumerate(rows))


def some_rows(rng: random.Random, signature: Signature, count: int) -> Rows:
    return numbered(tuple(some(rng, t) for t in signature.params) for _ in range(count))


def same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)  # tells 0.0 from -0.0, and NaN is NaN


@pytest.mark.parametrize(("entry", "signature"), CASES, ids=name_of)
def test_partial_results_merge_to_the_whole(entry: AggregateFunction, signature: Signature) -> None:
    rng = random.Random(f"{entry.name}{signature}")
    options = [0.25 for _ in entry.options]

    def result(state: Any) -> Any:
        return entry.value(signature, state, options)

    for _ in range(60):
        values = some_rows(rng, signature, rng.randint(0, 9))
        cut = rng.randint(0, len(values))
        whole = result(folded(entry, signature, values))
        left, right = folded(entry, signature, values[:cut]), folded(entry, signature, values[cut:])
        if entry.exact_merge(signature):
            assert same(result(entry.merge(signature, left, right)), whole)
            assert same(result(entry.merge(signature, right, left)), whole)
            rng.shuffle(values)
            assert same(result(folded(entry, signature, values)), whole)
        for nothing in (entry.merge(signature, entry.zero, left), entry.merge(signature, left, entry.zero)):
            assert same(result(nothing), result(left))


@pytest.mark.parametrize(("entry", "signature"), [(e, s) for e, s in CASES if e.idempotent], ids=name_of)
def test_adding_again_changes_nothing_where_distinct_does_not(entry: AggregateFunction, signature: Signature) -> None:
    rng = random.Random(3)
    values = some_rows(rng, signature, 20)
    twice = folded(entry, signature, [*values, *values])
    assert same(entry.value(signature, twice), entry.value(signature, folded(entry, signature, values)))


GROWN: dict[Grows, Callable[[Any, Any], Any]] = {
    Grows.COUNT: lambda result, _: result + 1,
    Grows.SUM: lambda result, value: result + value,
    Grows.LEAST: min,
    Grows.GREATEST: max,
}


@pytest.mark.parametrize(
    ("entry", "signature"),
    [(e, s) for e, s in CASES if e.grows and not any(t.is_float for t in s.params)],
    ids=name_of,
)
def test_a_result_grows_by_each_value_as_the_entry_says(entry: AggregateFunction, signature: Signature) -> None:
    assert entry.grows is not None
    rng = random.Random(4)
    values = some_rows(rng, signature, 20)
    results = [entry.value(signature, folded(entry, signature, values[: n + 1])) for n in range(20)]
    for before, after, (_, (value,)) in zip(results, results[1:], values[1:], strict=False):
        assert after == GROWN[entry.grows](before, value)


@pytest.mark.parametrize(("entry", "signature"), CASES, ids=name_of)
def test_nothing_gives_null_or_zero(entry: AggregateFunction, signature: Signature) -> None:
    assert entry.empty(entry.zero)
    assert entry.value(signature, entry.zero, [0.5 for _ in entry.options]) == (0 if entry.never_null else None)


@pytest.mark.parametrize(
    ("name", "type_", "returns"),
    [
        ("sum", SMALLINT, BIGINT),
        ("sum", REAL, DOUBLE),
        ("sum", decimal(7, 2), decimal(17, 2)),
        ("sum", decimal(12, 2), decimal(22, 2)),
        ("sum", decimal(30, 2), decimal(38, 2)),
        ("sum", INTERVAL, INTERVAL),
        ("avg", INTEGER, DOUBLE),
        ("avg", decimal(12, 2), decimal(16, 6)),
        ("avg", decimal(38, 36), decimal(38, 38)),
        ("min", VARCHAR, VARCHAR),
        ("max", TIMESTAMP, TIMESTAMP),
        ("count", VARCHAR, BIGINT),
    ],
)
def test_types_of_results(name: str, type_: DataType, returns: DataType) -> None:
    found = aggregates.resolve(name, [type_])
    assert not isinstance(found, Refusal) and found[1].returns == returns


@pytest.mark.parametrize(
    ("name", "types", "code"),
    [
        ("sum", [VARCHAR], "CQ0302"),
        ("sum", [], "CQ0302"),
        ("min", [array(VARCHAR)], "CQ0302"),
        ("count", [BIGINT, BIGINT], "CQ0302"),
        ("mode", [array(VARCHAR)], "CQ0302"),
        ("histogram", [DOUBLE], "CQ0302"),
        ("histograms", [BIGINT], "CQ0205"),
    ],
)
def test_what_is_not_taken_is_refused_with_a_code(name: str, types: list[DataType], code: str) -> None:
    refusal = aggregates.resolve(name, types)
    assert isinstance(refusal, Refusal) and refusal.code == code


def test_the_mean_of_integers_is_rounded_once() -> None:
    rng = random.Random(4)
    entry, signature = aggregates.resolve("avg", [BIGINT])  # type: ignore[misc]
    for _ in range(500):
        values = [rng.randint(-(2**63), 2**63 - 1) for _ in range(rng.randint(1, 5))]
        got = entry.value(signature, folded(entry, signature, numbered((v,) for v in values)))
        exact = Fraction(sum(values), len(values))
        assert got == float(exact)


@pytest.mark.parametrize("count", [30, 1000, 9000, 40000])
def test_an_approximate_count_is_near(count: int) -> None:
    entry, signature = aggregates.resolve("approx_count_distinct", [BIGINT])  # type: ignore[misc]
    found = entry.value(signature, folded(entry, signature, numbered((n * 1000,) for n in range(count))))
    assert abs(found - count) <= 0.05 * count


def test_a_sum_may_leave_the_range_on_the_way() -> None:
    entry, signature = aggregates.resolve("sum", [BIGINT])  # type: ignore[misc]
    top = 2**63 - 1
    assert entry.value(signature, folded(entry, signature, numbered([(top,), (top,), (-top,)]))) == top
    with pytest.raises(Failure, match="overflow"):
        entry.value(signature, folded(entry, signature, numbered([(top,), (1,)])))


def call(name: str, type_: DataType, *, distinct: bool) -> AggregateCall:
    found = aggregates.resolve(name, [type_])
    assert not isinstance(found, Refusal)
    return AggregateCall(found[0], (Column(type_, True, 0),), found[1].returns, True, distinct)


def test_distinct_takes_each_value_once_and_minus_zero_as_zero() -> None:
    counted = fold(call("count", DOUBLE, distinct=True))
    state = counted.zero
    for value in (1.0, 0.0, -0.0, math.nan, float("nan"), None, 1.0):
        state = counted.add(state, (value,))
    assert counted.value(state) == 3


def test_distinct_states_of_panes_are_not_changed_by_merging() -> None:
    # panes  [--1 2--)[--2 3--)[--1--)   windows of two panes share the middle one
    counted = fold(call("count", BIGINT, distinct=True))
    panes = []
    for values in ((1, 2), (2, 3), (1,)):
        state = counted.zero
        for v in values:
            state = counted.add(state, (v,))
        panes.append(state)
    first, second = counted.merge(panes[0], panes[1]), counted.merge(panes[1], panes[2])
    grown = counted.add(panes[1], (9,))
    assert [counted.value(s) for s in (first, second, grown, *panes)] == [3, 3, 3, 2, 2, 1]


def test_distinct_sums_add_in_order_of_first_arrival() -> None:
    summed = fold(call("sum", DOUBLE, distinct=True))
    state = summed.zero
    for value in (0.1, 0.2, 0.1, 0.3):
        state = summed.add(state, (value,))
    assert summed.value(state) == (0.1 + 0.2) + 0.3
