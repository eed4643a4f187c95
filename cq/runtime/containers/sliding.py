"""How the panes of a closing window are added: one after the other, or as sums that windows share.

Two stacks make a queue of sums: among the panes of a window the later ones, which came one by one, are one sum (the
back), and each of the earlier ones (the front) has the sum from it to the end of the front. So a window is two sums,
whatever its length. When a window begins after the front, the panes of the back become the front, from the last one to
the first.

A sum for each pane would hold every group of the window as often as it has panes. So the front keeps such sums only for
its first panes, the chunk, and one from the first of each stretch of the later ones, from which the next chunk is made
when the windows reach it: about twice the root of the number of panes in sums, and each pane is added three times.

If each pane has few of the groups, all these sums would hold far more than the panes, and a window about as many groups
as its panes together: then panes are added one after the other.

Additions come step by step (`panes_step`), as only generated code can add groups: each time SLIDES_SOURCE to
SLIDES_INTO. The first one to an empty table is a copy, and is made here. Sums are combined from left to right in
another grouping, so the aggregates must merge exactly.

Source: as for cq/runtime/containers/frames.py; the sums at distances are ours.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import floormod, ld_i64, max_i64, min_i64, st_i64
from cq.runtime.containers.pane_words import (
    PANE_FIRST,
    PANE_TABLES,
    PANES_COUNT,
    PANES_LIST,
    PANES_SCRATCH,
    PANES_SHAPES,
    PANES_SLIDES,
    SHAPE_ARRIVALS,
    SHAPE_ENTRY_WORDS,
    SHAPE_STRINGS,
)
from cq.runtime.containers.slides import (
    SLIDES_BACK,
    SLIDES_CHECKS,
    SLIDES_CHUNK,
    SLIDES_END,
    SLIDES_EVERY,
    SLIDES_FROM,
    SLIDES_GROUPS,
    SLIDES_INTO,
    SLIDES_LOW,
    SLIDES_MADE,
    SLIDES_NEXT,
    SLIDES_PHASE,
    SLIDES_PLACE,
    SLIDES_SOURCE,
    SLIDES_TO,
    SLIDES_WAIT,
    STACK_COUNT,
    SUM_FIRST,
    SUM_TABLE,
    slides_new,
    slides_pop,
    slides_push,
    slides_table,
    slides_top,
)
from cq.runtime.containers.table_copying import table_copied
from cq.runtime.containers.table_words import TABLE_COUNT
from cq.runtime.containers.tables import table_clear
from cq.runtime.layout.abi import BEFORE_ALL, NEVER

FEWEST = 16  # the fewest panes for which sums pay
MOST_TIMES = 4  # the most groups in sums, as a multiple of those in panes

# phases
BEGIN, DIRECT, FORWARD, BACKWARD, ENTER, FRONT, BACK, END = 0, 1, 2, 3, 4, 5, 6, 7

ADD, READY, NO_MEMORY = 1, 0, -1  # results of a step


@native("i64(i64)", export=True)
def panes_begin(panes: int) -> int:
    """Begin the steps of a closing window and return 1; 0 without memory. Call it before PANES_SCRATCH is emptied."""
    slides = ld_i64(panes, PANES_SLIDES)
    if slides == 0:
        shape = ld_i64(panes, PANES_SHAPES)
        strings, arrivals = ld_i64(shape, SHAPE_STRINGS), ld_i64(shape, SHAPE_ARRIVALS)
        slides = slides_new(ld_i64(shape, SHAPE_ENTRY_WORDS), strings, arrivals)
        if slides == 0:
            return 0
        st_i64(panes, PANES_SLIDES, slides)
    if ld_i64(panes, PANES_SCRATCH) != 0:
        st_i64(slides, SLIDES_GROUPS, ld_i64(ld_i64(panes, PANES_SCRATCH), TABLE_COUNT))
    st_i64(slides, SLIDES_PHASE, BEGIN)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def panes_step(panes: int, start: int, instant: int, exact: int) -> int:
    """ADD: one table is to be added to another; READY: PANES_SCRATCH has the panes of [start, instant); NO_MEMORY.

    exact: 1 if sums may be combined in any grouping.
    """
    slides = ld_i64(panes, PANES_SLIDES)
    while True:
        phase = ld_i64(slides, SLIDES_PHASE)
        if phase == BEGIN:
            if _begin(panes, slides, start, instant, exact) == 0:
                return NO_MEMORY
        elif phase == DIRECT or phase == ENTER:
            if _next_pane(panes, slides, instant, exact, phase) == ADD:
                return ADD
        elif phase == FORWARD or phase == BACKWARD:
            done = _forward(panes, slides) if phase == FORWARD else _backward(panes, slides)
            if done != READY:
                return done
        elif phase == FRONT:
            st_i64(slides, SLIDES_PHASE, BACK)
            front = slides_top(slides + SLIDES_CHUNK * 8, SUM_TABLE, 0)
            if front != 0 and _add(slides, ld_i64(panes, PANES_SCRATCH), front) == ADD:
                return ADD
        elif phase == BACK:
            st_i64(slides, SLIDES_PHASE, END)
            if _add(slides, ld_i64(panes, PANES_SCRATCH), ld_i64(slides, SLIDES_BACK)) == ADD:
                return ADD
        else:
            return READY


@native("i64(i64, i64, i64)", inline=True)
def _add(slides: int, into: int, source: int) -> int:
    """READY if that was done, as nothing had been added before; ADD: these are the tables of the next addition."""
    if table_copied(into, source) == 1:
        return READY
    return _set(slides, into, source)


@native("i64(i64, i64, i64)", inline=True)
def _set(slides: int, into: int, source: int) -> int:
    """Set the tables of the next addition."""
    st_i64(slides, SLIDES_INTO, into)
    st_i64(slides, SLIDES_SOURCE, source)
    return ADD


@native("i64(i64, i64)", inline=True)
def _first(panes: int, place: int) -> int:
    """The start of a pane."""
    return ld_i64(ld_i64(ld_i64(panes, PANES_LIST), place), PANE_FIRST)


@native("i64(i64, i64)", inline=True)
def _table(panes: int, place: int) -> int:
    """The groups of a pane."""
    return ld_i64(ld_i64(ld_i64(panes, PANES_LIST), place), PANE_TABLES)


@native("i64(i64, i64)")
def _place_of(panes: int, time: int) -> int:
    """The place of the first pane that starts at the time or later: how many start before it."""
    low = 0
    high = ld_i64(panes, PANES_COUNT)
    while low < high:
        middle = (low + high) >> 1
        if _first(panes, middle) < time:
            low = middle + 1
        else:
            high = middle
    return low


# -- what to do ------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)")
def _begin(panes: int, slides: int, start: int, instant: int, exact: int) -> int:
    """Set the next phase; 0 without memory."""
    low = _place_of(panes, start)
    high = _place_of(panes, instant)
    chunk = slides + SLIDES_CHUNK * 8
    checks = slides + SLIDES_CHECKS * 8
    st_i64(slides, SLIDES_PLACE, low)
    if exact == 0 or ld_i64(slides, SLIDES_WAIT) > 0:
        st_i64(slides, SLIDES_WAIT, max_i64(ld_i64(slides, SLIDES_WAIT) - 1, 0))
        st_i64(slides, SLIDES_PHASE, DIRECT)
        return 1
    if start >= ld_i64(slides, SLIDES_FROM) or ld_i64(slides, SLIDES_TO) == BEFORE_ALL:
        table_clear(ld_i64(slides, SLIDES_BACK))
        st_i64(slides, SLIDES_TO, BEFORE_ALL)
        if slides_pop(slides, chunk, NEVER) == 0 or slides_pop(slides, checks, NEVER) == 0:
            return 0
        every = _distance(panes, slides, low, high)
        if every == 0:
            st_i64(slides, SLIDES_WAIT, high - low)
            st_i64(slides, SLIDES_PHASE, DIRECT)
            return 1
        st_i64(slides, SLIDES_FROM, instant)
        st_i64(slides, SLIDES_TO, instant)
        st_i64(slides, SLIDES_LOW, low)
        st_i64(slides, SLIDES_END, high)
        st_i64(slides, SLIDES_EVERY, every)
        st_i64(slides, SLIDES_PHASE, FORWARD)
        return 1
    if slides_pop(slides, chunk, start) == 0 or slides_pop(slides, checks, start) == 0:
        return 0
    if ld_i64(chunk, STACK_COUNT) == 0 and low < high and _first(panes, low) < ld_i64(slides, SLIDES_FROM):
        return _next_chunk(panes, slides, low)
    st_i64(slides, SLIDES_PLACE, _place_of(panes, ld_i64(slides, SLIDES_TO)))
    st_i64(slides, SLIDES_PHASE, ENTER)
    return 1


@native("i64(i64, i64, i64, i64)")
def _distance(panes: int, slides: int, low: int, high: int) -> int:
    """The number of these panes in a stretch: about the root of all; 0 if sums do not pay."""
    count = high - low
    groups = ld_i64(slides, SLIDES_GROUPS)
    if count < FEWEST or groups == 0:
        return 0
    every = 1
    while every * every < count:
        every += 1
    held = 0
    for place in range(low, high):
        held += ld_i64(_table(panes, place), TABLE_COUNT)
    return every if 2 * every * groups <= MOST_TIMES * held else 0


@native("i64(i64, i64, i64)")
def _next_chunk(panes: int, slides: int, low: int) -> int:
    """Make the panes of the front from this one to the next sum, or the end, the next chunk; 0 without memory."""
    checks = slides + SLIDES_CHECKS * 8
    own = 0
    if slides_top(checks, SUM_FIRST, NEVER) == _first(panes, low):
        own = slides_top(checks, SUM_TABLE, 0)
        st_i64(checks, STACK_COUNT, ld_i64(checks, STACK_COUNT) - 1)
    high = _place_of(panes, min_i64(slides_top(checks, SUM_FIRST, NEVER), ld_i64(slides, SLIDES_FROM)))
    st_i64(slides, SLIDES_PLACE, high)
    st_i64(slides, SLIDES_NEXT, slides_top(checks, SUM_TABLE, 0))
    st_i64(slides, SLIDES_LOW, low if own == 0 else low + 1)
    st_i64(slides, SLIDES_PHASE, BACKWARD)
    return 1 if own == 0 else slides_push(checks, _first(panes, low), own)


# -- panes one after the other ---------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64)")
def _next_pane(panes: int, slides: int, instant: int, exact: int, phase: int) -> int:
    """ADD: a pane is to be added, to the window or to the back; READY if it was, or after the last one."""
    place = ld_i64(slides, SLIDES_PLACE)
    if place < ld_i64(panes, PANES_COUNT) and _first(panes, place) < instant:
        st_i64(slides, SLIDES_PLACE, place + 1)
        into = ld_i64(panes, PANES_SCRATCH) if phase == DIRECT else ld_i64(slides, SLIDES_BACK)
        table = _table(panes, place)
        return _add(slides, into, table) if exact == 1 else _set(slides, into, table)
    if phase == DIRECT:
        st_i64(slides, SLIDES_PHASE, END)
    else:
        st_i64(slides, SLIDES_TO, instant)
        st_i64(slides, SLIDES_PHASE, FRONT)
    return READY


# -- sums from a pane to the end of the front ------------------------------------------------------------------------


@native("i64(i64, i64)")
def _forward(panes: int, slides: int) -> int:
    """ADD: the next pane of a stretch, or the sum after the stretch, to its sum; READY after the first stretch.

    The last stretch is made first. NO_MEMORY.
    """
    low = ld_i64(slides, SLIDES_LOW)
    end = ld_i64(slides, SLIDES_END)
    if end == low:
        st_i64(slides, SLIDES_NEXT, 0)
        return READY if _next_chunk(panes, slides, low) == 1 else NO_MEMORY
    every = ld_i64(slides, SLIDES_EVERY)
    begin = end - 1 - floormod(end - 1 - low, every)
    made = ld_i64(slides, SLIDES_MADE)
    if made == 0:
        made = slides_table(slides)
        if made == 0:
            return NO_MEMORY
        st_i64(slides, SLIDES_MADE, made)
        st_i64(slides, SLIDES_PLACE, begin)
    place = ld_i64(slides, SLIDES_PLACE)
    st_i64(slides, SLIDES_PLACE, place + 1)
    if place < end:
        return _add(slides, made, _table(panes, place))
    if place == end and ld_i64(slides, SLIDES_NEXT) != 0:
        return _add(slides, made, ld_i64(slides, SLIDES_NEXT))
    st_i64(slides, SLIDES_MADE, 0)
    st_i64(slides, SLIDES_NEXT, made)
    st_i64(slides, SLIDES_END, begin)
    return READY if slides_push(slides + SLIDES_CHECKS * 8, _first(panes, begin), made) == 1 else NO_MEMORY


@native("i64(i64, i64)")
def _backward(panes: int, slides: int) -> int:
    """ADD: the next pane, or the sum after it, to a new sum of the chunk; READY after the first one; NO_MEMORY."""
    place = ld_i64(slides, SLIDES_PLACE)
    made = ld_i64(slides, SLIDES_MADE)
    behind = ld_i64(slides, SLIDES_NEXT)
    if made == 0 and place == ld_i64(slides, SLIDES_LOW):
        return _chunk_is_made(panes, slides)
    if made == 0:
        made = slides_table(slides)
        if made == 0:
            return NO_MEMORY
        st_i64(slides, SLIDES_PLACE, place - 1)
        st_i64(slides, SLIDES_MADE, made)
        return _add(slides, made, _table(panes, place - 1))
    st_i64(slides, SLIDES_MADE, 0)
    st_i64(slides, SLIDES_NEXT, made)
    if slides_push(slides + SLIDES_CHUNK * 8, _first(panes, place), made) == 0:
        return NO_MEMORY
    return _add(slides, made, behind) if behind != 0 else READY


@native("i64(i64, i64)")
def _chunk_is_made(panes: int, slides: int) -> int:
    """READY: panes since the last window are next; NO_MEMORY."""
    checks = slides + SLIDES_CHECKS * 8
    low = ld_i64(slides, SLIDES_LOW)
    if low > 0 and slides_top(checks, SUM_FIRST, NEVER) == _first(panes, low - 1):
        own = slides_top(checks, SUM_TABLE, 0)  # the sum from the pane before was there already
        st_i64(checks, STACK_COUNT, ld_i64(checks, STACK_COUNT) - 1)
        if slides_push(slides + SLIDES_CHUNK * 8, _first(panes, low - 1), own) == 0:
            return NO_MEMORY
    st_i64(slides, SLIDES_NEXT, 0)
    st_i64(slides, SLIDES_PLACE, _place_of(panes, ld_i64(slides, SLIDES_TO)))
    st_i64(slides, SLIDES_PHASE, ENTER)
    return READY
