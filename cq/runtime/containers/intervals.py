"""Open intervals by key, several of one key at a time: sessions, each from its first row to a gap after its last one.

A dense table in which every open interval is an entry, those of one key in order of time (order.py says how to find
them), and a heap of the times at which they may close. An interval that grows changes only words of its entry: its item
in the heap then comes up too early, and is put back with the current time. One that another has absorbed (START is
NEVER, so no row touches it) stays until its item comes up.

What is due at an instant is listed by (START, ENTRY_FIRST), equal ones in order of birth; the emitter walks the list
(`intervals_first`), deletes one after the other (`intervals_closed`), and may stop in between. INTERVALS_NEXT is that
instant until the list is used up.

Items name entries by number, and a table that settles renumbers them: so this file settles before the table would, and
rebuilds the heap and the order from the entries, which contain everything. Loading does the same.

Sharing: none, as for tables. Header words that hold addresses: INTERVALS_TABLE, INTERVALS_HEAP, INTERVALS_DUE.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i64, min_i64, release, st_i64, zalloc
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.heap import (
    HEAP_ITEMS,
    HEAP_NEXT,
    ITEM_VALUE,
    heap_clear,
    heap_drop,
    heap_held_bytes,
    heap_new,
    heap_pop,
    heap_push,
    heap_replace,
)
from cq.runtime.containers.order import (
    INTERVAL_LAST,
    INTERVAL_START,
    order_add,
    order_drop_next,
    order_near,
    order_next,
    order_rebuild,
    order_remove,
    order_slot,
)
from cq.runtime.containers.protocol import Container, Place, arrival_bits, register, string_bits
from cq.runtime.containers.table_saving import table_arrivals, table_load, table_save, table_saved_words
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_ARRIVALS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_ORDER,
    TABLE_STRIDE,
)
from cq.runtime.containers.tables import (
    table_delete,
    table_drop,
    table_held_bytes,
    table_insert,
    table_make_dense,
    table_new,
    table_settle,
    table_settles,
)
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct, name_words

_intervals = Struct("INTERVALS")
INTERVALS_TABLE = _intervals.word()
INTERVALS_HEAP = _intervals.word()
INTERVALS_NEXT = _intervals.word()  # when the first may close; NEVER when none is open
INTERVALS_GAP = _intervals.word()  # an interval closes 1 us after LAST + gap
INTERVALS_DUE = _intervals.word()  # -> what is due at the current instant, and as much room again to sort it
INTERVALS_COUNT = _intervals.word()  # of these; 0: there is no current instant
INTERVALS_CURSOR = _intervals.word()  # the first one still to be emitted
INTERVALS_CAPACITY = _intervals.word()
INTERVALS_LATER = _intervals.word()  # of `intervals_touched`: the second interval that the row touches, or 0
INTERVALS_KEPT = _intervals.word()  # rows ever kept in them (interval_rows.py)
INTERVALS_WORDS = _intervals.size()

_due = Struct("DUE")
DUE_START = _due.word()
DUE_FIRST = _due.word()
DUE_NUMBER = _due.word()
DUE_BYTES = _due.size() * 8

FIRST_DUE = 32

name_words(globals())


@native("i64(i64, i64, i64, i64, i64)", export=True)
def intervals_new(entry_words: int, strings: int, arrivals: int, key_words: int, gap_us: int) -> int:
    """No open intervals; 0 without memory."""
    intervals = zalloc(INTERVALS_WORDS * 8)
    if intervals == 0:
        return 0
    table = table_new(entry_words, strings, 0)
    heap = heap_new()
    due = block_new(2 * FIRST_DUE * DUE_BYTES, 0)
    st_i64(intervals, INTERVALS_TABLE, table)
    st_i64(intervals, INTERVALS_HEAP, heap)
    st_i64(intervals, INTERVALS_DUE, due)
    st_i64(intervals, INTERVALS_NEXT, NEVER)
    st_i64(intervals, INTERVALS_GAP, gap_us)
    st_i64(intervals, INTERVALS_CAPACITY, FIRST_DUE)
    if heap != 0 and due != 0 and table != 0 and table_make_dense(table) == 1:
        st_i64(table, TABLE_ORDER, key_words + 1)
        st_i64(table, TABLE_ARRIVALS, arrivals)
        return intervals
    intervals_drop(intervals)
    return 0


@native("i64(i64)", export=True)
def intervals_drop(intervals: int) -> int:
    """Free everything; 0 is no intervals."""
    if intervals != 0:
        table_drop(ld_i64(intervals, INTERVALS_TABLE))
        heap_drop(ld_i64(intervals, INTERVALS_HEAP))
        block_drop(ld_i64(intervals, INTERVALS_DUE))
        release(intervals)
    return 0


@native("i64(i64, i64, i64, i64, i64)", export=True)
def intervals_touched(intervals: int, slot: int, time_us: int, since: int, to: int) -> int:
    """The earliest of the key's intervals that a row of this time touches, or 0.

    slot: of the index, which points to the key.  since, to: the times in reach of the row.  It touches at most two: the
    second one is INTERVALS_LATER and removed from the order, since the first will absorb it.
    """
    table = ld_i64(intervals, INTERVALS_TABLE)
    first = order_near(table, slot, time_us)
    second = 0
    if ld_i64(first, INTERVAL_START) > time_us:
        if ld_i64(first, INTERVAL_START) > to:
            first = 0
    elif ld_i64(first, INTERVAL_LAST) < time_us:
        second = order_next(table, first)
        if second != 0 and ld_i64(second, INTERVAL_START) > to:
            second = 0
        if ld_i64(first, INTERVAL_LAST) < since:
            first = second
            second = 0
        elif second != 0:
            order_drop_next(first, second)
    st_i64(intervals, INTERVALS_LATER, second)
    return first


@native("i64(i64, i64, i64, i64, i64)", export=True)
def intervals_insert(intervals: int, slot: int, hash32: int, arrival: int, time_us: int) -> int:
    """Address of the entry of a new interval, one row long, its other words 0; 0 without memory.

    slot: of the index, where the key is, or, without one, where the search for it has ended.
    The caller sets the key words. May move all entries: addresses and words of the table read before are stale.
    """
    table = ld_i64(intervals, INTERVALS_TABLE)
    index = ld_i64(table, TABLE_INDEX)
    peer = ld_i64(index, slot) & NUMBER_MASK
    if table_settles(table) == 1:
        peer = _settle(intervals, peer)
        index = 0
    entry = table_insert(table, hash32, arrival)
    if entry == 0:
        return 0
    number = ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)
    closes = _closing(intervals, time_us)
    if heap_push(ld_i64(intervals, INTERVALS_HEAP), closes, number, number) == 0:
        table_delete(table, entry)
        return 0
    st_i64(entry, INTERVAL_START, time_us)
    st_i64(entry, INTERVAL_LAST, time_us)
    if index != ld_i64(table, TABLE_INDEX):
        slot = order_slot(table, hash32, peer)
    order_add(table, slot, entry, number)
    st_i64(intervals, INTERVALS_NEXT, min_i64(ld_i64(intervals, INTERVALS_NEXT), closes))
    return entry


@native("i64(i64, i64)")
def _settle(intervals: int, number: int) -> int:
    """Remove dead and absorbed entries, and renumber heap and order. There is no current instant.

    Returns the new number of the open interval that had this one; 0 for 0.
    """
    table = ld_i64(intervals, INTERVALS_TABLE)
    stride = ld_i64(table, TABLE_STRIDE)
    entry = ld_i64(table, TABLE_ENTRIES)
    moved = number
    for n in range(1, ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD) + 1):
        entry += stride
        if ld_i64(entry, ENTRY_TAG) != 0 and ld_i64(entry, INTERVAL_START) == NEVER:
            table_delete(table, entry)
        if ld_i64(entry, ENTRY_TAG) == 0 and n < number:
            moved -= 1
    table_settle(table)
    _refill(intervals)  # there is room: it had as many items before
    return moved


@native("i64(i64)")
def _refill(intervals: int) -> int:
    """Rebuild the heap and the order from all entries, none of which is dead, and return 1; 0 without memory."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    heap = ld_i64(intervals, INTERVALS_HEAP)
    stride = ld_i64(table, TABLE_STRIDE)
    entry = ld_i64(table, TABLE_ENTRIES)
    order_rebuild(table)
    heap_clear(heap)
    for number in range(1, ld_i64(table, TABLE_COUNT) + 1):
        entry += stride
        if heap_push(heap, _closing(intervals, ld_i64(entry, INTERVAL_LAST)), number, number) == 0:
            return 0
    st_i64(intervals, INTERVALS_NEXT, ld_i64(heap, HEAP_NEXT))
    return 1


