"""frames: the rows of each partition around a row, as two stacks in their records and in the partition's entry."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import (
    CLOSER_ARGUMENTS,
    FINISHER_ARGUMENTS,
    Closer,
    DueWord,
    Flow,
    StagePlan,
    closes,
    closing,
    consumes,
    due_by_data,
    finishes,
    function,
    row_of,
)
from cq.codegen.prefetch import prefetch
from cq.codegen.state.aggregate_parts import Entry
from cq.codegen.state.aggregates import Parts
from cq.codegen.state.hash_tables import (
    Births,
    Field,
    Keys,
    TableLocals,
    as_words,
    lay_out,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.state.moving import Held, frame_rows, holds
from cq.codegen.values import Row
from cq.codegen.waiting import close_buffer, due_word, keep_record, slot_of, waiting_rows, when_due
from cq.codegen.writer import expr
from cq.lang.schema import TimeAttribute
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.planner.operators import Frames, Unit
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import frames as words
from cq.runtime.containers.records import RECORDS_LINKS
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.job import Slot, TableShape
from cq.runtime.layout.words import Word, beside

INSIDE = "inside"  # the slot of rows that wait until the watermark has passed the end of their frame


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are: in the entry of a partition `keys`, the back, the FRAME words; in a record its place, its
    parts, and where rows are kept the row.

    null: the word that is -1 where the key is NULL and that comes first, 1 where it comes last, else 0.
    back: words by which those of the back are further on in the entry than in a record.
    """

    keys: Keys
    null: int
    place: int
    parts: Parts
    row: tuple[Field, ...]
    back: int
    frame: int
    shapes: tuple[TableShape, TableShape]

    def at(self, word: int) -> int:
        """A FRAME word of the entry."""
        return beside(self.frame, word, "FRAME")


def layout_of(node: Frames) -> Layout:
    keys = Keys.of([(k.type, k.nullable) for k in node.partition], name="PARTITION_KEY")
    null = Word(RECORDS_LINKS + 1, "FRAMED_NULL")
    place = Word(null + _has_null(node), "FRAMED_PLACE")
    columns = [(f.type, f.nullable) for f in node.input.schema.fields] if node.keeps_rows else []
    row, first = lay_out(columns, place + (node.frame.unit is not Unit.ROWS), "FRAMED_ROW")
    parts = Parts.of(node.aggregates, first, "FRAMED", of_none=node.frame.may_be_empty)
    back = keys.next_word - parts.first_word
    frame = keys.next_word + parts.next_word - parts.first_word
    texts = tuple(w + back for w in parts.strings)
    entry = TableShape(frame + words.FRAME_WORDS, keys.next_word - ENTRY_FIRST, (*string_words(keys.fields), *texts))
    record = TableShape(parts.next_word, 0, (*string_words(row), *parts.strings))
    return Layout(keys, null, place, parts, row, back, Word(frame, "FRAMES"), (entry, record))


def _slot(stage: StagePlan, node: Frames) -> Slot:
    shapes = layout_of(node).shapes
    return stage.slot(node, "rows", lambda offset: Slot("rows", offset, "frames", node.identity, shapes=shapes))


