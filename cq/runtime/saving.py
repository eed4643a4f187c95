"""State containers as flat bytes and back, and how much memory they hold.

Saved bytes are words: a container's counts, then what it holds in its own order (groups by birth, panes by time), then
its strings; no address, no empty slot. A container is loaded into a fresh empty one of the same shape, so a saved state
fits a process with another layout of memory.

Sharing: none, as for the containers. The engine calls these while nothing runs, or from the worker that owns the state.
"""

from __future__ import annotations

from cq.runtime.buffers import (
    BUFFER_ARRIVALS,
    BUFFER_CAPACITY,
    BUFFER_COUNT,
    BUFFER_LIVE,
    BUFFER_NEXT,
    BUFFER_RECORD_WORDS,
    BUFFER_RECORDS,
)
from cq.runtime.memory import block_drop, block_new
from cq.runtime.native import native
from cq.runtime.ops import alloc, copy, ld_i32, ld_i64, release, shl, st_i64
from cq.runtime.panes import (
    PANE_FIRST,
    PANE_SECOND,
    PANE_TABLES,
    PANES_COUNT,
    PANES_FREE,
    PANES_LIST,
    PANES_NEXT_END,
    PANES_SCRATCH,
    PANES_TABLES,
    PANES_WORDS,
    panes_record,
)
from cq.runtime.tables import (
    ENTRY_FIRST,
    ENTRY_TAG,
    TABLE_ARENA,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_BYTES,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_GARBAGE,
    TABLE_LOG_BYTES,
    TABLE_WORDS,
    table_arena,
    table_insert,
)

TABLE_HEAD = 4  # saved words: live entries, bytes of one, bytes of strings, garbage among them
PANES_HEAD = 2  # open panes, next closing time
BUFFER_HEAD = 6  # records, words of one, bytes of strings, those referred to, records ever, time of the first
HASH_MASK = 4294967295


@native("i64(i64)")
def _words_for(size: int) -> int:
    return (size + 7) >> 3


# -- tables ----------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def table_saved_words(table: int) -> int:
    """Words that `table_save` writes."""
    entries = shl(ld_i64(table, TABLE_COUNT), ld_i64(table, TABLE_LOG_BYTES))
    return TABLE_HEAD + _words_for(entries) + _words_for(ld_i64(table, TABLE_ARENA_USED))


@native("i64(i64, i64)", export=True)
def table_save(table: int, target: int) -> int:
    """The table as words at `target`; returns how many."""
    count = ld_i64(table, TABLE_COUNT)
    log_bytes = ld_i64(table, TABLE_LOG_BYTES)
    size = shl(1, log_bytes)
    used = ld_i64(table, TABLE_ARENA_USED)
    st_i64(target, 0, count)
    st_i64(target, 1, size)
    st_i64(target, 2, used)
    st_i64(target, 3, ld_i64(table, TABLE_GARBAGE))
    at = target + TABLE_HEAD * 8
    for birth in range(count):
        slot = ld_i32(ld_i64(table, TABLE_BIRTHS), birth)
        copy(at, ld_i64(table, TABLE_ENTRIES) + shl(slot, log_bytes), size)
        st_i64(at, ENTRY_TAG, ld_i64(at, ENTRY_TAG) & HASH_MASK)
        at += size
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(table, TABLE_ARENA), used)
    return table_saved_words(table)


@native("i64(i64, i64)", export=True)
def table_load(table: int, source: int) -> int:
    """The words read, and the empty table holds what was saved; 0 without memory or when its entries differ in size."""
    count = ld_i64(source, 0)
    size = ld_i64(source, 1)
    used = ld_i64(source, 2)
    if size != shl(1, ld_i64(table, TABLE_LOG_BYTES)) or table_arena(table, used) == 0:
        return 0
    at = source + TABLE_HEAD * 8
    for _birth in range(count):
        entry = table_insert(table, ld_i64(at, ENTRY_TAG), ld_i64(at, ENTRY_FIRST))
        if entry == 0:
            return 0
        copy(entry + 8, at + 8, size - 8)
        at += size
    if used > 0:
        copy(ld_i64(table, TABLE_ARENA), at, used)
    st_i64(table, TABLE_ARENA_USED, used)
    st_i64(table, TABLE_GARBAGE, ld_i64(source, 3))
    return table_saved_words(table)


