"""TemporalJoin: for each left row, the right row with its key at its time."""

from __future__ import annotations

from typing import Any

from cq.lang.expressions import Column, Expr, columns_of
from cq.lang.schema import Schema, TimeAttribute, waited
from cq.planner.operators.joined import Joined, JoinKind
from cq.planner.plan.costs import LOOK_UP_NS, key_ns
from cq.planner.plan.node import USE_A_WINDOW, Indices, Pulled, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace

RIGHT, LEFT = 0, 1  # inputs: within one event right rows take effect first


@operator("temporal_join")
@dataclass(frozen=True, slots=True)
class TemporalJoin(Joined):
    """Each left row beside the latest right row of equal key whose event time is at or before the left row's.

    A left row waits until the watermark reaches its time (no wait without a delay), late ones are dropped, and rows
    leave by (time, position). `residual`, over left then right columns, is tested on the one candidate: when it is not
    TRUE there is no match. Without a match: nothing, or NULLs in a LEFT join. A NULL in a key matches nothing.
    Within one event right rows take effect first.
    """

    left_time: TimeAttribute = field(kw_only=True)

    kinds = frozenset({JoinKind.INNER, JoinKind.LEFT})
    left_input = LEFT
    right_input = RIGHT
    closes = False
    emits_at_end = False
    revises = False
    looks_up_after = ()
    uses_time = True
    fan_out = 1

    def __post_init__(self) -> None:
        assert self.left_keys and len(self.left_keys) == len(self.right_keys), "a temporal join without keys"
        self._set_schema(Schema(self.columns(), waited(self.left.schema.times, self.left_time)))

    def pull(self, expr: Expr) -> Pulled | None:
        return ((LEFT, expr),) if all(c < len(self.left.schema) for c in columns_of(expr)) else None

    def times_read(self) -> tuple[set[int], set[int]]:
        return {self.left_time.column}, set()

    def times_moved(self, left: Indices, right: Indices) -> dict[str, Any]:
        return {"left_time": replace(self.left_time, column=left[self.left_time.column])}

    @property
    def may_drop(self) -> bool:
        return self.kind is JoinKind.INNER

    def holds_back(self, port: int) -> bool:
        return port == RIGHT

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        return (None, self.left_time)

    @property
    def state(self) -> StateBound:
        return StateBound("the latest right row of each key", bounded=False, way=USE_A_WINDOW)

    @property
    def cost_ns(self) -> int:
        return LOOK_UP_NS + key_ns(self.right_keys)

    def check(self) -> None:
        assert self.left_time in self.left.schema.times, "as of a column that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.kind.name, text((LEFT,), self.left_time), *self.condition(text))

    def meaning(self, column: int, text: Text) -> str:
        index = column - len(self.left.schema)
        field = self.right.schema.fields[index]
        return text((RIGHT,), Column(field.type, field.nullable, index))

    def describe(self) -> str:
        time = self.left.schema.names[self.left_time.column]
        return self.kind.describe(f"as of {time} on {self.describe_condition()}")
