"""Ranks as flat bytes, and back; copying partitions from elsewhere.

`Container` documents the functions that it names.
"""

from __future__ import annotations

import struct

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    ld_i64,
    max_i64,
    min_i64,
    release,
    st_i64,
)
from cq.runtime.containers.birth_order import table_sort_births
from cq.runtime.containers.equal_keys import entry_like
from cq.runtime.containers.protocol import Apart, Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.ranks import put_record, ranks_drop, ranks_held_bytes, ranks_new
from cq.runtime.containers.ranks_words import (
    RANK_CLOSES,
    RANK_COUNT,
    RANK_ROOT,
    RANK_WORST,
    RANKED_ARRIVAL,
    RANKS_HEAD,
    RANKS_LAST,
    RANKS_NEXT,
    RANKS_TABLE,
)
from cq.runtime.containers.records import (
    record_at,
    record_free,
    record_link,
    record_take,
    records_clear,
    records_load,
    records_save,
    records_saved_words,
)
from cq.runtime.containers.table_saving import (
    table_arrivals,
    table_load,
    table_save,
    table_saved_words,
    table_take,
)
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_clear, table_delete, table_settle
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.pipeline import Slot


@native("i64(i64)", export=True)
def ranks_saved_words(ranks: int) -> int:
    """The most words that `ranks_save` writes."""
    return 1 + records_saved_words(ranks) + table_saved_words(ld_i64(ranks, RANKS_TABLE))


@native("i64(i64, i64)", export=True)
def ranks_save(ranks: int, target: int) -> int:
    """Write the rows as words to `target`: the last arrival, records, partitions; return how many. None is leaving."""
    st_i64(target, 0, ld_i64(ranks, RANKS_LAST))
    behind = 1 + records_save(ranks, target + 8)
    return behind + table_save(ld_i64(ranks, RANKS_TABLE), target + behind * 8)


@native("i64(i64, i64)", export=True)
def ranks_load(ranks: int, source: int) -> int:
    """Read saved rows into empty ranks; return the words read, or 0 without memory or for other rows."""
    records = records_load(ranks, source + 8)
    if records == 0:
        return 0
    st_i64(ranks, RANKS_LAST, ld_i64(source, 0))
    partitions = table_load(ld_i64(ranks, RANKS_TABLE), source + (1 + records) * 8)
    _see_next(ranks)
    return 0 if partitions == 0 else 1 + records + partitions


@native("void(i64)")
def _see_next(ranks: int) -> None:
    """Set RANKS_NEXT to the earliest time of the partitions, none of which is dead."""
    table = ld_i64(ranks, RANKS_TABLE)
    closes = ld_i64(ranks, RANKS_HEAD) + RANK_CLOSES
    following = NEVER
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)
        following = min_i64(following, ld_i64(entry, closes))
    st_i64(ranks, RANKS_NEXT, following)


@native("i64(i64, i64, i64)", export=True)
def ranks_take(ranks: int, other: int, entry: int) -> int:
    """Copy the rows of a partition of other ranks here and return 1; 0 without memory. The others still have them."""
    return _take(ranks, other, entry, 0)


@native("i64(i64, i64, i64, i64)")
def _take(ranks: int, other: int, entry: int, leave: int) -> int:
    """`ranks_take`; if `leave` is 1, free the records of the others."""
    head = ld_i64(ranks, RANKS_HEAD)
    table = ld_i64(ranks, RANKS_TABLE)
    made = entry_like(table, ld_i64(other, RANKS_TABLE), entry, head)
    if made == 0:
        made = table_take(table, ld_i64(other, RANKS_TABLE), entry)
        if made == 0:
            return 0
        st_i64(made, head + RANK_ROOT, 0)
        st_i64(made, head + RANK_COUNT, 0)
        st_i64(made, head + RANK_WORST, NEVER)
        st_i64(ranks, RANKS_NEXT, min_i64(ld_i64(ranks, RANKS_NEXT), ld_i64(made, head + RANK_CLOSES)))
    st_i64(made, ENTRY_FIRST, min_i64(ld_i64(made, ENTRY_FIRST), ld_i64(entry, ENTRY_FIRST)))
    st_i64(ranks, RANKS_LAST, max_i64(ld_i64(ranks, RANKS_LAST), ld_i64(other, RANKS_LAST)))
    count = ld_i64(entry, head + RANK_COUNT)
    numbers = alloc(count * 8 + 8)
    if numbers == 0:
        return 0
    st_i64(numbers, 0, ld_i64(entry, head + RANK_ROOT))
    behind = 1
    for n in range(count):
        record = record_at(other, ld_i64(numbers, n))
        for side in range(2):
            number = record_link(record, side)
            if number != 0:
                st_i64(numbers, behind, number)
                behind += 1
    done = 1
    for n in range(count - 1, -1, -1):  # in a chain, the first to arrive first
        if done == 1:
            done = _take_record(ranks, made, other, ld_i64(numbers, n), leave)
    release(numbers)
    return done


