"""Crossing rows: the rows of several operators reach the next stage in one schema, in the order in which they come.

Below, the rows of each operator are put into the columns of that schema (`in_one_schema`): a BOOLEAN column for each
operator marks its rows, and columns of different operators share one column if their types are equal. Above, `RowsOf`
extracts the rows of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Column, Expr, Literal, remap
from cq.lang.types import BOOLEAN, DataType
from cq.planner.operators import Project, UnionAll
from cq.planner.operators.one_input import OneInput
from cq.planner.physical.stage_input import StageInput
from cq.planner.plan.calls import Change
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Pulled, Stateless, Text, topological
from cq.planner.plan.registration import operator
from cq.records import dataclass


@operator("rows_of")
@dataclass(frozen=True, slots=True)
class RowsOf(OneInput, Stateless):
    """The rows of `node`, which runs in an earlier stage, of those that come in one schema.

    chosen: the BOOLEAN column of `input` that is TRUE for them.  indices: of the node's columns in `input`.
    """

    node: LogicalNode
    chosen: int
    indices: tuple[int, ...]

    fan_out = 1
    may_drop = True
    uses_time = False
    late_alone = False
    groups = None
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        assert self.input.schema.fields[self.chosen].type == BOOLEAN, "no column that says whose row it is"
        assert len(self.indices) == len(self.node.schema), "columns without an index"
        self._set_schema(self.node.schema)

    @property
    def condition(self) -> Expr:
        """TRUE for its rows; over the rows of `input`."""
        return Column(BOOLEAN, False, self.chosen)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        yield self.condition, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        return self

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, remap(expr, dict(enumerate(self.indices)))),)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return ({self.indices[i] for i in needed} | {self.chosen},)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        """Unchanged: the physical plan reads from a leaf only what it uses."""
        return Pruned(self, {i: i for i in range(len(self.indices))})

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.node.identity,)

    def meaning(self, column: int, text: Text) -> str:
        raise AssertionError("every column is computed from the input")

    def describe(self) -> str:
        return f"{self.node.operator}  {self.node.describe()}"


def in_one_schema(nodes: Sequence[LogicalNode]) -> tuple[LogicalNode, tuple[LogicalNode, ...]]:
    """One operator with the rows of all the nodes, as they come, and the stand-in for each node above it."""
    if len(nodes) == 1:
        return nodes[0], (StageInput(nodes[0]),)
    indices, types = _layout(nodes)
    below = UnionAll(tuple(_spread(n, number, len(nodes), indices[number], types) for number, n in enumerate(nodes)))
    leaf = StageInput(below)
    return below, tuple(RowsOf(leaf, n, number, indices[number]) for number, n in enumerate(nodes))


def _layout(nodes: Sequence[LogicalNode]) -> tuple[list[tuple[int, ...]], list[DataType]]:
    """Indices of each node's columns, after the columns that mark its rows; and the types of all columns."""
    types: list[DataType] = [BOOLEAN] * len(nodes)
    indices = []
    for node in nodes:
        taken: list[int] = []
        for field in node.schema.fields:
            free = [n for n in range(len(nodes), len(types)) if types[n] == field.type and n not in taken]
            if not free:
                free = [len(types)]
                types.append(field.type)
            taken.append(free[0])
        indices.append(tuple(taken))
    return indices, types


def _spread(
    node: LogicalNode, number: int, count: int, indices: Sequence[int], types: Sequence[DataType]
) -> LogicalNode:
    """The rows of one of `count` nodes in the columns of all, with NULL in those of the others."""
    exprs: list[Expr] = [Literal(BOOLEAN, False, n == number) for n in range(count)]
    exprs += [Literal(t, True, None) for t in types[count:]]
    for index, (at, field) in enumerate(zip(indices, node.schema.fields, strict=True)):
        exprs[at] = Column(field.type, field.nullable, index, field.name)
    return Project(node, tuple(exprs), tuple(f"c{n}" for n in range(len(types))))


def same_turns(plan: LogicalPlan, roots: Sequence[LogicalNode]) -> bool:
    """Whether a plan of these roots alone visits its operators in the order of the whole plan."""
    position = {id(n): number for number, n in enumerate(plan.nodes())}
    mine = [position[id(n)] for n in topological(roots)]
    return mine == sorted(mine)
