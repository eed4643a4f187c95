"""SessionRows: the rows of each session, with its bounds, when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Expr, columns_of, format_expr, remap
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.lang.value_text import write_duration
from cq.planner.operators.one_input import AddsColumns
from cq.planner.operators.pruning import narrowed, unless_same
from cq.planner.operators.window import WINDOW_COLUMNS, WINDOW_END, WINDOW_TIME
from cq.planner.plan.calls import Change
from cq.planner.plan.costs import SESSION_ROWS_NS, key_ns
from cq.planner.plan.node import Inputs, LogicalNode, OpClass, Pruned, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("session_rows")
@dataclass(frozen=True, slots=True)
class SessionRows(AddsColumns):
    """Each input row when its session has ended, with the bounds of the session added.

    Sessions of `keys` are those of `SessionAggregate`. Added columns: window_start, window_end, window_time
    (= window_end - 1 us, the row's event time). Rows leave at the instant `lag_us` after the end of their session:
    sessions by window start, then by first arrival, the rows of each by arrival. Late rows are dropped.
    """

    keys: tuple[Expr, ...]
    time: TimeAttribute
    gap_us: int

    op_class = OpClass.PARTITIONED
    waits_on = (None,)  # rows are kept as they arrive
    fan_out = 1
    fails_itself = False
    may_drop = False
    merges_exactly = False
    merge_pays = False
    closes_one_pane = False
    groups = None
    closes = True
    emits_at_end = False
    uses_time = True
    late_alone = False
    revises = True
    begins_groups_when_due = False
    looks_up_after = ()
    vouched = ()

    def __post_init__(self) -> None:
        assert self.gap_us > 0, "a session without a gap"
        added = [Field(n, self.input.schema.type_of(self.time), False) for n in WINDOW_COLUMNS]
        end = TimeAttribute(self.width + WINDOW_END, -1, self.lag_us)
        times = (end, replace(end, column=self.width + WINDOW_TIME, shift_us=0))
        self._set_schema(Schema((*self.input.schema.fields, *added), times))

    @property
    def window_kind(self) -> object:
        """As for the aggregate over sessions."""
        return "session", self.gap_us

    @property
    def lag_us(self) -> int:
        """One microsecond more than the rows it reads: a row exactly at the end would continue the session."""
        return self.time.lag_us + 1

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.keys,)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in self.keys:
            yield e, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(self, keys=tuple(change(e) for e in self.keys))

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.passed(needed) | columns_of(*self.keys) | {self.time.column},)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        (below,) = inputs
        below = narrowed(below, read[0])  # rows are kept
        indices = below.indices
        new = replace(
            self,
            input=below.node,
            keys=tuple(remap(k, indices) for k in self.keys),
            time=replace(self.time, column=indices[self.time.column]),
        )
        return Pruned(unless_same(self, new), self.indices_over(below))

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def state(self) -> StateBound:
        return StateBound("all rows of the open sessions", bounded=True)

    @property
    def cost_ns(self) -> int:
        return SESSION_ROWS_NS + key_ns(self.keys)

    def check(self) -> None:
        assert self.time in self.input.schema.times, "a session over a column that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.gap_us, text((0,), self.time), *(text((0,), k) for k in self.keys))

    def meaning(self, column: int, text: Text) -> str:
        return WINDOW_COLUMNS[column - self.width]

    def describe(self) -> str:
        keys = ", ".join(format_expr(k, self.input.schema.names) for k in self.keys)
        return f"gaps up to {write_duration(self.gap_us)}{' by ' + keys if keys else ''}"
