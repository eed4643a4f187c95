"""Short forms that make arrays from arrays, or one value from all elements."""

from __future__ import annotations

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import BIGINT, DOUBLE, array
from cq.planner.binding.functions.choices import call
from cq.planner.binding.functions.shorthands import SHORTHANDS, ShorthandBinder, shorthand
from cq.planner.binding.literals import integer_literal

TOTALS = {
    "avg": "list_avg", "count": "list_count", "first": "list_first", "last": "list_last", "max": "array_max",
    "min": "array_min", "mode": "array_mode", "sum": "array_sum",
}  # fmt: skip


@shorthand("array_append", "list_append", "array_push_back")
def _append(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ARRAY_APPEND(array, x): ARRAY_CONCAT(array, ARRAY[x])."""
    items, x = binder.exactly(node, 2)
    return call(binder, node, "array_concat", [items, call(binder, node, "array", [x])])


@shorthand("array_prepend", "list_prepend", "array_push_front")
def _prepend(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ARRAY_PREPEND(array, x), LIST_PREPEND(x, array): ARRAY_CONCAT(ARRAY[x], array)."""
    items, x = binder.exactly(node, 2)
    if x.type.element is not None:
        items, x = x, items
    return call(binder, node, "array_concat", [call(binder, node, "array", [x]), items])


@shorthand("list_first", "list_last")
def _end(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """LIST_FIRST(array), LIST_LAST(array): array[1], array[-1]."""
    (items,) = binder.exactly(node, 1)
    place = integer_literal(1 if node.name == "list_first" else -1, node.span)
    return call(binder, node, "element_at", [items, place])


@shorthand("list_reverse_sort", "array_reverse_sort")
def _reverse_sort(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """LIST_REVERSE_SORT(array): the elements in descending order, NULLs last."""
    (items,) = binder.exactly(node, 1)
    return call(binder, node, "array_order", [items, items, integer_literal(1, node.span)])


@shorthand("array_union")
def _union(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ARRAY_UNION(a, b): ARRAY_DISTINCT(ARRAY_CONCAT(a, b))."""
    return call(binder, node, "array_distinct", [call(binder, node, "array_concat", binder.exactly(node, 2))])


@shorthand("list_unique")
def _unique(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """LIST_UNIQUE(array): LIST_COUNT(ARRAY_DISTINCT(array))."""
    return call(binder, node, "list_count", [call(binder, node, "array_distinct", binder.exactly(node, 1))])


@shorthand("list_avg")
def _average(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """LIST_AVG(array): the sum of the elements as DOUBLEs, divided by LIST_COUNT(array); NULL if that is 0."""
    (items,) = binder.exactly(node, 1)
    total = call(binder, node, "array_sum", [binder.bind_cast(items, array(DOUBLE), items.span)])
    return call(binder, node, "try_divide", [total, call(binder, node, "list_count", [items])])


@shorthand("list_aggregate", "list_aggr", "array_aggregate", "array_aggr")
def _aggregate(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """LIST_AGGREGATE(array, 'sum'): ARRAY_SUM(array); likewise avg, count, first, last, max, min and mode."""
    items, name = binder.exactly(node, 2)
    known = TOTALS.get(str(name.value).lower()) if isinstance(name, Literal) else None
    if known is None:
        cause = f"{node.name.upper()} takes the name of an aggregate: {', '.join(TOTALS)}"
        way = "write LIST_AGGREGATE(items, 'sum'); for other aggregates, use the rows of UNNEST"
        raise compile_error("CQ0302", cause, name.span, help=way)
    if known in SHORTHANDS:
        return SHORTHANDS[known](binder, ast.Call(known, node.args[:1], span=node.span, name_span=node.name_span))
    return call(binder, node, known, [items])


@shorthand("generate_series", "range")
def _series(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """GENERATE_SERIES(first, last [, step]), RANGE([first,] end [, step]): SEQUENCE by 1; RANGE excludes `end`."""
    args = binder.positional(node, 1)
    if len(args) == 1:
        args = [integer_literal(0, node.span), *args]
    if len(args) == 2:
        args = [*args, integer_literal(1, node.span)]
    if node.name == "range" and len(args) == 3:
        back = binder.bind_cast(call(binder, node, "sign", args[2:]), BIGINT, node.span)
        args[1] = call(binder, node, "-", [args[1], back])
    return call(binder, node, "sequence", args)
