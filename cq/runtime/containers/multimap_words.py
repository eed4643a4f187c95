"""The words of a multimap, its records and the ends of a key's list.

Generated code reads these. cq/runtime/containers/multimap.py explains how they work together.
"""

from __future__ import annotations

from cq.runtime.containers.table_words import (
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_LIMIT,
    TABLE_WORDS,
)
from cq.runtime.layout.words import Overlay, Struct, name_words

_shared = Overlay("MULTIMAP", TABLE_WORDS)
MULTIMAP_ROWS = _shared.at(TABLE_ENTRIES)  # -> records; number 0 is unused
MULTIMAP_COUNT = _shared.at(TABLE_COUNT)  # records held
MULTIMAP_ROOM = _shared.at(TABLE_LIMIT)  # records there is room for
MULTIMAP_RECORD_BYTES = _shared.at(TABLE_ENTRY_BYTES)
_multimap = Struct("MULTIMAP", after=_shared.size())
MULTIMAP_TABLE = _multimap.word()  # the keys; an entry ends with the word of its list
MULTIMAP_HEAD = _multimap.word()  # which word that is
MULTIMAP_DEFERRED = _multimap.word()  # -> its rows, all of them, while they are in no lists (deferred.py); or 0
MULTIMAP_DEFERS_AT = _multimap.word()  # the number of records from which rows are deferred
MULTIMAP_WORDS = _multimap.size()

_row = Struct("ROW")
ROW_NEXT = _row.word()  # number of the key's next record by arrival, or 0
ROW_VALUES = _row.rest()  # the row's words

_ends = Struct("ENDS")  # of the records of a key
ENDS_NUMBERS = _ends.word()  # the number of its first record and, above it, that of its last one
ENDS_WORDS = _ends.size()

NUMBER_BITS = 32
MOST_ROWS = (1 << NUMBER_BITS) - 1  # also the mask of the lower number

DEFER_FROM_ROWS = 1 << 16  # 1 MB of records of one value, 4 MB of entries, if each has a key: too much for a near cache
DEFER_NEVER = 1 << 62

name_words(globals())
