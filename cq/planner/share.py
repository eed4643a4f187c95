"""Sharing: equal sub-plans of several outputs become one node, whatever their columns are called."""

from __future__ import annotations

from dataclasses import fields, replace

from cq.expressions import Column
from cq.planner.logical import LogicalNode, LogicalPlan, canonical
from cq.planner.operators import Project

NAME_FIELDS = {"names", "key_names", "aggregate_names", "ordinality_name"}  # for people; on Unnest also `name`
INPUT_FIELDS = {"input", "left", "right", "branches"}


def share(plan: LogicalPlan) -> LogicalPlan:
    """x, x' = x, x where x and x' are equal but for the names of their columns: operators are functions of their input.

    Outputs keep their names through a projection of bare columns.
    """
    kept: dict[str, LogicalNode] = {}
    numbers: dict[int, int] = {}

    def unify(node: LogicalNode) -> LogicalNode:
        return kept.setdefault(_likeness(node, numbers), node)

    done: dict[int, LogicalNode] = {}
    for node in plan.nodes():
        inputs = [done[id(i)] for i in node.inputs]
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        one = unify(node if same else node.with_inputs(inputs))
        numbers.setdefault(id(one), len(numbers))
        done[id(node)] = one
    outputs = [replace(o, node=_named(done[id(o.node)], o.node.schema.names)) for o in plan.outputs]
    return LogicalPlan(tuple(outputs))


def _likeness(node: LogicalNode, numbers: dict[int, int]) -> str:
    """A text equal for nodes that compute the same. numbers: one for each distinct node so far, by id."""
    own = [
        f"{f.name}={canonical(getattr(node, f.name))}"
        for f in fields(node)
        if f.compare
        and f.name not in INPUT_FIELDS
        and f.name not in NAME_FIELDS
        and not (node.operator == "unnest" and f.name == "name")
    ]
    width = str(len(node.schema))  # a name left out may be of a column the other does not have: WITH ORDINALITY
    return "|".join([node.operator, width, *own, *(str(numbers[id(i)]) for i in node.inputs)])


def _named(node: LogicalNode, names: tuple[str, ...]) -> LogicalNode:
    """`node` with the column names an output had."""
    if node.schema.names == names:
        return node
    columns = tuple(Column(f.type, f.nullable, i, f.name) for i, f in enumerate(node.schema.fields))
    return Project(node, columns, names, span=node.span)
