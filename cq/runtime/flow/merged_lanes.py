"""The output of a ticket's lanes, merged by position into the parcels that leave the stage.

First the order is determined: one word for each row, the number of its parcel and of the row in it. If every row is
caused by a source row, the rows of each serial are counted, which gives their places. Otherwise the lanes' rows are
merged position by position. Then the columns are gathered in that order, a parcel at a time; of a ticket with many
rows, the lanes' parcels are returned as soon as their rows are gathered, so that the rows are not held twice.

Sharing: none. The last lane of a ticket calls `merge_split` and owns its records by then.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    copy,
    fill,
    ld_bit,
    ld_i8,
    ld_i16,
    ld_i32,
    ld_i64,
    max_i64,
    min_i64,
    shl,
    st_bit,
    st_i8,
    st_i16,
    st_i32,
    st_i64,
)
from cq.runtime.flow.arrow_words import BIT, F64, I8, I16, I64, I128, UTF8
from cq.runtime.flow.batch import ITEM_LAST, ITEM_LINK, ITEM_PORT
from cq.runtime.flow.export import parcel_truncate
from cq.runtime.flow.merged_segments import (
    ROW_BITS,
    ROW_MASK,
    segment_rest,
    segment_rows,
    segment_to_failure,
)
from cq.runtime.flow.parcel import DEPOT_LIMIT, PARCEL_PORT, parcel_get, parcel_return, port_make_bytes_room
from cq.runtime.flow.rooms import room_for
from cq.runtime.flow.split_words import (
    LANES_COUNT,
    LANES_DEPOTS,
    LANES_SENDS_ON,
    LANES_TURNS,
    RECORD_FIRST,
    RECORD_STATE,
    RECORD_STATUS,
    RECORD_WORDS,
    SPLIT_FAILED,
    SPLIT_FIRST,
    SPLIT_ITEM,
    SPLIT_LAST,
    SPLIT_ORDER,
    SPLIT_ORDER_ROOM,
    SPLIT_POSITIONS,
    SPLIT_RECORDS,
    SPLIT_STATUS,
)
from cq.runtime.layout.abi import (
    BATCH_FIRST,
    BATCH_ROWS,
    ERROR,
    NEVER,
    OUT_BYTES,
    OUT_BYTES_CAPACITY,
    OUT_DATA,
    OUT_OFFSETS,
    OUT_STORAGE,
    OUT_VALIDITY,
    OUT_WORDS,
    PORT_CAUSES,
    PORT_COLUMN_COUNT,
    PORT_COLUMNS,
    PORT_POSITIONS,
    PORT_ROWS,
    PORT_WATERMARKS,
    POSITION_ARRIVAL,
    POSITION_INSTANT,
    POSITION_NODE,
    POSITION_SERIAL,
    POSITION_START,
    POSITION_WORDS,
    STATE_ERROR_ARRIVAL,
    STATE_ERROR_INSTANT,
    STATE_ERROR_NODE,
    STATE_ERROR_SERIAL,
    STATE_ERROR_START,
)
from cq.runtime.layout.words import Struct

_cursor = Struct("CURSOR")  # how far a lane's rows have been put in order
CURSOR_PARCEL = _cursor.word()  # the number of the parcel whose row is next
CURSOR_ROW = _cursor.word()  # that row
CURSOR_END = _cursor.word()  # the number of the first parcel of the next lane
CURSOR_WORDS = _cursor.size()

_origin = Struct("ORIGIN")  # of a parcel
ORIGIN_RECORD = _origin.word()  # -> the record of its lane
ORIGIN_LEFT = _origin.word()  # its rows that are not gathered yet
ORIGIN_WORDS = _origin.size()

_base = Struct("BASE")  # where a column of a parcel is
BASE_DATA = _base.word()
BASE_VALIDITY = _base.word()
BASE_OFFSETS = _base.word()
BASE_WORDS = _base.size()

LARGEST_TEXT = 2**31 - 1  # bytes of a VARCHAR column with 32-bit offsets
WIDEST_SCATTER = 4  # scatter when serials span at most this many times the rows: the counts are cleared and walked


# -- positions -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def position_before(a: int, b: int) -> int:
    """1 if the position at a is below the one at b."""
    for word in range(POSITION_WORDS):
        mine = ld_i64(a, word)
        other = ld_i64(b, word)
        if mine != other:
            return 1 if mine < other else 0
    return 0


@native("void(i64, i64)")
def _error_position(record: int, target: int) -> None:
    """The position at which the record's lane failed."""
    state = record + RECORD_STATE * 8
    st_i64(target, POSITION_SERIAL, ld_i64(state, STATE_ERROR_SERIAL))
    st_i64(target, POSITION_INSTANT, ld_i64(state, STATE_ERROR_INSTANT))
    st_i64(target, POSITION_NODE, ld_i64(state, STATE_ERROR_NODE))
    st_i64(target, POSITION_START, ld_i64(state, STATE_ERROR_START))
    st_i64(target, POSITION_ARRIVAL, ld_i64(state, STATE_ERROR_ARRIVAL))


