"""The Linear Road stream of one block, natively: all roads merged by time, and the queries that come with reports.

`cq/workloads/linear_road/stream.py` defines it with numpy: within a second the reports by (road, vehicle), then the
queries in the order of their reports.

Sharing: none.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_f64, ld_i64, sdiv, st_i64, urem
from cq.runtime.generators.draws import below_high, mixed_with, share_of
from cq.runtime.generators.traffic import (
    REPORT_LANE,
    REPORT_SPEED,
    REPORT_VID,
    REPORT_X,
    ROAD_EDGES,
    ROAD_REPORT_ROOM,
    ROAD_REPORTS,
    ROAD_STREAM,
)
from cq.runtime.layout.words import Struct
from cq.workloads.linear_road.history import DAYS, HASH_OF_XWAY
from cq.workloads.linear_road.profiles import EXIT_LANE, SEGMENT_FT
from cq.workloads.linear_road.stream import (
    HASH_OF_QUERY,
    HASH_OF_QUERY_FIELDS,
    HASH_OF_REENTRY,
    HIT_SHARE,
    MICROS,
    REENTRY_SHARE,
)

# -- the stream ------------------------------------------------------------------------------------------------------
_stream = Struct("STREAM")
STREAM_SEED = _stream.word()
STREAM_ROADS = _stream.word()  # -> i64[]: addresses
STREAM_ROAD_COUNT = _stream.word()
STREAM_QUERIES = _stream.word()  # double: the share of reports with a query
STREAM_SEGMENTS = _stream.word()
STREAM_XWAYS = _stream.word()
STREAM_ROAD_FT = _stream.word()
STREAM_NEXT_QID = _stream.word()
STREAM_COLUMNS = _stream.word()  # -> i64[]: addresses of the batch's columns; 0: of queries, and nobody reads it
STREAM_AT = _stream.word()  # rows in the batch
STREAM_EXITS = _stream.word()  # -> i64[][EXIT_WORDS]: vehicles that left and come back
STREAM_EXIT_COUNT = _stream.word()
STREAM_ORDER = _stream.word()  # -> i64[]: room for the order of the reports of one road in one second
STREAM_ASIDE = _stream.word()  # -> i64[]: as much room again
STREAM_WORDS = _stream.size()

_exit = Struct("EXIT")
EXIT_VID = _exit.word()
EXIT_TIME = _exit.word()
EXIT_XWAY = _exit.word()
EXIT_DRAWN = _exit.word()  # 64 bits that determine when and where it comes back
EXIT_WORDS = _exit.size()

# columns, in the order of the stream's schema
TYPE, TIME, VID, SPEED, XWAY, LANE, DIRECTION, SEGMENT, POSITION = 0, 1, 2, 3, 4, 5, 6, 7, 8
QID, FROM, TO, WEEKDAY, MINUTE, DAY, TS = 9, 10, 11, 12, 13, 14, 15

_BALANCE, _EXPENDITURE, _TRAVEL = 2, 3, 4
_WEEKDAYS, _MINUTES = 7, 1440


@native("i64(i64, i64)")
def _column(stream: int, number: int) -> int:
    """Where the next row of a column goes."""
    return ld_i64(ld_i64(stream, STREAM_COLUMNS), number) + ld_i64(stream, STREAM_AT) * 8


@native("i64(i64, i64, i64, i64)")
def _ordered(vids: int, count: int, order: int, aside: int) -> int:
    """Find the order of reports by vehicle and return 1; 0 if they are in order.

    Vehicles come in the order of their names, except those that come back: one in ten, under a smaller name. These are
    sorted aside, then merged with the others.
    """
    waiting, kept, greatest = 0, 0, -1
    for n in range(count):
        vid = ld_i64(vids, n)
        if vid >= greatest:
            greatest = vid
            st_i64(order, kept, n)
            kept += 1
            continue
        at = waiting
        while at > 0 and ld_i64(vids, ld_i64(aside, at - 1)) > vid:
            st_i64(aside, at, ld_i64(aside, at - 1))
            at -= 1
        st_i64(aside, at, n)
        waiting += 1
    if waiting == 0:
        return 0
    at = count - 1  # from the end, so that kept elements move up within one array
    while waiting > 0:
        back = ld_i64(aside, waiting - 1)
        if kept > 0 and ld_i64(vids, ld_i64(order, kept - 1)) > ld_i64(vids, back):
            kept -= 1
            st_i64(order, at, ld_i64(order, kept))
        else:
            waiting -= 1
            st_i64(order, at, back)
        at -= 1
    return 1


@native("void(i64, i64, i64, i64, i64)")
def _copied(target: int, source: int, order: int, count: int, sorted_: int) -> None:
    """Copy a column of reports in their order."""
    if sorted_ == 0:
        copy(target, source, count * 8)
    else:
        for n in range(count):
            st_i64(target, n, ld_i64(source, ld_i64(order, n)))


@native("void(i64, i64, i64)")
def _filled(target: int, value: int, count: int) -> None:
    """Fill all rows of a column."""
    for n in range(count):
        st_i64(target, n, value)


@native("void(i64, i64, i64, i64)")
def _write_reports(stream: int, road: int, time: int, second: int) -> None:
    """Append the reports of one road in one second."""
    first = ld_i64(ld_i64(road, ROAD_EDGES), second)
    count = ld_i64(ld_i64(road, ROAD_EDGES), second + 1) - first
    if count == 0:
        return
    room, reports = ld_i64(road, ROAD_REPORT_ROOM) * 8, ld_i64(road, ROAD_REPORTS) + first * 8
    number, order = ld_i64(road, ROAD_STREAM), ld_i64(stream, STREAM_ORDER)
    out_of_order = _ordered(reports + REPORT_VID * room, count, order, ld_i64(stream, STREAM_ASIDE))
    _copied(_column(stream, VID), reports + REPORT_VID * room, order, count, out_of_order)
    _copied(_column(stream, SPEED), reports + REPORT_SPEED * room, order, count, out_of_order)
    _copied(_column(stream, LANE), reports + REPORT_LANE * room, order, count, out_of_order)
    position, segment = _column(stream, POSITION), _column(stream, SEGMENT)
    _copied(position, reports + REPORT_X * room, order, count, out_of_order)
    if number & 1:
        last_ft = ld_i64(stream, STREAM_ROAD_FT) - 1
        for n in range(count):
            st_i64(position, n, last_ft - ld_i64(position, n))
    for n in range(count):
        st_i64(segment, n, sdiv(ld_i64(position, n), SEGMENT_FT))
    _filled(_column(stream, XWAY), number >> 1, count)
    _filled(_column(stream, DIRECTION), number & 1, count)
    _write_rest(stream, time, 0, count)
    st_i64(stream, STREAM_AT, ld_i64(stream, STREAM_AT) + count)


@native("void(i64, i64, i64, i64)")
def _write_rest(stream: int, time: int, kind: int, count: int) -> None:
    """Write the type and time of the next rows, and no value in the columns of queries."""
    _filled(_column(stream, TYPE), kind, count)
    _filled(_column(stream, TIME), time, count)
    _filled(_column(stream, TS), time * MICROS, count)
    columns = ld_i64(stream, STREAM_COLUMNS)
    for column in range(QID, DAY + 1):
        if ld_i64(columns, column) != 0:
            fill(_column(stream, column), 255, count * 8)


@native("void(i64, i64, i64)")
def _asked(stream: int, column: int, value: int) -> None:
    """Write a value of the next row's query, unless nobody reads the column."""
    if ld_i64(ld_i64(stream, STREAM_COLUMNS), column) != 0:
        st_i64(_column(stream, column), 0, value)


