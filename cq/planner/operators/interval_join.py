"""IntervalJoin: pairs of rows of two streams with equal keys whose times are within an interval of each other."""

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

LEFT, RIGHT = 0, 1  # inputs: within one event left rows come first


@operator("interval_join")
@dataclass(frozen=True, slots=True)
class IntervalJoin(LogicalNode):
    """Each pair of a left and a right row of equal keys with lower_us <= right time - left time <= upper_us.

    A pair leaves with the later of its rows; the pairs of one row leave in the order in which their other rows came.
    `residual`, over left then right columns, is tested on each pair. With `left_outer` a left row without a pair leaves
    beside NULLs at the instant that proves it: when the watermark is past the last time a right row could have. Late
    rows of either side are dropped. A NULL in a key matches nothing. A row is kept until the watermark shows that no
    row of the other side can still match it.
    """

    left: LogicalNode
    right: LogicalNode
    left_time: TimeAttribute
    right_time: TimeAttribute
    lower_us: int
    upper_us: int
    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    residual: Expr | None = None
    left_outer: bool = False

    op_class = OpClass.PARTITIONED
    source = None
    key_columns: ClassVar[Mapping[int, Expr]] = {}
    fails_itself = False
    emits_at_end = False
    fan_out = None
    uses_time = True
    merges_exactly = False
    merge_pays = False
    output_kind = OutputKind.APPEND

    def __post_init__(self) -> None:
        assert self.lower_us <= self.upper_us, "an interval that holds nothing"
        assert all(a.type == b.type for a, b in zip(self.left_keys, self.right_keys, strict=True)), "keys of two types"
        right = [replace(f, nullable=True) if self.left_outer else f for f in self.right.schema.fields]
        fields: tuple[Field, ...] = (*self.left.schema.fields, *right)
        self._set_schema(Schema(fields, self._times()))

    def _times(self) -> tuple[TimeAttribute, ...]:
        """A row leaves when it has found the later of the two, so the earlier one lags by what it may have waited."""
        waited = self.left_expiry_us + self.left_outer
        width = len(self.left.schema)
        left = [replace(t, lag_us=max(t.lag_us, waited)) for t in self.left.schema.times]
        right = [
            replace(t, column=t.column + width, lag_us=max(t.lag_us, self.right_expiry_us))
            for t in self.right.schema.times
        ]
        return tuple(left if self.left_outer else left + right)

    @property
    def left_expiry_us(self) -> int:
        """No right row matches a left row once the watermark is more than this past its time."""
        return self.upper_us + self.right_time.lag_us

    @property
    def right_expiry_us(self) -> int:
        """No left row matches a right row once the watermark is more than this past its time."""
        return -self.lower_us + self.left_time.lag_us

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        left, right = inputs
        return replace(self, left=left, right=right)

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.left_keys, self.right_keys)

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
        """Nothing: a row has two causes, of which either may be the later one."""
        return None

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        width = len(self.left.schema)
        mine = needed | (columns_of(self.residual) if self.residual is not None else set())
        left = {c for c in mine if c < width} | columns_of(*self.left_keys) | {self.left_time.column}
        right = {c - width for c in mine if c >= width} | columns_of(*self.right_keys) | {self.right_time.column}
        return left, right

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        left, right = (narrowed(below, columns) for below, columns in zip(inputs, read, strict=True))
        width, new_width = len(self.left.schema), len(left.node.schema)
        places = {**left.places, **{width + c: new_width + p for c, p in right.places.items()}}
        new = replace(
            self,
            left=left.node,
            right=right.node,
            left_time=replace(self.left_time, column=left.places[self.left_time.column]),
            right_time=replace(self.right_time, column=right.places[self.right_time.column]),
            left_keys=tuple(remap(k, left.places) for k in self.left_keys),
            right_keys=tuple(remap(k, right.places) for k in self.right_keys),
            residual=remap(self.residual, places) if self.residual is not None else None,
        )
        return Pruned(unless_same(self, new), places)

    def holds_back(self, port: int) -> bool:
        return False

    @property
    def may_drop(self) -> bool:
        return not self.left_outer

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        """Rows are matched as they come."""
        return (None, None)

    @property
    def closes(self) -> bool:
        return self.left_outer

    @property
    def state(self) -> StateBound:
        kept = (max(0, self.left_expiry_us), max(0, self.right_expiry_us))
        return StateBound(f"left rows of {kept[0]} us, right rows of {kept[1]} us behind the watermark")

    @property
    def cost_ns(self) -> int:
        return 2 * LOOK_UP_NS + key_ns(self.left_keys)

    def check(self) -> None:
        assert self.left_time in self.left.schema.times, "a left time that is no event time"
        assert self.right_time in self.right.schema.times, "a right time that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        keys = (f"{text((LEFT,), a)}={text((RIGHT,), b)}" for a, b in pairs)
        times = (text((LEFT,), self.left_time), text((RIGHT,), self.right_time))
        residual = text((LEFT, RIGHT), self.residual) if self.residual is not None else ""
        return (self.left_outer, self.lower_us, self.upper_us, *times, residual, *keys)

    def meaning(self, column: int, text: Text) -> str:
        width = len(self.left.schema)
        port, place = (LEFT, column) if column < width else (RIGHT, column - width)
        field = self.inputs[port].schema.fields[place]
        return f"{port}:{text((port,), Column(field.type, field.nullable, place))}"

    def describe(self) -> str:
        left, right = self.left.schema.names, self.right.schema.names
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        on = [f"{format_expr(a, left)} = {format_expr(b, right)}" for a, b in pairs]
        difference = f"{right[self.right_time.column]} - {left[self.left_time.column]}"
        on.append(f"{difference} in [{self.lower_us}, {self.upper_us}] us")
        if self.residual is not None:
            on.append(format_expr(self.residual, (*left, *right)))
        return f"{'left ' if self.left_outer else ''}on {' AND '.join(on)}"
