"""Unnest: POSEXPLODE, which gives no row for NULL or an empty array; POSEXPLODE_OUTER gives one with NULLs."""

from __future__ import annotations

from cq.planner.operators import Unnest
from cq.spark.context import Context, lowers
from cq.spark.position import CteRows, Lowered, column_names


@lowers("unnest")
def lower_unnest(node: Unnest, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    width = rows.width
    array = context.text(node.array, rows.columns)
    number = f", _n + 1L as c{width + 1}" if node.ordinality_name is not None else ""
    position = rows.position.replace("_o", "concat(_o, array(cast(coalesce(_n, 0) as BIGINT))) as _o")
    explode = "posexplode_outer" if node.outer else "posexplode"
    own = "".join(f"{c}, " for c in column_names(width))
    step = context.step("elements", f"select *, {explode}({array}) as (_n, _e)\n  from {rows.name}")
    return Lowered(f"select {own}_e as c{width}{number}, {position}\n  from {step}", rows.late)
