"""Queries: FROM, set operations, WITH, and the clauses around a SELECT."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from cq.errors import NOWHERE, CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.hints import face
from cq.lang.expressions import Expr, Literal
from cq.lang.schema import Field
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.constants import SERIES, bind_series, bind_values
from cq.planner.binding.correlation import all_of, parts_of
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.fan_out import check_copies
from cq.planner.binding.foreign import (
    as_versions,
    check_emit_changes,
    demand_time,
    event_time,
    within,
    without_latest,
)
from cq.planner.binding.foreign_sources import no_table_function
from cq.planner.binding.grouped_queries import with_values_in_from
from cq.planner.binding.joins.asof import asof_join
from cq.planner.binding.joins.mistakes import (
    bounds_in_where,
    lacks_bounds,
    refused_unnest,
    time_name,
)
from cq.planner.binding.joins.relations import stream_join
from cq.planner.binding.joins.sides import by_common_names, condition, demands, keyed, side_by_side
from cq.planner.binding.joins.temporal import temporal_join, unnest
from cq.planner.binding.joins.times import Sides, bounds_of
from cq.planner.binding.lateral import lateral_join
from cq.planner.binding.order_keys import order_key
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING, Relation, Visible, finds, relation_of, renamed
from cq.planner.binding.selects import SELECT_LIST, WHERE, SelectBinder, numbered_column, unchanged
from cq.planner.binding.sets import combined, named_alike
from cq.planner.binding.sorting import Limited, counted, ordered
from cq.planner.binding.subqueries import holds_query, match_of, reads_alone
from cq.planner.binding.time_attributes import named_time
from cq.planner.binding.traits import check_depth
from cq.planner.binding.windows import TABLE_PARAMETERS, split_table_arguments, table_function, with_windows
from cq.planner.operators import OrderKey
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, field, replace


class FileNames(Protocol):
    """The names defined by the statements of the file so far."""

    @property
    def keyed(self) -> Mapping[str, Callable[[ast.Join, Relation], Relation]]:
        """Joins rows with those of a keyed table, as of a time."""
        ...

    @property
    def processing_times(self) -> Collection[str]:
        """The columns that are the time at which a row is processed."""
        ...

    def lookup(self, name: str, span: Span) -> Relation:
        """The stream or view with that name."""
        ...

    def file(self, path: str, span: Span, time: str | None = None) -> Relation:
        """The file at that path, as a stream. time: the column that is to be its event time."""
        ...

    def looked_at(self, relation: Relation, time: str | None) -> Relation:
        """The relation, with what its rows show of the column that is to be its event time."""
        ...

    def constant_rows(self, fields: tuple[Field, ...], rows: tuple[tuple[Any, ...], ...], span: Span) -> LogicalNode:
        """A source of rows written in the text."""
        ...

    def one_row(self, span: Span) -> LogicalNode:
        """The row of a SELECT without FROM."""
        ...

    def call(self, node: LogicalNode, name: str) -> None:
        """Record the name that the text gives these rows, unless they have one."""
        ...


Item = tuple[int, ast.Relation, Relation | None]
"""An item of a comma list: its place, its text and its rows; an UNNEST has rows only together with the items
before it."""


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query's rows and its remaining LIMIT. limit: None for all."""

    node: LogicalNode
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryBinder:
    """Binds queries. names: those of the file.  ctes: the names defined by WITH so far.

    depths: depth of nested operators, by id(node).
    """

    names: FileNames
    parameters: Mapping[str, ParameterValue]
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)

    def top(self, query: ast.Query) -> BoundQuery:
        """A whole query. Its rows end with the last one within LIMIT."""
        rows = counted(self.ordered(query), query.span, all_of_it=False)
        self.check_shape(rows.node, query)
        return BoundQuery(rows.node, rows.limit)

    def looked_at(self, relation: Relation, time: str | None) -> Relation:
        """The relation, with what is known about the column that is to be its event time."""
        return self.names.looked_at(relation, time)

    def nested(self, query: ast.Query) -> LogicalNode:
        """A query inside another: rows beyond LIMIT are dropped."""
        rows = counted(self.ordered(query), query.span, all_of_it=True)
        self.check_shape(rows.node, query)
        return rows.node

    def check_shape(self, node: LogicalNode, query: ast.Query) -> None:
        """Refuse a plan that is too deep, or makes too many rows of one."""
        check_depth(node, self.depths, query.span)
        check_copies(node, query.span)

    def ordered(self, query: ast.Query) -> Limited:
        """The rows of a query in its order, with the rest of LIMIT and OFFSET."""
        rows = self.in_order(query)
        if query.emit is not None:
            check_emit(query.emit, rows.node)
        return rows

    def in_order(self, query: ast.Query) -> Limited:
        inside = self.with_ctes(query)
        limit = self.number(query.limit, "LIMIT")
        offset = self.number(query.offset, "OFFSET") or 0
        by_all = any(isinstance(item.expr, ast.EveryColumn) for item in query.order_by)
        if isinstance(query.body, ast.Select) and not by_all:
            return inside.select(query.body, query.order_by, limit, offset)
        rows = Limited(inside.body(query.body), limit, offset)
        return ordered(rows, self.keys_of(rows.node, query.order_by), query.order_by) if query.order_by else rows

    def keys_of(self, node: LogicalNode, items: Sequence[ast.OrderItem]) -> list[OrderKey]:
        """The ORDER BY keys of a set operation: columns by name or number, expressions over them, or ALL."""
        columns = relation_of(node, None, "the result")
        binder = ExprBinder(columns, self.parameters, Clause("ORDER BY of a set operation"), SelectCalls({}))
        found = []
        for item in items:
            key = item.expr
            if isinstance(key, ast.EveryColumn):
                found += [order_key(item, replace(c.expr, span=key.span)) for c in columns.columns]
                continue
            if isinstance(key, ast.NumberLiteral) and key.text.isdigit():
                expr = columns.columns[numbered_column(key, len(columns.columns))].expr
            else:
                expr = binder.bind(key)
            found.append(order_key(item, replace(expr, span=key.span)))
        return found

    def with_ctes(self, query: ast.Query) -> QueryBinder:
        """This binder with the names of WITH, each bound once and shared by all its readers."""
        known = dict(self.ctes)
        mine: set[str] = set()
        for cte in query.ctes:
            if cte.name in mine:
                raise compile_error("CQ0202", f'"{cte.name}" is defined twice in WITH', cte.name_span)
            mine.add(cte.name)
            node = replace(self, ctes=known).nested(cte.query)
            self.names.call(node, cte.name)
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
                return bind_values(body, self.parameters, self.names.constant_rows)

    def select(
        self, select: ast.Select, order: Sequence[ast.OrderItem] = (), limit: int | None = None, offset: int = 0
    ) -> Limited:
        if not select.relations:
            nothing = Relation(self.names.one_row(select.span), (), "a SELECT without FROM")
            return SelectBinder(select, nothing, self, order, limit, offset).bind()
        relation, where = self.from_clause(select)
        if relation.window is None:
            select, order, relation = with_values_in_from(select, order, relation, self.valued)
        return SelectBinder(replace(select, where=where), relation, self, order, limit, offset).bind()

    def valued(self, relation: Relation, asked: Sequence[ast.Expr]) -> tuple[LogicalNode, Sequence[Expr]]:
        """The rows of a relation with the values of sub-queries added, and these values."""
        binder = SelectBinder(ast.Select(()), relation, self)
        values = [binder.binder(SELECT_LIST).bind(e) for e in asked]
        return binder.with_values(relation.node, values, unchanged)

    def select_from(self, select: ast.Select, relation: Relation) -> LogicalNode:
        """The SELECT over what its FROM is."""
        return SelectBinder(select, relation, self).bind().node

    def passing(self, where: ast.Expr | None, relation: Relation) -> LogicalNode:
        """The rows that pass, with the columns they had, and perhaps more after them."""
        binder = SelectBinder(ast.Select((), where=where), relation, self)
        return binder.passing(relation.node, binder.where(), unchanged)

    # ------------------------------------------------------------------------------------------------------- FROM

    def from_clause(self, select: ast.Select) -> tuple[Relation, ast.Expr | None]:
        """The rows of FROM, and the rest of WHERE: joins of a comma list take their conditions from it.

        The next item is the first that such a condition joins to the earlier ones, else the first left.
        """
        first, *more = [r for item in select.relations for r in _crossed(item)]
        try:
            relation = self.relation(first)
        except CompileError as error:
            raise self.told_of_where(error, first, select.where) from None
        relation = with_windows(relation) if more else relation
        named, where, taken = first, parts_of(select.where), list[ast.Expr]()
        waiting = [(n, i, self.item(i)) for n, i in enumerate(more, 1)]
        shown = {0: len(relation.columns)}
        while waiting:
            number, item, right = self.next_of(waiting, relation, where)
            waiting = [w for w in waiting if w[0] != number]
            width = len(relation.columns)
            if isinstance(item, ast.Unnest):
                relation = unnest(item, relation, self.parameters)
            elif right is None:
                relation = self.join(ast.Join("CROSS", named, item, span=item.span), relation)
                named = ast.Join("CROSS", named, item)
            else:
                assert right is not None, "an item without rows"
                relation, on = self.beside(relation, right, named, item, where)
                named, taken = ast.Join("CROSS", named, item), [*taken, *on]
                where = [part for part in where if not any(part is p for p in on)]
            shown[number] = len(relation.columns) - width
        relation = _as_written(relation, shown)
        for part in taken:  # names mean in the whole FROM what they meant in the join
            ExprBinder(relation, self.parameters, WHERE, SelectCalls({})).bind(part)
        return relation, all_of(where)

    def item(self, node: ast.Relation) -> Relation | None:
        """The rows of an item of a comma list; None if they depend on the items before it."""
        lateral = isinstance(node, ast.DerivedTable) and node.lateral
        return None if lateral or isinstance(node, ast.Unnest) else with_windows(self.relation(node))

    def next_of(self, waiting: Sequence[Item], left: Relation, where: Sequence[ast.Expr]) -> Item:
        """The item to join next. An UNNEST may read all items before it, and items after it may read its element."""
        for item in waiting:
            right = item[2]
            if right is None:
                break
            if any(self.joins(part, Sides(left, right)) for part in where):
                return item
        return waiting[0]

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
                nothing = Relation(self.names.one_row(node.span), (), "UNNEST")
                return unnest(node, nothing, self.parameters)

    def table(self, node: ast.TableRef) -> Relation:
        span = node.name_span if node.name_span != NOWHERE else node.span
        relation = self.named(node.name, span, node.is_path)
        if node.timed_by is not None:
            where = Clause("TIMESTAMP BY")
            demand_time(relation, node.timed_by, ExprBinder(relation, self.parameters, where, SelectCalls({})))
        if node.alias is None:
            return replace(relation, span=span)
        title = relation.title
        return replace(renamed(relation, node.alias, node.columns, span), title=title, span=span)

    def named(self, name: str, span: Span, is_path: bool) -> Relation:
        if is_path:
            return self.names.file(name, span)
        found = self.ctes.get(name)
        return found if found is not None else self.names.lookup(name, span)

    def join(self, node: ast.Join, before: Relation | None = None) -> Relation:
        """The join. before: its left side, if that is bound already."""
        left = with_windows(self.relation(node.left)) if before is None else before
        right = node.right
        if isinstance(right, ast.TableRef) and right.as_of is not None and self.is_now(right.as_of, left):
            node = self.as_of_now(node, right, left)
            right = node.right
        if isinstance(right, ast.TableRef) and right.as_of is not None:
            look_up = None if right.is_path or right.name in self.ctes else self.names.keyed.get(right.name)
            if look_up is not None:
                return look_up(node, left)
            other = without_latest(self.table(replace(right, as_of=None)))
            versions = as_versions(node, left, other, right.as_of, self.parameters)
            if versions is not None:
                return asof_join(versions, left, with_windows(other), self.parameters)
            return temporal_join(node, left, other, right.as_of, self.parameters)
        every = _always(node.on) and not node.using
        if isinstance(right, ast.Unnest) and node.kind in {"CROSS", "INNER", "LEFT"} and every:
            return unnest(right, left, self.parameters, node.kind == "LEFT")
        if isinstance(right, ast.Unnest):
            raise refused_unnest(node)
        if isinstance(right, ast.DerivedTable) and right.lateral:
            found = lateral_join(node, left, self, self)
            if found is not None:
                return found
        other = with_windows(self.relation(right))
        if node.asof:
            return asof_join(node, left, other, self.parameters)
        if node.kind in {"SEMI", "ANTI"}:
            return self.semi_join(node, left, other)
        if node.within:
            node = within(node, left, other)
        if node.natural:
            node = by_common_names(node, left, other)
        if node.on is not None and holds_query(node.on):
            return self.join_on_queries(node, left, other)
        return stream_join(node, left, other, self.parameters)

    def join_on_queries(self, node: ast.Join, left: Relation, right: Relation) -> Relation:
        """The join with sub-queries in ON: conditions on the rows of an inner join; in a LEFT or RIGHT JOIN, on those
        of the side whose rows may be missing, before the join."""
        asked = [p for p in parts_of(node.on) if holds_query(p)]
        on = all_of([p for p in parts_of(node.on) if p not in asked])
        plain = replace(node, on=ast.BooleanLiteral(True, span=node.span) if on is None else on)
        if node.kind == "INNER":
            joined = stream_join(plain, left, right, self.parameters)
            return replace(joined, node=self.passing(all_of(asked), joined))
        if node.kind == "LEFT" and all(reads_alone(p, right, left) for p in asked):
            right = replace(right, node=self.passing(all_of(asked), right))
        elif node.kind == "RIGHT" and all(reads_alone(p, left, right) for p in asked):
            left = replace(left, node=self.passing(all_of(asked), left))
        else:
            plain = node  # it is refused
        return stream_join(plain, left, right, self.parameters)

    def is_now(self, as_of: ast.Expr, left: Relation) -> bool:
        """Whether the time of a look-up is the processing time: PROCTIME(), or a column that is it."""
        match as_of:
            case ast.Call(name="proctime", args=()):
                return True
            case ast.ColumnRef(name=name):
                return name in self.names.processing_times and not finds(left, as_of)
        return False

    def as_of_now(self, node: ast.Join, right: ast.TableRef, left: Relation) -> ast.Join:
        """The look-up at arrival: for a keyed table as of its event time, by which rows come; for rows without times,
        which all come first, a join."""
        if right.name in self.names.keyed and right.name not in self.ctes:
            return replace(node, right=replace(right, as_of=event_time(left, right.span, "FOR SYSTEM_TIME AS OF")))
        table = replace(right, as_of=None)
        if self.table(table).node.schema.times:
            assert right.as_of is not None, "a look-up as of now"
            way = f"write FOR SYSTEM_TIME AS OF {time_name(left)}: the version at that event time"
            message = f'"{right.name}" has event times, so it cannot be looked up by processing time'
            raise compile_error("CQ0502", message, right.as_of.span, help=way)
        return replace(node, right=table)

    def semi_join(self, node: ast.Join, left: Relation, right: Relation) -> Relation:
        """The left rows that some right row matches, or with ANTI none."""
        width = len(left.node.schema)
        on = demands(condition(node, side_by_side(left, right, width), left, right, self.parameters))
        match = match_of(right, tuple(on), left, node)
        return replace(left, node=match.joined(left.node, unchanged), span=node.span)

    def beside(
        self, left: Relation, right: Relation, named: ast.Relation, node: ast.Relation, where: Sequence[ast.Expr]
    ) -> tuple[Relation, list[ast.Expr]]:
        """The join with a further item of a comma list, and the conditions of WHERE that it uses.

        named, node: the names of left and right.
        """
        sides = Sides(left, right)
        on = [part for part in where if self.joins(part, sides)] or [p for p in where if self.compares(p, sides)]
        joined = ast.Join("INNER" if on else "CROSS", named, node, all_of(on), span=node.span)
        return stream_join(joined, left, right, self.parameters), on

    def joins(self, part: ast.Expr, sides: Sides) -> bool:
        """Whether a condition of WHERE equates the sides, or limits how far apart their times are."""
        bound = self.beside_each_other(part, sides)
        return any(bounds_of(p, sides) is not None for p in bound) or bool(keyed(bound, sides.width)[0])

    def compares(self, part: ast.Expr, sides: Sides) -> bool:
        """Whether a condition of WHERE reads columns of both sides."""
        return any(sides.meet_in(p) for p in self.beside_each_other(part, sides))

    def beside_each_other(self, part: ast.Expr, sides: Sides) -> Sequence[Expr]:
        """A condition over the columns of both sides, split; nothing if it needs more than those."""
        both = side_by_side(sides.left, sides.right, sides.width)
        try:
            return demands(ExprBinder(both, self.parameters, WHERE, SelectCalls({})).bind(part))
        except CompileError:
            return []

    def can_join(self, node: ast.Join, left: Relation, right: Relation) -> bool:
        """Whether the join can run."""
        if node.on is None:
            return False
        try:
            stream_join(node, left, right, self.parameters)
        except CompileError:
            return False
        return True

    def told_of_where(self, error: CompileError, node: ast.Relation, where: ast.Expr | None) -> CompileError:
        """The error of a FROM, with another fix for a join whose bounds are in WHERE."""
        if not isinstance(node, ast.Join) or where is None or not lacks_bounds(node, error):
            return error
        try:
            left, right = (with_windows(self.relation(side)) for side in (node.left, node.right))
        except CompileError:
            return error

        def works(parts: list[ast.Expr]) -> bool:
            on = parts if node.on is None else [node.on, *parts]
            return self.can_join(replace(node, on=all_of(on), using=()), left, right)

        needed = parts_of(where)
        if not works(needed):
            return error
        for part in tuple(needed):
            fewer = [p for p in needed if p is not part]
            needed = fewer if works(fewer) else needed
        return bounds_in_where(node, error, needed) if needed else error

    def table_function(self, node: ast.TableFunction) -> Relation:
        if node.name in SERIES:
            rows = bind_series(node, self.parameters, self.names.constant_rows)
            found = relation_of(rows, node.alias, f"{node.name}(…)", node.name_span)
            if not node.alias:
                return found
            found = renamed(found, node.alias, node.columns, node.span)
            also = Visible(node.alias, node.alias, found.columns[0].expr, hidden=True)  # PostgreSQL's name for it
            return replace(found, columns=(*found.columns, *(() if node.columns else (also,))))
        if node.name not in TABLE_PARAMETERS:
            raise compile_error(
                "CQ0205",
                f'there is no table function "{node.name}"',
                node.name_span,
                help=no_table_function(node)
                or (
                    did_you_mean(node.name, TABLE_PARAMETERS),
                    "supported: TUMBLE, HOP, CUMULATE, SESSION, RANGE, GENERATE_SERIES",
                ),
            )
        table, arguments = split_table_arguments(node)
        if isinstance(table.source, str):
            span = table.name_span if table.name_span != NOWHERE else table.span
            if table.is_path:
                relation = self.names.file(table.source, span, named_time(arguments.time))
            else:
                relation = self.looked_at(self.named(table.source, span, False), named_time(arguments.time))
            relation = replace(relation, span=span)
        else:
            relation = relation_of(self.nested(table.source), None, "the query", table.span)
        binder = ExprBinder(relation, self.parameters, Clause("a window"), SelectCalls({}))
        return table_function(node, relation, arguments, binder)

    # ------------------------------------------------------------------------------------------------------- sets

    def set_operation(self, node: ast.SetOperation) -> LogicalNode:
        """Left to right; consecutive operations of one kind become one, over all their inputs."""
        steps = [node]
        while isinstance(steps[-1].left, ast.SetOperation):
            steps.append(steps[-1].left)
        first = steps[-1].left
        rows, span = self.body(first), first.span
        for (op, all_, by_name), run in groupby(reversed(steps), key=lambda s: (s.op, s.all, s.by_name)):
            others = [step.right for step in run]
            inputs = [rows, *(self.body(o) for o in others)]
            spans = [span, *(o.span for o in others)]
            rows = combined(op, all_, named_alike(inputs, spans) if by_name else inputs, spans)
            span = span.to(others[-1].span)
        return rows

    def number(self, node: ast.Expr | None, clause: str) -> int | None:
        """The number of rows for LIMIT or OFFSET; None if it is missing."""
        if node is None:
            return None
        names = any(isinstance(n, ast.ColumnRef) for n in ast.walk(node))
        value = None if names else self._constant(node, clause)
        if not (isinstance(value, Literal) and value.type.is_integer and value.value is not None and value.value >= 0):
            raise compile_error(
                "CQ0306",
                f"{clause} takes a constant number of rows",
                node.span,
                help=f"write {clause} 10, or {_parameter_of(clause)}",
            )
        rows: int = value.value
        return rows

    def _constant(self, node: ast.Expr, clause: str) -> Expr:
        return folded(
            ExprBinder(
                NOTHING,
                self.parameters,
                Clause(clause, instead=f"write a number, or {_parameter_of(clause)}"),
                SelectCalls({}),
            ).bind(node)
        )


