"""The physical plan: the stages that run, how each is run, and why. Codegen follows it and decides nothing.

A stage is a part of the rewritten plan fused into one kernel. Its leaves are scans, whose tickets come from admission,
or `StageInput`s, whose rows come from an earlier stage; its outputs go to sinks or to the next stage.
"""

from __future__ import annotations

from collections.abc import Iterator

from cq.planner.operators.pruning import needed_columns
from cq.planner.physical.branches import Branch
from cq.planner.physical.complete import complete_first
from cq.planner.physical.stage_input import StageInput
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef, may_mix, sources_of
from cq.records import dataclass
from cq.ways import PLACEMENTS, Sharing, Way


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Operators fused into one kernel.

    plan: its operators; its outputs are its ports.  branches: for LANES, its operators with state by key; each branch
    has the same number of lanes.
    by_key: for PARTIAL, the key that assigns a row to one part; None if its groups have none in common, or are merged
    anyway.
    complete: for SHARED, the sources after whose last row its operators keep none (`cq.planner.physical.complete`).
    gathered: its operators whose rows of one event are kept until all have met (`cq.planner.physical.turns`).
    waits: whether rows can come before the watermark reaches their time.
    mixed: whether a segment of its tickets may have rows of two sources, if its kernel accepts that.
    final: whether its ports are sinks.
    collects: whether it takes over the panes filled by the PARTIAL stage before it, instead of rows.  instants: whether
    it gets rows that an earlier stage made at instants; before it processes one, it serves everything due before that
    instant.
    sharing: how workers share the transactions that it runs together; None if it does not.
    cost_ns: how long a row of its inputs keeps a worker busy, by the costs its operators declare.
    reason: why it runs this way, for people.
    """

    name: str
    plan: LogicalPlan
    way: Way
    reason: str
    cost_ns: int
    waits: bool
    mixed: bool
    branches: tuple[Branch, ...]
    lanes: int
    complete: tuple[SourceDef, ...]
    gathered: tuple[LogicalNode, ...]
    final: bool
    collects: bool
    instants: bool
    by_key: Branch | None
    sharing: Sharing | None

    @property
    def routing_keys(self) -> tuple[Branch, ...]:
        """The keys by which its rows can be split."""
        return self.branches if self.by_key is None else (self.by_key,)

    @property
    def leaves(self) -> tuple[LogicalNode, ...]:
        """The nodes whose rows come from outside, by port: one scan per source, or the rows of the stage before."""
        return leaves_of(self.plan)


def leaves_of(plan: LogicalPlan) -> tuple[LogicalNode, ...]:
    """The nodes of a stage's plan whose rows come from outside: scans by source, or the inputs from another stage."""
    nodes = plan.nodes()
    given = [n for n in nodes if isinstance(n, StageInput)]
    scans = {n.source: n for n in nodes if n.source is not None}
    return tuple(given) or tuple(scans[s] for s in sources_of(nodes))


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The stages of one connected part of a query, producers first.

    workers: how many of the requested workers can be busy.
    """

    plan: LogicalPlan
    stages: tuple[Stage, ...]
    workers: int

    @property
    def sources(self) -> tuple[SourceDef, ...]:
        """The sources that admission reads, by port."""
        return sources_of(self.plan.nodes())


def verify(physical: PhysicalPlan) -> PhysicalPlan:
    """The plan itself; an AssertionError names the invariant and the stage that breaks it."""
    for number, stage in enumerate(physical.stages):
        for problem in _problems(physical, number, stage):
            raise AssertionError(f"stage {stage.name}: {problem}")
    staged = [s for s in physical.stages if not s.way.traits.hands_over]
    placed = [n.identity for s in staged for n in s.plan.nodes() if n.keeps_state]
    assert sorted(placed) == sorted(n.identity for n in physical.plan.nodes() if n.keeps_state), (
        "an operator with state in two stages, or in none"
    )
    return physical


def _problems(physical: PhysicalPlan, number: int, stage: Stage) -> Iterator[str]:
    nodes, way = stage.plan.nodes(), stage.way.traits
    last = number == len(physical.stages) - 1
    given = [n for n in nodes if isinstance(n, StageInput)]
    scans = [n for n in nodes if n.source is not None]
    if len(given) > 1 and not stage.collects:
        yield "rows of the stage before it in two leaves"
    if given and not stage.collects and len(needed_columns(stage.plan)[id(given[0])]) < len(given[0].schema):
        yield "columns cross to it that nobody reads"
    if given and scans:
        yield "reads both sources and another stage"
    if bool(given) != (number > 0):
        yield "the first stage reads sources, every other the stage before"
    if len({n.source for n in scans}) != len(scans):
        yield "a source scanned twice: sub-plans are shared before stages are made"
    if stage.mixed and (way.hands_over or way.together or not may_mix(n.source for n in scans if n.source is not None)):
        yield "segments of two sources that admission cannot merge, or that its workers cannot take"
    if stage.final != last:
        yield "the last stage, and only that one, ends at the sinks"
    if way.lanes != bool(stage.branches) or way.lanes != (stage.lanes > 0):
        yield "lanes without a key, or a key without lanes"
    if stage.branches:
        yield from _problems_of_branches(stage)
    if not way.keeps_state and any(n.keeps_state for n in nodes):
        yield "state where any worker takes any ticket"
    if not way.keeps_state and physical.workers == 1:
        yield "an order restored that one worker never loses"
    if stage.by_key is not None and (not way.hands_over or None in stage.by_key.keys):
        yield "parts by key that nobody fills, or rows that are no part's"
    if way.hands_over and not all(o.node.merges_exactly for o in stage.plan.outputs):
        yield "partial states that do not merge"
    if way.shares != bool(stage.complete):
        yield "workers share its tickets and it names no source whose end they wait for, or the reverse"
    if way.shares and stage.complete != complete_first(stage.plan):
        yield "its state still changes when any worker may take any ticket"
    if way.together != (stage.sharing is not None):
        yield "it runs transactions together and does not say how workers share them, or the reverse"
    if stage.sharing is not None and (stage.sharing.events == 0 or stage.sharing.placement not in PLACEMENTS):
        yield "transactions of no event, or in no place"
    if (way.lanes or way.hands_over or way.shares) and stage.gathered:
        yield "rows of one event that meet in one place, on several workers"


def _problems_of_branches(stage: Stage) -> Iterator[str]:
    if any(len(b.keys) != len(stage.leaves) for b in stage.branches):
        yield "a key for some of its inputs"
    if any(all(b.keys[port] is None for b in stage.branches) for port in range(len(stage.leaves))):
        yield "rows that no branch reads"
    if stage.lanes % len(stage.branches):
        yield "branches with different numbers of lanes"
    placed = [identity for b in stage.branches for identity in b.parts]
    if sorted(placed) != sorted(n.identity for n in stage.plan.nodes() if n.keeps_state):
        yield "an operator with state in no branch, or in two"
