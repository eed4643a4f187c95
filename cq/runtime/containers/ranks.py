"""Ranks: the rows of each partition, all or the first few by an order, until the partition leaves.

A row is a record in a pool: its order words, which compare as signed words one after the other, and its values. The
first of them is what most comparisons need: where it differs, it decides, also if the others do not say so alone. Where
texts are part of the order, their first eight bytes are an order word, and behind it the texts themselves are compared;
equal records order by arrival. The pool shares the words of a table's header that say where entries and strings are, so
what reads, stores and compacts strings there does so here: records are its entries, numbered from 1, none by birth.

The partitions are the entries of a dense table that end with the words of their rows (RANK_*). Where all rows are kept,
those of a partition are a chain, the last first. Where only some are, they are a skew heap with the last by order at
its root, which leaves for a better one: so a row costs O(log kept), amortised, and one that is no better than the root,
one comparison. The links are record numbers; nothing is allocated for them.

Filling one: `ranks_record` gives the address of a fresh record, the kernel writes its words, `ranks_commit` puts it
into its partition. Leaving: `ranks_due` collects the rows of the partitions whose time has come, in order, partitions
by birth; then `ranks_first` is the next one, until `ranks_pop` has taken all RANKS_LEFT of them.

Sharing: none, as for tables.
Source: Sleator, Tarjan: Self-Adjusting Heaps, SIAM J. Comput. 15 (1986), section 2: top-down skew heaps.
"""

from __future__ import annotations

import struct

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    compare,
    copy,
    fill,
    ld_i64,
    ld_u8,
    ld_u32,
    min_i64,
    prefetch,
    release,
    shl,
    shr_u,
    st_i64,
    st_u32,
    zalloc,
)
from cq.runtime.containers.births import table_sort_births
from cq.runtime.containers.blocks import block_drop, block_new, block_resize
from cq.runtime.containers.protocol import Container, Place, register, string_bits
from cq.runtime.containers.strings import (
    INLINE_STRING_BYTES,
    string_address,
    string_length,
    strings_move,
    table_arena,
)
from cq.runtime.containers.table_saving import (
    table_arrivals,
    table_load,
    table_save,
    table_saved_words,
    table_take,
    words_for,
)
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    TABLE_ARENA,
    TABLE_ARENA_CAPACITY,
    TABLE_ARENA_USED,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_GARBAGE,
    TABLE_LIMIT,
    TABLE_STRIDE,
    TABLE_STRINGS,
    TABLE_WORDS,
    entry_at,
)
from cq.runtime.containers.tables import (
    table_clear,
    table_delete,
    table_drop,
    table_held_bytes,
    table_make_dense,
    table_new,
)
from cq.runtime.layout.abi import NEVER, STRING_SLACK_BYTES
from cq.runtime.layout.job import Slot
from cq.runtime.layout.words import Struct, name_words

_ranks = Struct("RANKS", after=TABLE_WORDS)
# the earliest time at which a partition leaves, until all its rows have; NEVER when none does before the end
RANKS_NEXT = _ranks.word()
RANKS_AFTER = _ranks.word()  # what RANKS_NEXT is then
RANKS_TABLE = _ranks.word()  # the partitions
RANKS_HEAD = _ranks.word()  # the word of an entry with which the RANK words begin
RANKS_KEEP = _ranks.word()  # rows of a partition; -1: all
RANKS_SKIP = _ranks.word()  # the first rows of a partition, which do not leave
RANKS_KEYS = _ranks.word()  # -> what the order compares, a word each: a word of the record, below it the kind
RANKS_KEY_COUNT = _ranks.word()
RANKS_FREE = _ranks.word()  # the number of a record to be used again, or 0; its left link leads to the next
RANKS_FRESH = _ranks.word()  # the number of the record that is being filled
RANKS_ARRIVALS = _ranks.word()  # records ever committed
RANKS_ITEMS = _ranks.word()  # -> rows that leave, room for as many to sort them, and a word for each digit
RANKS_CAPACITY = _ranks.word()  # rows RANKS_ITEMS has room for
RANKS_AT = _ranks.word()  # the next of them
RANKS_LEFT = _ranks.word()  # how many are left
RANKS_WORDS = _ranks.lines()

