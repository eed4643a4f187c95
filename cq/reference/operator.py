"""The interface of the reference's operators: rows in by port, rows out, and instants at which they have something to
do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cq.entries import enter
from cq.lang.functions import Failure
from cq.planner.plan.node import LogicalNode
from cq.reference.evaluate import Row

# Instants and watermarks before and after all 64-bit times; still integers, so that they compare as such.
BEFORE_ALL = -(2**63) - 1
NEVER = 2**63


class Clock:
    """The event being processed, as operators see it.

    now: the watermark; while an instant is served, that instant.
    over: every instant up to it is over: the watermark, or the time just before the instant being served.
    late: whether the source row was late.  late_fails: whether its source says `late = 'fail'`.
    arrivals: the number of rows that operators have numbered so far; a later row has a greater number.
    """

    __slots__ = ("arrivals", "late", "late_fails", "now", "over")

    def __init__(self) -> None:
        self.now = BEFORE_ALL
        self.over = BEFORE_ALL
        self.late = False
        self.late_fails = False
        self.arrivals = 0

    def arrival(self) -> int:
        """The next number: rows numbered within one operator are ordered by position."""
        self.arrivals += 1
        return self.arrivals


class RowOperator:
    """Base of the operators. `out` collects the rows of the event being processed; the graph empties it."""

    def __init__(self, node: LogicalNode, clock: Clock) -> None:
        self.node = node
        self.clock = clock
        self.out: list[Row] = []
        self.late_rows = 0
        self.rejected_events: dict[str, int] = {}  # by trigger

    @classmethod
    def defines(cls, method: str) -> bool:
        """Whether the class overrides this method."""
        return getattr(cls, method) is not getattr(RowOperator, method)

    def on_row(self, port: int, row: Row) -> None:
        """Process a row of input `port`, counted as in `node.inputs`."""
        raise AssertionError(f"{type(self).__name__} takes no rows")

    def next_instant(self) -> int:
        """The earliest instant at which something closes or leaves; NEVER when there is none."""
        return NEVER

    def on_instant(self, instant: int) -> None:
        """Do what is due at `instant`. The inputs' rows of this instant have already arrived."""

    def on_end(self) -> None:
        """The input has ended; all instants are over."""

    def place_of(self, row: Row) -> str:
        """The name that errors use for an emitted row that is the result of a group."""
        raise AssertionError(f"{type(self).__name__} has no groups")

    def drop_if_late(self) -> bool:
        """Whether the row was late, and so was counted and dropped: the first step of every event-time operator.

        CQ0709 when its source wants late rows to stop the query.
        """
        if self.clock.late:
            if self.clock.late_fails:
                failure = Failure("CQ0709", "the row is late: its event time is below the watermark")
                failure.span = self.node.span
                raise failure
            self.late_rows += self.node.copies
        return self.clock.late


Make = Callable[[Any, Clock], RowOperator]
"""(node, clock) -> what runs it; each takes its own class of node."""

OPERATORS: dict[str, Make] = {}
M = TypeVar("M", bound=Make)


def runs(operator: str) -> Callable[[M], M]:
    """Register what runs the nodes of this name."""

    def register(make: M) -> M:
        enter(OPERATORS, operator, make, "operator of the reference")
        return make

    return register


def nulls(width: int) -> tuple[Any, ...]:
    """A row of NULLs."""
    return (None,) * width
