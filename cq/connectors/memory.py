"""Inputs that are already in memory: Arrow, pandas, polars, anything with `__arrow_c_stream__`, lists of dicts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as t

from cq.connectors.arrow.source import arrow_pieces
from cq.connectors.mixed import in_words, mixed, untaken
from cq.connectors.nested import flat_batch, flat_row, flat_schema, tops_of
from cq.connectors.physical_rows import batch_of
from cq.connectors.protocol import Piece, told_apart
from cq.connectors.requests import Opened, SourceRequest
from cq.connectors.rules import Rules
from cq.errors import Diagnostic, UsageError, did_you_mean
from cq.hints import face
from cq.lang.schema import Field
from cq.lang.types import Kind, to_arrow
from cq.lang.zones import zone_of

# rows per batch whose values need no check: handing one over takes 0.1 ms of Python, during which the engine's other
# threads wait for the interpreter. Files keep to READ_ROWS, since several of their batches are read ahead.
READY_ROWS = 1 << 20

_MOMENT_0 = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def as_reader(given: Any, fields: Sequence[Field] | None, name: str) -> pa.RecordBatchReader:
    """A reader over whatever was passed in; CQ0602 names the accepted types."""
    try:
        return _told_apart(_reader(given, fields, name))
    except (pa.ArrowException, TypeError, ValueError) as e:
        words = str(e).splitlines()[0][:200] if str(e) else type(e).__name__
        raise UsageError(Diagnostic("CQ0602", f"stream {name} cannot be read as columns: {words}")) from None


def _told_apart(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows, with unique column names."""
    written = reader.schema.names
    if len(set(written)) == len(written):
        return reader
    names = told_apart(written)
    schema = pa.schema([f.with_name(n) for f, n in zip(reader.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(names) for batch in reader))


def is_kept(given: Any) -> bool:
    """Whether the rows of an object in memory can be read again."""
    of_frames = type(given).__module__.split(".")[0] in {"pandas", "polars"}
    return of_frames or isinstance(given, pa.Table | pa.RecordBatch | Sequence | Mapping)


def rows_of(given: Any) -> int | None:
    """How many rows an object in memory has; None if it does not say."""
    if isinstance(given, pa.Table | pa.RecordBatch):
        return int(given.num_rows)
    if isinstance(given, Mapping):
        return max((len(c) for c in given.values() if hasattr(c, "__len__")), default=None)
    if isinstance(given, Sequence) and any(isinstance(r, pa.RecordBatch) for r in given):
        return sum(int(b.num_rows) for b in given if isinstance(b, pa.RecordBatch))
    return len(given) if is_kept(given) and hasattr(given, "__len__") else None


def _reader(given: Any, fields: Sequence[Field] | None, name: str) -> pa.RecordBatchReader:
    match given:
        case pa.RecordBatchReader():
            return given
        case pa.Table():
            return given.to_reader()
        case pa.RecordBatch():
            return pa.RecordBatchReader.from_batches(given.schema, [given])
    package = type(given).__module__.split(".")[0]
    if package == "polars" and hasattr(given, "iter_columns"):
        return _from_polars(given, fields, name)
    if hasattr(given, "__arrow_c_stream__") and package != "pandas":
        return pa.RecordBatchReader.from_stream(given)
    if package == "pandas" and hasattr(given, "columns"):
        return _from_frame(given, fields, name)
    if isinstance(given, Mapping):
        return _from_rows(_columns_to_rows(given, name), fields, name, by_column=True)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        if given and all(isinstance(b, pa.RecordBatch) for b in given):
            return pa.RecordBatchReader.from_batches(given[0].schema, given)
        if all(isinstance(r, Mapping) for r in given):
            return _from_rows(given, fields, name)
    ways = {"LazyFrame": "collect it: frame.collect()", "Series": "make it a frame: series.to_frame()"}
    raise UsageError(
        Diagnostic(
            "CQ0602",
            f"stream {name} cannot be read from a value of type {type(given).__name__}",
            help=(ways[type(given).__name__],)
            if type(given).__name__ in ways
            else ("pass a path, an Arrow table, batch or reader, a pandas or polars frame, or a list of dicts",),
        )
    )


def _from_polars(frame: Any, fields: Sequence[Field] | None, name: str) -> pa.RecordBatchReader:
    """A polars frame, taking only the columns that may hold the fields."""
    if fields is not None and not fields:
        return _only_rows(len(frame))
    tops = set() if fields is None else tops_of(fields)
    frame = frame.select([c for c in frame.columns if c.lower() in tops] or frame.columns)
    try:
        return pa.RecordBatchReader.from_stream(frame)
    except (pa.ArrowException, TypeError):
        parts = [_polars_column(frame.select([c]), c, c.lower() in tops, name) for c in frame.columns]
    schema = pa.schema([f for part in parts for f in part.schema])
    return pa.Table.from_arrays([c for part in parts for c in part.columns], schema=schema).to_reader()


def _polars_column(frame: Any, column: str, is_read: bool, name: str) -> pa.Table:
    """A frame of one column as a table; CQ0602 if it is read and Arrow does not support its type."""
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError):
        said = f"the polars type {frame.dtypes[0]}"
        way = f"make it text: {name} = {name}.with_columns({name}[{column!r}].cast(str))"
        if is_read:
            cause = f"stream {name}: column {column} is of {said}, which Arrow does not support"
            raise UsageError(Diagnostic("CQ0602", cause, help=(way,))) from None
        return pa.Table.from_arrays([pa.nulls(len(frame))], schema=pa.schema([untaken(column, said, way)]))


