"""Open intervals of one key in order of time, so that a row meets its neighbours however many there are.

For each key the index of the table (TABLE_ORDER is set) points to one entry, the root of a binary search tree by START
of all entries of the key. The tree is a splay tree: the last one that was looked up is its root. So a key with one open
interval is found like an entry of any table, and so is the newest of many, which most rows are for; any other takes
O(log n) steps, amortised. The links are numbers in a word of the entries: nothing is allocated, and when numbers
change, or entries are loaded from saved bytes, the trees are rebuilt from the entries, which contain everything
(`order_rebuild`).

Intervals of one key do not overlap: one that grows keeps its place.

Sharing: none, as for tables.
Source: Sleator, Tarjan: Self-Adjusting Binary Search Trees, JACM 32 (1985), section 4: top-down splaying.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import fill, ld_i64, ld_u32, shl, shr_u, st_i64, st_u32
from cq.runtime.containers.equal_keys import same_words
from cq.runtime.containers.table_words import (
    ENTRY_KEYS,
    ENTRY_TAG,
    NUMBER_MASK,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_ORDER,
    TABLE_SHIFT,
    TABLE_STRIDE,
)
from cq.runtime.containers.tables import HASH_MASK, table_unpoint
from cq.runtime.layout.abi import NEVER
from cq.runtime.layout.words import Struct, name_words

_interval = Struct("INTERVAL", after=ENTRY_KEYS)
INTERVAL_START = _interval.word()  # time of its first row; NEVER: absorbed, in no tree
INTERVAL_LAST = _interval.word()  # time of its last row
INTERVAL_LINKS = _interval.word()  # numbers of its children: before it in the low half, after it in the high half; or 0
INTERVAL_KEYS = _interval.rest()

LINKED_AFTER = 1 << 32  # links from here on: it has a child after it
BEFORE, AFTER = 0, 1

name_words(globals())


@native("i64(i64, i64)", inline=True)
def _link(entry: int, side: int) -> int:
    """The number of its child on that side, or 0."""
    return ld_u32(entry + INTERVAL_LINKS * 8, side)


@native("void(i64, i64, i64)", inline=True)
def _set_link(entry: int, side: int, number: int) -> None:
    st_u32(entry + INTERVAL_LINKS * 8, side, number)


@native("i64(i64, i64, i64)", inline=True)
def _entry(entries: int, stride: int, number: int) -> int:
    return entries + number * stride


@native("i64(i64, i64, i64)")
def _splay(table: int, number: int, time: int) -> int:
    """The number of the new root of the tree with this root: one that starts at the time, or next to it; 0 for 0.

    The entry numbered 0 is unused: meanwhile the trees before and after the time hang from it.
    """
    if number == 0:
        return 0
    spare = ld_i64(table, TABLE_ENTRIES)
    stride = ld_i64(table, TABLE_STRIDE)
    st_i64(spare, INTERVAL_LINKS, 0)
    before = spare  # the last of the first tree, and the first of the second
    after = spare
    node = _entry(spare, stride, number)
    while ld_i64(node, INTERVAL_START) != time:
        side = AFTER if ld_i64(node, INTERVAL_START) < time else BEFORE
        child = _link(node, side)
        if child == 0:
            break
        below = _entry(spare, stride, child)
        start = ld_i64(below, INTERVAL_START)
        if (side == AFTER and start < time) or (side == BEFORE and start > time):
            _set_link(node, side, _link(below, 1 - side))
            _set_link(below, 1 - side, number)
            number = child
            node = below
            child = _link(node, side)
            if child == 0:
                break
        if side == AFTER:
            _set_link(before, AFTER, number)
            before = node
        else:
            _set_link(after, BEFORE, number)
            after = node
        number = child
        node = _entry(spare, stride, number)
    _set_link(before, AFTER, _link(node, BEFORE))
    _set_link(after, BEFORE, _link(node, AFTER))
    _set_link(node, BEFORE, _link(spare, AFTER))
    _set_link(node, AFTER, _link(spare, BEFORE))
    return number


@native("i64(i64, i64, i64)")
def order_near(table: int, slot: int, time: int) -> int:
    """The last entry that starts at or before the time, of the key in this slot of the index; else its first one.

    It becomes the root.
    """
    index = ld_i64(table, TABLE_INDEX)
    item = ld_i64(index, slot)
    number = _splay(table, item & NUMBER_MASK, time)
    root = _numbered(table, number)
    if ld_i64(root, INTERVAL_START) > time and _link(root, BEFORE) != 0:
        before = _splay(table, _link(root, BEFORE), time)  # its whole tree starts before: nothing is after it
        _set_link(root, BEFORE, 0)
        root = _numbered(table, before)
        _set_link(root, AFTER, number)
        number = before
    st_i64(index, slot, item & ~NUMBER_MASK | number)
    return root


@native("i64(i64, i64)")
def order_next(table: int, root: int) -> int:
    """The next entry in time after a root, or 0. It becomes the root's child, with no child before it."""
    number = _splay(table, _link(root, AFTER), ld_i64(root, INTERVAL_START))
    _set_link(root, AFTER, number)
    return 0 if number == 0 else _numbered(table, number)


