"""Unnest: the row once for each element of its array."""

from __future__ import annotations

from cq.planner.operators import Unnest
from cq.reference.evaluate import Row, evaluator
from cq.reference.operator import Clock, RowOperator, runs


@runs("unnest")
class UnnestRows(RowOperator):
    def __init__(self, node: Unnest, clock: Clock) -> None:
        super().__init__(node, clock)
        self._array = evaluator(node.array)
        self._numbered = node.ordinality_name is not None
        self._outer = node.outer

    def on_row(self, port: int, row: Row) -> None:
        elements = self._array(row) or ()
        if self._outer and not elements:
            self.out.append((*row, None, None) if self._numbered else (*row, None))
        elif self._numbered:
            self.out.extend((*row, e, i) for i, e in enumerate(elements, 1))
        else:
            self.out.extend((*row, e) for e in elements)
