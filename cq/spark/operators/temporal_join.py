"""TemporalJoin: both sides in one sequence by (time, event), and the last version seen up to each left row.

A left row sees the versions that came before it, or with it in one event (where the right side goes first), and that
are not younger than it. It is looked up when the watermark has reached its time `t`, so every version older than `t`
has come by then; only for versions at time `t` itself does the event decide. Hence the order by (time, event, side,
arrival).
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr
from cq.planner.operators import TemporalJoin
from cq.spark.context import Context, lowers, released
from cq.spark.position import CteRows, Lowered, event_time, select_list

RUNNING = "rows between unbounded preceding and current row"


@lowers("temporal_join")
def lower_temporal_join(node: TemporalJoin, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    right, left = inputs
    keys = [f"_k{i}" for i in range(len(node.left_keys))]
    named = ", ".join(keys)
    left_rows = context.step(
        "left", released(left, node.left_time, f"{keyed(node.left_keys, left, context)} as _l, _u", context)
    )
    right_rows = context.step(
        "right",
        f"select {keyed(node.right_keys, right, context)} as _r,\n"
        f"         {event_time(node.right.schema.times[0], right.columns)} as _u, _w, _s, _o\n"
        f"  from {right.name}{right.on_time}",
    )
    both = context.step(
        "both",
        f"select {named}, _u, _w, _s, 1 as _side, _o, _l, null as _r from {left_rows}\n"
        f"  union all select {named}, _u, _w, _s, 0, _o, null, _r from {right_rows}\n"
        f"  where {' and '.join(f'{k} is not null' for k in keys)}",
    )
    seen = context.step(
        "seen",
        f"select _side, _l, _w, _s, _o, last(_r, true) over (\n"
        f"    partition by {named} order by _u, _w, _s, _side, _o {RUNNING}) as _r\n  from {both}",
    )
    columns = [f"_l.{c}" for c in left.columns] + [f"_r.{c}" for c in right.columns]
    version = "_r" if node.residual is None else f"if({context.text(node.residual, columns)}, _r, null) as _r"
    matched = context.step("matched", f"select _l, {version}, _w, _s, _o\n  from {seen}\n  where _side = 1")
    kept = "" if node.kind.left_unmatched else "\n  where _r is not null"
    return Lowered(f"select {select_list(columns)},\n         _w, _s, _o\n  from {matched}{kept}")


def keyed(keys: Sequence[Expr], rows: CteRows, context: Context) -> str:
    """The keys as columns, and the row as one value."""
    shown = [f"{context.text(k, rows.columns)} as _k{i}" for i, k in enumerate(keys)]
    return ", ".join((*shown, f"struct({', '.join(rows.columns)})"))
