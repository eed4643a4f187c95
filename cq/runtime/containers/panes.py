"""Open panes of a window operator: each a record with its tables, in time order, recycled when closed.

The header (PANES_*) caches the pane of the last row: as long as rows stay inside [LO, HI) a kernel uses its tables
without a call. A record is a block: its two order words, then one table for the groups and one for each DISTINCT set.
Grid windows order by (pane start, 0). Attached windows, whose rows name their window, order by (window end, window
start), and there a pane is a window. Panes filled by several workers (cq/runtime/engine/ways/parts.py) and handed over
order by (pane start, worker's part), until they are merged.

Sharing: none, as for tables. Header words that hold addresses: PANES_RECORD, PANES_LIST, PANES_FREE, PANES_SHAPES,
PANES_SCRATCH, PANES_SLIDES; in records the table words.
"""

from __future__ import annotations

import struct

from cq.lang.calendar import months_of_time, time_of_months
from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, copy, floormod, ld_i64, move, pick, release, st_i64, zalloc
from cq.runtime.containers.birth_order import table_sort_births
from cq.runtime.containers.disjoint_panes import panes_drop_rounds
from cq.runtime.containers.pane_words import (
    PANE_FIRST,
    PANE_SECOND,
    PANE_TABLES,
    PANES_CAPACITY,
    PANES_COUNT,
    PANES_CURSOR,
    PANES_FREE,
    PANES_HI,
    PANES_LIST,
    PANES_LO,
    PANES_MONTHS,
    PANES_NEXT_END,
    PANES_OFFSET,
    PANES_OPENS,
    PANES_PANE,
    PANES_RECORD,
    PANES_SCRATCH,
    PANES_SHAPES,
    PANES_SHIFT_US,
    PANES_SIZE,
    PANES_SLIDE,
    PANES_SLIDES,
    PANES_TABLES,
    PANES_WORDS,
    SHAPE_ARRIVALS,
    SHAPE_ENTRY_WORDS,
    SHAPE_STRINGS,
    SHAPE_WORDS,
)
from cq.runtime.containers.protocol import ARRIVAL_WORDS, Apart, Container, Place, arrival_bits, register, string_bits
from cq.runtime.containers.slides import slides_drop, slides_held_bytes, slides_touch
from cq.runtime.containers.table_saving import table_arrivals, table_load, table_save, table_saved_words
from cq.runtime.containers.table_words import TABLE_ARRIVALS, TABLE_COUNT, TABLE_SHIFT
from cq.runtime.containers.tables import (
    table_clear,
    table_drop,
    table_held_bytes,
    table_new,
)
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.pipeline import Slot
from cq.runtime.layout.words import Struct

FIRST_PANES = 8


@native("i64(i64, i64, i64, i64, i64, i64, i64, i64)", export=True)
def panes_new(
    pane: int, offset: int, size: int, slide: int, months: int, shift_us: int, tables: int, shapes: int
) -> int:
    """No open panes; 0 without memory. shapes: -> SHAPE_WORDS a table, copied."""
    panes = zalloc(PANES_WORDS * 8)
    if panes == 0:
        return 0
    items = alloc(FIRST_PANES * 8)
    kept = alloc(tables * SHAPE_WORDS * 8)
    if items == 0 or kept == 0:
        if items != 0:
            release(items)
        if kept != 0:
            release(kept)
        release(panes)
        return 0
    copy(kept, shapes, tables * SHAPE_WORDS * 8)
    st_i64(panes, PANES_LIST, items)
    st_i64(panes, PANES_SHAPES, kept)
    st_i64(panes, PANES_CAPACITY, FIRST_PANES)
    st_i64(panes, PANES_NEXT_END, NEVER)
    st_i64(panes, PANES_PANE, pane)
    st_i64(panes, PANES_OFFSET, offset)
    st_i64(panes, PANES_SIZE, size)
    st_i64(panes, PANES_SLIDE, slide)
    st_i64(panes, PANES_MONTHS, months)
    st_i64(panes, PANES_SHIFT_US, shift_us)
    st_i64(panes, PANES_TABLES, tables)
    st_i64(panes, PANES_CURSOR, -1)
    return panes


