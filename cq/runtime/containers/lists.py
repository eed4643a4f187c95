"""Lists owned by entries: all values of a group, or a text that grows.

A list takes four words of an entry. The first two are a string whose bytes are the list's room, so that all code that
copies, saves, moves and measures the strings of a table handles lists too. The third is the number of bytes in use, the
fourth how many words of a list of words are in ascending order, from the first on; doubles are kept as words of the
same order (`ordered_bits`).

Sharing: none, as for tables.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    copy,
    fill,
    ld_i64,
    min_i64,
    move,
    pick,
    release,
    shr_u,
    st_i64,
)
from cq.runtime.containers.strings import COMPACT_FROM_BYTES, table_arena, table_compact
from cq.runtime.containers.table_words import TABLE_ARENA, TABLE_ARENA_USED, TABLE_GARBAGE
from cq.runtime.layout.words import Struct, name_words

_list = Struct("LIST")
LIST_ROOM = _list.word()  # a string: its length, and where it is in the arena
LIST_PLACE = _list.word()
LIST_USED = _list.word()  # bytes
LIST_ORDERED = _list.word()  # words in ascending order, from the first on, or READ_ONCE
LIST_WORDS = _list.size()

FIRST_ROOM_BYTES = 64  # more than a string inside an entry has
MOST_ROOM_BYTES = 1 << 31  # of one list; the length of a string has 32 bits
FEW_NEW = 8  # up to this many words after those in order are inserted one by one
RUN = 16  # words sorted by insertion
READ_ONCE = -1  # words are unordered, and were selected from before (selecting.py)
SIGN_FREE = (1 << 63) - 1

name_words(globals())


@native("i64(i64)", inline=True)
def ordered_bits(bits: int) -> int:
    """The bits of a double as a word of the same order, and vice versa; -0.0 is below 0.0, NaN above all."""
    return bits ^ pick(bits < 0, SIGN_FREE, 0)


@native("i64(i64, i64)", inline=True)
def list_items(table: int, slot: int) -> int:
    """The address of the first item, if the room is not empty; valid until the table changes. slot: of the list."""
    return ld_i64(table, TABLE_ARENA) + ld_i64(slot, LIST_PLACE)


@native("i64(i64, i64, i64)", export=True)
def list_room(table: int, slot: int, extra: int) -> int:
    """Make room for `extra` more bytes and return 1; 0 without memory, or beyond the most a list may have."""
    used = ld_i64(slot, LIST_USED)
    room = ld_i64(slot, LIST_ROOM) & 4294967295
    if used + extra <= room:
        return 1
    wanted = max(room * 2, FIRST_ROOM_BYTES)
    while wanted < used + extra:
        wanted *= 2
    if wanted > MOST_ROOM_BYTES:
        return 0
    garbage = ld_i64(table, TABLE_GARBAGE)
    wasteful = garbage > COMPACT_FROM_BYTES and garbage * 2 > ld_i64(table, TABLE_ARENA_USED)
    if wasteful and table_compact(table) == 0:
        return 0
    if table_arena(table, wanted) == 0:
        return 0
    place = ld_i64(table, TABLE_ARENA_USED)
    target = ld_i64(table, TABLE_ARENA) + place
    if used > 0:
        copy(target, list_items(table, slot), used)
    fill(target + used, 0, wanted - used)  # saved bytes are the same in every run
    st_i64(table, TABLE_GARBAGE, ld_i64(table, TABLE_GARBAGE) + room)
    st_i64(table, TABLE_ARENA_USED, place + wanted)
    st_i64(slot, LIST_ROOM, wanted)
    st_i64(slot, LIST_PLACE, place)
    return 1


@native("i64(i64, i64, i64)", inline=True)
def list_add(table: int, slot: int, word: int) -> int:
    """Append a word and return 1; 0 without memory."""
    used = ld_i64(slot, LIST_USED)
    if used + 8 > ld_i64(slot, LIST_ROOM) & 4294967295 and list_room(table, slot, 8) == 0:
        return 0
    st_i64(list_items(table, slot) + used, 0, word)
    st_i64(slot, LIST_USED, used + 8)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def list_append(table: int, slot: int, address: int, size: int) -> int:
    """Append these bytes, which are not in the table's arena, and return 1; 0 without memory."""
    if size == 0:
        return 1
    if list_room(table, slot, size) == 0:
        return 0
    used = ld_i64(slot, LIST_USED)
    copy(list_items(table, slot) + used, address, size)
    st_i64(slot, LIST_USED, used + size)
    return 1


