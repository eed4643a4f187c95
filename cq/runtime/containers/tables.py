"""State containers of kernels: hash tables whose entries have an order of birth.

A table is a block of header words (table_words.py) that points to its entries and, for strings, its arena. An entry is
words: word 0 the tag (epoch in the high half, hash in the low), then the first-arrival serial, then keys, then values.
Two forms; both probe linearly from slot = the hash's top bits:

Spread  while slots take no more than SPREAD_BYTES, twice that if a slot is less than a cache line: an entry takes 2^n
        words and is in its slot; at most half of the slots are used. It lives while its epoch is the table's, so that
        incrementing a word clears the table. BIRTHS has their numbers (slots) in order of birth. One cache line per
        look-up: nothing is faster for small tables.
Dense   from then on, and if entries are deleted. Entries are contiguous, numbered from 1, in order of birth; a slot of
        the index (three quarters of which are used) is a word: hash above, number below, so that an entry is touched
        only if it has the right hash, and growing reads no entry. The pages of large blocks are moved, not copied, and
        untouched pages take no memory: 20 M groups of 48 bytes take 1.2 GB, as spread ones 4.4 GB and half of that
        again while growing (measured). BIRTHS is 0, unless births were sorted: then it has the order.

A deleted entry is dead: gone from the index, its tag 0. Its place is reused when the table is settled, which happens
when it would grow otherwise; live entries stay in order.

If TABLE_UNTIL is set, an entry ends when the time in that word of it has passed: it is not requested any more. It stays
until the table is full. Then ended entries are removed, if they are a quarter of it; else the table grows.

If TABLE_ORDER is set, what the index points to is not decided here: making, deleting and settling entries leave it
unchanged, and growing keeps its contents.

Entries do not point at addresses: header words that hold addresses are exactly TABLE_ENTRIES, TABLE_BIRTHS,
TABLE_INDEX, TABLE_ARENA and TABLE_KNOWN. Addresses remembered elsewhere are forgotten when entries move or are deleted
(known_codes.py).

Sharing: none. A table has one owner at a time; handing it over is the engine's business.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    add_ovf,
    copy,
    fill,
    ld_i32,
    ld_i64,
    pick,
    release,
    shl,
    shr_u,
    st_i32,
    st_i64,
    udiv,
    wadd,
    zalloc,
)
from cq.runtime.containers.blocks import LINE_BYTES, block_drop, block_new, block_resize
from cq.runtime.containers.known_codes import table_forget
from cq.runtime.containers.strings import strings_forget
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_BEHIND,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_EPOCH,
    TABLE_GARBAGE,
    TABLE_INDEX,
    TABLE_KNOWN,
    TABLE_KNOWN_ROOM,
    TABLE_LIMIT,
    TABLE_MASK,
    TABLE_MOST,
    TABLE_ORDER,
    TABLE_PAST,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_STRINGS,
    TABLE_UNTIL,
    TABLE_WORDS,
    entry_at,
    spread_stride,
)

FIRST_LOG_SLOTS = 6  # 64 slots: a table of few groups stays in one page; growth doubles
# Beyond it a table is dense: that touches two lines per look-up where a spread one touches one. With 300 K groups of 64
# bytes it takes as long, with 500 K 0.75 times, a join by 1 M keys of 32 bytes 1.4 times: small slots may take twice.
SPREAD_BYTES = 32 << 20
EPOCH_ONE = 1 << 32
EPOCH_LAST = (2**31 - 2) << 32
MOST_LOG_SLOTS = 30  # slots are numbered in 32 bits
HASH_MASK = 4294967295
FEW = 8  # slots per used one: from here on emptying single slots is cheaper than the whole index


@native("i64(i64, i64, i64)", export=True)
def table_new(entry_words: int, strings: int, log_slots: int) -> int:
    """A new empty table of 1 << log_slots slots (0: the usual first size), or 0 without memory."""
    table = zalloc(TABLE_WORDS * 8)
    if table == 0:
        return 0
    if log_slots == 0:
        log_slots = FIRST_LOG_SLOTS
    st_i64(table, TABLE_ENTRY_BYTES, entry_words * 8)
    st_i64(table, TABLE_STRINGS, strings)
    st_i64(table, TABLE_EPOCH, EPOCH_ONE)
    spread = may_be_spread(spread_stride(entry_words * 8), log_slots) == 1 or log_slots == FIRST_LOG_SLOTS
    made = _spread(table, log_slots) if spread else _dense(table, log_slots)
    if made == 0:
        release(table)
        return 0
    return table


@native("i64(i64, i64)", inline=True)
def may_be_spread(stride: int, log_slots: int) -> int:
    """1 if this many slots of `stride` bytes are not too large for a spread table."""
    return 1 if shl(stride, log_slots) <= pick(stride < LINE_BYTES, 2 * SPREAD_BYTES, SPREAD_BYTES) else 0


@native("i64(i64, i64)")
def _spread(table: int, log_slots: int) -> int:
    """Give the table new empty slots and a birth log; 1, or 0 without memory (then nothing has changed)."""
    stride = spread_stride(ld_i64(table, TABLE_ENTRY_BYTES))
    slots = shl(1, log_slots)
    entries = block_new(slots * stride, 1)
    births = block_new(slots * 2, 0)
    if entries == 0 or births == 0:
        block_drop(entries)
        block_drop(births)
        return 0
    st_i64(table, TABLE_ENTRIES, entries)
    st_i64(table, TABLE_BIRTHS, births)
    st_i64(table, TABLE_STRIDE, stride)
    _slots(table, log_slots, shr_u(slots, 1))
    return 1


@native("i64(i64, i64)")
def _dense(table: int, log_slots: int) -> int:
    """Give the table an empty index and room for entries; 1, or 0 without memory (then nothing has changed)."""
    stride = ld_i64(table, TABLE_ENTRY_BYTES)
    slots = shl(1, log_slots)
    index = block_new(slots * 8, 1)
    entries = block_new((_limit(slots) + 1) * stride, 0)  # number 0 is unused: `_reorder` works in it
    if entries == 0 or index == 0:
        block_drop(entries)
        block_drop(index)
        return 0
    st_i64(table, TABLE_ENTRIES, entries)
    st_i64(table, TABLE_BIRTHS, 0)
    st_i64(table, TABLE_INDEX, index)
    st_i64(table, TABLE_STRIDE, stride)
    _slots(table, log_slots, _limit(slots))
    return 1


@native("i64(i64)")
def _limit(slots: int) -> int:
    """The most entries for an index of this many slots: three quarters."""
    return slots - shr_u(slots, 2)


@native("void(i64, i64, i64)")
def _slots(table: int, log_slots: int, limit: int) -> None:
    """Set the words of a table that has this many slots."""
    st_i64(table, TABLE_SHIFT, 32 - log_slots)
    st_i64(table, TABLE_MASK, shl(1, log_slots) - 1)
    st_i64(table, TABLE_LIMIT, limit)


@native("i64(i64)", export=True)
def table_drop(table: int) -> int:
    """Free the table and all it holds; 0 is no table."""
    if table != 0:
        block_drop(ld_i64(table, TABLE_ENTRIES))
        block_drop(ld_i64(table, TABLE_BIRTHS))
        block_drop(ld_i64(table, TABLE_INDEX))
        block_drop(ld_i64(table, TABLE_ARENA))
        block_drop(ld_i64(table, TABLE_KNOWN))
        release(table)
    return 0


@native("i64(i64, i64)", export=True)
def table_size_for(table: int, entries: int) -> int:
    """Empty the table, which has no strings, with slots for this many; 1, or 0 without memory, unchanged."""
    old_entries, old_births = ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS)
    old_index = ld_i64(table, TABLE_INDEX)
    log_slots = FIRST_LOG_SLOTS
    while shl(1, log_slots - 1) < entries:
        log_slots += 1
    if may_be_spread(spread_stride(ld_i64(table, TABLE_ENTRY_BYTES)), log_slots) == 1:
        made = _spread(table, log_slots)
        st_i64(table, TABLE_INDEX, old_index if made == 0 else 0)
    else:
        if _limit(shl(1, log_slots - 1)) >= entries:
            log_slots -= 1
        made = _dense(table, log_slots) if log_slots <= MOST_LOG_SLOTS else 0
    if made == 0:
        return 0
    table_forget(table)
    st_i64(table, TABLE_COUNT, 0)
    st_i64(table, TABLE_DEAD, 0)
    st_i64(table, TABLE_MOST, 0)
    block_drop(old_entries)
    block_drop(old_births)
    block_drop(old_index)
    return 1


@native("i64(i64)", export=True)
def table_clear(table: int) -> int:
    """Forget every entry and string; capacity stays.

    A spread table: O(1) except once in 2^31 times. A dense one: clears single slots if it had few entries, else the
    index.
    """
    epoch = ld_i64(table, TABLE_EPOCH)
    table_forget(table)
    if ld_i64(table, TABLE_INDEX) != 0:
        _empty_index(table)
    elif epoch >= EPOCH_LAST:
        fill(ld_i64(table, TABLE_ENTRIES), 0, (ld_i64(table, TABLE_MASK) + 1) * ld_i64(table, TABLE_STRIDE))
        st_i64(table, TABLE_EPOCH, EPOCH_ONE)
    else:
        st_i64(table, TABLE_EPOCH, epoch + EPOCH_ONE)
    st_i64(table, TABLE_COUNT, 0)
    st_i64(table, TABLE_DEAD, 0)
    st_i64(table, TABLE_ARENA_USED, 0)
    st_i64(table, TABLE_GARBAGE, 0)
    return 0


@native("void(i64)")
def _empty_index(table: int) -> None:
    """Clear all slots of the index, and every order but that of the entries.

    With few entries, each clears its own run of slots, from where its hash points to the next free one. A cleared part
    of a run is always its end, so every entry's slot is cleared.
    """
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    used = ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)
    st_i64(table, TABLE_MOST, max(ld_i64(table, TABLE_MOST), used))
    block_drop(ld_i64(table, TABLE_BIRTHS))
    st_i64(table, TABLE_BIRTHS, 0)
    if used * FEW > mask:
        fill(index, 0, (mask + 1) * 8)
        return
    stride = ld_i64(table, TABLE_STRIDE)
    entry = ld_i64(table, TABLE_ENTRIES)
    for _ in range(used):
        entry += stride
        slot = shr_u(ld_i64(entry, ENTRY_TAG) & HASH_MASK, ld_i64(table, TABLE_SHIFT))
        while ld_i64(entry, ENTRY_TAG) != 0 and ld_i64(index, slot) != 0:
            st_i64(index, slot, 0)
            slot = (slot + 1) & mask


# -- making entries --------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def table_insert(table: int, hash32: int, serial: int) -> int:
    """Address of a new entry with this hash, its other words 0; 0 without memory. The caller knows the key is absent.

    May move all entries: addresses and table words read before are stale.
    """
    used = ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)
    if used >= ld_i64(table, TABLE_LIMIT):
        if _make_room(table) == 0:
            return 0
        used = ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)
    births = ld_i64(table, TABLE_BIRTHS)
    number = used + 1
    if ld_i64(table, TABLE_INDEX) == 0:
        number = _free_slot(table, hash32)
    elif ld_i64(table, TABLE_ORDER) == 0:
        _point(table, hash32, number)
    if births != 0:
        st_i32(births, used, number)
    return _enter(table, hash32, serial, number, ld_i64(table, TABLE_ENTRY_BYTES))


@native("i64(i64, i64, i64, i64, i64)", inline=True)
def table_insert_at(table: int, hash32: int, serial: int, slot: int, size: int) -> int:
    """As `table_insert`, for entries of `size` bytes, after a search for the key that ended at the free `slot`.

    A kernel that makes an entry for every other row is a tenth faster with this inlined: the size is a constant there,
    and nothing is searched for twice.
    """
    count = ld_i64(table, TABLE_COUNT)
    if ld_i64(table, TABLE_INDEX) != 0 or count >= ld_i64(table, TABLE_LIMIT):
        return table_insert(table, hash32, serial)
    st_i32(ld_i64(table, TABLE_BIRTHS), count, slot)
    return _enter(table, hash32, serial, slot, size)


@native("i64(i64, i64, i64, i64, i64)", inline=True)
def _enter(table: int, hash32: int, serial: int, number: int, size: int) -> int:
    """Address of the entry with this number, of `size` bytes, which is live from now on."""
    entry = ld_i64(table, TABLE_ENTRIES) + number * ld_i64(table, TABLE_STRIDE)
    fill(entry, 0, size)
    st_i64(entry, ENTRY_TAG, ld_i64(table, TABLE_EPOCH) | hash32)
    st_i64(entry, ENTRY_FIRST, serial)
    st_i64(table, TABLE_COUNT, ld_i64(table, TABLE_COUNT) + 1)
    return entry


@native("i64(i64, i64)", inline=True)
def _free_slot(table: int, hash32: int) -> int:
    """The slot of a spread table that an entry with this hash would take."""
    entries = ld_i64(table, TABLE_ENTRIES)
    stride = ld_i64(table, TABLE_STRIDE)
    mask = ld_i64(table, TABLE_MASK)
    epoch = ld_i64(table, TABLE_EPOCH)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    while ld_i64(entries + slot * stride, ENTRY_TAG) >= epoch:
        slot = (slot + 1) & mask
    return slot


@native("void(i64, i64, i64)", inline=True)
def _point(table: int, hash32: int, number: int) -> None:
    """Make the index point to the entry with this hash and number."""
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    while ld_i64(index, slot) != 0:
        slot = (slot + 1) & mask
    st_i64(index, slot, shl(hash32, 32) | number)


@native("i64(i64)")
def _make_room(table: int) -> int:
    """Make room for one more entry and return 1; 0 without memory (then nothing has changed)."""
    table_forget(table)
    if table_settles(table) == 1:
        table_settle(table)
        return 1
    log_slots = 32 - ld_i64(table, TABLE_SHIFT)
    if _over_entries(table) * 4 >= ld_i64(table, TABLE_LIMIT):
        return _forget_over(table, log_slots)
    log_slots += 1
    if log_slots > MOST_LOG_SLOTS:
        return 0
    if ld_i64(table, TABLE_INDEX) != 0:
        return _grow_dense(table, log_slots)
    if may_be_spread(ld_i64(table, TABLE_STRIDE), log_slots) == 1:
        return _grow_spread(table, log_slots)
    return _make_dense(table, log_slots)


@native("i64(i64, i64)", inline=True)
def _is_over(table: int, entry: int) -> int:
    """1 if event time has passed the entry's."""
    word = ld_i64(table, TABLE_UNTIL)
    if word == 0:
        return 0
    time = ld_i64(entry, word)
    behind = ld_i64(table, TABLE_BEHIND)
    return 1 if not add_ovf(time, behind) and wadd(time, behind) < ld_i64(table, TABLE_PAST) else 0


