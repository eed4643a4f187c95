"""Rows that wait for the watermark, for operators that take them by (time, position) from an input with a delay."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closing, function, row_of
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.entry_moves import Held, Mover
from cq.codegen.state.hash_tables import EntryField, lay_out, load_fields, store_nulls, store_words, string_words
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.types import Physical
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import waiting
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word

# the row's serial, which orders it among rows that waited in other lanes
SERIAL_WORD = Word(waiting.RECORD_SERIAL, "WAITING_SERIAL")


def layout_of(input: LogicalNode) -> tuple[tuple[EntryField, ...], TableShape]:
    """A record of a row of `input`: its fields and its shape."""
    columns = [(f.type, f.nullable) for f in input.schema.fields]
    fields, end = lay_out(columns, waiting.RECORD_VALUES, "WAITING_VALUE")
    return fields, TableShape(end, 0, string_words(fields))


def waiting_ports(node: LogicalNode, waiting: bool) -> tuple[int, ...]:
    """The ports at which rows wait for the watermark; none if rows never come before it."""
    return tuple(port for port, time in enumerate(node.waits_on) if waiting and time is not None)


def name_of(node: LogicalNode, port: int) -> str:
    """The name of the slot of the rows that wait at a port."""
    several = len(waiting_ports(node, True)) > 1
    return f"waiting{port}" if several else "waiting"


def slot_of(stage: StageDraft, node: LogicalNode, port: int, name: str = "") -> Slot:
    """The state word of the rows that wait at a port. name: for rows that wait for something other than their time."""
    name, (_, shape) = name or name_of(node, port), layout_of(node.inputs[port])
    return stage.slot(node, name, lambda offset: Slot(name, offset, "waiting", node.identity, shapes=(shape,)))


def due_word(slot: Slot) -> DueWord:
    """When the first of the waiting rows is due."""
    return DueWord(slot, waiting.BUFFER_NEXT)


Take = Callable[[Flow, Row], None]
"""Writes what an operator does with a row whose time has come."""


def when_due(flow: Flow, node: LogicalNode, port: int, row: Row, take: Take) -> None:
    """Take the row now if the watermark has reached its time, else keep it until then."""
    watermark = expr("ld_i64(state, W)", W=flow.stage.watermark_word())
    _when(flow, node, port, row, watermark, take)


def when_over(flow: Flow, node: LogicalNode, port: int, row: Row, take: Take) -> None:
    """Take the row now if the instant for which it would wait is over, else keep it until then."""
    _when(flow, node, port, row, over(flow), take)


def over(flow: Flow) -> ast.expr:
    """The last instant that is over: the watermark, or just before the instant being served."""
    watermark = expr("ld_i64(state, W)", W=flow.stage.watermark_word())
    return expr("min(W, I - 1)", W=watermark, I=flow.position.instant)


def over_next(flow: Flow) -> ast.expr:
    """The last instant that is over when the next row of the batch, if any, is taken."""
    if not flow.has_batch:
        return over(flow)
    marks = flow.writer.word("batch", abi.BATCH_WATERMARKS, "marks")
    last = expr("ld_i64(batch, F) + ld_i64(batch, R) - 1", F=abi.BATCH_FIRST, R=abi.BATCH_ROWS)
    following = expr("min(S + 1, L)", S=flow.serial, L=flow.writer.hoist(last, "last"))
    return expr("max(O, ld_i64(M, F))", O=over(flow), M=marks, F=following)


def _when(flow: Flow, node: LogicalNode, port: int, row: Row, reached: ast.expr, take: Take) -> None:
    scope, at = flow.scope, _due(flow, node, port, row)
    with scope.when(expr("T <= R", T=at, R=reached)):
        take(flow, row)
    with scope.otherwise():
        _keep(flow, node, port, at, row)


def keep_row(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Keep the row until the watermark, which cannot have reached it yet."""
    _keep(flow, node, port, _due(flow, node, port, row), row)