@native("i64(i64, i64, i64, i64, i64)")
def _take_record(ranks: int, entry: int, other: int, number: int, leave: int) -> int:
    """Copy a record of other rows to this partition, free it there if `leave` is 1, and return 1; 0 without memory."""
    made = record_take(ranks, other, record_at(other, number))
    if made == 0:
        return 0
    put_record(ranks, entry, made)
    if leave == 1:
        record_free(other, number)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def ranks_hand_over(ranks: int, target: int, part: int, watermark: int) -> int:
    """`Apart.hand_over`: for partitions that leave at or before the watermark; a group is a row."""
    table = ld_i64(ranks, RANKS_TABLE)
    head = ld_i64(ranks, RANKS_HEAD)
    rows = 0
    following = NEVER
    for n in range(ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)
        if ld_i64(entry, ENTRY_TAG) != 0:
            closes = ld_i64(entry, head + RANK_CLOSES)
            if closes > watermark:
                following = min_i64(following, closes)
            else:
                if _take(target, ranks, entry, 1) == 0:
                    return -1
                rows += ld_i64(entry, head + RANK_COUNT)
                table_delete(table, entry)
    if ld_i64(table, TABLE_COUNT) == 0:
        table_clear(table)
        records_clear(ranks)
    st_i64(ranks, RANKS_NEXT, following)
    return rows if ranks_taken(target) == 1 else -1


@native("i64(i64, i64)", export=True)
def ranks_groups(ranks: int, lasting: int) -> int:
    """`Apart.groups`: the approximate number of rows."""
    if lasting == 1 and ld_i64(ranks, RANKS_NEXT) != NEVER:
        return 0
    return ld_i64(ranks, TABLE_COUNT)


@native("i64(i64)", export=True)
def ranks_taken(ranks: int) -> int:
    """`Container.taken`: partitions by first arrival."""
    table_settle(ld_i64(ranks, RANKS_TABLE))
    return table_sort_births(ld_i64(ranks, RANKS_TABLE))


@native("i64(i64, i64)", export=True)
def ranks_arrivals(ranks: int, target: int) -> int:
    """`Container.arrivals`: those of the partitions and of all records, including free ones."""
    count = table_arrivals(ld_i64(ranks, RANKS_TABLE), target)
    for number in range(1, ld_i64(ranks, TABLE_COUNT) + 1):
        put_arrival(target, count, record_at(ranks, number) + RANKED_ARRIVAL * 8, number)
        count += 1
    return count


def _arguments(slot: Slot, place: Place) -> tuple[int, ...]:
    key, row = slot.shapes
    order = place(struct.pack(f"<{len(slot.parameters)}q", *slot.parameters))
    return (key.entry_words, string_bits(key), row.entry_words, string_bits(row), len(slot.parameters) - 2, order)


register(
    Container(
        "ranks",
        _arguments,
        new=ranks_new,
        drop=ranks_drop,
        saved_words=ranks_saved_words,
        save=ranks_save,
        load=ranks_load,
        arrivals=ranks_arrivals,
        taken=ranks_taken,
        held_bytes=ranks_held_bytes,
        settle=None,
        apart=Apart(ranks_hand_over, ranks_groups),
    )
)
