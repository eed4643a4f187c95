"""Sub-queries in the arguments of aggregates and in the keys of GROUP BY: their values become columns of FROM.

Elsewhere a sub-query is joined with the rows of the groups, or with the rows that WHERE has left. What an aggregate or
a key computes with must be there before there are groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cq.grammar import ast
from cq.lang.expressions import Expr
from cq.planner.binding.functions.names import is_aggregate
from cq.planner.binding.scope import Relation, Visible, finds
from cq.planner.plan.node import LogicalNode
from cq.records import replace

QUERIES = (ast.ScalarQuery, ast.InQuery, ast.Exists)
AddValues = Callable[[Relation, Sequence[ast.Expr]], tuple[LogicalNode, Sequence[Expr]]]
"""The rows of a relation with values of these conditions and sub-queries added, and the values over these rows."""


def with_values_in_from(
    select: ast.Select, order: Sequence[ast.OrderItem], relation: Relation, add: AddValues
) -> tuple[ast.Select, Sequence[ast.OrderItem], Relation]:
    """The SELECT, its ORDER BY and its FROM with columns in place of such sub-queries; unchanged if there are none."""
    shown = [i.expr for i in select.items if isinstance(i, ast.SelectItem)]
    texts = [*shown, *([] if select.having is None else [select.having]), *(o.expr for o in order)]
    plain = (k for k in select.group_by if not isinstance(k, ast.GroupKeys | ast.GroupingSets))
    keys: dict[Any, ast.Expr] = {k: _meant(k, select, relation) for k in plain}
    if select.group_all:
        keys |= {e: e for e in shown if not any(map(is_aggregate, ast.below(e)))}
    calls = (n for text in texts for n in ast.below(text) if is_aggregate(n))
    asked = [*dict.fromkeys(q for node in (*keys.values(), *calls) for q in _queries(node))]
    if not asked:
        return select, order, relation
    node, values = add(relation, asked)
    names: dict[ast.Node, ast.ColumnRef]
    names = {q: ast.ColumnRef(f"$value{n}", span=q.span) for n, q in enumerate(asked, 1)}
    added = (Visible(name.name, None, value, hidden=True) for name, value in zip(names.values(), values, strict=True))

    def column(node: ast.Node) -> ast.Node | None:
        return names.get(node) or (node if isinstance(node, ast.Query) else None)

    changed: dict[ast.Node, Any] = {k: ast.rewritten(k, column) for k in keys.values() if any(_queries(k))}

    def of_group(node: ast.Node) -> ast.Node | None:
        """A key that is repeated, and an aggregate, with columns in place of sub-queries."""
        if is_aggregate(node):
            return ast.rewritten(node, column)
        return changed.get(node) or (node if isinstance(node, ast.Query) else None)

    group_by = tuple(changed.get(keys.get(k, k), k) for k in select.group_by)
    items, having, sorted_by = ast.rewritten((select.items, select.having, tuple(order)), of_group)
    moved = replace(select, items=items, having=having, group_by=group_by)
    return moved, sorted_by, replace(relation, node=node, columns=(*relation.columns, *added))


def _meant(key: ast.Expr, select: ast.Select, relation: Relation) -> ast.Expr:
    """The item of the select list that a key of GROUP BY counts or names, if it contains a sub-query; else the key."""
    items = select.items
    named: list[ast.SelectItem] = []
    if isinstance(key, ast.NumberLiteral) and key.text.isdigit() and 1 <= int(key.text) <= len(items):
        counted = [i for i in items[: int(key.text)] if isinstance(i, ast.SelectItem)]
        named = counted[-1:] if len(counted) == int(key.text) else []
    elif isinstance(key, ast.ColumnRef) and key.qualifier is None and not finds(relation, key):
        named = [i for i in items if isinstance(i, ast.SelectItem) and i.alias == key.name]
    return named[0].expr if named and any(_queries(named[0].expr)) else key


def _queries(node: ast.Node) -> Iterator[ast.Expr]:
    """The conditions and values of sub-queries in a node that are in no other."""
    todo = [node]
    while todo:
        at = todo.pop()
        if isinstance(at, QUERIES):
            yield at
        else:
            todo.extend(ast.children(at))
