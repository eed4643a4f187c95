"""AsofJoin: for each left row, the right row of its key that is the latest up to its time, or the next from then on."""

from __future__ import annotations

from typing import Any

from cq.lang.expressions import Expr, columns_of
from cq.lang.schema import Schema, TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.joined import FARTHEST_US, Joined, JoinKind, held, later
from cq.planner.plan.costs import LOOK_UP_NS, key_ns
from cq.planner.plan.node import USE_A_WINDOW, Indices, Pulled, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace

LEFT, RIGHT = 0, 1  # inputs
LIMIT_WAY = "limit how much later the right row may be: ON … AND b.ts - a.ts <= INTERVAL '5' SECOND"


@operator("asof_join")
@dataclass(frozen=True, slots=True)
class AsofJoin(Joined):
    """Each left row beside one right row of its key with lower_us <= right time - left time <= upper_us.

    Of several it is the last by (time, position), with `ahead` the first. Without a match: nothing, or NULLs in a LEFT
    join. A left row is looked up when the watermark is past the greatest time that matches, so rows leave by (time,
    position). Where that is without a limit they leave at the end, and have no event time; so they do where the times
    are columns that are no event times: any value of those may still come, their lag is FARTHEST_US. Late rows of
    either side are dropped. A NULL in a key matches nothing.
    """

    left_time: TimeAttribute = field(kw_only=True)
    right_time: TimeAttribute = field(kw_only=True)
    lower_us: int = field(kw_only=True)
    upper_us: int = field(kw_only=True)
    ahead: bool = field(default=False, kw_only=True)

    kinds = frozenset({JoinKind.INNER, JoinKind.LEFT})
    left_input = LEFT
    right_input = RIGHT
    closes = True
    emits_at_end = False
    looks_up_after = ()
    uses_time = True
    fan_out = 1

    def __post_init__(self) -> None:
        assert -FARTHEST_US <= self.lower_us <= self.upper_us <= FARTHEST_US, "an interval that holds nothing"
        assert self.residual is None, "a condition of its own"
        ends = self.left.bounded and self.right.bounded
        assert ends or not self.at_end, "rows that wait for an end that never comes"
        times = (held(t, self.left_time, self.left_wait_us - 1) for t in self.left.schema.times)
        self._set_schema(Schema(self.columns(), () if self.at_end else tuple(times)))

    @property
    def at_end(self) -> bool:
        """Whether all rows wait for the end: any right row may still match, or the times are not event times."""
        return max(self.upper_us, self.left_time.lag_us, self.right_time.lag_us) >= FARTHEST_US

    @property
    def revises(self) -> bool:
        return self.at_end

    @property
    def right_wait_us(self) -> int:
        """A right row is inserted after the earlier ones when the watermark is this far past its time.

        By then no earlier one can come, and every left row that must not find it has been looked up.
        """
        return max(self.left_time.lag_us, self.right_time.lag_us) + max(0, -self.upper_us)

    @property
    def left_wait_us(self) -> int:
        """A left row is looked up at the instant this far past its time, before right rows of that instant."""
        return self.right_wait_us + self.upper_us + 1

    @property
    def right_expiry_us(self) -> int:
        """No left row looked up at an instant this far past its time, or later, can match it as the next one."""
        return self.left_wait_us - self.lower_us + 1

    @property
    def limited(self) -> bool:
        """Whether the right row found can be too far from the left one."""
        return self.upper_us < FARTHEST_US and self.lower_us > -FARTHEST_US

    def pull(self, expr: Expr) -> Pulled | None:
        return ((LEFT, expr),) if all(c < len(self.left.schema) for c in columns_of(expr)) else None

    def times_read(self) -> tuple[set[int], set[int]]:
        return {self.left_time.column}, {self.right_time.column}

    def times_moved(self, left: Indices, right: Indices) -> dict[str, Any]:
        return {
            "left_time": replace(self.left_time, column=left[self.left_time.column]),
            "right_time": replace(self.right_time, column=right[self.right_time.column]),
        }

    @property
    def may_drop(self) -> bool:
        return self.kind is JoinKind.INNER

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        waits = (self.left_time, self.left_wait_us), (self.right_time, self.right_wait_us)
        return tuple(replace(time, lag_us=wait_us) for time, wait_us in waits)

    @property
    def state(self) -> StateBound:
        if self.at_end:
            return StateBound("all rows of both sides", bounded=False, way=LIMIT_WAY)
        left = write_duration(self.left_wait_us - 1)
        if self.ahead:
            right = write_duration(self.right_expiry_us - 1)
            return StateBound(f"left rows for {left} and right rows for {right}", bounded=True)
        latest = "the latest right row of each key" if self.left_keys else "the latest right row"
        kept = f"{latest}, and rows of both sides for {left} of event time"
        return StateBound(kept, bounded=not self.left_keys, way=USE_A_WINDOW)

    @property
    def cost_ns(self) -> int:
        return 2 * LOOK_UP_NS + key_ns(self.left_keys)

    def check(self) -> None:
        for time, side in ((self.left_time, self.left), (self.right_time, self.right)):
            assert time in side.schema.times or time.lag_us == FARTHEST_US, "a time that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        times = (text((LEFT,), self.left_time), text((RIGHT,), self.right_time))
        return (self.kind.name, self.lower_us, self.upper_us, self.ahead, *times, *self.condition(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.either(column, text)

    def describe(self) -> str:
        left, right = self.names_of_sides()
        time, other = left[self.left_time.column], right[self.right_time.column]
        shift_us = self.left_time.shift_us - self.right_time.shift_us  # of the columns against the event times
        bounds = (
            f"{side} {later(time, us + shift_us)}"
            for side, us in (("from", self.lower_us), ("up to", self.upper_us))
            if abs(us) < FARTHEST_US
        )
        of = "first" if self.ahead else "last"
        condition = self.describe_condition(f"the {of} {other} {' '.join(bounds)}")
        return self.kind.describe(f"on {condition}")