@native("i64(i64, i64, i64)")
def first_failure(lanes: int, split: int, scratch: int) -> int:
    """The lane that failed at the smallest position, which is then at `scratch`; -1 if none failed."""
    found = -1
    candidate = scratch + POSITION_WORDS * 8
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        if ld_i64(record, RECORD_STATUS) == ERROR:
            _error_position(record, candidate)
            if found < 0 or position_before(candidate, scratch) == 1:
                copy(scratch, candidate, POSITION_WORDS * 8)
                found = lane
    return found


@native("void(i64, i64, i64, i64)")
def _cut(lanes: int, split: int, failed: int, limit: int) -> None:
    """Remove rows of the other lanes at or after the failing position."""
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        if lane != failed:
            parcel = ld_i64(ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8, RECORD_FIRST)
            while parcel != 0:
                port = parcel + PARCEL_PORT * 8
                rows = ld_i64(port, PORT_ROWS)
                positions = ld_i64(port, PORT_POSITIONS)
                kept = rows
                while kept > 0 and position_before(positions + (kept - 1) * POSITION_WORDS * 8, limit) == 0:
                    kept -= 1
                parcel_truncate(parcel, kept)
                parcel = ld_i64(parcel, ITEM_LINK)


# -- the order -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _next_of_port(parcel: int, port: int) -> int:
    """The first parcel of the list, from here on, that has rows of the port; 0 if there is none."""
    while parcel != 0:
        if ld_i64(parcel, ITEM_PORT) == port and ld_i64(parcel + PARCEL_PORT * 8, PORT_ROWS) > 0:
            return parcel
        parcel = ld_i64(parcel, ITEM_LINK)
    return 0


@native("(i64, i64, i64)(i64, i64, i64)")
def _measure(lanes: int, split: int, port: int) -> tuple[int, int, int]:
    """Parcels with rows of a port, their rows, and how many lanes they come from."""
    parcels = 0
    rows = 0
    giving = 0
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        parcel = _next_of_port(ld_i64(ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8, RECORD_FIRST), port)
        if parcel != 0:
            giving += 1
        while parcel != 0:
            parcels += 1
            rows += ld_i64(parcel + PARCEL_PORT * 8, PORT_ROWS)
            parcel = _next_of_port(ld_i64(parcel, ITEM_LINK), port)
    return parcels, rows, giving


@native("void(i64, i64, i64, i64, i64, i64)")
def _list_parcels(lanes: int, split: int, port: int, parcels: int, origins: int, cursors: int) -> None:
    """Fill `parcels` with the ports of the parcels, lane by lane, `origins` with the origin of each, and `cursors` with
    a cursor for each lane."""
    count = 0
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        cursor = cursors + lane * CURSOR_WORDS * 8
        st_i64(cursor, CURSOR_PARCEL, count)
        st_i64(cursor, CURSOR_ROW, 0)
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        parcel = _next_of_port(ld_i64(record, RECORD_FIRST), port)
        while parcel != 0:
            st_i64(parcels, count, parcel + PARCEL_PORT * 8)
            origin = origins + count * ORIGIN_WORDS * 8
            st_i64(origin, ORIGIN_RECORD, record)
            st_i64(origin, ORIGIN_LEFT, ld_i64(parcel + PARCEL_PORT * 8, PORT_ROWS))
            count += 1
            parcel = _next_of_port(ld_i64(parcel, ITEM_LINK), port)
        st_i64(cursor, CURSOR_END, count)


