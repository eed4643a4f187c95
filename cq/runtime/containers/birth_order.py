"""Sort a table's entries by the serials of their first rows, if they were not made in that order."""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import fill, ld_i32, ld_i64, shr_u, st_i32, st_i64
from cq.runtime.containers.blocks import block_drop, block_new
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_LIMIT,
    TABLE_STRIDE,
    entry_at,
)

DIGIT_BITS = 11  # 2,048 counters are half of a first-level cache, and six passes cover a word
DIGITS = 2048


@native("i64(i64)", export=True)
def table_sort_births(table: int) -> int:
    """Sort the entries by first-arrival serial, equal ones as they are; 1, or 0 without memory.

    None is dead. Groups merged from panes are out of order only if rows were: mostly one scan is enough. Otherwise a
    radix sort of (serial, number) pairs, least digit first: comparing entries in place misses the cache at every
    comparison.
    """
    births = ld_i64(table, TABLE_BIRTHS)
    count = ld_i64(table, TABLE_COUNT)
    n = 1
    while n < count and _born(table, n - 1) <= _born(table, n):
        n += 1
    if n >= count:
        return 1
    pairs = block_new(count * 32 + DIGITS * 8, 0)
    if pairs == 0:
        return 0
    if births == 0:
        births = block_new(ld_i64(table, TABLE_LIMIT) * 4, 0)
        if births == 0:
            block_drop(pairs)
            return 0
        for k in range(count):
            st_i32(births, k, k + 1)
        st_i64(table, TABLE_BIRTHS, births)
    low = _born(table, 0)
    high = low
    for k in range(count):
        first = _born(table, k)
        st_i64(pairs, 2 * k, first)
        st_i64(pairs, 2 * k + 1, ld_i32(births, k))
        low = min(low, first)
        high = max(high, first)
    source = pairs
    target = pairs + count * 16
    shift = 0
    while shift < 64 and shr_u(high - low, shift) > 0:
        _sort_by_digit(source, target, pairs + count * 32, count, low, shift)
        source, target = target, source
        shift += DIGIT_BITS
    for k in range(count):
        st_i32(births, k, ld_i64(source, 2 * k + 1))
    block_drop(pairs)
    return 1


@native("i64(i64, i64)", inline=True)
def _born(table: int, n: int) -> int:
    """First-arrival serial of the n-th group."""
    births = ld_i64(table, TABLE_BIRTHS)
    return ld_i64(entry_at(ld_i64(table, TABLE_ENTRIES), births, ld_i64(table, TABLE_STRIDE), n), ENTRY_FIRST)


@native("void(i64, i64, i64, i64, i64, i64)")
def _sort_by_digit(source: int, target: int, places: int, count: int, low: int, shift: int) -> None:
    """Sort the pairs of `source` stably by one digit of their distance from `low`."""
    fill(places, 0, DIGITS * 8)
    for k in range(count):
        digit = shr_u(ld_i64(source, 2 * k) - low, shift) & (DIGITS - 1)
        st_i64(places, digit, ld_i64(places, digit) + 1)
    before = 0
    for digit in range(DIGITS):
        here = ld_i64(places, digit)
        st_i64(places, digit, before)
        before += here
    for k in range(count):
        first = ld_i64(source, 2 * k)
        digit = shr_u(first - low, shift) & (DIGITS - 1)
        place = ld_i64(places, digit)
        st_i64(places, digit, place + 1)
        st_i64(target, 2 * place, first)
        st_i64(target, 2 * place + 1, ld_i64(source, 2 * k + 1))