@native("i64(i64)", export=True)
def panes_drop(panes: int) -> int:
    """Free everything; 0 is no panes."""
    if panes == 0:
        return 0
    items = ld_i64(panes, PANES_LIST)
    tables = ld_i64(panes, PANES_TABLES)
    for n in range(ld_i64(panes, PANES_COUNT)):
        _record_drop(ld_i64(items, n), tables)
    free = ld_i64(panes, PANES_FREE)
    while free != 0:
        following = ld_i64(free, PANE_FIRST)
        _record_drop(free, tables)
        free = following
    table_drop(ld_i64(panes, PANES_SCRATCH))
    slides_drop(ld_i64(panes, PANES_SLIDES))
    panes_drop_rounds(panes)
    release(items)
    release(ld_i64(panes, PANES_SHAPES))
    release(panes)
    return 0


@native("void(i64, i64)")
def _record_drop(record: int, tables: int) -> None:
    for n in range(tables):
        table_drop(ld_i64(record, PANE_TABLES + n))
    release(record)


@native("i64(i64, i64)")
def _step_of(panes: int, time_us: int) -> int:
    """The step of a time."""
    at = time_us - ld_i64(panes, PANES_SHIFT_US)
    return months_of_time(at) if ld_i64(panes, PANES_MONTHS) == 1 else at


@native("i64(i64, i64)")
def _time_of(panes: int, step: int) -> int:
    """When a step begins."""
    at = time_of_months(step) if ld_i64(panes, PANES_MONTHS) == 1 else step
    return at + ld_i64(panes, PANES_SHIFT_US)


@native("i64(i64, i64, i64)")
def _later(panes: int, time_us: int, steps: int) -> int:
    """The time at which a step begins, `steps` steps after a time at which one begins."""
    return _time_of(panes, _step_of(panes, time_us) + steps)


@native("i64(i64, i64)")
def _first_end(panes: int, start: int) -> int:
    """The step of the earliest end of a window after the step `start`."""
    slide = ld_i64(panes, PANES_SLIDE)
    past = floormod(start - ld_i64(panes, PANES_OFFSET) - ld_i64(panes, PANES_SIZE), slide)
    return start + slide - past


@native("i64(i64, i64)")
def first_end(panes: int, start_us: int) -> int:
    """The earliest end of a window after `start_us`, at which a pane begins."""
    return _time_of(panes, _first_end(panes, _step_of(panes, start_us)))


@native("i64(i64, i64)", export=True)
def panes_find(panes: int, time_us: int) -> int:
    """Make the pane of `time_us` the current one, opening it if need be, and return its record.

    0 without memory; -1 if no window covers the time (a slide longer than the size): then there is no current pane.
    """
    pane = ld_i64(panes, PANES_PANE)
    step = _step_of(panes, time_us)
    step -= floormod(step - ld_i64(panes, PANES_OFFSET), pane)
    last = _first_end(panes, step)
    if last - ld_i64(panes, PANES_SIZE) > step:
        st_i64(panes, PANES_LO, 0)
        st_i64(panes, PANES_HI, 0)
        return -1
    start = _time_of(panes, step)
    end = _time_of(panes, last)
    record = panes_record(panes, start, ld_i64(panes, PANES_OPENS))
    if record == 0:
        return 0
    st_i64(panes, PANES_LO, start)
    st_i64(panes, PANES_HI, _time_of(panes, step + pane))
    st_i64(panes, PANES_RECORD, record)
    if end < ld_i64(panes, PANES_NEXT_END):
        st_i64(panes, PANES_NEXT_END, end)
    return record


@native("i64(i64, i64, i64)", export=True)
def panes_attach(panes: int, end_us: int, start_us: int) -> int:
    """The record of the attached window [start_us, end_us), opened if need be; 0 without memory."""
    record = panes_record(panes, end_us, start_us)
    if record == 0:
        return 0
    st_i64(panes, PANES_RECORD, record)
    if end_us < ld_i64(panes, PANES_NEXT_END):
        st_i64(panes, PANES_NEXT_END, end_us)
    return record


