"""State containers of kernels: hash tables with a birth order, and strings inside them.

A table is a block of header words (TABLE_*) that points to its entries, its birth log and its arena. An entry is
2^n words: word 0 the tag (epoch in the high half, hash in the low), then the first-arrival serial, then keys, then
values. An entry lives while its epoch is the table's, so clearing a table is adding one to a word. The birth log holds
the slot of every live entry in order of insertion: walking it is the order in which groups first arrived.
Linear probing, at most half full, slot = the hash's top bits.

A string takes two words: length in the low half of the first, its first four bytes in the high half, and either the
next eight bytes (length <= 12) or its offset in the arena. Nothing inside points at an address: header words that hold
addresses are exactly TABLE_ENTRIES, TABLE_BIRTHS and TABLE_ARENA.

Sharing: none. A table has one owner at a time; handing it over is the engine's business.
"""

from __future__ import annotations

from cq.runtime.abi import STRING_SLACK_BYTES
from cq.runtime.memory import block_drop, block_new
from cq.runtime.native import native
from cq.runtime.ops import (
    alloc,
    copy,
    fill,
    ld_i32,
    ld_i64,
    ld_u8,
    max_i64,
    mem_eq,
    pick,
    release,
    shl,
    shr_u,
    st_i32,
    st_i64,
    st_u8,
    wmul,
    zalloc,
)

TABLE_ENTRIES = 0
TABLE_LOG_BYTES = 1  # an entry takes 1 << this many bytes
TABLE_SHIFT = 2  # slot = hash >> this
TABLE_MASK = 3  # slots - 1
TABLE_COUNT = 4  # live entries
TABLE_LIMIT = 5  # at this many it grows: half its slots
TABLE_EPOCH = 6  # epoch << 32
TABLE_BIRTHS = 7
TABLE_ARENA = 8
TABLE_ARENA_USED = 9
TABLE_ARENA_CAPACITY = 10
TABLE_STRINGS = 11  # bit w: word w of an entry begins a string
TABLE_GARBAGE = 12  # bytes of the arena no entry refers to any more
TABLE_BYTES = 13  # allocated behind this header
TABLE_WORDS = 16

ENTRY_TAG = 0
ENTRY_FIRST = 1  # serial of the row that made the entry
ENTRY_KEYS = 2

FIRST_LOG_SLOTS = 6  # 64 slots: a table of few groups stays in one page; growth doubles
EPOCH_ONE = 1 << 32
EPOCH_LAST = (2**31 - 2) << 32
MOST_LOG_SLOTS = 30  # slots are numbered in 32 bits
ARENA_FIRST_BYTES = 1024
ARENA_SLACK_BYTES = 16  # kernels may load whole words past a string's end
HASH_FACTOR = -7046029254386353131  # 2^64 / golden ratio: Fibonacci hashing (Knuth 6.4)
MIX_FACTOR = -4658895280553007687
INLINE_STRING_BYTES = 12
COMPACT_FROM_BYTES = 65536  # below this an arena's garbage is not worth moving


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
    """A 64-bit hash of bytes: what stands for a long string in a key's hash. It depends on nothing but the bytes."""
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

    Without a branch: the lengths of words are nothing a processor can guess.
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
    """1 when the long string in the slot has the bytes at `address`; its length and head are known to be equal."""
    held = ld_i64(table, TABLE_ARENA) + ld_i64(entry, word + 1)
    return 1 if mem_eq(held, address, ld_i64(entry, word) & 4294967295) else 0


@native("i64(i64, i64, i64)", export=True)
def table_new(entry_words: int, strings: int, log_slots: int) -> int:
    """A new empty table of 1 << log_slots slots (0: the usual first size), or 0 without memory."""
    table = zalloc(TABLE_WORDS * 8)
    if table == 0:
        return 0
    log_bytes = 4
    while shl(1, log_bytes) < entry_words * 8:
        log_bytes += 1
    if log_slots == 0:
        log_slots = FIRST_LOG_SLOTS
    st_i64(table, TABLE_LOG_BYTES, log_bytes)
    st_i64(table, TABLE_STRINGS, strings)
    st_i64(table, TABLE_EPOCH, EPOCH_ONE)
    if table_slots(table, log_slots) == 0:
        release(table)
        return 0
    return table


