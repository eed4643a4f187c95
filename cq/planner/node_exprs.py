"""The scalar expressions inside a node: which there are, over which input, and the node with others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cq.expressions import Expr, can_fail
from cq.planner.logical import AggregateCall, LogicalNode
from cq.planner.operators import (
    Aggregate,
    Filter,
    Lag,
    Over,
    Project,
    Scan,
    TemporalJoin,
    UnionAll,
    Unnest,
    WindowAggregate,
)
from cq.schema import Field

Fields = tuple[Field, ...]
Change = Callable[[Expr], Expr]


def expressions(node: LogicalNode) -> Iterator[tuple[Expr, Fields]]:
    """Every expression of the node and the columns it is over."""
    match node:
        case Scan(source=source):
            if source.event_time is not None:
                yield source.event_time, source.fields
        case Filter(input=below, predicate=p):
            yield p, below.schema.fields
        case Project(input=below, exprs=exprs):
            for e in exprs:
                yield e, below.schema.fields
        case (
            WindowAggregate(input=below, keys=keys, aggregates=calls)
            | Aggregate(input=below, keys=keys, aggregates=calls)
        ):
            for e in keys:
                yield e, below.schema.fields
            for call in calls:
                for e in call_expressions(call):
                    yield e, below.schema.fields
        case Over(input=below, partition=partition, calls=overs):
            for e in partition:
                yield e, below.schema.fields
            for over in overs:
                for e in call_expressions(over):
                    yield e, below.schema.fields
        case Unnest(input=below, array=array):
            yield array, below.schema.fields
        case TemporalJoin(left=left, right=right, left_keys=lk, right_keys=rk, residual=residual):
            for e in lk:
                yield e, left.schema.fields
            for e in rk:
                yield e, right.schema.fields
            if residual is not None:
                yield residual, (*left.schema.fields, *right.schema.fields)
        case UnionAll():
            return
        case _:
            raise AssertionError(f"a node of unknown kind: {type(node).__name__}")


def call_expressions(call: Lag | AggregateCall) -> tuple[Expr, ...]:
    """The arguments of an aggregate or LAG, with its FILTER or default."""
    if isinstance(call, Lag):
        return (call.arg,) if call.default is None else (call.arg, call.default)
    return call.args if call.filter is None else (*call.args, call.filter)


def change_call(call: Lag | AggregateCall, change: Change) -> Lag | AggregateCall:
    """The call with `change` applied to its expressions."""
    if isinstance(call, Lag):
        return replace(call, arg=change(call.arg), default=change(call.default) if call.default is not None else None)
    return change_aggregate(call, change)


def change_aggregate(call: AggregateCall, change: Change) -> AggregateCall:
    """The aggregate with `change` applied to its expressions."""
    condition = change(call.filter) if call.filter is not None else None
    return replace(call, args=tuple(change(a) for a in call.args), filter=condition)


def change_expressions(node: LogicalNode, change: Change) -> LogicalNode:
    """The node with `change` applied to each of its expressions; the node itself when nothing changed."""
    new: LogicalNode
    match node:
        case Filter(predicate=p):
            new = replace(node, predicate=change(p))
        case Project(exprs=exprs):
            new = replace(node, exprs=tuple(change(e) for e in exprs))
        case WindowAggregate(keys=keys, aggregates=calls):
            new = replace(
                node,
                keys=tuple(change(e) for e in keys),
                aggregates=tuple(change_aggregate(c, change) for c in calls),
            )
        case Aggregate(keys=keys, aggregates=calls):
            new = replace(
                node,
                keys=tuple(change(e) for e in keys),
                aggregates=tuple(change_aggregate(c, change) for c in calls),
            )
        case Over(partition=partition, calls=overs):
            new = replace(
                node,
                partition=tuple(change(e) for e in partition),
                calls=tuple(change_call(c, change) for c in overs),
            )
        case Unnest(array=array):
            new = replace(node, array=change(array))
        case TemporalJoin(left_keys=lk, right_keys=rk, residual=residual):
            new = replace(
                node,
                left_keys=tuple(change(e) for e in lk),
                right_keys=tuple(change(e) for e in rk),
                residual=change(residual) if residual is not None else None,
            )
        case _:
            return node
    return node if new == node else new


def call_can_fail(call: Lag | AggregateCall) -> bool:
    """Whether an aggregate or LAG may end in a data error: in its arguments, or when its result does not fit."""
    own = isinstance(call, AggregateCall) and bool(call.function.fails)
    return own or any(can_fail(e) for e in call_expressions(call))


def node_can_fail(node: LogicalNode) -> bool:
    """Whether the node itself may end in a data error."""
    calls: tuple[Lag | AggregateCall, ...] = ()
    if isinstance(node, WindowAggregate | Aggregate):
        calls = node.aggregates
    elif isinstance(node, Over):
        calls = node.calls
    return any(call_can_fail(c) for c in calls) or any(can_fail(e) for e, _ in expressions(node))
