"""Join: pairs of rows of two inputs with equal keys, however far apart they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.planner.operators.joined import Joined
from cq.planner.plan.costs import LOOK_UP_NS, key_ns
from cq.planner.plan.node import Places, Pulled, StateBound, Text, operator

LEFT, RIGHT = 0, 1  # inputs: within one event left rows come first


@operator("join")
@dataclass(frozen=True, slots=True)
class Join(Joined):
    """Each pair of a left and a right row of equal keys.

    A pair leaves with the later of its rows; the pairs of one row leave in the order in which their other rows came.
    `residual`, over left then right columns, is tested on each pair. A NULL in a key matches nothing. At the end of the
    inputs, with `left_outer`, left rows without a pair leave beside NULLs, with `right_outer` right ones too, all of
    them by arrival. No event time is used: late rows match as others do, and a pair has no event time.
    """

    right_outer: bool = field(default=False, kw_only=True)

    left_input = LEFT
    right_input = RIGHT
    closes = False
    uses_time = False
    fan_out = None

    def __post_init__(self) -> None:
        assert self.left_keys and len(self.left_keys) == len(self.right_keys), "a join without keys"
        assert self.left_outer or not self.right_outer, "a join of which only the right rows are kept"
        assert self.inputs_end or not self.left_outer, "rows that wait for an end that never comes"
        self._set_schema(Schema(self.columns(self.right_outer)))

    @property
    def inputs_end(self) -> bool:
        return self.left.bounded and self.right.bounded

    def pull(self, expr: Expr) -> Pulled | None:
        """Nothing: a row has two causes, of which either may be the later one."""
        return None

    def times_read(self) -> tuple[set[int], set[int]]:
        return set(), set()

    def times_moved(self, left: Places, right: Places) -> dict[str, Any]:
        return {}

    def holds_back(self, port: int) -> bool:
        return False

    @property
    def waits_on(self) -> tuple[None, None]:
        """Rows are matched as they come."""
        return (None, None)

    @property
    def emits_at_end(self) -> bool:
        return self.left_outer

    @property
    def may_drop(self) -> bool:
        return not self.right_outer

    @property
    def state(self) -> StateBound:
        way = "limit how far apart the times are: ON … AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"
        return StateBound("all rows of both sides", bounded=False, way=way)

    @property
    def cost_ns(self) -> int:
        return 2 * LOOK_UP_NS + key_ns(self.left_keys)

    def check(self) -> None:
        """Nothing more: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.left_outer, self.right_outer, *self.condition(text))

    def meaning(self, column: int, text: Text) -> str:
        return self.either(column, text)

    def describe(self) -> str:
        kind = "full " if self.right_outer else "left " if self.left_outer else ""
        return f"{kind}on {self.describe_condition()}"
