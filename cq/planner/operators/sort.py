"""Sort: rows by order keys, of the whole input or of each partition, all of them or the first few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cq.lang.expressions import Column, Expr, columns_of, format_expr, remap
from cq.lang.schema import Schema, TimeAttribute
from cq.planner.operators.assign_windows import AssignWindows
from cq.planner.operators.one_input import OneInput
from cq.planner.operators.pruning import narrowed, unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.costs import SORT_NS, key_ns
from cq.planner.plan.node import Inputs, LogicalNode, OpClass, Pruned, Pulled, StateBound, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace

# Most rows of a partition that several workers keep separately. CPU ns a row of a window of 100,000, of two separate
# workers and of one: 13 and 11 where 1,000 are kept, 76 and 54 where 10,000 are, 468 and 114 where all are.
MOST_MERGED = 10_000


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of an order. NaN is the greatest number, -0.0 is 0.0, texts compare by their UTF-8 bytes."""

    expr: Expr
    descending: bool
    nulls_first: bool

    def map(self, change: Change) -> OrderKey:
        """The key with `change` applied to its expression."""
        return replace(self, expr=change(self.expr))

    def parameters(self, text: Callable[[Expr], str]) -> str:
        """What it orders by, without names and positions of columns."""
        return f"{text(self.expr)}{' desc' * self.descending}{' nulls first' if self.nulls_first else ' nulls last'}"

    def describe(self, names: Sequence[str]) -> str:
        """The key for people; with the position of NULLs only if it is not the default."""
        nulls = "" if self.nulls_first is not self.descending else f" nulls {'first' if self.nulls_first else 'last'}"
        return f"{format_expr(self.expr, names)}{' desc' * self.descending}{nulls}"


@operator("sort")
@dataclass(frozen=True, slots=True)
class Sort(OneInput):
    """The rows of each partition by the order keys, equal ones by arrival, without the first `offset`, `limit` of them.

    Without `times` they leave when the input has ended; late rows count. With `times`, event times that are the same in
    all rows of a partition, a partition leaves when no more of it can come: when the watermark is past that time. Then
    late rows are dropped. Of what leaves together partitions come by their first arrival, each by the order.
    """

    partition: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    times: tuple[TimeAttribute, ...] = ()
    limit: int | None = None
    offset: int = 0

    op_class = OpClass.PARTITIONED
    waits_on = (None,)  # rows are kept as they arrive
    fan_out = 1
    fails_itself = False
    late_alone = False
    revises = True
    begins_groups_when_due = False
    looks_up_after = ()
    merges_exactly = True
    closes_one_pane = False
    groups = None
    vouched = ()

    def __post_init__(self) -> None:
        assert self.order, "sorted by nothing"
        assert self.times or self.input.bounded, "a sort of an unbounded input that never closes"
        assert self.offset >= 0 and (self.limit is None or self.limit >= 0)
        self._set_schema(Schema(self.input.schema.fields, self.times))

    @property
    def keep(self) -> int | None:
        """How many rows of a partition are kept; None for all."""
        return None if self.limit is None else self.limit + self.offset

    @property
    def on_grid(self) -> bool:
        """Whether partitions are emitted at the ends of windows of its rows: at times known beforehand."""
        return bool(self.times) and _is_end(self.input, self.times[0])

    @property
    def merge_pays(self) -> bool:
        """Few rows of a partition are kept, and admission says when they are emitted."""
        return self.keep is not None and self.keep <= MOST_MERGED and (self.on_grid or not self.times)

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.partition,)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in (*self.partition, *(k.expr for k in self.order)):
            yield e, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        partition = tuple(change(e) for e in self.partition)
        return replace(self, partition=partition, order=tuple(k.map(change) for k in self.order))

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, expr),)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        closing = {t.column for t in self.times[:1]}
        return (needed | columns_of(*self.partition, *(k.expr for k in self.order)) | closing,)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        (below,) = inputs
        below = narrowed(below, read[0])  # rows are kept
        indices = below.indices
        new = replace(
            self,
            input=below.node,
            partition=tuple(remap(k, indices) for k in self.partition),
            order=tuple(k.map(lambda e: remap(e, indices)) for k in self.order),
            times=tuple(replace(t, column=indices[t.column]) for t in self.times if t.column in indices),
        )
        return Pruned(unless_same(self, new), indices)

    def holds_back(self, port: int) -> bool:
        return True

    @property
    def closes(self) -> bool:
        return bool(self.times)

    @property
    def emits_at_end(self) -> bool:
        return not self.times

    @property
    def may_drop(self) -> bool:
        return self.limit is not None or self.offset > 0

    @property
    def uses_time(self) -> bool:
        return bool(self.times)

    @property
    def state(self) -> StateBound:
        rows = "all rows" if self.keep is None else f"{self.keep} rows"
        if self.times:
            return StateBound(f"{rows} of each open partition", bounded=True)
        return StateBound(f"{rows} of each partition" if self.partition else rows, bounded=True)

    @property
    def cost_ns(self) -> int:
        return SORT_NS + key_ns((*self.partition, *(k.expr for k in self.order)))

    def check(self) -> None:
        assert all(t in self.input.schema.times for t in self.times), "closed by a column that is no event time"

    def parameters(self, text: Text) -> tuple[object, ...]:
        own = (self.limit if self.limit is not None else "all", self.offset, *(text((0,), t) for t in self.times[:1]))
        keys = (text((0,), k) for k in self.partition)
        return (*own, *keys, "by", *(k.parameters(lambda e: text((0,), e)) for k in self.order))

    def meaning(self, column: int, text: Text) -> str:
        raise AssertionError("every column of such an operator is its input's")

    def describe(self) -> str:
        names = self.input.schema.names
        by = ", ".join(k.describe(names) for k in self.order)
        within = ", ".join(format_expr(k, names) for k in self.partition)
        first = f" limit {self.limit}" if self.limit is not None else ""
        skipped = f" offset {self.offset}" if self.offset else ""
        return f"by {by}{' within ' + within if within else ''}{first}{skipped}"


def _is_end(node: LogicalNode, time: TimeAttribute) -> bool:
    """Whether a time of the node's rows is the end of the window that they were assigned to."""
    if isinstance(node, AssignWindows) and any(
        (t.column, t.shift_us, t.lag_us) == (time.column, time.shift_us, time.lag_us) for t in node.ends
    ):
        return True
    field = node.schema.fields[time.column]
    pulled = node.pull(Column(field.type, field.nullable, time.column)) or ()
    return bool(pulled) and all(
        isinstance(e, Column) and _is_end(node.inputs[port], replace(time, column=e.index)) for port, e in pulled
    )
