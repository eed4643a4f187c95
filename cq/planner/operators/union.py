"""UnionAll: the rows of several inputs, by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.planner.logical import LogicalNode, operator
from cq.schema import Field, Schema


@operator("union")
@dataclass(frozen=True, slots=True)
class UnionAll(LogicalNode):
    """Every row of every input: by position, and within one event in the order of the inputs.

    Columns have equal types by position and the first input's names; a time attribute survives where all inputs have
    it in the same column with the same shift (the largest lag counts).
    """

    branches: tuple[LogicalNode, ...]

    def __post_init__(self) -> None:
        first = self.branches[0].schema
        assert all(b.schema.types == first.types for b in self.branches), "a union of different types"
        columns = tuple(
            Field(f.name, f.type, any(b.schema.fields[i].nullable for b in self.branches))
            for i, f in enumerate(first.fields)
        )
        times = []
        for time in first.times:
            others = [b.schema.time_of(time.column) for b in self.branches]
            if all(o is not None and o.shift_us == time.shift_us for o in others):
                times.append(replace(time, lag_us=max(o.lag_us for o in others if o is not None)))
        self._set_schema(Schema(columns, tuple(times)))

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.branches

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        return replace(self, branches=tuple(inputs))

    def describe(self) -> str:
        return f"{len(self.branches)} inputs"
