"""The constraints that the declaration of a stream puts on its rows, checked on whole batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cq.connectors import compute as pc
from cq.connectors.cells import NOT_UTF8
from cq.connectors.protocol import BadRow, DeclaredStream, Piece, Place
from cq.errors import printable
from cq.grammar import inline
from cq.lang.arrow_buffers import from_numpy, valid
from cq.lang.event_time import ColumnTime, column_time
from cq.lang.schema import Field
from cq.lang.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR, DataType, Kind, to_arrow
from cq.records import dataclass, field

SHOWN_CHARS = 60  # characters of a value in a message
SKIPPING = "leave such rows out: WITH (on_error = 'skip'), or cq run -w on_error=skip"
NAMED_COLUMNS = 8  # columns of a declaration in an error: more do not fit on its line
FAR = "the event time it gives is beyond what 64 bits of microseconds hold"
# the types a guess may widen to when a row contradicts it; a list keeps its type
_WIDER = {
    Kind.BIGINT: (DOUBLE, VARCHAR),
    Kind.DOUBLE: (VARCHAR,),
    Kind.BOOLEAN: (VARCHAR,),
    Kind.DATE: (TIMESTAMP, VARCHAR),
    Kind.TIMESTAMP: (VARCHAR,),
}
_WHOLE = re.compile(rb"[ \t]*[+-]?[0-9]+[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class RowFault:
    """Why a row does not fit its stream.

    column: the one at fault; None: the whole row.  wider: as in `BadRow`.  empty: the value is the empty text.
    no_fields: the value replaces the object that should contain the column.  way: a fix to suggest before the others.
    """

    code: str
    message: str
    column: int | None = None
    wider: tuple[DataType, str] | None = None
    empty: bool = False
    no_fields: bool = False
    way: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """fields: as declared.  wanted: positions to deliver, in that order.  codes: texts may be delivered as dictionary
    codes (cq/connectors/dictionary_codes.py).

    guessed_for: the stream, if its columns are guesses, and path, where it is read from.  time: the column that gives
    the event time, if one does. A computed time is checked once it is computed (cq/connectors/event_times.py). schema:
    of the delivered columns, ignoring codes.
    """

    fields: tuple[Field, ...]
    wanted: tuple[int, ...]
    time: ColumnTime | None
    guessed_for: str = ""
    path: str = ""
    codes: bool = False
    schema: pa.Schema = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = [pa.field(self.fields[i].name, to_arrow(self.fields[i].type)) for i in self.wanted]
        object.__setattr__(self, "schema", pa.schema(columns))

    @classmethod
    def of(cls, stream: DeclaredStream, wanted: Sequence[int] | None = None, codes: bool = False) -> Rules:
        """The rules of a stream; without `wanted`, all columns are delivered."""
        chosen = tuple(range(len(stream.fields))) if wanted is None else tuple(wanted)
        guessed_for = stream.name if stream.inferred else ""
        path = dict(stream.options).get("path", "")
        return cls(stream.fields, chosen, column_time(stream.event_time), guessed_for, path, codes)

    def is_time(self, column: int) -> bool:
        """Whether the event time is in this column."""
        return self.time is not None and self.time.column == column

    @property
    def ranged(self) -> ColumnTime | None:
        """The event time's column, if some of its values give an event time beyond 64 bits."""
        return self.time if self.time is not None and self.time.unit_us > 1 else None

    def out_of_range(self, column: int, physical: Any) -> bool:
        """Whether some value gives an event time beyond 64 bits."""
        time = self.ranged
        if time is None or time.column != column or physical is None:
            return False
        return not time.least <= physical <= time.greatest

    def demands_value(self, column: int) -> bool:
        """Whether NULL in this column makes a row bad."""
        return self.is_time(column) or not self.fields[column].nullable

    def null(self, column: int) -> tuple[str, str]:
        """(code, message) for a NULL in a column that demands a value."""
        name = printable(self.fields[column].name)
        if self.is_time(column):
            return "CQ0703", f"the event time is NULL: column {name}"
        return "CQ0704", f"column {name} is NOT NULL and has no value here"

    def unreadable(self, column: int, shown: str, why: str = "") -> tuple[str, str]:
        """(code, message) for a value that is not of its column's type."""
        declared = self.fields[column]
        tail = f": {why}" if why else ""
        message = f"cannot read '{shown}' as {declared.type} in column {printable(declared.name)}{tail}"
        return ("CQ0703" if self.is_time(column) else "CQ0702"), message

    def wider(self, column: int, text: bytes, holds: Callable[[DataType], bool]) -> tuple[DataType, str] | None:
        """The type that the column would need for this value, if its type is a guess and there is such a type.

        holds: whether a type holds the value. Whole numbers beyond BIGINT are labels: no DOUBLE has their digits.
        """
        types = _WIDER.get(self.fields[column].type.kind, ()) if self.guessed_for else ()
        fit = (t for t in types if (t != DOUBLE or not _WHOLE.match(text)) and holds(t))
        return next(((t, shown(text)) for t in fit), None)

    def bad_row(self, before: int, line: int, fault: RowFault, raw: bytes) -> BadRow:
        """A row at fault, with what to do about it."""
        if fault.column is None:
            ways = (fault.way, f"or {SKIPPING}") if fault.way else (SKIPPING,)
            return BadRow(before, line, fault.code, fault.message, "", raw, ways)
        name, advice = self.fields[fault.column].name, self._advice(fault, fault.column)
        return BadRow(before, line, fault.code, fault.message, name, raw, advice, wider=fault.wider)

    def _advice(self, fault: RowFault, column: int) -> tuple[str, ...]:
        """The fixes to suggest for a value at fault; if its type was a guess, the declaration to write."""
        name, type_ = self.fields[column].name, self.fields[column].type
        if fault.no_fields:
            first, _, path = name.partition(".")
            whole = inline.name(first)
            return (f"declare all of it: {whole} VARCHAR, and write {whole} ->> {inline.string(f'$.{path}')}",)
        if fault.message.endswith(NO_TEXT):
            return (
                f"declare it BINARY: {inline.name(name)} BINARY, or leave the column out",
                f"or {SKIPPING}",
            )
        if fault.message.endswith(NOT_UTF8):
            return ("convert the text to UTF-8 first, such as with iconv -f LATIN1 -t UTF-8", f"or {SKIPPING}")
        if (fault.code, fault.message) == self.null(column):
            return (SKIPPING,) if self.is_time(column) else ()
        if self.guessed_for:
            return self._guess(fault, name, type_)
        if fault.empty:
            return (
                f"declare it VARCHAR, and write TRY_CAST(NULLIF({inline.name(name)}, '') AS {type_}) where it is used",
            )
        return ()

    def _guess(self, fault: RowFault, name: str, type_: DataType) -> tuple[str, ...]:
        """What to declare instead of a guessed type."""
        if fault.wider is None and type_ == BIGINT:  # unsigned 64-bit; text beyond BIGINT is wider
            return (f"declare it: {self._declaration(name, DataType(Kind.DECIMAL, 20, 0))}",)
        wider = fault.wider[0] if fault.wider else VARCHAR
        read, cast = f"; then read FROM {inline.name(self.guessed_for)}", f"TRY_CAST({inline.name(name)} AS {type_})"
        used = f"{read}, and write {cast} where {inline.name(name)} is used" if wider == VARCHAR else read
        declared = self._declaration(name, wider)
        return (f"the type was inferred from the first rows; declare it: {declared}{used}", f"or {SKIPPING}")

    def _declaration(self, name: str, type_: DataType) -> str:
        """How to declare another type for a column: the whole statement, if it has few columns and no watermark."""
        few = len(self.fields) <= NAMED_COLUMNS and self.time is None
        columns = [f"{inline.name(f.name)} {type_ if f.name == name else f.type}" for f in self.fields]
        listed = ", ".join(columns) if few else f"{inline.name(name)} {type_}, …"
        read = f" WITH (path = {inline.string(self.path)})" if self.path and few else ""
        return f"CREATE STREAM {inline.name(self.guessed_for)} ({listed}){read}"

    def nothing(self) -> pa.RecordBatch:
        """A batch without rows."""
        return self.deliver({i: pa.nulls(0, to_arrow(self.fields[i].type)) for i in self.wanted}, 0)

    def deliver(self, columns: dict[int, pa.Array], rows: int) -> pa.RecordBatch:
        """The wanted columns as a batch; without columns it still has its number of rows."""
        if not self.wanted:
            return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
        arrays = [columns[i] for i in self.wanted]
        coded = any(pa.types.is_dictionary(array.type) for array in arrays)
        schema = pa.schema(zip(self.schema.names, [a.type for a in arrays], strict=True)) if coded else self.schema
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def shown(value: bytes | str) -> str:
    """A value as messages show it: short, on one line, with nothing that a terminal would act on."""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return printable(text[:SHOWN_CHARS]) + ("…" if len(text) > SHOWN_CHARS else "")


