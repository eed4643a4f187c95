"""Splits: a ticket's rows sorted by lane, each lane's share a batch of its own.

The rows stay in place. A split has one list of row numbers, lane by lane and in order within a lane, and for each lane
the segments of its share, whose bounds index into the list. If rows belong to several ports the list has more about
them (cq/runtime/flow/shares.py). Buffers grow to the largest ticket and are kept.

Sharing: a split is written by the worker that has the ticket, then read by the lanes, each of which writes its own
record; SPLIT_LEFT, counted down, hands it to the last of them (cq/runtime/engine/ways/lanes.py).
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    call6,
    copy,
    fill,
    ld_i32,
    ld_i64,
    ld_u8,
    ld_u32,
    release,
    st_i32,
    st_i64,
    st_u8,
    zalloc,
)
from cq.runtime.flow.rooms import room_for
from cq.runtime.flow.shares import find_shares, share_event, share_ports, share_rooms
from cq.runtime.flow.split_words import (
    LANES_BRANCHES,
    LANES_COUNT,
    LANES_ENTRY,
    LANES_INPUTS,
    LANES_ROUTE,
    NO_LANE,
    PARTITION_MASK,
    PARTITIONS,
    RECORD_FIRST,
    RECORD_SEGMENT_COUNT,
    RECORD_SHARE,
    RECORD_STATUS,
    RECORD_WORDS,
    SPLIT_HASHES,
    SPLIT_HASHES_ROOM,
    SPLIT_HOME,
    SPLIT_ITEM,
    SPLIT_LANE_OF,
    SPLIT_LANE_OF_ROOM,
    SPLIT_MIXED,
    SPLIT_ORDER,
    SPLIT_OWN_FAILURE,
    SPLIT_PLACES,
    SPLIT_PORTS,
    SPLIT_POSITIONS,
    SPLIT_RECORDS,
    SPLIT_SEGMENTS,
    SPLIT_SEGMENTS_ROOM,
    SPLIT_SELECTION,
    SPLIT_SELECTION_ROOM,
    SPLIT_WORDS,
)
from cq.runtime.layout.abi import (
    BATCH_CAUSES,
    BATCH_ENDED,
    BATCH_FIRST,
    BATCH_PORTS,
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_SELECTION,
    BATCH_TICKET,
    BATCH_WATERMARKS,
    DONE,
    POSITION_WORDS,
    SEGMENT_CLOSE,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_SERIAL,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
    STATE_FIRST_FREE,
)
from cq.runtime.queues.pool import pool_put


@native("i64(i64, i64)", export=True)
def split_new(lanes: int, home: int) -> int:
    """An empty split for this many lanes, in its home; 0 without memory."""
    own = SPLIT_WORDS + lanes * (RECORD_WORDS + 1)
    split = zalloc((own + STATE_FIRST_FREE + POSITION_WORDS * 2) * 8)
    if split != 0:
        st_i64(split, SPLIT_RECORDS, split + SPLIT_WORDS * 8)
        st_i64(split, SPLIT_PLACES, split + (SPLIT_WORDS + lanes * RECORD_WORDS) * 8)
        st_i64(split, SPLIT_OWN_FAILURE, split + own * 8)
        st_i64(split, SPLIT_POSITIONS, split + (own + STATE_FIRST_FREE) * 8)
        st_i64(split, SPLIT_HOME, home)
        pool_put(home, split)
    return split


@native("void(i64)", export=True)
def split_drop(split: int) -> None:
    """Free the split; it holds no parcels."""
    release(ld_i64(split, SPLIT_HASHES))
    release(ld_i64(split, SPLIT_LANE_OF))
    release(ld_i64(split, SPLIT_SELECTION))
    release(ld_i64(split, SPLIT_SEGMENTS))
    release(ld_i64(split, SPLIT_MIXED))
    release(ld_i64(split, SPLIT_PORTS))
    release(ld_i64(split, SPLIT_ORDER))
    release(split)


@native("i64(i64, i64, i64)")
def _rooms(lanes: int, split: int, segments: int) -> int:
    """Make room in the lists for the rows, counted once per branch, and this many segments; 1, or 0 without memory."""
    rows = ld_i64(ld_i64(split, SPLIT_ITEM), BATCH_ROWS) * ld_i64(lanes, LANES_BRANCHES)
    enough = room_for(split, SPLIT_LANE_OF_ROOM, SPLIT_LANE_OF, rows, 1) & room_for(
        split, SPLIT_SEGMENTS_ROOM, SPLIT_SEGMENTS, segments, SEGMENT_WORDS * 8
    )
    if ld_i64(lanes, LANES_INPUTS) > 1:
        return enough & share_rooms(lanes, split)
    return (
        enough
        & room_for(split, SPLIT_HASHES_ROOM, SPLIT_HASHES, rows, 4)
        & room_for(split, SPLIT_SELECTION_ROOM, SPLIT_SELECTION, rows, 4)
    )


@native("i64(i64, i64, i64)")
def _find_lanes(lanes: int, split: int, constants: int) -> int:
    """Store the lane of every row in every branch in LANE_OF, and where each lane's rows begin in SELECTION in PLACES.

    Returns how many events are among the segments. There is one port.
    """
    item = ld_i64(split, SPLIT_ITEM)
    places = ld_i64(split, SPLIT_PLACES)
    count = ld_i64(lanes, LANES_COUNT)
    fill(places, 0, count * 8)
    events = 0
    done = 0
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) > SEGMENT_LATE:
            events += 1
        else:
            for branch in range(ld_i64(lanes, LANES_BRANCHES)):
                target = ld_i64(split, SPLIT_LANE_OF) + branch * ld_i64(item, BATCH_ROWS) + done
                _find_lanes_of(lanes, split, branch, segment, target, constants)
            done += ld_i64(segment, SEGMENT_HI) - ld_i64(segment, SEGMENT_LO)
    first = 0
    for lane in range(count):
        mine = ld_i64(places, lane)
        st_i64(places, lane, first)
        first += mine
    return events


@native("void(i64, i64, i64, i64, i64, i64)")
def _find_lanes_of(lanes: int, split: int, branch: int, segment: int, lane_of: int, constants: int) -> None:
    """Store the lanes of a segment's rows in a branch at `lane_of`, and count them in PLACES."""
    lo = ld_i64(segment, SEGMENT_LO)
    hi = ld_i64(segment, SEGMENT_HI)
    hashes = ld_i64(split, SPLIT_HASHES)
    if call6(ld_i64(lanes, LANES_ENTRY), ld_i64(split, SPLIT_ITEM), branch, lo, hi, hashes, constants) == 0:
        fill(lane_of, NO_LANE, hi - lo)
        return
    route = ld_i64(lanes, LANES_ROUTE) + branch * PARTITIONS
    for row in range(hi - lo):
        st_u8(lane_of, row, ld_u8(route, ld_u32(hashes, row) & PARTITION_MASK))
    _count_rows(ld_i64(split, SPLIT_PLACES), lane_of, hi - lo)


