"""UnionAll: every row of every input. The graph reads the inputs in their order within one event."""

from __future__ import annotations

from cq.reference.evaluate import Row
from cq.reference.operator import RowOperator, runs


@runs("union")
class UnionRows(RowOperator):
    def on_row(self, port: int, row: Row) -> None:
        self.out.append(row)
