"""Schemas: the columns of a stream, its time attributes, and what is known of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from cq.lang.types import DataType


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name as results show it, its type, and whether it may hold NULL."""

    name: str
    type: DataType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class TimeAttribute:
    """Column `column` plus `shift_us` is the event time of a row: no later row has one below watermark - `lag_us`.

    A window's result has two of them for one event time: `window_time` with shift 0 and `window_end` with shift -1.
    """

    column: int
    shift_us: int = 0
    lag_us: int = 0


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

    def time_of(self, column: int) -> TimeAttribute | None:
        """The time attribute that lives in `column`, if any."""
        return next((t for t in self.times if t.column == column), None)

    def __str__(self) -> str:
        return ", ".join(str(f) for f in self.fields)
