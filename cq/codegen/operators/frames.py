"""frames: the rows of each partition around a row, as two stacks in their records and in the partition's entry."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import DueWord, Flow, StagePlan, closes, consumes, due_by_data
from cq.codegen.prefetch import prefetch
from cq.codegen.state.aggregate_parts import Entry
from cq.codegen.state.aggregates import Parts
from cq.codegen.state.hash_tables import Keys, TableLocals, string_words
from cq.codegen.state.moving import Held, frame_rows, holds
from cq.codegen.values import Row
from cq.codegen.waiting import close_buffer, due_word, keep_record, slot_of, waiting_rows, when_due
from cq.codegen.writer import expr
from cq.lang.schema import TimeAttribute
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.planner.operators import Frames
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import frames as words
from cq.runtime.containers.records import RECORDS_LINKS
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.job import Slot, TableShape
from cq.runtime.layout.words import Word, beside

INSIDE = "inside"  # the slot of rows that wait until the watermark has passed the end of their frame


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are: in the entry of a partition `keys`, the back, the FRAME words; in a record its time, its parts.

    parts: of a record.  back: words by which those of the back are further on in the entry than in a record.
    """

    keys: Keys
    time: int
    parts: Parts
    back: int
    frame: int
    shapes: tuple[TableShape, TableShape]

    def at(self, word: int) -> int:
        """A FRAME word of the entry."""
        return beside(self.frame, word, "FRAME")


def layout_of(node: Frames) -> Layout:
    keys = Keys.of([(k.type, k.nullable) for k in node.partition], ordered=False, name="PARTITION_KEY")
    time = Word(RECORDS_LINKS + 1, "FRAMED_TIME")
    parts = Parts.of(node.aggregates, time + 1, "FRAMED", of_none=node.frame.may_be_empty)
    back = keys.next_word - parts.first_word
    frame = keys.next_word + parts.next_word - parts.first_word
    texts = tuple(w + back for w in parts.strings)
    entry = TableShape(frame + words.FRAME_WORDS, keys.next_word - ENTRY_FIRST, (*string_words(keys.fields), *texts))
    record = TableShape(parts.next_word, 0, parts.strings)
    return Layout(keys, time, parts, back, Word(frame, "FRAMES"), (entry, record))


def _slot(stage: StagePlan, node: Frames) -> Slot:
    shapes = layout_of(node).shapes
    return stage.slot(node, "rows", lambda offset: Slot("rows", offset, "frames", node.identity, shapes=shapes))


