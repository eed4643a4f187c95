"""How a stream's event time is found in its rows, or proposed: from one column, or by computing an expression."""

from __future__ import annotations

from collections.abc import Iterable

from cq.lang.calendar import DAY_US
from cq.lang.expressions import Call, Cast, Column, Expr
from cq.lang.functions import EPOCH_UNITS
from cq.lang.types import INT64_MAX, INTEGER_BITS, Kind
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class ColumnTime:
    """An event time taken from one column: its value, of this many bits, times `unit_us`, in microseconds.

    It is NULL if the column is, and beyond 64 bits for values outside [least, greatest].
    """

    column: int
    bits: int
    unit_us: int

    @property
    def least(self) -> int:
        return -self.greatest

    @property
    def greatest(self) -> int:
        return INT64_MAX // self.unit_us


def column_time(event_time: Expr | None) -> ColumnTime | None:
    """The column that gives this event time; None if there is none, or if it has to be computed."""
    match event_time:
        case Column(index=index, type=t) if t.is_timestamp:
            return ColumnTime(index, 64, 1)
        case Column(index=index, type=t) if t.kind is Kind.DATE:
            return ColumnTime(index, 32, DAY_US)
        case Cast(type=to, arg=Column(index=index, type=t)) if t.kind is Kind.DATE and to.kind is Kind.TIMESTAMP:
            return ColumnTime(index, 32, DAY_US)
        case Call(function=f, args=(Column(index=index, type=t),)) if f.name in EPOCH_UNITS and t.is_integer:
            return ColumnTime(index, INTEGER_BITS[t.kind], EPOCH_UNITS[f.name])
        case _:
            return None


def is_computed(event_time: Expr | None) -> bool:
    """Whether there is an event time and no single column gives it."""
    return event_time is not None and column_time(event_time) is None


def is_plain(event_time: Expr | None) -> bool:
    """Whether there is an event time, and a 64-bit column holds it in microseconds: one of the stream's own, or the one
    computed for it."""
    column = column_time(event_time)
    return event_time is not None and (column is None or (column.bits == 64 and column.unit_us == 1))


@dataclass(frozen=True, slots=True)
class SeenTimes:
    """What the rows of a file show about its times.

    delay_us: the most that one falls behind the greatest before it.  rows: how many were read.
    all_rows: whether these are all.  without: how many of them have no time.
    """

    delay_us: int
    rows: int
    all_rows: bool
    without: int

    def __str__(self) -> str:
        """`all 3 rows`."""
        return f"all {self.rows:,} rows" if self.all_rows else f"the first {self.rows:,} rows"


@dataclass(frozen=True, slots=True)
class ProposedTime:
    """The expression, as text, that turns a column into a TIMESTAMP: "" if its values are in no known form; and what
    was seen of these times.

    also: another pattern that fits every value but gives other days for some: with day and month swapped.
    """

    expression: str
    seen: SeenTimes
    also: str = ""


def watermark_text(column: str, delay_us: int) -> str:
    """The WATERMARK of a column whose rows are this late, in whole seconds."""
    if not delay_us:
        return f"WATERMARK FOR {column}"
    return f"WATERMARK FOR {column} AS {column} - INTERVAL '{-(-delay_us // 1_000_000)}' SECOND"


def seconds(micros: int) -> str:
    """`3540`, `0.25`."""
    return f"{micros / 1e6:.6f}".rstrip("0").rstrip(".")


def free_name(names: Iterable[str]) -> str:
    """A name for a computed time that is not a column's."""
    taken = {name.lower() for name in names}
    tried = ("at", "event_time", *(f"event_time_{n}" for n in range(2, len(taken) + 3)))
    return next(name for name in tried if name not in taken)
