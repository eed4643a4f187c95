"""What the values of JSON lines look like, for guessing the types of columns.

The reader of the standard library finds them: it accepts the lines that rows.py accepts, and is faster. It can give up
on lines that are nested deeply; those are read by rows.py.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from functools import lru_cache

from cq.connectors.cells import UnreadableText, names_a_zone, scanner
from cq.connectors.json.rows import MAX_DEPTH, JsonValue, NoObject, elements, members
from cq.lang.types import BIGINT, DATE, TIMESTAMP, DataType

MOST_LEVELS = 32  # nesting of objects whose fields are columns


class Look(Enum):
    """What a value looks like."""

    WORD = auto()  # true or false
    WHOLE = auto()
    LONG_WHOLE = auto()  # beyond BIGINT
    FRACTION = auto()
    DAY = auto()
    TIME = auto()
    INSTANT = auto()  # a time with a zone
    TEXT = auto()
    LIST = auto()
    OBJECT = auto()
    NESTED = auto()  # an object or another array in an array


Fields = tuple[tuple[str, "Seen"], ...]
"""An object: the names and values of its fields, in order."""
Seen = Look | bool | str | list["Seen"] | Fields | None
"""A value: the look of a number, a word, the letters of a text, an array, an object, or null."""


def line_fields(line: bytes) -> Fields | None:
    """The fields of the object that a line without its end is; None for any other line."""
    try:
        text = line.decode()
        if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
            value = _DECODER.decode(text)
            return value if isinstance(value, tuple) else None
    except RecursionError:
        pass
    except ValueError:
        return None
    return exact_fields(line)


def exact_fields(line: bytes) -> Fields | None:
    """The same by rows.py. Below MOST_LEVELS objects, and inside the elements of arrays, nothing is looked at: there,
    objects and arrays are empty."""
    try:
        return tuple((name, _seen(value, MOST_LEVELS)) for name, value in members(line))
    except NoObject:
        return None


def _seen(value: JsonValue | None, levels: int) -> Seen:
    if value is None:
        return None
    if value.is_nested and value.json[:1] == b"[":
        return [_seen(e, 0) for e in elements(value.json)] if levels else []
    if value.is_nested:
        return tuple((name, _seen(v, levels - 1)) for name, v in members(value.json)) if levels else ()
    if value.is_text:
        return str(json.loads(value.json))
    if value.json in {b"true", b"false"}:
        return value.json == b"true"
    return _whole(value.json.decode()) if value.json.lstrip(b"-").isdigit() else Look.FRACTION


def _whole(text: str) -> Look:
    return Look.WHOLE if len(text) < len(str(2**63)) or _is(text, BIGINT) else Look.LONG_WHOLE


def _no_constant(name: str) -> Look:
    raise ValueError(name)  # NaN and Infinity are no JSON


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple,
    parse_int=_whole,
    parse_float=lambda _: Look.FRACTION,
    parse_constant=_no_constant,
)


def text_look(text: str) -> Look:
    """What the letters of a text look like."""
    return _time_look(text) if text.lstrip(" \t")[4:5] == "-" else Look.TEXT  # 2024-


@lru_cache(maxsize=1024)
def _time_look(text: str) -> Look:
    if _is(text, DATE):
        return Look.DAY
    if not _is(text, TIMESTAMP):
        return Look.TEXT
    return Look.INSTANT if names_a_zone(text.encode()) else Look.TIME


def _is(text: str, type_: DataType) -> bool:
    try:
        scanner(type_)(text.encode())
    except (UnreadableText, UnicodeEncodeError):  # the latter for half of a surrogate pair
        return False
    return True
