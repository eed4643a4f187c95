"""AssignWindows: each row once for every window that contains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Expr
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.planner.operators.one_input import AddsColumns
from cq.planner.operators.pruning import unless_same
from cq.planner.operators.window import WINDOW_COLUMNS, WINDOW_END, WINDOW_TIME, Window, WindowKind
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Stateless, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("assign_windows")
@dataclass(frozen=True, slots=True)
class AssignWindows(AddsColumns, Stateless):
    """The input row once for each window that holds it, by window end, with the bounds of the window added.

    Added columns: window_start, window_end, window_time (= window_end - 1 us). Late rows are dropped. With a slide
    longer than the size some rows are in no window.
    """

    window: Window

    uses_time = True
    late_alone = False
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        below = self.input.schema
        assert self.window.kind is not WindowKind.ATTACHED, "the windows of rows that are in windows"
        assert self.window.time in below.times, "windows over a column that is no event time"
        added = (Field(n, below.type_of(self.window.time), False) for n in WINDOW_COLUMNS)
        self._set_schema(Schema((*below.fields, *added), (*below.times, *self.ends)))

    @property
    def ends(self) -> tuple[TimeAttribute, ...]:
        """The last moment of the row's window, in two columns.

        A row is emitted at once, and no window that contains it ends at or before its time: the end lags behind the
        watermark no more than that time does, and is ahead of it by the rest of the window.
        """
        time = self.window.time
        ahead_us = time.ahead_us + self.window.longest_us - 1
        end = TimeAttribute(self.width + WINDOW_END, -1, time.lag_us, ahead_us)
        return (end, replace(end, column=self.width + WINDOW_TIME, shift_us=0))

    @property
    def window_kind(self) -> object:
        """As for a window aggregate."""
        return self.window

    @property
    def several(self) -> bool:
        """Whether a row may be in several windows."""
        return self.window.size > self.window.slide

    @property
    def fan_out(self) -> int | None:
        """As for an array, no number if it may be large: kernels reserve space for each row."""
        return None if self.several else 1

    @property
    def may_drop(self) -> bool:
        return self.window.slide > self.window.size

    @property
    def groups(self) -> LogicalNode | None:
        return self.input.groups

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        return iter(())

    def map_expressions(self, change: Change) -> LogicalNode:
        return self

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.passed(needed) | {self.window.time.column},)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        (below,) = inputs
        time = replace(self.window.time, column=below.indices[self.window.time.column])
        new = replace(self, input=below.node, window=replace(self.window, time=time))
        return Pruned(unless_same(self, new), self.indices_over(below))

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return self.window.parameters(text)

    def meaning(self, column: int, text: Text) -> str:
        return WINDOW_COLUMNS[column - self.width]

    def describe(self) -> str:
        return str(self.window)
