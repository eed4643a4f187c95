"""SemiJoin: left rows with their first match, which decides their position; with `anti` those that have none."""

from __future__ import annotations

from cq.planner.operators import SemiJoin
from cq.spark.context import Context, lowers
from cq.spark.pairs import LEFT, RIGHT, at_end, at_row, condition, side
from cq.spark.position import CteRows, Lowered, select_list


@lowers("semi_join")
def lower_semi_join(node: SemiJoin, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    left, right = inputs
    mine = side("l", left.name, left, node.left_keys, context)
    others = side("r", right.name, right, node.right_keys, context)
    on = condition(node, context)
    columns = [f"_l{i}" for i, _ in enumerate(left.columns)]
    if node.anti:
        below = f"{mine} as l left anti join {others} as r\n    on {on}"
        place = at_row() if node.right_first else at_end("l", LEFT)
        return Lowered(f"select {select_list(columns)},\n         {place}\n  from {below}")
    matched = context.step(
        "matched",
        f"select l._w, l._s, l._o, any_value(struct({', '.join(f'l.{c}' for c in columns)})) as _row,\n"
        f"         min(struct(r._w, r._s, r._o)) as _r\n"
        f"  from {mine} as l join {others} as r\n    on {on}\n  group by l._w, l._s, l._o",
    )
    first = "struct(_w, _s) <= struct(_r._w, _r._s)"
    return Lowered(
        f"select {select_list([f'_row.{c}' for c in columns])},\n"
        f"         if({first}, _r._w, _w) as _w, if({first}, _r._s, _s) as _s,\n"
        f"         if({first}, concat(array({RIGHT}), _r._o, array(_w, _s), _o), concat(array({LEFT}), _o)) as _o\n"
        f"  from {matched}"
    )
