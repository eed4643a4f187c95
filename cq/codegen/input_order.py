"""Operators with several inputs read them in order within one event: first all rows of input 0, then those of input 1.

If rows of one event would come in another order (`cq.planner.physical.turns`), the operator's rows are kept by input,
and taken when everything before it in the plan has processed the event. Elsewhere this costs nothing.
"""

from __future__ import annotations

import ast

from cq.codegen.flow import CONSUME, Event, Flow, consumes, function, row_of
from cq.codegen.ports import Position
from cq.codegen.stage_draft import Closer, StageDraft
from cq.codegen.state.hash_tables import load_fields
from cq.codegen.values import Row
from cq.codegen.waiting_rows import keep_record, layout_of
from cq.codegen.writer import expr
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import waiting
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot

# late, port, row of the event's source row; 0, 0, -1 for what is due at an instant or at the end
GATHER_ARGUMENTS = ("state", "out", "constants", "instant", "serial", "late", "port", "row")


def gather_name(stage: StageDraft, node: LogicalNode) -> str:
    """The function that takes what a node has gathered."""
    return f"gather_{stage.order[id(node)]}"


def _slot(stage: StageDraft, node: LogicalNode, port: int) -> Slot:
    """The state word of the rows of one input, in order of arrival; empty between events."""
    shape = layout_of(node.inputs[port])[1]
    return stage.slot(
        node, f"input{port}",
        lambda offset: Slot(
            f"input{port}", offset, "waiting", node.identity, shapes=(shape,), transient=True
        ),
    )  # fmt: skip


@consumes("gather", copies_text=False)
def gather(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Keep a row until the node's turn in this event."""
    keep_record(flow, _slot(flow.stage, node, port), node.inputs[port], ast.Constant(0), row)


def close_gather(stage: StageDraft, node: LogicalNode) -> None:
    """Write a function that takes the rows gathered in this event, input by input; a full port suspends it."""
    order = stage.order[id(node)]
    kept = expr("0")
    for port in range(len(node.inputs)):
        offset = _slot(stage, node, port).offset
        kept = expr("A + ld_i64(ld_i64(state, W), C)", A=kept, W=offset, C=waiting.BUFFER_COUNT)
    due = expr("pick(N != 0, ld_i64(state, W), NEVER)", N=kept, W=abi.STATE_INSTANT, NEVER=abi.NEVER)
    stage.closers.append(Closer(gather_name(stage, node), due, order, gathers=True))
    names = {n: ast.Name(n, ast.Load()) for n in GATHER_ARGUMENTS}
    position = Position(names["serial"], names["instant"], order + 1, ast.Constant(0), ast.Constant(0))
    event = Event(
        names["serial"], position, ast.Constant(abi.ERROR), names["row"], port=names["port"], late=names["late"]
    )
    with function(stage, gather_name(stage, node), GATHER_ARGUMENTS, node, event) as flow:
        for port in range(len(node.inputs)):
            _take_input(flow, node, port)
        flow.leave(ast.Constant(abi.DONE))


def _take_input(flow: Flow, node: LogicalNode, port: int) -> None:
    writer, scope = flow.writer, flow.scope
    fields, _ = layout_of(node.inputs[port])
    buffer = writer.word("state", _slot(flow.stage, node, port).offset, "buffer")
    table = ast.Name(buffer, ast.Load())
    with writer.while_(expr("ld_i64(B, W) != 0", B=buffer, W=waiting.BUFFER_COUNT)), scope.block():
        for p in flow.ports.values():  # a source row is one step: its results fit beyond the limit
            with scope.when(expr("row < 0 and R >= ld_i64(P, W)", R=p.rows, P=p.place, W=abi.PORT_LIMIT)):
                flow.leave(ast.Constant(abi.MORE))
        record = ast.Name(writer.let(expr("ld_i64(B, W)", B=buffer, W=waiting.BUFFER_FIRST), "record"), ast.Load())
        values = load_fields(scope, fields, record, table)
        CONSUME[node.operator](flow, node, port, row_of(scope, values))
        writer.code("buffer_pop(B)", B=buffer)


def take_gathered(flow: Flow, port: int) -> None:
    """After a source row, every operator that gathers takes its rows, in plan order."""
    writer = flow.writer
    flow.flush()
    last = list(flow.stage.gathered.values())[-1]
    for node in flow.stage.gathered.values():
        call = expr(
            "F(state, out, constants, NEVER, serial, LATE, PORT, i)",
            F=gather_name(flow.stage, node), NEVER=abi.NEVER, LATE=flow.late or 0, PORT=port,
        )  # fmt: skip
        if node is not last:
            with flow.scope.when(expr("S != DONE", S=call, DONE=abi.DONE)):
                writer.code("return -1")
            continue
        with flow.scope.when(expr("S == DONE", S=call, DONE=abi.DONE)):
            flow.after_call()
        with flow.scope.otherwise():
            writer.code("return -1")