@native("i64(i64)")
def _over_entries(table: int) -> int:
    """How many entries have ended."""
    if ld_i64(table, TABLE_UNTIL) == 0:
        return 0
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    stride = ld_i64(table, TABLE_STRIDE)
    found = 0
    for n in range(ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)):
        entry = entry_at(entries, births, stride, n)
        found += _is_over(table, entry) if ld_i64(entry, ENTRY_TAG) != 0 else 0
    return found


@native("i64(i64, i64)")
def _forget_over(table: int, log_slots: int) -> int:
    """Remove entries that have ended, in as many slots; 1, or 0 without memory (then nothing has changed)."""
    if ld_i64(table, TABLE_INDEX) == 0:
        return _grow_spread(table, log_slots)
    entry = ld_i64(table, TABLE_ENTRIES)
    dead = 0
    for _ in range(ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)):
        entry += ld_i64(table, TABLE_STRIDE)
        if ld_i64(entry, ENTRY_TAG) != 0 and _is_over(table, entry) == 1:
            st_i64(entry, ENTRY_TAG, 0)
            strings_forget(table, entry)
            dead += 1
    st_i64(table, TABLE_COUNT, ld_i64(table, TABLE_COUNT) - dead)
    st_i64(table, TABLE_DEAD, ld_i64(table, TABLE_DEAD) + dead)
    table_settle(table)
    return 1


