"""SessionAggregate: a row begins a session if no earlier row, by time, is within the gap; sessions are groups.

A closed session never meets a row that is on time, so the sessions of the whole input are those of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.planner.operators import SessionAggregate, SessionRows
from cq.spark.context import Context, lowers, timed
from cq.spark.grouping import GroupTexts, place_of_group
from cq.spark.position import CteRows, Lowered, plus, select_list, timestamp


@lowers("session")
def lower_session(node: SessionAggregate, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    grouping = GroupTexts(node.keys, node.aggregates, rows, context)
    numbered = numbered_sessions(node, grouping.keys, grouping.inner, rows, context)
    start, end = "min(_u)", f"(max(_u) + {node.gap_us}L)"
    own = [timestamp(start), timestamp(end), timestamp(f"{end} - 1L"), *grouping.results]
    return Lowered(
        f"select {select_list(own)},\n"
        f"         {plus(end, node.lag_us)} as _w, -1L as _s, {place_of_group(start)} as _o\n"
        f"  from {numbered}\n"
        f"  group by {', '.join((*grouping.keys, '_session'))}"
    )


def numbered_sessions(
    node: SessionAggregate | SessionRows, keys: Sequence[str], inner: str, rows: CteRows, context: Context
) -> str:
    """A step with the rows that are not late, their time as `_u`, `inner`, and `_session`, which numbers the sessions
    of each group. keys: the columns of `inner` that form the groups."""
    placed = context.step("placed", f"select _u,\n         {inner}\n  from {timed(rows, node.time, context)}")
    partition = f"partition by {', '.join(keys)} " if keys else ""
    begins = f"coalesce(_u - lag(_u) over ({partition}order by _u) > {node.gap_us}L, true)"
    begun = context.step("begun", f"select *, cast({begins} as INT) as _begins\n  from {placed}")
    number = f"sum(_begins) over ({partition}order by _u range between unbounded preceding and current row)"
    return context.step("numbered", f"select *, {number} as _session\n  from {begun}")
