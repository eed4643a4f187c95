"""Order keys: what an item of ORDER BY says, in a query and in OVER."""

from __future__ import annotations

from collections.abc import Iterable

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import Kind
from cq.planner.binding.conversion import settled
from cq.planner.operators import OrderKey


def order_key(item: ast.OrderItem, expr: Expr) -> OrderKey:
    """The key that an item of ORDER BY says. CQ0501 for values without an order."""
    expr = settled(expr)
    if expr.type.kind is Kind.ARRAY:
        raise compile_error(
            "CQ0501",
            f"ORDER BY a value of type {expr.type} is not supported yet",
            item.expr.span,
            label=str(expr.type),
            help="order by an element, a[1], or by CARDINALITY(a)",
        )
    return OrderKey(expr, item.descending, not item.descending if item.nulls_first is None else item.nulls_first)


def distinct_keys(keys: Iterable[OrderKey]) -> tuple[OrderKey, ...]:
    """The keys that decide something: not constants, and no expression again."""
    seen: dict[Expr, OrderKey] = {}
    for key in keys:
        if not isinstance(key.expr, Literal):
            seen.setdefault(key.expr, key)
    return tuple(seen.values())