@native("i64(i64)")
def table_settles(table: int) -> int:
    """1 if the next entry makes the table settle: it is full, a quarter of it with dead entries."""
    dead = ld_i64(table, TABLE_DEAD)
    limit = ld_i64(table, TABLE_LIMIT)
    return 1 if ld_i64(table, TABLE_COUNT) + dead >= limit and dead * 4 >= limit else 0


@native("i64(i64, i64)")
def _grow_spread(table: int, log_slots: int) -> int:
    """Move the entries that have not ended to this many slots, births in the same order; 1, or 0 without memory
    (nothing has changed)."""
    old_entries = ld_i64(table, TABLE_ENTRIES)
    old_births = ld_i64(table, TABLE_BIRTHS)
    if _spread(table, log_slots) == 0:
        return 0
    stride = ld_i64(table, TABLE_STRIDE)
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    shift = ld_i64(table, TABLE_SHIFT)
    mask = ld_i64(table, TABLE_MASK)
    kept = 0
    for n in range(ld_i64(table, TABLE_COUNT)):
        old = old_entries + ld_i32(old_births, n) * stride
        if _is_over(table, old) == 1:
            strings_forget(table, old)
            continue
        slot = shr_u(ld_i64(old, ENTRY_TAG) & HASH_MASK, shift)
        while ld_i64(entries + slot * stride, ENTRY_TAG) != 0:
            slot = (slot + 1) & mask
        copy(entries + slot * stride, old, stride)
        st_i32(births, kept, slot)
        kept += 1
    st_i64(table, TABLE_COUNT, kept)
    block_drop(old_entries)
    block_drop(old_births)
    return 1


