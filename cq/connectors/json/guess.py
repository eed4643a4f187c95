"""The columns of undeclared JSON lines: the fields of the first lines, each with the narrowest type that changes none
of its values. The fields of an object are columns named by their paths, unless it looks like a map. An array of
numbers, words or texts is an array. Everything else is its JSON text."""

from __future__ import annotations

from collections.abc import Iterator

from cq.connectors.csv.source import MAX_FILE_COLUMNS
from cq.connectors.json.looks import MOST_LEVELS, Fields, Look, Seen, line_fields, text_look
from cq.connectors.json.rows import ONE_LINE
from cq.connectors.protocol import damaged
from cq.errors import DataError, Diagnostic
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, UTC_INSTANT, VARCHAR, DataType, array

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


class GuessedColumn:
    """What the values of a field look like, including the fields of its objects."""

    __slots__ = ("columns", "elements", "odd", "values")

    def __init__(self) -> None:
        self.values: set[Look] = set()
        self.elements: set[Look] = set()
        self.columns: dict[str, GuessedColumn] = {}
        self.odd = False  # whether some object has a field that no path reaches

    def see(self, value: Seen, levels: int) -> None:
        """Note one value that is not null. levels: how deep to look into objects inside it."""
        if isinstance(value, str):
            if Look.TEXT not in self.values:  # what else texts look like changes nothing then
                self.values.add(text_look(value))
        elif isinstance(value, list):
            self.values.add(Look.LIST)
            self.elements.update(_element(e) for e in value if e is not None)
        elif isinstance(value, tuple):
            self.values.add(Look.OBJECT)
            if not self.odd:
                self.odd = levels == 0
                self._see_fields(value, levels)
        else:
            self.values.add(Look.WORD if isinstance(value, bool) or value is None else value)

    def _see_fields(self, fields: Fields, levels: int) -> None:
        for name, value in fields:
            if not name or "." in name or len(self.columns) > MOST_KEYS:
                self.odd = True
            column = column_of(self.columns, name)
            if value is not None:
                column.see(value, levels - 1)

    def fields(self, path: str) -> Iterator[Field]:
        """The columns for this field: one, or those of its fields."""
        if self.columns and self.values == {Look.OBJECT} and not self.odd:
            for name, column in self.columns.items():
                yield from column.fields(f"{path}.{name}")
        else:
            yield Field(path, _column_type(self))


def column_of(columns: dict[str, GuessedColumn], name: str) -> GuessedColumn:
    """The column of this name, a new one if there is none. Halves of surrogate pairs are escaped in its label."""
    column = columns.get(name)
    if column is None:
        label = name.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
        column = columns.setdefault(label, GuessedColumn())
    return column


def _element(value: Seen) -> Look:
    if isinstance(value, str):
        return text_look(value)
    if isinstance(value, list | tuple):
        return Look.NESTED
    return value if isinstance(value, Look) else Look.WORD


# A line of text is no JSON; numbers and names begin a CSV file.
_NO_JSON = "if it is not JSON, leave format = 'json' out, or say which it is: cq run -w format=csv"


def guessed_fields(text: bytes, name: str) -> tuple[Field, ...]:
    """The columns of lines, in the order in which their fields appear. Lines that are not objects are ignored."""
    seen: dict[str, GuessedColumn] = {}
    for line in text.split(b"\n"):
        for label, value in line_fields(line) or ():
            column = column_of(seen, label)
            if value is not None:
                column.see(value, MOST_LEVELS)
        if len(seen) > MAX_FILE_COLUMNS:
            raise _too_wide(name)
    if not seen:
        begins = text.lstrip()[:1]
        what = "has no line with an object that has fields" if begins else "is empty"
        way = "declare the columns" if not begins else ONE_LINE if begins == b"{" else _NO_JSON
        raise damaged(name, f"the file {what}, so its columns cannot be known", way)
    found: dict[str, Field] = {}
    for label, column in seen.items():
        column.odd = column.odd or not label or "." in label
        for field in column.fields(label):
            same = found.get(field.name)  # "a.b" is both the name of a field and the path to another one
            found[field.name] = field if same is None or same == field else Field(field.name, VARCHAR)
    if len(found) > MAX_FILE_COLUMNS:
        raise _too_wide(name)
    return tuple(found.values())


def _too_wide(name: str) -> DataError:
    cause = f"its rows have more than {MAX_FILE_COLUMNS:,} fields of different names"
    help = ("declare the columns that the query needs",)
    return DataError(Diagnostic("CQ0802", cause, severity="data error", place=name, help=help))


def _column_type(seen: GuessedColumn) -> DataType:
    element = _type(seen.elements)
    alike = seen.elements and (element != VARCHAR or seen.elements <= {Look.TEXT, Look.DAY, Look.TIME, Look.INSTANT})
    return array(element) if alike and seen.values == {Look.LIST} else _type(seen.values)


def _type(shapes: set[Look]) -> DataType:
    if Look.FRACTION in shapes and shapes <= _NUMBERS:
        return DOUBLE
    return _TYPES.get(frozenset(shapes), VARCHAR)
