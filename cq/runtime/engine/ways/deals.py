"""Deals: a ticket whose rows are dealt among the parts that workers fill, each row to the part of its key.

The worker that takes the ticket notes the part of every row and shows the ticket to all parts; the worker that holds a
part takes that part's rows, ticket after ticket, and the last of them sends the ticket on. Its events are passed on
then: parts are filled with rows only.

Roles     the holder of PARTIALS_TAKING deals; the holder of a part (cq/runtime/engine/ways/parts.py) takes its rows.
Shared    PARTIALS_TAKING  try-lock: tickets are taken one at a time
          PARTIALS_DEALT   how many tickets were dealt; the n-th is in slot n of PARTIALS_RING until all have their rows
          PART_NEXT        the next ticket whose rows the part must take; written by the holder of the part
          DEAL_LEFT        parts that have not taken their rows of the ticket
          PART_FAILED      1 + the ticket at which the part's kernel failed
I1        a part is filled ticket after ticket: so its groups are in the order of their first rows.
                                                             tests: test_parts_by_key_give_the_rows_of_one_worker
I2        every part takes its rows of a ticket before the ticket is sent on.
                                                             tests: test_parts_by_key_give_the_rows_of_one_worker
I3        of several parts that fail at a ticket, the smallest position counts.
                               tests: test_the_smallest_position_fails_in_parts_by_key, test_a_failure_is_known_*
Progress  no call waits: a worker that finds the lock taken goes on with other work, and one that finds a part free and
          behind takes its rows (`part_behind` in parts.py).
Order     A ticket is taken, dealt and shown under PARTIALS_TAKING (CAS, and given back by a store), by a worker that
          holds a part that is not behind: a worker that runs a whole ticket on a part has taken it like that, and so
          after all tickets dealt before it. Slot and deal are plain memory, written before PARTIALS_DEALT (a store,
          read by a load). A slot is written again after as many tickets as there are tasks, and a ticket's task comes
          home after its last part is done. A part's words are written before its `at_add(DEAL_LEFT, -1)`: the one that
          gets 1 back sees those of all; for all others the task may be gone.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    at_add,
    at_load,
    at_store,
    call6,
    copy,
    ld_i32,
    ld_i64,
    ld_u8,
    ld_u32,
    pick,
    release,
    st_i32,
    st_i64,
    st_u8,
)
from cq.runtime.containers.disjoint_panes import APART
from cq.runtime.containers.pane_words import PANES_OPENS
from cq.runtime.engine.stage import (
    NO_MEMORY,
    STAGE_CONSTANTS,
    STAGE_ENGINE,
    STAGE_FAILED,
    STAGE_OWN,
    TASK_ITEM,
    TASK_OUT,
    TASK_OWN,
    TASK_STATE,
    TASK_STATUS,
    TASK_TICKET,
    collect_emitted,
    fail,
    run_kernel,
    wake_workers,
)
from cq.runtime.engine.ways.any_worker import put_ticket
from cq.runtime.engine.ways.parts import (
    PART_BATCH,
    PART_FAILED,
    PART_NEXT,
    PART_NUMBER,
    PART_ROWS_ROOM,
    PART_SEGMENTS,
    PART_SEGMENTS_ROOM,
    PART_SELECTION,
    PART_STATE,
    PART_TASK,
    PART_WORDS,
    PARTIALS_COUNT,
    PARTIALS_DEALS,
    PARTIALS_DEALT,
    PARTIALS_ENTRY,
    PARTIALS_HASHES,
    PARTIALS_HASHES_ROOM,
    PARTIALS_MASK,
    PARTIALS_PARTS,
    PARTIALS_RING,
    PARTIALS_ROUTE,
    PARTIALS_SLOT_COUNT,
    PARTIALS_SLOTS,
    SLOT_FILLED,
    SLOT_WORDS,
    part_filled,
)
from cq.runtime.flow.parcel import port_failed, port_segment
from cq.runtime.flow.rooms import room_for
from cq.runtime.flow.split_words import PARTITION_MASK
from cq.runtime.layout.abi import (
    BATCH_ROWS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_SELECTION,
    BATCH_WORDS,
    DONE,
    ERROR,
    NEVER,
    SEGMENT_HI,
    SEGMENT_KIND,
    SEGMENT_LATE,
    SEGMENT_LO,
    SEGMENT_PORT,
    SEGMENT_SERIAL,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
    STATE_ERROR_CODE,
    STATE_ERROR_ROW,
    STATE_ERROR_SERIAL,
    STATE_FIRST_FREE,
)
from cq.runtime.layout.words import Struct

MOST_PARTS = 255  # a part is a byte
TASK_DEAL = TASK_OWN  # -> its ticket, dealt by key

_deal = Struct("DEAL")
DEAL_LEFT = _deal.line()
DEAL_ROOM = _deal.word()  # rows
DEAL_PART_OF = _deal.word()  # -> u8 a row, in the order of the ticket: the number of its part
DEAL_FAILURE = _deal.words(STATE_FIRST_FREE)  # like the first words of a state: failures that no part has caused
DEAL_WORDS = _deal.lines()


@native("void(i64)", export=True)
def partials_drop(partials: int) -> None:
    """Free what parts and deals have allocated; no thread uses them."""
    release(ld_i64(partials, PARTIALS_HASHES))
    for number in range(ld_i64(partials, PARTIALS_COUNT)):
        part = partials + (PARTIALS_PARTS + number * PART_WORDS) * 8
        release(ld_i64(part, PART_SELECTION))
        release(ld_i64(part, PART_SEGMENTS))
    for number in range(ld_i64(partials, PARTIALS_MASK) + 1):
        deal = ld_i64(ld_i64(partials, PARTIALS_DEALS), number)
        if deal != 0:
            release(ld_i64(deal, DEAL_PART_OF))


# -- dealing ---------------------------------------------------------------------------------------------------------


@native("void(i64, i64, i64)")
def open_panes(partials: int, part: int, second: int) -> None:
    """Make rows open panes of the part with this second order word from now on.

    Does nothing if parts are never filled by key: their contents need not be panes then.
    """
    if ld_i64(partials, PARTIALS_ENTRY) == 0:
        return
    slots = ld_i64(partials, PARTIALS_SLOTS)
    for n in range(ld_i64(partials, PARTIALS_SLOT_COUNT)):
        panes = ld_i64(ld_i64(part, PART_STATE), ld_i64(slots, n * SLOT_WORDS + SLOT_FILLED))
        st_i64(panes, PANES_OPENS, second)


@native("i64(i64, i64)")
def _note_parts(stage: int, task: int) -> int:
    """Note the part of every row of the task's ticket in its deal and return 1; 0 without memory."""
    partials = ld_i64(stage, STAGE_OWN)
    item = ld_i64(task, TASK_ITEM)
    deal = ld_i64(task, TASK_DEAL)
    rows = ld_i64(item, BATCH_ROWS)
    if room_for(deal, DEAL_ROOM, DEAL_PART_OF, rows, 1) == 0:
        return 0
    if room_for(partials, PARTIALS_HASHES_ROOM, PARTIALS_HASHES, rows, 4) == 0:
        return 0
    hashes = ld_i64(partials, PARTIALS_HASHES)
    route = ld_i64(partials, PARTIALS_ROUTE)
    part_of = ld_i64(deal, DEAL_PART_OF)
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) <= SEGMENT_LATE:
            lo = ld_i64(segment, SEGMENT_LO)
            hi = ld_i64(segment, SEGMENT_HI)
            port = ld_i64(segment, SEGMENT_PORT)
            call6(ld_i64(partials, PARTIALS_ENTRY), item, port, lo, hi, hashes, ld_i64(stage, STAGE_CONSTANTS))
            for row in range(hi - lo):
                st_u8(part_of, row, ld_u8(route, ld_u32(hashes, row) & PARTITION_MASK))
            part_of += hi - lo
    return 1


