"""AsofJoin: both sides in order of time; of the right side the latest row of each key."""

from __future__ import annotations

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
        self._lower_us = node.lower_us
        self._unmatched = nulls(len(node.right.schema)) if node.left_outer else None
        self._latest: dict[Row, Row] = {}
        self._waiting = (Pending(clock), Pending(clock))

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        due = self._time(port, row) + self._waits[port]
        if due > self.clock.over:
            self._waiting[port].put(due, row)
        else:
            assert port == RIGHT, "a left row whose time is over, and which is not late"
            self._replace(row)

    def next_instant(self) -> int:
        return min(rows.earliest() for rows in self._waiting)

    def on_instant(self, instant: int) -> None:
        for row in self._waiting[LEFT].take(instant):
            self._look_up(row)
        for row in self._waiting[RIGHT].take(instant):
            self._replace(row)

    def _time(self, port: int, row: Row) -> int:
        time: int = row[self._times[port].column]
        return time + self._times[port].shift_us

    def _replace(self, row: Row) -> None:
        key = self._keys[RIGHT](row)
        if None not in key:
            self._latest[key] = row

    def _look_up(self, row: Row) -> None:
        found = self._latest.get(self._keys[LEFT](row))
        if found is not None and self._lower_us is not None:
            near = self._time(RIGHT, found) - self._time(LEFT, row) >= self._lower_us
            found = found if near else None
        if found is None:
            found = self._unmatched
        if found is not None:
            self.out.append(row + found)