_rank = Struct("RANK")  # the last words of a partition's entry
RANK_ROOT = _rank.word()  # the number of the first record of its chain, of the last one by order where few are kept
RANK_COUNT = _rank.word()  # its records
RANK_WORST = _rank.word()  # where as many are there as are kept: the first order word of the root
RANK_CLOSES = _rank.word()  # when it leaves; NEVER: at the end
RANK_WORDS = _rank.size()

_record = Struct("RANKED")
RANKED_LINKS = _record.word()  # numbers of two records of the same partition, or 0
RANKED_ARRIVAL = _record.word()
RANKED_FIRST = _record.word()  # ENTRY_FIRST of its partition, once it leaves
RANKED_ORDER = _record.rest()  # the order words, then the row's

_item = Struct("ITEM")
ITEM_ORDER = _item.word()  # the first order word of a row that leaves
ITEM_NUMBER = _item.word()  # the number of its record
ITEM_WORDS = _item.size()

KEY_WORD, KEY_TEXT, KEY_TEXT_DESCENDING = 0, 1, 2
KIND_BITS = 2  # the low bits of a word of RANKS_KEYS
ITEM_BYTES = ITEM_WORDS * 8
FIRST_RECORDS = 64
FEW_ITEMS = 8  # they are put in order one by one before runs are merged
DIGIT_BITS = 11
DIGITS = 2048  # with fewer items than digits comparing is faster
LEAST = -9223372036854775807 - 1  # with its sign turned a word orders as one without a sign
PREFETCHED = 8  # rows ahead of the one that leaves

name_words(globals())


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def ranks_new(entry_words: int, key_strings: int, record_words: int, strings: int, count: int, order: int) -> int:
    """No rows; 0 without memory. order: -> RANKS_KEEP, RANKS_SKIP and `count` words of RANKS_KEYS, copied."""
    ranks = zalloc(RANKS_WORDS * 8)
    if ranks == 0:
        return 0
    table = table_new(entry_words, key_strings, 0)
    records = block_new((FIRST_RECORDS + 1) * record_words * 8 + STRING_SLACK_BYTES, 1)
    keys = alloc(count * 8)
    st_i64(ranks, RANKS_TABLE, table)
    st_i64(ranks, TABLE_ENTRIES, records)
    st_i64(ranks, RANKS_KEYS, keys)
    if table == 0 or records == 0 or keys == 0 or table_make_dense(table) == 0:
        ranks_drop(ranks)
        return 0
    copy(keys, order + 16, count * 8)
    st_i64(ranks, TABLE_STRIDE, record_words * 8)
    st_i64(ranks, TABLE_LIMIT, FIRST_RECORDS)
    st_i64(ranks, TABLE_STRINGS, strings)
    st_i64(ranks, RANKS_HEAD, entry_words - RANK_WORDS)
    st_i64(ranks, RANKS_KEEP, ld_i64(order, 0))
    st_i64(ranks, RANKS_SKIP, ld_i64(order, 1))
    st_i64(ranks, RANKS_KEY_COUNT, count)
    st_i64(ranks, RANKS_NEXT, NEVER)
    return ranks


@native("i64(i64)", export=True)
def ranks_drop(ranks: int) -> int:
    """Free the rows; 0 is none."""
    if ranks != 0:
        table_drop(ld_i64(ranks, RANKS_TABLE))
        block_drop(ld_i64(ranks, TABLE_ENTRIES))
        block_drop(ld_i64(ranks, TABLE_ARENA))
        block_drop(ld_i64(ranks, RANKS_ITEMS))
        if ld_i64(ranks, RANKS_KEYS) != 0:
            release(ld_i64(ranks, RANKS_KEYS))
        release(ranks)
    return 0


@native("i64(i64, i64)", inline=True)
def _ranked(ranks: int, number: int) -> int:
    """The record of this number."""
    return ld_i64(ranks, TABLE_ENTRIES) + number * ld_i64(ranks, TABLE_STRIDE)


