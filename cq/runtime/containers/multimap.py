"""Multimaps: the rows of each key in order of arrival, which never leave.

A row is a record in the list of its key: the number of the next one, then its words. Records are numbered from 1 and
stored in order of arrival, in one block that grows: its pages are moved, not copied, and untouched pages take no
memory. The key's entry in the table has the numbers of its first and its last record. So a row of one value beside its
key takes 16 bytes, where one that may leave by time (log.py) takes 64; and keys are never deleted, so that a few of
them are stored directly in the slots of their table (tables.py).

Until they are looked up, the rows of a large multimap are in no lists (deferred.py): generated code requests them
before the first look-up, and the engine before it saves them or lets several workers look them up.

A multimap shares the string words of a table's header, so that code that reads and stores strings works on both: long
strings of its records are in its arena.

Sharing: none, as for tables; while no row comes any thread may read.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import fill, ld_i64, release, shl, shr_u, st_i64, zalloc
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.deferred import deferred_drop, deferred_held_bytes
from cq.runtime.containers.multimap_words import (
    ENDS_WORDS,
    MOST_ROWS,
    MULTIMAP_COUNT,
    MULTIMAP_DEFERRED,
    MULTIMAP_DEFERS_AT,
    MULTIMAP_HEAD,
    MULTIMAP_RECORD_BYTES,
    MULTIMAP_ROOM,
    MULTIMAP_ROWS,
    MULTIMAP_TABLE,
    MULTIMAP_WORDS,
    NUMBER_BITS,
    ROW_NEXT,
)
from cq.runtime.containers.table_words import TABLE_ARENA, TABLE_ARENA_CAPACITY, TABLE_STRINGS
from cq.runtime.containers.tables import table_drop, table_held_bytes, table_new
from cq.runtime.layout.words import name_words

FIRST_ROWS = 64  # a multimap of few rows stays in a page; growth doubles

name_words(globals())


@native("i64(i64, i64, i64)", inline=True)
def multimap_record(multimap: int, number: int, record_bytes: int) -> int:
    """The address of a record; valid until the next row comes."""
    return ld_i64(multimap, MULTIMAP_ROWS) + number * record_bytes


@native("i64(i64, i64, i64, i64, i64)", export=True)
def multimap_new(entry_words: int, key_strings: int, record_words: int, strings: int, defers_at: int) -> int:
    """An empty multimap, or 0 without memory. defers_at: the number of records from which its rows are deferred."""
    multimap = zalloc(MULTIMAP_WORDS * 8)
    if multimap == 0:
        return 0
    st_i64(multimap, MULTIMAP_TABLE, table_new(entry_words, key_strings, 0))
    st_i64(multimap, MULTIMAP_ROWS, block_new((FIRST_ROWS + 1) * record_words * 8, 0))
    st_i64(multimap, MULTIMAP_ROOM, FIRST_ROWS)
    st_i64(multimap, MULTIMAP_RECORD_BYTES, record_words * 8)
    st_i64(multimap, MULTIMAP_HEAD, entry_words - ENDS_WORDS)
    st_i64(multimap, MULTIMAP_DEFERS_AT, defers_at)
    st_i64(multimap, TABLE_STRINGS, strings)
    if ld_i64(multimap, MULTIMAP_TABLE) != 0 and ld_i64(multimap, MULTIMAP_ROWS) != 0:
        return multimap
    multimap_drop(multimap)
    return 0


@native("i64(i64)", export=True)
def multimap_drop(multimap: int) -> int:
    """Free the multimap and all it holds; 0 is none."""
    if multimap != 0:
        table_drop(ld_i64(multimap, MULTIMAP_TABLE))
        block_drop(ld_i64(multimap, MULTIMAP_ROWS))
        deferred_drop(ld_i64(multimap, MULTIMAP_DEFERRED))
        block_drop(ld_i64(multimap, TABLE_ARENA))
        release(multimap)
    return 0


@native("i64(i64, i64, i64)", inline=True)
def multimap_append(multimap: int, ends: int, record_bytes: int) -> int:
    """The address of a new record, its values 0, the last of the key whose entry has the word `ends`; 0 without memory.

    Inline: where the size is a constant, making a record is a few stores.
    """
    number = ld_i64(multimap, MULTIMAP_COUNT) + 1
    if number > ld_i64(multimap, MULTIMAP_ROOM) and multimap_grow(multimap) == 0:
        return 0
    rows = ld_i64(multimap, MULTIMAP_ROWS)
    record = rows + number * record_bytes
    fill(record, 0, record_bytes)
    st_i64(multimap, MULTIMAP_COUNT, number)
    held = ld_i64(ends, 0)
    first = held & MOST_ROWS
    if held == 0:
        first = number
    else:
        st_i64(rows + shr_u(held, NUMBER_BITS) * record_bytes, ROW_NEXT, number)
    st_i64(ends, 0, shl(number, NUMBER_BITS) | first)
    return record


@native("i64(i64)", export=True)
def multimap_grow(multimap: int) -> int:
    """Make room for twice as many records and return 1; 0 without memory, or numbers: nothing has changed."""
    room = 2 * ld_i64(multimap, MULTIMAP_ROOM)
    if room > MOST_ROWS:
        return 0
    rows = block_resize(ld_i64(multimap, MULTIMAP_ROWS), (room + 1) * ld_i64(multimap, MULTIMAP_RECORD_BYTES))
    if rows == 0:
        return 0
    st_i64(multimap, MULTIMAP_ROWS, rows)
    st_i64(multimap, MULTIMAP_ROOM, room)
    return 1


@native("i64(i64)", export=True)
def multimap_held_bytes(multimap: int) -> int:
    """Memory the multimap holds; 0 is none. Of the room for records, only what is used counts."""
    if multimap == 0:
        return 0
    records = (ld_i64(multimap, MULTIMAP_COUNT) + 1) * ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    held = MULTIMAP_WORDS * 8 + records + ld_i64(multimap, TABLE_ARENA_CAPACITY)
    held += deferred_held_bytes(ld_i64(multimap, MULTIMAP_DEFERRED))
    return held + table_held_bytes(ld_i64(multimap, MULTIMAP_TABLE))
