"""Arrow IPC sources, file and stream format. Nothing in them is believed before `validate(full=True)`.

One changed offset in such a file can make pyarrow read memory that is not its own; validating costs about 5 ns a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from cq.connectors.conversion import match_columns
from cq.connectors.protocol import BATCH_ROWS, Piece, Place, damaged
from cq.connectors.rules import Rules, typed_piece
from cq.errors import DataError

MAGIC = b"ARROW1"


def ipc_batches(file: BinaryIO, name: str, seekable: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the validated record batches of an IPC file or stream. CQ0701 when it is damaged."""
    try:
        if seekable:
            is_file = file.read(len(MAGIC)) == MAGIC
            file.seek(0)
        else:
            is_file = False
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        return reader.schema, _validated(reader, is_file, name)
    except (pa.ArrowException, OSError, EOFError) as e:
        raise _broken(name, e) from None


def _validated(reader: pa.ipc.RecordBatchReader, is_file: bool, name: str) -> Iterator[pa.RecordBatch]:
    try:
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError, EOFError) as e:
        raise _broken(name, e) from None


def read_arrow(file: BinaryIO, name: str, rules: Rules, seekable: bool = True) -> Iterator[Piece]:
    """The rows of one IPC file or stream as pieces."""
    schema, batches = ipc_batches(file, name, seekable)
    yield from arrow_pieces(schema, batches, name, rules)


def arrow_pieces(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], name: str, rules: Rules, first: int = 1
) -> Iterator[Piece]:
    """Record batches of one schema, cut to BATCH_ROWS and converted to the declared columns."""
    matched = match_columns(name, schema, rules.fields)
    columns = [c for _, c in matched]
    row = first
    for whole in batches:
        for start in range(0, whole.num_rows, BATCH_ROWS):
            batch = whole.slice(start, BATCH_ROWS)
            arrays = {c.column: batch.column(at) for at, c in matched}
            yield typed_piece(rules, arrays, columns, Place(name, row))
            row += batch.num_rows


def _broken(name: str, error: Exception) -> DataError:
    words = str(error).splitlines()[0][:200] if str(error) else "it ends too early"
    return damaged(name, f"not a readable Arrow file: {words}")
