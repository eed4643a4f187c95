"""Join: both sides joined by key; rows without a pair come at the end of the input, by arrival, or at their own
position."""

from __future__ import annotations

from cq.planner.operators import Join
from cq.spark.context import Context, lowers
from cq.spark.pairs import LEFT, RIGHT, at_end, at_row, condition, pairs, side, without_pair
from cq.spark.position import CteRows, Lowered


@lowers("join")
def lower_join(node: Join, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    left, right = inputs
    sides = (
        side("l", left.name, left, node.left_keys, context),
        side("r", right.name, right, node.right_keys, context),
    )
    on = condition(node, context)
    texts = [pairs(node, sides, on)]
    if node.kind.left_unmatched:
        texts.append(without_pair(node, sides, on, at_row() if node.right_first else at_end("l", LEFT)))
    if node.kind.right_unmatched:
        texts.append(without_pair(node, sides, on, at_end("r", RIGHT), right=True))
    return Lowered("\n  union all ".join(texts))
