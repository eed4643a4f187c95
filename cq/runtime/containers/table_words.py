"""The words of a table's header and of its entries, and where its n-th entry is.

Generated code reads these; everything that changes a table is in cq/runtime/containers/tables.py, which says what they
mean together.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i32
from cq.runtime.layout.words import name_words

TABLE_ENTRIES = 0
TABLE_STRIDE = 1  # bytes from an entry to the next
TABLE_SHIFT = 2  # slot = hash >> this
TABLE_MASK = 3  # slots - 1
TABLE_COUNT = 4  # live entries
TABLE_LIMIT = 5  # with this many, dead ones included, it grows
TABLE_EPOCH = 6  # epoch << 32
TABLE_BIRTHS = 7  # -> u32 numbers of the entries by birth, or 0: they stand in that order
TABLE_ARENA = 8
TABLE_ARENA_USED = 9
TABLE_ARENA_CAPACITY = 10
TABLE_STRINGS = 11  # bit w: word w of an entry begins a string
TABLE_GARBAGE = 12  # bytes of the arena no entry refers to any more
TABLE_INDEX = 13  # -> slots of a dense table; 0: entries stand in slots themselves
TABLE_DEAD = 14  # entries deleted whose place is not used again yet; dense tables only
TABLE_ENTRY_BYTES = 15  # its words; where entries stand in slots the stride is the next power of two
TABLE_MOST = 16  # places of a dense table that were used before it was last cleared or settled, dead ones included
TABLE_ORDER = 17  # 0, or 1 + the words of a key: what the index of a dense table points to is up to order.py alone
TABLE_WORDS = 24

ENTRY_TAG = 0
ENTRY_FIRST = 1  # serial of the row that made the entry
ENTRY_KEYS = 2

NUMBER_MASK = 4294967295  # of a slot of the index: the entry's number; the hash is above it

name_words(globals())


@native("i64(i64, i64, i64, i64)", inline=True)
def entry_at(entries: int, births: int, stride: int, n: int) -> int:
    """The n-th entry by birth, of a table without dead ones whose words these are."""
    number = n + 1
    if births != 0:
        number = ld_i32(births, n)
    return entries + number * stride
