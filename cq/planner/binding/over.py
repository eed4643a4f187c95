"""OVER: one Over operator for each partition and order, below the projection that uses their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import Span, compile_error
from cq.lang.expressions import Column, Expr, transform
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind
from cq.planner.binding.calls import OverCall
from cq.planner.binding.scope import Hole, Relation, Room
from cq.planner.binding.windows import no_event_time
from cq.planner.operators import Lag, Over
from cq.planner.plan.node import LogicalNode


def add_overs(
    node: LogicalNode, relation: Relation, overs: Sequence[OverCall]
) -> tuple[LogicalNode, Callable[[Expr], Expr]]:
    """`node` with the columns of all OVER calls added, and what puts those columns into their holes."""
    columns: dict[int, Column] = {}
    specs = dict.fromkeys((o.partition, o.order) for o in overs)
    for partition, order in specs:
        mine = [i for i, o in enumerate(overs) if (o.partition, o.order) == (partition, order)]
        time = _time_of(node, relation, order) if order is not None else None
        first = len(node.schema)
        calls = tuple(overs[i].call for i in mine)
        names = _names(node, [_name(overs[i].call) for i in mine])
        node = Over(node, partition, time, calls, names, span=overs[mine[0]].span)
        for n, i in enumerate(mine):
            f = node.schema.fields[first + n]
            columns[i] = Column(f.type, f.nullable, first + n, f.name)

    def fill(expr: Expr) -> Expr:
        return transform(expr, lambda e: columns[e.index] if isinstance(e, Hole) and e.room is Room.OVER else e)

    return node, fill


def _names(node: LogicalNode, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted names, numbered where the row has them already."""
    taken = list(node.schema.names)
    for name in wanted:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.append(unique)
    return tuple(taken[len(node.schema) :])


def _name(call: object) -> str:
    if isinstance(call, Lag):
        return "lag"
    function = getattr(call, "function", None)
    assert function is not None, "an OVER call that is neither LAG nor an aggregate"
    return str(function.name)


def _time_of(node: LogicalNode, relation: Relation, order: Expr) -> TimeAttribute:
    """The time attribute that ORDER BY names. CQ0401 or CQ0402 when it is none."""
    if not isinstance(order, Column):
        raise _not_time(order.span)
    time = node.schema.time_of(order.index)
    if time is None:
        is_time = order.type.kind is Kind.TIMESTAMP
        raise no_event_time(relation, order.name, order.span, is_time, "ORDER BY in OVER")
    return time


def _not_time(span: Span) -> Exception:
    return compile_error(
        "CQ0501",
        "OVER can only be ordered by the event time",
        span,
        help="ORDER BY the event time; without ORDER BY, rows are processed in order of arrival",
    )
