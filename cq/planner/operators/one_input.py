"""What operators with a single input share, and those among them that only add columns."""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr, columns_of
from cq.planner.plan.node import Indices, LogicalNode, Pruned, Pulled
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class OneInput(LogicalNode):
    """An operator that reads the rows of one other operator."""

    input: LogicalNode

    source = None

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)


@dataclass(frozen=True, slots=True)
class AddsColumns(OneInput):
    """Each output row starts with the columns of an input row, unchanged; columns of the operator follow."""

    @property
    def width(self) -> int:
        """How many columns the input has: the number of the first column that is added."""
        return len(self.input.schema)

    def passed(self, columns: set[int]) -> set[int]:
        """Those of these output columns that come from the input."""
        return {c for c in columns if c < self.width}

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, expr),) if all(c < self.width for c in columns_of(expr)) else None

    def indices_over(self, below: Pruned, kept: Sequence[int] | None = None) -> Indices:
        """The indices of its columns over a pruned input. kept: the added columns that stay; None for all."""
        added = range(len(self.schema) - self.width) if kept is None else kept
        first = len(below.node.schema)
        return {**below.indices, **{self.width + old: first + n for n, old in enumerate(added)}}
