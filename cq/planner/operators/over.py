"""Over: LAG and running aggregates for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cq.errors import NOWHERE, Span
from cq.expressions import Expr, format_expr
from cq.planner.logical import AggregateCall, LogicalNode, OpClass, StateBound, operator
from cq.schema import Field, Schema, TimeAttribute
from cq.types import DataType


@dataclass(frozen=True, slots=True)
class Lag:
    """The value `arg` had `offset` rows before in the partition; `default` (or NULL) when there is no such row."""

    arg: Expr
    offset: int
    default: Expr | None
    type: DataType
    nullable: bool
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return f"lag({format_expr(self.arg)}, {self.offset})"


@operator("over", OpClass.PARTITIONED)
@dataclass(frozen=True, slots=True)
class Over(LogicalNode):
    """Each input row with one more column a call: LAG, or an aggregate of the partition's rows up to this one.

    Rows are taken in arrival order, or by (time, position) when `order` is given: then late rows are dropped, and where
    the input has a delay a row leaves at the instant the watermark reaches its time; without a delay at once.
    """

    input: LogicalNode
    partition: tuple[Expr, ...]
    order: TimeAttribute | None
    calls: tuple[Lag | AggregateCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.calls and len(self.calls) == len(self.names)
        added = [Field(n, c.type, c.nullable) for n, c in zip(self.names, self.calls, strict=True)]
        self._set_schema(Schema((*self.input.schema.fields, *added), self.input.schema.times))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    @property
    def key(self) -> tuple[Expr, ...] | None:
        return self.partition or None

    @property
    def uses_time(self) -> bool:
        return self.order is not None

    @property
    def state(self) -> StateBound:
        return StateBound("one entry a partition", bounded=not self.partition)

    def describe(self) -> str:
        names = self.input.schema.names
        by = ", ".join(format_expr(k, names) for k in self.partition)
        order = f" order by {names[self.order.column]}" if self.order else ""
        return f"{', '.join(str(c) for c in self.calls)} over ({'partition by ' + by if by else ''}{order})"
