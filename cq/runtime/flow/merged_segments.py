"""The segments of a ticket over the rows its lanes have emitted, after merging these for the next stage.

Each lane saw every event of the ticket and its own rows. The position of a merged row, serial and instant, tells which
segment of the ticket it came from. The next stage must see the rows in their order, late ones as late, and each event
after the rows that came before it.

Sharing: none. The last lane of a ticket calls these, as it does cq/runtime/flow/merged_lanes.py.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shr_u
from cq.runtime.flow.parcel import PARCEL_PORT, segment_add
from cq.runtime.layout.abi import (
    BATCH_FIRST,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_WATERMARKS,
    NEVER,
    PORT_POSITIONS,
    PORT_ROWS,
    POSITION_INSTANT,
    POSITION_SERIAL,
    POSITION_WORDS,
    SEGMENT_CLOSE,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_ROWS,
    SEGMENT_SERIAL,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
)

ROW_BITS = 32  # an entry of a merged order: the number of a parcel, and of a row in it
ROW_MASK = (1 << ROW_BITS) - 1


@native("i64(i64, i64)", inline=True)
def _segment(item: int, at: int) -> int:
    """The address of a segment of the ticket."""
    return ld_i64(item, BATCH_SEGMENTS) + at * SEGMENT_WORDS * 8


@native("i64(i64, i64)", inline=True)
def _comes_of(segment: int, position: int) -> int:
    """1 if what has this position came from this segment, or from one before it."""
    serial = ld_i64(position, POSITION_SERIAL)
    instant = ld_i64(position, POSITION_INSTANT)
    kind = ld_i64(segment, SEGMENT_KIND)
    first = ld_i64(segment, SEGMENT_SERIAL)
    if kind <= SEGMENT_LATE:
        return 1 if serial < first + ld_i64(segment, SEGMENT_HI) - ld_i64(segment, SEGMENT_LO) else 0
    if kind == SEGMENT_CLOSE:  # the row it comes before has its serial
        return 1 if serial == first and instant != NEVER and instant <= ld_i64(segment, SEGMENT_WATERMARK) else 0
    return 1


@native("i64(i64, i64, i64, i64, i64, i64)")
def segment_rows(item: int, parcel: int, parcels: int, order: int, rows: int, at: int) -> int:
    """Put the parcel's rows, and the events between them, into segments; -1 without memory.

    parcels: -> the ports of the lanes' parcels.  order: -> an entry for each row of the parcel.  at: the segment of the
    ticket that the row before the first one came from; returns that of the last one.
    """
    words = parcel + PARCEL_PORT * 8
    kind = SEGMENT_ROWS
    for row in range(rows):
        entry = ld_i64(order, row)
        positions = ld_i64(ld_i64(parcels, shr_u(entry, ROW_BITS)), PORT_POSITIONS)
        position = positions + (entry & ROW_MASK) * POSITION_WORDS * 8
        while _comes_of(_segment(item, at), position) == 0:
            if _pass(words, _segment(item, at), kind, row) == 0:
                return -1
            at += 1
        late = ld_i64(_segment(item, at), SEGMENT_KIND) == SEGMENT_LATE
        own = SEGMENT_ROWS
        if late and ld_i64(position, POSITION_INSTANT) == NEVER:
            own = SEGMENT_LATE
        if own != kind:
            if segment_add(words, kind, 0, row) == 0:
                return -1
            kind = own
    return at if segment_add(words, kind, 0, rows) == 1 else -1


@native("i64(i64, i64, i64, i64)")
def _pass(words: int, segment: int, kind: int, row: int) -> int:
    """Make earlier rows a segment, with the event after them if the ticket's segment is one; 1, or 0 without memory."""
    event = ld_i64(segment, SEGMENT_KIND)
    if event <= SEGMENT_LATE:
        return 1
    if segment_add(words, kind, 0, row) == 0:
        return 0
    return segment_add(words, event, ld_i64(segment, SEGMENT_WATERMARK), row)


@native("i64(i64, i64, i64)")
def segment_rest(item: int, parcel: int, at: int) -> int:
    """Put the events from segment `at` on after the parcel's rows, and the last watermark; 1, or 0 without memory.

    The next stage sees the watermark of the ticket's last row, whether or not that row has passed through.
    """
    words = parcel + PARCEL_PORT * 8
    rows = ld_i64(words, PORT_ROWS)
    kind = SEGMENT_CLOSE
    while at < ld_i64(item, BATCH_SEGMENT_COUNT):
        kind = ld_i64(_segment(item, at), SEGMENT_KIND)
        if _pass(words, _segment(item, at), SEGMENT_ROWS, rows) == 0:
            return 0
        at += 1
    marks = ld_i64(item, BATCH_WATERMARKS)
    if marks == 0 or kind > SEGMENT_LATE or ld_i64(item, BATCH_ROWS) == 0:
        return 1
    last = ld_i64(item, BATCH_FIRST) + ld_i64(item, BATCH_ROWS) - 1
    return segment_add(words, SEGMENT_CLOSE, ld_i64(marks, last), rows)


@native("i64(i64, i64, i64, i64)")
def segment_to_failure(item: int, parcel: int, at: int, position: int) -> int:
    """Put what comes before a failure at this position after the parcel's rows; 1, or 0 without memory.

    These are the events before it, and every closing time that the watermark had reached when it happened.
    """
    words = parcel + PARCEL_PORT * 8
    rows = ld_i64(words, PORT_ROWS)
    while at < ld_i64(item, BATCH_SEGMENT_COUNT) and _comes_of(_segment(item, at), position) == 0:
        if _pass(words, _segment(item, at), SEGMENT_ROWS, rows) == 0:
            return 0
        at += 1
    instant = ld_i64(position, POSITION_INSTANT)
    if instant != NEVER:
        return segment_add(words, SEGMENT_CLOSE, instant - 1, rows)
    marks = ld_i64(item, BATCH_WATERMARKS)
    if marks == 0 or at == ld_i64(item, BATCH_SEGMENT_COUNT) or ld_i64(_segment(item, at), SEGMENT_KIND) > SEGMENT_LATE:
        return 1
    return segment_add(words, SEGMENT_CLOSE, ld_i64(marks, ld_i64(position, POSITION_SERIAL)), rows)
