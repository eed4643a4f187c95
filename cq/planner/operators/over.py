"""Over: LAG and running aggregates for each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

from cq.errors import NOWHERE, Span
from cq.lang.expressions import Column, Expr, can_fail, columns_of, format_expr, remap
from cq.lang.schema import Field, Schema, TimeAttribute, waited
from cq.lang.types import DataType
from cq.planner.operators.one_input import AddsColumns
from cq.planner.operators.pruning import narrowed, unless_same
from cq.planner.plan.calls import AggregateCall, Change
from cq.planner.plan.costs import PARTITION_NS, key_ns
from cq.planner.plan.node import USE_A_WINDOW, Indices, Inputs, LogicalNode, OpClass, Pruned, StateBound, Text, label
from cq.planner.plan.registration import operator
from cq.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Lag:
    """The value `arg` had `offset` rows before in the partition; `default` (or NULL) when there is no such row."""

    arg: Expr
    offset: int
    default: Expr | None
    type: DataType
    nullable: bool
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Its argument, then its default if it has one."""
        return (self.arg,) if self.default is None else (self.arg, self.default)

    def map(self, change: Change) -> Lag:
        """The call with `change` applied to its expressions."""
        return replace(self, arg=change(self.arg), default=change(self.default) if self.default is not None else None)

    @property
    def can_fail(self) -> bool:
        return any(can_fail(e) for e in self.expressions)

    def parameters(self, text: Callable[[Expr], str]) -> str:
        """What it computes, without names and positions of columns."""
        return f"lag({','.join(text(e) for e in self.expressions)},{self.offset})"

    def __str__(self) -> str:
        return f"lag({format_expr(self.arg)}, {self.offset})"


@dataclass(frozen=True, slots=True)
class OverCalls(AddsColumns):
    """Each input row with one more column per call, computed over rows of its partition: what Over and Frames share.

    Rows are processed in arrival order, or by (time, position) when `order` is given: then late rows are dropped, and
    if the input has a delay a row is processed at the instant the watermark reaches its time; without a delay at once.
    A time that lags behind the watermark is reached that much later.
    """

    partition: tuple[Expr, ...]
    order: TimeAttribute | None
    calls: tuple[Lag | AggregateCall, ...]
    names: tuple[str, ...] = label()

    op_class = OpClass.PARTITIONED
    fan_out = 1
    may_drop = False
    merges_exactly = False
    groups = None
    merge_pays = False
    closes_one_pane = False
    late_alone = False
    looks_up_after = ()
    vouched = ()

    def __post_init__(self) -> None:
        assert self.calls and len(self.calls) == len(self.names)
        added = [Field(n, c.type, c.nullable) for n, c in zip(self.names, self.calls, strict=True)]
        self._set_schema(Schema((*self.input.schema.fields, *added), self.times_after()))

    def times_after(self) -> tuple[TimeAttribute, ...]:
        """The event times of the output rows."""
        raise NotImplementedError

    def times_taken(self) -> tuple[TimeAttribute, ...]:
        """The event times of rows that are emitted when they are processed, for `times_after`."""
        times = self.input.schema.times
        return times if self.order is None else waited(times, self.order)

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.partition,)

    def call_expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        """The partition and the calls, for `expressions`."""
        for e in (*self.partition, *(e for call in self.calls for e in call.expressions)):
            yield e, (0,)

    def with_calls(self, change: Change) -> Self:
        """With `change` applied to the partition and the calls, for `map_expressions`."""
        partition = tuple(change(e) for e in self.partition)
        return replace(self, partition=partition, calls=tuple(c.map(change) for c in self.calls))

    @property
    def fails_itself(self) -> bool:
        return any(c.fails_itself for c in self.calls if isinstance(c, AggregateCall))

    def call_columns(self, needed: set[int]) -> set[int]:
        """The columns passed through, and those that the order, the partition and the calls read, for
        `columns_read`."""
        calls = (e for i in self._kept(needed) for e in self.calls[i].expressions)
        time = {self.order.column} if self.order is not None else set()
        return self.passed(needed) | columns_of(*self.partition, *calls) | time

    def _kept(self, needed: set[int]) -> list[int]:
        """The calls that stay: read by somebody, or able to fail; at least one if late rows are dropped, if the
        partition may fail, or if later errors would otherwise name the group of a row."""
        kept = [i for i, c in enumerate(self.calls) if self.width + i in needed or c.can_fail]
        stays = (
            self.order is not None
            or self.keeps_rows
            or any(map(can_fail, self.partition))
            or self.input.groups is not None
        )
        return kept or ([0] if stays else [])

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        (below,), kept = inputs, self._kept(needed)
        if not kept:
            return Pruned(below.node, {c: p for c, p in below.indices.items() if c < self.width})
        if self.order is not None or self.keeps_rows:  # rows may wait
            below = narrowed(below, read[0])
        indices = below.indices
        new = replace(
            self.moved(indices),
            input=below.node,
            partition=tuple(remap(k, indices) for k in self.partition),
            order=replace(self.order, column=indices[self.order.column]) if self.order is not None else None,
            calls=tuple(self.calls[i].map(lambda e: remap(e, indices)) for i in kept),
            names=tuple(self.names[i] for i in kept),
        )
        return Pruned(unless_same(self, new), self.indices_over(below, kept))

    @property
    def keeps_rows(self) -> bool:
        """Whether rows leave after rows that came later."""
        raise NotImplementedError

    def moved(self, indices: Indices) -> OverCalls:
        """The class's own column references at new indices."""
        raise NotImplementedError

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        return (self.order,)

    @property
    def uses_time(self) -> bool:
        return self.order is not None

    def check_order(self) -> None:
        """The checks that `check` makes in all of them."""
        known = self.order is None or self.order in self.input.schema.times
        assert known, "ordered by a column that is no event time"

    def call_parameters(self, text: Text) -> tuple[object, ...]:
        """Order, partition and calls, for `parameters`."""
        order = text((0,), self.order) if self.order is not None else ""
        return (order, *(text((0,), k) for k in self.partition), *(self._call(c, text) for c in self.calls))

    def call_meaning(self, column: int, text: Text) -> str:
        """The meaning of a call's column, for `meaning`."""
        return self._call(self.calls[column - self.width], text)

    def _call(self, call: Lag | AggregateCall, text: Text) -> str:
        return call.parameters(lambda e: text((0,), e))

    def describe(self) -> str:
        names = self.input.schema.names
        by = ", ".join(format_expr(k, names) for k in self.partition)
        order = f" order by {names[self.order.column]}" if self.order else ""
        within = f"{'partition by ' + by if by else ''}{order}{self.frame_text()}"
        return f"{', '.join(str(c) for c in self.calls)} over ({within})"

    def frame_text(self) -> str:
        """Which rows the calls cover, for people; empty if those up to the row."""
        raise NotImplementedError


