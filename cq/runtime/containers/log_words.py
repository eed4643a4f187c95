"""The words of a keyed log, of its chunks and of its records, and where a record is.

Generated code reads these; everything that changes a log is in cq/runtime/containers/log.py, which says what they mean
together. A chunk shares the words of a table's header that are about strings, so that what reads and stores strings
there does so here: its records' long strings lie in its arena.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64
from cq.runtime.containers.table_words import TABLE_COUNT, TABLE_WORDS
from cq.runtime.layout.words import name_words

LOG_NEXT = 0  # the earliest time at which something is due; NEVER when nothing is. It may be too early
LOG_TABLE = 1  # the keys: a dense table whose entries end with the references of their first and their last record
LOG_CHUNKS = 2  # -> for each number the address of its chunk, or the next free number; number 0 is no chunk's
LOG_CAPACITY = 3  # numbers there is room for
LOG_NUMBERS = 4  # numbers ever given
LOG_FREE = 5  # a number to be given again, or 0
LOG_OPEN = 6  # the number of the chunk that is being filled, or 0
LOG_PLACES = 7  # records of a chunk
LOG_CLOSED = 8  # heap of the other chunks: their numbers by the latest expiry in them
LOG_PROOFS = 9  # heap of the records that wait for a proof: references by expiry and arrival
LOG_ARRIVALS = 10  # records that ever waited for a proof
LOG_RECORD_BYTES = 11
LOG_STRINGS = 12  # bit w: word w of a record begins a string
LOG_HEAD = 13  # the word of an entry with the reference of its first record; that of the last one is behind it
LOG_RECORDS = 14  # records held
LOG_CLOSED_BYTES = 15  # memory of closed chunks
LOG_WORDS = 16

CHUNK_LATEST = 0  # the latest expiry of its records
CHUNK_COUNT = TABLE_COUNT
CHUNK_HEAD_BYTES = TABLE_WORDS * 8

RECORD_NEXT = 0  # reference of the key's next record by arrival, or 0
RECORD_BEFORE = 1
RECORD_HASH = 2  # of its key
RECORD_EXPIRY = 3  # nothing can match it once the watermark is here
RECORD_SERIAL = 4  # of the row
RECORD_PROOF = 5  # its arrival among the records that wait for a proof; 0: it waits for none
RECORD_VALUES = 6  # the row's words

PLACE_BITS = 9  # a reference: the chunk's number, then the place in it
MOST_PLACES = 1 << PLACE_BITS

name_words(globals())


@native("i64(i64, i64)", inline=True)
def log_chunk(log: int, reference: int) -> int:
    """The chunk a reference leads to."""
    return ld_i64(ld_i64(log, LOG_CHUNKS), reference >> PLACE_BITS)


@native("i64(i64, i64, i64)", inline=True)
def log_record(chunk: int, reference: int, record_bytes: int) -> int:
    """The record of that chunk a reference leads to."""
    return chunk + CHUNK_HEAD_BYTES + (reference & (MOST_PLACES - 1)) * record_bytes