@native("i64(i64, i64)", inline=True)
def _ranked_link(record: int, side: int) -> int:
    return ld_u32(record + RANKED_LINKS * 8, side)


@native("void(i64, i64, i64)", inline=True)
def _set_ranked_link(record: int, side: int, number: int) -> None:
    st_u32(record + RANKED_LINKS * 8, side, number)


# -- rows come -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def ranks_open(ranks: int, entry: int, closes: int) -> int:
    """The entry of a new partition, its RANK words 0, leaves at this time; NEVER: at the end."""
    st_i64(entry, ld_i64(ranks, RANKS_HEAD) + RANK_CLOSES, closes)
    st_i64(ranks, RANKS_NEXT, min_i64(ld_i64(ranks, RANKS_NEXT), closes))
    return 0


@native("i64(i64)", export=True)
def ranks_record(ranks: int) -> int:
    """The address of a fresh record, its words 0; 0 without memory. Records may have moved."""
    number = ld_i64(ranks, RANKS_FREE)
    if number != 0:
        st_i64(ranks, RANKS_FREE, _ranked_link(_ranked(ranks, number), 0))
    else:
        number = ld_i64(ranks, TABLE_COUNT) + 1
        limit = ld_i64(ranks, TABLE_LIMIT)
        if number > limit:
            size = (2 * limit + 1) * ld_i64(ranks, TABLE_STRIDE) + STRING_SLACK_BYTES
            records = block_resize(ld_i64(ranks, TABLE_ENTRIES), size)
            if records == 0:
                return 0
            st_i64(ranks, TABLE_ENTRIES, records)
            st_i64(ranks, TABLE_LIMIT, 2 * limit)
        st_i64(ranks, TABLE_COUNT, number)
    st_i64(ranks, RANKS_FRESH, number)
    record = _ranked(ranks, number)
    fill(record, 0, ld_i64(ranks, TABLE_STRIDE))
    return record


@native("i64(i64, i64)", export=True)
def ranks_commit(ranks: int, entry: int) -> int:
    """The record just filled is one of the partition's, behind equal ones; where too many are there the last leaves."""
    number = ld_i64(ranks, RANKS_FRESH)
    arrival = ld_i64(ranks, RANKS_ARRIVALS)
    st_i64(ranks, RANKS_ARRIVALS, arrival + 1)
    st_i64(_ranked(ranks, number), RANKED_ARRIVAL, arrival)
    _put(ranks, entry, number)
    return 0


@native("void(i64, i64, i64)")
def _put(ranks: int, entry: int, number: int) -> None:
    """The record is one of the partition's, or the last of them is free."""
    rank = entry + ld_i64(ranks, RANKS_HEAD) * 8
    keep = ld_i64(ranks, RANKS_KEEP)
    root = ld_i64(rank, RANK_ROOT)
    count = ld_i64(rank, RANK_COUNT)
    if keep < 0:
        _set_ranked_link(_ranked(ranks, number), 0, root)
        st_i64(rank, RANK_ROOT, number)
        st_i64(rank, RANK_COUNT, count + 1)
        return
    if count < keep:
        root = _merged(ranks, root, number)
        count += 1
    elif keep == 0 or ranks_before(ranks, _ranked(ranks, root), _ranked(ranks, number)) == 1:
        _free(ranks, number)
        return
    else:
        last = _ranked(ranks, root)
        rest = _merged(ranks, _ranked_link(last, 0), _ranked_link(last, 1))
        _free(ranks, root)
        root = _merged(ranks, rest, number)
    st_i64(rank, RANK_ROOT, root)
    st_i64(rank, RANK_COUNT, count)
    if count == keep:
        st_i64(rank, RANK_WORST, ld_i64(_ranked(ranks, root), RANKED_ORDER))