@holds("frames")
def held_frames(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of each partition, and those whose frame is open."""
    assert isinstance(node, Frames)
    held = (frame_rows("rows", layout_of(node).keys),)
    return (*held, waiting_rows(node, 0, node.partition, INSIDE)) if node.closes else held


def _copies_text(node: LogicalNode) -> bool:
    """A text that a row of the frame has is copied to be merged with others."""
    assert isinstance(node, Frames)
    return any(layout_of(node).parts.strings)


@due_by_data("frames")
def frames_due(stage: StagePlan, node: LogicalNode) -> tuple[DueWord, ...]:
    """When the first of the open frames is over."""
    assert isinstance(node, Frames)
    return (due_word(slot_of(stage, node, 0, INSIDE)),) if node.closes else ()


@consumes("frames", copies_text=_copies_text)
def consume_frames(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """With a delay the row waits for the watermark; else it is taken at once."""
    assert isinstance(node, Frames)
    if node.order is None:
        _take(flow, row, node)
        return
    with flow.on_time(node):
        if flow.stage.waits:
            when_due(flow, node, 0, row, partial(_take, node=node))
        else:
            _take(flow, row, node)


@closes("frames")
def close_frames(stage: StagePlan, node: LogicalNode) -> None:
    """With a delay: a function that takes the rows the watermark has reached; and one of those whose frame is over."""
    assert isinstance(node, Frames)
    if node.order is not None and stage.waits:
        released = ast.Name("arrival", ast.Load())
        close_buffer(stage, node, 0, partial(_take, node=node, serial=released))
    if node.closes:
        close_buffer(stage, node, 0, partial(_leave, node=node), INSIDE)


def _take(flow: Flow, row: Row, node: Frames, serial: ast.expr | None = None) -> None:
    """The row is the last of its partition; it leaves, or waits until its frame is over. serial: if not the event's."""
    scope, writer, stage = flow.scope, flow.writer, flow.stage
    at = _At.of(flow, row, node, make=True)
    made = ast.Name(writer.let(expr("record_new(F)", F=at.frames), "record"), ast.Load())
    with scope.when(expr("R == 0", R=made)):
        flow.no_memory("rows of frames")
    record, parts = Entry(made, at.frames), at.layout.parts
    parts.start(scope, record)
    parts.add(scope, record, row, at.word(words.FRAME_ADDED))
    time: ast.expr = ast.Constant(0)
    if node.frame.by_time:
        time = _time(flow, node, row)
        writer.code("st_i64(R, W, T)", R=made, W=at.layout.time, T=time)
    number = scope.let(expr("frame_add(F, E)", F=at.frames, E=at.entry), "number")
    if node.behind_us is None:
        _answer(flow, row, node, at, time if node.frame.by_time else number)
        return
    due = scope.let(expr("T + B", T=time, B=node.behind_us), "due")
    keep_record(flow, slot_of(stage, node, 0, INSIDE), node.input, due, row, serial)


def _leave(flow: Flow, row: Row, node: Frames) -> None:
    """The frame of the row is over."""
    _answer(flow, row, node, _At.of(flow, row, node, make=False), _time(flow, node, row))


def _time(flow: Flow, node: Frames, row: Row) -> ast.expr:
    """The event time of a row."""
    order = node.order
    assert isinstance(order, TimeAttribute)
    at = row.column(order.column).it
    return flow.scope.let(expr("T + S", T=at, S=order.shift_us), "t") if order.shift_us else at


@dataclass(frozen=True, slots=True)
class _At:
    """The partition of a row, in the function being written."""

    layout: Layout
    frames: ast.expr
    table: ast.expr
    entry: ast.expr

    @staticmethod
    def of(flow: Flow, row: Row, node: Frames, make: bool) -> _At:
        scope, layout, slot = flow.scope, layout_of(node), _slot(flow.stage, node)
        frames = ast.Name(flow.writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "frames"), ast.Load())
        local = flow.tables.get(slot.offset)
        if local is None:
            table = expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=words.FRAMES_TABLE)
            local = flow.tables[slot.offset] = TableLocals.fixed(scope, layout.shapes[0].entry_words, table)
            flow.stale.append(local.reload)
        prefetch(flow, node.input, layout.keys, local, node.partition)
        values = [emit(scope, row, k) for k in node.partition]

        def fresh(e: ast.expr) -> None:
            layout.parts.start(scope, _back(layout, e, local.address))

        entry = layout.keys.probe(local, values, flow.serial, fresh) if make else layout.keys.find(local, values)
        return _At(layout, frames, local.address, entry)

    @property
    def back(self) -> Entry:
        """The state of the back."""
        return _back(self.layout, self.entry, self.table)

    def word(self, which: int) -> ast.expr:
        """A FRAME word."""
        return expr("ld_i64(E, W)", E=self.entry, W=self.layout.at(which))

    def record(self, flow: Flow, number: ast.expr, keeps: bool = False) -> Entry:
        """The record of this number. keeps: as in Entry."""
        return Entry(flow.scope.let(expr("record_at(F, N)", F=self.frames, N=number), "record"), self.frames, keeps)


def _back(layout: Layout, entry: ast.expr, table: ast.expr) -> Entry:
    return Entry(expr("E + B * 8", E=entry, B=layout.back), table)


