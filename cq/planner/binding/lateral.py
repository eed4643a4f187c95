"""LATERAL: a derived table for each row of the items before it in FROM, as a join.

Conditions of its WHERE on outer columns become the join condition. Its LIMIT counts rows with equal keys, in its order.
Aggregates without GROUP BY give one row per outer row: they are values of sub-queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cq.errors import NOWHERE, compile_error
from cq.grammar import ast
from cq.grammar.ast.nodes import Node, said_fields
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.correlation import KEYS, Inside, Queries, correlated, equality, naming, with_names
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.functions.names import is_aggregate
from cq.planner.binding.joins.relations import stream_join
from cq.planner.binding.scope import Relation, Visible, finds, relation_of, renamed
from cq.planner.binding.selects import implied_name, unchanged
from cq.planner.binding.subqueries import bind_value
from cq.planner.plan.node import LogicalNode
from cq.records import replace

LATERAL = Clause("LATERAL")


class Limits(Protocol):
    """Reads the constant of a LIMIT."""

    def number(self, node: ast.Expr | None, clause: str) -> int | None: ...


def lateral_join(node: ast.Join, left: Relation, queries: Queries, limits: Limits) -> Relation | None:
    """Each row of `left` beside those of the derived table for it; None if that names no column of `left`."""
    right = node.right
    assert isinstance(right, ast.DerivedTable), "LATERAL of what is no query"
    found = _beside_each(node, right, left, queries, limits)
    always = node.on is None or (isinstance(node.on, ast.BooleanLiteral) and node.on.value)
    if found is None or always:
        return found
    return replace(found, node=queries.passing(node.on, found))


def _beside_each(
    node: ast.Join, right: ast.DerivedTable, left: Relation, queries: Queries, limits: Limits
) -> Relation | None:  # fmt: skip
    query = right.query
    with naming(query, left):
        if isinstance(query.body, ast.Select) and query == ast.Query(ast.Select(query.body.items)):
            return _computed(query.body, right, left, queries)
        inside = correlated(replace(query, limit=None, offset=None, order_by=()), left, queries)
        if inside is None:
            return None
        _refuse(node, query, inside, left)
        if any(_aggregates(item) for item in inside.select.items):
            return _values(right, query, inside, left, queries)
        return _rows(node, right, query, inside, left, queries, limits.number(query.limit, "LIMIT"))


def _computed(select: ast.Select, right: ast.DerivedTable, left: Relation, queries: Queries) -> Relation:
    """Each row with added expressions."""
    binder, columns = ExprBinder(left, queries.parameters, LATERAL, SelectCalls({})), list[Visible]()
    for i, item in enumerate(select.items):
        if isinstance(item, ast.Star):
            raise compile_error("CQ0203", "* needs a FROM", item.span, help="name the values you need")
        columns.append(Visible(item.alias or implied_name(item.expr, i), None, settled(binder.bind(item.expr))))
    return _beside(left, left.node, columns, right)


_CONDITION_OF_ROWS = "write the condition in WHERE inside the parentheses, and ON TRUE"
_CONDITION_OF_VALUES = "write ON TRUE, and the condition where the values are used: CASE WHEN x.n > 1 THEN x.n END"


def _refuse(node: ast.Join, query: ast.Query, inside: Inside, left: Relation) -> None:
    """CQ0501 or CQ0502 for joins that do not allow LATERAL, and for queries that cannot become a join."""
    select = inside.select
    always = isinstance(node.on, ast.BooleanLiteral) and node.on.value
    inner = node.kind in {"CROSS", "INNER"} and not (node.natural or node.asof or node.using)
    if not inner and not (node.kind == "LEFT" and always):
        raise compile_error(
            "CQ0501",
            "a query in LATERAL works with CROSS JOIN, JOIN … ON, and LEFT JOIN … ON TRUE",
            node.kind_span if node.kind_span != NOWHERE else node.span,
            help=_CONDITION_OF_VALUES if any(map(_aggregates, select.items)) else _CONDITION_OF_ROWS,
        )
    found: Sequence[ast.Node | None] = (
        *(select.having, select.qualify, query.offset, *select.group_by[:1]),
        *(select.items[:1] if select.distinct else ()),
    )
    grouped = next((n for n in found if n is not None), None)
    if grouped is not None or select.group_all:
        raise compile_error(
            "CQ0502",
            "GROUP BY, HAVING, QUALIFY, DISTINCT and OFFSET in LATERAL are not supported",
            query.span if grouped is None else grouped.span,
            help="for the first row, write ORDER BY x LIMIT 1 instead of QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1"
            if grouped is select.qualify and grouped is not None
            else "group by the keys that WHERE compares, and join that: LEFT JOIN (SELECT k, …) AS d ON d.k = a.k",
        )
    outer = next((r for i in select.items for r in _refs(i) if _is_outer(r, inside, left)), None)
    if outer is not None:
        raise compile_error(
            "CQ0502",
            "the select list of LATERAL uses an outer column",
            outer.span,
            help="select the inner columns it needs, and combine them with outer columns outside the parentheses",
        )


def _values(
    right: ast.DerivedTable, query: ast.Query, inside: Inside, left: Relation, queries: Queries
) -> Relation:  # fmt: skip
    """Each row beside aggregates of the rows matching it."""
    node, columns = left.node, list[Visible]()
    binder = ExprBinder(left, queries.parameters, LATERAL, SelectCalls({}))
    for i, item in enumerate(inside.select.items):
        if isinstance(item, ast.Star):
            raise compile_error(
                "CQ0502", "* cannot be combined with aggregates", item.span, help="name the values you need"
            )
        one = ast.Query(replace(inside.select, items=(item,), where=_where(query)), query.ctes, span=query.span)
        node, value = bind_value(one, binder, queries).beside(node, unchanged)
        columns.append(Visible(item.alias or implied_name(item.expr, i), None, value))
    return _beside(left, node, columns, right)


def _rows(
    node: ast.Join, right: ast.DerivedTable, query: ast.Query, inside: Inside, left: Relation, queries: Queries,
    limit: int | None,
) -> Relation:  # fmt: skip
    """Each row beside the rows matching it, or the first of them."""
    inside = _for_each(inside, left)
    select = inside.select
    named: dict[ast.ColumnRef, ast.ColumnRef] = {}
    for ref in (r for a in inside.about for r in _refs(a) if finds(inside.relation, r)):
        named.setdefault(ref, ast.ColumnRef(f"$key{len(named) + 1}", KEYS, span=ref.span))
    exported = tuple(ast.SelectItem(ref, key.name, span=ref.span) for ref, key in named.items())
    first = None if limit is None else _first(inside, left, query, limit)
    inner = replace(select, items=(*select.items, *exported), where=inside.rest, qualify=first)
    rows = relation_of(inside.queries.select_from(inner, inside.relation), KEYS, "LATERAL", right.span)
    own = len(rows.columns) - len(exported)
    keyed = (*(replace(c, name=f"$item{i}") for i, c in enumerate(rows.columns[:own])), *rows.columns[own:])
    on = tuple(with_names(a, named) for a in inside.about)
    condition = on[0] if len(on) == 1 else ast.Logical("AND", on, span=on[0].span)
    named_join = ast.Join("LEFT" if node.kind == "LEFT" else "INNER", node.left, right, condition, span=node.span)
    joined = stream_join(named_join, left, replace(rows, columns=keyed), queries.parameters)
    there = joined.columns[len(left.columns) :][:own]
    columns = [replace(c, name=r.name, qualifier=None) for c, r in zip(there, rows.columns[:own], strict=True)]
    return _beside(replace(left, columns=joined.columns[: len(left.columns)]), joined.node, columns, right)


def _for_each(inside: Inside, left: Relation) -> Inside:
    """The sub-query with each OVER partitioned by the keys: the rows that match one outer row."""
    select = inside.select
    if not any(isinstance(n, ast.Call) and n.over is not None for item in select.items for n in ast.below(item)):
        return inside
    keys = _keys(inside, left, _OVER)
    items, windows = _partitioned(select.items, keys), _partitioned(select.windows, keys)
    return replace(inside, select=replace(select, items=items, windows=windows))


def _partitioned(value: Any, keys: tuple[ast.Expr, ...]) -> Any:
    """`value` with `keys` added to each OVER; one of an inner query is over that query's rows, and stays."""
    if isinstance(value, tuple):
        return tuple(_partitioned(v, keys) for v in value)
    if not isinstance(value, Node) or isinstance(value, ast.Query):
        return value
    value = replace(value, **{f: _partitioned(getattr(value, f), keys) for f in said_fields(type(value))})
    if isinstance(value, ast.WindowSpec) and value.base is None:
        return replace(value, partition_by=(*value.partition_by, *keys))
    return value


