"""Filter: WHERE."""

from __future__ import annotations

from cq.planner.operators import Filter
from cq.spark.context import Context, lowers
from cq.spark.position import CteRows, Lowered


@lowers("filter")
def lower_filter(node: Filter, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    predicate = context.text(node.predicate, rows.columns)
    return Lowered(f"select *\n  from {rows.name}\n  where {predicate}", rows.late)
