"""Strings in entries, and the hashes of keys.

A string takes two words of an entry: length in the low half of the first, its first four bytes in the high half, and
either the next eight bytes (length <= 12) or its offset in the table's arena.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    copy,
    ld_i32,
    ld_i64,
    ld_u8,
    max_i64,
    mem_eq,
    pick,
    shl,
    shr_u,
    st_i64,
    st_u8,
    wmul,
)
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.table_words import (
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_GARBAGE,
    TABLE_STRIDE,
    TABLE_STRINGS,
    entry_at,
)
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.layout.words import name_words

ARENA_FIRST_BYTES = 1024
HASH_FACTOR = -7046029254386353131  # 2^64 / golden ratio: Fibonacci hashing (Knuth 6.4)
MIX_FACTOR = -4658895280553007687  # 0xBF58476D1CE4E5B9, of SplitMix64 (Steele et al., 2014)
INLINE_STRING_BYTES = 12  # room of two words beside the length
COMPACT_FROM_BYTES = 65536  # below this an arena's garbage is not worth moving

name_words(globals())


@native("i64(i64)", inline=True)
def hash_word(key: int) -> int:
    """The 32-bit hash of one key word."""
    return shr_u(wmul(key, HASH_FACTOR), 32)


@native("i64(i64, i64)", inline=True)
def hash_mix(state: int, word: int) -> int:
    """The hash state after one more key word: starts as `wmul(first word, HASH_FACTOR)`, ends as `shr_u(state, 32)`."""
    return wmul(state ^ shr_u(state, 29) ^ word, MIX_FACTOR)


@native("i64(i64, i64)", export=True)
def hash_bytes(address: int, length: int) -> int:
    """A 64-bit hash of bytes, which represents a long string in a key's hash. It depends only on the bytes."""
    state = wmul(length, HASH_FACTOR)
    at = 0
    while at + 8 <= length:
        state = hash_mix(state, ld_i64(address + at, 0))
        at += 8
    last = 0
    place = 0
    while at < length:
        last |= shl(ld_u8(address, at), place)
        place += 8
        at += 1
    return hash_mix(state, last)


@native("i64(i64, i64)", inline=True)
def string_head(address: int, length: int) -> int:
    """First word of the string's slot: its length and first four bytes. Up to 4 bytes past the end are read."""
    head = ld_i32(address, 0) & 4294967295
    if length < 4:
        head &= shl(1, length * 8) - 1
    return length | shl(head, 32)


@native("i64(i64, i64)", inline=True)
def string_tail(address: int, length: int) -> int:
    """Second word of a string of at most 12 bytes: bytes 4 to 11. Up to 12 bytes past the end are read.

    Without a branch: lengths of words are unpredictable for a processor.
    """
    kept = max_i64(length - 4, 0)
    mask = pick(kept < 8, shl(1, (kept & 7) * 8) - 1, -1)
    return ld_i64(address + 4, 0) & mask


@native("i64(i64, i64)", inline=True)
def string_length(entry: int, word: int) -> int:
    """Length of the string whose slot begins at this word of an entry."""
    return ld_i64(entry, word) & 4294967295


@native("i64(i64, i64, i64)", inline=True)
def string_address(table: int, entry: int, word: int) -> int:
    """Where its bytes are; valid until the table changes."""
    place = entry + word * 8 + 4
    if ld_i64(entry, word) & 4294967295 > INLINE_STRING_BYTES:
        place = ld_i64(table, TABLE_ARENA) + ld_i64(entry, word + 1)
    return place


@native("i64(i64, i64, i64, i64)", inline=True)
def string_is(table: int, entry: int, word: int, address: int) -> int:
    """1 if the long string in the slot has the bytes at `address`; its length and head are known to be equal."""
    held = ld_i64(table, TABLE_ARENA) + ld_i64(entry, word + 1)
    return 1 if mem_eq(held, address, ld_i64(entry, word) & 4294967295) else 0


@native("i64(i64, i64)", export=True)
def table_arena(table: int, extra: int) -> int:
    """Make room for `extra` more bytes in the arena; 1, or 0 without memory."""
    used = ld_i64(table, TABLE_ARENA_USED)
    capacity = ld_i64(table, TABLE_ARENA_CAPACITY)
    if used + extra <= capacity:
        return 1
    wanted = max(capacity * 2, ARENA_FIRST_BYTES)
    while wanted < used + extra:
        wanted *= 2
    arena = block_resize(ld_i64(table, TABLE_ARENA), wanted + STRING_SLACK_BYTES)
    if arena == 0:
        return 0
    st_i64(table, TABLE_ARENA, arena)
    st_i64(table, TABLE_ARENA_CAPACITY, wanted)
    return 1


