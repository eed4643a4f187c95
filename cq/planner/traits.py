"""What is known of a plan's columns by following them down: which are a window's bounds, which are its group's keys."""

from __future__ import annotations

from dataclasses import dataclass

from cq.errors import Span, compile_error
from cq.expressions import Column, Expr, walk
from cq.planner.logical import LogicalNode, topological
from cq.planner.operators import Filter, Over, Project, TemporalJoin, UnionAll, Unnest, WindowAggregate

WINDOW_START, WINDOW_END, WINDOW_TIME, FIRST_KEY = 0, 1, 2, 3  # columns of a WindowAggregate
MAX_COLUMNS = 4_096  # of one operator
MAX_EXPRESSION = 20_000  # nodes of one expression
MAX_PLAN_DEPTH = 200  # nodes above each other; walks that recurse need far fewer Python frames than there are


@dataclass(frozen=True, slots=True)
class Origin:
    """The window aggregate a column comes from unchanged, and its position there."""

    node: WindowAggregate
    column: int


Known = dict[tuple[int, int], "Origin | None"]
"""(id(node), column) -> its origin, so that a union of unions is followed once."""


def origin(node: LogicalNode, column: int, one_row_each: bool = False, known: Known | None = None) -> Origin | None:
    """Where a column comes from when its value was only carried along; None when it was computed or is no window's.

    one_row_each: stop at operators that may give several rows for one of the window's (unnest, joins, unions), so that
    a group still has at most one row for each window.
    """
    while True:
        match node:
            case WindowAggregate():
                return Origin(node, column)
            case Project(input=below, exprs=exprs):
                expr = exprs[column]
                if not isinstance(expr, Column):
                    return None
                node, column = below, expr.index
            case Filter(input=below):
                node = below
            case Over(input=below) if column < len(below.schema):
                node = below
            case Unnest(input=below) if column < len(below.schema) and not one_row_each:
                node = below
            case TemporalJoin(left=below) if column < len(below.schema) and not one_row_each:
                node = below
            case UnionAll() if not one_row_each:
                known = {} if known is None else known
                if (id(node), column) not in known:
                    known[id(node), column] = _common_origin(node, column, known)
                return known[id(node), column]
            case _:
                return None


def _common_origin(node: UnionAll, column: int, known: Known) -> Origin | None:
    """The origin in the first branch, if every branch has one in a window of the same kind."""
    first, *others = [origin(b, column, known=known) for b in node.branches]
    alike = first is not None and all(
        o is not None and (o.node.window, o.column) == (first.node.window, first.column) for o in others
    )
    return first if alike else None


def window_bound(node: LogicalNode, column: int) -> int | None:
    """Which bound of its window a column is (WINDOW_START, WINDOW_END or WINDOW_TIME); None when it is none."""
    found = origin(node, column)
    return found.column if found is not None and found.column < FIRST_KEY else None


def key_columns(node: LogicalNode) -> tuple[WindowAggregate, dict[int, int]] | None:
    """For the result of a keyed window: the aggregate, and for each column that is a group key which key it is."""
    keys: dict[int, int] = {}
    aggregate: WindowAggregate | None = None
    for column in range(len(node.schema)):
        found = origin(node, column, one_row_each=True)
        if found is None:
            continue
        aggregate = found.node
        if FIRST_KEY <= found.column < FIRST_KEY + len(found.node.keys):
            keys[column] = found.column - FIRST_KEY
    return (aggregate, keys) if aggregate is not None else None


def check_size(expr: Expr, span: Span) -> Expr:
    """Refuse an expression that has grown too large, as columns computed from each other may."""
    for size, _ in enumerate(walk(expr)):
        if size > MAX_EXPRESSION:
            raise compile_error(
                "CQ0103",
                f"this expression has more than {MAX_EXPRESSION} parts, those of the columns it uses included",
                span,
                help="compute it in several views, each using columns of the one before",
            )
    return expr


def check_columns(count: int, span: Span) -> None:
    """Refuse a row that is too wide, as a star of stars may make it."""
    if count > MAX_COLUMNS:
        raise compile_error(
            "CQ0103", f"{count} columns, and {MAX_COLUMNS} is the limit", span, help="name the columns that are needed"
        )


def check_depth(node: LogicalNode, known: dict[int, int], span: Span) -> None:
    """Refuse a plan with too many operators above each other. known: depths found before, by id(node)."""
    for n in topological([node]):
        known[id(n)] = 1 + max((known[id(i)] for i in n.inputs), default=0)
    if known[id(node)] > MAX_PLAN_DEPTH:
        raise compile_error(
            "CQ0103",
            f"more than {MAX_PLAN_DEPTH} operators stand above each other",
            span,
            help="put fewer views and derived tables into each other",
        )
