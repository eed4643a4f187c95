"""Admission against its definition: one row after the other, in plain Python."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from engine_kernels import batch, pipeline, stage

from cq.records import replace
from cq.runtime.base.host import CompiledHost, InterpretedHost
from cq.runtime.engine.build import build, close
from cq.runtime.flow import admission_words as admission
from cq.runtime.flow.arrow import lend
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import ColumnSpec, EventTime, Grid, SourceSpec

LATE, CLOSE, END = "late", "close", "end"
ROW = "row"


class Admission:
    """The native admission of a pipeline; `feed` and `finish` push, `take` gives what it admitted as events."""

    def __init__(self, plan, host, batch_rows=4096):
        with host.active():
            self.plant = build(host, plan, 0, batch_rows, 0)
        self.host, self.plan, self.loans, self.tickets, self.marks = host, plan, [], [], []
        self.mixed = 0  # rows in segments of several sources

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.host.active():
            for loan in self.loans:
                self.host.function("loan_return")(loan)
            close(self.plant)

    def feed(self, source, record_batch):
        with self.host.active():
            loan = lend(self.host, record_batch, self.plant.storages[source])
            self.loans.append(loan)
            self._push(source, loan)

    def finish(self, source):
        with self.host.active():
            self._push(source, admission.END_OF_SOURCE)

    def _push(self, source, word):
        ring = self.host.word(self.plant.sources[source], admission.SOURCE_RING)
        assert self.host.function("ring_push")(ring, word)

    def has_room(self, source):
        with self.host.active():
            ring = self.host.word(self.plant.sources[source], admission.SOURCE_RING)
            return self.host.function("ring_has_room")(ring) == 1

    def take(self):
        """Events admitted since the last call; the rows of each ticket are noted in `tickets`."""
        word, call = self.host.word, self.host.function
        events = []
        with self.host.active():
            ring = word(self.plant.admission, admission.ADMISSION_OUTPUT)
            while call("admit")(self.plant.admission, 4) or word(ring, 8) != word(ring, 16):
                while (ticket := call("ring_pop")(ring)) != 0:
                    events += self._events(ticket)
                    call("ticket_return")(ticket, len(self.plan.sources))
        return events

    def _events(self, ticket):
        word, found, rows = self.host.word, [], 0
        for n in range(word(ticket, abi.BATCH_SEGMENT_COUNT)):
            at = word(ticket, abi.BATCH_SEGMENTS) + n * abi.SEGMENT_WORDS * 8
            kind, port, lo, hi, serial, mark = (word(at, i) for i in range(6))
            if kind == abi.SEGMENT_CLOSE:
                found.append((CLOSE, serial, mark))
            elif kind == abi.SEGMENT_END:
                found.append((END, serial))
            elif port == abi.MIXED:
                assert kind == abi.SEGMENT_ROWS and lo == serial == word(ticket, abi.BATCH_FIRST) + rows
                rows += hi - lo
                self.mixed += hi - lo
                found += [self._mixed_row(ticket, at) for at in range(lo, hi)]
                self.marks += [word(word(ticket, abi.BATCH_WATERMARKS), at) for at in range(lo, hi)]
            else:
                table = word(word(ticket, abi.BATCH_PORTS), port)
                values = word(table, abi.COLUMN_DATA)
                rows += hi - lo
                assert hi <= word(table, abi.COLUMN_ROWS), "rows that a column does not have"
                name = ROW if kind == abi.SEGMENT_ROWS else LATE
                found += [(name, port, word(values, row), serial + row - lo) for row in range(lo, hi)]
                if marks := word(ticket, abi.BATCH_WATERMARKS):
                    self.marks += [word(marks, serial + row - lo) for row in range(lo, hi)]
                    assert word(ticket, abi.BATCH_FIRST) == serial + hi - lo - rows, "the place of the first row"
        assert word(ticket, abi.BATCH_ROWS) == rows
        self.tickets.append(rows)
        return found

    def _mixed_row(self, ticket, serial):
        word = self.host.word
        place = word(word(ticket, abi.BATCH_MIXED), serial)
        port, row = place >> abi.MIXED_PORT_SHIFT, place & ((1 << abi.MIXED_PORT_SHIFT) - 1)
        table = word(word(ticket, abi.BATCH_PORTS), port)
        assert row < word(table, abi.COLUMN_ROWS), "a row that a column does not have"
        return ROW, port, word(word(table, abi.COLUMN_DATA), row), serial


def defined(sources, grids=(), marks=None, delays=None, timed=None):
    """The events by definition. sources: lists of (row name, time), each with its end known.

    marks: a list that gets the watermark of every row; a CLOSE then tells of every advance that no row tells of.
    """
    delays = delays or [0] * len(sources)
    timed = timed or [True] * len(sources)
    at, top = [0] * len(sources), [abi.BEFORE_ALL] * len(sources)
    minimum, serial, events, ended = abi.BEFORE_ALL, 0, [], [False] * len(sources)

    def mark(n):
        return abi.BEFORE_ALL if top[n] == abi.BEFORE_ALL else top[n] - delays[n]

    def advance(unmarked=False):
        nonlocal minimum
        marks = [mark(n) for n in range(len(sources)) if timed[n] and not ended[n]]
        if not marks or min(marks) <= minimum:
            return
        old, minimum = minimum, min(marks)
        passed = old == abi.BEFORE_ALL or any((old - o) // p != (minimum - o) // p for p, o in grids)
        if unmarked or (grids and passed):
            events.append((CLOSE, serial, minimum))

    while True:
        for n, rows in enumerate(sources):
            if at[n] == len(rows) and not ended[n]:
                ended[n] = True
                if timed[n]:
                    advance(unmarked=marks is not None)
        keys = [
            (max(top[n], rows[at[n]][1]) if timed[n] else abi.BEFORE_ALL, n)
            for n, rows in enumerate(sources)
            if not ended[n]
        ]
        if not keys:
            return [*events, (CLOSE, serial, abi.NEVER), (END, serial)]
        n = min(keys)[1]
        name, time = sources[n][at[n]]
        late = timed[n] and time < mark(n)
        at[n] += 1
        if timed[n]:
            top[n] = max(top[n], time)
            advance()
        events.append((LATE if late else ROW, n, name, serial))
        if marks is not None:
            marks.append(minimum)
        serial += 1


@pytest.fixture(params=[InterpretedHost, CompiledHost], ids=["interpreted", "compiled"])
def host(request):
    return request.param()


def rows_of(names_times):
    return batch([(name, 0, time) for name, time in names_times])


def admitted(host, plan, sources, size, batch_rows=4096, dice=None, marks=None):
    """All events of sources that are pushed in record batches of `size` rows, in turn or at random.

    marks: a list that gets the watermarks that tickets carry.
    """
    waiting = [[s[n : n + size] for n in range(0, len(s), size)] + [None] for s in sources]
    events = []
    with Admission(plan, host, batch_rows) as admission:
        while any(waiting):
            events += admission.take()
            ready = [n for n, pieces in enumerate(waiting) if pieces and admission.has_room(n)]
            n = dice.choice(ready) if dice else ready[0]
            piece = waiting[n].pop(0)
            if piece is None:
                admission.finish(n)
            else:
                admission.feed(n, rows_of(piece))
        events += admission.take()
        if marks is not None:
            marks += admission.marks
        return events, admission.tickets


def mixed_rows(host, plan, sources):
    """How many rows come in segments of both sources; all come as defined, with their watermarks."""
    delays, marks = [s.delay_us for s in plan.sources], []
    expected = defined(sources, [(g.period, g.offset) for g in plan.grids], marks, delays)
    with Admission(replace(plan, mixed=True), host) as admission:
        for n, rows in enumerate(sources):
            admission.feed(n, rows_of(rows))
            admission.finish(n)
        assert admission.take() == expected and admission.marks == marks
        return admission.mixed


def test_rows_of_sources_that_take_turns_are_mixed_in_a_segment(host):
    # s0: 10 20 20 30 ... s1: 15 20 25 ...; the first of each, before which a source has no maximum, comes alone
    sources = [[(n, 10 * (n // 2)) for n in range(100)], [(1000 + n, 5 * n) for n in range(100)]]
    plan = pipeline(stage("running"), sources=2, watermarks=True)
    assert mixed_rows(host, plan, sources) > 150
    assert mixed_rows(host, replace(plan, grids=(Grid(50, 0),)), sources) > 100


def test_a_long_run_of_a_source_is_not_mixed(host):
    # s0: 0 .. 1999   s1: three rows for 400 of s0
    sources = [[(n, n) for n in range(2000)], [(3000 + n, 400 * n + k) for n in range(5) for k in range(3)]]
    plan = pipeline(stage("running"), sources=2, watermarks=True)
    assert 0 < mixed_rows(host, plan, sources) < 500
    assert mixed_rows(host, plan, [sources[0], [(3000, 0), (3001, 1999)]]) < 100


def test_late_rows_are_not_mixed(host):
    # every third row of s1 is late, though rows of both are within the delay
    times = [t - 30 if n % 3 == 2 else t for n, t in enumerate(range(300))]
    sources = [list(enumerate(range(300))), list(enumerate(times, 1000))]
    plan = pipeline(stage("running"), sources=2, watermarks=True)
    plan = replace(plan, sources=tuple(replace(s, delay_us=d) for s, d in zip(plan.sources, (0, 20), strict=True)))
    assert 300 < mixed_rows(host, plan, sources) < 500


def test_merge_order_is_by_running_maximum_then_source(host):
    # s0: a@10 b@5(late) c@30      s1: d@10 e@20
    sources = [[(1, 10), (2, 5), (3, 30)], [(4, 10), (5, 20)]]
    events, _ = admitted(host, pipeline(stage("running"), sources=2), sources, 3)
    assert [e[:3] for e in events[:-2]] == [(ROW, 0, 1), (LATE, 0, 2), (ROW, 1, 4), (ROW, 1, 5), (ROW, 0, 3)]
    assert events[-2:] == [(CLOSE, 5, abi.NEVER), (END, 5)]


def test_every_passed_closing_time_is_announced_before_the_row_that_passed_it(host):
    # grid 10:  1 9 | 10 19 | 35
    plan = pipeline(stage("running"), grid_us=10)
    events, _ = admitted(host, plan, [[(n, t) for n, t in enumerate((1, 9, 10, 19, 35))]], 5)
    assert events == [
        (CLOSE, 0, 1), (ROW, 0, 0, 0), (ROW, 0, 1, 1), (CLOSE, 2, 10), (ROW, 0, 2, 2), (ROW, 0, 3, 3),
        (CLOSE, 4, 35), (ROW, 0, 4, 4), (CLOSE, 5, abi.NEVER), (END, 5),
    ]  # fmt: skip


def test_a_source_without_rows_holds_the_watermark_until_it_ends(host):
    plan = pipeline(stage("running"), sources=2, grid_us=10)
    with Admission(plan, host) as admission:
        admission.feed(0, rows_of([(1, 5), (2, 15)]))
        assert admission.take() == []  # the first row of s1 may be earlier
        admission.finish(1)
        assert admission.take() == [(CLOSE, 0, 5), (ROW, 0, 1, 0), (CLOSE, 1, 15), (ROW, 0, 2, 1)]
        admission.finish(0)
        assert admission.take() == [(CLOSE, 2, abi.NEVER), (END, 2)]


def test_the_end_of_a_source_closes_windows_right_behind_its_last_row(host):
    # s0: a@5 b@25   s1: c@7 then ends: the minimum goes from 7 to 25 before the next row of s0
    plan = pipeline(stage("running"), sources=2, grid_us=10)
    events, _ = admitted(host, plan, [[(1, 5), (2, 25), (3, 26)], [(4, 7)]], 3)
    assert events == defined([[(1, 5), (2, 25), (3, 26)], [(4, 7)]], [(10, 0)])


def test_rows_of_a_source_without_time_come_first_and_hold_nothing(host):
    plan = pipeline(stage("running"), sources=2, grid_us=10)
    plan = replace(plan, sources=(plan.sources[0], replace(plan.sources[1], time=None)))
    sources = [[(1, 5), (2, 25)], [(4, 7), (5, 1)]]
    events, _ = admitted(host, plan, sources, 3)
    assert events == defined(sources, [(10, 0)], timed=[True, False])
    assert [e[2] for e in events if e[0] == ROW] == [4, 5, 1, 2]


@pytest.mark.parametrize("batch_rows", [1, 3, 64])
def test_a_ticket_holds_no_more_rows_than_asked(host, batch_rows):
    sources = [[(n, n // 2) for n in range(100)]]
    events, tickets = admitted(host, pipeline(stage("running"), grid_us=7), sources, 30, batch_rows)
    assert events == defined(sources, [(7, 0)])
    assert max(tickets) == min(batch_rows, 30)


def test_a_ticket_has_rows_of_one_record_batch_of_each_source(host):
    events, tickets = admitted(host, pipeline(stage("running")), [[(n, n) for n in range(10)]], 4)
    assert [t for t in tickets if t] == [4, 4, 2]
    assert len(events) == 12


def test_long_blocks_in_and_out_of_order_are_scanned_alike(host):
    # whole blocks in order, a fall inside a block, a late row, a boundary inside a block
    times = [*range(200), 150, *range(200, 330), 329, 5, *range(330, 500)]
    for delay in (0, 60):
        plan = pipeline(stage("running"), grid_us=111, delay_us=delay)
        sources = [list(enumerate(times))]
        events, _ = admitted(host, plan, sources, 1000)
        assert events == defined(sources, [(111, 0)], delays=[delay])


@pytest.mark.parametrize("delay", [0, 10])
def test_a_fall_is_seen_wherever_in_a_block_it_is(host, delay):
    for place in range(60, 135):
        times = [*range(1, place), place - 1 - delay - 5, *range(place, 200)]
        plan = pipeline(stage("running"), delay_us=delay)
        events, _ = admitted(host, plan, [list(enumerate(times))], 1000)
        assert events == defined([list(enumerate(times))], delays=[delay])


def random_case(dice):
    count = dice.choice([1, 1, 2, 3])
    sources = []
    for n in range(count):
        time, rows = dice.randrange(-50, 50), []
        for row in range(dice.choice([0, 1, 5, 30, 150])):
            time += dice.choice([0, 0, 1, 1, 2, dice.randrange(-20, 40)])
            rows.append((n * 1000 + row, time))
        sources.append(rows)
    delays = [dice.choice([0, 0, 5, 30]) for _ in sources]
    grids = tuple(Grid(p, dice.randrange(p)) for p in dice.sample([1, 7, 10, 25, 60], dice.choice([0, 1, 2])))
    return sources, delays, grids, dice.random() < 0.2


@pytest.mark.parametrize("seed", range(60))
def test_merge_order_is_the_defined_one_for_random_sources(host, seed):
    dice = random.Random(seed)
    sources, delays, grids, marked = random_case(dice)
    admitted_as_defined(host, dice, sources, delays, grids, marked, mixed=False)


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_mixed_in_the_defined_order_for_random_sources(host, seed):
    dice = random.Random(seed)
    cases = (random_case(dice) for _ in range(1000))
    sources, delays, grids, _ = next(case for case in cases if len(case[0]) == 2)
    admitted_as_defined(host, dice, sources, delays, grids, marked=True, mixed=True)


def admitted_as_defined(host, dice, sources, delays, grids, marked, mixed):
    plan = pipeline(stage("running"), sources=len(sources), watermarks=marked)
    plan = replace(
        plan,
        mixed=mixed,
        sources=tuple(replace(s, delay_us=d) for s, d in zip(plan.sources, delays, strict=True)),
        grids=grids,
    )
    marks, carried = [] if marked else None, []
    expected = defined(sources, [(g.period, g.offset) for g in grids], marks, delays)
    events, _ = admitted(host, plan, sources, dice.choice([1, 3, 50]), dice.choice([1, 5, 4096]), dice, carried)
    assert events == expected
    assert carried == (marks or [])


@pytest.mark.parametrize("delay", [0, 7, 300])
def test_watermarks_of_rows_are_the_minimum_at_each(host, delay):
    # whole blocks in order, falls and late rows between them, a second source that holds the first back for a while,
    # a third without time
    times = [*range(200), 150, *range(200, 330), 329, 5, *range(330, 500)]
    sources = [list(enumerate(times)), [(1000 + n, 100 + n // 2) for n in range(400)], [(n, 0) for n in range(5)]]
    timed, delays = [True, True, False], [delay, 3, 0]
    plan = pipeline(stage("running"), sources=3, watermarks=True, grid_us=111)
    specs = [
        replace(s, delay_us=d, time=s.time if t else None) for s, d, t in zip(plan.sources, delays, timed, strict=True)
    ]
    marks, carried = [], []
    expected = defined(sources, [(111, 0)], marks, delays, timed)
    events, tickets = admitted(host, replace(plan, sources=tuple(specs)), sources, 1000, marks=carried)
    assert events == expected and carried == marks and marks == sorted(marks)
    assert max(tickets) > 800, "no advance of the watermark costs a ticket"


def test_an_advance_that_no_row_tells_of_is_a_close(host):
    # s0: a@7 b@25   s1, three behind: c@7, then it ends: the minimum goes from 4 to 7 before b
    plan = pipeline(stage("running"), sources=2, watermarks=True)
    plan = replace(plan, sources=(plan.sources[0], replace(plan.sources[1], delay_us=3)))
    with Admission(plan, host) as admission:
        admission.feed(0, rows_of([(1, 7), (2, 25)]))
        admission.feed(1, rows_of([(4, 7)]))
        admission.finish(1)
        assert admission.take() == [(ROW, 0, 1, 0), (ROW, 1, 4, 1), (CLOSE, 2, 7), (ROW, 0, 2, 2)]
        assert admission.marks == [abi.BEFORE_ALL, 4, 25]


@pytest.mark.parametrize(
    ("type_", "storage", "scale"),
    [
        (pa.int32(), abi.Storage.I32, 86_400_000_000),
        (pa.int16(), abi.Storage.I16, 1),
        (pa.int64(), abi.Storage.I64, 1000),
    ],
)
def test_event_times_are_scaled(host, type_, storage, scale):
    plan = pipeline(stage("running"), watermarks=True)
    columns = (ColumnSpec("k", abi.Storage.I64, False), ColumnSpec("t", storage, False))
    plan = replace(plan, sources=(SourceSpec("s", columns, EventTime(1, scale)),))
    with Admission(plan, host) as admission:
        admission.feed(0, pa.RecordBatch.from_arrays([pa.array([7, 8, 9]), pa.array([3, 5, 5], type_)], ["k", "t"]))
        admission.finish(0)
        events = admission.take()
    assert admission.marks == [3 * scale, 5 * scale, 5 * scale]
    assert [e[2] for e in events if e[0] == ROW] == [7, 8, 9]  # an equal time is not late


def test_times_at_the_ends_of_the_range_are_kept_inside(host):
    lowest, highest = -(2**63), 2**63 - 1
    with Admission(pipeline(stage("running"), watermarks=True, delay_us=10), host) as admission:
        admission.feed(0, rows_of([(1, lowest), (2, 0), (3, highest), (4, highest)]))
        admission.finish(0)
        events = admission.take()
    assert [e[0] for e in events] == [ROW, ROW, ROW, ROW, CLOSE, END]
    assert admission.marks == [lowest + 1, -10, highest - 11, highest - 11]
