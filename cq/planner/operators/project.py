"""Project: computed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Column, Expr, can_fail, columns_of, format_expr, remap, substitute
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.planner.operators.one_input import OneInput
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Pulled, Stateless, Text, label
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("project")
@dataclass(frozen=True, slots=True)
class Project(OneInput, Stateless):
    """One row out for each row in, its columns the values of `exprs`. A bare column keeps its time attribute.

    time_column: the column that computes the source's event time anew (a WATERMARK over a computed column); the binder
    vouches that it has the value `SourceDef.event_time` had. It only adds a time attribute: rows do not change.
    """

    exprs: tuple[Expr, ...]
    names: tuple[str, ...] = label()
    time_column: int | None = None

    fan_out = 1
    may_drop = False
    uses_time = False
    late_alone = False
    fails_itself = False
    cost_ns = 0

    def __post_init__(self) -> None:
        assert len(self.exprs) == len(self.names), "a projection with more names than columns, or fewer"
        assert max(columns_of(*self.exprs), default=-1) < len(self.input.schema), "a projection of a missing column"
        times = []
        for i, e in enumerate(self.exprs):
            time = self.input.schema.time_of(e.index) if isinstance(e, Column) else None
            if time is not None:
                times.append(replace(time, column=i))
        if self.time_column is not None:
            times.append(TimeAttribute(self.time_column))
        named = zip(self.names, self.exprs, strict=True)
        self._set_schema(Schema(tuple(Field(n, e.type, e.nullable) for n, e in named), tuple(times)))

    @property
    def groups(self) -> LogicalNode | None:
        return self.input.groups

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in self.exprs:
            yield e, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(self, exprs=tuple(change(e) for e in self.exprs))

    def pull(self, expr: Expr) -> Pulled | None:
        return ((0, substitute(expr, self.exprs)),)

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (columns_of(*(self.exprs[i] for i in self._kept(needed))),)

    def _kept(self, needed: set[int]) -> list[int]:
        return [i for i, e in enumerate(self.exprs) if i in needed or can_fail(e)]

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        ((below, indices),) = inputs
        kept, time = self._kept(needed), self.time_column
        new = replace(
            self,
            input=below,
            exprs=tuple(remap(self.exprs[i], indices) for i in kept),
            names=tuple(self.names[i] for i in kept),
            time_column=kept.index(time) if time is not None and time in kept else None,
        )
        return Pruned(self if new == self and below is self.input else new, {old: n for n, old in enumerate(kept)})

    @property
    def vouched(self) -> tuple[Expr, ...]:
        return () if self.time_column is None else (self.exprs[self.time_column],)

    def check(self) -> None:
        at = self.time_column
        assert at is None or not isinstance(self.exprs[at], Column), "a bare column keeps its own time attribute"

    def parameters(self, text: Text) -> tuple[object, ...]:
        """None: its columns are identified by their expressions."""
        return ()

    def meaning(self, column: int, text: Text) -> str:
        raise AssertionError("every column is computed from the input")

    def describe(self) -> str:
        names = self.input.schema.names
        shown = [(format_expr(e, names), n) for e, n in zip(self.exprs, self.names, strict=True)]
        return ", ".join(text if text == name else f"{text} AS {name}" for text, name in shown)
