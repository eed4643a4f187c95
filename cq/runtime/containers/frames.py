"""Frames: the rows of each partition that a frame may still need, in order, and which of them are in the frame.

A row is a record of a pool (records.py); besides its links it holds what the kernel needs. The rows of a partition are
a doubly linked list. Its entry in the table of partitions ends with the FRAME words: places in that list, each with the
number of rows before it. A place after the last row has no record yet: it gets the next one that is added.

            FRAME_FIRST    FRAME_START    FRAME_MIDDLE    FRAME_NEXT    FRAME_LAST
    forgotten │   kept      │   front     │    back       │   waiting     │
                            └──────── the frame ──────────┘

If rows leave after later ones, FRAME_NOW is the first that has not left.

Both ends of a frame only advance. `frame_add` appends the record just filled, `frame_take` takes the first waiting row
into the frame, `frame_drop` removes the first row of the frame from it; `frame_forget` frees rows. The kernel keeps two
stacks: a record of the front holds the aggregate of the frame from there to FRAME_MIDDLE, the back is one state in the
entry. If the front is empty and a row is to leave, the back becomes the front.
Record 1 is never a row: the kernel combines results there.

Sharing: none, as for tables.
Source: two stacks as an aggregating queue; Tangwongsan, Hirzel, Schneider: Low-Latency Sliding-Window Aggregation in
Worst-Case Constant Time, DEBS 2017, section 2.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, min_i64, release, st_i64, zalloc
from cq.runtime.containers.birth_order import table_sort_births
from cq.runtime.containers.protocol import Container, Place, register, string_bits
from cq.runtime.containers.records import (
    RECORDS_FRESH,
    RECORDS_WORDS,
    record_at,
    record_free,
    record_link,
    record_new,
    record_take,
    records_clear,
    records_close,
    records_held_bytes,
    records_load,
    records_open,
    records_save,
    records_saved_words,
    set_record_link,
)
from cq.runtime.containers.table_saving import (
    table_arrivals,
    table_load,
    table_save,
    table_saved_words,
    table_take,
)
from cq.runtime.containers.table_words import TABLE_COUNT
from cq.runtime.containers.tables import table_clear, table_drop, table_held_bytes, table_new
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct, name_words

_frames = Struct("FRAMES", after=RECORDS_WORDS)
FRAMES_TABLE = _frames.word()  # the partitions
FRAMES_HEAD = _frames.word()  # the word of an entry where the FRAME words begin
FRAMES_NEXT = _frames.word()  # when the kept rows leave; NEVER: at the end
FRAMES_AT = _frames.word()  # while they leave: partitions before the current one
FRAMES_WORDS = _frames.lines()

_frame = Struct("FRAME")  # the last words of a partition's entry; places are numbers of records, or 0
FRAME_FIRST = _frame.word()  # the first kept row
FRAME_LAST = _frame.word()
FRAME_START = _frame.word()  # the first row of the frame
FRAME_NEXT = _frame.word()  # the first row after the frame
FRAME_NOW = _frame.word()  # the first row that has not left
FRAME_FORGOTTEN = _frame.word()  # rows before FRAME_FIRST
FRAME_ADDED = _frame.word()  # all rows
FRAME_DROPPED = _frame.word()  # rows before FRAME_START
FRAME_MIDDLE = _frame.word()  # rows before the back
FRAME_TAKEN = _frame.word()  # rows before FRAME_NEXT
FRAME_LEFT = _frame.word()  # rows before FRAME_NOW
FRAME_WORDS = _frame.size()

RESULT_RECORD = 1  # the record that is not a row
BEFORE, BEHIND = 0, 1  # the sides of a record's links

name_words(globals())


@native("i64(i64, i64, i64, i64)", export=True)
def frames_new(entry_words: int, key_strings: int, record_words: int, strings: int) -> int:
    """No rows; 0 without memory."""
    frames = zalloc(FRAMES_WORDS * 8)
    if frames == 0:
        return 0
    table = table_new(entry_words, key_strings, 0)
    st_i64(frames, FRAMES_TABLE, table)
    st_i64(frames, FRAMES_HEAD, entry_words - FRAME_WORDS)
    st_i64(frames, FRAMES_NEXT, NEVER)
    if table == 0 or records_open(frames, record_words, strings) == 0 or record_new(frames) == 0:
        frames_drop(frames)
        return 0
    return frames


@native("i64(i64)", export=True)
def frames_drop(frames: int) -> int:
    """Free the rows; 0 is none."""
    if frames != 0:
        table_drop(ld_i64(frames, FRAMES_TABLE))
        records_close(frames)
        release(frames)
    return 0


@native("i64(i64, i64)", export=True)
def frame_add(frames: int, entry: int) -> int:
    """Append the record just filled to the partition; return how many rows came before it."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    number = ld_i64(frames, RECORDS_FRESH)
    last = ld_i64(frame, FRAME_LAST)
    added = ld_i64(frame, FRAME_ADDED)
    set_record_link(record_at(frames, number), BEFORE, last)
    if last != 0:
        set_record_link(record_at(frames, last), BEHIND, number)
    st_i64(frame, FRAME_LAST, number)
    st_i64(frame, FRAME_ADDED, added + 1)
    if ld_i64(frame, FRAME_FORGOTTEN) == added:
        st_i64(frame, FRAME_FIRST, number)
    if ld_i64(frame, FRAME_DROPPED) == added:
        st_i64(frame, FRAME_START, number)
    if ld_i64(frame, FRAME_TAKEN) == added:
        st_i64(frame, FRAME_NEXT, number)
    if ld_i64(frame, FRAME_LEFT) == added:
        st_i64(frame, FRAME_NOW, number)
    return added


