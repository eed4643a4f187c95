"""Tables whose entries end at some time: those of partitions that event time closes.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.records import replace
from cq.runtime.base.native import native
from cq.runtime.base.ops import st_i64
from cq.runtime.containers.protocol import Place, register, string_bits
from cq.runtime.containers.table_saving import TABLE
from cq.runtime.containers.table_words import TABLE_BEHIND, TABLE_PAST, TABLE_UNTIL
from cq.runtime.containers.tables import table_new
from cq.runtime.layout.abi import BEFORE_ALL
from cq.runtime.layout.pipeline import Slot


@native("i64(i64, i64, i64, i64)", export=True)
def open_table_new(entry_words: int, strings: int, until_word: int, behind_us: int) -> int:
    """A new empty table whose entries end when event time is more than `behind_us` past the time in a word; 0 without
    memory."""
    table = table_new(entry_words, strings, 0)
    if table != 0:
        st_i64(table, TABLE_UNTIL, until_word)
        st_i64(table, TABLE_BEHIND, behind_us)
        st_i64(table, TABLE_PAST, BEFORE_ALL)
    return table


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    (shape,) = slot.shapes
    return (shape.entry_words, string_bits(shape), shape.until_word, shape.behind_us)


register(replace(TABLE, name="open_table", arguments=_arguments, new=open_table_new))
