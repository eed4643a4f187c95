"""A stage's module: the kernel, the row loops of its inputs, the functions that serve closing times and the end.

`write_stage` turns the part of a plan that one stage runs into a `Stage`: generated source, described state, constants,
sites. The kernel walks the segments of a batch (cq/runtime/abi.py) and keeps a cursor, so that it can stop at any step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from cq.codegen.flow import CLOSE, FINISH, StagePlan
from cq.codegen.operators import aggregate, buffer, gather, over, rowwise, temporal_join, unnest, window
from cq.codegen.ports import ORDINAL_BITS, column_specs
from cq.codegen.scan import StageInput, write_lanes, write_rows
from cq.codegen.writer import expr
from cq.expressions import Call, Cast, Expr, walk
from cq.planner.logical import AggregateCall, LogicalNode, LogicalPlan, Output
from cq.planner.operators import Lag, Over, Scan, SourceDef, TemporalJoin
from cq.runtime import abi
from cq.runtime.abi import ErrorCode
from cq.runtime.job import Grid, PortSpec, Stage, StageKind
from cq.types import Physical

# imported for what they register with @consumes, @closes and @finishes (cq/codegen/flow.py)
_OPERATORS = (aggregate, over, rowwise, temporal_join, unnest, window)


@dataclass(frozen=True, slots=True)
class WrittenStage:
    """A stage, what admission has to know for it, and the columns it reads: port -> plan column -> place."""

    stage: Stage
    grids: tuple[Grid, ...]
    every_advance: bool
    columns: dict[int, dict[int, int]]


def sources_of(plan: LogicalPlan) -> tuple[SourceDef, ...]:
    """The sources a plan reads, by their place in the file: their number is their port."""
    found = {n.source.name: n.source for n in plan.nodes() if isinstance(n, Scan)}
    return tuple(sorted(found.values(), key=lambda s: (s.position, s.name)))


@dataclass(frozen=True, slots=True)
class Shape:
    """How a stage runs. routed: for lanes, the key of each input port's rows.

    waits: whether rows can arrive before the watermark reaches their time (cq/codegen/operators/buffer.py).
    final: its ports are sinks; else its one port feeds the next stage.
    collects: the stage before, which is PARTIAL, has filled the panes of its windows; it takes no rows.
    """

    name: str
    kind: StageKind
    waits: bool
    routed: tuple[tuple[Expr, ...], ...] = ()
    final: bool = True
    collects: bool = False


EVENTS_ONLY = (PortSpec("events", ()),)  # what a PARTIAL stage sends on


def write_stage(plan: LogicalPlan, identity: dict[int, str], shape: Shape, globals_: Iterable[str]) -> WrittenStage:
    """A plan as one stage over its sources, or over the rows of the stage before (a plan over a StageInput)."""
    fills = shape.kind is StageKind.PARTIAL
    ports = EVENTS_ONLY if fills else tuple(_port(o) for o in plan.outputs)
    stage = StagePlan(plan, ports, identity, bool(shape.routed), shape.final, shape.waits, shape.collects)
    stage.uses_step_bytes = _uses_step_bytes(plan)
    stage.gathered = {id(n): n for n in gather.gathered(plan, shape.waits)}
    _write_failed(stage)
    inputs = inputs_of(plan)
    loops = [] if shape.collects else [write_rows(stage, n, n.schema, port) for port, n in enumerate(inputs)]
    if not fills:
        _write_closers(stage)
    finishers = _write_finishers(stage)
    _write_serve(stage)
    _write_kernel(stage, loops, finishers)
    if shape.routed:
        write_lanes(stage, inputs, shape.routed)
    made = Stage(
        name=shape.name,
        kind=shape.kind,
        module=stage.writer.finish(globals_),
        functions=tuple(stage.writer.signatures.items()),
        entry="kernel",
        slots=tuple(stage.slots),
        state_words=stage.state_words,
        constants=stage.constants.pack(),
        ports=ports,
        sites=tuple(stage.sites.sites),
        groups=tuple(stage.groups),
        lane_entry="lanes" if shape.routed else None,
    )
    return WrittenStage(made, tuple(dict.fromkeys(stage.grids)), stage.every_advance, stage.columns)


def _port(output: Output) -> PortSpec:
    return PortSpec(output.name, column_specs(output.node.schema), output.limit)


def inputs_of(plan: LogicalPlan) -> tuple[LogicalNode, ...]:
    """The nodes whose rows come from outside, by port: one scan a source, or the stage before."""
    nodes = plan.nodes()
    given = [n for n in nodes if isinstance(n, StageInput)]
    scans = [n for n in nodes if isinstance(n, Scan)]
    assert not (given and scans), "a stage that reads both sources and another stage"
    by_source = {n.source.name: n for n in scans}
    assert len(by_source) == len(scans), "a source scanned twice: sub-plans are shared before stages are written"
    return tuple(given) or tuple(by_source[s.name] for s in sources_of(plan))


def _write_closers(stage: StagePlan) -> None:
    for node in stage.plan.nodes():
        if id(node) in stage.gathered:
            gather.close_gather(stage, node)
        if isinstance(node, Over) and node.order and stage.waits:
            buffer.close_buffer(stage, node, node.input)
        if isinstance(node, TemporalJoin) and stage.waits:
            buffer.close_buffer(stage, node, node.left)
        if node.operator in CLOSE:
            CLOSE[node.operator](stage, node)


def _uses_step_bytes(plan: LogicalPlan) -> bool:
    """Whether some expression makes text of its own."""
    for node in plan.nodes():
        if isinstance(node, Over) and any(c.type.physical is Physical.BYTES for c in node.calls):
            return True
        for e in expressions_of(node):
            if any(isinstance(x, Call | Cast) and x.type.physical is Physical.BYTES for x in walk(e)):
                return True
    return False


def expressions_of(node: LogicalNode) -> Iterator[Expr]:
    """Every scalar expression among a node's parameters."""
    todo: list[object] = [getattr(node, f.name) for f in fields(node) if f.compare]
    while todo:
        value = todo.pop()
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            todo.extend(value)
        elif isinstance(value, AggregateCall | Lag):
            todo.extend(getattr(value, f.name) for f in fields(value))