@native("i64(i64, i64)")
def _make_dense(table: int, log_slots: int) -> int:
    """Make the spread table dense, with this many slots; 1, or 0 without memory (then nothing has changed)."""
    old_entries = ld_i64(table, TABLE_ENTRIES)
    old_births = ld_i64(table, TABLE_BIRTHS)
    old_stride = ld_i64(table, TABLE_STRIDE)
    if _dense(table, log_slots) == 0:
        return 0
    stride = ld_i64(table, TABLE_STRIDE)
    entry = ld_i64(table, TABLE_ENTRIES)
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry += stride
        copy(entry, old_entries + ld_i32(old_births, n) * old_stride, stride)
        _point(table, ld_i64(entry, ENTRY_TAG) & HASH_MASK, n + 1)
    block_drop(old_entries)
    block_drop(old_births)
    return 1


@native("i64(i64, i64)")
def _grow_dense(table: int, log_slots: int) -> int:
    """Give the dense table this many slots; 1, or 0 without memory (then nothing has changed but room)."""
    limit = _limit(shl(1, log_slots))
    entries = block_resize(ld_i64(table, TABLE_ENTRIES), (limit + 1) * ld_i64(table, TABLE_STRIDE))
    if entries == 0:
        return 0
    st_i64(table, TABLE_ENTRIES, entries)
    if ld_i64(table, TABLE_BIRTHS) != 0:
        births = block_resize(ld_i64(table, TABLE_BIRTHS), limit * 4)
        if births == 0:
            return 0
        st_i64(table, TABLE_BIRTHS, births)
    index = block_new(shl(8, log_slots), 1)
    if index == 0:
        return 0
    old = ld_i64(table, TABLE_INDEX)
    slots = ld_i64(table, TABLE_MASK) + 1
    st_i64(table, TABLE_INDEX, index)
    _slots(table, log_slots, limit)
    for slot in range(slots):
        item = ld_i64(old, slot)
        if item != 0:
            _point(table, shr_u(item, 32), item & NUMBER_MASK)
    block_drop(old)
    return 1


