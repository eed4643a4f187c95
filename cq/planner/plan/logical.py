"""The logical plan: what a query means, as a graph of frozen, typed nodes.

Sub-plans may be shared (a view used twice is one node), so a plan is walked as a graph, each node once: `nodes()`
returns them inputs first. There are no names below this point, only positions; names in nodes are for people and for
the columns of results.

All order is by position (serial of the source row, instant, ordinal): one event, a row or an instant, goes through the
whole graph, inputs first, before the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import NOWHERE, Span
from cq.lang.expressions import Expr
from cq.planner.plan.node import LogicalNode, topological
from cq.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the query: rows of `node` under `name`, written to `sink` or, without one, handed to the caller."""

    name: str
    node: LogicalNode
    sink: SinkDef | None = None
    limit: int | None = None  # the first rows by position
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SinkDef:
    """A declared sink: connector options as written, checked by the connector when the job is built."""

    name: str
    options: tuple[tuple[str, str], ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """All outputs of a file; they may share nodes."""

    outputs: tuple[Output, ...]

    def nodes(self) -> tuple[LogicalNode, ...]:
        """Every node once, inputs before their readers, in the order in which one event visits them."""
        return topological(o.node for o in self.outputs)

    def equals(self, other: LogicalPlan) -> bool:
        """The same as `==`, in time linear in the nodes: `==` compares a shared node once per path to it."""
        pairs = tuple(zip(self.nodes(), other.nodes(), strict=False))
        ours: dict[int, LogicalNode] = {}  # by nodes of the other plan
        for own, node in pairs:
            if any(id(i) not in ours for i in node.inputs) or own != node.with_inputs(
                [ours[id(i)] for i in node.inputs]
            ):
                return False
            ours[id(node)] = own
        outputs = [o if id(o.node) not in ours else replace(o, node=ours[id(o.node)]) for o in other.outputs]
        return self.outputs == tuple(outputs)

    def map(self, change: Callable[[LogicalNode], LogicalNode]) -> LogicalPlan:
        """The plan rebuilt inputs first with `change` applied once to every node; sharing is kept."""
        done: dict[int, LogicalNode] = {}
        for node in self.nodes():
            inputs = [done[id(i)] for i in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            done[id(node)] = change(node if same else node.with_inputs(inputs))
        return LogicalPlan(tuple(replace(o, node=done[id(o.node)]) for o in self.outputs))


def parts(plan: LogicalPlan) -> tuple[tuple[LogicalNode, ...], ...]:
    """The nodes of the plan in visiting order, split into parts that read no source in common, directly or not."""
    part_of: dict[object, object] = {}

    def root(item: object) -> object:
        while part_of.setdefault(item, item) != item:
            item = part_of[item]
        return item

    nodes = plan.nodes()
    for node in nodes:
        below: list[object] = [id(i) for i in node.inputs]
        for other in below or [_source_key(node)]:
            part_of[root(other)] = root(id(node))
    found: dict[object, list[LogicalNode]] = {}
    for node in nodes:
        found.setdefault(root(id(node)), []).append(node)
    return tuple(map(tuple, found.values()))


def connected(plan: LogicalPlan) -> tuple[LogicalPlan, ...]:
    """The parts as plans, by their first output: independent queries, each with its own serials and watermark."""
    part_of = {id(n): number for number, part in enumerate(parts(plan)) for n in part}
    found: dict[int, list[Output]] = {}
    for output in plan.outputs:
        found.setdefault(part_of[id(output.node)], []).append(output)
    return tuple(LogicalPlan(tuple(outputs)) for outputs in found.values())


def _source_key(node: LogicalNode) -> tuple[str, int]:
    """The key that nodes reading the same source share."""
    return ("source", node.source.position) if node.source is not None else ("node", id(node))


def at_leaf(
    node: LogicalNode, exprs: Sequence[Expr], leaf: LogicalNode | None = None
) -> tuple[LogicalNode, tuple[Expr, ...]] | None:
    """The leaf below a chain of stateless operators that emit at most one row per row, and `exprs` over its columns.

    None if another operator is in the way, or computes a value in a way that is not an expression.
    leaf: the one that the rows come from; with several inputs, only the path to it is followed.
    """
    below = tuple(exprs)
    while node.inputs:
        ways = [n for n, i in enumerate(node.inputs) if leaf is not None and any(leaf is t for t in topological([i]))]
        way = 0 if len(node.inputs) == 1 else ways[0] if len(ways) == 1 else None
        if way is None or node.fan_out != 1 or node.keeps_state:
            return None
        pulled = [dict(p) for e in below if (p := node.pull(e)) is not None]
        if len(pulled) < len(below) or any(way not in p for p in pulled):
            return None
        below = tuple(p[way] for p in pulled)
        node = node.inputs[way]
    return node, below
