"""Worker-private panes: any worker counts rows of windows into panes of its own, merged when the window closes.

Two stages. Any worker takes any ticket of the first and runs its kernel on its own part, a state that no other worker
has meanwhile; the kernel emits no rows, only the ticket's events. The second, a loop, gets the events in ticket order.
At a CLOSE it collects, from every part, the panes that end at or before the watermark: they are complete, since all
tickets before have been run and a row after the CLOSE that belongs to them is late. Groups of the whole input are one
pane, which is collected at the last CLOSE, whose watermark is NEVER. It merges what belongs to one pane and emits.

The collector never waits: a part that is in use is marked, stays out of use when its worker is done with the ticket,
and is collected at the next visit. What is collected is moved, so the worker continues with later panes at once.

Merging a group costs as much as a few rows. If there are too few rows per group, parts are filled by key, each with
rows of groups that no other has (deals.py): panes of such parts are not merged, unless their time was filled in another
way as well (cq/runtime/containers/disjoint_panes.py). If groups are few, one part is filled. `next_filling` decides
which it is, at a close and while panes are open.

Roles     each worker fills its own part; one collects (the holder of the second stage's STAGE_BUSY).
Shared    PART_LOCK  FREE; BUSY: a worker fills it; MARKED: busy, and the collector wants it; HELD: the collector's
          PARTIALS_FILLING  how parts are filled: BY_KEY, ONE or ALL; a guess by any writer, no result depends on it
I1        a part is used by one thread at a time.                   tests: test_panes_of_workers_*, watched for races
I2        what is collected at a CLOSE is every row before it, once.     tests: test_panes_of_workers_*
I3        every part is free again once its panes are collected.                 tests: test_no_part_stays_held
Progress  no call waits. A worker that takes a ticket has a part first, so the head ticket always has one.
Order     a part's panes are plain memory: they pass by PART_LOCK, taken by CAS and given back by CAS or by a store (all
          seq_cst). A mark is a CAS from BUSY, giving back a CAS to FREE: one of them fails and sees the other's, so a
          marked part is left HELD. OWNER and PASSED tell which cache has the panes, FILLING how many parts are
          worth it: they may be read late.
Source    partial aggregation by worker: Koliousis et al., LightSaber (SIGMOD 2020), section 5; the order of groups and
          moving panes are ours.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import at_add, at_cas, at_load, at_store, call2, call4, ld_i64, max_i64, st_i64
from cq.runtime.flow.batch import FAILURE, ITEM_KIND
from cq.runtime.layout.abi import (
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_WORDS,
    BEFORE_ALL,
    SEGMENT_CLOSE,
    SEGMENT_KIND,
    SEGMENT_WATERMARK,
    SEGMENT_WORDS,
)
from cq.runtime.layout.words import Struct

_partials = Struct("PARTIALS")
PARTIALS_COUNT = _partials.word()  # states
PARTIALS_ROWS_IN = _partials.word()  # -> how many rows the first stage has taken
PARTIALS_SLOTS = _partials.word()  # -> SLOT_WORDS of each container that is handed over
PARTIALS_SLOT_COUNT = _partials.word()
PARTIALS_GROUPS = _partials.word()  # groups collected for the current item
PARTIALS_ROWS_A_GROUP = _partials.word()  # how many rows a group must have in each state for all to be filled
PARTIALS_ROWS_SEEN = _partials.word()  # rows the first stage had taken when the last item was collected
PARTIALS_MANY = _partials.word()  # how many groups a window must have for parts by key, if not all are filled
PARTIALS_ENTRY = _partials.word()  # the stage's function that hashes keys; 0: parts are never filled by key
# for tickets that are dealt (deals.py)
PARTIALS_ROUTE = _partials.word()  # -> u8[PARTITIONS]: the part of a virtual partition
PARTIALS_RING = _partials.word()  # -> the tasks of tickets that were dealt
PARTIALS_MASK = _partials.word()  # slots of the ring - 1
PARTIALS_DEALS = _partials.word()  # -> the deals of all tasks, as many as there are slots, or 0
PARTIALS_HASHES = _partials.word()  # -> u32 a row of a segment; of the holder of PARTIALS_TAKING
PARTIALS_HASHES_ROOM = _partials.word()
PARTIALS_TAKING = _partials.line()
PARTIALS_DEALT = _partials.line()
PARTIALS_FILLING = _partials.line()
PARTIALS_PARTS = _partials.rest()  # the states, PART_WORDS each

_part = Struct("PART")
PART_LOCK = _part.word()
PART_STATE = _part.word()
PART_COLLECTED = _part.word()  # 1: for the current item; the collector's
PART_OWNER = _part.word()  # the worker that had it last
PART_PASSED = _part.word()  # how often others have left it to its owner since
PART_ROWS = _part.word()  # rows it got since it was collected
# for tickets that are dealt (deals.py)
PART_NEXT = _part.word()
PART_FAILED = _part.word()
PART_NUMBER = _part.word()
PART_TASK = _part.word()  # the task of its kernel
PART_SELECTION = _part.word()  # -> i32 a row of its own: its number in the ticket
PART_ROWS_ROOM = _part.word()
PART_SEGMENTS = _part.word()
PART_SEGMENTS_ROOM = _part.word()
PART_BATCH = _part.words(BATCH_WORDS)
PART_WORDS = _part.lines()

_slot = Struct("SLOT")
SLOT_FILLED = _slot.word()  # where it is in a filled state
SLOT_COLLECTED = _slot.word()  # where its contents are collected, in the collector's state
SLOT_HAND_OVER = _slot.word()  # `Apart.hand_over`
SLOT_GROUPS = _slot.word()  # `Apart.groups`
SLOT_WORDS = _slot.size()

FREE, BUSY, MARKED, HELD = 0, 1, 2, 3
BY_KEY, ONE, ALL = 0, 1, 2  # of PARTIALS_FILLING
AGAIN, COLLECTED, NOTHING, UNCOLLECTED = 0, 1, 2, 3  # results of collecting

PATIENCE = 64  # vain visits: some microseconds, and fewer than a worker makes before it sleeps


# -- workers ---------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)")
def part_take(partials: int, worker: int) -> int:
    """A part that is the worker's until it gives it back; 0 if it finds none.

    Each worker has its own part, or all have the first, which one of them fills (`left_to_owner`).
    """
    number = worker
    if at_load(partials + PARTIALS_FILLING * 8) == ONE:
        number = 0
    part = partials + (PARTIALS_PARTS + number * PART_WORDS) * 8
    if at_load(part + PART_LOCK * 8) != FREE or left_to_owner(partials, worker) == 1:
        return 0
    return _part_taken(part, worker)


@native("i64(i64, i64)")
def part_behind(partials: int, worker: int) -> int:
    """A part that lacks its rows of a dealt ticket, now the worker's; 0 if it finds none."""
    count = ld_i64(partials, PARTIALS_COUNT)
    for turn in range(count):
        part = partials + (PARTIALS_PARTS + (worker + turn) % count * PART_WORDS) * 8
        takeable = is_behind(partials, part) == 1 and at_load(part + PART_LOCK * 8) == FREE
        if takeable and _part_taken(part, worker) != 0:
            return part
    return 0


