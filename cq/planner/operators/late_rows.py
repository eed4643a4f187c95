"""LateRows: the rows of a source that are late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.planner.operators.one_input import OneInput
from cq.planner.operators.pruning import unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Pulled, Stateless, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("late_rows")
@dataclass(frozen=True, slots=True)
class LateRows(OneInput, Stateless):
    """Pass a row of a source when it is late, and no other.

    They have no event time: an operator that needs one would drop them all.
    """

    fan_out = 1
    may_drop = True
    uses_time = False
    late_alone = True
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        source = self.input.source
        assert source is not None and source.event_time is not None, "late rows of what is no source with event times"
        self._set_schema(Schema(self.input.schema.fields))

    @property
    def groups(self) -> LogicalNode | None:
        return self.input.groups

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        return iter(())

    def map_expressions(self, change: Change) -> LogicalNode:
        return self

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, expr),)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (needed,)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        ((below, indices),) = inputs
        return Pruned(unless_same(self, replace(self, input=below)), indices)

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return ()

    def meaning(self, column: int, text: Text) -> str:
        raise AssertionError("every column is computed from the input")

    def describe(self) -> str:
        return f"of {self.input.describe()}"