@native("i64(i64, i64)")
def deal_ticket(stage: int, task: int) -> int:
    """Let every part take its rows of the task's ticket and return 1; 0 without memory: the task then has that failure.

    Called by the holder of PARTIALS_TAKING.
    """
    partials = ld_i64(stage, STAGE_OWN)
    deal = ld_i64(task, TASK_DEAL)
    if _note_parts(stage, task) == 0:
        fail(deal + DEAL_FAILURE * 8, NO_MEMORY)
        st_i64(task, TASK_STATE, deal + DEAL_FAILURE * 8)
        st_i64(task, TASK_STATUS, ERROR)
        return 0
    at_store(deal + DEAL_LEFT * 8, ld_i64(partials, PARTIALS_COUNT))
    dealt = at_load(partials + PARTIALS_DEALT * 8)
    st_i64(ld_i64(partials, PARTIALS_RING), dealt & ld_i64(partials, PARTIALS_MASK), task)
    at_store(partials + PARTIALS_DEALT * 8, dealt + 1)
    wake_workers(ld_i64(stage, STAGE_ENGINE), ld_i64(partials, PARTIALS_COUNT) - 1)
    return 1


# -- taking ----------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _select(part: int, task: int) -> int:
    """How many rows of the task's ticket are the part's; PART_BATCH becomes the ticket with only these, without events.

    -1 without memory.
    """
    item = ld_i64(task, TASK_ITEM)
    count = ld_i64(item, BATCH_SEGMENT_COUNT)
    if room_for(part, PART_ROWS_ROOM, PART_SELECTION, ld_i64(item, BATCH_ROWS) + 1, 4) == 0:  # one extra is written
        return -1
    if room_for(part, PART_SEGMENTS_ROOM, PART_SEGMENTS, count, SEGMENT_WORDS * 8) == 0:
        return -1
    selection = ld_i64(part, PART_SELECTION)
    mine = ld_i64(part, PART_NUMBER)
    part_of = ld_i64(ld_i64(task, TASK_DEAL), DEAL_PART_OF)
    target = ld_i64(part, PART_SEGMENTS)
    place = 0
    for number in range(count):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) <= SEGMENT_LATE:
            lo = ld_i64(segment, SEGMENT_LO)
            rows = ld_i64(segment, SEGMENT_HI) - lo
            first = place
            for row in range(rows):
                st_i32(selection, place, lo + row)
                place += pick(ld_u8(part_of, row) == mine, 1, 0)
            part_of += rows
            if place > first:
                copy(target, segment, SEGMENT_WORDS * 8)
                st_i64(target, SEGMENT_LO, first)
                st_i64(target, SEGMENT_HI, place)
                st_i64(target, SEGMENT_SERIAL, ld_i64(segment, SEGMENT_SERIAL) + ld_i32(selection, first) - lo)
                target += SEGMENT_WORDS * 8
    batch = part + PART_BATCH * 8
    copy(batch, item, BATCH_WORDS * 8)
    st_i64(batch, BATCH_ROWS, place)
    st_i64(batch, BATCH_SELECTION, selection)
    st_i64(batch, BATCH_SEGMENTS, ld_i64(part, PART_SEGMENTS))
    st_i64(batch, BATCH_SEGMENT_COUNT, (target - ld_i64(part, PART_SEGMENTS)) // (SEGMENT_WORDS * 8))
    return place


@native("i64(i64, i64, i64)")
def _fill_with(stage: int, part: int, task: int) -> int:
    """Give the part its rows of the task's ticket and return DONE, or ERROR, which its state explains."""
    partials = ld_i64(stage, STAGE_OWN)
    state = ld_i64(part, PART_STATE)
    rows = _select(part, task)
    if rows == -1:
        fail(state, NO_MEMORY)
        return ERROR
    if rows == 0:
        return DONE
    open_panes(partials, part, ld_i64(partials, PARTIALS_COUNT) * APART)
    part_filled(part, rows)
    return run_kernel(stage, ld_i64(part, PART_TASK), part + PART_BATCH * 8)


@native("void(i64, i64)")
def take_share(stage: int, part: int) -> None:
    """Give the part, which the caller holds and which is behind, its rows of the next dealt ticket."""
    partials = ld_i64(stage, STAGE_OWN)
    following = at_load(part + PART_NEXT * 8)
    task = ld_i64(ld_i64(partials, PARTIALS_RING), following & ld_i64(partials, PARTIALS_MASK))
    failed = at_load(stage + STAGE_FAILED * 8) == 1 or ld_i64(ld_i64(part, PART_STATE), STATE_ERROR_CODE) != 0
    if not failed and _fill_with(stage, part, task) == ERROR:
        at_store(part + PART_FAILED * 8, ld_i64(task, TASK_TICKET) + 1)
    at_store(part + PART_NEXT * 8, following + 1)
    if at_add(ld_i64(task, TASK_DEAL) + DEAL_LEFT * 8, -1) == 1:
        _send_on(stage, task)


# -- sending on ------------------------------------------------------------------------------------------------------


@native("i64(i64)")
def _position(state: int) -> int:
    """The serial of the row at which a state has failed; NEVER if it was not a row."""
    return ld_i64(state, STATE_ERROR_SERIAL) if ld_i64(state, STATE_ERROR_ROW) >= 0 else NEVER


@native("i64(i64, i64)")
def _first_failure(partials: int, ticket: int) -> int:
    """The state of the part that failed first in a ticket whose rows all parts have had; 0: none failed."""
    found = 0
    for number in range(ld_i64(partials, PARTIALS_COUNT)):
        part = partials + (PARTIALS_PARTS + number * PART_WORDS) * 8
        if at_load(part + PART_FAILED * 8) == ticket + 1:
            state = ld_i64(part, PART_STATE)
            if found == 0 or _position(state) < _position(found):
                found = state
    return found


@native("i64(i64, i64)")
def _pass_events(task: int, failed: int) -> int:
    """Emit the events of the task's ticket, up to the failure in a state, if there is one, and return 1.

    0 without memory.
    """
    item = ld_i64(task, TASK_ITEM)
    out = ld_i64(task, TASK_OUT)
    end = _position(failed) if failed != 0 else NEVER
    for number in range(ld_i64(item, BATCH_SEGMENT_COUNT)):
        segment = ld_i64(item, BATCH_SEGMENTS) + number * SEGMENT_WORDS * 8
        kind = ld_i64(segment, SEGMENT_KIND)
        rows = ld_i64(segment, SEGMENT_HI) - ld_i64(segment, SEGMENT_LO)
        if kind > SEGMENT_LATE:
            if port_segment(out, 0, kind, ld_i64(segment, SEGMENT_WATERMARK)) == 0:
                return 0
        elif ld_i64(segment, SEGMENT_SERIAL) + rows > end:
            port_failed(out, kind, failed, item)
            return 1
    return 1


@native("void(i64, i64)")
def _send_on(stage: int, task: int) -> None:
    """Let the task, whose ticket's rows all parts have had, wait for its turn with the events, or the failure."""
    failed = _first_failure(ld_i64(stage, STAGE_OWN), ld_i64(task, TASK_TICKET))
    st_i64(task, TASK_STATUS, DONE if failed == 0 else ERROR)
    st_i64(task, TASK_STATE, failed)
    passed = _pass_events(task, failed)
    if collect_emitted(stage, task) == 0 or passed == 0:
        words = ld_i64(task, TASK_DEAL) + DEAL_FAILURE * 8
        fail(words, NO_MEMORY)
        st_i64(task, TASK_STATUS, ERROR)
        st_i64(task, TASK_STATE, words)
    put_ticket(stage, task)