@native("i64(i64, i64)", export=True)
def frame_take(frames: int, entry: int) -> int:
    """Take the first row after the frame into it."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    record = record_at(frames, ld_i64(frame, FRAME_NEXT))
    st_i64(frame, FRAME_NEXT, record_link(record, BEHIND))
    st_i64(frame, FRAME_TAKEN, ld_i64(frame, FRAME_TAKEN) + 1)
    return 0


@native("i64(i64, i64)", export=True)
def frame_drop(frames: int, entry: int) -> int:
    """Remove the first row of the frame from it."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    record = record_at(frames, ld_i64(frame, FRAME_START))
    st_i64(frame, FRAME_START, record_link(record, BEHIND))
    st_i64(frame, FRAME_DROPPED, ld_i64(frame, FRAME_DROPPED) + 1)
    return 0


@native("i64(i64, i64)", export=True)
def frame_leave(frames: int, entry: int) -> int:
    """Count the first row that has not left as left."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    record = record_at(frames, ld_i64(frame, FRAME_NOW))
    st_i64(frame, FRAME_NOW, record_link(record, BEHIND))
    st_i64(frame, FRAME_LEFT, ld_i64(frame, FRAME_LEFT) + 1)
    return 0


@native("i64(i64)", export=True)
def frames_clear(frames: int) -> int:
    """Delete all rows and partitions; 0 without memory."""
    table_clear(ld_i64(frames, FRAMES_TABLE))
    records_clear(frames)
    st_i64(frames, FRAMES_NEXT, NEVER)
    st_i64(frames, FRAMES_AT, 0)
    return 0 if record_new(frames) == 0 else 1


@native("i64(i64, i64)", export=True)
def frame_end(frames: int, entry: int) -> int:
    """The number of the last row of the frame, which has rows."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    following = ld_i64(frame, FRAME_NEXT)
    return record_link(record_at(frames, following), BEFORE) if following != 0 else ld_i64(frame, FRAME_LAST)


@native("i64(i64, i64, i64)", export=True)
def frame_forget(frames: int, entry: int, before: int) -> int:
    """Free the rows with fewer than `before` rows before them; none of them is in the frame or after it."""
    frame = entry + ld_i64(frames, FRAMES_HEAD) * 8
    forgotten = ld_i64(frame, FRAME_FORGOTTEN)
    if forgotten >= before:
        return 0
    number = ld_i64(frame, FRAME_FIRST)
    while forgotten < before:
        following = record_link(record_at(frames, number), BEHIND)
        record_free(frames, number)
        number = following
        forgotten += 1
    if number != 0:
        set_record_link(record_at(frames, number), BEFORE, 0)
    else:
        st_i64(frame, FRAME_LAST, 0)
    st_i64(frame, FRAME_FIRST, number)
    st_i64(frame, FRAME_FORGOTTEN, forgotten)
    return 0


