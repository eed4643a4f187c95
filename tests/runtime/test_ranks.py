"""Rows by rank against sorted lists: what leaves and when, memory used again, saving and taking, no memory."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import ranks as r
from cq.runtime.containers import ranks_saving as saving
from cq.runtime.containers import ranks_words as w
from cq.runtime.containers.ranks_sorting import DIGITS
from cq.runtime.containers.ranks_words import KEY_TEXT_DESCENDING, KEY_WORD, KIND_BITS, RANKED_ORDER
from cq.runtime.containers.records import record_at, record_new
from cq.runtime.containers.strings import hash_word, string_address, string_length, string_store
from cq.runtime.containers.table_words import ENTRY_KEYS, TABLE_COUNT, TABLE_ENTRIES, TABLE_STRIDE
from cq.runtime.containers.tables import table_insert, table_settle
from cq.runtime.layout.abi import NEVER

VALUE, PREFIX, TEXT, NUMBER = RANKED_ORDER, RANKED_ORDER + 1, RANKED_ORDER + 2, RANKED_ORDER + 4
RECORD_WORDS = NUMBER + 1
ENTRY_WORDS = ENTRY_KEYS + 1 + w.RANK_WORDS
KEYS = [(VALUE << KIND_BITS) + KEY_WORD, (PREFIX << KIND_BITS) + KEY_WORD, (TEXT << KIND_BITS) + KEY_TEXT_DESCENDING]
TEXTS = [
    b"",
    b"a",
    b"ab",
    b"the same twelve",
    b"the same twelve bytes, then a",
    b"the same twelve bytes, then b",
    b"\xc3\xa4",
]


class Row(NamedTuple):
    """What a row is, and of which partition; its number is its arrival."""

    closes: int
    key: int
    value: int
    text: bytes
    number: int


class Rows:
    """Rows by rank in the simulated memory: by value, then by text, descending."""

    def __init__(self, memory: Memory, keep: int, skip: int = 0) -> None:
        self.memory = memory
        order = memory.place(struct.pack(f"<{2 + len(KEYS)}q", keep, skip, *KEYS))
        self.ranks = r.ranks_new(ENTRY_WORDS, 0, RECORD_WORDS, 1 << TEXT, len(KEYS), order)

    def put(self, row: Row) -> bool:
        """Whether there was memory for it."""
        text = self.memory.place(row.text + bytes(8))
        entry = self.entry_of(row.key) or self.open(row)
        record = record_new(self.ranks) if entry else 0
        if record == 0:
            return False
        st_i64(record, VALUE, row.value)
        st_i64(record, PREFIX, w.text_order(text, len(row.text)) ^ -1)
        st_i64(record, NUMBER, row.number)
        if string_store(self.ranks, record, TEXT, text, len(row.text)) == 0:
            return False
        r.ranks_commit(self.ranks, entry, row.number)
        return True

    def open(self, row: Row) -> int:
        made = table_insert(ld_i64(self.ranks, w.RANKS_TABLE), hash_word(row.key), row.number)
        if made:
            st_i64(made, ENTRY_KEYS, row.key)
            r.ranks_open(self.ranks, made, row.closes)
        return made

    def entries(self) -> Iterator[int]:
        table = ld_i64(self.ranks, w.RANKS_TABLE)
        for n in range(1, ld_i64(table, TABLE_COUNT) + 1):
            yield ld_i64(table, TABLE_ENTRIES) + n * ld_i64(table, TABLE_STRIDE)

    def entry_of(self, key: int) -> int:
        table_settle(ld_i64(self.ranks, w.RANKS_TABLE))
        return next((e for e in self.entries() if ld_i64(e, ENTRY_KEYS) == key), 0)

    def leave(self, instant: int) -> list[tuple[int, bytes, int]]:
        """The numbers and texts of what leaves, and when the first row of its partition came."""
        assert r.ranks_due(self.ranks, instant) == 1
        found = []
        while ld_i64(self.ranks, w.RANKS_LEFT) != 0:
            record = r.ranks_first(self.ranks)
            text = self.memory.read(string_address(self.ranks, record, TEXT), string_length(record, TEXT))
            found.append((ld_i64(record, NUMBER), text, ld_i64(record, w.RANKED_FIRST)))
            r.ranks_pop(self.ranks)
        return found

    @property
    def next(self) -> int:
        return ld_i64(self.ranks, w.RANKS_NEXT)


def expected(rows: list[Row], instant: int, keep: int, skip: int) -> list[tuple[int, bytes, int]]:
    """Partitions by first arrival, the rows of each by value, text descending, number."""
    partitions: dict[int, list[Row]] = {}
    for row in rows:
        if row.closes <= instant:
            partitions.setdefault(row.key, []).append(row)
    found = []
    for part in partitions.values():
        first = part[0].number
        part.sort(key=lambda row: row.text, reverse=True)  # equal ones stay as they are
        part.sort(key=lambda row: row.value)
        last = len(part) if keep < 0 else keep
        found += [(row.number, row.text, first) for row in part[skip:last]]
    return found


def drawn(seed: int, count: int) -> list[Row]:
    """Rows of a dozen partitions, which close at three times; few values, so that texts and arrivals decide."""
    dice = random.Random(seed)
    keys = [dice.randrange(12) for _ in range(count)]
    return [Row(10 * (k % 3 + 1), k, dice.randrange(-2, 3), dice.choice(TEXTS), n) for n, k in enumerate(keys)]


@pytest.mark.parametrize(("keep", "skip"), [(-1, 0), (-1, 3), (0, 0), (1, 0), (5, 2), (40, 0)])
def test_what_leaves_is_what_sorting_would_give(keep: int, skip: int) -> None:
    with Memory() as memory:
        rows = Rows(memory, keep, skip)
        for turn in range(3):  # what has left is as if it had never been
            came = drawn(turn, 150)
            assert all(map(rows.put, came))
            for instant in (10, 20, 30):
                assert rows.next == instant
                assert rows.leave(instant) == expected([x for x in came if x.closes == instant], instant, keep, skip)
            assert rows.next == NEVER and rows.leave(NEVER) == []
        r.ranks_drop(rows.ranks)
        memory.check_no_leaks()


@pytest.mark.parametrize("most", [3, 2**40, 2**63 - 1])
def test_many_rows_are_sorted_by_digits_and_equal_ones_among_themselves(most: int) -> None:
    dice = random.Random(most)
    came = [Row(NEVER, 0, dice.randrange(-most, most), dice.choice(TEXTS), n) for n in range(DIGITS + 50)]
    with Memory() as memory:
        rows = Rows(memory, -1)
        assert all(map(rows.put, came))
        assert rows.leave(NEVER) == expected(came, NEVER, -1, 0)
        r.ranks_drop(rows.ranks)
        memory.check_no_leaks()


def test_rows_that_are_no_better_take_no_memory() -> None:
    with Memory() as memory:
        rows = Rows(memory, keep=4)
        text = b"a text of more than twelve bytes"
        for n in range(3000):
            rows.put(Row(NEVER, 0, -n if n % 2 else n, text + b"%d" % n, n))
            if n == 100:
                held = r.ranks_held_bytes(rows.ranks)
        assert r.ranks_held_bytes(rows.ranks) <= held + 4 * 65536  # the texts that are gone are moved out in time
        assert [n for n, *_ in rows.leave(NEVER)] == [2999, 2997, 2995, 2993]
        r.ranks_drop(rows.ranks)


@pytest.mark.parametrize("keep", [-1, 3])
def test_what_was_saved_goes_on_and_partitions_can_be_taken_apart(keep: int) -> None:
    came = drawn(7, 200)
    with Memory() as memory:
        rows = Rows(memory, keep)
        assert all(map(rows.put, came[:120]))
        saved = memory.place(bytes(8 * saving.ranks_saved_words(rows.ranks)), writable=True)
        written = saving.ranks_save(rows.ranks, saved)
        again, parts = Rows(memory, keep), [Rows(memory, keep), Rows(memory, keep)]
        assert saving.ranks_load(again.ranks, saved) == written and again.next == rows.next
        assert saving.ranks_load(again.ranks, saved) == 0  # it has rows already
        for entry in reversed(list(again.entries())):  # in another order than that of their arrival
            assert saving.ranks_take(parts[ld_i64(entry, ENTRY_KEYS) % 2].ranks, again.ranks, entry) == 1
        for part in parts:
            assert saving.ranks_taken(part.ranks) == 1
        for row in came[120:]:
            assert again.put(row) and parts[row.key % 2].put(row)
        for instant in (10, 20, 30):
            due = [row for row in came if row.closes == instant]
            assert again.leave(instant) == expected(due, instant, keep, 0)
            for n, part in enumerate(parts):
                assert part.leave(instant) == expected([x for x in due if x.key % 2 == n], instant, keep, 0)
        for made in (rows, again, *parts):
            r.ranks_drop(made.ranks)
        memory.check_no_leaks()


@pytest.mark.parametrize(("keep", "skip"), [(0, 0), (1, 0), (5, 2), (40, 0)])
def test_what_several_have_filled_is_what_one_would_have(keep: int, skip: int) -> None:
    """Rows go to three in turn; what closes is handed over in any order, twice before it leaves."""
    came = drawn(11, 400)
    with Memory() as memory:
        parts, target = [Rows(memory, keep, skip) for _ in range(3)], Rows(memory, keep, skip)
        dice = random.Random(1)
        for row in came[:300]:
            assert dice.choice(parts).put(row)
        assert sum(saving.ranks_hand_over(p.ranks, target.ranks, 1, 10) for p in parts) > 0 or keep == 0
        assert target.next == 10 and {p.next for p in parts} == {20}
        late = [row for row in came[300:] if row.closes != 10]
        for row in late:
            assert dice.choice(parts).put(row)
        for n in (2, 0, 1):
            saving.ranks_hand_over(parts[n].ranks, target.ranks, n + 1, 25)
        assert {p.next for p in parts} == {30}
        there = [*came[:300], *late]
        for instant in (10, 20):
            assert target.leave(instant) == expected([x for x in there if x.closes == instant], instant, keep, skip)
        assert target.next == NEVER
        for part in parts:
            saving.ranks_hand_over(part.ranks, target.ranks, 1, NEVER)
            assert saving.ranks_groups(part.ranks, 0) == 0
        assert target.leave(NEVER) == expected([x for x in there if x.closes == 30], NEVER, keep, skip)
        for made in (*parts, target):
            r.ranks_drop(made.ranks)
        memory.check_no_leaks()


@pytest.mark.parametrize("fail_at", range(1, 40))
def test_without_memory_nothing_leaks_when_rows_are_handed_over(fail_at: int) -> None:
    came = drawn(5, 60)
    with Memory(fail_at=fail_at) as memory:
        parts, target = [Rows(memory, 5) for _ in range(2)], Rows(memory, 5)
        if all(p.ranks for p in (*parts, target)) and all(parts[n % 2].put(row) for n, row in enumerate(came)):
            found = [saving.ranks_hand_over(p.ranks, target.ranks, 1, NEVER) for p in parts]
            assert -1 in found or target.leave(NEVER) == expected(came, NEVER, 5, 0)
        for made in (*parts, target):
            r.ranks_drop(made.ranks)
        memory.check_no_leaks()


def test_rows_that_came_at_one_instant_keep_their_order() -> None:
    with Memory() as memory:
        rows = Rows(memory, 5)
        for n in range(5):
            assert rows.put(Row(NEVER, 0, 1, b"", 7 - n // 3))
            st_i64(record_at(rows.ranks, n + 1), NUMBER, 10 + n)
        assert [n for n, *_ in rows.leave(NEVER)] == [10, 11, 12, 13, 14]
        r.ranks_drop(rows.ranks)


@pytest.mark.parametrize("fail_at", range(1, 14))
def test_without_memory_what_is_there_stays(fail_at: int) -> None:
    came = [row._replace(closes=NEVER) for row in drawn(3, 200)]
    with Memory(fail_at=fail_at) as memory:
        rows = Rows(memory, -1)
        if rows.ranks != 0:
            there = []
            for row in came:
                if not rows.put(row):
                    break
                there.append(row)
            if r.ranks_due(rows.ranks, NEVER) == 1:
                assert ld_i64(rows.ranks, w.RANKS_LEFT) == len(there)
            r.ranks_drop(rows.ranks)
        memory.check_no_leaks()


def test_the_first_word_of_a_text_orders_as_its_bytes() -> None:
    with Memory() as memory:
        texts = sorted({*TEXTS, b"b", b"\xff\xff", b"a\x00", b"12345678", b"123456789"})
        words = [w.text_order(memory.place(t + bytes(8)), len(t)) for t in texts]
        assert words == sorted(words) and words[0] == -(2**63)
