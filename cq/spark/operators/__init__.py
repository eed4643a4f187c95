"""The operators in Spark SQL, by the names of `cq.planner.operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.spark.context import Context
from cq.spark.operators.aggregate import lower_aggregate
from cq.spark.operators.filter import lower_filter
from cq.spark.operators.over import lower_over
from cq.spark.operators.project import lower_project
from cq.spark.operators.scan import lower_scan
from cq.spark.operators.temporal_join import lower_temporal_join
from cq.spark.operators.union import lower_union
from cq.spark.operators.unnest import lower_unnest
from cq.spark.operators.window import lower_window
from cq.spark.position import Lowered, Rows

# (node, the CTEs of its inputs, context) -> its SELECT; each takes its own class of node
OPERATORS: dict[str, Callable[[Any, tuple[Rows, ...], Context], Lowered]] = {
    "aggregate": lower_aggregate,
    "filter": lower_filter,
    "over": lower_over,
    "project": lower_project,
    "scan": lower_scan,
    "temporal_join": lower_temporal_join,
    "union": lower_union,
    "unnest": lower_unnest,
    "window": lower_window,
}
