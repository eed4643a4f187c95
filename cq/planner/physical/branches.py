"""Branches: operators of one stage that have no key in common, each group in its own lanes.

A row goes to one lane of every branch that reads it. The outputs of all lanes are merged by position, so a stage with
branches has the same outputs as one loop. An operator that reads several branches, or has a key that its branch lacks,
runs in the next stage: there the rows of the operators below come in one schema (`crossing_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cq.lang.expressions import Expr
from cq.planner.physical.classify import Component, Tracer, joined, node_components, stateless_prefix
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, field

# If only one branch emits a row for each event, there are events times branches places for rows. flow/merged_lanes.py
# scatters rows into order while that is at most WIDEST_SCATTER times the rows; with more branches it would merge the
# lanes, which takes longer.
MOST_BRANCHES = 4


@dataclass(frozen=True, slots=True)
class Branch:
    """Operators with state that share a key.

    keys: the key over the rows of each leaf, by port; None if they read none of them.
    parts: its operators with state, by identity, and which parts of their own key, by number, form that key.
    """

    keys: tuple[tuple[Expr, ...] | None, ...]
    parts: Mapping[str, tuple[int, ...]]

    @property
    def all_keys(self) -> tuple[tuple[Expr, ...], ...]:
        """The keys of the leaves it reads."""
        return tuple(k for k in self.keys if k is not None)


@dataclass(slots=True)
class BranchCandidate:
    """Operators with state that could form a branch, in plan order, and what their keys have in common."""

    common: list[Component]
    nodes: list[LogicalNode] = field(default_factory=list)


@dataclass(slots=True)
class BranchPlan:
    """The operators of a plan that can run in branches, and those above them that cannot.

    of: id(node) -> the groups whose rows it sees, for operators in the stage; a stateless one may see several.
    """

    groups: list[BranchCandidate]
    above: list[LogicalNode]
    of: dict[int, set[int]]

    @property
    def edges(self) -> tuple[LogicalNode, ...]:
        """The operators whose rows are read above, in plan order."""
        read = {id(i): i for n in self.above for i in n.inputs if id(i) in self.of}
        return tuple(read.values())


def grouped(plan: LogicalPlan) -> BranchPlan | None:
    """The operators with state by key, each with those below it; None if they cannot be branches of one stage."""
    prefix = stateless_prefix(plan)
    tracer = Tracer(prefix)
    found = BranchPlan([], [], {})
    for node in plan.nodes():
        if id(node) in prefix:
            continue
        inside = [i for i in node.inputs if id(i) not in prefix]
        if any(id(i) not in found.of for i in inside):
            found.above.append(node)
        elif not node.keeps_state:
            if len(inside) < len(node.inputs):
                return None  # a union of rows with and without state: the latter would belong to no lane
            found.of[id(node)] = {n for i in inside for n in found.of[id(i)]}
        elif not _place(node, {n for i in inside for n in found.of[id(i)]}, node_components(node, tracer), found):
            found.above.append(node)
    if any(id(i) in prefix for n in found.above for i in n.inputs):
        return None  # rows of a source that are also read above
    if any(id(o.node) in prefix for o in plan.outputs) or not _reach_every_row(found, prefix):
        return None
    return _numbered(found)


def _place(node: LogicalNode, below: set[int], own: list[Component], found: BranchPlan) -> bool:
    """Whether an operator with state shares a part of its key with everything it reads; if so, add it to that
    branch."""
    if not below:
        sharing = [n for n, g in enumerate(found.groups) if g.nodes and joined(g.common, own)]
        below = set(sharing[:1])
        if not below and own and sum(bool(g.nodes) for g in found.groups) < MOST_BRANCHES:
            found.groups.append(BranchCandidate(own))
            below = {len(found.groups) - 1}
    common = own
    for number in sorted(below):
        common = joined(found.groups[number].common, common)
    if not below or not common:
        return False
    first, *others = sorted(below)
    home = found.groups[first]
    home.common = common
    for number in others:
        home.nodes += found.groups[number].nodes
        found.groups[number].nodes = []
    home.nodes.append(node)
    found.of = {key: {first if n in below else n for n in at} for key, at in found.of.items()}
    found.of[id(node)] = {first}
    return True


def _reach_every_row(found: BranchPlan, prefix: set[int]) -> bool:
    """Whether the key of each group can be computed for all rows its operators read."""
    for group in found.groups:
        read = {id(i) for n in group.nodes for i in n.inputs if id(i) in prefix}
        group.common = [c for c in group.common if read <= c.keys()]
        if group.nodes and not group.common:
            return False
    return True


def _numbered(found: BranchPlan) -> BranchPlan | None:
    """The remaining groups, numbered from 0 in plan order; None when there are none."""
    kept = [n for n, g in enumerate(found.groups) if g.nodes]
    number = {old: new for new, old in enumerate(kept)}
    of = {key: {number[n] for n in at} for key, at in found.of.items()}
    return BranchPlan([found.groups[n] for n in kept], found.above, of) if kept else None


def takes_turns(plan: LogicalPlan) -> bool:
    """Whether a row of a leaf reaches every operator with state, and its direct readers, at most once.

    In one loop a row travels depth first; in the lanes of branches its results are put into the order of these turns.
    """
    count = turns(plan)
    return all(count[id(n)] <= 1 or not n.inputs or n.fan_out == 1 for n in plan.nodes() if id(n) in count)


def turns(plan: LogicalPlan) -> dict[int, int]:
    """turns: id(node) -> how often a row of it reaches operators after the stateless prefix, for those of the
    prefix."""
    prefix, readers = stateless_prefix(plan), readers_of(plan)
    found: dict[int, int] = {}
    for node in reversed(plan.nodes()):
        if id(node) in prefix:
            found[id(node)] = sum(found.get(id(r), 1) for r in readers.get(id(node), ()))
    return found


def readers_of(plan: LogicalPlan) -> dict[int, list[LogicalNode]]:
    """readers_of: id(node) -> the nodes that read its rows, once for each input, in plan order."""
    found: dict[int, list[LogicalNode]] = {}
    for node in plan.nodes():
        for source in node.inputs:
            found.setdefault(id(source), []).append(node)
    return found


def sees(plan: LogicalPlan, branches: Iterable[Branch]) -> dict[int, frozenset[int]]:
    """sees: id(node) -> the numbers of the branches in whose lanes it sees rows."""
    mine = {identity: number for number, b in enumerate(branches) for identity in b.parts}
    prefix, found = stateless_prefix(plan), dict[int, frozenset[int]]()
    for node in plan.nodes():
        if node.keeps_state:
            found[id(node)] = frozenset({mine[node.identity]})
        elif id(node) not in prefix:
            found[id(node)] = frozenset(n for i in node.inputs for n in found[id(i)])
    readers = readers_of(plan)
    for node in reversed(plan.nodes()):
        if id(node) in prefix:
            found[id(node)] = frozenset(n for r in readers.get(id(node), ()) for n in found[id(r)])
    return found