def _answer(flow: Flow, row: Row, node: Frames, at: _At, place: ast.expr) -> None:
    """Move the frame to a row, read the results, hand the row on. place: its time, or the rows before it."""
    scope, writer, parts, frame = flow.scope, flow.writer, at.layout.parts, node.frame
    behind = at.word(words.FRAME_NEXT)
    end = _far(flow, node, place, frame.end)
    within = expr("N != 0 and P <= END", N=behind, P=_place(at, node, words.FRAME_NEXT), END=end)
    with writer.while_(within), scope.block():
        parts.merge(scope, at.back, at.record(flow, behind))
        writer.code("frame_take(F, E)", F=at.frames, E=at.entry)
        if frame.start is None:
            writer.code("frame_drop(F, E)", F=at.frames, E=at.entry)
    if frame.start is None:
        source = at.back
    else:
        _drop(flow, node, at, _far(flow, node, place, frame.start))
        source = _together(flow, at)
    writer.code("frame_forget(F, E, N)", F=at.frames, E=at.entry, N=at.word(words.FRAME_DROPPED))
    values = parts.values(scope, source)
    flow.deliver(node, row.with_added(len(node.input.schema), values))


def _place(at: _At, node: Frames, place: int) -> ast.expr:
    """The time of the row at FRAME_START or FRAME_NEXT, or the rows before it."""
    if not node.frame.by_time:
        return at.word(words.FRAME_DROPPED if place == words.FRAME_START else words.FRAME_TAKEN)
    record = expr("record_at(F, N)", F=at.frames, N=at.word(place))
    return expr("ld_i64(R, W)", R=record, W=at.layout.time)


def _far(flow: Flow, node: Frames, place: ast.expr, offset: int) -> ast.expr:
    """A bound of the frame; beyond the ends of all time it is there."""
    if offset == 0:
        return place
    if not node.frame.by_time:
        return flow.scope.let(expr("wadd(P, O)", P=place, O=offset), "bound")
    least, most = (INT64_MIN - offset, INT64_MAX) if offset < 0 else (INT64_MIN, INT64_MAX - offset)
    beyond, limit = ("P < L", INT64_MIN) if offset < 0 else ("P > L", INT64_MAX)
    known = expr(beyond, P=place, L=least if offset < 0 else most)
    return flow.scope.let(expr("pick(B, L, wadd(P, O))", B=known, L=limit, P=place, O=offset), "bound")


def _drop(flow: Flow, node: Frames, at: _At, start: ast.expr) -> None:
    """Rows before the start leave the frame. Where the front has none, the back becomes the front first."""
    scope, writer, parts = flow.scope, flow.writer, at.layout.parts
    dropped, taken = at.word(words.FRAME_DROPPED), at.word(words.FRAME_TAKEN)
    before = expr("D < T and P < S", D=dropped, T=taken, P=_place(at, node, words.FRAME_START), S=start)
    with writer.while_(before), scope.block():
        with scope.when(expr("D == M", D=dropped, M=at.word(words.FRAME_MIDDLE))):
            last = ast.Name(writer.let(expr("frame_end(F, E)", F=at.frames, E=at.entry), "last"), ast.Load())
            with writer.while_(expr("L != S", L=last, S=at.word(words.FRAME_START))), scope.block():
                later = at.record(flow, last, keeps=True)
                writer.set(last.id, expr("record_link(R, SIDE)", R=later.address, SIDE=words.BEFORE))
                parts.merge(scope, at.record(flow, last), later)
            parts.clear(scope, at.back)
            writer.code("st_i64(E, W, T)", E=at.entry, W=at.layout.at(words.FRAME_MIDDLE), T=taken)
        writer.code("frame_drop(F, E)", F=at.frames, E=at.entry)


def _together(flow: Flow, at: _At) -> Entry:
    """The back, and where there is a front both, in the record that is no row."""
    scope, writer, parts = flow.scope, flow.writer, at.layout.parts
    found = Entry(
        ast.Name(writer.let(at.back.address, "result"), ast.Load()), ast.Name(writer.let(at.table, "owner"), ast.Load())
    )
    with scope.when(expr("D != M", D=at.word(words.FRAME_DROPPED), M=at.word(words.FRAME_MIDDLE))):
        both = at.record(flow, ast.Constant(words.FRAME_RESULT))
        parts.clear(scope, both)
        parts.merge(scope, both, at.record(flow, at.word(words.FRAME_START), keeps=True))
        parts.merge(scope, both, at.back)
        for name, value in zip((found.address, found.table), (both.address, both.table), strict=True):
            assert isinstance(name, ast.Name)
            writer.set(name.id, value)
    return found
