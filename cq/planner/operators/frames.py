"""Frames: aggregates of the rows around each row of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from cq.lang.expressions import Expr, columns_of, remap
from cq.lang.schema import TimeAttribute
from cq.planner.operators.over import OverCalls
from cq.planner.operators.sort import OrderKey
from cq.planner.plan.calls import AggregateCall, Change
from cq.planner.plan.costs import FRAME_NS, PARTITION_NS, TIMED_FRAME_NS, WALK_NS, key_ns
from cq.planner.plan.node import USE_A_WINDOW, Indices, Inputs, LogicalNode, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace


class Unit(StrEnum):
    """The unit of a frame's bounds: rows, microseconds of event time, or the rows' sort key."""

    ROWS = "rows"
    TIME = "time"
    KEY = "key"


class Without(StrEnum):
    """Which rows of a frame are left out: the row itself, it and its peers, or its peers alone."""

    ROW = "the row"
    GROUP = "its peers"
    TIES = "its other peers"


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows from `start` to `end` relative to a row, both included: negative before it; None: no bound."""

    start: int | None
    end: int | None
    unit: Unit
    without: Without | None = None

    @property
    def may_be_empty(self) -> bool:
        """Whether some frame has no row, since the row itself is not in it."""
        outside = (self.end is not None and self.end < 0) or (self.start is not None and self.start > 0)
        return outside or self.without in {Without.ROW, Without.GROUP}

    def __str__(self) -> str:
        first, last = "the first" if self.start is None else self.start, "the last" if self.end is None else self.end
        return f"{self.unit} from {first} to {last}{f' without {self.without}' if self.without is not None else ''}"


ROW = Frame(0, 0, Unit.ROWS)


