"""Aggregate: GROUP BY; its rows come at the end of the input."""

from __future__ import annotations

from cq.planner.operators import Aggregate
from cq.spark.context import Context, lowers
from cq.spark.grouping import GroupTexts, place_of_group
from cq.spark.position import END, NO_ORDINAL, CteRows, Lowered, select_list


@lowers("aggregate")
def lower_aggregate(node: Aggregate, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    grouping = GroupTexts(node.keys, node.aggregates, rows, context)
    place = place_of_group() if node.keys else NO_ORDINAL
    by = f"\n  group by {', '.join(grouping.keys)}" if node.keys else ""
    step = context.step("rows", f"select {grouping.inner}\n  from {rows.name}")
    return Lowered(
        f"select {select_list(grouping.results)},\n         {END} as _w, {END} as _s, {place} as _o\n  from {step}{by}"
    )
