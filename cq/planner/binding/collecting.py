"""ARRAY_AGG, STRING_AGG, FIRST and LAST with ORDER BY or DISTINCT: functions of the arrays of all values and of their
order keys.

ARRAY_AGG(DISTINCT x ORDER BY y, z) is ARRAY_DISTINCT(ARRAY_ORDER(ARRAY_ORDER(xs, zs, …), ARRAY_ORDER(ys, zs, …), …)),
where xs is ARRAY_AGG(x) and so on: elements with equal keys keep their order. STRING_AGG is ARRAY_TO_STRING of that,
FIRST its first element and LAST its last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import NOWHERE, compile_error
from cq.grammar import ast
from cq.lang.aggregates import lookup
from cq.lang.aggregates.registry import OfArray
from cq.lang.expressions import Expr, Literal
from cq.lang.functions.array_building import DESCENDING, NULLS_FIRST
from cq.lang.types import INTEGER, VARCHAR
from cq.planner.binding.expressions import ExprBinder
from cq.planner.binding.order_keys import order_key
from cq.records import replace

AT_THE_END = (OfArray.FIRST, OfArray.LAST)
Collect = Callable[[ast.Call], Expr]
"""The value of an aggregate call without ORDER BY and DISTINCT."""


def is_collection(node: ast.Call) -> bool:
    """Whether the call is one that `collection` binds."""
    entry = lookup(node.name)
    asked = node.order_by or node.within or node.distinct
    if not asked or entry is None:
        return False
    if entry.of_array in AT_THE_END:
        return not node.distinct and not node.within
    return entry.of_array is not None


def collection(node: ast.Call, inside: ExprBinder, binder: ExprBinder, collect: Collect) -> Expr:
    """The value of the call. inside: binds the arguments.  binder: of the expression around the aggregates."""
    entry = lookup(node.name)
    assert entry is not None
    joins = entry.of_array is OfArray.JOINED
    if len(node.args) != 1 + joins or node.star:
        message = f"{node.name.upper()} takes other arguments"
        raise compile_error("CQ0302", message, node.span, help=f"usage: {entry.shape}")
    separator = _separator(node, inside) if joins else None
    items = _present(node, entry.as_text, joins or node.nulls == "IGNORE")
    value = _ordered(items, (*node.within, *node.order_by), inside, binder, collect)
    if node.distinct:
        value = binder.call("array_distinct", [value], node.span, [node])
    if entry.of_array in AT_THE_END:
        number = ast.NumberLiteral("1", span=node.span)
        place = ast.Unary("-", number, span=node.span) if entry.of_array is OfArray.LAST else number
        value = binder.call("element_at", [value, inside.bind(place)], node.span, [node, place])
    if separator is not None:
        value = binder.call("array_to_string", [value, separator], node.span, [node, node])
    return value


def _present(node: ast.Call, as_text: bool, skips_null: bool) -> ast.Call:
    """ARRAY_AGG of the first argument under the filter; NULLs are filtered out where the aggregate skips them."""
    item, condition = node.args[0], node.filter
    if as_text and not isinstance(item, ast.NamedArgument):
        item = ast.Cast(item, ast.SimpleType("VARCHAR", span=item.span), span=item.span)
    if skips_null and not isinstance(item, ast.NamedArgument):
        there = ast.IsTest(item, "NULL", True, span=node.span)
        condition = there if condition is None else ast.Logical("AND", (condition, there), span=node.span)
    return replace(
        node, name="array_agg", args=(item,), filter=condition, distinct=False, nulls=None, order_by=(), within=()
    )


def _ordered(
    items: ast.Call, order_by: Sequence[ast.OrderItem], inside: ExprBinder, binder: ExprBinder, collect: Collect
) -> Expr:
    value = collect(items)
    keys = [collect(replace(items, args=(item.expr,))) for item in order_by]
    for n, item in reversed(list(enumerate(order_by))):
        key = order_key(item, inside.bind(item.expr))
        order = Literal(INTEGER, False, DESCENDING * key.descending + NULLS_FIRST * key.nulls_first, span=item.span)

        def by_key(x: Expr, key: Expr = keys[n], order: Literal = order) -> Expr:
            return binder.call("array_order", [x, key, order], items.span, [items] * 3)

        value = by_key(value)
        keys[:n] = [by_key(k) for k in keys[:n]]
    return value


def _separator(node: ast.Call, inside: ExprBinder) -> Literal:
    given = node.args[1]
    bound = inside.bind(given) if not isinstance(given, ast.NamedArgument) else None
    if not isinstance(bound, Literal) or bound.type != VARCHAR:
        raise compile_error(
            "CQ0302",
            f"the separator of {node.name.upper()} with ORDER BY or DISTINCT must be a literal text",
            given.span if given.span != NOWHERE else node.span,
            help="write STRING_AGG(name, ', ' ORDER BY name)",
        )
    return bound
