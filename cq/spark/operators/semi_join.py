"""SemiJoin: left rows with their first match, which decides their position; of an anti join those that have none."""

from __future__ import annotations

from cq.planner.operators import JoinKind, SemiJoin
from cq.spark.context import Context, lowers
from cq.spark.pairs import LEFT, at_end, at_row, condition, first_matches, side, without_match
from cq.spark.position import CteRows, Lowered


@lowers("semi_join")
def lower_semi_join(node: SemiJoin, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    left, right = inputs
    mine = side("l", left.name, left, node.left_keys, context)
    others = side("r", right.name, right, node.right_keys, context)
    on, width = condition(node, context), len(left.columns)
    if node.kind is JoinKind.SEMI:
        return Lowered(first_matches((mine, others), width, on, context))
    place = at_row() if node.right_first else at_end("l", LEFT)
    return Lowered(without_match((mine, others), width, on, place))