@native("(i64, i64)(i64, i64)")
def _serial_span(parcels: int, count: int) -> tuple[int, int]:
    """The lowest and the highest serial of the rows."""
    low = NEVER
    high = -NEVER
    for number in range(count):
        port = ld_i64(parcels, number)
        positions = ld_i64(port, PORT_POSITIONS)
        low = min_i64(low, ld_i64(positions, POSITION_SERIAL))
        last = positions + (ld_i64(port, PORT_ROWS) - 1) * POSITION_WORDS * 8
        high = max_i64(high, ld_i64(last, POSITION_SERIAL))
    return low, high


@native("i64(i64, i64, i64, i64, i64)")
def _count_places(parcels: int, count: int, low: int, turns: int, counts: int) -> int:
    """Count in `counts` how many rows each serial has caused in each turn; 1, or 0 if a row has no such cause."""
    for number in range(count):
        port = ld_i64(parcels, number)
        positions = ld_i64(port, PORT_POSITIONS)
        for row in range(ld_i64(port, PORT_ROWS)):
            at = row * POSITION_WORDS
            turn = ld_i64(positions, at + POSITION_NODE)
            if ld_i64(positions, at + POSITION_INSTANT) != NEVER or turn >= turns:
                return 0
            place = (ld_i64(positions, at + POSITION_SERIAL) - low) * turns + turn
            st_i64(counts, place, ld_i64(counts, place) + 1)
    return 1


@native("i64(i64, i64, i64, i64, i64, i64, i64)")
def _scatter(parcels: int, count: int, low: int, span: int, turns: int, counts: int, order: int) -> int:
    """Fill `order` with the rows by serial, then turn; 1, or 0 if a row is not caused by a source row.

    counts: room for span * turns words. Rows of one serial and turn come from one lane, which has them in order.
    """
    fill(counts, 0, span * turns * 8)
    if _count_places(parcels, count, low, turns, counts) == 0:
        return 0
    first = 0
    for place in range(span * turns):
        mine = ld_i64(counts, place)
        st_i64(counts, place, first)
        first += mine
    for number in range(count):
        port = ld_i64(parcels, number)
        positions = ld_i64(port, PORT_POSITIONS)
        tag = shl(number, ROW_BITS)
        for row in range(ld_i64(port, PORT_ROWS)):
            at = row * POSITION_WORDS
            place = (ld_i64(positions, at + POSITION_SERIAL) - low) * turns + ld_i64(positions, at + POSITION_NODE)
            own = ld_i64(counts, place)
            st_i64(counts, place, own + 1)
            st_i64(order, own, tag | row)
    return 1


@native("void(i64, i64, i64, i64, i64)")
def _merge_lanes(lanes: int, parcels: int, cursors: int, rows: int, order: int) -> None:
    """Fill `order` with the rows by position, comparing the lanes' heads for each."""
    count = ld_i64(lanes, LANES_COUNT)
    for place in range(rows):
        best = -1
        best_at = 0
        for lane in range(count):
            cursor = cursors + lane * CURSOR_WORDS * 8
            parcel = ld_i64(cursor, CURSOR_PARCEL)
            if parcel < ld_i64(cursor, CURSOR_END):
                positions = ld_i64(ld_i64(parcels, parcel), PORT_POSITIONS)
                at = positions + ld_i64(cursor, CURSOR_ROW) * POSITION_WORDS * 8
                if best < 0 or position_before(at, best_at) == 1:
                    best = lane
                    best_at = at
        cursor = cursors + best * CURSOR_WORDS * 8
        parcel = ld_i64(cursor, CURSOR_PARCEL)
        row = ld_i64(cursor, CURSOR_ROW)
        st_i64(order, place, shl(parcel, ROW_BITS) | row)
        if row + 1 == ld_i64(ld_i64(parcels, parcel), PORT_ROWS):
            st_i64(cursor, CURSOR_PARCEL, parcel + 1)
            st_i64(cursor, CURSOR_ROW, 0)
        else:
            st_i64(cursor, CURSOR_ROW, row + 1)


