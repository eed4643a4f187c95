"""The words of a table's header and of its entries, and where its n-th entry is.

Generated code reads these; everything that changes a table is in cq/runtime/containers/tables.py, which explains how
they work together.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import clz, ld_i32, max_i64, pick, shl
from cq.runtime.layout.words import Struct, name_words

_table = Struct("TABLE")
TABLE_ENTRIES = _table.word()
TABLE_STRIDE = _table.word()  # bytes from an entry to the next
TABLE_SHIFT = _table.word()  # slot = hash >> this
TABLE_MASK = _table.word()  # slots - 1
TABLE_COUNT = _table.word()  # live entries
TABLE_LIMIT = _table.word()  # it grows at this many, dead ones included
TABLE_EPOCH = _table.word()  # epoch << 32
TABLE_BIRTHS = _table.word()  # -> u32 numbers of the entries by birth, or 0: they are in that order
TABLE_ARENA = _table.word()
TABLE_ARENA_USED = _table.word()
TABLE_ARENA_CAPACITY = _table.word()
TABLE_STRINGS = _table.word()  # bit w: word w of an entry begins a string
TABLE_GARBAGE = _table.word()  # bytes of the arena that no entry refers to any more
TABLE_INDEX = _table.word()  # -> slots of a dense table; 0: entries are in the slots themselves
TABLE_DEAD = _table.word()  # deleted entries whose place is not reused yet; dense tables only
TABLE_ENTRY_BYTES = _table.word()  # its words; if entries are in slots, the stride is the next power of two
# places of a dense table that were used before it was last cleared or settled, dead ones included
TABLE_MOST = _table.word()
# 0, or 1 + the words of a key: order.py alone decides what the index of a dense table points to
TABLE_ORDER = _table.word()
TABLE_ARRIVALS = _table.word()  # bit w: word w of an entry holds the arrival of a row, or NEVER
# entries may end at some time (open_table.py)
TABLE_UNTIL = _table.word()  # the word of an entry with that time; 0: they never end
TABLE_BEHIND = _table.word()  # microseconds added to it
TABLE_PAST = _table.word()  # event time is past every instant before this one
# what is remembered of the codes of a dictionary (known_codes.py)
TABLE_KNOWN = _table.word()  # -> the address of the entry of each code, 0 if unknown; or 0
TABLE_KNOWN_ROOM = _table.word()  # codes it has room for
TABLE_DICTIONARY = _table.word()  # the number of the dictionary whose codes are known; 0: none
TABLE_ASKED = _table.word()  # the number of the dictionary whose codes were requested last
TABLE_QUESTIONS = _table.word()  # how many were requested since the last change of dictionary or of addresses
TABLE_WORDS = _table.lines()

_entry = Struct("ENTRY")
ENTRY_TAG = _entry.word()
ENTRY_FIRST = _entry.word()  # serial of the row that made the entry
ENTRY_KEYS = _entry.rest()

# what to prefetch of a table: nothing if it fits a cache, the slots that hold its entries, or those of its index
FETCH_NOTHING, FETCH_SLOT, FETCH_INDEX = 0, 1, 2

NUMBER_MASK = 4294967295  # of a slot of the index: the entry's number; the hash is above it

name_words(globals())


@native("i64(i64, i64, i64, i64)", inline=True)
def entry_at(entries: int, births: int, stride: int, n: int) -> int:
    """The n-th entry by birth, of a table without dead entries that has these words."""
    number = n + 1
    if births != 0:
        number = ld_i32(births, n)
    return entries + number * stride


@native("i64(i64)")
def spread_stride(entry_bytes: int) -> int:
    """The power of two that an entry takes in a slot."""
    return shl(1, max_i64(64 - clz(entry_bytes - 1), 4))


@native("i64(i64, i64, i64)", inline=True)
def what_to_fetch(mask: int, small: int, index: int) -> int:
    """What to prefetch of a table with these words, if those of at most `small` slots fit a cache."""
    return pick(mask > small, pick(index == 0, FETCH_SLOT, FETCH_INDEX), FETCH_NOTHING)
