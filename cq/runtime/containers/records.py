"""Records: rows of one size in a pool, numbered from 1, with strings; free ones are reused.

A container with a pool begins with the entry and string words of a table's header (records are the pool's entries, none
by birth), and with RECORDS_*. So code that reads, stores and compacts strings works on both.
A record begins with two links: numbers of other records, or 0. Nothing is allocated for them.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_i64, ld_u32, st_i64, st_u32
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.strings import strings_forget, strings_move, table_arena
from cq.runtime.containers.table_saving import words_for
from cq.runtime.containers.table_words import (
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_GARBAGE,
    TABLE_LIMIT,
    TABLE_STRIDE,
    TABLE_STRINGS,
    TABLE_WORDS,
)
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.layout.words import Struct, name_words

_records = Struct("RECORDS", after=TABLE_WORDS)
RECORDS_FREE = _records.word()  # the number of a record to reuse, or 0; its left link leads to the next
RECORDS_FRESH = _records.word()  # the number of the record being filled
RECORDS_WORDS = _records.size()

_record = Struct("RECORDS")
RECORDS_LINKS = _record.word()  # of a record

FIRST_RECORDS = 64

name_words(globals())


@native("i64(i64, i64)", inline=True)
def record_at(pool: int, number: int) -> int:
    """The record of this number."""
    return ld_i64(pool, TABLE_ENTRIES) + number * ld_i64(pool, TABLE_STRIDE)


@native("i64(i64, i64)", inline=True)
def record_link(record: int, side: int) -> int:
    return ld_u32(record + RECORDS_LINKS * 8, side)


@native("void(i64, i64, i64)", inline=True)
def set_record_link(record: int, side: int, number: int) -> None:
    st_u32(record + RECORDS_LINKS * 8, side, number)


@native("i64(i64, i64, i64)")
def records_open(pool: int, record_words: int, strings: int) -> int:
    """Initialise an empty pool, whose words are 0, and return 1; 0 without memory."""
    records = block_new((FIRST_RECORDS + 1) * record_words * 8 + STRING_SLACK_BYTES, 1)
    st_i64(pool, TABLE_ENTRIES, records)
    st_i64(pool, TABLE_STRIDE, record_words * 8)
    st_i64(pool, TABLE_LIMIT, FIRST_RECORDS)
    st_i64(pool, TABLE_STRINGS, strings)
    return 0 if records == 0 else 1


@native("void(i64)")
def records_close(pool: int) -> None:
    """Free the memory of the pool."""
    block_drop(ld_i64(pool, TABLE_ENTRIES))
    block_drop(ld_i64(pool, TABLE_ARENA))


@native("void(i64)")
def records_clear(pool: int) -> None:
    """Reset every record as if it had never been used."""
    st_i64(pool, TABLE_COUNT, 0)
    st_i64(pool, TABLE_ARENA_USED, 0)
    st_i64(pool, TABLE_GARBAGE, 0)
    st_i64(pool, RECORDS_FREE, 0)


@native("i64(i64)", export=True)
def record_new(pool: int) -> int:
    """The address of a new record, its words 0; 0 without memory. Records may have moved."""
    number = ld_i64(pool, RECORDS_FREE)
    if number != 0:
        st_i64(pool, RECORDS_FREE, record_link(record_at(pool, number), 0))
    else:
        number = ld_i64(pool, TABLE_COUNT) + 1
        limit = ld_i64(pool, TABLE_LIMIT)
        if number > limit:
            size = (2 * limit + 1) * ld_i64(pool, TABLE_STRIDE) + STRING_SLACK_BYTES
            records = block_resize(ld_i64(pool, TABLE_ENTRIES), size)
            if records == 0:
                return 0
            st_i64(pool, TABLE_ENTRIES, records)
            st_i64(pool, TABLE_LIMIT, 2 * limit)
        st_i64(pool, TABLE_COUNT, number)
    st_i64(pool, RECORDS_FRESH, number)
    record = record_at(pool, number)
    fill(record, 0, ld_i64(pool, TABLE_STRIDE))
    return record


@native("void(i64, i64)")
def record_free(pool: int, number: int) -> None:
    """Make the record reusable, its strings garbage."""
    record = record_at(pool, number)
    strings_forget(pool, record)
    st_i64(record, RECORDS_LINKS, 0)
    set_record_link(record, 0, ld_i64(pool, RECORDS_FREE))
    st_i64(pool, RECORDS_FREE, number)


@native("i64(i64, i64, i64)")
def record_take(pool: int, other: int, record: int) -> int:
    """The number of a new copy of this record of another pool, without links; 0 without memory."""
    made = record_new(pool)
    if made == 0:
        return 0
    copy(made, record, ld_i64(pool, TABLE_STRIDE))
    st_i64(made, RECORDS_LINKS, 0)
    return ld_i64(pool, RECORDS_FRESH) if strings_move(pool, made, ld_i64(other, TABLE_ARENA)) == 1 else 0


@native("i64(i64)")
def records_held_bytes(pool: int) -> int:
    """Memory the records hold."""
    records = (ld_i64(pool, TABLE_LIMIT) + 1) * ld_i64(pool, TABLE_STRIDE)
    return records + ld_i64(pool, TABLE_ARENA_CAPACITY)


# -- as flat words, and back -----------------------------------------------------------------------------------------

_saved = Struct("SAVED")
SAVED_RECORDS = _saved.word()  # records, free ones too
SAVED_BYTES = _saved.word()  # bytes of one record
SAVED_STRINGS = _saved.word()  # bytes of strings
SAVED_GARBAGE = _saved.word()
SAVED_FREE = _saved.word()
SAVED_HEAD = _saved.rest()  # the records, then their strings


@native("i64(i64)")
def records_saved_words(pool: int) -> int:
    """The words that `records_save` writes."""
    records = ld_i64(pool, TABLE_COUNT) * ld_i64(pool, TABLE_STRIDE)
    return SAVED_HEAD + words_for(records) + words_for(ld_i64(pool, TABLE_ARENA_USED))


@native("i64(i64, i64)")
def records_save(pool: int, target: int) -> int:
    """Write the records as words to `target`; return how many."""
    count = ld_i64(pool, TABLE_COUNT)
    size = ld_i64(pool, TABLE_STRIDE)
    used = ld_i64(pool, TABLE_ARENA_USED)
    st_i64(target, SAVED_RECORDS, count)
    st_i64(target, SAVED_BYTES, size)
    st_i64(target, SAVED_STRINGS, used)
    st_i64(target, SAVED_GARBAGE, ld_i64(pool, TABLE_GARBAGE))
    st_i64(target, SAVED_FREE, ld_i64(pool, RECORDS_FREE))
    at = target + SAVED_HEAD * 8
    copy(at, record_at(pool, 1), count * size)
    at += count * size
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(pool, TABLE_ARENA), used)
    return records_saved_words(pool)


@native("i64(i64, i64)")
def records_load(pool: int, source: int) -> int:
    """Read saved records into an empty pool; return the words read, or 0 without memory or for other records."""
    count = ld_i64(source, SAVED_RECORDS)
    size = ld_i64(source, SAVED_BYTES)
    used = ld_i64(source, SAVED_STRINGS)
    if size != ld_i64(pool, TABLE_STRIDE) or ld_i64(pool, TABLE_COUNT) != 0 or table_arena(pool, used) == 0:
        return 0
    if count > ld_i64(pool, TABLE_LIMIT):
        records = block_resize(ld_i64(pool, TABLE_ENTRIES), (count + 1) * size + STRING_SLACK_BYTES)
        if records == 0:
            return 0
        st_i64(pool, TABLE_ENTRIES, records)
        st_i64(pool, TABLE_LIMIT, count)
    at = source + SAVED_HEAD * 8
    copy(record_at(pool, 1), at, count * size)
    if used > 0:
        copy(ld_i64(pool, TABLE_ARENA), at + count * size, used)
    st_i64(pool, TABLE_COUNT, count)
    st_i64(pool, TABLE_ARENA_USED, used)
    st_i64(pool, TABLE_GARBAGE, ld_i64(source, SAVED_GARBAGE))
    st_i64(pool, RECORDS_FREE, ld_i64(source, SAVED_FREE))
    return records_saved_words(pool)
