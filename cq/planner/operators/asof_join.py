"""AsofJoin: for each left row, the right row of its key that is the latest up to its time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cq.lang.expressions import Expr, columns_of
from cq.lang.schema import Schema, TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.joined import Joined, held
from cq.planner.plan.costs import LOOK_UP_NS, key_ns
from cq.planner.plan.node import Places, Pulled, StateBound, Text, operator

LEFT, RIGHT = 0, 1  # inputs


@operator("asof_join")
@dataclass(frozen=True, slots=True)
class AsofJoin(Joined):
    """Each left row beside the last right row of its key, by (time, position), whose time is at most `upper_us` later.

    A right row whose time is more than -`lower_us` earlier is none: the left row has no match then. Without a
    match: nothing, or with `left_outer` NULLs. Right rows of the greatest time that matches have all come when the
    watermark is past it: then a left row is looked up, so rows leave by (time, position). Late rows of either side are
    dropped. A NULL in a key matches nothing.
    """

    left_time: TimeAttribute = field(kw_only=True)
    right_time: TimeAttribute = field(kw_only=True)
    upper_us: int = field(kw_only=True)
    lower_us: int | None = field(default=None, kw_only=True)

    left_input = LEFT
    right_input = RIGHT
    closes = False
    emits_at_end = False
    uses_time = True
    fan_out = 1

    def __post_init__(self) -> None:
        assert self.lower_us is None or self.lower_us <= self.upper_us, "an interval that holds nothing"
        assert self.residual is None, "a condition of its own"
        behind_us = self.left_wait_us - 1
        times = tuple(held(t, self.left_time, behind_us) for t in self.left.schema.times)
        self._set_schema(Schema(self.columns(), times))

    @property
    def right_wait_us(self) -> int:
        """A right row replaces the one before it when the watermark is this past its time.

        By then no earlier one can come, and no left row that may not see it is still to be looked up.
        """
        return max(self.left_time.lag_us, self.right_time.lag_us) + max(0, -self.upper_us)

    @property
    def left_wait_us(self) -> int:
        """A left row is looked up at the instant that is this past its time, before right rows of that instant."""
        return self.right_wait_us + self.upper_us + 1

    def pull(self, expr: Expr) -> Pulled | None:
        return ((LEFT, expr),) if all(c < len(self.left.schema) for c in columns_of(expr)) else None

    def times_read(self) -> tuple[set[int], set[int]]:
        return {self.left_time.column}, {self.right_time.column}

    def times_moved(self, left: Places, right: Places) -> dict[str, Any]:
        return {
            "left_time": replace(self.left_time, column=left[self.left_time.column]),
            "right_time": replace(self.right_time, column=right[self.right_time.column]),
        }

    @property
    def may_drop(self) -> bool:
        return not self.left_outer

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        waits = (self.left_time, self.left_wait_us), (self.right_time, self.right_wait_us)
        return tuple(replace(time, lag_us=wait_us) for time, wait_us in waits)

    @property
    def state(self) -> StateBound:
        latest = "the latest right row of each key" if self.left_keys else "the latest right row"
        waiting = write_duration(self.left_wait_us - 1)
        return StateBound(f"{latest}, and rows of both sides for {waiting} of event time", not self.left_keys)

    @property
    def cost_ns(self) -> int:
        return 2 * LOOK_UP_NS + key_ns(self.left_keys)

    def check(self) -> None:
        assert self.left_time in self.left.schema.times, "a left time that is no event time"
        assert self.right_time in self.right.schema.times, "a right time that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        times = (text((LEFT,), self.left_time), text((RIGHT,), self.right_time))
        return (self.left_outer, self.upper_us, self.lower_us, *times, *self.condition(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.either(column, text)

    def describe(self) -> str:
        left, right = self.left.schema.names, self.right.schema.names
        difference = f"{right[self.right_time.column]} - {left[self.left_time.column]}"
        shift_us = self.left_time.shift_us - self.right_time.shift_us  # of the columns against the event times
        bound = f"{difference} at most {write_duration(self.upper_us + shift_us)}"
        if self.lower_us is not None:
            bound += f" and at least {write_duration(self.lower_us + shift_us)}"
        return f"{'left ' if self.left_outer else ''}on {self.describe_condition(bound)}"