def _write_failed(stage: StagePlan) -> None:
    """Notes what went wrong and where."""
    with stage.writer.function("failed", ("state", "code", "site", "port", "row", "serial")):
        for word, value in (
            (abi.STATE_ERROR_CODE, "code"),
            (abi.STATE_ERROR_SITE, "site"),
            (abi.STATE_ERROR_PORT, "port"),
            (abi.STATE_ERROR_ROW, "row"),
            (abi.STATE_ERROR_SERIAL, "serial"),
        ):
            stage.writer.code("st_i64(state, W, V)", W=word, V=value)
        stage.writer.code("st_i64(state, E, ld_i64(state, I))", E=abi.STATE_ERROR_INSTANT, I=abi.STATE_INSTANT)
        stage.writer.code("return 0")


def _write_finishers(stage: StagePlan) -> list[str]:
    """The functions that emit what only the end decides; the calls of them, and of what they give to gather."""
    calls = []
    for node in stage.plan.nodes():
        if id(node) in stage.gathered:
            name = gather.gather_name(stage, node)
            calls.append(f"status = {name}(state, out, constants, {abi.NEVER}, serial, place, 0, 0, -1)")
        if node.operator in FINISH:
            FINISH[node.operator](stage, node)
            calls.append(f"status = {stage.writer.functions[-1].name}(state, out, constants, serial, place)")
    return calls


def _write_serve(stage: StagePlan) -> None:
    """Serve every closing time up to the watermark, ascending, each through the closers in plan order."""
    writer = stage.writer
    closers = sorted(stage.closers, key=lambda c: c.order)
    with writer.function("serve", ("state", "out", "constants", "watermark", "serial", "place")):
        if closers:
            with writer.while_(True):
                writer.code("instant = NEVER", NEVER=abi.NEVER)
                for closer in closers:
                    writer.code("instant = min(instant, DUE)", DUE=closer.next_end)
                writer.code("if instant > watermark or instant == NEVER:\n    break", NEVER=abi.NEVER)
                writer.code("st_i64(state, W, instant)", W=abi.STATE_INSTANT)
                if stage.watermark is not None:  # what arrives at this instant waits for later ones only
                    writer.code("st_i64(state, W, instant)", W=stage.watermark.offset)
                for closer in closers:
                    more = ", 0, 0, -1" if closer.gathers else ""
                    call = f"status = F(state, out, constants, instant, serial, place{more})"
                    writer.code(call, F=closer.function)
                    writer.code("if status != DONE:\n    return status", DONE=abi.DONE)
        if stage.watermark is not None:
            writer.code("st_i64(state, W, watermark)", W=stage.watermark.offset)
        writer.code("st_i64(state, W, NEVER)", W=abi.STATE_INSTANT, NEVER=abi.NEVER)
        writer.code("return DONE", DONE=abi.DONE)


