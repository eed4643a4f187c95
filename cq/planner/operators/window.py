"""WindowAggregate: grouped aggregates over tumbling, hopping and cumulating windows, closed by the watermark."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from cq.lang.calendar import DAY_US, months_of_time, most_days_of, time_of_months
from cq.lang.expressions import Column, format_expr
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.lang.value_text import write_duration, write_months_duration
from cq.planner.operators.grouped import Grouped
from cq.planner.plan.node import Indices, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace


class WindowKind(Enum):
    """How windows lie on the time line."""

    TUMBLE = "tumble"
    HOP = "hop"
    CUMULATE = "cumulate"
    ATTACHED = "attached"  # the windows that input rows already belong to: aggregates of aggregates


@dataclass(frozen=True, slots=True)
class Window:
    """Windows [start, start + size) with start = offset + n * slide, over the event time `time`.

    Lengths are in *steps*, which `step_of` counts: microseconds since 1970 or, `by_calendar`, months since its January.
    shift_us: how much later than its month a calendar window starts.
    CUMULATE windows grow: [start, start + n * slide) up to size, with start = offset + m * size.
    ATTACHED windows have no grid: column `time.column` is the window's end, `start_column` its start.
    """

    kind: WindowKind
    time: TimeAttribute
    size: int = 0
    slide: int = 0
    offset: int = 0
    start_column: int = -1
    by_calendar: bool = False
    shift_us: int = 0

    def __post_init__(self) -> None:
        if self.kind is WindowKind.ATTACHED:
            assert self.start_column >= 0, "an attached window without its start"
        else:
            assert self.size > 0 and self.slide > 0, "a window without a length"
        assert self.by_calendar or self.shift_us == 0, "an offset beside the offset"

    @property
    def period(self) -> int:
        """The distance between the starts of consecutive windows."""
        return self.size if self.kind is WindowKind.CUMULATE else self.slide

    @property
    def pane(self) -> int:
        """The longest piece of time that no window of this kind cuts: panes have this length, on the offset's grid."""
        return math.gcd(self.size, self.slide)

    @property
    def longest_us(self) -> int:
        """The length of the longest of these windows."""
        return most_days_of(self.size) * DAY_US if self.by_calendar else self.size

    def step_of(self, time_us: int) -> int:
        """The step that contains a time."""
        return months_of_time(time_us - self.shift_us) if self.by_calendar else time_us

    def time_of(self, step: int) -> int:
        """The start of a step."""
        return time_of_months(step) + self.shift_us if self.by_calendar else step

    def parameters(self, text: Text) -> tuple[object, ...]:
        """Where its windows lie on the time line, for `parameters` of a node. text: over the rows they contain."""
        calendar = ("months", self.shift_us) if self.by_calendar else ()
        return (self.kind.value, self.size, self.slide, self.offset, *calendar, text((0,), self.time))

    def length_text(self, steps: int) -> str:
        """A number of steps, for people; INTERVAL accepts it too."""
        return write_months_duration(steps) if self.by_calendar else write_duration(steps)

    def __str__(self) -> str:
        if self.kind is WindowKind.ATTACHED:
            return "window of the input"
        size = {WindowKind.TUMBLE: "", WindowKind.HOP: ", last ", WindowKind.CUMULATE: ", growing to "}[self.kind]
        length = size and size + self.length_text(self.size)
        offset = f", offset {self.length_text(self.offset)}" if self.offset else ""
        shift = f", offset {write_duration(self.shift_us)}" if self.shift_us else ""
        return f"every {self.length_text(self.slide)}{length}{offset}{shift}"


WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
WINDOW_START, WINDOW_END, WINDOW_TIME, FIRST_KEY = 0, 1, 2, 3  # columns of the result


