"""Sort: the rows of each partition, ordered when it is emitted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from cq.lang.functions.comparison import precedes
from cq.planner.operators import OrderKey, Sort
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.operator import NEVER, Clock, RowOperator, runs

Compare = Callable[[Row, Row], int]
"""Below 0 when the first of two tuples of key values comes before the second, 0 when they are equal."""


@runs("sort")
class SortRows(RowOperator):
    """Rows with their key values, by closing time and partition; both in order of first arrival."""

    def __init__(self, node: Sort, clock: Clock) -> None:
        super().__init__(node, clock)
        self._time = node.times[0] if node.times else None
        self._key = keys_of(node.partition) if node.partition else lambda row: ()
        self._values = [evaluator(k.expr) for k in node.order]
        self._by = cmp_to_key(_compare(node.order))
        self._first, self._last = node.offset, node.keep
        self._open: dict[int, dict[Row, list[tuple[Row, Row]]]] = {}

    def on_row(self, port: int, row: Row) -> None:
        closes = NEVER
        if self._time is not None:
            if self.drop_if_late():
                return
            closes = row[self._time.column] + self._time.shift_us + self._time.lag_us + 1
        kept = self._open.setdefault(closes, {}).setdefault(self._key(row), [])
        kept.append((tuple([value(row) for value in self._values]), row))

    def next_instant(self) -> int:
        return min(self._open, default=NEVER) if self._time is not None else NEVER

    def on_instant(self, instant: int) -> None:
        self._leave(self._open.pop(instant))

    def on_end(self) -> None:
        self._leave(self._open.pop(NEVER, {}))

    def _leave(self, partitions: dict[Row, list[tuple[Row, Row]]]) -> None:
        for kept in partitions.values():
            kept.sort(key=lambda item: self._by(item[0]))  # ties stay in order of arrival
            self.out.extend(row for _, row in kept[self._first : self._last])


def _compare(order: tuple[OrderKey, ...]) -> Compare:
    parts = [_compare_by(k) for k in order]

    def compare(a: Row, b: Row) -> int:
        return next((c for part, x, y in zip(parts, a, b, strict=True) if (c := part(x, y))), 0)

    return compare


def _compare_by(key: OrderKey) -> Callable[[Any, Any], int]:
    null = -1 if key.nulls_first else 1
    first = 1 if key.descending else -1

    def compare(x: Any, y: Any) -> int:
        if x is None or y is None:
            return 0 if x is y else null if x is None else -null
        return first if precedes(x, y) else -first if precedes(y, x) else 0

    return compare