# -- deleting --------------------------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def table_make_dense(table: int) -> int:
    """Make the table dense, so that entries may be deleted, and return 1; 0 without memory. May move all entries."""
    if ld_i64(table, TABLE_INDEX) != 0:
        return 1
    table_forget(table)
    return _make_dense(table, 32 - ld_i64(table, TABLE_SHIFT))


@native("i64(i64, i64)", export=True)
def table_delete(table: int, entry: int) -> int:
    """Mark the live entry of a dense table as dead, its strings garbage; no other entry moves."""
    if ld_i64(table, TABLE_ORDER) == 0:
        index = ld_i64(table, TABLE_INDEX)
        mask = ld_i64(table, TABLE_MASK)
        number = udiv(entry - ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_STRIDE))
        slot = shr_u(ld_i64(entry, ENTRY_TAG) & HASH_MASK, ld_i64(table, TABLE_SHIFT))
        while ld_i64(index, slot) & NUMBER_MASK != number:
            slot = (slot + 1) & mask
        table_unpoint(table, slot)
    st_i64(entry, ENTRY_TAG, 0)
    table_forget(table)
    strings_forget(table, entry)
    st_i64(table, TABLE_COUNT, ld_i64(table, TABLE_COUNT) - 1)
    st_i64(table, TABLE_DEAD, ld_i64(table, TABLE_DEAD) + 1)
    return 0


