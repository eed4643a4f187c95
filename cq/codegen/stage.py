"""A stage's module: the kernel, the row loops of its inputs, the functions that serve closing times and the end.

`write_stage` turns the part of a plan that one stage runs into a `StageSpec`: generated source, described state,
constants, sites. The kernel walks the segments of a batch (cq/runtime/layout/abi.py) and keeps a cursor, so that it can
stop at any step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from cq.codegen import input_order, operators
from cq.codegen.ended_inputs import ended_mask
from cq.codegen.expressions.user import takes_step_bytes
from cq.codegen.flow import CLOSE, COPIES_TEXT, FINISH
from cq.codegen.lane_keys import write_lanes
from cq.codegen.move_functions import write_moving
from cq.codegen.operators.chains import write_chains
from cq.codegen.passing import passing_at_end, passing_rows, write_passing
from cq.codegen.ports import column_specs
from cq.codegen.scan import (
    computed_times,
    due_words,
    write_mixed_rows,
    write_rows,
    write_shared_rows,
    write_times,
)
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.array_aggregates import gathers
from cq.codegen.writer import expr
from cq.lang.expressions import walk
from cq.planner.physical.branches import Branch
from cq.planner.physical.classify import stateless_prefix
from cq.planner.physical.stages import Stage
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.user_calls import aggregate_calls, user_folds
from cq.records import dataclass, replace
from cq.runtime.containers.table_words import TABLE_PAST
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Grid, Lanes, PortSpec, StageSpec, UserCall


@dataclass(frozen=True, slots=True)
class WrittenStage:
    """A stage, what admission needs to know for it, and the columns it reads: port -> plan column -> place.

    watermarks: whether its rows must carry their watermarks.  mixed: whether a segment may have rows of both.
    """

    stage: StageSpec
    grids: tuple[Grid, ...]
    watermarks: bool
    mixed: bool
    columns: dict[int, dict[int, int]]


OPERATORS = operators.__name__  # imported because they register with @consumes, @closes and @finishes
EVENTS_ONLY = (PortSpec("events", ()),)  # the output of a stage that hands its panes over


def write_stage(
    planned: Stage,
    globals_: Iterable[str],
    contents: Mapping[str, str],
    passes_watermarks: bool,
    counting: bool,
) -> WrittenStage:
    """A stage of the physical plan.

    contents: for each operator with state, by identity, what it keeps (cq/planner/plan/identity.py).
    passes_watermarks: its rows carry theirs to the next stage.  counting: it counts the rows of its operators.
    """
    plan = planned.plan
    fills = planned.way.traits.hands_over
    ports = EVENTS_ONLY if fills else tuple(_port(o) for o in plan.outputs)
    stage = StageDraft(planned, ports, passes_watermarks, _uses_step_bytes(plan))
    _write_failed(stage)
    inputs = stage.leaves
    stage.due = tuple(due_words(stage, inputs))
    computed = computed_times(stage, inputs)
    if counting:
        stage.count_rows(stateless_prefix(plan))
    stage.passing_at_end, stage.passing_rows = passing_at_end(stage), passing_rows(stage)
    loops = {} if planned.collects else _write_row_loops(stage, inputs, planned.branches)
    if not fills:
        _write_closers(stage)
    finishers = [] if fills else _write_finishers(stage)
    _write_serve(stage)
    _write_kernel(stage, loops, finishers)
    lanes, by_key = _write_routing(stage, planned, inputs)
    chains = write_chains(stage, inputs[0]) if stage.chained else None
    times = [write_times(stage, source, port) for port, source in computed.items()]
    made = StageSpec(
        name=planned.name,
        way=planned.way,
        module=stage.writer.finish(globals_),
        functions=tuple(stage.writer.signatures.items()),
        entry="kernel",
        slots=tuple(replace(slot, contents=contents.get(slot.node, "")) for slot in stage.slots),
        state_words=stage.state_words,
        constants=stage.constants.pack(),
        ports=ports,
        sites=tuple(stage.sites.sites),
        user_calls=tuple(UserCall(word, f) for f, word in stage.constants.user_functions.items()),
        groups=tuple(stage.groups),
        lanes=lanes,
        by_key=by_key,
        chains=chains,
        sharing=planned.sharing,
        complete=_complete(planned),
        time_entries=tuple(times),
        passes_watermarks=passes_watermarks,
        counters=tuple(stage.counters.values()),
        rejections=tuple(stage.rejections.values()),
        moving=partial(write_moving, planned, tuple(stage.slots), tuple(globals_)),
    )
    watermarks = bool(stage.due) or passes_watermarks
    return WrittenStage(made, tuple(dict.fromkeys(stage.grids)), watermarks, stage.mixed, stage.columns)


def _write_routing(stage: StageDraft, planned: Stage, inputs: tuple[LogicalNode, ...]) -> tuple[Lanes | None, str]:
    """How its rows are divided, by lanes and by parts; writes the function that does it."""
    if not planned.routing_keys:
        return None, ""
    entry = write_lanes(stage, inputs, planned.routing_keys)
    if planned.by_key is not None:
        return None, entry
    most = max(stage.turns.get(id(n), 1) for n in inputs)
    return Lanes(entry=entry, count=planned.lanes, branches=len(planned.branches), turns=most), ""


def _complete(planned: Stage) -> int:
    """The bits of the sources that must have ended before its tickets are shared."""
    if not planned.complete:
        return 0
    mask = ended_mask(planned.plan, planned.complete)
    assert mask is not None, "sources of which a batch says whether they have ended"
    return mask


def _write_row_loops(stage: StageDraft, inputs: Sequence[LogicalNode], branches: Sequence[Branch]) -> dict[int, str]:
    """The functions that take rows, by the port number in segments of the stage: in lanes the branch.

    MIXED: the function for all ports.
    """
    if stage.lanes_of_ports:
        return {n: write_shared_rows(stage, inputs, b, n) for n, b in enumerate(branches)}
    if stage.mixed:
        return {abi.MIXED: write_mixed_rows(stage, inputs)}
    if branches:
        return {n: write_rows(stage, inputs[0], inputs[0].schema, 0, n) for n in range(len(branches))}
    return {port: write_rows(stage, node, node.schema, port) for port, node in enumerate(inputs)}


def _port(output: Output) -> PortSpec:
    return PortSpec(output.name, column_specs(output.node.schema), output.limit)


def _write_closers(stage: StageDraft) -> None:
    for node in stage.plan.nodes():
        if id(node) in stage.gathered:
            input_order.close_gather(stage, node)
        if node.operator in CLOSE:
            CLOSE[node.operator](stage, node)


def _uses_step_bytes(plan: LogicalPlan) -> bool:
    """Whether some expression takes bytes that live for one step."""
    for node in plan.nodes():
        if any(map(gathers, aggregate_calls(node))):
            return True
        copies = node.inputs and COPIES_TEXT[node.operator]
        if copies(node) if callable(copies) else copies:
            return True
        if any(user_folds(node)):
            return True
        for e, _ in node.expressions():
            if any(map(takes_step_bytes, walk(e))):
                return True
    return False


def _write_failed(stage: StageDraft) -> None:
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


def _write_finishers(stage: StageDraft) -> list[str]:
    """The functions that emit what only the end decides; their calls, and those of the functions they gather for."""
    calls = []
    for node in stage.plan.nodes():
        if id(node) in stage.gathered:
            name = input_order.gather_name(stage, node)
            calls.append(f"status = {name}(state, out, constants, NEVER, serial, 0, 0, -1)")
        if node.emits_at_end:
            FINISH[node.operator](stage, node)
            calls.append(f"status = {stage.writer.functions[-1].name}(state, out, constants, serial)")
    write_passing(stage)
    return calls


def _write_serve(stage: StageDraft) -> None:
    """Serve every closing time up to the watermark, ascending, each through the closers in plan order.

    If closing times depend on data in lanes, other lanes' rows move the watermark too: each instant is served at the
    serial, among those from `first` to `serial`, at which the watermark has reached it.
    """
    writer = stage.writer
    closers = sorted(stage.closers, key=lambda c: c.order)
    searches = stage.lanes and bool(stage.due)
    arguments = ("state", "out", "constants", "watermark", "serial")
    with writer.function("serve", (*arguments, "batch", "first") if searches else arguments):
        if searches:
            writer.code("marks = ld_i64(batch, W)", W=abi.BATCH_WATERMARKS)
        if closers:
            with writer.while_(True):
                writer.code("instant = NEVER", NEVER=abi.NEVER)
                for closer in closers:
                    writer.code("instant = min(instant, DUE)", DUE=closer.next_end)
                writer.code("if instant > watermark or instant == NEVER:\n    break", NEVER=abi.NEVER)
                writer.code("st_i64(state, W, instant)", W=abi.STATE_INSTANT)
                _write_past(stage, expr("instant - 1"))
                if stage.watermark is not None:  # rows that arrive at this instant wait only for later ones
                    writer.code("st_i64(state, W, instant)", W=stage.watermark)
                if searches:
                    writer.code("first = marks_reach(marks, first, serial, instant)")
                cause = "first" if searches else "serial"
                for closer in closers:
                    more = ", 0, 0, -1" if closer.gathers else ""
                    call = f"status = F(state, out, constants, instant, {cause}{more})"
                    writer.code(call, F=closer.function)
                    writer.code("if status != DONE:\n    return status", DONE=abi.DONE)
        _write_past(stage, expr("watermark"))
        if stage.watermark is not None:
            writer.code("st_i64(state, W, watermark)", W=stage.watermark)
        writer.code("st_i64(state, W, NEVER)", W=abi.STATE_INSTANT, NEVER=abi.NEVER)
        writer.code("return DONE", DONE=abi.DONE)


def _write_past(stage: StageDraft, instant: ast.expr) -> None:
    """Set the time before which no more rows come in tables that may forget entries."""
    for slot in stage.slots:
        if any(shape.until_word for shape in slot.shapes):
            stage.writer.code("st_i64(ld_i64(state, S), W, I)", S=slot.offset, W=TABLE_PAST, I=instant)


def _write_kernel(stage: StageDraft, row_loops: Mapping[int, str], finishers: list[str]) -> None:
    """Walk the segments from the cursor on."""
    writer = stage.writer
    serve = "status = serve(state, out, constants, ld_i64(segment, W), serial)"
    if stage.lanes and stage.due:
        serve = serve.replace("serial)", "serial, batch, ld_i64(batch, FIRST))")
    with writer.function("kernel", ("state", "batch", "out", "constants")):
        if stage.passes_watermarks:
            writer.preset("kind")
        writer.code("segments = ld_i64(batch, W)", W=abi.BATCH_SEGMENTS)
        writer.code("count = ld_i64(batch, W)", W=abi.BATCH_SEGMENT_COUNT)
        writer.code("at = ld_i64(state, W)", W=abi.STATE_SEGMENT)
        writer.code("row = ld_i64(state, W) - 1", W=abi.STATE_ROW)
        with writer.while_(expr("at < count")):
            writer.code("segment = segments + at * (SIZE * 8)", SIZE=abi.SEGMENT_WORDS)
            writer.code("kind = ld_i64(segment, W)", W=abi.SEGMENT_KIND)
            writer.code("serial = ld_i64(segment, W)", W=abi.SEGMENT_SERIAL)
            writer.code("status = DONE", DONE=abi.DONE)
            with writer.if_(expr("kind <= LATE", LATE=abi.SEGMENT_LATE)):
                _write_rows_step(stage, row_loops)
            with writer.otherwise():
                with writer.if_(expr("kind == CLOSE", CLOSE=abi.SEGMENT_CLOSE)):
                    writer.code(serve, W=abi.SEGMENT_WATERMARK, FIRST=abi.BATCH_FIRST)
                with writer.otherwise():
                    for call in finishers:
                        with writer.if_(expr("status == DONE", DONE=abi.DONE)):
                            writer.code(call, NEVER=abi.NEVER)
                with writer.if_(expr("status != DONE", DONE=abi.DONE)):
                    writer.code("st_i64(state, W, at)", W=abi.STATE_SEGMENT)
                    with writer.if_(expr("status == ERROR", ERROR=abi.ERROR)):
                        _pass_failure(stage)
                    writer.code("return status")
                _pass_segment(stage, expr("ld_i64(segment, W)", W=abi.SEGMENT_WATERMARK))
            writer.code("at = at + 1")
            writer.code("row = -1")
        if stage.passes_watermarks:
            _pass_last_watermark(stage)
        writer.code("st_i64(state, W, 0)", W=abi.STATE_SEGMENT)
        writer.code("st_i64(state, W, 0)", W=abi.STATE_ROW)
        writer.code("return DONE", DONE=abi.DONE)


def _write_rows_step(stage: StageDraft, row_loops: Mapping[int, str]) -> None:
    """One ROWS or LATE segment, from its cursor on; leaves the kernel if a port is full or something failed."""
    writer = stage.writer
    writer.code("lo = ld_i64(segment, W)", W=abi.SEGMENT_LO)
    writer.code("hi = ld_i64(segment, W)", W=abi.SEGMENT_HI)
    if stage.lanes_of_ports:
        writer.code("base = ld_i64(batch, W)", W=abi.BATCH_FIRST)
    elif stage.lanes:
        writer.code("base = serial - ld_i32(ld_i64(batch, W), lo)", W=abi.BATCH_SELECTION)
    else:
        writer.code("base = serial - lo")
    if stage.by_key:
        selected = expr("serial - ld_i32(ld_i64(batch, W), lo)", W=abi.BATCH_SELECTION)
        with writer.if_(expr("ld_i64(batch, W) != 0", W=abi.BATCH_SELECTION)):
            writer.set("base", selected)
    with writer.if_(expr("row >= 0")):
        writer.code("lo = row")
    writer.code("following = hi")
    for port, name in row_loops.items():
        call = expr("F(state, batch, out, constants, lo, hi, base, kind)", F=name)
        if port == abi.MIXED:
            call = expr("F(state, batch, out, constants, lo, hi, base, kind, PORT)", F=name,
                PORT=expr("ld_i64(segment, W)", W=abi.SEGMENT_PORT))  # fmt: skip
            writer.set("following", call)
            continue
        with writer.if_(expr("ld_i64(segment, W) == P", W=abi.SEGMENT_PORT, P=port)):
            writer.set("following", call)
    with writer.if_(expr("following < 0")):
        _pass_failure(stage)
        writer.code("return ERROR", ERROR=abi.ERROR)
    _pass_segment(stage, ast.Constant(0))
    with writer.if_(expr("following < hi")):
        writer.code("st_i64(state, W, at)", W=abi.STATE_SEGMENT)
        writer.code("st_i64(state, W, following + 1)", W=abi.STATE_ROW)
        writer.code("return MORE", MORE=abi.MORE)


def _pass_failure(stage: StageDraft) -> None:
    """Pass on to the next stage what came before the failure, and the watermark reached by then."""
    if not stage.planned.final and not stage.lanes:
        stage.writer.code("port_failed(out, kind, state, batch)")


def _pass_last_watermark(stage: StageDraft) -> None:
    """Pass on the watermark of the batch's last row to the next stage, whether or not that row has passed through."""
    writer = stage.writer
    if stage.lanes:
        return
    writer.code("taken = ld_i64(batch, W)", W=abi.BATCH_ROWS)
    with writer.if_(expr("taken > 0 and kind <= LATE", LATE=abi.SEGMENT_LATE)):
        writer.code("kind = CLOSE\nserial = ld_i64(batch, W) + taken - 1", CLOSE=abi.SEGMENT_CLOSE, W=abi.BATCH_FIRST)
        _pass_segment(stage, expr("ld_i64(ld_i64(batch, W), serial)", W=abi.BATCH_WATERMARKS))


def _pass_segment(stage: StageDraft, watermark: ast.expr) -> None:
    """Pass on this segment over the rows just emitted to the next stage. Segments of lanes are made when merged."""
    if stage.planned.final or stage.lanes:
        return
    with stage.writer.if_(expr("port_segment(out, 0, kind, W) == 0", W=watermark)):
        stage.writer.code(
            "failed(state, CODE, 0, 0, -1, serial)\nreturn ERROR", CODE=ErrorCode.NO_MEMORY, ERROR=abi.ERROR
        )
