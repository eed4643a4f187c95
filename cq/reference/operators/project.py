"""Project: computed columns."""

from __future__ import annotations

from cq.planner.operators import Project
from cq.reference.evaluate import Row, rows_of
from cq.reference.operator import Clock, RowOperator, runs


@runs("project")
class ProjectRows(RowOperator):
    def __init__(self, node: Project, clock: Clock) -> None:
        super().__init__(node, clock)
        self._columns = rows_of(node.exprs)

    def on_row(self, port: int, row: Row) -> None:
        self.out.append(self._columns(row))
