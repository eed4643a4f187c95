"""Calls of other systems rewritten to equivalent calls here: those that need no types are changed in the tree."""

from __future__ import annotations

from collections.abc import Callable

from cq.entries import enter
from cq.grammar import ast
from cq.records import replace

Restate = Callable[[ast.Call], ast.Expr | None]

RESTATED: dict[str, Restate] = {}


def restated(node: ast.Call) -> ast.Expr | None:
    """The equivalent call; None if the call needs no rewriting."""
    restate = RESTATED.get(node.name)
    return restate(node) if restate is not None else None


def _named(*names: str) -> Callable[[Restate], Restate]:
    def register(function: Restate) -> Restate:
        for name in names:
            enter(RESTATED, name, function, "restated call")
        return function

    return register


def _count(node: ast.Call) -> int:
    """The number of plain arguments; -1 if one is named."""
    return -1 if any(isinstance(a, ast.NamedArgument) for a in node.args) else len(node.args)


def _known(node: ast.Call) -> ast.Expr:
    """`x IS NOT NULL AND filter` for the first argument."""
    known = ast.IsTest(node.args[0], "NULL", True, span=node.span)  # type: ignore[arg-type]
    return known if node.filter is None else ast.Logical("AND", (node.filter, known), span=node.span)


@_named("collect_list", "collect_set")
def _collect(node: ast.Call) -> ast.Expr | None:
    """ARRAY_AGG of what is not NULL, empty where nothing is; a set in the order in which its elements first came."""
    if _count(node) != 1:
        return None
    distinct = node.distinct or node.name == "collect_set"
    every = replace(node, name="array_agg", distinct=distinct, filter=_known(node))
    return ast.Call("coalesce", (every, ast.ArrayLiteral((), span=node.span)), span=node.span, name_span=node.name_span)


@_named("topk", "topkdistinct")
def _topk(node: ast.Call) -> ast.Expr | None:
    """ksqlDB's TOPK(x, n): the n greatest, as an array."""
    if _count(node) != 2 or node.order_by or node.over is not None:
        return None
    x, n = node.args
    greatest = (ast.OrderItem(x, True, None, span=node.span),)  # type: ignore[arg-type]
    distinct = node.name == "topkdistinct"
    every = replace(node, name="array_agg", args=(x,), order_by=greatest, distinct=distinct, filter=_known(node))
    one = ast.NumberLiteral("1", span=node.span)
    return ast.Call("array_slice", (every, one, n), span=node.span, name_span=node.name_span)


@_named("latest_by_offset", "earliest_by_offset")
def _by_offset(node: ast.Call) -> ast.Expr | None:
    """LAST and FIRST of what is not NULL."""
    if _count(node) != 1:
        return None
    return replace(node, name="last" if node.name.startswith("latest") else "first", nulls="IGNORE")


@_named("count_distinct", "countdistinct", "uniqexact")
def _count_distinct(node: ast.Call) -> ast.Expr | None:
    return replace(node, name="count", distinct=True) if _count(node) == 1 else None


@_named("first", "last", "first_value", "last_value", "any_value")
def _of_row(node: ast.Call) -> ast.Expr | None:
    """Spark's FIRST(x, TRUE) ignores NULLs; Timescale's FIRST(x, ts) is the value of the row with the least ts."""
    if _count(node) != 2 or node.nulls is not None:
        return None
    x, other = node.args
    if isinstance(other, ast.BooleanLiteral):
        return replace(node, args=(x,), nulls="IGNORE" if other.value else None)
    by_time = {"first": "arg_min", "last": "arg_max"}.get(node.name)
    return replace(node, name=by_time) if by_time is not None and node.over is None else None


@_named("string_agg", "listagg", "group_concat")
def _texts(node: ast.Call) -> ast.Expr | None:
    """Add the separator that is left out: a comma, as in MySQL and DuckDB, or nothing for LISTAGG, as in Oracle."""
    if _count(node) != 1 or node.star:
        return None
    separator = "" if node.name == "listagg" else ","
    return replace(node, args=(*node.args, ast.StringLiteral(separator, span=node.span)))


@_named("datepart", "date_part", "date_trunc", "time_trunc")
def _unit_in_quotes(node: ast.Call) -> ast.Expr | None:
    """`DATEPART(hour, ts)`: the unit without quotes."""
    if _count(node) != 2 or not isinstance(unit := node.args[0], ast.ColumnRef) or unit.qualifier is not None:
        return None
    if isinstance(node.args[1], ast.StringLiteral):
        return None  # DATE_TRUNC(ts, 'hour')
    return replace(node, args=(ast.StringLiteral(unit.name, span=unit.span), node.args[1]))


@_named("charindex")
def _charindex(node: ast.Call) -> ast.Expr | None:
    return replace(node, name="position") if _count(node) == 2 else None


@_named("as_value")
def _as_value(node: ast.Call) -> ast.Expr | None:
    """ksqlDB: the value of a key as a column like others."""
    return node.args[0] if _count(node) == 1 else None  # type: ignore[return-value]