@native("void(i64, i64, i64, i64)")
def _note_exits(stream: int, prefix: int, first: int, count: int) -> None:
    """Note the vehicles among these rows' reports that leave now and come back."""
    columns, at = ld_i64(stream, STREAM_COLUMNS), ld_i64(stream, STREAM_EXIT_COUNT)
    lanes, vids = ld_i64(columns, LANE) + first * 8, ld_i64(columns, VID) + first * 8
    times, xways = ld_i64(columns, TIME) + first * 8, ld_i64(columns, XWAY) + first * 8
    for n in range(count):
        if ld_i64(lanes, n) == EXIT_LANE:
            vid, time = ld_i64(vids, n), ld_i64(times, n)
            hashed = mixed_with(mixed_with(prefix, vid), time)
            if share_of(hashed) < REENTRY_SHARE:
                noted = ld_i64(stream, STREAM_EXITS) + at * EXIT_WORDS * 8
                st_i64(noted, EXIT_VID, vid)
                st_i64(noted, EXIT_TIME, time)
                st_i64(noted, EXIT_XWAY, ld_i64(xways, n))
                st_i64(noted, EXIT_DRAWN, mixed_with(hashed, 1))
                at += 1
    st_i64(stream, STREAM_EXIT_COUNT, at)


@native("i64(i64, i64, i64, i64)")
def _field_hash(stream: int, number: int, vid: int, time: int) -> int:
    """The hash that determines one field of a query."""
    hashed = mixed_with(mixed_with(0, HASH_OF_QUERY_FIELDS + number), ld_i64(stream, STREAM_SEED))
    return mixed_with(mixed_with(hashed, vid), time)


