"""State containers come back from saved bytes as they were, wherever they are loaded."""

from __future__ import annotations

import random
import struct

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.containers import panes as n
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_saving as ts
from cq.runtime.containers import table_words as w
from cq.runtime.containers import tables as t
from cq.runtime.containers import waiting as b
from cq.runtime.values import times  # noqa: F401  whose natives panes call

WORDS = 6  # tag, first, key, string (2 words), value
FUNCTIONS = (
    t.table_new, t.table_drop, t.table_insert, x.string_store, t.table_clear,
    n.panes_new, n.panes_drop, n.panes_find, n.panes_closed,
    b.buffer_new, b.buffer_drop, b.buffer_record, b.buffer_text, b.buffer_commit, b.buffer_pop,
    ts.table_saved_words, ts.table_save, ts.table_load, t.table_held_bytes, n.panes_saved_words, n.panes_save,
    n.panes_load, n.panes_held_bytes, b.buffer_saved_words, b.buffer_save, b.buffer_load, b.buffer_held_bytes,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


def write(run, address, index, value):
    import ctypes

    if run.compiled:
        ctypes.c_int64.from_address(address + 8 * index).value = value
    else:
        run.memory.write(address + 8 * index, struct.pack("<q", value))


def fill_table(run, table, seed, count):
    """`count` groups with a key, a string of any length and a value each."""
    dice = random.Random(seed)
    for group in range(count):
        entry = run.table_insert(table, dice.randrange(2**32), 1000 + group)
        write(run, entry, 2, group)
        text = ("é" * dice.randrange(20)).encode()
        assert run.string_store(table, entry, 3, run.place(text + bytes(16)), len(text)) == 1
        write(run, entry, 5, dice.randrange(-9, 9))


def saved(run, kind, container):
    size = getattr(run, f"{kind}_saved_words")(container)
    room = run.zeros(8 * size + 8)
    assert getattr(run, f"{kind}_save")(container, room) == size
    return room, run.words(room, size)


def groups(run, table):
    """The live entries by birth, strings as bytes."""
    header = run.words(table, w.TABLE_WORDS)
    found = []
    count = header[w.TABLE_COUNT]
    numbers = range(1, count + 1)
    if header[w.TABLE_BIRTHS]:
        numbers = struct.unpack(f"<{count}i", run.read(header[w.TABLE_BIRTHS], 4 * count))
    for number in numbers:
        at = header[w.TABLE_ENTRIES] + number * header[w.TABLE_STRIDE]
        entry = run.words(at, WORDS)
        length = entry[3] & 0xFFFFFFFF
        place = at + 28 if length <= x.INLINE_STRING_BYTES else header[w.TABLE_ARENA] + entry[4]
        found.append((entry[0] & 0xFFFFFFFF, entry[1], entry[2], run.read(place, length), entry[5]))
    return found


@pytest.mark.parametrize("count", [0, 1, 31, 33, 300])
def test_a_table_comes_back(run, count):
    table, other = run.table_new(WORDS, 1 << 3, 0), run.table_new(WORDS, 1 << 3, 0)
    fill_table(run, table, 0, 5)
    run.table_clear(table)  # another epoch
    fill_table(run, table, count, count)
    room, words = saved(run, "table", table)
    assert run.table_load(other, room) == len(words)
    assert groups(run, other) == groups(run, table)
    assert len(groups(run, other)) == count
    assert saved(run, "table", other)[1] == words
    assert run.table_held_bytes(table) >= 8 * w.TABLE_WORDS + 64 * 32
    for made in (table, other):
        run.table_drop(made)


def test_a_table_of_other_entries_is_refused(run):
    table, other = run.table_new(WORDS, 1 << 3, 0), run.table_new(20, 0, 0)
    fill_table(run, table, 1, 3)
    assert run.table_load(other, saved(run, "table", table)[0]) == 0
    for made in (table, other):
        run.table_drop(made)


def new_panes(run):
    return run.panes_new(10, 0, 30, 10, 0, 0, 1, run.place_words(WORDS, 1 << 3, 0))


def test_open_panes_come_back_and_close_as_before(run):
    panes, other = new_panes(run), new_panes(run)
    for time in (5, 17, 40):
        record = run.panes_find(panes, time)
        fill_table(run, run.words(record, 3)[n.PANE_TABLES], time, time)
    run.panes_closed(panes)
    room, words = saved(run, "panes", panes)
    assert run.panes_load(other, room) == len(words)
    assert saved(run, "panes", other)[1] == words
    for made in (panes, other):
        run.panes_closed(made)
        run.panes_find(made, 41)
    assert saved(run, "panes", other)[1] == saved(run, "panes", panes)[1]
    assert run.panes_held_bytes(other) > 0
    for made in (panes, other):
        run.panes_drop(made)


@pytest.mark.parametrize("count", [0, 3, 200])
def test_waiting_rows_come_back_in_their_order(run, count):
    buffer, other = run.buffer_new(5, 1 << 3), run.buffer_new(5, 1 << 3)
    dice = random.Random(count)
    for row in range(count):
        record = run.buffer_record(buffer)
        write(run, record, 2, row)
        text = b"z" * dice.randrange(30)
        assert run.buffer_text(buffer, record, 3, run.place(text + bytes(16)), len(text)) == 1
        run.buffer_commit(buffer, dice.randrange(10))
    room, words = saved(run, "buffer", buffer)
    assert run.buffer_load(other, room) == len(words)
    orders = []
    for made in (buffer, other):
        order = []
        while run.words(made, 16)[b.BUFFER_COUNT]:
            order.append(run.words(run.words(made, 1)[0], 3))
            run.buffer_pop(made)
        orders.append(order)
    assert orders[0] == orders[1]
    assert len(orders[0]) == count
    for made in (buffer, other):
        run.buffer_drop(made)