@native("i64(i64, i64, i64)")
def _merged(ranks: int, a: int, b: int) -> int:
    """The number of the root of two heaps made one; 0 is none."""
    if a == 0 or b == 0:
        return a + b
    if ranks_before(ranks, _ranked(ranks, a), _ranked(ranks, b)) == 1:
        a, b = b, a
    root = a
    while b != 0:
        top = _ranked(ranks, a)
        following = _ranked_link(top, 1)
        _set_ranked_link(top, 1, _ranked_link(top, 0))
        if following == 0:
            _set_ranked_link(top, 0, b)
            b = 0
        else:
            if ranks_before(ranks, _ranked(ranks, following), _ranked(ranks, b)) == 1:
                following, b = b, following
            _set_ranked_link(top, 0, following)
            a = following
    return root


@native("void(i64, i64)")
def _free(ranks: int, number: int) -> None:
    """The record is to be used again, its strings garbage."""
    record = _ranked(ranks, number)
    garbage = ld_i64(ranks, TABLE_GARBAGE)
    left = ld_i64(ranks, TABLE_STRINGS)
    word = 0
    while left != 0:
        if left & 1 == 1:
            length = ld_i64(record, word) & 4294967295
            garbage += length if length > INLINE_STRING_BYTES else 0
            st_i64(record, word, 0)
        left = shr_u(left, 1)
        word += 1
    st_i64(ranks, TABLE_GARBAGE, garbage)
    st_i64(record, RANKED_LINKS, 0)
    _set_ranked_link(record, 0, ld_i64(ranks, RANKS_FREE))
    st_i64(ranks, RANKS_FREE, number)


@native("i64(i64, i64, i64)")
def ranks_before(ranks: int, a: int, b: int) -> int:
    """Whether record a leaves before record b of its partition."""
    keys = ld_i64(ranks, RANKS_KEYS)
    for n in range(ld_i64(ranks, RANKS_KEY_COUNT)):
        key = ld_i64(keys, n)
        kind = key & (shl(1, KIND_BITS) - 1)
        word = shr_u(key, KIND_BITS)
        if kind == KEY_WORD:
            x = ld_i64(a, word)
            y = ld_i64(b, word)
            if x != y:
                return 1 if x < y else 0
        else:
            order = _compare_texts(ranks, a, b, word)
            if order != 0:
                return 1 if (order < 0) == (kind == KEY_TEXT) else 0
    return 1 if ld_i64(a, RANKED_ARRIVAL) < ld_i64(b, RANKED_ARRIVAL) else 0


@native("i64(i64, i64, i64, i64)")
def _compare_texts(ranks: int, a: int, b: int, word: int) -> int:
    """Below 0 when the text of record a at this word comes before that of b, by bytes; 0 when they are equal."""
    first = string_length(a, word)
    second = string_length(b, word)
    shared = min_i64(first, second)
    order = compare(string_address(ranks, a, word), string_address(ranks, b, word), shared)
    return order if order != 0 else first - second


@native("i64(i64, i64)", export=True)
def text_order(address: int, length: int) -> int:
    """The order word of a text: its first eight bytes, 0 where it is shorter, as a number that compares as they do."""
    word = 0
    for n in range(8):
        byte = 0
        if n < length:
            byte = ld_u8(address, n)
        word = shl(word, 8) | byte
    return word ^ LEAST


