"""One SELECT: from a bound FROM to Filter, WindowAggregate or Aggregate, Over and Project, in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from cq.errors import CompileError, Findings, Span, amount, compile_error, did_you_mean
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, Literal, columns_of, transform
from cq.planner.binding.aliases import Aliases, aliases_of
from cq.planner.binding.built_expressions import aggregate_call, columns
from cq.planner.binding.calls import WINDOW_NAMES, SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.correlation import Queries, all_of, parts_of
from cq.planner.binding.expressions import Clause, ExprBinder, Meant
from cq.planner.binding.grouping import BoundGroups
from cq.planner.binding.grouping_sets import group_by_sets, sets_of
from cq.planner.binding.order_keys import order_key
from cq.planner.binding.over import add_overs
from cq.planner.binding.scope import (
    BOUNDS_WAY,
    CountWindow,
    Hole,
    PendingWindow,
    Relation,
    Room,
    SessionWindow,
    Visible,
    columns_named,
    fields_of,
    holes_of,
    listing,
    no_columns,
    projection,
    with_nulls,
)
from cq.planner.binding.sets import distinct, first_of_each
from cq.planner.binding.sorting import ORDER_BY, Limited, ordered
from cq.planner.binding.subqueries import (
    Above,
    Match,
    ScalarSubquery,
    bind_match,
    bind_value,
    holds_query,
    tested,
)
from cq.planner.binding.time_attributes import named_time
from cq.planner.binding.traits import check_columns
from cq.planner.binding.windows import bind_window, group_window, retimed, with_windows
from cq.planner.operators import Filter, OrderKey, Project, Window
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, field, replace

SELECT_LIST = Clause("the select list", aggregates=True, windows=True, queries=True)
DISTINCT_ON = Clause("DISTINCT ON", aggregates=True, windows=True)
HAVING = Clause("HAVING", aggregates=True, queries=True)
QUALIFY = Clause("QUALIFY", aggregates=True, windows=True)
WHERE = Clause("WHERE", advice="write the condition in HAVING, after GROUP BY", queries=True)
OF_GROUPS = (Room.AGGREGATE, Room.OVER, Room.GROUPING, Room.QUERY)  # what GROUP BY ALL does not group by
GROUP_BY = Clause("GROUP BY", advice="leave it out of GROUP BY, or aggregate in a derived table first")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of the result. bound: already known for the columns of a star.  index: of its item."""

    name: str
    span: Span
    expr: ast.Expr | None = None
    bound: Expr | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Conditions:
    """WHERE or HAVING: conditions on rows alone, then those that test rows against sub-queries, then those that need
    their values."""

    span: Span
    plain: Expr | None = None
    matches: tuple[Match, ...] = ()
    valued: Expr | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it contains no sub-query."""
        return not self.matches and self.valued is None

    @property
    def keep_time(self) -> bool:
        """Whether rows that pass still have the event time that they had."""
        return self.valued is None and all(match.keeps_time for match in self.matches)

    @property
    def read_a_window(self) -> bool:
        """Whether they read a bound of a window that no GROUP BY has made yet."""
        read = (self.plain, self.valued, *(e for match in self.matches for e in match.on))
        return any(e is not None and holes_of(e, Room.WINDOW) for e in read)


def _sub_query(queries: Queries, query: ast.Query, binder: ExprBinder) -> ScalarSubquery:
    return bind_value(query, binder, queries)


@dataclass(slots=True)
class SelectBinder:
    """Binds one SELECT over its FROM, with its ORDER BY, LIMIT and OFFSET. queries: binds those inside it."""

    select: ast.Select
    relation: Relation
    queries: Queries
    order: Sequence[ast.OrderItem] = ()
    limit: int | None = None
    offset: int = 0
    findings: Findings = field(default_factory=Findings)
    calls: SelectCalls = field(init=False)
    aliases: Aliases = field(init=False)
    meant: Meant = field(default_factory=Meant)

    def __post_init__(self) -> None:
        windows = {w.name: w.spec for w in self.select.windows}
        if any(isinstance(item, ast.GroupingSets) for item in self.select.group_by):
            self.relation = with_nulls(self.relation)
        self.calls = SelectCalls(windows, self.relation.bounds, sub_query=partial(_sub_query, self.queries))
        self.aliases = aliases_of(self.select.items)

    def binder(self, clause: Clause, aliases: bool = False) -> ExprBinder:
        """Binds over the FROM in `clause`; `aliases`: names of the select list may stand for their expressions."""
        seen = self.aliases if aliases else self.aliases.until(0)
        return ExprBinder(self.relation, self.queries.parameters, clause, self.calls, seen, self.meant)

    def bind(self) -> Limited:
        """The operators of this SELECT, and the rest of its LIMIT and OFFSET. Raises all its errors at once."""
        self.make_group_window()
        items = list(self.items())
        check_columns(len(items), self.select.span)
        where = self.attempt(self.where)
        sets = self.attempt(sets_of, self.select.group_by, lambda key: self.group_key(key, items))
        self.calls.of_nothing = self.has_group_of_nothing(where, sets or ())
        exprs = [i.bound or self.attempt(self.value, i) for i in items]
        exprs += self.distinct_keys(items, exprs)
        having = self.attempt(self.conditions, self.select.having, HAVING)
        qualify = self.attempt(self.condition, self.select.qualify, QUALIFY)
        order = [self.attempt(self.order_key, item, items, exprs[: len(items)]) for item in self.order]
        self.findings.raise_if_any()
        bound = [e for e in exprs if e is not None]
        if self.select.group_all:
            sets = [tuple(e for e in bound[: len(items)] if not any(holes_of(e, room) for room in OF_GROUPS))]
        if self.relation.window is not None:
            if not self.groups_by_window(where, [k for keys in sets or () for k in keys]) or self.asks_at_the_end(
                where
            ):
                return self.in_windows(where)
            self.refuse_tests_of_windowed(where)
            if not all(self.spares_windows(p) for p in parts_of(self.select.where)):
                return self.in_windows(where)
        keys = [k for k in order if k is not None]
        node = self.passing(self.relation.node, where, unchanged)
        overs, over_from = self.calls.overs, unchanged
        if self.select.group_by or self.select.group_all or self.calls.aggregates:
            assert sets is not None, "a GROUP BY that failed is reported"
            names = [(i.name, e) for i, e in zip(items, bound, strict=False)]
            self.count_of_nothing(sets)
            relation = retimed(self.relation, node)
            grouped = group_by_sets(node, relation, self.calls, sets, names, self.select.span)
            node, over_from = self.passing(grouped.node, having, grouped.above), grouped.above
            self.refuse_ungrouped_stars(items, grouped)
            raised = [self.attempt(grouped.above, e) for e in bound]
            lifted = [self.attempt(k.map, grouped.above) for k in keys]
            self.findings.raise_if_any()
            bound = [e for e in raised if e is not None]
            keys = [k for k in lifted if k is not None]
            qualify = grouped.above(qualify) if qualify is not None else None
            overs = [grouped.above_over(o) for o in overs]
        else:
            self.refuse_ungrouped(having)
        node, above = add_overs(node, overs)
        if qualify is not None:
            node = Filter(node, above(qualify), span=qualify.span)
        shown = [*(above(e) for e in bound), *(above(k.expr) for k in keys)]
        node, shown = self.with_values(node, shown, over_from)
        keys = [replace(k, expr=e) for k, e in zip(keys, shown[len(bound) :], strict=True)]
        return self.result(node, shown[: len(bound)], [i.name for i in items], keys)

    def passing(self, node: LogicalNode, conditions: Conditions | None, above: Above) -> LogicalNode:
        """The rows of `node` that pass. above: maps expressions over the FROM to these rows."""
        if conditions is None:
            return node
        if conditions.plain is not None:
            node = Filter(node, above(conditions.plain), span=conditions.plain.span)
        for match in conditions.matches:
            node = match.joined(node, above)
        if conditions.valued is not None:
            node, (filled,) = self.with_values(node, [above(conditions.valued)], above)
            node = Filter(node, filled, span=conditions.valued.span)
        return node

    def with_values(self, node: LogicalNode, exprs: Sequence[Expr], above: Above) -> tuple[LogicalNode, list[Expr]]:
        """The rows with the values of the sub-queries in `exprs` added, and the expressions with the values filled
        in."""
        values: dict[int, Expr] = {}
        for hole in (h for e in exprs for h in holes_of(e, Room.QUERY)):
            if hole.index not in values:
                value = self.calls.values[hole.index]
                assert isinstance(value, ScalarSubquery), "a hole for what is no sub-query"
                node, values[hole.index] = value.beside(node, above)

        def fill(e: Expr) -> Expr:
            return values[e.index] if isinstance(e, Hole) and e.room is Room.QUERY else e

        return node, [transform(e, fill) for e in exprs]

    def result(
        self, node: LogicalNode, exprs: Sequence[Expr], names: Sequence[str], keys: Sequence[OrderKey]
    ) -> Limited:
        """The columns with these names, in the order of the keys; after the columns come the keys of DISTINCT ON."""
        span, width = self.select.span, len(names)
        if self.select.distinct_on:
            chosen = ordered(Limited(node), keys, self.order).node if keys else node
            wide = Project(chosen, tuple(exprs), (*names, *(f"key{n}" for n in range(width, len(exprs)))), span=span)
            every = columns(wide)
            rows = projection(first_of_each(wide, every[width:], span), every[:width], names, span)
            return Limited(rows, self.limit, self.offset)
        if self.select.distinct:
            rows = distinct(projection(node, exprs, names, span), span)
            keys = [self.selected(k, exprs, columns(rows)) for k in keys]
            return self.in_order(rows, keys)
        sorted_rows = self.in_order(node, keys)
        return replace(sorted_rows, node=projection(sorted_rows.node, exprs, names, span))

    def in_order(self, node: LogicalNode, keys: Sequence[OrderKey]) -> Limited:
        rows = Limited(node, self.limit, self.offset)
        return ordered(rows, keys, self.order) if keys else rows

    def selected(self, key: OrderKey, exprs: Sequence[Expr], shown: Sequence[Expr]) -> OrderKey:
        """The key over the rows of SELECT DISTINCT. CQ0502 if it is not one of their columns."""
        if key.expr not in exprs:
            raise compile_error(
                "CQ0502",
                "ORDER BY of a SELECT DISTINCT uses a value that is not selected: equal rows may differ in it",
                key.expr.span,
                help="add it to the select list, or write DISTINCT ON (columns) to keep one row of each",
            )
        return replace(key, expr=replace(shown[list(exprs).index(key.expr)], span=key.expr.span))

    def groups_by_window(self, where: Conditions | None, group: Sequence[Expr]) -> bool:
        """Whether a pending window makes groups that close with it, rather than rows that other clauses see."""
        if where is not None and where.read_a_window:
            return False
        if self.relation.window is not None and isinstance(self.relation.window.window, CountWindow):
            return bool(self.select.group_by or self.select.group_all or self.calls.aggregates)
        return self.calls.group_window is not None or any(holes_of(e, Room.WINDOW) for e in group)

    def has_group_of_nothing(self, where: Conditions | None, sets: Sequence[tuple[Expr, ...]]) -> bool:
        """Whether there may be a group without rows: one without keys, or perhaps without, that no window makes."""
        if self.relation.window is not None and self.groups_by_window(where, [k for keys in sets for k in keys]):
            return False
        return self.select.group_all or any(all(isinstance(k, Literal) for k in keys) for keys in sets)

    def in_windows(self, where: Conditions | None) -> Limited:
        """This SELECT over rows already assigned to windows; the conditions of WHERE on rows alone are applied
        first."""
        relation, select = self.relation, self.select
        parts = parts_of(select.where)
        before = [p for p in parts if not holds_query(p) and self.is_of_rows_alone(p) and self.spares_windows(p)]
        if where is not None and before:
            relation = replace(relation, node=Filter(relation.node, self.where_part(all_of(before)), span=where.span))
            select = replace(select, where=all_of([p for p in parts if p not in before]))
        return SelectBinder(select, with_windows(relation), self.queries, self.order, self.limit, self.offset).bind()

    def asks_at_the_end(self, where: Conditions | None) -> bool:
        """Whether sub-queries of WHERE test the rows of windows, which end: tested rows are grouped at the end."""
        if where is None or where.keep_time or self.relation.bounds is None or self.calls.group_window is not None:
            return False
        return self.relation.node.bounded and all(match.inner.node.bounded for match in where.matches)

    def is_of_rows_alone(self, part: ast.Expr) -> bool:
        """Whether a part of WHERE reads no bound of a window."""
        return not holes_of(self.where_part(part), Room.WINDOW)

    def spares_windows(self, part: ast.Expr) -> bool:
        """Whether rows that fail a part of WHERE can be left out before windows are made, without changing the windows
        of the others. The contents of a session or of a window that counts rows depend on all rows, so WHERE, which
        tests the result of FROM, comes after it: except for conditions on keys, which all rows of a key pass or
        fail."""
        assert self.relation.window is not None, "nothing to spare"
        window = self.relation.window.window
        if isinstance(window, Window) or self.calls.group_window is not None:
            return True
        if holds_query(part):
            return False
        return columns_of(self.where_part(part)) <= {k.index for k in window.keys or () if isinstance(k, Column)}

    def where_part(self, node: ast.Expr | None) -> Expr:
        """A part of WHERE that was bound before."""
        bound = self.condition(node, WHERE)
        assert bound is not None, "a part that is nothing"
        return bound

    def attempt(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of `step`, or None after noting its mistake: one run reports every mistake."""
        try:
            return step(*args, **kwargs)
        except CompileError as error:
            self.findings.add(error)
            return None

    # ---------------------------------------------------------------------------------------------------- clauses

    def items(self) -> Iterator[ResultColumn]:
        """The select list with every star written out."""
        for i, item in enumerate(self.select.items):
            if isinstance(item, ast.SelectItem):
                yield ResultColumn(item.alias or implied_name(item.expr, i), item.expr.span, item.expr, index=i)
                continue
            columns = self.of_star(item)
            if not columns and item.qualifier is None:
                cause = no_columns(self.relation) if self.select.relations else "* needs a FROM"
                raise compile_error("CQ0203", cause, item.span, help="name the values you need")
            if not columns:
                raise compile_error(
                    "CQ0203",
                    f'there is no relation "{item.qualifier}" in this FROM',
                    item.span,
                    help=(
                        BOUNDS_WAY if item.qualifier == "window" else "",
                        f"relations: {listing(sorted(self.relation.qualifiers))}",
                    ),
                )
            yield from self.changed(item, columns)

    def changed(self, star: ast.Star, columns: Sequence[Visible]) -> Iterator[ResultColumn]:
        """The columns of a star after EXCLUDE and REPLACE. CQ0203 for a name in them that matches no column."""
        left_out = {id(c) for name in star.exclude for c in self.of_name(name, columns)}
        kept = [c for c in columns if id(c) not in left_out]
        if not kept and len(self.select.items) == 1:
            message = "EXCLUDE leaves no column of the star"
            raise compile_error("CQ0203", message, star.span, help="leave one column, or name the values you need")
        others: dict[int, ast.SelectItem] = {}
        for item in star.replace:
            assert item.alias is not None, "REPLACE without a name"
            others.update((id(c), item) for c in self.of_name(ast.ColumnRef(item.alias, span=item.alias_span), kept))
        for c in kept:
            other = others.get(id(c))
            if other is None:
                yield ResultColumn(c.name, star.span, bound=replace(c.expr, span=star.span))
            else:
                yield ResultColumn(c.name, other.expr.span, other.expr)

    def of_name(self, ref: ast.ColumnRef, columns: Sequence[Visible]) -> list[Visible]:
        """The columns of a star that a name in its EXCLUDE or REPLACE matches."""
        found = columns_named(columns, ref.name, ref.quoted)
        if not found:
            names = [c.name for c in columns]
            raise compile_error(
                "CQ0203",
                f'the star has no column "{ref.name}"',
                ref.span,
                label="no such column",
                help=f"{did_you_mean(ref.name, names)} columns: {listing(names)}".strip(),
            )
        return found

    def of_star(self, star: ast.Star) -> list[Visible]:
        """The columns that a star stands for."""
        shown = [c for c in self.relation.columns if not c.hidden]
        if star.qualifier is None:
            return [c for c in shown if not c.needs_qualifier]
        return [c for c in shown if c.qualifier == star.qualifier] or fields_of(self.relation, star.qualifier)

    def value(self, item: ResultColumn) -> Expr:
        """A select item; a bare NULL gets a type."""
        assert item.expr is not None
        return settled(replace(self.binder(SELECT_LIST), aliases=self.aliases.until(item.index)).bind(item.expr))

    def distinct_keys(self, items: Sequence[ResultColumn], exprs: Sequence[Expr | None]) -> list[Expr | None]:
        """The expressions of DISTINCT ON: columns of the result as ORDER BY names them, or others over the FROM."""
        return [self.attempt(self.result_key, node, DISTINCT_ON, items, exprs) for node in self.select.distinct_on]

    def where(self) -> Conditions | None:
        conditions = self.conditions(self.select.where, WHERE)
        if self.calls.group_window is not None and conditions is not None and conditions.read_a_window:
            raise compile_error(
                "CQ0502",
                "WHERE is evaluated before GROUP BY assigns rows to windows",
                conditions.span,
                help=WHERE.advice,
            )
        return conditions

    def conditions(self, node: ast.Expr | None, clause: Clause) -> Conditions | None:
        """A condition, split if it contains sub-queries."""
        if node is None:
            return None
        if not holds_query(node):
            return Conditions(node.span, self.condition(node, clause))
        plain, matches, valued = list[ast.Expr](), list[Match](), list[ast.Expr]()
        for part in parts_of(node):
            found = tested(part)
            if found is not None:
                matches.append(bind_match(*found, self.binder(clause), self.queries))
            else:
                (valued if holds_query(part) else plain).append(part)
        first, last = (self.condition(all_of(parts), clause) for parts in (plain, valued))
        matches.sort(key=lambda match: not match.keeps_time)  # the others give rows without an event time
        return Conditions(node.span, first, tuple(matches), last)

    def condition(self, node: ast.Expr | None, clause: Clause) -> Expr | None:
        if node is None:
            return None
        return self.binder(clause, aliases=clause is not WHERE).condition(node, f"the condition of {clause.name}")

    def group_key(self, node: ast.Expr, items: Sequence[ResultColumn]) -> tuple[Expr, ...]:
        """The key of an expression in GROUP BY, with numbers and aliases resolved; none for the call that makes
        windows."""
        if node is self.calls.group_window:
            return ()
        if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
            key = self.attempt(self.ordinal, node, items)
        else:
            key = self.attempt(self.binder(GROUP_BY, aliases=True).bind, node)
        return () if key is None else (key,)

    def count_of_nothing(self, sets: Sequence[tuple[Expr, ...]]) -> None:
        """A set without keys or aggregates counts its rows: its one row needs a column."""
        if not self.calls.aggregates and not all(any(not isinstance(k, Literal) for k in keys) for keys in sets):
            self.calls.aggregates.append(aggregate_call("count", span=self.select.span))

    def ordinal(self, node: ast.NumberLiteral, items: Sequence[ResultColumn]) -> Expr:
        """`GROUP BY 2`: the second column of the select list."""
        item = items[numbered_column(node, len(items), "write the number or the name of a column without an aggregate")]
        if item.bound is not None:
            return item.bound
        assert item.expr is not None
        return self.binder(GROUP_BY).bind(item.expr)

    def order_key(
        self, item: ast.OrderItem, items: Sequence[ResultColumn], exprs: Sequence[Expr | None]
    ) -> OrderKey | None:
        """The key of an item of ORDER BY."""
        expr = self.result_key(item.expr, ORDER_BY, items, exprs)
        return order_key(item, replace(expr, span=item.expr.span)) if expr is not None else None

    def result_key(
        self, node: ast.Expr, clause: Clause, items: Sequence[ResultColumn], exprs: Sequence[Expr | None]
    ) -> Expr | None:
        """A column of the result by its name or number, else an expression over the FROM."""
        if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
            return exprs[numbered_column(node, len(items))]
        if isinstance(node, ast.ColumnRef) and node.qualifier is None and any(i.name == node.name for i in items):
            named = [e for i, e in zip(items, exprs, strict=True) if i.name == node.name]
            if any(e != named[0] for e in named):
                raise compile_error(
                    "CQ0204",
                    f'column "{node.name}" is ambiguous',
                    node.span,
                    label=f"{len(named)} columns of the result have this name",
                    help="give the columns aliases, or order by their number",
                )
            return named[0]
        return settled(self.binder(clause, aliases=True).bind(node))

    def make_group_window(self) -> None:
        """`GROUP BY TUMBLE(ts, i)`: the windows of the FROM."""
        made = [g for g in self.select.group_by if isinstance(g, ast.Call) and g.name in WINDOW_NAMES]
        if not made:
            return
        call, *more = made
        if more or self.relation.window is not None:
            raise compile_error(
                "CQ0502",
                "a SELECT can only use one window",
                (more or [call])[0].span,
                help="group the result of one window by another in a derived table",
            )
        arguments = group_window(call)
        looked_at = self.queries.looked_at(self.relation, named_time(arguments.time))
        window = bind_window(arguments, looked_at, self.binder(GROUP_BY))
        self.relation = replace(self.relation, window=PendingWindow(window, call.span))
        self.calls.bounds, self.calls.group_window = self.relation.bounds, call

    # --------------------------------------------------------------------------------------------------- refusals

    def refuse_tests_of_windowed(self, where: Conditions | None) -> None:
        """CQ0502 for what WHERE cannot test in windows that are grouped."""
        if where is None:
            return
        assert self.relation.window is not None, "no windows"
        counts = isinstance(self.relation.window.window, CountWindow)
        if not where.keep_time and not counts:
            raise compile_error(
                "CQ0502",
                "a sub-query cannot filter the rows of a window: filtered rows have no event time",
                where.span,
                help=(
                    *self.keeping_time(where),
                    "write the window in FROM: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE) … "
                    "GROUP BY window_start, window_end"
                    if self.calls.group_window is not None and self.relation.node.bounded
                    else "look the rows up in a table with a key, which keeps the event time: FROM TUMBLE((SELECT s.* "
                    "FROM s JOIN t FOR SYSTEM_TIME AS OF s.ts ON t.key = s.key), ts, INTERVAL '1' MINUTE)",
                ),
            )
        only = "count only them: CREATE VIEW v AS SELECT * FROM stream WHERE condition, with TABLE v here"
        if counts and not (where.is_plain and all(self.spares_windows(p) for p in parts_of(self.select.where))):
            raise compile_error(
                "CQ0502",
                "WHERE tests the rows of the windows, which have been counted with the others",
                where.span,
                help=("aggregate those that pass: SUM(x) FILTER (WHERE condition)", f"or {only}")
                if where.is_plain
                else only,
            )

    def keeping_time(self, where: Conditions) -> tuple[str, ...]:
        """How the sub-queries of WHERE pass rows that keep their event time; nothing if one of them cannot."""
        if where.valued is not None or not all(match.may_keep_time for match in where.matches):
            return ()
        assert self.relation.window is not None, "no windows"
        rows = with_windows(self.relation) if isinstance(self.relation.window.window, SessionWindow) else self.relation
        return tuple(dict.fromkeys(match.limiting(rows) for match in where.matches if not match.keeps_time))

    def refuse_ungrouped_stars(self, items: Sequence[ResultColumn], grouped: BoundGroups) -> None:
        """One CQ0404 for each star of a grouped query, whatever it contains."""
        lost: dict[Span, list[str]] = {}
        for item in items:
            if isinstance(item.bound, Column) and item.bound not in grouped.indices:
                lost.setdefault(item.span, []).append(item.name)
        for span, names in lost.items():
            error = compile_error(
                "CQ0404",
                f"* includes columns that are neither in GROUP BY nor in an aggregate: {listing(names)}",
                span,
                label="not grouped",
                help="name the columns you need",
            )
            self.findings.add(error)
        self.findings.raise_if_any()

    def refuse_ungrouped(self, having: Conditions | None) -> None:
        """CQ0405 for a HAVING or GROUPING without the GROUP BY it needs."""
        for call in self.calls.groupings:
            raise compile_error("CQ0405", "GROUPING needs a GROUP BY", call.span, help="write GROUP BY ROLLUP(a, b)")
        if having is not None:
            raise compile_error("CQ0405", "HAVING needs a GROUP BY", having.span, help="write the condition in WHERE")


def unchanged(expr: Expr) -> Expr:
    """The expression over the rows of a FROM that is not grouped: unchanged."""
    return expr


def numbered_column(node: ast.NumberLiteral, columns: int, way: str = "") -> int:
    """The index of the column that a number means. CQ0203 when there is none; way: what to write then."""
    if len(node.text) > 4 or not 1 <= int(node.text) <= columns:
        raise compile_error(
            "CQ0203",
            f"the select list has {amount(columns, 'column')}, so there is no column {node.text}",
            node.span,
            help=way or f"write a number from 1 to {columns}, or the name of a column",
        )
    return int(node.text) - 1


def implied_name(expr: ast.Expr, index: int) -> str:
    """The name of an unnamed column: that of its column or function, else col<number>."""
    match expr:
        case ast.ColumnRef(name=name) | ast.Call(name=name):
            return name
        case ast.Cast(operand=operand):
            return implied_name(operand, index)
        case ast.Extract(part=part):
            return part.lower()
        case _:
            return f"col{index + 1}"
