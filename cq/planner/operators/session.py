"""SessionAggregate: grouped aggregates over sessions, which end when a key has been silent for longer than a gap."""

from __future__ import annotations

from typing import Any

from cq.lang.expressions import format_expr
from cq.lang.schema import TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.window import Windowed
from cq.planner.plan.costs import SESSION_NS, key_ns
from cq.planner.plan.node import Indices, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace


@operator("session")
@dataclass(frozen=True, slots=True)
class SessionAggregate(Windowed):
    """For each session of each group of `keys`, one row when the watermark is past its end.

    A session is a set of rows of one group in which every row but the first is at most `gap_us` later than another: a
    gap equal to the limit continues it, and a row between two sessions joins them. It starts at its first row's time
    and ends `gap_us` after its last one's. Output columns: window_start, window_end, window_time (= window_end - 1 us,
    the row's event time), the keys, the aggregates. Rows leave at the instant `lag_us` after the end, by window start,
    then by first arrival of the group. Late rows are dropped; a row that is not late cannot belong to a session that
    has left. Two sessions that are joined are merged, the earlier one first, before the row is added.
    """

    time: TimeAttribute = field(kw_only=True)
    gap_us: int = field(kw_only=True)

    closes = True
    emits_at_end = False
    uses_time = True
    merge_pays = False
    waits_on = (None,)  # rows are counted as they arrive
    fan_out = 1
    may_drop = False
    closes_one_pane = False

    def __post_init__(self) -> None:
        assert self.gap_us > 0, "a session without a gap"
        assert not any(a.distinct for a in self.aggregates), "sets in sessions"
        self._set_schema(self.window_schema(self.time))

    @property
    def window_kind(self) -> object:
        return "session", self.gap_us

    @property
    def lag_us(self) -> int:
        """One microsecond more than the rows it reads: a row exactly at the end would continue the session."""
        return self.time.lag_us + 1

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.columns_counted(needed) | {self.time.column},)

    def moved(self, indices: Indices) -> dict[str, Any]:
        return {"time": replace(self.time, column=indices[self.time.column])}

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def cost_ns(self) -> int:
        return SESSION_NS + key_ns(self.keys)

    @property
    def state(self) -> StateBound:
        return StateBound(f"open sessions x {self.groups_kept}", bounded=True)

    def check(self) -> None:
        assert self.time in self.input.schema.times, "a session over a column that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.gap_us, text((0,), self.time), *self.group_parameters(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.window_meaning(column, text)

    def describe(self) -> str:
        keys = ", ".join(format_expr(k, self.input.schema.names) for k in self.keys)
        return f"gaps up to {write_duration(self.gap_us)}{' by ' + keys if keys else ''}{self.describe_calls()}"
