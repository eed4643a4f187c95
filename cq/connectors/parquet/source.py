"""Parquet sources: row group by row group, decoding only the columns that are wanted or whose values must be checked.

A declared column that nobody reads is still checked: by its type, and by the file's own statistics where it is NOT NULL
or must be converted; it is decoded when those prove nothing. A query that reads no column (COUNT(*)) decodes the
smallest one: the footer alone does not prove that the row groups are there and readable.

Texts stored as dictionary codes stay codes where the engine takes them.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.types as t
from pyarrow import parquet

from cq.connectors.column_tracks import ColumnTracks, Track
from cq.connectors.conversion import conversion, match_columns, never_fails, sound
from cq.connectors.nested import flat_batch, flat_schema
from cq.connectors.parallel import cores
from cq.connectors.protocol import READ_ROWS, ColumnNames, Piece, Place, Report, damaged, to_nobody
from cq.connectors.rules import Rules, TypedColumn, typed_piece
from cq.errors import DataError
from cq.lang.types import Kind
from cq.records import dataclass

ROWS_TOGETHER = 4 * READ_ROWS  # rows of small row groups: opening one costs as much as decoding 10,000 values
READ_BYTES = 1 << 20  # bytes of a column read at once: memory use must not grow with the row groups
# A column of texts with more bytes per value is not all codes (a text in a page starts with four bytes for its length),
# or few of the texts in its dictionaries occur twice. Read as codes, its texts would be looked up in a table of all of
# them.
MOST_CODE_BYTES = 4
MAX_STREAMS = 8  # columns decoded separately; more are grouped, so that buffers do not grow with the columns


def read_parquet(file: pa.NativeFile, name: str, rules: Rules, report: Report = to_nobody) -> Iterator[Piece]:
    """The rows of one file as pieces; CQ0701 when it is damaged, CQ0603 when it does not fit the declaration."""
    try:
        opened = _open(file)
        schema = flat_schema(opened.schema_arrow)
        coded = _coded_columns(opened.metadata, schema, rules)
        if coded:
            opened = _open(file, opened.metadata, coded)
            schema = flat_schema(opened.schema_arrow)
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, _cause(e, "Parquet")) from None
    matched = match_columns(name, schema, rules.fields, rules.codes)
    looked_at = [
        (at, column)
        for at, column in matched
        if column.column in rules.wanted or _must_look(opened, schema, at, column.column, rules)
    ]
    row = 1
    try:
        read = [schema.names[at] for at, _ in looked_at] or _smallest(
            opened.metadata, [schema.names[at] for at, _ in matched] or schema.names
        )
        with closing(_columns(file, opened, read, coded, name)) as batches:
            for batch in batches:
                yield _piece(batch, [c for _, c in looked_at], rules, Place(name, row))
                row += batch.num_rows
                report((row - 1) / opened.metadata.num_rows)
    except DataError:
        raise
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, f"{_cause(e, 'Parquet')} (after row {row - 1:,})") from None


def _open(
    file: pa.NativeFile, metadata: parquet.FileMetaData | None = None, coded: Sequence[str] = ()
) -> parquet.ParquetFile:
    """coded: columns to read as dictionary codes."""
    return parquet.ParquetFile(
        file, metadata=metadata, buffer_size=READ_BYTES, page_checksum_verification=True, read_dictionary=list(coded)
    )


def _coded_columns(metadata: parquet.FileMetaData, schema: pa.Schema, rules: Rules) -> tuple[str, ...]:
    """The wanted text columns that are stored entirely, or almost entirely, as codes."""
    if not rules.codes:
        return ()
    there = ColumnNames(schema.names)
    found = (there.find(rules.fields[i].name) for i in rules.wanted if rules.fields[i].type.kind is Kind.VARCHAR)
    texts = {schema.names[at] for at in found if at is not None and t.is_string(schema.types[at])}
    leaves = [metadata.schema.column(number).path for number in range(metadata.num_columns)] if texts else []
    return tuple(name for name in leaves if name in texts and _is_coded(metadata, leaves.index(name)))


def _is_coded(metadata: parquet.FileMetaData, leaf: int) -> bool:
    chunks = [metadata.row_group(number).column(leaf) for number in range(metadata.num_row_groups)]
    values = sum(c.num_values for c in chunks)
    small = sum(c.total_uncompressed_size for c in chunks) <= MOST_CODE_BYTES * values
    return small and all(c.has_dictionary_page for c in chunks)


def _columns(
    file: pa.NativeFile, opened: parquet.ParquetFile, names: Sequence[str], coded: Sequence[str], name: str
) -> Generator[pa.RecordBatch, None, None]:
    """Batches with these columns, in this order. Without columns only their lengths count. coded: as in `_open`.

    Columns are decoded in parallel: each takes its own time (sorted times take five times as long to unpack as keys),
    and a window of a few batches evens that out. A column that may hold up the others is decoded in two tracks, each
    with every other run of row groups.
    """
    metadata = opened.metadata
    if not names:
        rows = metadata.num_rows
        for start in range(0, rows, READ_ROWS):
            empty = pa.StructArray.from_buffers(pa.struct([]), min(READ_ROWS, rows - start), [None])
            yield pa.RecordBatch.from_struct_array(empty)
        return
    several = cores() > 1 and metadata.num_rows > READ_ROWS
    streams = _shared_out(metadata, names) if several else [_Stream(tuple(names), 1)]
    tracks = list(_tracks(file, opened, streams, coded))
    together = ColumnTracks(tracks, min(cores(), len(tracks)) - 1, name)
    with closing(iter(together)) as steps:
        for step in steps:
            for parts in _cut(step):
                arrays = {n: part.column(n) for part, stream in zip(parts, streams, strict=True) for n in stream.names}
                yield pa.RecordBatch.from_arrays([arrays[n] for n in names], names=list(names))


def _smallest(metadata: parquet.FileMetaData, names: Sequence[str]) -> list[str]:
    """The column that is the least work to decode; none if the file has no columns."""
    return [min(names, key=lambda name: _decoded_bytes(metadata, name) or math.inf)] if names else []


def _decoded_bytes(metadata: parquet.FileMetaData, name: str) -> int:
    """The encoded size of a column in the first row group, in bytes."""
    if not metadata.num_row_groups:
        return 0
    group = metadata.row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    paths = ((c.path_in_schema, c.total_uncompressed_size) for c in chunks)
    return sum(size for path, size in paths if name in {path, path.partition(".")[0]})


@dataclass(frozen=True, slots=True)
class _Stream:
    """Columns that are decoded together, and in how many tracks."""

    names: tuple[str, ...]
    tracks: int


def _tracks(
    file: pa.NativeFile, opened: parquet.ParquetFile, streams: Sequence[_Stream], coded: Sequence[str]
) -> Iterator[Track[list[pa.RecordBatch]]]:
    """The tracks of every stream, each with its own reader: readers are not thread-safe."""
    runs = list(_runs(opened.metadata))
    for place, stream in enumerate(streams):
        several = min(stream.tracks, len(runs))
        for number in range(several):
            mine = runs[number::several]
            reader = _open(file, opened.metadata, coded) if place or number else opened
            yield Track(place, (step for run in mine for step in run.steps), _steps(reader, stream.names, mine))


def _shared_out(metadata: parquet.FileMetaData, names: Sequence[str]) -> list[_Stream]:
    """The columns in at most MAX_STREAMS streams of about equal size in bytes."""
    sizes = dict.fromkeys(names, 0)
    group = metadata.row_group(0)
    for number in range(group.num_columns):
        chunk = group.column(number)
        top = chunk.path_in_schema if chunk.path_in_schema in sizes else chunk.path_in_schema.partition(".")[0]
        if top in sizes:
            sizes[top] += chunk.total_uncompressed_size
    streams: list[tuple[str, ...]] = [()] * min(len(names), MAX_STREAMS)
    filled = [0] * len(streams)
    for column in sorted(names, key=lambda n: -sizes[n]):
        least = min(range(len(streams)), key=lambda k: (filled[k], len(streams[k])))
        streams[least] += (column,)
        filled[least] += sizes[column]
    # bytes say little about time: any column with more than half of an even share may be the slowest
    heavy = sum(filled) / (2 * cores())
    return [_Stream(s, 2 if size > heavy else 1) for s, size in zip(streams, filled, strict=True)]


@dataclass(frozen=True, slots=True)
class _Run:
    """Row groups that are read together, their number of rows, and the numbers of their steps."""

    groups: list[int]
    rows: int
    steps: range


def _steps(opened: parquet.ParquetFile, names: Sequence[str], runs: Sequence[_Run]) -> Iterator[list[pa.RecordBatch]]:
    """Some columns of some runs, READ_ROWS rows per step, fewer at the end of a run; the columns do not change where
    steps end. A step has several batches where text is too long for one.
    """
    for run in runs:
        batches = opened.iter_batches(
            batch_size=READ_ROWS, row_groups=run.groups, columns=list(names), use_threads=False
        )
        left = run.rows
        for _ in run.steps:
            step, missing = list[pa.RecordBatch](), min(READ_ROWS, left)
            left -= missing
            while missing > 0:
                batch = next(batches, None)
                batch = batch if batch is None else flat_batch(batch)
                if batch is None or batch.num_rows > missing:
                    raise pa.ArrowInvalid("a column has not as many values as there are rows")
                step.append(batch)
                missing -= batch.num_rows
            if not left and next(batches, None) is not None:
                raise pa.ArrowInvalid("a column has more values than there are rows")
            yield step


def _cut(step: Sequence[Sequence[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """The batches of a step side by side, cut wherever one of them ends."""
    waiting = [list(batches) for batches in step]
    while all(waiting):
        rows = min(batches[0].num_rows for batches in waiting)
        yield [batches[0].slice(0, rows) for batches in waiting]
        for batches in waiting:
            if batches[0].num_rows == rows:
                batches.pop(0)
            else:
                batches[0] = batches[0].slice(rows)


def _runs(metadata: parquet.FileMetaData) -> Iterator[_Run]:
    """All row groups in runs of one, or of several small ones."""
    together, rows, step = list[int](), 0, 0
    for number in range(metadata.num_row_groups):
        more = metadata.row_group(number).num_rows
        if together and rows + more > ROWS_TOGETHER:
            run = _run(together, rows, step)
            yield run
            together, rows, step = [], 0, run.steps.stop
        together.append(number)
        rows += more
    if together:
        yield _run(together, rows, step)


def _run(groups: list[int], rows: int, step: int) -> _Run:
    return _Run(groups, rows, range(step, step + -(-rows // READ_ROWS)))


def _piece(batch: pa.RecordBatch, columns: Sequence[TypedColumn], rules: Rules, place: Place) -> Piece:
    if not columns:
        return Piece(rules.deliver({}, batch.num_rows), place)
    arrays = {c.column: batch.column(k) for k, c in enumerate(columns)}
    typed = [_checked(c, arrays, rules) for c in columns]
    return typed_piece(rules, arrays, typed, place)


def _checked(column: TypedColumn, arrays: dict[int, pa.Array], rules: Rules) -> TypedColumn:
    """The column's conversion after checking its values: text that is not UTF-8 has become bytes in `arrays`.

    ArrowInvalid when its offsets leave its bytes.
    """
    array = arrays[column.column]
    kind = array.type
    if t.is_string(kind) and _ascii(array):
        return column  # the reader made the offsets itself: only the bytes come from outside
    if t.is_dictionary(kind) and t.is_string(kind.value_type) and _ascii(array.dictionary):
        return column  # and so do the codes
    if kind.num_fields or any(is_a(kind) for is_a in (t.is_string, t.is_large_string, t.is_dictionary, t.is_decimal)):
        arrays[column.column] = array = sound(array)
    if array.type == kind:
        return column
    return TypedColumn(column.column, conversion(array.type, rules.fields[column.column].type)[0])


def _ascii(array: pa.Array) -> bool:
    """Whether the bytes of a string column are ASCII, which is valid UTF-8 however it is cut."""
    letters = array.buffers()[2]
    if letters is None:
        return True
    return bool((np.frombuffer(letters, np.int8) >= 0).all())


def _must_look(opened: parquet.ParquetFile, schema: pa.Schema, at: int, column: int, rules: Rules) -> bool:
    """Whether an unwanted column may hold a value the declaration forbids."""
    if not never_fails(schema.field(at).type, rules.fields[column].type):
        return True
    if not rules.demands_value(column):
        return False
    leaf = next((i for i, c in enumerate(opened.schema) if c.path == schema.names[at]), None)
    if leaf is None:
        return True
    groups = (opened.metadata.row_group(g).column(leaf) for g in range(opened.metadata.num_row_groups))
    return not all(
        g.statistics is not None and g.statistics.has_null_count and g.statistics.null_count == 0 for g in groups
    )


def _cause(error: Exception, what: str) -> str:
    """The reader's own message, on one line, without paths of this machine."""
    return f"not a readable {what} file: {str(error).splitlines()[0][:200]}" if str(error) else f"not a {what} file"
