"""Rows of frames against lists: what is kept, in the frame, behind it; saving and taking, no memory."""

from __future__ import annotations

import random

import pytest

from cq.records import dataclass, field
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import frames as f
from cq.runtime.containers.records import record_at, record_link, record_new
from cq.runtime.containers.strings import hash_word, string_address, string_length, string_store
from cq.runtime.containers.table_words import (
    ENTRY_KEYS,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_insert
from cq.runtime.layout.abi import NEVER

NUMBER, TEXT, RECORD_WORDS = 1, 2, 4
ENTRY_WORDS = ENTRY_KEYS + 1 + f.FRAME_WORDS
HEAD = ENTRY_KEYS + 1
KEYS = 3


@dataclass
class Wanted:
    """A partition as lists: the numbers of all rows, and how many of them are before each place."""

    rows: list[int] = field(default_factory=list)
    forgotten: int = 0
    dropped: int = 0
    taken: int = 0
    left: int = 0


class Rows:
    """Rows of frames in the simulated memory; each has a number, and a text made of it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.frames = f.frames_new(ENTRY_WORDS, 0, RECORD_WORDS, 1 << TEXT)

    def entries(self) -> dict[int, int]:
        table = ld_i64(self.frames, f.FRAMES_TABLE)
        words = [ld_i64(table, w) for w in (TABLE_ENTRIES, TABLE_BIRTHS, TABLE_STRIDE)]
        entries = [entry_at(*words, n) for n in range(ld_i64(table, TABLE_COUNT))]
        return {ld_i64(e, ENTRY_KEYS): e for e in entries}

    def entry(self, key: int) -> int:
        found = self.entries().get(key)
        if found is None:
            found = table_insert(ld_i64(self.frames, f.FRAMES_TABLE), hash_word(key), key)
            if found:
                st_i64(found, ENTRY_KEYS, key)
        return found

    def add(self, key: int, number: int) -> bool:
        """Whether there was memory for it."""
        text = b"the text of row %d" % number
        entry = self.entry(key)
        record = record_new(self.frames) if entry else 0
        if record == 0 or string_store(self.frames, record, TEXT, self.memory.place(text + bytes(8)), len(text)) == 0:
            return False
        st_i64(record, NUMBER, number)
        f.frame_add(self.frames, entry)
        return True

    def check(self, key: int, wanted: Wanted) -> None:
        frame = self.entry(key) + HEAD * 8
        assert [ld_i64(frame, w) for w in (f.FRAME_FORGOTTEN, f.FRAME_ADDED, f.FRAME_DROPPED, f.FRAME_TAKEN)] == [
            wanted.forgotten, len(wanted.rows), wanted.dropped, wanted.taken,
        ]  # fmt: skip
        assert self._from(ld_i64(frame, f.FRAME_FIRST)) == wanted.rows[wanted.forgotten :]
        assert self._from(ld_i64(frame, f.FRAME_START)) == wanted.rows[wanted.dropped :]
        assert self._from(ld_i64(frame, f.FRAME_NEXT)) == wanted.rows[wanted.taken :]
        assert self._from(ld_i64(frame, f.FRAME_NOW)) == wanted.rows[wanted.left :]
        if wanted.taken > wanted.dropped:
            last = record_at(self.frames, f.frame_end(self.frames, frame - HEAD * 8))
            assert ld_i64(last, NUMBER) == wanted.rows[wanted.taken - 1]

    def _from(self, number: int) -> list[int]:
        found = []
        while number != 0:
            record = record_at(self.frames, number)
            found.append(ld_i64(record, NUMBER))
            text = self.memory.read(string_address(self.frames, record, TEXT), string_length(record, TEXT))
            assert text == b"the text of row %d" % found[-1]
            number = record_link(record, f.BEHIND)
        return found


def step(dice: random.Random, rows: Rows, wanted: dict[int, Wanted], number: int) -> None:
    """A row comes, and the places of its partition may move on."""
    key = dice.randrange(KEYS)
    mine = wanted.setdefault(key, Wanted())
    assert rows.add(key, number)
    mine.rows.append(number)
    entry = rows.entry(key)
    for _ in range(dice.randrange(3)):
        if mine.taken < len(mine.rows):
            f.frame_take(rows.frames, entry)
            mine.taken += 1
        if mine.dropped < mine.taken and dice.random() < 0.8:
            f.frame_drop(rows.frames, entry)
            mine.dropped += 1
        if mine.left < len(mine.rows) and dice.random() < 0.9:
            f.frame_leave(rows.frames, entry)
            mine.left += 1
    mine.forgotten = min(mine.dropped, mine.left)
    f.frame_forget(rows.frames, entry, mine.forgotten)
    rows.check(key, mine)


@pytest.mark.parametrize("seed", range(3))
def test_the_places_of_a_frame_are_those_in_lists(seed: int) -> None:
    dice, wanted = random.Random(seed), dict[int, Wanted]()
    with Memory() as memory:
        rows = Rows(memory)
        for number in range(200):
            step(dice, rows, wanted, number)
        assert f.frames_held_bytes(rows.frames) > 0
        assert f.frames_clear(rows.frames) == 1 and ld_i64(rows.frames, f.FRAMES_NEXT) == NEVER
        assert rows.add(7, 1)
        rows.check(7, Wanted([1]))
        f.frames_drop(rows.frames)
        memory.check_no_leaks()


def test_what_was_saved_goes_on_and_partitions_can_be_taken_apart() -> None:
    dice, wanted = random.Random(5), dict[int, Wanted]()
    with Memory() as memory:
        rows = Rows(memory)
        for number in range(120):
            step(dice, rows, wanted, number)
        saved = memory.place(bytes(8 * f.frames_saved_words(rows.frames)), writable=True)
        written = f.frames_save(rows.frames, saved)
        again, taken = Rows(memory), Rows(memory)
        assert f.frames_load(again.frames, saved) == written
        assert f.frames_load(again.frames, saved) == 0  # it has rows already
        for key in sorted(again.entries(), reverse=True):
            assert f.frames_take(taken.frames, again.frames, again.entries()[key]) == 1
        assert f.frames_taken(taken.frames) == 1
        state = dice.getstate()
        for made in (again, taken):
            copies = {k: Wanted(list(w.rows), w.forgotten, w.dropped, w.taken, w.left) for k, w in wanted.items()}
            for key, mine in copies.items():
                made.check(key, mine)
            dice.setstate(state)
            for number in range(120, 180):
                step(dice, made, copies, number)
        for made in (rows, again, taken):
            f.frames_drop(made.frames)
        memory.check_no_leaks()


@pytest.mark.parametrize("fail_at", range(1, 9))
def test_without_memory_what_is_there_stays(fail_at: int) -> None:
    with Memory(fail_at=fail_at) as memory:
        rows = Rows(memory)
        if rows.frames != 0:
            there = []
            for number in range(200):
                if not rows.add(0, number):
                    break
                there.append(number)
            if there:
                rows.check(0, Wanted(there))
            f.frames_drop(rows.frames)
        memory.check_no_leaks()
