"""Which lines are valid JSON objects, and which values the columns of a row take from them.

A line is one object by RFC 8259, with blanks around it. Its numbers stay as written, so that nothing is lost before a
value has its type. Native reading (cq/runtime/readers/json_lines.py) gives the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from cq.connectors import cells
from cq.connectors.cells import UnreadableText
from cq.connectors.json.names import FULL, NONE, Level, columns_inside
from cq.lang.types import DataType, Kind

MAX_DEPTH = 1_000  # nesting depth of objects and arrays in a line (`cq limits`)

_BLANK = rb"[ \t\r]*+"
_LETTERS = rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_WORD = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null"
_BLANKS = re.compile(_BLANK)
_TEXT = re.compile(_LETTERS)
_SCALAR = re.compile(_LETTERS + b"|" + _WORD)
# the most common kind of field: a name, and a value with nothing inside it
_PLAIN = re.compile(
    rb"(" + _LETTERS + rb")" + _BLANK + rb":" + _BLANK + rb"(" + _LETTERS + rb"|" + _WORD + rb")" + _BLANK + rb"(?:,"
    + _BLANK + rb'(?=")|(?=\}))'
)  # fmt: skip
_CLOSED_BY = {b"{": b"}", b"[": b"]"}


Member = tuple[bytes, bytes]
"""The name of a field, and its value as written."""


ONE_LINE = "put each object on one line: jq -c . FILE > FILE.jsonl"


class NoObject(Exception):
    """The line is not a JSON object; the message says why, and where. way: what to do, other than leaving it out."""

    def __init__(self, message: str, way: str = "") -> None:
        super().__init__(message)
        self.way = way


class JsonValue(NamedTuple):
    """A value that is not null, as written."""

    json: bytes

    @property
    def is_nested(self) -> bool:
        return self.json[:1] in _CLOSED_BY

    @property
    def is_text(self) -> bool:
        return self.json[:1] == b'"'

    @property
    def text(self) -> bytes:
        """The letters of a text, anything else as written. UnreadableText: letters that UTF-8 cannot encode."""
        return _letters(self.json) if self.is_text else self.json


class NoFields(JsonValue):
    """What is found instead of the object that contains the field of a column."""


def _letters(quoted: bytes) -> bytes:
    if b"\\" not in quoted:
        return quoted[1:-1]
    try:
        return str(json.loads(quoted)).encode()
    except UnicodeEncodeError:
        raise UnreadableText("half of a surrogate pair is not a character") from None


def values(line: bytes, levels: Sequence[Level], columns: int) -> list[JsonValue | None]:
    """The value of each column in a line without its line end; None where it is null, or no field matches the column.

    NoFields where its path leads through something other than an object, unless a column takes that thing, or something
    it is in, as a whole.
    """
    taken: list[JsonValue | None] = [None] * columns
    answers = [NONE] * columns

    def take(fields: Iterable[Member], level: int, outer: int, held: bool) -> None:
        for text, written in fields:
            name, answer = levels[level].find(text)
            if name is None:
                continue
            answer = min(answer, outer)
            if name.level >= 0 and written[:1] == b"{":
                take(_Line(written).row(), name.level, answer, held or name.column >= 0)
            elif name.level >= 0 and written != b"null" and not held and name.column < 0:
                for column in columns_inside(levels, name.level):
                    if answer >= answers[column]:
                        taken[column], answers[column] = NoFields(written), answer
            if name.column >= 0 and answer >= answers[name.column]:
                taken[name.column], answers[name.column] = _value(written), answer

    take(_Line(line).row(), 0, FULL, False)
    return taken


def members(line: bytes) -> list[tuple[str, JsonValue | None]]:
    """The fields of a line, in order."""
    return [(text.decode("utf-8", "backslashreplace"), _value(written)) for text, written in _Line(line).row()]


def elements(array: bytes) -> list[JsonValue | None]:
    """The elements of a text known to be an array."""
    scan = _Line(array)
    found: list[JsonValue | None] = []
    at = scan.past_blanks(1)
    while array[at : at + 1] != b"]":
        end = scan.past_value(at, 1)
        found.append(_value(array[at:end]))
        at = scan.past_comma(end, b"]")
    return found


def _value(written: bytes) -> JsonValue | None:
    return None if written == b"null" else JsonValue(written)


def _name(quoted: bytes) -> bytes:
    return str(json.loads(quoted)).encode("utf-8", "surrogatepass") if b"\\" in quoted else quoted[1:-1]


class _Line:
    """One line while it is read. Positions are bytes from 0; the position at the end has the byte b""."""

    def __init__(self, line: bytes) -> None:
        self._line = line

    def row(self) -> Iterator[Member]:
        """The fields of the object that the line is; raises NoObject where it turns out not to be one."""
        at = self.past_blanks(0)
        if self._byte(at) != b"{":
            raise NoObject("a row is an object in braces: { is missing")
        at = self.past_blanks(at + 1)
        while self._byte(at) != b"}":
            plain = _PLAIN.match(self._line, at)
            if plain is not None:
                yield _name(plain[1]), plain[2]
                at = plain.end()
                continue
            start, text = self._name(at)
            end = self.past_value(start, 1)
            yield text, self._line[start:end]
            at = self.past_comma(end, b"}")
        at = self.past_blanks(at + 1)
        if at < len(self._line):
            raise self._fault(at, "text follows the object")

    def past_value(self, at: int, depth: int) -> int:
        """The position after the value that starts here, which is valid to its end. depth: how many objects and arrays
        are open."""
        closing: list[bytes] = []  # the closing brackets of the objects and arrays open inside the value
        while True:
            opened = _CLOSED_BY.get(self._byte(at))
            if opened is None:
                at = self._past_scalar(at)
            else:
                if depth + len(closing) == MAX_DEPTH:
                    raise self._fault(at, f"more than {MAX_DEPTH:,} objects and arrays are open")
                closing.append(opened)
                at = self.past_blanks(at + 1)
                if self._byte(at) != opened:
                    at = self._name(at)[0] if opened == b"}" else at
                    continue
            while closing:  # a value has ended, or the open object or array is empty
                at = self.past_comma(at, closing[-1])
                if self._byte(at) != closing[-1]:
                    at = self._name(at)[0] if closing[-1] == b"}" else at
                    break
                closing.pop()
                at += 1
            else:
                return at

    def past_comma(self, at: int, closing: bytes) -> int:
        """The position of the next field or element, or of the closing bracket."""
        at = self.past_blanks(at)
        if self._byte(at) == closing:
            return at
        if self._byte(at) != b",":
            raise self._fault(at, f"a comma or {closing.decode()} should be here")
        at = self.past_blanks(at + 1)
        if self._byte(at) == closing:
            raise self._fault(at, "a comma should not be before this")
        return at

    def past_blanks(self, at: int) -> int:
        """The first byte that is not blank."""
        found = _BLANKS.match(self._line, at)
        assert found is not None, "no blanks match too"
        return found.end()

    def _past_scalar(self, at: int) -> int:
        found = _SCALAR.match(self._line, at)
        if found is None:
            raise self._fault(at, "a value should be here")
        return found.end()

    def _name(self, at: int) -> tuple[int, bytes]:
        """The position of the value of the field that starts here, and the field's name."""
        found = _TEXT.match(self._line, at)
        if found is None:
            raise self._fault(at, "a name in quotes should be here")
        text = _name(found[0])
        at = self.past_blanks(found.end())
        if self._byte(at) != b":":
            raise self._fault(at, "a colon should be here")
        return self.past_blanks(at + 1), text

    def _byte(self, at: int) -> bytes:
        return self._line[at : at + 1]

    def _fault(self, at: int, why: str) -> NoObject:
        if at >= len(self._line):
            return NoObject("the line ends before the object does", ONE_LINE)
        character = len(self._line[:at].decode("utf-8", "replace")) + 1
        return NoObject(f"{why}: character {character:,}")


