"""Rows that wait for the watermark, for operators that take them by (time, position) from an input with a delay."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Closer, DueWord, Flow, StagePlan, closing, function, row_of
from cq.codegen.state.hash_tables import Field, lay_out, load_fields, store_nulls, store_words, string_words
from cq.codegen.state.moving import Held, Mover
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.schema import TimeAttribute
from cq.lang.types import Physical
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import waiting
from cq.runtime.layout import abi
from cq.runtime.layout.job import Slot, TableShape
from cq.runtime.layout.words import Word

# the row's serial: what orders it against rows that waited in other lanes
SERIAL_WORD = Word(waiting.RECORD_SERIAL, "WAITING_SERIAL")


def layout_of(input: LogicalNode) -> tuple[tuple[Field, ...], TableShape]:
    """A record of a row of `input`: its fields and its shape."""
    columns = [(f.type, f.nullable) for f in input.schema.fields]
    fields, end = lay_out(columns, waiting.RECORD_VALUES, "WAITING_VALUE")
    return fields, TableShape(end, 0, string_words(fields))


def waiting_input(node: LogicalNode, waiting: bool) -> LogicalNode | None:
    """The input whose rows wait in the operator until the watermark is there; None when it keeps none back."""
    timed = [i for i, time in zip(node.inputs, node.waits_on, strict=True) if time is not None]
    assert len(timed) <= 1, "rows of two inputs wait in one operator"
    return timed[0] if waiting and timed else None


def slot_of(stage: StagePlan, node: LogicalNode, input: LogicalNode, name: str = "waiting") -> Slot:
    """The state word of the node's waiting rows. name: of those that wait for something else than their time."""
    _, shape = layout_of(input)
    return stage.slot(node, name, lambda offset: Slot(name, offset, "waiting", node.identity, shapes=(shape,)))


def due_word(slot: Slot) -> DueWord:
    """When the first of the waiting rows is due."""
    return DueWord(slot, waiting.BUFFER_NEXT)


Take = Callable[[Flow, Row], None]
"""Writes what an operator does with a row whose time has come."""


def when_due(flow: Flow, node: LogicalNode, input: LogicalNode, time: TimeAttribute, row: Row, take: Take) -> None:
    """Take the row now when the watermark is there already, else keep it until then."""
    scope = flow.scope
    stage = flow.stage
    at = row.column(time.column).it
    shift_us = time.shift_us + time.lag_us
    if shift_us:
        at = scope.let(expr("T + S", T=at, S=shift_us), "t")
    with scope.when(expr("T <= ld_i64(state, W)", T=at, W=stage.watermark_word())):
        take(flow, row)
    with scope.otherwise():
        keep_record(flow, slot_of(flow.stage, node, input), input, at, row)


def keep_record(
    flow: Flow, slot: Slot, input: LogicalNode, at: ast.expr, row: Row, serial: ast.expr | None = None
) -> None:  # fmt: skip
    """A row of `input` waits in the buffer of the slot until `at`. serial: its own, where it is not of this event."""
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
    writer.code(
        "st_i64(R, W, S)\nbuffer_commit(B, T)", R=record, W=SERIAL_WORD, S=serial or flow.serial, B=buffer, T=at
    )


def close_buffer(
    stage: StagePlan, node: LogicalNode, input: LogicalNode, take: Take, name: str = "waiting"
) -> None:  # fmt: skip
    """Write a function that takes the rows whose time has come, in order. name: as in `slot_of`."""
    slot = slot_of(stage, node, input, name)
    fields, _ = layout_of(input)
    function_name = f"release_{slot.offset}"
    stage.closers.append(Closer(function_name, due_word(slot).next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, function_name, CLOSER_ARGUMENTS, node, event) as flow:
        writer, scope = flow.writer, flow.scope
        buffer = writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "buffer")
        with writer.while_(expr("ld_i64(B, W) == instant", B=buffer, W=waiting.BUFFER_NEXT)), scope.block():
            for port in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            record = writer.let(expr("ld_i64(B, W)", B=buffer, W=waiting.BUFFER_RECORDS), "record")
            place, table = ast.Name(record, ast.Load()), ast.Name(buffer, ast.Load())
            writer.code("arrival = ld_i64(R, W)", R=record, W=SERIAL_WORD)
            take(flow, row_of(scope, load_fields(scope, fields, place, table)))
            writer.code("buffer_pop(B)", B=buffer)
        flow.leave(ast.Constant(abi.DONE))


def waiting_rows(input: LogicalNode, key: tuple[Expr, ...], name: str = "waiting") -> Held:
    """Rows of an input that wait. name: as in `slot_of`."""

    def move(mover: Mover) -> None:
        fields, shape = layout_of(input)
        scope, number = mover.scope, mover.writer.fresh("n")
        count = mover.writer.let(expr("ld_i64(source, W)", W=waiting.BUFFER_COUNT), "count")
        records = mover.writer.let(expr("ld_i64(source, W)", W=waiting.BUFFER_RECORDS), "records")
        with mover.writer.for_(number, 0, count), scope.block():
            record = scope.let(expr("R + N * SIZE", R=records, N=number, SIZE=shape.entry_words * 8), "record")

            def values() -> list[Val]:
                row = row_of(scope, load_fields(scope, fields, record, expr("source")))
                return [emit(scope, row, k) for k in key]

            mover.if_mine(values, lambda: mover.needs(expr("buffer_take(target, source, R)", R=record)))

    return Held(name, move)
