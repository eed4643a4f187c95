"""Why a sub-query waits for an end that never comes, and what gives rows as they come: a limit on how far apart times
are, an input that comes first or ends, or a join in place of a value."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast, inline
from cq.hints import face
from cq.lang.expressions import Expr
from cq.planner.binding.correlation import Inside, parts_of
from cq.planner.binding.joins.mistakes import (
    INTO_A_FILE,
    LONGEST_SHOWN,
    Written,
    missing_bound,
    within,
    without_watermark,
)
from cq.planner.binding.joins.times import Sides, TimeBounds
from cq.planner.binding.scope import Relation
from cq.planner.operators.joined import apart, may_come_before, other_time
from cq.planner.plan.node import LogicalNode

_VERBS = ("add ", "keep ", "put ", "write ", "name ")  # with which a way out begins that can follow "to …, "


def may_wait_forever(sides: Sides) -> bool:
    """Whether rows without a match may wait for an end that never comes."""
    left, right = sides.left.node, sides.right.node
    return not (left.bounded and right.bounded) and not may_come_before(right, left)


def refused_endless(
    sides: Sides, named: Sides, bounds: TimeBounds, others: Sequence[Expr], span: Span, written: Written | None
) -> CompileError:
    """CQ0406 for NOT IN, NOT EXISTS and ANTI JOIN on an input without an end whose conditions do not bound the wait.

    named: both sides as the query names them.  bounds, others: how far apart the times of two rows may be, and the
    conditions that equate nothing.  written: the condition on both sides, if the query writes one.
    """
    endless = named.right if sides.left.node.bounded else named.left
    timed = named.left.node.schema.times and named.right.node.schema.times
    ways = _by_time(named, bounds, others, written) if timed else ()
    untimed = without_watermark(sides.right.node, sides.left.node)
    if untimed:
        ways = (*ways, f"or {untimed}" if ways else untimed)
    if not sides.right.node.bounded:
        ways = ways or ("read the rows that must not match from an input that ends, such as a file",)
    message = f"rows without a match would never leave: {endless.title} has no end"
    return compile_error("CQ0406", message, span, help=ways or (f"{INTO_A_FILE}, and read that file here",))


def _by_time(sides: Sides, bounds: TimeBounds, others: Sequence[Expr], written: Written | None) -> tuple[str, ...]:
    """How to pass rows that no row within a time matches, in the names of the query if they differ."""
    if written is None or sides.left.qualifiers & sides.right.qualifiers:
        nodes = sides.left.node, sides.right.node
        ways: tuple[str, ...] = (f"name both sides a and b, and limit how far apart they are: AND {apart(*nodes)}",)
    elif beside := _not_by_event_time(sides, others):
        ways = (beside,)
    else:
        ways = missing_bound(written, sides, bounds, others).diagnostics[0].help
    goal = "to pass rows that no row within a time matches, "
    return tuple(f"{goal}{way}" if way.startswith(_VERBS) else way for way in ways)


def limiting(sides: Sides, written: Written | None, others: Sequence[Expr]) -> str:
    """How a sub-query that gives up the event time of rows keeps it, in the names of the query if they differ."""
    if written is None or sides.left.qualifiers & sides.right.qualifiers:
        return (
            "in the sub-query, name both sides a and b, and limit how far apart the times are: "
            f"AND {apart(sides.left.node, sides.right.node)}"
        )
    if beside := _not_by_event_time(sides, others):
        return beside
    limit = "limit how far apart the times are in the sub-query: "
    if written.on is None:
        return f"{limit}{'AND' if written.using else 'WHERE'} {within(sides)}"
    if inline.level(written.on) >= inline.AND:
        return f"{limit}AND {within(sides)}"
    condition = inline.expr(written.on)
    return f"{limit}({condition if len(condition) <= LONGEST_SHOWN else '…'}) AND {within(sides)}"


def _not_by_event_time(sides: Sides, others: Sequence[Expr]) -> str:
    """What to say of a condition on a time that is not the event time of its row; "" if there is none."""
    found = other_time(sides.left.node, sides.right.node, others)
    if found is None:
        return ""
    names = (sides.right if found.on_right else sides.left).qualifiers
    return found.way(next(iter(names)) if len(names) == 1 else "")


def relation_and_conditions(inside: Inside) -> tuple[ast.Relation, list[ast.Expr]] | None:
    """What a join in place of a sub-query joins, and by which conditions; None where the sub-query reads several
    relations."""
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
    named = relation_and_conditions(inside)
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