@native("i64(i64)", export=True)
def table_held_bytes(table: int) -> int:
    """Memory the table holds; 0 is no table."""
    return TABLE_WORDS * 8 + ld_i64(table, TABLE_BYTES) if table != 0 else 0


# -- panes -----------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def panes_saved_words(panes: int) -> int:
    """Words that `panes_save` writes."""
    words = PANES_HEAD
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        words += PANE_TABLES
        for table in range(ld_i64(panes, PANES_TABLES)):
            words += table_saved_words(ld_i64(record, PANE_TABLES + table))
    return words


@native("i64(i64, i64)", export=True)
def panes_save(panes: int, target: int) -> int:
    """The open panes as words at `target`; returns how many. No window is closing."""
    st_i64(target, 0, ld_i64(panes, PANES_COUNT))
    st_i64(target, 1, ld_i64(panes, PANES_NEXT_END))
    at = target + PANES_HEAD * 8
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        st_i64(at, PANE_FIRST, ld_i64(record, PANE_FIRST))
        st_i64(at, PANE_SECOND, ld_i64(record, PANE_SECOND))
        at += PANE_TABLES * 8
        for table in range(ld_i64(panes, PANES_TABLES)):
            at += table_save(ld_i64(record, PANE_TABLES + table), at) * 8
    return (at - target) >> 3


@native("i64(i64, i64)", export=True)
def panes_load(panes: int, source: int) -> int:
    """The words read, and the empty panes hold what was saved; 0 without memory or when entries differ in size."""
    at = source + PANES_HEAD * 8
    for _number in range(ld_i64(source, 0)):
        record = panes_record(panes, ld_i64(at, PANE_FIRST), ld_i64(at, PANE_SECOND))
        if record == 0:
            return 0
        at += PANE_TABLES * 8
        for table in range(ld_i64(panes, PANES_TABLES)):
            read = table_load(ld_i64(record, PANE_TABLES + table), at)
            if read == 0:
                return 0
            at += read * 8
    st_i64(panes, PANES_NEXT_END, ld_i64(source, 1))
    return (at - source) >> 3


@native("i64(i64, i64)")
def _record_bytes(record: int, tables: int) -> int:
    held = (PANE_TABLES + tables) * 8
    for table in range(tables):
        held += table_held_bytes(ld_i64(record, PANE_TABLES + table))
    return held


@native("i64(i64)", export=True)
def panes_held_bytes(panes: int) -> int:
    """Memory the panes hold, recycled ones included; 0 is no panes."""
    if panes == 0:
        return 0
    tables = ld_i64(panes, PANES_TABLES)
    held = PANES_WORDS * 8 + table_held_bytes(ld_i64(panes, PANES_SCRATCH))
    for number in range(ld_i64(panes, PANES_COUNT)):
        held += _record_bytes(ld_i64(ld_i64(panes, PANES_LIST), number), tables)
    free = ld_i64(panes, PANES_FREE)
    while free != 0:
        held += _record_bytes(free, tables)
        free = ld_i64(free, PANE_FIRST)
    return held


# -- buffers ---------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def buffer_saved_words(buffer: int) -> int:
    """Words that `buffer_save` writes."""
    records = ld_i64(buffer, BUFFER_COUNT) * ld_i64(buffer, BUFFER_RECORD_WORDS)
    return BUFFER_HEAD + records + _words_for(ld_i64(buffer, TABLE_ARENA_USED))


