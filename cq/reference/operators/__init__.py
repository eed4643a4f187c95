"""The operators of the reference, by the names of `cq.planner.operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.reference.operator import RowOperator
from cq.reference.operators.aggregate import AggregateRows
from cq.reference.operators.filter import FilterRows
from cq.reference.operators.over import OverRows
from cq.reference.operators.project import ProjectRows
from cq.reference.operators.scan import ScanRows
from cq.reference.operators.temporal_join import TemporalJoinRows
from cq.reference.operators.union import UnionRows
from cq.reference.operators.unnest import UnnestRows
from cq.reference.operators.window import window_rows

# (node, clock) -> operator; each takes its own class of node
OPERATORS: dict[str, Callable[[Any, Any], RowOperator]] = {
    "aggregate": AggregateRows,
    "filter": FilterRows,
    "over": OverRows,
    "project": ProjectRows,
    "scan": ScanRows,
    "temporal_join": TemporalJoinRows,
    "union": UnionRows,
    "unnest": UnnestRows,
    "window": window_rows,
}
