"""A key of lanes over the rows of a leaf: it decides a row's lane when the row comes to a stage."""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Case, Column, Expr, transform
from cq.planner.physical.crossing_rows import RowsOf
from cq.planner.plan.logical import at_leaf
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class LeafKey:
    """A key over the columns of a leaf. condition: TRUE for the rows it is for; None: for all."""

    leaf: LogicalNode
    key: tuple[Expr, ...]
    condition: Expr | None


def leaf_key(edge: LogicalNode, exprs: Sequence[Expr]) -> LeafKey | None:
    """The key `exprs` of the rows of `edge`, over those of its leaf; None if a row of the leaf does not show it."""
    down = at_leaf(edge, exprs)
    if down is None:
        return None
    at = edge
    while at.inputs and not isinstance(at, RowsOf):
        (at,) = at.inputs
    return LeafKey(*down, at.condition if isinstance(at, RowsOf) else None)


def one_key(keys: Sequence[LeafKey]) -> tuple[Expr, ...]:
    """One key for all rows of a leaf; none if rows would have two."""
    first, *others = keys
    if all(k.key == first.key for k in others):
        return first.key
    cases: dict[Expr, tuple[Expr, ...]] = {}
    for k in keys:
        if k.condition is None or cases.setdefault(k.condition, k.key) != k.key:
            return ()
    return tuple(_by_case(first.leaf, list(cases), [key[n] for key in cases.values()]) for n in range(len(first.key)))


def _by_case(leaf: LogicalNode, conditions: Sequence[Expr], parts: Sequence[Expr]) -> Expr:
    """The part of the key for the condition that is TRUE. One of them is.

    A column that is never NULL in the rows of one operator may be NULL in those of others, which the leaf also has.
    """

    def loose(e: Expr) -> Expr:
        return replace(e, nullable=leaf.schema.fields[e.index].nullable) if isinstance(e, Column) else e

    *values, default = (transform(p, loose) for p in parts)
    branches = tuple(zip(conditions[:-1], values, strict=True))
    return Case(parts[0].type, any(p.nullable for p in parts), branches, default)