def _write_kernel(stage: StagePlan, row_loops: list[str], finishers: list[str]) -> None:
    """Walk the segments from the cursor on."""
    writer = stage.writer
    derived = any(isinstance(n, StageInput) for n in stage.plan.nodes())
    with writer.function("kernel", ("state", "batch", "out", "constants")):
        writer.code("segments = ld_i64(batch, W)", W=abi.BATCH_SEGMENTS)
        writer.code("count = ld_i64(batch, W)", W=abi.BATCH_SEGMENT_COUNT)
        writer.code("at = ld_i64(state, W)", W=abi.STATE_SEGMENT)
        writer.code("row = ld_i64(state, W) - 1", W=abi.STATE_ROW)
        with writer.while_(expr("at < count")):
            writer.code("segment = segments + at * SIZE", SIZE=abi.SEGMENT_WORDS * 8)
            writer.code("kind = ld_i64(segment, W)", W=abi.SEGMENT_KIND)
            writer.code("serial = ld_i64(segment, W)", W=abi.SEGMENT_SERIAL)
            writer.code("status = DONE", DONE=abi.DONE)
            with writer.if_(expr("kind <= LATE", LATE=abi.SEGMENT_LATE)):
                _write_rows_step(stage, row_loops)
            with writer.otherwise():
                if derived:  # between stages the row of the batch says where an event happens
                    writer.code(
                        "place = ld_i64(segment, LO)\nserial = shl(serial, BITS)", LO=abi.SEGMENT_LO, BITS=ORDINAL_BITS
                    )
                else:
                    writer.code("place = serial")
                with writer.if_(expr("kind == CLOSE", CLOSE=abi.SEGMENT_CLOSE)):
                    writer.code(
                        "status = serve(state, out, constants, ld_i64(segment, W), serial, place)",
                        W=abi.SEGMENT_WATERMARK,
                    )
                with writer.otherwise():
                    for name in finishers:
                        with writer.if_(expr("status == DONE", DONE=abi.DONE)):
                            writer.code(name)
                with writer.if_(expr("status != DONE", DONE=abi.DONE)):
                    writer.code("st_i64(state, W, at)", W=abi.STATE_SEGMENT)
                    writer.code("return status")
                _pass_segment(stage, expr("ld_i64(segment, W)", W=abi.SEGMENT_WATERMARK))
            writer.code("at = at + 1")
            writer.code("row = -1")
        writer.code("st_i64(state, W, 0)", W=abi.STATE_SEGMENT)
        writer.code("st_i64(state, W, 0)", W=abi.STATE_ROW)
        writer.code("return DONE", DONE=abi.DONE)


def _write_rows_step(stage: StagePlan, row_loops: list[str]) -> None:
    """One ROWS or LATE segment, from its cursor on; leaves the kernel when a port is full or something failed."""
    writer = stage.writer
    writer.code("lo = ld_i64(segment, W)", W=abi.SEGMENT_LO)
    writer.code("hi = ld_i64(segment, W)", W=abi.SEGMENT_HI)
    if stage.lanes:
        writer.code("base = serial - ld_i32(ld_i64(batch, W), lo)", W=abi.BATCH_SELECTION)
    else:
        writer.code("base = serial - lo")
    with writer.if_(expr("row >= 0")):
        writer.code("lo = row")
    writer.code("following = hi")
    for port, name in enumerate(row_loops):
        call = ast.Call(
            ast.Name(name, ast.Load()),
            [ast.Name(a, ast.Load()) for a in ("state", "batch", "out", "constants", "lo", "hi", "base", "kind")],
            [],
        )
        with writer.if_(expr("ld_i64(segment, W) == P", W=abi.SEGMENT_PORT, P=port)):
            writer.set("following", call)
    with writer.if_(expr("following < 0")):
        writer.code("return ERROR", ERROR=abi.ERROR)
    _pass_segment(stage, ast.Constant(0))
    with writer.if_(expr("following < hi")):
        writer.code("st_i64(state, W, at)", W=abi.STATE_SEGMENT)
        writer.code("st_i64(state, W, following + 1)", W=abi.STATE_ROW)
        writer.code("return MORE", MORE=abi.MORE)


def _pass_segment(stage: StagePlan, watermark: ast.expr) -> None:
    """The next stage sees this segment over the rows just emitted."""
    if stage.final:
        return
    with stage.writer.if_(expr("port_segment(out, 0, kind, serial, W) == 0", W=watermark)):
        stage.writer.code(
            "failed(state, CODE, 0, 0, -1, serial)\nreturn ERROR", CODE=int(ErrorCode.NO_MEMORY), ERROR=abi.ERROR
        )
