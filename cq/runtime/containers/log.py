"""Keyed logs: the rows of each key in order of arrival, which leave by time.

A row is a record (log_words.py has its words) in the list of its key; the key's entry in the table holds the ends of
the list, and is deleted with the last record. Each record has an expiry, the time from which nothing can match it.
Records are in chunks in order of arrival. A chunk is freed, its records unlinked, when the latest expiry of its records
is reached; its number and its memory are reused, and so are the places of deleted keys. So however many rows and keys
pass, a log holds what has not expired and what shares a chunk with it, and a row far in the future holds back only its
own chunk. Long strings are in an arena of their chunk and leave with it.

Nearly all records of a key may be out of reach of a row, as when they are kept for a day and match within minutes. So
`log_since` finds where to begin, from both ends of the list: going back it knows when there is nothing more, because
each record has the most by which earlier ones expire later, and the key's entry the latest expiry of all, from which
that is computed. A freed record still counts there, so a search may begin too early, never too late.

Some records wait for a proof: that they have expired and nothing has matched them. They are taken in order of expiry,
then of arrival, before `log_forget` frees what has expired.

A record that is to meet no others any more can be taken off the list of its key (`log_unlist`): however many rows of a
key have had their match, later ones do not pass by them. A full chunk without a record in a list is *idle*. Idle chunks
are freed together, once more than half of the full ones are idle: they are in the heap of chunks, and their records may
be in that of proofs, so both are read once for all of them. So even if its records never expire, a log holds those in
lists and what shares a chunk with them, and at most as many idle chunks.

Records refer to each other by chunk number and place, never by address. To fill one, `log_append` makes it the last of
its key; the kernel writes its words (`string_store` for strings, with the chunk as the table).

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    fill,
    ld_i64,
    max_i64,
    min_i64,
    prefetch,
    prefetch_to_write,
    release,
    shl,
    shr_u,
    st_i64,
    udiv,
    zalloc,
)
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.heap import (
    HEAP_COUNT,
    HEAP_ITEMS,
    HEAP_NEXT,
    ITEM_BYTES,
    ITEM_TIE,
    ITEM_TIME,
    ITEM_VALUE,
    heap_clear,
    heap_drop,
    heap_held_bytes,
    heap_new,
    heap_pop,
    heap_push,
)
from cq.runtime.containers.log_words import (
    CHUNK_COUNT,
    CHUNK_HEAD_BYTES,
    CHUNK_LATEST,
    CHUNK_UNLISTED,
    LIST_ENDS,
    LIST_LATEST,
    LIST_WORDS,
    LOG_ARRIVALS,
    LOG_CAPACITY,
    LOG_CHUNKS,
    LOG_CLOSED,
    LOG_CLOSED_BYTES,
    LOG_FREE,
    LOG_HEAD,
    LOG_IDLE,
    LOG_LEAD,
    LOG_NEXT,
    LOG_NUMBERS,
    LOG_OPEN,
    LOG_PLACES,
    LOG_PROOFS,
    LOG_RECORD_BYTES,
    LOG_RECORDS,
    LOG_STRINGS,
    LOG_TABLE,
    LOG_WORDS,
    MOST_NUMBERS,
    MOST_PLACES,
    PLACE_BITS,
    RECORD_BEFORE,
    RECORD_EXPIRY,
    RECORD_HASH,
    RECORD_NEXT,
    RECORD_PROOF,
    RECORD_SERIAL,
    REFERENCE_MASK,
    UNLISTED,
    log_chunk,
    log_lead,
    log_record,
)
from cq.runtime.containers.table_words import (
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_STRINGS,
)
from cq.runtime.containers.tables import (
    HASH_MASK,
    table_delete,
    table_drop,
    table_held_bytes,
    table_make_dense,
    table_new,
)
from cq.runtime.layout.abi import NEVER

FIRST_NUMBERS = 8
SLOT_AHEAD = 24  # records of a chunk: how far ahead of unlinking one, the slot of its key is fetched ...
ENTRY_AHEAD = 12  # ... and the entry that the slot leads to
CHUNK_BYTES = 1 << 16  # of its records: what one row far in the future can hold back


@native("i64(i64, i64, i64, i64)", export=True)
def log_new(entry_words: int, key_strings: int, record_words: int, strings: int) -> int:
    """An empty log, or 0 without memory. The last words of an entry, LIST_WORDS, are the log's own."""
    log = zalloc(LOG_WORDS * 8)
    if log == 0:
        return 0
    table = table_new(entry_words, key_strings, 0)
    st_i64(log, LOG_TABLE, table)
    st_i64(log, LOG_CHUNKS, block_new(FIRST_NUMBERS * 8, 0))
    st_i64(log, LOG_CLOSED, heap_new())
    st_i64(log, LOG_PROOFS, heap_new())
    st_i64(log, LOG_CAPACITY, FIRST_NUMBERS)
    st_i64(log, LOG_PLACES, min_i64(max_i64(udiv(CHUNK_BYTES, record_words * 8), 1), MOST_PLACES))
    st_i64(log, LOG_RECORD_BYTES, record_words * 8)
    st_i64(log, LOG_STRINGS, strings)
    st_i64(log, LOG_HEAD, entry_words - LIST_WORDS)
    st_i64(log, LOG_NEXT, NEVER)
    there = table != 0 and ld_i64(log, LOG_CHUNKS) != 0 and ld_i64(log, LOG_CLOSED) != 0
    if there and ld_i64(log, LOG_PROOFS) != 0 and table_make_dense(table) == 1:
        return log
    log_drop(log)
    return 0


