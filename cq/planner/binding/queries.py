"""Queries: FROM, set operations, WITH, and the clauses around a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cq.errors import NOWHERE, CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, Literal, conjuncts
from cq.lang.types import DataType, common_type
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import convert
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.fan_out import check_copies
from cq.planner.binding.join_mistakes import (
    bounds_in_where,
    lacks_bounds,
    refused_asof,
    refused_cross,
    refused_unnest,
)
from cq.planner.binding.join_times import Sides, bounds_of
from cq.planner.binding.joins import by_common_names, keyed, refuse_pending, side_by_side, temporal_join, unnest
from cq.planner.binding.literals import ParameterValue
from cq.planner.binding.order_keys import order_key
from cq.planner.binding.scope import NOTHING, Relation, relation_of, renamed
from cq.planner.binding.selects import WHERE, SelectBinder, place_of, projection
from cq.planner.binding.sorting import Limited, counted, ordered
from cq.planner.binding.stream_joins import stream_join
from cq.planner.binding.traits import check_depth
from cq.planner.binding.windows import TABLE_PARAMETERS, check_built, split_table_arguments, table_function
from cq.planner.operators import OrderKey, Project, UnionAll
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode

Lookup = Callable[[str, Span], Relation]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query's rows and how many of them count. limit: None for all."""

    node: LogicalNode
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryBinder:
    """Binds queries. lookup: finds streams and views by name.  ctes: the names WITH has given so far.

    depths: operators above each other, by id(node).
    """

    lookup: Lookup
    parameters: Mapping[str, ParameterValue]
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)

    def top(self, query: ast.Query) -> BoundQuery:
        """A whole query. Its rows end with the last one that LIMIT counts."""
        rows = counted(self.ordered(query), query.span, all_of_it=False)
        self.check_shape(rows.node, query)
        return BoundQuery(rows.node, rows.limit)

    def nested(self, query: ast.Query) -> LogicalNode:
        """A query inside another: of its rows the others are dropped."""
        rows = counted(self.ordered(query), query.span, all_of_it=True)
        self.check_shape(rows.node, query)
        return rows.node

    def check_shape(self, node: LogicalNode, query: ast.Query) -> None:
        """Refuse a plan that is too deep, or makes too many rows of one."""
        check_depth(node, self.depths, query.span)
        check_copies(node, query.span)

    def ordered(self, query: ast.Query) -> Limited:
        """The rows of a query in its order, with what is left of LIMIT and OFFSET."""
        check_emit(query)
        inside = self.with_ctes(query)
        limit = self.number(query.limit, "LIMIT")
        offset = self.number(query.offset, "OFFSET") or 0
        if isinstance(query.body, ast.Select):
            return inside.select(query.body, query.order_by, limit, offset)
        rows = Limited(inside.body(query.body), limit, offset)
        return ordered(rows, self.keys_of(rows.node, query.order_by), query.order_by) if query.order_by else rows

    def keys_of(self, node: LogicalNode, items: Sequence[ast.OrderItem]) -> list[OrderKey]:
        """What ORDER BY says of the result of a set operation: columns by name or number, or expressions over them."""
        columns = relation_of(node, None, "the result")
        binder = ExprBinder(columns, self.parameters, Clause("ORDER BY of a set operation"), SelectCalls({}))
        found = []
        for item in items:
            place = item.expr
            if isinstance(place, ast.NumberLiteral) and place.text.isdigit():
                expr = columns.columns[place_of(place, len(columns.columns))].expr
            else:
                expr = binder.bind(place)
            found.append(order_key(item, replace(expr, span=place.span)))
        return found

    def with_ctes(self, query: ast.Query) -> QueryBinder:
        """This binder with the names of WITH, each bound once and shared by all who read it."""
        known = dict(self.ctes)
        mine: set[str] = set()
        for cte in query.ctes:
            if cte.name in mine:
                raise compile_error("CQ0202", f'"{cte.name}" is defined twice in WITH', cte.name_span)
            mine.add(cte.name)
            node = replace(self, ctes=known).nested(cte.query)
            relation = relation_of(node, cte.name, f'"{cte.name}"', cte.name_span)
            known[cte.name] = renamed(relation, cte.name, cte.columns, cte.name_span)
        return replace(self, ctes=known)

    def body(self, body: ast.QueryBody) -> LogicalNode:
        match body:
            case ast.Select():
                return self.select(body).node
            case ast.SetOperation():
                return self.set_operation(body)
            case ast.Query():
                return self.nested(body)
            case ast.Values():
                raise compile_error(
                    "CQ0501", "VALUES is not supported yet", body.span, help="read the rows from a file or from memory"
                )

    def select(
        self, select: ast.Select, order: Sequence[ast.OrderItem] = (), limit: int | None = None, offset: int = 0
    ) -> Limited:
        if not select.relations:
            raise compile_error(
                "CQ0501", "SELECT without FROM is not supported yet", select.span, help="name a stream: SELECT … FROM s"
            )
        relation, where = self.from_clause(select)
        return SelectBinder(replace(select, where=where), relation, self.parameters, order, limit, offset).bind()

    # ------------------------------------------------------------------------------------------------------- FROM

    def from_clause(self, select: ast.Select) -> tuple[Relation, ast.Expr | None]:
        """The rows of FROM, and what is left of WHERE: joins of a comma list take what they are by."""
        first, *more = [r for item in select.relations for r in _crossed(item)]
        try:
            relation = self.relation(first)
        except CompileError as error:
            raise self.told_of_where(error, first, select.where) from None
        named, where, taken = first, _conjuncts(select.where), list[ast.Expr]()
        for item in more:
            if isinstance(item, ast.Unnest):
                relation = unnest(item, relation, self.parameters)
                continue
            relation, on = self.beside(relation, named, item, where)
            named, taken = ast.Join("CROSS", named, item), [*taken, *on]
            where = [part for part in where if not any(part is p for p in on)]
        for part in taken:  # names mean in the whole FROM what they did in the join
            ExprBinder(relation, self.parameters, WHERE, SelectCalls({})).bind(part)
        return relation, _all_of(where)

    def relation(self, node: ast.Relation) -> Relation:
        match node:
            case ast.TableRef():
                if node.as_of is not None:
                    raise compile_error(
                        "CQ0501",
                        "FOR SYSTEM_TIME AS OF is only allowed on the right side of a JOIN",
                        node.span,
                        help="FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.ts ON v.key = s.key",
                    )
                return self.table(node)
            case ast.DerivedTable():
                inner = self.nested(node.query)
                relation = relation_of(inner, node.alias, "the derived table", node.span)
                return renamed(relation, node.alias, node.columns, node.span) if node.alias else relation
            case ast.TableFunction():
                return self.table_function(node)
            case ast.Join():
                return self.join(node)
            case ast.Unnest():
                raise compile_error(
                    "CQ0501",
                    "UNNEST needs a relation before it",
                    node.span,
                    help="FROM s, UNNEST(SPLIT(s.text, ' ')) AS w(word)",
                )

    def table(self, node: ast.TableRef) -> Relation:
        span = node.name_span if node.name_span != NOWHERE else node.span
        relation = self.named(node.name, span)
        if node.alias is None:
            return replace(relation, span=span)
        title = relation.title
        return replace(renamed(relation, node.alias, node.columns, span), title=title, span=span)

    def named(self, name: str, span: Span) -> Relation:
        found = self.ctes.get(name)
        return found if found is not None else self.lookup(name, span)

    def join(self, node: ast.Join) -> Relation:
        left, right = self.relation(node.left), node.right
        if isinstance(right, ast.TableRef) and right.as_of is not None:
            return temporal_join(node, left, self.table(replace(right, as_of=None)), right.as_of, self.parameters)
        if isinstance(right, ast.Unnest) and node.kind in {"CROSS", "INNER"} and _always(node.on) and not node.using:
            return unnest(right, left, self.parameters)
        if node.asof:
            raise refused_asof(node)
        if isinstance(right, ast.Unnest):
            raise refused_unnest(node)
        other = self.relation(right)
        if node.natural:
            node = by_common_names(node, left, other)
        if node.kind == "CROSS":
            raise refused_cross(node, Sides(left, other))
        return stream_join(node, left, other, self.parameters)

    def beside(
        self, left: Relation, named: ast.Relation, node: ast.Relation, where: Sequence[ast.Expr]
    ) -> tuple[Relation, list[ast.Expr]]:
        """The join with a further item of a comma list, and the conditions of WHERE that it is by. named: the left."""
        right = self.relation(node)
        sides = Sides(left, right)
        on = [part for part in where if self.joins(part, sides)]
        joined = ast.Join("INNER", named, node, _all_of(on), span=node.span)
        if not on:
            refuse_pending(left)
            refuse_pending(right)
            raise refused_cross(joined, sides)
        return stream_join(joined, left, right, self.parameters), on

    def joins(self, part: ast.Expr, sides: Sides) -> bool:
        """Whether a condition of WHERE equates the sides, or limits how far apart their times are."""
        both = side_by_side(sides.left, sides.right, sides.width)
        try:
            bound = conjuncts(ExprBinder(both, self.parameters, WHERE, SelectCalls({})).bind(part))
        except CompileError:
            return False
        return any(bounds_of(p, sides) is not None for p in bound) or bool(keyed(bound, sides.width)[0])

    def can_join(self, node: ast.Join, left: Relation, right: Relation) -> bool:
        """Whether the join can be run."""
        if node.on is None:
            return False
        try:
            stream_join(node, left, right, self.parameters)
        except CompileError:
            return False
        return True

    def told_of_where(self, error: CompileError, node: ast.Relation, where: ast.Expr | None) -> CompileError:
        """The error of a FROM; another way out for a join whose bounds stand in WHERE."""
        if not isinstance(node, ast.Join) or where is None or not lacks_bounds(node, error):
            return error
        try:
            left, right = self.relation(node.left), self.relation(node.right)
        except CompileError:
            return error

        def works(parts: list[ast.Expr]) -> bool:
            on = parts if node.on is None else [node.on, *parts]
            return self.can_join(replace(node, on=_all_of(on), using=()), left, right)

        needed = _conjuncts(where)
        if not works(needed):
            return error
        for part in tuple(needed):
            fewer = [p for p in needed if p is not part]
            needed = fewer if works(fewer) else needed
        return bounds_in_where(node, error, needed) if needed else error

    def table_function(self, node: ast.TableFunction) -> Relation:
        check_built(node.name, node.name_span)
        if node.name not in TABLE_PARAMETERS:
            raise compile_error(
                "CQ0205",
                f'there is no table function "{node.name}"',
                node.name_span,
                help=(
                    did_you_mean(node.name, TABLE_PARAMETERS),
                    "a file is a stream: CREATE STREAM s WITH (connector = 'file', path = '…'), then FROM s"
                    if node.name.startswith(("read_", "scan_"))
                    else "supported: TUMBLE, HOP, SESSION",
                ),
            )
        table, arguments = split_table_arguments(node)
        if isinstance(table.source, str):
            span = table.name_span if table.name_span != NOWHERE else table.span
            relation = replace(self.named(table.source, span), span=span)
        else:
            relation = relation_of(self.nested(table.source), None, "the query", table.span)
        binder = ExprBinder(relation, self.parameters, Clause("a window"), SelectCalls({}))
        return table_function(node, relation, arguments, binder)

    # ------------------------------------------------------------------------------------------------------- sets

    def set_operation(self, node: ast.SetOperation) -> LogicalNode:
        parts: list[ast.QueryBody] = []
        todo: list[ast.QueryBody] = [node]
        while todo:
            part = todo.pop()
            if isinstance(part, ast.SetOperation):
                if part.op != "UNION" or not part.all:
                    raise compile_error(
                        "CQ0501",
                        f"{part.op}{' ALL' if part.all else ''} is not supported yet",
                        part.span,
                        help="UNION ALL keeps every row of both",
                    )
                todo.extend((part.right, part.left))
            else:
                parts.append(part)
        return union_of([self.body(p) for p in parts], [p.span for p in parts])

    def number(self, node: ast.Expr | None, clause: str) -> int | None:
        """The rows that LIMIT or OFFSET counts; None where it is not there."""
        if node is None:
            return None
        value = folded(ExprBinder(NOTHING, self.parameters, Clause(clause), SelectCalls({})).bind(node))
        if not (isinstance(value, Literal) and value.type.is_integer and value.value is not None and value.value >= 0):
            raise compile_error(
                "CQ0306", f"{clause} takes a constant number of rows", node.span, help=f"write {clause} 10"
            )
        rows: int = value.value
        return rows


