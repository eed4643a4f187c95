"""Shares of a ticket with rows of several ports: a lane's rows between two events are one segment, whatever their
ports.

If inputs take turns, a segment for each row, or for every few, costs more to write and to read than the rows do. So a
share has two lists of words. SELECTION has its rows in their order: the serial of each, counted from the ticket's first
one, above its place in the other list (SHARE_SERIAL_SHIFT). MIXED has the rows port by port, those of a lane adjacent,
as in a ticket: the port above the number (MIXED_PORT_SHIFT). There a kernel that looks ahead finds the rows of a port
that its lane takes next, wherever they are among those of others.

Sharing: none. The worker that has the ticket calls these (cq/runtime/flow/split.py).
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    call6,
    copy,
    fill,
    ld_i64,
    ld_u8,
    ld_u32,
    max_i64,
    min_i64,
    shl,
    shr_u,
    st_i64,
    st_u8,
)
from cq.runtime.flow.rooms import room_for
from cq.runtime.flow.split_words import (
    LANES_BRANCHES,
    LANES_COUNT,
    LANES_ENTRY,
    LANES_INPUTS,
    LANES_ROUTE,
    NO_LANE,
    PARTITION_MASK,
    PARTITIONS,
    RECORD_SEGMENT_COUNT,
    RECORD_STATUS,
    RECORD_WORDS,
    SPLIT_HASHES,
    SPLIT_HASHES_ROOM,
    SPLIT_ITEM,
    SPLIT_LANE_OF,
    SPLIT_MIXED,
    SPLIT_MIXED_ROOM,
    SPLIT_PLACES,
    SPLIT_PORTS,
    SPLIT_PORTS_ROOM,
    SPLIT_RECORDS,
    SPLIT_SELECTION,
    SPLIT_SELECTION_ROOM,
)
from cq.runtime.layout.abi import (
    BATCH_FIRST,
    BATCH_MIXED,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    MIXED,
    MIXED_PORT_SHIFT,
    NEVER,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_ROWS,
    SEGMENT_SERIAL,
    SEGMENT_WORDS,
    SHARE_AHEAD_ROWS,
    SHARE_SERIAL_SHIFT,
)
from cq.runtime.layout.words import Struct

_range = Struct("RANGE")  # the rows of a port in a ticket; after it a word a lane: where in MIXED its next row goes
RANGE_FIRST = _range.word()
RANGE_END = _range.word()
RANGE_HASHES = _range.word()  # -> u32 a row, by its number; 0: the current branch does not read the port
RANGE_WORDS = _range.size()

NUMBER_MASK = (1 << MIXED_PORT_SHIFT) - 1


@native("i64(i64, i64, i64)", inline=True)
def _range_of(lanes: int, split: int, port: int) -> int:
    """The address of a port's range."""
    return ld_i64(split, SPLIT_PORTS) + port * (RANGE_WORDS + ld_i64(lanes, LANES_COUNT)) * 8


@native("i64(i64, i64, i64)", inline=True)
def _where(item: int, segment: int, at: int) -> int:
    """Where row `at` of a segment is, in the form of BATCH_MIXED."""
    port = ld_i64(segment, SEGMENT_PORT)
    return ld_i64(ld_i64(item, BATCH_MIXED), at) if port == MIXED else shl(port, MIXED_PORT_SHIFT) | at


@native("void(i64, i64)")
def _widen(lanes: int, split: int) -> None:
    """Set the ranges of the ports to all rows of the ticket."""
    item = ld_i64(split, SPLIT_ITEM)
    for port in range(ld_i64(lanes, LANES_INPUTS)):
        st_i64(_range_of(lanes, split, port), RANGE_FIRST, NEVER)
        st_i64(_range_of(lanes, split, port), RANGE_END, 0)
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) <= SEGMENT_LATE:
            lo = ld_i64(segment, SEGMENT_LO)
            hi = ld_i64(segment, SEGMENT_HI)
            step = 1 if ld_i64(segment, SEGMENT_PORT) == MIXED else max_i64(1, hi - lo - 1)  # else its ends are enough
            while lo < hi:
                where = _where(item, segment, lo)
                found = _range_of(lanes, split, shr_u(where, MIXED_PORT_SHIFT))
                row = where & NUMBER_MASK
                st_i64(found, RANGE_FIRST, min_i64(ld_i64(found, RANGE_FIRST), row))
                st_i64(found, RANGE_END, max_i64(ld_i64(found, RANGE_END), row + 1))
                lo += step