@native("i64(i64, i64, i64)")
def panes_record(panes: int, first: int, second: int) -> int:
    """The open record with these order words, made if need be; 0 without memory."""
    slides_touch(ld_i64(panes, PANES_SLIDES), first)
    items = ld_i64(panes, PANES_LIST)
    count = ld_i64(panes, PANES_COUNT)
    place = count  # rows mostly belong to the latest panes: search from there
    while place > 0:
        record = ld_i64(items, place - 1)
        held = ld_i64(record, PANE_FIRST)
        if held < first or (held == first and ld_i64(record, PANE_SECOND) < second):
            break
        if held == first and ld_i64(record, PANE_SECOND) == second:
            return record
        place -= 1
    if _room(panes) == 0:
        return 0
    record = _fresh_record(panes)
    if record == 0:
        return 0
    st_i64(record, PANE_FIRST, first)
    st_i64(record, PANE_SECOND, second)
    _insert(panes, place, record)
    return record


@native("i64(i64)")
def _room(panes: int) -> int:
    """Make room in the list for one more record and return 1; 0 without memory."""
    count = ld_i64(panes, PANES_COUNT)
    if count == ld_i64(panes, PANES_CAPACITY):
        items = ld_i64(panes, PANES_LIST)
        longer = alloc(count * 16)
        if longer == 0:
            return 0
        copy(longer, items, count * 8)
        release(items)
        st_i64(panes, PANES_LIST, longer)
        st_i64(panes, PANES_CAPACITY, count * 2)
    return 1


@native("void(i64, i64, i64)")
def _insert(panes: int, place: int, record: int) -> None:
    """Insert the record into the list at `place`; there is room."""
    items = ld_i64(panes, PANES_LIST)
    count = ld_i64(panes, PANES_COUNT)
    move(items + (place + 1) * 8, items + place * 8, (count - place) * 8)
    st_i64(items, place, record)
    st_i64(panes, PANES_COUNT, count + 1)


@native("i64(i64, i64)", export=True)
def panes_remove(panes: int, place: int) -> int:
    """Close the record at `place`: empty it, and keep it for reuse."""
    items = ld_i64(panes, PANES_LIST)
    record = ld_i64(items, place)
    _recycle(panes, record)
    count = ld_i64(panes, PANES_COUNT) - 1
    move(items + place * 8, items + (place + 1) * 8, (count - place) * 8)
    st_i64(panes, PANES_COUNT, count)
    return 0


@native("void(i64, i64)")
def _recycle(panes: int, record: int) -> None:
    """Empty the record and make it the next one to be reused; if it was current, nothing is."""
    for t in range(ld_i64(panes, PANES_TABLES)):
        table_clear(ld_i64(record, PANE_TABLES + t))
    _leave(panes, record)
    st_i64(record, PANE_FIRST, ld_i64(panes, PANES_FREE))
    st_i64(panes, PANES_FREE, record)


@native("void(i64, i64)")
def _leave(panes: int, record: int) -> None:
    """Make sure that the record is not the current one."""
    if record == ld_i64(panes, PANES_RECORD):
        st_i64(panes, PANES_RECORD, 0)
        st_i64(panes, PANES_LO, 0)
        st_i64(panes, PANES_HI, 0)


