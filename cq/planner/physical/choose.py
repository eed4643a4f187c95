"""Choose the stages that run from a rewritten plan and a number of workers, and give a reason for every decision.

With one worker, or nothing to gain, the whole plan is one loop: queues between stages cost time and save none. With
    more: any worker     where no operator keeps state
    shared         joins of which one side is complete before the other begins: any worker looks rows up in it
    panes          groups that merge exactly, and the first rows of partitions: every worker fills panes of its own, a
                   second stage merges and closes them
    rows apart     a stateless part that makes many rows of one (UNNEST) and is slow, or feeds a slow part
    lanes          operators with state whose keys have a part in common, where a row costs more than routing it
    branches       of lanes, one for each key, where they have none in common
    a chain        of such stages, where an operator reads what others of another key make
    transactions   by all workers, in chains or by another scheme, where that is asked for and their rows are known from
                   events
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from cq.entries import refuse
from cq.lang.expressions import Call, Cast, Expr, walk
from cq.lang.schema import Schema
from cq.planner.physical.branches import Branch, grouped, takes_turns
from cq.planner.physical.chain import crossing, cut_at, cuts, few_rows, made_at_instants, pays, replaced
from cq.planner.physical.classify import (
    Component,
    Tracer,
    boundaries,
    common_components,
    lane_parts,
    stateless_prefix,
)
from cq.planner.physical.complete import complete_first
from cq.planner.physical.leaf_keys import LeafKey, leaf_key, one_key
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan, Stage, leaves_of
from cq.planner.physical.transactions import MEASURED_WORKERS, Natively, cost_of, transactions_of, why_serial
from cq.planner.physical.turns import gathered, ties_show
from cq.planner.plan.logical import LogicalPlan, Output, connected
from cq.planner.plan.node import LogicalNode, rows_may_wait
from cq.planner.plan.source import SourceDef, may_mix, sources_of
from cq.records import dataclass, replace
from cq.ways import WAY_OF_SCHEME, Sharing, Way

Routable = Callable[[Schema, Expr], bool]
"""Whether a kernel can tell a row's lane by this expression over these columns, from the row alone."""

# Splitting a ticket into lanes and merging their rows takes about 30 ns a row, which two workers must win back. At half
# the threshold running SUMs lose a third on two workers, at double the tolls of Linear Road stay on one.
ROUTED_FROM_NS = 45
# This many times that if rows of several inputs come row by row, by time, and each is its own segment. Measured with 2
# workers, CPU nanoseconds more a row than one loop, with every row from another input: 13 to 20 for an interval join,
# 24 for an ASOF join, 30 for a window join of ten bids an ask; for an interval join that shares none 55.
ROW_BY_ROW = 2

# From this many function calls before the state, handing rows to a second stage pays. Word count has one, SPLIT: split
# up, its two stages took 83 ms of CPU where one loop takes 57, and no less time on two workers.
CALLS_APART = 4

# From this many function calls per row, several workers share finding the first rows of all, which only compares most
# rows. CPU ns a row of two workers, separately and in one loop: without calls 1.3 and 1.1, with two 3.5 and 3.5 or 2.7
# and 2.5, with five 22 and 21. At half of this `WHERE price > 5` would be shared, and be no faster; at double filters
# by a text would stay with one worker, at 17 ns a row.
CALLS_COMPARED_APART = 2

NOTHING_IN_COMMON = "its operators have no common key that can be read from a row"
ONLY_COMPUTED = "the common key of its operators cannot be computed where rows are routed"
PASSED_BY = "a UNION ALL combines rows of a source and of operators with state, which belong to no lane"

WHY_TOGETHER = {
    Way.CHAINS: "transactions wait only for earlier ones that name the same rows",
    Way.LOCK: "each transaction queues for the rows it names, in the order of events",
    Way.LOCK_A: "each transaction locks the rows it names before the next one may",
    Way.MVLK: "each transaction waits for the versions it reads, in the order of events",
    Way.PAT: "each transaction queues for the partitions it touches, in the order of events",
    Way.NOLOCK: "UNCHECKED: transactions overwrite one another, and the result changes from run to run",
}
"""Why transactions run together, for `explain`."""


