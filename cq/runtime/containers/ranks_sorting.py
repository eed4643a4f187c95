"""Sort the rows of ranks that leave: by the digits of their first words, by insertion and by merging."""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    copy,
    fill,
    ld_i64,
    min_i64,
    prefetch,
    shr_u,
    st_i64,
)
from cq.runtime.containers.ranks_words import (
    ITEM_BYTES,
    ITEM_NUMBER,
    ITEM_ORDER,
    ITEM_WORDS,
    LEAST,
    RANKED_FIRST,
    RANKED_ORDER,
    RANKS_CAPACITY,
    RANKS_ITEMS,
    ranks_before,
)
from cq.runtime.containers.records import record_at
from cq.runtime.layout.words import name_words

FEW_ITEMS = 8  # sorted by insertion before runs are merged
# With 8 bits the lines that items are moved to are a third of a first-level cache. ORDER BY of 1 M rows, CPU relative
# to 8 bits: by an integer of 20 bits 1.23 with 9, 1.17 with 10 and 1.33 with 11 bits, by a random DOUBLE 0.98, 1.00 and
# 1.10.
DIGIT_BITS = 8
DIGITS = 256  # with fewer items than digits, comparing is faster
FETCHED_RECORDS = 2048  # two lines of each are a quarter of a second-level cache

name_words(globals())


@native("void(i64, i64, i64, i64, i64)", inline=True)
def put_ranked(ranks: int, items: int, n: int, number: int, first: int) -> None:
    """Make this record, whose partition arrived at `first`, item n."""
    record = record_at(ranks, number)
    if ld_i64(record, RANKED_FIRST) != first:  # unwritten lines need not be written back
        st_i64(record, RANKED_FIRST, first)
    st_i64(items, n * ITEM_WORDS + ITEM_ORDER, ld_i64(record, RANKED_ORDER))
    st_i64(items, n * ITEM_WORDS + ITEM_NUMBER, number)


@native("i64(i64, i64, i64)", inline=True)
def _leaves_before(ranks: int, a: int, b: int) -> int:
    """Whether item a leaves before item b."""
    x = ld_i64(a, ITEM_ORDER)
    y = ld_i64(b, ITEM_ORDER)
    if x != y:
        return 1 if x < y else 0
    return ranks_before(ranks, record_at(ranks, ld_i64(a, ITEM_NUMBER)), record_at(ranks, ld_i64(b, ITEM_NUMBER)))


@native("i64(i64, i64, i64)")
def _in_order(ranks: int, items: int, count: int) -> int:
    """Whether the items are already in order."""
    n = 1
    while n < count and _leaves_before(ranks, items + (n - 1) * ITEM_BYTES, items + n * ITEM_BYTES) == 1:
        n += 1
    return 1 if n >= count else 0


@native("void(i64, i64, i64)")
def ranks_sort(ranks: int, items: int, count: int) -> None:
    """Sort the items: many by the digits of their first words, then those of equal ones among themselves.

    Comparing a million rows by a random DOUBLE took 1.1 s, mostly of unpredictable branches; sorting their digits takes
    a tenth of that.
    """
    if count < DIGITS:
        _merge_sort(ranks, items, count)
        return
    if _in_order(ranks, items, count) == 1:
        return
    _sort_by_digits(ranks, items, count)
    low = 0
    while low < count:
        word = ld_i64(items, low * ITEM_WORDS + ITEM_ORDER)
        high = low + 1
        while high < count and ld_i64(items, high * ITEM_WORDS + ITEM_ORDER) == word:
            high += 1
        if high - low > 1:
            _fetch_records(ranks, items + low * ITEM_BYTES, high - low)
            _merge_sort(ranks, items + low * ITEM_BYTES, high - low)
        low = high


@native("void(i64, i64, i64)")
def _fetch_records(ranks: int, items: int, count: int) -> None:
    """Prefetch the records of items that will be compared: they are far apart. No more than a cache holds."""
    for n in range(min_i64(count, FETCHED_RECORDS)):
        prefetch(record_at(ranks, ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER)))


@native("i64(i64)", inline=True)
def _room(ranks: int) -> int:
    """Room for as many items as possible, then for the places of digits."""
    return ld_i64(ranks, RANKS_ITEMS) + ld_i64(ranks, RANKS_CAPACITY) * ITEM_BYTES


