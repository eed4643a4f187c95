"""AsofJoin: both sides in one sequence by time, and the last right row seen up to each left row."""

from __future__ import annotations

from cq.planner.operators import AsofJoin
from cq.spark.context import Context, lowers
from cq.spark.operators.temporal_join import RUNNING, keyed
from cq.spark.position import CteRows, Lowered, event_time, plus, select_list

FOLLOWING = "rows between current row and unbounded following"


@lowers("asof_join")
def lower_asof_join(node: AsofJoin, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    left, right = inputs
    keys = [f"_k{i}" for i in range(len(node.left_keys))]
    named = "".join(f"{k}, " for k in keys)
    sides = []
    for what, rows, time, exprs in (
        ("left", left, node.left_time, node.left_keys),
        ("right", right, node.right_time, node.right_keys),
    ):
        shown = f"{keyed(exprs, rows, context)} as _r, {event_time(time, rows.columns)} as _u, _w, _s, _o"
        sides.append(context.step(what, f"select {shown}\n  from {rows.name}{rows.on_time}"))
    # at one time, a left row comes before the right rows it may find next, and after those it may have found
    reach, place, frame = (node.lower_us, 0, FOLLOWING) if node.ahead else (node.upper_us, 2, RUNNING)
    known = f"\n  where {' and '.join(f'{k} is not null' for k in keys)}" if keys else ""
    both = context.step(
        "both",
        f"select {named}{plus('_u', reach)} as _e, {place} as _side, _u, _r as _l, null as _r, _w, _s, _o\n"
        f"  from {sides[0]}\n  union all\n"
        f"  select {named}_u, 1, _u, null, _r, _w, _s, _o from {sides[1]}{known}",
    )
    partition = f"partition by {', '.join(keys)} " if keys else ""
    seen = context.step(
        "seen",
        f"select *, {'first' if node.ahead else 'last'}(_r, true) over (\n"
        f"    {partition}order by _e, _side, _w, _s, _o {frame}) as _found\n  from {both}",
    )
    theirs = event_time(node.right_time, tuple(f"_found.{c}" for c in right.columns))
    near = f"{theirs} - _u between {node.lower_us}L and {node.upper_us}L"
    match = f"if({near}, _found, null)" if node.limited else "_found"
    # a left row is emitted at an instant of its own, after those of that time that came before it
    matched = context.step(
        "matched",
        f"select _l, {match} as _r, {plus('_u', node.left_wait_us)} as _w, -1L as _s, concat(array(_w, _s), _o) as _o\n"
        f"  from {seen}\n  where _side = {place}",
    )
    columns = [f"_l.{c}" for c in left.columns] + [f"_r.{c}" for c in right.columns]
    kept = "" if node.kind.left_unmatched else "\n  where _r is not null"
    return Lowered(f"select {select_list(columns)},\n         _w, _s, _o\n  from {matched}{kept}")
