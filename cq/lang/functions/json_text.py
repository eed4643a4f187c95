"""Functions of JSON text: values by a path, which is a literal.

A text is one JSON value with blanks around it. Control characters are allowed in its strings; nothing else beyond RFC
8259 is. Of several fields with one name, the first one counts that has the rest of the path, with a value other than
null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from cq.lang.functions.registry import Constants, Refusal, Signature, SignatureRule, scalar
from cq.lang.functions.signatures import fixed
from cq.lang.types import BOOLEAN, INTEGER, VARCHAR, DataType, Kind, array
from cq.records import dataclass

MOST_DEPTH = 200  # objects and arrays in each other
MOST_STEPS = 50
MOST_INDEX = 2**31 - 1
Path = tuple["str | int", ...]
_STEP = re.compile(r"\.([^.\[\]'\"?*\\\x00-\x1f]+)|\[([0-9]{1,10})\]|\[(['\"])([^'\"?*\\\x00-\x1f]+)\3\]")


@lru_cache(maxsize=256)
def path_of(text: str) -> Path | None:
    """The names and element numbers in a path; None for an invalid one."""
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or (step[2] and int(step[2]) > MOST_INDEX):
            return None
        steps.append(int(step[2]) if step[2] else step[1] or step[4])
        at = step.end()
    return tuple(steps) if text[:1] == "$" and len(steps) <= MOST_STEPS else None


def _by_path(function: str, returns: DataType) -> SignatureRule:
    """A text and a literal path."""

    def rule(types: tuple[DataType, ...], constants: Constants) -> Signature | Refusal | None:
        if len(types) != 2 or any(t.kind not in {Kind.VARCHAR, Kind.NULL} for t in types):
            return None
        if not isinstance(constants[1], str):
            return Refusal("CQ0302", f"{function} needs a literal path", f"write {function}(x, '$.name[0]')")
        if path_of(constants[1]) is None:
            help = "a path is $ and names and numbers of elements: $.a.b[0], $['a b'][1]"
            return Refusal("CQ0302", f"'{constants[1]}' is not a path to one value", help)
        return Signature((VARCHAR, VARCHAR), returns)

    return rule


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object as written."""

    pairs: list[tuple[str, Value]]


Value = Fields | list[Any] | str | Number | bool | None


def _no_constant(text: str) -> Number:
    raise ValueError(text)  # NaN and Infinity are no JSON


@lru_cache(maxsize=64)
def document(text: str) -> list[Value]:
    """The value of the text, in a list; an empty list if it is not JSON."""
    try:
        value: Value = json.loads(
            text, strict=False, parse_float=Number, parse_int=Number, parse_constant=_no_constant,
            object_pairs_hook=Fields,
        )  # fmt: skip
    except (ValueError, RecursionError):
        return []
    return [value] if _depth(value) <= MOST_DEPTH else []


def _inside(value: Value) -> list[Value]:
    if isinstance(value, Fields):
        return [v for _, v in value.pairs]
    return value if isinstance(value, list) else []


def _depth(value: Value) -> int:
    """How deeply objects and arrays are nested."""
    level, depth = [value], 0
    while level := [v for v in level if isinstance(v, list | Fields)]:
        depth += 1
        level = [v for outer in level for v in _inside(outer)]
    return depth


def found(value: Value, path: Path) -> Value:
    """The value at the path; None if there is none, or if it is null."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        inner = [v for name, v in value.pairs if name == step] if isinstance(value, Fields) else []
    else:
        inner = value[step : step + 1] if isinstance(value, list) else []
    return next((v for v in (found(i, rest) for i in inner) if v is not None), None)


def is_text(text: str) -> bool:
    """Whether every code unit is a character: half of a surrogate pair is not."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def scalar_text(value: Value) -> str | None:
    """A string, a number as written, true or false; None for everything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value.text if isinstance(value, Number) else value
    return text if isinstance(text, str) and is_text(text) else None


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _letter(c: str) -> str:
    if " " <= c < "\ud800" or "\udfff" < c <= "\uffff":
        return _ESCAPES.get(c, c)
    units = c.encode("utf-16-be", "surrogatepass")
    return _ESCAPES.get(c) or "".join(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))


def _quoted(text: str) -> str:
    return '"' + "".join(map(_letter, text)) + '"'


def counts_of(texts: Sequence[str]) -> str:
    """How often each text occurs, as a JSON object in order of first occurrence; characters beyond U+FFFF are not
    escaped."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    names = ("".join(_letter(c) if c <= "\uffff" else c for c in text) for text in counts)
    return "{" + ",".join(f'"{name}":{count}' for name, count in zip(names, counts.values(), strict=True)) + "}"


