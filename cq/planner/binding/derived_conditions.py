"""Conditions inside a derived table of a sub-query that name columns of the outer query: they move to the sub-query.

`(a, b) IN (SELECT x, y FROM s WHERE s.z > t.z)` is an EXISTS over a derived table, whose WHERE names `t.z`. The table's
own columns that such a condition names become columns of the derived table, and the condition moves to the enclosing
WHERE, where `correlation.py` handles it.
"""

from __future__ import annotations

from functools import partial

from cq.grammar import ast
from cq.lang import functions
from cq.planner.binding.correlation import Queries, all_of, below, is_outer, parts_of, references, with_names
from cq.planner.binding.scope import Relation, finds
from cq.records import replace


def with_conditions_outside(query: ast.Query, outer: Relation, queries: Queries) -> ast.Query:
    """An equivalent query in which no derived table names a column of `outer` in WHERE.

    Unchanged if there is no such condition, or if more than WHERE would have to move.
    """
    match query.body:
        case ast.Select(relations=(ast.DerivedTable() as table,)) if not table.lateral and _may_move(table, outer):
            return _moved(query, query.body, table, outer, queries.with_ctes(query))
    return query


def _may_move(table: ast.DerivedTable, outer: Relation) -> bool:
    """Whether WHERE of the table names columns as `outer` does, and each row of its FROM that passes is a row of the
    table."""
    inner, body = table.query, table.query.body
    if not isinstance(body, ast.Select) or body.where is None or not body.relations:
        return False
    if inner != ast.Query(body, inner.ctes) or body != ast.Select(body.items, body.relations, body.where):
        return False
    return all(map(_is_scalar, body.items)) and any(finds(outer, ref) for ref in references(body.where))


def _is_scalar(item: ast.SelectItem | ast.Star) -> bool:
    """Whether an item gives one value for one row."""
    return all(n.over is None and functions.lookup(n.name) for n in ast.walk(item) if isinstance(n, ast.Call))


def _moved(
    query: ast.Query, select: ast.Select, table: ast.DerivedTable, outer: Relation, queries: Queries
) -> ast.Query:
    """The query with the conditions on `outer` moved out of its table; unchanged if their names would change
    meaning."""
    body = table.query.body
    assert isinstance(body, ast.Select), "a table whose WHERE may move"
    mine, _ = queries.with_ctes(table.query).from_clause(body)
    is_around = partial(is_outer, inner=mine, outer=outer)
    parts = parts_of(body.where)
    about = [p for p in parts if any(map(is_around, references(p)))]
    if not about or any(isinstance(n, ast.Query) for p in about for n in below(p)):
        return query
    own = dict.fromkeys(r for p in about for r in references(p) if not is_around(r))
    named = {r: f"$about{n}" for n, r in enumerate(own, 1)}
    items = (*(ast.SelectItem(r, name, span=r.span) for r, name in named.items()), *body.items)
    rest = all_of([p for p in parts if not any(p is a for a in about)])
    columns = (*named.values(), *table.columns) if table.columns else ()
    inner = replace(table.query, body=replace(body, items=items, where=rest))
    outside = {r: ast.ColumnRef(name, table.alias, span=r.span) for r, name in named.items()}
    where = all_of([*parts_of(select.where), *(with_names(p, outside) for p in about)])
    moved = replace(select, relations=(replace(table, query=inner, columns=columns),), where=where)
    shown, _ = queries.from_clause(moved)
    captured = any(finds(shown, r) for p in about for r in references(p) if is_around(r))
    return query if captured else replace(query, body=moved)
