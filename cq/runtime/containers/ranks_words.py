"""The words of ranks (ranks.py), and which of two records comes first."""

from __future__ import annotations

from cq.runtime.base.native import native
from cq.runtime.base.ops import (
    compare,
    ld_i64,
    ld_u8,
    min_i64,
    shl,
    shr_u,
)
from cq.runtime.containers.records import RECORDS_WORDS
from cq.runtime.containers.strings import (
    string_address,
    string_length,
)
from cq.runtime.layout.words import Struct, name_words

_ranks = Struct("RANKS", after=RECORDS_WORDS)
# the earliest time at which a partition leaves, until all its rows have left; NEVER if none does before the end
RANKS_NEXT = _ranks.word()
RANKS_AFTER = _ranks.word()  # what RANKS_NEXT is then
RANKS_TABLE = _ranks.word()  # the partitions
RANKS_HEAD = _ranks.word()  # the word of an entry where the RANK words begin
RANKS_KEEP = _ranks.word()  # rows of a partition; -1: all
RANKS_SKIP = _ranks.word()  # the first rows of a partition, which do not leave
RANKS_KEYS = _ranks.word()  # -> what the order compares, a word each: a word of the record, below it the kind
RANKS_KEY_COUNT = _ranks.word()
RANKS_LAST = _ranks.word()  # the arrival of the last record committed
RANKS_ITEMS = _ranks.word()  # -> rows that leave, as much room again to sort them, and a word for each digit
RANKS_CAPACITY = _ranks.word()  # rows RANKS_ITEMS has room for
RANKS_AT = _ranks.word()  # the next of them
RANKS_LEFT = _ranks.word()  # how many are left
RANKS_WORDS = _ranks.lines()

_order = Struct("ORDER")  # an argument of `ranks_new`
ORDER_KEEP = _order.word()  # RANKS_KEEP
ORDER_SKIP = _order.word()  # RANKS_SKIP
ORDER_KEYS = _order.rest()  # the words behind RANKS_KEYS

_rank = Struct("RANK")  # the last words of a partition's entry
RANK_ROOT = _rank.word()  # the number of the first record of its chain, or of the last one by order if few are kept
RANK_COUNT = _rank.word()  # its records
RANK_WORST = _rank.word()  # the greatest first order word that a kept row may have
RANK_CLOSES = _rank.word()  # when it leaves; NEVER: at the end
RANK_WORDS = _rank.size()

_record = Struct("RANKED")
RANKED_LINKS = _record.word()  # numbers of two records of the same partition, or 0
RANKED_ARRIVAL = _record.word()  # orders equal rows: the serial of its row, or more if that is taken
RANKED_FIRST = _record.word()  # ENTRY_FIRST of its partition, once it leaves
RANKED_ORDER = _record.rest()  # the order words, then the row's

_item = Struct("ITEM")
ITEM_ORDER = _item.word()  # the first order word of a row that leaves
ITEM_NUMBER = _item.word()  # the number of its record
ITEM_WORDS = _item.size()

KEY_WORD, KEY_TEXT, KEY_TEXT_DESCENDING = 0, 1, 2
KIND_BITS = 2  # the low bits of a word of RANKS_KEYS
ITEM_BYTES = ITEM_WORDS * 8
LEAST = -9223372036854775807 - 1  # with its sign flipped a word orders as an unsigned one

name_words(globals())


@native("i64(i64, i64, i64)", inline=True)
def ranks_before(ranks: int, a: int, b: int) -> int:
    """Whether record a leaves before record b of its partition: if their first order words differ, these decide."""
    x = ld_i64(a, RANKED_ORDER)
    y = ld_i64(b, RANKED_ORDER)
    if x != y:
        return 1 if x < y else 0
    return ranks_equal_before(ranks, a, b)


@native("i64(i64, i64, i64)", export=True)
def ranks_equal_before(ranks: int, a: int, b: int) -> int:
    """Whether record a leaves before record b, whose first order words are equal."""
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
    """Below 0 if the text of record a at this word comes before that of b, by bytes; 0 if they are equal."""
    first = string_length(a, word)
    second = string_length(b, word)
    shared = min_i64(first, second)
    order = compare(string_address(ranks, a, word), string_address(ranks, b, word), shared)
    return order if order != 0 else first - second


@native("i64(i64, i64)", export=True)
def text_order(address: int, length: int) -> int:
    """The order word of a text: its first eight bytes, 0 beyond its end, as a number that compares as they do."""
    word = 0
    for n in range(8):
        byte = 0
        if n < length:
            byte = ld_u8(address, n)
        word = shl(word, 8) | byte
    return word ^ LEAST