@native("i64(i64)", export=True)
def log_drop(log: int) -> int:
    """Free the log and all it holds; 0 is no log."""
    if log != 0:
        if ld_i64(log, LOG_CLOSED) != 0:
            for n in range(log_chunks(log)):
                chunk = log_chunk(log, shl(log_nth_number(log, n), PLACE_BITS))
                block_drop(ld_i64(chunk, TABLE_ARENA))
                block_drop(chunk)
        heap_drop(ld_i64(log, LOG_CLOSED))
        heap_drop(ld_i64(log, LOG_PROOFS))
        block_drop(ld_i64(log, LOG_CHUNKS))
        table_drop(ld_i64(log, LOG_TABLE))
        release(log)
    return 0


@native("i64(i64)")
def log_chunks(log: int) -> int:
    """How many chunks there are."""
    opened = 1 if ld_i64(log, LOG_OPEN) != 0 else 0
    return ld_i64(ld_i64(log, LOG_CLOSED), HEAP_COUNT) + opened


@native("i64(i64, i64)")
def log_nth_number(log: int, n: int) -> int:
    """The number of one of the chunks, in no order."""
    closed = ld_i64(log, LOG_CLOSED)
    if n == ld_i64(closed, HEAP_COUNT):
        return ld_i64(log, LOG_OPEN)
    return ld_i64(ld_i64(closed, HEAP_ITEMS) + n * ITEM_BYTES, ITEM_VALUE)


