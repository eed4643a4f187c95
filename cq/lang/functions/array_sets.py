"""Functions of arrays as sets, and arrays of numbers in a row.

Elements are compared as by `=`. Functions that keep elements treat NULLs as equal, like ARRAY_DISTINCT; functions that
look for or count elements ignore NULLs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.lang.functions.array_building import Array, first_indices, spark_distinct, two_arrays
from cq.lang.functions.arrays import one_array
from cq.lang.functions.registry import Constants, Failure, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import with_optional
from cq.lang.types import BIGINT, BOOLEAN, DataType, array

MOST_ELEMENTS = 100_000  # of a sequence, so that a wrong number does not exhaust the memory
TOO_MANY = f"a sequence of more than {MOST_ELEMENTS} numbers"
NO_STEP = "a sequence by steps of 0"


def _keys(x: Array) -> set[Any]:
    """The elements as keys, equal where they are equal."""
    return {_key(e) for e in x}


def _key(element: Any) -> Any:
    return "NaN" if isinstance(element, float) and element != element else element  # noqa: PLR0124 - only NaN does


def _compared(returns: Callable[[DataType], DataType] = lambda both: both) -> SignatureRule:
    """Two arrays of a common type, and the result by that."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | None:
        found = two_arrays(types, constants)
        return found and Signature(found.params, returns(found.returns))

    return rule


def _kept(negated: str) -> Callable[[Signature, tuple[str, ...]], str]:
    """Spark's own functions treat 0.0 and -0.0 as different."""

    def text(signature: Signature, texts: tuple[str, ...]) -> str:
        items, other = texts
        has = f"if(v is null, exists({other}, o -> o is null), coalesce(array_contains({other}, v), false))"
        return f"if({other} is null, null, filter({spark_distinct(signature, (items,))}, v -> {negated}{has}))"

    return text


@scalar(
    "array_intersect",
    "array_intersect(a, b)",
    _compared(),
    spark=_kept(""),
    native="array_intersect",
    aliases=("list_intersect",),
    examples=[
        "array_intersect(ARRAY[3, 1, 2, 1], ARRAY[1, 3]) = ARRAY[3, 1]",
        "array_intersect(ARRAY['a', null], ARRAY[null, 'b']) = ARRAY[CAST(null AS VARCHAR)]",
        "array_intersect(ARRAY[0e0], ARRAY[-0e0]) = ARRAY[0e0]",
        "array_intersect(ARRAY[1], ARRAY[]) = ARRAY[]",
        "array_intersect(ARRAY[1], null) = null",
    ],
)
def array_intersect(x: Array, y: Array) -> Array:
    """Distinct elements of `a` that are also in `b`."""
    other = _keys(y)
    return tuple(x[n] for n in first_indices(x) if _key(x[n]) in other)


@scalar(
    "array_except",
    "array_except(a, b)",
    _compared(),
    spark=_kept("not "),
    native="array_except",
    examples=[
        "array_except(ARRAY[3, 1, 2, 1], ARRAY[3]) = ARRAY[1, 2]",
        "array_except(ARRAY['a', null, null], ARRAY['a']) = ARRAY[CAST(null AS VARCHAR)]",
        "array_except(ARRAY[1], ARRAY[1, 2]) = ARRAY[]",
        "array_except(ARRAY[1, 1], ARRAY[]) = ARRAY[1]",
        "array_except(null, ARRAY[1]) = null",
    ],
)
def array_except(x: Array, y: Array) -> Array:
    """Distinct elements of `a` that are not in `b`."""
    other = _keys(y)
    return tuple(x[n] for n in first_indices(x) if _key(x[n]) not in other)


def _spark_any(_: Signature, texts: tuple[str, ...]) -> str:
    items, other = texts
    has = f"exists({items}, v -> v is not null and coalesce(array_contains({other}, v), false))"
    return f"if({other} is null, null, {has})"


@scalar(
    "array_has_any",
    "array_has_any(a, b)",
    _compared(lambda _: BOOLEAN),
    spark=_spark_any,
    native="array_has_any",
    aliases=("list_has_any", "arrays_overlap"),
    examples=[
        "array_has_any(ARRAY[1, 2], ARRAY[2, 3]) = true",
        "array_has_any(ARRAY['a', null], ARRAY['b', null]) = false",
        "array_has_any(ARRAY[1], ARRAY[]) = false",
        "array_has_any(ARRAY[1, 2], ARRAY[2.0]) = true",
        "array_has_any(null, ARRAY[1]) = null",
    ],
)
def array_has_any(x: Array, y: Array) -> bool:
    """Whether the arrays share an element that is not NULL."""
    return not (_keys(x) - {None}).isdisjoint(_keys(y))