@native("i64(i64, i64, i64, i64)", export=True)
def panes_hand_over(panes: int, target: int, part: int, watermark: int) -> int:
    """Hand panes that end at or before the watermark over to the target; return how many groups they hold.

    -1 without memory; such a call may be repeated.
    The panes belong to a grid, or are the one that never ends, whose time is NEVER. In the target they order by (pane
    start, part), part above 0, so that what several workers have filled of one pane is adjacent. For each the target
    gives an empty one back, if it has any.
    """
    groups = 0
    while ld_i64(panes, PANES_COUNT) > 0:
        record = ld_i64(ld_i64(panes, PANES_LIST), 0)
        start = ld_i64(record, PANE_FIRST)
        if _later(panes, start, ld_i64(panes, PANES_PANE)) > watermark:
            break
        if _room(target) == 0:
            return -1
        st_i64(record, PANE_SECOND, ld_i64(record, PANE_SECOND) + part)
        slides_touch(ld_i64(target, PANES_SLIDES), start)
        place = ld_i64(target, PANES_COUNT)
        while place > 0 and _is_before(record, ld_i64(ld_i64(target, PANES_LIST), place - 1)) == 1:
            place -= 1
        _insert(target, place, record)
        st_i64(target, PANES_NEXT_END, min(ld_i64(target, PANES_NEXT_END), _due(target, start)))
        _leave(panes, record)
        items = ld_i64(panes, PANES_LIST)
        count = ld_i64(panes, PANES_COUNT) - 1
        move(items, items + 8, count * 8)
        st_i64(panes, PANES_COUNT, count)
        spare = ld_i64(target, PANES_FREE)
        if spare != 0:
            st_i64(target, PANES_FREE, ld_i64(spare, PANE_FIRST))
            st_i64(spare, PANE_FIRST, ld_i64(panes, PANES_FREE))
            st_i64(panes, PANES_FREE, spare)
        groups += ld_i64(ld_i64(record, PANE_TABLES), TABLE_COUNT)
    st_i64(panes, PANES_NEXT_END, NEVER)
    if ld_i64(panes, PANES_COUNT) > 0:
        st_i64(panes, PANES_NEXT_END, _due(panes, ld_i64(ld_i64(ld_i64(panes, PANES_LIST), 0), PANE_FIRST)))
    return groups


@native("i64(i64, i64)")
def _due(panes: int, first: int) -> int:
    """When a handed-over pane is due: by its start; NEVER for the one that never ends."""
    if ld_i64(panes, PANES_SIZE) == 0:
        return NEVER
    return first_end(panes, first)


@native("i64(i64, i64)", export=True)
def panes_groups(panes: int, lasting: int) -> int:
    """How many groups the open panes hold; if `lasting` is 1, only those of the pane that never ends."""
    groups = 0
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        if lasting == 0 or ld_i64(record, PANE_FIRST) == NEVER:
            groups += ld_i64(ld_i64(record, PANE_TABLES), TABLE_COUNT)
    return groups


@native("i64(i64, i64)")
def _is_before(record: int, other: int) -> int:
    """1 if a record comes before another by its order words."""
    first = ld_i64(record, PANE_FIRST)
    held = ld_i64(other, PANE_FIRST)
    if first == held:
        return 1 if ld_i64(record, PANE_SECOND) < ld_i64(other, PANE_SECOND) else 0
    return 1 if first < held else 0


@native("i64(i64)")
def _fresh_record(panes: int) -> int:
    """An empty record, recycled if there is one; 0 without memory. A new one's tables are as large as the last's."""
    free = ld_i64(panes, PANES_FREE)
    if free != 0:
        st_i64(panes, PANES_FREE, ld_i64(free, PANE_FIRST))
        return free
    tables = ld_i64(panes, PANES_TABLES)
    shapes = ld_i64(panes, PANES_SHAPES)
    record = zalloc((PANE_TABLES + tables) * 8)
    if record == 0:
        return 0
    for n in range(tables):
        log_slots = 0
        if ld_i64(panes, PANES_COUNT) > 0:
            last = ld_i64(ld_i64(panes, PANES_LIST), ld_i64(panes, PANES_COUNT) - 1)
            log_slots = 32 - ld_i64(ld_i64(last, PANE_TABLES + n), TABLE_SHIFT)
        shape = shapes + n * SHAPE_WORDS * 8
        table = table_new(ld_i64(shape, SHAPE_ENTRY_WORDS), ld_i64(shape, SHAPE_STRINGS), log_slots)
        if table == 0:
            _record_drop(record, n)
            return 0
        st_i64(table, TABLE_ARRIVALS, ld_i64(shape, SHAPE_ARRIVALS))
        st_i64(record, PANE_TABLES + n, table)
    return record


