"""Aggregate: one row for each group when the input has ended."""

from __future__ import annotations

from typing import Any

from cq.lang.error_places import group
from cq.lang.functions import Failure
from cq.planner.operators import Aggregate
from cq.reference.evaluate import Row, keys_of
from cq.reference.fold import fold
from cq.reference.operator import Clock, RowOperator, runs


@runs("aggregate")
class AggregateRows(RowOperator):
    """Groups in order of first arrival, which dictionaries keep."""

    def __init__(self, node: Aggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        self._key = keys_of(node.keys) if node.keys else lambda row: ()
        self._columns = [(n, k.type) for n, k in zip(node.key_names, node.keys, strict=True)]
        self._folds = [fold(call) for call in node.aggregates]
        self._groups: dict[Row, list[Any]] = {}
        if not node.keys:
            self._groups[()] = [f.zero for f in self._folds]

    def on_row(self, port: int, row: Row) -> None:
        key = self._key(row)
        states = self._groups.get(key)
        if states is None:
            states = self._groups[key] = [f.zero for f in self._folds]
        for i, f in enumerate(self._folds):
            states[i] = f.add(states[i], row)

    def on_end(self) -> None:
        for key, states in self._groups.items():
            try:
                values = [f.value(s) for f, s in zip(self._folds, states, strict=True)]
            except Failure as failure:
                failure.place = group(self._columns, key)
                raise
            self.out.append((*key, *values))

    def place_of(self, row: Row) -> str:
        return group(self._columns, row[: len(self._columns)])
