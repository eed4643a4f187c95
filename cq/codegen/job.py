"""Emit: a rewritten plan as a Job, everything the engine needs and nothing of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cq.calendar import DAY_US
from cq.codegen.expressions import ARRAY_WAYS, NO_ARRAYS
from cq.codegen.flow import holds_back, is_strict
from cq.codegen.operators.buffer import gives_when_due, waits
from cq.codegen.operators.gather import gathered
from cq.codegen.ports import storage
from cq.codegen.scan import StageInput, decides_lane
from cq.codegen.stage import Shape, WrittenStage, expressions_of, inputs_of, sources_of, write_stage
from cq.errors import Span, compile_error
from cq.expressions import Call, Cast, Column, Expr, substitute, walk
from cq.functions import EPOCH_UNITS
from cq.planner.logical import LogicalNode, LogicalPlan, OpClass, Output, identities
from cq.planner.operators import Aggregate, Filter, Project, Scan, SourceDef, Unnest, WindowAggregate
from cq.planner.stages import Stage, StageGraph
from cq.runtime.interpret import stage_scope
from cq.runtime.job import ColumnSpec, EventTime, Job, SourceSpec, StageKind
from cq.types import Kind

_KINDS = {
    OpClass.STATELESS: StageKind.STATELESS,
    OpClass.PARTITIONED: StageKind.PARTITIONED,
    OpClass.STATEFUL: StageKind.STATEFUL,
}


# Columns of one output, or read of one source. Compiling grows with their square: 200 columns passed on take 13 s and
# 0.9 GB, 400 take 50 s and 2.7 GB, 2,000 would take all memory there is.
MAX_COLUMNS = 400


def demand_narrow(columns: int, what: str, span: Span) -> None:
    """CQ0802 for more columns than one kernel can be compiled for."""
    if columns > MAX_COLUMNS:
        help = ("name the columns that are needed instead of *", ARRAY_WAYS[-1])
        raise compile_error("CQ0802", f"{what} has {columns} columns, more than {MAX_COLUMNS}", span, help=help)


def write_job(graph: StageGraph) -> Job:
    """The stages of a plan as a Job. Raises CompileError where the engine cannot follow the plan.

    A stateless stage before a stage with state stays apart only where it makes many rows of one (UNNEST), has one way
    out, and one of the two is slow; else its operators run in the loop of the stage with state, and keys are computed
    from source columns.
    """
    plan, waiting = graph.plan, waits(graph.plan)
    for output in plan.outputs:
        demand_narrow(len(output.node.schema), f'the output "{output.name}"', output.span)
    identity = identities(plan)
    if gathered(plan, waiting) or any(map(is_strict, plan.nodes())):
        # by one worker at a time: an event is over when all its rows have met, and the first late row ends all
        return _job(plan, [write_stage(plan, identity, Shape("query", StageKind.STATEFUL, waiting), stage_scope())])
    if len(graph.stages) == 1:
        (only,) = graph.stages
        kind = _KINDS[only.op_class]
        return _job(plan, [write_stage(plan, identity, Shape("query", kind, waiting), stage_scope())])
    first, second = graph.stages
    if second.mergeable:
        return _partial(graph, second, identity, waiting)
    unnests = len(second.inputs) == 1 and first.outputs == second.inputs and _has_unnest(first)
    if unnests and (row_cost_ns(plan) >= ROUTED_FROM_NS or _calls(first) >= CALLS_APART):
        return _chain(graph, second, identity, waiting)
    routed = row_cost_ns(plan) >= ROUTED_FROM_NS and not _ties_show(plan, waiting)
    keys = _source_keys(plan, second) if routed else ()
    kind = StageKind.PARTITIONED if keys else StageKind.STATEFUL
    return _job(plan, [write_stage(plan, identity, Shape("query", kind, waiting, keys), stage_scope())])


# What an operator with state costs a row, as measured on its own with 10 k keys (docs/benchmarks.md), and from where on
# routing pays: splitting a ticket into lanes and merging their rows takes about 30 ns a row, which two workers must
# win back. At half the threshold running SUMs lose a third on two workers, at double the tolls of Linear Road stay
# on one.
_COST_NS = {"window": 6, "over": 8, "temporal_join": 12, "aggregate": 6}
_DISTINCT_NS = 15
_TEXT_KEY_NS = 15
ROUTED_FROM_NS = 45

# Function calls before the state from which on handing rows to a second stage pays. Word count has one, SPLIT: apart,
# its two stages took 83 ms of CPU where one loop takes 57, and no less time on two workers.
CALLS_APART = 4


def row_cost_ns(plan: LogicalPlan) -> int:
    """About how long a source row keeps the operators with state busy."""
    total = 0
    for node in plan.nodes():
        total += _COST_NS.get(node.operator, 0)
        total += _TEXT_KEY_NS * any(k.type.kind is Kind.VARCHAR for k in node.key or ())
        if isinstance(node, WindowAggregate | Aggregate):
            total += _DISTINCT_NS * sum(a.distinct for a in node.aggregates)
    return total


def _ties_show(plan: LogicalPlan, waiting: bool) -> bool:
    """Whether lanes would lose an order that shows: of groups that rows of one closing time have begun.

    Such groups are ordered by their first rows, which have one serial between them; in one state the order of arrival
    tells them apart, in several nothing does. It shows where the groups' rows come to an output.
    """
    nodes = plan.nodes()
    shows = {id(o.node) for o in plan.outputs}
    for node in reversed(nodes):
        if id(node) in shows:
            shows.update(id(i) for port, i in enumerate(node.inputs) if not holds_back(node, port))
    due: set[int] = set()  # what can come of a closing time
    for node in nodes:
        derived = any(id(i) in due for i in node.inputs)
        if derived and id(node) in shows and isinstance(node, WindowAggregate | Aggregate):
            return True
        if derived or gives_when_due(node, waiting):
            due.add(id(node))
    return False


def _has_unnest(stage: Stage) -> bool:
    return any(isinstance(n, Unnest) for n in stage.nodes)


def _calls(stage: Stage) -> int:
    """How many functions and casts a stage computes."""
    return sum(isinstance(x, Call | Cast) for n in stage.nodes for e in expressions_of(n) for x in walk(e))


def _chain(graph: StageGraph, second: Stage, identity: dict[int, str], waiting: bool) -> Job:
    """Two stages: rows are made by any worker, then go to the state."""
    (edge,) = second.inputs
    given = StageInput(edge)
    after = replaced(graph.plan, edge, given)
    keys = tuple(k for k in second.keys if all(decides_lane(edge.schema, e) for e in k))
    if row_cost_ns(after) < ROUTED_FROM_NS or _ties_show(after, waiting):
        keys = ()
    kind = StageKind.PARTITIONED if keys else StageKind.STATEFUL
    known = {**identity, id(given): identity[id(edge)], **identities(after)}
    state = write_stage(after, known, Shape("state", kind, waiting, keys), stage_scope())
    before = LogicalPlan((Output("rows", _only(edge, state.columns.get(0, {}))),))
    shape = Shape("rows", StageKind.STATELESS, waiting, final=False)
    return _job(graph.plan, [write_stage(before, identities(before), shape, stage_scope()), state])


def _partial(graph: StageGraph, second: Stage, identity: dict[int, str], waiting: bool) -> Job:
    """Two stages: workers count rows into panes of their own; these are merged and closed, what follows is done."""
    windows = second.mergeable
    below = LogicalPlan(tuple(Output(f"panes{n}", w) for n, w in enumerate(windows)))
    shape = Shape("panes", StageKind.PARTIAL, waiting, final=False)
    fills = write_stage(below, identity, shape, stage_scope())
    given = {id(w.input): StageInput(w.input) for w in windows}
    known, above = {}, graph.plan
    for window in windows:
        collected = window.with_inputs([given[id(window.input)]])
        known[id(collected)] = identity[id(window)]
        above = replaced(above, window, collected)
    shape = Shape("windows", StageKind.STATEFUL, waiting, collects=True)
    return _job(graph.plan, [fills, write_stage(above, {**identities(above), **known}, shape, stage_scope())])


def _only(edge: LogicalNode, places: dict[int, int]) -> LogicalNode:
    """The columns of `edge` that the next stage reads, in the places where it looks for them."""
    fields = edge.schema.fields
    exprs = tuple(Column(fields[i].type, fields[i].nullable, i, fields[i].name) for i in places)
    return Project(edge, exprs, tuple(fields[i].name for i in places))


def replaced(plan: LogicalPlan, old: LogicalNode, new: LogicalNode) -> LogicalPlan:
    """The plan with another node in the place of `old`; what is only below it is gone."""
    made: dict[int, LogicalNode] = {id(old): new}
    for node in plan.nodes():
        if id(node) not in made:
            inputs = [made[id(i)] for i in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            made[id(node)] = node if same else node.with_inputs(inputs)
    return LogicalPlan(tuple(replace(o, node=made[id(o.node)]) for o in plan.outputs))


def _source_keys(plan: LogicalPlan, stage: Stage) -> tuple[tuple[Expr, ...], ...]:
    """The stage's key over the columns of each source, by port; nothing when it cannot be had that way."""
    if not stage.keys:
        return ()
    found: dict[int, tuple[Expr, ...]] = {}
    for edge, key in zip(stage.inputs, stage.keys, strict=True):
        down = _to_source(edge, key)
        if down is None or found.setdefault(id(down[0]), down[1]) != down[1]:
            return ()
        if not all(decides_lane(down[0].schema, e) for e in down[1]):
            return ()
    inputs = inputs_of(plan)
    return tuple(found[id(n)] for n in inputs) if all(id(n) in found for n in inputs) else ()