# -- the columns -----------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64, i64)")
def _bases(parcels: int, count: int, column: int, bases: int) -> None:
    """Fill `bases` with the place of a column in each parcel that has not been returned."""
    for number in range(count):
        port = ld_i64(parcels, number)
        if port != 0:
            out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
            base = bases + number * BASE_WORDS * 8
            st_i64(base, BASE_DATA, ld_i64(out, OUT_DATA))
            st_i64(base, BASE_VALIDITY, ld_i64(out, OUT_VALIDITY))
            st_i64(base, BASE_OFFSETS, ld_i64(out, OUT_OFFSETS))


@native("void(i64, i64, i64, i64, i64)")
def _gather_fixed(order: int, rows: int, bases: int, target: int, storage: int) -> None:
    """Gather values of a fixed width, except BIT, in the order."""
    for row in range(rows):
        entry = ld_i64(order, row)
        source = ld_i64(bases, (entry >> ROW_BITS) * BASE_WORDS + BASE_DATA)
        at = entry & ROW_MASK
        if storage == I64 or storage == F64:
            st_i64(target, row, ld_i64(source, at))
        elif storage == I128:
            st_i64(target, row * 2, ld_i64(source, at * 2))
            st_i64(target, row * 2 + 1, ld_i64(source, at * 2 + 1))
        elif storage == I16:
            st_i16(target, row, ld_i16(source, at))
        elif storage == I8:
            st_i8(target, row, ld_i8(source, at))
        else:
            st_i32(target, row, ld_i32(source, at))


@native("void(i64, i64, i64, i64, i64)")
def _gather_bits(order: int, rows: int, bases: int, word: int, target: int) -> None:
    """Gather bits in the order; without a bitmap in a parcel they are 1. word: of a base, where the bits are."""
    for row in range(rows):
        entry = ld_i64(order, row)
        source = ld_i64(bases, (entry >> ROW_BITS) * BASE_WORDS + word)
        st_bit(target, row, source == 0 or ld_bit(source, entry & ROW_MASK))


@native("i64(i64, i64, i64, i64)")
def _gather_strings(order: int, rows: int, bases: int, out: int) -> int:
    """Gather the strings in an output column in the order; 1, or 0 without memory."""
    size = 0
    for row in range(rows):
        entry = ld_i64(order, row)
        offsets = ld_i64(bases, (entry >> ROW_BITS) * BASE_WORDS + BASE_OFFSETS)
        size += ld_i32(offsets, (entry & ROW_MASK) + 1) - ld_i32(offsets, entry & ROW_MASK)
    if size > LARGEST_TEXT or (size > ld_i64(out, OUT_BYTES_CAPACITY) and port_make_bytes_room(out, size) == 0):
        return 0
    target = ld_i64(out, OUT_DATA)
    ends = ld_i64(out, OUT_OFFSETS)
    used = 0
    for row in range(rows):
        entry = ld_i64(order, row)
        offsets = ld_i64(bases, (entry >> ROW_BITS) * BASE_WORDS + BASE_OFFSETS)
        begin = ld_i32(offsets, entry & ROW_MASK)
        length = ld_i32(offsets, (entry & ROW_MASK) + 1) - begin
        copy(target + used, ld_i64(bases, (entry >> ROW_BITS) * BASE_WORDS + BASE_DATA) + begin, length)
        used += length
        st_i32(ends, row + 1, used)
    st_i64(out, OUT_BYTES, used)
    return 1


@native("void(i64, i64, i64, i64, i64)")
def _gather_list(order: int, rows: int, parcels: int, port: int, word: int) -> None:
    """Gather, in the order, what the parcels carry for each row in the list that this word of a port points to."""
    target = ld_i64(port, word)
    if target == 0:
        return
    for row in range(rows):
        entry = ld_i64(order, row)
        source = ld_i64(ld_i64(parcels, entry >> ROW_BITS), word)
        st_i64(target, row, ld_i64(source, entry & ROW_MASK))


