"""One SELECT: from a bound FROM to Filter, WindowAggregate or Aggregate, Over and Project, in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from cq.errors import CompileError, Findings, Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, Literal
from cq.planner.binding.calls import WINDOW_NAMES, SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.grouping import Grouped
from cq.planner.binding.grouping_sets import group_by_sets, sets_of
from cq.planner.binding.literals import ParameterValue
from cq.planner.binding.over import add_overs
from cq.planner.binding.scope import (
    BOUNDS_WAY,
    PendingWindow,
    Relation,
    Room,
    Visible,
    columns_named,
    holes_of,
    listing,
    projection,
    visible_columns,
)
from cq.planner.binding.sets import call_of, distinct, first_of_each
from cq.planner.binding.traits import check_columns
from cq.planner.binding.windows import bind_window, check_built, group_window
from cq.planner.operators import Filter, Project
from cq.planner.plan.node import LogicalNode

SELECT_LIST = Clause("the select list", aggregates=True, windows=True)
DISTINCT_ON = Clause("DISTINCT ON", aggregates=True, windows=True)
HAVING = Clause("HAVING", aggregates=True)
QUALIFY = Clause("QUALIFY", aggregates=True, windows=True)
WHERE = Clause("WHERE", advice="write the condition in HAVING, after GROUP BY")
OF_GROUPS = (Room.AGGREGATE, Room.OVER, Room.GROUPING)  # what GROUP BY ALL is not by
GROUP_BY = Clause("GROUP BY", advice="aggregate in a derived table first")

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the result. bound: there already for the columns of a star."""

    name: str
    span: Span
    expr: ast.Expr | None = None
    bound: Expr | None = None