def _to_source(node: LogicalNode, key: tuple[Expr, ...]) -> tuple[Scan, tuple[Expr, ...]] | None:
    """The key over the columns of the scan below a chain of filters and projections."""
    while not isinstance(node, Scan):
        match node:
            case Filter(input=below):
                node = below
            case Project(input=below, exprs=exprs):
                key = tuple(substitute(k, exprs) for k in key)
                node = below
            case _:
                return None
    return node, key


def _job(plan: LogicalPlan, stages: Sequence[WrittenStage]) -> Job:
    sources = tuple(source_spec(s, port, stages[0]) for port, s in enumerate(sources_of(plan)))
    grids = tuple(dict.fromkeys(g for s in stages for g in s.grids))
    return Job(sources, tuple(s.stage for s in stages), grids, any(s.every_advance for s in stages))


def source_spec(source: SourceDef, port: int, written: WrittenStage) -> SourceSpec:
    """What the stage reads of a source, and its event time, which it may not read itself."""
    places = written.columns.setdefault(port, {})
    time = None
    if source.event_time is not None:
        index, scale, shift = event_time(source.event_time)
        time = EventTime(places.setdefault(index, len(places)), scale, shift)
    fields = [source.fields[i] for i in places]
    demand_narrow(len(fields), f'what is read of stream "{source.name}"', source.span)
    array = next((f for f in fields if f.type.kind is Kind.ARRAY), None)
    if array is not None:
        cause = f'column "{array.name}" of stream "{source.name}" is {array.type}, and {NO_ARRAYS}'
        raise compile_error("CQ0501", cause, source.span, help=("leave the column out", ARRAY_WAYS[-1]))
    columns = tuple(ColumnSpec(f.name, storage(f.type), f.nullable) for f in fields)
    return SourceSpec(source.name, columns, time, source.delay_us)


def event_time(e: Expr) -> tuple[int, int, int]:
    """(column, scale, shift): the event time in microseconds is column * scale + shift."""
    match e:
        case Column(index=index, type=t) if t.kind is Kind.TIMESTAMP:
            return index, 1, 0
        case Column(index=index, type=t) if t.kind is Kind.DATE:
            return index, DAY_US, 0
        case Call(function=f, args=(Column(index=index, type=t),)) if f.name in EPOCH_UNITS and t.is_integer:
            return index, EPOCH_UNITS[f.name], 0
        case _:
            raise compile_error(
                "CQ0502", "this event time cannot be computed while rows are admitted", e.span,
                help="use a TIMESTAMP column, or TIMESTAMP_SECONDS / TIMESTAMP_MILLIS / TIMESTAMP_MICROS of an integer",
            )  # fmt: skip