def _from_frame(frame: Any, fields: Sequence[Field] | None, name: str) -> pa.RecordBatchReader:
    """A pandas frame, converting only the columns that may hold the fields."""
    if fields is not None and not fields:
        return _only_rows(len(frame))
    if not frame.columns.is_unique:
        frame = frame.set_axis(told_apart(list(map(str, frame.columns))), axis="columns")
    if fields is not None:
        tops = tops_of(fields)
        frame = frame[[c for c in frame.columns if str(c).lower() in tops] or list(frame.columns)]
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    except (pa.ArrowException, TypeError, OverflowError):
        parts = [_series(frame[[column]], str(column), fields, name) for column in frame.columns]
    schema = pa.schema([f for part in parts for f in part.schema])
    return pa.Table.from_arrays([c for part in parts for c in part.columns], schema=schema).to_reader()


def _series(frame: Any, column: str, fields: Sequence[Field] | None, name: str) -> pa.Table:
    """A frame of one column as a table; CQ0602 if it is read and its values have several types."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, OverflowError):
        values = list(frame.iloc[:, 0])
        way = f"make them texts: {name}[{column!r}] = {name}[{column!r}].astype('string')"
        if fields is not None:
            raise _several_types(name, column, values, way) from None
        return pa.Table.from_arrays([pa.nulls(len(values))], schema=pa.schema([mixed(column, values, way)]))


def _several_types(name: str, column: str, values: Sequence[Any], way: str) -> UsageError:
    cause = f"stream {name}: column {column} has {in_words(values)}"
    return UsageError(Diagnostic("CQ0602", cause, help=(way,)))


def _only_rows(rows: int) -> pa.RecordBatchReader:
    """This many rows without columns."""
    batch = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _columns_to_rows(columns: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    except (TypeError, ValueError):
        raise UsageError(Diagnostic("CQ0602", f"stream {name}: the columns of the dict differ in length")) from None


def _from_rows(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[Field] | None, name: str, by_column: bool = False
) -> pa.RecordBatchReader:
    """Rows as a table; with a declaration, columns have its types where Arrow can convert; without one, Arrow
    guesses."""
    if fields is None:
        if not any(rows):
            cause = f"stream {name} has no rows, so its columns cannot be known"
            raise UsageError(Diagnostic("CQ0602", cause, help=("declare them: CREATE STREAM …",)))
        names = dict.fromkeys(n for row in rows for n in row)
        made = [_plain([row.get(n) for row in rows], str(n), _as_texts(n, name, by_column)) for n in names]
        return pa.Table.from_arrays([a for _, a in made], schema=pa.schema([f for f, _ in made])).to_reader()
    if not fields:
        return _only_rows(len(rows))
    if any("." in f.name for f in fields):
        rows = [flat_row(row) for row in rows]
    _demand_names(rows, [f.name for f in fields], name)
    columns = []
    for f in fields:
        values = [r.get(f.name) for r in rows]
        if f.type.kind is Kind.TIMESTAMP_LTZ:
            values = [_in_utc(v, f.type.zone) for v in values]
        try:
            columns.append(pa.array(values, to_arrow(f.type)))
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            columns.append(_guessed(values, f, name, _as_texts(f.name, name, by_column)))
    return pa.Table.from_arrays(columns, names=[f.name for f in fields]).to_reader()


def _in_utc(value: Any, zone: str) -> Any:
    """A datetime without a zone, taken to be in this one, as UTC; anything else unchanged."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is not None:
        return value
    local = (value - _MOMENT_0) // _MICROSECOND
    utc: datetime.datetime = _MOMENT_0 + (local - zone_of(zone).offset_of(local)) * _MICROSECOND
    return utc.replace(tzinfo=datetime.UTC)


