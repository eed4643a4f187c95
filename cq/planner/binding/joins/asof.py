"""`a ASOF [LEFT] JOIN b ON a.k = b.k AND a.ts >= b.ts`: for each left row the latest right row with its key; with <=
the next one.

Besides equalities of the sides the condition has one comparison of their event times, which may also be in
MATCH_CONDITION or be implied by the last column of USING, and perhaps a limit on how far apart they are. A condition on
one side alone says which of its rows can match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cq.errors import CompileError, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Call, Case, Coalesce, Column, Expr, IsNull, Literal, columns_of, conjuncts, remap, walk
from cq.lang.schema import TimeAttribute
from cq.lang.types import BOOLEAN, Kind
from cq.planner.binding.built_expressions import negated
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.joins.mistakes import condition_span, excluding_bounds, time_name
from cq.planner.binding.joins.sides import condition, joined_relation, keyed, kind_of, named_by_using, side_by_side
from cq.planner.binding.joins.times import FLIPPED, UNBOUNDED_US, Sides, TimeBounds, bounds_of
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation
from cq.planner.binding.time_attributes import first_time, no_event_time
from cq.planner.operators import AsofJoin, Project
from cq.planner.operators.joined import FARTHEST_US, in_reach
from cq.records import replace

FIRST_TIME_US = -62_135_596_800_000_000  # the year 1
MATCH = Clause("MATCH_CONDITION", advice="aggregate in a view first")


def asof_join(node: ast.Join, left: Relation, right: Relation, parameters: Mapping[str, ParameterValue]) -> Relation:
    """Join each left row with the latest right row, or with the next."""
    sides = Sides(left, right, at_end=left.node.bounded and right.node.bounded)
    match, others = _conditions(node, sides, parameters)
    meant, bounds, rest = _bounded(node, match, others, sides)
    if bounds.lower_us > bounds.upper_us:
        raise excluding_bounds(sides, bounds)
    if bounds.upper_us == UNBOUNDED_US and not (left.node.bounded and right.node.bounded):
        raise _endless(sides, meant)
    left_keys, right_keys, rest = keyed(rest, sides.width)
    rest += _known_times(sides, bounds)
    for part in rest:
        mine, theirs = _of_one_side(part, sides)
        left_keys.append(mine)
        right_keys.append(theirs)
    assert bounds.times is not None, "bounds of no times"
    (left, left_time), (right, right_time) = (
        _without_nulls(s, t) for s, t in zip((left, right), bounds.times, strict=True)
    )
    joined = AsofJoin(
        left.node, right.node, tuple(left_keys), tuple(right_keys), None, kind_of(node),
        left_time=left_time, right_time=right_time, lower_us=in_reach(bounds.lower_us),
        upper_us=in_reach(bounds.upper_us), ahead=_looks_ahead(meant), span=node.span,
    )  # fmt: skip
    return joined_relation(joined, node, left, right)


def _conditions(
    node: ast.Join, sides: Sides, parameters: Mapping[str, ParameterValue]
) -> tuple[Expr | None, list[Expr]]:
    """The comparison of the event times, if written separately; and the other conditions."""
    both = side_by_side(sides.left, sides.right, sides.width)
    binder = ExprBinder(both, parameters, MATCH, SelectCalls({}))
    if node.match is None and node.using:
        *keys, (a, b) = named_by_using(node, both, sides.left, sides.right)
        equal = [binder.compare("=", x, y, node.using_span) for x, y in keys]
        return binder.compare(">=", a, b, node.using_span), equal
    match = binder.condition(node.match, "MATCH_CONDITION") if node.match is not None else None
    if node.on is None and not node.using:
        return match, []
    return match, [*conjuncts(condition(node, both, sides.left, sides.right, parameters))]


def _bounded(
    node: ast.Join, match: Expr | None, others: Sequence[Expr], sides: Sides
) -> tuple[TimeBounds, TimeBounds, list[Expr]]:
    """The comparison that drives the join, all bounds on its two event times, and the other conditions."""
    parts = [*others] if match is None else [match, *others]
    found = [(part, bounds_of(part, sides)) for part in parts]
    open_ended = [(part, b) for part, b in found if b is not None and _looks_back(b) != _looks_ahead(b)]
    candidates = open_ended if match is None else [(p, b) for p, b in open_ended if p is match]
    if not candidates:
        raise _without_times(node, sides, [match] if match is not None else others)
    clearest = min(_indirectness(p) for p, _ in candidates)
    meant = [b for p, b in candidates if _indirectness(p) == clearest]
    if any(_looks_back(b) != _looks_back(meant[0]) for b in meant):
        raise _both_ways(sides, meant)
    bounds, rest = TimeBounds(), []
    for part, said in found:
        if said is not None and said.times == meant[0].times:
            bounds = bounds.and_(said)
        else:
            rest.append(part)
    return meant[0], bounds, rest


def _known_times(sides: Sides, bounds: TimeBounds) -> Iterator[Expr]:
    """Conditions that the columns driving the join are not NULL, as event times never are."""
    assert bounds.times is not None, "bounds of no times"
    for side, time, first in zip((sides.left, sides.right), bounds.times, (0, sides.width), strict=True):
        f = side.node.schema.fields[time.column]
        if f.nullable and time.lag_us == FARTHEST_US:
            column = Column(f.type, True, first + time.column, f.name)
            yield negated(IsNull(BOOLEAN, False, column), bounds.span)


def _without_nulls(side: Relation, time: TimeAttribute) -> tuple[Relation, TimeAttribute]:
    """The side with one more column for the times, if they may be NULL: such rows come first."""
    fields = side.node.schema.fields
    of = fields[time.column]
    if time.lag_us != FARTHEST_US or not of.nullable:
        return side, time
    columns = [Column(f.type, f.nullable, i, f.name) for i, f in enumerate(fields)]
    known = Coalesce(of.type, False, (columns[time.column], Literal(of.type, False, FIRST_TIME_US)))
    node = Project(side.node, (*columns, known), (*side.node.schema.names, "time"))
    return replace(side, node=node), replace(time, column=len(fields))


def _indirectness(comparison: Expr) -> int:
    """How indirectly a comparison of two times is written: with the columns alone, with times moved by a constant, or
    with their difference. The most direct one drives the join."""
    assert isinstance(comparison, Call), "a comparison"
    of_columns = all(isinstance(a, Column) for a in comparison.args)
    return 0 if of_columns else 1 + any(a.type.is_interval for a in comparison.args)


def _looks_back(bounds: TimeBounds) -> bool:
    """Whether a comparison bounds how late the right row may be."""
    return bounds.upper_us < UNBOUNDED_US


def _looks_ahead(bounds: TimeBounds) -> bool:
    """Whether a comparison bounds how early the right row may be."""
    return bounds.lower_us > -UNBOUNDED_US


def _of_one_side(part: Expr, sides: Sides) -> tuple[Expr, Expr]:
    """A condition on one side as an equality of keys: TRUE, or NULL, which matches nothing, with TRUE."""
    if sides.meet_in(part):
        raise _of_both_sides(part, sides)
    true = Literal(BOOLEAN, False, True)
    columns = columns_of(part)
    of_right = bool(columns) and min(columns) >= sides.width
    mine = remap(part, {c: c - sides.width for c in columns}) if of_right else part
    holds = Case(BOOLEAN, True, ((mine, true),), Literal(BOOLEAN, True, None), span=part.span)
    return (true, holds) if of_right else (holds, true)


# ----------------------------------------------------------------------------------------------------------- mistakes


def _comparison(sides: Sides) -> str:
    return f"{time_name(sides.left)} >= {time_name(sides.right)}"


def _without_times(node: ast.Join, sides: Sides, parts: Sequence[Expr]) -> CompileError:
    """Why no condition compares the event times of the sides."""
    signs = FLIPPED.keys() - {"="}
    compared = [p for p in parts if isinstance(p, Call) and p.function.name in signs and sides.meet_in(p)]
    for part in compared:
        times = _times_in(part)
        if len({e.type.kind for e in times}) > 1:
            return _types_apart(node, sides, part, times)
    for e in (e for p in compared for e in _times_in(p)):
        relation, index = sides.of(e.index)
        if relation.node.schema.time_of(index) is None:
            return no_event_time(relation, e.name, index, e.span, "ASOF JOIN")
    for side in (sides.left, sides.right):
        if not side.node.schema.times:
            return no_event_time(side, *first_time(side), side.span, "ASOF JOIN")
    span = compared[0].span if compared else condition_span(node) if node.match is None else node.match.span
    way = f"write {_comparison(sides)}" if compared or node.match is not None else f"add AND {_comparison(sides)}"
    return compile_error("CQ0408", "ASOF JOIN must compare the event times of its sides", span, help=way)


def _times_in(part: Expr) -> list[Column]:
    return [e for e in walk(part) if isinstance(e, Column) and e.type.is_timestamp]


def _types_apart(node: ast.Join, sides: Sides, part: Expr, times: Sequence[Column]) -> CompileError:
    """CQ0408 if one time is an instant and the other has no zone: no watermark would suffice."""
    local, instant = (next(e for e in times if (e.type.kind is Kind.TIMESTAMP_LTZ) is held) for held in (False, True))
    relation, index = sides.of(instant.index)
    name, table = relation.node.schema.names[index], node.right if relation is sides.right else node.left
    shown, made = inline.name(name), inline.name(f"{name}_time")
    way = f"convert it where its stream is declared: {made} AS CAST({shown} AS TIMESTAMP), WATERMARK FOR {made}"
    if isinstance(table, ast.TableRef) and relation.node.bounded and relation.columns[0].qualifier is not None:
        alias = inline.name(relation.columns[0].qualifier)
        rows = inline.relation(replace(table, alias=None))
        way = f"read (SELECT * REPLACE (CAST({shown} AS TIMESTAMP) AS {shown}) FROM {rows}) AS {alias}"
    return compile_error(
        "CQ0408",
        f'ASOF JOIN compares times of one type, and "{local.name}" is {local.type}, "{instant.name}" {instant.type}',
        part.span,
        help=way,
    )


def _both_ways(sides: Sides, meant: Sequence[TimeBounds]) -> CompileError:
    """CQ0408 if several comparisons could drive the join."""
    first, last = (b.span for b in (meant[0], meant[-1]))
    return compile_error(
        "CQ0408",
        "it is not clear which of these comparisons ASOF JOIN uses",
        first.to(last),
        help=f"put that one in MATCH_CONDITION: ASOF JOIN … MATCH_CONDITION ({_comparison(sides)}) ON …",
    )


def _endless(sides: Sides, meant: TimeBounds) -> CompileError:
    """CQ0406 for left rows that may wait forever for the next right row."""
    endless = sides.right if sides.left.node.bounded else sides.left
    left, right = time_name(sides.left), time_name(sides.right)
    return compile_error(
        "CQ0406",
        f"left rows could wait forever for the next right row: {endless.title} has no end",
        meant.span,
        help=f"limit how much later it may be: AND {right} - {left} <= INTERVAL '5' SECOND",
    )


def _of_both_sides(part: Expr, sides: Sides) -> CompileError:
    """CQ0408 for a further condition on a pair of rows."""
    left, right = time_name(sides.left), time_name(sides.right)
    return compile_error(
        "CQ0408",
        "ASOF JOIN accepts only equalities and one comparison of event times as conditions on both sides",
        part.span,
        help=(
            "to test it on the row found, move it to WHERE",
            f"to match all rows of a time span, write JOIN … ON … AND {right} BETWEEN {left} - INTERVAL '5' SECOND "
            f"AND {left}",
        ),
    )