@native("i64(i64, i64)")
def table_slots(table: int, log_slots: int) -> int:
    """Give the table fresh empty slots and birth log; 1, or 0 without memory (then nothing has changed)."""
    if log_slots > MOST_LOG_SLOTS:
        return 0
    slots = shl(1, log_slots)
    size = shl(slots, ld_i64(table, TABLE_LOG_BYTES)) + STRING_SLACK_BYTES
    entries = block_new(size, 1)
    births = block_new(slots * 2 + 8, 0)  # 4 bytes for each of slots / 2
    if entries == 0 or births == 0:
        block_drop(entries)
        block_drop(births)
        return 0
    st_i64(table, TABLE_ENTRIES, entries)
    st_i64(table, TABLE_BIRTHS, births)
    st_i64(table, TABLE_SHIFT, 32 - log_slots)
    st_i64(table, TABLE_MASK, slots - 1)
    st_i64(table, TABLE_LIMIT, shr_u(slots, 1))
    st_i64(
        table, TABLE_BYTES, shl(slots, ld_i64(table, TABLE_LOG_BYTES)) + slots * 2 + ld_i64(table, TABLE_ARENA_CAPACITY)
    )
    return 1


@native("i64(i64)", export=True)
def table_drop(table: int) -> int:
    """Free the table and all it holds; 0 is no table."""
    if table != 0:
        block_drop(ld_i64(table, TABLE_ENTRIES))
        block_drop(ld_i64(table, TABLE_BIRTHS))
        block_drop(ld_i64(table, TABLE_ARENA))
        release(table)
    return 0


@native("i64(i64)", export=True)
def table_clear(table: int) -> int:
    """Forget every entry and string; capacity stays. O(1) but once in 2^31 times."""
    epoch = ld_i64(table, TABLE_EPOCH)
    if epoch >= EPOCH_LAST:
        fill(ld_i64(table, TABLE_ENTRIES), 0, shl(ld_i64(table, TABLE_MASK) + 1, ld_i64(table, TABLE_LOG_BYTES)))
        epoch = 0
    st_i64(table, TABLE_EPOCH, epoch + EPOCH_ONE)
    st_i64(table, TABLE_COUNT, 0)
    st_i64(table, TABLE_ARENA_USED, 0)
    st_i64(table, TABLE_GARBAGE, 0)
    return 0


@native("i64(i64)")
def table_grow(table: int) -> int:
    """Double the slots, births in the same order; 1, or 0 without memory (then nothing has changed)."""
    old_entries = ld_i64(table, TABLE_ENTRIES)
    old_births = ld_i64(table, TABLE_BIRTHS)
    log_bytes = ld_i64(table, TABLE_LOG_BYTES)
    count = ld_i64(table, TABLE_COUNT)
    if table_slots(table, 32 - ld_i64(table, TABLE_SHIFT) + 1) == 0:
        return 0
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    shift = ld_i64(table, TABLE_SHIFT)
    mask = ld_i64(table, TABLE_MASK)
    size = shl(1, log_bytes)
    for n in range(count):
        old = old_entries + shl(ld_i32(old_births, n), log_bytes)
        slot = shr_u(ld_i64(old, ENTRY_TAG) & 4294967295, shift)
        while ld_i64(entries + shl(slot, log_bytes), ENTRY_TAG) != 0:
            slot = (slot + 1) & mask
        copy(entries + shl(slot, log_bytes), old, size)
        st_i32(births, n, slot)
    block_drop(old_entries)
    block_drop(old_births)
    return 1


@native("i64(i64, i64, i64)", export=True)
def table_insert(table: int, hash32: int, serial: int) -> int:
    """Address of a new entry with this hash, its other words 0; 0 without memory. The caller knows the key is absent.

    May move all entries: addresses and table words read before are stale.
    """
    if ld_i64(table, TABLE_COUNT) >= ld_i64(table, TABLE_LIMIT) and table_grow(table) == 0:
        return 0
    entries = ld_i64(table, TABLE_ENTRIES)
    log_bytes = ld_i64(table, TABLE_LOG_BYTES)
    mask = ld_i64(table, TABLE_MASK)
    epoch = ld_i64(table, TABLE_EPOCH)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    while ld_i64(entries + shl(slot, log_bytes), ENTRY_TAG) >= epoch:
        slot = (slot + 1) & mask
    entry = entries + shl(slot, log_bytes)
    fill(entry, 0, shl(1, log_bytes))
    st_i64(entry, ENTRY_TAG, epoch | hash32)
    st_i64(entry, ENTRY_FIRST, serial)
    count = ld_i64(table, TABLE_COUNT)
    st_i32(ld_i64(table, TABLE_BIRTHS), count, slot)
    st_i64(table, TABLE_COUNT, count + 1)
    return entry


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
    arena = block_new(wanted + ARENA_SLACK_BYTES, 1)
    if arena == 0:
        return 0
    old = ld_i64(table, TABLE_ARENA)
    if old != 0:
        copy(arena, old, used)
        block_drop(old)
    st_i64(table, TABLE_ARENA, arena)
    st_i64(table, TABLE_ARENA_CAPACITY, wanted)
    st_i64(table, TABLE_BYTES, ld_i64(table, TABLE_BYTES) + wanted - capacity)
    return 1