@native("i64(i64, i64, i64, i64)", export=True)
def list_merge(table: int, slot: int, other_table: int, other: int) -> int:
    """Append the other list's items and return 1; 0 without memory. Both may be in one table."""
    size = ld_i64(other, LIST_USED)
    if size == 0:
        return 1
    if list_room(table, slot, size) == 0:
        return 0
    used = ld_i64(slot, LIST_USED)
    copy(list_items(table, slot) + used, list_items(other_table, other), size)
    st_i64(slot, LIST_USED, used + size)
    return 1


@native("i64(i64, i64)", export=True)
def list_sort(table: int, slot: int) -> int:
    """Sort the words of the list in ascending order and return 1; 0 without memory."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    ordered = ld_i64(slot, LIST_ORDERED)
    if ordered == count:
        return 1
    items = list_items(table, slot)
    if ordered > 0 and count - ordered <= FEW_NEW:
        for n in range(ordered, count):
            _put_in_place(items, n)
    elif sort_words(items, count) == 0:
        return 0
    st_i64(slot, LIST_ORDERED, count)
    return 1


@native("i64(i64, i64)")
def sort_words(items: int, count: int) -> int:
    """Sort the words in ascending order and return 1; 0 without memory."""
    spare = alloc(count * 8)
    if spare == 0:
        return 0
    _merge_sort(items, spare, count)
    release(spare)
    return 1


@native("void(i64, i64)")
def _put_in_place(items: int, count: int) -> None:
    """Insert the word after `count` ordered ones among them."""
    word = ld_i64(items, count)
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if ld_i64(items, middle) <= word:
            low = middle + 1
        else:
            high = middle
    move(items + (low + 1) * 8, items + low * 8, (count - low) * 8)
    st_i64(items, low, word)


@native("void(i64, i64, i64)")
def _merge_sort(items: int, spare: int, count: int) -> None:
    """Sort the words in ascending order: short runs in place, then merged back and forth between two rooms."""
    start = 0
    while start < count:
        sort_run(items, start, min_i64(start + RUN, count))
        start += RUN
    source = items
    target = spare
    width = RUN
    while width < count:
        start = 0
        while start < count:
            _merge_runs(source, target, start, min_i64(start + width, count), min_i64(start + 2 * width, count))
            start += 2 * width
        source, target = target, source
        width *= 2
    if source != items:
        copy(items, source, count * 8)


@native("void(i64, i64, i64)", inline=True)
def sort_run(items: int, start: int, end: int) -> None:
    """Sort the words from `start` to `end` in ascending order, by insertion."""
    for n in range(start + 1, end):
        word = ld_i64(items, n)
        place = n
        while place > start and ld_i64(items, place - 1) > word:
            st_i64(items, place, ld_i64(items, place - 1))
            place -= 1
        st_i64(items, place, word)


@native("void(i64, i64, i64, i64, i64)")
def _merge_runs(source: int, target: int, start: int, middle: int, end: int) -> None:
    """Merge two ordered runs of the source into the words from `start` to `end` of the target.

    Which of two words is less is a coin toss, so it is computed, not branched on.
    """
    left = start
    right = middle
    place = start
    while left < middle and right < end:
        first = ld_i64(source, left)
        second = ld_i64(source, right)
        ahead = pick(second < first, 1, 0)
        st_i64(target, place, pick(second < first, second, first))
        right += ahead
        left += 1 - ahead
        place += 1
    copy(target + place * 8, source + left * 8, (middle - left) * 8)
    copy(target + (place + middle - left) * 8, source + right * 8, (end - right) * 8)


@native("i64(i64, i64)", export=True)
def list_commonest(table: int, slot: int) -> int:
    """The most frequent word of an ordered list, the least of several; 0 if empty."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    if count == 0:
        return 0
    items = list_items(table, slot)
    best = ld_i64(items, 0)
    most = 0
    first = 0
    for n in range(count):
        if ld_i64(items, n) != ld_i64(items, first):
            first = n
        if n + 1 - first > most:
            most = n + 1 - first
            best = ld_i64(items, n)
    return best
