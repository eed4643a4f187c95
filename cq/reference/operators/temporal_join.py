"""TemporalJoin: for each left row, the right row with its key at its time."""

from __future__ import annotations

from bisect import bisect_right

from cq.planner.operators import TemporalJoin
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.operator import Clock, RowOperator, nulls, runs
from cq.reference.pending import Pending

RIGHT, LEFT = 0, 1  # ports: within one event right rows take effect first


@runs("temporal_join")
class TemporalJoinRows(RowOperator):
    """The versions of each key, by (event time, arrival); left rows wait until the watermark reaches their time."""

    def __init__(self, node: TemporalJoin, clock: Clock) -> None:
        super().__init__(node, clock)
        self._left_time = node.left_time
        (self._right_time, *_) = node.right.schema.times
        self._left_key, self._right_key = keys_of(node.left_keys), keys_of(node.right_keys)
        self._residual = evaluator(node.residual) if node.residual is not None else None
        self._unmatched = nulls(len(node.right.schema)) if node.kind.left_unmatched else None
        self._versions: dict[Row, tuple[list[int], list[Row]]] = {}
        self._waiting = Pending(clock)

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        if port == RIGHT:
            self._remember(row)
            return
        time = row[self._left_time.column] + self._left_time.shift_us
        if time <= self.clock.now:
            self._look_up(time, row)
        else:
            self._waiting.put(time, row)

    def next_instant(self) -> int:
        return self._waiting.earliest()

    def on_instant(self, instant: int) -> None:
        for row in self._waiting.take(instant):
            self._look_up(row[self._left_time.column] + self._left_time.shift_us, row)

    def _remember(self, row: Row) -> None:
        key = self._right_key(row)
        if None in key:
            return
        time = row[self._right_time.column] + self._right_time.shift_us
        times, rows = self._versions.setdefault(key, ([], []))
        at = bisect_right(times, time)  # after its equals: the later arrival is the visible one
        times.insert(at, time)
        rows.insert(at, row)
        outdated = bisect_right(times, self.clock.now) - 1  # no future left row looks before the watermark
        if outdated > 0:
            del times[:outdated], rows[:outdated]

    def _look_up(self, time: int, row: Row) -> None:
        times, rows = self._versions.get(self._left_key(row), ((), ()))
        at = bisect_right(times, time) - 1
        if at >= 0:
            joined = row + rows[at]
            if self._residual is None or self._residual(joined):
                self.out.append(joined)
                return
        if self._unmatched is not None:
            self.out.append(row + self._unmatched)
