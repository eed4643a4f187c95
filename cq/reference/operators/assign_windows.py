"""AssignWindows: the row once for each window that contains it."""

from __future__ import annotations

from collections.abc import Iterator

from cq.planner.operators import AssignWindows, WindowKind
from cq.reference.evaluate import Row
from cq.reference.operator import Clock, RowOperator, runs


@runs("assign_windows")
class AssignWindowsRows(RowOperator):
    def __init__(self, node: AssignWindows, clock: Clock) -> None:
        super().__init__(node, clock)
        self._window = node.window
        self._column, self._shift = node.window.time.column, node.window.time.shift_us

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        for start, end in self._windows(row[self._column] + self._shift):
            self.out.append((*row, start, end, end - 1))

    def _windows(self, time: int) -> Iterator[tuple[int, int]]:
        """The windows that contain a time, by their ends."""
        w = self._window
        step = w.step_of(time)
        last = step - (step - w.offset) % w.slide
        if w.kind is WindowKind.CUMULATE:
            start = step - (step - w.offset) % w.size
            for end in range(last + w.slide, start + w.size + 1, w.slide):
                yield w.time_of(start), w.time_of(end)
            return
        first = last - (w.size - 1 - (step - last)) // w.slide * w.slide
        for start in range(first, last + 1, w.slide):
            yield w.time_of(start), w.time_of(start + w.size)