def _parameter_of(clause: str) -> str:
    return f"a parameter, {clause} :n, and {face().setting('n', '10')}"


def _as_written(relation: Relation, shown: Mapping[int, int]) -> Relation:
    """The columns in the order of a comma list. shown: how many columns each item has, in the order of the joins."""
    parts, at = dict[int, Sequence[Visible]](), 0
    for number, count in shown.items():
        parts[number] = relation.columns[at : at + count]
        at += count
    return replace(relation, columns=tuple(c for number in sorted(parts) for c in parts[number]))


def _crossed(node: ast.Relation) -> list[ast.Relation]:
    """`a CROSS JOIN b` as the comma list a, b; any other relation alone."""
    found: list[ast.Relation] = []
    while isinstance(node, ast.Join) and node.kind == "CROSS":
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _always(condition: ast.Expr | None) -> bool:
    return condition is None or (isinstance(condition, ast.BooleanLiteral) and condition.value)


def check_emit(emit: ast.Emit, node: LogicalNode) -> None:
    """Check EMIT: each row is emitted once; if none could change, that satisfies EMIT CHANGES."""
    if emit.mode == "CHANGES":
        check_emit_changes(node, emit.span)
    elif emit.mode == "EVERY":
        raise compile_error(
            "CQ0501", "EMIT EVERY is not supported yet", emit.span,
            help=(
                "remove it: each window emits its rows when it closes",
                "running results: SUM(x) OVER (PARTITION BY key ROWS UNBOUNDED PRECEDING)",
            ),
        )  # fmt: skip