@dataclass(frozen=True, slots=True)
class Windowed(Grouped):
    """Groups of windows: window_start, window_end and window_time before the keys; window_time is the event time."""

    first_key = FIRST_KEY

    def window_schema(self, time: TimeAttribute) -> Schema:
        """The columns, and the two time attributes of one event time. time: of the rows."""
        own = [Field(n, self.input.schema.type_of(time), False) for n in WINDOW_COLUMNS]
        times = (TimeAttribute(WINDOW_END, -1, self.lag_us), TimeAttribute(WINDOW_TIME, 0, self.lag_us))
        return Schema((*own, *self.columns()), times)

    def window_meaning(self, column: int, text: Text) -> str:
        """The meaning of a column that is not a key, for `meaning`."""
        return WINDOW_COLUMNS[column] if column < FIRST_KEY else self.call_meaning(column, text)

    @property
    def window_kind(self) -> object:
        """Equal for windows that lie on the time line in the same way."""
        raise NotImplementedError

    @property
    def lag_us(self) -> int:
        """How long after the end of its window a row is emitted: its event time lags that far behind the watermark."""
        raise NotImplementedError


@operator("window")
@dataclass(frozen=True, slots=True)
class WindowAggregate(Windowed):
    """For each window and each group of `keys` seen in it, one row when the watermark is `lag_us` past its end.

    Output columns: window_start, window_end, window_time (= window_end - 1 us, the row's event time), the keys, the
    aggregates. Rows leave by window end, window start, first arrival of the group. Late rows are dropped. A window in
    which a row never arrived does not exist; one that grows has the rows of those before it. With a slide longer than
    the size some rows are in no window.
    DOUBLE sums associate by arrival inside a pane, panes left to right.
    """

    window: Window = field(kw_only=True)

    closes = True
    emits_at_end = False
    uses_time = True
    waits_on = (None,)  # rows are counted as they arrive
    fan_out = 1
    may_drop = False

    def __post_init__(self) -> None:
        self._set_schema(self.window_schema(self.window.time))

    @property
    def window_kind(self) -> object:
        return self.window

    @property
    def lag_us(self) -> int:
        """The lag of the rows it reads: those of its last moment come that late."""
        return self.window.time.lag_us

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        start = self.window.start_column
        own = {self.window.time.column, start} if start >= 0 else {self.window.time.column}
        return (self.columns_counted(needed) | own,)

    def moved(self, indices: Indices) -> dict[str, Any]:
        start = self.window.start_column
        time = replace(self.window.time, column=indices[self.window.time.column])
        return {"window": replace(self.window, time=time, start_column=indices[start] if start >= 0 else -1)}

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def merge_pays(self) -> bool:
        """Whether panes are handed over on a grid, which windows of windows do not have."""
        return not self.keeps_lists and self.window.kind is not WindowKind.ATTACHED

    @property
    def closes_one_pane(self) -> bool:
        return self.window.kind in {WindowKind.TUMBLE, WindowKind.HOP} and self.window.size == self.window.pane

    @property
    def cost_ns(self) -> int:
        return self.counting_ns

    @property
    def state(self) -> StateBound:
        panes = -(-self.window.size // self.window.pane) if self.window.pane else 1
        panes = min(panes, 2) if self.window.kind is WindowKind.CUMULATE else panes  # ended ones are merged into one
        kept = f"open windows x {self.groups_kept} ({panes} pane{'s' if panes > 1 else ''} each)"
        return StateBound(kept, bounded=True)

    def check(self) -> None:
        window, below = self.window, self.input.schema
        assert window.time in below.times, "a window over a column that is no event time"
        if window.kind is WindowKind.ATTACHED:
            assert window.start_column < len(below), "an attached window over a missing start"
        else:
            assert 0 <= window.offset < window.period, "a window whose offset is not reduced"
        if window.kind is WindowKind.CUMULATE:
            assert window.size % window.slide == 0, "a window that does not grow to its size"
        if window.kind is WindowKind.TUMBLE:
            assert window.slide == window.size, "a tumbling window that does not tumble"

    def parameters(self, text: Text) -> tuple[object, ...]:
        start_column, type_ = self.window.start_column, self.schema.fields[WINDOW_START].type
        start = "" if start_column < 0 else text((0,), Column(type_, False, start_column))
        return (*self.window.parameters(text), start, *self.group_parameters(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.window_meaning(column, text)

    def describe(self) -> str:
        names = self.input.schema.names
        keys = ", ".join(format_expr(k, names) for k in self.keys)
        return f"{self.window}{' by ' + keys if keys else ''}{self.describe_calls()}"
