"""Order keys: the meaning of an item of ORDER BY, in a query and in OVER."""

from __future__ import annotations

from collections.abc import Iterable

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import Kind
from cq.planner.binding.conversion import settled
from cq.planner.operators import OrderKey


def order_key(item: ast.OrderItem, expr: Expr) -> OrderKey:
    """The key of an item of ORDER BY. CQ0501 for values without an order."""
    expr = settled(expr)
    demand_order(expr, "ORDER BY a value", item.expr.span, "order by an element, a[1], or by CARDINALITY(a)")
    return OrderKey(expr, item.descending, not item.descending if item.nulls_first is None else item.nulls_first)


def demand_order(expr: Expr, what: str, span: Span, way: str) -> None:
    """CQ0501 for an array: kernels cannot order arrays."""
    if expr.type.kind is Kind.ARRAY:
        cause = f"{what} of type {expr.type} is not supported yet"
        raise compile_error("CQ0501", cause, span, label=str(expr.type), help=way)


def distinct_keys(keys: Iterable[OrderKey]) -> tuple[OrderKey, ...]:
    """The keys that matter: no constants, and no expression twice."""
    seen: dict[Expr, OrderKey] = {}
    for key in keys:
        if not isinstance(key.expr, Literal):
            seen.setdefault(key.expr, key)
    return tuple(seen.values())