def unreasoned(ways: Iterable[Way]) -> Iterator[str]:
    """Ways of running transactions together that have no reason here."""
    yield from (f"way {way.name} has no reason" for way in ways if way not in WHY_TOGETHER)


refuse("reasons", unreasoned(WAY_OF_SCHEME.values()))

MOST_PARTS = 255  # of the key space, one per worker: the part of a row is noted in a byte
LANES_A_WORKER = 4  # so that lanes with different loads even out
MOST_LANES = 64  # per stage, for sixteen workers; each ticket has a record for every lane


@dataclass(frozen=True, slots=True)
class Decision:
    """How a plan with state runs as one stage, and why. branches: the keys it is routed by; none if it is not."""

    plan: LogicalPlan
    way: Way
    reason: str
    branches: tuple[Branch, ...] = ()


def choose(
    plan: LogicalPlan,
    workers: int,
    routable: Routable,
    natively: Natively | None = None,
    scheme: str = "auto",
    sharing: Sharing = Sharing(),  # noqa: B008  # frozen
) -> tuple[PhysicalPlan, ...]:
    """The physical plan of each connected part of the plan, for this many workers (0: inline, as one).

    scheme: how transactions should run, if they can.  natively: decides whether they can.
    sharing: how workers share those that run together.
    """
    asked = max(workers, 1)
    return tuple(_Choice(p, asked, routable, natively, scheme, sharing).made() for p in connected(plan))


