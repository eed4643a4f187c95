"""IntervalJoin: pairs of rows of two streams with equal keys whose times are within an interval of each other; or the
left rows that have such a partner, or have none."""

from __future__ import annotations

from typing import Any

from cq.lang.expressions import Expr
from cq.lang.schema import Schema, TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.joined import Joined, JoinKind, held, later
from cq.planner.plan.costs import INTERVAL_NS, PROOF_NS, WINDOW_JOIN_NS, WINDOW_PROOF_NS, key_ns
from cq.planner.plan.node import Indices, Pulled, StateBound, Text, topological
from cq.planner.plan.registration import operator
from cq.planner.plan.source import sources_of
from cq.records import dataclass, field, replace

LEFT, RIGHT = 0, 1  # inputs: within one event left rows come first


@operator("interval_join")
@dataclass(frozen=True, slots=True)
class IntervalJoin(Joined):
    """Each pair of a left and a right row of equal keys with lower_us <= right time - left time <= upper_us.

    A pair leaves with the later of its rows; the pairs of one row leave in the order in which their other rows came.
    `residual`, over left then right columns, is tested on each pair. In a LEFT join a left row without a pair leaves
    beside NULLs at the instant that proves it: when the watermark is past the last time a right row could have. In a
    FULL one right rows do so, too, and those of one instant leave by arrival.

    In a SEMI join each left row leaves alone and once, with the later of itself and its first match, and those that
    waited for one right row leave by arrival. In an ANTI join left rows without a match leave alone, when those of a
    LEFT join do. In both a row is compared with no more others once it has a match.

    Late rows of either side are dropped. A NULL in a key matches nothing. A row is kept until the watermark shows that
    no row of the other side can still match it.
    """

    left_time: TimeAttribute = field(kw_only=True)
    right_time: TimeAttribute = field(kw_only=True)
    lower_us: int = field(kw_only=True)
    upper_us: int = field(kw_only=True)

    kinds = frozenset(JoinKind)
    left_input = LEFT
    right_input = RIGHT
    emits_at_end = False
    revises = False
    looks_up_after = ()
    waits_on = (None, None)  # rows are matched as they come
    uses_time = True
    fan_out = None

    def __post_init__(self) -> None:
        assert self.lower_us <= self.upper_us, "an interval that holds nothing"
        self._set_schema(Schema(self.columns(), self._times()))

    def _times(self) -> tuple[TimeAttribute, ...]:
        """A row is emitted when it has found the later of the two, so the earlier one lags by the time it may have
        waited. NULLs are no time."""
        if self.kind is JoinKind.FULL:
            return ()
        width, unmatched = len(self.left.schema), self.kind.left_unmatched
        left = [held(t, self.left_time, self.left_expiry_us + unmatched) for t in self.left.schema.times]
        if unmatched or self.kind.left_only:
            return tuple(left)
        right = [held(t, self.right_time, self.right_expiry_us) for t in self.right.schema.times]
        moved = [replace(t, column=t.column + width) for t in right]
        return (*left, *moved)

    @property
    def left_expiry_us(self) -> int:
        """No right row matches a left row once the watermark is more than this past its time."""
        return self.upper_us + self.right_time.lag_us

    @property
    def right_expiry_us(self) -> int:
        """No left row matches a right row once the watermark is more than this past its time."""
        return -self.lower_us + self.left_time.lag_us

    @property
    def in_windows(self) -> bool:
        """Whether rows only match within one window, which ends for both sides at once."""
        times = (self.left_time, self.right_time)
        together = self.lower_us == self.upper_us == self.left_time.lag_us - self.right_time.lag_us
        return together and all(t.ahead_us > 0 for t in times)

    def meets_later_rows(self, port: int) -> bool:
        """Whether a kept row of the port may still meet only rows of sources other than its own: they come one by one,
        each with the watermark in force by then."""
        mine, others = (topological((self.inputs[p],)) for p in (port, 1 - port))
        sources = [{s.position for s in sources_of(nodes)} for nodes in (mine, others)]
        read = all(n.source is not None for n in (*mine, *others) if not n.inputs)
        return read and sources[0].isdisjoint(sources[1]) and not any(n.keeps_state for n in others)

    def pull(self, expr: Expr) -> Pulled | None:
        """Nothing: a row has two causes, and either may be the later one."""
        return None

    def times_read(self) -> tuple[set[int], set[int]]:
        return {self.left_time.column}, {self.right_time.column}

    def times_moved(self, left: Indices, right: Indices) -> dict[str, Any]:
        return {
            "left_time": replace(self.left_time, column=left[self.left_time.column]),
            "right_time": replace(self.right_time, column=right[self.right_time.column]),
        }

    def holds_back(self, port: int) -> bool:
        return False

    @property
    def closes(self) -> bool:
        return self.kind.left_unmatched

    @property
    def may_drop(self) -> bool:
        return self.kind is not JoinKind.FULL

    @property
    def state(self) -> StateBound:
        left = _kept(self.left_time, self.left_expiry_us)
        right = _kept(self.right_time, self.right_expiry_us)
        kept = "left rows without a match" if self.kind.left_only else "left rows"
        return StateBound(f"{kept} for {left} and right rows for {right} of event time", bounded=True)

    @property
    def cost_ns(self) -> int:
        proofs = self.kind.left_unmatched + self.kind.right_unmatched
        own_ns, proof_ns = (WINDOW_JOIN_NS, WINDOW_PROOF_NS) if self.in_windows else (INTERVAL_NS, PROOF_NS)
        return own_ns + proof_ns * proofs + key_ns(self.left_keys)

    def check(self) -> None:
        assert self.left_time in self.left.schema.times, "a left time that is no event time"
        assert self.right_time in self.right.schema.times, "a right time that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        times = (text((LEFT,), self.left_time), text((RIGHT,), self.right_time))
        return (self.kind.name, self.lower_us, self.upper_us, *times, *self.condition(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.either(column, text)

    def describe(self) -> str:
        left, right = self.names_of_sides()
        time, other = left[self.left_time.column], right[self.right_time.column]
        shift_us = self.left_time.shift_us - self.right_time.shift_us  # of the columns against the event times
        lower, upper = later(time, self.lower_us + shift_us), later(time, self.upper_us + shift_us)
        together = f"{other} = {lower}" if lower == upper else f"{other} from {lower} to {upper}"
        return self.kind.describe(f"on {self.describe_condition(together)}")


def _kept(time: TimeAttribute, expiry_us: int) -> str:
    """How long after its own time a row is kept, in words: until the window is over, for a join in windows."""
    left_us = time.ahead_us + 1 if time.ahead_us else 0
    return write_duration(max(0, expiry_us) + left_us)
