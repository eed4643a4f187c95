"""Column pruning: columns nobody reads are not computed, and rows that wait are only as wide as they must be."""

from __future__ import annotations

from dataclasses import replace

from cq.planner.operators.pruning import only
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import Pruned


def prune(plan: LogicalPlan) -> LogicalPlan:
    """Op(x) = Op(Project(c, x)) where c are the columns Op reads, and a computed column or aggregate nobody reads is
    left out, if it cannot fail: an error that would stop the query must still stop it.

    Sources deliver all their columns, so what cannot be read there is still noticed. Projections are put in only below
    operators where rows wait, or are kept.
    """
    nodes = plan.nodes()
    needed: dict[int, set[int]] = {id(n): set() for n in nodes}  # columns somebody reads, by id(node)
    for output in plan.outputs:
        needed[id(output.node)].update(range(len(output.node.schema)))
    for node in reversed(nodes):
        mine = needed[id(node)]
        if not mine:
            mine.add(0)  # rows that are only counted still have a column
        for below, columns in zip(node.inputs, node.columns_read(mine), strict=True):
            needed[id(below)].update(columns)
    done: dict[int, Pruned] = {}
    for node in nodes:
        read = [needed[id(i)] for i in node.inputs]
        done[id(node)] = node.pruned([done[id(i)] for i in node.inputs], needed[id(node)], read)
    outputs = []
    for output in plan.outputs:
        node, places = done[id(output.node)]
        outputs.append(replace(output, node=only(node, [places[i] for i in range(len(output.node.schema))])))
    return LogicalPlan(tuple(outputs))