Convert = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column of a self-describing input on its way to its declared type.

    column: position in the declaration.  convert: raises ArrowInvalid or OverflowError when some value has no
    counterpart in the declared type; None when the column has that type already.
    """

    column: int
    convert: Convert | None = None


@dataclass(frozen=True, slots=True)
class AsTheyAre:
    """Delivers the batches of an input in which nothing has to be converted in a third of the time of `typed_piece`.

    wanted: the positions in the input of the delivered columns.  demanded: those of columns that must have values.
    names: of the delivered columns.
    """

    wanted: list[int]
    demanded: list[int]
    names: list[str]

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The wanted columns; None if some row may be at fault."""
        if any(batch.column(at).null_count for at in self.demanded):
            return None
        found = batch.select(self.wanted)
        return found if found.schema.names == self.names else found.rename_columns(self.names)


def as_they_are(rules: Rules, matched: Sequence[tuple[int, TypedColumn]]) -> AsTheyAre | None:
    """None if a value has to be converted or checked, or no column is wanted.

    matched: as `conversion.match_columns` returns it.
    """
    if not rules.wanted or rules.ranged is not None or any(c.convert is not None for _, c in matched):
        return None
    at = {c.column: place for place, c in matched}
    demanded = [place for place, c in matched if rules.demands_value(c.column)]
    return AsTheyAre([at[column] for column in rules.wanted], demanded, rules.schema.names)


