"""Open intervals against a plain list: which rows join, what closes when and in which order, saving, no memory."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shr_u, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import intervals as v
from cq.runtime.containers import order
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_saving as ts
from cq.runtime.containers import table_words as w
from cq.runtime.containers.intervals import (
    INTERVALS_COUNT,
    INTERVALS_LATER,
    INTERVALS_NEXT,
    INTERVALS_TABLE,
    intervals_closed,
    intervals_due,
    intervals_first,
    intervals_insert,
    intervals_touched,
)
from cq.runtime.containers.order import INTERVAL_KEYS, INTERVAL_LAST, INTERVAL_START
from cq.runtime.containers.strings import hash_word
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    NUMBER_MASK,
    TABLE_COUNT,
    TABLE_DEAD,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_WORDS,
)
from cq.runtime.layout.abi import NEVER

KEY = INTERVAL_KEYS  # a key is a word and a name
NAME, TEXT, ROWS = KEY + 1, KEY + 3, KEY + 5  # behind it a text and a count
WORDS = KEY + 6
KEY_WORDS = 3
STRINGS = 1 << NAME | 1 << TEXT
GAP = 5


@native("void(i64, i64, i64)", export=True)
def put_word(address: int, index: int, value: int) -> None:
    """A word of an entry."""
    st_i64(address, index, value)


@native("i64(i64, i64, i64, i64)", export=True)
def insert_new(intervals: int, hash32: int, arrival: int, time: int) -> int:
    """A new interval of a new key."""
    table = ld_i64(intervals, INTERVALS_TABLE)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    while ld_i64(ld_i64(table, TABLE_INDEX), slot) != 0:
        slot = (slot + 1) & ld_i64(table, TABLE_MASK)
    return intervals_insert(intervals, slot, hash32, arrival, time)


@native("i64(i64, i64)", export=True)
def close_all(intervals: int, instant: int) -> int:
    """Everything due up to an instant closes; how many that were, or -1 without memory."""
    closed = 0
    while ld_i64(intervals, INTERVALS_NEXT) <= instant:
        if intervals_due(intervals, ld_i64(intervals, INTERVALS_NEXT)) == 0:
            return -1
        while ld_i64(intervals, INTERVALS_COUNT) != 0:
            closed += 1
            intervals_closed(intervals, intervals_first(intervals))
    return closed


@native("i64(i64, i64, i64)", export=True)
def pass_through(intervals: int, first: int, last: int) -> int:
    """Rows first..last come, at a time of their own each and with a key of its own; returns how many closed."""
    closed = 0
    for n in range(first, last):
        closed += close_all(intervals, n)
        entry = insert_new(intervals, hash_word(n), n, n)
        if entry == 0:
            return -1
        if n & 1 == 1:  # every other one is extended: its item of the heap is too early
            st_i64(entry, INTERVAL_LAST, n + GAP)
    return closed


@native("i64(i64, i64, i64, i64)", export=True)
def pass_one_key(intervals: int, first: int, last: int, spread: int) -> int:
    """Rows first..last of one key come, row n at 8n or up to `spread` before that; how many sessions closed.

    The gap is 1: most rows begin a session, some make one grow or join two.
    """
    table = ld_i64(intervals, INTERVALS_TABLE)
    closed = 0
    for n in range(first, last):
        closed += close_all(intervals, 8 * n - spread)
        time = 8 * n - shr_u(hash_word(n + 1) * spread, 32)
        entry = 0
        if ld_i64(ld_i64(table, TABLE_INDEX), 0) != 0:
            entry = intervals_touched(intervals, 0, time, time - 1, time + 1)
        if entry == 0:
            entry = intervals_insert(intervals, 0, 0, n, time)
            if entry == 0:
                return -1
        elif ld_i64(intervals, INTERVALS_LATER) != 0:
            later = ld_i64(intervals, INTERVALS_LATER)
            st_i64(entry, INTERVAL_LAST, ld_i64(later, INTERVAL_LAST))
            st_i64(later, INTERVAL_START, NEVER)
        else:
            st_i64(entry, INTERVAL_START, min(ld_i64(entry, INTERVAL_START), time))
            st_i64(entry, INTERVAL_LAST, max(ld_i64(entry, INTERVAL_LAST), time))
    return closed


FUNCTIONS = (
    v.intervals_new, v.intervals_drop, v.intervals_insert, v.intervals_touched, v.intervals_due,
    v.intervals_first, v.intervals_closed, v.intervals_save, v.intervals_load, v.intervals_saved_words,
    v.intervals_held_bytes, v.intervals_taken, ts.table_take, x.string_store, put_word, insert_new, close_all,
    pass_through, pass_one_key,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


class Model:
    """The open intervals as a list of [key, start, last, first arrival, text, rows]; keys collide."""

    def __init__(self, run, hashes):
        self.run, self.hashes, self.open, self.arrivals = run, hashes, [], 0
        self.intervals = run.intervals_new(WORDS, STRINGS, 0, KEY_WORDS, GAP)

    @property
    def table(self):
        return self.run.words(self.intervals, 1)[INTERVALS_TABLE]

    @property
    def next(self):
        return self.run.words(self.intervals, v.INTERVALS_WORDS)[INTERVALS_NEXT]

    def header(self):
        return self.run.words(self.table, w.TABLE_WORDS)

    def slot(self, hash32, key):
        """The slot of the index that points to an interval of the key or is free, and whether it does."""
        table = self.header()
        slot = hash32 >> table[TABLE_SHIFT]
        while item := self.run.words(table[TABLE_INDEX] + 8 * slot, 1)[0]:
            if self.content(table[TABLE_ENTRIES] + (item & NUMBER_MASK) * table[TABLE_STRIDE])[0] == key:
                return slot, True
            slot = (slot + 1) & table[TABLE_MASK]
        return slot, False

    def touched(self, slot, time):
        """The entries of the key in the slot that a row touches, by start."""
        one = self.run.intervals_touched(self.intervals, slot, time, time - GAP, time + GAP)
        two = self.run.words(self.intervals, v.INTERVALS_WORDS)[INTERVALS_LATER]
        return [entry for entry in (one, two) if entry]

    def row(self, key, time, text):
        """What generated code does with a row, on both sides."""
        run, self.arrivals = self.run, self.arrivals + 1
        hash32 = self.hashes[key % len(self.hashes)]
        slot, known = self.slot(hash32, key)
        found = self.touched(slot, time) if known else []
        mine = sorted(s for s in self.open if s[0] == key and s[1] - GAP <= time <= s[2] + GAP)
        assert [self.content(entry) for entry in found] == mine
        if not found:
            entry = run.intervals_insert(self.intervals, slot, hash32, self.arrivals, time)
            run.put_word(entry, KEY, key // 4)
            for word, content in ((NAME, NAMES[key % 4]), (TEXT, text)):
                assert run.string_store(self.table, entry, word, run.place(content + bytes(16)), len(content)) == 1
            run.put_word(entry, ROWS, 1)
            self.open.append([key, time, time, self.arrivals, text, 1])
            return
        one, a = found[0], mine[0]
        if len(found) == 2:
            two, b = found[1], mine[1]
            run.put_word(one, INTERVAL_LAST, b[2])
            run.put_word(one, ENTRY_FIRST, min(a[3], b[3]))
            run.put_word(one, ROWS, a[5] + b[5])
            run.put_word(two, INTERVAL_START, NEVER)
            self.open.remove(b)
            self.open[self.open.index(a)] = [key, a[1], b[2], min(a[3], b[3]), a[4], a[5] + b[5]]
        a = self.content(one)
        new = [key, min(a[1], time), max(a[2], time), a[3], a[4], a[5] + 1]
        for word, value in ((INTERVAL_START, new[1]), (INTERVAL_LAST, new[2]), (ROWS, new[5])):
            run.put_word(one, word, value)
        self.open[self.open.index(a)] = new

    def content(self, entry):
        words = self.run.words(entry, WORDS)
        name = NAMES.index(self.text(entry, words, NAME))
        found = [words[INTERVAL_START], words[INTERVAL_LAST], words[ENTRY_FIRST], self.text(entry, words, TEXT)]
        return [4 * words[KEY] + name, *found, words[ROWS]]

    def text(self, entry, words, word):
        size = words[word] & 0xFFFFFFFF
        long = self.header()[w.TABLE_ARENA] + words[word + 1]
        return self.run.read(entry + 8 * word + 4 if size <= x.INLINE_STRING_BYTES else long, size)

    def check(self):
        """The index has one item a key, and a key's tree has what is open of it."""
        table, found, keys = self.header(), [], 0

        def collect(number):
            if number:
                entry = table[TABLE_ENTRIES] + number * table[TABLE_STRIDE]
                links = self.run.words(entry, WORDS)[order.INTERVAL_LINKS]
                collect(links & NUMBER_MASK)
                found.append(self.content(entry))
                collect(links >> 32)

        for item in self.run.words(table[TABLE_INDEX], table[TABLE_MASK] + 1):
            first = len(found)
            collect(item & NUMBER_MASK)
            assert found[first:] == sorted(s for s in self.open if item and s[0] == found[first][0])
            keys += item != 0
        assert keys == len({s[0] for s in self.open})
        assert sorted(found) == sorted(self.open)

    def close(self, watermark):
        """Serve every closing time up to the watermark."""
        while self.next <= watermark and self.next != NEVER:
            instant = self.next
            assert instant <= min((s[2] for s in self.open), default=NEVER) + GAP + 1
            due = sorted((s for s in self.open if s[2] + GAP + 1 == instant), key=lambda s: (s[1], s[3]))
            self.open = [s for s in self.open if s[2] + GAP + 1 != instant]
            assert self.run.intervals_due(self.intervals, instant) == 1
            for session in due:
                assert self.next == instant
                entry = self.run.intervals_first(self.intervals)
                assert self.content(entry) == session
                self.run.intervals_closed(self.intervals, entry)
            assert self.run.words(self.intervals, v.INTERVALS_WORDS)[INTERVALS_COUNT] == 0
            assert self.next > instant
        assert all(s[2] + GAP >= watermark for s in self.open)

    def saved(self):
        """A copy of what it holds, and how many words that is."""
        room = self.run.zeros(8 * self.run.intervals_saved_words(self.intervals) + 8)
        return room, self.run.intervals_save(self.intervals, room)

    def drop(self):
        self.run.intervals_drop(self.intervals)


