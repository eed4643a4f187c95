"""Computed event times: rows of a piece that have one keep it as a column; the others are bad rows.

An event time that is an expression over several columns is computed between reading and admission, by the engine that
runs the query (`protocol.EventTimer`): only there can a row without one still be counted, written down or refused, as
`on_error` asks, in the same way on every engine. Admission then finds a plain column.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cq.connectors.protocol import BadRow, EventTimer, Piece, Times, UnreadableTime
from cq.connectors.rules import plain_value, recorded
from cq.lang.arrow_buffers import from_numpy, valid
from cq.lang.types import NULL, from_arrow
from cq.records import replace

NULL_TIME = UnreadableTime("CQ0703", "the event time is NULL")


def timed(piece: Piece, timer: EventTimer) -> Piece:
    """Return the piece without the rows that have no event time; those join its bad rows."""
    times = timer.compute(piece.batch)
    values, batch, place, bad = times.values, piece.batch, piece.place, piece.bad
    if values.null_count:
        dropped = np.flatnonzero(~valid(values))
        bad = _with_dropped(piece, times, dropped)
        keep = np.setdiff1d(np.arange(batch.num_rows, dtype=np.int64), dropped)
        batch, values, place = batch.take(from_numpy(keep)), values.take(from_numpy(keep)), place.take(keep)
    if timer.column:
        batch = pa.RecordBatch.from_arrays([values, *batch.columns], [timer.column, *batch.schema.names])
    return Piece(batch, place, bad)


def _with_dropped(piece: Piece, times: Times, dropped: npt.NDArray[np.int64]) -> tuple[BadRow, ...]:
    """The bad rows of the piece and those just found, in line order."""
    found: list[tuple[int, bool, BadRow]] = []
    for row in piece.bad:
        gone = int(np.searchsorted(dropped, row.before))
        found.append((row.before, False, replace(row, before=row.before - gone)))
    for gone, number in enumerate(dropped.tolist()):
        why = times.unreadable.get(number, NULL_TIME)
        line, raw = piece.place.line(number), _record(piece.batch, number)
        found.append((number, True, BadRow(number - gone, line, why.code, why.message, "", raw, span=why.span)))
    return tuple(row for _, _, row in sorted(found, key=lambda f: f[:2]))


def _record(batch: pa.RecordBatch, row: int) -> bytes:
    """A row as dead letters show it."""
    named = zip(batch.schema.names, batch.columns, strict=True)
    values = {name: recorded(plain_value(column[row]), from_arrow(column.type) or NULL) for name, column in named}
    return json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "backslashreplace")