@native("i64(i64, i64)")
def _are_alike(lane_of: int, rows: int) -> int:
    """1 if all of these rows, at least one, belong to one lane."""
    first = ld_u8(lane_of, 0)
    others = 0
    for row in range(rows):
        others |= ld_u8(lane_of, row) ^ first
    return 1 if others == 0 else 0


@native("void(i64, i64, i64)")
def _count_rows(places: int, lane_of: int, rows: int) -> None:
    """Count the rows of each lane in PLACES; at once if all belong to one, because one counter adds up slowly."""
    if rows > 0 and _are_alike(lane_of, rows) == 1:
        lane = ld_u8(lane_of, 0)
        st_i64(places, lane, ld_i64(places, lane) + rows)
        return
    for row in range(rows):
        lane = ld_u8(lane_of, row)
        st_i64(places, lane, ld_i64(places, lane) + 1)


@native("void(i64, i64, i64)")
def _spread_rows(split: int, segment: int, lanes_of: int) -> None:
    """Write the row numbers of a segment to SELECTION, each after those of its lane, unless they have none.

    lanes_of: -> the lanes of its rows in a branch.
    """
    lo = ld_i64(segment, SEGMENT_LO)
    hi = ld_i64(segment, SEGMENT_HI)
    if hi == lo or ld_u8(lanes_of, 0) == NO_LANE:
        return
    lane_of = lanes_of - lo
    places = ld_i64(split, SPLIT_PLACES)
    selection = ld_i64(split, SPLIT_SELECTION)
    if _are_alike(lanes_of, hi - lo) == 1:
        lane = ld_u8(lanes_of, 0)
        place = ld_i64(places, lane)
        for row in range(hi - lo):
            st_i32(selection, place + row, lo + row)
        st_i64(places, lane, place + hi - lo)
        return
    for row in range(lo, hi):
        lane = ld_u8(lane_of, row)
        place = ld_i64(places, lane)
        st_i32(selection, place, row)
        st_i64(places, lane, place + 1)


