"""Scan: the rows of one source, in arrival order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cq.errors import NOWHERE, Span
from cq.expressions import Column, Expr
from cq.planner.logical import LogicalNode, operator
from cq.schema import Field, Schema, TimeAttribute


@dataclass(frozen=True, slots=True)
class SourceDef:
    """A declared stream.

    fields: the columns its connector delivers.  event_time: what gives a row its event time, over `fields`; None when
    it has no WATERMARK.  delay_us: the watermark is the running maximum of the event time minus this.
    position: its place among the sources of the file, which breaks ties when sources are merged.
    """

    name: str
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()
    event_time: Expr | None = None
    delay_us: int = 0
    bounded: bool = True
    position: int = 0
    span: Span = field(default=NOWHERE, compare=False)

    def option(self, key: str, default: str = "") -> str:
        return dict(self.options).get(key, default)


@operator("scan")
@dataclass(frozen=True, slots=True)
class Scan(LogicalNode):
    """The accepted rows of `source`: readable, with an event time where one is declared, numbered by serial."""

    source: SourceDef

    def __post_init__(self) -> None:
        time = self.source.event_time
        if not isinstance(time, Column):
            self._set_schema(Schema(self.source.fields))
            return
        # rows without an event time are not accepted, whatever the declaration says
        fields = [replace(f, nullable=f.nullable and i != time.index) for i, f in enumerate(self.source.fields)]
        self._set_schema(Schema(tuple(fields), (TimeAttribute(time.index),)))

    @property
    def bounded(self) -> bool:
        return self.source.bounded

    def describe(self) -> str:
        return self.source.name
