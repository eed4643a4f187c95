"""Facts about a plan's columns, found by following them down: which are bounds of a window, which are its group
keys."""

from __future__ import annotations

from cq.errors import Span, compile_error
from cq.lang.expressions import Column, Expr, walk
from cq.planner.operators import (
    Aggregate,
    AssignWindows,
    Filter,
    Join,
    Project,
    SessionRows,
    Sort,
    Windowed,
)
from cq.planner.operators.joined import Joined
from cq.planner.operators.window import FIRST_KEY, WINDOW_END, WINDOW_START
from cq.planner.plan.node import LogicalNode, OpClass, topological
from cq.records import dataclass, replace

MAX_COLUMNS = 4_096  # columns of one operator
MAX_EXPRESSION = 20_000  # nodes in one expression
MAX_PLAN_DEPTH = 200  # nested nodes; recursive walks stay far below Python's limit on frames


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a column comes from unchanged: a window aggregate and its position there, or the operator that assigns rows
    to windows, and which bound it is (numbered like the first columns of a window aggregate)."""

    node: Windowed | AssignWindows | SessionRows
    column: int


Known = dict[tuple[int, int], "Origin | None"]
"""(id(node), column) -> its origin, so that a union of unions is followed once."""


def origin(node: LogicalNode, column: int, one_row_each: bool = False, known: Known | None = None) -> Origin | None:
    """Where a column comes from if its value is only passed through; None if it was computed or does not come from a
    window.

    one_row_each: stop at operators that may give several rows for one of the window's (unnest, joins, unions), so that
    a group has at most one row per window.
    """
    while not isinstance(node, Windowed):
        if isinstance(node, Joined) and node.kind.left_only and node.schema.times:  # left rows, each once, with times
            node = node.left
            continue
        if isinstance(node, AssignWindows | SessionRows) and column >= len(node.input.schema):
            return Origin(node, column - len(node.input.schema))
        f = node.schema.fields[column]
        pulled = node.pull(Column(f.type, f.nullable, column))
        if pulled is None or (one_row_each and (len(node.inputs) > 1 or node.fan_out != 1)):
            return None
        if len(pulled) > 1:
            known = {} if known is None else known
            if (id(node), column) not in known:
                known[id(node), column] = _common_origin(node, column, known)
            return known[id(node), column]
        ((port, expr),) = pulled
        waits = node.op_class is not OpClass.STATELESS and node.holds_back(port)
        if not isinstance(expr, Column) or (waits and not (isinstance(node, Sort) and node.times)):
            return None
        node, column = node.inputs[port], expr.index
    return Origin(node, column)


def _common_origin(node: LogicalNode, column: int, known: Known) -> Origin | None:
    """The origin in the first input, if every input has one, in a window of the same kind."""
    first, *others = [origin(b, column, known=known) for b in node.inputs]
    alike = first is not None and all(
        o is not None and (o.node.window_kind, o.column) == (first.node.window_kind, first.column) for o in others
    )
    return first if alike else None


def window_bound(node: LogicalNode, column: int) -> int | None:
    """Which bound of its window a column is (WINDOW_START, WINDOW_END or WINDOW_TIME); None if it is not one."""
    found = origin(node, column)
    return found.column if found is not None and found.column < FIRST_KEY else None


def with_bounds(node: LogicalNode, column: int) -> LogicalNode:
    """The node with both bounds of the window whose bound a column is: one that was not selected is added as its last
    column. Unchanged if more than SELECT and WHERE lies between the rows and the window."""
    found = origin(node, column)
    if found is None or found.column >= FIRST_KEY:
        return node
    there = {o.column for i in range(len(node.schema)) if (o := origin(node, i)) and o.node is found.node}
    for bound in {WINDOW_START, WINDOW_END} - there:
        carried = _carrying(node, found.node, bound)
        node = node if carried is None else carried[0]
    return node


def _carrying(node: LogicalNode, window: LogicalNode, bound: int) -> tuple[LogicalNode, int] | None:
    """The node extended by a bound of the windows below it, and the index of that column."""
    if node is window:
        return node, bound + (0 if isinstance(node, Windowed) else len(node.inputs[0].schema))
    below = _carrying(node.input, window, bound) if isinstance(node, Project | Filter) else None
    if below is None or isinstance(node, Filter):
        return None if below is None else (node.with_inputs([below[0]]), below[1])
    assert isinstance(node, Project)
    f = below[0].schema.fields[below[1]]
    exprs = (*node.exprs, Column(f.type, f.nullable, below[1], f.name))
    return replace(node, input=below[0], exprs=exprs, names=(*node.names, f.name)), len(node.exprs)


def key_columns(node: LogicalNode) -> tuple[Windowed, dict[int, int]] | None:
    """For the result of a keyed window: the aggregate, and which key each column is, for those that are group keys."""
    keys: dict[int, int] = {}
    aggregate: Windowed | None = None
    for column in range(len(node.schema)):
        found = origin(node, column, one_row_each=True)
        if found is None or not isinstance(found.node, Windowed):
            continue
        aggregate = found.node
        if FIRST_KEY <= found.column < FIRST_KEY + len(found.node.keys):
            keys[column] = found.column - FIRST_KEY
    return (aggregate, keys) if aggregate is not None else None


def one_row(node: LogicalNode, or_none: bool = False) -> bool:
    """Whether there is exactly one row: aggregates over everything. or_none: whether there may also be none."""
    match node:
        case Project(input=below):
            return one_row(below, or_none)
        case Filter(input=below):
            return or_none and one_row(below, or_none)
        case Join(left_keys=(), residual=residual):
            return (or_none or residual is None) and all(one_row(i, or_none) for i in node.inputs)
    return isinstance(node, Aggregate) and not node.keys


def check_size(expr: Expr, span: Span) -> Expr:
    """Refuse an expression that has grown too large, as columns computed from each other may."""
    for size, _ in enumerate(walk(expr)):
        if size > MAX_EXPRESSION:
            raise compile_error(
                "CQ0103",
                f"this expression has more than {MAX_EXPRESSION} parts, including those of the columns it uses",
                span,
                help="split it into several views",
            )
    return expr


def check_columns(count: int, span: Span) -> None:
    """Refuse a row with too many columns, as a star of stars may produce."""
    if count > MAX_COLUMNS:
        raise compile_error(
            "CQ0103", f"{count} columns, more than the limit of {MAX_COLUMNS}", span, help="name the columns you need"
        )


def check_depth(node: LogicalNode, known: dict[int, int], span: Span) -> None:
    """Refuse a plan nested too deeply. known: depths found before, by id(node)."""
    for n in topological([node]):
        known[id(n)] = 1 + max((known[id(i)] for i in n.inputs), default=0)
    if known[id(node)] > MAX_PLAN_DEPTH:
        raise compile_error(
            "CQ0103",
            f"the query nests more than {MAX_PLAN_DEPTH} operators",
            span,
            help="nest fewer views and derived tables",
        )
