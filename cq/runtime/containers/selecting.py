"""The values of a list (lists.py) at a place of its order, found without sorting all of it.

Partitioning at one of its words shrinks the part of the list around the place: smaller words go before the others. The
side of a word is computed, not branched on. If that takes more rounds than random pivots would need, the part is
sorted: so a list costs O(n log n) whatever it contains.

A list that is read again is sorted, because it may be read after every row: then only new words need a place.

Sharing: none, as for tables.
Source: Musser: Introspective Sorting and Selection Algorithms, Software: Practice and Experience 27 (1997).
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    bits_f64,
    clz,
    f64_ceil,
    f64_floor,
    f64_to_i64,
    i64_to_f64,
    ld_i64,
    max_i64,
    min_i64,
    pick,
    shr_u,
    st_i64,
)
from cq.runtime.containers.lists import (
    LIST_ORDERED,
    LIST_USED,
    READ_ONCE,
    RUN,
    list_items,
    list_sort,
    ordered_bits,
    sort_run,
    sort_words,
)
from cq.runtime.containers.strings import hash_word


@native("f64(i64, i64, f64)", export=True)
def list_between(table: int, slot: int, fraction: float) -> float:
    """`cq.lang.aggregates.collected.between` of a list of doubles, after `list_seek_between`; 0.0 if empty."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    if count == 0:
        return 0.0
    items = list_items(table, slot)
    place = fraction * i64_to_f64(count - 1)
    low = f64_to_i64(f64_floor(place))
    below = bits_f64(ordered_bits(ld_i64(items, low)))
    above = bits_f64(ordered_bits(ld_i64(items, min_i64(low + 1, count - 1))))
    if below == above or place == i64_to_f64(low):
        return below
    return (i64_to_f64(low + 1) - place) * below + (place - i64_to_f64(low)) * above


@native("i64(i64, i64, f64)", export=True)
def list_reaching(table: int, slot: int, fraction: float) -> int:
    """The first word in order where this fraction of the list is reached, after `list_seek_reaching`; 0 if empty."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    if count == 0:
        return 0
    return ld_i64(list_items(table, slot), _reached(count, fraction))


@native("i64(i64, i64, f64)", export=True)
def list_seek_between(table: int, slot: int, fraction: float) -> int:
    """Prepare `list_between` for this fraction and return 1; 0 without memory."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    return _seek(table, slot, count, f64_to_i64(f64_floor(fraction * i64_to_f64(count - 1))))


@native("i64(i64, i64, f64)", export=True)
def list_seek_reaching(table: int, slot: int, fraction: float) -> int:
    """Prepare `list_reaching` for this fraction and return 1; 0 without memory."""
    count = shr_u(ld_i64(slot, LIST_USED), 3)
    return _seek(table, slot, count, _reached(count, fraction))


@native("i64(i64, f64)")
def _reached(count: int, fraction: float) -> int:
    """The place of the first of this many words that is not before this fraction of them."""
    return max_i64(f64_to_i64(f64_ceil(fraction * i64_to_f64(count))) - 1, 0)


@native("i64(i64, i64, i64, i64)")
def _seek(table: int, slot: int, count: int, place: int) -> int:
    """Put the word at a place of the order there, and the next one after it, and return 1; 0 without memory."""
    if ld_i64(slot, LIST_ORDERED) != 0 or count <= RUN:
        return list_sort(table, slot)
    st_i64(slot, LIST_ORDERED, READ_ONCE)
    items = list_items(table, slot)
    if _select(items, count, place) == 0:
        return 0
    least = place + 1
    for n in range(place + 2, count):
        least = pick(ld_i64(items, n) < ld_i64(items, least), n, least)
    if least < count:
        word = ld_i64(items, least)
        st_i64(items, least, ld_i64(items, place + 1))
        st_i64(items, place + 1, word)
    return 1


@native("i64(i64, i64, i64)")
def _select(items: int, count: int, place: int) -> int:
    """Part the words so that none before the place is greater than the one there, none after it less; 1, or 0 without
    memory."""
    start = 0
    end = count
    turns = 4 * (64 - clz(count))  # random words take half of that, equal ones two for each
    while end - start > RUN:
        if turns == 0:
            return sort_words(items + start * 8, end - start)
        turns -= 1
        pivot = _pivot(items, start, end - start, turns)
        at = _part(items, start, end, pivot)
        if place < at:
            end = at
        elif at > start:
            start = at
        else:  # the pivot is the least: words equal to it go before the others
            at = _part(items, start, end, pivot + 1) if pivot < 9223372036854775807 else end
            if place < at:
                return 1
            start = at
    sort_run(items, start, end)
    return 1


@native("i64(i64, i64, i64, i64)")
def _pivot(items: int, start: int, count: int, turn: int) -> int:
    """The median of three of these words, from other places in each round.

    With the first, the middle and the last word, descending lists ended up sorted: partitioning reverses what it moves.
    """
    a = ld_i64(items, start + shr_u(hash_word(3 * turn) * count, 32))
    b = ld_i64(items, start + shr_u(hash_word(3 * turn + 1) * count, 32))
    c = ld_i64(items, start + shr_u(hash_word(3 * turn + 2) * count, 32))
    return max_i64(min_i64(a, b), min_i64(max_i64(a, b), c))


@native("i64(i64, i64, i64, i64)")
def _part(items: int, start: int, end: int, pivot: int) -> int:
    """Move words less than the pivot before all others from `start` to `end`; return where the others begin."""
    at = start
    for n in range(start, end):
        word = ld_i64(items, n)
        st_i64(items, n, ld_i64(items, at))
        st_i64(items, at, word)
        at += pick(word < pivot, 1, 0)
    return at