@native("void(i64, i64, i64)")
def _sort_by_digits(ranks: int, items: int, count: int) -> None:
    """Sort the items stably by their first words: digit by digit, least first, without digits that all share."""
    first = ld_i64(items, ITEM_ORDER)
    differ = 0
    for n in range(count):
        differ |= ld_i64(items, n * ITEM_WORDS + ITEM_ORDER) ^ first
    source = items
    target = _room(ranks)
    places = target + ld_i64(ranks, RANKS_CAPACITY) * ITEM_BYTES
    shift = 0
    while shift < 64:
        if shr_u(differ, shift) & (DIGITS - 1) != 0:
            _place_by_digit(source, target, places, count, shift)
            source, target = target, source
        shift += DIGIT_BITS
    if source != items:
        copy(items, source, count * ITEM_BYTES)


@native("void(i64, i64, i64, i64, i64)")
def _place_by_digit(source: int, target: int, places: int, count: int, shift: int) -> None:
    """Sort the items of `source` stably by one digit of their first words."""
    fill(places, 0, DIGITS * 8)
    for n in range(count):
        digit = shr_u(ld_i64(source, n * ITEM_WORDS + ITEM_ORDER) ^ LEAST, shift) & (DIGITS - 1)
        st_i64(places, digit, ld_i64(places, digit) + 1)
    before = 0
    for digit in range(DIGITS):
        here = ld_i64(places, digit)
        st_i64(places, digit, before)
        before += here
    for n in range(count):
        word = ld_i64(source, n * ITEM_WORDS + ITEM_ORDER)
        digit = shr_u(word ^ LEAST, shift) & (DIGITS - 1)
        place = ld_i64(places, digit)
        st_i64(places, digit, place + 1)
        st_i64(target, place * ITEM_WORDS + ITEM_ORDER, word)
        st_i64(target, place * ITEM_WORDS + ITEM_NUMBER, ld_i64(source, n * ITEM_WORDS + ITEM_NUMBER))


@native("void(i64, i64, i64)")
def _merge_sort(ranks: int, items: int, count: int) -> None:
    """Sort the items: runs of a few by insertion, then merged run by run."""
    if _in_order(ranks, items, count) == 1:
        return
    for low in range(0, count, FEW_ITEMS):
        _insert_run(ranks, items, low, min_i64(low + FEW_ITEMS, count))
    source = items
    target = _room(ranks)
    width = FEW_ITEMS
    while width < count:
        low = 0
        while low < count:
            _merge_runs(ranks, source, target, low, min_i64(low + width, count), min_i64(low + 2 * width, count))
            low += 2 * width
        source, target = target, source
        width *= 2
    if source != items:
        copy(items, source, count * ITEM_BYTES)


@native("void(i64, i64, i64, i64)")
def _insert_run(ranks: int, items: int, low: int, high: int) -> None:
    """Sort items low..high."""
    for n in range(low + 1, high):
        word = ld_i64(items, n * ITEM_WORDS + ITEM_ORDER)
        number = ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER)
        own = record_at(ranks, number)
        at = n
        while at > low:
            above = ld_i64(items, (at - 1) * ITEM_WORDS + ITEM_ORDER)
            if above < word:
                break
            other = record_at(ranks, ld_i64(items, (at - 1) * ITEM_WORDS + ITEM_NUMBER))
            if above == word and ranks_before(ranks, other, own) == 1:
                break
            copy(items + at * ITEM_BYTES, items + (at - 1) * ITEM_BYTES, ITEM_BYTES)
            at -= 1
        st_i64(items, at * ITEM_WORDS + ITEM_ORDER, word)
        st_i64(items, at * ITEM_WORDS + ITEM_NUMBER, number)


@native("void(i64, i64, i64, i64, i64, i64)")
def _merge_runs(ranks: int, source: int, target: int, low: int, middle: int, high: int) -> None:
    """Merge the source's runs low..middle and middle..high, each in order, into items low..high of the target."""
    left = low
    right = middle
    at = low
    while left < middle and right < high:
        if _leaves_before(ranks, source + right * ITEM_BYTES, source + left * ITEM_BYTES) == 1:
            copy(target + at * ITEM_BYTES, source + right * ITEM_BYTES, ITEM_BYTES)
            right += 1
        else:
            copy(target + at * ITEM_BYTES, source + left * ITEM_BYTES, ITEM_BYTES)
            left += 1
        at += 1
    copy(target + at * ITEM_BYTES, source + left * ITEM_BYTES, (middle - left) * ITEM_BYTES)
    at += middle - left
    copy(target + at * ITEM_BYTES, source + right * ITEM_BYTES, (high - right) * ITEM_BYTES)
