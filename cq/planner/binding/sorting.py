"""ORDER BY, LIMIT and OFFSET: the operators that order and count rows, and when they emit them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cq.errors import NOWHERE, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, conjunction
from cq.lang.schema import TimeAttribute
from cq.planner.binding.built_expressions import aggregate_call, column, compared, integer
from cq.planner.binding.expressions import Clause
from cq.planner.binding.order_keys import distinct_keys
from cq.planner.binding.traits import Origin, origin
from cq.planner.operators import (
    AssignWindows,
    Filter,
    OrderKey,
    Over,
    Project,
    Sort,
    WindowAggregate,
    Windowed,
    WindowKind,
)
from cq.planner.operators.pruning import only
from cq.planner.operators.window import FIRST_KEY, WINDOW_END, WINDOW_START
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass

ORDER_BY = Clause("ORDER BY", aggregates=True, windows=True, queries=True)


@dataclass(frozen=True, slots=True)
class Limited:
    """Rows with a limit: `limit` rows, None for all, after the first `offset` by position."""

    node: LogicalNode
    limit: int | None = None
    offset: int = 0


def ordered(rows: Limited, keys: Sequence[OrderKey], items: Sequence[ast.OrderItem]) -> Limited:
    """The rows by these keys, and the rest of LIMIT and OFFSET. items: as written.

    Rows of windows that are ordered by their window first are emitted as windows close; all others at the end.
    """
    keys = distinct_keys(keys)
    node, span = rows.node, items[0].span.to(items[-1].span)
    if not keys:
        return rows
    windows = tuple(_leading_bounds(node, keys))
    if windows:
        if len(windows) == len(keys) and _leaves_in_order(windows):
            return rows
        partition = tuple(k.expr for k in keys[: len(windows)])
        times = closing_times(node, partition)
        if times:
            rest = tuple(keys[len(windows) :]) or keys[-1:]
            return Limited(Sort(node, partition, rest, times, span=span), rows.limit, rows.offset)
    if not node.bounded:
        raise compile_error(
            "CQ0406",
            "ORDER BY would wait for the end of an unbounded input",
            items[0].span,
            label="never sorted",
            help=(
                "remove it: rows are emitted in order of arrival, results of windows by window end",
                "results of windows can be sorted window by window: ORDER BY window_end, … ; or read a bounded input",
            ),
        )
    return Limited(Sort(node, (), keys, limit=rows.limit, offset=rows.offset, span=span))


def sorted_within(node: LogicalNode, partition: tuple[Expr, ...], order: tuple[OrderKey, ...], span: Span) -> Sort:
    """The rows of each partition of OVER by its order."""
    times = closing_times(node, partition)
    if not times and not node.bounded:
        raise compile_error(
            "CQ0406",
            "OVER with this ORDER BY would wait for the end of an unbounded input",
            order[0].expr.span if order and order[0].expr.span != NOWHERE else span,
            label="never sorted",
            help=(
                "order by the event time, ascending, and by nothing else",
                "of the results of windows, rank each window: PARTITION BY window_start, window_end",
            ),
        )
    return Sort(node, partition, order, times, span=span)


def closing_times(node: LogicalNode, partition: Sequence[Expr]) -> tuple[TimeAttribute, ...]:
    """The event times of the window of which a partition key is a bound; none if there is no such key, or it does not
    tell the end.

    The start tells it if all windows have one length.
    """
    for key in partition:
        found = origin(node, key.index) if isinstance(key, Column) else None
        if found is None or found.column >= FIRST_KEY or (found.column == WINDOW_START and not _of_one_length(found)):
            continue
        bounds = [(t, origin(node, t.column)) for t in node.schema.times]
        times = tuple(t for t, o in bounds if o is not None and o.node is found.node and o.column < FIRST_KEY)
        if times:
            return times
    return ()


def _of_one_length(bound: Origin) -> bool:
    """Whether the windows are tumbling or hopping ones: those of rows, of aggregates, or of aggregates of these."""
    node = bound.node
    while isinstance(node, WindowAggregate) and node.window.kind is WindowKind.ATTACHED:
        below = origin(node.input, node.window.start_column)
        if below is None:
            return False
        node = below.node
    return isinstance(node, WindowAggregate | AssignWindows) and node.window.kind is not WindowKind.CUMULATE


def _leading_bounds(node: LogicalNode, keys: Sequence[OrderKey]) -> Iterable[tuple[LogicalNode, Origin]]:
    """The bounds that lead the order of the rows, in the order in which windows close."""
    for n, key in enumerate(keys):
        found = origin(node, key.expr.index) if isinstance(key.expr, Column) and not key.descending else None
        if found is None or found.column >= FIRST_KEY or (n == 0 and not _in_closing_order(found)):
            return
        yield node, found


def _in_closing_order(bound: Origin) -> bool:
    """Whether windows close in the order of this bound."""
    return bound.column != WINDOW_START or _of_one_length(bound)


def _leaves_in_order(windows: Sequence[tuple[LogicalNode, Origin]]) -> bool:
    """Whether the rows are in this order anyway: those of one window, through projections and filters at most."""
    node, first = windows[0]
    while isinstance(node, Project | Filter):
        node = node.input
    if not isinstance(node, Windowed) or any(o.column not in {WINDOW_START, WINDOW_END} for _, o in windows):
        return False
    if isinstance(node, WindowAggregate):
        return node.window.kind is not WindowKind.ATTACHED
    return first.column == WINDOW_END  # sessions leave by end, then by start


# ---------------------------------------------------------------------------------------------------- rows by number


def counted(rows: Limited, span: Span, all_of_it: bool) -> Limited:
    """The rows without the first `offset`; if `all_of_it`, without those beyond the limit too."""
    limit = rows.limit if all_of_it else None
    if not rows.offset and limit is None:
        return rows
    node, width = rows.node, len(rows.node.schema)
    over = Over(node, (), None, (aggregate_call("count", span=span),), ("row_number",), span=span)
    number = column(over, width)
    bounds = [compared(">", number, integer(rows.offset), span)] if rows.offset else []
    if limit is not None:
        bounds.append(compared("<=", number, integer(min(rows.offset + limit, MOST_ROWS)), span))
    kept = Filter(over, conjunction(tuple(bounds)), span=span)
    return Limited(only(kept, range(width)), None if all_of_it else rows.limit)


MOST_ROWS = 2**63 - 1
