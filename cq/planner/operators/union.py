"""UnionAll: the rows of several inputs, by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Column, Expr
from cq.lang.schema import Field, Schema
from cq.planner.operators.pruning import only, unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Pulled, Stateless, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("union")
@dataclass(frozen=True, slots=True)
class UnionAll(Stateless):
    """Every row of every input: by position, and within one event in the order of the inputs.

    Columns have equal types by position and the first input's names; a time attribute survives where all inputs have
    it in the same column with the same shift (the largest lag counts, and how far it is ahead at most).
    """

    branches: tuple[LogicalNode, ...]

    fan_out = 1
    may_drop = False
    uses_time = False
    late_alone = False
    groups = None
    fails_itself = False
    cost_ns = 0
    vouched = ()
    source = None

    def __post_init__(self) -> None:
        first = self.branches[0].schema
        assert all(b.schema.types == first.types for b in self.branches), "a union of different types"
        columns = tuple(
            Field(f.name, f.type, any(b.schema.fields[i].nullable for b in self.branches))
            for i, f in enumerate(first.fields)
        )
        times = []
        for time in first.times:
            others = [t for b in self.branches if (t := b.schema.time_of(time.column)) and t.shift_us == time.shift_us]
            if len(others) == len(self.branches):
                lag_us, ahead_us = max(o.lag_us for o in others), max(o.ahead_us for o in others)
                times.append(replace(time, lag_us=lag_us, ahead_us=ahead_us))
        self._set_schema(Schema(columns, tuple(times)))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.branches

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        return replace(self, branches=tuple(inputs))

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        return iter(())

    def map_expressions(self, change: Change) -> LogicalNode:
        return self

    def pull(self, expr: Expr) -> Pulled | None:
        return tuple((n, expr) for n in range(len(self.branches)))

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return tuple(set(needed) for _ in self.branches)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        """All branches with the same columns: those somebody reads, in order."""
        kept = sorted(needed)
        branches = tuple(only(below, [indices[c] for c in kept]) for below, indices in inputs)
        return Pruned(unless_same(self, replace(self, branches=branches)), {old: n for n, old in enumerate(kept)})

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return ()

    def meaning(self, column: int, text: Text) -> str:
        return "|".join(text((n,), Column(f.type, f.nullable, column)) for n, f in self._fields(column))

    def _fields(self, column: int) -> list[tuple[int, Field]]:
        return [(n, b.schema.fields[column]) for n, b in enumerate(self.branches)]

    def describe(self) -> str:
        return f"{len(self.branches)} inputs"
