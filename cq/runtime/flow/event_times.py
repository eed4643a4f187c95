"""Computed event times: a function of the query's first stage over the rows of a loan, before admission.

Sharing: none. The feeder calls it, with a state of its own that no kernel sees.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, call6, ld_i64, release, st_i64, zalloc
from cq.runtime.flow.batch import LOAN_COLUMNS, LOAN_ROWS
from cq.runtime.layout.abi import BATCH_PORTS, BATCH_WORDS, COLUMN_WORDS, TIMES_THERE, TIMES_VALUES, TIMES_WORDS
from cq.runtime.layout.words import Struct

_clock = Struct("CLOCK")
CLOCK_BATCH = _clock.words(BATCH_WORDS)  # the rows as the function sees them
CLOCK_OUT = _clock.words(TIMES_WORDS)
CLOCK_TIMES, CLOCK_THERE = CLOCK_OUT + TIMES_VALUES, CLOCK_OUT + TIMES_THERE
CLOCK_ROOM = _clock.word()  # rows that these have room for
CLOCK_ROWS = _clock.word()
CLOCK_WORDS = _clock.rest()  # column tables, by port


@native("i64(i64)", export=True)
def clock_new(ports: int) -> int:
    """A clock for sources with ports below `ports`; 0 without memory."""
    clock = zalloc((CLOCK_WORDS + ports) * 8)
    if clock != 0:
        st_i64(clock, BATCH_PORTS, clock + CLOCK_WORDS * 8)
    return clock


@native("i64(i64, i64, i64)", export=True)
def clock_show(clock: int, port: int, loan: int) -> int:
    """Show the loan's rows to the clock, and make room for their times; 1, or 0 without memory.

    The function counts columns as kernels do: the event time itself precedes those of the loan.
    """
    rows = ld_i64(loan, LOAN_ROWS)
    if rows > ld_i64(clock, CLOCK_ROOM):
        release(ld_i64(clock, CLOCK_TIMES))
        release(ld_i64(clock, CLOCK_THERE))
        times = alloc(rows * 8)
        there = alloc(rows)
        st_i64(clock, CLOCK_TIMES, times)
        st_i64(clock, CLOCK_THERE, there)
        st_i64(clock, CLOCK_ROOM, rows if times != 0 and there != 0 else 0)
        if times == 0 or there == 0:
            return 0
    st_i64(clock, CLOCK_ROWS, rows)
    st_i64(ld_i64(clock, BATCH_PORTS), port, ld_i64(loan, LOAN_COLUMNS) - COLUMN_WORDS * 8)
    return 1


@native("i64(i64, i64, i64, i64, i64)", export=True)
def clock_run(clock: int, entry: int, state: int, constants: int, first: int) -> int:
    """Compute the times of all rows from `first` on; the number of rows, or the row at which the function failed."""
    return call6(entry, state, clock, first, ld_i64(clock, CLOCK_ROWS), clock + CLOCK_OUT * 8, constants)


@native("void(i64)", export=True)
def clock_drop(clock: int) -> None:
    """Free the clock."""
    release(ld_i64(clock, CLOCK_TIMES))
    release(ld_i64(clock, CLOCK_THERE))
    release(clock)
