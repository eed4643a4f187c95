"""Rows that wait for the watermark: records that leave by (time, arrival).

Rows that come in the order of their times are in a queue, the others in a binary heap; the first record is the earlier
one of both heads. The queue restarts at its beginning when it is empty, so that a few rows that come and go stay in the
cache.

The header shares the words of a table's if they mean the same (strings are in its arena), so that `string_address`
serves both. A record: its time, its arrival, its serial, then the row's words.
To add a row, `buffer_record` returns the address of the next record, the kernel writes its words (`buffer_text` for
strings), `buffer_commit` puts it in its place. To take one, read the record at BUFFER_FIRST, then `buffer_pop`.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i32, ld_i64, ld_u8, move, release, shl, shr_u, st_i64, st_u8, zalloc
from cq.runtime.containers.blocks import block_drop, block_new
from cq.runtime.containers.protocol import Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.strings import (
    COMPACT_FROM_BYTES,
    INLINE_STRING_BYTES,
    string_address,
    table_arena,
)
from cq.runtime.containers.table_saving import all_taken, words_for
from cq.runtime.containers.table_words import (
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_EPOCH,
    TABLE_GARBAGE,
    TABLE_INDEX,
    TABLE_LIMIT,
    TABLE_MASK,
    TABLE_MOST,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_STRINGS,
    TABLE_WORDS,
)
from cq.runtime.layout.abi import NEVER, STRING_SLACK_BYTES
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Overlay, Struct, name_words

_buffer = Overlay("BUFFER", TABLE_WORDS)
BUFFER_COUNT = _buffer.at(TABLE_COUNT)  # records in the queue and in the heap
BUFFER_STRINGS = _buffer.at(TABLE_STRINGS)
# these mean something else in a table
BUFFER_FIRST = _buffer.at(TABLE_ENTRIES)  # -> the first record, if there is one
BUFFER_RECORD_BYTES = _buffer.at(TABLE_STRIDE)
BUFFER_NEXT = _buffer.at(TABLE_EPOCH)  # time of the first record; NEVER if empty
BUFFER_LIVE = _buffer.at(TABLE_GARBAGE)  # arena bytes that records refer to
BUFFER_ARRIVALS = _buffer.at(TABLE_INDEX)  # records ever committed: the arrival of the next one
BUFFER_HEAD = _buffer.at(TABLE_SHIFT)  # -> the first record of the queue
BUFFER_TAIL = _buffer.at(TABLE_MASK)  # -> after the last one
BUFFER_END = _buffer.at(TABLE_LIMIT)  # -> after the room for them
BUFFER_QUEUE = _buffer.at(TABLE_BIRTHS)  # -> where that room begins
BUFFER_HEAP = _buffer.at(TABLE_DEAD)  # -> the records of the heap; 0: none was needed yet
BUFFER_HEAPED = _buffer.at(TABLE_ENTRY_BYTES)  # how many there are
BUFFER_HEAP_ROOM = _buffer.at(TABLE_MOST)  # the most there may be, without the spare one

_record = Struct("RECORD")
RECORD_TIME = _record.word()
RECORD_ARRIVAL = _record.word()
RECORD_SERIAL = _record.word()  # of the row
RECORD_VALUES = _record.rest()

FIRST_RECORDS = 64

name_words(globals())


@native("i64(i64, i64)", export=True)
def buffer_new(record_words: int, strings: int) -> int:
    """An empty buffer, or 0 without memory."""
    buffer = zalloc(TABLE_WORDS * 8)
    if buffer == 0:
        return 0
    size = FIRST_RECORDS * record_words * 8
    queue = block_new(size + STRING_SLACK_BYTES, 1)
    if queue == 0:
        release(buffer)
        return 0
    st_i64(buffer, BUFFER_QUEUE, queue)
    st_i64(buffer, BUFFER_HEAD, queue)
    st_i64(buffer, BUFFER_TAIL, queue)
    st_i64(buffer, BUFFER_END, queue + size)
    st_i64(buffer, BUFFER_RECORD_BYTES, record_words * 8)
    st_i64(buffer, BUFFER_STRINGS, strings)
    st_i64(buffer, BUFFER_NEXT, NEVER)
    return buffer


@native("i64(i64)", export=True)
def buffer_drop(buffer: int) -> int:
    """Free the buffer; 0 is no buffer."""
    if buffer != 0:
        block_drop(ld_i64(buffer, BUFFER_QUEUE))
        block_drop(ld_i64(buffer, BUFFER_HEAP))
        block_drop(ld_i64(buffer, TABLE_ARENA))
        release(buffer)
    return 0


# -- filling a record ------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def buffer_record(buffer: int) -> int:
    """Address of the next record, uninitialised; 0 without memory. Other records may have moved."""
    record = ld_i64(buffer, BUFFER_TAIL)
    if record == ld_i64(buffer, BUFFER_END) or ld_i64(buffer, TABLE_ARENA_USED) > COMPACT_FROM_BYTES:
        record = buffer_room(buffer)
    return record


@native("i64(i64)", export=True)
def buffer_room(buffer: int) -> int:
    """Make room for a record in the queue, and discard unused strings; return its address, or 0."""
    used = ld_i64(buffer, TABLE_ARENA_USED)
    if used > COMPACT_FROM_BYTES and used > ld_i64(buffer, BUFFER_LIVE) * 2 and _compact(buffer) == 0:
        return 0
    if ld_i64(buffer, BUFFER_TAIL) == ld_i64(buffer, BUFFER_END) and _widen(buffer) == 0:
        return 0
    return ld_i64(buffer, BUFFER_TAIL)


@native("i64(i64)")
def _widen(buffer: int) -> int:
    """Make room after the last record of the queue: half of it before the first one, else twice as much; 1 or 0."""
    queue = ld_i64(buffer, BUFFER_QUEUE)
    head = ld_i64(buffer, BUFFER_HEAD)
    size = ld_i64(buffer, BUFFER_END) - queue
    used = ld_i64(buffer, BUFFER_TAIL) - head
    if used * 2 <= size:
        move(queue, head, used)
    else:
        longer = block_new(size * 2 + STRING_SLACK_BYTES, 1)
        if longer == 0:
            return 0
        copy(longer, head, used)
        block_drop(queue)
        queue = longer
        st_i64(buffer, BUFFER_QUEUE, queue)
        st_i64(buffer, BUFFER_END, queue + size * 2)
    st_i64(buffer, BUFFER_HEAD, queue)
    st_i64(buffer, BUFFER_TAIL, queue + used)
    if ld_i64(buffer, BUFFER_FIRST) == head:
        st_i64(buffer, BUFFER_FIRST, queue)
    return 1


@native("i64(i64, i64, i64, i64, i64)", export=True)
def buffer_text(buffer: int, record: int, word: int, address: int, length: int) -> int:
    """Write a string into the slot at `word` of a fresh record; 1, or 0 without memory."""
    if length <= INLINE_STRING_BYTES:
        st_i64(record, word, length)
        st_i64(record, word + 1, 0)
        for n in range(length):
            st_u8(record + word * 8 + 4, n, ld_u8(address, n))
        return 1
    if table_arena(buffer, length) == 0:
        return 0
    used = ld_i64(buffer, TABLE_ARENA_USED)
    copy(ld_i64(buffer, TABLE_ARENA) + used, address, length)
    st_i64(record, word, length | shl(ld_i32(address, 0) & 4294967295, 32))
    st_i64(record, word + 1, used)
    st_i64(buffer, TABLE_ARENA_USED, used + length)
    st_i64(buffer, BUFFER_LIVE, ld_i64(buffer, BUFFER_LIVE) + length)
    return 1


@native("i64(i64, i64)", inline=True)
def buffer_commit(buffer: int, time_us: int) -> int:
    """Let the record just filled wait for `time_us`, after those with the same time, and return 1; 0 without memory."""
    record = ld_i64(buffer, BUFFER_TAIL)
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    arrival = ld_i64(buffer, BUFFER_ARRIVALS)
    count = ld_i64(buffer, BUFFER_COUNT)
    st_i64(buffer, BUFFER_ARRIVALS, arrival + 1)
    st_i64(record, RECORD_TIME, time_us)
    st_i64(record, RECORD_ARRIVAL, arrival)
    if count == 0:
        st_i64(buffer, BUFFER_FIRST, record)
        st_i64(buffer, BUFFER_NEXT, time_us)
    elif ld_i64(buffer, BUFFER_HEAD) == record or ld_i64(record - size, RECORD_TIME) > time_us:
        return buffer_place(buffer)
    st_i64(buffer, BUFFER_TAIL, record + size)
    st_i64(buffer, BUFFER_COUNT, count + 1)
    return 1


@native("i64(i64)", export=True)
def buffer_place(buffer: int) -> int:
    """Put the record after the queue in its place: there, or in the heap if it leaves before the one ahead of it.


    1, or 0 without memory.
    """
    record = ld_i64(buffer, BUFFER_TAIL)
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    if ld_i64(buffer, BUFFER_HEAD) != record and _before(record, record - size) == 1:
        if _rise(buffer, record) == 0:
            return 0
    else:
        st_i64(buffer, BUFFER_TAIL, record + size)
    st_i64(buffer, BUFFER_COUNT, ld_i64(buffer, BUFFER_COUNT) + 1)
    _find_first(buffer)
    return 1


@native("void(i64)")
def _find_first(buffer: int) -> None:
    """Set the first record to the earlier one of the heads of queue and heap."""
    first = ld_i64(buffer, BUFFER_HEAD)
    waiting = ld_i64(buffer, BUFFER_TAIL) != first
    if ld_i64(buffer, BUFFER_HEAPED) > 0:
        heap = ld_i64(buffer, BUFFER_HEAP)
        if not waiting or _before(heap, first) == 1:
            first = heap
        waiting = True
    st_i64(buffer, BUFFER_FIRST, first)
    st_i64(buffer, BUFFER_NEXT, ld_i64(first, RECORD_TIME) if waiting else NEVER)


@native("i64(i64, i64)", inline=True)
def _before(a: int, b: int) -> int:
    """Whether record a leaves before record b."""
    first = ld_i64(a, RECORD_TIME)
    second = ld_i64(b, RECORD_TIME)
    return 1 if first < second or (first == second and ld_i64(a, RECORD_ARRIVAL) < ld_i64(b, RECORD_ARRIVAL)) else 0


# -- the heap --------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def _rise(buffer: int, record: int) -> int:
    """Insert a copy of this record, which none above it leaves after, into the heap; 1, or 0 without memory."""
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    place = ld_i64(buffer, BUFFER_HEAPED)
    if place == ld_i64(buffer, BUFFER_HEAP_ROOM) and _grow_heap(buffer) == 0:
        return 0
    heap = ld_i64(buffer, BUFFER_HEAP)
    while place > 0:
        above = heap + shr_u(place - 1, 1) * size
        if _before(record, above) == 0:
            break
        copy(heap + place * size, above, size)
        place = shr_u(place - 1, 1)
    copy(heap + place * size, record, size)
    st_i64(buffer, BUFFER_HEAPED, ld_i64(buffer, BUFFER_HEAPED) + 1)
    return 1


@native("i64(i64)")
def _grow_heap(buffer: int) -> int:
    """Make room in the heap for twice as many records and return 1; 0 without memory."""
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    old = ld_i64(buffer, BUFFER_HEAP)
    room = max(ld_i64(buffer, BUFFER_HEAP_ROOM) * 2, FIRST_RECORDS)
    made = block_new(room * size + STRING_SLACK_BYTES, 1)
    if made == 0:
        return 0
    copy(made, old, ld_i64(buffer, BUFFER_HEAPED) * size)
    block_drop(old)
    st_i64(buffer, BUFFER_HEAP, made)
    st_i64(buffer, BUFFER_HEAP_ROOM, room)
    return 1


@native("void(i64)")
def _sink(buffer: int) -> None:
    """Remove the first record of the heap."""
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    heap = ld_i64(buffer, BUFFER_HEAP)
    count = ld_i64(buffer, BUFFER_HEAPED) - 1
    st_i64(buffer, BUFFER_HEAPED, count)
    last = heap + count * size
    place = 0
    child = 1
    while child < count:
        if child + 1 < count and _before(heap + (child + 1) * size, heap + child * size) == 1:
            child += 1
        if _before(last, heap + child * size) == 1:
            break
        copy(heap + place * size, heap + child * size, size)
        place = child
        child = place * 2 + 1
    if place != count:
        copy(heap + place * size, last, size)


# -- taking records --------------------------------------------------------------------------------------------------


@native("i64(i64)", inline=True)
def buffer_pop(buffer: int) -> int:
    """Remove the first record. Its strings stay where they are until the next `buffer_record`."""
    if ld_i64(buffer, BUFFER_HEAPED) != 0 or ld_i64(buffer, BUFFER_STRINGS) != 0:
        return buffer_remove(buffer)
    head = ld_i64(buffer, BUFFER_HEAD) + ld_i64(buffer, BUFFER_RECORD_BYTES)
    count = ld_i64(buffer, BUFFER_COUNT) - 1
    next_us = ld_i64(head, RECORD_TIME)  # there is slack after the last record
    if count == 0:
        next_us = NEVER
        head = ld_i64(buffer, BUFFER_QUEUE)
        st_i64(buffer, BUFFER_TAIL, head)
    st_i64(buffer, BUFFER_COUNT, count)
    st_i64(buffer, BUFFER_HEAD, head)
    st_i64(buffer, BUFFER_FIRST, head)
    st_i64(buffer, BUFFER_NEXT, next_us)
    return 0


@native("i64(i64)", export=True)
def buffer_remove(buffer: int) -> int:
    """Remove the first record, wherever it is; see `buffer_pop`."""
    first = ld_i64(buffer, BUFFER_FIRST)
    strings = ld_i64(buffer, BUFFER_STRINGS)
    word = 0
    while strings != 0:
        length = ld_i64(first, word) & 4294967295
        if strings & 1 == 1 and length > INLINE_STRING_BYTES:
            st_i64(buffer, BUFFER_LIVE, ld_i64(buffer, BUFFER_LIVE) - length)
        strings = shr_u(strings, 1)
        word += 1
    if first == ld_i64(buffer, BUFFER_HEAP):
        _sink(buffer)
    else:
        head = first + ld_i64(buffer, BUFFER_RECORD_BYTES)
        if head == ld_i64(buffer, BUFFER_TAIL):
            head = ld_i64(buffer, BUFFER_QUEUE)
            st_i64(buffer, BUFFER_TAIL, head)
        st_i64(buffer, BUFFER_HEAD, head)
    st_i64(buffer, BUFFER_COUNT, ld_i64(buffer, BUFFER_COUNT) - 1)
    _find_first(buffer)
    return 0


@native("i64(i64, i64)", inline=True)
def buffer_nth(buffer: int, n: int) -> int:
    """The n-th record in an arbitrary order."""
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    head = ld_i64(buffer, BUFFER_HEAD)
    queued = ld_i64(buffer, BUFFER_COUNT) - ld_i64(buffer, BUFFER_HEAPED)
    return head + n * size if n < queued else ld_i64(buffer, BUFFER_HEAP) + (n - queued) * size


@native("i64(i64)")
def _compact(buffer: int) -> int:
    """Copy the strings that records still refer to into a new arena; 1, or 0 without memory."""
    capacity = ld_i64(buffer, TABLE_ARENA_CAPACITY)
    arena = block_new(capacity + STRING_SLACK_BYTES, 0)
    if arena == 0:
        return 0
    old = ld_i64(buffer, TABLE_ARENA)
    used = 0
    for n in range(ld_i64(buffer, BUFFER_COUNT)):
        record = buffer_nth(buffer, n)
        strings = ld_i64(buffer, BUFFER_STRINGS)
        word = 0
        while strings != 0:
            length = ld_i64(record, word) & 4294967295
            if strings & 1 == 1 and length > INLINE_STRING_BYTES:
                copy(arena + used, old + ld_i64(record, word + 1), length)
                st_i64(record, word + 1, used)
                used += length
            strings = shr_u(strings, 1)
            word += 1
    block_drop(old)
    st_i64(buffer, TABLE_ARENA, arena)
    st_i64(buffer, TABLE_ARENA_USED, used)
    return 1


# -- as flat bytes, and back -----------------------------------------------------------------------------------------

_saved = Struct("SAVED")
SAVED_COUNT = _saved.word()  # records
SAVED_WORDS = _saved.word()  # words of one record
SAVED_STRINGS = _saved.word()  # bytes of strings
SAVED_LIVE = _saved.word()  # those that records refer to
SAVED_ARRIVALS = _saved.word()
SAVED_NEXT = _saved.word()
SAVED_HEAD = _saved.rest()  # the records in any order, then the strings


@native("i64(i64)", export=True)
def buffer_saved_words(buffer: int) -> int:
    """Words that `buffer_save` writes."""
    records = shr_u(ld_i64(buffer, BUFFER_COUNT) * ld_i64(buffer, BUFFER_RECORD_BYTES), 3)
    return SAVED_HEAD + records + words_for(ld_i64(buffer, TABLE_ARENA_USED))


@native("i64(i64, i64)", export=True)
def buffer_save(buffer: int, target: int) -> int:
    """Write the waiting rows as words to `target`; return how many."""
    count = ld_i64(buffer, BUFFER_COUNT)
    size = ld_i64(buffer, BUFFER_RECORD_BYTES)
    used = ld_i64(buffer, TABLE_ARENA_USED)
    st_i64(target, SAVED_COUNT, count)
    st_i64(target, SAVED_WORDS, shr_u(size, 3))
    st_i64(target, SAVED_STRINGS, used)
    st_i64(target, SAVED_LIVE, ld_i64(buffer, BUFFER_LIVE))
    st_i64(target, SAVED_ARRIVALS, ld_i64(buffer, BUFFER_ARRIVALS))
    st_i64(target, SAVED_NEXT, ld_i64(buffer, BUFFER_NEXT))
    at = target + SAVED_HEAD * 8
    for n in range(count):
        copy(at + n * size, buffer_nth(buffer, n), size)
    at += count * size
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(buffer, TABLE_ARENA), used)
    return buffer_saved_words(buffer)


@native("i64(i64, i64)", export=True)
def buffer_load(buffer: int, source: int) -> int:
    """Read saved rows into an empty buffer; return the words read, or 0 without memory or if records differ in size.

    0 also if the buffer holds rows.
    """
    count = ld_i64(source, SAVED_COUNT)
    size = ld_i64(source, SAVED_WORDS) * 8
    used = ld_i64(source, SAVED_STRINGS)
    if count == 0 and size == ld_i64(buffer, BUFFER_RECORD_BYTES):
        return SAVED_HEAD + words_for(used)
    if ld_i64(buffer, BUFFER_COUNT) != 0 or size != ld_i64(buffer, BUFFER_RECORD_BYTES):
        return 0
    if table_arena(buffer, used) == 0:
        return 0
    at = source + SAVED_HEAD * 8
    for n in range(count):
        record = buffer_room(buffer)
        if record == 0:
            return 0
        copy(record, at + n * size, size)
        if buffer_place(buffer) == 0:
            return 0
    if used > 0:
        copy(ld_i64(buffer, TABLE_ARENA), at + count * size, used)
    st_i64(buffer, TABLE_ARENA_USED, used)
    st_i64(buffer, BUFFER_LIVE, ld_i64(source, SAVED_LIVE))
    st_i64(buffer, BUFFER_ARRIVALS, ld_i64(source, SAVED_ARRIVALS))
    return buffer_saved_words(buffer)


@native("i64(i64, i64, i64)", export=True)
def buffer_take(buffer: int, other: int, record: int) -> int:
    """Add a record of another buffer, with its serial as its arrival, and return 1; 0 without memory.

    Serials are distinct and below 0 (cq/runtime/engine/state_moves.py): it comes before everything that arrives later.
    """
    made = buffer_record(buffer)
    if made == 0:
        return 0
    copy(made, record, ld_i64(buffer, BUFFER_RECORD_BYTES))
    word = 0
    left = ld_i64(buffer, BUFFER_STRINGS)
    while left != 0:
        if left & 1 == 1:
            length = ld_i64(record, word) & 4294967295
            if buffer_text(buffer, made, word, string_address(other, record, word), length) == 0:
                return 0
        left = shr_u(left, 1)
        word += 1
    st_i64(made, RECORD_ARRIVAL, ld_i64(made, RECORD_SERIAL))
    return buffer_place(buffer)


@native("i64(i64, i64)", export=True)
def buffer_arrivals(buffer: int, target: int) -> int:
    """`Container.arrivals`: the serials of the rows, equal ones in order of arrival."""
    for n in range(ld_i64(buffer, BUFFER_COUNT)):
        record = buffer_nth(buffer, n)
        put_arrival(target, n, record + RECORD_SERIAL * 8, ld_i64(record, RECORD_ARRIVAL))
    return ld_i64(buffer, BUFFER_COUNT)


@native("i64(i64)", export=True)
def buffer_held_bytes(buffer: int) -> int:
    """Memory the buffer holds; 0 is no buffer."""
    if buffer == 0:
        return 0
    queue = ld_i64(buffer, BUFFER_END) - ld_i64(buffer, BUFFER_QUEUE)
    heap = ld_i64(buffer, BUFFER_HEAP_ROOM) * ld_i64(buffer, BUFFER_RECORD_BYTES)
    return TABLE_WORDS * 8 + queue + heap + ld_i64(buffer, TABLE_ARENA_CAPACITY)


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    (shape,) = slot.shapes
    return (shape.entry_words, string_bits(shape))


register(
    Container(
        "waiting",
        _arguments,
        new=buffer_new,
        drop=buffer_drop,
        saved_words=buffer_saved_words,
        save=buffer_save,
        load=buffer_load,
        arrivals=buffer_arrivals,
        taken=all_taken,
        held_bytes=buffer_held_bytes,
        settle=None,
        apart=None,
    )
)
