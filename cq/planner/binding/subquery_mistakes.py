"""Why a sub-query waits for an end that never comes, and the join that gives the same rows as they come."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import Span, compile_error
from cq.grammar import ast, inline
from cq.hints import face
from cq.lang.expressions import Call, Column, Expr
from cq.planner.binding.correlation import Inside, parts_of, references
from cq.planner.binding.joins.mistakes import LONGEST_SHOWN, missing_within
from cq.planner.binding.joins.times import Sides
from cq.planner.binding.scope import Relation
from cq.planner.operators.joined import may_come_before
from cq.planner.plan.node import LogicalNode

_BY_TIME = (
    "to pass rows that no row within a time matches, join by time: "
    "a LEFT JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND WHERE b.k IS NULL"
)


def refuse_endless(
    outer: Relation, inner: Relation, span: Span, on: Sequence[Expr], named: tuple[ast.Relation, list[ast.Expr]] | None
) -> None:
    """CQ0406 for NOT IN, NOT EXISTS and ANTI JOIN on an input without an end.

    on: when rows match.  named: the right side and these conditions as the query writes them, if it writes a join.
    """
    if (outer.node.bounded and inner.node.bounded) or may_come_before(inner.node, outer.node):
        return
    endless = inner if outer.node.bounded else outer
    timed = outer.node.schema.times and inner.node.schema.times
    way = _left_join(Sides(outer, inner), on, named) if timed else "read both from inputs that end, such as files"
    message = f"rows without a match would never leave: {endless.title} has no end"
    raise compile_error("CQ0406", message, span, help=way)


def _left_join(sides: Sides, on: Sequence[Expr], named: tuple[ast.Relation, list[ast.Expr]] | None) -> str:
    """The LEFT JOIN whose rows without a match are those asked for, in the names of the query where they can stand."""
    key = next((k for e in on if (k := _equated(e, sides)) is not None), None)
    if named is None or key is None or sides.left.qualifiers & sides.right.qualifiers:
        return _BY_TIME
    relation, conditions = named
    text = inline.conjunction(conditions)
    one_name = any(ref.qualifier is None for c in conditions for ref in references(c))
    if one_name or len(text) > LONGEST_SHOWN or any(isinstance(n, ast.Query) for c in conditions for n in ast.walk(c)):
        return _BY_TIME
    join, bound = f"LEFT JOIN {inline.relation(relation)} ON {text}", missing_within(sides, on)
    if not bound:
        return f"write {join}, and in WHERE {key} IS NULL"
    return f"to pass rows that no row within a time matches, write {join} AND {bound}, and in WHERE {key} IS NULL"


def _equated(e: Expr, sides: Sides) -> str | None:
    """The column of the right side that a condition equates with the left one."""
    if not (isinstance(e, Call) and e.function.name == "=" and sides.meet_in(e)):
        return None
    for c in e.args:
        if isinstance(c, Column) and c.index >= sides.width:
            for v in sides.right.columns:
                if isinstance(v.expr, Column) and v.expr.index == c.index - sides.width and v.qualifier is not None:
                    return f"{inline.name(v.qualifier)}.{inline.name(v.name)}"
    return None


def as_join(inside: Inside) -> tuple[ast.Relation, list[ast.Expr]] | None:
    """The relation of a sub-query and its conditions, for a join in its place; None where it reads several."""
    if len(inside.select.relations) != 1 or isinstance(inside.select.relations[0], ast.Join):
        return None
    return inside.select.relations[0], [*inside.about, *parts_of(inside.rest)]


def refuse_endless_value(outer: Relation, rows: LogicalNode, span: Span, inside: Inside | None = None) -> None:
    """CQ0406 for the value of a sub-query on an input without an end. inside: the sub-query, if it is correlated."""
    if outer.node.bounded and rows.bounded:
        return
    endless = "the sub-query" if outer.node.bounded else outer.title
    raise compile_error(
        "CQ0406",
        f"the value of a sub-query is known only when all inputs have ended, but {endless} has no end",
        span,
        help=f"give the value as a parameter: write :name here, and {face().setting('name')}"
        if inside is None
        else _value_beside(inside)
        if rows.bounded
        else "join by time, and aggregate the joined rows in a window",
    )


def _value_beside(inside: Inside) -> str:
    """The LEFT JOIN that gives each row its value."""
    named = as_join(inside)
    text = ""
    if named is not None:
        relation, conditions = named
        text = f"LEFT JOIN {inline.relation(relation)} ON {inline.conjunction(conditions)}"
    if not text or "$" in text or len(text) > LONGEST_SHOWN:
        text = "a LEFT JOIN b ON b.k = a.k"
    return (
        f"join the rows instead: {text}; columns of the right side are then NULL where no row matches, "
        "and a row comes once for each match"
    )
