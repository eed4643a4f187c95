"""LateRows: the rows that are late."""

from __future__ import annotations

from cq.planner.operators import LateRows
from cq.reference.evaluate import Row
from cq.reference.operator import RowOperator, runs


@runs("late_rows")
class LateRowsRows(RowOperator):
    node: LateRows

    def on_row(self, port: int, row: Row) -> None:
        if self.clock.late:
            self.out.append(row)
