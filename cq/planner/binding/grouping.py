"""GROUP BY: which aggregate operator a SELECT needs, and where its result holds the values of the rows below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cq.errors import NOWHERE, CompileError, Span, compile_error
from cq.grammar import inline
from cq.lang.expressions import Column, Expr, Literal, columns_of, format_expr
from cq.planner.binding.built_expressions import aggregate_call, column, compared, integer
from cq.planner.binding.calls import OverCall, Rank, SelectCalls
from cq.planner.binding.count_windows import in_count_window
from cq.planner.binding.scope import CountWindow, Hole, Relation, Room, SessionWindow, holes_of
from cq.planner.binding.traits import origin, window_bound, with_bounds
from cq.planner.operators import (
    Aggregate,
    AssignWindows,
    Filter,
    Lag,
    SemiJoin,
    SessionAggregate,
    SessionRows,
    Window,
    WindowAggregate,
    WindowKind,
)
from cq.planner.operators.joined import apart
from cq.planner.operators.window import FIRST_KEY, WINDOW_END, WINDOW_START
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace

NAME_LENGTH = 24  # characters of a call that serves as the name of its column


@dataclass(frozen=True, slots=True)
class BoundGroups:
    """An aggregate operator. indices: the positions in its rows of the values of the rows below.

    groupings: the values of the GROUPING calls.
    """

    node: LogicalNode
    indices: dict[Expr, int]
    first_aggregate: int
    groupings: tuple[Expr, ...] = ()

    def above(self, expr: Expr) -> Expr:
        """`expr` over the aggregate's rows. CQ0404 for a column that is neither grouped nor aggregated."""
        if isinstance(expr, Hole) and expr.room in {Room.OVER, Room.QUERY}:
            return expr
        if isinstance(expr, Hole) and expr.room is Room.GROUPING:
            return replace(self.groupings[expr.index], span=expr.span)
        if isinstance(expr, Hole):
            return self.column(expr.index + (self.first_aggregate if expr.room is Room.AGGREGATE else 0), expr.span)
        index = self.indices.get(expr)
        if index is not None:
            return self.column(index, expr.span)
        if isinstance(expr, Column):
            shown = inline.name(expr.name)
            raise compile_error(
                "CQ0404",
                f'"{expr.name}" is neither in GROUP BY nor in an aggregate',
                expr.span,
                label="not grouped",
                help=f'add "{expr.name}" to GROUP BY, or write MIN({shown}) or MAX({shown})',
            )
        children = expr.children
        return expr.with_children([self.above(c) for c in children]) if children else expr

    def above_over(self, over: OverCall) -> OverCall:
        """A call with OVER over the aggregate's rows."""
        call = over.call
        if isinstance(call, Rank):
            pass
        elif isinstance(call, Lag):
            default = self.above(call.default) if call.default is not None else None
            call = replace(call, arg=self.above(call.arg), default=default)
        else:
            condition = self.above(call.filter) if call.filter is not None else None
            call = replace(call, args=tuple(self.above(a) for a in call.args), filter=condition)
        order = tuple(k.map(self.above) for k in over.order)
        return replace(over, call=call, partition=tuple(self.above(p) for p in over.partition), order=order)

    def column(self, index: int, span: Span) -> Column:
        f = self.node.schema.fields[index]
        return Column(f.type, f.nullable, index, f.name, span=span)


