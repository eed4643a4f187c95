"""Join: pairs of rows of two inputs, by keys or by any condition, however far apart they come."""

from __future__ import annotations

from cq.lang.schema import Schema
from cq.planner.operators.joined import JoinKind, UntimedJoin
from cq.planner.plan.node import StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass


@operator("join")
@dataclass(frozen=True, slots=True)
class Join(UntimedJoin):
    """Each pair of a left and a right row of equal keys; without keys each pair there is.

    A pair leaves with the later of its rows; the pairs of one row leave in the order in which their other rows came.
    `residual`, over left then right columns, is tested on each pair. A NULL in a key matches nothing. At the end of the
    inputs, of a LEFT join, left rows without a pair leave beside NULLs, of a FULL one right ones too, all of them by
    arrival; but with `right_first` such a left row leaves when it comes. No event time is used: late rows match as
    others do, and a pair has no event time.
    """

    kinds = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL})
    fan_out = None

    def __post_init__(self) -> None:
        assert len(self.left_keys) == len(self.right_keys), "keys of one side only"
        assert self.left_keys or self.left.bounded or self.right.bounded, "all pairs of two inputs without an end"
        self._set_schema(Schema(self.columns()))

    @property
    def left_waits(self) -> bool:
        """Whether a left row without a pair waits for the end."""
        return self.kind.left_unmatched and not self.right_first

    @property
    def emits_at_end(self) -> bool:
        return self.left_waits or self.kind.right_unmatched

    @property
    def looks_up_after(self) -> tuple[int, ...]:
        """Rows of either side look up those of the other, unless kept rows note that they have a match."""
        if self.emits_at_end:
            return ()
        return (self.right_input,) if self.right_first else (self.left_input, self.right_input)

    @property
    def may_drop(self) -> bool:
        return self.kind is not JoinKind.FULL

    @property
    def state(self) -> StateBound:
        if self.right_first:
            return StateBound("all rows of the right side", bounded=True)
        return StateBound("all rows of both sides", bounded=False, way=self.way_to_keep_less("ON … AND "))

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.kind.name, self.right_first, *self.condition(text))

    def describe(self) -> str:
        condition = self.describe_condition()
        return self.kind.describe(f"on {condition}" if condition else "all pairs")
