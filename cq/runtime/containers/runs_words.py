"""The words of the windows of a join, of the runs of rows in them and of the rows that wait; how a row joins a run.

Generated code reads these. cq/runtime/containers/runs.py explains how they work together.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import copy, fill, ld_i64, max_i64, shl, shr_u, st_i64, udiv
from cq.runtime.containers.pane_words import PANE_TABLES
from cq.runtime.containers.strings import table_arena
from cq.runtime.containers.table_words import ENTRY_KEYS, TABLE_ARENA, TABLE_ARENA_CAPACITY, TABLE_ARENA_USED
from cq.runtime.layout.words import Struct, beside, name_words

_runs = Struct("RUNS")
RUNS_NEXT = _runs.word()  # when the first of the windows is over; NEVER: none is open
RUNS_DUE = _runs.word()  # when the current window, that of the last row, is over; NEVER: there is none
RUNS_TABLE = _runs.word()  # its keys; without a current window, those of any window
RUNS_RECORD = _runs.word()  # its pane
RUNS_PANES = _runs.word()  # the windows
RUNS_HEAD = _runs.word()  # the word of a key's entry where its runs begin
RUNS_WAIT = _runs.word()  # 1: a window has a second table, the rows that wait
RUNS_BYTES = _runs.word()  # of a left row
RUNS_RIGHT_BYTES = _runs.word()
RUNS_STRINGS = _runs.word()  # bit w: word w of a left row begins a string
RUNS_RIGHT_STRINGS = _runs.word()
RUNS_CURSOR = _runs.word()  # how many waiting rows of the first window have left, or need not leave
# the row that leaves alone: its window's time and keys, the entry of its key, where it is, its side and its serial
RUNS_OVER = _runs.word()
RUNS_KEYS = _runs.word()
RUNS_ENTRY = _runs.word()
RUNS_ROW = _runs.word()
RUNS_SIDE = _runs.word()
RUNS_SERIAL = _runs.word()
RUNS_WORDS = _runs.size()

_run = Struct("RUN")
RUN_PLACE = _run.word()  # where its rows begin in the arena of the table
RUN_ROWS = _run.word()  # how many rows it has; above that, how many it has room for
RUN_WORDS = _run.size()

KEY_NUMBER = 2 * RUN_WORDS  # after the runs of both sides: the entry's number by birth, if rows wait

PANE_WAITS = beside(PANE_TABLES, 1, "WAITS")  # of a pane, if rows wait: their table

_row = Struct("ROW")  # the start of a row that may wait; its values follow
# 0: it has no match. If rows leave alone, the bytes of it and of rows with a match right behind it
ROW_MATCHED = _row.word()
ROW_WAITING = _row.size()

_wait = Struct("WAIT", after=ENTRY_KEYS)
WAIT_KEY = _wait.word()  # the number of its key's entry; the lowest bit is its side
WAIT_PLACE = _wait.word()  # its place in the run
WAIT_WORDS = _wait.size()

ROWS_MASK = 4294967295
MOST_ROWS = 1 << 31
LINE = 64  # bytes: a run begins at a cache line, and has room for one line at first if that holds a row

name_words(globals())


@native("i64(i64, i64, i64, i64)", inline=True)
def run_add(table: int, run: int, size: int, texts: int) -> int:
    """The address of a new last row of a run, all its words 0; 0 without memory.

    size: bytes of a row.  texts: bytes of its future long strings: storing them in the table moves nothing.
    """
    rows = ld_i64(run, RUN_ROWS)
    full = rows & ROWS_MASK == shr_u(rows, 32)
    if full or (texts != 0 and texts > ld_i64(table, TABLE_ARENA_CAPACITY) - ld_i64(table, TABLE_ARENA_USED)):
        if run_room(table, run, size, texts) == 0:
            return 0
        rows = ld_i64(run, RUN_ROWS)
    st_i64(run, RUN_ROWS, rows + 1)
    return ld_i64(table, TABLE_ARENA) + ld_i64(run, RUN_PLACE) + (rows & ROWS_MASK) * size


@native("i64(i64, i64, i64, i64)", export=True)
def run_room(table: int, run: int, size: int, texts: int) -> int:
    """Make room for a row in the run, and for this many bytes of its strings in the table; 1, or 0 without memory."""
    rows = ld_i64(run, RUN_ROWS) & ROWS_MASK
    room = shr_u(ld_i64(run, RUN_ROWS), 32)
    if rows < room:
        return table_arena(table, texts)
    wanted = max_i64(room * 2, max_i64(udiv(LINE, size), 1))
    if wanted > MOST_ROWS or table_arena(table, LINE + wanted * size + texts) == 0:
        return 0
    used = ld_i64(table, TABLE_ARENA_USED)
    arena = ld_i64(table, TABLE_ARENA)
    place = (used + LINE - 1) & -LINE
    fill(arena + used, 0, place - used)  # saved bytes are the same in every run
    copy(arena + place, arena + ld_i64(run, RUN_PLACE), rows * size)
    fill(arena + place + rows * size, 0, (wanted - rows) * size)
    st_i64(table, TABLE_ARENA_USED, place + wanted * size)
    st_i64(run, RUN_PLACE, place)
    st_i64(run, RUN_ROWS, shl(wanted, 32) | rows)
    return 1