# -- as flat words, and back; partitions that come from elsewhere ----------------------------------------------------


@native("i64(i64)", export=True)
def frames_saved_words(frames: int) -> int:
    """The most words that `frames_save` writes."""
    return 1 + records_saved_words(frames) + table_saved_words(ld_i64(frames, FRAMES_TABLE))


@native("i64(i64, i64)", export=True)
def frames_save(frames: int, target: int) -> int:
    """Write the rows as words to `target`: when they leave, records, partitions; return how many. None is leaving."""
    st_i64(target, 0, ld_i64(frames, FRAMES_NEXT))
    behind = 1 + records_save(frames, target + 8)
    return behind + table_save(ld_i64(frames, FRAMES_TABLE), target + behind * 8)


@native("i64(i64, i64)", export=True)
def frames_load(frames: int, source: int) -> int:
    """Read saved rows into empty frames; return the words read, or 0 without memory or for other rows."""
    if ld_i64(ld_i64(frames, FRAMES_TABLE), TABLE_COUNT) != 0:
        return 0
    records_clear(frames)
    records = records_load(frames, source + 8)
    if records == 0:
        return 0
    st_i64(frames, FRAMES_NEXT, ld_i64(source, 0))
    partitions = table_load(ld_i64(frames, FRAMES_TABLE), source + (1 + records) * 8)
    return 0 if partitions == 0 else 1 + records + partitions


@native("i64(i64, i64, i64)", export=True)
def frames_take(frames: int, other: int, entry: int) -> int:
    """Copy a partition of other frames here and return 1; 0 without memory. The caller knows that its key is absent."""
    made = table_take(ld_i64(frames, FRAMES_TABLE), ld_i64(other, FRAMES_TABLE), entry)
    if made == 0:
        return 0
    st_i64(frames, FRAMES_NEXT, min_i64(ld_i64(frames, FRAMES_NEXT), ld_i64(other, FRAMES_NEXT)))
    head = ld_i64(frames, FRAMES_HEAD)
    theirs = entry + head * 8
    mine = made + head * 8
    number = ld_i64(theirs, FRAME_FIRST)
    last = 0
    while number != 0:
        record = record_at(other, number)
        taken = record_take(frames, other, record)
        if taken == 0:
            return 0
        set_record_link(record_at(frames, taken), BEFORE, last)
        if last != 0:
            set_record_link(record_at(frames, last), BEHIND, taken)
        else:
            st_i64(mine, FRAME_FIRST, taken)
        if ld_i64(theirs, FRAME_START) == number:
            st_i64(mine, FRAME_START, taken)
        if ld_i64(theirs, FRAME_NEXT) == number:
            st_i64(mine, FRAME_NEXT, taken)
        if ld_i64(theirs, FRAME_NOW) == number:
            st_i64(mine, FRAME_NOW, taken)
        last = taken
        number = record_link(record, BEHIND)
    st_i64(mine, FRAME_LAST, last)
    return 1


@native("i64(i64)", export=True)
def frames_taken(frames: int) -> int:
    """`Container.taken`: partitions by first arrival."""
    return table_sort_births(ld_i64(frames, FRAMES_TABLE))


@native("i64(i64, i64)", export=True)
def frames_arrivals(frames: int, target: int) -> int:
    """`Container.arrivals`: those of the partitions; rows of one are ordered only among themselves."""
    return table_arrivals(ld_i64(frames, FRAMES_TABLE), target)


@native("i64(i64)", export=True)
def frames_held_bytes(frames: int) -> int:
    """Memory the rows hold; 0 is none."""
    if frames == 0:
        return 0
    return FRAMES_WORDS * 8 + records_held_bytes(frames) + table_held_bytes(ld_i64(frames, FRAMES_TABLE))


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    key, row = slot.shapes
    return (key.entry_words, string_bits(key), row.entry_words, string_bits(row))


register(
    Container(
        "frames",
        _arguments,
        new=frames_new,
        drop=frames_drop,
        saved_words=frames_saved_words,
        save=frames_save,
        load=frames_load,
        arrivals=frames_arrivals,
        taken=frames_taken,
        held_bytes=frames_held_bytes,
        settle=None,
        apart=None,
    )
)
