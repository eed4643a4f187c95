"""Filter: WHERE."""

from __future__ import annotations

from cq.planner.operators import Filter
from cq.spark.context import Context
from cq.spark.position import Lowered, Rows


def lower_filter(node: Filter, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    predicate = context.text(node.predicate, rows.columns)
    return Lowered(f"select *\n  from {rows.name}\n  where {predicate}", rows.late)
