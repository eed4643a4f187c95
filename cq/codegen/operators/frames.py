"""frames: the rows of each partition around a row, as two stacks in their records and in the partition's entry, or
recomputed row by row (cq/codegen/frame_walks.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import (
    CLOSER_ARGUMENTS,
    FINISHER_ARGUMENTS,
    Flow,
    closes,
    closing,
    consumes,
    due_by_data,
    finishes,
    function,
    row_of,
)
from cq.codegen.frame_state import (
    Framed,
    PartitionPlace,
    bound_of,
    framed_state,
    has_null,
    is_dropped,
    is_taken,
    layout_of,
    rows_slot,
    time_of,
    word_of,
)
from cq.codegen.frame_walks import held_sets, walked
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.entry_moves import Held, frame_rows, holds
from cq.codegen.state.hash_tables import Births, as_words, load_fields, store_field, store_nulls
from cq.codegen.values import Row
from cq.codegen.waiting_rows import close_buffer, due_word, keep_record, slot_of, waiting_rows, when_due
from cq.codegen.writer import expr
from cq.planner.operators import Frames, Unit
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import frames as words
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi

INSIDE = "inside"  # the slot of rows that wait until the watermark has passed the end of their frame


@holds("frames")
def held_frames(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of each partition, and those with open frames."""
    assert isinstance(node, Frames)
    held = (frame_rows("rows", layout_of(node).keys), *held_sets(node))
    return held if node.behind_us is None else (*held, waiting_rows(node, 0, node.partition, INSIDE))


def _copies_text(node: LogicalNode) -> bool:
    """A text of a row in the frame is copied when it is merged with others."""
    assert isinstance(node, Frames)
    return any(layout_of(node).accumulators.strings)