def compact(value: Value) -> str:
    """The value as JSON without blanks; numbers as written, control characters and those beyond U+FFFF escaped."""
    if isinstance(value, Fields):
        return "{" + ",".join(f"{_quoted(name)}:{compact(v)}" for name, v in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else str(scalar_text(value))


def _as_text(value: Value) -> str | None:
    """A scalar as by `scalar_text`, an object or array as by `compact`."""
    return compact(value) if isinstance(value, list | Fields) else scalar_text(value)


def _at(x: str, path: str) -> Value:
    steps = path_of(path)
    assert steps is not None, "a path that is none"
    return next((found(value, steps) for value in document(x)), None)


# -- Spark ------------------------------------------------------------------------------------------------------------

# Spark's parser reformats numbers, and shows a string the same way as true, null and objects. So every string and
# number becomes a string with a mark: after a string, before a number. Values without a mark are words, objects or
# arrays.
_SCALARS = r"""r'(?s)"([^"\\]*+(?:\\.[^"\\]*+)*+)"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)'"""
_MARKED = r"""'"$1\u0001$2"'"""
_MARKED_NUMBER = r"""r'"\\u0001(-?[0-9][0-9.eE+-]*)"'"""
_COMPACT = rf"""replace(regexp_replace(j, {_MARKED_NUMBER}, '$1'), r'\u0001"', '"')"""
_SPARK_NESTED = f"when j <> 'null' then {_COMPACT} "


def spark_path(path: str) -> str:
    """The path in the text with marks."""
    steps = path_of(path)
    assert steps is not None, "a path that is none"
    return "$[0]['r']" + "".join(f"['{s}\x01']" if isinstance(s, str) else f"[{s}]" for s in steps)


def _spark_whole(text: str) -> str:
    """JSON where the text must be one value, not only start with one."""
    return f"""concat('[{{"r":', {text}, '}}]')"""


def _spark_marked(text: str) -> str:
    """The whole text with marks, as field r of the object in an array."""
    return _spark_whole(f"regexp_replace({text}, {_SCALARS}, {_MARKED})")


def _spark_unmarked(values: str, otherwise: str = "") -> str:
    """An array of texts with marks as scalars; `otherwise` for anything without a mark that is not a truth value."""
    return (
        rf"transform({values}, j -> case when endswith(j, '\u0001') then left(j, length(j) - 1) "
        rf"when startswith(j, '\u0001') then substring(j, 2) when j in ('true', 'false') then j {otherwise}end)"
    )


def _spark_at(args: tuple[str, ...], otherwise: str = "") -> str:
    """The scalar at a path of a text; `otherwise` as in `_spark_unmarked`."""
    return _spark_unmarked(f"array(get_json_object({_spark_marked(args[0])}, {args[1]}))", otherwise) + "[0]"


def _spark_elements(text: str) -> str:
    """The elements of an array in a text, one by one: from_json has a ? for half of a surrogate pair."""
    whole = _spark_marked(text)
    count = f"json_array_length(get_json_object({whole}, '$[0].r'))"
    leaf = f"get_json_object({whole}, concat('$[0].r[', i, ']'))"
    leaves = f"transform(sequence(0, greatest({count}, 1) - 1), i -> {leaf})"
    return f"if({count} is null, null, slice({_spark_unmarked(leaves, _SPARK_NESTED)}, 1, {count}))"


@scalar(
    "json_value",
    "json_value(text, path)",
    _by_path("JSON_VALUE", VARCHAR),
    spark=lambda _, args: _spark_at(args),
    spark_literals={1: spark_path},
    native="json_value",
    may_be_null=True,
    examples=[
        """json_value('{"a": {"b": [10, "x"]}}', '$.a.b[1]') = 'x'""",
        """json_value('{"price": 1.50}', '$.price') = '1.50'""",
        """json_value('{"a b": true}', '$["a b"]') = 'true'""",
        r"""json_value('{"a": "\u00e9"}', '$.a') = 'é'""",
        """json_value('{"a": null}', '$.a') = null""",
        """json_value('{"a": [1]}', '$.a') = null""",
        """json_value('{"a": 1', '$.a') = null""",
        """json_value('[1, 2]', '$[5]') = null""",
        "json_value(null, '$.a') = null",
    ],
)
def json_value(x: str, path: str) -> str | None:
    """The string, number or truth value at `path`, a literal, as text; NULL for null, an object or an array, if the
    path leads nowhere, and if the text is not JSON."""
    return scalar_text(_at(x, path))


@scalar(
    "get_json_object",
    "get_json_object(text, path), text ->> 'name'",
    _by_path("GET_JSON_OBJECT", VARCHAR),
    spark=lambda _, args: _spark_at(args, _SPARK_NESTED),
    spark_literals={1: spark_path},
    native="get_json_object",
    may_be_null=True,
    aliases=("json_extract_string", "json_extract_path_text"),
    examples=[
        """get_json_object('{"a": {"b": [1.50, "x"]}}', '$.a') = '{"b":[1.50,"x"]}'""",
        """get_json_object('{"a": "x"}', '$.a') = 'x'""",
        """('{"a": {"b": 7}}' -> 'a' ->> 'b') = '7'""",
        """('[[1], [2, 3]]' -> 1 ->> 0) = '2'""",
        r"""get_json_object('[ "\u00e9\/", null ]', '$') = '["é/",null]'""",
        """get_json_object('[null]', '$[0]') = null""",
        "get_json_object('nothing', '$') = null",
        "get_json_object(null, '$') = null",
    ],
)
def get_json_object(x: str, path: str) -> str | None:
    """Like JSON_VALUE, but an object or array gives its JSON without blanks."""
    return _as_text(_at(x, path))


@scalar(
    "json_array_elements",
    "json_array_elements(text [, path])",
    fixed(VARCHAR, returns=array(VARCHAR)),
    spark=lambda _, args: _spark_elements(args[0]),
    native="json_array_elements",
    may_be_null=True,
    aliases=("json_array_elements_text", "json_extract_string_array"),
    examples=[
        """json_array_elements('[{"sku": "x", "n": 1}, {"sku": "y"}]')[2] ->> 'sku' = 'y'""",
        """json_array_elements('["a", 1.50, null, [2, 3]]') = ARRAY['a', '1.50', NULL, '[2,3]']""",
        """json_array_elements('{"a": ["x", true]}', '$.a') = ARRAY['x', 'true']""",
        "cardinality(json_array_elements(' [ ] ')) = 0",
        """json_array_elements('{"a": 1}') = null""",
        "json_array_elements('[1, 2') = null",
        "json_array_elements(null) = null",
    ],
)
def json_array_elements(x: str) -> tuple[str | None, ...] | None:
    """The elements of the JSON array as by GET_JSON_OBJECT; NULL if the text is not one. UNNEST makes rows of them."""
    for value in document(x):
        if isinstance(value, list):
            return tuple(map(_as_text, value))
    return None


@scalar(
    "json_array_length",
    "json_array_length(text [, path])",
    fixed(VARCHAR, returns=INTEGER),
    spark=lambda _, args: f"json_array_length(get_json_object({_spark_whole(args[0])}, '$[0].r'))",
    native="json_array_length",
    may_be_null=True,
    examples=[
        """json_array_length('[1, [2, 3], {"a": 4}]') = 3""",
        "json_array_length('[]') = 0",
        """json_array_length('{"a": [1, 2]}', '$.a') = 2""",
        """json_array_length('{"a": 1}') = null""",
        "json_array_length('[1, 2') = null",
        "json_array_length(null) = null",
    ],
)
def json_array_length(x: str) -> int | None:
    """The number of elements of the array; NULL if the text is not a JSON array."""
    for value in document(x):
        if isinstance(value, list):
            return len(value)
    return None


@scalar(
    "json_quote",
    "json_quote(text)",
    fixed(VARCHAR, returns=VARCHAR),
    spark="if({0} is null, null, substring(to_json(array({0})), 2, char_length(to_json(array({0}))) - 2))",
    native="json_quote",
    examples=[
        """json_quote('say "hi"') = '"say \\"hi\\""'""",
        "json_quote('') = '\"\"'",
        "json_quote('ñ/') = '\"ñ/\"'",
        "json_quote(null) = null",
    ],
)
def json_quote(x: str) -> str:
    """The text as a JSON string."""
    return json.dumps(x, ensure_ascii=False)


@scalar(
    "json_valid",
    "json_valid(text)",
    fixed(VARCHAR, returns=BOOLEAN),
    spark=lambda _, args: (
        f"if({args[0]} is null, null, coalesce(json_array_length({_spark_whole(args[0])}) = 1, false))"
    ),
    native="json_valid",
    examples=[
        """json_valid('{"a": [1, null]}') = true""",
        "json_valid(' null ') = true",
        """json_valid('{"a": 1,}') = false""",
        "json_valid('01') = false",
        "json_valid('') = false",
        "json_valid(null) = null",
    ],
)
def json_valid(x: str) -> bool:
    """Whether the text is a JSON value."""
    return bool(document(x))