@native("i64(i64, i64)")
def is_behind(partials: int, part: int) -> int:
    """1 if a ticket was dealt whose rows the part has not had."""
    return 1 if at_load(part + PART_NEXT * 8) < at_load(partials + PARTIALS_DEALT * 8) else 0


@native("i64(i64, i64)")
def _part_taken(part: int, worker: int) -> int:
    """The part, if it was free and is now the worker's, else 0."""
    if not at_cas(part + PART_LOCK * 8, FREE, BUSY):
        return 0
    at_store(part + PART_OWNER * 8, worker)
    at_store(part + PART_PASSED * 8, 0)
    return part


@native("i64(i64, i64)")
def left_to_owner(partials: int, worker: int) -> int:
    """1 if one part is filled, and a worker other than this one is to fill and collect it.

    The panes are in that worker's cache. This one does it all the same after a while of vain visits: then the other one
    sleeps, or is not running.
    """
    part = partials + PARTIALS_PARTS * 8
    if worker == 0 or at_load(partials + PARTIALS_FILLING * 8) != ONE or at_load(part + PART_OWNER * 8) == worker:
        return 0
    lock = at_load(part + PART_LOCK * 8)
    if lock == BUSY or lock == MARKED:
        return 1
    return 1 if at_add(part + PART_PASSED * 8, 1) < PATIENCE else 0


