"""Joins of two relations: by equal keys, `a [LEFT|RIGHT|FULL] JOIN b ON a.k = b.k`, by any other condition or none,
`a CROSS JOIN b`, and by keys and time, `a [LEFT|RIGHT|FULL] JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + …`.

Where a condition limits how far apart the event times of two rows may be, rows are kept that long; otherwise all are
kept. RIGHT JOIN is LEFT JOIN with its sides swapped; only the columns stay in the order written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import CompileError, Span
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal, conjunction
from cq.planner.binding.joins.mistakes import (
    bounds_apart,
    endless_cross,
    endless_outer,
    excluding_bounds,
    missing_bound,
    written_in,
)
from cq.planner.binding.joins.sides import condition, demands, joined_relation, keyed, kind_of, side_by_side
from cq.planner.binding.joins.times import Sides, TimeBounds, bounds_of
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation
from cq.planner.operators import IntervalJoin, Join, JoinKind
from cq.planner.operators.joined import may_come_before
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode

Parts = Sequence[tuple[Expr, TimeBounds | None]]
"""The conditions joined by AND, and how far apart each lets two event times be."""


def stream_join(node: ast.Join, left: Relation, right: Relation, parameters: Mapping[str, ParameterValue]) -> Relation:
    """The join by keys, by an interval of times, or by both; if an input ends, also by any other condition."""
    sides = Sides(right, left) if node.kind == "RIGHT" else Sides(left, right)
    both = side_by_side(sides.left, sides.right, sides.width)
    on = [] if node.kind == "CROSS" else demands(condition(node, both, sides.left, sides.right, parameters))
    parts, bounds = by_time(on, sides)
    if bounds.complete:
        joined = interval_join(sides, parts, bounds, node.span, kind_of(node))
    else:
        joined = _join(node, sides, parts, bounds)
    return joined_relation(joined, node, sides.left, sides.right)


def by_time(on: Sequence[Expr], sides: Sides) -> tuple[Parts, TimeBounds]:
    """The conditions of a join, each with how far apart it lets two event times be, and what they say together."""
    parts = [(part, bounds_of(part, sides)) for part in on if not _always(part)]
    return parts, _chosen([b for _, b in parts if b is not None])


def interval_join(sides: Sides, parts: Parts, bounds: TimeBounds, span: Span, kind: JoinKind) -> LogicalNode:
    """The join of rows whose times are within the bounds."""
    if bounds.lower_us > bounds.upper_us:
        raise excluding_bounds(sides, bounds)
    assert bounds.times is not None, "bounds of no times"
    others = [part for part, found in parts if found is None or found.times != bounds.times]
    left_keys, right_keys, rest = keyed(others, sides.width, constants=kind.left_only)  # as in `5 IN (…)`
    left_time, right_time = bounds.times
    return IntervalJoin(
        sides.left.node, sides.right.node, tuple(left_keys), tuple(right_keys),
        conjunction(rest) if rest else None, kind,
        left_time=left_time, right_time=right_time, lower_us=bounds.lower_us, upper_us=bounds.upper_us,
        span=span,
    )  # fmt: skip


def _join(node: ast.Join, sides: Sides, parts: Parts, bounds: TimeBounds) -> LogicalNode:
    """The join of rows with equal keys, or of all rows; all are kept."""
    left_keys, right_keys, rest = keyed([p for p, _ in parts], sides.width)
    ends = (sides.left.node.bounded, sides.right.node.bounded)
    if not left_keys and not any(ends):
        raise _neither(node, sides, parts, bounds, rest) if parts else endless_cross(node, sides)
    kind = kind_of(node)
    may_end = kind is JoinKind.LEFT and may_come_before(sides.right.node, sides.left.node)
    if kind.left_unmatched and not all(ends) and not may_end:
        raise endless_outer(node, sides, bounds, rest)
    return Join(
        sides.left.node, sides.right.node, tuple(left_keys), tuple(right_keys),
        conjunction(rest) if rest else None, kind, span=node.span,
    )  # fmt: skip


def _neither(node: ast.Join, sides: Sides, parts: Parts, bounds: TimeBounds, rest: Sequence[Expr]) -> CompileError:
    """The error for a condition that neither equates the sides nor limits how far apart their times are."""
    for _, found in parts:
        if found is not None and found.times != bounds.times and bounds.and_(found).complete:
            return bounds_apart(sides, bounds, found)
    return missing_bound(written_in(node), sides, bounds, rest)


def _always(condition: Expr) -> bool:
    """Whether a condition is the constant TRUE."""
    value = folded(condition)
    return isinstance(value, Literal) and value.value is True


def _chosen(found: Sequence[TimeBounds]) -> TimeBounds:
    """The bounds on the first pair of event times that has both; else on the first pair."""
    of_times: dict[object, TimeBounds] = {}
    for bounds in found:
        known = of_times.get(bounds.times)
        of_times[bounds.times] = known.and_(bounds) if known is not None else bounds
    said = list(of_times.values())
    return next((b for b in said if b.complete), said[0] if said else TimeBounds())