def group_rows(
    node: LogicalNode,
    relation: Relation,
    calls: SelectCalls,
    group: Sequence[Expr],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    """The aggregate operator over `node` for the GROUP BY expressions `group`.

    items: the select list, which names the keys and aggregates for people.
    """
    refuse_deep_calls(calls.aggregates)
    if relation.window is not None:
        return _in_window(node, relation.window.window, calls, group, items, span)
    bounds = [e for e in group if isinstance(e, Column) and window_bound(node, e.index) is not None]
    if bounds:
        return _in_attached_window(node, calls, group, items, bounds[0].span, span)
    return _at_the_end(node, relation, calls, group, items, span)


def _in_window(
    node: LogicalNode,
    window: Window | SessionWindow | CountWindow,
    calls: SelectCalls,
    group: Sequence[Expr],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    for e in group:
        if holes_of(e, Room.WINDOW) and columns_of(e):
            raise compile_error(
                "CQ0502",
                "a GROUP BY expression cannot combine a window bound with a column",
                e.span,
                help="GROUP BY the column only: the window is already part of the group",
            )
    keys = _distinct_keys(e for e in group if not holes_of(e, Room.WINDOW))
    if isinstance(window, CountWindow):
        _demand_same_keys(window, keys, node.schema.names)
        names = _names(keys, calls.aggregates, items)
        result = in_count_window(node, window, calls.aggregates, names, keys, span)
        return BoundGroups(result, {k: i for i, k in enumerate(keys)}, len(keys))
    if isinstance(window, SessionWindow):
        return _session(node, window, keys, calls.aggregates, items, span)
    if window.kind is not WindowKind.TUMBLE and _cannot_merge(calls.aggregates):
        rows = AssignWindows(node, window, span=span)
        return _window_aggregate(rows, _window_of(rows), keys, {}, calls.aggregates, items, span)
    return _window_aggregate(node, window, keys, {}, calls.aggregates, items, span)


def _cannot_merge(aggregates: Sequence[AggregateCall]) -> bool:
    """Whether some aggregate needs all rows of a window in one state: then rows are assigned to windows first."""
    return any(a.distinct or not a.function.merges for a in aggregates)


def _window_of(rows: AssignWindows | SessionRows) -> Window:
    """The window that these rows belong to."""
    first = len(rows.input.schema)
    end = next(t for t in rows.schema.times if t.column == first + WINDOW_END)
    return Window(WindowKind.ATTACHED, end, start_column=first + WINDOW_START)


def _in_attached_window(
    node: LogicalNode,
    calls: SelectCalls,
    group: Sequence[Expr],
    items: Sequence[tuple[str, Expr]],
    place: Span,
    span: Span,
) -> BoundGroups:
    """Aggregates of aggregates: the rows already belong to a window, and groups by its bounds close with it."""
    node = next((with_bounds(node, e.index) for e in group if isinstance(e, Column)), node)
    fields = node.schema.fields
    found = next((f for e in group if isinstance(e, Column) and (f := _bounds_beside(node, e.index)) is not None), None)
    if found is None:
        raise compile_error(
            "CQ0502",
            "grouping by a window needs both of its bounds",
            place,
            help="select window_start and window_end unchanged in the inner query",
        )
    window, bounds = found
    indices: dict[Expr, int] = {Column(fields[i].type, fields[i].nullable, i): b for i, b in bounds.items()}
    keys = _distinct_keys(e for e in group if e not in indices)
    return _window_aggregate(node, window, keys, indices, calls.aggregates, items, span)


def _bounds_beside(node: LogicalNode, column: int) -> tuple[Window, dict[int, int]] | None:
    """The window whose bound a column is, and which bound each column is; None unless both bounds are there.

    Rows of windows that are themselves assigned to windows have the bounds of both.
    """
    mine = origin(node, column)
    origins = {i: origin(node, i) for i in range(len(node.schema))}
    bounds = {i: o.column for i, o in origins.items() if mine and o and o.node is mine.node and o.column < FIRST_KEY}
    start = next((i for i, b in bounds.items() if b == WINDOW_START), None)
    time = next((t for t in node.schema.times if bounds.get(t.column) == WINDOW_END), None)
    if column not in bounds or start is None or time is None:
        return None
    return Window(WindowKind.ATTACHED, time, start_column=start), bounds


def _window_aggregate(
    node: LogicalNode,
    window: Window,
    keys: tuple[Expr, ...],
    indices: dict[Expr, int],
    aggregates: Sequence[AggregateCall],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    key_names, aggregate_names = _names(keys, aggregates, items)
    result = WindowAggregate(node, keys, tuple(aggregates), key_names, aggregate_names, window=window, span=span)
    indices = {**indices, **{k: FIRST_KEY + i for i, k in enumerate(keys)}}
    return BoundGroups(result, indices, FIRST_KEY + len(keys))


def _session(
    node: LogicalNode,
    window: SessionWindow,
    keys: tuple[Expr, ...],
    aggregates: Sequence[AggregateCall],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    """Sessions of every group. PARTITION BY and GROUP BY must name the same keys: a session belongs to one group."""
    _demand_same_keys(window, keys, node.schema.names)
    if _cannot_merge(aggregates):
        rows = SessionRows(node, keys, window.time, window.gap_us, span=span)
        return _window_aggregate(rows, _window_of(rows), keys, {}, aggregates, items, span)
    key_names, names = _names(keys, aggregates, items)
    result = SessionAggregate(
        node, keys, tuple(aggregates), key_names, names, time=window.time, gap_us=window.gap_us, span=span
    )
    return BoundGroups(result, {k: FIRST_KEY + i for i, k in enumerate(keys)}, FIRST_KEY + len(keys))


def _demand_same_keys(window: SessionWindow | CountWindow, keys: Sequence[Expr], names: Sequence[str]) -> None:
    """CQ0502 for windows with keys that are grouped by others."""
    if window.keys is not None and set(_distinct_keys(window.keys)) != set(keys):
        raise _other_groups(window, keys, names)


def _other_groups(window: SessionWindow | CountWindow, keys: Sequence[Expr], names: Sequence[str]) -> CompileError:
    by, counts = _distinct_keys(window.keys or ()), isinstance(window, CountWindow)
    what = "the window" if counts else "SESSION"
    extra = next((k for k in keys if k not in by), None)
    lacking = next((k for k in by if k not in keys), None)
    if extra is not None:
        cause, span = f"{format_expr(extra, names)} is in GROUP BY, but not in PARTITION BY of {what}", extra.span
    else:
        assert lacking is not None, "the same keys"
        cause = f"{what} is partitioned by {format_expr(lacking, names)}, but GROUP BY does not name it"
        span = lacking.span
    return compile_error(
        "CQ0502",
        cause,
        span if span != NOWHERE else window.span,
        help=(
            "write the same columns in PARTITION BY and in GROUP BY"
            if counts
            else "write the same columns in PARTITION BY and, beside window_start and window_end, in GROUP BY",
            "or, to group the rows of these sessions by more columns, read them FROM (SELECT * FROM SESSION(…)) AS s"
            if extra is not None and not counts
            else "",
        ),
    )


def _at_the_end(
    node: LogicalNode,
    relation: Relation,
    calls: SelectCalls,
    group: Sequence[Expr],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    if not node.bounded:
        tested = next((t for e in group if isinstance(e, Column) and (t := _tested(node, e.index)) is not None), None)
        if tested is not None:
            raise _windows_tested(tested, relation, group[0].span)
        raise compile_error(
            "CQ0406",
            f"these groups would never be final: {relation.title} has no end",
            group[0].span if group else calls.aggregates[0].span,
            label="no window",
            help=(
                "group in windows: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) "
                "… GROUP BY window_start, window_end",
                "or compute running results: SUM(x) OVER (PARTITION BY key ROWS UNBOUNDED PRECEDING)",
            ),
        )
    keys = _distinct_keys(group)
    aggregates, constant = list(calls.aggregates), group and not keys
    if constant:
        aggregates.append(aggregate_call("count", span=span))
    key_names, aggregate_names = _names(keys, aggregates, items)
    result: LogicalNode = Aggregate(node, keys, tuple(aggregates), key_names, aggregate_names, span=span)
    if constant:  # a group of at least one row
        result = Filter(result, compared("<", integer(0), column(result, len(result.schema) - 1), span), span=span)
    return BoundGroups(result, {k: i for i, k in enumerate(keys)}, len(keys))


def _tested(node: LogicalNode, column: int) -> SemiJoin | None:
    """The test against other rows by which rows have lost the event time of their window, whose bound this column
    is."""
    while node.source is None:
        if isinstance(node, SemiJoin):
            if window_bound(node.left, column) is not None:
                return node
            node = node.left
            continue
        f = node.schema.fields[column]
        match node.pull(Column(f.type, f.nullable, column, f.name)):
            case [(port, Column(index=below))]:
                node, column = node.inputs[port], below
            case _:
                return None
    return None


def _windows_tested(test: SemiJoin, relation: Relation, span: Span) -> CompileError:
    """CQ0406 for windows whose rows have been tested without a limit on how far apart the times are."""
    other = test.other_time()
    ours = relation.qualifiers if relation.node is test.left else set[str]()
    if other is not None:
        way = other.way(next(iter(ours)) if len(ours) == 1 and not other.on_right else "")
    elif test.left.schema.times and test.right.schema.times:
        way = f"name both sides a and b, and limit how far apart the times are: AND {apart(test.left, test.right)}"
    else:
        way = ""
    return compile_error(
        "CQ0406",
        f"these groups would never be final: {relation.title} has no end",
        span,
        label="filtered rows have no event time",
        help=(way, f"{'or ' if way else ''}compute the groups in a derived table, and test its rows outside"),
    )


def _distinct_keys(exprs: Iterable[Expr]) -> tuple[Expr, ...]:
    """Each key once; constants are dropped."""
    return tuple(dict.fromkeys(e for e in exprs if not isinstance(e, Literal)))


def _names(
    keys: Sequence[Expr], aggregates: Sequence[AggregateCall], items: Sequence[tuple[str, Expr]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names for people: those of the select list where a column is exactly this key or aggregate."""
    shown: dict[object, str] = {}
    for name, e in items:
        shown.setdefault(e.index if isinstance(e, Hole) and e.room is Room.AGGREGATE else e, name)
    key_names = [shown.get(k) or (k.name if isinstance(k, Column) else f"key{i + 1}") for i, k in enumerate(keys)]
    names = [shown.get(i) or _short(str(a)) or f"{a.function.name}{i + 1}" for i, a in enumerate(aggregates)]
    return tuple(key_names), tuple(names)


def _short(text: str) -> str:
    return text if len(text) <= NAME_LENGTH else ""


def refuse_deep_calls(aggregates: Sequence[AggregateCall]) -> None:
    """CQ0405 for an aggregate over a bound of the window it is grouped by, which is the same in every row."""
    for a in aggregates:
        for e in (*a.args, *([a.filter] if a.filter is not None else [])):
            if holes_of(e, Room.WINDOW):
                raise compile_error(
                    "CQ0502",
                    "an aggregate cannot use the bounds of its own window",
                    e.span if e.span != NOWHERE else a.span,
                    help="all rows of the group have the same bounds: write window_start without the aggregate",
                )
