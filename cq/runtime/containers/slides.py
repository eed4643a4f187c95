"""Sums of panes that overlapping windows share: the elements of the two stacks of cq/runtime/containers/sliding.py.

A sum is a table like those of groups, beside the start of its first pane. Nothing here is state of its own: everything
can be recomputed from the panes, so none of it is saved.

Sharing: none, as for tables. Words that hold addresses: SLIDES_BACK, SLIDES_CHUNK, SLIDES_CHECKS, SLIDES_FREE,
SLIDES_INTO, SLIDES_SOURCE, SLIDES_MADE, SLIDES_NEXT; in the stacks the table of every sum.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, copy, ld_i64, release, st_i64, zalloc
from cq.runtime.containers.table_words import TABLE_ARRIVALS
from cq.runtime.containers.tables import table_clear, table_drop, table_held_bytes, table_new
from cq.runtime.layout.abi import BEFORE_ALL
from cq.runtime.layout.words import Struct, name_words

_stack = Struct("STACK")
STACK_ITEMS = _stack.word()  # -> SUM_WORDS a sum
STACK_COUNT = _stack.word()
STACK_CAPACITY = _stack.word()
STACK_WORDS = _stack.size()

_sum = Struct("SUM")
SUM_FIRST = _sum.word()  # the start of its first pane
SUM_TABLE = _sum.word()
SUM_WORDS = _sum.size()

_slides = Struct("SLIDES")
SLIDES_FROM = _slides.word()  # panes that start before this are in the front, the others in the back
SLIDES_TO = _slides.word()  # panes that start before this are in one of them; BEFORE_ALL: nothing is known
SLIDES_BACK = _slides.word()  # the sum of the back
SLIDES_CHUNK = _slides.words(STACK_WORDS)  # sums from each of the first panes of the front to its end, the first on top
SLIDES_CHECKS = _slides.words(STACK_WORDS)  # the same from the first of each stretch of the later panes
SLIDES_FREE = _slides.words(STACK_WORDS)  # empty tables
SLIDES_GROUPS = _slides.word()  # of the window that closed last
SLIDES_WAIT = _slides.word()  # windows to close before checking again whether sums pay
SLIDES_ENTRY_WORDS = _slides.word()
SLIDES_STRINGS = _slides.word()
SLIDES_ARRIVALS = _slides.word()
# while a window is closing
SLIDES_INTO = _slides.word()  # the table to be added to,
SLIDES_SOURCE = _slides.word()  # and the one to be added
SLIDES_PHASE = _slides.word()
SLIDES_PLACE = _slides.word()  # the next pane
SLIDES_LOW = _slides.word()  # the first pane, which is the last to be added
SLIDES_END = _slides.word()  # after the last pane that is in no sum yet
SLIDES_EVERY = _slides.word()  # panes of a stretch
SLIDES_MADE = _slides.word()  # the sum being made, which is in no stack, or 0
SLIDES_NEXT = _slides.word()  # the sum from the pane after it, which is in a stack, or 0
SLIDES_WORDS = _slides.size()

FIRST_SUMS = 32

name_words(globals())


@native("i64(i64, i64, i64)")
def slides_new(entry_words: int, strings: int, arrivals: int) -> int:
    """No sums; 0 without memory."""
    slides = zalloc(SLIDES_WORDS * 8)
    if slides == 0:
        return 0
    st_i64(slides, SLIDES_TO, BEFORE_ALL)
    st_i64(slides, SLIDES_ENTRY_WORDS, entry_words)
    st_i64(slides, SLIDES_STRINGS, strings)
    st_i64(slides, SLIDES_ARRIVALS, arrivals)
    back = slides_table(slides)
    if back == 0:
        slides_drop(slides)
        return 0
    st_i64(slides, SLIDES_BACK, back)
    return slides


@native("void(i64)")
def slides_drop(slides: int) -> None:
    """Free everything; 0 is no sums."""
    if slides != 0:
        table_drop(ld_i64(slides, SLIDES_BACK))
        if ld_i64(slides, SLIDES_MADE) != 0:  # the run has ended while a window was closing
            table_drop(ld_i64(slides, SLIDES_MADE))
        _drop_stack(slides + SLIDES_CHUNK * 8)
        _drop_stack(slides + SLIDES_CHECKS * 8)
        _drop_stack(slides + SLIDES_FREE * 8)
        release(slides)


@native("void(i64)")
def _drop_stack(stack: int) -> None:
    for n in range(ld_i64(stack, STACK_COUNT)):
        table_drop(ld_i64(ld_i64(stack, STACK_ITEMS), n * SUM_WORDS + SUM_TABLE))
    if ld_i64(stack, STACK_ITEMS) != 0:
        release(ld_i64(stack, STACK_ITEMS))


@native("void(i64, i64)")
def slides_touch(slides: int, first: int) -> None:
    """A pane that starts then will change: if a sum contains it, discard all. 0 is no sums."""
    if slides != 0 and first < ld_i64(slides, SLIDES_TO):
        st_i64(slides, SLIDES_TO, BEFORE_ALL)


@native("i64(i64)")
def slides_held_bytes(slides: int) -> int:
    """Memory the sums hold; 0 is none."""
    if slides == 0:
        return 0
    held = SLIDES_WORDS * 8 + table_held_bytes(ld_i64(slides, SLIDES_BACK))
    held += _stack_bytes(slides + SLIDES_CHUNK * 8) + _stack_bytes(slides + SLIDES_CHECKS * 8)
    return held + _stack_bytes(slides + SLIDES_FREE * 8)


@native("i64(i64)")
def _stack_bytes(stack: int) -> int:
    held = ld_i64(stack, STACK_CAPACITY) * SUM_WORDS * 8
    for n in range(ld_i64(stack, STACK_COUNT)):
        held += table_held_bytes(ld_i64(ld_i64(stack, STACK_ITEMS), n * SUM_WORDS + SUM_TABLE))
    return held


@native("i64(i64)")
def slides_table(slides: int) -> int:
    """An empty table for the caller to own; 0 without memory."""
    free = slides + SLIDES_FREE * 8
    count = ld_i64(free, STACK_COUNT)
    if count > 0:
        st_i64(free, STACK_COUNT, count - 1)
        return ld_i64(ld_i64(free, STACK_ITEMS), (count - 1) * SUM_WORDS + SUM_TABLE)
    table = table_new(ld_i64(slides, SLIDES_ENTRY_WORDS), ld_i64(slides, SLIDES_STRINGS), 0)
    if table != 0:
        st_i64(table, TABLE_ARRIVALS, ld_i64(slides, SLIDES_ARRIVALS))
    return table


@native("i64(i64, i64, i64)")
def slides_push(stack: int, first: int, table: int) -> int:
    """Push the sum onto the stack and return 1; 0 without memory."""
    count = ld_i64(stack, STACK_COUNT)
    items = ld_i64(stack, STACK_ITEMS)
    capacity = ld_i64(stack, STACK_CAPACITY)
    if count == capacity:
        capacity = 2 * capacity if capacity > 0 else FIRST_SUMS
        longer = alloc(capacity * SUM_WORDS * 8)
        if longer == 0:
            return 0
        if items != 0:
            copy(longer, items, count * SUM_WORDS * 8)
            release(items)
        items = longer
        st_i64(stack, STACK_ITEMS, items)
        st_i64(stack, STACK_CAPACITY, capacity)
    st_i64(items, count * SUM_WORDS + SUM_FIRST, first)
    st_i64(items, count * SUM_WORDS + SUM_TABLE, table)
    st_i64(stack, STACK_COUNT, count + 1)
    return 1


@native("i64(i64, i64, i64)", inline=True)
def slides_top(stack: int, word: int, none: int) -> int:
    """A word of the sum on top of the stack; `none` if it is empty."""
    count = ld_i64(stack, STACK_COUNT)
    return none if count == 0 else ld_i64(ld_i64(stack, STACK_ITEMS), (count - 1) * SUM_WORDS + word)


@native("i64(i64, i64)")
def slides_free(slides: int, table: int) -> int:
    """Empty the table, put it on the free list and return 1; 0 without memory, and it is gone."""
    table_clear(table)
    if slides_push(slides + SLIDES_FREE * 8, 0, table) == 0:
        table_drop(table)
        return 0
    return 1


@native("i64(i64, i64, i64)")
def slides_pop(slides: int, stack: int, before: int) -> int:
    """Pop sums from panes that start before this off the stack and return 1; 0 without memory."""
    while ld_i64(stack, STACK_COUNT) > 0 and slides_top(stack, SUM_FIRST, 0) < before:
        table = slides_top(stack, SUM_TABLE, 0)
        st_i64(stack, STACK_COUNT, ld_i64(stack, STACK_COUNT) - 1)
        if slides_free(slides, table) == 0:
            return 0
    return 1