def _spark_all(_: Signature, texts: tuple[str, ...]) -> str:
    items, other = texts
    has = f"forall({other}, v -> v is null or coalesce(array_contains({items}, v), false))"
    return f"if({items} is null, null, {has})"


@scalar(
    "array_has_all",
    "array_has_all(a, b)",
    _compared(lambda _: BOOLEAN),
    spark=_spark_all,
    native="array_has_all",
    aliases=("list_has_all",),
    examples=[
        "array_has_all(ARRAY[1, 2, 3], ARRAY[3, 1]) = true",
        "array_has_all(ARRAY['a'], ARRAY['a', 'b']) = false",
        "array_has_all(ARRAY[1], ARRAY[1, null]) = true",
        "array_has_all(ARRAY[1], ARRAY[]) = true",
        "array_has_all(ARRAY[1], null) = null",
    ],
)
def array_has_all(x: Array, y: Array) -> bool:
    """Whether `a` contains every element of `b` that is not NULL."""
    return _keys(y) - {None} <= _keys(x)


@scalar(
    "array_compact",
    "array_compact(array)",
    one_array(array),
    spark="filter({0}, v -> v is not null)",
    native="array_compact",
    no_null_inside=True,
    examples=[
        "array_compact(ARRAY[1, null, 2, null]) = ARRAY[1, 2]",
        "array_compact(ARRAY['a']) = ARRAY['a']",
        "array_compact(ARRAY[null]) = ARRAY[]",
        "array_compact(null) = null",
    ],
)
def array_compact(x: Array) -> Array:
    """The elements that are not NULL."""
    return tuple(e for e in x if e is not None)


@scalar(
    "list_count",
    "list_count(array)",
    one_array(lambda _: BIGINT),
    spark="cast(size(filter({0}, v -> v is not null)) as BIGINT)",
    native="list_count",
    examples=[
        "list_count(ARRAY[1, null, 2]) = 2",
        "list_count(ARRAY[]) = 0",
        "list_count(ARRAY['a', null]) = 1",
        "list_count(null) = null",
    ],
)
def list_count(x: Array) -> int:
    """The number of elements that are not NULL; CARDINALITY counts NULLs too."""
    return sum(e is not None for e in x)


def _spark_sequence(_: Signature, texts: tuple[str, ...]) -> str:
    first, last, *steps = texts
    step = steps[0] if steps else f"if({first} <= {last}, 1L, -1L)"
    none = "cast(array() as ARRAY<BIGINT>)"
    between = f"abs(cast({last} as DECIMAL(38,0)) - {first})"
    many = f"{between} >= {MOST_ELEMENTS} * abs(cast({step} as DECIMAL(30,0)))"
    ahead = f"if({step} > 0, {first} <= {last}, {first} >= {last})"
    made = f"if({many}, raise_error('CQ0708: {TOO_MANY}'), sequence({first}, {last}, {step}))"
    null = " or ".join(f"{t} is null" for t in texts)
    return f"if({null}, null, if({step} = 0, raise_error('CQ0708: {NO_STEP}'), if({ahead}, {made}, {none})))"


@scalar(
    "sequence",
    "sequence(first, last [, step])",
    with_optional((BIGINT, BIGINT), (BIGINT,), array(BIGINT)),
    spark=_spark_sequence,
    native="sequence",
    no_null_inside=True,
    fails=("CQ0708",),
    examples=[
        "sequence(1, 4) = ARRAY[1, 2, 3, 4]",
        "sequence(3, 1) = ARRAY[3, 2, 1]",
        "sequence(0, 10, 4) = ARRAY[0, 4, 8]",
        "sequence(5, 1, 2) = CAST(ARRAY[] AS BIGINT[])",
        "sequence(9223372036854775806, 9223372036854775807) = ARRAY[9223372036854775806, 9223372036854775807]",
        "sequence(1, 5, 0) = error CQ0708",
        "sequence(1, 100001) = error CQ0708",
        "sequence(1, null) = null",
    ],
)
def sequence(first: int, last: int, step: int | None = None) -> Array:
    """The numbers from `first` to `last`. The default step is 1, or -1 to count down; a step that leads away gives
    none."""
    if step is None:
        step = 1 if first <= last else -1
    if step == 0:
        raise Failure("CQ0708", NO_STEP)
    if (last - first) * step < 0:
        return ()
    if abs(last - first) >= MOST_ELEMENTS * abs(step):
        raise Failure("CQ0708", TOO_MANY)
    return tuple(range(first, last + (1 if step > 0 else -1), step))
