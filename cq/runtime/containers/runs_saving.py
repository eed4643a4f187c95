"""The windows of a join as flat words and back, and key by key into the windows of another one.

Sharing: none, as for tables. The engine calls these while nothing runs.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, ld_i64, shl, shr_u, st_i64
from cq.runtime.containers.birth_order import table_sort_births
from cq.runtime.containers.pane_words import PANE_FIRST, PANE_TABLES, PANES_COUNT, PANES_LIST
from cq.runtime.containers.panes import SAVED_COUNT as SAVED_PANES
from cq.runtime.containers.panes import SAVED_HEAD as PANES_HEAD
from cq.runtime.containers.panes import panes_save, panes_saved_words
from cq.runtime.containers.protocol import Container, Place, put_arrival, register, string_bits
from cq.runtime.containers.runs import (
    nth_entry,
    run_rows,
    runs_drop,
    runs_held_bytes,
    runs_new,
    runs_window,
)
from cq.runtime.containers.runs_words import (
    KEY_NUMBER,
    PANE_WAITS,
    RUN_PLACE,
    RUN_ROWS,
    RUN_WORDS,
    RUNS_BYTES,
    RUNS_HEAD,
    RUNS_PANES,
    RUNS_RECORD,
    RUNS_STRINGS,
    RUNS_WAIT,
    WAIT_KEY,
    run_add,
)
from cq.runtime.containers.strings import INLINE_STRING_BYTES, words_move
from cq.runtime.containers.table_saving import (
    SAVED_BYTES,
    SAVED_COUNT,
    SAVED_HEAD,
    table_load,
    table_take,
)
from cq.runtime.containers.table_words import ENTRY_FIRST, TABLE_ARENA, TABLE_COUNT
from cq.runtime.layout.pipeline import Slot


@native("i64(i64)", export=True)
def runs_saved_words(runs: int) -> int:
    """Words that `runs_save` writes."""
    return panes_saved_words(ld_i64(runs, RUNS_PANES))


@native("i64(i64, i64)", export=True)
def runs_save(runs: int, target: int) -> int:
    """Write the open windows as words to `target`; return how many. None is leaving."""
    return panes_save(ld_i64(runs, RUNS_PANES), target)


@native("i64(i64, i64)", export=True)
def runs_load(runs: int, source: int) -> int:
    """Append what was saved to the windows; return the words read, or 0 without memory or for other rows.

    No key of a window may be there already.
    """
    at = source + PANES_HEAD * 8
    for _window in range(ld_i64(source, SAVED_PANES)):
        if runs_window(runs, ld_i64(at, PANE_FIRST)) == 0:
            return 0
        at += PANE_TABLES * 8
        record = ld_i64(runs, RUNS_RECORD)
        keys = ld_i64(record, PANE_TABLES)
        before = ld_i64(keys, TABLE_COUNT)
        words = _load_keys(runs, keys, at)
        if words == 0:
            return 0
        at += words * 8
        if ld_i64(runs, RUNS_WAIT) == 1:
            words = _load_waits(ld_i64(record, PANE_WAITS), at, before)
            if words == 0:
                return 0
            at += words * 8
    return (at - source) >> 3


@native("i64(i64, i64, i64)")
def _load_keys(runs: int, keys: int, source: int) -> int:
    """Append the saved keys, with their runs, to the table; return the words read, or 0 as for `runs_load`."""
    before = ld_i64(keys, TABLE_COUNT)
    words = table_load(keys, source)
    arena = source + SAVED_HEAD * 8 + ld_i64(source, SAVED_COUNT) * ld_i64(source, SAVED_BYTES)
    if words != 0:
        for n in range(before, ld_i64(keys, TABLE_COUNT)):
            if _take_runs(runs, keys, n, arena) == 0:
                return 0
    return words


@native("i64(i64, i64, i64)")
def _load_waits(waits: int, source: int, before: int) -> int:
    """Append saved waiting rows to those that wait, by arrival; return the words read, or 0 without memory. before: how
    many keys the window had already."""
    first = ld_i64(waits, TABLE_COUNT)
    words = table_load(waits, source)
    if words == 0:
        return 0
    for n in range(first, ld_i64(waits, TABLE_COUNT)):
        wait = nth_entry(waits, n)
        st_i64(wait, WAIT_KEY, ld_i64(wait, WAIT_KEY) + 2 * before)
    return words if table_sort_births(waits) == 1 else 0


@native("i64(i64, i64, i64, i64)")
def _take_runs(runs: int, keys: int, n: int, arena: int) -> int:
    """Copy the runs of the n-th entry, which has their places in another arena, and return 1; 0 without memory."""
    entry = nth_entry(keys, n)
    for side in range(2):
        run = entry + (ld_i64(runs, RUNS_HEAD) + side * RUN_WORDS) * 8
        rows = run_rows(run, 0)
        row = arena + ld_i64(run, RUN_PLACE)
        size = ld_i64(runs, RUNS_BYTES + side)
        strings = ld_i64(runs, RUNS_STRINGS + side)
        st_i64(run, RUN_PLACE, 0)
        st_i64(run, RUN_ROWS, 0)
        for _row in range(rows):
            made = run_add(keys, run, size, _long_bytes(row, strings))
            if made == 0:
                return 0
            copy(made, row, size)
            if words_move(keys, made, strings, arena) == 0:
                return 0
            row += size
    if ld_i64(runs, RUNS_WAIT) == 1:
        st_i64(entry, ld_i64(runs, RUNS_HEAD) + KEY_NUMBER, n)
    return 1


@native("i64(i64, i64)")
def _long_bytes(row: int, strings: int) -> int:
    """Bytes of the long strings of a row."""
    found = 0
    word = 0
    left = strings
    while left != 0:
        length = ld_i64(row, word) & 4294967295
        if left & 1 == 1 and length > INLINE_STRING_BYTES:
            found += length
        left = shr_u(left, 1)
        word += 1
    return found


# -- key by key ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def runs_take_window(runs: int, other: int, place: int) -> int:
    """Make the pane like the one at `place` of other windows, without its keys, current; 0 without memory."""
    record = ld_i64(ld_i64(ld_i64(other, RUNS_PANES), PANES_LIST), place)
    return ld_i64(runs, RUNS_RECORD) if runs_window(runs, ld_i64(record, PANE_FIRST)) == 1 else 0


@native("i64(i64, i64, i64, i64)", export=True)
def runs_take(runs: int, other: int, entry: int, numbers: int) -> int:
    """Copy the key of an entry of another window's table, with its rows, to the current one and return 1; 0 without
    memory.

    The caller knows that the key is absent. numbers: if rows wait, gets 1 + the new number at the entry's number.
    """
    keys = ld_i64(ld_i64(runs, RUNS_RECORD), PANE_TABLES)
    n = ld_i64(keys, TABLE_COUNT)
    if table_take(keys, other, entry) == 0:
        return 0
    if ld_i64(runs, RUNS_WAIT) == 1:
        st_i64(numbers, ld_i64(entry, ld_i64(runs, RUNS_HEAD) + KEY_NUMBER), n + 1)
    return _take_runs(runs, keys, n, ld_i64(other, TABLE_ARENA))


@native("i64(i64, i64, i64)", export=True)
def runs_take_waits(runs: int, record: int, numbers: int) -> int:
    """Let those that wait in another window wait in the current one, if their keys were taken; 1, or 0 without memory.

    `runs_taken` must be called before the runs are used.
    """
    if ld_i64(runs, RUNS_WAIT) == 0:
        return 1
    waits = ld_i64(record, PANE_WAITS)
    target = ld_i64(ld_i64(runs, RUNS_RECORD), PANE_WAITS)
    for n in range(ld_i64(waits, TABLE_COUNT)):
        key = ld_i64(nth_entry(waits, n), WAIT_KEY)
        number = ld_i64(numbers, key >> 1)
        if number != 0:
            made = table_take(target, waits, nth_entry(waits, n))
            if made == 0:
                return 0
            st_i64(made, WAIT_KEY, shl(number - 1, 1) | (key & 1))
    return 1


@native("i64(i64)", export=True)
def runs_taken(runs: int) -> int:
    """`Container.taken`: rows wait by arrival."""
    panes = ld_i64(runs, RUNS_PANES)
    for place in range(ld_i64(panes, PANES_COUNT) * ld_i64(runs, RUNS_WAIT)):
        if table_sort_births(ld_i64(ld_i64(ld_i64(panes, PANES_LIST), place), PANE_WAITS)) == 0:
            return 0
    return 1


@native("i64(i64, i64)", export=True)
def runs_arrivals(runs: int, target: int) -> int:
    """`Container.arrivals`: the serials of waiting rows. Equal ones are in order of arrival; of two that came first in
    different lanes, from one event, the left one is before the right one."""
    panes = ld_i64(runs, RUNS_PANES)
    count = 0
    for place in range(ld_i64(panes, PANES_COUNT) * ld_i64(runs, RUNS_WAIT)):
        waits = ld_i64(ld_i64(ld_i64(panes, PANES_LIST), place), PANE_WAITS)
        first = 0
        for n in range(ld_i64(waits, TABLE_COUNT)):
            wait = nth_entry(waits, n)
            if ld_i64(wait, ENTRY_FIRST) != ld_i64(nth_entry(waits, first), ENTRY_FIRST):
                first = n
            put_arrival(target, count, wait + ENTRY_FIRST * 8, shl(n - first, 1) | (ld_i64(wait, WAIT_KEY) & 1))
            count += 1
    return count


def _arguments(slot: Slot, _place: Place) -> tuple[int, ...]:
    shapes = [w for shape in slot.shapes for w in (shape.entry_words, string_bits(shape))]
    return (*shapes, *slot.parameters)


register(
    Container(
        "runs",
        _arguments,
        new=runs_new,
        drop=runs_drop,
        saved_words=runs_saved_words,
        save=runs_save,
        load=runs_load,
        arrivals=runs_arrivals,
        taken=runs_taken,
        held_bytes=runs_held_bytes,
        settle=None,
        apart=None,
    )
)
