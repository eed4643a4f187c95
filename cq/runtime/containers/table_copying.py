"""Copy the groups of a table into an empty one, which takes a tenth of the time of adding them: no key is hashed,
compared or searched for."""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i32, ld_i64, st_i32, st_i64
from cq.runtime.containers.table_words import (
    ENTRY_TAG,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_EPOCH,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_STRIDE,
    TABLE_STRINGS,
)
from cq.runtime.containers.tables import HASH_MASK, table_size_for


@native("i64(i64, i64)")
def table_copied(table: int, source: int) -> int:
    """1 if `table` has got all entries of the source, which has the same shape, by order of birth.

    0: nothing has changed but its room; it had entries, or the source is dense, or has strings of its own, or there is
    no memory.
    """
    count = ld_i64(source, TABLE_COUNT)
    if ld_i64(table, TABLE_COUNT) > 0 or ld_i64(source, TABLE_INDEX) != 0 or ld_i64(source, TABLE_ARENA_USED) > 0:
        return 0
    slots = ld_i64(source, TABLE_MASK) + 1
    other = ld_i64(table, TABLE_MASK) + 1 != slots or ld_i64(table, TABLE_INDEX) != 0
    if other and (ld_i64(table, TABLE_STRINGS) != 0 or table_size_for(table, slots >> 1) == 0):
        return 0
    _copy(table, source, count)
    return 1


@native("void(i64, i64, i64)")
def _copy(table: int, source: int, count: int) -> None:
    """Copy the entries of a spread table into the same slots of an empty one of the same size."""
    births = ld_i64(source, TABLE_BIRTHS)
    stride = ld_i64(source, TABLE_STRIDE)
    size = ld_i64(source, TABLE_ENTRY_BYTES)
    epoch = ld_i64(table, TABLE_EPOCH)
    given, made = ld_i64(source, TABLE_ENTRIES), ld_i64(table, TABLE_ENTRIES)
    for n in range(count):
        slot = ld_i32(births, n)
        entry = made + slot * stride
        copy(entry, given + slot * stride, size)
        st_i64(entry, ENTRY_TAG, epoch | (ld_i64(entry, ENTRY_TAG) & HASH_MASK))
        st_i32(ld_i64(table, TABLE_BIRTHS), n, slot)
    st_i64(table, TABLE_COUNT, count)