def _due(flow: Flow, node: LogicalNode, port: int, row: Row) -> ast.expr:
    """The watermark that a row waits for."""
    time = node.waits_on[port]
    assert time is not None, "a row that waits for nothing"
    at, shift_us = row.column(time.column).it, time.shift_us + time.lag_us
    return flow.scope.let(expr("T + S", T=at, S=shift_us), "t") if shift_us else at


def _keep(flow: Flow, node: LogicalNode, port: int, at: ast.expr, row: Row) -> None:
    keep_record(flow, slot_of(flow.stage, node, port), node.inputs[port], at, row)


def keep_record(
    flow: Flow, slot: Slot, input: LogicalNode, at: ast.expr, row: Row, serial: ast.expr | None = None
) -> None:  # fmt: skip
    """Keep a row of `input` in the buffer of the slot until `at`. serial: its own, if it is not of this event."""
    scope, writer = flow.scope, flow.writer
    fields, _ = layout_of(input)
    values = [row.column(i) for i in range(len(fields))]
    buffer = writer.let(expr("ld_i64(state, W)", W=slot.offset), "buffer")
    record = writer.let(expr("buffer_record(B)", B=buffer), "record")
    with scope.when(expr("R == 0", R=record)):
        flow.no_memory("waiting rows")
    for f, value in zip(fields, values, strict=True):
        if f.type.physical is Physical.BYTES:
            address, length = value.parts
            if value.null is not None:
                length = scope.let(expr("pick(N, 0, L)", N=value.null, L=length), "length")
            stored = expr("buffer_text(B, R, W, A, L) == 0", B=buffer, R=record, W=f.word, A=address, L=length)
            with scope.when(stored):
                flow.no_memory("waiting rows")
        else:
            store_words(scope, record, f, value)
    store_nulls(scope, fields, record, values)
    writer.code("st_i64(R, W, S)", R=record, W=SERIAL_WORD, S=serial or flow.serial)
    with scope.when(expr("buffer_commit(B, T) == 0", B=buffer, T=at)):
        flow.no_memory("waiting rows")


def close_buffer(stage: StageDraft, node: LogicalNode, port: int, take: Take, name: str = "") -> None:
    """Write a function that takes the rows of a port whose time has come, in order. name: as in `slot_of`."""
    slot = slot_of(stage, node, port, name)
    fields, _ = layout_of(node.inputs[port])
    function_name = f"release_{slot.offset}"
    stage.closers.append(Closer(function_name, due_word(slot).next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, function_name, CLOSER_ARGUMENTS, node, event) as flow:
        writer, scope = flow.writer, flow.scope
        buffer = writer.word("state", slot.offset, "buffer")
        with writer.while_(expr("ld_i64(B, W) == instant", B=buffer, W=waiting.BUFFER_NEXT)), scope.block():
            for out in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=out.rows, P=out.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            record = writer.let(expr("ld_i64(B, W)", B=buffer, W=waiting.BUFFER_FIRST), "record")
            place, table = ast.Name(record, ast.Load()), ast.Name(buffer, ast.Load())
            writer.code("arrival = ld_i64(R, W)", R=record, W=SERIAL_WORD)
            take(flow, row_of(scope, load_fields(scope, fields, place, table)))
            writer.code("buffer_pop(B)", B=buffer)
        flow.leave(ast.Constant(abi.DONE))


def waiting_rows(node: LogicalNode, port: int, key: tuple[Expr, ...], name: str = "") -> Held:
    """Rows of an input that wait. name: as in `slot_of`."""

    def move(mover: Mover) -> None:
        fields, _ = layout_of(node.inputs[port])
        scope, number = mover.scope, mover.writer.fresh("n")
        count = mover.writer.let(expr("ld_i64(source, W)", W=waiting.BUFFER_COUNT), "count")
        with mover.writer.for_(number, 0, count), scope.block():
            record = scope.let(expr("buffer_nth(source, N)", N=number), "record")

            def values() -> list[Val]:
                row = row_of(scope, load_fields(scope, fields, record, expr("source")))
                return [emit(scope, row, k) for k in key]

            mover.if_mine(values, lambda: mover.needs(expr("buffer_take(target, source, R)", R=record)))

    return Held(name or name_of(node, port), move)