@native("void(i64, i64, i64, i64)")
def _share_rows(lanes: int, split: int, branch: int, segment: int) -> None:
    """Give the lanes of a branch their shares of a segment's rows."""
    each = ld_i64(lanes, LANES_COUNT) // ld_i64(lanes, LANES_BRANCHES)
    for lane in range(branch * each, (branch + 1) * each):
        _share_segment(split, lane, segment, branch)


@native("void(i64, i64, i64, i64)")
def _share_segment(split: int, lane: int, segment: int, branch: int) -> None:
    """Append the lane's share of a segment of rows, if it has one, to its segments. Its rows have been spread."""
    record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
    count = ld_i64(record, RECORD_SEGMENT_COUNT)
    hi = ld_i64(ld_i64(split, SPLIT_PLACES), lane)
    lo = ld_i64(record, RECORD_STATUS)  # until the kernel runs: where the rows of this segment begin
    if hi == lo:
        return
    target = ld_i64(record, BATCH_SEGMENTS) + count * SEGMENT_WORDS * 8
    first = ld_i32(ld_i64(split, SPLIT_SELECTION), lo)
    copy(target, segment, SEGMENT_WORDS * 8)
    st_i64(target, SEGMENT_LO, lo)
    st_i64(target, SEGMENT_HI, hi)
    st_i64(target, SEGMENT_PORT, branch)
    st_i64(target, SEGMENT_SERIAL, ld_i64(segment, SEGMENT_SERIAL) + first - ld_i64(segment, SEGMENT_LO))
    st_i64(record, BATCH_ROWS, ld_i64(record, BATCH_ROWS) + hi - lo)
    st_i64(record, RECORD_STATUS, hi)
    st_i64(record, RECORD_SEGMENT_COUNT, count + 1)


@native("void(i64, i64, i64)")
def _open_records(lanes: int, split: int, segments: int) -> None:
    """Make every lane's record an empty batch with room for this many segments. PLACES holds where its rows begin."""
    item = ld_i64(split, SPLIT_ITEM)
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        st_i64(record, BATCH_TICKET, ld_i64(item, BATCH_TICKET))
        st_i64(record, BATCH_PORTS, ld_i64(item, BATCH_PORTS))
        st_i64(record, BATCH_WATERMARKS, ld_i64(item, BATCH_WATERMARKS))
        st_i64(record, BATCH_FIRST, ld_i64(item, BATCH_FIRST))
        st_i64(record, BATCH_CAUSES, ld_i64(item, BATCH_CAUSES))
        st_i64(record, BATCH_ENDED, ld_i64(item, BATCH_ENDED))
        st_i64(record, BATCH_SELECTION, ld_i64(split, SPLIT_SELECTION))
        st_i64(record, BATCH_SEGMENTS, ld_i64(split, SPLIT_SEGMENTS) + lane * segments * SEGMENT_WORDS * 8)
        st_i64(record, BATCH_ROWS, 0)
        st_i64(record, RECORD_STATUS, ld_i64(ld_i64(split, SPLIT_PLACES), lane))
        st_i64(record, RECORD_FIRST, 0)
        st_i64(record, RECORD_SEGMENT_COUNT, 0)


