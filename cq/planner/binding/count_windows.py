"""Windows that count rows, as frames that end at their last row.

`TUMBLE(TABLE s PARTITION BY k, ROWS 100)` grouped by k is the aggregates OVER (PARTITION BY k ROWS 99 PRECEDING) at
every hundredth row of k; `HOP(…, ROWS 10, ROWS 100)` is the same at every tenth. So a window's result is ready with its
last row, an incomplete window gives none, and the first windows of a HOP have fewer rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import Span
from cq.lang.expressions import Expr
from cq.planner.binding.built_expressions import aggregate_call, called, compared, integer
from cq.planner.binding.calls import OverCall
from cq.planner.binding.frames import Bound, WrittenFrame, within
from cq.planner.binding.over import add_overs
from cq.planner.binding.scope import CountWindow, Hole, Room
from cq.planner.operators import Filter, Project
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode


def in_count_window(
    node: LogicalNode,
    window: CountWindow,
    aggregates: Sequence[AggregateCall],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    keys: tuple[Expr, ...],
    span: Span,
) -> LogicalNode:
    """A row for each window: the keys, then the aggregates. names: of both."""
    last = Bound(None, before=False, unbounded=False)
    first = Bound(integer(window.size - 1), before=True, unbounded=False) if window.size > 1 else last
    framed = [within(call, WrittenFrame("ROWS", first, last, span=span)) for call in aggregates]
    number = OverCall(aggregate_call("count", span=span), keys, window.order, span=span)
    overs = [number, *(OverCall(call, keys, window.order, frame=frame, span=span) for call, frame in framed)]
    rows, filled = add_overs(node, overs)

    def value(index: int) -> Expr:
        call = overs[index].call
        return filled(Hole(call.type, call.nullable, Room.OVER, index, span=span))

    if window.slide > 1:
        rest = called("%", value(0), integer(window.slide), span=span)
        rows = Filter(rows, compared("=", rest, integer(0), span), span=span)
    shown = [*keys, *(value(1 + n) for n in range(len(aggregates)))]
    key_names, aggregate_names = names
    return Project(rows, tuple(shown), (*key_names, *aggregate_names), span=span)