@holds("frames")
def held_frames(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of each partition, and those whose frame is open."""
    assert isinstance(node, Frames)
    held = (frame_rows("rows", layout_of(node).keys),)
    return held if node.behind_us is None else (*held, waiting_rows(node, 0, node.partition, INSIDE))


def _copies_text(node: LogicalNode) -> bool:
    """A text that a row of the frame has is copied to be merged with others."""
    assert isinstance(node, Frames)
    return any(layout_of(node).parts.strings)


@due_by_data("frames")
def frames_due(stage: StagePlan, node: LogicalNode) -> tuple[DueWord, ...]:
    """When the first of the open frames is over, or when the rows that are kept leave."""
    assert isinstance(node, Frames)
    if node.behind_us is not None:
        return (due_word(slot_of(stage, node, 0, INSIDE)),)
    return (DueWord(_slot(stage, node), words.FRAMES_NEXT),) if node.times else ()


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
    """With a delay: a function that takes the rows the watermark has reached; and one of those that leave at a time."""
    assert isinstance(node, Frames)
    if node.order is not None and stage.waits:
        released = ast.Name("arrival", ast.Load())
        close_buffer(stage, node, 0, partial(_take, node=node, serial=released))
    if node.behind_us is not None:
        close_buffer(stage, node, 0, partial(_leave, node=node), INSIDE)
    if not node.times:
        return
    (due,) = frames_due(stage, node)
    name = f"close_{_slot(stage, node).offset}"
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        stage.writer.code("if DUE != instant:\n    return DONE", DUE=due.next_end, DONE=abi.DONE)
        _leave_all(flow, node)


@finishes("frames")
def finish_frames(stage: StagePlan, node: LogicalNode) -> None:
    """A function that hands on the rows that are left."""
    assert isinstance(node, Frames)
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{_slot(stage, node).offset}", FINISHER_ARGUMENTS, node, event) as flow:
        _leave_all(flow, node)


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
    place = _put_place(flow, node, at, made, row)
    _put_row(flow, node, at, made, row)
    number = scope.let(expr("frame_add(F, E)", F=at.frames, E=at.entry), "number")
    if node.behind_us is not None:
        due = scope.let(expr("T + B", T=place.value, B=node.behind_us), "due")
        keep_record(flow, slot_of(stage, node, 0, INSIDE), node.input, due, row, serial)
    elif node.held:
        for time in node.times[:1]:
            leaves = expr("T + S", T=row.column(time.column).it, S=time.shift_us + time.lag_us + 1)
            code = "st_i64(F, W, min(ld_i64(F, W), L))"
            writer.code(code, F=at.frames, W=words.FRAMES_NEXT, L=scope.let(leaves, "leaves"))
    elif node.following == 0:
        _answer(flow, node, at, place if node.frame.unit is Unit.TIME else _Place(number), lambda: row)
    else:
        with scope.when(expr("N >= L + M", N=number, L=at.word(words.FRAME_LEFT), M=node.following)):
            _leave_first(flow, node, at)


def _leave(flow: Flow, row: Row, node: Frames) -> None:
    """The frame of the row is over."""
    place = _Place(_time(flow, node, row))
    _answer(flow, node, _At.of(flow, row, node, make=False), place, lambda: row)


def _leave_first(flow: Flow, node: Frames, at: _At) -> None:
    """The first row of the partition that has not left leaves."""
    scope, fields = flow.scope, at.layout.row
    record = scope.let(expr("record_at(F, N)", F=at.frames, N=at.word(words.FRAME_NOW)), "now")
    if node.frame.unit is Unit.ROWS:
        place = _Place(scope.let(at.word(words.FRAME_LEFT), "number"))
    else:
        null = _word(record, at.layout.null) if _has_null(node) else None
        place = _Place(scope.let(_word(record, at.layout.place), "place"), scope.let(null, "null") if null else None)
    _answer(flow, node, at, place, lambda: row_of(scope, load_fields(scope, fields, record, at.frames)))


def _leave_all(flow: Flow, node: Frames) -> None:
    """Every row that has not left leaves, partitions by birth; it goes on where a full port stopped it."""
    writer, scope = flow.writer, flow.scope
    layout = layout_of(node)
    frames, local = _state(flow, node)
    births = Births.of(writer, local.table)
    next_one = expr("ld_i64(F, W)", F=frames, W=words.FRAMES_AT)
    with writer.while_(expr("AT < N", AT=next_one, N=births.count)), scope.block():
        at = _At(layout, frames, local.address, scope.let(births.entry(next_one), "entry"))
        with scope.when(expr("L == A", L=at.word(words.FRAME_LEFT), A=at.word(words.FRAME_ADDED))):
            writer.code("st_i64(F, W, AT + 1)", F=frames, W=words.FRAMES_AT, AT=next_one)
        with scope.otherwise():
            for port in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            writer.code("arrival = ld_i64(E, FIRST)", E=at.entry, FIRST=ENTRY_FIRST)
            _leave_first(flow, node, at)
    with scope.when(expr("frames_clear(F) == 0", F=frames)):
        flow.no_memory("rows of frames")
    flow.leave(ast.Constant(abi.DONE))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a row is in its partition: its number, its time or its key. null: as in Layout, where there is some."""

    value: ast.expr
    null: ast.expr | None = None


def _has_null(node: Frames) -> bool:
    return node.key is not None and node.key.expr.nullable


def _word(record: ast.expr, word: int) -> ast.expr:
    return expr("ld_i64(R, W)", R=record, W=word)


def _put_place(flow: Flow, node: Frames, at: _At, record: ast.expr, row: Row) -> _Place:
    """Write a row's place into its record, unless that is its number."""
    scope, code, key = flow.scope, flow.writer.code, node.key
    if node.frame.unit is Unit.ROWS:
        return _Place(ast.Constant(0))
    if key is None:
        place = _Place(_time(flow, node, row))
    else:
        value = emit(scope, row, key.expr)
        (word,) = as_words(scope, value)
        word = scope.let(expr("W ^ -1", W=word), "place") if key.descending else word
        null = None
        if value.null is not None:
            word = scope.let(expr("pick(N, 0, W)", N=value.null, W=word), "place")
            null = scope.let(expr("pick(N, R, 0)", N=value.null, R=-1 if key.nulls_first else 1), "null")
            code("st_i64(R, W, N)", R=record, W=at.layout.null, N=null)
        place = _Place(word, null)
    code("st_i64(R, W, P)", R=record, W=at.layout.place, P=place.value)
    return place


def _put_row(flow: Flow, node: Frames, at: _At, record: ast.expr, row: Row) -> None:
    """Write the row into its record, where rows are kept."""
    values = [row.column(i) for i in range(len(at.layout.row))]
    for f, value in zip(at.layout.row, values, strict=True):
        store_field(flow.scope, f, record, at.frames, value)
    store_nulls(flow.scope, at.layout.row, record, values)


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
        scope, layout = flow.scope, layout_of(node)
        frames, local = _state(flow, node)
        prefetch(flow, node.input, layout.keys, local, node.partition)
        values = [emit(scope, row, k) for k in node.partition]

        def fresh(e: ast.expr) -> None:
            layout.parts.start(scope, _back(layout, e, local.address))

        arrival = arrival_of(flow, node) if make and node.keeps_rows else flow.serial
        entry = layout.keys.probe(local, values, arrival, fresh) if make else layout.keys.find(local, values)
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


def _state(flow: Flow, node: Frames) -> tuple[ast.expr, TableLocals]:
    """The rows of frames, and the table of their partitions in locals of the function."""
    slot = _slot(flow.stage, node)
    frames = ast.Name(flow.writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "frames"), ast.Load())
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=words.FRAMES_TABLE)
        local = TableLocals.fixed(flow.scope, layout_of(node).shapes[0].entry_words, table)
        flow.tables[slot.offset] = local
        flow.stale.append(local.reload)
    return frames, local


