"""Entries of two tables of one shape that have the same key.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shr_u
from cq.runtime.containers.strings import INLINE_STRING_BYTES, string_address, string_is, string_length
from cq.runtime.containers.table_words import (
    ENTRY_KEYS,
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_STRINGS,
)
from cq.runtime.containers.tables import HASH_MASK


@native("i64(i64, i64, i64, i64, i64, i64)")
def same_words(table: int, a: int, other: int, b: int, first: int, end: int) -> int:
    """Whether entry `a` of a table and entry `b` of the other have the same words from `first` to `end`, and texts."""
    strings = shr_u(ld_i64(table, TABLE_STRINGS), first)
    word = first
    while word < end:
        if ld_i64(a, word) != ld_i64(b, word):
            return 0
        if strings & 1 == 1 and string_length(a, word) > INLINE_STRING_BYTES:
            if string_is(table, a, word, string_address(other, b, word)) == 0:
                return 0
            strings = shr_u(strings, 1)  # where its bytes are says nothing
            word += 1
        strings = shr_u(strings, 1)
        word += 1
    return 1


@native("i64(i64, i64, i64, i64)")
def entry_like(table: int, other: int, entry: int, end: int) -> int:
    """The address of the entry of a dense table whose key, the words before `end`, equals that of this entry of the
    other table; 0: it has none."""
    hash32 = ld_i64(entry, ENTRY_TAG) & HASH_MASK
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    item = ld_i64(index, slot)
    while item != 0:
        found = ld_i64(table, TABLE_ENTRIES) + (item & NUMBER_MASK) * ld_i64(table, TABLE_STRIDE)
        if shr_u(item, 32) == hash32 and same_words(table, found, other, entry, ENTRY_KEYS, end) == 1:
            return found
        slot = (slot + 1) & mask
        item = ld_i64(index, slot)
    return 0
