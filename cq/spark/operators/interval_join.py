"""IntervalJoin: both sides joined by key and time; a pair comes at the position of its later row, a left row alone at
that of its first match or of the proof that it has none."""

from __future__ import annotations

from cq.planner.operators import IntervalJoin, JoinKind
from cq.spark.context import Context, lowers
from cq.spark.pairs import ALONE, LEFT, RIGHT, condition, first_matches, pairs, side, without_match, without_pair
from cq.spark.position import CteRows, Lowered, event_time


@lowers("interval_join")
def lower_interval_join(node: IntervalJoin, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    left, right = inputs
    sides = []
    for name, rows, time, keys in (
        ("l", left, node.left_time, node.left_keys),
        ("r", right, node.right_time, node.right_keys),
    ):
        below = context.step(
            f"{name}_timed", f"select *, {event_time(time, rows.columns)} as _u\n  from {rows.name}{rows.on_time}"
        )
        sides.append(side(name, below, rows, keys, context, more="_u, "))
    on = condition(node, context, f"r._u - l._u between {node.lower_us}L and {node.upper_us}L")
    width, proved = len(left.columns), _proved("l", LEFT, node.left_expiry_us, node)
    if node.kind is JoinKind.SEMI:
        return Lowered(first_matches(sides, width, on, context))
    if node.kind is JoinKind.ANTI:
        return Lowered(without_match(sides, width, on, proved))
    texts = [pairs(node, sides, on)]
    if node.kind.left_unmatched:
        texts.append(without_pair(node, sides, on, proved))
    if node.kind.right_unmatched:
        texts.append(without_pair(node, sides, on, _proved("r", RIGHT, node.right_expiry_us, node), right=True))
    return Lowered("\n  union all ".join(texts))


def _proved(name: str, port: str, expiry_us: int, node: IntervalJoin) -> str:
    """The position of a row without a pair: the instant that proves it, by arrival; at once if that is over."""
    proof = f"({name}._u + {expiry_us + 1}L)"
    at_once = f"({proof} < {name}._w or {proof} = {name}._w and {name}._s >= 0)"
    keyed = " or ".join(f"{name}._k{i} is null" for i in range(len(node.left_keys)))
    at_once = f"({at_once} or {keyed})" if keyed else at_once
    waited = f"concat(array({ALONE}, {name}._w, {name}._s, {port}), {name}._o)"
    return (
        f"if({at_once}, {name}._w, {proof}) as _w, if({at_once}, {name}._s, -1L) as _s,\n"
        f"         if({at_once}, concat(array({port}), {name}._o), {waited}) as _o"
    )
