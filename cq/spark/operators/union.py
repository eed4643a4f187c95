"""UnionAll: UNION ALL; within one event the rows of an earlier branch come first."""

from __future__ import annotations

from cq.planner.operators import UnionAll
from cq.spark.context import Context, lowers
from cq.spark.position import ON_TIME, CteRows, Lowered


@lowers("union")
def lower_union(node: UnionAll, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    late = any(rows.late for rows in inputs)
    branches = []
    for number, rows in enumerate(inputs):
        columns = ", ".join((*rows.columns, "_w", "_s", f"concat(array({number}L), _o) as _o"))
        lateness = (", _late" if rows.late else f", cast({ON_TIME} as TINYINT) as _late") if late else ""
        branches.append(f"select {columns}{lateness} from {rows.name}")
    return Lowered("\n  union all ".join(branches), late)
