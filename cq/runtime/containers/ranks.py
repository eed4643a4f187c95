"""Ranks: the rows of each partition, all or the first few by an order, until the partition leaves.

A row is a record in a pool: its order words, which compare as signed words one after the other, and its values. The
first one is enough for most comparisons: if it differs, it decides, even if the other words would not. If texts are
part of the order, their first eight bytes are an order word, and after it the texts themselves are compared; equal
records order by arrival. The pool shares the entry and string words of a table's header, so that code that reads,
stores and compacts strings works on both: records are its entries, numbered from 1, none by birth.

The partitions are the entries of a dense table that end with the words of their rows (RANK_*). If all rows are kept,
those of a partition are a chain, the last first. If only some are, they are a skew heap with the last by order at its
root, which is replaced by a better one: so a row costs O(log kept), amortised, and one that is no better than the root,
one comparison. The links are record numbers; nothing is allocated for them.

To add a row, `record_new` returns the address of a new record, the kernel writes its words, `ranks_commit` puts it
into its partition. To emit rows, `ranks_due` collects those of the partitions that are due, in order, partitions by
birth; then `ranks_first` is the next one, until `ranks_pop` has removed all RANKS_LEFT of them.

The words are in ranks_words.py, sorting in ranks_sorting.py, snapshots in ranks_saving.py.
Sharing: none, as for tables.
Source: Sleator, Tarjan: Self-Adjusting Heaps, SIAM J. Comput. 15 (1986), section 2: top-down skew heaps.
"""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    alloc,
    copy,
    ld_i64,
    max_i64,
    min_i64,
    prefetch,
    release,
    st_i64,
    zalloc,
)
from cq.runtime.containers.blocks import block_drop, block_resize
from cq.runtime.containers.ranks_sorting import DIGITS, put_ranked, ranks_sort
from cq.runtime.containers.ranks_words import (
    ITEM_BYTES,
    ITEM_NUMBER,
    ITEM_WORDS,
    LEAST,
    ORDER_KEEP,
    ORDER_KEYS,
    ORDER_SKIP,
    RANK_CLOSES,
    RANK_COUNT,
    RANK_ROOT,
    RANK_WORDS,
    RANK_WORST,
    RANKED_ARRIVAL,
    RANKED_FIRST,
    RANKED_ORDER,
    RANKS_AFTER,
    RANKS_AT,
    RANKS_CAPACITY,
    RANKS_HEAD,
    RANKS_ITEMS,
    RANKS_KEEP,
    RANKS_KEY_COUNT,
    RANKS_KEYS,
    RANKS_LAST,
    RANKS_LEFT,
    RANKS_NEXT,
    RANKS_SKIP,
    RANKS_TABLE,
    RANKS_WORDS,
    ranks_before,
)
from cq.runtime.containers.records import (
    RECORDS_FRESH,
    record_at,
    record_free,
    record_link,
    records_clear,
    records_close,
    records_held_bytes,
    records_open,
    set_record_link,
)
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_TAG,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_STRIDE,
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
from cq.runtime.layout.abi import BEFORE_ALL, NEVER

# How many rows ahead of the one that leaves its record is fetched: the records are far apart. CPU of an ORDER BY of 1 M
# rows, relative to the next distance: 8 rows ahead 1.12, 20 rows 1.07, 40 rows 1.11, 80 rows 1.03, 200 rows.
PREFETCHED = 100


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def ranks_new(entry_words: int, key_strings: int, record_words: int, strings: int, count: int, order: int) -> int:
    """No rows; 0 without memory. order: -> the ORDER words, copied, with `count` keys."""
    ranks = zalloc(RANKS_WORDS * 8)
    if ranks == 0:
        return 0
    table = table_new(entry_words, key_strings, 0)
    records = records_open(ranks, record_words, strings)
    keys = alloc(count * 8)
    st_i64(ranks, RANKS_TABLE, table)
    st_i64(ranks, RANKS_KEYS, keys)
    if table == 0 or records == 0 or keys == 0 or table_make_dense(table) == 0:
        ranks_drop(ranks)
        return 0
    copy(keys, order + ORDER_KEYS * 8, count * 8)
    st_i64(ranks, RANKS_HEAD, entry_words - RANK_WORDS)
    st_i64(ranks, RANKS_KEEP, ld_i64(order, ORDER_KEEP))
    st_i64(ranks, RANKS_SKIP, ld_i64(order, ORDER_SKIP))
    st_i64(ranks, RANKS_KEY_COUNT, count)
    st_i64(ranks, RANKS_NEXT, NEVER)
    st_i64(ranks, RANKS_LAST, BEFORE_ALL)
    return ranks


