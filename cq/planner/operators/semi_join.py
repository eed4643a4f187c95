"""SemiJoin: the rows of one input that match a row of another, or none, however far apart they come."""

from __future__ import annotations

from cq.lang.schema import Schema
from cq.planner.operators.joined import JoinKind, UntimedJoin
from cq.planner.plan.node import StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass


@operator("semi_join")
@dataclass(frozen=True, slots=True)
class SemiJoin(UntimedJoin):
    """The left rows that match a right row (SEMI), or none (ANTI). Its columns are those of the left input.

    Rows of equal keys match, without keys any two, if `residual`, over left then right columns, is TRUE. A NULL in a
    key matches nothing. A row leaves once, with the later of itself and its first match; those that waited for one
    right row leave by arrival. ANTI rows leave at the end of the inputs, by arrival. With `right_first` a row
    leaves when it comes, or never. No event time is used: late rows match as others do, and what leaves has no event
    time.
    """

    kinds = frozenset({JoinKind.SEMI, JoinKind.ANTI})

    def __post_init__(self) -> None:
        assert len(self.left_keys) == len(self.right_keys), "keys of one side only"
        self._set_schema(Schema(self.columns()))

    @property
    def emits_at_end(self) -> bool:
        return self.kind is JoinKind.ANTI and not self.right_first

    @property
    def looks_up_after(self) -> tuple[int, ...]:
        """Not after the left side: a right row changes the left rows that wait for it."""
        return () if self.emits_at_end else (self.right_input,)

    @property
    def fan_out(self) -> int | None:
        return 1 if self.right_first else None

    @property
    def may_drop(self) -> bool:
        return True

    @property
    def state(self) -> StateBound:
        kept = "the keys of the right side" if self.residual is None else "all right rows"
        if self.right_first:
            return StateBound(kept, bounded=True)
        return StateBound(f"left rows without a match, and {kept}", bounded=False, way=self.way_to_keep_less())

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.kind.name, self.right_first, *self.condition(text))

    def describe(self) -> str:
        condition = self.describe_condition()
        return self.kind.describe(f"on {condition}" if condition else "")
