"""Project: computed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cq.expressions import Column, Expr, columns_of, format_expr
from cq.planner.logical import LogicalNode, operator
from cq.schema import Field, Schema, TimeAttribute


@operator("project")
@dataclass(frozen=True, slots=True)
class Project(LogicalNode):
    """One row out for each row in, its columns the values of `exprs`. A bare column keeps its time attribute.

    time_column: the column that computes the source's event time anew (a WATERMARK over a computed column); the binder
    vouches that it has the value `SourceDef.event_time` had. It only adds a time attribute: rows do not change.
    """

    input: LogicalNode
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]
    time_column: int | None = None

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
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        (input,) = inputs
        return replace(self, input=input)

    def describe(self) -> str:
        names = self.input.schema.names
        shown = [(format_expr(e, names), n) for e, n in zip(self.exprs, self.names, strict=True)]
        return ", ".join(text if text == name else f"{text} AS {name}" for text, name in shown)
