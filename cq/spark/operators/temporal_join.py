"""TemporalJoin: both sides in one sequence by (time, event), and the last version seen up to each left row.

A left row sees the versions that came before it, or with it in one event (there the right side goes first), and that
are not younger than it. It is looked up when the watermark has reached its time `t`, so every version older than `t`
has come by then; only of those of time `t` itself the event decides. Hence the order by (time, event, side, arrival).
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.expressions import Expr
from cq.planner.operators import TemporalJoin
from cq.spark.context import Context
from cq.spark.position import Lowered, Rows, event_time, released, select_list

RUNNING = "rows between unbounded preceding and current row"


def lower_temporal_join(node: TemporalJoin, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    right, left = inputs
    left_time = event_time(node.left_time, left.columns)
    right_time = event_time(node.right.schema.times[0], right.columns)
    keys = [f"_k{i}" for i in range(len(node.left_keys))]
    left_row = f"{_keyed(node.left_keys, left, context)} as _l, {left_time} as _u"
    right_row = f"{_keyed(node.right_keys, right, context)} as _r, {right_time} as _u"
    named = ", ".join(keys)
    version = "_r"
    if node.residual is not None:
        both = [f"_l.{c}" for c in left.columns] + [f"_r.{c}" for c in right.columns]
        version = f"if({context.text(node.residual, both)}, _r, null) as _r"
    kept = "" if node.left_outer else "\n  where _r is not null"
    columns = [f"_l.{c}" for c in left.columns] + [f"_r.{c}" for c in right.columns]
    return Lowered(
        f"select {select_list(columns)}, _w, _s, _o\n"
        f"  from (select _l, {version}, _w, _s, _o\n"
        f"        from (select _l, _side, _w, _s, _o, last(_r, true) over (\n"
        f"                partition by {named} order by _u, _w, _s, _side, _o {RUNNING}) as _r\n"
        f"              from (select {named}, _u, _w, _s, 1 as _side, _o, _l, null as _r\n"
        f"                    from ({released(left, left_time, left_row, context.waits)})\n"
        f"                    union all\n"
        f"                    select {named}, _u, _w, _s, 0, _o, null, _r\n"
        f"                    from (select {right_row}, _w, _s, _o from {right.name}{right.on_time})\n"
        f"                    where {' and '.join(f'{k} is not null' for k in keys)}))\n"
        f"        where _side = 1){kept}"
    )


def _keyed(keys: Sequence[Expr], rows: Rows, context: Context) -> str:
    """The keys as columns, and the row as one value."""
    shown = [f"{context.text(k, rows.columns)} as _k{i}" for i, k in enumerate(keys)]
    return ", ".join((*shown, f"struct({', '.join(rows.columns)})"))