def typed_piece(rules: Rules, columns: dict[int, pa.Array], typed: Sequence[TypedColumn], place: Place) -> Piece:
    """Convert and check the columns of one batch: bad rows leave it, the rest is delivered."""
    rows = len(next(iter(columns.values()))) if columns else 0
    good = dict(columns)
    faults: dict[int, tuple[int, str, str]] = {}  # row -> (column, code, message): the first column at fault
    for t in typed:
        array = columns[t.column]
        if t.convert is not None:
            good[t.column], failed = _convert(array, t.convert)
            for row in failed:
                _note(faults, row, t.column, *_unreadable(rules, t.column, plain_value(array[row])))
        if rules.demands_value(t.column) and good[t.column].null_count:
            failed_before = {row for row, fault in faults.items() if fault[0] == t.column}
            for row in np.flatnonzero(~valid(good[t.column])).tolist():
                if row not in failed_before:
                    _note(faults, row, t.column, *rules.null(t.column))
    _check_time_range(rules, good, faults)
    if not faults:
        return Piece(rules.deliver(good, rows), place)
    return _without(rules, good, columns, faults, rows, place)


def _check_time_range(rules: Rules, columns: dict[int, pa.Array], faults: dict[int, tuple[int, str, str]]) -> None:
    """Note the rows whose event time would not fit 64 bits."""
    time = rules.ranged
    if time is None or time.column not in columns:
        return
    column, least, greatest = time.column, time.least, time.greatest
    values = columns[column].cast(pa.int32()) if pa.types.is_date(columns[column].type) else columns[column]
    extremes = pc.min_max(values).as_py()
    if extremes["min"] is None or (extremes["min"] >= least and extremes["max"] <= greatest):
        return
    for row, value in enumerate(values.to_pylist()):
        if rules.out_of_range(column, value):
            _note(faults, row, column, *rules.unreadable(column, str(value), FAR))


