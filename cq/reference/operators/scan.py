"""Scan: the graph puts the accepted rows of the source straight into `out`."""

from __future__ import annotations

from cq.reference.evaluate import Row
from cq.reference.operator import RowOperator, runs


@runs("scan")
class ScanRows(RowOperator):
    def on_row(self, port: int, row: Row) -> None:
        self.out.append(row)