@native("void(i64, i64)")
def table_unpoint(table: int, hole: int) -> None:
    """Clear the slot of the index, which is used; every other entry is found as before."""
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    shift = ld_i64(table, TABLE_SHIFT)
    at = (hole + 1) & mask
    item = ld_i64(index, at)
    while item != 0:  # an item that would not be found beyond the hole moves into it, and leaves another
        home = shr_u(shr_u(item, 32), shift)
        if (at - home) & mask >= (at - hole) & mask:
            st_i64(index, hole, item)
            hole = at
        at = (at + 1) & mask
        item = ld_i64(index, at)
    st_i64(index, hole, 0)


@native("i64(i64)", export=True)
def table_settle(table: int) -> int:
    """Remove dead entries: live ones move together, in their order. Allocates nothing."""
    dead = ld_i64(table, TABLE_DEAD)
    if dead == 0:
        return 0
    table_forget(table)
    if ld_i64(table, TABLE_BIRTHS) != 0:
        _reorder(table)
    used = ld_i64(table, TABLE_COUNT) + dead
    st_i64(table, TABLE_MOST, max(ld_i64(table, TABLE_MOST), used))
    stride = ld_i64(table, TABLE_STRIDE)
    entries = ld_i64(table, TABLE_ENTRIES)
    number = 0
    for n in range(1, used + 1):
        entry = entries + n * stride
        if ld_i64(entry, ENTRY_TAG) != 0:
            number += 1
            if number != n:
                copy(entries + number * stride, entry, stride)
    st_i64(table, TABLE_DEAD, 0)
    if ld_i64(table, TABLE_ORDER) != 0:
        return 0
    fill(ld_i64(table, TABLE_INDEX), 0, (ld_i64(table, TABLE_MASK) + 1) * 8)
    for n in range(1, number + 1):
        _point(table, ld_i64(entries + n * stride, ENTRY_TAG) & HASH_MASK, n)
    return 0


@native("void(i64)")
def _reorder(table: int) -> None:
    """Move entries into the order of BIRTHS, cycle by cycle of that permutation; the index is stale."""
    births = ld_i64(table, TABLE_BIRTHS)
    stride = ld_i64(table, TABLE_STRIDE)
    spare = ld_i64(table, TABLE_ENTRIES)
    for n in range(1, ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD) + 1):
        copy(spare, spare + n * stride, stride)
        to = n
        source = ld_i32(births, n - 1)
        while source != n:
            copy(spare + to * stride, spare + source * stride, stride)
            st_i32(births, to - 1, to)
            to = source
            source = ld_i32(births, to - 1)
        if to != n:
            copy(spare + to * stride, spare, stride)
            st_i32(births, to - 1, to)
    block_drop(births)
    st_i64(table, TABLE_BIRTHS, 0)


@native("i64(i64)", export=True)
def table_held_bytes(table: int) -> int:
    """Memory the table holds; 0 is no table. Of a dense table's room for entries, only what was ever used counts."""
    if table == 0:
        return 0
    slots = ld_i64(table, TABLE_MASK) + 1
    stride = ld_i64(table, TABLE_STRIDE)
    births = ld_i64(table, TABLE_LIMIT) * 4 if ld_i64(table, TABLE_BIRTHS) != 0 else 0
    held = TABLE_WORDS * 8 + births + ld_i64(table, TABLE_ARENA_CAPACITY) + ld_i64(table, TABLE_KNOWN_ROOM) * 8
    if ld_i64(table, TABLE_INDEX) == 0:
        return held + slots * stride
    used = max(ld_i64(table, TABLE_MOST), ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD))
    return held + slots * 8 + (used + 1) * stride