@native("i64(i64, i64, i64, i64, i64)", export=True)
def string_store(table: int, entry: int, word: int, address: int, length: int) -> int:
    """Write a string into a slot, its old value forgotten; 1, or 0 without memory. The entry does not move.

    Reads nothing past the string's end. The bytes must not lie in this table's arena.
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
    arena = block_new(capacity + ARENA_SLACK_BYTES, 1)
    if arena == 0:
        return 0
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    log_bytes = ld_i64(table, TABLE_LOG_BYTES)
    strings = ld_i64(table, TABLE_STRINGS)
    used = 0
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entries + shl(ld_i32(births, n), log_bytes)
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


DIGIT_BITS = 11
DIGITS = 2048


@native("i64(i64)", export=True)
def table_sort_births(table: int) -> int:
    """Put the birth log into the order of first-arrival serials, equal ones as they are; 1, or 0 without memory.

    Groups merged from panes are out of order only where rows were: mostly one look is all. Else a radix sort of
    (serial, slot) pairs, least digit first: comparing entries in place misses the cache at every comparison.
    """
    births = ld_i64(table, TABLE_BIRTHS)
    count = ld_i64(table, TABLE_COUNT)
    n = 1
    while n < count and _born(table, n - 1) <= _born(table, n):
        n += 1
    if n >= count:
        return 1
    pairs = alloc(count * 32 + DIGITS * 8)
    if pairs == 0:
        return 0
    low = _born(table, 0)
    high = low
    for k in range(count):
        first = _born(table, k)
        st_i64(pairs, 2 * k, first)
        st_i64(pairs, 2 * k + 1, ld_i32(births, k))
        low = min(low, first)
        high = max(high, first)
    source = pairs
    target = pairs + count * 16
    shift = 0
    while shift < 64 and shr_u(high - low, shift) > 0:
        _sort_by_digit(source, target, pairs + count * 32, count, low, shift)
        source, target = target, source
        shift += DIGIT_BITS
    for k in range(count):
        st_i32(births, k, ld_i64(source, 2 * k + 1))
    release(pairs)
    return 1


@native("i64(i64, i64)", inline=True)
def _born(table: int, n: int) -> int:
    """First-arrival serial of the n-th group of the log."""
    slot = ld_i32(ld_i64(table, TABLE_BIRTHS), n)
    return ld_i64(ld_i64(table, TABLE_ENTRIES) + shl(slot, ld_i64(table, TABLE_LOG_BYTES)), ENTRY_FIRST)


@native("void(i64, i64, i64, i64, i64, i64)")
def _sort_by_digit(source: int, target: int, places: int, count: int, low: int, shift: int) -> None:
    """The pairs of `source` by one digit of their distance from `low`, those of one digit as they were."""
    fill(places, 0, DIGITS * 8)
    for k in range(count):
        digit = shr_u(ld_i64(source, 2 * k) - low, shift) & (DIGITS - 1)
        st_i64(places, digit, ld_i64(places, digit) + 1)
    before = 0
    for digit in range(DIGITS):
        here = ld_i64(places, digit)
        st_i64(places, digit, before)
        before += here
    for k in range(count):
        first = ld_i64(source, 2 * k)
        digit = shr_u(first - low, shift) & (DIGITS - 1)
        place = ld_i64(places, digit)
        st_i64(places, digit, place + 1)
        st_i64(target, 2 * place, first)
        st_i64(target, 2 * place + 1, ld_i64(source, 2 * k + 1))