@due_by_data("frames")
def frames_due(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """When the first of the open frames ends, or when the kept rows leave."""
    assert isinstance(node, Frames)
    if node.behind_us is not None:
        return (due_word(slot_of(stage, node, 0, INSIDE)),)
    return (DueWord(rows_slot(stage, node), words.FRAMES_NEXT),) if node.times else ()


@consumes("frames", copies_text=_copies_text)
def consume_frames(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """With a delay the row waits for the watermark; else it is processed at once."""
    assert isinstance(node, Frames)
    if node.order is None:
        _take(flow, row, node)
        return
    with flow.on_time(node):
        if flow.stage.planned.waits:
            when_due(flow, node, 0, row, partial(_take, node=node))
        else:
            _take(flow, row, node)


@closes("frames")
def close_frames(stage: StageDraft, node: LogicalNode) -> None:
    """With a delay: a function that takes the rows the watermark has reached; and one for rows that leave at a time."""
    assert isinstance(node, Frames)
    if node.order is not None and stage.planned.waits:
        released = ast.Name("arrival", ast.Load())
        close_buffer(stage, node, 0, partial(_take, node=node, serial=released))
    if node.behind_us is not None:
        close_buffer(stage, node, 0, partial(_leave, node=node), INSIDE)
    if not node.times:
        return
    (due,) = frames_due(stage, node)
    name = f"close_{rows_slot(stage, node).offset}"
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        stage.writer.code("if DUE != instant:\n    return DONE", DUE=due.next_end, DONE=abi.DONE)
        _leave_all(flow, node)


@finishes("frames")
def finish_frames(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the remaining rows."""
    assert isinstance(node, Frames)
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{rows_slot(stage, node).offset}", FINISHER_ARGUMENTS, node, event) as flow:
        _leave_all(flow, node)


def _take(flow: Flow, row: Row, node: Frames, serial: ast.expr | None = None) -> None:
    """Append the row to its partition; it leaves, or waits until its frame ends. serial: if not the event's."""
    scope, writer, stage = flow.scope, flow.writer, flow.stage
    at = Framed.of(flow, row, node, make=True)
    made = ast.Name(writer.let(expr("record_new(F)", F=at.frames), "record"), ast.Load())
    with scope.when(expr("R == 0", R=made)):
        flow.no_memory("rows of frames")
    record, accumulators = Entry(made, at.frames), at.layout.accumulators
    if at.layout.kept is None:
        accumulators.start(scope, record)
        accumulators.add(scope, record, row, at.word(words.FRAME_ADDED))
    else:
        at.layout.kept.write(scope, record, row)
    place = _put_place(flow, node, at, made, row)
    _put_row(flow, at, made, row)
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
        _answer(flow, node, at, place if node.frame.unit is Unit.TIME else PartitionPlace(number), lambda: row)
    else:
        with scope.when(expr("N >= L + M", N=number, L=at.word(words.FRAME_LEFT), M=node.following)):
            _leave_first(flow, node, at)


def _leave(flow: Flow, row: Row, node: Frames) -> None:
    """Emit the row: its frame is complete."""
    place = PartitionPlace(time_of(flow, node, row))
    _answer(flow, node, Framed.of(flow, row, node, make=False), place, lambda: row)


def _leave_first(flow: Flow, node: Frames, at: Framed) -> None:
    """Emit the first row of the partition that has not left."""
    scope, fields = flow.scope, at.layout.row
    record = scope.let(expr("record_at(F, N)", F=at.frames, N=at.word(words.FRAME_NOW)), "now")
    if node.frame.unit is Unit.ROWS:
        place = PartitionPlace(scope.let(at.word(words.FRAME_LEFT), "number"))
    else:
        null = word_of(record, at.layout.null) if has_null(node) else None
        place = PartitionPlace(
            scope.let(word_of(record, at.layout.place), "place"), scope.let(null, "null") if null else None
        )
    _answer(flow, node, at, place, lambda: row_of(scope, load_fields(scope, fields, record, at.frames)))


def _leave_all(flow: Flow, node: Frames) -> None:
    """Emit every row that has not left, partitions by birth; resumes where a full port stopped it."""
    writer, scope = flow.writer, flow.scope
    layout = layout_of(node)
    frames, local = framed_state(flow, node)
    births = Births.of(writer, local.table)
    next_one = expr("ld_i64(F, W)", F=frames, W=words.FRAMES_AT)
    with writer.while_(expr("AT < N", AT=next_one, N=births.count)), scope.block():
        at = Framed(layout, frames, local.address, scope.let(births.entry(next_one), "entry"))
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


def _put_place(flow: Flow, node: Frames, at: Framed, record: ast.expr, row: Row) -> PartitionPlace:
    """Write a row's place into its record, unless that is its number."""
    scope, code, key = flow.scope, flow.writer.code, node.key
    if node.peer is not None:
        code("st_i64(R, W, P)", R=record, W=at.layout.peer, P=emit(scope, row, node.peer).it)
    if node.frame.unit is Unit.ROWS:
        return PartitionPlace(ast.Constant(0))
    if key is None:
        place = PartitionPlace(time_of(flow, node, row))
    else:
        value = emit(scope, row, key.expr)
        (word,) = as_words(scope, value)
        word = scope.let(expr("W ^ -1", W=word), "place") if key.descending else word
        null = None
        if value.null is not None:
            word = scope.let(expr("pick(N, 0, W)", N=value.null, W=word), "place")
            null = scope.let(expr("pick(N, R, 0)", N=value.null, R=-1 if key.nulls_first else 1), "null")
            code("st_i64(R, W, N)", R=record, W=at.layout.null, N=null)
        place = PartitionPlace(word, null)
    code("st_i64(R, W, P)", R=record, W=at.layout.place, P=place.value)
    return place


def _put_row(flow: Flow, at: Framed, record: ast.expr, row: Row) -> None:
    """Write the row into its record, where rows are kept."""
    values = [row.column(i) for i in range(len(at.layout.row))]
    for f, value in zip(at.layout.row, values, strict=True):
        store_field(flow.scope, f, record, at.frames, value)
    store_nulls(flow.scope, at.layout.row, record, values)


def _answer(flow: Flow, node: Frames, at: Framed, place: PartitionPlace, row: Callable[[], Row]) -> None:
    """Move the frame to a row, read the results, deliver the row. row: read when texts change no more."""
    source = _stacked(flow, node, at, place) if at.layout.kept is None else walked(flow, node, at, place)
    values = at.layout.accumulators.values(flow.scope, source)
    found = row()
    if node.keeps_rows:
        values = [*(found.column(i) for i in range(len(node.input.schema))), *values]
        flow.deliver(node, row_of(flow.scope, values))
        _forget(flow, at, counts_left=True)
        return
    _forget(flow, at, counts_left=node.walks)
    flow.deliver(node, found.with_added(len(node.input.schema), values))


def _forget(flow: Flow, at: Framed, counts_left: bool) -> None:
    """Free rows that no frame needs. counts_left: only those that have left; one more has now."""
    code, gone = flow.writer.code, at.word(words.FRAME_DROPPED)
    if counts_left:
        code("frame_leave(F, E)", F=at.frames, E=at.entry)
        gone = expr("min(D, L)", D=gone, L=at.word(words.FRAME_LEFT))
    code("frame_forget(F, E, N)", F=at.frames, E=at.entry, N=gone)


def _stacked(flow: Flow, node: Frames, at: Framed, place: PartitionPlace) -> Entry:
    """The frame of a row, computed with two stacks."""
    scope, frame = flow.scope, node.frame
    with flow.writer.while_(is_taken(flow, node, at, place)), scope.block():
        at.layout.accumulators.merge(scope, at.back, at.record(flow, at.word(words.FRAME_NEXT)))
        flow.writer.code("frame_take(F, E)", F=at.frames, E=at.entry)
        if frame.start is None:
            flow.writer.code("frame_drop(F, E)", F=at.frames, E=at.entry)
    if frame.start is None:
        return at.back
    _drop(flow, node, at, bound_of(flow, node, place, frame.start))
    return _together(flow, at)


def _drop(flow: Flow, node: Frames, at: Framed, start: PartitionPlace) -> None:
    """Remove rows before the start from the frame. If the front is empty, the back becomes the front first."""
    scope, writer, accumulators = flow.scope, flow.writer, at.layout.accumulators
    dropped, taken = at.word(words.FRAME_DROPPED), at.word(words.FRAME_TAKEN)
    with writer.while_(is_dropped(node, at, start)), scope.block():
        with scope.when(expr("D == M", D=dropped, M=at.word(words.FRAME_MIDDLE))):
            last = ast.Name(writer.let(expr("frame_end(F, E)", F=at.frames, E=at.entry), "last"), ast.Load())
            with writer.while_(expr("L != S", L=last, S=at.word(words.FRAME_START))), scope.block():
                later = at.record(flow, last, keeps=True)
                writer.set(last.id, expr("record_link(R, SIDE)", R=later.address, SIDE=words.BEFORE))
                accumulators.merge(scope, at.record(flow, last), later)
            accumulators.clear(scope, at.back)
            writer.code("st_i64(E, W, T)", E=at.entry, W=at.layout.at(words.FRAME_MIDDLE), T=taken)
        writer.code("frame_drop(F, E)", F=at.frames, E=at.entry)


def _together(flow: Flow, at: Framed) -> Entry:
    """The back, merged with the front if there is one, in the spare record."""
    scope, writer, accumulators = flow.scope, flow.writer, at.layout.accumulators
    found = Entry(
        ast.Name(writer.let(at.back.address, "result"), ast.Load()), ast.Name(writer.let(at.table, "owner"), ast.Load())
    )
    with scope.when(expr("D != M", D=at.word(words.FRAME_DROPPED), M=at.word(words.FRAME_MIDDLE))):
        both = at.record(flow, ast.Constant(words.RESULT_RECORD))
        accumulators.clear(scope, both)
        accumulators.merge(scope, both, at.record(flow, at.word(words.FRAME_START), keeps=True))
        accumulators.merge(scope, both, at.back)
        for name, value in zip((found.address, found.table), (both.address, both.table), strict=True):
            assert isinstance(name, ast.Name)
            writer.set(name.id, value)
    return found
