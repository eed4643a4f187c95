"""Schemas: the columns of a stream, its time attributes, and facts about its rows."""

from __future__ import annotations

from cq.lang.types import TIMESTAMP, DataType
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name as results show it, its type, and whether it may hold NULL."""

    name: str
    type: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class Unheld:
    """A column that exists but that no query can read: its type has no SQL type here.

    file: set if it has a type, but of several files only this one and others after the first have it.
    way: how to make it readable, if known.
    """

    name: str
    type: str
    file: str = ""
    way: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.type}{f' of {self.file}' if self.file else ''}"


@dataclass(frozen=True, slots=True)
class TimeAttribute:
    """Column `column` plus `shift_us` is the event time of a row: no later row has one below watermark - `lag_us`.

    A window's result has two of them for one event time: `window_time` with shift 0 and `window_end` with shift -1.

    ahead_us: how far it may be ahead of the time with which its row came: the end of a window that is still open. For
    two times a, b of one row, b - a is at most `a.lag_us + b.ahead_us`.
    """

    column: int
    shift_us: int = 0
    lag_us: int = 0
    ahead_us: int = 0

    @property
    def waited_for(self) -> bool:
        """Whether rows that wait for it may have to although their sources declare no delay."""
        return self.lag_us > 0 or self.ahead_us > 0


def waited(times: tuple[TimeAttribute, ...], own: TimeAttribute) -> tuple[TimeAttribute, ...]:
    """The time attributes of rows that have waited for the watermark to reach `own`.

    All of them if the row came with that time; otherwise it is unknown how far the others lag by then.
    """
    return tuple(replace(t, ahead_us=0) for t in times if t.column == own.column) if own.waited_for else times


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order and the time attributes among them."""

    fields: tuple[Field, ...]
    times: tuple[TimeAttribute, ...] = ()

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(f.type for f in self.fields)

    def type_of(self, time: TimeAttribute) -> DataType:
        """TIMESTAMP, or TIMESTAMP_LTZ if the event time is one: the type of the bounds of windows over it."""
        type_ = self.fields[time.column].type
        return type_ if type_.is_timestamp else TIMESTAMP

    def time_of(self, column: int) -> TimeAttribute | None:
        """The time attribute in `column`, if any."""
        return next((t for t in self.times if t.column == column), None)

    def __str__(self) -> str:
        return ", ".join(str(f) for f in self.fields)
