"""AssignWindows: the bounds of a row's windows by integer arithmetic; if there are several, exploded."""

from __future__ import annotations

from cq.planner.operators import AssignWindows
from cq.spark.context import Context, lowers, timed
from cq.spark.operators.window import in_windows, window_end
from cq.spark.position import CteRows, Lowered, column_names, select_list, timestamp


@lowers("assign_windows")
def lower_assign_windows(node: AssignWindows, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    placed = context.step("placed", in_windows(node.window, "*", timed(rows, node.window.time, context), context))
    end = window_end(node.window)
    own = (*column_names(rows.width), timestamp("_start"), timestamp(end), timestamp(f"{end} - 1L"))
    place = f"concat(_o, array({end})) as _o" if node.several else "_o"
    return Lowered(f"select {select_list(own)}, _w, _s, {place}\n  from {placed}")
