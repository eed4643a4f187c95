"""Positions in Spark: the columns that every CTE carries besides its own, and what they mean.

All order is by position (`docs/language.md`, "Meaning"). A row belongs to an event: a source row, or an instant that
the watermark passed. Three columns hold its position; sorted by them, rows are in the reference's order:
    _w  BIGINT         the watermark at the event: for an instant the instant, for a row the watermark after it
    _s  BIGINT         for a row its serial, for an instant -1: every instant up to a watermark is served before the row
                       that moved the watermark there. The end of the input is END, END
    _o  ARRAY<BIGINT>  the place within the event; arrays compare element by element. It grows on the way down:
                       a union puts the number of the branch before it, unnest the number of the element behind it
Watermarks never decrease, so no operator has to look up which row moved the watermark over an instant: a window that
closes at `e` emits at (e, -1), and a row that waits until the watermark reaches its time `t` leaves at (t, -1).
    _late TINYINT      only where rows can be late (`CteRows.late`): ON_TIME; LATE, when the source row that caused the
                       row was; LATE_FAILS, when its source says `late = 'fail'`. What an instant causes is never late

The columns of the operator itself are c0, c1, … . Names from the query never appear in the text.
"""

from __future__ import annotations

from cq.lang.schema import TimeAttribute
from cq.records import dataclass

ON_TIME, LATE, LATE_FAILS = 0, 1, 2
END = "9223372036854775807L"  # the watermark, and the serial, of the end of the input
LATE_FAILURE = "a row is late: its event time is below the watermark"
NO_ORDINAL = "cast(array() as ARRAY<BIGINT>)"  # the place of a row that is alone in its event


@dataclass(frozen=True, slots=True)
class CteRows:
    """The rows of a CTE as the operators above it see them.

    late: whether it has the column `_late`.  strict: whether some of its late rows fail.
    """

    name: str
    width: int
    late: bool
    strict: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Its own columns."""
        return column_names(self.width)

    @property
    def position(self) -> str:
        """The position columns, and `_late` if there is one, as a list to select."""
        return "_w, _s, _o, _late" if self.late else "_w, _s, _o"

    @property
    def on_time(self) -> str:
        """The WHERE clause of an event-time operator, on its own line; empty if nothing is late."""
        if self.strict:
            raised = f"raise_error('CQ0709: {LATE_FAILURE}')"
            return f"\n  where case _late when {LATE_FAILS} then {raised} else _late = {ON_TIME} end"
        return f"\n  where _late = {ON_TIME}" if self.late else ""


@dataclass(frozen=True, slots=True)
class Lowered:
    """The result of lowering an operator: a SELECT over the CTEs of its inputs. late: whether it has a column
    `_late`."""

    text: str
    late: bool = False


def column_names(width: int) -> tuple[str, ...]:
    """c0, c1, …"""
    return tuple(f"c{i}" for i in range(width))


def select_list(texts: list[str] | tuple[str, ...]) -> str:
    """Expressions as the columns c0, c1, …; a column that keeps its name stands alone."""
    named = [(text, f"c{i}") for i, text in enumerate(texts)]
    long = sum(len(text) for text in texts) > 100
    return (",\n         " if long else ", ").join(
        text if text == name else f"{text} as {name}" for text, name in named
    )


def micros(text: str) -> str:
    """A TIMESTAMP as the count of microseconds since 1970."""
    return f"unix_micros(cast({text} as TIMESTAMP_LTZ))"


def timestamp(text: str) -> str:
    """A count of microseconds since 1970 as a TIMESTAMP."""
    return f"cast(timestamp_micros({text}) as TIMESTAMP_NTZ)"


def event_time(time: TimeAttribute, columns: tuple[str, ...]) -> str:
    """The event time of a row in microseconds."""
    return plus(micros(columns[time.column]), time.shift_us)


def plus(text: str, amount: int) -> str:
    """A sum with a constant; 0 adds nothing."""
    return text if amount == 0 else f"{text} {'+' if amount > 0 else '-'} {abs(amount)}L"