@native("i64(i64, i64)", export=True)
def buffer_save(buffer: int, target: int) -> int:
    """The waiting rows as words at `target`; returns how many."""
    count = ld_i64(buffer, BUFFER_COUNT)
    words = ld_i64(buffer, BUFFER_RECORD_WORDS)
    used = ld_i64(buffer, TABLE_ARENA_USED)
    st_i64(target, 0, count)
    st_i64(target, 1, words)
    st_i64(target, 2, used)
    st_i64(target, 3, ld_i64(buffer, BUFFER_LIVE))
    st_i64(target, 4, ld_i64(buffer, BUFFER_ARRIVALS))
    st_i64(target, 5, ld_i64(buffer, BUFFER_NEXT))
    at = target + BUFFER_HEAD * 8
    copy(at, ld_i64(buffer, BUFFER_RECORDS), count * words * 8)
    at += count * words * 8
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(buffer, TABLE_ARENA), used)
    return buffer_saved_words(buffer)


@native("i64(i64, i64)", export=True)
def buffer_load(buffer: int, source: int) -> int:
    """The words read, and the empty buffer holds what was saved; 0 without memory or when records differ in size."""
    count = ld_i64(source, 0)
    words = ld_i64(source, 1)
    used = ld_i64(source, 2)
    if words != ld_i64(buffer, BUFFER_RECORD_WORDS) or table_arena(buffer, used) == 0:
        return 0
    if count > ld_i64(buffer, BUFFER_CAPACITY):
        records = block_new((count + 1) * words * 8, 0)  # one to spare: `buffer_commit` works in it
        if records == 0:
            return 0
        block_drop(ld_i64(buffer, BUFFER_RECORDS))
        st_i64(buffer, BUFFER_RECORDS, records)
        st_i64(buffer, BUFFER_CAPACITY, count)
    at = source + BUFFER_HEAD * 8
    copy(ld_i64(buffer, BUFFER_RECORDS), at, count * words * 8)
    if used > 0:
        copy(ld_i64(buffer, TABLE_ARENA), at + count * words * 8, used)
    st_i64(buffer, BUFFER_COUNT, count)
    st_i64(buffer, TABLE_ARENA_USED, used)
    st_i64(buffer, BUFFER_LIVE, ld_i64(source, 3))
    st_i64(buffer, BUFFER_ARRIVALS, ld_i64(source, 4))
    st_i64(buffer, BUFFER_NEXT, ld_i64(source, 5))
    return buffer_saved_words(buffer)


@native("i64(i64)", export=True)
def buffer_held_bytes(buffer: int) -> int:
    """Memory the buffer holds; 0 is no buffer."""
    if buffer == 0:
        return 0
    records = (ld_i64(buffer, BUFFER_CAPACITY) + 1) * ld_i64(buffer, BUFFER_RECORD_WORDS) * 8
    return TABLE_WORDS * 8 + records + ld_i64(buffer, TABLE_BYTES)


# -- whole states ----------------------------------------------------------------------------------------------------

WORD, TABLE, PANES, BUFFER = 0, 1, 2, 3  # Container, in the order of its members


@native("i64(i64, i64, i64)", export=True)
def state_held_bytes(state: int, slots: int, count: int) -> int:
    """Memory the containers of a state hold. slots: -> (offset, container) of each slot."""
    held = 0
    for slot in range(count):
        address = ld_i64(state, ld_i64(slots, slot * 2))
        container = ld_i64(slots, slot * 2 + 1)
        if container == TABLE:
            held += table_held_bytes(address)
        elif container == PANES:
            held += panes_held_bytes(address)
        elif container == BUFFER:
            held += buffer_held_bytes(address)
    return held


@native("i64(i64)", export=True)
def room_new(size: int) -> int:
    """The address of `size` > 0 bytes, or 0. For Python, which has no other way to allocate."""
    return alloc(size)


@native("void(i64)", export=True)
def room_drop(address: int) -> None:
    """Free what `room_new` gave."""
    release(address)
