"""Runs of rows in the windows of a join against lists in dictionaries: what is held, in which order, what leaves."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import pane_words as p
from cq.runtime.containers import runs as c
from cq.runtime.containers import runs_saving as cs
from cq.runtime.containers import runs_words as w
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_words as t
from cq.runtime.containers.protocol import ARRIVAL_NUMBER, ARRIVAL_PLACE, ARRIVAL_TIE, ARRIVAL_WORDS
from cq.runtime.containers.runs import nth_entry, runs_over, runs_wait, runs_window
from cq.runtime.containers.runs_words import (
    KEY_NUMBER,
    ROW_MATCHED,
    RUN_ROWS,
    RUN_WORDS,
    RUNS_BYTES,
    RUNS_HEAD,
    RUNS_TABLE,
    RUNS_WAIT,
    run_add,
)
from cq.runtime.containers.strings import hash_word, string_store
from cq.runtime.containers.table_words import TABLE_COUNT
from cq.runtime.containers.tables import table_insert
from cq.runtime.layout.abi import NEVER
from cq.runtime.values import times  # noqa: F401  whose natives panes call

KEY, NAME, HEAD = 1, 2, 4  # tag, key, name (2 words), the runs, the number
ENTRY_WORDS = HEAD + w.KEY_NUMBER + 1
VALUE, TEXT = 1, 2  # a row: matched, value, text (2 words); a right row has one word more
ROW_WORDS = (4, 5)


@native("i64(i64, i64, i64, i64)", export=True)
def key_entry(runs: int, key: int, name: int, length: int) -> int:
    """The entry of a key in the window at hand, made if it is missing; 0 without memory."""
    table = ld_i64(runs, RUNS_TABLE)
    count = ld_i64(table, TABLE_COUNT)
    for n in range(count):
        if ld_i64(nth_entry(table, n), KEY) == key:
            return nth_entry(table, n)
    entry = table_insert(table, hash_word(key), 0)
    if entry == 0:
        return 0
    st_i64(entry, KEY, key)
    if ld_i64(runs, RUNS_WAIT) == 1:
        st_i64(entry, HEAD + KEY_NUMBER, count)
    return entry if string_store(table, entry, NAME, name, length) == 1 else 0


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def put_row(runs: int, entry: int, side: int, value: int, text: int, length: int) -> int:
    """What generated code does with a row: its place in the run, or -1 without memory."""
    table = ld_i64(runs, RUNS_TABLE)
    run = entry + (HEAD + side * RUN_WORDS) * 8
    row = run_add(table, run, ld_i64(runs, RUNS_BYTES + side), length)
    if row == 0:
        return -1
    st_i64(row, VALUE, value)
    if string_store(table, row, TEXT, text, length) == 0:
        return -1
    return (ld_i64(run, RUN_ROWS) & 4294967295) - 1


@native("i64(i64, i64, i64, i64, i64)", export=True)
def let_wait(runs: int, entry: int, side: int, place: int, serial: int) -> int:
    """The row waits for a match; 0 without memory."""
    return runs_wait(runs, ld_i64(entry, HEAD + KEY_NUMBER) * 2 + side, place, serial)


@native("i64(i64)", export=True)
def match_row(row: int) -> int:
    """The row has a match."""
    st_i64(row, ROW_MATCHED, 1)
    return 0


@native("i64(i64, i64)", export=True)
def poke(address: int, value: int) -> int:
    st_i64(address, 0, value)
    return 0


@native("i64(i64, i64, i64, i64)", export=True)
def pass_rows(runs: int, first: int, last: int, width: int) -> int:
    """Rows of ever new keys come, `width` of them in a window; 0, or -1 without memory."""
    for n in range(first, last):
        due = (n // width + 1) * width
        if runs_window(runs, due) == 0:
            return -1
        entry = table_insert(ld_i64(runs, RUNS_TABLE), hash_word(n), 0)
        if entry == 0 or run_add(ld_i64(runs, RUNS_TABLE), entry + 8 * ld_i64(runs, RUNS_HEAD), 32, 0) == 0:
            return -1
        runs_over(runs, n)
    return 0


FUNCTIONS = (
    c.runs_new, c.runs_drop, c.runs_window, c.runs_over, c.runs_held_bytes, cs.runs_save, cs.runs_saved_words,
    cs.runs_load, cs.runs_take_window, cs.runs_take, cs.runs_take_waits, cs.runs_taken, cs.runs_arrivals,
    key_entry, put_row, let_wait, match_row, poke, pass_rows,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


def name_of(key):
    return b"the name of key %d" % key


class Model:
    """Windows, and what they should hold: by time, then key, a list of rows of each side. A row: [serial, number among
    equal ones, side, value, text, waits]."""

    def __init__(self, run, wait=1):
        self.run, self.wait, self.windows, self.places, self.now = run, wait, {}, {}, 0
        self.runs = run.runs_new(
            ENTRY_WORDS - 1 + wait, 1 << NAME, ROW_WORDS[0], 1 << TEXT, ROW_WORDS[1], 1 << TEXT, HEAD, wait
        )

    def put(self, due, key, side, serial, value, text, waits):
        if self.run.words(self.runs, w.RUNS_WORDS)[w.RUNS_DUE] != due:
            assert self.run.runs_window(self.runs, due) == 1
        name = name_of(key)
        entry = self.run.key_entry(self.runs, key, self.run.place(name + bytes(16)), len(name))
        place = self.run.put_row(self.runs, entry, side, value, self.run.place(text + bytes(16)), len(text))
        rows = self.windows.setdefault(due, {}).setdefault(key, ([], []))[side]
        assert place == len(rows)
        if waits:
            assert self.run.let_wait(self.runs, entry, side, place, serial) == 1
        rows.append([serial, value, side, value, text, waits])

    def match(self, due, key, side, place):
        """The row has a match: it does not leave alone."""
        self.windows[due][key][side][place][5] = 0
        self.run.match_row(self.rows_of(due)[key][side][place][0])

    def record(self, due):
        panes = self.run.words(self.run.words(self.runs, w.RUNS_WORDS)[w.RUNS_PANES], p.PANES_WORDS)
        for record in self.run.words(panes[p.PANES_LIST], panes[p.PANES_COUNT]):
            words = self.run.words(record, p.PANE_TABLES + 1)
            if words[p.PANE_FIRST] == due:
                return words[p.PANE_TABLES]
        raise AssertionError(f"no window that is over at {due}")

    def text(self, table, at, word):
        size = self.run.words(at + 8 * word, 1)[0] & 0xFFFFFFFF
        arena = self.run.words(table, t.TABLE_WORDS)[t.TABLE_ARENA]
        place = at + 8 * word + 4 if size <= x.INLINE_STRING_BYTES else arena + self.run.words(at + 8 * word, 2)[1]
        return self.run.read(place, size)

    def entries(self, table):
        header = self.run.words(table, t.TABLE_WORDS)
        count = header[t.TABLE_COUNT]
        numbers = range(1, count + 1)
        if header[t.TABLE_BIRTHS]:
            births = self.run.read(header[t.TABLE_BIRTHS], 4 * count)
            numbers = [int.from_bytes(births[4 * n : 4 * n + 4], "little") for n in range(count)]
        return [header[t.TABLE_ENTRIES] + n * header[t.TABLE_STRIDE] for n in numbers]

    def rows_of(self, due):
        """By key and side the address, the value and the text of each row; keys are named as they should be."""
        table = self.record(due)
        arena, found = self.run.words(table, t.TABLE_WORDS)[t.TABLE_ARENA], {}
        for n, at in enumerate(self.entries(table)):
            entry = self.run.words(at, ENTRY_WORDS - 1 + self.wait)
            assert self.text(table, at, NAME) == name_of(entry[KEY])
            assert not self.wait or entry[HEAD + w.KEY_NUMBER] == n
            sides = found[entry[KEY]] = []
            for side, words in enumerate(ROW_WORDS):
                place, rows = entry[HEAD + side * w.RUN_WORDS : HEAD + (side + 1) * w.RUN_WORDS]
                ats = [arena + place + 8 * words * r for r in range(rows & w.ROWS_MASK)]
                assert all(a % 64 == 0 for a in ats[:1])
                sides.append([(a, self.run.words(a, 2)[VALUE], self.text(table, a, TEXT)) for a in ats])
        return found

    def check(self):
        for due, keys in self.windows.items():
            held = {k: [[row[1:] for row in side] for side in sides] for k, sides in self.rows_of(due).items()}
            assert held == {k: [[(r[3], r[4]) for r in side] for side in sides] for k, sides in keys.items()}
        assert self.run.words(self.runs, 1)[w.RUNS_NEXT] == min(self.windows, default=NEVER)

    def leave(self, instant):
        """The values and texts of the rows that leave alone until the instant; the windows are gone."""
        found = []
        while self.run.runs_over(self.runs, instant) == 1:
            assert self.run.runs_over(self.runs, instant) == 1  # it is still the next one
            words = self.run.words(self.runs, w.RUNS_WORDS)
            row = words[w.RUNS_ROW]
            key = self.run.words(words[w.RUNS_ENTRY], 2)[KEY]
            assert self.text(words[w.RUNS_KEYS], words[w.RUNS_ENTRY], NAME) == name_of(key)
            value, text = self.run.words(row, 2)[VALUE], self.text(words[w.RUNS_KEYS], row, TEXT)
            found.append((words[w.RUNS_OVER], words[w.RUNS_SERIAL], words[w.RUNS_SIDE], key, value, text))
            self.run.poke(self.runs + 8 * w.RUNS_CURSOR, words[w.RUNS_CURSOR] + 1)
        return found

    def alone(self, instant):
        """What `leave` should give."""
        found = []
        for due in sorted(d for d in self.windows if d <= instant):
            rows = [(r, key) for key, sides in self.windows.pop(due).items() for side in sides for r in side if r[5]]
            rows.sort(key=lambda row: row[0][:2])
            found += [(due, r[0], r[2], key, r[3], r[4]) for r, key in rows]
        return found


def text_of(dice):
    return dice.choice([b"t", b"u", b"v"]) * dice.choice([0, 3, 12, 13, 40])


def fill(model, dice, count, first=0, keys=range(9), dues=range(10, 40, 10)):
    for n in range(first, first + count):
        waits = model.wait * dice.randrange(2)
        model.put(dice.choice(dues), dice.choice(keys), dice.randrange(2), n, n, text_of(dice), waits)


def match_some(model, dice):
    for due, keys in model.windows.items():
        for key, sides in keys.items():
            for side, rows in enumerate(sides):
                if rows and dice.random() < 0.3:
                    model.match(due, key, side, dice.randrange(len(rows)))


@pytest.mark.parametrize("keys", [1, 6, 90])
@pytest.mark.parametrize("wait", [0, 1])
def test_a_window_holds_the_rows_of_each_key_and_side_in_their_order_until_it_is_over(run, wait, keys):
    dice = random.Random(f"{wait} {keys}")
    model, now, serial = Model(run, wait), 0, 0
    for n in range(700):
        turn = dice.random()
        if turn < 0.9:
            serial += dice.randrange(2)
            due = now + dice.choice([1, 1, 1, 2, 7])
            side, waits = dice.randrange(2), wait * dice.randrange(2)
            model.put(due, dice.randrange(keys), side, serial, n, text_of(dice), waits)
        elif turn < 0.95 and wait:
            match_some(model, dice)
        else:
            now += dice.choice([0, 1, 2, 9])
            assert model.leave(now) == model.alone(now)
            model.check()
    assert model.leave(now + 9) == model.alone(now + 9)
    model.check()
    assert model.windows == {}
    run.runs_drop(model.runs)


def saved(run, runs):
    room = run.zeros(8 * run.runs_saved_words(runs) + 8)
    assert run.runs_save(runs, room) == run.runs_saved_words(runs)
    return room, run.words(room, run.runs_saved_words(runs))


@pytest.mark.parametrize("wait", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3, 250])
def test_pieces_of_saved_windows_are_one_again(run, count, wait):
    """Key by key into four others, then what they save into one that has rows of other keys already."""
    dice = random.Random(f"{count} {wait}")
    source, target = Model(run, wait), Model(run, wait)
    fill(source, dice, count, keys=range(40))
    match_some(source, dice)
    assert source.leave(10) == source.alone(10)
    fill(target, dice, 30, first=count, keys=range(40, 60), dues=[20, 50])
    panes = run.words(source.runs, w.RUNS_WORDS)[w.RUNS_PANES]
    records = run.words(run.words(panes, p.PANES_WORDS)[p.PANES_LIST], run.words(panes, p.PANES_WORDS)[p.PANES_COUNT])
    for lane in (2, 0, 3, 1):
        piece = Model(run, wait)
        for place, record in enumerate(records):
            assert run.runs_take_window(piece.runs, source.runs, place) != 0
            table = run.words(record, p.PANE_TABLES + 1)[p.PANE_TABLES]
            entries = source.entries(table)
            numbers = run.zeros(8 * len(entries) + 8)
            for entry in entries:
                if run.words(entry, 2)[KEY] % 4 == lane:
                    assert run.runs_take(piece.runs, table, entry, numbers) == 1
            assert run.runs_take_waits(piece.runs, record, numbers) == 1
        assert run.runs_taken(piece.runs) == 1
        piece.windows = {
            due: {k: sides for k, sides in keys.items() if k % 4 == lane} for due, keys in source.windows.items()
        }
        piece.check()
        room, _ = saved(run, piece.runs)
        assert run.runs_load(target.runs, room) == run.runs_saved_words(piece.runs)
        run.runs_drop(piece.runs)
    for due, keys in source.windows.items():
        target.windows.setdefault(due, {}).update(keys)
    target.check()
    assert target.leave(99) == target.alone(99)
    for made in (source, target):
        run.runs_drop(made.runs)


def test_rows_that_wait_say_their_serials_and_what_orders_equal_ones(run):
    """Of the rows of one event the left one comes first; those that have a match are still told."""
    model = Model(run)
    for n, (due, side, serial) in enumerate([(5, 0, 3), (5, 1, 3), (5, 0, 3), (9, 1, 3), (5, 1, 4), (5, 0, 6)]):
        model.put(due, n % 2, side, serial, n, b"", 1)
    model.match(5, 0, 0, 0)
    room = run.zeros(6 * 8 * ARRIVAL_WORDS)
    assert run.runs_arrivals(model.runs, 0) == run.runs_arrivals(model.runs, room) == 6
    told = [run.words(room + 8 * ARRIVAL_WORDS * n, ARRIVAL_WORDS) for n in range(6)]
    assert [(a[ARRIVAL_NUMBER], a[ARRIVAL_TIE]) for a in told] == [(3, 0), (3, 3), (3, 4), (4, 1), (6, 0), (3, 1)]
    assert [run.words(a[ARRIVAL_PLACE], 1)[0] for a in told] == [3, 3, 3, 4, 6, 3]
    run.runs_drop(model.runs)


def test_what_is_saved_says_nothing_of_windows_before(run):
    """Memory that is used again is clean."""
    kept = []
    for before in (0, 50):
        model = Model(run)
        fill(model, random.Random(before), before, dues=[5], keys=range(3))
        model.leave(5)
        fill(model, random.Random(7), 60, dues=[20], keys=range(5))
        kept.append(saved(run, model.runs)[1])
        run.runs_drop(model.runs)
    assert kept[0] == kept[1]


def test_runs_of_other_rows_are_refused(run):
    model = Model(run)
    fill(model, random.Random(1), 3)
    more = run.runs_new(ENTRY_WORDS + 1, 1 << NAME, ROW_WORDS[0], 0, ROW_WORDS[1], 0, HEAD, 1)
    assert run.runs_load(more, saved(run, model.runs)[0]) == 0
    for made in (more, model.runs):
        run.runs_drop(made)


@pytest.mark.parametrize("width", [10, 300])
def test_memory_stays_flat_however_many_windows_pass(run, width):
    rounds = 300_000 if run.compiled else 3000
    runs = run.runs_new(ENTRY_WORDS, 0, ROW_WORDS[0], 0, ROW_WORDS[1], 0, HEAD, 0)
    assert run.pass_rows(runs, 0, 3 * width, width) == 0
    held = run.runs_held_bytes(runs)
    assert run.pass_rows(runs, 3 * width, rounds, width) == 0
    assert run.runs_held_bytes(runs) == held
    assert run.runs_held_bytes(0) == 0
    run.runs_drop(runs)


@pytest.mark.parametrize("fail_at", range(40))
def test_without_memory_runs_say_so_and_can_be_freed(fail_at):
    with Memory(fail_at=fail_at) as memory:
        runs = c.runs_new(ENTRY_WORDS, 1 << NAME, ROW_WORDS[0], 1 << TEXT, ROW_WORDS[1], 1 << TEXT, HEAD, 1)
        if runs == 0:
            memory.check_no_leaks()
            return
        text = memory.place(b"a string that takes its own bytes" + bytes(16))
        whole = True
        for n in range(120):
            entry = 0
            if c.runs_window(runs, 1 + n // 40) == 1:
                entry = key_entry(runs, n % 50, text, 33)
            place = put_row(runs, entry, n % 2, n, text, 33) if entry else -1
            if place < 0 or let_wait(runs, entry, n % 2, place, n) == 0:
                whole = False
                break
        assert not whole or fail_at > 8
        if whole:
            room = memory.place(bytes(8 * cs.runs_saved_words(runs) + 8), True)
            cs.runs_save(runs, room)
            other = c.runs_new(ENTRY_WORDS, 1 << NAME, ROW_WORDS[0], 1 << TEXT, ROW_WORDS[1], 1 << TEXT, HEAD, 1)
            assert other == 0 or cs.runs_load(other, room) in {0, cs.runs_saved_words(runs)}
            c.runs_drop(other)
        c.runs_drop(runs)
        memory.check_no_leaks()