@native("void(i64)")
def part_give(part: int) -> None:
    """Free the part, or leave it to the collector if it asked."""
    if not at_cas(part + PART_LOCK * 8, BUSY, FREE):
        at_store(part + PART_LOCK * 8, HELD)


@native("void(i64, i64)")
def part_filled(part: int, rows: int) -> None:
    """Count this many more rows in the part, which the caller holds."""
    st_i64(part, PART_ROWS, ld_i64(part, PART_ROWS) + rows)


@native("i64(i64)")
def part_marked(part: int) -> int:
    """1 if the collector wants the part."""
    return 1 if at_load(part + PART_LOCK * 8) == MARKED else 0


# -- the collector ---------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64)")
def collect_parts(partials: int, state: int, item: int, mine: int) -> int:
    """Move all panes that the item's events close into the state: COLLECTED, or NOTHING; AGAIN: some are in use.

    UNCOLLECTED: out of memory, which ends the run.  mine: the part the caller holds, or 0.
    """
    watermark = _last_close(item)
    if watermark == BEFORE_ALL:
        return NOTHING
    missing = 0
    for number in range(ld_i64(partials, PARTIALS_COUNT)):
        part = partials + (PARTIALS_PARTS + number * PART_WORDS) * 8
        if ld_i64(part, PART_COLLECTED) == 0:
            lock = BUSY if part == mine else _hold(part)
            if lock == MARKED:
                missing = 1
            elif _collect(partials, part, number, state, watermark) == -1:
                return UNCOLLECTED  # the part stays HELD
            elif lock == HELD:
                at_store(part + PART_LOCK * 8, FREE)
            elif part == mine:
                at_cas(part + PART_LOCK * 8, MARKED, BUSY)  # the reason for the mark is gone
    if missing == 1:
        return AGAIN
    for number in range(ld_i64(partials, PARTIALS_COUNT)):
        st_i64(partials, PARTIALS_PARTS + number * PART_WORDS + PART_COLLECTED, 0)
    _decide_at_close(partials)
    return COLLECTED


@native("i64(i64)")
def _last_close(item: int) -> int:
    """The watermark of the item's last CLOSE; BEFORE_ALL if it has none."""
    if ld_i64(item, ITEM_KIND) == FAILURE:
        return BEFORE_ALL
    at = ld_i64(item, BATCH_SEGMENT_COUNT) - 1
    while at >= 0:
        segment = ld_i64(item, BATCH_SEGMENTS) + at * SEGMENT_WORDS * 8
        if ld_i64(segment, SEGMENT_KIND) == SEGMENT_CLOSE:
            return ld_i64(segment, SEGMENT_WATERMARK)
        at -= 1
    return BEFORE_ALL


@native("i64(i64)")
def _hold(part: int) -> int:
    """HELD if the collector may use the part, else MARKED: its holder will leave it to the collector."""
    while True:
        lock = at_load(part + PART_LOCK * 8)
        if lock == FREE and at_cas(part + PART_LOCK * 8, FREE, HELD):
            return HELD
        if lock == BUSY and at_cas(part + PART_LOCK * 8, BUSY, MARKED):
            return MARKED
        if lock > BUSY:
            return lock


@native("i64(i64, i64, i64, i64, i64)")
def _collect(partials: int, part: int, number: int, state: int, watermark: int) -> int:
    """Move the part's complete panes into the state; -1 without memory."""
    slots = ld_i64(partials, PARTIALS_SLOTS)
    for n in range(ld_i64(partials, PARTIALS_SLOT_COUNT)):
        slot = slots + n * SLOT_WORDS * 8
        filled = ld_i64(ld_i64(part, PART_STATE), ld_i64(slot, SLOT_FILLED))
        target = ld_i64(state, ld_i64(slot, SLOT_COLLECTED))
        groups = call4(ld_i64(slot, SLOT_HAND_OVER), filled, target, number + 1, watermark)
        if groups == -1:
            return -1
        st_i64(partials, PARTIALS_GROUPS, ld_i64(partials, PARTIALS_GROUPS) + groups)
    st_i64(part, PART_COLLECTED, 1)
    st_i64(part, PART_ROWS, 0)
    return 0


