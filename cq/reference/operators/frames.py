"""Frames: aggregates of the rows around each row of a partition, by two stacks, or walking over the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

from cq.planner.operators import Frame, Frames, Unit, Without
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.fold import Fold, fold
from cq.reference.operator import NEVER, Clock, RowOperator, runs
from cq.reference.pending import Pending

States = tuple[Any, ...]
"""A state for each call."""
Place = tuple[int, int]
"""The position of a row in its partition: a number that separates NULL from the rest, then its number, time or key."""


@runs("frames")
class FramesRows(RowOperator):
    """Rows wait until the watermark reaches their time. Then each waits for the later rows in its frame."""

    def __init__(self, node: Frames, clock: Clock) -> None:
        super().__init__(node, clock)
        self._order, self._times, self._held, self._following = node.order, node.times, node.held, node.following
        self._frame, self._behind = node.frame, node.behind_us
        self._by = node.key
        self._value = evaluator(node.key.expr) if node.key is not None else None
        self._peer = evaluator(node.peer) if node.peer is not None else None
        self._partition = Walk if node.walks else Stacks
        self._key = keys_of(node.partition) if node.partition else lambda row: ()
        self._folds = [fold(c) for c in node.aggregates]
        self._partitions: dict[Row, Partition] = {}
        self._waiting, self._inside = Pending(clock), Pending(clock)
        self._leave_at = NEVER

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
        return min(self._waiting.earliest(), self._inside.earliest(), self._leave_at)

    def on_instant(self, instant: int) -> None:
        for row in self._waiting.take(instant):
            self._take(row)
        for row in self._inside.take(instant):
            self.out.append((*row, *self._partitions[self._key(row)].values((0, self._time(row)))))
        if self._leave_at <= instant:
            self.on_end()

    def on_end(self) -> None:
        partitions, self._partitions, self._leave_at = self._partitions, {}, NEVER
        for partition in partitions.values():
            while partition.kept:
                self.out.append(partition.leave())

    def _time(self, row: Row) -> int:
        assert self._order is not None
        return int(row[self._order.column]) + self._order.shift_us

    def _take(self, row: Row) -> None:
        fresh = self._partition(self._frame, self._folds)
        partition = self._partitions.setdefault(self._key(row), fresh)
        place = self._place(row, partition)
        partition.add(place, place if self._peer is None else self._peer(row), row)
        if self._behind is not None:
            self._inside.put(place[1] + self._behind, row)
            return
        if not self._held and self._following == 0:
            self.out.append((*row, *partition.values(place)))
            return
        partition.kept.append((place, row))
        if self._held:
            for time in self._times[:1]:
                self._leave_at = min(self._leave_at, row[time.column] + time.shift_us + time.lag_us + 1)
        elif len(partition.kept) > self._following:
            self.out.append(partition.leave())

    def _place(self, row: Row, partition: Partition) -> Place:
        if self._frame.unit is Unit.ROWS:
            return 0, partition.rows
        if self._frame.unit is Unit.TIME:
            return 0, self._time(row)
        assert self._value is not None and self._by is not None
        value = self._value(row)
        if value is None:
            return (-1 if self._by.nulls_first else 1), 0
        return 0, ~int(value) if self._by.descending else int(value)


class Partition(ABC):
    """Its rows with their places. rows: how many there have been.  kept: those not yet emitted, if they wait."""

    def __init__(self) -> None:
        self.rows = 0
        self.kept: deque[tuple[Place, Row]] = deque()

    @abstractmethod
    def add(self, place: Place, peer: object, row: Row) -> None:
        """One more row, the last by place. peer: equal in its peers alone."""

    @abstractmethod
    def values(self, place: Place) -> Row:
        """The values of the calls for the row at this place: the first that was not asked for yet."""

    def leave(self) -> Row:
        """The first kept row, with its values."""
        place, row = self.kept.popleft()
        return (*row, *self.values(place))


class Walk(Partition):
    """All rows that may be in a frame: the values that each call sees, and their peer groups."""

    def __init__(self, frame: Frame, folds: Sequence[Fold]) -> None:
        super().__init__()
        self._frame, self._folds = frame, folds
        self._rows: deque[tuple[Place, object, int, list[Row | None]]] = deque()
        self._asked: deque[tuple[object, int]] = deque()
        self._before: tuple[list[int], Row] = ([], ())

    def add(self, place: Place, peer: object, row: Row) -> None:
        self._rows.append((place, peer, self.rows, [f.values(row) for f in self._folds]))
        self._asked.append((peer, self.rows))
        self.rows += 1

    def values(self, place: Place) -> Row:
        peer, number = self._asked.popleft()
        frame = self._frame
        if frame.start is not None:
            first = _from(place, frame.start)
            while self._rows and self._rows[0][0] < first:
                self._rows.popleft()
        last = _from(place, frame.end) if frame.end is not None else None
        inside = []
        for there in self._rows:
            if last is not None and there[0] > last:
                break
            if not _is_left_out(frame.without, there[2] == number, there[1] == peer):
                inside.append(there)
        numbers = [n for _, _, n, _ in inside]
        if not self._before[1] or numbers != self._before[0]:
            self._before = numbers, tuple([self._walked(i, f, inside) for i, f in enumerate(self._folds)])
        return self._before[1]

    def _walked(self, which: int, fold: Fold, inside: Sequence[tuple[Place, object, int, list[Row | None]]]) -> Any:
        state = fold.zero
        for _, _, number, values in inside:
            seen = values[which]
            if seen is not None:
                state = fold.count(state, seen, number)
        return fold.value(state)


def _is_left_out(without: Without | None, same: bool, peers: bool) -> bool:
    if without is None:
        return False
    return same if without is Without.ROW else peers and (without is Without.GROUP or not same)


class Stacks(Partition):
    """Some rows wait to enter the frame, some are in it.

    Those in the frame are in two stacks: `front` has, for each of its rows, the aggregate of the rows from there on,
    with the first row on top; `back` has the aggregate of all rows after them. If a frame has no start, nothing leaves
    it.
    """

    def __init__(self, frame: Frame, folds: Sequence[Fold]) -> None:
        super().__init__()
        self._start, self._end, self._folds = frame.start, frame.end, folds
        self._waiting: deque[tuple[Place, States]] = deque()
        self._places: deque[Place] = deque()
        self._zero = tuple(f.zero for f in folds)
        self._front: list[States] = []
        self._behind: list[States] = []
        self._back = self._zero

    def add(self, place: Place, peer: object, row: Row) -> None:
        self._waiting.append((place, tuple([f.add(f.zero, row, self.rows) for f in self._folds])))
        self.rows += 1

    def values(self, place: Place) -> Row:
        while self._waiting and (self._end is None or self._waiting[0][0] <= _from(place, self._end)):
            self._enter(*self._waiting.popleft())
        if self._start is not None:
            while self._places and self._places[0] < _from(place, self._start):
                self._drop()
        states = self._merged(self._front[-1], self._back) if self._front else self._back
        return tuple([f.value(s) for f, s in zip(self._folds, states, strict=True)])

    def _enter(self, place: Place, state: States) -> None:
        self._back = self._merged(self._back, state)
        if self._start is not None:
            self._places.append(place)
            self._behind.append(state)

    def _drop(self) -> None:
        """Drop the first row, which is no longer in the frame."""
        if not self._front:
            self._front.append(self._behind.pop())
            while self._behind:
                self._front.append(self._merged(self._behind.pop(), self._front[-1]))
            self._back = self._zero
        self._front.pop()
        self._places.popleft()

    def _merged(self, left: States, right: States) -> States:
        return tuple([f.merge(a, b) for f, a, b in zip(self._folds, left, right, strict=True)])


def _from(place: Place, offset: int) -> Place:
    """The bound of a frame this far from a place; for NULL the frame is all NULLs."""
    null, value = place
    return null, value if null else value + offset
