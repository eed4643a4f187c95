"""Scan: the rows of one source, in arrival order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Column, Expr
from cq.lang.schema import Schema, TimeAttribute
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, Leaf, LogicalNode, Pruned, Text
from cq.planner.plan.registration import operator
from cq.planner.plan.source import SourceDef
from cq.records import dataclass, replace


@operator("scan")
@dataclass(frozen=True, slots=True)
class Scan(Leaf):
    """The accepted rows of `source`: readable, with an event time where one is declared, numbered by serial."""

    source: SourceDef

    fan_out = 1
    may_drop = False
    uses_time = False
    late_alone = False
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        time = self.source.event_time
        if not isinstance(time, Column):
            self._set_schema(Schema(self.source.fields))
            return
        # rows without an event time are not accepted, whatever the declaration says
        fields = [replace(f, nullable=f.nullable and i != time.index) for i, f in enumerate(self.source.fields)]
        self._set_schema(Schema(tuple(fields), (TimeAttribute(time.index),)))

    @property
    def ends(self) -> bool:
        return self.source.bounded

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        if self.source.event_time is not None:
            yield self.source.event_time, ()

    def map_expressions(self, change: Change) -> LogicalNode:
        """Unchanged: how a source computes a row's time belongs to the source, not to the plan."""
        return self

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        """All its columns: sources deliver them all, so that unreadable values are noticed."""
        return Pruned(self, {i: i for i in range(len(self.schema))})

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.source.name,)

    def meaning(self, column: int, text: Text) -> str:
        return self.source.fields[column].name

    def describe(self) -> str:
        return self.source.name
