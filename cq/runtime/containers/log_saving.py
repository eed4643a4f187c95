"""Keyed logs as flat words and back, and key by key into another log.

Sharing: none, as for tables. The engine calls these while nothing runs.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_i64, max_i64, shl, shr_u, st_i64
from cq.runtime.containers.heap import HEAP_COUNT, HEAP_ITEMS, ITEM_VALUE, heap_clear, heap_pop, heap_push
from cq.runtime.containers.log import (
    log_append,
    log_chunks,
    log_drop,
    log_held_bytes,
    log_new,
    log_nth_number,
    log_set_next,
)
from cq.runtime.containers.log_words import (
    CHUNK_COUNT,
    LIST_ENDS,
    LIST_WORDS,
    LOG_ARRIVALS,
    LOG_HEAD,
    LOG_PROOFS,
    LOG_RECORD_BYTES,
    LOG_RECORDS,
    LOG_TABLE,
    PLACE_BITS,
    RECORD_BEFORE,
    RECORD_EXPIRY,
    RECORD_NEXT,
    RECORD_PROOF,
    RECORD_SERIAL,
    REFERENCE_MASK,
    UNLISTED,
    log_chunk,
    log_record,
)
from cq.runtime.containers.protocol import Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.strings import INLINE_STRING_BYTES, strings_move
from cq.runtime.containers.table_saving import (
    SAVED_COUNT,
    table_load,
    table_save,
    table_saved_words,
    table_take,
    words_for,
)
from cq.runtime.containers.table_words import (
    TABLE_ARENA,
    TABLE_ARENA_USED,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    TABLE_STRINGS,
)
from cq.runtime.containers.tables import table_settle
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct

_saved = Struct("SAVED")
SAVED_RECORDS = _saved.word()
SAVED_BYTES = _saved.word()  # bytes of one record
SAVED_STRINGS = _saved.word()  # bytes of their strings
SAVED_HEAD = _saved.rest()  # the table, the records key by key, the strings


@native("i64(i64)", export=True)
def log_saved_words(log: int) -> int:
    """The most words that `log_save` writes."""
    records = ld_i64(log, LOG_RECORDS) * ld_i64(log, LOG_RECORD_BYTES)
    table = table_saved_words(ld_i64(log, LOG_TABLE))
    return SAVED_HEAD + table + words_for(records) + words_for(_string_bytes(log))


@native("i64(i64)")
def _string_bytes(log: int) -> int:
    """Bytes of the long strings of all records, those off their lists among them, which are not saved."""
    found = 0
    for n in range(log_chunks(log)):
        found += ld_i64(log_chunk(log, shl(log_nth_number(log, n), PLACE_BITS)), TABLE_ARENA_USED)
    return found


@native("i64(i64, i64)", export=True)
def log_save(log: int, target: int) -> int:
    """Write the log as words to `target`; return how many. Of a key's records all but the last have a next one."""
    table = ld_i64(log, LOG_TABLE)
    size = ld_i64(log, LOG_RECORD_BYTES)
    records = ld_i64(log, LOG_RECORDS)
    at = target + (SAVED_HEAD + table_save(table, target + SAVED_HEAD * 8)) * 8
    texts = at + records * size
    used = 0
    for key in range(1, ld_i64(table, TABLE_COUNT) + 1):
        entry = ld_i64(table, TABLE_ENTRIES) + key * ld_i64(table, TABLE_STRIDE)
        reference = ld_i64(entry, ld_i64(log, LOG_HEAD) + LIST_ENDS) & REFERENCE_MASK
        while reference != 0:
            chunk = log_chunk(log, reference)
            copy(at, log_record(chunk, reference, size), size)
            used = _save_texts(chunk, at, texts, used)
            reference = ld_i64(at, RECORD_NEXT)
            at += size
    fill(texts + used, 0, -used & 7)
    st_i64(target, SAVED_RECORDS, records)
    st_i64(target, SAVED_BYTES, size)
    st_i64(target, SAVED_STRINGS, used)
    return ((texts - target) >> 3) + words_for(used)