@native("i64(i64, i64, i64, i64, i64, i64)")
def _gather_parcel(depot: int, parcels: int, count: int, bases: int, order: int, rows: int) -> int:
    """A parcel with `rows` rows in the order; 0 without memory."""
    parcel = parcel_get(depot)
    if parcel == 0:
        return 0
    port = parcel + PARCEL_PORT * 8
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        storage = ld_i64(out, OUT_STORAGE)
        _bases(parcels, count, column, bases)
        if ld_i64(out, OUT_VALIDITY) != 0:
            _gather_bits(order, rows, bases, BASE_VALIDITY, ld_i64(out, OUT_VALIDITY))
        if storage == UTF8:
            if _gather_strings(order, rows, bases, out) == 0:
                parcel_return(parcel)
                return 0
        elif storage == BIT:
            _gather_bits(order, rows, bases, BASE_DATA, ld_i64(out, OUT_DATA))
        else:
            _gather_fixed(order, rows, bases, ld_i64(out, OUT_DATA), storage)
    _gather_list(order, rows, parcels, port, PORT_WATERMARKS)
    _gather_list(order, rows, parcels, port, PORT_CAUSES)
    st_i64(port, PORT_ROWS, rows)
    return parcel


# -- one ticket ------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64)")
def append_merged(split: int, port: int, parcel: int) -> None:
    """Append the parcel to the split's merged ones."""
    st_i64(parcel, ITEM_PORT, port)
    st_i64(parcel, ITEM_LINK, 0)
    if ld_i64(split, SPLIT_FIRST) == 0:
        st_i64(split, SPLIT_FIRST, parcel)
    else:
        st_i64(ld_i64(split, SPLIT_LAST), ITEM_LINK, parcel)
    st_i64(split, SPLIT_LAST, parcel)


@native("void(i64, i64)")
def _unlink(record: int, parcel: int) -> None:
    """Remove the parcel from the record's list."""
    at = ld_i64(record, RECORD_FIRST)
    if at == parcel:
        st_i64(record, RECORD_FIRST, ld_i64(parcel, ITEM_LINK))
        return
    while ld_i64(at, ITEM_LINK) != parcel:
        at = ld_i64(at, ITEM_LINK)
    st_i64(at, ITEM_LINK, ld_i64(parcel, ITEM_LINK))


@native("void(i64, i64, i64)")
def _append_unchanged(lanes: int, split: int, port: int) -> None:
    """Append the parcels with rows of the port to the merged ones, unchanged: one lane has them all."""
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        parcel = _next_of_port(ld_i64(record, RECORD_FIRST), port)
        while parcel != 0:
            following = _next_of_port(ld_i64(parcel, ITEM_LINK), port)
            _unlink(record, parcel)
            append_merged(split, port, parcel)
            parcel = following


@native("void(i64, i64, i64, i64)")
def _return_gathered(parcels: int, origins: int, order: int, rows: int) -> None:
    """Return the lanes' parcels whose last row is among these, which have been gathered."""
    for row in range(rows):
        number = ld_i64(order, row) >> ROW_BITS
        origin = origins + number * ORIGIN_WORDS * 8
        left = ld_i64(origin, ORIGIN_LEFT) - 1
        st_i64(origin, ORIGIN_LEFT, left)
        if left == 0:
            parcel = ld_i64(parcels, number) - PARCEL_PORT * 8
            st_i64(parcels, number, 0)
            _unlink(ld_i64(origin, ORIGIN_RECORD), parcel)
            parcel_return(parcel)


