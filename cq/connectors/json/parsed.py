"""Lines as Python values, for looking at their types: read by Python's own parser, which takes an eighth of the time of
the definition (cq/connectors/json/rows.py), and by the definition wherever the two could differ.

An object is a tuple of its fields, an array is a list, a whole number is its bytes as written, and other values are as
in Python's json.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from cq.connectors.json.rows import MAX_DEPTH, JsonValue, NoObject, elements, members

Object = tuple[tuple[str, Any], ...]


def parsed(line: bytes, levels: int) -> Object | None:
    """The fields of a line, in order, or None where it is not an object. levels: how many objects inside one another
    are looked into; those below them may come without fields."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH or _depth(line) <= MAX_DEPTH:
        try:
            found = (_ESCAPED if "\\u" in text else _PLAIN).decode(text)
        except (ValueError, RecursionError):  # Python's limit of nesting may be below ours
            return parsed_by_definition(line, levels)
        return found if type(found) is tuple else None
    return parsed_by_definition(line, levels)


def parsed_by_definition(line: bytes, levels: int) -> Object | None:
    """The same for a line of UTF-8, by the definition."""
    try:
        fields = members(line)
    except NoObject:
        return None
    return tuple((name, _converted(value, levels)) for name, value in fields)


def _depth(line: bytes) -> int:
    """How many objects and arrays are inside one another, at most, in a line of JSON; of another line, some number."""
    brackets = _NO_BRACKETS.sub(b"", line)
    return max(accumulate(1 if b in b"{[" else -1 for b in brackets), default=0)


def _converted(value: JsonValue | None, levels: int) -> Any:
    if value is None:
        return None
    if not value.is_nested:
        return _PLAIN.decode(value.json.decode())
    if value.json[:1] == b"[":
        return [() if e is not None and e.is_nested else _converted(e, 0) for e in elements(value.json)]
    return tuple((name, _converted(field, levels - 1)) for name, field in members(value.json)) if levels else ()


def _fields(pairs: list[tuple[str, Any]]) -> Object:
    """The fields of an object; a ValueError where a name has half of a surrogate pair, which the definition spells
    out."""
    for name, _ in pairs:
        name.encode()
    return tuple(pairs)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_NO_BRACKETS = re.compile(rb'[^][{}"]+|"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # strings, and what is between strings
# Whole numbers of any length are taken, and reading them as numbers would cost more than it tells.
_PLAIN = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str.encode, parse_constant=_no_number)
_ESCAPED = json.JSONDecoder(object_pairs_hook=_fields, parse_int=str.encode, parse_constant=_no_number)
