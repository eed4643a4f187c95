"""Choose: from a rewritten plan and a number of workers to the stages that run, every decision with its reason.

One worker, or nothing to gain: the whole plan is one loop, for queues between stages cost time and win none. With more:
    any worker     where nothing keeps state
    panes          windows that merge exactly: every worker fills panes of its own, a second stage merges and closes
    them rows apart     a stateless part that makes many rows of one (UNNEST) and is slow, or feeds what is slow lanes
    operators with state whose keys have a part in common, where a row costs more than routing it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cq.lang.expressions import Call, Cast, Expr, walk
from cq.lang.schema import Schema
from cq.planner.physical.classify import boundaries, common_components, stateless_prefix
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan, Stage, Way
from cq.planner.physical.turns import gathered, ties_show
from cq.planner.plan.logical import LogicalPlan, Output, at_leaf, connected
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import may_wait, sources_of

Routable = Callable[[Schema, Expr], bool]
"""Whether a kernel can tell a row's lane by this expression over these columns, from the row alone."""

# Splitting a ticket into lanes and merging their rows takes about 30 ns a row, which two workers must win back. At half
# the threshold running SUMs lose a third on two workers, at double the tolls of Linear Road stay on one.
ROUTED_FROM_NS = 45

# Function calls before the state from which on handing rows to a second stage pays. Word count has one, SPLIT: apart,
# its two stages took 83 ms of CPU where one loop takes 57, and no less time on two workers.
CALLS_APART = 4

LANES_A_WORKER = 4  # so that lanes of different weight even out
MOST_LANES = 64


def choose(plan: LogicalPlan, workers: int, routable: Routable) -> tuple[PhysicalPlan, ...]:
    """The physical plan of each connected part of the plan, for so many workers (0: inline, as one)."""
    return tuple(_Choice(part, max(workers, 1), routable).made() for part in connected(plan))


