"""IntervalJoin: both sides joined by key and time; a pair stands where the later of its rows does."""

from __future__ import annotations

from cq.planner.operators import IntervalJoin
from cq.spark.context import Context, lowers
from cq.spark.position import Lowered, Rows, event_time, select_list

LEFT, RIGHT, PROVED = "0L", "1L", "2L"  # within one event left rows come first, then right ones


@lowers("interval_join")
def lower_interval_join(node: IntervalJoin, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    left, right = inputs
    sides = []
    for name, rows, time, keys in (
        ("l", left, node.left_time, node.left_keys),
        ("r", right, node.right_time, node.right_keys),
    ):
        shown = ", ".join(f"{context.text(k, rows.columns)} as _k{i}" for i, k in enumerate(keys))
        columns = ", ".join(f"{c} as _{name}{i}" for i, c in enumerate(rows.columns))
        more = ", ".join(x for x in (shown, columns) if x)
        below = context.step(
            f"{name}_timed", f"select *, {event_time(time, rows.columns)} as _u\n  from {rows.name}{rows.on_time}"
        )
        sides.append(context.step(name, f"select {more},\n         _u, _w, _s, _o\n  from {below}"))
    both = [*(f"_l{i}" for i in range(left.width)), *(f"_r{i}" for i in range(right.width))]
    on = [f"l._k{i} = r._k{i}" for i in range(len(node.left_keys))]
    on.append(f"r._u - l._u between {node.lower_us}L and {node.upper_us}L")
    if node.residual is not None:
        on.append(context.text(node.residual, both))
    # the later row's place within its event, then the position of the earlier one
    first = "struct(l._w, l._s, l._o) <= struct(r._w, r._s, r._o)"
    if node.left_outer:
        return _outer(node, both, sides, on, first, context)
    return Lowered(
        f"select {select_list(both)},\n         {_position(first)}\n"
        f"  from {sides[0]} as l join {sides[1]} as r\n    on {' and '.join(on)}"
    )


def _position(first: str) -> str:
    """The position of a pair. first: whether the left row came first, or with the right one."""
    later = f"concat(array({RIGHT}), r._o, array(l._w, l._s), l._o)"
    earlier = f"concat(array({LEFT}), l._o, array(r._w, r._s), r._o)"
    return (
        f"if({first}, r._w, l._w) as _w, if({first}, r._s, l._s) as _s,\n         if({first}, {later}, {earlier}) as _o"
    )


def _outer(
    node: IntervalJoin, columns: list[str], sides: list[str], on: list[str], first: str, context: Context
) -> Lowered:
    """Left rows without a pair leave at the instant that proves it, by arrival; at once where that is over already."""
    proof = f"(l._u + {node.left_expiry_us + 1}L)"
    at_once = f"({proof} < l._w or {proof} = l._w and l._s >= 0)"
    keyed = " or ".join(f"l._k{i} is null" for i in range(len(node.left_keys)))
    at_once = f"({at_once} or {keyed})" if keyed else at_once
    alone = (
        f"if({at_once}, l._w, {proof}) as _w, if({at_once}, l._s, -1L) as _s,\n"
        f"         if({at_once}, concat(array({LEFT}), l._o), concat(array({PROVED}, l._w, l._s), l._o)) as _o"
    )
    joined = f"{sides[0]} as l join {sides[1]} as r\n    on {' and '.join(on)}"
    lonely = f"{sides[0]} as l left anti join {sides[1]} as r\n    on {' and '.join(on)}"
    nothing = [*(f"_l{i}" for i in range(len(node.left.schema))), *(["null"] * len(node.right.schema))]
    return Lowered(
        f"select {select_list(columns)},\n         {_position(first)}\n  from {joined}\n"
        f"  union all select {', '.join(nothing)},\n         {alone}\n  from {lonely}"
    )