@native("i64(i64)", export=True)
def ranks_drop(ranks: int) -> int:
    """Free the rows; 0 is none."""
    if ranks != 0:
        table_drop(ld_i64(ranks, RANKS_TABLE))
        records_close(ranks)
        block_drop(ld_i64(ranks, RANKS_ITEMS))
        if ld_i64(ranks, RANKS_KEYS) != 0:
            release(ld_i64(ranks, RANKS_KEYS))
        release(ranks)
    return 0


# -- rows come -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64, i64)", export=True)
def ranks_open(ranks: int, entry: int, closes: int) -> int:
    """Initialise the entry of a new partition, its RANK words 0, to leave at this time; NEVER: at the end."""
    st_i64(entry, ld_i64(ranks, RANKS_HEAD) + RANK_WORST, NEVER)
    st_i64(entry, ld_i64(ranks, RANKS_HEAD) + RANK_CLOSES, closes)
    st_i64(ranks, RANKS_NEXT, min_i64(ld_i64(ranks, RANKS_NEXT), closes))
    return 0


@native("i64(i64, i64, i64)", export=True)
def ranks_commit(ranks: int, entry: int, arrival: int) -> int:
    """Add the record just filled to the partition, after equal ones; if there are too many, the last one is dropped.

    arrival: of its row. Rows made at one instant have the same; each comes after the one committed before it.
    """
    number = ld_i64(ranks, RECORDS_FRESH)
    arrival = max_i64(arrival, ld_i64(ranks, RANKS_LAST) + 1)
    st_i64(ranks, RANKS_LAST, arrival)
    record = record_at(ranks, number)
    st_i64(record, RANKED_ARRIVAL, arrival)
    st_i64(record, RANKED_FIRST, ld_i64(entry, ENTRY_FIRST))
    put_record(ranks, entry, number)
    return 0


@native("void(i64, i64, i64)")
def put_record(ranks: int, entry: int, number: int) -> None:
    """Add the record to the partition, or free the last record."""
    rank = entry + ld_i64(ranks, RANKS_HEAD) * 8
    keep = ld_i64(ranks, RANKS_KEEP)
    root = ld_i64(rank, RANK_ROOT)
    count = ld_i64(rank, RANK_COUNT)
    if keep < 0:
        set_record_link(record_at(ranks, number), 0, root)
        st_i64(rank, RANK_ROOT, number)
        st_i64(rank, RANK_COUNT, count + 1)
        return
    if count < keep:
        root = _merged(ranks, root, number)
        count += 1
    elif keep == 0 or ranks_before(ranks, record_at(ranks, root), record_at(ranks, number)) == 1:
        record_free(ranks, number)
        return
    else:
        last = record_at(ranks, root)
        rest = _merged(ranks, record_link(last, 0), record_link(last, 1))
        record_free(ranks, root)
        root = _merged(ranks, rest, number)
    st_i64(rank, RANK_ROOT, root)
    st_i64(rank, RANK_COUNT, count)
    if count == keep:
        worst = ld_i64(record_at(ranks, root), RANKED_ORDER)
        if ld_i64(ranks, RANKS_KEY_COUNT) == 1:  # then an equal row that comes later is no better
            worst = max_i64(worst, LEAST + 1) - 1
        st_i64(rank, RANK_WORST, worst)


@native("i64(i64, i64, i64)")
def _merged(ranks: int, a: int, b: int) -> int:
    """The number of the root of two merged heaps; 0 is none."""
    if a == 0 or b == 0:
        return a + b
    if ranks_before(ranks, record_at(ranks, a), record_at(ranks, b)) == 1:
        a, b = b, a
    root = a
    while b != 0:
        top = record_at(ranks, a)
        following = record_link(top, 1)
        set_record_link(top, 1, record_link(top, 0))
        if following == 0:
            set_record_link(top, 0, b)
            b = 0
        else:
            if ranks_before(ranks, record_at(ranks, following), record_at(ranks, b)) == 1:
                following, b = b, following
            set_record_link(top, 0, following)
            a = following
    return root