@native("i64(i64)", export=True)
def panes_scratch(panes: int) -> int:
    """The empty table in which the panes of a closing window are merged; 0 without memory."""
    scratch = ld_i64(panes, PANES_SCRATCH)
    if scratch != 0:
        table_clear(scratch)
        return scratch
    shapes = ld_i64(panes, PANES_SHAPES)
    scratch = table_new(ld_i64(shapes, SHAPE_ENTRY_WORDS), ld_i64(shapes, SHAPE_STRINGS), 0)
    st_i64(panes, PANES_SCRATCH, scratch)
    return scratch


@native("i64(i64)", export=True)
def panes_closed(panes: int) -> int:
    """After the window that ends at PANES_NEXT_END was emitted: recycle panes that no later window needs, advance."""
    end = ld_i64(panes, PANES_NEXT_END)
    size = ld_i64(panes, PANES_SIZE)
    slide = ld_i64(panes, PANES_SLIDE)
    items = ld_i64(panes, PANES_LIST)
    count = ld_i64(panes, PANES_COUNT)
    gone = 0
    if size == 0:
        gone = 1
    else:
        kept = _later(panes, end, slide - size)
        while gone < count and ld_i64(ld_i64(items, gone), PANE_FIRST) < kept:
            gone += 1
    for n in range(gone):
        _recycle(panes, ld_i64(items, n))
    move(items, items + gone * 8, (count - gone) * 8)
    count -= gone
    st_i64(panes, PANES_COUNT, count)
    next_end = NEVER
    if count > 0:
        first = ld_i64(ld_i64(items, 0), PANE_FIRST)
        if size == 0:
            next_end = first
        else:
            next_end = first_end(panes, first)
            next_end = max(next_end, _later(panes, end, slide))
    st_i64(panes, PANES_NEXT_END, next_end)
    st_i64(panes, PANES_CURSOR, -1)
    return 0


@native("i64(i64)", export=True)
def panes_grows(panes: int) -> int:
    """After the window that ends at PANES_NEXT_END was emitted, and if the next one has its panes too: advance."""
    st_i64(panes, PANES_NEXT_END, _later(panes, ld_i64(panes, PANES_NEXT_END), ld_i64(panes, PANES_SLIDE)))
    st_i64(panes, PANES_CURSOR, -1)
    return 0


# -- as flat bytes, and back -----------------------------------------------------------------------------------------

_saved = Struct("SAVED")
SAVED_COUNT = _saved.word()  # open panes
SAVED_NEXT_END = _saved.word()
SAVED_HEAD = _saved.rest()


@native("i64(i64)", export=True)
def panes_saved_words(panes: int) -> int:
    """Words that `panes_save` writes."""
    words = SAVED_HEAD
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        words += PANE_TABLES
        for table in range(ld_i64(panes, PANES_TABLES)):
            words += table_saved_words(ld_i64(record, PANE_TABLES + table))
    return words


@native("i64(i64, i64)", export=True)
def panes_save(panes: int, target: int) -> int:
    """Write the open panes as words to `target`; return how many. No window is closing."""
    st_i64(target, SAVED_COUNT, ld_i64(panes, PANES_COUNT))
    st_i64(target, SAVED_NEXT_END, ld_i64(panes, PANES_NEXT_END))
    at = target + SAVED_HEAD * 8
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        st_i64(at, PANE_FIRST, ld_i64(record, PANE_FIRST))
        st_i64(at, PANE_SECOND, ld_i64(record, PANE_SECOND))
        at += PANE_TABLES * 8
        for table in range(ld_i64(panes, PANES_TABLES)):
            at += table_save(ld_i64(record, PANE_TABLES + table), at) * 8
    return (at - target) >> 3


