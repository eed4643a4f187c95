"""Arrow IPC sources, file and stream format. Nothing in them is trusted before `validate(full=True)`.

One changed offset in such a file can make pyarrow read memory that is not its own; validating costs about 5 ns a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from cq.connectors.conversion import match_columns, sound
from cq.connectors.first_bytes import ARROW_FILE
from cq.connectors.nested import flat_batch, flat_schema, tops_of
from cq.connectors.protocol import READ_ROWS, ColumnNames, Piece, Place, Report, damaged, to_nobody
from cq.connectors.rules import AsTheyAre, Rules, TypedColumn, as_they_are, typed_piece
from cq.errors import DataError
from cq.lang.schema import Field


def ipc_batches(
    file: pa.NativeFile | BinaryIO, name: str, report: Report = to_nobody, fields: Sequence[Field] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the validated record batches of an IPC file or stream. CQ0701 when it is damaged.

    file: a Python file is read as a stream, without seeking.  fields: the columns to read, the only ones looked at;
    None: all.
    """
    try:
        if isinstance(file, pa.NativeFile):
            is_file = file.read(len(ARROW_FILE)) == ARROW_FILE
            file.seek(0)
            if is_file:
                reader = pa.ipc.open_file(file)
                return _looked_at(reader.schema, _of_file(reader, report), name, fields)
        reader = pa.ipc.open_stream(file)
        return _looked_at(reader.schema, _of_stream(reader, file, name, report), name, fields)
    except (pa.ArrowException, OSError, EOFError) as e:
        raise _broken(name, e) from None


def _looked_at(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], name: str, fields: Sequence[Field] | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The flat schema and the validated batches of the columns that may hold the fields; of all columns where a field
    is missing, for the error message."""
    whole = flat_schema(schema)
    there = ColumnNames(whole.names)
    if fields is None or any(there.find(f.name) is None for f in fields):
        return whole, _validated(batches, name)
    tops = tops_of(fields)
    places = [at for at, column in enumerate(schema.names) if column.lower() in tops]
    chosen = pa.schema([schema.field(at) for at in places])
    return flat_schema(chosen), _validated((batch.select(places) for batch in batches), name)


def _of_file(reader: pa.ipc.RecordBatchFileReader, report: Report) -> Iterator[pa.RecordBatch]:
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)
        report((number + 1) / reader.num_record_batches)


def _of_stream(
    reader: pa.ipc.RecordBatchStreamReader, file: pa.NativeFile | BinaryIO, name: str, report: Report
) -> Iterator[pa.RecordBatch]:
    """Read to the end of the input: data after the end of the stream must not be lost silently."""
    size = file.size() if isinstance(file, pa.NativeFile) else 0
    for batch in reader:
        yield batch
        if size:
            report(file.tell() / size)
    if file.read(1):
        raise damaged(
            name, "there is more data after the end of its Arrow stream", "give each stream a file of its own"
        )


def _validated(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches:
            yield _sound(flat_batch(batch))
    except (pa.ArrowException, OSError, EOFError) as e:
        raise _broken(name, e) from None


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with text that is not UTF-8 turned into bytes."""
    try:
        batch.validate(full=True)
        return batch
    except pa.ArrowInvalid:
        return pa.RecordBatch.from_arrays([sound(column) for column in batch.columns], batch.schema.names)


def read_arrow(file: pa.NativeFile | BinaryIO, name: str, rules: Rules, report: Report = to_nobody) -> Iterator[Piece]:
    """The rows of one IPC file or stream as pieces."""
    schema, batches = ipc_batches(file, name, report, rules.fields)
    yield from arrow_pieces(schema, batches, name, rules)


def arrow_pieces(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], name: str, rules: Rules, first: int = 1,
    ready_rows: int = 0,
) -> Iterator[Piece]:  # fmt: skip
    """Record batches of one schema, cut to READ_ROWS and converted to the declared columns.

    ready_rows: the size to cut to, if larger, where no value has to be looked at.
    """
    matched = match_columns(name, schema, rules.fields, rules.codes)
    types, seen, ready = schema.types, None, as_they_are(rules, matched)
    row = first
    for whole in batches:
        if whole.schema != seen:  # compared in Arrow: comparing our types costs 3 us
            seen = whole.schema
            if seen.types != types:  # text that is not UTF-8 has become bytes
                matched = match_columns(name, seen, rules.fields, rules.codes)
                types, ready = seen.types, as_they_are(rules, matched)
        for part in _slices(whole, max(READ_ROWS, ready_rows)):
            at_once = None if ready is None else ready.of(part)
            if at_once is not None:
                yield Piece(at_once, Place(name, row))
                row += part.num_rows
                continue
            for batch in _slices(part, READ_ROWS):
                yield _piece(batch, rules, matched, ready, Place(name, row))
                row += batch.num_rows


def _piece(
    batch: pa.RecordBatch,
    rules: Rules,
    matched: Sequence[tuple[int, TypedColumn]],
    ready: AsTheyAre | None,
    place: Place,
) -> Piece:
    """The batch unchanged where possible, else converted and checked."""
    found = None if ready is None else ready.of(batch)
    if found is not None:
        return Piece(found, place)
    if not matched:
        return Piece(rules.deliver({}, batch.num_rows), place)
    arrays = {c.column: batch.column(at) for at, c in matched}
    return typed_piece(rules, arrays, [c for _, c in matched], place)


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """Cut the batch into parts of this many rows."""
    if batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _broken(name: str, error: Exception) -> DataError:
    words = str(error).splitlines()[0][:200] if str(error) else "it ends too early"
    return damaged(name, f"not a readable Arrow file: {words}")
