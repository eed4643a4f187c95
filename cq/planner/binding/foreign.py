"""Clauses of other systems that need the event times of their relations: TIMESTAMP BY, WITHIN, EMIT CHANGES, and
FOR SYSTEM_TIME AS OF where the rows of a stream are the versions of a table."""

from __future__ import annotations

from collections.abc import Mapping

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.lang.aggregates.registry import Grows
from cq.lang.expressions import Call, Column, Expr, Literal, conjuncts, substitute
from cq.lang.types import BIGINT
from cq.planner.binding.built_expressions import columns
from cq.planner.binding.expressions import ExprBinder
from cq.planner.binding.joins.sides import condition, keyed, side_by_side
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Hole, Relation, Room, Visible, holes_of
from cq.planner.binding.time_attributes import no_event_time, time_attribute
from cq.planner.binding.traits import key_columns
from cq.planner.operators import (
    Filter,
    Over,
    Project,
    Sort,
)
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode, OpClass, topological
from cq.records import dataclass, replace

EMIT_WAYS = (
    "write EMIT FINAL, or leave it out: each row leaves once, when it is final",
    "running results: SUM(x) OVER (PARTITION BY key ROWS UNBOUNDED PRECEDING)",
)


# ------------------------------------------------------------------------------------------------------- event times


def event_time(relation: Relation, span: Span, what: str) -> ast.ColumnRef:
    """The event time of a relation as a query writes it. CQ0401 without one, CQ0402 if there are several."""
    times = [t.column for t in relation.node.schema.times]
    shown = [c for c in relation.columns if isinstance(c.expr, Column) and c.expr.index in times and not c.hidden]
    if not times:
        raise no_event_time(relation, "ts", None, span, what)
    if len({c.expr for c in shown}) != 1:
        names = " or ".join(relation.node.schema.names[t] for t in times)
        raise compile_error(
            "CQ0402", f"{what} goes by one event time, and {relation.title} shows {len(shown) or 'none'}", span,
            help=f"its event times are {names}: select one of them in a derived table",
        )  # fmt: skip
    return _named(shown[0], span)


def _named(column: Visible, span: Span) -> ast.ColumnRef:
    return ast.ColumnRef(column.name, column.qualifier, span=span, name_span=span)


def demand_time(relation: Relation, column: ast.ColumnRef, binder: ExprBinder) -> None:
    """`FROM s TIMESTAMP BY ts`: check that it is the stream's event time. CQ0401 or CQ0402 if the stream has
    another."""
    time_attribute(column, relation, binder)


# ------------------------------------------------------------------------------------------------------------- joins


def within(node: ast.Join, left: Relation, right: Relation) -> ast.Join:
    """`a JOIN b WITHIN 5 MINUTES ON …`, with the WITHIN written as conditions on event times in ON."""
    before, after = node.within
    span = before.span
    mine, theirs = (event_time(r, span, "WITHIN") for r in (left, right))
    least = ast.Binary("-", mine, before, span=span, op_span=span)
    greatest = ast.Binary("+", mine, after, span=span, op_span=span)
    near = ast.Between(theirs, least, greatest, span=span)
    assert node.on is not None, "WITHIN comes before ON"
    return replace(node, on=ast.Logical("AND", (node.on, near), span=node.on.span), within=())


def as_versions(
    node: ast.Join, left: Relation, right: Relation, as_of: ast.Expr, parameters: Mapping[str, ParameterValue]
) -> ast.Join | None:
    """The ASOF join that finds the version of a key at a time, if the right side is a stream of versions: each row is
    valid until the next one with its key. None for the right side of a temporal look-up."""
    if node.kind not in {"INNER", "LEFT"} or node.asof or not right.node.schema.times:
        return None
    found = key_columns(right.node)
    if found is not None and found[0].keys:
        return None
    if not all(n.op_class is OpClass.STATELESS for n in topological([right.node])):
        return None
    width = len(left.node.schema)
    on = condition(node, side_by_side(left, right, width), left, right, parameters)
    left_keys, _, rest = keyed(conjuncts(on), width)
    span = as_of.span
    if rest or not left_keys:
        odd = rest[0].span if rest else on.span
        raise compile_error(
            "CQ0408",
            "versions in a stream can only be looked up by equal columns of both sides",
            odd if odd.line else span,
            help="move other conditions to WHERE: there they test the version found",
        )
    time = event_time(right, span, "FOR SYSTEM_TIME AS OF")
    match = ast.Binary(">=", as_of, time, span=span, op_span=span)
    return replace(node, asof=True, match=match, kind_span=node.kind_span)


def without_latest(right: Relation) -> Relation:
    """The versions below a view of the latest ones, `ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) = 1`; any
    other relation unchanged. The latest version at a time is the latest of those up to it."""
    found = _versions(right.node)
    if found is None or not found.filtered or any(holes_of(e, Room.OVER) for e in found.exprs):
        return right
    node = Project(found.below, found.exprs, right.node.schema.names, span=right.node.span)
    return replace(right, node=node) if node.schema.times else right


@dataclass(frozen=True, slots=True)
class _Versions:
    """Rows above ones that are numbered backwards from the latest. exprs: its columns over those; a hole for the
    number.

    filtered: whether only number 1 is kept.
    """

    below: LogicalNode
    exprs: tuple[Expr, ...]
    filtered: bool = False


def _versions(node: LogicalNode) -> _Versions | None:
    match node:
        case Project():
            inner = _versions(node.input)
            return inner and replace(inner, exprs=tuple(substitute(e, inner.exprs) for e in node.exprs))
        case Filter():
            inner = _versions(node.input)
            if inner is None or inner.filtered:
                return None
            test = folded(substitute(node.predicate, inner.exprs))
            args = test.args if isinstance(test, Call) and test.function.name == "=" else ()
            first = _NUMBER in args and any(isinstance(a, Literal) and a.value == 1 for a in args)
            return replace(inner, filtered=True) if first else None
        case Over(order=None, calls=(AggregateCall(args=(), filter=None) as call,), input=Sort() as latest):
            one, *more = latest.order
            time = latest.input.schema.time_of(one.expr.index) if isinstance(one.expr, Column) else None
            if time is None or more or not one.descending or latest.limit is not None or latest.offset:
                return None
            if call.function.grows is not Grows.COUNT or node.partition != latest.partition:
                return None
            return _Versions(latest.input, (*columns(latest.input), _NUMBER))
    return None


_NUMBER = Hole(BIGINT, False, Room.OVER, 0)


# -------------------------------------------------------------------------------------------------------------- EMIT


def check_emit_changes(node: LogicalNode, span: Span) -> None:
    """CQ0501 if a result has earlier versions, so that the changes of the query are more than its rows."""
    for n in topological([node]):
        if n.revises:
            raise compile_error(
                "CQ0501",
                "EMIT CHANGES of results that change is not supported yet",
                span,
                label="a later row could change an earlier result",
                help=EMIT_WAYS,
            )
