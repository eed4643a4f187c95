"""Project: the expressions of SELECT."""

from __future__ import annotations

from cq.planner.operators import Project
from cq.spark.context import Context, lowers
from cq.spark.position import CteRows, Lowered, select_list


@lowers("project")
def lower_project(node: Project, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = [context.text(e, rows.columns) for e in node.exprs]
    return Lowered(f"select {select_list(columns)}, {rows.position}\n  from {rows.name}", rows.late)