@lru_cache(maxsize=256)
def reader(type_: DataType, guessed: bool) -> Callable[[JsonValue], Any]:
    """The function that reads values of a column of this type; it raises UnreadableText.

    Texts, numbers and words are read as the same text in CSV is; a number must not become infinite.
    """
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None
        read_element = reader(type_.element, guessed)
        return lambda value: _array(value, read_element)
    scan = cells.scanner(type_, guessed)
    if type_.kind is Kind.VARCHAR:
        return lambda value: scan(value.text)
    if type_.kind in {Kind.DOUBLE, Kind.REAL}:
        return lambda value: _finite(_plain(value), scan, type_)
    return lambda value: scan(_plain(value))


def _plain(value: JsonValue) -> bytes:
    if value.is_nested:
        raise UnreadableText("it is an object" if value.json[:1] == b"{" else "it is an array")
    return value.text


def _finite(text: bytes, scan: Callable[[bytes], Any], type_: DataType) -> float:
    value: float = scan(text)
    if math.isinf(value) and any(48 <= byte < 58 for byte in text):
        raise UnreadableText(f"it is beyond the greatest {type_}")
    return value


def _array(value: JsonValue, read_element: Callable[[JsonValue], Any]) -> tuple[Any, ...]:
    if value.json[:1] != b"[":
        raise UnreadableText("it is not an array")
    return tuple(None if element is None else read_element(element) for element in elements(value.json))
