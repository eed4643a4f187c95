"""Panes of one window whose groups are disjoint: no group is in two of them. They need no merging, only an order.

Workers may fill panes by key, each with the rows of its own part of the keys (cq/runtime/engine/ways/parts.py). Such a
pane has APART times the number of parts as its second order word, and when it is handed over the number of its part is
added. So panes of one time are disjoint if all were filled with the same number of parts; a pane with another second
word was filled with any rows, and may share groups with any other.

The groups of each pane are in order of birth. The next of all of them is the earliest of the panes' next groups: they
are ordered in rounds, as the window is emitted, so that no memory grows with the number of groups.

Sharing: none, as for tables. Words that hold addresses: ROUNDS_HEADS, ROUNDS_ORDER; of a head HEAD_TABLE, HEAD_ENTRY.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import alloc, ld_i64, pick, prefetch, release, st_i64, zalloc
from cq.runtime.containers.pane_words import (
    PANE_FIRST,
    PANE_SECOND,
    PANE_TABLES,
    PANES_COUNT,
    PANES_LIST,
    PANES_ROUNDS,
)
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.words import Struct, Word, name_words

APART = Word(1 << 32, "APART")  # more parts than there ever are
ROUND = Word(256, "ROUND")  # groups: 4 KiB of order, and their entries stay in the cache until they are emitted
AHEAD_GROUPS = 8  # of a pane: how far ahead an entry is fetched

_rounds = Struct("ROUNDS")
ROUNDS_PANES = _rounds.word()  # the number of panes of the window
ROUNDS_ROOM = _rounds.word()  # the number of heads there is room for
ROUNDS_HEADS = _rounds.word()  # -> HEAD_WORDS a pane
ROUNDS_ORDER = _rounds.words(2 * ROUND)  # of the groups of this round: entry and table
ROUNDS_WORDS = _rounds.size()

_head = Struct("HEAD")
HEAD_SERIAL = _head.word()  # of the first row of the pane's next group; NEVER: none is left
HEAD_ENTRY = _head.word()
HEAD_NUMBER = _head.word()
HEAD_TABLE = _head.word()
HEAD_WORDS = _head.size()

name_words(globals())


@native("i64(i64, i64)")
def panes_alike(panes: int, place: int) -> int:
    """How many open panes from `place` on have the same time."""
    items = ld_i64(panes, PANES_LIST)
    first = ld_i64(ld_i64(items, place), PANE_FIRST)
    count = ld_i64(panes, PANES_COUNT)
    last = place + 1
    while last < count and ld_i64(ld_i64(items, last), PANE_FIRST) == first:
        last += 1
    return last - place


@native("i64(i64, i64)", export=True)
def panes_apart(panes: int, place: int) -> int:
    """1 if the pane at `place`, the first of its time, is alone or disjoint from those beside it; 0: some may share
    groups."""
    items = ld_i64(panes, PANES_LIST)
    among = ld_i64(ld_i64(items, place), PANE_SECOND) // APART
    alike = panes_alike(panes, place)
    if alike == 1:
        return 1
    for number in range(place, place + alike):
        if among == 0 or ld_i64(ld_i64(items, number), PANE_SECOND) // APART != among:
            return 0
    return 1


@native("i64(i64)", export=True)
def panes_drop_rounds(panes: int) -> int:
    """Free what orders the groups of disjoint panes."""
    rounds = ld_i64(panes, PANES_ROUNDS)
    if rounds != 0:
        release(ld_i64(rounds, ROUNDS_HEADS))
        release(rounds)
    return 0


@native("i64(i64)")
def _rounds_for(panes: int) -> int:
    """The rounds, with room for the panes of the first time; 0 without memory."""
    rounds = ld_i64(panes, PANES_ROUNDS)
    if rounds == 0:
        rounds = zalloc(ROUNDS_WORDS * 8)
        if rounds == 0:
            return 0
        st_i64(panes, PANES_ROUNDS, rounds)
    count = panes_alike(panes, 0)
    st_i64(rounds, ROUNDS_PANES, count)
    if count > ld_i64(rounds, ROUNDS_ROOM):
        release(ld_i64(rounds, ROUNDS_HEADS))
        heads = alloc(count * HEAD_WORDS * 8)
        st_i64(rounds, ROUNDS_HEADS, heads)
        st_i64(rounds, ROUNDS_ROOM, count if heads != 0 else 0)
        if heads == 0:
            return 0
    return rounds


@native("void(i64, i64)")
def _advance(head: int, number: int) -> None:
    """Move the head to the group of its pane with this birth number."""
    table = ld_i64(head, HEAD_TABLE)
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    stride = ld_i64(table, TABLE_STRIDE)
    count = ld_i64(table, TABLE_COUNT)
    st_i64(head, HEAD_NUMBER, number)
    if number >= count:
        st_i64(head, HEAD_SERIAL, NEVER)
        return
    prefetch(entry_at(entries, births, stride, min(number + AHEAD_GROUPS, count - 1)))
    entry = entry_at(entries, births, stride, number)
    st_i64(head, HEAD_ENTRY, entry)
    st_i64(head, HEAD_SERIAL, ld_i64(entry, ENTRY_FIRST))


@native("i64(i64, i64)", export=True)
def groups_apart(panes: int, number: int) -> int:
    """How many groups the disjoint panes of the first time have, ready to be visited from group `number` on, which is 0
    or where it was stopped. 0: there is only one pane. -1 without memory.
    """
    count = panes_alike(panes, 0)
    if count == 1:
        return 0
    rounds = _rounds_for(panes)
    if rounds == 0:
        return -1
    groups = 0
    for place in range(count):
        head = ld_i64(rounds, ROUNDS_HEADS) + place * HEAD_WORDS * 8
        table = ld_i64(ld_i64(ld_i64(panes, PANES_LIST), place), PANE_TABLES)
        groups += ld_i64(table, TABLE_COUNT)
        if number == 0:
            st_i64(head, HEAD_TABLE, table)
            _advance(head, 0)
    return groups


@native("i64(i64)", export=True)
def panes_round(panes: int) -> int:
    """Put the next ROUND groups, or as many as are left, into ROUNDS_ORDER; return where it is."""
    rounds = ld_i64(panes, PANES_ROUNDS)
    heads = ld_i64(rounds, ROUNDS_HEADS)
    count = ld_i64(rounds, ROUNDS_PANES)
    order = rounds + ROUNDS_ORDER * 8
    for turn in range(ROUND):
        least = ld_i64(heads, HEAD_SERIAL)
        at = heads
        for place in range(1, count):
            head = heads + place * HEAD_WORDS * 8
            serial = ld_i64(head, HEAD_SERIAL)
            at = pick(serial < least, head, at)
            least = min(serial, least)
        if least == NEVER:
            return order
        st_i64(order, 2 * turn, ld_i64(at, HEAD_ENTRY))
        st_i64(order, 2 * turn + 1, ld_i64(at, HEAD_TABLE))
        _advance(at, ld_i64(at, HEAD_NUMBER) + 1)
    return order
