"""Filter: the rows for which the predicate is TRUE."""

from __future__ import annotations

from cq.planner.operators import Filter
from cq.reference.evaluate import Row, evaluator
from cq.reference.operator import Clock, RowOperator, runs


@runs("filter")
class FilterRows(RowOperator):
    def __init__(self, node: Filter, clock: Clock) -> None:
        super().__init__(node, clock)
        self._predicate = evaluator(node.predicate)

    def on_row(self, port: int, row: Row) -> None:
        if self._predicate(row):  # FALSE and NULL drop it
            self.out.append(row)
