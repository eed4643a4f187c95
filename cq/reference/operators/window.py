"""WindowAggregate: panes filled as rows arrive, and merged into windows when the watermark passes their end."""

from __future__ import annotations

import heapq
from typing import Any

from cq.lang.error_places import window_group
from cq.lang.functions import Failure
from cq.planner.operators import WindowAggregate, WindowKind
from cq.planner.operators.window import FIRST_KEY, WINDOW_END, WINDOW_START
from cq.reference.evaluate import Row, keys_of
from cq.reference.fold import fold
from cq.reference.operator import NEVER, Clock, RowOperator, runs

Group = list[Any]  # [arrival of its first row, a state for each aggregate]


class WindowRows(RowOperator):
    """What all windows share: groups, and results at the close."""

    def __init__(self, node: WindowAggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        self._window, self._lag = node.window, node.lag_us
        self._key = keys_of(node.keys) if node.keys else lambda row: ()
        self._columns = [(n, k.type) for n, k in zip(node.key_names, node.keys, strict=True)]
        self._folds = [fold(call) for call in node.aggregates]

    def _pane_of(self, time_us: int) -> int:
        """The number of the pane that contains a time."""
        return (self._window.step_of(time_us) - self._window.offset) // self._window.pane

    def _start_of(self, pane: int) -> int:
        return self._window.time_of(self._window.offset + pane * self._window.pane)

    def _add(self, groups: dict[Row, Group], row: Row) -> None:
        key, arrival = self._key(row), self.clock.arrival()
        group = groups.get(key)
        if group is None:
            group = groups[key] = [arrival, *[f.zero for f in self._folds]]
        for i, f in enumerate(self._folds, 1):
            group[i] = f.add(group[i], row, arrival)

    def _merged(self, panes: list[dict[Row, Group]]) -> dict[Row, Group]:
        if len(panes) == 1:
            return panes[0]
        merged: dict[Row, Group] = {}
        for groups in panes:
            for key, group in groups.items():
                before = merged.get(key)
                if before is None:
                    merged[key] = group
                else:
                    states = zip(self._folds, before[1:], group[1:], strict=True)
                    merged[key] = [min(before[0], group[0]), *[f.merge(a, b) for f, a, b in states]]
        return merged

    def _emit(self, start: int, end: int, groups: dict[Row, Group]) -> None:
        for key, group in sorted(groups.items(), key=lambda item: item[1][0]):
            try:
                values = [f.value(state) for f, state in zip(self._folds, group[1:], strict=True)]
            except Failure as failure:
                failure.place = window_group(start, end, self._columns, key)
                raise
            self.out.append((start, end, end - 1, *key, *values))

    def place_of(self, row: Row) -> str:
        return window_group(row[WINDOW_START], row[WINDOW_END], self._columns, row[FIRST_KEY:][: len(self._columns)])


class GridWindowRows(WindowRows):
    """TUMBLE and HOP: a row goes into its pane; a window is the panes between its bounds, left to right."""

    def __init__(self, node: WindowAggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        w = node.window
        self._column, self._shift = w.time.column, w.time.shift_us
        self._size_panes, self._slide_panes = w.size // w.pane, w.slide // w.pane
        self._panes: dict[int, dict[Row, Group]] = {}
        self._open: list[int] = []  # a heap: the first pane of each window that has rows
        self._known: set[int] = set()

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        pane = self._pane_of(row[self._column] + self._shift)
        groups = self._panes.get(pane)
        if groups is None:
            if pane % self._slide_panes >= self._size_panes:
                return  # between two windows
            groups = self._panes[pane] = {}
            self._open_windows(pane)
        self._add(groups, row)

    def _open_windows(self, pane: int) -> None:
        first = pane - pane % self._slide_panes
        while first + self._size_panes > pane:
            if first not in self._known:
                self._known.add(first)
                heapq.heappush(self._open, first)
            first -= self._slide_panes

    def _end_of(self, first: int) -> int:
        return self._start_of(first + self._size_panes)

    def next_instant(self) -> int:
        return self._end_of(self._open[0]) + self._lag if self._open else NEVER

    def on_instant(self, instant: int) -> None:
        while self._open and self._end_of(self._open[0]) + self._lag <= instant:
            first = heapq.heappop(self._open)
            self._known.discard(first)
            groups = self._merged([self._panes[p] for p in range(first, first + self._size_panes) if p in self._panes])
            end = self._end_of(first)
            for pane in range(first, first + min(self._slide_panes, self._size_panes)):
                self._panes.pop(pane, None)  # no later window reaches back to it
            self._emit(self._start_of(first), end, groups)


class CumulateWindowRows(WindowRows):
    """CUMULATE: windows with one start share their panes until the last of them has closed. Times are in panes."""

    def __init__(self, node: WindowAggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        w = node.window
        self._column, self._shift = w.time.column, w.time.shift_us
        self._most = w.size // w.slide
        self._panes: dict[int, dict[Row, Group]] = {}
        self._open: list[int] = []  # a heap of the ends of windows that have rows
        self._known: set[int] = set()

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        pane = self._pane_of(row[self._column] + self._shift)
        groups = self._panes.get(pane)
        if groups is None:
            groups = self._panes[pane] = {}
            for end in range(pane + 1, self._begin(pane) + self._most + 1):
                if end not in self._known:
                    self._known.add(end)
                    heapq.heappush(self._open, end)
        self._add(groups, row)

    def _begin(self, pane: int) -> int:
        return pane - pane % self._most

    def next_instant(self) -> int:
        return self._start_of(self._open[0]) + self._lag if self._open else NEVER

    def on_instant(self, instant: int) -> None:
        while self._open and self._start_of(self._open[0]) + self._lag <= instant:
            end = heapq.heappop(self._open)
            self._known.discard(end)
            begin = self._begin(end - 1)
            groups = self._merged([self._panes[p] for p in range(begin, end) if p in self._panes])
            if end == begin + self._most:
                for pane in range(begin, end):
                    self._panes.pop(pane, None)
            self._emit(self._start_of(begin), self._start_of(end), groups)


class AttachedWindowRows(WindowRows):
    """The window to which each row already belongs, as its columns say."""

    def __init__(self, node: WindowAggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        self._end_column, self._start_column = node.window.time.column, node.window.start_column
        self._windows: dict[tuple[int, int], dict[Row, Group]] = {}
        self._open: list[tuple[int, int]] = []  # a heap of (end, start)

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        window = (row[self._end_column], row[self._start_column])
        groups = self._windows.get(window)
        if groups is None:
            groups = self._windows[window] = {}
            heapq.heappush(self._open, window)
        self._add(groups, row)

    def next_instant(self) -> int:
        return self._open[0][0] + self._lag if self._open else NEVER

    def on_instant(self, instant: int) -> None:
        while self._open and self._open[0][0] + self._lag <= instant:
            end, start = window = heapq.heappop(self._open)
            self._emit(start, end, self._windows.pop(window))


@runs("window")
def window_rows(node: WindowAggregate, clock: Clock) -> WindowRows:
    """The operator for the node's kind of window."""
    match node.window.kind:
        case WindowKind.ATTACHED:
            return AttachedWindowRows(node, clock)
        case WindowKind.CUMULATE:
            return CumulateWindowRows(node, clock)
        case _:
            return GridWindowRows(node, clock)
