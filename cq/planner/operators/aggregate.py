"""Aggregate: grouped aggregates over all rows of a bounded input, emitted at its end."""

from __future__ import annotations

from typing import Any

from cq.lang.expressions import format_expr
from cq.lang.schema import Schema
from cq.planner.operators.grouped import Grouped
from cq.planner.plan.node import Indices, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass


@operator("aggregate")
@dataclass(frozen=True, slots=True)
class Aggregate(Grouped):
    """One row for each group when the input has ended, groups by first arrival. Without keys: one row, even of nothing.

    Output columns: the keys, the aggregates. Late rows count: the end of the input is not an instant of event time.
    """

    first_key = 0
    closes = False
    emits_at_end = True
    uses_time = False
    waits_on = (None,)  # rows are counted as they arrive
    fan_out = 1
    may_drop = False

    def __post_init__(self) -> None:
        assert self.input.bounded, "an aggregate without a window over an unbounded input"
        self._set_schema(Schema(tuple(self.columns())))

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.columns_counted(needed),)

    def moved(self, indices: Indices) -> dict[str, Any]:
        return {}

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def merge_pays(self) -> bool:
        return not self.keeps_lists

    @property
    def closes_one_pane(self) -> bool:
        return True

    @property
    def cost_ns(self) -> int:
        return self.counting_ns

    @property
    def state(self) -> StateBound:
        values = ", with all its values" if any(a.keeps_values for a in self.aggregates) else ""
        return StateBound(f"one entry a group{values}", bounded=True)  # when its input ends

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return self.group_parameters(text)

    def meaning(self, column: int, text: Text) -> str:
        return self.call_meaning(column, text)

    def describe(self) -> str:
        keys = ", ".join(format_expr(k, self.input.schema.names) for k in self.keys)
        return f"{'by ' + keys if keys else ''}{self.describe_calls()}".removeprefix(": ")