@native("i64(i64, i64)", inline=True)
def _closing(intervals: int, last_us: int) -> int:
    """When an interval closes if no row follows its last one; NEVER if time ends before that."""
    gap = ld_i64(intervals, INTERVALS_GAP)
    return min_i64(last_us, NEVER - 1 - gap) + gap + 1


# -- closing ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def intervals_due(intervals: int, instant: int) -> int:
    """List what closes at the instant, which is INTERVALS_NEXT, and return 1; 0 without memory."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    heap = ld_i64(intervals, INTERVALS_HEAP)
    entries = ld_i64(table, TABLE_ENTRIES)
    stride = ld_i64(table, TABLE_STRIDE)
    count = 0
    while ld_i64(heap, HEAP_NEXT) == instant:
        number = ld_i64(ld_i64(heap, HEAP_ITEMS), ITEM_VALUE)
        entry = entries + number * stride
        closes = _closing(intervals, ld_i64(entry, INTERVAL_LAST))
        if ld_i64(entry, INTERVAL_START) == NEVER:
            heap_pop(heap)
            table_delete(table, entry)
        elif closes > instant:
            heap_replace(heap, closes, number, number)
        elif _room(intervals, count) == 0:
            return 0
        else:
            heap_pop(heap)
            item = ld_i64(intervals, INTERVALS_DUE) + count * DUE_BYTES
            st_i64(item, DUE_START, ld_i64(entry, INTERVAL_START))
            st_i64(item, DUE_FIRST, ld_i64(entry, ENTRY_FIRST))
            st_i64(item, DUE_NUMBER, number)
            count += 1
    _sort(ld_i64(intervals, INTERVALS_DUE), count)
    st_i64(intervals, INTERVALS_COUNT, count)
    if count == 0:
        st_i64(intervals, INTERVALS_NEXT, ld_i64(heap, HEAP_NEXT))
    return 1


@native("i64(i64, i64)")
def _room(intervals: int, count: int) -> int:
    """Make room for more than `count` in the list, twice over, and return 1; 0 without memory."""
    capacity = ld_i64(intervals, INTERVALS_CAPACITY)
    if count < capacity:
        return 1
    longer = block_resize(ld_i64(intervals, INTERVALS_DUE), 4 * capacity * DUE_BYTES)
    if longer == 0:
        return 0
    st_i64(intervals, INTERVALS_DUE, longer)
    st_i64(intervals, INTERVALS_CAPACITY, 2 * capacity)
    return 1


@native("i64(i64)", export=True)
def intervals_first(intervals: int) -> int:
    """The entry that is to be emitted next."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    item = ld_i64(intervals, INTERVALS_DUE) + ld_i64(intervals, INTERVALS_CURSOR) * DUE_BYTES
    return ld_i64(table, TABLE_ENTRIES) + ld_i64(item, DUE_NUMBER) * ld_i64(table, TABLE_STRIDE)