@native("i64(i64, i64)")
def _close_lanes(lanes: int, split: int) -> int:
    """End every lane's share with a CLOSE at the watermark of the item's last row, if rows carry theirs; 1, or 0
    without memory.

    A lane does not see the rows of others, but what is due in it when they have moved the watermark belongs in this
    ticket. After an event there is no need for it: the event has announced the watermark already.
    """
    item = ld_i64(split, SPLIT_ITEM)
    marks = ld_i64(item, BATCH_WATERMARKS)
    if marks == 0 or ld_i64(item, BATCH_ROWS) == 0:
        return 0
    last = ld_i64(item, BATCH_SEGMENTS) + (ld_i64(item, BATCH_SEGMENT_COUNT) - 1) * SEGMENT_WORDS * 8
    if ld_i64(last, SEGMENT_KIND) > SEGMENT_LATE:
        return 0
    place = ld_i64(item, BATCH_FIRST) + ld_i64(item, BATCH_ROWS) - 1
    for lane in range(ld_i64(lanes, LANES_COUNT)):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        number = ld_i64(record, RECORD_SEGMENT_COUNT)
        segment = ld_i64(record, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        st_i64(segment, SEGMENT_KIND, SEGMENT_CLOSE)
        st_i64(segment, SEGMENT_PORT, 0)
        st_i64(segment, SEGMENT_LO, place)
        st_i64(segment, SEGMENT_HI, place)
        st_i64(segment, SEGMENT_SERIAL, place)
        st_i64(segment, SEGMENT_WATERMARK, ld_i64(marks, place))
        st_i64(record, RECORD_SEGMENT_COUNT, number + 1)
    return 1


@native("void(i64, i64)")
def _share_port(lanes: int, split: int) -> None:
    """Give every lane its share of the ticket, whose rows belong to one port, after `_find_lanes` has placed them."""
    item = ld_i64(split, SPLIT_ITEM)
    rows = ld_i64(item, BATCH_ROWS)
    done = 0
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) <= SEGMENT_LATE:
            for branch in range(ld_i64(lanes, LANES_BRANCHES)):
                _spread_rows(split, segment, ld_i64(split, SPLIT_LANE_OF) + branch * rows + done)
                _share_rows(lanes, split, branch, segment)
            done += ld_i64(segment, SEGMENT_HI) - ld_i64(segment, SEGMENT_LO)
        else:
            for lane in range(ld_i64(lanes, LANES_COUNT)):
                share_event(split, lane, segment)


@native("i64(i64, i64, i64)")
def split_item(lanes: int, split: int, constants: int) -> int:
    """How many lanes have a share in the item, their records filled; -1 without memory."""
    segments = ld_i64(ld_i64(split, SPLIT_ITEM), BATCH_SEGMENT_COUNT) + 1
    count = ld_i64(lanes, LANES_COUNT)
    if _rooms(lanes, split, segments * count) == 0:
        return -1
    if ld_i64(lanes, LANES_INPUTS) > 1:
        events = find_shares(lanes, split, constants)
        _open_records(lanes, split, segments)
        share_ports(lanes, split)
    else:
        events = _find_lanes(lanes, split, constants)
        _open_records(lanes, split, segments)
        _share_port(lanes, split)
    events += _close_lanes(lanes, split)
    shares = 0
    for lane in range(count):
        record = ld_i64(split, SPLIT_RECORDS) + lane * RECORD_WORDS * 8
        st_i64(record, RECORD_STATUS, DONE)
        st_i64(record, BATCH_SEGMENT_COUNT, ld_i64(record, RECORD_SEGMENT_COUNT))
        share = 1 if events > 0 or ld_i64(record, BATCH_ROWS) > 0 else 0
        st_i64(record, RECORD_SHARE, share)
        shares += share
    return shares
