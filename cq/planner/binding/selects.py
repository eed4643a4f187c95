"""One SELECT: from a bound FROM to Filter, WindowAggregate or Aggregate, Over and Project, in that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from cq.errors import NOWHERE, CompileError, Findings, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Column, Expr
from cq.planner.binding.calls import WINDOW_NAMES, SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.grouping import Grouped, group_rows
from cq.planner.binding.literals import ParameterValue
from cq.planner.binding.order_keys import order_key
from cq.planner.binding.over import add_overs
from cq.planner.binding.scope import (
    BOUNDS_WAY,
    PendingWindow,
    Relation,
    Room,
    Visible,
    holes_of,
    listing,
    visible_columns,
)
from cq.planner.binding.sorting import ORDER_BY, Limited, ordered
from cq.planner.binding.traits import check_columns
from cq.planner.binding.windows import bind_window, check_built, group_window
from cq.planner.operators import Filter, OrderKey, Project
from cq.planner.plan.node import LogicalNode

SELECT_LIST = Clause("the select list", aggregates=True, windows=True)
HAVING = Clause("HAVING", aggregates=True)
QUALIFY = Clause("QUALIFY", aggregates=True, windows=True)
WHERE = Clause("WHERE", advice="write the condition in HAVING, after GROUP BY")
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
    """Binds one SELECT over its FROM, with the ORDER BY, LIMIT and OFFSET behind it."""

    select: ast.Select
    relation: Relation
    parameters: Mapping[str, ParameterValue]
    order: Sequence[ast.OrderItem] = ()
    limit: int | None = None
    offset: int = 0
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

    def bind(self) -> Limited:
        """The operators of this SELECT, and what is left of its LIMIT and OFFSET. Raises everything that is wrong with
        it at once."""
        self.refuse_unbuilt()
        self.make_group_window()
        items = list(self.items())
        check_columns(len(items), self.select.span)
        where = self.attempt(self.where)
        group = self.group_keys(items)
        exprs = [i.bound or self.attempt(self.value, i) for i in items]
        having = self.attempt(self.condition, self.select.having, HAVING)
        qualify = self.attempt(self.condition, self.select.qualify, QUALIFY)
        order = [self.attempt(self.order_key, item, items, exprs) for item in self.order]
        self.findings.raise_if_any()
        bound = [e for e in exprs if e is not None]
        keys = [k for k in order if k is not None]
        node = self.relation.node if where is None else Filter(self.relation.node, where, span=where.span)
        overs = self.calls.overs
        if self.select.group_by or self.calls.aggregates:
            names = [(i.name, e) for i, e in zip(items, bound, strict=True)]
            grouped = group_rows(node, self.relation, self.calls, group, names, self.select.span)
            node = grouped.node
            if having is not None:
                node = Filter(node, grouped.above(having), span=having.span)
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
        rows = Limited(node, self.limit, self.offset)
        if keys:
            rows = ordered(rows, [k.map(above) for k in keys], self.order)
        shown = projection(rows.node, [above(e) for e in bound], [i.name for i in items], self.select.span)
        return replace(rows, node=shown)

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
                raise compile_error("CQ0203", "this FROM has no columns", item.span)
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
            for c in columns:
                yield Item(c.name, item.span, bound=replace(c.expr, span=item.span))

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

    def group_keys(self, items: Sequence[Item]) -> list[Expr]:
        """The expressions of GROUP BY but the call that makes windows; numbers and aliases looked up."""
        keys = []
        for node in self.select.group_by:
            if node is self.calls.group_window:
                continue
            if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
                keys.append(self.attempt(self.ordinal, node, items))
            else:
                keys.append(self.attempt(self.binder(GROUP_BY, aliases=True).bind, node))
        return [key for key in keys if key is not None]

    def ordinal(self, node: ast.NumberLiteral, items: Sequence[Item]) -> Expr:
        """`GROUP BY 2`: the second column of the select list."""
        item = items[place_of(node, len(items))]
        if item.bound is not None:
            return item.bound
        assert item.expr is not None
        return self.binder(GROUP_BY).bind(item.expr)

    def order_key(self, item: ast.OrderItem, items: Sequence[Item], exprs: Sequence[Expr | None]) -> OrderKey | None:
        """An item of ORDER BY: a column of the result by its name or number, else an expression over the FROM."""
        node = item.expr
        if isinstance(node, ast.NumberLiteral) and node.text.isdigit():
            expr = exprs[place_of(node, len(items))]
        elif isinstance(node, ast.ColumnRef) and node.qualifier is None and any(i.name == node.name for i in items):
            named = [e for i, e in zip(items, exprs, strict=True) if i.name == node.name]
            if any(e != named[0] for e in named):
                raise compile_error(
                    "CQ0204",
                    f'column "{node.name}" is ambiguous',
                    node.span,
                    label=f"{len(named)} columns of the result have this name",
                    help="give the columns aliases, or order by their number",
                )
            expr = named[0]
        else:
            expr = self.binder(ORDER_BY, aliases=True).bind(node)
        return order_key(item, replace(expr, span=node.span)) if expr is not None else None

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

    def refuse_unbuilt(self) -> None:
        """CQ0501 for the clauses of SELECT that are not supported yet."""
        if self.select.distinct:
            raise compile_error(
                "CQ0501",
                "SELECT DISTINCT is not supported yet",
                self.select.span,
                help=(
                    "use GROUP BY; on an unbounded input, group in windows",
                    "or keep the first row of each: QUALIFY ROW_NUMBER() OVER (PARTITION BY key) = 1",
                ),
            )

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
        """A HAVING or a window without the GROUP BY it needs."""
        if having is not None:
            raise compile_error("CQ0405", "HAVING needs a GROUP BY", having.span, help="write the condition in WHERE")
        if self.relation.window is not None:
            raise compile_error(
                "CQ0502",
                "the rows of a window must be grouped",
                self.relation.window.span,
                help="add GROUP BY window_start, window_end and any other keys",
            )


def place_of(node: ast.NumberLiteral, columns: int) -> int:
    """The place, from 0, of the column that a number stands for. CQ0203 when there is none."""
    if len(node.text) > 4 or not 1 <= int(node.text) <= columns:
        raise compile_error(
            "CQ0203",
            f"the select list has {columns} columns, so there is no column {node.text}",
            node.span,
            help=f"write a number from 1 to {columns}, or the name of a column",
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


def projection(node: LogicalNode, exprs: Sequence[Expr], names: Sequence[str], span: Span = NOWHERE) -> LogicalNode:
    """`node` with these columns: itself when it already has them."""
    same = [(c.expr, c.name) for c in visible_columns(node, None)]
    if same == list(zip(exprs, names, strict=True)):
        return node
    return Project(node, tuple(exprs), tuple(names), span=span)