@native("i64(i64, i64, i64, i64)")
def _save_texts(chunk: int, record: int, texts: int, used: int) -> int:
    """Write the long strings of a copied record after earlier ones, with their places in it; return bytes used."""
    word = 0
    left = ld_i64(chunk, TABLE_STRINGS)
    while left != 0:
        length = ld_i64(record, word) & 4294967295
        if left & 1 == 1 and length > INLINE_STRING_BYTES:
            copy(texts + used, ld_i64(chunk, TABLE_ARENA) + ld_i64(record, word + 1), length)
            st_i64(record, word + 1, used)
            used += length
        left = shr_u(left, 1)
        word += 1
    return used


@native("i64(i64, i64)", export=True)
def log_load(log: int, source: int) -> int:
    """Append what was saved to the log; return the words read, or 0 without memory or for other records.

    None of its keys may be there already. In an empty log, records that wait for proofs keep their numbers: those of
    two logs may be numbered together.
    """
    alone = ld_i64(log, LOG_RECORDS) == 0
    table = ld_i64(log, LOG_TABLE)
    size = ld_i64(log, LOG_RECORD_BYTES)
    saved = source + SAVED_HEAD * 8
    table_settle(table)
    number = ld_i64(table, TABLE_COUNT)
    words = table_load(table, saved)
    if words == 0 or ld_i64(source, SAVED_BYTES) != size:
        return 0
    at = saved + words * 8
    texts = at + ld_i64(source, SAVED_RECORDS) * size
    for _key in range(ld_i64(saved, SAVED_COUNT)):
        number += 1
        entry = ld_i64(table, TABLE_ENTRIES) + number * ld_i64(table, TABLE_STRIDE)
        fill(entry + ld_i64(log, LOG_HEAD) * 8, 0, LIST_WORDS * 8)
        more = 1
        while more == 1:
            if _copy_in(log, entry, at, texts) == 0:
                return 0
            more = 1 if ld_i64(at, RECORD_NEXT) != 0 else 0
            at += size
    if (_wait_again(log) if alone else _order_proofs(log)) == 0:
        return 0
    strings = words_for(ld_i64(source, SAVED_STRINGS))
    return SAVED_HEAD + words + words_for(ld_i64(source, SAVED_RECORDS) * size) + strings


@native("i64(i64, i64, i64, i64)")
def _copy_in(log: int, entry: int, record: int, texts: int) -> int:
    """Append a copy of this record, whose long strings begin at `texts`, to its key and return 1; 0 without memory.

    It does not wait for its proof yet.
    """
    size = ld_i64(log, LOG_RECORD_BYTES)
    reference = log_append(log, entry, ld_i64(record, RECORD_EXPIRY), ld_i64(record, RECORD_SERIAL), 0)
    if reference == 0:
        return 0
    chunk = log_chunk(log, reference)
    made = log_record(chunk, reference, size)
    copy(made + RECORD_PROOF * 8, record + RECORD_PROOF * 8, size - RECORD_PROOF * 8)
    return strings_move(chunk, made, texts)


@native("i64(i64, i64, i64)", export=True)
def log_take(log: int, other: int, entry: int) -> int:
    """Copy the key of an entry of another log, with all its records, here and return 1; 0 without memory.

    The caller knows that the key is absent. `log_taken` must be called before the log is used.
    """
    made = table_take(ld_i64(log, LOG_TABLE), ld_i64(other, LOG_TABLE), entry)
    if made == 0:
        return 0
    fill(made + ld_i64(log, LOG_HEAD) * 8, 0, LIST_WORDS * 8)
    reference = ld_i64(entry, ld_i64(other, LOG_HEAD) + LIST_ENDS) & REFERENCE_MASK
    while reference != 0:
        chunk = log_chunk(other, reference)
        record = log_record(chunk, reference, ld_i64(other, LOG_RECORD_BYTES))
        if _copy_in(log, made, record, ld_i64(chunk, TABLE_ARENA)) == 0:
            return 0
        reference = ld_i64(record, RECORD_NEXT)
    return 1


