"""Emit: a rewritten plan as a Pipeline, with everything the engine needs and nothing about SQL."""

from __future__ import annotations

from collections.abc import Sequence

from cq.codegen.ports import storage
from cq.codegen.printing import GeneratedTooMuch
from cq.codegen.scan import COMPUTED_TIME, times_name
from cq.codegen.stage import WrittenStage, write_stage
from cq.errors import CompileError, Span, compile_error
from cq.hints import face
from cq.lang.event_time import column_time
from cq.lang.expressions import walk
from cq.planner.physical.stages import PhysicalPlan, Stage
from cq.planner.plan.identity import contents
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef
from cq.runtime.base.interpret import stage_scope
from cq.runtime.layout.abi import Storage
from cq.runtime.layout.pipeline import ColumnSpec, EventTime, Pipeline, SourceSpec

# Columns of one output, or read from one source. Compile time grows with their square: passing on 200 columns takes
# 13 s and 0.9 GB, 400 take 50 s and 2.7 GB, 2,000 would take all memory there is.
MAX_COLUMNS = 400


def demand_narrow(columns: int, what: str, span: Span) -> None:
    """CQ0802 for more columns than one kernel can be compiled for."""
    if columns > MAX_COLUMNS:
        help = (
            f"name the columns you need, at most {MAX_COLUMNS} in a SELECT; several can read one view",
            f"or run it in plain Python: {face().reference}",
        )
        raise compile_error("CQ0802", f"{what} has {columns} columns, more than {MAX_COLUMNS}", span, help=help)


def write_pipeline(physical: PhysicalPlan, counting: bool = False) -> Pipeline:
    """The stages of a physical plan as a Pipeline. Raises CompileError where a kernel cannot be written.

    counting: the stages count the rows of every operator (`StageSpec.counters`).
    Stages are written last to first: what one keeps decides whether the rows before it carry their watermarks.
    """
    for output in physical.plan.outputs:
        demand_narrow(len(output.node.schema), f'the output "{output.name}"', output.span)
    written: list[WrittenStage] = []
    kept = contents(physical.plan)
    for stage in reversed(physical.stages):
        passes = bool(written) and not stage.way.traits.hands_over and written[-1].watermarks
        try:
            written.append(write_stage(stage, stage_scope(), kept, passes, counting))
        except GeneratedTooMuch:
            raise _too_large(stage) from None
    return _pipeline(physical, written[::-1])


def _too_large(stage: Stage) -> CompileError:
    """CQ0802 at the operator with the most to compute."""

    def size(node: LogicalNode) -> int:
        return sum(1 for e, _ in node.expressions() for _ in walk(e))

    span = max((n for n in stage.plan.nodes() if n.span.line), key=size).span
    help = (
        "put parts of it into queries of their own, each with a sink",
        f"or run it in plain Python: {face().reference}",
    )
    return compile_error("CQ0802", "the code that this needs is too large to be compiled", span, help=help)


def _pipeline(physical: PhysicalPlan, stages: Sequence[WrittenStage]) -> Pipeline:
    nodes = physical.plan.nodes()
    timed = len(physical.sources) > 1 or any(n.depends_on_time for n in nodes)
    sources = tuple(source_spec(s, port, stages[0], timed) for port, s in enumerate(physical.sources))
    grids = tuple(dict.fromkeys(g for s in stages for g in s.grids))
    watermarks = any(s.watermarks for s in stages)
    return Pipeline(
        sources=sources,
        stages=tuple(s.stage for s in stages),
        grids=grids,
        watermarks=watermarks,
        mixed=stages[0].mixed,
        workers=physical.workers,
        pairs_all=any(n.fan_out is None and n.input_keys is not None and () in n.input_keys for n in nodes),
    )


def source_spec(source: SourceDef, port: int, written: WrittenStage, timed: bool) -> SourceSpec:
    """What the stage reads of a source, and its event time, which it may not read itself.

    timed: event times affect the query's result. If they do not, the column is not read for them when every value is an
    event time: the reader of the source still checks that there are no NULLs.
    """
    indices = written.columns.setdefault(port, {})
    time = None
    if source.event_time is not None:
        column = column_time(source.event_time)
        if column is None:
            time = EventTime(indices[COMPUTED_TIME], entry=times_name(port))
        elif timed or column.unit_us > 1:
            time = EventTime(indices.setdefault(column.column, len(indices)), column.unit_us)
    fields = [source.fields[i] for i in indices if i != COMPUTED_TIME]
    demand_narrow(len(fields), f'what is read of stream "{source.name}"', source.span)
    columns = tuple(ColumnSpec(f.name, storage(f.type), f.nullable) for f in fields)
    if time is not None and time.entry is not None:
        columns = (ColumnSpec(_free_name("event time", source), Storage.I64, False), *columns)
    return SourceSpec(source.name, columns, time, source.delay_us)


def _free_name(name: str, source: SourceDef) -> str:
    """The name, made longer until no column of the source has it."""
    taken = {f.name for f in source.fields}
    while name in taken:
        name += "'"
    return name