@dataclass(slots=True)
class SelectBinder:
    """Binds one SELECT over its FROM."""

    select: ast.Select
    relation: Relation
    parameters: Mapping[str, ParameterValue]
    findings: Findings = field(default_factory=Findings)
    calls: SelectCalls = field(init=False)
    aliases: dict[str, ast.Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.calls = SelectCalls({w.name: w.spec for w in self.select.windows}, self.relation.window is not None)
        self.aliases = {i.alias: i.expr for i in self.select.items if isinstance(i, ast.SelectItem) and i.alias}

    def binder(self, clause: Clause, aliases: bool = False) -> ExprBinder:
        """Binds over the FROM in `clause`; `aliases`: names of the select list may stand for their expressions."""
        seen = self.aliases if aliases else {}
        return ExprBinder(self.relation, self.parameters, clause, self.calls, seen, frozenset(self.aliases))

    def bind(self) -> LogicalNode:
        """The operators of this SELECT. Raises everything that is wrong with it at once."""
        self.make_group_window()
        items = list(self.items())
        check_columns(len(items), self.select.span)
        where = self.attempt(self.where)
        sets = self.attempt(sets_of, self.select.group_by, lambda key: self.group_key(key, items))
        exprs = [i.bound or self.attempt(self.value, i) for i in items]
        exprs += self.distinct_keys(items)
        having = self.attempt(self.condition, self.select.having, HAVING)
        qualify = self.attempt(self.condition, self.select.qualify, QUALIFY)
        self.findings.raise_if_any()
        bound = [e for e in exprs if e is not None]
        node = self.relation.node if where is None else Filter(self.relation.node, where, span=where.span)
        overs = self.calls.overs
        if self.select.group_all:
            sets = [tuple(e for e in bound[: len(items)] if not any(holes_of(e, room) for room in OF_GROUPS))]
        if self.select.group_by or self.select.group_all or self.calls.aggregates:
            assert sets is not None, "a GROUP BY that failed is reported"
            names = [(i.name, e) for i, e in zip(items, bound, strict=False)]
            self.count_of_nothing(sets)
            grouped = group_by_sets(node, self.relation, self.calls, sets, names, self.select.span)
            node = grouped.node
            if having is not None:
                node = Filter(node, grouped.above(having), span=having.span)
            self.refuse_ungrouped_stars(items, grouped)
            raised = [self.attempt(grouped.above, e) for e in bound]
            self.findings.raise_if_any()
            bound = [e for e in raised if e is not None]
            qualify = grouped.above(qualify) if qualify is not None else None
            overs = [grouped.above_over(o) for o in overs]
        else:
            self.refuse_ungrouped(having)
        node, above = add_overs(node, self.relation, overs)
        if qualify is not None:
            node = Filter(node, above(qualify), span=qualify.span)
        return self.result([above(e) for e in bound], [i.name for i in items], node)

    def result(self, exprs: Sequence[Expr], names: Sequence[str], node: LogicalNode) -> LogicalNode:
        """The columns with these names; what follows them are the keys of DISTINCT ON."""
        span, width = self.select.span, len(names)
        if not self.select.distinct_on:
            rows = projection(node, exprs, names, span)
            return distinct(rows, span) if self.select.distinct else rows
        wide = Project(node, tuple(exprs), (*names, *(f"key{n}" for n in range(width, len(exprs)))), span=span)
        shown = [c.expr for c in visible_columns(wide, None)]
        return projection(first_of_each(wide, shown[width:], span), shown[:width], names, span)

    def attempt(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of `step`, or None after noting its mistake: one run reports every mistake."""
        try:
            return step(*args, **kwargs)
        except CompileError as error:
            self.findings.add(error)
            return None

    # ---------------------------------------------------------------------------------------------------- clauses

    def items(self) -> Iterator[Item]:
        """The select list with every star written out."""
        for i, item in enumerate(self.select.items):
            if isinstance(item, ast.SelectItem):
                yield Item(item.alias or implied_name(item.expr, i), item.expr.span, item.expr)
                continue
            columns = self.of_star(item)
            if not columns and item.qualifier is None:
                cause = "this FROM has no columns" if self.select.relations else "* needs a FROM"
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

    def changed(self, star: ast.Star, columns: Sequence[Visible]) -> Iterator[Item]:
        """The columns of a star after EXCLUDE and REPLACE. CQ0203 for a name in them that is none of its columns."""
        left_out = {id(c) for name in star.exclude for c in self.of_name(name, columns)}
        kept = [c for c in columns if id(c) not in left_out]
        if not kept:
            message = "EXCLUDE leaves no column of the star"
            raise compile_error("CQ0203", message, star.span, help="leave one column, or name the values you need")
        others: dict[int, ast.SelectItem] = {}
        for item in star.replace:
            assert item.alias is not None, "REPLACE without a name"
            others.update((id(c), item) for c in self.of_name(ast.ColumnRef(item.alias, span=item.alias_span), kept))
        for c in kept:
            other = others.get(id(c))
            if other is None:
                yield Item(c.name, star.span, bound=replace(c.expr, span=star.span))
            else:
                yield Item(c.name, other.expr.span, other.expr)

    def of_name(self, ref: ast.ColumnRef, columns: Sequence[Visible]) -> list[Visible]:
        """The columns of a star that a name in its EXCLUDE or REPLACE means."""
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
        """The columns that a star is short for."""
        shown = [c for c in self.relation.columns if not c.hidden]
        if star.qualifier is None:
            return [c for c in shown if not c.needs_qualifier]
        return [c for c in shown if c.qualifier == star.qualifier]

    def value(self, item: Item) -> Expr:
        """A select item; a bare NULL gets a type."""
        assert item.expr is not None
        return settled(self.binder(SELECT_LIST).bind(item.expr))

    def distinct_keys(self, items: Sequence[Item]) -> list[Expr | None]:
        """The expressions of DISTINCT ON; numbers and aliases looked up."""
        return [self.attempt(self.distinct_key, node, items) for node in self.select.distinct_on]

    def distinct_key(self, node: ast.Expr, items: Sequence[Item]) -> Expr:
        if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
            return self.ordinal(node, items, DISTINCT_ON)
        return settled(self.binder(DISTINCT_ON, aliases=True).bind(node))

    def where(self) -> Expr | None:
        predicate = self.condition(self.select.where, WHERE)
        if predicate is not None and holes_of(predicate, Room.WINDOW):
            raise compile_error(
                "CQ0502",
                "WHERE is evaluated before rows are assigned to windows",
                predicate.span,
                help=WHERE.advice,
            )
        return predicate

    def condition(self, node: ast.Expr | None, clause: Clause) -> Expr | None:
        if node is None:
            return None
        return self.binder(clause, aliases=clause is not WHERE).condition(node, f"the condition of {clause.name}")

    def group_key(self, node: ast.Expr, items: Sequence[Item]) -> tuple[Expr, ...]:
        """The key an expression of GROUP BY is, numbers and aliases looked up; none for the call that makes windows."""
        if node is self.calls.group_window:
            return ()
        if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
            key = self.attempt(self.ordinal, node, items, GROUP_BY)
        else:
            key = self.attempt(self.binder(GROUP_BY, aliases=True).bind, node)
        return () if key is None else (key,)

    def count_of_nothing(self, sets: Sequence[tuple[Expr, ...]]) -> None:
        """A set without keys, where nothing is aggregated, counts its rows: its one row has a column."""
        if not self.calls.aggregates and not all(any(not isinstance(k, Literal) for k in keys) for keys in sets):
            self.calls.aggregates.append(replace(call_of("count"), span=self.select.span))

    def ordinal(self, node: ast.NumberLiteral, items: Sequence[Item], clause: Clause) -> Expr:
        """`GROUP BY 2`: the second column of the select list."""
        if len(node.text) > 4 or not 1 <= int(node.text) <= len(items):
            raise compile_error(
                "CQ0203",
                f"the select list has {len(items)} columns, so there is no column {node.text}",
                node.span,
                help=f"write a number from 1 to {len(items)}, or the name of a column",
            )
        item = items[int(node.text) - 1]
        if item.bound is not None:
            return item.bound
        assert item.expr is not None
        return self.binder(clause).bind(item.expr)

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
        check_built(call.name, call.name_span)
        window = bind_window(group_window(call), self.relation, self.binder(GROUP_BY))
        self.relation = replace(self.relation, window=PendingWindow(window, call.span))
        self.calls.window, self.calls.group_window = True, call

    # --------------------------------------------------------------------------------------------------- refusals

    def refuse_ungrouped_stars(self, items: Sequence[Item], grouped: Grouped) -> None:
        """One CQ0404 for each star of a grouped query, whatever it holds."""
        lost: dict[Span, list[str]] = {}
        for item in items:
            if isinstance(item.bound, Column) and item.bound not in grouped.places:
                lost.setdefault(item.span, []).append(item.name)
        for span, names in lost.items():
            error = compile_error(
                "CQ0404",
                f"* includes columns that are neither in GROUP BY nor in an aggregate: {listing(names)}",
                span,
                label="which row's values?",
                help="name the columns you need",
            )
            self.findings.add(error)
        self.findings.raise_if_any()

    def refuse_ungrouped(self, having: Expr | None) -> None:
        """A HAVING, GROUPING or window without the GROUP BY it needs."""
        for call in self.calls.groupings:
            raise compile_error("CQ0405", "GROUPING needs a GROUP BY", call.span, help="write GROUP BY ROLLUP(a, b)")
        if having is not None:
            raise compile_error("CQ0405", "HAVING needs a GROUP BY", having.span, help="write the condition in WHERE")
        if self.relation.window is not None:
            raise compile_error(
                "CQ0502",
                "the rows of a window must be grouped",
                self.relation.window.span,
                help="add GROUP BY window_start, window_end and any other keys",
            )


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