# -- and leave -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def ranks_due(ranks: int, instant: int) -> int:
    """1 and what leaves at or before this instant is in order, its partitions gone; 0 without memory."""
    table = ld_i64(ranks, RANKS_TABLE)
    head = ld_i64(ranks, RANKS_HEAD)
    entries = ld_i64(table, TABLE_ENTRIES)
    births = ld_i64(table, TABLE_BIRTHS)
    stride = ld_i64(table, TABLE_STRIDE)
    places = ld_i64(table, TABLE_COUNT) + ld_i64(table, TABLE_DEAD)
    rows = 0
    stay = 0
    following = NEVER
    for n in range(places):
        entry = entry_at(entries, births, stride, n)
        if ld_i64(entry, ENTRY_TAG) != 0:
            closes = ld_i64(entry, head + RANK_CLOSES)
            if closes <= instant:
                rows += ld_i64(entry, head + RANK_COUNT)
            else:
                stay += 1
                following = min_i64(following, closes)
    if rows > ld_i64(ranks, RANKS_CAPACITY):
        items = block_resize(ld_i64(ranks, RANKS_ITEMS), 2 * rows * ITEM_BYTES + DIGITS * 8)
        if items == 0:
            return 0
        st_i64(ranks, RANKS_ITEMS, items)
        st_i64(ranks, RANKS_CAPACITY, rows)
    st_i64(ranks, RANKS_AFTER, following)
    count = 0
    for n in range(places):
        entry = entry_at(entries, births, stride, n)
        if ld_i64(entry, ENTRY_TAG) != 0 and ld_i64(entry, head + RANK_CLOSES) <= instant:
            count = _collect(ranks, entry, count)
            if stay != 0:
                table_delete(table, entry)
    if stay == 0:
        table_clear(table)
    st_i64(ranks, RANKS_AT, 0)
    st_i64(ranks, RANKS_LEFT, count)
    if count == 0:
        _settle(ranks)
    return 1


@native("i64(i64, i64, i64)")
def _collect(ranks: int, entry: int, count: int) -> int:
    """How many items there are with the rows of this partition, in order, behind the first `count`."""
    rank = entry + ld_i64(ranks, RANKS_HEAD) * 8
    items = ld_i64(ranks, RANKS_ITEMS) + count * ITEM_BYTES
    rows = ld_i64(rank, RANK_COUNT)
    number = ld_i64(rank, RANK_ROOT)
    first = ld_i64(entry, ENTRY_FIRST)
    if ld_i64(ranks, RANKS_KEEP) < 0:
        for n in range(rows - 1, -1, -1):
            _put_ranked(ranks, items, n, number, first)
            number = _ranked_link(_ranked(ranks, number), 0)
    elif rows > 0:
        _put_ranked(ranks, items, 0, number, first)
        behind = 1
        for n in range(rows):
            record = _ranked(ranks, ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER))
            for side in range(2):
                number = _ranked_link(record, side)
                if number != 0:
                    _put_ranked(ranks, items, behind, number, first)
                    behind += 1
    _sort(ranks, items, rows)
    skipped = min_i64(ld_i64(ranks, RANKS_SKIP), rows)
    for n in range(skipped):
        _free(ranks, ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER))
    if skipped > 0:
        for n in range(skipped, rows):
            copy(items + (n - skipped) * ITEM_BYTES, items + n * ITEM_BYTES, ITEM_BYTES)
    return count + rows - skipped


@native("void(i64, i64, i64, i64, i64)", inline=True)
def _put_ranked(ranks: int, items: int, n: int, number: int, first: int) -> None:
    """Item n is this record, whose partition arrived at `first`."""
    record = _ranked(ranks, number)
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
    return ranks_before(ranks, _ranked(ranks, ld_i64(a, ITEM_NUMBER)), _ranked(ranks, ld_i64(b, ITEM_NUMBER)))


@native("void(i64, i64, i64)")
def _sort(ranks: int, items: int, count: int) -> None:
    """The items in order: many by the digits of their first words, then those of equal ones among themselves.

    Comparing a million rows by a random DOUBLE took 1.1 s, mostly of branches nobody can guess; sorting their digits
    takes a tenth of that.
    """
    n = 1
    while n < count and _leaves_before(ranks, items + (n - 1) * ITEM_BYTES, items + n * ITEM_BYTES) == 1:
        n += 1
    if n >= count:
        return
    if count < DIGITS:
        _merge_sort(ranks, items, count)
        return
    _sort_by_digits(ranks, items, count)
    low = 0
    while low < count:
        word = ld_i64(items, low * ITEM_WORDS + ITEM_ORDER)
        high = low + 1
        while high < count and ld_i64(items, high * ITEM_WORDS + ITEM_ORDER) == word:
            high += 1
        if high - low > 1:
            _merge_sort(ranks, items + low * ITEM_BYTES, high - low)
        low = high


