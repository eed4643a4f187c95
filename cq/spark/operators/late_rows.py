"""LateRows: the rows that `cq.spark.ingest` found late."""

from __future__ import annotations

from cq.planner.operators import LateRows
from cq.spark.context import Context, lowers
from cq.spark.position import ON_TIME, CteRows, Lowered, select_list


@lowers("late_rows")
def lower_late_rows(node: LateRows, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    return Lowered(f"select {select_list(rows.columns)}, _w, _s, _o\n  from {rows.name}\n  where _late <> {ON_TIME}")
