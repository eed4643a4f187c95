"""WindowAggregate: grouped aggregates over tumbling and hopping windows, closed by the watermark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from cq.expressions import Expr, format_expr
from cq.planner.logical import AggregateCall, LogicalNode, OpClass, StateBound, operator
from cq.schema import Field, Schema, TimeAttribute
from cq.types import TIMESTAMP


class WindowKind(Enum):
    """How windows lie on the time line."""

    TUMBLE = "tumble"
    HOP = "hop"
    ATTACHED = "attached"  # the window the input row already belongs to: aggregates of aggregates


@dataclass(frozen=True, slots=True)
class Window:
    """Windows [start, start + size_us) with start = offset_us + n * slide_us, over the event time that `time` gives.

    ATTACHED windows have no grid: column `time.column` is the window's end, `start_column` its start.
    """

    kind: WindowKind
    time: TimeAttribute
    size_us: int = 0
    slide_us: int = 0
    offset_us: int = 0
    start_column: int = -1

    def __post_init__(self) -> None:
        if self.kind is WindowKind.ATTACHED:
            assert self.start_column >= 0, "an attached window without its start"
        else:
            assert self.size_us > 0 and self.slide_us > 0, "a window without a length"

    @property
    def pane_us(self) -> int:
        """The longest piece of time that no window of this kind cuts: panes are this long, on the offset's grid."""
        return math.gcd(self.size_us, self.slide_us)

    def __str__(self) -> str:
        if self.kind is WindowKind.ATTACHED:
            return "window of the input"
        slide = f" every {self.slide_us} us" if self.kind is WindowKind.HOP else ""
        offset = f" offset {self.offset_us} us" if self.offset_us else ""
        return f"{self.kind.value} {self.size_us} us{slide}{offset}"


WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


@operator("window", OpClass.PARTITIONED)
@dataclass(frozen=True, slots=True)
class WindowAggregate(LogicalNode):
    """For each window and each group of `keys` seen in it, one row when the watermark reaches the window's end.

    Output columns: window_start, window_end, window_time (= window_end - 1 us, the row's event time), the keys, the
    aggregates. Rows leave by window end, window start, first arrival of the group. Late rows are dropped. A window in
    which a row never arrived does not exist. With a slide longer than the size some rows are in no window.
    DOUBLE sums associate by arrival inside a pane, panes left to right.
    """

    input: LogicalNode
    window: Window
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    key_names: tuple[str, ...]
    aggregate_names: tuple[str, ...]

    def __post_init__(self) -> None:
        assert len(self.keys) == len(self.key_names) and len(self.aggregates) == len(self.aggregate_names)
        columns = [Field(n, TIMESTAMP, False) for n in WINDOW_COLUMNS]
        columns += [Field(n, k.type, k.nullable) for n, k in zip(self.key_names, self.keys, strict=True)]
        columns += [Field(n, a.type, a.nullable) for n, a in zip(self.aggregate_names, self.aggregates, strict=True)]
        self._set_schema(Schema(tuple(columns), (TimeAttribute(1, shift_us=-1), TimeAttribute(2))))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    @property
    def key(self) -> tuple[Expr, ...] | None:
        return self.keys

    @property
    def uses_time(self) -> bool:
        return True

    @property
    def state(self) -> StateBound:
        panes = -(-self.window.size_us // self.window.pane_us) if self.window.pane_us else 1
        return StateBound(f"open windows x groups ({panes} pane{'s' if panes > 1 else ''} each)")

    def describe(self) -> str:
        names = self.input.schema.names
        keys = ", ".join(format_expr(k, names) for k in self.keys)
        aggregates = ", ".join(str(a) for a in self.aggregates)
        return f"{self.window}{' by ' + keys if keys else ''}: {aggregates}"