@native("i64(i64)", inline=True)
def _room(ranks: int) -> int:
    """Room for as many items as there can be, then for the places of digits."""
    return ld_i64(ranks, RANKS_ITEMS) + ld_i64(ranks, RANKS_CAPACITY) * ITEM_BYTES


@native("void(i64, i64, i64)")
def _sort_by_digits(ranks: int, items: int, count: int) -> None:
    """The items by their first words, equal ones as they were: digit by digit, least first, but those all have."""
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
    """The items of `source` by one digit of their first words, those of one digit as they were."""
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
    """The items in order: runs of a few by insertion, then merged run by run."""
    n = 1
    while n < count and _leaves_before(ranks, items + (n - 1) * ITEM_BYTES, items + n * ITEM_BYTES) == 1:
        n += 1
    if n >= count:
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
    """Items low..high are in order."""
    for n in range(low + 1, high):
        word = ld_i64(items, n * ITEM_WORDS + ITEM_ORDER)
        number = ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER)
        own = _ranked(ranks, number)
        at = n
        while at > low:
            above = ld_i64(items, (at - 1) * ITEM_WORDS + ITEM_ORDER)
            if above < word:
                break
            other = _ranked(ranks, ld_i64(items, (at - 1) * ITEM_WORDS + ITEM_NUMBER))
            if above == word and ranks_before(ranks, other, own) == 1:
                break
            copy(items + at * ITEM_BYTES, items + (at - 1) * ITEM_BYTES, ITEM_BYTES)
            at -= 1
        st_i64(items, at * ITEM_WORDS + ITEM_ORDER, word)
        st_i64(items, at * ITEM_WORDS + ITEM_NUMBER, number)


@native("void(i64, i64, i64, i64, i64, i64)")
def _merge_runs(ranks: int, source: int, target: int, low: int, middle: int, high: int) -> None:
    """Items low..high of the target are those of the source, whose runs low..middle and middle..high are in order."""
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


@native("i64(i64)", export=True)
def ranks_first(ranks: int) -> int:
    """The record that leaves next; RANKS_LEFT is not 0."""
    items = ld_i64(ranks, RANKS_ITEMS)
    at = ld_i64(ranks, RANKS_AT)
    if ld_i64(ranks, RANKS_LEFT) > PREFETCHED:
        prefetch(_ranked(ranks, ld_i64(items, (at + PREFETCHED) * ITEM_WORDS + ITEM_NUMBER)))
    return _ranked(ranks, ld_i64(items, at * ITEM_WORDS + ITEM_NUMBER))


@native("i64(i64)", export=True)
def ranks_pop(ranks: int) -> int:
    """The record that leaves next has left."""
    at = ld_i64(ranks, RANKS_AT)
    left = ld_i64(ranks, RANKS_LEFT) - 1
    _free(ranks, ld_i64(ld_i64(ranks, RANKS_ITEMS), at * ITEM_WORDS + ITEM_NUMBER))
    st_i64(ranks, RANKS_AT, at + 1)
    st_i64(ranks, RANKS_LEFT, left)
    if left == 0:
        _settle(ranks)
    return 0


@native("void(i64)")
def _settle(ranks: int) -> None:
    """No row is leaving. Where no partition is left, every record is as if it had never been used."""
    st_i64(ranks, RANKS_NEXT, ld_i64(ranks, RANKS_AFTER))
    if ld_i64(ld_i64(ranks, RANKS_TABLE), TABLE_COUNT) == 0:
        st_i64(ranks, TABLE_COUNT, 0)
        st_i64(ranks, TABLE_ARENA_USED, 0)
        st_i64(ranks, TABLE_GARBAGE, 0)
        st_i64(ranks, RANKS_FREE, 0)


# -- as flat bytes, and back -----------------------------------------------------------------------------------------

_saved = Struct("SAVED")
SAVED_RECORDS = _saved.word()  # records, free ones too
SAVED_BYTES = _saved.word()  # of one
SAVED_STRINGS = _saved.word()  # bytes of strings
SAVED_GARBAGE = _saved.word()
SAVED_FREE = _saved.word()
SAVED_ARRIVALS = _saved.word()
SAVED_HEAD = _saved.rest()  # the records, their strings, then the partitions as `table_save` writes them


