"""The word at a place of a list's order is the one that sorting would put there, whatever the list is."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from cq.lang.aggregates.collected import between, reaching
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import lists, selecting
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.containers.tables import table_drop, table_insert, table_new

LIST = ENTRY_FIRST
MOST = 2**63 - 1
Draw = Callable[[random.Random, int], int]

DRAWN: dict[str, Draw] = {
    "any": lambda dice, n: dice.randrange(-MOST - 1, MOST),
    "few": lambda dice, n: dice.randrange(3),
    "one": lambda dice, n: 7,
    "greatest": lambda dice, n: dice.choice([MOST, MOST, -MOST - 1]),
    "ascending": lambda dice, n: n,
    "descending": lambda dice, n: -n,
    "up and down": lambda dice, n: min(n, 200 - n),
    "organ pipes": lambda dice, n: n % 17 * 100 + n,
}


class Words:
    """A list in the simulated memory."""

    def __init__(self, values: list[int]) -> None:
        self.table = table_new(LIST + lists.LIST_WORDS, 1 << LIST, 0)
        self.slot = table_insert(self.table, 1, 0) + LIST * 8
        st_i64(self.slot, 0, 0)
        self.add(values)

    def add(self, values: list[int]) -> None:
        for value in values:
            assert lists.list_add(self.table, self.slot, value) == 1

    def reaching(self, fraction: float) -> int:
        assert selecting.list_seek_reaching(self.table, self.slot, fraction) == 1
        return selecting.list_reaching(self.table, self.slot, fraction)

    def between(self, fraction: float) -> float:
        assert selecting.list_seek_between(self.table, self.slot, fraction) == 1
        return selecting.list_between(self.table, self.slot, fraction)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 18, 40, 100, 333])
@pytest.mark.parametrize("drawn", DRAWN)
def test_a_place_has_the_word_that_sorting_would_give_it(drawn: str, count: int) -> None:
    dice = random.Random(count)
    for fraction in (0.0, 0.25, 0.5, 0.99, 1.0, dice.random()):
        values = [DRAWN[drawn](dice, n) for n in range(count)]
        with Memory() as memory:
            words = Words(values)
            assert words.reaching(fraction) == reaching(sorted(values), fraction)
            items = lists.list_items(words.table, words.slot)
            assert sorted(ld_i64(items, n) for n in range(count)) == sorted(values)
            table_drop(words.table)
            memory.check_no_leaks()


@pytest.mark.parametrize("count", [1, 2, 17, 100, 101])
def test_between_two_doubles_is_what_it_would_be_of_sorted_ones(count: int) -> None:
    dice = random.Random(count)
    values = [dice.choice([dice.uniform(-5, 5), float(dice.randrange(3)), -2.5]) for _ in range(count)]
    bits = [lists.ordered_bits(struct.unpack("<q", struct.pack("<d", v))[0]) for v in values]
    for fraction in (0.0, 0.3, 0.5, 0.77, 1.0):
        with Memory():
            assert Words(bits).between(fraction) == between(sorted(values), fraction)


@pytest.mark.parametrize("drawn", ["any", "descending", "up and down"])
def test_every_place_of_a_list_can_be_sought_with_the_one_behind_it(drawn: str) -> None:
    dice = random.Random(9)
    values = [float(DRAWN[drawn](dice, n) % 1000) for n in range(60)]
    bits = [struct.unpack("<q", struct.pack("<d", v))[0] for v in values]
    for place in range(59):
        with Memory():
            fraction = (place + 0.5) / 59
            assert Words(bits).between(fraction) == between(sorted(values), fraction)


@pytest.mark.parametrize("drawn", DRAWN)
def test_no_such_list_is_sorted(drawn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(items: int, count: int) -> int:
        raise AssertionError(f"{count} words are left")

    monkeypatch.setattr(selecting, "sort_words", refuse)
    dice = random.Random(4)
    values = [DRAWN[drawn](dice, n) for n in range(500)]
    for fraction in (0.0, 0.5, 0.9):
        with Memory():
            assert Words(values).reaching(fraction) == reaching(sorted(values), fraction)


def test_a_list_that_is_read_again_and_again_is_sorted_and_new_words_find_their_places() -> None:
    dice = random.Random(3)
    values = [dice.randrange(1000) for _ in range(60)]
    with Memory():
        words = Words(values)
        for turn in range(30):
            assert words.reaching(0.5) == reaching(sorted(values), 0.5)
            ordered = ld_i64(words.slot, lists.LIST_ORDERED)
            assert ordered == (lists.READ_ONCE if turn == 0 else len(values))
            more = [dice.randrange(1000) for _ in range(dice.choice([0, 1, 3, 20]))]
            words.add(more)
            values += more


def test_words_that_part_badly_are_sorted_after_some_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pivot parts anything: each turn would be in vain."""
    sorted_words: list[int] = []
    sort = selecting.sort_words
    monkeypatch.setattr(selecting, "sort_words", lambda items, n: sorted_words.append(n) or sort(items, n))
    monkeypatch.setattr(selecting, "_pivot", lambda items, start, count, turn: -5)
    values = list(range(300))
    with Memory():
        words = Words(values)
        assert words.reaching(0.9) == reaching(values, 0.9)
    assert sorted_words == [300]


def test_without_memory_for_that_the_caller_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selecting, "_pivot", lambda items, start, count, turn: -5)
    with Memory():
        words = Words(list(range(300)))
        monkeypatch.setattr(selecting, "sort_words", lambda items, n: 0)
        assert selecting.list_seek_between(words.table, words.slot, 0.9) == 0
