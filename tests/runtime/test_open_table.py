"""Tables whose entries are over some time: what is not over is found, in its order, and memory stays what it takes."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted
from test_tables import FUNCTIONS, KEY, TEXT, VALUE, WORDS, Model, find_key, text_of

from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import open_table as ot
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_words as w
from cq.runtime.containers import tables as t
from cq.runtime.layout.abi import BEFORE_ALL, NEVER

BEHIND = 3


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS, ot.open_table_new) as made:
        yield made


class OpenModel(Model):
    """A model of a table whose entries are over when their value, and BEHIND more, is past."""

    def __init__(self, run, hashes):
        super().__init__(run, hashes)
        run.table_drop(self.table)
        self.table = run.open_table_new(WORDS, 1 << TEXT, VALUE, BEHIND)
        self.past = BEFORE_ALL

    def pass_by(self, past):
        self.past = past
        self.run.put_word(self.table, w.TABLE_PAST, past)

    @property
    def open(self):
        return {k: held for k, held in self.held.items() if held[2] + BEHIND >= self.past}

    def settled(self):
        """What is open, by birth; what is over may be there or not."""
        there = self.listed()
        assert set(there) <= set(self.held.items())
        return [(k, held) for k, held in there if held[2] + BEHIND >= self.past]


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("first", [-500, 1_000])
def test_what_is_not_over_is_there_in_its_order(run, first, dense):
    dice = random.Random(first)
    model = OpenModel(run, [dice.randrange(1 << 32) for _ in range(50)])  # a few hashes: entries collide
    if dense:
        assert run.table_make_dense(model.table) == 1
    most = 0
    for n in range(6_000):
        now = first + n // 4
        if n % 40 == 0:
            model.pass_by(now)
        model.insert(n, n, text_of(dice), now + dice.randrange(-BEHIND, 30))
        if n % 97 == 0:
            model.check(model.open)
            assert model.settled() == list(model.open.items())
            most = max(most, len(model.open))
    header = run.words(model.table, w.TABLE_WORDS)
    assert header[w.TABLE_MASK] < 8 * most, "it has grown with what passed through it"
    assert bool(header[w.TABLE_INDEX]) == dense
    run.table_drop(model.table)


def test_a_table_that_becomes_dense_keeps_what_is_not_over(run, monkeypatch):
    monkeypatch.setattr(t, "SPREAD_BYTES", 64 * 64)
    model = OpenModel(run, [x.hash_word(n) for n in range(1_000)])
    for n in range(2_000):
        model.pass_by(n - 600)
        model.insert(n, n, b"", n)
    assert model.settled() == list(model.open.items())
    run.table_drop(model.table)


def test_times_at_the_ends_of_all_time_are_over_in_their_turn(run):
    model = OpenModel(run, [x.hash_word(n) for n in range(300)])
    for n in range(300):
        model.insert(n, n, b"", (BEFORE_ALL + 1, 0, NEVER - 1)[n % 3])
        model.pass_by(BEFORE_ALL + n)  # the last of all times is reached by no instant
    for n in range(300):
        assert n % 3 == 0 or model.find(n) != 0
    run.table_drop(model.table)


def test_nothing_is_over_before_time_has_begun(run):
    model = OpenModel(run, [x.hash_word(n) for n in range(300)])
    for n in range(300):
        model.insert(n, n, b"", n - 1_000)
    assert model.settled() == list(model.held.items())
    run.table_drop(model.table)


@pytest.mark.parametrize("dense", [False, True])
def test_texts_of_what_is_over_make_room_for_others(run, dense):
    model = OpenModel(run, [x.hash_word(n) for n in range(4_000)])
    if dense:
        assert run.table_make_dense(model.table) == 1
    for n in range(4_000):
        model.pass_by(n)
        model.insert(n, n, b"w" * 100, n)
    assert run.words(model.table, w.TABLE_WORDS)[w.TABLE_ARENA_CAPACITY] <= 2 * x.COMPACT_FROM_BYTES
    run.table_drop(model.table)


@pytest.mark.parametrize("fail_at", range(12))
def test_without_memory_nothing_that_is_open_is_lost(fail_at, monkeypatch):
    monkeypatch.setattr(t, "SPREAD_BYTES", 64 * 128)
    with Memory(fail_at=fail_at) as memory:
        table = ot.open_table_new(WORDS, 1 << TEXT, VALUE, 0)
        if table == 0:
            memory.check_no_leaks()
            return
        there = []
        for n in range(2_000):
            st_i64(table, w.TABLE_PAST, n - 40)
            entry = t.table_insert(table, x.hash_word(n), n)
            if entry == 0:
                break
            st_i64(entry, KEY, n)
            st_i64(entry, VALUE, n)
            there.append(n)
        for n in there[-40:]:
            assert ld_i64(find_key(table, x.hash_word(n), n), KEY) == n
        t.table_drop(table)
        memory.check_no_leaks()
