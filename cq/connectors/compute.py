"""The functions of `pyarrow.compute` that are called at run time, without importing it.

`pyarrow.compute` wraps each of Arrow's three hundred functions in Python and parses its documentation: 25 ms at every
start, a tenth of a small run. Arrays import it themselves in `cast`, `filter` and `fill_null`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import _compute as arrow


def _call(function: str, *values: Any, options: Any = None) -> Any:
    return arrow.call_function(function, list(values), options)


def cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The values as another type; ArrowInvalid where a value has no counterpart."""
    return _call("cast", values, options=arrow.CastOptions.safe(target))


def any(values: pa.Array) -> pa.BooleanScalar:
    return _call("any", values)


def all(values: pa.Array) -> pa.BooleanScalar:
    return _call("all", values)


def max(values: pa.Array) -> pa.Scalar:
    return _call("max", values)


def min_max(values: pa.Array) -> pa.StructScalar:
    return _call("min_max", values)


def is_inf(values: pa.Array) -> pa.BooleanArray:
    return _call("is_inf", values)


def is_finite(values: pa.Array) -> pa.BooleanArray:
    return _call("is_finite", values)


def sum(values: pa.Array) -> pa.Scalar:
    return _call("sum", values)


def sort_indices(rows: pa.Table, names: list[str]) -> pa.Array:
    """The indices that sort the rows by these columns, ascending."""
    return _call("sort_indices", rows, options=arrow.SortOptions([(name, "ascending") for name in names]))


def invert(values: pa.Array) -> pa.BooleanArray:
    return _call("invert", values)


def or_(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    return _call("or", left, right)


def equal(left: pa.Array, right: Any) -> pa.BooleanArray:
    return _call("equal", left, right)


def coalesce(values: pa.Array, otherwise: pa.Scalar) -> pa.Array:
    return _call("coalesce", values, otherwise)


def if_else(condition: pa.Array, left: Any, right: Any) -> pa.Array:
    return _call("if_else", condition, left, right)


def binary_length(texts: pa.Array) -> pa.Array:
    return _call("binary_length", texts)


def starts_with(texts: pa.Array, pattern: str) -> pa.BooleanArray:
    return _call("starts_with", texts, options=arrow.MatchSubstringOptions(pattern))


def match_substring(texts: pa.Array, pattern: str) -> pa.BooleanArray:
    return _call("match_substring", texts, options=arrow.MatchSubstringOptions(pattern))


def match_substring_regex(texts: pa.Array, pattern: str) -> pa.BooleanArray:
    return _call("match_substring_regex", texts, options=arrow.MatchSubstringOptions(pattern))


def replace_with_mask(values: pa.Array, mask: pa.BooleanArray, replacements: pa.Array) -> pa.Array:
    """The values, with those under the mask replaced in order."""
    return _call("replace_with_mask", values, mask, replacements)


def replace_substring(texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return _call("replace_substring", texts, options=arrow.ReplaceSubstringOptions(pattern, replacement))


def utf8_rtrim(texts: pa.Array, characters: str) -> pa.Array:
    return _call("utf8_rtrim", texts, options=arrow.TrimOptions(characters))


def binary_join_element_wise(*texts: Any, nothing_for_null: bool = False) -> pa.Array:
    """Join the first texts, separated by the last; a NULL text makes the result NULL, or is replaced by the empty
    text."""
    how = arrow.JoinOptions("replace", "") if nothing_for_null else arrow.JoinOptions()
    return _call("binary_join_element_wise", *texts, options=how)