# -- rows come -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)", export=True)
def log_append(log: int, entry: int, expiry: int, serial: int, waits: int) -> int:
    """The reference of a new record, the last of this entry's key, its values 0; 0 without memory.

    waits: 1 if it waits for a proof.
    """
    number = ld_i64(log, LOG_OPEN)
    if number == 0 or ld_i64(log_chunk(log, shl(number, PLACE_BITS)), CHUNK_COUNT) >= ld_i64(log, LOG_PLACES):
        number = _open_chunk(log)
        if number == 0:
            return 0
    reference = shl(number, PLACE_BITS)
    chunk = log_chunk(log, reference)
    reference |= ld_i64(chunk, CHUNK_COUNT)
    arrival = 0
    if waits == 1:
        arrival = ld_i64(log, LOG_ARRIVALS) + 1
        if heap_push(ld_i64(log, LOG_PROOFS), expiry, arrival, reference) == 0:
            return 0
        st_i64(log, LOG_ARRIVALS, arrival)
    size = ld_i64(log, LOG_RECORD_BYTES)
    record = log_record(chunk, reference, size)
    fill(record, 0, size)
    st_i64(record, RECORD_EXPIRY, expiry)
    st_i64(record, RECORD_SERIAL, serial)
    st_i64(record, RECORD_PROOF, arrival)
    st_i64(chunk, CHUNK_COUNT, ld_i64(chunk, CHUNK_COUNT) + 1)
    st_i64(chunk, CHUNK_LATEST, max_i64(ld_i64(chunk, CHUNK_LATEST), expiry))
    st_i64(log, LOG_RECORDS, ld_i64(log, LOG_RECORDS) + 1)
    records = entry + ld_i64(log, LOG_HEAD) * 8
    ends = ld_i64(records, LIST_ENDS)
    first = ends & REFERENCE_MASK
    last = shr_u(ends, 32)
    latest = ld_i64(records, LIST_LATEST)
    if last == 0:
        first = reference
        latest = expiry
    else:
        st_i64(log_record(log_chunk(log, last), last, size), RECORD_NEXT, reference)
        if latest > expiry:
            st_i64(log, LOG_LEAD, max_i64(ld_i64(log, LOG_LEAD), latest - expiry))
    st_i64(record, RECORD_BEFORE, last)
    st_i64(record, RECORD_HASH, log_lead(latest, expiry) | (ld_i64(entry, ENTRY_TAG) & HASH_MASK))
    st_i64(records, LIST_ENDS, shl(reference, 32) | first)
    st_i64(records, LIST_LATEST, max_i64(latest, expiry))
    log_set_next(log)
    return reference


@native("i64(i64)")
def _open_chunk(log: int) -> int:
    """The number of a new chunk, which is filled from now on; 0 without memory: nothing but room has changed."""
    number = ld_i64(log, LOG_FREE)
    fresh = ld_i64(log, LOG_NUMBERS) + 1
    if number == 0 and fresh >= MOST_NUMBERS:
        return 0
    if number == 0 and fresh >= ld_i64(log, LOG_CAPACITY):
        capacity = 2 * ld_i64(log, LOG_CAPACITY)
        chunks = block_resize(ld_i64(log, LOG_CHUNKS), capacity * 8)
        if chunks == 0:
            return 0
        st_i64(log, LOG_CHUNKS, chunks)
        st_i64(log, LOG_CAPACITY, capacity)
    made = block_new(_chunk_bytes(log), 0)
    if made == 0:
        return 0
    full = ld_i64(log, LOG_OPEN)
    if full != 0:
        chunk = log_chunk(log, shl(full, PLACE_BITS))
        if heap_push(ld_i64(log, LOG_CLOSED), ld_i64(chunk, CHUNK_LATEST), 0, full) == 0:
            block_drop(made)
            return 0
        held = _chunk_bytes(log) + ld_i64(chunk, TABLE_ARENA_CAPACITY)
        st_i64(log, LOG_CLOSED_BYTES, ld_i64(log, LOG_CLOSED_BYTES) + held)
        st_i64(log, LOG_IDLE, ld_i64(log, LOG_IDLE) + _is_unlisted(chunk))
    if number == 0:
        number = fresh
        st_i64(log, LOG_NUMBERS, number)
    else:
        st_i64(log, LOG_FREE, ld_i64(ld_i64(log, LOG_CHUNKS), number))
    fill(made, 0, CHUNK_HEAD_BYTES)
    st_i64(made, CHUNK_LATEST, -NEVER)
    st_i64(made, TABLE_STRINGS, ld_i64(log, LOG_STRINGS))
    st_i64(ld_i64(log, LOG_CHUNKS), number, made)
    st_i64(log, LOG_OPEN, number)
    return number


@native("i64(i64)")
def _chunk_bytes(log: int) -> int:
    """Memory of a chunk without its strings."""
    return CHUNK_HEAD_BYTES + ld_i64(log, LOG_PLACES) * ld_i64(log, LOG_RECORD_BYTES)


@native("void(i64)")
def log_set_next(log: int) -> None:
    """Set when something in the log is next due."""
    due = min_i64(ld_i64(ld_i64(log, LOG_CLOSED), HEAP_NEXT), ld_i64(ld_i64(log, LOG_PROOFS), HEAP_NEXT))
    number = ld_i64(log, LOG_OPEN)
    if number != 0:
        chunk = log_chunk(log, shl(number, PLACE_BITS))
        if ld_i64(chunk, CHUNK_COUNT) != 0:
            due = min_i64(due, ld_i64(chunk, CHUNK_LATEST))
    st_i64(log, LOG_NEXT, due)


