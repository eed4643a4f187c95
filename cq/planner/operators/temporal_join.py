"""TemporalJoin: for each left row, the right row of its key as of its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cq.lang.expressions import Column, Expr, columns_of, format_expr, remap
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.planner.operators.pruning import narrowed, unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.costs import LOOK_UP_NS, key_ns
from cq.planner.plan.node import Inputs, LogicalNode, OpClass, OutputKind, Pruned, Pulled, StateBound, Text, operator

RIGHT, LEFT = 0, 1  # inputs: within one event right rows take effect first


@operator("temporal_join")
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

    op_class = OpClass.PARTITIONED
    source = None
    key_columns: ClassVar[Mapping[int, Expr]] = {}
    fails_itself = False
    closes = False
    emits_at_end = False
    fan_out = 1
    uses_time = True
    merges_exactly = False
    merge_pays = False
    output_kind = OutputKind.APPEND

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
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.right_keys, self.left_keys)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in self.left_keys:
            yield e, (LEFT,)
        for e in self.right_keys:
            yield e, (RIGHT,)
        if self.residual is not None:
            yield self.residual, (LEFT, RIGHT)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(
            self,
            left_keys=tuple(change(e) for e in self.left_keys),
            right_keys=tuple(change(e) for e in self.right_keys),
            residual=change(self.residual) if self.residual is not None else None,
        )

    def pull(self, expr: Expr) -> Pulled | None:
        return ((LEFT, expr),) if all(c < len(self.left.schema) for c in columns_of(expr)) else None

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        width = len(self.left.schema)
        mine = needed | (columns_of(self.residual) if self.residual is not None else set())
        left = {c for c in mine if c < width} | columns_of(*self.left_keys) | {self.left_time.column}
        return ({c - width for c in mine if c >= width} | columns_of(*self.right_keys), left)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        right, left = (narrowed(below, columns) for below, columns in zip(inputs, read, strict=True))
        width, new_width = len(self.left.schema), len(left.node.schema)
        places = {**left.places, **{width + c: new_width + p for c, p in right.places.items()}}
        new = replace(
            self,
            left=left.node,
            right=right.node,
            left_time=replace(self.left_time, column=left.places[self.left_time.column]),
            left_keys=tuple(remap(k, left.places) for k in self.left_keys),
            right_keys=tuple(remap(k, right.places) for k in self.right_keys),
            residual=remap(self.residual, places) if self.residual is not None else None,
        )
        return Pruned(unless_same(self, new), places)

    def holds_back(self, port: int) -> bool:
        return port == RIGHT

    @property
    def may_drop(self) -> bool:
        return not self.left_outer

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        return (None, self.left_time)

    @property
    def state(self) -> StateBound:
        return StateBound("the latest right row of each key", bounded=False)

    @property
    def cost_ns(self) -> int:
        return LOOK_UP_NS + key_ns(self.right_keys)

    def check(self) -> None:
        assert self.left_time in self.left.schema.times, "as of a column that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        keys = (f"{text((LEFT,), a)}={text((RIGHT,), b)}" for a, b in pairs)
        residual = text((LEFT, RIGHT), self.residual) if self.residual is not None else ""
        return (self.left_outer, text((LEFT,), self.left_time), residual, *keys)

    def meaning(self, column: int, text: Text) -> str:
        place = column - len(self.left.schema)
        field = self.right.schema.fields[place]
        return text((RIGHT,), Column(field.type, field.nullable, place))

    def describe(self) -> str:
        left, right = self.left.schema.names, self.right.schema.names
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        on = " AND ".join(f"{format_expr(a, left)} = {format_expr(b, right)}" for a, b in pairs)
        more = f" AND {format_expr(self.residual, (*left, *right))}" if self.residual else ""
        return f"{'left ' if self.left_outer else ''}as of {left[self.left_time.column]} on {on}{more}"
