"""Unnest: one row for each element of an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.expressions import Call, Expr, format_expr
from cq.planner.logical import LogicalNode, operator
from cq.schema import Field, Schema
from cq.types import BIGINT, Kind


@operator("unnest")
@dataclass(frozen=True, slots=True)
class Unnest(LogicalNode):
    """The input row once for each element of `array`, in order, with the element (and its number from 1) added.

    An empty or NULL array gives no row.
    """

    input: LogicalNode
    array: Expr
    name: str
    ordinality_name: str | None = None

    def __post_init__(self) -> None:
        assert self.array.type.kind is Kind.ARRAY and self.array.type.element is not None
        added = [Field(self.name, self.array.type.element, not _holds_no_null(self.array))]
        if self.ordinality_name is not None:
            added.append(Field(self.ordinality_name, BIGINT, False))
        self._set_schema(Schema((*self.input.schema.fields, *added), self.input.schema.times))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    def describe(self) -> str:
        return f"{format_expr(self.array, self.input.schema.names)} AS {self.name}"


def _holds_no_null(array: Expr) -> bool:
    """Whether no element can be NULL: pieces of a text are texts."""
    return isinstance(array, Call) and array.function.name == "split"
