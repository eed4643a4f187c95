"""The value of one row of a group: FIRST, LAST and ANY_VALUE by position, ARG_MIN and ARG_MAX by another value.

The state is (arrival, value, …) of that row, or None. Arrivals order rows by position wherever they were added, so
merging is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.lang.aggregates.library import always
from cq.lang.aggregates.registry import AggregateFunction, Keeps, OfArray, register
from cq.lang.functions.comparison import equals, precedes
from cq.lang.functions.registry import Constants, Signature
from cq.lang.types import BIGINT, DataType, Kind

Picked = tuple[Any, ...] | None
Better = Callable[[tuple[Any, ...], tuple[Any, ...]], bool]
"""Whether the value of a row replaces the value of a row added earlier."""


def _one(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    if len(types) != 1:
        return None
    t = _typed(types[0])
    return Signature((t,), t)


def _two(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    if len(types) != 2 or types[1].kind is Kind.ARRAY:
        return None
    value, key = map(_typed, types)
    return Signature((value, key), value)


def _typed(type_: DataType) -> DataType:
    return BIGINT if type_.kind is Kind.NULL else type_


def _earlier(row: tuple[Any, ...], held: tuple[Any, ...]) -> bool:
    return bool(row[0] < held[0])


def _not_earlier(row: tuple[Any, ...], held: tuple[Any, ...]) -> bool:
    return bool(row[0] >= held[0])


def _less(row: tuple[Any, ...], held: tuple[Any, ...]) -> bool:
    return precedes(row[2], held[2]) or (equals(row[2], held[2]) and _earlier(row, held))


def _greater(row: tuple[Any, ...], held: tuple[Any, ...]) -> bool:
    return precedes(held[2], row[2]) or (equals(row[2], held[2]) and _earlier(row, held))


# the position, such that later rows have lesser ones: of arrays that differ only in length the shorter comes first
_BACKWARDS = "struct(~{2}._w, ~{2}._s, concat(transform({2}._o, o -> ~o), array(9223372036854775807L)))"
_PRESENT = "case when {{0}} is not null then {} end"

_OF_ARRAY = {"first": OfArray.FIRST, "last": OfArray.LAST}

for _name, _rule, _better, _keeps_null, _aliases, _doc, _spark, _examples in (
    ("first", _one, _earlier, True, ("first_value",),
     "The value of the first row by position, even if NULL; FIRST(x IGNORE NULLS) skips NULLs.",
     "min_by({0}.a, " + _PRESENT.format("{2}") + "){1}",
     ("first over 2, null, 1 = 2", "first over null, 1 = null", "first over 'b', 'a' = 'b'")),
    ("last", _one, _not_earlier, True, ("last_value",),
     "The value of the last row by position, even if NULL; LAST(x IGNORE NULLS) skips NULLs.",
     "max_by({0}.a, " + _PRESENT.format("{2}") + "){1}",
     ("last over 2, null, 1 = 1", "last over 1, null = null", "last over 'b', 'a' = 'a'")),
    ("any_value", _one, _earlier, False, (),
     "The first non-null value by position; NULL if there is none.",
     "min_by({0}.a, " + _PRESENT.format("{2}") + "){1}",
     ("any_value over null, 2, 1 = 2", "any_value over null = null", "any_value over 'b', 'a' = 'b'")),
    ("arg_min", _two, _less, False, ("min_by", "argmin"),
     "The x of the row with the least y; ties give the first by position. Rows where x or y is NULL are "
     "skipped.",
     "min_by({0}.a, " + _PRESENT.format("struct({0}.b, {2})") + "){1}",
     ("arg_min over ('a', 2), ('b', 1), ('c', 1) = 'b'", "arg_min over (null, 1), (5, 2) = 5",
      "arg_min over (1, null) = null", "arg_min over (1, CAST('NaN' AS DOUBLE)), (2, 1e0) = 2")),
    ("arg_max", _two, _greater, False, ("max_by", "argmax"),
     "The x of the row with the greatest y; ties give the first by position. Rows where x or y is NULL are "
     "skipped.",
     "max_by({0}.a, " + _PRESENT.format("struct({0}.b, " + _BACKWARDS + ")") + "){1}",
     ("arg_max over ('a', 1), ('b', 2), ('c', 2) = 'b'", "arg_max over (null, 3), (5, 2) = 5",
      "arg_max over (1, null) = null", "arg_max over (1, CAST('NaN' AS DOUBLE)), (2, 1e0) = 1")),
):  # fmt: skip

    def _add(_: Signature, state: Picked, *row: Any, better: Better = _better) -> Picked:
        return row if state is None or better(row, state) else state

    def _merge(_: Signature, a: Picked, b: Picked, better: Better = _better) -> Picked:
        if a is None or b is None:
            return a if b is None else b
        return b if better(b, a) else a

    register(
        AggregateFunction(
            name=_name,
            shape=f"{_name}({'x' if _rule is _one else 'x, y'})",
            rule=_rule,
            zero=None,
            add=_add,
            merge=_merge,
            empty=lambda state: state is None,
            result=lambda _, state: state[1],
            exact_merge=always,
            idempotent=_name != "last",
            keeps_null=_keeps_null,
            by_position=True,
            of_array=_OF_ARRAY.get(_name),
            doc=_doc,
            spark=_spark,
            native=_name,
            keeps=Keeps.WORDS,
            examples=(*_examples, f"{_name} over nothing = null"),
        ),
        *_aliases,
    )
LOADED = True
