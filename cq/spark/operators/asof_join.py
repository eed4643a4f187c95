"""AsofJoin: both sides in one sequence by time, and the last right row seen up to each left row."""

from __future__ import annotations

from cq.planner.operators import AsofJoin
from cq.spark.context import Context, lowers
from cq.spark.operators.temporal_join import RUNNING, keyed
from cq.spark.position import Lowered, Rows, event_time, plus, select_list


@lowers("asof_join")
def lower_asof_join(node: AsofJoin, inputs: tuple[Rows, ...], context: Context) -> Lowered:
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
    known = f"\n  where {' and '.join(f'{k} is not null' for k in keys)}" if keys else ""
    both = context.step(
        "both",
        f"select {named}{plus('_u', node.upper_us)} as _e, 1 as _side, _u, _r as _l, null as _r, _w, _s, _o\n"
        f"  from {sides[0]}\n  union all\n"
        f"  select {named}_u, 0, _u, null, _r, _w, _s, _o from {sides[1]}{known}",
    )
    partition = f"partition by {', '.join(keys)} " if keys else ""
    seen = context.step(
        "seen",
        f"select *, last(_r, true) over (\n"
        f"    {partition}order by _e, _side, _w, _s, _o {RUNNING}) as _found\n  from {both}",
    )
    match = "_found"
    if node.lower_us is not None:
        theirs = event_time(node.right_time, tuple(f"_found.{c}" for c in right.columns))
        match = f"if({theirs} >= {plus('_u', node.lower_us)}, _found, null)"
    # a left row leaves at an instant of its own, behind those of that time that came before it
    matched = context.step(
        "matched",
        f"select _l, {match} as _r, {plus('_u', node.left_wait_us)} as _w, -1L as _s, concat(array(_w, _s), _o) as _o\n"
        f"  from {seen}\n  where _side = 1",
    )
    columns = [f"_l.{c}" for c in left.columns] + [f"_r.{c}" for c in right.columns]
    kept = "" if node.left_outer else "\n  where _r is not null"
    return Lowered(f"select {select_list(columns)},\n         _w, _s, _o\n  from {matched}{kept}")
