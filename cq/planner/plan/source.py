"""Declared streams, and which of them a plan reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from cq.connectors.registry import option
from cq.errors import NOWHERE, Span
from cq.lang.event_time import ProposedTime, is_plain
from cq.lang.expressions import Expr
from cq.lang.schema import Field, Unheld
from cq.records import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceDef:
    """A declared stream.

    fields: the columns its connector delivers.  event_time: the expression for a row's event time, over `fields`; None
    without a WATERMARK.  delay_us: the watermark is the running maximum of the event time minus this.
    idle_us: after this long without rows no other source waits for it; None: they always wait.
    inferred: whether nobody declared the fields, so that they may be a guess.  unheld: columns of no SQL type.
    proposed: the expression that would make an event time of the column that the query uses as one, if its rows were
    looked at.  position: its place among the sources of the file, unique in a plan: it identifies a source, never the
    name, and breaks ties when sources are merged.
    rows: all its rows, as physical values, if they are written in the query; else None.
    """

    name: str
    fields: tuple[Field, ...]
    options: tuple[tuple[str, str], ...] = ()
    event_time: Expr | None = None
    delay_us: int = 0
    idle_us: int | None = None
    bounded: bool = True
    inferred: bool = field(default=False, compare=False)
    unheld: tuple[Unheld, ...] = field(default=(), compare=False)
    proposed: ProposedTime | None = field(default=None, compare=False)
    position: int = 0
    rows: tuple[tuple[Any, ...], ...] | None = field(default=None, compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def strict(self) -> bool:
        """Whether a late row ends the run at the first operator that asks for event time."""
        return self.option("late") == "fail"

    def option(self, key: str) -> str:
        """The value of an option, as written or by default."""
        return option(dict(self.options), key)


class Reads(Protocol):
    """A node of a plan, as far as this file needs to know it."""

    @property
    def source(self) -> SourceDef | None: ...


def sources_of(nodes: Iterable[Reads]) -> tuple[SourceDef, ...]:
    """The sources these nodes read, each once, by their place in the file: their number is their port."""
    found: dict[int, SourceDef] = {}
    for node in nodes:
        if (source := node.source) is not None:
            other = found.setdefault(source.position, source)
            assert other is source or other == source, f'"{source.name}" and "{other.name}" at one place'
    return tuple(found[position] for position in sorted(found))


def may_wait(sources: Iterable[SourceDef]) -> bool:
    """Whether a row that is not late can arrive before the watermark reaches its time.

    With one timed source and no delay, the row itself moves the watermark there; with several, the slowest one counts.
    """
    timed = [s for s in sources if s.event_time is not None]
    return len(timed) > 1 or any(s.delay_us > 0 for s in timed)


def may_mix(sources: Iterable[SourceDef]) -> bool:
    """Whether admission can put alternating rows of these sources into one segment.

    It merges two sources row by row, and reads their times in place.
    """
    plain = [is_plain(s.event_time) for s in sources]
    return len(plain) == 2 and all(plain)
