"""The columns of undeclared JSON lines: the fields of the first lines, each with the narrowest type that changes none
of its values. The fields of an object are columns named by their paths, unless it looks like a map. An array of
numbers, words or texts is an array. Everything else is its JSON text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum, auto
from functools import lru_cache
from types import NoneType
from typing import Any

from cq.connectors.cells import UnreadableText, names_a_zone, scanner
from cq.connectors.csv.source import MAX_FILE_COLUMNS
from cq.connectors.json.parsed import parsed
from cq.connectors.json.rows import ONE_LINE, NoObject, members
from cq.connectors.protocol import damaged
from cq.errors import DataError, Diagnostic
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, UTC_INSTANT, VARCHAR, DataType, array


class Look(IntEnum):
    """What a value looks like. Sets of integers are quicker than those of other members."""

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


_TYPES = {
    frozenset({Look.WORD}): BOOLEAN,
    frozenset({Look.WHOLE}): BIGINT,
    frozenset({Look.DAY}): DATE,
    frozenset({Look.TIME}): TIMESTAMP,
    frozenset({Look.DAY, Look.TIME}): TIMESTAMP,
    frozenset({Look.INSTANT}): UTC_INSTANT,
    # where some have no zone, the zone is dropped: a TIMESTAMP is a time in UTC
    frozenset({Look.INSTANT, Look.TIME}): TIMESTAMP,
    frozenset({Look.INSTANT, Look.DAY}): TIMESTAMP,
    frozenset({Look.INSTANT, Look.DAY, Look.TIME}): TIMESTAMP,
}
_NUMBERS = {Look.WHOLE, Look.LONG_WHOLE, Look.FRACTION}


MOST_KEYS = 200  # per object: more are keys of a map, and a column for each of them would help nobody
MOST_LEVELS = 32  # nesting of objects whose fields are columns


class GuessedColumn:
    """What the values of a field look like, including the fields of its objects. settled: the Python types of which
    another value would tell nothing new."""

    __slots__ = ("columns", "elements", "odd", "settled", "values")

    def __init__(self) -> None:
        self.values: set[Look] = set()
        self.elements: set[Look] = set()
        self.columns: dict[str, GuessedColumn] = {}
        self.odd = False  # whether some object has a field that no path reaches
        self.settled: set[type] = {NoneType}

    def see(self, value: Any, levels: int) -> None:
        """Note one value, as cq/connectors/json/parsed.py gives it. levels: how deep to look into objects inside it."""
        kind = type(value)
        if kind in self.settled:
            return
        look = _look(value)
        self.values.add(look)
        if look in _SETTLING:
            self.settled.add(kind)
        elif look is Look.LIST:
            self._see_elements(value)
        elif look is Look.OBJECT:
            self._see_fields(value, levels)

    def _see_elements(self, array: list[Any]) -> None:
        for element in array:
            if element is None or (type(element) is str and Look.TEXT in self.elements):
                continue
            look = _look(element)
            self.elements.add(Look.NESTED if look in {Look.LIST, Look.OBJECT} else look)

    def _see_fields(self, fields: tuple[tuple[str, Any], ...], levels: int) -> None:
        self.odd = self.odd or levels == 0
        for name, field in fields:
            if self.odd:
                return
            self.odd = not name or "." in name or len(self.columns) > MOST_KEYS
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = GuessedColumn()
            column.see(field, levels - 1)

    def fields(self, path: str) -> Iterator[Field]:
        """The columns for this field: one, or those of its fields."""
        if self.columns and self.values == {Look.OBJECT} and not self.odd:
            for name, column in self.columns.items():
                yield from column.fields(f"{path}.{name}")
        else:
            yield Field(path, _column_type(self))


# A line of text is no JSON; numbers and names begin a CSV file.
_NO_JSON = "if it is not JSON, leave format = 'json' out, or say which it is: cq run -w format=csv"


def guessed_fields(text: bytes, name: str) -> tuple[Field, ...]:
    """The columns of lines, in the order in which their fields appear. Lines that are not objects are ignored."""
    seen: dict[str, GuessedColumn] = {}
    for line in text.split(b"\n"):
        for label, value in parsed(line, MOST_LEVELS) or ():
            column = seen.get(label)
            if column is None:
                column = seen[label] = GuessedColumn()
            column.see(value, MOST_LEVELS)
        if len(seen) > MAX_FILE_COLUMNS:
            raise _too_wide(name)
    if not seen:
        raise _no_columns(text, name)
    found: dict[str, Field] = {}
    for label, column in seen.items():
        column.odd = column.odd or not label or "." in label
        for field in column.fields(label):
            same = found.get(field.name)  # "a.b" is both the name of a field and the path to another one
            found[field.name] = field if same is None or same == field else Field(field.name, VARCHAR)
    if len(found) > MAX_FILE_COLUMNS:
        raise _too_wide(name)
    return tuple(found.values())


def _no_columns(text: bytes, name: str) -> DataError:
    """Why lines without a field tell no columns; of one that begins an object, what is wrong with it."""
    first = next((line for line in text.split(b"\n") if line.strip()), b"")
    what, way = "has no line with an object that has fields", _NO_JSON
    if not first:
        what, way = "is empty", "declare the columns"
    elif first.lstrip()[:1] == b"{":
        way = ONE_LINE
        try:
            members(first)
        except NoObject as fault:
            what, way = f"{what} ({fault})", fault.way or "mend the line, or declare the columns"
    return damaged(name, f"the file {what}, so its columns cannot be known", way)


def _too_wide(name: str) -> DataError:
    cause = f"its rows have more than {MAX_FILE_COLUMNS:,} fields of different names"
    help = ("declare the columns that the query needs",)
    return DataError(Diagnostic("CQ0802", cause, severity="data error", place=name, help=help))


# Of the types of these values another one tells nothing: a column with a text is VARCHAR, or an array of texts, however
# much its other texts look like times.
_SETTLING = frozenset({Look.WORD, Look.FRACTION, Look.TEXT})
_DATED = re.compile(r"[ \t]*[0-9]{4}-[0-9]{2}-[0-9]{2}")
# how most times are written: their day can be looked up, for many share it
_USUAL_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?\Z"
)
_SHORT = 18  # digits and sign of a number that is a BIGINT, whatever they are
_TIMES = ((Look.DAY, DATE), (Look.TIME, TIMESTAMP))


def _look(value: Any) -> Look:
    """What a value other than null looks like."""
    kind = type(value)
    if kind is str:
        return _look_of_text(value)
    if kind is bytes:
        return Look.WHOLE if len(value) <= _SHORT or _is(value, BIGINT) else Look.LONG_WHOLE
    return _LOOKS[kind]


_LOOKS = {bool: Look.WORD, float: Look.FRACTION, list: Look.LIST, tuple: Look.OBJECT}


def _look_of_text(text: str) -> Look:
    usual = _USUAL_TIME.match(text)
    if usual is not None and _is_day(usual[1]):
        return Look.INSTANT if usual[2] else Look.TIME
    if not _DATED.match(text) or not text.isascii():
        return Look.TEXT
    letters = text.encode()
    found = next((look for look, type_ in _TIMES if _is(letters, type_)), Look.TEXT)
    return Look.INSTANT if found is Look.TIME and names_a_zone(letters) else found


@lru_cache(maxsize=1024)
def _is_day(text: str) -> bool:
    return _is(text.encode(), DATE)


def _is(text: bytes, type_: DataType) -> bool:
    try:
        scanner(type_)(text)
    except UnreadableText:
        return False
    return True


def _column_type(seen: GuessedColumn) -> DataType:
    element = _type(seen.elements)
    alike = seen.elements and (element != VARCHAR or seen.elements <= {Look.TEXT, Look.DAY, Look.TIME, Look.INSTANT})
    return array(element) if alike and seen.values == {Look.LIST} else _type(seen.values)


def _type(shapes: set[Look]) -> DataType:
    if Look.FRACTION in shapes and shapes <= _NUMBERS:
        return DOUBLE
    return _TYPES.get(frozenset(shapes), VARCHAR)