@native("i64(i64, i64)", export=True)
def intervals_closed(intervals: int, entry: int) -> int:
    """Delete the first entry that is due, after it was emitted; after the last one time advances."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    cursor = ld_i64(intervals, INTERVALS_CURSOR)
    order_remove(table, entry, ld_i64(ld_i64(intervals, INTERVALS_DUE) + cursor * DUE_BYTES, DUE_NUMBER))
    table_delete(table, entry)
    cursor += 1
    if cursor == ld_i64(intervals, INTERVALS_COUNT):
        cursor = 0
        st_i64(intervals, INTERVALS_COUNT, 0)
        st_i64(intervals, INTERVALS_NEXT, ld_i64(ld_i64(intervals, INTERVALS_HEAP), HEAP_NEXT))
    st_i64(intervals, INTERVALS_CURSOR, cursor)
    return 0


@native("void(i64, i64)")
def _sort(due: int, count: int) -> None:
    """Sort the list by (start, first), stably: a merge of runs, unless it is in order anyway."""
    n = 1
    while n < count and _comes_later(due + (n - 1) * DUE_BYTES, due + n * DUE_BYTES) == 0:
        n += 1
    source = due
    target = due + count * DUE_BYTES
    width = 1 if n < count else count
    while width < count:
        low = 0
        while low < count:
            _merge_runs(source, target, low, min_i64(low + width, count), min_i64(low + 2 * width, count))
            low += 2 * width
        source, target = target, source
        width *= 2
    if source != due:
        copy(due, source, count * DUE_BYTES)


@native("void(i64, i64, i64, i64, i64)")
def _merge_runs(source: int, target: int, low: int, middle: int, high: int) -> None:
    """Merge the source's runs low..middle and middle..high, each in order, into items low..high of the target."""
    left = low
    right = middle
    for n in range(low, high):
        first = source + left * DUE_BYTES
        second = source + right * DUE_BYTES
        if left < middle and (right == high or _comes_later(first, second) == 0):
            copy(target + n * DUE_BYTES, first, DUE_BYTES)
            left += 1
        else:
            copy(target + n * DUE_BYTES, second, DUE_BYTES)
            right += 1