@native("i64(i64, i64, i64)")
def _merge_port(lanes: int, split: int, port: int) -> int:
    """Add the rows of one port to the merged parcels, in order, and return 1; 0 without memory."""
    count, rows, giving = _measure(lanes, split, port)
    sends_on = ld_i64(lanes, LANES_SENDS_ON)
    if giving <= 1 and sends_on == 0:
        _append_unchanged(lanes, split, port)
        return 1
    width = ld_i64(lanes, LANES_COUNT)
    head = count * (1 + BASE_WORDS + ORIGIN_WORDS) + width * CURSOR_WORDS
    if room_for(split, SPLIT_ORDER_ROOM, SPLIT_ORDER, head + rows * (1 + WIDEST_SCATTER), 8) == 0:
        return 0
    room = ld_i64(split, SPLIT_ORDER)
    bases = room + count * 8
    origins = bases + count * BASE_WORDS * 8
    cursors = origins + count * ORIGIN_WORDS * 8
    order = room + head * 8
    item = ld_i64(split, SPLIT_ITEM)
    _list_parcels(lanes, split, port, room, origins, cursors)
    if rows > 0:
        low, high = _serial_span(room, count)
        span = high - low + 1
        turns = ld_i64(lanes, LANES_TURNS)
        counts = order + rows * 8
        # rows made at the end have the serial after the last row, in every lane
        wide = span * turns > rows * WIDEST_SCATTER or high >= ld_i64(item, BATCH_FIRST) + ld_i64(item, BATCH_ROWS)
        if wide or _scatter(room, count, low, span, turns, counts, order) == 0:
            _merge_lanes(lanes, room, cursors, rows, order)
    depot = ld_i64(ld_i64(lanes, LANES_DEPOTS), port)
    segment = 0
    done = 0
    while done < rows:
        portion = min_i64(rows - done, ld_i64(depot, DEPOT_LIMIT))
        parcel = _gather_parcel(depot, room, count, bases, order + done * 8, portion)
        if parcel == 0:
            return 0
        append_merged(split, port, parcel)
        if sends_on == 1:
            segment = segment_rows(item, parcel, room, order + done * 8, portion, segment)
            if segment < 0:
                return 0
        if portion < rows:
            _return_gathered(room, origins, order + done * 8, portion)
        done += portion
    return _end_sent_on(depot, split, segment) if sends_on == 1 else 1


@native("i64(i64, i64, i64)")
def _end_sent_on(depot: int, split: int, segment: int) -> int:
    """Pass all remaining events on with the last merged parcel, or an empty one; 1, or 0 without memory."""
    if ld_i64(split, SPLIT_FIRST) == 0:
        parcel = parcel_get(depot)
        if parcel == 0:
            return 0
        append_merged(split, 0, parcel)
    last = ld_i64(split, SPLIT_LAST)
    item = ld_i64(split, SPLIT_ITEM)
    if ld_i64(split, SPLIT_STATUS) == ERROR:
        return segment_to_failure(item, last, segment, ld_i64(split, SPLIT_POSITIONS))
    st_i64(last, ITEM_LAST, ld_i64(item, ITEM_LAST))
    return segment_rest(item, last, segment)


@native("void(i64, i64)")
def _clear_records(lanes: int, split: int) -> None:
    """Return the lanes' parcels to their depots."""
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        parcel = ld_i64(record, RECORD_FIRST)
        st_i64(record, RECORD_FIRST, 0)
        while parcel != 0:
            following = ld_i64(parcel, ITEM_LINK)
            parcel_return(parcel)
            parcel = following


@native("i64(i64, i64, i64)")
def merge_split(lanes: int, split: int, ports: int) -> int:
    """Merge the ticket's rows, up to its first failure, and empty the records; 1, or 0 without memory."""
    scratch = ld_i64(split, SPLIT_POSITIONS)
    failed = first_failure(lanes, split, scratch)
    if failed >= 0:
        st_i64(split, SPLIT_STATUS, ERROR)
        st_i64(
            split,
            SPLIT_FAILED,
            ld_i64(split, SPLIT_RECORDS) + (failed * RECORD_WORDS + RECORD_STATE) * 8,
        )
        _cut(lanes, split, failed, scratch)
    enough = 1
    for port in range(ports):
        if enough == 1:
            enough = _merge_port(lanes, split, port)
    _clear_records(lanes, split)
    return enough