@native("void(i64, i64)")
def order_drop_next(root: int, following: int) -> None:
    """Remove the entry that `order_next` returned for the root from the tree."""
    _set_link(root, AFTER, _link(following, AFTER))


@native("void(i64, i64, i64, i64)")
def order_add(table: int, slot: int, entry: int, number: int) -> None:
    """Add the entry with this number, which has a start and was in no tree, to the tree of its key, in this slot."""
    index = ld_i64(table, TABLE_INDEX)
    item = ld_i64(index, slot)
    st_i64(entry, INTERVAL_LINKS, 0)
    if item != 0:
        time = ld_i64(entry, INTERVAL_START)
        root = _splay(table, item & NUMBER_MASK, time)
        old = _numbered(table, root)
        side = BEFORE if ld_i64(old, INTERVAL_START) < time else AFTER  # where the old root will be
        _set_link(entry, side, root)
        _set_link(entry, 1 - side, _link(old, 1 - side))
        _set_link(old, 1 - side, 0)
    st_i64(index, slot, shl(ld_i64(entry, ENTRY_TAG) & HASH_MASK, 32) | number)


@native("void(i64, i64, i64)")
def order_remove(table: int, entry: int, number: int) -> None:
    """Remove the entry with this number, the first of its key, from its tree; its time and its key are unchanged."""
    index = ld_i64(table, TABLE_INDEX)
    slot = order_slot(table, ld_i64(entry, ENTRY_TAG) & HASH_MASK, number)
    item = ld_i64(index, slot)
    time = ld_i64(entry, INTERVAL_START)
    if item == 0:  # there was no memory for its key
        return
    if item & NUMBER_MASK != number:
        _splay(table, item & NUMBER_MASK, time)
    assert _link(entry, BEFORE) == 0, "an interval closes before an earlier one of its key"
    root = _link(entry, AFTER)
    if root == 0:
        table_unpoint(table, slot)
    else:
        st_i64(index, slot, item & ~NUMBER_MASK | root)


@native("void(i64)")
def order_rebuild(table: int) -> None:
    """Rebuild the index: every live entry that is not absorbed is in the tree of its key, and nothing else is there."""
    fill(ld_i64(table, TABLE_INDEX), 0, (ld_i64(table, TABLE_MASK) + 1) * 8)
    for number in range(1, ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD) + 1):
        entry = _numbered(table, number)
        tag = ld_i64(entry, ENTRY_TAG)
        if tag != 0 and ld_i64(entry, INTERVAL_START) != NEVER:
            order_add(table, order_slot(table, tag & HASH_MASK, number), entry, number)


@native("i64(i64, i64, i64)")
def order_slot(table: int, hash32: int, number: int) -> int:
    """The slot that points to the tree of the key of the entry with this number, or the free slot for it.

    number: 0 for a key that has no tree.
    """
    index = ld_i64(table, TABLE_INDEX)
    mask = ld_i64(table, TABLE_MASK)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    item = ld_i64(index, slot)
    while item != 0:
        if shr_u(item, 32) == hash32 and number != 0 and _same_key(table, item & NUMBER_MASK, number) == 1:
            break
        slot = (slot + 1) & mask
        item = ld_i64(index, slot)
    return slot


@native("i64(i64, i64)", inline=True)
def _numbered(table: int, number: int) -> int:
    """The address of the entry with this number."""
    return ld_i64(table, TABLE_ENTRIES) + number * ld_i64(table, TABLE_STRIDE)


@native("i64(i64, i64, i64)")
def _same_key(table: int, first: int, second: int) -> int:
    """Whether the entries with these numbers have the same key."""
    if first == second:
        return 1
    end = INTERVAL_KEYS + ld_i64(table, TABLE_ORDER) - 1
    return same_words(table, _numbered(table, first), table, _numbered(table, second), INTERVAL_KEYS, end)
