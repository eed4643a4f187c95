"""Parquet sources: row group by row group, only the columns that are wanted or whose values must be looked at.

A declared column that no one reads is still checked: by its type, and by the file's own statistics where it is NOT NULL
or must be converted; it is decoded when those prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.types as t
from pyarrow import parquet

from cq.connectors.conversion import match_columns, never_fails
from cq.connectors.protocol import BATCH_ROWS, Piece, Place, damaged
from cq.connectors.rules import Rules, TypedColumn, typed_piece
from cq.errors import DataError

ROWS_TOGETHER = 4 * BATCH_ROWS  # of small row groups: as fast as reading all at once, whose memory grows with the file


def read_parquet(file: BinaryIO, name: str, rules: Rules) -> Iterator[Piece]:
    """The rows of one file as pieces; CQ0701 when it is damaged, CQ0603 when it does not fit the declaration."""
    try:
        opened = parquet.ParquetFile(file, pre_buffer=True, page_checksum_verification=True)
        schema = opened.schema_arrow
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, _cause(e, "Parquet")) from None
    matched = match_columns(name, schema, rules.fields)
    looked_at = [
        (at, column)
        for at, column in matched
        if column.column in rules.wanted or _must_look(opened, schema, at, column.column, rules)
    ]
    row = 1
    try:
        for batch in _batches(opened, schema, [at for at, _ in looked_at]):
            yield _piece(batch, [c for _, c in looked_at], rules, Place(name, row))
            row += batch.num_rows
    except DataError:
        raise
    except (pa.ArrowException, OSError) as e:
        raise damaged(name, f"{_cause(e, 'Parquet')} (after row {row - 1:,})") from None


def _batches(opened: parquet.ParquetFile, schema: pa.Schema, at: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Batches with the columns at these places, in this order. Without columns only their lengths count."""
    names = [schema.names[i] for i in at]
    if not names:
        rows = opened.metadata.num_rows
        for start in range(0, rows, BATCH_ROWS):
            empty = pa.StructArray.from_buffers(pa.struct([]), min(BATCH_ROWS, rows - start), [None])
            yield pa.RecordBatch.from_struct_array(empty)
        return
    order: list[int] | None = None
    for groups in _row_groups(opened.metadata):
        for batch in opened.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, columns=names):
            if order is None:
                order = [batch.schema.get_field_index(n) for n in names]
            yield batch.select(order)


def _row_groups(metadata: parquet.FileMetaData) -> Iterator[list[int]]:
    """The numbers of all row groups, in runs that are read together: one, or several small ones.

    A reader keeps the bytes of all row groups it was asked for, read ahead or read already, until it is done with them.
    """
    together, rows = list[int](), 0
    for number in range(metadata.num_row_groups):
        more = metadata.row_group(number).num_rows
        if together and rows + more > ROWS_TOGETHER:
            yield together
            together, rows = [], 0
        together.append(number)
        rows += more
    if together:
        yield together


def _piece(batch: pa.RecordBatch, columns: Sequence[TypedColumn], rules: Rules, place: Place) -> Piece:
    if not columns:
        return Piece(rules.deliver({}, batch.num_rows), place)
    arrays = {c.column: batch.column(k) for k, c in enumerate(columns)}
    for array in arrays.values():
        check_text(array)
    return typed_piece(rules, arrays, columns, place)


def check_text(array: pa.Array) -> None:
    """Text from outside is UTF-8 and its offsets stay inside its bytes; ArrowInvalid else."""
    kind = array.type
    if t.is_string(kind) and _ascii(array):
        return  # the reader made the offsets itself: only the bytes are from outside
    if kind.num_fields or any(is_a(kind) for is_a in (t.is_string, t.is_large_string, t.is_dictionary, t.is_decimal)):
        array.validate(full=True)


def _ascii(array: pa.Array) -> bool:
    """Whether the bytes of a string column are ASCII, which is UTF-8 however it is cut."""
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
    """The reader's own words, one line, without paths of this machine."""
    return f"not a readable {what} file: {str(error).splitlines()[0][:200]}" if str(error) else f"not a {what} file"