@native("i64(i64, i64)", export=True)
def panes_load(panes: int, source: int) -> int:
    """Add saved panes to the open ones, groups in order of birth; return the words read.

    0 without memory or if entries differ in size.
    """
    at = source + SAVED_HEAD * 8
    for _number in range(ld_i64(source, SAVED_COUNT)):
        record = panes_record(panes, ld_i64(at, PANE_FIRST), ld_i64(at, PANE_SECOND))
        if record == 0:
            return 0
        at += PANE_TABLES * 8
        for table in range(ld_i64(panes, PANES_TABLES)):
            read = table_load(ld_i64(record, PANE_TABLES + table), at)
            if read == 0:
                return 0
            at += read * 8
        if table_sort_births(ld_i64(record, PANE_TABLES)) == 0:
            return 0
    st_i64(panes, PANES_NEXT_END, min(ld_i64(panes, PANES_NEXT_END), ld_i64(source, SAVED_NEXT_END)))
    return (at - source) >> 3


@native("i64(i64, i64, i64)", export=True)
def panes_take(panes: int, other: int, place: int) -> int:
    """The open record like the one at `place` of another container of the same shape, without its groups; 0 without
    memory.

    Records that several workers have filled for one pane of a grid, or for the one that never ends, become one.
    """
    record = ld_i64(ld_i64(other, PANES_LIST), place)
    st_i64(panes, PANES_NEXT_END, min(ld_i64(panes, PANES_NEXT_END), ld_i64(other, PANES_NEXT_END)))
    first = ld_i64(record, PANE_FIRST)
    attached = ld_i64(panes, PANES_SIZE) == 0 and first != NEVER
    return panes_record(panes, first, pick(attached, ld_i64(record, PANE_SECOND), 0))


@native("i64(i64)", export=True)
def panes_taken(panes: int) -> int:
    """`Container.taken`: put the groups of every pane in order of birth."""
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        if table_sort_births(ld_i64(record, PANE_TABLES)) == 0:
            return 0
    return 1


@native("i64(i64, i64)", export=True)
def panes_arrivals(panes: int, target: int) -> int:
    """`Container.arrivals`: the serials of the groups of all open panes."""
    count = 0
    for number in range(ld_i64(panes, PANES_COUNT)):
        record = ld_i64(ld_i64(panes, PANES_LIST), number)
        beside = 0 if target == 0 else target + count * ARRIVAL_WORDS * 8
        count += table_arrivals(ld_i64(record, PANE_TABLES), beside)
    return count


@native("i64(i64, i64)")
def _record_bytes(record: int, tables: int) -> int:
    held = (PANE_TABLES + tables) * 8
    for table in range(tables):
        held += table_held_bytes(ld_i64(record, PANE_TABLES + table))
    return held


@native("i64(i64)", export=True)
def panes_held_bytes(panes: int) -> int:
    """Memory the panes hold, recycled ones included; 0 is no panes."""
    if panes == 0:
        return 0
    tables = ld_i64(panes, PANES_TABLES)
    held = PANES_WORDS * 8 + table_held_bytes(ld_i64(panes, PANES_SCRATCH))
    held += slides_held_bytes(ld_i64(panes, PANES_SLIDES))
    for number in range(ld_i64(panes, PANES_COUNT)):
        held += _record_bytes(ld_i64(ld_i64(panes, PANES_LIST), number), tables)
    free = ld_i64(panes, PANES_FREE)
    while free != 0:
        held += _record_bytes(free, tables)
        free = ld_i64(free, PANE_FIRST)
    return held


def _arguments(slot: Slot, place: Place) -> tuple[int, ...]:
    shapes = [w for shape in slot.shapes for w in (shape.entry_words, string_bits(shape), arrival_bits(shape))]
    return (*slot.parameters, len(slot.shapes), place(struct.pack(f"<{len(shapes)}q", *shapes)))


register(
    Container(
        "panes",
        _arguments,
        new=panes_new,
        drop=panes_drop,
        saved_words=panes_saved_words,
        save=panes_save,
        load=panes_load,
        arrivals=panes_arrivals,
        taken=panes_taken,
        held_bytes=panes_held_bytes,
        settle=None,
        apart=Apart(panes_hand_over, panes_groups),
    )
)
