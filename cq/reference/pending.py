"""Rows that wait for the watermark: they are emitted by (time, position)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from cq.reference.evaluate import Row
from cq.reference.operator import NEVER, Clock


class Pending:
    """A priority queue of rows by (event time, arrival)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: list[tuple[int, int, Row]] = []

    def put(self, time: int, row: Row) -> None:
        heapq.heappush(self._rows, (time, self._clock.arrival(), row))

    def earliest(self) -> int:
        """The time of the first row to be emitted; NEVER when there is none."""
        return self._rows[0][0] if self._rows else NEVER

    def take(self, instant: int) -> Iterator[Row]:
        """The rows with a time up to `instant`, in order; each is removed once yielded."""
        while self._rows and self._rows[0][0] <= instant:
            yield heapq.heappop(self._rows)[2]
