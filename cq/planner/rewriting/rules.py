"""Rewrite rules: each is a law, stated in its docstring, that says when two plans give the same rows in the same order.

For every law we consider NULL, NaN, overflow, empty input, late rows and errors. Two of them decide most conditions:
    errors have positions   an expression that can fail may not vanish, nor be spared a row, nor meet a row it did not
    late rows are counted   by the first operator on each path that needs event time: no row may be dropped below it

A rule over a node returns the better node, or None. Sharing is kept: a rule that would copy a node asks `once` first.
The phases, in order:
    FOLD      constants first: they decide what the others see
    PUSHDOWN  rows leave early; then projections, which stood between filters, grow together
    PRUNE     columns that nobody reads any more, once filters and projections stand where they stay
    SHARE     when equal sub-plans of several outputs have become equal
    FORGET    last, when columns stand where they stay: what of the state may go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from cq.entries import enter
from cq.errors import Span
from cq.lang.aggregates.registry import Grows
from cq.lang.expressions import (
    Call,
    Column,
    Expr,
    Literal,
    can_fail,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    substitute,
    walk,
)
from cq.lang.functions import Compares
from cq.planner.operators import Aggregate, Filter, Join, Over, Project, Sort, UnionAll, Unnest, WindowAggregate
from cq.planner.operators.pruning import prune
from cq.planner.operators.window import FIRST_KEY
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.fold import folded
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.rewriting.share import share
from cq.records import dataclass, replace


class Phase(Enum):
    """When a rule runs; a phase is repeated until nothing changes."""

    FOLD = 1
    PUSHDOWN = 2
    PRUNE = 3
    SHARE = 4
    FORGET = 5


@dataclass(frozen=True, slots=True)
class Uses:
    """How often each node of a plan is read."""

    counts: dict[int, int]

    def once(self, node: LogicalNode) -> bool:
        """Whether nobody else reads `node`: it may be changed without being copied."""
        return self.counts.get(id(node), 0) <= 1


NodeRule = Callable[[LogicalNode, Uses], LogicalNode | None]
PlanRule = Callable[[LogicalPlan], LogicalPlan]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named law. Exactly one of `node`, for one node at a time, and `plan`, for all at once."""

    name: str
    phase: Phase
    law: str
    node: NodeRule | None = None
    plan: PlanRule | None = None


RULES: dict[str, Rule] = {}


def rule(phase: Phase) -> Callable[[NodeRule], NodeRule]:
    """Register a rule over nodes under its own name."""

    def register(function: NodeRule) -> NodeRule:
        _enter(Rule(function.__name__, phase, function.__doc__ or "", node=function))
        return function

    return register


def plan_rule(phase: Phase, function: PlanRule) -> None:
    """Register a rule over whole plans under its own name."""
    _enter(Rule(function.__name__, phase, function.__doc__ or "", plan=function))


def _enter(made: Rule) -> None:
    enter(RULES, made.name, made, "rule", [] if made.law else ["its docstring states no law"])


# --------------------------------------------------------------------------------------------------------------- fold