# -- and leave -------------------------------------------------------------------------------------------------------


@native("i64(i64, i64)", export=True)
def ranks_due(ranks: int, instant: int) -> int:
    """Put what leaves at or before this instant in order, delete its partitions and return 1; 0 without memory."""
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
    """Add the rows of this partition, in order, after the first `count` items; return how many items there are."""
    rank = entry + ld_i64(ranks, RANKS_HEAD) * 8
    items = ld_i64(ranks, RANKS_ITEMS) + count * ITEM_BYTES
    rows = ld_i64(rank, RANK_COUNT)
    number = ld_i64(rank, RANK_ROOT)
    first = ld_i64(entry, ENTRY_FIRST)
    if ld_i64(ranks, RANKS_KEEP) < 0:
        for n in range(rows - 1, -1, -1):
            put_ranked(ranks, items, n, number, first)
            number = record_link(record_at(ranks, number), 0)
    elif rows > 0:
        put_ranked(ranks, items, 0, number, first)
        behind = 1
        for n in range(rows):
            record = record_at(ranks, ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER))
            for side in range(2):
                number = record_link(record, side)
                if number != 0:
                    put_ranked(ranks, items, behind, number, first)
                    behind += 1
    ranks_sort(ranks, items, rows)
    skipped = min_i64(ld_i64(ranks, RANKS_SKIP), rows)
    for n in range(skipped):
        record_free(ranks, ld_i64(items, n * ITEM_WORDS + ITEM_NUMBER))
    if skipped > 0:
        for n in range(skipped, rows):
            copy(items + (n - skipped) * ITEM_BYTES, items + n * ITEM_BYTES, ITEM_BYTES)
    return count + rows - skipped


@native("i64(i64)", export=True)
def ranks_first(ranks: int) -> int:
    """The record that leaves next; RANKS_LEFT is not 0."""
    items = ld_i64(ranks, RANKS_ITEMS)
    at = ld_i64(ranks, RANKS_AT)
    if ld_i64(ranks, RANKS_LEFT) > PREFETCHED:
        ahead = record_at(ranks, ld_i64(items, (at + PREFETCHED) * ITEM_WORDS + ITEM_NUMBER))
        prefetch(ahead)
        prefetch(ahead + ld_i64(ranks, TABLE_STRIDE) - 8)
    return record_at(ranks, ld_i64(items, at * ITEM_WORDS + ITEM_NUMBER))


@native("i64(i64)", export=True)
def ranks_pop(ranks: int) -> int:
    """Remove the record that leaves next."""
    at = ld_i64(ranks, RANKS_AT)
    left = ld_i64(ranks, RANKS_LEFT) - 1
    if ld_i64(ld_i64(ranks, RANKS_TABLE), TABLE_COUNT) != 0:  # otherwise all records are freed at once (`_settle`)
        record_free(ranks, ld_i64(ld_i64(ranks, RANKS_ITEMS), at * ITEM_WORDS + ITEM_NUMBER))
    st_i64(ranks, RANKS_AT, at + 1)
    st_i64(ranks, RANKS_LEFT, left)
    if left == 0:
        _settle(ranks)
    return 0


@native("void(i64)")
def _settle(ranks: int) -> None:
    """After all rows have left: if no partition is left, reset the pool as if no record had ever been used."""
    st_i64(ranks, RANKS_NEXT, ld_i64(ranks, RANKS_AFTER))
    if ld_i64(ld_i64(ranks, RANKS_TABLE), TABLE_COUNT) == 0:
        records_clear(ranks)


@native("i64(i64)", export=True)
def ranks_held_bytes(ranks: int) -> int:
    """Memory the rows hold; 0 is none."""
    if ranks == 0:
        return 0
    items = 2 * ld_i64(ranks, RANKS_CAPACITY) * ITEM_BYTES + DIGITS * 8
    table = table_held_bytes(ld_i64(ranks, RANKS_TABLE))
    return RANKS_WORDS * 8 + records_held_bytes(ranks) + items + table
