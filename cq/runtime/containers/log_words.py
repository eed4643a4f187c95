"""The words of a keyed log, of its chunks and of its records, and where a record is.

Generated code reads these; everything that changes a log is in cq/runtime/containers/log.py, which says what they mean
together. A chunk shares the words of a table's header that are about strings, so that what reads and stores strings
there does so here: its records' long strings lie in its arena.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64
from cq.runtime.containers.table_words import TABLE_COUNT, TABLE_ENTRIES, TABLE_WORDS
from cq.runtime.layout.words import Overlay, Struct, name_words

_log = Struct("LOG")
LOG_NEXT = _log.word()  # the earliest time at which something is due; NEVER when nothing is. It may be too early
# the keys: a dense table whose entries end with the references of their first and their last record
LOG_TABLE = _log.word()
LOG_CHUNKS = _log.word()  # -> for each number the address of its chunk, or the next free number; number 0 is no chunk's
LOG_CAPACITY = _log.word()  # numbers there is room for
LOG_NUMBERS = _log.word()  # numbers ever given
LOG_FREE = _log.word()  # a number to be given again, or 0
LOG_OPEN = _log.word()  # the number of the chunk that is being filled, or 0
LOG_PLACES = _log.word()  # records of a chunk
LOG_CLOSED = _log.word()  # heap of the other chunks: their numbers by the latest expiry in them
LOG_PROOFS = _log.word()  # heap of the records that wait for a proof: references by expiry and arrival
LOG_ARRIVALS = _log.word()  # records that ever waited for a proof
LOG_RECORD_BYTES = _log.word()
LOG_STRINGS = _log.word()  # bit w: word w of a record begins a string
LOG_HEAD = _log.word()  # the word of an entry with the reference of its first record; that of the last one is behind it
LOG_RECORDS = _log.word()  # records held
LOG_CLOSED_BYTES = _log.word()  # memory of closed chunks
LOG_WORDS = _log.size()

_chunk = Overlay("CHUNK", TABLE_WORDS)
CHUNK_LATEST = _chunk.at(TABLE_ENTRIES)  # the latest expiry of its records
CHUNK_COUNT = _chunk.at(TABLE_COUNT)
CHUNK_HEAD_BYTES = _chunk.size() * 8

_record = Struct("RECORD")
RECORD_NEXT = _record.word()  # reference of the key's next record by arrival, or 0
RECORD_BEFORE = _record.word()
RECORD_HASH = _record.word()  # of its key
RECORD_EXPIRY = _record.word()  # nothing can match it once the watermark is here
RECORD_SERIAL = _record.word()  # of the row
RECORD_PROOF = _record.word()  # its arrival among the records that wait for a proof; 0: it waits for none
RECORD_VALUES = _record.rest()  # the row's words

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
