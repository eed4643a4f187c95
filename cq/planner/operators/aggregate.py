"""Aggregate: grouped aggregates over all rows of a bounded input, emitted at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.expressions import Expr, format_expr
from cq.planner.logical import AggregateCall, LogicalNode, OpClass, StateBound, operator
from cq.schema import Field, Schema


@operator("aggregate", OpClass.PARTITIONED)
@dataclass(frozen=True, slots=True)
class Aggregate(LogicalNode):
    """One row for each group when the input has ended, groups by first arrival. Without keys: one row, even of nothing.

    Output columns: the keys, the aggregates. Late rows count: the end of the input is not an instant of event time.
    """

    input: LogicalNode
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    key_names: tuple[str, ...]
    aggregate_names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.input.bounded, "an aggregate without a window over an unbounded input"
        columns = [Field(n, k.type, k.nullable) for n, k in zip(self.key_names, self.keys, strict=True)]
        columns += [Field(n, a.type, a.nullable) for n, a in zip(self.aggregate_names, self.aggregates, strict=True)]
        self._set_schema(Schema(tuple(columns)))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    @property
    def key(self) -> tuple[Expr, ...] | None:
        return self.keys or None

    @property
    def state(self) -> StateBound:
        return StateBound("one entry a group")

    def describe(self) -> str:
        keys = ", ".join(format_expr(k, self.input.schema.names) for k in self.keys)
        return f"{'by ' + keys + ': ' if keys else ''}{', '.join(str(a) for a in self.aggregates)}"
