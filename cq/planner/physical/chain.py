"""Chain: where a plan with state can be cut into stages that run one after the other, each with its own key.

A cut is made above operators through which everything above gets its rows. Rows cross it in order, renumbered, and
carry the watermark under which the operators above must see them; so those operators run as if in the same loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.planner.operators.pruning import prune
from cq.planner.physical.branches import readers_of
from cq.planner.physical.crossing_rows import in_one_schema, same_turns
from cq.planner.physical.stage_input import StageInput
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.node import LogicalNode, topological
from cq.records import dataclass, replace

# Splitting a ticket into lanes and merging their rows takes about this long per row (figures: choose.py, ROW_BY_ROW).
ROUTING_NS = 30
# By its costs, which are known within a factor, a chain must be this much faster than one loop.
GAIN = 1.25
# Rows of a window for each of its results: how much less often the stages after a window work. A guess, in the absence
# of statistics; with fewer rows per group, panes of several workers do not pay either (engine/ways/partial.py).
ROWS_A_RESULT = 8


@dataclass(frozen=True, slots=True)
class Cut:
    """A plan in two: `below` has one output, whose rows are the only leaf of `above`; see `in_one_schema`."""

    below: LogicalPlan
    above: LogicalPlan


def cuts(plan: LogicalPlan, waits: bool) -> list[Cut]:
    """The cuts of a plan between operators with state, lowest first."""
    nodes = plan.nodes()
    shown = {id(o.node) for o in plan.outputs}
    found = []
    for node in nodes:
        read_by_state = any(r.keeps_state and any(i is node for i in r.inputs) for r in nodes)
        if read_by_state and id(node) not in shown and _keeps_state(node):
            cut = cut_at(plan, (node,), waits)
            found += [cut] if cut is not None else []
    return found


def cut_at(plan: LogicalPlan, edges: Sequence[LogicalNode], waits: bool) -> Cut | None:
    """The plan cut above these operators; None if that would change its results, or their order."""
    cut, stand_ins = crossing(plan, edges)
    hidden = any(_hides_groups(cut, edge, stand_in) for edge, stand_in in zip(edges, stand_ins, strict=True))
    if not _is_whole(cut) or _rows_meet_waiting(cut, waits) or hidden:
        return None
    return cut if same_turns(plan, edges) and _cross_in_turn(plan, edges, waits) else None


def crossing(plan: LogicalPlan, edges: Sequence[LogicalNode]) -> tuple[Cut, tuple[LogicalNode, ...]]:
    """The plan in two at these operators, and the stand-in for each of them above. Only columns read there cross."""
    inputs = {id(e): StageInput(e) for e in edges}
    above = prune(replaced(plan, inputs))
    # the rows of a leaf are those of an edge, or of a projection of one
    leaves = {
        id(n.node) if id(n.node) in inputs else id(n.node.inputs[0]): n
        for n in above.nodes()
        if isinstance(n, StageInput)
    }
    below, stand_ins = in_one_schema([leaves[id(e)].node for e in edges])
    above = replaced(above, {id(leaves[id(e)]): s for e, s in zip(edges, stand_ins, strict=True)})
    return Cut(LogicalPlan((Output("rows", below),)), above), stand_ins


def _cross_in_turn(plan: LogicalPlan, edges: Sequence[LogicalNode], waits: bool) -> bool:
    """Whether operators above the edges take their turns within an event in the order of the whole plan.

    There every row that crosses comes before those derived from it below, and all that cross at an instant come before
    those made above at that instant.
    """
    nodes = plan.nodes()
    place = {id(n): number for number, n in enumerate(nodes)}
    below = {id(n) for n in topological(edges)}
    readers = readers_of(plan)
    leads: set[int] = set()  # to an edge, within one event
    for node in reversed(nodes):
        ahead = [r for r in readers.get(id(node), ()) if id(r) in below and id(r) in leads and _passes(node, r)]
        if id(node) in below and (any(node is e for e in edges) or ahead):
            leads.add(id(node))
        behind = [r for r in readers.get(id(node), ()) if id(r) not in below]
        if any(node is e for e in edges) and any(place[id(x)] > place[id(r)] for x in behind for r in ahead):
            return False
    made = [place[id(e)] for e in edges if _made_by_themselves(LogicalPlan((Output("rows", e),)), waits)]
    own = [place[id(n)] for n in nodes if id(n) not in below and (n.emits_when_due(waits) or n.emits_at_end)]
    return min(own, default=len(nodes)) > max(made, default=-1)


def _passes(node: LogicalNode, reader: LogicalNode) -> bool:
    """Whether a row of the node may cause rows of its reader in the same event."""
    return any(i is node and not reader.holds_back(port) for port, i in enumerate(reader.inputs))


def _keeps_state(node: LogicalNode) -> bool:
    """Whether the operator, or one below it, has state."""
    return any(n.keeps_state for n in LogicalPlan((Output("rows", node),)).nodes())


def _is_whole(cut: Cut) -> bool:
    """Whether nothing above reads a source, or anything below the cut, by another path."""
    leaves = [n for n in cut.above.nodes() if not n.inputs]
    return len(leaves) == 1 and isinstance(leaves[0], StageInput)


def _hides_groups(cut: Cut, node: LogicalNode, stand_in: LogicalNode) -> bool:
    """Whether an error above the cut has to name the group of which a row of `node` is a result."""
    above = [n for n in cut.above.nodes() if n.can_fail and not n.keeps_state]
    return node.groups is not None and any(_treats_alone(n, stand_in) for n in above)


def _treats_alone(node: LogicalNode, stand_in: LogicalNode) -> bool:
    """Whether a row of the operator is computed from one row of `stand_in` alone, without state."""
    while node is not stand_in and not node.keeps_state and len(node.inputs) == 1:
        (node,) = node.inputs
    return node is stand_in


def _rows_meet_waiting(cut: Cut, waits: bool) -> bool:
    """Whether rows made at an instant below reach operators above in which rows wait for their own.

    In one loop such a row is processed at that instant; as a row of a batch it would come before it, and wait.
    """
    waiting = waits and any(t is not None for n in cut.above.nodes() for t in n.waits_on)
    return waiting and made_at_instants(cut.below, waits)


def made_at_instants(plan: LogicalPlan, waits: bool) -> bool:
    """Whether rows of the plan are caused by the watermark, not only by rows."""
    return any(n.emits_when_due(waits) for n in plan.nodes())


def _made_by_themselves(plan: LogicalPlan, waits: bool) -> bool:
    """Whether rows of the plan are caused by the watermark or by the end, not only by rows."""
    return made_at_instants(plan, waits) or any(n.emits_at_end for n in plan.nodes())


def pays(stages: Sequence[tuple[int, int, bool]], workers: int) -> bool:
    """Whether this many workers are faster with these stages than one worker with a single loop.

    stages: (cost per row, how many times ROUTING_NS it takes, whether few rows leave, as from windows) for each.
    """
    share, loop, work, slowest = 1.0, 0.0, 0.0, 0.0
    for cost_ns, routed, reduces in stages:
        loop += cost_ns * share
        work += (cost_ns + ROUTING_NS * routed) * share
        slowest = slowest if routed else max(slowest, cost_ns * share)
        share = share / ROWS_A_RESULT if reduces else share
    return max(slowest, work / workers) * GAIN <= loop


def replaced(plan: LogicalPlan, stand_ins: Mapping[int, LogicalNode]) -> LogicalPlan:
    """The plan with some nodes replaced, by id; nodes that only those read are gone."""
    made = dict(stand_ins)
    for node in plan.nodes():
        if id(node) not in made:
            inputs = [made[id(i)] for i in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            made[id(node)] = node if same else node.with_inputs(inputs)
    return LogicalPlan(tuple(replace(o, node=made[id(o.node)]) for o in plan.outputs))


def few_rows(plan: LogicalPlan) -> bool:
    """Whether its outputs have few rows compared with the leaves: results of windows."""
    few: set[int] = set()
    for node in plan.nodes():
        if node.closes or (node.inputs and all(id(i) in few for i in node.inputs)):
            few.add(id(node))
    return all(id(o.node) in few for o in plan.outputs)