# -- rows leave ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def log_unlist(log: int, reference: int) -> int:
    """Take the record off the list of its key, which is deleted with its last one; the record waits for no proof.

    Its words and texts stay in place until the next record is taken off, or what has expired is freed.
    """
    if 2 * ld_i64(log, LOG_IDLE) > ld_i64(ld_i64(log, LOG_CLOSED), HEAP_COUNT):
        _free_idle(log)
    chunk = log_chunk(log, reference)
    record = log_record(chunk, reference, ld_i64(log, LOG_RECORD_BYTES))
    _unlink(log, reference, record)
    st_i64(chunk, CHUNK_UNLISTED, ld_i64(chunk, CHUNK_UNLISTED) + 1)
    if reference >> PLACE_BITS != ld_i64(log, LOG_OPEN):
        st_i64(log, LOG_IDLE, ld_i64(log, LOG_IDLE) + _is_unlisted(chunk))
    st_i64(record, RECORD_NEXT, 0)
    st_i64(record, RECORD_BEFORE, UNLISTED)
    st_i64(record, RECORD_PROOF, 0)
    st_i64(log, LOG_RECORDS, ld_i64(log, LOG_RECORDS) - 1)
    return 0


@native("i64(i64)", inline=True)
def _is_unlisted(chunk: int) -> int:
    """1 if none of the chunk's records is in a list, else 0."""
    return 1 if ld_i64(chunk, CHUNK_UNLISTED) == ld_i64(chunk, CHUNK_COUNT) else 0


@native("void(i64)")
def _free_idle(log: int) -> None:
    """Free the idle chunks. The items that stay in a heap go into it again; those already there are before them."""
    proofs = ld_i64(log, LOG_PROOFS)
    count = ld_i64(proofs, HEAP_COUNT)
    heap_clear(proofs)
    for n in range(count):
        item = ld_i64(proofs, HEAP_ITEMS) + n * ITEM_BYTES
        reference = ld_i64(item, ITEM_VALUE)
        record = log_record(log_chunk(log, reference), reference, ld_i64(log, LOG_RECORD_BYTES))
        if ld_i64(record, RECORD_PROOF) != 0:
            heap_push(proofs, ld_i64(item, ITEM_TIME), ld_i64(item, ITEM_TIE), reference)
    closed = ld_i64(log, LOG_CLOSED)
    count = ld_i64(closed, HEAP_COUNT)
    heap_clear(closed)
    for n in range(count):
        item = ld_i64(closed, HEAP_ITEMS) + n * ITEM_BYTES
        number = ld_i64(item, ITEM_VALUE)
        if _is_unlisted(log_chunk(log, shl(number, PLACE_BITS))) == 1:
            _free_chunk(log, number)
        else:
            heap_push(closed, ld_i64(item, ITEM_TIME), 0, number)
    st_i64(log, LOG_IDLE, 0)


@native("i64(i64, i64)", export=True)
def log_proof(log: int, instant: int) -> int:
    """The reference of the first record whose proof is due at the instant and that nothing has matched, or 0.

    It stays the first until `log_proved`. Matched records before it stop waiting.
    """
    proofs = ld_i64(log, LOG_PROOFS)
    while ld_i64(proofs, HEAP_COUNT) != 0:
        first = ld_i64(proofs, HEAP_ITEMS)
        reference = ld_i64(first, ITEM_VALUE)
        chunk = log_chunk(log, reference)
        if ld_i64(log_record(chunk, reference, ld_i64(log, LOG_RECORD_BYTES)), RECORD_PROOF) != 0:
            return reference if ld_i64(first, ITEM_TIME) <= instant else 0
        heap_pop(proofs)
    return 0


