"""AsofJoin: both sides in order of time; for the right side the latest row of each key, or the rows still to be
found."""

from __future__ import annotations

from collections import deque

from cq.planner.operators import AsofJoin
from cq.reference.evaluate import Row, keys_of
from cq.reference.operator import Clock, RowOperator, nulls, runs
from cq.reference.pending import Pending

LEFT, RIGHT = 0, 1  # ports


@runs("asof_join")
class AsofJoinRows(RowOperator):
    """Rows wait until all earlier ones have come; left rows also for the right rows of the latest time they match."""

    def __init__(self, node: AsofJoin, clock: Clock) -> None:
        super().__init__(node, clock)
        self._times = (node.left_time, node.right_time)
        self._keys = (keys_of(node.left_keys), keys_of(node.right_keys))
        self._waits = (node.left_wait_us, node.right_wait_us)
        self._bounds = (node.lower_us, node.upper_us)
        self._ahead = node.ahead
        self._unmatched = nulls(len(node.right.schema)) if node.kind.left_unmatched else None
        self._right: dict[Row, deque[Row]] = {}  # in order of time and position
        self._waiting = (Pending(clock), Pending(clock))

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        due = self._time(port, row) + self._waits[port]
        if due > self.clock.over:
            self._waiting[port].put(due, row)
        else:
            assert port == RIGHT, "a left row whose time is over, and which is not late"
            self._keep(row)

    def next_instant(self) -> int:
        return min(rows.earliest() for rows in self._waiting)

    def on_instant(self, instant: int) -> None:
        for row in self._waiting[LEFT].take(instant):
            found = self._find(row)
            if found is not None:
                self.out.append(row + found)
        for row in self._waiting[RIGHT].take(instant):
            self._keep(row)

    def _time(self, port: int, row: Row) -> int:
        time: int = row[self._times[port].column]
        return time + self._times[port].shift_us

    def _keep(self, row: Row) -> None:
        key = self._keys[RIGHT](row)
        if None not in key:
            rows = self._right.setdefault(key, deque())
            if not self._ahead:
                rows.clear()
            rows.append(row)

    def _find(self, row: Row) -> Row | None:
        """The right columns for a left row; None if it is not emitted. Future left rows are not earlier."""
        rows, time = self._right.get(self._keys[LEFT](row)) or deque(), self._time(LEFT, row)
        lower, upper = self._bounds
        while rows and self._time(RIGHT, rows[0]) < time + lower:
            rows.popleft()
        return rows[0] if rows and self._time(RIGHT, rows[0]) <= time + upper else self._unmatched
