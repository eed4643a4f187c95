"""How a stream's event time is found in its rows: in one column, or by computing an expression."""

from __future__ import annotations

from cq.lang.calendar import DAY_US
from cq.lang.expressions import Call, Cast, Column, Expr
from cq.lang.functions import EPOCH_UNITS
from cq.lang.types import INT64_MAX, Kind
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class ColumnTime:
    """An event time that one column gives: its value times `unit_us`, in microseconds.

    It is NULL where the column is, and beyond 64 bits for values outside [least, greatest].
    """

    column: int
    unit_us: int = 1

    @property
    def least(self) -> int:
        return -self.greatest

    @property
    def greatest(self) -> int:
        return INT64_MAX // self.unit_us


def column_time(event_time: Expr | None) -> ColumnTime | None:
    """The column that gives this event time; None when there is none, or it has to be computed."""
    match event_time:
        case Column(index=index, type=t) if t.is_timestamp:
            return ColumnTime(index)
        case Column(index=index, type=t) if t.kind is Kind.DATE:
            return ColumnTime(index, DAY_US)
        case Cast(type=to, arg=Column(index=index, type=t)) if t.kind is Kind.DATE and to.kind is Kind.TIMESTAMP:
            return ColumnTime(index, DAY_US)
        case Call(function=f, args=(Column(index=index, type=t),)) if f.name in EPOCH_UNITS and t.is_integer:
            return ColumnTime(index, EPOCH_UNITS[f.name])
        case _:
            return None


def is_computed(event_time: Expr | None) -> bool:
    """Whether there is an event time and no single column gives it."""
    return event_time is not None and column_time(event_time) is None