@rule(Phase.FOLD)
def constant_folding(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Op(f(1, 2), x) = Op(v, x) where v is what the registry's body gives for f(1, 2).

    Every row would see that value: bodies are deterministic. A call that fails stays: it fails only if a row comes.
    """
    new = node.map_expressions(folded)
    return new if new != node else None


@rule(Phase.FOLD)
def true_filter(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Filter(TRUE, x) = x."""
    match node:
        case Filter(input=below, predicate=Literal(value=True)):
            return below
    return None


# ---------------------------------------------------------------------------------------------------------- push down


@rule(Phase.PUSHDOWN)
def filter_over_filter(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(q, Filter(p, x)) = Filter(p AND q, x) if q cannot fail, or p is never NULL.

    AND stops at FALSE but not at NULL: a q that can fail would meet rows that a NULL p has dropped.
    """
    match node:
        case Filter(input=Filter(input=below, predicate=p) as inner, predicate=q) if uses.once(inner):
            if can_fail(q) and p.nullable:
                return None
            return replace(node, input=below, predicate=conjunction((*conjuncts(p), *conjuncts(q))))
    return None


@rule(Phase.PUSHDOWN)
def filter_below_project(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(p, Project(e, x)) = Project(e, Filter(p[e], x)) if no e can fail.

    Expressions are deterministic, so p sees the same values. An e that can fail would be spared the dropped rows.
    """
    match node:
        case Filter(input=Project(input=below, exprs=exprs) as project, predicate=p) if uses.once(project):
            if any(can_fail(e) for e in exprs) or _grows(p, exprs):
                return None
            return replace(project, input=Filter(below, substitute(p, exprs), span=node.span))
    return None


@rule(Phase.PUSHDOWN)
def filter_below_union(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(p, UnionAll(x, y)) = UnionAll(Filter(p, x), Filter(p, y)) if p cannot fail.

    A union passes every row at its position. A p that can fail might do so before the other branch fails.
    """
    match node:
        case Filter(input=UnionAll(branches=branches) as union, predicate=p) if uses.once(union) and not can_fail(p):
            return replace(union, branches=tuple(Filter(b, p, span=node.span) for b in branches))
    return None


@rule(Phase.PUSHDOWN)
def filter_below_join(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(p AND q AND r, Join(x, y)) = Filter(r, Join(Filter(p, x), Filter(q, y))) if p reads x only, q reads y only
    and nothing here can fail.

    The values of a pair are those of its rows, pairs do not depend on other pairs, and no time is used. In a LEFT JOIN
    only p moves: left rows are kept, but a right row that q drops would leave its left row without a pair. In a FULL
    JOIN neither does.
    """
    match node:
        case Filter(input=Join() as join, predicate=p) if uses.once(join) and not join.kind.right_unmatched:
            if can_fail(p) or join.can_fail:
                return None
            mine, other, rest = _by_side(p, join, left=True, right=not join.kind.left_unmatched)
            if not mine and not other:
                return None
            below = _with_filters(join, mine, other, node.span)
            return replace(node, input=below, predicate=conjunction(rest)) if rest else below
    return None


@rule(Phase.PUSHDOWN)
def residual_below_join(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Join(x, y, p AND q AND r) = Join(Filter(p, x), Filter(q, y), r) if p reads x only, q reads y only and nothing
    here can fail.

    A row that its own condition keeps from every pair need not be there. In a LEFT JOIN only q moves: a left row
    without a pair is kept. In a FULL JOIN neither does.
    """
    match node:
        case Join(residual=Expr() as p) as join if not join.can_fail and not join.kind.right_unmatched:
            mine, other, rest = _by_side(p, join, left=not join.kind.left_unmatched, right=True)
            if not mine and not other:
                return None
            below = _with_filters(join, mine, other, p.span)
            return replace(below, residual=conjunction(rest) if rest else None)
    return None


def _by_side(p: Expr, join: Join, left: bool, right: bool) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """The conditions that read the left input only, those that read the right one only, and the others.

    left, right: whether to look for such conditions.
    """
    width = len(join.left.schema)
    sides: tuple[list[Expr], list[Expr], list[Expr]] = ([], [], [])
    for part in conjuncts(p):
        read = columns_of(part)
        if left and read and max(read) < width:
            sides[0].append(part)
        elif right and read and min(read) >= width:
            sides[1].append(remap(part, {c: c - width for c in read}))
        else:
            sides[2].append(part)
    return sides


def _with_filters(join: Join, mine: Sequence[Expr], other: Sequence[Expr], span: Span) -> Join:
    """The join over the rows of its inputs that pass these conditions."""
    left = Filter(join.left, conjunction(mine), span=span) if mine else join.left
    right = Filter(join.right, conjunction(other), span=span) if other else join.right
    return replace(join, left=left, right=right)


@rule(Phase.PUSHDOWN)
def filter_below_over(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(p, Over(x)) = Over(Filter(p, x)) if p reads partition columns only, and Over cannot fail.

    Then p drops whole partitions, and the others do not see them. Not where p reads a REAL or DOUBLE: 0.0 and -0.0 are
    one key, and p may tell them apart. In order of time late rows are counted by Over, so there x must have none: an
    operator below has already dropped them. And rows may wait in Over, so p must not fail; nor where rows are results
    of groups, which errors name only below Over.
    """
    match node:
        case Filter(input=Over(input=below, partition=keys, order=order) as over, predicate=p) if uses.once(over):
            columns = {k.index for k in keys if isinstance(k, Column) and not k.type.is_float}
            if not columns_of(p) <= columns or not columns_of(p) or over.can_fail:
                return None
            if can_fail(p) and (order is not None or below.groups is not None):
                return None
            if order is not None and not never_late(below):
                return None
            return replace(over, input=Filter(below, p, span=node.span))
    return None


@rule(Phase.PUSHDOWN)
def filter_below_window(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(p, Window(k, x)) = Window(k, Filter(p[k], x)) if p reads keys only and nothing here can fail.

    p drops whole groups, and a group's rows, windows and order do not depend on other groups. Not where p reads a REAL
    or DOUBLE: 0.0 and -0.0 are one key, and of rows p may tell them apart. x must have no late rows (an operator below
    has dropped them), for this window would count them, of every group.
    """
    match node:
        case Filter(input=WindowAggregate(input=below, keys=keys) as window, predicate=p) if uses.once(window):
            keyed = [n for n, k in enumerate(keys, FIRST_KEY) if not k.type.is_float]
            if not columns_of(p) or not all(c in keyed for c in columns_of(p)):
                return None
            if can_fail(p) or window.can_fail or not never_late(below):
                return None
            window_columns = [p] * FIRST_KEY  # p reads none of these
            return replace(window, input=Filter(below, substitute(p, [*window_columns, *keys]), span=node.span))
    return None


@rule(Phase.PUSHDOWN)
def project_over_project(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Project(f, Project(e, x)) = Project(f[e], x) if no e can fail and f uses each computed e at most once.

    An e that can fail might no longer be evaluated; one used twice would be computed twice.
    """
    match node:
        case Project(input=Project(input=below, exprs=inner, time_column=at) as project) if uses.once(project):
            outer = node.exprs
            if any(can_fail(e) for e in inner) or any(_grows(f, inner) for f in outer):
                return None
            used = [c.index for f in outer for c in walk(f) if isinstance(c, Column)]
            if any(used.count(i) > 1 for i, e in enumerate(inner) if not isinstance(e, Column | Literal)):
                return None
            time = next(
                (j for j, f in enumerate(outer) if at is not None and isinstance(f, Column) and f.index == at), None
            )
            merged = tuple(replace(substitute(f, inner), span=f.span) for f in outer)
            return replace(node, input=below, exprs=merged, time_column=time)
    return None


@rule(Phase.PUSHDOWN)
def unnest_below_project(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Unnest(a, Project(e, x)) = Project(e + the element, Unnest(a[e], x)) if each e is a column or SPLIT.

    Reading a column once for each element costs nothing; SPLIT cannot fail, and UNNEST of it makes no array.
    """
    match node:
        case Unnest(input=Project(input=below, exprs=inner, names=names, time_column=at), array=array):
            if any(not isinstance(e, Column) and not (isinstance(e, Call) and e.function.walked) for e in inner):
                return None
            made = replace(node, input=below, array=replace(substitute(array, inner), span=array.span))
            first = len(below.schema)
            added = [Column(f.type, f.nullable, first + i) for i, f in enumerate(made.schema.fields[first:])]
            given = (*names, *node.schema.names[len(names) :])
            return Project(made, (*inner, *added), given, at, span=node.span)
    return None


@rule(Phase.PUSHDOWN)
def limit_into_sort(node: LogicalNode, uses: Uses) -> LogicalNode | None:
    """Filter(n <= c, Over(n, Sort(x))) = Over(n, Sort(limit c, x)) if n numbers the rows of the partitions of Sort, and
    neither Over nor the condition can fail.

    What Over computes for the first c rows of a partition does not depend on the others, which the condition drops. The
    same holds of n < c + 1 and n = c, and with the sides changed; what still has to be asked stays in the filter.
    """
    match node:
        case Filter(input=Over(input=Sort(limit=None, offset=0) as sort, order=None) as over, predicate=p):
            alone = uses.once(over) and uses.once(sort) and over.partition == sort.partition
            if not alone or over.can_fail or can_fail(p):
                return None
            bounds = {part: bound for part in conjuncts(p) if (bound := _number_bound(part, over)) is not None}
            if not bounds:
                return None
            limit = max(min(most for _, most in bounds.values()), 0)
            limited = replace(over, input=replace(sort, limit=limit))
            asked = [part for part in conjuncts(p) if part not in bounds or bounds[part][0] > min(limit, 1)]
            return replace(node, input=limited, predicate=conjunction(asked)) if asked else limited
    return None


@rule(Phase.PUSHDOWN)
def distinct_into_groups(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Aggregate(COUNT(DISTINCT e), x) = Aggregate(COUNT(v), Aggregate(by e AS v, x)), without keys.

    NULL is a group that COUNT leaves out, and groups tell apart what the members of a set do. Both
    compute e for each row, and a count fits whatever is counted. Groups are filled by several workers; sets are not.
    """
    match node:
        case Aggregate(keys=(), aggregates=(first, *_) as calls) if all(_counts_distinct(c, first.args) for c in calls):
            (e,) = first.args
            groups = Aggregate(node.input, (e,), (), ("value",), (), span=node.span, identity=f"{node.identity}/values")
            counts = tuple(replace(c, args=(Column(e.type, e.nullable, 0),), distinct=False) for c in calls)
            return replace(node, input=groups, aggregates=counts)
    return None


def _counts_distinct(call: AggregateCall, args: tuple[Expr, ...]) -> bool:
    """Whether a call is COUNT(DISTINCT e) of every row, for the one argument e."""
    counts = call.function.grows is Grows.COUNT and call.distinct and call.filter is None
    return counts and len(args) == 1 and call.args == args


def _number_bound(condition: Expr, over: Over) -> tuple[int, int] | None:
    """The least and the greatest row number for which a condition is TRUE; None if it does not bound one."""
    match condition:
        case Call(function=f, args=(Column(index=index), Literal(value=int(bound)))):
            comparison = f.compares
        case Call(function=f, args=(Literal(value=int(bound)), Column(index=index))):
            comparison = f.compares and f.compares.turned
        case _:
            return None
    if not _is_number(over, index):
        return None
    match comparison:
        case Compares.LESS_EQUAL:
            return 1, bound
        case Compares.LESS:
            return 1, bound - 1
        case Compares.EQUAL:
            return bound, bound
    return None


def _is_number(over: Over, column: int) -> bool:
    """Whether a column of Over numbers the rows of a partition."""
    call = over.calls[column - len(over.input.schema)] if column >= len(over.input.schema) else None
    if not isinstance(call, AggregateCall) or call.function.grows is not Grows.COUNT:
        return False
    return not call.args and call.filter is None


MAX_GROWTH = 200  # nodes of an expression after substitution: beyond, evaluating once and reading twice is better


def _grows(expr: Expr, exprs: tuple[Expr, ...]) -> bool:
    """Whether substituting `exprs` for the columns of `expr` makes it large."""
    sizes = [sum(1 for _ in walk(e)) for e in exprs]
    return sum(sizes[e.index] if isinstance(e, Column) else 1 for e in walk(expr)) > MAX_GROWTH


def never_late(node: LogicalNode) -> bool:
    """Whether no row of `node` is late: on every path from a source an operator has already dropped late rows."""
    todo, seen = [node], set()
    while todo:
        n = todo.pop()
        if id(n) in seen or n.uses_time:
            continue
        if not n.inputs:
            return False
        seen.add(id(n))
        todo.extend(n.inputs)
    return True


plan_rule(Phase.PRUNE, prune)
plan_rule(Phase.SHARE, share)


@rule(Phase.FORGET)
def forget_partitions(node: LogicalNode, _: Uses) -> LogicalNode | None:
    """Over(x) = Over(until t, x) if all rows of a partition have the same event time t, and none of them is late.

    Of rows that are not late none has an event time that the watermark has passed, so the partition is not asked for
    again: t says when it may be forgotten, and no row depends on whether it is.
    """
    if not isinstance(node, Over) or node.until is not None or not (node.uses_time or never_late(node.input)):
        return None
    return next((replace(node, until=t) for t in node.closing_times), None)


def uses_of(plan: LogicalPlan) -> Uses:
    """How often each node is read, outputs included."""
    counts: dict[int, int] = {}
    for n in topological([o.node for o in plan.outputs]):
        for i in n.inputs:
            counts[id(i)] = counts.get(id(i), 0) + 1
    for o in plan.outputs:
        counts[id(o.node)] = counts.get(id(o.node), 0) + 1
    return Uses(counts)
