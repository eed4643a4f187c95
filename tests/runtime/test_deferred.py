"""Deferred rows of a multimap against lists in a dictionary: laid down, then put into the lists of their keys."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shl, shr_u, st_i64, wmul
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import deferred as d
from cq.runtime.containers import multimap as mm
from cq.runtime.containers import multimap_saving as ms
from cq.runtime.containers import multimap_words as m
from cq.runtime.containers import table_words as t
from cq.runtime.containers import tables
from cq.runtime.containers.deferred import deferred_row
from cq.runtime.containers.multimap import multimap_append
from cq.runtime.containers.multimap_words import (
    MULTIMAP_DEFERRED,
    MULTIMAP_HEAD,
    MULTIMAP_RECORD_BYTES,
    MULTIMAP_TABLE,
    ROW_VALUES,
)
from cq.runtime.containers.strings import HASH_FACTOR, hash_mix
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_insert

VALUES = 2


def shape(words: int) -> tuple[int, ...]:
    """Of a multimap whose keys have so many words."""
    return (ENTRY_FIRST + words + m.ENDS_WORDS, 0, m.ROW_VALUES + VALUES, 0, m.DEFER_NEVER)


@native("i64(i64, i64)")
def hash_words(key: int, words: int) -> int:
    """What generated code takes for the hash of so many words."""
    state = wmul(ld_i64(key, 0), HASH_FACTOR)
    for word in range(1, words):
        state = hash_mix(state, ld_i64(key, word))
    return shr_u(state, 32)


@native("i64(i64, i64)")
def key_entry(multimap: int, key: int) -> int:
    """The entry of a key, made if it is missing; 0 without memory."""
    table = ld_i64(multimap, MULTIMAP_TABLE)
    words = ld_i64(multimap, MULTIMAP_HEAD) - ENTRY_FIRST
    births = ld_i64(table, TABLE_BIRTHS)
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), births, ld_i64(table, TABLE_STRIDE), n)
        same = 1
        for word in range(words):
            if ld_i64(entry, ENTRY_FIRST + word) != ld_i64(key, word):
                same = 0
        if same == 1:
            return entry
    made = table_insert(table, hash_words(key, words), 0)
    if made != 0:
        for word in range(words):
            st_i64(made, ENTRY_FIRST + word, ld_i64(key, word))
    return made


@native("i64(i64, i64, i64)", export=True)
def put_row(multimap: int, key: int, value: int) -> int:
    """1 and what generated code does with a row has been done; 0 without memory."""
    words = ld_i64(multimap, MULTIMAP_HEAD) - ENTRY_FIRST
    deferred = ld_i64(multimap, MULTIMAP_DEFERRED)
    if deferred != 0:
        row = deferred_row(deferred, hash_words(key, words), (VALUES + words) * 8)
        if row == 0:
            return 0
        for word in range(words):
            st_i64(row, VALUES + word, ld_i64(key, word))
    else:
        entry = key_entry(multimap, key)
        if entry == 0:
            return 0
        record = multimap_append(
            multimap, entry + ld_i64(multimap, MULTIMAP_HEAD) * 8, ld_i64(multimap, MULTIMAP_RECORD_BYTES)
        )
        if record == 0:
            return 0
        row = record + ROW_VALUES * 8
    st_i64(row, 0, value)
    st_i64(row, 1, shl(value, 1))
    return 1


@native("i64(i64, i64)", export=True)
def is_zero(multimap: int, key: int) -> int:
    """1 if a new deferred row holds nothing of what its memory held before; its words are then filled."""
    row = deferred_row(ld_i64(multimap, MULTIMAP_DEFERRED), hash_words(key, 1), (VALUES + 1) * 8)
    same = 1
    for word in range(VALUES + 1):
        if ld_i64(row, word) != 0:
            same = 0
        st_i64(row, word, -1)
    return same


@native("i64(i64, i64, i64, i64)", export=True)
def put_rows(multimap: int, key: int, count: int, keys: int) -> int:
    """1 and there are rows of the values 0 … count - 1, of keys one after the other; 0 without memory. key: room."""
    for value in range(count):
        st_i64(key, 0, value % keys)
        if put_row(multimap, key, value) == 0:
            return 0
    return 1


FUNCTIONS = (
    mm.multimap_new, mm.multimap_drop, mm.multimap_held_bytes, d.multimap_defer, d.multimap_ask, d.multimap_settle,
    ms.multimap_saved_words, ms.multimap_save, ms.multimap_load, tables.table_size_for, put_row, put_rows, is_zero,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


class Model:
    """A multimap, and what it should hold: values by key."""

    def __init__(self, run, words=1):
        self.run, self.words, self.lists = run, words, {}
        self.multimap = run.multimap_new(*shape(words))

    def append(self, key, value):
        assert self.run.put_row(self.multimap, self.run.place_words(*key), value) == 1
        self.lists.setdefault(key, []).append(value)

    def fill(self, dice, count, keys):
        for value in range(count):
            self.append(dice.choice(keys), value)

    def header(self, word):
        return self.run.words(self.multimap, m.MULTIMAP_WORDS)[word]

    def entries(self):
        """The addresses of the entries by birth."""
        header = self.run.words(self.header(m.MULTIMAP_TABLE), t.TABLE_WORDS)
        numbers = range(1, header[t.TABLE_COUNT] + 1)
        if births := header[t.TABLE_BIRTHS]:
            read = self.run.read(births, 4 * header[t.TABLE_COUNT])
            numbers = [int.from_bytes(read[n : n + 4], "little") for n in range(0, len(read), 4)]
        return [header[t.TABLE_ENTRIES] + number * header[t.TABLE_STRIDE] for number in numbers]

    def listed(self, side_by_side):
        """What it holds, walked from the first row of each key to the last."""
        rows = self.run.words(self.header(m.MULTIMAP_ROWS), (self.header(m.MULTIMAP_COUNT) + 1) * (1 + VALUES))
        found = {}
        for at in self.entries():
            entry = self.run.words(at, ENTRY_FIRST + self.words + m.ENDS_WORDS)
            last, number = divmod(entry[-1], 1 << m.NUMBER_BITS)
            values = found[tuple(entry[ENTRY_FIRST:-1])] = []
            before = number
            while number:
                assert number <= before + 1 or not side_by_side
                following, value, twice = rows[number * (1 + VALUES) : (number + 1) * (1 + VALUES)]
                assert twice == 2 * value
                values.append(value)
                before, number = number, following
            assert before == last
        assert self.header(m.MULTIMAP_COUNT) == sum(map(len, found.values()))
        return found

    def check(self, side_by_side=False):
        assert self.listed(side_by_side) == self.lists

    def drop(self):
        self.run.multimap_drop(self.multimap)


def keys_of(dice, words, count):
    return [tuple(dice.choice([n, -n, n << 40]) for n in [key] * words) for key in range(count)]


def test_a_new_deferred_row_holds_nothing_of_what_its_memory_held(run):
    """Texts are stored over the texts that were there."""
    model = Model(run)
    model.fill(random.Random(1), 5, [(1,), (2,)])
    assert run.multimap_defer(model.multimap) == 1
    assert all(run.is_zero(model.multimap, run.place_words(key)) for key in range(100))
    model.drop()


@pytest.mark.parametrize(("words", "keys", "before"), [(1, 1, 0), (1, 7, 40), (1, 50, 0), (2, 7, 0), (4, 30, 40)])
def test_rows_of_a_key_stand_side_by_side_in_order_of_arrival(run, words, keys, before):
    dice = random.Random(keys)
    names = keys_of(dice, words, keys)
    model = Model(run, words)
    model.fill(dice, before, names)
    assert run.multimap_defer(model.multimap) == 1 and model.header(m.MULTIMAP_COUNT) == 0
    model.fill(dice, 250, names)
    assert run.multimap_ask(model.multimap) == 1 and model.header(MULTIMAP_DEFERRED) == 0
    model.check(side_by_side=True)
    model.fill(dice, 100, [*names, (5,) * words])  # and it goes on
    model.check()
    assert run.multimap_settle(model.multimap) == 1  # nothing is left to do
    model.check()
    model.drop()


def test_rows_are_deferred_again_after_a_checkpoint(run):
    dice = random.Random(1)
    names = keys_of(dice, 1, 9)
    model = Model(run)
    for _ in range(3):
        model.fill(dice, 50, names)
        assert run.multimap_defer(model.multimap) == 1
        model.fill(dice, 50, names)
        assert run.multimap_settle(model.multimap) == 1
        model.check(side_by_side=True)
    room = run.zeros(8 * run.multimap_saved_words(model.multimap))
    words = run.multimap_save(model.multimap, room)
    again = Model(run)
    again.lists = model.lists
    assert run.multimap_load(again.multimap, room) == words
    assert run.multimap_defer(again.multimap) == 1
    again.fill(dice, 50, names)
    assert run.multimap_settle(again.multimap) == 1
    again.check(side_by_side=True)
    model.drop()
    again.drop()


def test_nothing_deferred_is_nothing(run):
    model = Model(run)
    assert run.multimap_defer(model.multimap) == 1
    held = run.multimap_held_bytes(model.multimap)
    assert run.multimap_ask(model.multimap) == 1
    assert held > run.multimap_held_bytes(model.multimap)
    model.check()
    model.drop()


def test_keys_that_no_sample_has_make_the_table_grow(run):
    """Of pieces that are not looked at, so that no key is expected: the entries of a piece move while it is gone
    through."""
    names, n = [], 0
    while len(names) < 150:
        n += 1
        piece = ((n * HASH_FACTOR) % 2**64) >> (64 - d.LOG_PIECES)
        if piece % (d.PIECES // d.SAMPLED) != 0 and (len(names) < 100 or piece == 77):
            names.append((n,))
    model = Model(run)
    assert run.multimap_defer(model.multimap) == 1
    model.fill(random.Random(3), 300, names)
    assert run.multimap_ask(model.multimap) == 1
    model.check(side_by_side=True)
    model.drop()


def test_a_model_that_is_dropped_with_deferred_rows_leaves_nothing(run):
    model = Model(run)
    assert run.multimap_defer(model.multimap) == 1
    model.fill(random.Random(0), 30, [(1,), (2,)])
    model.drop()


@pytest.mark.parametrize("keys", [1, 20_000])
def test_many_rows_take_many_chunks(keys):
    with Compiled(*FUNCTIONS) as run:
        model, room = Model(run), run.zeros(8)
        assert run.put_rows(model.multimap, room, 60, keys) == 1
        assert run.multimap_defer(model.multimap) == 1
        assert run.put_rows(model.multimap, room, 300_000, keys) == 1  # 7 MB: more than there was room for
        assert run.multimap_held_bytes(model.multimap) > 300_000 * 24
        assert run.multimap_ask(model.multimap) == 1
        for value in (*range(60), *range(300_000)):
            model.lists.setdefault((value % keys,), []).append(value)
        model.check(side_by_side=True)
        model.drop()


@pytest.mark.parametrize("fail_at", range(20))
def test_without_memory_it_says_so_and_can_be_freed(fail_at):
    with Memory(fail_at=fail_at) as memory:
        multimap = mm.multimap_new(*shape(1))
        if multimap == 0:
            memory.check_no_leaks()
            return
        key = memory.place(bytes(8), True)
        whole = put_rows(multimap, key, 70, 40)
        if whole == 1:
            deferred = d.multimap_defer(multimap)  # without memory rows are put into lists as before
            assert deferred == (1 if ld_i64(multimap, MULTIMAP_DEFERRED) != 0 else 0)
            assert put_rows(multimap, key, 100, 40) in {0, 1}
            assert d.multimap_ask(multimap) in {0, 1}
        mm.multimap_drop(multimap)
        memory.check_no_leaks()


@pytest.mark.parametrize("entries", [0, 32, 33, 1000])
def test_an_emptied_table_has_slots_for_what_is_expected(run, entries):
    model = Model(run)
    model.fill(random.Random(2), 100, keys_of(random.Random(4), 1, 20))
    table = model.header(m.MULTIMAP_TABLE)
    assert run.table_size_for(table, entries) == 1
    words = run.words(table, t.TABLE_WORDS)
    assert words[t.TABLE_COUNT] == 0 and max(entries, 32) <= words[t.TABLE_LIMIT] < max(2 * entries, 33)
    assert words[t.TABLE_INDEX] == 0
    model.drop()


def test_a_table_for_many_is_dense_and_can_be_spread_again():
    with Compiled(*FUNCTIONS) as run:
        model = Model(run)
        table = model.header(m.MULTIMAP_TABLE)
        for entries, dense in ((1 << 20, False), ((1 << 20) + 1, True), (3 << 20, True), (10, False)):
            assert run.table_size_for(table, entries) == 1
            words = run.words(table, t.TABLE_WORDS)
            assert (words[t.TABLE_INDEX] != 0) == dense and entries <= words[t.TABLE_LIMIT] <= max(2 * entries, 32)
        model.drop()