@native("i64(i64)", export=True)
def log_taken(log: int) -> int:
    """`Container.taken`: restore the records' waits for their proofs."""
    return _order_proofs(log)


@native("i64(i64, i64)", export=True)
def log_arrivals(log: int, target: int) -> int:
    """`Container.arrivals`: the serials of the records in lists, equal ones in the order in which they wait."""
    size = ld_i64(log, LOG_RECORD_BYTES)
    count = 0
    for n in range(log_chunks(log)):
        reference = shl(log_nth_number(log, n), PLACE_BITS)
        chunk = log_chunk(log, reference)
        for place in range(ld_i64(chunk, CHUNK_COUNT)):
            record = log_record(chunk, place, size)
            if ld_i64(record, RECORD_BEFORE) != UNLISTED:
                put_arrival(target, count, record + RECORD_SERIAL * 8, ld_i64(record, RECORD_PROOF))
                count += 1
    return count


@native("i64(i64)")
def _order_proofs(log: int) -> int:
    """Order the records that wait for proofs by their rows, wherever they were, and return 1; 0 without memory.

    Each of the saved logs counted its own arrivals: they decide the order within one serial.
    """
    proofs = ld_i64(log, LOG_PROOFS)
    heap_clear(proofs)
    if _push_proofs(log, RECORD_SERIAL) == 0:
        return 0
    arrivals = 0
    while ld_i64(proofs, HEAP_COUNT) != 0:
        reference = ld_i64(ld_i64(proofs, HEAP_ITEMS), ITEM_VALUE)
        heap_pop(proofs)
        arrivals += 1
        record = log_record(log_chunk(log, reference), reference, ld_i64(log, LOG_RECORD_BYTES))
        st_i64(record, RECORD_PROOF, arrivals)
    st_i64(log, LOG_ARRIVALS, arrivals)
    done = _push_proofs(log, RECORD_EXPIRY)
    log_set_next(log)
    return done


@native("i64(i64)")
def _wait_again(log: int) -> int:
    """Make the records that wait for proofs wait by the numbers they have and return 1; 0 without memory."""
    heap_clear(ld_i64(log, LOG_PROOFS))
    done = _push_proofs(log, RECORD_EXPIRY)
    log_set_next(log)
    return done


@native("i64(i64, i64)")
def _push_proofs(log: int, word: int) -> int:
    """Put every record that waits for a proof into the heap by this word, then by arrival, and return 1; 0 without
    memory.

    The log's arrival count becomes the greatest of their numbers."""
    for n in range(log_chunks(log)):
        reference = shl(log_nth_number(log, n), PLACE_BITS)
        chunk = log_chunk(log, reference)
        for place in range(ld_i64(chunk, CHUNK_COUNT)):
            record = log_record(chunk, place, ld_i64(log, LOG_RECORD_BYTES))
            proof = ld_i64(record, RECORD_PROOF)
            st_i64(log, LOG_ARRIVALS, max_i64(ld_i64(log, LOG_ARRIVALS), proof))
            waits = proof != 0
            if waits and heap_push(ld_i64(log, LOG_PROOFS), ld_i64(record, word), proof, reference | place) == 0:
                return 0
    return 1


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    keys, rows = slot.shapes
    return (keys.entry_words, string_bits(keys), rows.entry_words, string_bits(rows))


register(
    Container(
        "log",
        _arguments,
        new=log_new,
        drop=log_drop,
        saved_words=log_saved_words,
        save=log_save,
        load=log_load,
        arrivals=log_arrivals,
        taken=log_taken,
        held_bytes=log_held_bytes,
        settle=None,
        apart=None,
    )
)
