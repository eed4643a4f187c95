"""Operators with several inputs read them in order within one event: first all rows of input 0, then those of input 1.

Rows travel depth first, so rows of one event can come to a union or a look-up by several ways, mixed up: a window's
result that both branches read, windows that close together. Where the order of the ways is not the order of the inputs
(`gathered`) the operator's rows are kept by input, and taken when everything before it in the plan has had its turn of
the event. Elsewhere this costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cq.codegen.flow import CONSUME, Closer, Event, Flow, StagePlan, consumes, function, holds_back, row_of
from cq.codegen.operators.buffer import gives_when_due, keep_record, layout_of
from cq.codegen.ports import Position
from cq.codegen.probe import load_field
from cq.codegen.values import Row
from cq.codegen.writer import expr
from cq.planner.logical import LogicalNode, LogicalPlan
from cq.planner.operators import Aggregate, Scan, TemporalJoin, UnionAll, Unnest
from cq.runtime import abi, buffers
from cq.runtime.job import Container, Slot

# late, port, row: of the source row that is the event; for what is due at an instant or at the end 0, 0, -1
GATHER_ARGUMENTS = ("state", "out", "constants", "instant", "serial", "place", "late", "port", "row")


def gathered(plan: LogicalPlan, waits: bool) -> tuple[LogicalNode, ...]:
    """The operators whose rows have to be gathered, in plan order."""
    ways = _Ways(plan, waits)
    for node in ways.nodes:
        if isinstance(node, UnionAll | TemporalJoin) and not ways.in_order(node):
            ways.gathered.append(node)
    return tuple(ways.gathered)


@dataclass(frozen=True, slots=True)
class _Hit:
    """Rows of one event come to an input. several: perhaps more than one, each going all its ways before the next."""

    port: int
    several: bool


class _Ways:
    """The ways of rows within one event, from where they start: a source row, a closing operator, the end."""

    def __init__(self, plan: LogicalPlan, waits: bool) -> None:
        self.nodes = plan.nodes()
        self.gathered: list[LogicalNode] = []
        self._waits = waits
        self._readers: dict[int, list[tuple[LogicalNode, int]]] = {}
        for node in self.nodes:
            for port, source in enumerate(node.inputs):
                self._readers.setdefault(id(source), []).append((node, port))

    def in_order(self, node: LogicalNode) -> bool:
        """Whether in every event the rows of the node's inputs come input by input anyway."""
        return all(
            _ascending([list(self._hits(o, not isinstance(o, Scan), node)) for o in origins])
            for origins in self._events()
        )

    def _events(self) -> Iterator[list[LogicalNode]]:
        """For each kind of event, the operators that give rows by themselves, in the order of their turns."""
        for node in self.nodes:
            if not node.inputs:
                yield [node, *self.gathered]
        yield [n for n in self.nodes if gives_when_due(n, self._waits) or n in self.gathered]
        yield [n for n in self.nodes if isinstance(n, Aggregate) or n in self.gathered]

    def _hits(self, node: LogicalNode, several: bool, target: LogicalNode) -> Iterator[_Hit]:
        """How rows that `node` gives in one event come to the inputs of `target`, one after the other."""
        for reader, port in self._readers.get(id(node), ()):
            if reader is target:
                yield _Hit(port, several)
            elif not holds_back(reader, port) and reader not in self.gathered:
                yield from self._hits(reader, several or isinstance(reader, Unnest), target)


def _ascending(turns: Sequence[Sequence[_Hit]]) -> bool:
    """Whether the inputs come in order, and what may be several rows in one turn comes to one input only."""
    last = -1
    for hits in turns:
        if len({h.port for h in hits}) > 1 and any(h.several for h in hits):
            return False
        for hit in hits:
            if hit.port < last:
                return False
            last = hit.port
    return True


def gather_name(stage: StagePlan, node: LogicalNode) -> str:
    """The function that takes what a node has gathered."""
    return f"gather_{stage.order[id(node)]}"


