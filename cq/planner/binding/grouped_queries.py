"""Sub-queries in the arguments of aggregates and in the keys of GROUP BY: their values become columns of FROM.

Elsewhere a sub-query is joined with the rows of the groups, or with the rows that WHERE has left. What an aggregate or
a key computes with must be there before there are groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from cq.grammar import ast
from cq.grammar.ast.nodes import Node, children, said_fields
from cq.lang.expressions import Expr
from cq.planner.binding.in_one_value import is_aggregate
from cq.planner.binding.scope import Relation, Visible, finds
from cq.planner.plan.node import LogicalNode
from cq.records import replace

QUERIES = (ast.ScalarQuery, ast.InQuery, ast.Exists)
T = TypeVar("T")
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
        keys |= {e: e for e in shown if not any(map(is_aggregate, _below(e)))}
    calls = (n for text in texts for n in _below(text) if is_aggregate(n))
    asked = [*dict.fromkeys(q for node in (*keys.values(), *calls) for q in _queries(node))]
    if not asked:
        return select, order, relation
    node, values = add(relation, asked)
    names = {q: ast.ColumnRef(f"$value{n}", span=q.span) for n, q in enumerate(asked, 1)}
    added = (Visible(name.name, None, value, hidden=True) for name, value in zip(names.values(), values, strict=True))
    changed: dict[Any, Any] = {k: new for k in keys.values() if (new := _with(k, names.get)) != k}

    def of_group(text: T) -> T:
        """The text with the keys it repeats, and the arguments of its aggregates, changed."""
        return _with(text, lambda n: changed.get(n) or (_inside(n, names.get) if is_aggregate(n) else None))

    group_by = tuple(changed.get(keys.get(k, k), k) for k in select.group_by)
    moved = replace(select, items=of_group(select.items), having=of_group(select.having), group_by=group_by)
    return moved, of_group(tuple(order)), replace(relation, node=node, columns=(*relation.columns, *added))


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
    return (n for n in _below(node) if isinstance(n, QUERIES))


def _below(node: ast.Node) -> Iterator[ast.Node]:
    """The node and everything in it, except inside sub-queries."""
    todo = [node]
    while todo:
        at = todo.pop()
        yield at
        if not isinstance(at, QUERIES):
            todo.extend(children(at))


def _with(value: T, change: Callable[[Any], ast.Node | None]) -> T:
    """A copy in which what `change` gives something for is that."""
    made: Any = value
    if isinstance(value, tuple):
        made = tuple(_with(v, change) for v in value)
    elif isinstance(value, Node):
        made = change(value) or _inside(value, change)
    return made  # type: ignore[no-any-return]


def _inside(node: T, change: Callable[[Any], ast.Node | None]) -> T:
    """A copy of a node with what is in it changed, except in queries."""
    if isinstance(node, ast.Query) or not isinstance(node, Node):
        return node
    said: dict[str, Any] = {f: _with(getattr(node, f), change) for f in said_fields(type(node))}
    return replace(node, **said)