# of four keys in a row they alone differ: short, long, and long ones that begin alike
NAMES = (b"", b"name", b"a name beyond twelve bytes", b"a name behind twelve bytes")


def text_of(dice):
    return dice.choice([b"t", b"u", b"v"]) * dice.choice([0, 3, 12, 13, 40])


HASHES = {
    "alike": [7 << 20],
    "few": [n << 26 for n in range(40)],
    "spread": [random.Random(n).randrange(1 << 32) for n in range(400)],
    "wrapped": [(1 << 32) - 1 - (n & 3) for n in range(40)],  # the last slots: runs go on at the first ones
}


@pytest.mark.parametrize("hashes", HASHES)
@pytest.mark.parametrize(("delay", "keys"), [(0, 25), (30, 25), (400, 3)])
@pytest.mark.one_in(3)
def test_rows_join_and_close_as_in_a_list(run, hashes, delay, keys):
    dice = random.Random(f"{hashes} {delay}")
    model, now = Model(run, HASHES[hashes]), 0
    for _ in range(900):
        now += dice.choice([0, 0, 1, 2])
        model.close(now - delay)
        model.row(dice.randrange(keys), now - dice.randint(0, delay), text_of(dice))
        if dice.random() < 0.01:
            now += 20
        if dice.random() < 0.02:
            model.saved()  # settles: entries have other numbers
        if dice.random() < 0.05:
            model.check()
    model.close(now + 1000)
    assert model.open == [] and model.next == NEVER
    model.drop()