def _slot(stage: StagePlan, node: LogicalNode, port: int) -> Slot:
    """The state word of the rows of one input, in order of arrival; empty between events."""
    shape = layout_of(node.inputs[port])[2]
    identity = stage.identity[id(node)]
    return stage.slot(
        node, f"input{port}",
        lambda offset: Slot(f"input{offset}", offset, Container.BUFFER, identity, shapes=(shape,)),
    )  # fmt: skip


@consumes("gather")
def gather(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Keep a row for the node's turn of this event."""
    keep_record(flow, _slot(flow.stage, node, port), node.inputs[port], ast.Constant(0), row)


def close_gather(stage: StagePlan, node: LogicalNode) -> None:
    """A function that takes the rows gathered in this event, input by input; a full port stops it for a while."""
    order = stage.order[id(node)]
    waiting = expr("0")
    for port in range(len(node.inputs)):
        offset = _slot(stage, node, port).offset
        waiting = expr("A + ld_i64(ld_i64(state, W), C)", A=waiting, W=offset, C=buffers.BUFFER_COUNT)
    due = expr("pick(N != 0, ld_i64(state, W), NEVER)", N=waiting, W=abi.STATE_INSTANT, NEVER=abi.NEVER)
    stage.closers.append(Closer(gather_name(stage, node), due, order, gathers=True))
    names = {n: ast.Name(n, ast.Load()) for n in GATHER_ARGUMENTS}
    position = Position(names["place"], names["instant"], order + 1, ast.Constant(0), ast.Constant(0))
    event = Event(
        names["serial"], position, ast.Constant(abi.ERROR), names["row"], port=names["port"], late=names["late"]
    )
    with function(stage, gather_name(stage, node), GATHER_ARGUMENTS, node, event) as flow:
        for port in range(len(node.inputs)):
            _take_input(flow, node, port)
        flow.leave(ast.Constant(abi.DONE))


def _take_input(flow: Flow, node: LogicalNode, port: int) -> None:
    writer, scope = flow.writer, flow.scope
    fields, null_word, _ = layout_of(node.inputs[port])
    buffer = writer.hoist(expr("ld_i64(state, W)", W=_slot(flow.stage, node, port).offset), "buffer")
    table = ast.Name(buffer, ast.Load())
    with writer.while_(expr("ld_i64(B, W) != 0", B=buffer, W=buffers.BUFFER_COUNT)), scope.block():
        for p in flow.ports.values():  # a source row is one step: what it causes fits behind the limit
            with scope.when(expr("row < 0 and R >= ld_i64(P, W)", R=p.rows, P=p.place, W=abi.PORT_LIMIT)):
                flow.leave(ast.Constant(abi.MORE))
        record = ast.Name(writer.let(expr("ld_i64(B, W)", B=buffer, W=buffers.BUFFER_RECORDS), "record"), ast.Load())
        nulls = scope.let(expr("ld_i64(R, W)", R=record, W=null_word), "nulls") if null_word >= 0 else None
        values = [load_field(scope, f, record, table, nulls) for f in fields]
        CONSUME[node.operator](flow, node, port, row_of(scope, values))
        writer.code("buffer_pop(B)", B=buffer)


def take_gathered(flow: Flow, port: int) -> None:
    """After a source row: every operator that gathers has its turn, in plan order."""
    writer = flow.writer
    flow.flush()
    for node in flow.stage.gathered.values():
        call = expr(
            "F(state, out, constants, NEVER, serial, serial, LATE, PORT, i)",
            F=gather_name(flow.stage, node), NEVER=abi.NEVER, LATE=flow.late or 0, PORT=port,
        )  # fmt: skip
        with flow.scope.when(expr("S != DONE", S=call, DONE=abi.DONE)):
            writer.code("return -1")
    for p in flow.ports.values():
        p.reopen()