@operator("frames")
@dataclass(frozen=True, slots=True)
class Frames(OverCalls):
    """OverCalls of aggregates of the rows in a frame around the row.

    A row leaves at once where no later row can be in its frame. Where the frame ends some rows behind it, it leaves
    when the last of these comes, or at the end of the input. Where the frame ends at or behind the row's own time, it
    leaves when the watermark has passed that end, so that rows of equal time are in each other's frames.

    held: all rows leave at the end of the input, or with `times` when the watermark is past that time, which is the
    same in all rows of a partition: partitions by their first arrival, each in its order.
    key: what the rows of a partition come sorted by, where the frame is a range of it: a number of one word.
    walks: there are no states that are merged: whenever the frame has changed, its rows are added one after the other,
    without those that the frame leaves out.
    peer: in a frame of rows that leaves peers out, what is equal in peers alone: a number of one word, never NULL.
    """

    frame: Frame = field(default=ROW, kw_only=True)
    held: bool = field(default=False, kw_only=True)
    times: tuple[TimeAttribute, ...] = field(default=(), kw_only=True)
    key: OrderKey | None = field(default=None, kw_only=True)
    walks: bool = field(default=False, kw_only=True)
    peer: Expr | None = field(default=None, kw_only=True)

    @property
    def aggregates(self) -> tuple[AggregateCall, ...]:
        """The calls."""
        found = tuple(c for c in self.calls if isinstance(c, AggregateCall))
        assert len(found) == len(self.calls), "only aggregates have frames"
        return found

    @property
    def behind_us(self) -> int | None:
        """How far past the row's time the watermark is when the row is emitted; None if it waits for no time."""
        if self.held or self.frame.unit is not Unit.TIME or self.frame.end is None or self.frame.end < 0:
            return None
        assert self.order is not None
        return self.order.lag_us + self.frame.end + 1

    @property
    def following(self) -> int:
        """How many later rows of its partition come before a row is emitted; 0 if it waits for none or for all."""
        if self.held or self.frame.unit is not Unit.ROWS:
            return 0
        assert self.frame.end is not None
        return max(0, self.frame.end)

    @property
    def keeps_rows(self) -> bool:
        """Whether rows leave after rows that came later."""
        return self.held or self.following > 0

    def times_after(self) -> tuple[TimeAttribute, ...]:
        if self.keeps_rows:
            return self.times
        end = self.frame.end
        if self.behind_us is None or end is None:
            return self.times_taken()
        own = (t for t in self.input.schema.times if self.order is not None and t.column == self.order.column)
        return tuple(replace(t, ahead_us=0, lag_us=t.lag_us + end) for t in own)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        yield from self.call_expressions()
        for e in self._ordering:
            yield e, (0,)

    @property
    def _ordering(self) -> tuple[Expr, ...]:
        """The key and the peer, if there are any."""
        key = (self.key.expr,) if self.key is not None else ()
        return key if self.peer is None else (*key, self.peer)

    def map_expressions(self, change: Change) -> LogicalNode:
        return self.with_calls(change)._with_ordering(change)

    def _with_ordering(self, change: Change) -> Frames:
        key = self.key.map(change) if self.key is not None else None
        return replace(self, key=key, peer=change(self.peer) if self.peer is not None else None)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.call_columns(needed) | columns_of(*self._ordering) | {t.column for t in self.times[:1]},)

    def moved(self, indices: Indices) -> Frames:
        times = tuple(replace(t, column=indices[t.column]) for t in self.times if t.column in indices)
        return replace(self._with_ordering(lambda e: remap(e, indices)), times=times)

    @property
    def closes(self) -> bool:
        return self.behind_us is not None or bool(self.times)

    @property
    def emits_at_end(self) -> bool:
        return self.keeps_rows and not self.times

    @property
    def revises(self) -> bool:
        return self.keeps_rows or self.behind_us is not None

    @property
    def begins_groups_when_due(self) -> bool:
        return self.keeps_rows and self.order is not None

    def holds_back(self, port: int) -> bool:
        return self.held or self.behind_us is not None

    @property
    def state(self) -> StateBound:
        if self.held:
            return StateBound("all rows" + (" of each open partition" if self.times else ""), bounded=True)
        if self.frame.start is None and self.walks:
            return StateBound("all rows of each partition", bounded=False, way=USE_A_WINDOW)
        if self.frame.start is None:
            kept = "one entry a partition, and rows that wait"
        else:
            kept = "the rows of a frame for each partition"
        return StateBound(kept, bounded=not self.partition, way=USE_A_WINDOW)

    @property
    def cost_ns(self) -> int:
        slides = TIMED_FRAME_NS if self.behind_us is not None else FRAME_NS
        return PARTITION_NS + (WALK_NS if self.walks else slides) + key_ns(self.partition)

    def check(self) -> None:
        self.check_order()
        start, end, unit = self.frame.start, self.frame.end, self.frame.unit
        assert unit is not Unit.TIME or self.order is not None, "a range of no time"
        assert (unit is Unit.KEY) == (self.key is not None), "a range of no key"
        assert start is None or end is None or start <= end, "a frame that ends before it begins"
        assert self.walks or self.frame.without is None, "rows left out of states that are merged"
        assert self.walks or all(c.function.slides and not c.distinct for c in self.aggregates), "no states to merge"
        ties = self.frame.without in {Without.GROUP, Without.TIES}
        assert (self.peer is not None) == (ties and unit is Unit.ROWS), "peers that nothing tells"
        assert self.held or (end is not None and unit is not Unit.KEY), "a frame of rows that may come later"
        assert self.held or not self.times, "rows that are not kept"
        assert not self.held or self.times or self.input.bounded, "rows of an unbounded input are kept"

    def parameters(self, text: Text) -> tuple[object, ...]:
        held = (self.held, self.walks, self._order_text(text), *(text((0,), t) for t in self.times[:1]))
        return (str(self.frame), *held, *self.call_parameters(text))

    def _order_text(self, text: Text) -> str:
        key = self.key.parameters(lambda e: text((0,), e)) if self.key is not None else ""
        return key if self.peer is None else f"{key} {text((0,), self.peer)}"

    def meaning(self, column: int, text: Text) -> str:
        return f"{self.call_meaning(column, text)} {self.frame} {self._order_text(text)}"

    def frame_text(self) -> str:
        return f" {self.frame}"
