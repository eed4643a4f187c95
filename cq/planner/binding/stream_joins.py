"""Joins of two streams: `a [LEFT] JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.grammar import ast
from cq.lang.expressions import columns_of, conjunction, conjuncts, remap
from cq.planner.binding.join_mistakes import bounds_apart, excluding_bounds, missing_bound
from cq.planner.binding.join_times import Bounds, Sides, bounds_of
from cq.planner.binding.joins import condition, equated, joined_relation, refuse_pending, side_by_side
from cq.planner.binding.literals import ParameterValue
from cq.planner.binding.scope import Relation
from cq.planner.operators import IntervalJoin


def interval_join(
    node: ast.Join, left: Relation, right: Relation, parameters: Mapping[str, ParameterValue]
) -> Relation:
    """The join by keys and by an interval of times. CQ0408 where a bound on the times is missing."""
    refuse_pending(left)
    refuse_pending(right)
    sides = Sides(left, right)
    width = sides.width
    both = side_by_side(left, right, width)
    left_keys, right_keys = [], []
    parts = [(p, bounds_of(p, sides)) for p in conjuncts(condition(node, both, left, right, parameters))]
    bounds = _chosen([b for _, b in parts if b is not None])
    rest = []
    for part, found in parts:
        pair = None if found is not None else equated(part, width)
        if pair is not None and columns_of(pair[0]):
            left_keys.append(pair[0])
            right_keys.append(remap(pair[1], {c: c - width for c in columns_of(pair[1])}))
        elif found is None or found.times != bounds.times:
            rest.append(part)
    if bounds.lower_us > bounds.upper_us:
        raise excluding_bounds(sides, bounds)
    if bounds.times is None or not bounds.complete:
        for _, found in parts:
            if found is not None and found.times != bounds.times and bounds.and_(found).complete:
                raise bounds_apart(sides, bounds, found)
        raise missing_bound(node, sides, bounds, rest)
    left_time, right_time = bounds.times
    made = IntervalJoin(
        left.node, right.node, left_time, tuple(left_keys), tuple(right_keys),
        conjunction(rest) if rest else None, node.kind == "LEFT",
        right_time=right_time, lower_us=bounds.lower_us, upper_us=bounds.upper_us, span=node.span,
    )  # fmt: skip
    return joined_relation(made, node, left, right, both)


def _chosen(found: Sequence[Bounds]) -> Bounds:
    """What is said of the first pair of event times that has both bounds; else of the first pair."""
    of_times: dict[object, Bounds] = {}
    for bounds in found:
        known = of_times.get(bounds.times)
        of_times[bounds.times] = known.and_(bounds) if known is not None else bounds
    said = list(of_times.values())
    return next((b for b in said if b.complete), said[0] if said else Bounds())
