"""What operators share when columns nobody reads are left out (`cq.planner.rewriting.prune`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cq.lang.expressions import Column
from cq.planner.operators.project import Project
from cq.planner.plan.node import LogicalNode, Pruned

NodeT = TypeVar("NodeT", bound=LogicalNode)


def unless_same(old: NodeT, new: NodeT) -> NodeT:
    """`new`, or `old` where the two are equal and over the very same inputs, so that nothing seems to have changed."""
    if any(a is not b for a, b in zip(new.inputs, old.inputs, strict=True)):
        return new
    return old if new == old else new


def narrowed(below: Pruned, needed: set[int]) -> Pruned:
    """`below` with only the needed columns, through a projection where it has more: for rows that are kept."""
    kept = sorted(needed)
    if len(kept) == len(below.node.schema):
        return below
    return Pruned(only(below.node, [below.places[c] for c in kept]), {c: n for n, c in enumerate(kept)})


def only(node: LogicalNode, columns: Sequence[int]) -> LogicalNode:
    """These columns of `node`, in this order: itself when they are all of its columns as they stand."""
    fields = node.schema.fields
    if list(columns) == list(range(len(fields))):
        return node
    exprs = tuple(Column(fields[c].type, fields[c].nullable, c, fields[c].name) for c in columns)
    return Project(node, exprs, tuple(fields[c].name for c in columns), span=node.span)
