"""Functions that make arrays from arrays, or one value from all elements.

Orders put NULLs last by default, and NaN after all numbers.

Orders put NULLs last unless told otherwise, and NaN behind all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cq.lang.functions.arrays import array_and_element, element_of, one_array
from cq.lang.functions.comparison import equals
from cq.lang.functions.registry import OVERLOADS, Constants, Failure, Refusal, Signature, scalar
from cq.lang.functions.slices import between, spark_slice
from cq.lang.functions.spark_text import cast_to
from cq.lang.types import (
    BIGINT,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    VARCHAR,
    WORD_DIGITS,
    DataType,
    Kind,
    array,
    common_type,
    decimal,
)

DESCENDING, NULLS_FIRST = 1, 2  # the bits that say how ARRAY_ORDER orders
MORE_DIGITS = 10  # more for a sum than for its elements, as in SUM
Array = tuple[Any, ...]


def _same(element: DataType) -> DataType:
    return array(element)


def two_arrays(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    """Two arrays of a common type; one of them may be a bare NULL."""
    if len(types) != 2 or Kind.ARRAY not in {t.kind for t in types}:
        return None
    common = common_type(*types)
    if common is None or common.kind is not Kind.ARRAY:
        return None
    return Signature((common, common), common)


@scalar(
    "array_concat",
    "array_concat(a, b), a || b",
    two_arrays,
    spark="concat({0}, {1})",
    native="array_concat",
    aliases=("array_cat", "list_concat", "list_cat"),
    examples=[
        "(ARRAY[1, 2] || ARRAY[null, 3]) = ARRAY[1, 2, null, 3]",
        "array_concat(ARRAY['a'], ARRAY[]) = ARRAY['a']",
        "(ARRAY[1] || ARRAY[2.5]) = ARRAY[1.0, 2.5]",
        "(ARRAY[1] || null) = null",
    ],
)
def array_concat(x: Array, y: Array) -> Array:
    """The elements of `a`, then those of `b`."""
    return x + y


OVERLOADS["concat"] = ("array_concat",)


@scalar(
    "array_slice",
    "array_slice(array, first, last)",
    one_array(_same, BIGINT, BIGINT),
    spark=lambda _, args: spark_slice("size", "slice", args),
    native="array_slice",
    aliases=("list_slice",),
    examples=[
        "array_slice(ARRAY[1, 2, 3, 4], 2, 3) = ARRAY[2, 3]",
        "array_slice(ARRAY['a', 'b', 'c'], -2, -1) = ARRAY['b', 'c']",
        "array_slice(ARRAY[1, 2], 0, 9) = ARRAY[1, 2]",
        "array_slice(ARRAY[1, 2], 2, 1) = ARRAY[]",
        "array_slice(ARRAY[1, 2], -9, 1) = ARRAY[1]",
        "array_slice(ARRAY[1, 2], null, 1) = null",
    ],
)
def array_slice(x: Array, first: int, last: int) -> Array:
    """The elements from position `first` to `last`; negative positions count from the end."""
    return x[between(first, last, len(x))]


OVERLOADS["array_slice"] = ("text_slice",)


@scalar(
    "array_reverse",
    "array_reverse(array)",
    one_array(_same),
    spark="reverse({0})",
    native="array_reverse",
    aliases=("list_reverse",),
    examples=[
        "array_reverse(ARRAY[1, null, 3]) = ARRAY[3, null, 1]",
        "array_reverse(ARRAY[]) = ARRAY[]",
        "array_reverse(null) = null",
        "reverse(ARRAY['a', 'b']) = ARRAY['b', 'a']",
    ],
)
def array_reverse(x: Array) -> Array:
    """The elements in reverse order; REVERSE also accepts arrays."""
    return x[::-1]


OVERLOADS["reverse"] = ("array_reverse",)


def in_order(x: Array, keys: Array, order: int) -> Array:
    """The elements in the order of the keys at their indices; ties keep their order."""
    missing = [n for n, key in enumerate(keys) if key is None]
    there = [n for n, key in enumerate(keys) if key is not None]
    there.sort(key=lambda n: (keys[n] != keys[n], keys[n]), reverse=bool(order & DESCENDING))
    return tuple(x[n] for n in (missing + there if order & NULLS_FIRST else there + missing))


@scalar(
    "array_sort",
    "array_sort(array)",
    one_array(_same),
    spark="array_sort({0})",
    native="array_sort",
    aliases=("list_sort",),
    examples=[
        "array_sort(ARRAY[3, null, 1, 2]) = ARRAY[1, 2, 3, null]",
        "array_sort(ARRAY['b', 'B', 'a']) = ARRAY['B', 'a', 'b']",
        "array_sort(ARRAY[CAST('NaN' AS DOUBLE), 1e308]) = ARRAY[1e308, CAST('NaN' AS DOUBLE)]",
        "array_sort(null) = null",
    ],
)
def array_sort(x: Array) -> Array:
    """The elements in ascending order, NULLs last."""
    return in_order(x, x, 0)


def _ordered(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    elements = [e for t in types[:2] if (e := element_of(t)) is not None]
    if len(types) != 3 or len(elements) != 2 or common_type(types[2], INTEGER) != INTEGER:
        return None
    items, keys = (array(e) for e in elements)
    return Signature((items, keys, INTEGER), items)


def _spark_ordered(_: Signature, texts: tuple[str, ...]) -> str:
    items, keys, order = texts
    nulls = f"if({order} & {NULLS_FIRST} = 0, 1, -1)"
    sign = f"if({order} & {DESCENDING} = 0, 1, -1)"
    compared = (
        f"case when l.k is null and r.k is null then l.n - r.n when l.k is null then {nulls}"
        f" when r.k is null then -{nulls} when l.k < r.k then -{sign} when l.k > r.k then {sign} else l.n - r.n end"
    )
    numbered = f"transform({keys}, (k, n) -> struct(k as k, n as n))"
    fits = f"if(size({items}) <> size({keys}), element_at({items}, size({items}) + 1), null)"
    picked = f"transform(array_sort({numbered}, (l, r) -> {compared}), s -> {items}[s.n])"
    return f"if({order} is null or ({items} is null), null, if({fits} is null, {picked}, null))"


@scalar(
    "array_order",
    "array_order(array, keys, order)",
    _ordered,
    spark=_spark_ordered,
    native="array_order",
    fails=("CQ0708",),
    examples=[
        "array_order(ARRAY['a', 'b', 'c'], ARRAY[3, 1, 2], 0) = ARRAY['b', 'c', 'a']",
        "array_order(ARRAY['a', 'b', 'c'], ARRAY[1, null, 2], 1) = ARRAY['c', 'a', 'b']",
        "array_order(ARRAY['a', 'b', 'c'], ARRAY[1, null, 2], 3) = ARRAY['b', 'c', 'a']",
        "array_order(ARRAY[1], null, 0) = null",
        "array_order(ARRAY[1], ARRAY[1, 2], 0) = error CQ0708",
    ],
)
def array_order(x: Array, keys: Array, order: int) -> Array:
    """The elements sorted by the keys at the same positions; a different number of keys is error CQ0708. `order`: 0
    ascending, 1 descending; 2 and 3 the same with NULLs first."""
    if len(x) != len(keys):
        raise Failure("CQ0708", f"{len(x)} elements are ordered by {len(keys)} keys")
    return in_order(x, keys, order)


def first_indices(x: Array) -> list[int]:
    seen: dict[Any, int] = {}
    for n, e in enumerate(x):
        seen.setdefault("NaN" if e != e and isinstance(e, float) else e, n)  # noqa: PLR0124 - only NaN differs from itself
    return list(seen.values())


def spark_distinct(signature: Signature, texts: tuple[str, ...]) -> str:
    (items,) = texts
    element = signature.returns.element
    if element is None or not element.is_float:
        return f"array_distinct({items})"
    # Spark treats 0.0 and -0.0 as different
    first = f"if(e is null, not exists(slice({items}, 1, n), x -> x is null), array_position({items}, e) = n + 1)"
    return f"filter({items}, (e, n) -> {first})"


@scalar(
    "array_distinct",
    "array_distinct(array)",
    one_array(_same),
    spark=spark_distinct,
    native="array_distinct",
    aliases=("list_distinct",),
    examples=[
        "array_distinct(ARRAY[2, 1, 2, null, null]) = ARRAY[2, 1, null]",
        "array_distinct(ARRAY['b', 'a', 'b']) = ARRAY['b', 'a']",
        "array_distinct(ARRAY[0e0, -0e0]) = ARRAY[0e0]",
        "array_distinct(null) = null",
    ],
)
def array_distinct(x: Array) -> Array:
    """The array without duplicates, keeping the first of each; NULLs are equal."""
    return tuple(x[n] for n in first_indices(x))


@scalar(
    "array_remove",
    "array_remove(array, x)",
    array_and_element("ARRAY_REMOVE", None),
    spark="array_remove({0}, {1})",
    native="array_remove",
    aliases=("list_remove",),
    examples=[
        "array_remove(ARRAY[1, 2, 1, null], 1) = ARRAY[2, null]",
        "array_remove(ARRAY['a'], 'b') = ARRAY['a']",
        "array_remove(ARRAY[1], null) = null",
        "array_remove(null, 1) = null",
    ],
)
def array_remove(x: Array, element: Any) -> Array:
    """The elements that do not equal x."""
    return tuple(e for e in x if e is None or not equals(e, element))


def _present(x: Array) -> Array:
    return tuple(e for e in x if e is not None)


@scalar(
    "array_min",
    "array_min(array)",
    one_array(lambda element: element),
    spark="array_min({0})",
    native="array_min",
    may_be_null=True,
    aliases=("list_min",),
    examples=[
        "array_min(ARRAY[3, null, 1]) = 1",
        "array_min(ARRAY['b', 'a']) = 'a'",
        "array_min(ARRAY[]) = null",
        "array_min(null) = null",
        "array_min(ARRAY[CAST('NaN' AS DOUBLE), 1e0]) = 1e0",
    ],
)
def array_min(x: Array) -> Any:
    """The least element that is not NULL; NULL if there is none."""
    present = _present(x)
    return in_order(present, present, 0)[0] if present else None


@scalar(
    "array_max",
    "array_max(array)",
    one_array(lambda element: element),
    spark="array_max({0})",
    native="array_max",
    may_be_null=True,
    aliases=("list_max",),
    examples=[
        "array_max(ARRAY[1, 3, null]) = 3",
        "array_max(ARRAY[false, true]) = true",
        "array_max(ARRAY[null]) = null",
        "array_max(null) = null",
        "array_max(ARRAY[CAST('NaN' AS DOUBLE), 1e0]) = CAST('NaN' AS DOUBLE)",
    ],
)
def array_max(x: Array) -> Any:
    """The greatest element that is not NULL; NULL if there is none."""
    present = _present(x)
    return in_order(present, present, DESCENDING)[0] if present else None


def _spark_mode(signature: Signature, texts: tuple[str, ...]) -> str:
    (items,) = texts
    present = f"filter({items}, e -> e is not null)"
    if signature.returns.is_float:  # Spark treats 0.0 and -0.0 as different
        present = f"transform({present}, e -> {cast_to('e + 0D', signature.returns, unless=DOUBLE)})"
    counted = "transform(array_distinct(v), e -> struct(-size(filter(v, x -> x = e)) as n, e as e))"
    return f"transform(array({present}), v -> if(size(v) > 0, array_sort({counted})[0].e, null))[0]"


@scalar(
    "array_mode",
    "array_mode(array)",
    one_array(lambda element: element),
    spark=_spark_mode,
    native="array_mode",
    may_be_null=True,
    aliases=("list_mode",),
    examples=[
        "array_mode(ARRAY[3, 1, 3, null, null, null]) = 3",
        "array_mode(ARRAY['b', 'a', 'b', 'a']) = 'a'",
        "array_mode(ARRAY[0e0, 1e0, -0e0]) = 0e0",
        "array_mode(ARRAY[CAST('NaN' AS DOUBLE), 1e0, CAST('NaN' AS DOUBLE)]) = CAST('NaN' AS DOUBLE)",
        "array_mode(ARRAY[]) = null",
        "array_mode(null) = null",
    ],
)
def array_mode(x: Array) -> Any:
    """The most frequent element that is not NULL; ties give the least. NULL if there is none."""
    present = _present(x)
    ascending = in_order(present, present, 0)
    best, most, first = None, 0, 0
    for n, element in enumerate(ascending):
        first = first if equals(element, ascending[first]) else n
        if n + 1 - first > most:
            best, most = ascending[first], n + 1 - first
    return best


def _summed(types: tuple[DataType, ...], _: Constants) -> Signature | Refusal | None:
    element = element_of(types[0]) if len(types) == 1 else None
    if element is None or not element.is_numeric:
        return None
    if element.kind is not Kind.DECIMAL:
        return Signature((array(element),), DOUBLE if element.is_float else BIGINT)
    if element.precision > WORD_DIGITS:
        way = f"CAST the array to DECIMAL({WORD_DIGITS}, {min(element.scale, WORD_DIGITS)})[], or SUM what UNNEST gives"
        return Refusal("CQ0302", f"ARRAY_SUM takes {WORD_DIGITS} digits, not {element}", way)
    return Signature((array(element),), decimal(element.precision + MORE_DIGITS, element.scale))


def _spark_sum(signature: Signature, texts: tuple[str, ...]) -> str:
    (items,) = texts
    present = f"filter({items}, e -> e is not null)"
    scale = signature.returns.scale
    exact = DOUBLE if signature.returns == DOUBLE else decimal(38, scale)
    total = f"aggregate({present}, {cast_to('0', exact)}, (s, e) -> {cast_to('s + e', exact)})"
    if signature.returns == BIGINT:  # the second cast fails, as an overflow, beyond BIGINT
        total = f"coalesce(try_cast({total} as BIGINT), cast(cast({total} as DECIMAL(18,0)) as BIGINT))"
    else:
        total = cast_to(total, signature.returns)
    return f"if(size({present}) > 0, {total}, null)"


@scalar(
    "array_sum",
    "array_sum(array)",
    _summed,
    spark=_spark_sum,
    native="array_sum",
    typed=True,
    may_be_null=True,
    fails=("CQ0705",),
    exact=lambda signature: signature.returns != BIGINT,
    aliases=("list_sum",),
    examples=[
        "array_sum(ARRAY[1, null, 2]) = 3",
        "array_sum(ARRAY[0.1e0, 0.2e0, 0.3e0]) = 0.6000000000000001e0",
        "array_sum(ARRAY[1.50, 2.25]) = 3.75",
        "array_sum(ARRAY[9223372036854775807, 1, -1]) = 9223372036854775807",
        "array_sum(ARRAY[9223372036854775807, 1]) = error CQ0705",
        "array_sum(ARRAY[null]) = null",
    ],
)
def array_sum(signature: Signature, x: Array) -> Any:
    """The sum of the elements that are not NULL; NULL if there are none. Integers give BIGINT, DECIMALs get 10 more
    digits."""
    present = _present(x)
    if not present:
        return None
    if signature.returns == DOUBLE:
        return _added(present)
    total = sum(present)
    if signature.returns == BIGINT and not INT64_MIN <= total <= INT64_MAX:
        raise Failure("CQ0705", f"the sum {total} does not fit BIGINT")
    return total


def _added(numbers: Sequence[float]) -> float:
    """From the first to the last, each step rounded; `sum` is more exact."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _joined(types: tuple[DataType, ...], _: Constants) -> Signature | None:
    element = element_of(types[0]) if len(types) in {2, 3} else None
    if element is None or any(t.kind not in {Kind.VARCHAR, Kind.NULL} for t in types[1:]):
        return None
    return Signature((array(VARCHAR), *(VARCHAR,) * (len(types) - 1)), VARCHAR)


@scalar(
    "array_to_string",
    "array_to_string(array, separator [, null])",
    _joined,
    spark=lambda _, texts: f"array_join({', '.join(texts)})",
    native="array_to_string",
    aliases=("array_join",),
    examples=[
        "array_to_string(ARRAY['a', null, 'b'], '-') = 'a-b'",
        "array_join(ARRAY['a', null, ''], '-', '?') = 'a-?-'",
        "array_to_string(ARRAY[1.50, 2.00], ' ') = '1.50 2.00'",
        "array_to_string(ARRAY[], ',') = ''",
        "array_to_string(null, ',') = null",
        "array_to_string(ARRAY['a'], null) = null",
    ],
)
def array_to_string(x: tuple[str | None, ...], separator: str, missing: str | None = None) -> str:
    """The elements as one text, with the separator between them; NULLs are left out, or written as the last
    argument."""
    shown = (missing if e is None else e for e in x)
    return separator.join(e for e in shown if e is not None)
