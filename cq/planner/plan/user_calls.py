"""The calls of user-defined functions and aggregates in a plan."""

from __future__ import annotations

from collections.abc import Iterator

from cq.errors import Span
from cq.lang.aggregates.user import UserAggregate, UserFold
from cq.lang.expressions import Call, walk
from cq.lang.functions.user import UserFunction, UserScalar
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import sources_of
from cq.records import fields


def user_calls(plan: LogicalPlan) -> Iterator[tuple[UserFunction, Span]]:
    """Every call of a user-defined function in the plan, repeated ones too, and where; including event times."""
    nodes = plan.nodes()
    times = [s.event_time for s in sources_of(nodes) if s.event_time is not None]
    for expr in [*(e for node in nodes for e, _ in node.expressions()), *times]:
        for e in walk(expr):
            if isinstance(e, Call) and isinstance(e.function, UserScalar):
                yield e.function.made_of, e.span


def aggregate_calls(node: LogicalNode) -> Iterator[AggregateCall]:
    """Every aggregate that the operator computes."""
    held = [getattr(node, f.name) for f in fields(node)]
    return (c for value in held if isinstance(value, tuple) for c in value if isinstance(c, AggregateCall))


def user_folds(node: LogicalNode) -> Iterator[tuple[UserFold, Span]]:
    """Every user-defined aggregate that the operator computes, and where it is called."""
    for call in aggregate_calls(node):
        if isinstance(call.function, UserAggregate):
            yield call.function.made_of, call.span