def _crossed(node: ast.Relation) -> list[ast.Relation]:
    """`a CROSS JOIN b` as the comma list a, b; any other relation alone."""
    found: list[ast.Relation] = []
    while isinstance(node, ast.Join) and node.kind == "CROSS":
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _conjuncts(condition: ast.Expr | None) -> list[ast.Expr]:
    """What AND joins."""
    if condition is None:
        return []
    return list(condition.operands) if isinstance(condition, ast.Logical) and condition.op == "AND" else [condition]


def _all_of(conditions: Sequence[ast.Expr]) -> ast.Expr | None:
    """The conditions joined by AND; None where there are none."""
    if len(conditions) > 1:
        return ast.Logical("AND", tuple(conditions), span=conditions[0].span.to(conditions[-1].span))
    return conditions[0] if conditions else None


def _always(condition: ast.Expr | None) -> bool:
    return condition is None or (isinstance(condition, ast.BooleanLiteral) and condition.value)


def check_emit(query: ast.Query) -> None:
    """Only final results are built."""
    if query.emit is not None and query.emit.mode != "FINAL":
        raise compile_error(
            "CQ0501",
            f"EMIT {query.emit.mode} is not supported yet",
            query.emit.span,
            help=(
                "remove it: each window emits its rows when it closes",
                "running results: SUM(x) OVER (PARTITION BY key ROWS UNBOUNDED PRECEDING)",
            ),
        )


