"""The words of a keyed log, its chunks and its records, where a record is and where records that match can begin.

Generated code reads these; everything that changes a log is in cq/runtime/containers/log.py, which explains how they
work together. A chunk shares the string words of a table's header, so that code that reads and stores strings works
on both: long strings of its records are in its arena.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shl, shr_u
from cq.runtime.containers.table_words import TABLE_COUNT, TABLE_DEAD, TABLE_ENTRIES, TABLE_WORDS
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.words import Overlay, Struct, name_words

_log = Struct("LOG")
LOG_NEXT = _log.word()  # the earliest time at which something is due; NEVER if nothing is. It may be too early
# the keys: a dense table whose entries end with the words of their lists
LOG_TABLE = _log.word()
LOG_CHUNKS = _log.word()  # -> by number: the address of its chunk, or the next free number; number 0 is unused
LOG_CAPACITY = _log.word()  # numbers there is room for
LOG_NUMBERS = _log.word()  # numbers ever used
LOG_FREE = _log.word()  # a number to reuse, or 0
LOG_OPEN = _log.word()  # the number of the chunk that is being filled, or 0
LOG_PLACES = _log.word()  # records of a chunk
LOG_CLOSED = _log.word()  # heap of the other chunks: their numbers by the latest expiry in them
LOG_PROOFS = _log.word()  # heap of the records that wait for a proof: references by expiry and arrival
LOG_ARRIVALS = _log.word()  # records that ever waited for a proof
LOG_RECORD_BYTES = _log.word()
LOG_STRINGS = _log.word()  # bit w: word w of a record begins a string
LOG_HEAD = _log.word()  # the word of an entry where the words of its list begin
LOG_RECORDS = _log.word()  # records in lists
LOG_CLOSED_BYTES = _log.word()  # memory of closed chunks
LOG_IDLE = _log.word()  # closed chunks without a record in a list
LOG_LEAD = _log.word()  # no record ever expired earlier than one before it of its key by more than this
LOG_WORDS = _log.size()

_list = Struct("LIST")  # of the records of a key
LIST_ENDS = _list.word()  # the reference of its first record and, above it, that of its last one
LIST_LATEST = _list.word()  # none of its records expires after this; unchanged when the one that does is freed
LIST_WORDS = _list.size()

_chunk = Overlay("CHUNK", TABLE_WORDS)
CHUNK_LATEST = _chunk.at(TABLE_ENTRIES)  # none of its records expires after this; unchanged when they are freed
CHUNK_COUNT = _chunk.at(TABLE_COUNT)
CHUNK_UNLISTED = _chunk.at(TABLE_DEAD)  # how many of its records were taken off their lists
CHUNK_HEAD_BYTES = _chunk.size() * 8

_record = Struct("RECORD")
RECORD_NEXT = _record.word()  # reference of the key's next record by arrival, or 0
RECORD_BEFORE = _record.word()  # of the one before it, or 0; UNLISTED once it is taken off the list
RECORD_HASH = _record.word()  # of its key; above it the lead: by how much those before it expire later, at most
RECORD_EXPIRY = _record.word()  # nothing can match it once the watermark is there
RECORD_SERIAL = _record.word()  # of the row
RECORD_PROOF = _record.word()  # its arrival among the records that wait for a proof; 0: it waits for none
RECORD_VALUES = _record.rest()  # the row's words

PLACE_BITS = 9  # a reference: the chunk's number, then the place in it
MOST_PLACES = 1 << PLACE_BITS
MOST_NUMBERS = 1 << (32 - PLACE_BITS)  # so that two references fit a word; this many chunks take 200 GB and more
REFERENCE_MASK = 4294967295
UNLISTED = -1

LEAD_LOG = 10  # a lead counts in units of about 1 ms, 2^32 of which are 50 days
LEAD_UNIT = 1 << LEAD_LOG
MOST_LEAD = 4294967295  # or more

name_words(globals())


@native("i64(i64, i64)", inline=True)
def log_chunk(log: int, reference: int) -> int:
    """The chunk a reference leads to."""
    return ld_i64(ld_i64(log, LOG_CHUNKS), reference >> PLACE_BITS)


@native("i64(i64, i64, i64)", inline=True)
def log_record(chunk: int, reference: int, record_bytes: int) -> int:
    """The record of that chunk a reference leads to."""
    return chunk + CHUNK_HEAD_BYTES + (reference & (MOST_PLACES - 1)) * record_bytes


@native("i64(i64, i64)", inline=True)
def log_lead(latest: int, expiry: int) -> int:
    """The lead of a record if no earlier one expires after `latest`, in the upper half of the word."""
    if latest <= expiry:
        return 0
    lead = ((latest + LEAD_UNIT - 1) >> LEAD_LOG) - (expiry >> LEAD_LOG)
    return shl(lead if lead < MOST_LEAD else MOST_LEAD, 32)


@native("i64(i64)", inline=True)
def log_latest(record: int) -> int:
    """A time after which no record of the key up to this one expires."""
    lead = shr_u(ld_i64(record, RECORD_HASH), 32)
    expiry = ld_i64(record, RECORD_EXPIRY)
    if lead == 0:
        return expiry
    return NEVER if lead == MOST_LEAD else shl((expiry >> LEAD_LOG) + lead, LEAD_LOG)


@native("i64(i64, i64, i64, i64)", inline=True)
def log_since(log: int, records: int, since: int, record_bytes: int) -> int:
    """A reference in the list, or 0: no record of the key before it expires at `since` or later.

    records: the words of a list that is not empty. If rows leave soon after the last that can match them, the result is
    its first record.
    """
    if ld_i64(records, LIST_LATEST) < since:
        return 0
    ends = ld_i64(records, LIST_ENDS)
    first = ends & REFERENCE_MASK
    if ld_i64(log_record(log_chunk(log, first), first, record_bytes), RECORD_EXPIRY) >= since:
        return first
    return log_search(log, first, shr_u(ends, 32), since)


@native("i64(i64, i64, i64, i64)", export=True)
def log_search(log: int, first: int, last: int, since: int) -> int:
    """`log_since`, from the references of the first and the last record.

    Searches for a record that expires late enough from the first one on, and from the last one back as far as there can
    be some, step by step: so it takes no more steps than there are records after the result, nor before it.
    """
    size = ld_i64(log, LOG_RECORD_BYTES)
    found = 0
    while last != 0:
        record = log_record(log_chunk(log, first), first, size)
        if ld_i64(record, RECORD_EXPIRY) >= since:
            return first
        first = ld_i64(record, RECORD_NEXT)
        record = log_record(log_chunk(log, last), last, size)
        if log_latest(record) < since:
            return found
        found = last
        last = ld_i64(record, RECORD_BEFORE)
    return found
