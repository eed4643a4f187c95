"""Frames: aggregates of the rows around each row of a partition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cq.lang.schema import TimeAttribute
from cq.planner.operators.over import OverCalls
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.costs import FRAME_NS, PARTITION_NS, key_ns
from cq.planner.plan.node import StateBound, Text, operator


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows from `start` to `end` of a row, both included: numbers of rows, below 0 before it; None: no bound.

    by_time: they are microseconds of the event time that the rows are ordered by.
    """

    start: int | None
    end: int
    by_time: bool

    @property
    def may_be_empty(self) -> bool:
        """Whether some frame has no row: the row itself is not in it."""
        return self.end < 0 or (self.start is not None and self.start > 0)

    def __str__(self) -> str:
        unit = "range" if self.by_time else "rows"
        return f"{unit} from {'the first' if self.start is None else self.start} to {self.end}"


ROW = Frame(0, 0, False)


@operator("frames")
@dataclass(frozen=True, slots=True)
class Frames(OverCalls):
    """OverCalls of aggregates of the rows in a frame around the row.

    A row leaves at once where no later row can be in its frame. Where its end is at or behind the row's own time, a row
    leaves when the watermark has passed that end, so that rows of equal time are in each other's frames.
    """

    frame: Frame = field(default=ROW, kw_only=True)

    emits_at_end = False

    @property
    def aggregates(self) -> tuple[AggregateCall, ...]:
        """The calls."""
        found = tuple(c for c in self.calls if isinstance(c, AggregateCall))
        assert len(found) == len(self.calls), "only aggregates have frames"
        return found

    @property
    def behind_us(self) -> int | None:
        """How far the watermark is past the row's time when the row leaves; None where it leaves at once."""
        if not self.frame.by_time or self.frame.end < 0:
            return None
        assert self.order is not None
        return self.order.lag_us + self.frame.end + 1

    def _times(self) -> tuple[TimeAttribute, ...]:
        if self.behind_us is None:
            return super(Frames, self)._times()
        own = (t for t in self.input.schema.times if self.order is not None and t.column == self.order.column)
        return tuple(replace(t, ahead_us=0, lag_us=t.lag_us + self.frame.end) for t in own)

    @property
    def closes(self) -> bool:
        return self.behind_us is not None

    def holds_back(self, port: int) -> bool:
        return self.closes

    @property
    def state(self) -> StateBound:
        if self.frame.start is None:
            return StateBound("one entry a partition, and the rows that wait for the watermark")
        return StateBound("the rows of a frame for each partition")

    @property
    def cost_ns(self) -> int:
        return PARTITION_NS + FRAME_NS + key_ns(self.partition)

    def check(self) -> None:
        super(Frames, self).check()
        assert self.order is not None or not self.frame.by_time, "a range of no order"
        assert self.frame.start is None or self.frame.start <= self.frame.end, "a frame that ends before it begins"
        assert self.frame.by_time or self.frame.end <= 0, "a frame of rows that come later"

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (str(self.frame), *super(Frames, self).parameters(text))

    def meaning(self, column: int, text: Text) -> str:
        return f"{super(Frames, self).meaning(column, text)} {self.frame}"

    def _frame(self) -> str:
        return f" {self.frame}"
