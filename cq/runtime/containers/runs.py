"""The open windows of a join: the rows of each key and side are contiguous, and a window leaves as a whole.

A window is a pane (panes.py), identified by the time at which it is over. Its table has an entry for every key, which
leads to the *runs* of the key, one of left rows and one of right rows, by arrival. A run is one piece of the table's
arena; a row that finds it full moves it to a piece of twice the size, and the old place is not reused. Keys and long
strings of rows are in that arena too. Nothing in it is ever garbage to the table, so it is never compacted, and its
contents stay in place until the window is over: then the table is emptied at once, whatever it held.

So a row finds its key's entry, goes through the run of the other side from end to end, and is appended to its own run.
A row keeps only values that neither its key nor its window provides.

If rows leave that nothing has matched, a window has a second table, of the rows waiting for a match, by arrival: a
match is noted in the row. They leave when their window is over.

Sharing: none, as for tables. Header words that hold addresses: RUNS_TABLE, RUNS_RECORD, RUNS_PANES and, while a window
leaves, RUNS_KEYS, RUNS_ENTRY and RUNS_ROW.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, ld_i64, release, st_i64, zalloc
from cq.runtime.containers.pane_words import (
    PANE_FIRST,
    PANE_TABLES,
    PANES_COUNT,
    PANES_LIST,
    PANES_NEXT_END,
    SHAPE_ARRIVALS,
    SHAPE_ENTRY_WORDS,
    SHAPE_STRINGS,
    SHAPE_WORDS,
)
from cq.runtime.containers.panes import (
    panes_attach,
    panes_closed,
    panes_drop,
    panes_held_bytes,
    panes_new,
    panes_record,
    panes_remove,
)
from cq.runtime.containers.runs_words import (
    PANE_WAITS,
    ROW_MATCHED,
    ROWS_MASK,
    RUN_PLACE,
    RUN_ROWS,
    RUN_WORDS,
    RUNS_BYTES,
    RUNS_CURSOR,
    RUNS_DUE,
    RUNS_ENTRY,
    RUNS_HEAD,
    RUNS_KEYS,
    RUNS_NEXT,
    RUNS_OVER,
    RUNS_PANES,
    RUNS_RECORD,
    RUNS_RIGHT_BYTES,
    RUNS_RIGHT_STRINGS,
    RUNS_ROW,
    RUNS_SERIAL,
    RUNS_SIDE,
    RUNS_STRINGS,
    RUNS_TABLE,
    RUNS_WAIT,
    RUNS_WORDS,
    WAIT_KEY,
    WAIT_PLACE,
    WAIT_WORDS,
)
from cq.runtime.containers.strings import hash_word
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    TABLE_ARENA,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_insert
from cq.runtime.layout.abi import NEVER


@native("i64(i64, i64, i64, i64, i64, i64, i64, i64)", export=True)
def runs_new(
    entry_words: int, keys: int, left_words: int, left: int, right_words: int, right: int, head: int, wait: int
) -> int:
    """No open windows; 0 without memory. keys, left, right: bit w: word w of an entry, or of a row of that side, begins
    a string.  head: the word of an entry where its runs begin.  wait: 1 if rows may wait for a match.
    """
    runs = zalloc(RUNS_WORDS * 8)
    shapes = alloc(2 * SHAPE_WORDS * 8)
    if runs != 0 and shapes != 0:
        _shape(shapes, entry_words, keys)
        _shape(shapes + SHAPE_WORDS * 8, WAIT_WORDS, 0)
        st_i64(runs, RUNS_PANES, panes_new(0, 0, 0, 0, 0, 0, 1 + wait, shapes))
    if shapes != 0:
        release(shapes)
    if runs == 0 or ld_i64(runs, RUNS_PANES) == 0:
        runs_drop(runs)
        return 0
    st_i64(runs, RUNS_HEAD, head)
    st_i64(runs, RUNS_WAIT, wait)
    st_i64(runs, RUNS_BYTES, left_words * 8)
    st_i64(runs, RUNS_RIGHT_BYTES, right_words * 8)
    st_i64(runs, RUNS_STRINGS, left)
    st_i64(runs, RUNS_RIGHT_STRINGS, right)
    st_i64(runs, RUNS_NEXT, NEVER)
    record = panes_record(ld_i64(runs, RUNS_PANES), 0, 0)  # so that there is a table to read before a row comes
    if record == 0:
        runs_drop(runs)
        return 0
    panes_remove(ld_i64(runs, RUNS_PANES), 0)
    _at_hand(runs, record, NEVER)
    return runs


@native("void(i64, i64, i64)")
def _shape(shape: int, entry_words: int, strings: int) -> None:
    st_i64(shape, SHAPE_ENTRY_WORDS, entry_words)
    st_i64(shape, SHAPE_STRINGS, strings)
    st_i64(shape, SHAPE_ARRIVALS, 0)


@native("i64(i64)", export=True)
def runs_drop(runs: int) -> int:
    """Free everything; 0 is no runs."""
    if runs != 0:
        panes_drop(ld_i64(runs, RUNS_PANES))
        release(runs)
    return 0


@native("i64(i64)", export=True)
def runs_held_bytes(runs: int) -> int:
    """Memory the windows hold, including what is kept for later ones; 0 is no runs."""
    return 0 if runs == 0 else RUNS_WORDS * 8 + panes_held_bytes(ld_i64(runs, RUNS_PANES))


@native("void(i64, i64, i64)")
def _at_hand(runs: int, record: int, due: int) -> None:
    """Make the window of a pane the current one; due NEVER: there is none, though its table may be read."""
    st_i64(runs, RUNS_RECORD, record)
    st_i64(runs, RUNS_TABLE, ld_i64(record, PANE_TABLES))
    st_i64(runs, RUNS_DUE, due)


# -- rows come -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def runs_window(runs: int, due: int) -> int:
    """Make the window that is over at `due` current, opening it if need be, and return 1; 0 without memory."""
    panes = ld_i64(runs, RUNS_PANES)
    record = panes_attach(panes, due, 0)
    if record == 0:
        return 0
    _at_hand(runs, record, due)
    st_i64(runs, RUNS_NEXT, ld_i64(panes, PANES_NEXT_END))
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def runs_wait(runs: int, key: int, place: int, serial: int) -> int:
    """Let the row in the current window wait for a match, after those that do, and return 1; 0 without memory.

    key: the number of its key's entry, and in the lowest bit its side.  place: in its run.
    """
    return _wait(ld_i64(ld_i64(runs, RUNS_RECORD), PANE_WAITS), key, place, serial)


@native("i64(i64, i64, i64, i64)")
def _wait(waits: int, key: int, place: int, serial: int) -> int:
    """Add one that waits and return 1; 0 without memory. It is never searched for: its hash only gives its place."""
    wait = table_insert(waits, hash_word(ld_i64(waits, TABLE_COUNT)), serial)
    if wait == 0:
        return 0
    st_i64(wait, WAIT_KEY, key)
    st_i64(wait, WAIT_PLACE, place)
    return 1


@native("i64(i64, i64)")
def nth_entry(table: int, n: int) -> int:
    """The n-th entry by birth."""
    return entry_at(ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)


# -- windows leave ---------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def runs_over(runs: int, instant: int) -> int:
    """Make the next row that leaves alone current and return 1; 0: every window that is over at the instant is gone.

    It stays the next one until RUNS_CURSOR is incremented. They come by window, then by arrival.
    """
    panes = ld_i64(runs, RUNS_PANES)
    while ld_i64(panes, PANES_COUNT) != 0 and ld_i64(panes, PANES_NEXT_END) <= instant:
        record = ld_i64(ld_i64(panes, PANES_LIST), 0)
        if ld_i64(runs, RUNS_WAIT) == 1 and _next_alone(runs, record) == 1:
            return 1
        if record == ld_i64(runs, RUNS_RECORD):
            st_i64(runs, RUNS_DUE, NEVER)
        panes_closed(panes)
        st_i64(runs, RUNS_CURSOR, 0)
    st_i64(runs, RUNS_NEXT, ld_i64(panes, PANES_NEXT_END))
    return 0


@native("i64(i64, i64)")
def _next_alone(runs: int, record: int) -> int:
    """Make the next row of the window that waits in vain current and return 1; 0: there is none."""
    waits = ld_i64(record, PANE_WAITS)
    keys = ld_i64(record, PANE_TABLES)
    n = ld_i64(runs, RUNS_CURSOR)
    while n < ld_i64(waits, TABLE_COUNT):
        wait = nth_entry(waits, n)
        side = ld_i64(wait, WAIT_KEY) & 1
        entry = nth_entry(keys, ld_i64(wait, WAIT_KEY) >> 1)
        first = ld_i64(keys, TABLE_ARENA) + ld_i64(entry, ld_i64(runs, RUNS_HEAD) + side * RUN_WORDS + RUN_PLACE)
        row = first + ld_i64(wait, WAIT_PLACE) * ld_i64(runs, RUNS_BYTES + side)
        if ld_i64(row, ROW_MATCHED) == 0:
            st_i64(runs, RUNS_CURSOR, n)
            st_i64(runs, RUNS_OVER, ld_i64(record, PANE_FIRST))
            st_i64(runs, RUNS_KEYS, keys)
            st_i64(runs, RUNS_ENTRY, entry)
            st_i64(runs, RUNS_ROW, row)
            st_i64(runs, RUNS_SIDE, side)
            st_i64(runs, RUNS_SERIAL, ld_i64(wait, ENTRY_FIRST))
            return 1
        n += 1
    return 0


@native("i64(i64, i64)")
def run_rows(entry: int, word: int) -> int:
    """The number of rows of the run whose words begin at this one of an entry."""
    return ld_i64(entry, word + RUN_ROWS) & ROWS_MASK