@operator("over")
@dataclass(frozen=True, slots=True)
class Over(OverCalls):
    """OverCalls of LAG, or of aggregates of the partition's rows up to this one.

    until: an event time that is the same in all rows of a partition and never NULL; when the watermark is past it, no
    row of the partition comes any more, and it may be forgotten. A rewrite finds it (`forget_partitions`).
    """

    until: TimeAttribute | None = field(default=None, kw_only=True)

    closes = False
    emits_at_end = False
    revises = False
    begins_groups_when_due = False

    keeps_rows = False

    def times_after(self) -> tuple[TimeAttribute, ...]:
        return self.times_taken()

    def holds_back(self, port: int) -> bool:
        return False

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        return self.call_expressions()

    def map_expressions(self, change: Change) -> LogicalNode:
        return self.with_calls(change)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        """Include `until`, which is a column of the partition."""
        return (self.call_columns(needed),)

    @property
    def cost_ns(self) -> int:
        return PARTITION_NS + key_ns(self.partition)

    @property
    def state(self) -> StateBound:
        values = any(isinstance(c, AggregateCall) and c.keeps_values for c in self.calls)
        opened = self.until is not None
        kept = f"one entry {'for each open' if opened else 'a'} partition{', with all values of its rows' * values}"
        return StateBound(kept, bounded=opened or not (self.partition or values), way=USE_A_WINDOW)

    @property
    def closing_times(self) -> tuple[TimeAttribute, ...]:
        """The event times that are the same in all rows of a partition, and never NULL."""
        alike = {e.index for e in self.partition if isinstance(e, Column) and not e.nullable}
        return tuple(t for t in self.schema.times if t.column in alike)

    def moved(self, indices: Indices) -> Over:
        if self.until is None:
            return self
        return replace(self, until=replace(self.until, column=indices[self.until.column]))

    def check(self) -> None:
        self.check_order()
        assert self.until is None or self.until in self.closing_times, "forgotten at a time of which more rows may come"

    def parameters(self, text: Text) -> tuple[object, ...]:
        """Leave out `until`: forgetting a partition that gets no more rows changes no result."""
        return self.call_parameters(text)

    def meaning(self, column: int, text: Text) -> str:
        return self.call_meaning(column, text)

    def frame_text(self) -> str:
        return ""