@native("i64(i64)")
def _pool_words(ranks: int) -> int:
    """Words that the records take where they are saved."""
    records = ld_i64(ranks, TABLE_COUNT) * ld_i64(ranks, TABLE_STRIDE)
    return SAVED_HEAD + words_for(records) + words_for(ld_i64(ranks, TABLE_ARENA_USED))


@native("i64(i64)", export=True)
def ranks_saved_words(ranks: int) -> int:
    """The most words that `ranks_save` writes."""
    return _pool_words(ranks) + table_saved_words(ld_i64(ranks, RANKS_TABLE))


@native("i64(i64, i64)", export=True)
def ranks_save(ranks: int, target: int) -> int:
    """The rows as words at `target`; returns how many. None is leaving."""
    count = ld_i64(ranks, TABLE_COUNT)
    size = ld_i64(ranks, TABLE_STRIDE)
    used = ld_i64(ranks, TABLE_ARENA_USED)
    st_i64(target, SAVED_RECORDS, count)
    st_i64(target, SAVED_BYTES, size)
    st_i64(target, SAVED_STRINGS, used)
    st_i64(target, SAVED_GARBAGE, ld_i64(ranks, TABLE_GARBAGE))
    st_i64(target, SAVED_FREE, ld_i64(ranks, RANKS_FREE))
    st_i64(target, SAVED_ARRIVALS, ld_i64(ranks, RANKS_ARRIVALS))
    at = target + SAVED_HEAD * 8
    copy(at, _ranked(ranks, 1), count * size)
    at += count * size
    if used > 0:
        st_i64(at + ((used - 1) & -8), 0, 0)
        copy(at, ld_i64(ranks, TABLE_ARENA), used)
    pool = _pool_words(ranks)
    return pool + table_save(ld_i64(ranks, RANKS_TABLE), target + pool * 8)


@native("i64(i64, i64)", export=True)
def ranks_load(ranks: int, source: int) -> int:
    """The words read, and the rows are what was saved, none were there; 0 without memory or for other rows."""
    count = ld_i64(source, SAVED_RECORDS)
    size = ld_i64(source, SAVED_BYTES)
    used = ld_i64(source, SAVED_STRINGS)
    if size != ld_i64(ranks, TABLE_STRIDE) or ld_i64(ranks, TABLE_COUNT) != 0 or table_arena(ranks, used) == 0:
        return 0
    if count > ld_i64(ranks, TABLE_LIMIT):
        records = block_resize(ld_i64(ranks, TABLE_ENTRIES), (count + 1) * size + STRING_SLACK_BYTES)
        if records == 0:
            return 0
        st_i64(ranks, TABLE_ENTRIES, records)
        st_i64(ranks, TABLE_LIMIT, count)
    at = source + SAVED_HEAD * 8
    copy(_ranked(ranks, 1), at, count * size)
    if used > 0:
        copy(ld_i64(ranks, TABLE_ARENA), at + count * size, used)
    st_i64(ranks, TABLE_COUNT, count)
    st_i64(ranks, TABLE_ARENA_USED, used)
    st_i64(ranks, TABLE_GARBAGE, ld_i64(source, SAVED_GARBAGE))
    st_i64(ranks, RANKS_FREE, ld_i64(source, SAVED_FREE))
    st_i64(ranks, RANKS_ARRIVALS, ld_i64(source, SAVED_ARRIVALS))
    pool = _pool_words(ranks)
    partitions = table_load(ld_i64(ranks, RANKS_TABLE), source + pool * 8)
    _see_next(ranks)
    return 0 if partitions == 0 else pool + partitions


@native("void(i64)")
def _see_next(ranks: int) -> None:
    """RANKS_NEXT is the earliest time of the partitions, none of which is dead."""
    table = ld_i64(ranks, RANKS_TABLE)
    closes = ld_i64(ranks, RANKS_HEAD) + RANK_CLOSES
    following = NEVER
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)
        following = min_i64(following, ld_i64(entry, closes))
    st_i64(ranks, RANKS_NEXT, following)