def _first(inside: Inside, left: Relation, query: ast.Query, limit: int) -> ast.Expr:
    """The condition for the rows that LIMIT keeps: with equal keys the first by ORDER BY."""
    order = tuple(replace(o, expr=_ordered(o.expr, inside.select)) for o in query.order_by)
    at = query.span
    over = ast.WindowSpec(_keys(inside, left, _LIMIT), order, None, None, span=at)
    number = ast.Call("row_number", over=over, span=at, name_span=at, over_span=at)
    return ast.Binary("<=", number, ast.NumberLiteral(str(limit), span=at), span=at, op_span=at)


_LIMIT = (
    "LIMIT in LATERAL needs a WHERE that compares outer columns only with =",
    "the last row before each: write a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts",
)
_LIMIT_BY_OTHERS = (
    _LIMIT[0],
    "join the two on this condition without LATERAL, and keep the first rows of each: "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY a.key ORDER BY b.x) <= 1",
)
_OVER = (
    "OVER in LATERAL needs a WHERE that compares outer columns only with =",
    "join the two, and write OVER (PARTITION BY the outer columns …) on the joined rows",
)


def _keys(inside: Inside, left: Relation, of: tuple[str, str]) -> tuple[ast.Expr, ...]:
    """The expressions that WHERE equates with outer columns. CQ0502 for a comparison other than =."""
    pairs = [(a, equality(a, inside.relation, left)) for a in inside.about]
    other = next((a for a, pair in pairs if pair is None), None)
    if other is not None:
        timed = left.node.schema.times and inside.relation.node.schema.times
        by_time = timed and isinstance(other, ast.Binary) and other.op in ("<", "<=", ">", ">=")
        message, way_out = _LIMIT_BY_OTHERS if of is _LIMIT and not by_time else of
        raise compile_error("CQ0502", message, other.span, help=way_out)
    return tuple(pair[0] for _, pair in pairs if pair is not None)


