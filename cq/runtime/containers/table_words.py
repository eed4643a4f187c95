"""The words of a table's header and of its entries, and where its n-th entry is.

Generated code reads these; everything that changes a table is in cq/runtime/containers/tables.py, which says what they
mean together.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import clz, ld_i32, max_i64, shl
from cq.runtime.layout.words import Struct, name_words

_table = Struct("TABLE")
TABLE_ENTRIES = _table.word()
TABLE_STRIDE = _table.word()  # bytes from an entry to the next
TABLE_SHIFT = _table.word()  # slot = hash >> this
TABLE_MASK = _table.word()  # slots - 1
TABLE_COUNT = _table.word()  # live entries
TABLE_LIMIT = _table.word()  # with this many, dead ones included, it grows
TABLE_EPOCH = _table.word()  # epoch << 32
TABLE_BIRTHS = _table.word()  # -> u32 numbers of the entries by birth, or 0: they stand in that order
TABLE_ARENA = _table.word()
TABLE_ARENA_USED = _table.word()
TABLE_ARENA_CAPACITY = _table.word()
TABLE_STRINGS = _table.word()  # bit w: word w of an entry begins a string
TABLE_GARBAGE = _table.word()  # bytes of the arena no entry refers to any more
TABLE_INDEX = _table.word()  # -> slots of a dense table; 0: entries stand in slots themselves
TABLE_DEAD = _table.word()  # entries deleted whose place is not used again yet; dense tables only
TABLE_ENTRY_BYTES = _table.word()  # its words; where entries stand in slots the stride is the next power of two
# places of a dense table that were used before it was last cleared or settled, dead ones included
TABLE_MOST = _table.word()
# 0, or 1 + the words of a key: what the index of a dense table points to is up to order.py alone
TABLE_ORDER = _table.word()
TABLE_ARRIVALS = _table.word()  # bit w: word w of an entry holds the arrival of a row, or NEVER
# entries may be over some time (open_table.py)
TABLE_UNTIL = _table.word()  # the word of an entry that says when; 0: none ever is
TABLE_BEHIND = _table.word()  # microseconds that are added to it
TABLE_PAST = _table.word()  # event time is past every instant before this one
# what is remembered of the codes of a dictionary (known_codes.py)
TABLE_KNOWN = _table.word()  # -> the address of the entry of each code, 0 where it is not known; or 0
TABLE_KNOWN_ROOM = _table.word()  # codes it has room for
TABLE_DICTIONARY = _table.word()  # the number of the dictionary whose codes are known; 0: nothing is
TABLE_ASKED = _table.word()  # the number of the dictionary whose codes were asked for last
TABLE_QUESTIONS = _table.word()  # how many were, since the last change of dictionary or of addresses
TABLE_WORDS = _table.lines()

_entry = Struct("ENTRY")
ENTRY_TAG = _entry.word()
ENTRY_FIRST = _entry.word()  # serial of the row that made the entry
ENTRY_KEYS = _entry.rest()

NUMBER_MASK = 4294967295  # of a slot of the index: the entry's number; the hash is above it

name_words(globals())


@native("i64(i64, i64, i64, i64)", inline=True)
def entry_at(entries: int, births: int, stride: int, n: int) -> int:
    """The n-th entry by birth, of a table without dead ones whose words these are."""
    number = n + 1
    if births != 0:
        number = ld_i32(births, n)
    return entries + number * stride


@native("i64(i64)")
def spread_stride(entry_bytes: int) -> int:
    """The power of two an entry takes that stands in a slot."""
    return shl(1, max_i64(64 - clz(entry_bytes - 1), 4))
