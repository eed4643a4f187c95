"""Frames: aggregates of the rows around each row of a partition, by two stacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from cq.planner.operators import Frame, Frames
from cq.reference.evaluate import Row, keys_of
from cq.reference.fold import Fold, fold
from cq.reference.operator import Clock, RowOperator, runs
from cq.reference.pending import Pending

States = tuple[Any, ...]
"""A state for each call."""


@runs("frames")
class FramesRows(RowOperator):
    """Rows wait until the watermark reaches their time, then, in some frames, until it has passed the frame's end."""

    def __init__(self, node: Frames, clock: Clock) -> None:
        super().__init__(node, clock)
        self._order, self._frame, self._behind = node.order, node.frame, node.behind_us
        self._key = keys_of(node.partition) if node.partition else lambda row: ()
        self._folds = [fold(c) for c in node.aggregates]
        self._partitions: dict[Row, Partition] = {}
        self._waiting, self._inside = Pending(clock), Pending(clock)

    def on_row(self, port: int, row: Row) -> None:
        if self._order is None:
            self._take(row)
        elif not self.drop_if_late():
            due = self._time(row) + self._order.lag_us
            if due <= self.clock.now:
                self._take(row)
            else:
                self._waiting.put(due, row)

    def next_instant(self) -> int:
        return min(self._waiting.earliest(), self._inside.earliest())

    def on_instant(self, instant: int) -> None:
        for row in self._waiting.take(instant):
            self._take(row)
        for row in self._inside.take(instant):
            self._leave(row, self._time(row))

    def _time(self, row: Row) -> int:
        assert self._order is not None
        return int(row[self._order.column]) + self._order.shift_us

    def _take(self, row: Row) -> None:
        partition = self._partitions.setdefault(self._key(row), Partition(self._frame, self._folds))
        place = self._time(row) if self._frame.by_time else partition.rows
        partition.add(place, row)
        if self._behind is None:
            self._leave(row, place)
        else:
            self._inside.put(place + self._behind, row)

    def _leave(self, row: Row, place: int) -> None:
        self.out.append((*row, *self._partitions[self._key(row)].values(place)))


class Partition:
    """Its rows with their places, numbers or times: some wait behind the frame, some are in it.

    Those in it are in two stacks: `front` has for each of its rows what the rows from there on add up to, the first row
    on top, `back` what all rows behind them do. Where a frame has no start nothing leaves it.
    """

    def __init__(self, frame: Frame, folds: Sequence[Fold]) -> None:
        self.rows = 0
        self._frame, self._folds = frame, folds
        self._waiting: deque[tuple[int, States]] = deque()
        self._places: deque[int] = deque()
        self._zero = tuple(f.zero for f in folds)
        self._front: list[States] = []
        self._behind: list[States] = []
        self._back = self._zero

    def add(self, place: int, row: Row) -> None:
        """One more row, the last by place."""
        self._waiting.append((place, tuple([f.add(f.zero, row, self.rows) for f in self._folds])))
        self.rows += 1

    def values(self, place: int) -> Row:
        """What the calls are beside the row of this place; never one before that of an earlier call."""
        while self._waiting and self._waiting[0][0] <= place + self._frame.end:
            self._enter(*self._waiting.popleft())
        if self._frame.start is not None:
            while self._places and self._places[0] < place + self._frame.start:
                self._drop()
        states = self._merged(self._front[-1], self._back) if self._front else self._back
        return tuple([f.value(s) for f, s in zip(self._folds, states, strict=True)])

    def _enter(self, place: int, state: States) -> None:
        self._back = self._merged(self._back, state)
        if self._frame.start is not None:
            self._places.append(place)
            self._behind.append(state)

    def _drop(self) -> None:
        """The first row is no longer in the frame."""
        if not self._front:
            self._front.append(self._behind.pop())
            while self._behind:
                self._front.append(self._merged(self._behind.pop(), self._front[-1]))
            self._back = self._zero
        self._front.pop()
        self._places.popleft()

    def _merged(self, left: States, right: States) -> States:
        return tuple([f.merge(a, b) for f, a, b in zip(self._folds, left, right, strict=True)])