@native("i64(i64)", export=True)
def log_proved(log: int) -> int:
    """The record from `log_proof` stops waiting."""
    proofs = ld_i64(log, LOG_PROOFS)
    reference = ld_i64(ld_i64(proofs, HEAP_ITEMS), ITEM_VALUE)
    st_i64(log_record(log_chunk(log, reference), reference, ld_i64(log, LOG_RECORD_BYTES)), RECORD_PROOF, 0)
    heap_pop(proofs)
    return 0


@native("i64(i64, i64, i64)", export=True)
def log_first(log: int, other: int, instant: int) -> int:
    """Which of two logs has the first record by arrival that is due and that nothing has matched; 0: neither.

    Records that are due expire all at once, and are numbered together (`log_number_after`). other: may be the same log.
    """
    mine = log_proof(log, instant)
    theirs = log_proof(other, instant)
    if mine == 0 or theirs == 0:
        return log if mine != 0 else other if theirs != 0 else 0
    record = log_record(log_chunk(log, mine), mine, ld_i64(log, LOG_RECORD_BYTES))
    behind = log_record(log_chunk(other, theirs), theirs, ld_i64(other, LOG_RECORD_BYTES))
    serial = ld_i64(record, RECORD_SERIAL)
    after = ld_i64(behind, RECORD_SERIAL)
    if serial == after:
        return log if ld_i64(record, RECORD_PROOF) <= ld_i64(behind, RECORD_PROOF) else other
    return log if serial < after else other


@native("i64(i64, i64)", export=True)
def log_number_after(log: int, other: int) -> int:
    """Give the next record that waits for a proof a greater number than those waiting in either log."""
    st_i64(log, LOG_ARRIVALS, max_i64(ld_i64(log, LOG_ARRIVALS), ld_i64(other, LOG_ARRIVALS)))
    return 0


@native("i64(i64, i64)", export=True)
def log_forget(log: int, instant: int) -> int:
    """Free every chunk whose records have all expired at the instant. No proof is due any more."""
    closed = ld_i64(log, LOG_CLOSED)
    while ld_i64(closed, HEAP_NEXT) <= instant and ld_i64(closed, HEAP_COUNT) != 0:
        number = ld_i64(ld_i64(closed, HEAP_ITEMS), ITEM_VALUE)
        heap_pop(closed)
        st_i64(log, LOG_IDLE, ld_i64(log, LOG_IDLE) - _is_unlisted(log_chunk(log, shl(number, PLACE_BITS))))
        _empty_chunk(log, number)
        _free_chunk(log, number)
    number = ld_i64(log, LOG_OPEN)
    if number != 0 and ld_i64(log_chunk(log, shl(number, PLACE_BITS)), CHUNK_LATEST) <= instant:
        _empty_chunk(log, number)
    log_set_next(log)
    return 0


@native("void(i64, i64)")
def _empty_chunk(log: int, number: int) -> None:
    """Unlink the chunk's records, and begin it again.

    The open chunk is filled again: if rows expire as fast as they come, freeing it and allocating another took a
    quarter of a join's time.
    """
    reference = shl(number, PLACE_BITS)
    chunk = log_chunk(log, reference)
    count = ld_i64(chunk, CHUNK_COUNT)
    for place in range(count):
        _fetch_ahead(log, chunk, place, count)
        record = log_record(chunk, place, ld_i64(log, LOG_RECORD_BYTES))
        if ld_i64(record, RECORD_BEFORE) != UNLISTED:
            _unlink(log, reference | place, record)
    st_i64(log, LOG_RECORDS, ld_i64(log, LOG_RECORDS) - count + ld_i64(chunk, CHUNK_UNLISTED))
    st_i64(chunk, CHUNK_COUNT, 0)
    st_i64(chunk, CHUNK_UNLISTED, 0)
    st_i64(chunk, TABLE_ARENA_USED, 0)


