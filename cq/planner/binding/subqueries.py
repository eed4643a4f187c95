"""Sub-queries: conditions on the rows of another query, and the value of its one row.

`x IN (SELECT …)` and `EXISTS (SELECT …)` are semi joins, `NOT IN` and `NOT EXISTS` anti joins; they are joins by time
if the conditions limit how far apart the times of two rows are. A value is a join with the row it comes from. If the
WHERE of a sub-query names columns of the outer query, its conditions become join conditions, and aggregates are grouped
by the values they compare (`correlation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast, inline
from cq.grammar.comparing import ROWS
from cq.lang.expressions import (
    Case,
    Coalesce,
    Column,
    Expr,
    IsNull,
    Literal,
    columns_of,
    conjunction,
    transform,
)
from cq.lang.functions import Signature
from cq.lang.types import BIGINT, BOOLEAN, DataType, some_value
from cq.planner.binding.built_expressions import called, integer
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.correlation import (
    Inside,
    Queries,
    around,
    correlated,
    equality,
    naming,
    pairs_of,
    references,
    with_nearest_names,
)
from cq.planner.binding.derived_conditions import with_conditions_outside
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.functions.names import is_aggregate
from cq.planner.binding.in_one_value import in_one_value
from cq.planner.binding.joins.mistakes import Written, written_in
from cq.planner.binding.joins.relations import by_time, interval_join
from cq.planner.binding.joins.sides import demands, keyed
from cq.planner.binding.joins.times import Sides, TimeBounds
from cq.planner.binding.scope import Hole, Relation, Room, finds, relation_of
from cq.planner.binding.subquery_mistakes import limiting, may_wait_forever, refuse_endless_value, refused_endless
from cq.planner.binding.traits import one_row
from cq.planner.operators import Filter, Join, JoinKind, SemiJoin
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace

INSIDE = Clause("a correlated sub-query", advice="group in a derived table, and test its rows")
SOUGHT = "the value that IN looks for"
VALUE = Clause("a scalar sub-query", aggregates=True)
Above = Callable[[Expr], Expr]
"""An expression over the FROM, moved to the rows that the condition tests: those of groups, in HAVING."""


# ------------------------------------------------------------------------------------------------------------ syntax


def holds_query(node: ast.Node) -> bool:
    """Whether an expression contains a query."""
    return any(isinstance(n, ast.Query) for n in ast.below(node))


def reads_alone(node: ast.Expr, one: Relation, other: Relation) -> bool:
    """Whether all names of an expression, and of its sub-queries, that may mean a column of two relations mean one of
    the first."""
    return all(finds(one, r) and not finds(other, r) for r in references(node) if finds(one, r) or finds(other, r))


def tested(node: ast.Expr) -> tuple[ast.InQuery | ast.Exists, bool] | None:
    """The IN or EXISTS in a condition, and whether it is negated; None for any other condition.

    A row of values is NOT IN the rows of a query if none of them can equal it.
    """
    negated = False
    while isinstance(node, ast.Not):
        node, negated = node.operand, not negated
    if isinstance(node, ast.InQuery):
        return None if in_one_value(node) is not None else (node, negated != node.negated)
    if not isinstance(node, ast.Exists):
        return None
    if negated and node.possible is not None:
        node = ast.Exists(node.possible, span=node.span)
    return node, negated


# --------------------------------------------------------------------------------------------------- IN and EXISTS


@dataclass(frozen=True, slots=True)
class Compared:
    """The two sides of a NOT IN of which one can be NULL: the value sought, and the one that each row gives."""

    sought: Expr
    given: Expr


@dataclass(frozen=True, slots=True)
class Match:
    """[NOT] IN or [NOT] EXISTS, SEMI or ANTI JOIN.

    on: when rows match, over the columns of `outer`, the FROM, then those of `inner`.  kind: SEMI or ANTI.
    written: the condition on both in the text, if there is one.
    alone: the FROM of a sub-query where `inner` is the result of it.
    """

    outer: Relation
    inner: Relation
    on: tuple[Expr, ...]
    kind: JoinKind
    span: Span
    compared: Compared | None = None
    written: Written | None = None
    alone: Callable[[], Relation] | None = None

    @property
    def width(self) -> int:
        return len(self.outer.node.schema)

    @property
    def keeps_time(self) -> bool:
        """Whether rows that pass still have an event time: those that match are within a time of each other."""
        return self.compared is None and by_time(self.on, Sides(self.outer, self.inner))[1].complete

    @property
    def may_keep_time(self) -> bool:
        """Whether rows that pass would have an event time if the conditions limited how far apart they are."""
        return bool(self._named.right.node.schema.times)

    @property
    def _named(self) -> Sides:
        """Both sides as the query names them."""
        return Sides(self.outer, self.inner if self.alone is None else self.alone())

    def limiting(self, outer: Relation) -> str:
        """How rows that pass keep their event time. outer: the FROM with its event times."""
        sides = replace(self._named, left=outer)
        same = self.alone is None and len(outer.node.schema) == self.width
        return limiting(sides, self.written, self.on if same else ())

    def joined(self, node: LogicalNode, above: Above) -> LogicalNode:
        """The rows of `node` that pass. CQ0406 where rows would wait for an end that never comes."""
        sides = Sides(replace(self.outer, node=node), self.inner)
        on = [_lifted(e, self.width, sides.width, above) for e in self.on]
        parts, bounds = by_time(on, sides)
        if bounds.complete and self.compared is None:
            return interval_join(sides, parts, bounds, self.span, self.kind)
        left, right, rest = keyed(on, sides.width, constants=True)
        if self.kind is JoinKind.ANTI and may_wait_forever(sides):
            if self.alone is not None:  # they are about its result
                bounds, rest = TimeBounds(), []
            raise refused_endless(sides, self._named, bounds, rest, self.span, self.written)
        residual = conjunction(rest) if rest else None
        inner = self.inner.node
        passed: LogicalNode = SemiJoin(node, inner, tuple(left), tuple(right), residual, self.kind, span=self.span)
        return passed if self.compared is None else self._unless_null(passed, self.compared, above)

    def _unless_null(self, node: LogicalNode, values: Compared, above: Above) -> LogicalNode:
        """The rows that no NULL of NOT IN holds back: one that is given holds all back, one that is sought its own row
        unless nothing is given. Each is one more anti join, so that rows leave as soon as those of the first do."""
        if values.given.nullable:
            nulls = Filter(self.inner.node, IsNull(BOOLEAN, False, values.given, span=self.span), span=self.span)
            node = SemiJoin(node, nulls, (), (), None, JoinKind.ANTI, span=self.span)
        sought = above(values.sought)
        if sought.nullable:
            one, is_null = integer(1), IsNull(BOOLEAN, False, sought, span=self.span)
            key = Case(BIGINT, True, ((is_null, one),), Literal(BIGINT, True, None), span=self.span)
            node = SemiJoin(node, self.inner.node, (key,), (one,), None, JoinKind.ANTI, span=self.span)
        return node


def _lifted(e: Expr, width: int, new_width: int, above: Above) -> Expr:
    """A condition on pairs whose left columns are those of `above`, with the right ones after them."""
    if max(columns_of(e), default=-1) < width:
        return above(e)
    if isinstance(e, Column):
        return replace(e, index=e.index - width + new_width)
    return e.with_children([_lifted(c, width, new_width, above) for c in e.children])


def bind_match(node: ast.InQuery | ast.Exists, negated: bool, binder: ExprBinder, queries: Queries) -> Match:
    """The condition over the rows of `binder`."""
    query = node.query if isinstance(node, ast.InQuery) else _without_limit(node.query)
    outer = binder.relation
    with naming(query, outer):
        return with_nearest_names(query, outer, lambda q: _bind_match(node, q, negated, binder, queries))


def _bind_match(
    node: ast.InQuery | ast.Exists, query: ast.Query, negated: bool, binder: ExprBinder, queries: Queries
) -> Match:
    outer = binder.relation
    inside = correlated(with_conditions_outside(query, outer, queries), outer, queries)
    if inside is None:
        rows = queries.nested(query)
        inner, about = relation_of(rows, None, "the sub-query", query.span), []
    else:
        inside = replace(inside, select=_repeating(inside.select, isinstance(node, ast.Exists)))
        _refuse_grouped(inside)
        rows = inside.queries.passing(inside.rest, inside.relation)
        inner, about = replace(inside.relation, node=rows), inside.about
    pairs = ExprBinder(around(outer, inner), queries.parameters, INSIDE, SelectCalls({}))
    on = [pairs.condition(a, "a condition of the sub-query") for a in about]
    width, values = len(outer.node.schema), None
    if isinstance(node, ast.InQuery):
        sought = settled(replace(binder, clause=replace(binder.clause, name=SOUGHT, queries=False)).bind(node.operand))
        given = _given(inner, query, width) if inside is None else pairs.bind(_only_item(inside, query))
        equal = pairs.compare("=", sought, given, node.span)
        if negated and (sought.nullable or given.nullable):
            if inside is not None:
                equal = Coalesce(BOOLEAN, False, (equal, Literal(BOOLEAN, False, True)), span=node.span)
            else:
                values = Compared(sought, inner.columns[0].expr)
        on.append(equal)
    elif inside is not None:
        for item in inside.select.items:  # nothing reads them, but the names in them must exist
            if isinstance(item, ast.SelectItem):
                pairs.bind(item.expr)
    text, parts = _as_written(query), tuple(c for e in on for c in demands(e))
    alone = None if inside is not None and text is query else partial(_from_of, text, inner, queries)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    return Match(outer, inner, parts, kind, node.span, values, _where(text), alone)


def match_of(rows: Relation, on: tuple[Expr, ...], outer: Relation, node: ast.Join) -> Match:
    """The condition of a SEMI or ANTI JOIN."""
    return Match(outer, rows, on, JoinKind[node.kind], node.span, written=written_in(node))


def _as_written(query: ast.Query) -> ast.Query:
    """The sub-query in the text: that of a row of values is a derived table now."""
    match query.body:
        case ast.Select(relations=(ast.DerivedTable(query=inner, alias=alias),)) if alias == ROWS:
            return inner
    return query


def _where(query: ast.Query) -> Written | None:
    """The WHERE of a sub-query, which may be missing; None if it is no plain SELECT."""
    select = query.body
    if not isinstance(select, ast.Select) or not select.relations:
        return None
    return Written(select.where, (select.where or select.relations[0]).span)


def _from_of(query: ast.Query, rows: Relation, queries: Queries) -> Relation:
    """What a sub-query reads; its rows if it is no plain SELECT."""
    select = query.body
    if not isinstance(select, ast.Select) or not select.relations:
        return rows
    return queries.with_ctes(query).from_clause(select)[0]


def _given(inner: Relation, query: ast.Query, width: int) -> Expr:
    """The value of the rows of IN, after this many columns. CQ0307 if they have several."""
    columns = [c.expr for c in inner.columns]
    if len(columns) != 1:
        raise _several_columns(len(columns), query)
    return transform(columns[0], lambda c: replace(c, index=c.index + width) if isinstance(c, Column) else c)


def _repeating(select: ast.Select, exists: bool) -> ast.Select:
    """The select without DISTINCT: IN and EXISTS ask whether there is a row, not how many; but which one DISTINCT ON
    keeps matters to IN."""
    return replace(select, distinct=False, distinct_on=()) if exists or not select.distinct_on else select


def _only_item(inside: Inside, query: ast.Query) -> ast.Expr:
    """The single expression of a select list. CQ0307 if there are several, or a star."""
    first, *more = inside.select.items
    if more or isinstance(first, ast.Star):
        stars = sum(isinstance(i, ast.Star) for i in inside.select.items)
        shown = [c for c in inside.relation.columns if not c.hidden]
        raise _several_columns(len(inside.select.items) + stars * (len(shown) - 1), query)
    return first.expr


def _without_limit(query: ast.Query) -> ast.Query:
    """EXISTS (… LIMIT 1) means the same without LIMIT."""
    limit = query.limit
    some = isinstance(limit, ast.NumberLiteral) and limit.text.strip("0") != ""
    return replace(query, limit=None) if some and query.offset is None else query


# ------------------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class ScalarSubquery:
    """A sub-query as a value: the first column of its row. on: which row, as in `Match`.

    always: there is always one.  nothing: the value if there is none, NULL if None; aggregates of no rows may have one.
    counted: the last column counts the rows, of which there may be at most one.
    """

    rows: LogicalNode
    on: tuple[Expr, ...]
    width: int
    always: bool
    nothing: Expr | None
    span: Span
    counted: bool = False

    @property
    def type(self) -> DataType:
        return self.rows.schema.fields[0].type

    def beside(self, node: LogicalNode, above: Above) -> tuple[LogicalNode, Expr]:
        """The rows of `node` beside the row of the sub-query, and the value over both."""
        left, right, rest = keyed(self.on, self.width, constants=True)
        assert not rest, "a value by a condition that is no equality"
        keys, width = tuple(above(k) for k in left), len(node.schema)
        kind = JoinKind.INNER if self.always else JoinKind.LEFT
        joined = Join(node, self.rows, keys, tuple(right), None, kind, span=self.span)
        first, *others = joined.schema.fields[width:]
        value: Expr = Column(first.type, first.nullable, width, first.name, span=self.span)
        if self.nothing is not None:
            last = Column(others[-1].type, True, len(joined.schema) - 1, others[-1].name)
            there = IsNull(BOOLEAN, False, last, span=self.span)
            value = Case(value.type, True, ((there, self.nothing),), value, span=self.span)
        if self.counted:
            rows = Column(BIGINT, True, len(joined.schema) - 1, others[-1].name)
            one = called("single_row", rows, span=self.span)
            value = Case(value.type, True, ((one, value),), Literal(value.type, True, None), span=self.span)
        return joined, value


def bind_value(query: ast.Query, binder: ExprBinder, queries: Queries) -> ScalarSubquery:
    """The value of a query that is known to give at most one row. CQ0502 if it may give several."""
    outer = binder.relation
    with naming(query, outer):
        return with_nearest_names(query, outer, lambda q: _bind_value(q, binder, queries))


def _bind_value(query: ast.Query, binder: ExprBinder, queries: Queries) -> ScalarSubquery:
    outer = binder.relation
    inside = correlated(with_conditions_outside(_first_of(query), outer, queries), outer, queries)
    found = _one_row(query, outer, queries) if inside is None else _of_group(query, inside, binder)
    refuse_endless_value(outer, found.rows, query.span, inside)
    return found


def _one_row(query: ast.Query, outer: Relation, queries: Queries) -> ScalarSubquery:
    rows = queries.nested(query)
    if len(rows.schema) != 1:
        raise _several_columns(len(rows.schema), query)
    if not (_limited_to_one(query) or one_row(rows, or_none=True)):
        inner = relation_of(rows, None, "the sub-query", query.span)
        given = replace(inner, columns=(replace(inner.columns[0], name="given"),))
        items = (_first(ast.ColumnRef("given"), ()), _how_many(query.span))
        counts = queries.select_from(ast.Select(items, span=query.span), given)
        return ScalarSubquery(counts, (), len(outer.node.schema), True, None, query.span, counted=True)
    return ScalarSubquery(rows, (), len(outer.node.schema), one_row(rows), None, query.span)


def _limited_to_one(query: ast.Query) -> bool:
    """Whether LIMIT leaves one row or none."""
    return isinstance(query.limit, ast.NumberLiteral) and query.limit.text in {"0", "1"}


def _of_group(query: ast.Query, inside: Inside, binder: ExprBinder) -> ScalarSubquery:
    """Aggregates of the rows that equal an outer row in some columns: one row for each group."""
    select, relation, outer = inside.select, inside.relation, binder.relation
    _refuse_grouped(inside, is_value=True)
    item, last = _only_item(inside, query), [_how_many(query.span)]
    alone = not any(map(is_aggregate, ast.below(item)))
    if alone:
        item = _first(item, ()).expr
    calls = SelectCalls({})
    value = ExprBinder(relation, binder.parameters, VALUE, calls).bind(item)
    nothing = transform(value, lambda e: _of_nothing(e, calls))
    if not calls.aggregates or columns_of(nothing):
        raise _several_rows(query)
    equal = all(equality(a, relation, outer) for a in inside.about)
    last = last if alone or not equal else []  # an equated key is not NULL: it says that there is a group
    by = _by_equality if equal else _by_condition
    rows, on = by(replace(inside, select=replace(select, items=(ast.SelectItem(item, "value"), *last))), binder)
    known = folded(nothing)
    missing = None if isinstance(known, Literal) and known.value is None else nothing
    return ScalarSubquery(rows, tuple(on), len(outer.node.schema), False, missing, query.span, counted=alone)


def _by_equality(inside: Inside, binder: ExprBinder) -> tuple[LogicalNode, list[Expr]]:
    """The rows of a sub-query grouped by the columns its conditions equate, and which group an outer row belongs to."""
    found = (equality(a, inside.relation, binder.relation) for a in inside.about)
    sides = [pair for pair in found if pair is not None]
    rows = _grouped(inside, inside.relation, inside.rest, [mine for mine, _ in sides])
    keys = _keys(rows, len(sides), len(binder.relation.node.schema))
    return rows, [
        binder.compare("=", binder.bind(theirs), key, theirs.span) for (_, theirs), key in zip(sides, keys, strict=True)
    ]


def _by_condition(inside: Inside, binder: ExprBinder) -> tuple[LogicalNode, list[Expr]]:
    """The rows of a sub-query grouped by the values around it that they meet, and which of them a row has."""
    refuse_endless_value(binder.relation, inside.relation.node, inside.about[0].span, inside)
    pairs = pairs_of(inside, binder.relation)
    rows = _grouped(inside, pairs.relation, None, [key for key, _ in pairs.keys])
    keys = _keys(rows, len(pairs.keys), len(binder.relation.node.schema))
    theirs = [binder.bind(ref) for _, ref in pairs.keys]
    return rows, [c for a, b in zip(theirs, keys, strict=True) for c in _same(binder, a, b)]


def _grouped(inside: Inside, relation: Relation, where: ast.Expr | None, keys: Sequence[ast.Expr]) -> LogicalNode:
    """The value of each group, its keys, and a count of its rows if several may be too many."""
    value, *last = inside.select.items
    named = (ast.SelectItem(k, f"key{i}") for i, k in enumerate(keys, 1))
    grouped = replace(inside.select, items=(value, *named, *last), where=where, group_by=tuple(keys))
    return inside.queries.select_from(grouped, relation)


def _keys(rows: LogicalNode, count: int, width: int) -> list[Expr]:
    """The keys of groups, after this many columns."""
    fields = rows.schema.fields[1 : 1 + count]
    return [Column(f.type, f.nullable, width + i, f.name) for i, f in enumerate(fields, 1)]


def _same(binder: ExprBinder, theirs: Expr, key: Expr) -> list[Expr]:
    """The conditions, each an equality, that two values of one type are equal or both NULL."""
    if not theirs.nullable:
        return [binder.compare("=", theirs, key, theirs.span)]
    none = Literal(key.type, False, some_value(key.type))
    sides = (theirs, key)
    missing = [IsNull(BOOLEAN, False, e, span=theirs.span) for e in sides]
    known = [Coalesce(e.type, False, (e, none), span=theirs.span) for e in sides]
    return [binder.compare("=", a, b, theirs.span) for a, b in (missing, known)]


def _first_of(query: ast.Query) -> ast.Query:
    """The query, with FIRST(x ORDER BY …) for the x of its first row if it has LIMIT 1."""
    select = query.body
    if not (isinstance(select, ast.Select) and _limited_to_one(query) and query.limit == ast.NumberLiteral("1")):
        return query
    (item, *more) = select.items
    changed = select.group_by or select.group_all or select.having or select.qualify or select.distinct or query.offset
    if more or changed or isinstance(item, ast.Star) or any(isinstance(n, ast.Call) for n in ast.below(item)):
        return query
    numbered = ast.NumberLiteral("1")
    order = tuple(replace(o, expr=item.expr) if o.expr == numbered else o for o in query.order_by)
    return replace(query, body=replace(select, items=(_first(item.expr, order),)), order_by=(), limit=None)


def _first(item: ast.Expr, order: tuple[ast.OrderItem, ...]) -> ast.SelectItem:
    return ast.SelectItem(ast.Call("first", (item,), order_by=order, span=item.span, name_span=item.span), "value")


def _how_many(span: Span) -> ast.SelectItem:
    return ast.SelectItem(ast.Call("count", star=True, span=span, name_span=span), "rows")


def _of_nothing(e: Expr, calls: SelectCalls) -> Expr:
    """An aggregate as its value over no rows; any other expression unchanged."""
    if not (isinstance(e, Hole) and e.room is Room.AGGREGATE):
        return e
    call = calls.aggregates[e.index]
    value = call.function.value(Signature(tuple(a.type for a in call.args), call.type), call.function.zero)
    return Literal(e.type, value is None, value, span=e.span)


# ----------------------------------------------------------------------------------------------------------- mistakes


def _refuse_grouped(inside: Inside, is_value: bool = False) -> None:
    """CQ0502 for groups and windows in a correlated sub-query. is_value: it is one, and no condition."""
    select = inside.select
    if not (select.group_by or select.having or select.qualify or select.distinct):
        return
    span = (select.having or select.qualify or (select.group_by[0] if select.group_by else inside.about[0])).span
    column = next(r for a in inside.about for r in references(a) if not finds(inside.relation, r))
    raise compile_error(
        "CQ0502",
        "a sub-query with groups cannot use columns of the outer query",
        span,
        help=(_condition_in_value(select) if is_value else "")
        or f"compare its groups from outside: {inline.expr(column)} IN (SELECT key FROM … GROUP BY key HAVING …)",
    )


def _condition_in_value(select: ast.Select) -> str:
    """The value without HAVING: NULL where the condition does not hold, as of no row. "" for groups of their own."""
    item = select.items[0]
    if select.having is None or select.group_by or not isinstance(item, ast.SelectItem):
        return ""
    test, value = (inline.expr(e) for e in (select.having, item.expr))
    case = f"CASE WHEN {test} THEN {value} END"
    return f"write the condition in the value: SELECT {case if len(case) <= 80 else 'CASE WHEN … THEN … END'}"


def _several_columns(count: int, query: ast.Query) -> CompileError:
    return compile_error(
        "CQ0307",
        f"this sub-query returns {count} columns, but one is needed"
        if count != 1
        else "name the column of this sub-query",
        query.span,
        help="select one column; to compare several, write EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.y = a.y)",
    )


def _several_rows(query: ast.Query) -> CompileError:
    item = query.body.items[0] if isinstance(query.body, ast.Select) else None
    text = inline.expr(item.expr) if isinstance(item, ast.SelectItem) else "x"
    shown = text if len(text) <= 40 else "x"
    return compile_error(
        "CQ0502",
        "this sub-query may return several rows, but one value is needed",
        query.span,
        help=f"aggregate without GROUP BY: write MAX({shown}) or MIN({shown})",
    )