class _Choice:
    """The decisions for one connected part."""

    def __init__(
        self,
        plan: LogicalPlan,
        workers: int,
        routable: Routable,
        natively: Natively | None,
        scheme: str,
        sharing: Sharing,
    ) -> None:
        self.plan = plan
        self.nodes = plan.nodes()
        self.workers = workers
        self.routable = routable
        self.natively = natively
        self.scheme = scheme
        self.sharing = sharing
        self.waits = rows_may_wait(self.nodes)
        self.no_lanes: set[tuple[str, ...]] = set()  # operators above a cut, none of which can run in lanes
        self.prefix = stateless_prefix(plan)

    def made(self) -> PhysicalPlan:
        stages = self._stages()
        spread = any(s.way is not Way.LOOP for s in stages)
        return PhysicalPlan(self.plan, stages, self.workers if spread else min(self.workers, len(stages)))

    def _stages(self) -> tuple[Stage, ...]:
        stages = self._stages_by_ticket()
        if self.natively is None or not transactions_of(self.plan):
            return stages
        if self.scheme == "auto" and self.workers > 1:
            return self._cheaper(stages, self.natively)
        way = WAY_OF_SCHEME.get(self.scheme)
        if way is None:
            return stages
        shared = self._stages_by_transaction(way, self.natively)
        if isinstance(shared, str):
            return _one_by_one(stages, f"{_refused(way, self.scheme)}: {shared}")
        return shared

    def _cheaper(self, serial: tuple[Stage, ...], natively: Natively) -> tuple[Stage, ...]:
        """Transactions in chains if this many workers are faster than one that processes them one after the other."""
        shared = self._stages_by_transaction(Way.CHAINS, natively)
        if isinstance(shared, str):
            return _one_by_one(serial, f"{_refused(Way.CHAINS, self.scheme)}: {shared}")
        cost = cost_of(transactions_of(self.plan))
        told = (
            f"an event takes about {cost.serial_ns} ns one after the other, {cost.chained_ns} of all workers in chains"
        )
        guess = " (extrapolated from two)" if max(self.workers, cost.pays_from) > MEASURED_WORKERS else ""
        if self.workers < cost.pays_from:
            return _one_by_one(serial, f"{told}, which pays from {cost.pays_from} workers{guess}")
        told = f"{told}, which {self.workers} workers share{guess}"
        return tuple(replace(s, reason=told) if s.way is Way.CHAINS else s for s in shared)

    def _stages_by_transaction(self, way: Way, natively: Natively) -> tuple[Stage, ...] | str:
        """Transactions by all workers, after a stage that turns rows into their events; or why that is impossible."""
        found = transactions_of(self.plan)
        (event, *others) = {id(n.input): n.input for n in found}.values()
        if others:
            return "triggers have events of their own, or those of one are rows of another"
        reason = why_serial(found, natively)
        if reason is not None:
            return reason
        if gathered(self.plan, self.waits) or any(s.strict for s in sources_of(self.nodes)):
            return "the rows of the query need one worker"
        below = [n for n in self.nodes if id(n) in self.prefix]
        shown = {id(o.node) for o in self.plan.outputs}
        if boundaries(self.plan) != (event,) or any(id(n) in shown for n in below):
            return "what fires the triggers is read elsewhere, too, or made by operators with state"
        why = WHY_TOGETHER[way]
        if below == [event]:
            return (self._stage("transactions", self.plan, way, why),)
        cut, _ = crossing(self.plan, (event,))
        made, why_rows = Way.ANY, "the events of transactions are made by any worker"
        if self.workers == 1:
            made, why_rows = Way.LOOP, "one worker: the order is never lost"
        rows = self._stage("rows", cut.below, made, why_rows, final=False)
        return (rows, self._stage("transactions", cut.above, way, why))

    def _stages_by_ticket(self) -> tuple[Stage, ...]:
        """The stages whose workers share tickets, or the rows of each; transactions run one after the other."""
        if self.workers == 1:
            return (self._query(Way.LOOP, "one worker: a single loop needs no queues"),)
        if gathered(self.plan, self.waits):
            return (self._query(Way.LOOP, "rows of one event meet: one worker sees them all"),)
        if any(s.strict for s in sources_of(self.nodes)):
            return (self._query(Way.LOOP, "late = 'fail': the first late row ends all"),)
        if len(self.prefix) == len(self.nodes):
            return (self._query(Way.ANY, "no operator keeps state"),)
        windows = self._mergeable()
        if windows and self._only_compared(windows):
            return (self._query(Way.LOOP, "most rows are only compared with the last one kept: one worker does it"),)
        if windows:
            return self._partial(windows)
        complete = complete_first(self.plan)
        if complete:
            return (replace(self._query(Way.SHARED, shared_reason(complete)), complete=complete),)
        return self._rows_apart() or self._with_state(self.plan, "query")

    def _query(self, way: Way, reason: str) -> Stage:
        return self._stage("query", self.plan, way, reason)

    def _stage(
        self, name: str, plan: LogicalPlan, way: Way, reason: str, branches: tuple[Branch, ...] = (),
        final: bool = True, collects: bool = False, instants: bool = False,
    ) -> Stage:  # fmt: skip
        lanes = lane_count(self.workers, len(branches)) if branches else 0
        # a plan that has to gather is one stage; in a part of another, rows would come one by one, as in the whole
        gathers = gathered(plan, self.waits) if plan is self.plan else ()
        mixed = may_mix(sources_of(plan.nodes())) and not (way.traits.hands_over or way.traits.together)
        return Stage(
            name=name, plan=plan, way=way, reason=reason, cost_ns=row_cost_ns(plan), waits=self.waits, mixed=mixed,
            branches=branches, lanes=lanes, by_key=None, complete=(), gathered=gathers, final=final, collects=collects,
            instants=instants, sharing=self.sharing if way.traits.together else None,
        )  # fmt: skip

    # -- groups filled by every worker --------------------------------------------------------------------------------

    def _mergeable(self) -> tuple[LogicalNode, ...]:
        """The groups, of windows or of the whole input, that may run on partial panes: they hold all state of the plan,
        they alone read stateless rows, and their aggregates merge exactly. None when one of them may not: rows would be
        routed anyway."""
        if any(id(o.node) in self.prefix for o in self.plan.outputs):
            return ()
        found: list[LogicalNode] = []
        for node in self.nodes:
            stateless_inputs = [id(i) in self.prefix for i in node.inputs]
            if not node.keeps_state:
                if id(node) not in self.prefix and any(stateless_inputs):
                    return ()  # UNION ALL of windows and rows
                continue
            grouped = node.closes or node.emits_at_end
            if not (grouped and node.merges_exactly and node.merge_pays and all(stateless_inputs)):
                return ()
            found.append(node)
        return tuple(found)

    def _only_compared(self, windows: Sequence[LogicalNode]) -> bool:
        """Whether handing a row over costs more than processing most of them: there is one partition that keeps its
        first rows, and little is computed before."""
        if not all(w.may_drop and not any(w.input_keys or ()) for w in windows):
            return False
        below = [n for n in self.nodes if id(n) in self.prefix]
        return calls_in([*below, *windows]) < CALLS_COMPARED_APART

    def _partial(self, windows: Sequence[LogicalNode]) -> tuple[Stage, ...]:
        below = LogicalPlan(tuple(Output(f"panes{n}", w) for n, w in enumerate(windows)))
        given = {id(i): StageInput(i) for w in windows for i in w.inputs}
        above = replaced(self.plan, {id(w): w.with_inputs([given[id(i)] for i in w.inputs]) for w in windows})
        filled = "state merges exactly: each worker fills its own panes if groups have enough rows, "
        panes = self._stage("panes", below, Way.PARTIAL, f"{filled}else one", final=False)
        by_key = None
        if self.workers <= MOST_PARTS and all(w.closes_one_pane for w in windows):
            by_key = self._part_key(panes.plan)
        if by_key is not None:
            panes = replace(
                panes, by_key=by_key, reason=f"{filled}a part of the keys if there are many groups, else one"
            )
        name, merged = "windows", "panes of all workers are merged and closed"
        if not any(w.closes for w in windows):
            name, merged = "groups", "the state of all workers is merged at the end"
        return (
            panes,
            self._stage(name, above, Way.LOOP, merged, collects=True),
        )

    def _part_key(self, plan: LogicalPlan) -> Branch | None:
        """The key by which all groups of a row are in one part; None if a row does not show all of it, since parts by
        the rest could have very different sizes, and None if groups have two keys."""
        branch = self._branch(plan, plan.nodes(), common_components(plan))
        if branch is None or None in branch.keys:
            return None
        keys = {n.identity: n.input_keys[0] for n in plan.nodes() if n.keeps_state and n.input_keys}
        return branch if all(len(branch.parts[w]) == len(key) for w, key in keys.items()) else None

    # -- rows made by any worker --------------------------------------------------------------------------------------

    def _rows_apart(self) -> tuple[Stage, ...]:
        """Two stages if the stateless part makes many rows of one, has a single exit, and one of the two is slow."""
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
        cut, _ = crossing(self.plan, (edge,))
        rows = self._stage("rows", cut.below, Way.ANY, "one row becomes many: any worker makes them", final=False)
        return (rows, *self._with_state(cut.above, "state"))

    # -- lanes --------------------------------------------------------------------------------------------------------

    def _with_state(self, plan: LogicalPlan, name: str) -> tuple[Stage, ...]:
        """A plan with some stateful operators: lanes by what their keys have in common; if that is nothing, branches
        and a chain of stages, each with its own key, or one loop if that is about as fast."""
        whole = self._as_one_stage(plan)
        parts = self._parts(whole)
        if whole.way is Way.LANES or not any(p.branches for p in parts):
            return self._in_a_row([whole], name)
        figures = [(row_cost_ns(p.plan), len(p.branches) * routing_factor(p.plan), few_rows(p.plan)) for p in parts]
        if pays(figures, self.workers):
            return self._in_a_row(parts, name)
        told = f"{NOTHING_IN_COMMON}; routing by each would gain too little"
        return self._in_a_row([replace(whole, reason=told) if whole.reason == NOTHING_IN_COMMON else whole], name)

    def _as_one_stage(self, plan: LogicalPlan) -> Decision:
        """How a plan with state runs as one stage, why, and by which keys of its leaves it is routed, if at all."""
        cost = row_cost_ns(plan)
        if cost < routed_from_ns(plan):
            return Decision(plan, Way.LOOP, f"a row costs {cost} ns, and routing pays from {routing_pays_from(plan)}")
        if ties_show(plan, self.waits):
            return Decision(plan, Way.LOOP, "groups begun at one closing time keep their order of arrival")
        common = common_components(plan)
        branch = self._branch(plan, plan.nodes(), common)
        if branch is None and common:
            return Decision(plan, Way.LOOP, ONLY_COMPUTED)
        if branch is None or None in branch.keys:
            return Decision(plan, Way.LOOP, PASSED_BY if _pass_by(plan) else NOTHING_IN_COMMON)
        return Decision(plan, Way.LANES, reason_of((branch,), plan), (branch,))

    def _in_a_row(self, parts: Sequence[Decision], name: str) -> tuple[Stage, ...]:
        """Stages one after the other, in running order."""
        instants, made = False, []
        for number, part in enumerate(parts, 1):
            mine = name if len(parts) == 1 else f"state{number}"
            last = number == len(parts)
            how = (mine, part.plan, part.way, part.reason, part.branches)
            made.append(self._stage(*how, final=last, instants=instants))
            instants = instants or made_at_instants(part.plan, self.waits)
        return tuple(made)

    def _parts(self, whole: Decision) -> list[Decision]:
        """The plan cut so that, starting from the lowest, as many operators as possible share a key and run in lanes.

        whole: how it runs as one stage.
        """
        if whole.way is Way.LANES:
            return [whole]
        found = cuts(whole.plan, self.waits)
        for cut in reversed(found):
            below = self._as_one_stage(cut.below)
            if below.way is Way.LANES:
                return [below, *self._parts(self._as_one_stage(cut.above))]
        branched = self._branched(whole.plan)
        if branched:
            return branched
        for cut in found:
            operators = tuple(n.identity for n in cut.above.nodes() if n.keeps_state)
            if operators not in self.no_lanes:
                above = self._parts(self._as_one_stage(cut.above))
                if any(p.way is Way.LANES for p in above):
                    return [self._as_one_stage(cut.below), *above]
                self.no_lanes.add(operators)
        return [whole]

    def _branched(self, plan: LogicalPlan) -> list[Decision]:
        """The operators that share no key in branches of one stage, and the stages above it; none if that is
        impossible."""
        groups = grouped(plan)
        if groups is None:
            return []
        below, above = plan, None
        if groups.above:
            shown = {id(o.node): o.node for o in plan.outputs if id(o.node) in groups.of}
            edges = {id(n): n for n in groups.edges} | shown
            cut = cut_at(plan, [n for n in plan.nodes() if id(n) in edges], self.waits)
            if cut is None:
                return []
            below, above = cut.below, cut.above
        if ties_show(below, self.waits) or not takes_turns(below):
            return []
        branches = tuple(self._branch(below, g.nodes, g.common) for g in groups.groups)
        found = tuple(b for b in branches if b is not None)
        if len(found) < len(branches):
            return []
        if len(found) == 1 and row_cost_ns(below) < routed_from_ns(below):
            return []
        lanes = Decision(below, Way.LANES, reason_of(found, below), found)
        return [lanes] if above is None else [lanes, *self._parts(self._as_one_stage(above))]

    def _branch(
        self, plan: LogicalPlan, nodes: Sequence[LogicalNode], components: Sequence[Component]
    ) -> Branch | None:
        """These operators of a plan in their own lanes, by the parts of their common key that a row shows; None if it
        shows none."""
        prefix = stateless_prefix(plan)
        read = {id(i) for n in nodes if id(n) not in prefix for i in n.inputs}
        edges = [e for e in boundaries(plan) if id(e) in read]
        components = [c for c in components if all(self._shown(e, c[id(e)]) for e in edges)]
        if not components:
            return None
        found: dict[int, list[LeafKey]] = {}
        for edge in edges:
            down = leaf_key(edge, [c[id(edge)] for c in components])
            assert down is not None, "a key of which every part is shown"
            found.setdefault(id(down.leaf), []).append(down)
        keys = [one_key(found[id(n)]) if id(n) in found else None for n in leaves_of(plan)]
        if any(not k for k in keys if k is not None):
            return None
        tracer, states = Tracer(prefix), [n for n in nodes if n.keeps_state]
        return Branch(tuple(keys), {n.identity: lane_parts(n, tracer, components) for n in states})

    def _shown(self, edge: LogicalNode, part: Expr) -> bool:
        """Whether a row of the leaf below `edge` shows what this part of a key of it is."""
        down = leaf_key(edge, [part])
        return down is not None and all(self.routable(down.leaf.schema, e) for e in down.key)


