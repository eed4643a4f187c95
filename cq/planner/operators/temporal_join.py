"""TemporalJoin: for each left row, the right row of its key as of its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.expressions import Expr, format_expr
from cq.planner.logical import LogicalNode, OpClass, StateBound, operator
from cq.schema import Field, Schema, TimeAttribute


@operator("temporal_join", OpClass.PARTITIONED)
@dataclass(frozen=True, slots=True)
class TemporalJoin(LogicalNode):
    """Each left row beside the latest right row of equal key whose event time is at or before the left row's.

    A left row waits until the watermark reaches its time (no wait without a delay), late ones are dropped, and rows
    leave by (time, position). `residual`, over left then right columns, is tested on the one candidate: when it is not
    TRUE there is no match. Without a match: nothing, or with `left_outer` NULLs. A NULL in a key matches nothing.
    Within one event right rows take effect first.
    """

    left: LogicalNode
    right: LogicalNode
    left_time: TimeAttribute
    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    residual: Expr | None = None
    left_outer: bool = False

    def __post_init__(self) -> None:
        assert self.left_keys and len(self.left_keys) == len(self.right_keys), "a temporal join without keys"
        assert all(a.type == b.type for a, b in zip(self.left_keys, self.right_keys, strict=True)), "keys of two types"
        right = [replace(f, nullable=True) if self.left_outer else f for f in self.right.schema.fields]
        fields: tuple[Field, ...] = (*self.left.schema.fields, *right)
        self._set_schema(Schema(fields, self.left.schema.times))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.right, self.left)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        right, left = inputs
        return replace(self, left=left, right=right)

    @property
    def key(self) -> tuple[Expr, ...] | None:
        return self.right_keys

    @property
    def uses_time(self) -> bool:
        return True

    @property
    def state(self) -> StateBound:
        return StateBound("the latest right row of each key", bounded=False)

    def describe(self) -> str:
        left, right = self.left.schema.names, self.right.schema.names
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        on = " AND ".join(f"{format_expr(a, left)} = {format_expr(b, right)}" for a, b in pairs)
        more = f" AND {format_expr(self.residual, (*left, *right))}" if self.residual else ""
        return f"{'left ' if self.left_outer else ''}as of {left[self.left_time.column]} on {on}{more}"