def _plain(values: list[Any], column: str, way: str) -> tuple[pa.Field, pa.Array]:
    """The values in the type Arrow infers for them; without values where it finds none. way: how to convert them to
    texts."""
    try:
        found = pa.array(values)
        return pa.field(column, found.type), found
    except (pa.ArrowException, TypeError, OverflowError):
        return mixed(column, values, way), pa.nulls(len(values))


def _as_texts(column: Any, name: str, by_column: bool) -> str:
    """How to convert the values of a column to texts: in a dict of columns, or in a list of rows."""
    if by_column:
        text = "None if v is None else str(v)"
        return f"make them texts: {name}[{column!r}] = [{text} for v in {name}[{column!r}]]"
    value = f"None if row.get({column!r}) is None else str(row[{column!r}])"
    return f"make them texts: {name} = [{{**row, {column!r}: {value}}} for row in {name}]"


def _demand_names(rows: Sequence[Mapping[str, Any]], declared: list[str], name: str) -> None:
    """CQ0603 for a declared column that no row has while rows have undeclared ones; other missing keys are NULL.

    A field of a struct exists where its struct does: a key the struct lacks is NULL.
    """
    given = dict.fromkeys(n for row in rows for n in row)
    others = [n for n in given if n not in declared]
    for column in declared if others else ():
        if column not in given and column.partition(".")[0] not in given:
            guess, listing = did_you_mean(column, map(str, others)), f"its columns: {', '.join(map(str, given))}"
            cause = f"stream {name} has no column {column!r}"
            raise UsageError(Diagnostic("CQ0603", cause, help=tuple(h for h in (guess, listing) if h)))


def _guessed(values: list[Any], field: Field, name: str, way: str) -> pa.Array:
    """The values in a type inferred from them, so that the checks find which do not fit."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        raise _several_types(name, field.name, values, way) from None


def open_memory(asked: SourceRequest) -> Opened:
    """The rows of the object passed by a program; CQ0602 if none was."""
    if asked.given is None:
        ways = (face().giving(asked.stream), "declare where its rows are: WITH (path = '…')")
        raise UsageError(
            Diagnostic("CQ0602", f"stream {asked.stream} has no source", help=tuple(way for way in ways if way))
        )
    return Opened(read_memory(asked.given, asked.stream, asked.rules), None, None, rows_of(asked.given))


def read_memory(given: Any, name: str, rules: Rules, first: int = 1) -> Iterator[Piece]:
    """The rows of an object in memory as pieces; their place is `<name>:row`, counted from `first`."""
    reader = as_reader(given, rules.fields, name)
    yield from arrow_pieces(flat_schema(reader.schema), _checked(reader), f"<{name}>", rules, first, READY_ROWS)


def read_constants(rows: Sequence[Sequence[Any]], name: str, rules: Rules) -> Iterator[Piece]:
    """The rows written in a query; their place is `<name>:row`."""
    batch = batch_of(rows, rules.fields)
    yield from arrow_pieces(batch.schema, iter((batch,)), f"<{name}>", rules)


def _checked(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Trust the caller's memory as the caller is trusted; check only lengths and sizes."""
    opened = any(t.is_struct(type_) for type_ in reader.schema.types)
    for batch in reader:
        batch.validate()
        yield flat_batch(batch) if opened else batch