@pytest.mark.parametrize("count", [31, 32, 33, 500])
def test_what_closes_at_one_instant_leaves_by_start_then_arrival(run, count):
    dice = random.Random(count)
    model = Model(run, HASHES["spread"])
    for key in range(count):
        model.row(key, 95, b"")
    for key in dice.sample(range(count), count // 2):
        model.row(key, dice.randint(90, 95), b"")
    for key in dice.sample(range(count), count // 2):
        model.row(key, 86 + dice.randint(0, 3), b"")
    for key in range(count):
        model.row(key, 95, b"")
    model.close(1000)
    model.drop()


def test_what_an_instant_has_begun_keeps_its_order(run):
    """Rows of one event have one arrival: the order in which their intervals were made tells them apart."""
    model = Model(run, HASHES["spread"])
    for n in range(100):
        entry = run.insert_new(model.intervals, HASHES["spread"][n], 7 if n else 8, 50)
    assert run.intervals_due(model.intervals, 50 + GAP + 1) == 1
    table = run.words(model.table, w.TABLE_WORDS)
    found = []
    for _ in range(100):
        entry = run.intervals_first(model.intervals)
        found.append((entry - table[TABLE_ENTRIES]) // table[TABLE_STRIDE])
        run.intervals_closed(model.intervals, entry)
    assert found == [*range(2, 101), 1]
    model.drop()


def test_pieces_of_what_was_saved_are_one_again(run):
    """Entry by entry into four, then what they save into one that holds others already, which closes like the first."""
    dice = random.Random(4)
    source = Model(run, [x.hash_word(n) for n in range(300)])
    for n in range(600):
        source.row(dice.randrange(120), 100 + n // 20 - dice.randint(0, 30), text_of(dice))
    source.close(100)
    source.saved()  # none is dead
    pieces = [Model(run, source.hashes) for _ in range(4)]
    table, *tables = (run.words(m.intervals, INTERVALS_TABLE + 1)[-1] for m in (source, *pieces))
    header = run.words(table, TABLE_WORDS)
    for number in range(1, header[TABLE_COUNT] + 1):
        entry = header[TABLE_ENTRIES] + number * header[TABLE_STRIDE]
        assert run.table_take(tables[run.words(entry, 1)[0] % 4], table, entry) != 0
    assert [run.intervals_taken(piece.intervals) for piece in pieces] == [1] * 4
    target = Model(run, source.hashes)
    target.row(200, 103, b"what was there before")
    target.open += source.open
    for piece in reversed(pieces):
        saved, words = piece.saved()
        assert run.intervals_load(target.intervals, saved) == words
    target.arrivals = source.arrivals
    for n in range(100):
        target.row(dice.randrange(120), 125 + n // 20, b"")
    target.close(1000)
    assert target.open == [] and target.next == NEVER
    for made in (*pieces, target, source):
        made.drop()


def test_memory_of_intervals_that_have_closed_is_used_again(run):
    rounds = 1_000_000 if run.compiled else 3000
    intervals = run.intervals_new(WORDS, 0, 0, 1, GAP)
    assert run.pass_through(intervals, 0, 300) > 200
    held = run.intervals_held_bytes(intervals)
    assert run.pass_through(intervals, 300, rounds) == rounds - 300
    assert run.intervals_held_bytes(intervals) == held
    run.intervals_drop(intervals)


def test_memory_of_one_key_is_used_again(run):
    rounds, spread = (1_000_000, 20_000) if run.compiled else (1500, 400)
    intervals = run.intervals_new(WORDS, 0, 0, 1, 1)
    first = spread
    assert run.pass_one_key(intervals, 0, first, spread) > 0
    held = run.intervals_held_bytes(intervals)
    assert run.pass_one_key(intervals, first, first + rounds, spread) > rounds // 2
    assert run.intervals_held_bytes(intervals) <= 2 * held
    run.intervals_drop(intervals)


@pytest.mark.parametrize("spread", [1, 30, 10**9], ids=["in order", "nearly in order", "in any order"])
def test_a_row_meets_its_neighbours_in_few_steps_however_many_are_open(monkeypatch, spread):
    """Of 1000 open intervals of one key. Every step of a search calls `_entry`."""
    dice, plain, steps = random.Random(spread), order._entry, 0

    def counted(*arguments):
        nonlocal steps
        steps += 1
        return plain(*arguments)

    monkeypatch.setattr(order, "_entry", counted)
    with Memory():
        intervals = v.intervals_new(WORDS, 0, 0, 1, 1)
        table, count = ld_i64(intervals, INTERVALS_TABLE), 1000
        for time in sorted(range(0, 10 * count, 10), key=lambda t: t + dice.randrange(10 * spread)):
            intervals_insert(intervals, 0, 0, time, time)
        most = steps = 0
        for turn in range(3 * count):
            time = 10 * dice.randrange(count) + dice.randint(-1, 1)
            entry = intervals_touched(intervals, 0, time, time - 1, time + 1)
            assert ld_i64(entry, INTERVAL_START) == (time + 5) // 10 * 10
            if turn == count:
                most = steps
        assert steps - most < 2 * count * 32  # the depth of a random tree of 1000 is 16
        steps = 0
        for time in [*range(0, 10 * count, 10)] * 2:  # each from the other end of what the one before has left
            assert ld_i64(intervals_touched(intervals, 0, time, time, time), INTERVAL_START) == time
        assert steps < 2 * count * 15
        steps = 0
        assert intervals_due(intervals, 2) == 1
        while ld_i64(table, TABLE_COUNT) > 0:
            if ld_i64(intervals, INTERVALS_COUNT) == 0:
                assert intervals_due(intervals, ld_i64(intervals, INTERVALS_NEXT)) == 1
            intervals_closed(intervals, intervals_first(intervals))
        assert steps < count * 15
        assert ld_i64(table, TABLE_DEAD) == count
        v.intervals_drop(intervals)


def test_many_of_one_key_take_little_longer_than_as_many_keys():
    """As long as their number squared would be a minute."""
    with Compiled(*FUNCTIONS) as run:
        intervals = run.intervals_new(WORDS, 0, 0, 1, 1)
        assert run.pass_one_key(intervals, 0, 300_000, 1_000_000) > 100_000
        room = run.zeros(8 * run.intervals_saved_words(intervals) + 8)
        words = run.intervals_save(intervals, room)
        other = run.intervals_new(WORDS, 0, 0, 1, 1)
        assert run.intervals_load(other, room, 0) == words
        again = run.zeros(8 * words + 8)
        assert run.intervals_save(other, again) == words
        assert run.words(again, words) == run.words(room, words)
        for made in (intervals, other):
            run.intervals_drop(made)


def test_many_that_close_at_once_take_no_longer_than_their_number():
    with Compiled(*FUNCTIONS) as run:
        model = Model(run, [0])
        count = 300_000
        for n in range(count):
            entry = run.insert_new(model.intervals, x.hash_word(n), count - n, 0)
            run.put_word(entry, KEY, n)
        assert run.intervals_due(model.intervals, GAP + 1) == 1
        for n in range(count):
            entry = run.intervals_first(model.intervals)
            if n % 1000 == 0:
                assert run.words(entry, KEY + 1)[KEY] == count - 1 - n
            run.intervals_closed(model.intervals, entry)
        assert model.next == NEVER
        model.drop()


@pytest.mark.parametrize("fail_at", range(16))
def test_without_memory_what_is_open_stays(fail_at):
    with Memory(fail_at=fail_at) as memory:
        intervals = v.intervals_new(WORDS, 0, 0, 1, GAP)
        if intervals == 0:
            memory.check_no_leaks()
            return
        there = []
        for n in range(200):
            entry = insert_new(intervals, hash_word(n), n, 0)
            if entry == 0:
                break
            st_i64(entry, KEY, n)
            there.append(n)
        assert ld_i64(ld_i64(intervals, INTERVALS_TABLE), TABLE_COUNT) == len(there)
        found = []
        if intervals_due(intervals, GAP + 1) == 1:
            while ld_i64(intervals, INTERVALS_COUNT) != 0:
                entry = intervals_first(intervals)
                found.append(ld_i64(entry, KEY))
                intervals_closed(intervals, entry)
            assert found == there
        v.intervals_drop(intervals)
        memory.check_no_leaks()