@native("i64(i64, i64, i64)", export=True)
def ranks_take(ranks: int, other: int, entry: int) -> int:
    """1 and a partition of other rows is here too; 0 without memory. The caller knows that its key is absent."""
    made = table_take(ld_i64(ranks, RANKS_TABLE), ld_i64(other, RANKS_TABLE), entry)
    if made == 0:
        return 0
    head = ld_i64(ranks, RANKS_HEAD)
    st_i64(made, head + RANK_ROOT, 0)
    st_i64(made, head + RANK_COUNT, 0)
    st_i64(ranks, RANKS_ARRIVALS, max(ld_i64(ranks, RANKS_ARRIVALS), ld_i64(other, RANKS_ARRIVALS)))
    numbers = alloc(ld_i64(entry, head + RANK_COUNT) * 8 + 8)
    if numbers == 0:
        return 0
    st_i64(numbers, 0, ld_i64(entry, head + RANK_ROOT))
    count = ld_i64(entry, head + RANK_COUNT)
    behind = 1
    done = 1
    for n in range(count):
        record = _ranked(other, ld_i64(numbers, n))
        for side in range(2):
            number = _ranked_link(record, side)
            if number != 0:
                st_i64(numbers, behind, number)
                behind += 1
    for n in range(count - 1, -1, -1):  # of a chain the first to arrive first
        if done == 1:
            done = _take_record(ranks, made, other, _ranked(other, ld_i64(numbers, n)))
    release(numbers)
    return done


@native("i64(i64, i64, i64, i64)")
def _take_record(ranks: int, entry: int, other: int, record: int) -> int:
    """1 and a record of other rows is one of this partition's; 0 without memory."""
    made = ranks_record(ranks)
    if made == 0:
        return 0
    copy(made, record, ld_i64(ranks, TABLE_STRIDE))
    st_i64(made, RANKED_LINKS, 0)
    if strings_move(ranks, made, ld_i64(other, TABLE_ARENA)) == 0:
        return 0
    _put(ranks, entry, ld_i64(ranks, RANKS_FRESH))
    return 1


@native("i64(i64)", export=True)
def ranks_taken(ranks: int) -> int:
    """`Container.taken`: partitions by first arrival, and when the first of them leaves."""
    _see_next(ranks)
    return table_sort_births(ld_i64(ranks, RANKS_TABLE))


@native("i64(i64, i64)", export=True)
def ranks_arrivals(ranks: int, target: int) -> int:
    """`Container.arrivals`: those of the partitions; rows of one are ordered among themselves alone."""
    return table_arrivals(ld_i64(ranks, RANKS_TABLE), target)


@native("i64(i64)", export=True)
def ranks_held_bytes(ranks: int) -> int:
    """Memory the rows hold; 0 is none."""
    if ranks == 0:
        return 0
    records = (ld_i64(ranks, TABLE_LIMIT) + 1) * ld_i64(ranks, TABLE_STRIDE)
    items = 2 * ld_i64(ranks, RANKS_CAPACITY) * ITEM_BYTES + DIGITS * 8
    table = table_held_bytes(ld_i64(ranks, RANKS_TABLE))
    return RANKS_WORDS * 8 + records + ld_i64(ranks, TABLE_ARENA_CAPACITY) + items + table


def _arguments(slot: Slot, place: Place) -> tuple[int, ...]:
    key, row = slot.shapes
    order = place(struct.pack(f"<{len(slot.parameters)}q", *slot.parameters))
    return (key.entry_words, string_bits(key), row.entry_words, string_bits(row), len(slot.parameters) - 2, order)


register(
    Container(
        "ranks",
        _arguments,
        new=ranks_new,
        drop=ranks_drop,
        saved_words=ranks_saved_words,
        save=ranks_save,
        load=ranks_load,
        arrivals=ranks_arrivals,
        taken=ranks_taken,
        held_bytes=ranks_held_bytes,
    )
)
