"""Grids of closing times: instants a period apart, in microseconds or in calendar months.

Sharing: none. A table of grids is made with the engine and not changed.
"""

from __future__ import annotations

from cq.lang.calendar import months_of_time, time_of_months
from cq.runtime.base.native import native
from cq.runtime.base.ops import add_ovf, floormod, ld_i64, min_i64, wadd, wsub
from cq.runtime.layout.abi import BEFORE_ALL, NEVER
from cq.runtime.layout.pipeline import Grid
from cq.runtime.layout.words import Struct

_grid = Struct("GRID")
GRID_PERIOD = _grid.word()  # in microseconds, or in months
GRID_OFFSET = _grid.word()
GRID_MONTHS = _grid.word()  # 1: months of the calendar
GRID_SHIFT = _grid.word()  # microseconds from the beginning of a month to a time of the grid
GRID_WORDS = _grid.size()


def grid_words(grid: Grid) -> tuple[int, int, int, int]:
    """A grid as GRID_WORDS."""
    return grid.period, grid.offset, int(grid.by_calendar), grid.shift_us


@native("i64(i64, i64, i64)")
def next_on_grids(table: int, grids: int, instant: int) -> int:
    """The first closing time after `instant`; NEVER if no grid has one. table: -> GRID_WORDS of each."""
    found = NEVER
    for grid in range(grids):
        entry = table + grid * GRID_WORDS * 8
        period = ld_i64(entry, GRID_PERIOD)
        offset = ld_i64(entry, GRID_OFFSET)
        if instant == BEFORE_ALL:
            return BEFORE_ALL + 1
        if ld_i64(entry, GRID_MONTHS) == 1:
            shift = ld_i64(entry, GRID_SHIFT)
            month = months_of_time(wsub(instant, shift))
            boundary = wadd(time_of_months(month + period - floormod(month - offset, period)), shift)
            if boundary > instant:  # else it is beyond 64 bits
                found = min_i64(found, boundary)
        else:
            past = floormod(wsub(floormod(instant, period), floormod(offset, period)), period)
            step = period - past
            if not add_ovf(instant, step):
                found = min_i64(found, wadd(instant, step))
    return found
