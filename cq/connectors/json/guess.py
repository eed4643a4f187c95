"""The columns of JSON lines that nobody declared: the fields of the first lines, each with the narrowest type that
changes none of its values. An array of numbers, words or texts is one; any other, and an object, is its JSON text."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from cq.connectors.cells import Unreadable, scanner
from cq.connectors.csv.source import MAX_FILE_COLUMNS
from cq.connectors.json.rows import NoObject, Value, elements, members
from cq.connectors.protocol import damaged
from cq.errors import DataError, Diagnostic
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, VARCHAR, DataType, array


class Shape(Enum):
    """What a value looks like."""

    WORD = auto()  # true or false
    WHOLE = auto()
    LONG_WHOLE = auto()  # beyond BIGINT
    FRACTION = auto()
    DAY = auto()
    TIME = auto()
    TEXT = auto()
    LIST = auto()
    NESTED = auto()  # an object, or in an array another one


class Seen(NamedTuple):
    """What the values of a column look like, and the elements of its arrays."""

    values: set[Shape]
    elements: set[Shape]


_TYPES = {
    frozenset({Shape.WORD}): BOOLEAN,
    frozenset({Shape.WHOLE}): BIGINT,
    frozenset({Shape.DAY}): DATE,
    frozenset({Shape.TIME}): TIMESTAMP,
    frozenset({Shape.DAY, Shape.TIME}): TIMESTAMP,
}
_NUMBERS = {Shape.WHOLE, Shape.LONG_WHOLE, Shape.FRACTION}


def guessed_fields(text: bytes, name: str) -> tuple[Field, ...]:
    """The columns of lines, in the order in which their fields appear. Lines that are no objects say nothing."""
    seen: dict[str, Seen] = {}
    for line in _rows(text):
        for column, value in line:
            shapes = seen.setdefault(column, Seen(set(), set()))
            if value is None:
                continue
            shapes.values.add(_shape(value))
            if value.json[:1] == b"[":
                inside = (_shape(e) for e in elements(value.json) if e is not None)
                shapes.elements.update(Shape.NESTED if e is Shape.LIST else e for e in inside)
        if len(seen) > MAX_FILE_COLUMNS:
            cause = f"its rows have more than {MAX_FILE_COLUMNS:,} fields of different names"
            help = ("declare the columns that the query needs",)
            raise DataError(Diagnostic("CQ0802", cause, severity="data error", place=name, help=help))
    if not seen:
        what = "has no line with an object that has fields" if text.strip() else "is empty"
        raise damaged(name, f"the file {what}, so its columns cannot be known", "declare the columns")
    return tuple(Field(column, _column_type(shapes)) for column, shapes in seen.items())


def _rows(text: bytes) -> Iterable[list[tuple[str, Value | None]]]:
    for line in text.split(b"\n"):
        try:
            line.decode()
            yield members(line)
        except (NoObject, UnicodeDecodeError):
            continue


def _shape(value: Value) -> Shape:
    if value.is_nested:
        return Shape.LIST if value.json[:1] == b"[" else Shape.NESTED
    if value.is_text:
        return next((shape for shape, type_ in _TIMES if _is(value, type_)), Shape.TEXT)
    if value.json in {b"true", b"false"}:
        return Shape.WORD
    if value.json.lstrip(b"-").isdigit():
        return Shape.WHOLE if _is(value, BIGINT) else Shape.LONG_WHOLE
    return Shape.FRACTION


_TIMES = ((Shape.DAY, DATE), (Shape.TIME, TIMESTAMP))


def _is(value: Value, type_: DataType) -> bool:
    try:
        scanner(type_)(value.text)
    except Unreadable:
        return False
    return True


def _column_type(seen: Seen) -> DataType:
    element = _type(seen.elements)
    alike = seen.elements and (element != VARCHAR or seen.elements <= {Shape.TEXT, Shape.DAY, Shape.TIME})
    return array(element) if alike and seen.values == {Shape.LIST} else _type(seen.values)


def _type(shapes: set[Shape]) -> DataType:
    if Shape.FRACTION in shapes and shapes <= _NUMBERS:
        return DOUBLE
    return _TYPES.get(frozenset(shapes), VARCHAR)
