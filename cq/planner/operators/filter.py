"""Filter: the rows for which a condition is TRUE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Expr, columns_of, format_expr, remap
from cq.lang.types import Kind
from cq.planner.operators.one_input import OneInput
from cq.planner.operators.pruning import unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Pulled, Stateless, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("filter")
@dataclass(frozen=True, slots=True)
class Filter(OneInput, Stateless):
    """Pass a row when `predicate` is TRUE; drop it when FALSE or NULL."""

    predicate: Expr

    fan_out = 1
    may_drop = True
    uses_time = False
    late_alone = False
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        assert self.predicate.type.kind is Kind.BOOLEAN, "a predicate that is not BOOLEAN"
        assert max(columns_of(self.predicate), default=-1) < len(self.input.schema), "a predicate over a missing column"
        self._set_schema(self.input.schema)

    @property
    def groups(self) -> LogicalNode | None:
        return self.input.groups

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        yield self.predicate, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(self, predicate=change(self.predicate))

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, expr),)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (needed | columns_of(self.predicate),)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        ((below, indices),) = inputs
        new = replace(self, input=below, predicate=remap(self.predicate, indices))
        return Pruned(unless_same(self, new), indices)

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (text((0,), self.predicate),)

    def meaning(self, column: int, text: Text) -> str:
        raise AssertionError("every column is computed from the input")

    def describe(self) -> str:
        return format_expr(self.predicate, self.input.schema.names)
