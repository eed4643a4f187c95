"""Complete sides: sources whose rows all come before those of others, and joins that only look rows up after that.

Sources are merged by event time, and rows without one come first, source by source. If one side of a join comes
entirely first, the join keeps rows of that side while they come, and none afterwards: it then treats all others like a
stateless operator.
"""

from __future__ import annotations

from collections.abc import Collection

from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef, sources_of

MOST_SOURCES = 63  # in a query, so that a batch can say for each whether it has ended


def causes(node: LogicalNode) -> tuple[SourceDef, ...] | None:
    """The sources whose rows cause all rows of the node, without delay; None if there are none.

    When these have ended, no row of the node comes any more.
    """
    nodes = topological([node])
    if any(n.emits_when_due(waiting=True) or n.emits_at_end for n in nodes):
        return None
    if any(not n.inputs and n.source is None for n in nodes):
        return None
    return sources_of(nodes)


def complete_first(plan: LogicalPlan) -> tuple[SourceDef, ...]:
    """The fewest sources after whose last row no operator of the plan keeps any more rows; none if that is impossible.

    All their rows come before those of the other sources.
    """
    sources = sources_of(plan.nodes())
    first = [s for s in sources if s.event_time is None and s.bounded and len(sources) <= MOST_SOURCES]
    states = [n for n in plan.nodes() if n.keeps_state]
    for count in range(1, min(len(first), len(sources) - 1) + 1):
        if all(_only_looks_up(n, first[:count]) for n in states):
            return tuple(first[:count])
    return ()


def _only_looks_up(node: LogicalNode, ended: Collection[SourceDef]) -> bool:
    """Whether the operator keeps nothing, and changes nothing it has kept, after these sources have ended."""
    return any(_has_ended(node.inputs[port], ended) for port in node.looks_up_after)


def _has_ended(node: LogicalNode, ended: Collection[SourceDef]) -> bool:
    found = causes(node)
    return found is not None and all(source in ended for source in found)
