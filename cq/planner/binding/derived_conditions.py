"""Conditions inside a derived table of a sub-query that name columns of the outer query: they move to the sub-query.

`(a, b) IN (SELECT x, y FROM s WHERE s.z > t.z)` is an EXISTS over a derived table, whose WHERE names `t.z`. The table's
own columns that such a condition names become columns of the derived table, and the condition moves to the enclosing
WHERE, where `correlation.py` handles it. If the table has groups, or DISTINCT, they become keys as well, and the
conditions must equate them: the groups of one value are then those of the rows that have it.
"""

from __future__ import annotations

from functools import partial

from cq.grammar import ast
from cq.lang import functions
from cq.planner.binding.calls import WINDOW_NAMES
from cq.planner.binding.correlation import (
    Queries,
    all_of,
    equality,
    is_outer,
    parts_of,
    references,
    with_names,
)
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
    """Whether WHERE of the table names columns as `outer` does, and the table has a row for each row of its FROM that
    passes, or for each of their groups."""
    inner, body = table.query, table.query.body
    if not isinstance(body, ast.Select) or body.where is None or not body.relations:
        return False
    kept = ast.Select(body.items, body.relations, body.where, body.group_by, body.having, distinct=body.distinct)
    if inner != ast.Query(body, inner.ctes) or body != kept or not (body.group_by or body.having is None):
        return False
    if table.columns and any(isinstance(k, ast.NumberLiteral) for k in body.group_by):
        return False
    if not all(map(_is_key, body.group_by)) or not any(finds(outer, ref) for ref in references(body.where)):
        return False
    return all(_is_of(item, bool(body.group_by)) for item in body.items)


def _is_key(item: ast.GroupItem) -> bool:
    """Whether an item of GROUP BY is an expression over the rows, and makes no windows."""
    calls = (n for n in ast.walk(item) if isinstance(n, ast.Call))
    return not isinstance(item, ast.GroupKeys | ast.GroupingSets) and all(n.name not in WINDOW_NAMES for n in calls)


def _is_of(item: ast.SelectItem | ast.Star, group: bool) -> bool:
    """Whether an item gives one value for one row, or for one group."""
    calls = [n for n in ast.walk(item) if isinstance(n, ast.Call)]
    return all(n.over is None and (group or functions.lookup(n.name)) for n in calls)


def _equates_a_column(part: ast.Expr, mine: Relation, outer: Relation) -> bool:
    """Whether a condition equates a column of the table's FROM with a value of the outer query."""
    pair = equality(part, mine, outer)
    return pair is not None and isinstance(pair[0], ast.ColumnRef)


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
    if not about or any(isinstance(n, ast.Query) for p in about for n in ast.below(p)):
        return query
    grouped = body.group_by or body.distinct
    if grouped and not all(_equates_a_column(p, mine, outer) for p in about):
        return query
    own = dict.fromkeys(r for p in about for r in references(p) if not is_around(r))
    named = {r: f"$about{n}" for n, r in enumerate(own, 1)}
    added = tuple(ast.SelectItem(r, name, span=r.span) for r, name in named.items())
    items = (*added, *body.items) if table.columns else (*body.items, *added)  # GROUP BY may count them
    rest = all_of([p for p in parts if not any(p is a for a in about)])
    columns = (*named.values(), *table.columns) if table.columns else ()
    keys = (*body.group_by, *own) if body.group_by else ()
    inner = replace(table.query, body=replace(body, items=items, where=rest, group_by=keys))
    outside = {r: ast.ColumnRef(name, table.alias, span=r.span) for r, name in named.items()}
    where = all_of([*parts_of(select.where), *(with_names(p, outside) for p in about)])
    moved = replace(select, relations=(replace(table, query=inner, columns=columns),), where=where)
    shown, _ = queries.from_clause(moved)
    captured = any(finds(shown, r) for p in about for r in references(p) if is_around(r))
    return query if captured else replace(query, body=moved)