def _back(layout: Layout, entry: ast.expr, table: ast.expr) -> Entry:
    return Entry(expr("E + B * 8", E=entry, B=layout.back), table)


def _answer(flow: Flow, node: Frames, at: _At, place: _Place, row: Callable[[], Row]) -> None:
    """Move the frame to a row, read the results, hand the row on. row: read when nothing changes texts any more."""
    scope, writer, parts, frame = flow.scope, flow.writer, at.layout.parts, node.frame
    behind = at.word(words.FRAME_NEXT)
    within = expr("N != 0", N=behind)
    if frame.end is not None:
        end = _far(flow, node, place, frame.end)
        within = expr("N and not L", N=within, L=_less(at, node, end, words.FRAME_NEXT))
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
    values = parts.values(scope, source)
    found = row()
    if node.keeps_rows:
        values = [*(found.column(i) for i in range(len(node.input.schema))), *values]
        flow.deliver(node, row_of(scope, values))
        writer.code("frame_leave(F, E)", F=at.frames, E=at.entry)
        gone = expr("min(D, L)", D=at.word(words.FRAME_DROPPED), L=at.word(words.FRAME_LEFT))
        writer.code("frame_forget(F, E, N)", F=at.frames, E=at.entry, N=gone)
        return
    writer.code("frame_forget(F, E, N)", F=at.frames, E=at.entry, N=at.word(words.FRAME_DROPPED))
    flow.deliver(node, found.with_added(len(node.input.schema), values))


def _less(at: _At, node: Frames, bound: _Place, which: int, after: bool = True) -> ast.expr:
    """Whether a bound is before the row at FRAME_START or FRAME_NEXT; not `after`: whether that is before the bound."""
    if node.frame.unit is Unit.ROWS:
        mine = _Place(at.word(words.FRAME_DROPPED if which == words.FRAME_START else words.FRAME_TAKEN))
    else:
        record = expr("record_at(F, N)", F=at.frames, N=at.word(which))
        null = _word(record, at.layout.null) if bound.null is not None else None
        mine = _Place(_word(record, at.layout.place), null)
    a, b = (bound, mine) if after else (mine, bound)
    less = expr("A < B", A=a.value, B=b.value)
    if a.null is None or b.null is None:
        return less
    return expr("M < N or M == N and L", M=a.null, N=b.null, L=less)


def _far(flow: Flow, node: Frames, place: _Place, offset: int) -> _Place:
    """A bound of the frame; beyond the ends of all time it is there. Of NULL the frame is all NULLs."""
    if offset == 0:
        return place
    at: ast.expr = expr("wadd(P, O)", P=place.value, O=offset)
    if node.frame.unit is not Unit.ROWS:
        beyond, edge = ("P < E", INT64_MIN - offset) if offset < 0 else ("P > E", INT64_MAX - offset)
        known = expr(beyond, P=place.value, E=edge)
        at = expr("pick(B, L, AT)", B=known, L=INT64_MIN if offset < 0 else INT64_MAX, AT=at)
    if place.null is not None:
        at = expr("pick(N != 0, P, AT)", N=place.null, P=place.value, AT=at)
    return _Place(flow.scope.let(at, "bound"), place.null)


def _drop(flow: Flow, node: Frames, at: _At, start: _Place) -> None:
    """Rows before the start leave the frame. Where the front has none, the back becomes the front first."""
    scope, writer, parts = flow.scope, flow.writer, at.layout.parts
    dropped, taken = at.word(words.FRAME_DROPPED), at.word(words.FRAME_TAKEN)
    less = _less(at, node, start, words.FRAME_START, after=False)
    before = expr("D < T and L", D=dropped, T=taken, L=less)
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
        both = at.record(flow, ast.Constant(words.RESULT_RECORD))
        parts.clear(scope, both)
        parts.merge(scope, both, at.record(flow, at.word(words.FRAME_START), keeps=True))
        parts.merge(scope, both, at.back)
        for name, value in zip((found.address, found.table), (both.address, both.table), strict=True):
            assert isinstance(name, ast.Name)
            writer.set(name.id, value)
    return found
