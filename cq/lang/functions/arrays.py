"""Functions that make arrays and look into them. Elements count from 1, or from -1 at the end.

Elements are compared as by `=`: NaN equals NaN, 0.0 equals -0.0. NULL elements match no value in a search, but equal
each other when whole arrays are compared. An array is a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.lang.functions.comparison import equals
from cq.lang.functions.registry import OVERLOADS, Constants, Refusal, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import common_of, converts
from cq.lang.functions.spark_text import clamped_int, spark_type
from cq.lang.types import BIGINT, BOOLEAN, ELEMENTS, INTEGER, NULL, DataType, Kind, array

NESTED = "an array holds numbers, BOOLEAN, DATE, TIMESTAMP or VARCHAR"
FLAT = "write one array of all elements, or a column for each of the inner ones"


def no_element(type_: DataType) -> Refusal:
    """The refusal for an array of values that arrays cannot hold."""
    what = "arrays of arrays are" if type_.kind is Kind.ARRAY else f"arrays of {type_} are"
    return Refusal("CQ0501", f"{what} not supported yet", FLAT if type_.kind is Kind.ARRAY else NESTED)


def _all_elements(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
    """Elements of one common type; an empty array is of NULL, which converts to every array."""
    if not types:
        return Signature((), array(NULL))
    common = common_of("ARRAY", types, constants)
    if isinstance(common, Refusal) or common is None:
        return common
    if common.kind not in ELEMENTS:
        return no_element(common)
    common = INTEGER if all(t.kind is Kind.NULL for t in types) else common
    return Signature((common,) * len(types), array(common))


def element_of(type_: DataType) -> DataType | None:
    """The type of the elements; INTEGER if it is unknown, None for anything but an array."""
    if type_.kind is Kind.NULL or type_ == array(NULL):
        return INTEGER
    return type_.element if type_.kind is Kind.ARRAY else None


def one_array(returns: Callable[[DataType], DataType], *others: DataType) -> SignatureRule:
    """An array, then these parameters; the result depends on the type of its elements."""

    def rule(types: tuple[DataType, ...], _: Constants) -> Signature | None:
        element = element_of(types[0]) if len(types) == 1 + len(others) else None
        if element is None or not all(map(converts, types[1:], others)):
            return None
        return Signature((array(element), *others), returns(element))

    return rule


def array_and_element(what: str, returns: DataType | None) -> SignatureRule:
    """An array and a possible element. returns: None for an array of that type."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) != 2 or types[0].kind not in {Kind.ARRAY, Kind.NULL}:
            return None
        element = types[0].element or NULL
        common = common_of(what, (element, types[1]), (None, constants[1]))
        if isinstance(common, Refusal) or common is None or common.kind not in ELEMENTS:
            return common if isinstance(common, Refusal) else None
        return Signature((array(common), common), returns or array(common))

    return rule


def _spark_array(signature: Signature, elements: tuple[str, ...]) -> str:
    return f"cast(array({', '.join(elements)}) as {spark_type(signature.returns)})"


@scalar(
    "array",
    "ARRAY[x, …]",
    _all_elements,
    spark=_spark_array,
    native="array",
    lists=True,
    handles_null=True,
    never_null=True,
    aliases=("make_array", "list_value"),
    examples=[
        "ARRAY[1, 2, 3] = ARRAY[1, 2, 3]",
        "[1, 2.5] = ARRAY[1.0, 2.5]",
        "ARRAY['a', NULL] = array('a', null)",
        "ARRAY[] = ARRAY[]",
    ],
)
def array_of(*elements: Any) -> tuple[Any, ...]:
    """An array of these elements, of a type that holds them all; `[x, …]` is the same."""
    return elements


def _spark_element(signature: Signature, texts: tuple[str, ...]) -> str:
    return f"try_element_at({texts[0]}, nullif({clamped_int(texts[1])}, 0))"


@scalar(
    "element_at",
    "array[number]",
    one_array(lambda element: element, BIGINT),
    spark=_spark_element,
    native="array_element",
    may_be_null=True,
    aliases=("array_extract", "list_extract", "list_element"),
    examples=[
        "ARRAY['a', 'b'][1] = 'a'",
        "element_at(ARRAY[1, 2], -1) = 2",
        "ARRAY[1, 2][3] = null",
        "ARRAY[1, 2][0] = null",
        "ARRAY[1.5, null][2] = null",
        "ARRAY[true, false][null] = null",
    ],
)
def element_at(x: tuple[Any, ...], number: int) -> Any:
    """The element at this position, counted from the end if negative; NULL if there is none."""
    place = number - 1 if number > 0 else len(x) + number
    return x[place] if number != 0 and 0 <= place < len(x) else None


@scalar(
    "cardinality",
    "cardinality(array)",
    one_array(lambda _: INTEGER),
    spark="array_size({0})",
    native="cardinality",
    aliases=("array_length", "array_size", "size"),
    examples=[
        "cardinality(ARRAY[1, null, 3]) = 3",
        "array_length(ARRAY[]) = 0",
        "cardinality(null) = null",
        "length(ARRAY['a']) = 1",
    ],
)
def cardinality(x: tuple[Any, ...]) -> int:
    """The number of elements, including NULLs. LENGTH and LEN also accept arrays."""
    return len(x)


OVERLOADS["length"] = ("cardinality",)


@scalar(
    "array_contains",
    "array_contains(array, x)",
    array_and_element("ARRAY_CONTAINS", BOOLEAN),
    spark="if({0} is null or {1} is null, null, coalesce(array_contains({0}, {1}), false))",
    native="array_contains",
    aliases=("list_contains", "list_has", "array_has"),
    examples=[
        "array_contains(ARRAY[1, 2], 2) = true",
        "array_contains(ARRAY['a', null], 'b') = false",
        "array_contains(ARRAY[1, null], null) = null",
        "array_contains(null, 1) = null",
        "array_contains(ARRAY[0e0], -0e0) = true",
        "array_contains(ARRAY[1, 2], 2.0) = true",
        "array_contains(ARRAY[], 1) = false",
    ],
)
def array_contains(x: tuple[Any, ...], element: Any) -> bool:
    """Whether an element equals x; NULL elements do not make the result NULL."""
    return array_position(x, element) > 0


@scalar(
    "array_position",
    "array_position(array, x)",
    array_and_element("ARRAY_POSITION", BIGINT),
    spark="array_position({0}, {1})",
    native="array_position",
    aliases=("list_position", "array_indexof", "list_indexof"),
    examples=[
        "array_position(ARRAY['a', 'b', 'b'], 'b') = 2",
        "array_position(ARRAY[1, null], 2) = 0",
        "array_position(ARRAY[1], null) = null",
        "array_position(null, 1) = null",
        "array_position(ARRAY[CAST('NaN' AS DOUBLE)], CAST('NaN' AS DOUBLE)) = 1",
    ],
)
def array_position(x: tuple[Any, ...], element: Any) -> int:
    """The position of the first element that equals x, or 0."""
    return next((n for n, e in enumerate(x, 1) if e is not None and equals(e, element)), 0)