@native("i64(i64, i64)")
def share_rooms(lanes: int, split: int) -> int:
    """Set the ranges to the ticket's rows, and make room for the lists; 1, or 0 without memory."""
    inputs = ld_i64(lanes, LANES_INPUTS)
    branches = ld_i64(lanes, LANES_BRANCHES)
    width = (RANGE_WORDS + ld_i64(lanes, LANES_COUNT)) * 8
    if room_for(split, SPLIT_PORTS_ROOM, SPLIT_PORTS, inputs, width) == 0:
        return 0
    _widen(lanes, split)
    hashes = 0
    for port in range(inputs):
        found = _range_of(lanes, split, port)
        hashes += max_i64(0, ld_i64(found, RANGE_END) - ld_i64(found, RANGE_FIRST))
    rows = ld_i64(ld_i64(split, SPLIT_ITEM), BATCH_ROWS) * branches
    return (
        room_for(split, SPLIT_HASHES_ROOM, SPLIT_HASHES, hashes, 4)
        & room_for(split, SPLIT_SELECTION_ROOM, SPLIT_SELECTION, rows, 8)
        & room_for(split, SPLIT_MIXED_ROOM, SPLIT_MIXED, rows + SHARE_AHEAD_ROWS, 8)
    )


@native("void(i64, i64, i64, i64)")
def _hash_ports(lanes: int, split: int, branch: int, constants: int) -> None:
    """Hash the keys of all rows, if the branch reads their port."""
    hashes = ld_i64(split, SPLIT_HASHES)
    inputs = ld_i64(lanes, LANES_INPUTS)
    for port in range(inputs):
        found = _range_of(lanes, split, port)
        lo = ld_i64(found, RANGE_FIRST)
        hi = ld_i64(found, RANGE_END)
        st_i64(found, RANGE_HASHES, 0)
        if hi > lo:
            place = branch * inputs + port
            item = ld_i64(split, SPLIT_ITEM)
            if call6(ld_i64(lanes, LANES_ENTRY), item, place, lo, hi, hashes, constants) == 1:
                st_i64(found, RANGE_HASHES, hashes - lo * 4)
            hashes += (hi - lo) * 4


@native("void(i64, i64, i64, i64)")
def _note_lanes(lanes: int, split: int, branch: int, segment: int) -> None:
    """Store the lanes of a segment's rows in a branch in LANE_OF, and count them by port and lane in the ranges."""
    item = ld_i64(split, SPLIT_ITEM)
    lo = ld_i64(segment, SEGMENT_LO)
    route = ld_i64(lanes, LANES_ROUTE) + branch * PARTITIONS
    lane_of = ld_i64(split, SPLIT_LANE_OF) + branch * ld_i64(item, BATCH_ROWS)
    lane_of += ld_i64(segment, SEGMENT_SERIAL) - ld_i64(item, BATCH_FIRST) - lo
    for at in range(lo, ld_i64(segment, SEGMENT_HI)):
        where = _where(item, segment, at)
        found = _range_of(lanes, split, shr_u(where, MIXED_PORT_SHIFT))
        hashes = ld_i64(found, RANGE_HASHES)
        lane = NO_LANE
        if hashes != 0:
            lane = ld_u8(route, ld_u32(hashes, where & NUMBER_MASK) & PARTITION_MASK)
            st_i64(found, RANGE_WORDS + lane, ld_i64(found, RANGE_WORDS + lane) + 1)
        st_u8(lane_of, at, lane)


@native("i64(i64, i64, i64)")
def find_shares(lanes: int, split: int, constants: int) -> int:
    """Store the lane of every row in every branch in LANE_OF, and where each lane's rows begin in PLACES and the
    ranges.

    Returns how many events are among the segments. The ranges are those of the ticket (`share_rooms`).
    """
    item = ld_i64(split, SPLIT_ITEM)
    inputs = ld_i64(lanes, LANES_INPUTS)
    count = ld_i64(lanes, LANES_COUNT)
    for port in range(inputs):
        fill(_range_of(lanes, split, port) + RANGE_WORDS * 8, 0, count * 8)
    events = 0
    for branch in range(ld_i64(lanes, LANES_BRANCHES)):
        _hash_ports(lanes, split, branch, constants)
        events = 0
        for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
            segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
            if ld_i64(segment, SEGMENT_KIND) > SEGMENT_LATE:
                events += 1
            else:
                _note_lanes(lanes, split, branch, segment)
    _place_lanes(lanes, split)
    return events


@native("void(i64, i64)")
def _place_lanes(lanes: int, split: int) -> None:
    """Turn counts into places: PLACES holds where a lane's rows begin in SELECTION, the ranges where those of a port
    begin in the list of its branch."""
    count = ld_i64(lanes, LANES_COUNT)
    each = count // ld_i64(lanes, LANES_BRANCHES)
    inputs = ld_i64(lanes, LANES_INPUTS)
    places = ld_i64(split, SPLIT_PLACES)
    first = 0
    for lane in range(count):
        st_i64(places, lane, first)
        for port in range(inputs):
            first += ld_i64(_range_of(lanes, split, port), RANGE_WORDS + lane)
    for branch in range(ld_i64(lanes, LANES_BRANCHES)):
        first = 0
        for port in range(inputs):
            found = _range_of(lanes, split, port)
            for lane in range(branch * each, (branch + 1) * each):
                mine = ld_i64(found, RANGE_WORDS + lane)
                st_i64(found, RANGE_WORDS + lane, first)
                first += mine