class _Choice:
    """The decisions for one connected part."""

    def __init__(self, plan: LogicalPlan, workers: int, routable: Routable) -> None:
        self.plan = plan
        self.nodes = plan.nodes()
        self.workers = workers
        self.routable = routable
        self.waits = may_wait(sources_of(self.nodes))
        self.prefix = stateless_prefix(plan)

    def made(self) -> PhysicalPlan:
        stages = self._stages()
        spread = any(s.way is not Way.LOOP for s in stages)
        return PhysicalPlan(self.plan, stages, self.workers if spread else min(self.workers, len(stages)))

    def _stages(self) -> tuple[Stage, ...]:
        if self.workers == 1:
            return (self._query(Way.LOOP, "one worker: a single loop needs no queues"),)
        if gathered(self.plan, self.waits):
            return (self._query(Way.LOOP, "rows of one event meet: one worker sees them all"),)
        if any(s.strict for s in sources_of(self.nodes)):
            return (self._query(Way.LOOP, "late = 'fail': the first late row ends all"),)
        if len(self.prefix) == len(self.nodes):
            return (self._query(Way.ANY, "nothing keeps state"),)
        windows = self._mergeable()
        if windows:
            return self._partial(windows)
        return self._rows_apart() or (self._fused(),)

    def _query(self, way: Way, reason: str, keys: tuple[tuple[Expr, ...], ...] = ()) -> Stage:
        return self._stage("query", self.plan, way, reason, keys)

    def _stage(
        self, name: str, plan: LogicalPlan, way: Way, reason: str, keys: tuple[tuple[Expr, ...], ...] = (),
        final: bool = True, collects: bool = False,
    ) -> Stage:  # fmt: skip
        lanes = lane_count(self.workers) if way is Way.LANES else 0
        return Stage(
            name=name, plan=plan, way=way, reason=reason, cost_ns=row_cost_ns(plan), waits=self.waits, keys=keys,
            lanes=lanes, gathered=gathered(plan, self.waits), final=final, collects=collects,
        )  # fmt: skip

    # -- windows filled by every worker -------------------------------------------------------------------------------

    def _mergeable(self) -> tuple[LogicalNode, ...]:
        """The windows that may run on partial panes: all state of the plan is in them, they alone read stateless rows,
        and their aggregates merge exactly. None when one of them may not: rows would be routed anyway."""
        if any(id(o.node) in self.prefix for o in self.plan.outputs):
            return ()
        found: list[LogicalNode] = []
        for node in self.nodes:
            stateless_inputs = [id(i) in self.prefix for i in node.inputs]
            if not node.keeps_state:
                if id(node) not in self.prefix and any(stateless_inputs):
                    return ()  # UNION ALL of windows and rows
                continue
            if not (node.closes and node.merges_exactly and node.merge_pays and all(stateless_inputs)):
                return ()
            found.append(node)
        return tuple(found)

    def _partial(self, windows: Sequence[LogicalNode]) -> tuple[Stage, ...]:
        below = LogicalPlan(tuple(Output(f"panes{n}", w) for n, w in enumerate(windows)))
        given = {id(i): StageInput(i) for w in windows for i in w.inputs}
        above = self.plan
        for window in windows:
            above = replaced(above, window, window.with_inputs([given[id(i)] for i in window.inputs]))
        filled = "aggregates merge exactly: every worker fills panes of its own"
        return (
            self._stage("panes", below, Way.PARTIAL, filled, final=False),
            self._stage("windows", above, Way.LOOP, "panes of all workers are merged and closed", collects=True),
        )

    # -- rows made by any worker --------------------------------------------------------------------------------------

    def _rows_apart(self) -> tuple[Stage, ...]:
        """Two stages where the stateless part makes many rows of one, has one way out, and one of the two is slow."""
        edges = boundaries(self.plan)
        below = [n for n in self.nodes if id(n) in self.prefix]
        shown = {id(o.node) for o in self.plan.outputs}
        if len(edges) != 1 or any(id(n) in shown for n in below):
            return ()
        (edge,) = edges
        if not any(n.inputs and n.fan_out is None for n in below):
            return ()
        if row_cost_ns(self.plan) < ROUTED_FROM_NS and calls_in(below) < CALLS_APART:
            return ()
        given = StageInput(edge)
        after = replaced(self.plan, edge, given)
        components = self._components()
        way, reason, keys = self._routed(after, (tuple(components),) if components else ())
        before = LogicalPlan((Output("rows", edge),))
        return (
            self._stage("rows", before, Way.ANY, "one row becomes many: any worker makes them", final=False),
            self._stage("state", after, way, reason, keys),
        )

    def _components(self) -> list[Expr]:
        """The common key over the single boundary, part by part, of those a lane can be told by."""
        (edge,) = boundaries(self.plan)
        parts = [c[id(edge)] for c in common_components(self.plan)]
        return parts if all(self.routable(edge.schema, e) for e in parts) else []

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _fused(self) -> Stage:
        """All operators in one loop, with lanes by what their keys have in common over the columns of the sources."""
        way, reason, keys = self._routed(self.plan, self._source_keys())
        return self._query(way, reason, keys)

    def _routed(
        self, plan: LogicalPlan, keys: tuple[tuple[Expr, ...], ...]
    ) -> tuple[Way, str, tuple[tuple[Expr, ...], ...]]:
        """How a plan with state runs, why, and by which keys of its leaves. keys: those it could be routed by."""
        cost = row_cost_ns(plan)
        if cost < ROUTED_FROM_NS:
            return Way.LOOP, f"a row costs {cost} ns, and routing pays from {ROUTED_FROM_NS}", ()
        if ties_show(plan, self.waits):
            return Way.LOOP, "groups begun at one closing time keep their order of arrival", ()
        if not keys:
            return Way.LOOP, "the keys of its operators have no part in common that a row shows", ()
        return Way.LANES, f"a row costs {cost} ns: routing it pays from {ROUTED_FROM_NS}", keys

    def _source_keys(self) -> tuple[tuple[Expr, ...], ...]:
        """The common key over the columns of each source, by port; nothing when it cannot be had that way."""
        components = common_components(self.plan)
        if not components:
            return ()
        found: dict[int, tuple[Expr, ...]] = {}
        for edge in boundaries(self.plan):
            down = at_leaf(edge, [c[id(edge)] for c in components])
            if down is None or found.setdefault(id(down[0]), down[1]) != down[1]:
                return ()
            if not all(self.routable(down[0].schema, e) for e in down[1]):
                return ()
        leaves = self._query(Way.LOOP, "").leaves
        return tuple(found[id(n)] for n in leaves) if all(id(n) in found for n in leaves) else ()


def lane_count(workers: int) -> int:
    """How many lanes a routed stage has: a power of two."""
    return min(MOST_LANES, 1 << max(1, (LANES_A_WORKER * workers - 1).bit_length()))


def row_cost_ns(plan: LogicalPlan) -> int:
    """About how long a row of the leaves keeps the operators with state busy."""
    return sum(node.cost_ns for node in plan.nodes())


def calls_in(nodes: Sequence[LogicalNode]) -> int:
    """How many functions and casts these operators compute."""
    return sum(isinstance(x, Call | Cast) for n in nodes for e, _ in n.expressions() for x in walk(e))


def replaced(plan: LogicalPlan, old: LogicalNode, new: LogicalNode) -> LogicalPlan:
    """The plan with another node in the place of `old`; what is only below it is gone."""
    made: dict[int, LogicalNode] = {id(old): new}
    for node in plan.nodes():
        if id(node) not in made:
            inputs = [made[id(i)] for i in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            made[id(node)] = node if same else node.with_inputs(inputs)
    return LogicalPlan(tuple(replace(o, node=made[id(o.node)]) for o in plan.outputs))
