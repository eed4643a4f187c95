"""Open intervals that keep their rows: an interval (intervals.py) whose entry ends with a list of them (lists.py).

A row is KEPT_BYTES long, a multiple of eight: the KEPT words, its values, and its length once more, so that the rows of
a list can be walked from either end. They are in order of arrival, by a number that the intervals give to each row.
When two intervals are merged, so are their lists: only rows of the first that came after some row of the other are
moved.

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, copy, ld_i64, max_i64, release, st_i64
from cq.runtime.containers.intervals import (
    INTERVALS_KEPT,
    INTERVALS_TABLE,
    intervals_arguments,
    intervals_arrivals,
    intervals_drop,
    intervals_held_bytes,
    intervals_load,
    intervals_new,
    intervals_save,
    intervals_saved_words,
    intervals_taken,
)
from cq.runtime.containers.lists import LIST_USED, LIST_WORDS, list_items, list_room
from cq.runtime.containers.protocol import Container, register
from cq.runtime.containers.table_words import (
    ENTRY_TAG,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_ENTRY_BYTES,
    TABLE_STRIDE,
)
from cq.runtime.layout.words import Struct, name_words

_kept = Struct("KEPT")
KEPT_BYTES = _kept.word()
KEPT_ARRIVAL = _kept.word()
KEPT_VALUES = _kept.rest()  # then texts, and KEPT_BYTES again

LENGTH_BYTES = 8  # the length behind a row

name_words(globals())


@native("i64(i64, i64, i64, i64)", export=True)
def kept_new(intervals: int, table: int, rows: int, size: int) -> int:
    """The address of a new row of `size` bytes at the end of a list, for the caller to fill. 0 without memory, or if
    the list would be too long."""
    size += LENGTH_BYTES
    if list_room(table, rows, size) == 0:
        return 0
    used = ld_i64(rows, LIST_USED)
    kept = list_items(table, rows) + used
    arrival = ld_i64(intervals, INTERVALS_KEPT)
    st_i64(intervals, INTERVALS_KEPT, arrival + 1)
    st_i64(kept, KEPT_BYTES, size)
    st_i64(kept, KEPT_ARRIVAL, arrival)
    st_i64(kept + size - LENGTH_BYTES, 0, size)
    st_i64(rows, LIST_USED, used + size)
    return kept


@native("i64(i64, i64, i64)", export=True)
def kept_join(table: int, rows: int, later: int) -> int:
    """Merge another list into a list, by arrival, and return 1; 0 without memory. Neither is empty."""
    size = ld_i64(later, LIST_USED)
    if list_room(table, rows, size) == 0:
        return 0
    used = ld_i64(rows, LIST_USED)
    items = list_items(table, rows)
    other = list_items(table, later)
    stay = _bytes_before(items, used, ld_i64(other, KEPT_ARRIVAL))
    moved = used - stay
    spare = alloc(max_i64(moved, 8))
    if spare == 0:
        return 0
    copy(spare, items + stay, moved)
    _weave(items + stay, spare, moved, other, size)
    release(spare)
    st_i64(rows, LIST_USED, used + size)
    return 1


@native("i64(i64, i64, i64)", inline=True)
def _bytes_before(items: int, used: int, arrival: int) -> int:
    """How many bytes of the list are rows that came before this one."""
    end = used
    while end > 0:
        start = end - ld_i64(items + end - LENGTH_BYTES, 0)
        if ld_i64(items + start, KEPT_ARRIVAL) < arrival:
            break
        end = start
    return end


@native("void(i64, i64, i64, i64, i64)")
def _weave(target: int, first: int, first_bytes: int, second: int, second_bytes: int) -> None:
    """Write the rows of two lists to the target, by arrival."""
    left = first
    right = second
    left_end = first + first_bytes
    right_end = second + second_bytes
    while left < left_end or right < right_end:
        earlier = left
        if left == left_end or (right < right_end and ld_i64(right, KEPT_ARRIVAL) < ld_i64(left, KEPT_ARRIVAL)):
            earlier = right
        size = ld_i64(earlier, KEPT_BYTES)
        copy(target, earlier, size)
        target += size
        if earlier == left:
            left += size
        else:
            right += size


# -- loading ---------------------------------------------------------------------------------------------------------


@native("void(i64)")
def _count_on(intervals: int) -> None:
    """Make numbers of rows to come greater than those of kept rows."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    entry = ld_i64(table, TABLE_ENTRIES)
    stride = ld_i64(table, TABLE_STRIDE)
    greatest = ld_i64(intervals, INTERVALS_KEPT) - 1
    for _number in range(ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)):
        entry += stride
        if ld_i64(entry, ENTRY_TAG) != 0:
            rows = entry + ld_i64(table, TABLE_ENTRY_BYTES) - LIST_WORDS * 8
            end = list_items(table, rows) + ld_i64(rows, LIST_USED)
            last = end - ld_i64(end - LENGTH_BYTES, 0)
            greatest = max_i64(greatest, ld_i64(last, KEPT_ARRIVAL))
    st_i64(intervals, INTERVALS_KEPT, greatest + 1)


@native("i64(i64, i64)", export=True)
def interval_rows_load(intervals: int, source: int) -> int:
    """`Container.load`."""
    words = intervals_load(intervals, source)
    if words != 0:
        _count_on(intervals)
    return words


@native("i64(i64)", export=True)
def interval_rows_taken(intervals: int) -> int:
    """`Container.taken`."""
    _count_on(intervals)
    return intervals_taken(intervals)


register(
    Container(
        "interval_rows",
        intervals_arguments,
        new=intervals_new,
        drop=intervals_drop,
        saved_words=intervals_saved_words,
        save=intervals_save,
        load=interval_rows_load,
        arrivals=intervals_arrivals,
        taken=interval_rows_taken,
        held_bytes=intervals_held_bytes,
        settle=None,
        apart=None,
    )
)