def plain_value(value: pa.Scalar) -> Any:
    """The value in Python; a time beyond Python's years, or in an unknown zone, as its number of units."""
    try:
        return value.as_py()
    except (OverflowError, ValueError, KeyError):
        return getattr(value, "value", None)


NO_TEXT = "its bytes are not UTF-8"  # for a self-describing file


def _unreadable(rules: Rules, column: int, value: Any) -> tuple[str, str]:
    why = NO_TEXT if _has_bytes(value) else ""
    return rules.unreadable(column, shown(value if isinstance(value, bytes) else str(value)), why)


def _has_bytes(value: Any) -> bool:
    return isinstance(value, bytes) or (isinstance(value, list) and any(map(_has_bytes, value)))


def recorded(value: Any, type_: DataType) -> Any:
    """A value as the records of bad rows show it in JSON."""
    if isinstance(value, list) and type_.element is not None:
        return [recorded(v, type_.element) for v in value]
    return value.hex().upper() if isinstance(value, bytes) and type_.kind is Kind.BINARY else value


def _in_json(value: Any) -> str:
    """Convert what JSON has no form for."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _note(faults: dict[int, tuple[int, str, str]], row: int, column: int, code: str, message: str) -> None:
    if row not in faults or column < faults[row][0]:
        faults[row] = (column, code, message)


def _without(
    rules: Rules,
    good: dict[int, pa.Array],
    columns: dict[int, pa.Array],
    faults: dict[int, tuple[int, str, str]],
    rows: int,
    place: Place,
) -> Piece:
    at_fault = np.array(sorted(faults), np.int64)
    keep = np.setdiff1d(np.arange(rows, dtype=np.int64), at_fault)
    bad = []
    for order, row in enumerate(at_fault.tolist()):
        column, code, message = faults[row]
        shown_fields = [(i, rules.fields[i]) for i in sorted(columns)]
        record = {f.name: recorded(plain_value(columns[i][row]), f.type) for i, f in shown_fields}
        raw = json.dumps(record, default=_in_json, ensure_ascii=False).encode("utf-8", "backslashreplace")
        bad.append(rules.bad_row(row - order, place.line(row), RowFault(code, message, column), raw))
    kept = {i: array.take(from_numpy(keep)) for i, array in good.items()}
    return Piece(rules.deliver(kept, len(keep)), place.take(keep), tuple(bad))


def _convert(array: pa.Array, convert: Convert) -> tuple[pa.Array, list[int]]:
    """The converted column and the rows whose values could not be converted; those are NULL in it."""
    try:
        return convert(array), []
    except (pa.ArrowInvalid, OverflowError, UnicodeDecodeError):
        pass
    pieces: list[pa.Array] = []
    failed: list[int] = []
    todo = [(0, len(array))]
    target = convert(array.slice(0, 0)).type
    while todo:  # halves that convert are taken whole, the others are halved again, first half first
        start, stop = todo.pop()
        try:
            pieces.append(convert(_alone(array, start, stop)))
        except (pa.ArrowInvalid, OverflowError, UnicodeDecodeError):
            if stop - start == 1:
                failed.append(start)
                pieces.append(pa.nulls(1, target))
            else:
                middle = (start + stop) // 2
                todo += [(middle, stop), (start, middle)]
    return pa.concat_arrays(pieces), failed


def _alone(array: pa.Array, start: int, stop: int) -> pa.Array:
    """Rows start to stop, without the elements of others, which Arrow would convert with those of a slice of lists."""
    if not array.type.num_fields:
        return array.slice(start, stop - start)
    return array.take(from_numpy(np.arange(start, stop, dtype=np.int64)))


def has_text_form(kind: Kind) -> bool:
    """Whether a column of this kind can be read from CSV."""
    return kind not in {Kind.ARRAY, Kind.INTERVAL_MONTH, Kind.NULL}
