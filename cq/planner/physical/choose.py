"""Choose: from a rewritten plan and a number of workers to the stages that run, every decision with its reason.

One worker, or nothing to gain: the whole plan is one loop, for queues between stages cost time and win none. With more:
    any worker     where nothing keeps state
    panes          windows that merge exactly: every worker fills panes of its own, a second stage merges and closes
                   them
    rows apart     a stateless part that makes many rows of one (UNNEST) and is slow, or feeds what is slow
    lanes          operators with state whose keys have a part in common, where a row costs more than routing it
    a chain        of such stages, each by its own key, where they have none in common
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cq.lang.expressions import Call, Cast, Expr, walk
from cq.lang.schema import Schema
from cq.planner.physical.chain import cuts, made_at_instants, pays, replaced
from cq.planner.physical.classify import Tracer, boundaries, common_components, lane_parts, stateless_prefix
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan, Stage
from cq.planner.physical.turns import gathered, ties_show
from cq.planner.plan.logical import LogicalPlan, Output, at_leaf, connected
from cq.planner.plan.node import LogicalNode, rows_may_wait
from cq.planner.plan.source import sources_of
from cq.ways import Way

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
        self.waits = rows_may_wait(self.nodes)
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
        return self._rows_apart() or self._with_state(self.plan, "query")

    def _query(self, way: Way, reason: str, keys: tuple[tuple[Expr, ...], ...] = ()) -> Stage:
        return self._stage("query", self.plan, way, reason, keys)

    def _stage(
        self, name: str, plan: LogicalPlan, way: Way, reason: str, keys: tuple[tuple[Expr, ...], ...] = (),
        final: bool = True, collects: bool = False,
    ) -> Stage:  # fmt: skip
        lanes = lane_count(self.workers) if way is Way.LANES else 0
        # a plan that has to gather is one stage; in a part of another rows come one by one, as they do in the whole
        gathers = gathered(plan, self.waits) if plan is self.plan else ()
        return Stage(
            name=name, plan=plan, way=way, reason=reason, cost_ns=row_cost_ns(plan), waits=self.waits, keys=keys,
            lanes=lanes, gathered=gathers, final=final, collects=collects,
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
        after = replaced(self.plan, edge, StageInput(edge))
        before = LogicalPlan((Output("rows", edge),))
        rows = self._stage("rows", before, Way.ANY, "one row becomes many: any worker makes them", final=False)
        return (rows, *self._with_state(after, "state"))

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _with_state(self, plan: LogicalPlan, name: str) -> tuple[Stage, ...]:
        """A plan of which some operators have state: lanes by what their keys have in common, a chain of such stages
        where they have nothing, or one loop."""
        whole = self._routed(name, plan)
        return (whole,) if whole.way is Way.LANES else self._chain(plan) or (whole,)

    def _routed(self, name: str, plan: LogicalPlan) -> Stage:
        """A plan with state as one stage: how it runs, why, and by which keys of its leaves."""
        cost = row_cost_ns(plan)
        if cost < ROUTED_FROM_NS:
            return self._stage(name, plan, Way.LOOP, f"a row costs {cost} ns, and routing pays from {ROUTED_FROM_NS}")
        if ties_show(plan, self.waits):
            return self._stage(name, plan, Way.LOOP, "groups begun at one closing time keep their order of arrival")
        keys = self._keys(plan)
        if not keys:
            reason = "the keys of its operators have no part in common that a row shows"
            return self._stage(name, plan, Way.LOOP, reason)
        made = self._stage(name, plan, Way.LANES, f"a row costs {cost} ns: routing it pays from {ROUTED_FROM_NS}", keys)
        return replace(made, lane_parts=_lane_parts(plan))

    def _chain(self, plan: LogicalPlan) -> tuple[Stage, ...]:
        """Stages one after the other, each by its own key; none where one loop is about as fast."""
        parts = self._parts(plan)
        figures = [(s.cost_ns, s.way is Way.LANES, any(n.closes for n in s.plan.nodes())) for s in parts]
        if len(parts) < 2 or not pays(figures, self.workers):
            return ()
        instants, made = False, []
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            made.append(replace(part, name=f"state{number}", final=last, instants=instants))
            instants = instants or made_at_instants(part.plan, self.waits)
        return tuple(made)

    def _parts(self, plan: LogicalPlan) -> list[Stage]:
        """The plan cut so that, from the lowest on, as many operators as possible share a key and run in lanes."""
        whole = self._routed("", plan)
        if whole.way is Way.LANES:
            return [whole]
        found = cuts(plan, self.waits)
        for cut in reversed(found):
            below = self._routed("", cut.below)
            if below.way is Way.LANES:
                return [below, *self._parts(cut.above)]
        for cut in found:
            above = self._parts(cut.above)
            if any(s.way is Way.LANES for s in above):
                return [self._routed("", cut.below), *above]
        return [whole]

    def _keys(self, plan: LogicalPlan) -> tuple[tuple[Expr, ...], ...]:
        """The key all its operators have in common, over the columns of each leaf, by port; none when there is none."""
        components = common_components(plan)
        if not components:
            return ()
        found: dict[int, tuple[Expr, ...]] = {}
        for edge in boundaries(plan):
            down = at_leaf(edge, [c[id(edge)] for c in components])
            if down is None or found.setdefault(id(down[0]), down[1]) != down[1]:
                return ()
            if not all(self.routable(down[0].schema, e) for e in down[1]):
                return ()
        leaves = self._stage("", plan, Way.LOOP, "").leaves
        return tuple(found[id(n)] for n in leaves) if all(id(n) in found for n in leaves) else ()


def _lane_parts(plan: LogicalPlan) -> dict[str, tuple[int, ...]]:
    """`Stage.lane_parts` of a plan that runs in lanes."""
    tracer, lanes = Tracer(stateless_prefix(plan)), common_components(plan)
    return {n.identity: lane_parts(n, tracer, lanes) for n in plan.nodes() if n.keeps_state}


def lane_count(workers: int) -> int:
    """How many lanes a routed stage has: a power of two."""
    return min(MOST_LANES, 1 << max(1, (LANES_A_WORKER * workers - 1).bit_length()))


def row_cost_ns(plan: LogicalPlan) -> int:
    """About how long a row of the leaves keeps the operators with state busy."""
    return sum(node.cost_ns for node in plan.nodes())


def calls_in(nodes: Sequence[LogicalNode]) -> int:
    """How many functions and casts these operators compute."""
    return sum(isinstance(x, Call | Cast) for n in nodes for e, _ in n.expressions() for x in walk(e))
