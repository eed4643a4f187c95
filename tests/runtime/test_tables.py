"""Tables in both forms against a plain dictionary: entries found, their order, deletion, strings, no memory."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shr_u, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import birth_order as o
from cq.runtime.containers import known_codes
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_saving as ts
from cq.runtime.containers import table_words as w
from cq.runtime.containers import tables as t
from cq.runtime.containers.known_codes import table_recall
from cq.runtime.containers.strings import hash_word
from cq.runtime.containers.table_copying import table_copied
from cq.runtime.containers.table_words import (
    NUMBER_MASK,
    TABLE_BIRTHS,
    TABLE_ENTRIES,
    TABLE_EPOCH,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    entry_at,
)
from cq.runtime.containers.tables import table_delete, table_insert

WORDS = 6  # tag, first, key, string (2 words), value
KEY, TEXT, VALUE = 2, 3, 5


@native("i64(i64, i64, i64)", export=True)
def find_key(table: int, hash32: int, key: int) -> int:
    """The entry of a key, or 0: what generated code does."""
    mask = ld_i64(table, TABLE_MASK)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    entries = ld_i64(table, TABLE_ENTRIES)
    index = ld_i64(table, TABLE_INDEX)
    while True:
        if index == 0:
            entry = entries + slot * ld_i64(table, TABLE_STRIDE)
            if ld_i64(entry, 0) < ld_i64(table, TABLE_EPOCH):
                return 0
            if ld_i64(entry, 0) & 4294967295 == hash32 and ld_i64(entry, KEY) == key:
                return entry
        else:
            item = ld_i64(index, slot)
            if item == 0:
                return 0
            entry = entries + (item & NUMBER_MASK) * ld_i64(table, TABLE_STRIDE)
            if shr_u(item, 32) == hash32 and ld_i64(entry, KEY) == key:
                return entry
        slot = (slot + 1) & mask


@native("i64(i64, i64)", export=True)
def nth_entry(table: int, n: int) -> int:
    """The n-th entry by birth."""
    births = ld_i64(table, TABLE_BIRTHS)
    return entry_at(ld_i64(table, TABLE_ENTRIES), births, ld_i64(table, TABLE_STRIDE), n)


@native("i64(i64, i64, i64)", export=True)
def known_entry(table: int, dictionary: int, code: int) -> int:
    """What the table knows of a code."""
    return table_recall(table, dictionary, code)


@native("void(i64, i64, i64)", export=True)
def put_word(address: int, index: int, value: int) -> None:
    """A word of an entry."""
    st_i64(address, index, value)


@native("i64(i64, i64, i64, i64)", export=True)
def pass_through(table: int, first: int, last: int, width: int) -> int:
    """Keys first..last come, each gone again when `width` others have come; returns how many were amiss.

    A key is its number, mixed. Values are the keys' numbers, checked when a key goes.
    """
    bad = 0
    for n in range(first, last):
        key = n * 40503 & 1048575 if width < 4096 else n
        hash32 = hash_word(key)
        bad += find_key(table, hash32, key) != 0
        entry = table_insert(table, hash32, n)
        if entry == 0:
            return -1
        st_i64(entry, KEY, key)
        st_i64(entry, VALUE, n)
        old = n - width
        if old >= 0:
            key = old * 40503 & 1048575 if width < 4096 else old
            gone = find_key(table, hash_word(key), key)
            if gone == 0:
                bad += 1
            else:
                bad += ld_i64(gone, VALUE) != old
                table_delete(table, gone)
    return bad


FUNCTIONS = (
    t.table_new, t.table_drop, t.table_insert, t.table_clear, t.table_delete, t.table_settle, t.table_make_dense,
    ts.table_save, ts.table_load, ts.table_saved_words, ts.table_take, t.table_held_bytes, x.string_store,
    o.table_sort_births, known_codes.table_learn, table_copied,
    find_key, known_entry, nth_entry, put_word, pass_through,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


class Model:
    """What a table holds, as a dictionary in order of birth; a few hashes only, so that entries collide."""

    def __init__(self, run, hashes):
        self.run, self.hashes, self.held = run, hashes, {}
        self.table = run.table_new(WORDS, 1 << TEXT, 0)

    def hash(self, key):
        return self.hashes[key % len(self.hashes)]

    def insert(self, key, serial, text, value):
        entry = self.run.table_insert(self.table, self.hash(key), serial)
        self.run.put_word(entry, KEY, key)
        self.store(entry, text, value)
        self.held[key] = (serial, text, value)

    def store(self, entry, text, value):
        self.run.put_word(entry, VALUE, value)
        assert self.run.string_store(self.table, entry, TEXT, self.run.place(text + bytes(16)), len(text)) == 1

    def find(self, key):
        return self.run.find_key(self.table, self.hash(key), key)

    def delete(self, key):
        assert self.run.table_make_dense(self.table) == 1
        self.run.table_delete(self.table, self.find(key))
        del self.held[key]

    def content(self, entry):
        words = self.run.words(entry, WORDS)
        size = words[TEXT] & 0xFFFFFFFF
        arena = self.run.words(self.table, w.TABLE_WORDS)[w.TABLE_ARENA]
        text = self.run.read(entry + 8 * TEXT + 4 if size <= x.INLINE_STRING_BYTES else arena + words[TEXT + 1], size)
        return words[KEY], (words[1], text, words[VALUE])

    def listed(self):
        """(key, content) by birth."""
        self.run.table_settle(self.table)
        count = self.run.words(self.table, w.TABLE_WORDS)[w.TABLE_COUNT]
        return [self.content(self.run.nth_entry(self.table, n)) for n in range(count)]

    def check(self, keys):
        for key in keys:
            entry = self.find(key)
            assert (entry != 0) == (key in self.held)
            if entry:
                assert self.content(entry) == (key, self.held[key])


def text_of(dice):
    return dice.choice([b"t", b"u", b"v"]) * dice.choice([0, 3, 12, 13, 40])


@pytest.mark.parametrize("hashes", ["alike", "few", "spread", "wrapped"])
def test_a_table_holds_what_a_dictionary_does_in_the_order_of_births(run, hashes):
    dice = random.Random(hashes)
    made = {
        "alike": [7 << 20],
        "few": [n << 26 for n in range(40)],
        "spread": [dice.randrange(1 << 32) for _ in range(400)],
        "wrapped": [(1 << 32) - 1 - (n & 3) for n in range(40)],  # the last slots: runs go on at the first ones
    }[hashes]
    model, serial = Model(run, made), 0
    for _ in range(1500):
        key, turn = dice.randrange(130), dice.random()
        if key in model.held and turn < 0.35:
            model.delete(key)
        elif key in model.held:
            serial, text, value = model.held[key][0], text_of(dice), dice.randrange(9)
            model.store(model.find(key), text, value)
            model.held[key] = (serial, text, value)
        elif turn > 0.995:
            run.table_clear(model.table)
            model.held = {}
        else:
            model.insert(key, dice.randrange(1000), text_of(dice), dice.randrange(9))
        if turn > 0.98:
            model.check(range(130))
            assert model.listed() == list(model.held.items())
        if turn < 0.005:
            run.table_settle(model.table)
            assert run.table_sort_births(model.table) == 1
            model.held = dict(sorted(model.held.items(), key=lambda item: item[1][0]))
    assert model.listed() == list(model.held.items())
    run.table_drop(model.table)


def test_a_table_that_grows_becomes_dense_and_stays_in_order(run, monkeypatch):
    count = 600_000 if run.compiled else 600
    if not run.compiled:
        monkeypatch.setattr(t, "SPREAD_BYTES", 64 * 64)
    table = run.table_new(WORDS, 0, 0)
    for n in range(count):
        entry = run.table_insert(table, x.hash_word(n), n)
        run.put_word(entry, KEY, n)
    header = run.words(table, w.TABLE_WORDS)
    assert header[w.TABLE_INDEX] != 0
    assert header[w.TABLE_COUNT] == count
    for n in range(0, count, 71 if run.compiled else 7):
        assert run.words(run.nth_entry(table, n), 3)[1:] == [n, n]
        assert run.find_key(table, x.hash_word(n), n) == run.nth_entry(table, n)
    assert run.find_key(table, x.hash_word(count), count) == 0
    held = run.table_held_bytes(table)
    assert held >= count * WORDS * 8
    run.table_clear(table)
    assert run.table_held_bytes(table) == held
    assert run.find_key(table, x.hash_word(1), 1) == 0
    few = [run.table_insert(table, 5, n) for n in range(3)]
    assert few == [run.nth_entry(table, n) for n in range(3)]
    run.table_clear(table)  # of few entries: slot by slot
    index = run.words(table, w.TABLE_WORDS)
    assert run.read(index[w.TABLE_INDEX], 8 * (index[w.TABLE_MASK] + 1)).strip(b"\0") == b""
    run.table_drop(table)


def numbered(run, numbers, strings=0):
    """A table of these keys, with the keys as serials and values."""
    table = run.table_new(WORDS, strings, 0)
    fill_in(run, table, numbers)
    return table


def fill_in(run, table, numbers):
    for n in numbers:
        entry = run.table_insert(table, x.hash_word(n), n)
        run.put_word(entry, KEY, n)
        run.put_word(entry, VALUE, n)


def numbers_of(run, table):
    """The keys by birth; each is found, with its value."""
    count = run.words(table, w.TABLE_WORDS)[w.TABLE_COUNT]
    keys = [run.words(run.nth_entry(table, n), WORDS)[KEY] for n in range(count)]
    for n, key in enumerate(keys):
        assert run.find_key(table, x.hash_word(key), key) == run.nth_entry(table, n)
        assert run.words(run.nth_entry(table, n), WORDS)[1:] == [key, key, 0, 0, key]
    return keys


@pytest.mark.parametrize("used", [0, 20, 300], ids=lambda n: f"{n} before")
@pytest.mark.parametrize("count", [0, 1, 31, 200])
def test_a_copy_has_the_entries_of_its_source_and_takes_more(run, count, used):
    source = numbered(run, range(1000, 1000 - count, -1))
    table = numbered(run, range(used))
    run.table_clear(table)
    before = run.read(source, 8 * w.TABLE_WORDS)
    assert run.table_copied(table, source) == 1
    assert run.read(source, 8 * w.TABLE_WORDS) == before
    fill_in(run, table, range(100))
    assert numbers_of(run, table) == [*range(1000, 1000 - count, -1), *range(100)]
    assert run.find_key(table, x.hash_word(1001), 1001) == 0
    run.table_clear(table)
    assert run.find_key(table, x.hash_word(1000), 1000) == 0
    run.table_drop(table)
    run.table_drop(source)


def test_what_a_copy_cannot_take_leaves_the_table_as_it_was(run):
    source, own = numbered(run, range(50)), numbered(run, [7])
    assert run.table_copied(own, source) == 0
    assert numbers_of(run, own) == [7]
    run.table_make_dense(source)
    empty = numbered(run, [])
    assert run.table_copied(empty, source) == 0
    texts = Model(run, [1])
    texts.insert(1, 1, b"a string that takes its own bytes", 1)
    other = run.table_new(WORDS, 1 << TEXT, 0)
    assert run.table_copied(other, texts.table) == 0
    for table in (empty, other):
        assert numbers_of(run, table) == []
    for table in (source, own, empty, other, texts.table):
        run.table_drop(table)


def test_pieces_of_a_saved_table_are_one_again(run):
    """Entry by entry into four tables, then what they save into one, which is in the order of serials."""
    source = Model(run, [x.hash_word(n) for n in range(300)])
    dice = random.Random(4)
    for n in range(300):
        source.insert(n, n, text_of(dice), n)
    for n in range(0, 300, 3):
        source.delete(n)

    def saved(table):
        room = run.zeros(8 * run.table_saved_words(table) + 8)
        assert run.table_save(table, room) == run.table_saved_words(table)
        return room

    pieces = [run.table_new(WORDS, 1 << TEXT, 0) for _ in range(4)]
    run.table_settle(source.table)
    header = run.words(source.table, w.TABLE_WORDS)
    for number in range(1, header[w.TABLE_COUNT] + 1):
        entry = header[w.TABLE_ENTRIES] + number * header[w.TABLE_STRIDE]
        assert run.table_take(pieces[run.words(entry, 1)[0] % 4], source.table, entry) != 0
    target = Model(run, source.hashes)
    for piece in reversed(pieces):
        assert run.words(piece, w.TABLE_WORDS)[w.TABLE_COUNT] > 0
        assert run.table_load(target.table, saved(piece)) > 0
    assert run.table_sort_births(target.table) == 1
    assert target.listed() == list(source.held.items())
    for table in (*pieces, target.table, source.table):
        run.table_drop(table)


@pytest.mark.parametrize("width", [1, 50, 1000])
def test_memory_of_keys_that_are_gone_is_used_again(run, width):
    rounds = 1_000_000 if run.compiled else 3000
    table = run.table_new(WORDS, 0, 0)
    assert run.table_make_dense(table) == 1
    assert run.pass_through(table, 0, 3 * width, width) == 0
    held = run.table_held_bytes(table)
    most = max(held, 1024) * 4
    assert run.pass_through(table, 3 * width, rounds, width) == 0
    assert run.table_held_bytes(table) <= most
    run.table_drop(table)


def test_strings_of_deleted_entries_make_room_for_others(run):
    model = Model(run, [x.hash_word(n) for n in range(64)])
    for n in range(4000):
        model.insert(n % 64, n, b"w" * 100, n)
        model.delete(n % 64)
    arena = run.words(model.table, w.TABLE_WORDS)[w.TABLE_ARENA_CAPACITY]
    assert arena <= 2 * x.COMPACT_FROM_BYTES
    run.table_drop(model.table)


@pytest.mark.long
def test_a_billion_keys_pass_through_a_window_of_a_hundred_thousand():
    """About four minutes. What the process holds at the end is what it held after the first million."""

    def resident_kib():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    with Compiled(*FUNCTIONS) as run:
        table = run.table_new(WORDS, 0, 0)
        assert run.table_make_dense(table) == 1
        assert run.pass_through(table, 0, 1_000_000, 100_000) == 0
        before, held = resident_kib(), run.table_held_bytes(table)
        for million in range(1, 1000, 37):
            last = min(million + 37, 1000) * 1_000_000
            assert run.pass_through(table, million * 1_000_000, last, 100_000) == 0
            assert resident_kib() <= before + 1024
        assert run.table_held_bytes(table) <= 2 * held
        run.table_drop(table)


@pytest.mark.parametrize("fail_at", range(14))
def test_without_memory_a_table_is_as_it_was(fail_at, monkeypatch):
    monkeypatch.setattr(t, "SPREAD_BYTES", 64 * 128)
    with Memory(fail_at=fail_at) as memory:
        table = t.table_new(WORDS, 1 << TEXT, 0)
        if table == 0:
            memory.check_no_leaks()
            return
        there = []
        text = memory.place(b"a string that takes its own bytes" + bytes(16))
        for n in range(400):
            entry = t.table_insert(table, x.hash_word(n), n)
            if entry == 0:
                break
            st_i64(entry, KEY, n)
            there.append(n)
            if x.string_store(table, entry, TEXT, text, 33) == 0:
                break
        assert len(there) < 400 or fail_at > 6
        for n in there:
            assert ld_i64(find_key(table, x.hash_word(n), n), KEY) == n
            assert ld_i64(nth_entry(table, n), KEY) == n
        if t.table_make_dense(table) == 1:
            for n in there[::2]:
                t.table_delete(table, find_key(table, x.hash_word(n), n))
            t.table_settle(table)
            assert [ld_i64(nth_entry(table, n), KEY) for n in range(len(there) // 2)] == there[1::2]
        o.table_sort_births(table)
        t.table_drop(table)
        memory.check_no_leaks()


# -- what is known of a dictionary -----------------------------------------------------------------------------------


def learned(run, texts=64, dictionary=5):
    """A table of a few entries, and the entries of codes 0 to 9, which are known."""
    table = run.table_new(WORDS, 0, 0)
    entries = [run.table_insert(table, n << 26, n) for n in range(10)]
    while not run.table_learn(table, dictionary, texts, 0, entries[0]):
        pass
    for code, entry in enumerate(entries):
        assert run.table_learn(table, dictionary, texts, code, entry) == 1
    return table, entries


def test_an_entry_is_known_by_the_code_of_its_dictionary_alone(run):
    table, entries = learned(run)
    assert [run.known_entry(table, 5, code) for code in range(11)] == [*entries, 0]
    assert run.known_entry(table, 4, 0) == 0
    assert run.table_held_bytes(table) == t.TABLE_WORDS * 8 + 64 * (64 + 4 // 2) + 64 * 8
    run.table_drop(table)


@pytest.mark.parametrize("change", ["growing", "clearing", "deleting", "settling", "becoming dense", "growing densely"])
def test_nothing_is_known_when_entries_have_moved_or_gone(run, change):
    table, _ = learned(run)
    if change in {"deleting", "settling", "growing densely"}:
        run.table_make_dense(table)
        dense = [run.nth_entry(table, n) for n in range(10)]
        if change == "settling":
            run.table_delete(table, dense[3])
        while not run.table_learn(table, 5, 64, 0, dense[0]):
            pass
        assert run.known_entry(table, 5, 0) == dense[0]
    if change in {"growing", "growing densely"}:
        mask = run.words(table, w.TABLE_WORDS)[w.TABLE_MASK]
        serial = 10
        while run.words(table, w.TABLE_WORDS)[w.TABLE_MASK] == mask:
            run.table_insert(table, serial << 24, serial)
            serial += 1
    elif change == "clearing":
        run.table_clear(table)
    elif change == "deleting":
        run.table_delete(table, dense[3])
    elif change == "settling":
        run.table_settle(table)
    elif change == "becoming dense":
        run.table_make_dense(table)
    assert [run.known_entry(table, 5, code) for code in range(10)] == [0] * 10
    run.table_drop(table)


def test_few_questions_teach_nothing(run):
    table = run.table_new(WORDS, 0, 0)
    entry = run.table_insert(table, 1 << 26, 1)
    texts = 10 * known_codes.TEXTS_A_QUESTION
    taught = [run.table_learn(table, 5, texts, 7, entry) for _ in range(10)]
    assert taught == [0] * 9 + [1] and run.known_entry(table, 5, 7) == entry
    assert run.table_learn(table, 6, texts, 7, entry) == 0, "another dictionary"
    run.table_drop(table)


def test_a_larger_dictionary_finds_room(run):
    table, entries = learned(run)
    texts = 16 * known_codes.TEXTS_A_QUESTION
    while not run.table_learn(table, 6, texts, texts - 1, entries[2]):
        pass
    assert run.known_entry(table, 6, texts - 1) == entries[2] and run.known_entry(table, 5, 2) == 0
    run.table_drop(table)