@native("void(i64, i64)", inline=True)
def strings_forget(table: int, entry: int) -> None:
    """Make the strings of an entry garbage, their words 0."""
    strings = ld_i64(table, TABLE_STRINGS)
    garbage = ld_i64(table, TABLE_GARBAGE)
    word = 0
    while strings != 0:
        if strings & 1 == 1:
            length = ld_i64(entry, word) & 4294967295
            garbage += length if length > INLINE_STRING_BYTES else 0
            st_i64(entry, word, 0)
        strings = shr_u(strings, 1)
        word += 1
    st_i64(table, TABLE_GARBAGE, garbage)


@native("i64(i64, i64, i64, i64, i64)", export=True)
def string_store(table: int, entry: int, word: int, address: int, length: int) -> int:
    """Write a string into a slot, forgetting its old value; 1, or 0 without memory. The entry does not move.

    Reads nothing beyond the string's end. The bytes must not be in this table's arena.
    """
    held = ld_i64(entry, word) & 4294967295
    if held > INLINE_STRING_BYTES:
        st_i64(table, TABLE_GARBAGE, ld_i64(table, TABLE_GARBAGE) + held)
        st_i64(entry, word, 0)
    if length <= INLINE_STRING_BYTES:
        st_i64(entry, word, length)
        st_i64(entry, word + 1, 0)
        for n in range(length):
            st_u8(entry + word * 8 + 4, n, ld_u8(address, n))
        return 1
    garbage = ld_i64(table, TABLE_GARBAGE)
    wasteful = garbage > COMPACT_FROM_BYTES and garbage * 2 > ld_i64(table, TABLE_ARENA_USED)
    if wasteful and table_compact(table) == 0:
        return 0
    if table_arena(table, length) == 0:
        return 0
    used = ld_i64(table, TABLE_ARENA_USED)
    copy(ld_i64(table, TABLE_ARENA) + used, address, length)
    head = ld_i32(address, 0) & 4294967295
    st_i64(entry, word, length | shl(head, 32))
    st_i64(entry, word + 1, used)
    st_i64(table, TABLE_ARENA_USED, used + length)
    return 1


@native("i64(i64)")
def table_compact(table: int) -> int:
    """Copy the strings still in use to a new arena; 1, or 0 without memory. Every string slot must be valid."""
    capacity = ld_i64(table, TABLE_ARENA_CAPACITY)
    old = ld_i64(table, TABLE_ARENA)
    arena = block_new(capacity + STRING_SLACK_BYTES, 0)
    if arena == 0:
        return 0
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    stride = ld_i64(table, TABLE_STRIDE)
    strings = ld_i64(table, TABLE_STRINGS)
    used = 0
    for n in range(ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)):  # a dead entry's strings are empty
        entry = entry_at(entries, births, stride, n)
        word = 0
        left = strings
        while left != 0:
            if left & 1 == 1:
                length = ld_i64(entry, word) & 4294967295
                if length > INLINE_STRING_BYTES:
                    copy(arena + used, old + ld_i64(entry, word + 1), length)
                    st_i64(entry, word + 1, used)
                    used += length
            left = shr_u(left, 1)
            word += 1
    block_drop(old)
    st_i64(table, TABLE_ARENA, arena)
    st_i64(table, TABLE_ARENA_USED, used)
    st_i64(table, TABLE_GARBAGE, 0)
    return 1


@native("i64(i64, i64, i64)")
def strings_move(table: int, entry: int, texts: int) -> int:
    """Copy the strings of a new entry, which has their places after `texts`, into the table; 1, or 0 without memory."""
    return words_move(table, entry, ld_i64(table, TABLE_STRINGS), texts)


@native("i64(i64, i64, i64, i64)")
def words_move(table: int, words: int, strings: int, texts: int) -> int:
    """`strings_move` for words that are not an entry. strings: bit w: word w begins a string."""
    word = 0
    left = strings
    while left != 0:
        if left & 1 == 1:
            length = ld_i64(words, word) & 4294967295
            if length > INLINE_STRING_BYTES:
                st_i64(words, word, 0)
                if string_store(table, words, word, texts + ld_i64(words, word + 1), length) == 0:
                    return 0
        left = shr_u(left, 1)
        word += 1
    return 1