# -- how parts are filled ---------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def next_filling(filling: int, rows: int, groups: int, parts: int, closed: int, rows_a_group: int, many: int) -> int:
    """How to fill parts from now on, ALL, BY_KEY or ONE, when one or all of them have this many rows and groups.

    Merging pays if each group has `rows_a_group` rows in each part that has it. While ALL are filled nearly every part
    has it, and it was counted in each; else one has it, and it takes that many rows for each of the parts.
    closed: 0 while windows are open, and more is to come: then ALL are filled as soon as merging pays, and are still
    filled if there is half of what it takes; nothing else changes.
    many: the number of groups from which parts are filled by key if merging does not pay; -1 if they cannot be.
    """
    enough = rows_a_group * groups
    if filling != ALL:
        enough *= parts
        if closed == 0 and rows < enough:
            return filling
    elif closed == 0:
        rows *= 2
    if rows >= enough:
        return ALL
    return BY_KEY if many >= 0 and groups >= many else ONE


@native("i64(i64)")
def _many(partials: int) -> int:
    """The number of groups from which parts can be filled by key; -1 if they cannot be."""
    return ld_i64(partials, PARTIALS_MANY) if ld_i64(partials, PARTIALS_ENTRY) != 0 else -1


@native("void(i64)", export=True)
def filling_begin(partials: int) -> None:
    """Fill parts as suits many groups with few rows, until there are some: by key, or one if they cannot be.

    Groups of a whole input that one part had first would have to be merged at the end.
    """
    many = _many(partials)
    begun = next_filling(ONE, 0, max_i64(many, 1), 1, 1, ld_i64(partials, PARTIALS_ROWS_A_GROUP), many)
    at_store(partials + PARTIALS_FILLING * 8, begun)


@native("i64(i64)")
def is_filled_by_key(partials: int) -> int:
    """1 if each part gets the rows of its keys."""
    return 1 if at_load(partials + PARTIALS_FILLING * 8) == BY_KEY else 0


@native("void(i64, i64, i64, i64)")
def _decide(partials: int, rows: int, groups: int, closed: int) -> None:
    """Fill parts as `next_filling` decides for these rows and groups."""
    filling = at_load(partials + PARTIALS_FILLING * 8)
    parts, rows_a_group = ld_i64(partials, PARTIALS_COUNT), ld_i64(partials, PARTIALS_ROWS_A_GROUP)
    decided = next_filling(filling, rows, groups, parts, closed, rows_a_group, _many(partials))
    if decided != filling:
        at_store(partials + PARTIALS_FILLING * 8, decided)


@native("void(i64)")
def _decide_at_close(partials: int) -> None:
    """Decide by all rows and groups of the windows just collected."""
    groups = ld_i64(partials, PARTIALS_GROUPS)
    if groups == 0:
        return
    taken = at_load(ld_i64(partials, PARTIALS_ROWS_IN))
    rows = taken - ld_i64(partials, PARTIALS_ROWS_SEEN)
    st_i64(partials, PARTIALS_GROUPS, 0)
    st_i64(partials, PARTIALS_ROWS_SEEN, taken)
    _decide(partials, rows, groups, 1)


@native("void(i64, i64)")
def parts_balance(partials: int, part: int) -> None:
    """Decide by the open panes of a part, so that no window's end is needed to see that merging pays; nor, if ALL are
    filled, the end of the whole input to see that it does not: so of these only its groups count.

    part: held by the caller. While one is filled it has all groups; by key its share of them, as of the rows; else
    nearly all of the groups, and its share of the rows. Its own rows are compared: others may be collected already,
    or have rows of tickets whose rows this one has not had.
    """
    lasting = 1 if at_load(partials + PARTIALS_FILLING * 8) == ALL else 0
    groups = 0
    slots = ld_i64(partials, PARTIALS_SLOTS)
    for n in range(ld_i64(partials, PARTIALS_SLOT_COUNT)):
        slot = slots + n * SLOT_WORDS * 8
        filled = ld_i64(ld_i64(part, PART_STATE), ld_i64(slot, SLOT_FILLED))
        groups += call2(ld_i64(slot, SLOT_GROUPS), filled, lasting)
    if groups > 0:
        _decide(partials, ld_i64(part, PART_ROWS), groups, 0)
