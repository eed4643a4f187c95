"""Rows that wait for the watermark, for operators that take them by (time, position) from an input with a delay."""

from __future__ import annotations

import ast

from cq.codegen.flow import CLOSER_ARGUMENTS, Closer, Flow, StagePlan, closing, function, row_of
from cq.codegen.probe import Field, lay_out, load_field, null_bits, plain_word, string_words
from cq.codegen.values import Row
from cq.codegen.writer import expr
from cq.planner.logical import LogicalNode, LogicalPlan
from cq.planner.operators import Over, Scan, TemporalJoin, WindowAggregate
from cq.runtime import abi, buffers
from cq.runtime.job import Container, Slot, TableShape
from cq.schema import TimeAttribute
from cq.types import Physical

SERIAL_WORD = buffers.RECORD_VALUES  # the row's serial: what orders it against rows that waited in other lanes


def waits(plan: LogicalPlan) -> bool:
    """Whether a row can arrive before the watermark reaches its time.

    With one source and no delay the row itself moves the watermark there; with several the slowest one counts.
    """
    sources = {n.source.name: n.source for n in plan.nodes() if isinstance(n, Scan)}
    return len(sources) > 1 or any(s.delay_us > 0 for s in sources.values())


def gives_when_due(node: LogicalNode, waiting: bool) -> bool:
    """Whether the operator gives rows at instants, not only for a row of its input. waiting: `waits` of the plan."""
    released = isinstance(node, TemporalJoin) or (isinstance(node, Over) and node.order is not None)
    return isinstance(node, WindowAggregate) or (released and waiting)


def layout_of(input: LogicalNode) -> tuple[tuple[Field, ...], int, TableShape]:
    """A record of a row of `input`: its fields, its null word or -1, its shape."""
    columns = [(f.type, f.nullable) for f in input.schema.fields]
    fields, null_word, end = lay_out(columns, SERIAL_WORD + 1)
    return fields, null_word, TableShape(end, 0, string_words(fields))


def slot_of(stage: StagePlan, node: LogicalNode, input: LogicalNode) -> Slot:
    """The state word of the node's waiting rows."""
    _, _, shape = layout_of(input)
    identity = stage.identity[id(node)]
    return stage.slot(
        node, "waiting", lambda offset: Slot(f"waiting{offset}", offset, Container.BUFFER, identity, shapes=(shape,))
    )


def when_due(flow: Flow, node: LogicalNode, input: LogicalNode, time: TimeAttribute, row: Row) -> None:
    """Take the row now when the watermark is there already, else keep it until then."""
    scope = flow.scope
    stage = flow.stage
    stage.every_advance = True
    at = row.column(time.column).it
    if time.shift_us:
        at = scope.let(expr("T + S", T=at, S=time.shift_us), "t")
    with scope.when(expr("T <= ld_i64(state, W)", T=at, W=stage.watermark_word())):
        _take(flow, node, row)
    with scope.otherwise():
        keep_record(flow, slot_of(flow.stage, node, input), input, at, row)


def _take(flow: Flow, node: LogicalNode, row: Row) -> None:
    from cq.codegen.operators import over, temporal_join

    if isinstance(node, Over):
        over.take(flow, node, row)
    else:
        assert isinstance(node, TemporalJoin)
        temporal_join.look_up(flow, node, row)


def keep_record(flow: Flow, slot: Slot, input: LogicalNode, at: ast.expr, row: Row) -> None:
    """A row of `input` waits in the buffer of the slot until `at`."""
    scope, writer = flow.scope, flow.writer
    fields, null_word, _ = layout_of(input)
    values = [row.column(i) for i in range(len(fields))]
    buffer = writer.let(expr("ld_i64(state, W)", W=slot.offset), "buffer")
    record = writer.let(expr("buffer_record(B)", B=buffer), "record")
    with scope.when(expr("R == 0", R=record)):
        flow.no_memory("waiting rows")
    for f, value in zip(fields, values, strict=True):
        if f.type.physical is Physical.BYTES:
            address, length = value.parts
            if value.null is not None:
                length = scope.let(expr("pick(N, 0, L)", N=value.null, L=length))
            stored = expr("buffer_text(B, R, W, A, L) == 0", B=buffer, R=record, W=f.word, A=address, L=length)
            with scope.when(stored):
                flow.no_memory("waiting rows")
        else:
            writer.code("st_i64(R, W, V)", R=record, W=f.word, V=plain_word(value))
    if null_word >= 0:
        writer.code("st_i64(R, W, N)", R=record, W=null_word, N=null_bits(values, fields))
    writer.code("st_i64(R, W, S)\nbuffer_commit(B, T)", R=record, W=SERIAL_WORD, S=flow.serial, B=buffer, T=at)


def close_buffer(stage: StagePlan, node: LogicalNode, input: LogicalNode) -> None:
    """A function that lets go of the rows whose time has come, in order."""
    slot = slot_of(stage, node, input)
    fields, null_word, _ = layout_of(input)
    name = f"release_{slot.offset}"
    due = expr("ld_i64(ld_i64(state, W), NEXT)", W=slot.offset, NEXT=buffers.BUFFER_NEXT)
    stage.closers.append(Closer(name, due, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        writer, scope = flow.writer, flow.scope
        buffer = writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "buffer")
        with writer.while_(expr("ld_i64(B, W) == instant", B=buffer, W=buffers.BUFFER_NEXT)), scope.block():
            for port in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            record = writer.let(expr("ld_i64(B, W)", B=buffer, W=buffers.BUFFER_RECORDS), "record")
            place, table = ast.Name(record, ast.Load()), ast.Name(buffer, ast.Load())
            writer.code("arrival = ld_i64(R, W)", R=record, W=SERIAL_WORD)
            nulls = scope.let(expr("ld_i64(R, W)", R=record, W=null_word), "nulls") if null_word >= 0 else None
            values = [load_field(scope, f, place, table, nulls) for f in fields]
            _take(flow, node, row_of(scope, values))
            writer.code("buffer_pop(B)", B=buffer)
        flow.leave(ast.Constant(abi.DONE))