@native("void(i64, i64, i64, i64)")
def _take_places(lanes: int, split: int, branch: int, segment: int) -> None:
    """Append the rows of a segment that a branch reads to the lists, each after those of its lane."""
    item = ld_i64(split, SPLIT_ITEM)
    rows = ld_i64(item, BATCH_ROWS)
    lo = ld_i64(segment, SEGMENT_LO)
    serial = ld_i64(segment, SEGMENT_SERIAL) - ld_i64(item, BATCH_FIRST) - lo
    lane_of = ld_i64(split, SPLIT_LANE_OF) + branch * rows + serial
    mixed = ld_i64(split, SPLIT_MIXED) + branch * rows * 8
    selection = ld_i64(split, SPLIT_SELECTION)
    places = ld_i64(split, SPLIT_PLACES)
    for at in range(lo, ld_i64(segment, SEGMENT_HI)):
        lane = ld_u8(lane_of, at)
        if lane != NO_LANE:
            where = _where(item, segment, at)
            found = _range_of(lanes, split, shr_u(where, MIXED_PORT_SHIFT))
            own = ld_i64(found, RANGE_WORDS + lane)
            st_i64(found, RANGE_WORDS + lane, own + 1)
            st_i64(mixed, own, where)
            place = ld_i64(places, lane)
            st_i64(places, lane, place + 1)
            st_i64(selection, place, shl(serial + at, SHARE_SERIAL_SHIFT) | own)


@native("void(i64, i64, i64)")
def share_event(split: int, lane: int, segment: int) -> None:
    """Append this event to the lane's segments."""
    record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
    count = ld_i64(record, RECORD_SEGMENT_COUNT)
    copy(ld_i64(record, BATCH_SEGMENTS) + count * SEGMENT_WORDS * 8, segment, SEGMENT_WORDS * 8)
    st_i64(record, RECORD_SEGMENT_COUNT, count + 1)


@native("void(i64, i64, i64)")
def _end_segments(lanes: int, split: int, kind: int) -> None:
    """Make each lane's rows since its last segment a segment of this kind, if there are any. Its port is the branch."""
    first = ld_i64(ld_i64(split, SPLIT_ITEM), BATCH_FIRST)
    each = ld_i64(lanes, LANES_COUNT) // ld_i64(lanes, LANES_BRANCHES)
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        lo = ld_i64(record, RECORD_STATUS)  # until the kernel runs: where these rows begin
        hi = ld_i64(ld_i64(split, SPLIT_PLACES), lane)
        if hi > lo:
            count = ld_i64(record, RECORD_SEGMENT_COUNT)
            target = ld_i64(record, BATCH_SEGMENTS) + count * SEGMENT_WORDS * 8
            st_i64(target, SEGMENT_KIND, kind)
            st_i64(target, SEGMENT_PORT, lane // each)
            st_i64(target, SEGMENT_LO, lo)
            st_i64(target, SEGMENT_HI, hi)
            serial = shr_u(ld_i64(ld_i64(split, SPLIT_SELECTION), lo), SHARE_SERIAL_SHIFT)
            st_i64(target, SEGMENT_SERIAL, first + serial)
            st_i64(record, RECORD_SEGMENT_COUNT, count + 1)
            st_i64(record, BATCH_ROWS, ld_i64(record, BATCH_ROWS) + hi - lo)
            st_i64(record, RECORD_STATUS, hi)


@native("void(i64, i64)")
def share_ports(lanes: int, split: int) -> None:
    """Give every lane its share of the ticket, after its record is open and `find_shares` has placed its rows."""
    item = ld_i64(split, SPLIT_ITEM)
    branches = ld_i64(lanes, LANES_BRANCHES)
    kind = SEGMENT_ROWS
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        own = ld_i64(segment, SEGMENT_KIND)
        if own != kind:
            _end_segments(lanes, split, kind)
            kind = own
        if own > SEGMENT_LATE:
            for lane in range(ld_i64(lanes, LANES_COUNT)):
                share_event(split, lane, segment)
        else:
            for branch in range(branches):
                _take_places(lanes, split, branch, segment)
    _end_segments(lanes, split, kind)
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        branch = lane * branches // ld_i64(lanes, LANES_COUNT)
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        st_i64(record, BATCH_MIXED, ld_i64(split, SPLIT_MIXED) + branch * ld_i64(item, BATCH_ROWS) * 8)
