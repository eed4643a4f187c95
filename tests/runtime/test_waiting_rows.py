"""Rows that wait leave by time and arrival, whatever the order in which they came, with their texts."""

from __future__ import annotations

import ctypes
import random
import struct
from bisect import insort

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.containers import strings as x
from cq.runtime.containers import waiting as b
from cq.runtime.layout.abi import NEVER

WORDS = 6  # time, arrival, serial, number, text (2 words)
FUNCTIONS = (
    b.buffer_new, b.buffer_drop, b.buffer_record, b.buffer_text, b.buffer_commit, b.buffer_pop, b.buffer_nth,
    b.buffer_take, b.buffer_held_bytes, x.string_length, x.string_address,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


class Buffer:
    """A buffer beside the list of what waits in it: (time, arrival, text)."""

    def __init__(self, run, texts):
        self.run, self.texts, self.came = run, texts, 0
        self.address, self.expected = run.buffer_new(WORDS, int(texts) << 4), []

    def put(self, time, text=b""):
        record = self.run.buffer_record(self.address)
        self._write(record, 2, -100 - self.came)
        self._write(record, 3, self.came)
        if self.texts:
            at = self.run.place(text + bytes(16))
            assert self.run.buffer_text(self.address, record, 4, at, len(text)) == 1
        assert self.run.buffer_commit(self.address, time) == 1
        insort(self.expected, (time, self.came, text if self.texts else b""))
        self.came += 1
        self.check()

    def pop(self):
        self.run.buffer_pop(self.address)
        del self.expected[0]
        self.check()

    def check(self):
        """The first one, its time, and how many there are."""
        words = self.run.words(self.address, 16)
        assert words[b.BUFFER_COUNT] == len(self.expected)
        assert words[b.BUFFER_NEXT] == (self.expected[0][0] if self.expected else NEVER)
        if self.expected:
            assert self.read(words[b.BUFFER_FIRST]) == self.expected[0]

    def read(self, record):
        time, _, _, number = self.run.words(record, 4)
        if not self.texts:
            return time, number, b""
        length = self.run.string_length(record, 4)
        return time, number, self.run.read(self.run.string_address(self.address, record, 4), length)

    def _write(self, record, index, value):
        if self.run.compiled:
            ctypes.c_int64.from_address(record + 8 * index).value = value
        else:
            self.run.memory.write(record + 8 * index, struct.pack("<q", value))


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("early", [0, 3, 40])
def test_they_leave_by_time_then_as_they_came(run, texts, early):
    # times rise; some rows are up to `early` too early, which are behind in the queue; as many leave as come, then all
    dice, now = random.Random(early), 0
    buffer = Buffer(run, texts)
    for step in range(600):
        now += dice.choice([0, 0, 1, 2])
        buffer.put(now - dice.randrange(early + 1) * dice.choice([0, 1]), bytes([65 + step % 26]) * dice.randrange(40))
        while buffer.expected and dice.random() < (0.3 if step < 300 else 0.6):
            buffer.pop()
    while buffer.expected:
        buffer.pop()
    buffer.put(5)
    buffer.pop()
    run.buffer_drop(buffer.address)


def test_rows_that_come_and_go_need_no_more_memory(run):
    buffer = Buffer(run, texts=False)
    held = run.buffer_held_bytes(buffer.address)
    for time in range(500):
        buffer.put(time)
        if time >= 20:
            buffer.pop()
    assert run.buffer_held_bytes(buffer.address) == held
    run.buffer_drop(buffer.address)


def test_rows_of_another_buffer_wait_here_in_the_order_of_their_serials(run):
    # of equal times the one with the lower serial leaves first: the one that came last there
    other, buffer = Buffer(run, texts=False), Buffer(run, texts=False)
    for time in (3, 1, 3, 2, 3):
        other.put(time)
    for n in range(5):
        assert run.buffer_take(buffer.address, other.address, run.buffer_nth(other.address, n)) == 1
    left = []
    for _ in range(5):
        left.append(buffer.read(run.words(buffer.address, 16)[b.BUFFER_FIRST])[:2])
        run.buffer_pop(buffer.address)
    assert left == [(1, 1), (2, 3), (3, 4), (3, 2), (3, 0)]
    for made in (buffer, other):
        run.buffer_drop(made.address)