@native("i64(i64, i64, i64, i64, i64)")
def _field(stream: int, number: int, size: int, vid: int, time: int) -> int:
    """One field of a query: uniform under `size`."""
    return below_high(_field_hash(stream, number, vid, time) >> 1, size)


@native("i64(i64, i64, i64, i64)")
def _asked_xway(stream: int, vid: int, day: int, time: int) -> int:
    """The expressway of the vehicle's toll on that day, or occasionally another one."""
    xways = ld_i64(stream, STREAM_XWAYS)
    hashed = mixed_with(mixed_with(0, HASH_OF_XWAY), ld_i64(stream, STREAM_SEED))
    used = urem(mixed_with(mixed_with(hashed, vid), day), xways)
    chosen = _field_hash(stream, 6, vid, time)
    if share_of(chosen) < HIT_SHARE:
        return used
    return (used + 1 + (chosen & 0xFFFF) % max(1, xways - 1)) % max(2, xways)


@native("void(i64, i64, i64, i64)")
def _write_query(stream: int, hashed: int, vid: int, time: int) -> None:
    """Append the query of a report."""
    percent = (hashed & 0xFFFF) * 100 >> 16
    kind = _BALANCE if percent < 50 else _EXPENDITURE if percent < 60 else _TRAVEL
    _write_rest(stream, time, kind, 1)
    st_i64(_column(stream, VID), 0, vid)
    for column in range(SPEED, QID):
        st_i64(_column(stream, column), 0, -1)
    qid = ld_i64(stream, STREAM_NEXT_QID)
    _asked(stream, QID, qid)
    st_i64(stream, STREAM_NEXT_QID, qid + 1)
    if kind == _EXPENDITURE:
        day = 1 + _field(stream, 0, DAYS, vid, time)
        _asked(stream, DAY, day)
        st_i64(_column(stream, XWAY), 0, _asked_xway(stream, vid, day, time))
    if kind == _TRAVEL:
        segments = ld_i64(stream, STREAM_SEGMENTS)
        st_i64(_column(stream, XWAY), 0, _field(stream, 1, ld_i64(stream, STREAM_XWAYS), vid, time))
        _asked(stream, FROM, _field(stream, 2, segments, vid, time))
        _asked(stream, TO, _field(stream, 3, segments, vid, time))
        _asked(stream, WEEKDAY, 1 + _field(stream, 4, _WEEKDAYS, vid, time))
        _asked(stream, MINUTE, 1 + _field(stream, 5, _MINUTES, vid, time))
    st_i64(stream, STREAM_AT, ld_i64(stream, STREAM_AT) + 1)


@native("i64(i64, i64, i64)", export=True)
def stream_write(stream: int, start: int, seconds: int) -> int:
    """Write the rows of the first `seconds` of the block that begins at `start` to the batch; return its rows.

    All roads have been driven through the block. The columns have room for two rows for every report.
    """
    seed, share = ld_i64(stream, STREAM_SEED), ld_f64(stream, STREAM_QUERIES)
    leaving = mixed_with(mixed_with(0, HASH_OF_REENTRY), seed)
    asking = mixed_with(mixed_with(0, HASH_OF_QUERY), seed)
    vids = ld_i64(ld_i64(stream, STREAM_COLUMNS), VID)
    st_i64(stream, STREAM_EXIT_COUNT, 0)
    for second in range(seconds):
        first, time = ld_i64(stream, STREAM_AT), start + second
        for n in range(ld_i64(stream, STREAM_ROAD_COUNT)):
            _write_reports(stream, ld_i64(ld_i64(stream, STREAM_ROADS), n), time, second)
        count = ld_i64(stream, STREAM_AT) - first
        _note_exits(stream, leaving, first, count)
        for n in range(count):
            vid = ld_i64(vids, first + n)
            hashed = mixed_with(mixed_with(asking, vid), time)
            if share_of(hashed) < share:
                _write_query(stream, hashed, vid, time)
    return ld_i64(stream, STREAM_AT)
