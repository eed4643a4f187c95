"""What joins of two relations share: the scope and condition of ON, its keys, the kind of the join, its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Call, Coalesce, Expr, Or, can_fail, columns_of, conjunction, conjuncts, remap
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING, Relation, Visible, one_named, shifted
from cq.planner.operators import JoinKind
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.records import replace

ON = Clause("ON", advice="aggregate in a view first")
_OUTER = ("LEFT", "RIGHT", "FULL")


def joined_relation(joined: LogicalNode, node: ast.Join, left: Relation, right: Relation) -> Relation:
    """The relation of a join: the columns of both sides, as written. left, right: the inputs of the operator, which
    RIGHT JOIN swaps.

    USING makes one column of two equal ones: that of the side whose rows are all kept or, in a FULL JOIN, the one that
    is not missing. Each of the two can still be named with its qualifier.
    """
    mine = shifted(left.columns, 0, node.kind == "FULL")
    others = shifted(right.columns, len(left.node.schema), node.kind in _OUTER)
    columns = (*others, *mine) if node.kind == "RIGHT" else (*mine, *others)
    for name in node.using:
        one, other = one_named(mine, name, node.using_span), one_named(others, name, node.using_span)
        assert one is not None and other is not None, "USING was checked when the condition was bound"
        columns = _merged(columns, (one, other), node)
    title = f"{left.title} joined with {right.title}"
    return Relation(joined, tuple(replace(c) for c in columns), title, span=node.span)


def _merged(columns: Sequence[Visible], pair: tuple[Visible, Visible], node: ast.Join) -> tuple[Visible, ...]:
    """The columns with one more before the first of an equal pair; both of these now need their qualifiers."""
    value = pair[0].expr
    if node.kind == "FULL":
        binder = ExprBinder(NOTHING, {}, ON, SelectCalls({}))
        either = binder.aligned([v.expr for v in pair], "the columns of USING")
        value = Coalesce(either[0].type, True, tuple(either), span=node.using_span)
    made: list[Visible] = []
    shown = [Visible(pair[0].name, None, value)]
    for v in columns:
        if v in pair:
            made += [*shown, replace(v, needs_qualifier=True)]
            shown = []
        else:
            made.append(v)
    return tuple(made)


def by_common_names(node: ast.Join, left: Relation, right: Relation) -> ast.Join:
    """A NATURAL JOIN as one with USING and the common column names. CQ0203 if there are none."""
    mine, theirs = ([c.name for c in r.columns if not (c.hidden or c.needs_qualifier)] for r in (left, right))
    names = tuple(dict.fromkeys(name for name in mine if name in theirs))
    if not names:
        raise compile_error(
            "CQ0203",
            f"NATURAL JOIN: no column of {left.title} has the name of one of {right.title}",
            node.kind_span,
            help="name the columns: JOIN … ON a.k = b.k",
        )
    return replace(node, using=names, using_span=node.kind_span)


def kind_of(node: ast.Join) -> JoinKind:
    """Which rows leave a join whose sides RIGHT JOIN has swapped."""
    return JoinKind.FULL if node.kind == "FULL" else JoinKind.LEFT if node.kind in _OUTER else JoinKind.INNER


def side_by_side(left: Relation, right: Relation, width: int) -> Relation:
    """The columns of both relations, the right ones after the left: the scope of ON."""
    columns, title = left.columns + shifted(right.columns, width), f"{left.title} or {right.title}"
    return Relation(left.node, columns, title, beside=right.node)


def condition(
    node: ast.Join, both: Relation, left: Relation, right: Relation, parameters: Mapping[str, ParameterValue]
) -> Expr:
    """The condition of ON, or that of USING."""
    binder = ExprBinder(both, parameters, ON, SelectCalls({}))
    if node.using:
        pairs = named_by_using(node, both, left, right)
        return conjunction([binder.compare("=", a, b, node.using_span) for a, b in pairs])
    assert node.on is not None, "a join without a condition"
    return binder.condition(node.on, "the condition of ON")


def named_by_using(node: ast.Join, both: Relation, left: Relation, right: Relation) -> list[tuple[Expr, Expr]]:
    """The columns of the left and of the right side named by USING. CQ0203 for one that a side lacks."""
    found = []
    for name in node.using:
        a = one_named(left.columns, name, node.using_span)
        b = one_named(both.columns[len(left.columns) :], name, node.using_span)
        if a is None or b is None:
            raise compile_error(
                "CQ0203",
                f'"{name}" in USING is not a column of {(right if a else left).title}',
                node.using_span,
                help="write ON l.x = r.y where the names differ",
            )
        found.append((a.expr, b.expr))
    return found


def equated(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """(left or constant, right) of an equality with the right side; None for any other condition."""
    match part:
        case Call(function=f, args=(a, b)) if f.name == "=":
            for x, y in ((a, b), (b, a)):
                of_x, of_y = columns_of(x), columns_of(y)
                if of_y and min(of_y) >= width and (not of_x or max(of_x) < width):
                    return x, y
    return None


def demands(expr: Expr) -> tuple[Expr, ...]:
    """The conditions that must all be TRUE, including those common to all branches of an OR: (a AND b) OR (a AND c) is
    a AND (b OR c), as long as nothing can fail."""
    return tuple(d for part in conjuncts(expr) for d in _shared(part))


def _shared(expr: Expr) -> tuple[Expr, ...]:
    """The conditions common to all branches of an OR, and the OR of the rest."""
    if not isinstance(expr, Or) or can_fail(folded(expr)):
        return (expr,)
    branches = [conjuncts(b) for b in expr.args]
    common = tuple(c for c in dict.fromkeys(branches[0]) if all(c in b for b in branches[1:]))
    rests = [conjunction([c for c in b if c not in common]) for b in branches]
    if not common or not all(len(set(b)) > len(common) for b in branches):
        return common or (expr,)
    return (*common, replace(expr, nullable=any(r.nullable for r in rests), args=tuple(rests)))


def keyed(parts: Sequence[Expr], width: int, constants: bool = False) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """The left and right values that conditions equate, and the other conditions.

    constants: whether a constant counts as a value of the left side.
    """
    left_keys, right_keys, rest = [], [], []
    for part in parts:
        pair = equated(part, width)
        if pair is None or not (constants or columns_of(pair[0])):
            rest.append(part)
        else:
            left_keys.append(pair[0])
            right_keys.append(remap(pair[1], {c: c - width for c in columns_of(pair[1])}))
    return left_keys, right_keys, rest
