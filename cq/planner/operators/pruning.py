"""Column pruning: columns nobody reads are not computed, and rows that wait are no wider than necessary.

`prune` is a rewrite rule, and narrows the rows between stages. The rest of the file is for operators to use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cq.lang.expressions import Column, columns_of
from cq.planner.operators.project import Project
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, Pruned
from cq.records import replace

NodeT = TypeVar("NodeT", bound=LogicalNode)


def prune(plan: LogicalPlan) -> LogicalPlan:
    """Op(x) = Op(Project(c, x)) where c are the columns Op reads, and a computed column or aggregate nobody reads is
    left out, if it cannot fail: an error that would stop the query must still stop it.

    Sources deliver all their columns, so what cannot be read there is still noticed. Projections are put in only below
    operators where rows wait, or are kept.
    """
    nodes, needed = plan.nodes(), needed_columns(plan)
    done: dict[int, Pruned] = {}
    for node in nodes:
        read = [needed[id(i)] for i in node.inputs]
        done[id(node)] = node.pruned([done[id(i)] for i in node.inputs], needed[id(node)], read)
    outputs = []
    for output in plan.outputs:
        node, indices = done[id(output.node)]
        outputs.append(replace(output, node=only(node, [indices[i] for i in range(len(output.node.schema))])))
    return LogicalPlan(tuple(outputs))


def needed_columns(plan: LogicalPlan) -> dict[int, set[int]]:
    """The columns somebody reads, by id(node)."""
    nodes = plan.nodes()
    needed: dict[int, set[int]] = {id(n): set() for n in nodes}
    for output in plan.outputs:
        needed[id(output.node)].update(range(len(output.node.schema)))
    for node in reversed(nodes):
        mine = needed[id(node)]
        if not mine:
            mine.add(0)  # rows that are only counted still need a column
        for below, columns in zip(node.inputs, node.columns_read(mine), strict=True):
            needed[id(below)].update(columns)
    return needed


def columns_used(plan: LogicalPlan) -> dict[int, set[int]]:
    """The columns of each source that affect a result row, or its event time, by the source's position.

    Rows that are only counted use none.
    """
    nodes = plan.nodes()
    needed: dict[int, set[int]] = {id(n): set() for n in nodes}
    for output in plan.outputs:
        needed[id(output.node)].update(range(len(output.node.schema)))
    used: dict[int, set[int]] = {}
    for node in reversed(nodes):
        mine = needed[id(node)]
        for below, columns in zip(node.inputs, node.columns_read(mine), strict=True):
            needed[id(below)].update(columns)
        if node.source is not None:
            time = node.source.event_time
            used.setdefault(node.source.position, set()).update(mine, columns_of(time) if time is not None else ())
    return used


def unless_same(old: NodeT, new: NodeT) -> NodeT:
    """`new`, or `old` if the two are equal and have the very same inputs, so that nothing seems to have changed."""
    if any(a is not b for a, b in zip(new.inputs, old.inputs, strict=True)):
        return new
    return old if new == old else new


def narrowed(below: Pruned, needed: set[int]) -> Pruned:
    """`below` with only the needed columns, through a projection if it has more: for rows that are kept."""
    kept = sorted(needed)
    if len(kept) == len(below.node.schema):
        return below
    return Pruned(only(below.node, [below.indices[c] for c in kept]), {c: n for n, c in enumerate(kept)})


def only(node: LogicalNode, columns: Sequence[int]) -> LogicalNode:
    """These columns of `node`, in this order: unchanged if they are all of its columns in order."""
    fields = node.schema.fields
    if list(columns) == list(range(len(fields))):
        return node
    exprs = tuple(Column(fields[c].type, fields[c].nullable, c, fields[c].name) for c in columns)
    return Project(node, exprs, tuple(fields[c].name for c in columns), span=node.span)
