"""Filter: the rows for which a condition is TRUE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.expressions import Expr, columns_of, format_expr
from cq.planner.logical import LogicalNode, operator
from cq.types import Kind


@operator("filter")
@dataclass(frozen=True, slots=True)
class Filter(LogicalNode):
    """Pass a row when `predicate` is TRUE; drop it when FALSE or NULL."""

    input: LogicalNode
    predicate: Expr

    def __post_init__(self) -> None:
        assert self.predicate.type.kind is Kind.BOOLEAN, "a predicate that is not BOOLEAN"
        assert max(columns_of(self.predicate), default=-1) < len(self.input.schema), "a predicate over a missing column"
        self._set_schema(self.input.schema)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    def describe(self) -> str:
        return format_expr(self.predicate, self.input.schema.names)
