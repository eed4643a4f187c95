"""Rows that wait for the watermark: a binary heap of records by (time, arrival).

The header shares the words of a table's where the meaning is the same (records are its entries, strings lie in its
arena), so that `string_address` serves both. A record: its time, its arrival, its serial, then the row's words.
Filling one: `buffer_record` gives the address of the next record, the kernel writes the words (`buffer_text` for
strings), `buffer_commit` puts it in its place. Taking one: read the record at BUFFER_RECORDS, then `buffer_pop`.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_i32, ld_i64, ld_u8, release, shl, shr_u, st_i64, st_u8, zalloc
from cq.runtime.containers.blocks import block_drop, block_new
from cq.runtime.containers.protocol import Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.strings import (
    ARENA_SLACK_BYTES,
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
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_EPOCH,
    TABLE_GARBAGE,
    TABLE_INDEX,
    TABLE_LIMIT,
    TABLE_STRIDE,
    TABLE_STRINGS,
    TABLE_WORDS,
)
from cq.runtime.layout.abi import NEVER, STRING_SLACK_BYTES
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Overlay, Struct, name_words

_buffer = Overlay("BUFFER", TABLE_WORDS)
BUFFER_RECORDS = _buffer.at(TABLE_ENTRIES)
BUFFER_COUNT = _buffer.at(TABLE_COUNT)
BUFFER_CAPACITY = _buffer.at(TABLE_LIMIT)
BUFFER_STRINGS = _buffer.at(TABLE_STRINGS)
# these mean something else in a table
BUFFER_RECORD_WORDS = _buffer.at(TABLE_STRIDE)
BUFFER_NEXT = _buffer.at(TABLE_EPOCH)  # time of the first record; NEVER when empty
BUFFER_LIVE = _buffer.at(TABLE_GARBAGE)  # arena bytes records refer to
BUFFER_ARRIVALS = _buffer.at(TABLE_INDEX)  # records ever committed: the arrival of the next one

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
    records = block_new((FIRST_RECORDS + 1) * record_words * 8 + STRING_SLACK_BYTES, 1)
    if records == 0:
        release(buffer)
        return 0
    st_i64(buffer, BUFFER_RECORDS, records)
    st_i64(buffer, BUFFER_CAPACITY, FIRST_RECORDS)
    st_i64(buffer, BUFFER_RECORD_WORDS, record_words)
    st_i64(buffer, BUFFER_STRINGS, strings)
    st_i64(buffer, BUFFER_NEXT, NEVER)
    return buffer


@native("i64(i64)", export=True)
def buffer_drop(buffer: int) -> int:
    """Free the buffer; 0 is no buffer."""
    if buffer != 0:
        block_drop(ld_i64(buffer, BUFFER_RECORDS))
        block_drop(ld_i64(buffer, TABLE_ARENA))
        release(buffer)
    return 0


@native("i64(i64)", export=True)
def buffer_record(buffer: int) -> int:
    """Address of the next record, its words 0; 0 without memory. Records may have moved."""
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    count = ld_i64(buffer, BUFFER_COUNT)
    capacity = ld_i64(buffer, BUFFER_CAPACITY)
    if count >= capacity:
        longer = block_new((capacity * 2 + 1) * words * 8 + STRING_SLACK_BYTES, 1)
        if longer == 0:
            return 0
        old = ld_i64(buffer, BUFFER_RECORDS)
        copy(longer, old, count * words * 8)
        block_drop(old)
        st_i64(buffer, BUFFER_RECORDS, longer)
        st_i64(buffer, BUFFER_CAPACITY, capacity * 2)
    used = ld_i64(buffer, TABLE_ARENA_USED)
    if used > COMPACT_FROM_BYTES and used > ld_i64(buffer, BUFFER_LIVE) * 2 and _compact(buffer) == 0:
        return 0
    record = ld_i64(buffer, BUFFER_RECORDS) + count * words * 8
    fill(record, 0, words * 8)
    return record


@native("i64(i64, i64, i64, i64, i64)", export=True)
def buffer_text(buffer: int, record: int, word: int, address: int, length: int) -> int:
    """Write a string into the slot at `word` of a fresh record; 1, or 0 without memory."""
    if length <= INLINE_STRING_BYTES:
        st_i64(record, word, length)
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


@native("i64(i64, i64)", export=True)
def buffer_commit(buffer: int, time_us: int) -> int:
    """The record just filled waits for `time_us`, behind those of the same time."""
    own = ld_i64(buffer, BUFFER_RECORDS) + ld_i64(buffer, BUFFER_COUNT) * ld_i64(buffer, BUFFER_RECORD_WORDS) * 8
    arrival = ld_i64(buffer, BUFFER_ARRIVALS)
    st_i64(buffer, BUFFER_ARRIVALS, arrival + 1)
    st_i64(own, RECORD_TIME, time_us)
    st_i64(own, RECORD_ARRIVAL, arrival)
    _rise(buffer)
    return 0


@native("void(i64)")
def _rise(buffer: int) -> None:
    """One record more is in the heap: the one behind it."""
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    records = ld_i64(buffer, BUFFER_RECORDS)
    count = ld_i64(buffer, BUFFER_COUNT)
    st_i64(buffer, BUFFER_COUNT, count + 1)
    own = records + count * words * 8
    if count > 0 and _before(own, records + shr_u(count - 1, 1) * words * 8) != 0:  # seldom: most come in order
        _lift(records, count, words, records + ld_i64(buffer, BUFFER_CAPACITY) * words * 8)
    st_i64(buffer, BUFFER_NEXT, ld_i64(records, RECORD_TIME))


@native("void(i64, i64, i64, i64)")
def _lift(records: int, place: int, words: int, spare: int) -> None:
    """The record at `place` goes up the heap until none above it leaves later. spare: room for one record."""
    copy(spare, records + place * words * 8, words * 8)
    while place > 0:
        parent = shr_u(place - 1, 1)
        above = records + parent * words * 8
        if _before(spare, above) == 0:
            break
        copy(records + place * words * 8, above, words * 8)
        place = parent
    copy(records + place * words * 8, spare, words * 8)


@native("i64(i64, i64)", inline=True)
def _before(a: int, b: int) -> int:
    """Whether record a leaves before record b."""
    first = ld_i64(a, RECORD_TIME)
    second = ld_i64(b, RECORD_TIME)
    return 1 if first < second or (first == second and ld_i64(a, RECORD_ARRIVAL) < ld_i64(b, RECORD_ARRIVAL)) else 0


@native("i64(i64)", export=True)
def buffer_pop(buffer: int) -> int:
    """Remove the first record. Its strings stay where they are until the next `buffer_record`."""
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    records = ld_i64(buffer, BUFFER_RECORDS)
    count = ld_i64(buffer, BUFFER_COUNT) - 1
    strings = ld_i64(buffer, BUFFER_STRINGS)
    word = 0
    while strings != 0:
        length = ld_i64(records, word) & 4294967295
        if strings & 1 == 1 and length > INLINE_STRING_BYTES:
            st_i64(buffer, BUFFER_LIVE, ld_i64(buffer, BUFFER_LIVE) - length)
        strings = shr_u(strings, 1)
        word += 1
    st_i64(buffer, BUFFER_COUNT, count)
    last = records + count * words * 8
    place = 0
    child = 1
    while child < count:
        if child + 1 < count and _before(records + (child + 1) * words * 8, records + child * words * 8) == 1:
            child += 1
        if _before(last, records + child * words * 8) == 1:
            break
        copy(records + place * words * 8, records + child * words * 8, words * 8)
        place = child
        child = place * 2 + 1
    if place != count:
        copy(records + place * words * 8, last, words * 8)
    st_i64(buffer, BUFFER_NEXT, NEVER if count == 0 else ld_i64(records, RECORD_TIME))
    return 0


@native("i64(i64)")
def _compact(buffer: int) -> int:
    """Copy the strings records still refer to into a new arena; 1, or 0 without memory."""
    capacity = ld_i64(buffer, TABLE_ARENA_CAPACITY)
    arena = block_new(capacity + ARENA_SLACK_BYTES, 0)
    if arena == 0:
        return 0
    old = ld_i64(buffer, TABLE_ARENA)
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    records = ld_i64(buffer, BUFFER_RECORDS)
    used = 0
    for n in range(ld_i64(buffer, BUFFER_COUNT)):
        record = records + n * words * 8
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
SAVED_WORDS = _saved.word()  # of one
SAVED_STRINGS = _saved.word()  # bytes of strings
SAVED_LIVE = _saved.word()  # those that records refer to
SAVED_ARRIVALS = _saved.word()
SAVED_NEXT = _saved.word()
SAVED_HEAD = _saved.rest()  # the records as they lie in the heap, then the strings


@native("i64(i64)", export=True)
def buffer_saved_words(buffer: int) -> int:
    """Words that `buffer_save` writes."""
    records = ld_i64(buffer, BUFFER_COUNT) * ld_i64(buffer, BUFFER_RECORD_WORDS)
    return SAVED_HEAD + records + words_for(ld_i64(buffer, TABLE_ARENA_USED))


@native("i64(i64, i64)", export=True)
def buffer_save(buffer: int, target: int) -> int:
    """The waiting rows as words at `target`; returns how many."""
    count = ld_i64(buffer, BUFFER_COUNT)
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    used = ld_i64(buffer, TABLE_ARENA_USED)
    st_i64(target, SAVED_COUNT, count)
    st_i64(target, SAVED_WORDS, words)
    st_i64(target, SAVED_STRINGS, used)
    st_i64(target, SAVED_LIVE, ld_i64(buffer, BUFFER_LIVE))
    st_i64(target, SAVED_ARRIVALS, ld_i64(buffer, BUFFER_ARRIVALS))
    st_i64(target, SAVED_NEXT, ld_i64(buffer, BUFFER_NEXT))
    at = target + SAVED_HEAD * 8
    copy(at, ld_i64(buffer, BUFFER_RECORDS), count * words * 8)
    at += count * words * 8
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(buffer, TABLE_ARENA), used)
    return buffer_saved_words(buffer)


@native("i64(i64, i64)", export=True)
def buffer_load(buffer: int, source: int) -> int:
    """The words read, and the empty buffer holds what was saved; 0 without memory or when records differ in size.

    0 also when it holds rows.
    """
    count = ld_i64(source, SAVED_COUNT)
    words = ld_i64(source, SAVED_WORDS)
    used = ld_i64(source, SAVED_STRINGS)
    if count == 0 and words == ld_i64(buffer, BUFFER_RECORD_WORDS):
        return SAVED_HEAD + words_for(used)
    if ld_i64(buffer, BUFFER_COUNT) != 0 or words != ld_i64(buffer, BUFFER_RECORD_WORDS):
        return 0
    if table_arena(buffer, used) == 0:
        return 0
    if count > ld_i64(buffer, BUFFER_CAPACITY):
        records = block_new((count + 1) * words * 8, 0)  # one to spare: `buffer_commit` works in it
        if records == 0:
            return 0
        block_drop(ld_i64(buffer, BUFFER_RECORDS))
        st_i64(buffer, BUFFER_RECORDS, records)
        st_i64(buffer, BUFFER_CAPACITY, count)
    at = source + SAVED_HEAD * 8
    copy(ld_i64(buffer, BUFFER_RECORDS), at, count * words * 8)
    if used > 0:
        copy(ld_i64(buffer, TABLE_ARENA), at + count * words * 8, used)
    st_i64(buffer, BUFFER_COUNT, count)
    st_i64(buffer, TABLE_ARENA_USED, used)
    st_i64(buffer, BUFFER_LIVE, ld_i64(source, SAVED_LIVE))
    st_i64(buffer, BUFFER_ARRIVALS, ld_i64(source, SAVED_ARRIVALS))
    st_i64(buffer, BUFFER_NEXT, ld_i64(source, SAVED_NEXT))
    return buffer_saved_words(buffer)


@native("i64(i64, i64, i64)", export=True)
def buffer_take(buffer: int, other: int, record: int) -> int:
    """1 and a record of another buffer waits here too, its serial for its arrival; 0 without memory.

    Serials are distinct and below 0 (cq/runtime/engine/moving.py): it comes before all that arrives from now on.
    """
    made = buffer_record(buffer)
    if made == 0:
        return 0
    copy(made, record, ld_i64(buffer, BUFFER_RECORD_WORDS) * 8)
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
    _rise(buffer)
    return 1


@native("i64(i64, i64)", export=True)
def buffer_arrivals(buffer: int, target: int) -> int:
    """`Container.arrivals`: the serials of the rows, equal ones as they arrived."""
    records = ld_i64(buffer, BUFFER_RECORDS)
    for n in range(ld_i64(buffer, BUFFER_COUNT)):
        record = records + n * ld_i64(buffer, BUFFER_RECORD_WORDS) * 8
        put_arrival(target, n, record + RECORD_SERIAL * 8, ld_i64(record, RECORD_ARRIVAL))
    return ld_i64(buffer, BUFFER_COUNT)


@native("i64(i64)", export=True)
def buffer_held_bytes(buffer: int) -> int:
    """Memory the buffer holds; 0 is no buffer."""
    if buffer == 0:
        return 0
    records = (ld_i64(buffer, BUFFER_CAPACITY) + 1) * ld_i64(buffer, BUFFER_RECORD_WORDS) * 8
    return TABLE_WORDS * 8 + records + ld_i64(buffer, TABLE_ARENA_CAPACITY)


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
        hand_over=None,
    )
)
