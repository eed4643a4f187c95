"""Tables as flat words and back, and entry by entry into another table.

Sharing: none, as for tables. The engine calls these while nothing runs.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i64, shr_u, st_i64
from cq.runtime.containers.protocol import Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.strings import strings_move
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    TABLE_ARENA,
    TABLE_ARENA_USED,
    TABLE_ARRIVALS,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import HASH_MASK, table_drop, table_held_bytes, table_insert, table_new, table_settle
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct

_saved = Struct("SAVED")
SAVED_COUNT = _saved.word()  # live entries
SAVED_BYTES = _saved.word()  # bytes of one entry
SAVED_STRINGS = _saved.word()  # bytes of strings
SAVED_HEAD = _saved.rest()  # the entries by birth, then the strings


@native("i64(i64)", export=True)
def table_saved_words(table: int) -> int:
    """Words that `table_save` writes."""
    entries = ld_i64(table, TABLE_COUNT) * ld_i64(table, TABLE_ENTRY_BYTES)
    return SAVED_HEAD + words_for(entries) + words_for(ld_i64(table, TABLE_ARENA_USED))


@native("i64(i64)")
def words_for(size: int) -> int:
    """Words that this many bytes take."""
    return (size + 7) >> 3


@native("i64(i64, i64)", export=True)
def table_save(table: int, target: int) -> int:
    """Write the table as words to `target`; return how many. No entry is dead afterwards."""
    table_settle(table)
    count = ld_i64(table, TABLE_COUNT)
    size = ld_i64(table, TABLE_ENTRY_BYTES)
    stride = ld_i64(table, TABLE_STRIDE)
    births = ld_i64(table, TABLE_BIRTHS)
    used = ld_i64(table, TABLE_ARENA_USED)
    st_i64(target, SAVED_COUNT, count)
    st_i64(target, SAVED_BYTES, size)
    st_i64(target, SAVED_STRINGS, used)
    at = target + SAVED_HEAD * 8
    for n in range(count):
        copy(at, entry_at(ld_i64(table, TABLE_ENTRIES), births, stride, n), size)
        st_i64(at, ENTRY_TAG, ld_i64(at, ENTRY_TAG) & HASH_MASK)
        at += size
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(table, TABLE_ARENA), used)
    return table_saved_words(table)


@native("i64(i64, i64)", export=True)
def table_load(table: int, source: int) -> int:
    """Append saved entries to the table; return the words read, or 0 without memory or for other entries."""
    count = ld_i64(source, SAVED_COUNT)
    size = ld_i64(source, SAVED_BYTES)
    if size != ld_i64(table, TABLE_ENTRY_BYTES):
        return 0
    at = source + SAVED_HEAD * 8
    texts = at + count * size
    for _birth in range(count):
        if _copy_in(table, at, texts) == 0:
            return 0
        at += size
    return SAVED_HEAD + words_for(count * size) + words_for(ld_i64(source, SAVED_STRINGS))


@native("i64(i64, i64, i64)")
def _copy_in(table: int, entry: int, texts: int) -> int:
    """Address of a new copy of this entry, whose long strings begin at `texts`; 0 without memory."""
    made = table_insert(table, ld_i64(entry, ENTRY_TAG) & HASH_MASK, ld_i64(entry, ENTRY_FIRST))
    if made == 0:
        return 0
    copy(made + 8, entry + 8, ld_i64(table, TABLE_ENTRY_BYTES) - 8)
    return made if strings_move(table, made, texts) == 1 else 0


@native("i64(i64, i64, i64)", export=True)
def table_take(table: int, other: int, entry: int) -> int:
    """Address of a new copy of this entry of another table of the same shape; 0 without memory.

    The caller knows that its key is absent.
    """
    return _copy_in(table, entry, ld_i64(other, TABLE_ARENA))


@native("i64(i64, i64)", export=True)
def table_arrivals(table: int, target: int) -> int:
    """`Container.arrivals`: the serials of first rows and of the others that entries hold, equal ones by birth. None is
    dead."""
    stride = ld_i64(table, TABLE_STRIDE)
    births = ld_i64(table, TABLE_BIRTHS)
    listed = 0
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), births, stride, n)
        put_arrival(target, listed, entry + ENTRY_FIRST * 8, n)
        listed += 1
        word = 0
        left = ld_i64(table, TABLE_ARRIVALS)
        while left != 0:
            if left & 1 == 1 and ld_i64(entry, word) != NEVER:
                put_arrival(target, listed, entry + word * 8, n)
                listed += 1
            left = shr_u(left, 1)
            word += 1
    return listed


@native("i64(i64, i64)", export=True)
def no_arrivals(container: int, target: int) -> int:
    """`Container.arrivals` for containers without an order."""
    return 0


@native("i64(i64)", export=True)
def all_taken(container: int) -> int:
    """`Container.taken` if nothing is left to do."""
    return 1


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    (shape,) = slot.shapes
    return (shape.entry_words, string_bits(shape), 0)


TABLE = Container(
    "table",  # of entries that keep no order: their keys begin where others have the serial of their first row
    _arguments,
    new=table_new,
    drop=table_drop,
    saved_words=table_saved_words,
    save=table_save,
    load=table_load,
    arrivals=no_arrivals,
    taken=all_taken,
    held_bytes=table_held_bytes,
    settle=None,
    apart=None,
)
register(TABLE)
