"""Sharing: equal sub-plans of several outputs become one node, whatever their columns are called."""

from __future__ import annotations

from collections import Counter

from cq.lang.expressions import Column
from cq.planner.operators import Project
from cq.planner.plan.identity import canonical
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LABEL, LogicalNode
from cq.records import fields, replace


def share(plan: LogicalPlan) -> LogicalPlan:
    """x, x' = x, x where x and x' are equal but for the names of their columns: operators are functions of their input.

    Outputs keep their names through a projection of bare columns. `copies` counts the nodes it replaces: a late row is
    counted once for each operator of the query that drops it.
    """
    nodes = plan.nodes()
    numbers: dict[int, int] = {}
    kinds: dict[str, int] = {}
    copies: Counter[int] = Counter()
    for node in nodes:
        numbers[id(node)] = kinds.setdefault(_likeness(node, numbers), len(kinds))
        copies[numbers[id(node)]] += node.copies
    made: dict[int, LogicalNode] = {}
    for node in nodes:
        number = numbers[id(node)]
        if number not in made:
            made[number] = _made(node, [made[numbers[id(i)]] for i in node.inputs], copies[number])
    outputs = [replace(o, node=_named(made[numbers[id(o.node)]], o.node.schema.names)) for o in plan.outputs]
    return LogicalPlan(tuple(outputs))


def _made(node: LogicalNode, inputs: list[LogicalNode], copies: int) -> LogicalNode:
    """`node` over these inputs, standing for this many; unchanged if nothing changes."""
    if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    return node if node.copies == copies else replace(node, copies=copies)


def _likeness(node: LogicalNode, numbers: dict[int, int]) -> str:
    """A text equal for nodes that compute the same. numbers: of each node so far, by id; equal nodes have the same."""
    own = [
        f"{f.name}={canonical(value)}"
        for f, value in ((f, getattr(node, f.name)) for f in fields(node) if f.compare and LABEL not in f.metadata)
        if not _holds_nodes(value)
    ]
    width = str(len(node.schema))  # the omitted name may belong to a column the other node lacks: WITH ORDINALITY
    return "|".join([node.operator, width, *own, *(str(numbers[id(i)]) for i in node.inputs)])


def _holds_nodes(value: object) -> bool:
    return isinstance(value, LogicalNode) or (isinstance(value, tuple) and any(map(_holds_nodes, value)))


def _named(node: LogicalNode, names: tuple[str, ...]) -> LogicalNode:
    """`node` with the column names of an output."""
    if node.schema.names == names:
        return node
    columns = tuple(Column(f.type, f.nullable, i, f.name) for i, f in enumerate(node.schema.fields))
    return Project(node, columns, names, span=node.span)