@native("i64(i64, i64)", inline=True)
def _comes_later(a: int, b: int) -> int:
    """Whether item a belongs after item b."""
    start = ld_i64(a, DUE_START)
    other = ld_i64(b, DUE_START)
    return 1 if start > other or (start == other and ld_i64(a, DUE_FIRST) > ld_i64(b, DUE_FIRST)) else 0


# -- as flat bytes, and back -----------------------------------------------------------------------------------------


@native("i64(i64)", export=True)
def intervals_saved_words(intervals: int) -> int:
    """The most words that `intervals_save` writes."""
    return table_saved_words(ld_i64(intervals, INTERVALS_TABLE))


@native("i64(i64, i64)", export=True)
def intervals_save(intervals: int, target: int) -> int:
    """Write the open intervals as words to `target`; return how many words. There is no current instant."""
    _settle(intervals, 0)
    return table_save(ld_i64(intervals, INTERVALS_TABLE), target)


@native("i64(i64, i64)", export=True)
def intervals_load(intervals: int, source: int) -> int:
    """Add the saved intervals to the open ones; return the words read, or 0 without memory or for other entries."""
    words = table_load(ld_i64(intervals, INTERVALS_TABLE), source)
    if words == 0 or _refill(intervals) == 0:
        return 0
    return words


@native("i64(i64)", export=True)
def intervals_taken(intervals: int) -> int:
    """`Container.taken`: the entries put into INTERVALS_TABLE are open intervals."""
    return _refill(intervals)


@native("i64(i64, i64)", export=True)
def intervals_arrivals(intervals: int, target: int) -> int:
    """`Container.arrivals`: the serials of the intervals' first rows."""
    return table_arrivals(ld_i64(intervals, INTERVALS_TABLE), target)


@native("i64(i64)", export=True)
def intervals_held_bytes(intervals: int) -> int:
    """Memory the intervals hold; 0 is none."""
    if intervals == 0:
        return 0
    due = 2 * ld_i64(intervals, INTERVALS_CAPACITY) * DUE_BYTES
    tables = table_held_bytes(ld_i64(intervals, INTERVALS_TABLE))
    return INTERVALS_WORDS * 8 + due + tables + heap_held_bytes(ld_i64(intervals, INTERVALS_HEAP))


def intervals_arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    """`Container.arguments`."""
    (shape,) = slot.shapes
    return (shape.entry_words, string_bits(shape), arrival_bits(shape), shape.key_words, *slot.parameters)


register(
    Container(
        "intervals",
        intervals_arguments,
        new=intervals_new,
        drop=intervals_drop,
        saved_words=intervals_saved_words,
        save=intervals_save,
        load=intervals_load,
        arrivals=intervals_arrivals,
        taken=intervals_taken,
        held_bytes=intervals_held_bytes,
        settle=None,
        apart=None,
    )
)
