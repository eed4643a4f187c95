"""Classify: how each operator may be spread over workers, and by which key, as far down as the key can be followed.

Keys are given over the rows the operator reads and, if they are only passed on or computed without state below, over
the rows of the last stateless operators before any state (the boundary): that is where a stage can route by them.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr, columns_of, walk
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, OpClass
from cq.records import dataclass, field

Component = dict[int, Expr]
"""One part of a key: id(boundary node) -> its expression over that node's rows."""


@dataclass(frozen=True, slots=True)
class Classified:
    """A node's class, and its key over each of its inputs (none for a class without keys).

    mergeable: an aggregate whose partial results may be computed separately and merged, exactly.
    """

    op_class: OpClass
    keys: tuple[tuple[Expr, ...], ...] = ()
    mergeable: bool = False


def classify(plan: LogicalPlan) -> dict[int, Classified]:
    """The class of every node, by id(node)."""
    return {id(n): classified(n) for n in plan.nodes()}


def classified(node: LogicalNode) -> Classified:
    """The class of one node. A partitioned operator without a key has one partition: it is stateful."""
    keys = node.input_keys
    if keys is None:
        return Classified(node.op_class)
    op_class = OpClass.PARTITIONED if node.op_class is OpClass.PARTITIONED and all(keys) else OpClass.STATEFUL
    return Classified(op_class, keys if op_class is OpClass.PARTITIONED else (), node.merges_exactly)


def boundaries(plan: LogicalPlan) -> tuple[LogicalNode, ...]:
    """The last stateless nodes before any state: those that an operator with state reads, inputs first."""
    stateless = stateless_prefix(plan)
    nodes = plan.nodes()
    read = {id(i) for n in nodes if id(n) not in stateless for i in n.inputs}
    return tuple(n for n in nodes if id(n) in stateless and id(n) in read)


def stateless_prefix(plan: LogicalPlan) -> set[int]:
    """The nodes, by id, that are stateless and have only stateless nodes below."""
    prefix: set[int] = set()
    for n in plan.nodes():
        if not n.keeps_state and all(id(i) in prefix for i in n.inputs):
            prefix.add(id(n))
    return prefix


MAX_TRACED = 200  # nodes of an expression: a longer one is not worth computing as a key for every row


@dataclass(frozen=True, slots=True)
class Tracer:
    """Follows expressions down to the stateless prefix. known: answers so far, so that shared nodes are followed
    once."""

    prefix: set[int]
    known: dict[tuple[int, Expr], Component | None] = field(default_factory=dict)

    def trace(self, node: LogicalNode, expr: Expr) -> Component | None:
        """`expr`, over the rows of `node`, rewritten over the boundary nodes below; None if state computes it.

        A union or a join leads to several boundary nodes: the same value has one expression in each.
        """
        if id(node) in self.prefix:
            return {id(node): expr}
        if (id(node), expr) not in self.known:
            small = sum(1 for _ in walk(expr)) <= MAX_TRACED
            self.known[id(node), expr] = self._step(node, expr) if small else None
        return self.known[id(node), expr]

    def _step(self, node: LogicalNode, expr: Expr) -> Component | None:
        pulled = node.pull(expr)
        return None if pulled is None else _merged([self.trace(node.inputs[port], e) for port, e in pulled])


def _merged(parts: list[Component | None]) -> Component | None:
    """The component that all parts agree on; None if two of them disagree."""
    out: Component = {}
    for part in parts:
        if part is None:
            return None
        for at, expr in part.items():
            if out.setdefault(at, expr) != expr:
                return None
    return out


def node_components(node: LogicalNode, tracer: Tracer) -> list[Component]:
    """The parts of a node's key that can be followed down every input."""
    keys = node.input_keys
    if not keys or not all(keys):
        return []
    out = []
    for part in zip(*keys, strict=True):
        if any(not columns_of(e) for e in part):
            continue
        traced = _merged([tracer.trace(i, e) for i, e in zip(node.inputs, part, strict=True)])
        if traced is not None:
            out.append(traced)
    return out


def joined(some: list[Component], others: list[Component]) -> list[Component]:
    """The parts of a key that are in both lists, each followed through either."""
    both = [_merged([a, b]) for a in some for b in others if a.keys() & b.keys()]
    return [c for c in both if c is not None]


def lane_parts(node: LogicalNode, tracer: Tracer, lanes: Sequence[Component]) -> tuple[int, ...]:
    """For each part of the lanes' key, the number of the part of the node's own key that has the same value."""
    keys = node.input_keys
    assert keys is not None, "an operator without state has no key"
    found = []
    for component in lanes:
        for number, part in enumerate(zip(*keys, strict=True)):
            traced = _merged([tracer.trace(i, e) for i, e in zip(node.inputs, part, strict=True)])
            if traced and traced.keys() & component.keys() and _merged([traced, component]) is not None:
                found.append(number)
                break
    assert len(found) == len(lanes), "a key of lanes that an operator in them does not have"
    return tuple(found)


def common_components(plan: LogicalPlan) -> list[Component]:
    """The parts of a key that every operator with state has, in the first one's order: what a whole plan may be
    partitioned by. Empty when there is none, or when some operator has no key."""
    tracer = Tracer(stateless_prefix(plan))
    common: list[Component] | None = None
    for node in plan.nodes():
        if not node.keeps_state:
            continue
        mine = node_components(node, tracer)
        if common is None:
            common = mine
            continue
        common = joined(common, mine)
    wanted = {id(b) for b in boundaries(plan)}
    return [c for c in common or [] if wanted <= c.keys()]
