"""Multimaps as flat words and back, and key by key into another one.

Sharing: none, as for tables. The engine calls these while nothing runs.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i64, shl, st_i64
from cq.runtime.containers.deferred import multimap_settle
from cq.runtime.containers.multimap import (
    multimap_append,
    multimap_drop,
    multimap_grow,
    multimap_held_bytes,
    multimap_new,
    multimap_record,
)
from cq.runtime.containers.multimap_words import (
    DEFER_FROM_ROWS,
    MOST_ROWS,
    MULTIMAP_COUNT,
    MULTIMAP_HEAD,
    MULTIMAP_RECORD_BYTES,
    MULTIMAP_ROOM,
    MULTIMAP_TABLE,
    NUMBER_BITS,
    ROW_NEXT,
    ROW_VALUES,
)
from cq.runtime.containers.protocol import Container, Place, register, string_bits
from cq.runtime.containers.strings import strings_move
from cq.runtime.containers.table_saving import (
    all_taken,
    no_arrivals,
    table_load,
    table_save,
    table_saved_words,
    table_take,
    words_for,
)
from cq.runtime.containers.table_words import (
    TABLE_ARENA,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct

_saved = Struct("SAVED")
SAVED_RECORDS = _saved.word()
SAVED_BYTES = _saved.word()  # bytes of one record
SAVED_STRINGS = _saved.word()  # bytes of their strings
SAVED_HEAD = _saved.rest()  # the table, the records by number, the strings


@native("i64(i64)", export=True)
def multimap_saved_words(multimap: int) -> int:
    """Words that `multimap_save` writes."""
    records = ld_i64(multimap, MULTIMAP_COUNT) * ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    table = table_saved_words(ld_i64(multimap, MULTIMAP_TABLE))
    return SAVED_HEAD + table + words_for(records) + words_for(ld_i64(multimap, TABLE_ARENA_USED))


@native("i64(i64, i64)", export=True)
def multimap_save(multimap: int, target: int) -> int:
    """Write the multimap as words to `target`; return how many."""
    records = ld_i64(multimap, MULTIMAP_COUNT)
    size = ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    strings = ld_i64(multimap, TABLE_ARENA_USED)
    st_i64(target, SAVED_RECORDS, records)
    st_i64(target, SAVED_BYTES, size)
    st_i64(target, SAVED_STRINGS, strings)
    at = target + (SAVED_HEAD + table_save(ld_i64(multimap, MULTIMAP_TABLE), target + SAVED_HEAD * 8)) * 8
    copy(at, multimap_record(multimap, 1, size), records * size)
    at += records * size
    if strings > 0:
        st_i64(at + ((strings - 1) & -8), 0, 0)
        copy(at, ld_i64(multimap, TABLE_ARENA), strings)
    return multimap_saved_words(multimap)


@native("i64(i64, i64)", export=True)
def multimap_load(multimap: int, source: int) -> int:
    """Append what was saved to the multimap; return the words read, or 0 without memory or for other records.

    None of its keys may be there already.
    """
    table = ld_i64(multimap, MULTIMAP_TABLE)
    size = ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    keys = ld_i64(table, TABLE_COUNT)
    before = ld_i64(multimap, MULTIMAP_COUNT)
    words = table_load(table, source + SAVED_HEAD * 8)
    if words == 0 or ld_i64(source, SAVED_BYTES) != size:
        return 0
    head = ld_i64(multimap, MULTIMAP_HEAD)
    entries = ld_i64(table, TABLE_ENTRIES)
    for n in range(keys, ld_i64(table, TABLE_COUNT)):
        entry = entry_at(entries, ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)
        st_i64(entry, head, ld_i64(entry, head) + (shl(before, NUMBER_BITS) | before))
    records = ld_i64(source, SAVED_RECORDS)
    at = source + (SAVED_HEAD + words) * 8
    if _copy_in(multimap, at, records, at + records * size) == 0:
        return 0
    return SAVED_HEAD + words + words_for(records * size) + words_for(ld_i64(source, SAVED_STRINGS))


@native("i64(i64, i64, i64, i64)")
def _copy_in(multimap: int, source: int, records: int, texts: int) -> int:
    """Append copies of the records at `source`, whose long strings begin at `texts`, and return 1; 0 without memory."""
    size = ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    before = ld_i64(multimap, MULTIMAP_COUNT)
    while before + records > ld_i64(multimap, MULTIMAP_ROOM):
        if multimap_grow(multimap) == 0:
            return 0
    copy(multimap_record(multimap, before + 1, size), source, records * size)
    st_i64(multimap, MULTIMAP_COUNT, before + records)
    for number in range(before + 1, before + records + 1):
        record = multimap_record(multimap, number, size)
        if ld_i64(record, ROW_NEXT) != 0:
            st_i64(record, ROW_NEXT, ld_i64(record, ROW_NEXT) + before)
        if strings_move(multimap, record, texts) == 0:
            return 0
    return 1


@native("i64(i64, i64, i64)", export=True)
def multimap_take(multimap: int, other: int, entry: int) -> int:
    """Copy the key of an entry of another multimap, with all its records, here and return 1; 0 without memory.

    The caller knows that the key is absent.
    """
    made = table_take(ld_i64(multimap, MULTIMAP_TABLE), ld_i64(other, MULTIMAP_TABLE), entry)
    if made == 0:
        return 0
    head = ld_i64(multimap, MULTIMAP_HEAD)
    size = ld_i64(multimap, MULTIMAP_RECORD_BYTES)
    st_i64(made, head, 0)
    number = ld_i64(entry, head) & MOST_ROWS
    while number != 0:
        record = multimap_record(other, number, size)
        copied = multimap_append(multimap, made + head * 8, size)
        if copied == 0:
            return 0
        copy(copied + ROW_VALUES * 8, record + ROW_VALUES * 8, size - ROW_VALUES * 8)
        if strings_move(multimap, copied, ld_i64(other, TABLE_ARENA)) == 0:
            return 0
        number = ld_i64(record, ROW_NEXT)
    return 1


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    keys, rows = slot.shapes
    return (keys.entry_words, string_bits(keys), rows.entry_words, string_bits(rows), DEFER_FROM_ROWS)


register(
    Container(
        "multimap",
        _arguments,
        new=multimap_new,
        drop=multimap_drop,
        saved_words=multimap_saved_words,
        save=multimap_save,
        load=multimap_load,
        arrivals=no_arrivals,
        taken=all_taken,
        held_bytes=multimap_held_bytes,
        settle=multimap_settle,
        apart=None,
    )
)
