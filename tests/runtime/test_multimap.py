"""Multimaps against lists in a dictionary: the rows of each key in order, saved, loaded, taken key by key."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import multimap as mm
from cq.runtime.containers import multimap_saving as ms
from cq.runtime.containers import multimap_words as m
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_words as t
from cq.runtime.containers.multimap import multimap_append
from cq.runtime.containers.multimap_words import MULTIMAP_HEAD, MULTIMAP_RECORD_BYTES, MULTIMAP_TABLE
from cq.runtime.containers.strings import hash_word, string_store
from cq.runtime.containers.table_words import (
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_insert, table_make_dense

ENDS = 4
ENTRY_WORDS = ENDS + m.ENDS_WORDS  # tag, key, name (2 words), the ends of its list
KEY, NAME = 1, 2
VALUE, TEXT = m.ROW_VALUES, m.ROW_VALUES + 1
RECORD_WORDS = TEXT + 2
SHAPE = (ENTRY_WORDS, 1 << NAME, RECORD_WORDS, 1 << TEXT, m.DEFER_NEVER)


@native("i64(i64, i64)", export=True)
def key_entry(multimap: int, key: int) -> int:
    """The entry of a key, made if it is missing; 0 without memory."""
    table = ld_i64(multimap, MULTIMAP_TABLE)
    for n in range(ld_i64(table, TABLE_COUNT)):
        entry = entry_at(ld_i64(table, TABLE_ENTRIES), ld_i64(table, TABLE_BIRTHS), ld_i64(table, TABLE_STRIDE), n)
        if ld_i64(entry, KEY) == key:
            return entry
    made = table_insert(table, hash_word(key), 0)
    if made != 0:
        st_i64(made, KEY, key)
    return made


@native("i64(i64, i64, i64, i64, i64)", export=True)
def put_row(multimap: int, key: int, value: int, address: int, length: int) -> int:
    """1 and what generated code does with a row has been done; 0 without memory."""
    entry = key_entry(multimap, key)
    if entry == 0:
        return 0
    ends = entry + ld_i64(multimap, MULTIMAP_HEAD) * 8
    record = multimap_append(multimap, ends, ld_i64(multimap, MULTIMAP_RECORD_BYTES))
    if record == 0:
        return 0
    st_i64(record, VALUE, value)
    return string_store(multimap, record, TEXT, address, length)


@native("i64(i64)", export=True)
def make_dense(multimap: int) -> int:
    """1 and the keys stand beside each other, as many of them do; 0 without memory."""
    return table_make_dense(ld_i64(multimap, MULTIMAP_TABLE))


@native("i64(i64, i64, i64, i64)", export=True)
def name_key(multimap: int, key: int, address: int, length: int) -> int:
    """1 and the key has this name; 0 without memory."""
    return string_store(ld_i64(multimap, MULTIMAP_TABLE), key_entry(multimap, key), NAME, address, length)


@native("i64(i64, i64, i64)", export=True)
def poke(address: int, index: int, value: int) -> int:
    st_i64(address, index, value)
    return 0


FUNCTIONS = (
    mm.multimap_new, mm.multimap_drop, mm.multimap_held_bytes, ms.multimap_saved_words, ms.multimap_save,
    ms.multimap_load, ms.multimap_take, key_entry, put_row, make_dense, name_key, mm.multimap_grow,
    poke,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


@pytest.fixture(params=[False, True], ids=["spread", "dense"])
def dense(request):
    return request.param


class Model:
    """A multimap, and what it should hold: [(value, text)] by key, keys by their first rows."""

    def __init__(self, run, dense):
        self.run, self.lists = run, {}
        self.multimap = run.multimap_new(*SHAPE)
        if dense:
            assert run.make_dense(self.multimap) == 1

    def append(self, key, value, text):
        if key not in self.lists:
            name = b"the name of key %d" % key
            assert self.run.key_entry(self.multimap, key) != 0
            assert self.run.name_key(self.multimap, key, self.run.place(name + bytes(16)), len(name)) == 1
        assert self.run.put_row(self.multimap, key, value, self.run.place(text + bytes(16)), len(text)) == 1
        self.lists.setdefault(key, []).append((value, text))

    def fill(self, dice, count, keys):
        for value in range(count):
            text = dice.choice([b"t", b"u", b"v"]) * dice.choice([0, 3, 12, 13, 40])
            self.append(dice.choice(keys), value, text)

    def text(self, at, words, word, holder):
        size = words[word] & 0xFFFFFFFF
        arena = self.run.words(holder, t.TABLE_WORDS)[t.TABLE_ARENA]
        return self.run.read(at + 8 * word + 4 if size <= x.INLINE_STRING_BYTES else arena + words[word + 1], size)

    def entries(self):
        """The addresses of the entries by birth."""
        table = self.run.words(self.multimap, m.MULTIMAP_WORDS)[m.MULTIMAP_TABLE]
        header = self.run.words(table, t.TABLE_WORDS)
        numbers = range(1, header[t.TABLE_COUNT] + 1)
        if births := header[t.TABLE_BIRTHS]:
            read = (self.run.read(births + 4 * n, 4) for n in range(header[t.TABLE_COUNT]))
            numbers = [int.from_bytes(number, "little") for number in read]
        return [header[t.TABLE_ENTRIES] + number * header[t.TABLE_STRIDE] for number in numbers]

    def listed(self):
        """What it holds, walked from the first row of each key to the last."""
        header = self.run.words(self.multimap, m.MULTIMAP_WORDS)
        found = {}
        for at in self.entries():
            entry = self.run.words(at, ENTRY_WORDS)
            assert self.text(at, entry, NAME, header[m.MULTIMAP_TABLE]) == b"the name of key %d" % entry[KEY]
            last, number = divmod(entry[ENDS], 1 << m.NUMBER_BITS)
            rows = found[entry[KEY]] = []
            while number:
                record = header[m.MULTIMAP_ROWS] + number * header[m.MULTIMAP_RECORD_BYTES]
                words = self.run.words(record, RECORD_WORDS)
                rows.append((words[VALUE], self.text(record, words, TEXT, self.multimap)))
                before, number = number, words[m.ROW_NEXT]
            assert before == last
        assert header[m.MULTIMAP_COUNT] == sum(map(len, found.values()))
        return found

    def check(self):
        assert list(self.listed().items()) == list(self.lists.items())

    def saved(self):
        """Where it is saved."""
        room = self.run.zeros(8 * self.run.multimap_saved_words(self.multimap) + 8)
        words = self.run.multimap_saved_words(self.multimap)
        assert self.run.multimap_save(self.multimap, room) == words
        return room, words

    def drop(self):
        self.run.multimap_drop(self.multimap)


@pytest.mark.parametrize("keys", [1, 9, 300])
def test_the_rows_of_each_key_stay_in_order_of_arrival(run, dense, keys):
    model = Model(run, dense)
    model.check()
    model.fill(random.Random(keys), 500, range(keys))
    model.check()
    model.drop()


@pytest.mark.parametrize("count", [0, 1, 150])
def test_pieces_of_a_saved_multimap_are_one_again(run, dense, count):
    """Key by key into four, then what they save into one that has rows of other keys already."""
    source, target = Model(run, dense), Model(run, False)
    source.fill(random.Random(count), count, range(40))
    target.fill(random.Random(7), 10, range(40, 60))
    keys = list(source.lists)
    for lane in (2, 0, 3, 1):
        piece = Model(run, False)
        for key, entry in zip(keys, source.entries(), strict=True):
            if key % 4 == lane:
                assert run.multimap_take(piece.multimap, source.multimap, entry) == 1
                piece.lists[key] = target.lists[key] = source.lists[key]
        piece.check()
        room, words = piece.saved()
        assert run.multimap_load(target.multimap, room) == words
        piece.drop()
    target.check()
    again = Model(run, dense)
    room, words = target.saved()
    assert run.multimap_load(again.multimap, room) == words
    again.lists = target.lists
    again.check()
    for value in range(80):  # and it goes on
        again.append(value % 45, value, b"more than twelve bytes")
    again.check()
    for model in (source, target, again):
        model.drop()


def test_a_multimap_of_other_records_is_refused(run):
    model = Model(run, False)
    room, _ = model.saved()
    for shape in ((ENTRY_WORDS + 1, 1 << NAME, RECORD_WORDS, 1 << TEXT), (ENTRY_WORDS, 1 << NAME, RECORD_WORDS + 1, 0)):
        other = run.multimap_new(*shape, m.DEFER_NEVER)
        assert run.multimap_load(other, room) == 0
        run.multimap_drop(other)
    model.drop()


def test_a_row_takes_its_record_and_no_more(run):
    model = Model(run, True)
    model.append(1, 0, b"")
    before = run.multimap_held_bytes(model.multimap)
    for value in range(1000):
        model.append(1, value, b"")
    assert run.multimap_held_bytes(model.multimap) - before == 1000 * RECORD_WORDS * 8
    assert run.multimap_held_bytes(0) == 0
    model.drop()


def test_a_multimap_grows_no_further_than_numbers_go(run):
    model = Model(run, False)
    run.poke(model.multimap, m.MULTIMAP_ROOM, 1 << (m.NUMBER_BITS - 1))
    assert run.multimap_grow(model.multimap) == 0
    model.drop()


@pytest.mark.parametrize("fail_at", range(24))
def test_without_memory_a_multimap_says_so_and_can_be_freed(fail_at):
    with Memory(fail_at=fail_at) as memory:
        multimap = mm.multimap_new(*SHAPE)
        if multimap == 0:
            memory.check_no_leaks()
            return
        text = memory.place(b"a string that takes its own bytes" + bytes(16))
        whole = all(put_row(multimap, n % 50, n, text, 33) == 1 for n in range(200))
        assert not whole or fail_at > 8
        if whole:
            room = memory.place(bytes(8 * ms.multimap_saved_words(multimap) + 8), True)
            words = ms.multimap_save(multimap, room)
            other = mm.multimap_new(*SHAPE)
            assert other == 0 or ms.multimap_load(other, room) in {0, words}
            mm.multimap_drop(other)
        mm.multimap_drop(multimap)
        memory.check_no_leaks()
