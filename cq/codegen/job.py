"""Emit: a rewritten plan as a Job, everything the engine needs and nothing of SQL."""

from __future__ import annotations

from cq.codegen.ports import storage
from cq.codegen.stage import WrittenStage, sources_of, write_stage
from cq.errors import compile_error
from cq.expressions import Call, Column, Expr
from cq.planner.logical import LogicalPlan
from cq.planner.operators import SourceDef
from cq.runtime.job import ColumnSpec, EventTime, Job, SourceSpec, StageKind
from cq.runtime.kernel import stage_scope
from cq.types import Kind

_EPOCH_UNITS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1_000, "timestamp_micros": 1}
_DAY_US = 86_400_000_000


def write_job(plan: LogicalPlan) -> Job:
    """The whole plan as one fused stage. Raises CompileError where the engine cannot follow the plan."""
    written = write_stage(plan, "query", StageKind.STATEFUL, tuple(stage_scope()))
    sources = tuple(source_spec(s, port, written) for port, s in enumerate(sources_of(plan)))
    return Job(sources, (written.stage,), written.grids, written.every_advance)


def source_spec(source: SourceDef, port: int, written: WrittenStage) -> SourceSpec:
    """What the stage reads of a source, and its event time, which it may not read itself."""
    places = written.columns.setdefault(port, {})
    time = None
    if source.event_time is not None:
        index, scale, shift = event_time(source.event_time)
        time = EventTime(places.setdefault(index, len(places)), scale, shift)
    fields = [source.fields[i] for i in places]
    columns = tuple(ColumnSpec(f.name, storage(f.type), f.nullable) for f in fields)
    return SourceSpec(source.name, columns, time, source.delay_us)


def event_time(e: Expr) -> tuple[int, int, int]:
    """(column, scale, shift): the event time in microseconds is column * scale + shift."""
    match e:
        case Column(index=index, type=t) if t.kind is Kind.TIMESTAMP:
            return index, 1, 0
        case Column(index=index, type=t) if t.kind is Kind.DATE:
            return index, _DAY_US, 0
        case Call(function=f, args=(Column(index=index, type=t),)) if f.name in _EPOCH_UNITS and t.is_integer:
            return index, _EPOCH_UNITS[f.name], 0
        case _:
            raise compile_error(
                "CQ0502", "this event time cannot be computed while rows are admitted", e.span,
                help="use a TIMESTAMP column, or TIMESTAMP_SECONDS / TIMESTAMP_MILLIS / TIMESTAMP_MICROS of an integer",
            )  # fmt: skip