def _one_by_one(stages: Sequence[Stage], reason: str) -> tuple[Stage, ...]:
    """The stages, with the reason for those that run transactions."""
    return tuple(replace(s, reason=reason) if transactions_of(s.plan) else s for s in stages)


def _refused(way: Way, scheme: str) -> str:
    """What is impossible, for people."""
    return "no chains of transactions" if way is Way.CHAINS else f"no '{scheme}' of transactions"


def routed_from_ns(plan: LogicalPlan) -> int:
    """The cost of a row of the leaves from which routing pays."""
    return ROUTED_FROM_NS * routing_factor(plan)


def routing_factor(plan: LogicalPlan) -> int:
    """How many times more expensive routing is than for rows of one input."""
    sources = sources_of(plan.nodes())
    timed = sum(s.event_time is not None for s in sources)
    return ROW_BY_ROW if timed > 1 and not may_mix(sources) else 1


def routing_pays_from(plan: LogicalPlan) -> str:
    """The row cost from which routing pays, for people, and why it is more than for rows of one input."""
    told = f"{routed_from_ns(plan)}"
    return told if routing_factor(plan) == 1 else f"{told}, as rows of its inputs come one by one"


def reason_of(branches: Sequence[Branch], plan: LogicalPlan) -> str:
    """Why a stage runs in lanes, for people."""
    if len(branches) == 1:
        return f"a row costs {row_cost_ns(plan)} ns: routing it pays from {routing_pays_from(plan)}"
    return f"its operators have {len(branches)} keys: a row goes to a lane of each"


def shared_reason(complete: Sequence[SourceDef]) -> str:
    """Why a stage is shared once these sources have ended, for people."""
    names = ", ".join(s.name for s in complete)
    return f"every row of {names} comes before the rest: any worker then looks up its rows, and nothing is kept"


def lane_count(workers: int, branches: int) -> int:
    """How many lanes a routed stage has: for each branch a power of two."""
    each = 1 << max(1, (LANES_A_WORKER * workers - 1).bit_length())
    most = 1 << ((MOST_LANES // branches).bit_length() - 1)
    return branches * min(most, each)


def _pass_by(plan: LogicalPlan) -> bool:
    """Whether rows of a source reach an output, but no stateful operator, through one."""
    read = {id(i) for n in plan.nodes() if n.keeps_state for i in n.inputs}
    return any(id(edge) not in read for edge in boundaries(plan))


def row_cost_ns(plan: LogicalPlan) -> int:
    """About how long a row of the leaves keeps the operators with state busy."""
    return sum(node.cost_ns for node in plan.nodes())


def calls_in(nodes: Sequence[LogicalNode]) -> int:
    """How many functions and casts these operators compute."""
    return sum(isinstance(x, Call | Cast) for n in nodes for e, _ in n.expressions() for x in walk(e))