def _ordered(expr: ast.Expr, select: ast.Select) -> ast.Expr:
    """Resolve numbers in ORDER BY."""
    if isinstance(expr, ast.NumberLiteral) and expr.text.isdigit():
        items = select.items[: int(expr.text)]
        item = items[-1] if len(items) == int(expr.text) else None
        if item is None or any(isinstance(i, ast.Star) for i in items):
            raise compile_error("CQ0203", "no column has this number", expr.span, help="order by its name")
        assert isinstance(item, ast.SelectItem)
        return item.expr
    return expr


def _beside(left: Relation, node: LogicalNode, columns: Sequence[Visible], right: ast.DerivedTable) -> Relation:
    """The columns of `left` and, under the name of the derived table, those of its rows."""
    found = Relation(node, tuple(columns), "LATERAL")
    found = renamed(found, right.alias, right.columns, right.span) if right.alias else found
    return Relation(found.node, (*left.columns, *found.columns), left.title, span=left.span)


def _aggregates(item: ast.SelectItem | ast.Star) -> bool:
    return any(map(is_aggregate, ast.below(item)))


def _refs(node: ast.Node) -> list[ast.ColumnRef]:
    return [n for n in ast.below(node) if isinstance(n, ast.ColumnRef)]


def _is_outer(ref: ast.ColumnRef, inside: Inside, left: Relation) -> bool:
    return not finds(inside.relation, ref) and finds(left, ref)


def _where(query: ast.Query) -> ast.Expr | None:
    assert isinstance(query.body, ast.Select)
    return query.body.where
