"""Over: LAG and running aggregates for each partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cq.planner.operators import Lag, Over
from cq.planner.plan.calls import AggregateCall
from cq.reference.evaluate import Row, evaluator, keys_of
from cq.reference.fold import fold
from cq.reference.operator import Clock, RowOperator, runs
from cq.reference.pending import Pending

Running = Callable[[Row], Any]
"""A row of the partition in order -> the value of the call beside it."""


@runs("over")
class OverRows(RowOperator):
    """Rows wait for the watermark only if an order is required, and then only those after it."""

    def __init__(self, node: Over, clock: Clock) -> None:
        super().__init__(node, clock)
        self._order = node.order
        self._key = keys_of(node.partition) if node.partition else lambda row: ()
        self._starts = [_lag(c) if isinstance(c, Lag) else _running(c) for c in node.calls]
        self._partitions: dict[Row, list[Running]] = {}
        self._waiting = Pending(clock)

    def on_row(self, port: int, row: Row) -> None:
        if self._order is None:
            self._release(row)
        elif not self.drop_if_late():
            due = row[self._order.column] + self._order.shift_us + self._order.lag_us
            if due <= self.clock.now:
                self._release(row)
            else:
                self._waiting.put(due, row)

    def next_instant(self) -> int:
        return self._waiting.earliest()

    def on_instant(self, instant: int) -> None:
        for row in self._waiting.take(instant):
            self._release(row)

    def _release(self, row: Row) -> None:
        key = self._key(row)
        running = self._partitions.get(key)
        if running is None:
            running = self._partitions[key] = [start() for start in self._starts]
        self.out.append((*row, *[step(row) for step in running]))


def _lag(call: Lag) -> Callable[[], Running]:
    value = evaluator(call.arg)
    default = evaluator(call.default) if call.default is not None else lambda row: None

    def start() -> Running:
        history: deque[Any] = deque(maxlen=call.offset + 1)

        def step(row: Row) -> Any:
            history.append(value(row))
            return history[0] if len(history) > call.offset else default(row)

        return step

    return start


def _running(call: AggregateCall) -> Callable[[], Running]:
    folded = fold(call)

    def start() -> Running:
        state = folded.zero

        def step(row: Row) -> Any:
            nonlocal state
            state = folded.add(state, row)
            return folded.value(state)

        return step

    return start