def union_of(branches: list[LogicalNode], spans: list[Span]) -> LogicalNode:
    """All rows of all branches, columns by position, converted to their common types. CQ0307 when they do not match."""
    first = branches[0]
    types = [f.type for f in first.schema.fields]
    for branch, span in zip(branches[1:], spans[1:], strict=True):
        if len(branch.schema) != len(types):
            raise compile_error(
                "CQ0307",
                f"the inputs of UNION ALL have {len(types)} and {len(branch.schema)} columns",
                span,
                label=f"{len(branch.schema)} columns",
                help="select the same columns on both sides",
            )
        for i, f in enumerate(branch.schema.fields):
            common = _common(types[i], f.type, first, branch, i)
            if common is None:
                raise compile_error(
                    "CQ0307",
                    f'column {i + 1} of UNION ALL is {types[i]} ("{first.schema.names[i]}") and {f.type} ("{f.name}")',
                    span,
                    help=f"CAST one of them: CAST({f.name} AS {types[i]})",
                )
            types[i] = common
    return UnionAll(tuple(as_types(b, types) for b in branches), span=spans[0].to(spans[-1]))


def _common(a: DataType, b: DataType, left: LogicalNode, right: LogicalNode, column: int) -> DataType | None:
    """The common type of two columns; one that is NULL throughout takes the other's."""
    if _is_null(left, column):
        return b
    return a if _is_null(right, column) else common_type(a, b)


def _is_null(node: LogicalNode, column: int) -> bool:
    expr = node.exprs[column] if isinstance(node, Project) else None
    return isinstance(expr, Literal) and expr.value is None


def as_types(node: LogicalNode, types: list[DataType]) -> LogicalNode:
    """`node` with its columns converted."""
    if isinstance(node, Project):
        exprs: tuple[Expr, ...] = tuple(convert(e, t) for e, t in zip(node.exprs, types, strict=True))
        return node if exprs == node.exprs else replace(node, exprs=exprs)
    columns = [Column(f.type, f.nullable, i, f.name) for i, f in enumerate(node.schema.fields)]
    return projection(node, [convert(c, t) for c, t in zip(columns, types, strict=True)], node.schema.names, node.span)