@native("void(i64, i64, i64, i64)", inline=True)
def _fetch_ahead(log: int, chunk: int, place: int, count: int) -> None:
    """Prefetch what unlinking later records of a chunk needs: the next of the key, and the key's entry."""
    size = ld_i64(log, LOG_RECORD_BYTES)
    table = ld_i64(log, LOG_TABLE)
    index = ld_i64(table, TABLE_INDEX)
    shift = ld_i64(table, TABLE_SHIFT)
    record = log_record(chunk, min_i64(place + SLOT_AHEAD, count - 1), size)
    following = ld_i64(record, RECORD_NEXT)
    if following != 0:
        prefetch_to_write(log_record(log_chunk(log, following), following, size))
    prefetch(index + shr_u(ld_i64(record, RECORD_HASH) & HASH_MASK, shift) * 8)
    soon = log_record(chunk, min_i64(place + ENTRY_AHEAD, count - 1), size)
    number = ld_i64(index, shr_u(ld_i64(soon, RECORD_HASH) & HASH_MASK, shift)) & NUMBER_MASK
    entry = ld_i64(table, TABLE_ENTRIES) + number * ld_i64(table, TABLE_STRIDE)
    prefetch_to_write(entry + ld_i64(log, LOG_HEAD) * 8)


@native("void(i64, i64)")
def _free_chunk(log: int, number: int) -> None:
    """Free a full chunk, none of whose records is in a list, and its number."""
    chunk = log_chunk(log, shl(number, PLACE_BITS))
    held = _chunk_bytes(log) + ld_i64(chunk, TABLE_ARENA_CAPACITY)
    st_i64(log, LOG_CLOSED_BYTES, ld_i64(log, LOG_CLOSED_BYTES) - held)
    block_drop(ld_i64(chunk, TABLE_ARENA))
    block_drop(chunk)
    st_i64(ld_i64(log, LOG_CHUNKS), number, ld_i64(log, LOG_FREE))
    st_i64(log, LOG_FREE, number)


@native("void(i64, i64, i64)")
def _unlink(log: int, reference: int, record: int) -> None:
    """Unlink the record, and delete its key if it was the only one."""
    size = ld_i64(log, LOG_RECORD_BYTES)
    before = ld_i64(record, RECORD_BEFORE)
    following = ld_i64(record, RECORD_NEXT)
    if before != 0:
        st_i64(log_record(log_chunk(log, before), before, size), RECORD_NEXT, following)
    if following != 0:
        st_i64(log_record(log_chunk(log, following), following, size), RECORD_BEFORE, before)
    if before == 0 or following == 0:
        entry = _entry_of(log, ld_i64(record, RECORD_HASH) & HASH_MASK, reference)
        word = ld_i64(log, LOG_HEAD) + LIST_ENDS
        ends = ld_i64(entry, word)
        if before == 0 and following == 0:
            table_delete(ld_i64(log, LOG_TABLE), entry)
        elif before == 0:
            st_i64(entry, word, ends - (ends & REFERENCE_MASK) + following)
        else:
            st_i64(entry, word, (ends & REFERENCE_MASK) | shl(before, 32))


@native("i64(i64, i64, i64)")
def _entry_of(log: int, hash32: int, reference: int) -> int:
    """The entry of the key whose first or last record this is: no other entry has one of its references."""
    table = ld_i64(log, LOG_TABLE)
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    head = ld_i64(log, LOG_HEAD)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    while True:
        item = ld_i64(index, slot)
        if shr_u(item, 32) == hash32:
            entry = ld_i64(table, TABLE_ENTRIES) + (item & NUMBER_MASK) * ld_i64(table, TABLE_STRIDE)
            ends = ld_i64(entry, head + LIST_ENDS)
            if ends & REFERENCE_MASK == reference or shr_u(ends, 32) == reference:
                return entry
        slot = (slot + 1) & mask


@native("i64(i64)", export=True)
def log_held_bytes(log: int) -> int:
    """Memory the log holds; 0 is no log."""
    if log == 0:
        return 0
    held = LOG_WORDS * 8 + ld_i64(log, LOG_CAPACITY) * 8 + ld_i64(log, LOG_CLOSED_BYTES)
    held += heap_held_bytes(ld_i64(log, LOG_CLOSED)) + heap_held_bytes(ld_i64(log, LOG_PROOFS))
    number = ld_i64(log, LOG_OPEN)
    if number != 0:
        chunk = log_chunk(log, shl(number, PLACE_BITS))
        held += _chunk_bytes(log) + ld_i64(chunk, TABLE_ARENA_CAPACITY)
    return held + table_held_bytes(ld_i64(log, LOG_TABLE))
