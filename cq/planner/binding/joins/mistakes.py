"""Errors about joins, placed at the shortest text at fault, with the nearest form that works."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import NOWHERE, CompileError, Diagnostic, Label, Span, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Call, Column, Expr, columns_of, walk
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind, common_type
from cq.lang.value_text import write_duration
from cq.planner.binding.joins.times import FLIPPED, UNBOUNDED_US, Sides, TimeBounds, bounds_of, constant_us, moves
from cq.planner.binding.literals import in_days
from cq.planner.binding.scope import Relation, Visible
from cq.planner.binding.time_attributes import first_time, no_event_time
from cq.planner.binding.traits import key_columns
from cq.planner.operators.joined import SOME, UntimedJoin, between, may_come_before, place_before
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import dataclass, replace

LONGEST_SHOWN, LONGEST_SIDE = 120, 40  # characters of a join, and of one of its sides, that a help line repeats
WIDE = "INTERVAL '1' HOUR"
INTO_A_FILE = 'write the rows of the side that ends to a file first, cq run "SELECT …" -o FILE'
FROM_A_FILE = "read its rows from an input that ends, such as a file"
THROUGH_A_FILE = f"{INTO_A_FILE}, and join that file"
_MONTHS = {"add_months", "subtract_months"}
_JOIN = "a join of endless inputs without an equality of its sides"


@dataclass(frozen=True, slots=True)
class Written:
    """The condition of a join or of a sub-query in the text. on: of ON or WHERE.  using: NATURAL or USING if it stands
    in their place.  span: where the condition is, or would be."""

    on: ast.Expr | None
    span: Span
    using: str = ""


# ------------------------------------------------------------------------------------------------------------- places


def written_in(node: ast.Join) -> Written:
    """The condition of a join."""
    using = "" if node.on is not None else "NATURAL" if node.natural else "USING"
    return Written(node.on, condition_span(node), using)


def condition_span(node: ast.Join) -> Span:
    """The place of a join's condition."""
    if node.on is not None:
        return node.on.span
    return node.using_span if node.using else node.right.span


def keyword_span(node: ast.Join) -> Span:
    """The keywords that give the kind of a join: `RIGHT`, `ASOF LEFT`; the right side if there are none."""
    return node.kind_span if node.kind_span.column < node.kind_span.end_column else node.right.span


# -------------------------------------------------------------------------------------------------------------- names


def time_name(relation: Relation, time: TimeAttribute | None = None) -> str:
    """The event time of a relation as its query writes it; one of them if it has several."""
    times = [t.column for t in (relation.node.schema.times if time is None else (time,))]
    shown = [c for c in relation.columns if isinstance(c.expr, Column) and c.expr.index in times]
    for c in sorted(shown, key=lambda c: c.hidden):
        return _column_text(c)
    return "ts"


def within(sides: Sides) -> str:
    """A condition on the event times of both sides with which the join can run."""
    left, right = time_name(sides.left), time_name(sides.right)
    return between(left, right)


def _look_up_way(node: ast.Join, sides: Sides) -> str:
    """How to look up the latest row of a key, if the right side has such rows; else empty."""
    found, times = key_columns(sides.right.node), sides.right.node.schema.times
    right = node.right
    if not isinstance(right, ast.TableRef) or found is None or not found[0].keys or not times or times[0].lag_us:
        return ""
    text = f"LEFT JOIN {inline.name(right.name)} FOR SYSTEM_TIME AS OF {time_name(sides.left)}{inline.alias(right)}"
    condition = inline.join_condition(node)
    condition = condition if len(text + condition) <= LONGEST_SHOWN else " ON …"
    return f"to look up the latest row of a key ({', '.join(found[0].key_names)}), write {text}{condition}"


# ------------------------------------------------------------------------------------------------- joins not built yet


def refused_look_up(node: ast.Join) -> CompileError:
    """CQ0501 for FOR SYSTEM_TIME AS OF in a join that is neither JOIN nor LEFT JOIN."""
    kind = "ASOF JOIN" if node.asof else f"{node.kind} JOIN"
    return compile_error(
        "CQ0501",
        f"FOR SYSTEM_TIME AS OF works with JOIN and LEFT JOIN, not with {kind}",
        keyword_span(node),
        help="write LEFT JOIN: each left row is joined with one right row, or with NULLs",
    )


def refused_unnest(node: ast.Join) -> CompileError:
    """CQ0501 for a join with UNNEST that is neither CROSS JOIN nor [LEFT] JOIN … ON TRUE."""
    if node.on is not None and node.kind in {"INNER", "LEFT"}:
        return compile_error(
            "CQ0501",
            "a join with UNNEST accepts no condition other than TRUE",
            node.on.span,
            help=_filtered_first(node, node.on)
            if node.kind == "LEFT"
            else "write CROSS JOIN UNNEST(…), and the condition in WHERE",
        )
    return compile_error(
        "CQ0501",
        f"{node.kind} JOIN with UNNEST is not supported yet",
        keyword_span(node),
        help="write CROSS JOIN UNNEST(…), or LEFT JOIN UNNEST(…) ON TRUE, which keeps rows whose array is empty",
    )


def _filtered_first(node: ast.Join, condition: ast.Expr) -> str:
    """How a LEFT JOIN keeps each row of which no element passes: it joins the elements that do by a key."""
    left, right = node.left, node.right
    rows = inline.qualifier(left)
    key = f"{rows}.k" if rows else "k"
    elements = inline.name(right.alias) if isinstance(right, ast.Unnest) and right.alias is not None else "d"
    test = inline.expr(condition)
    query = (
        f"SELECT {key}, {elements}.* FROM {_shown(left)} CROSS JOIN {inline.relation(right)} "
        f"WHERE {test if len(test) <= LONGEST_SIDE else '…'}"
    )
    return (
        f"join the elements that pass by a key of the left rows, here k: LEFT JOIN ({query}) AS {elements} "
        f"ON {elements}.k = {key}"
    )


def endless_cross(node: ast.Join, sides: Sides) -> CompileError:
    """CQ0408 for all pairs of two endless inputs."""
    left, right = _shown(node.left), _shown(node.right)
    return compile_error(
        "CQ0408",
        "a join of two endless inputs must compare its sides with =",
        node.right.span,
        help=(
            f"write {left} JOIN {right} ON {_equality(sides)}",
            f"or limit how far apart two rows may be: … ON {within(sides)}" if _timed(sides) else "",
        ),
    )


def _equality(sides: Sides) -> str:
    """An equality of the sides: of columns with the same name, if there are any."""
    left, right = ([c for c in s.columns if not (c.hidden or c.needs_qualifier)] for s in (sides.left, sides.right))
    for a in left:
        for b in right:
            if a.name == b.name and common_type(a.expr.type, b.expr.type) and not a.expr.type.is_timestamp:
                return f"{_column_text(a)} = {_column_text(b)}"
    return "a.k = b.k"


def _column_text(column: Visible) -> str:
    text = inline.name(column.name)
    return f"{inline.name(column.qualifier)}.{text}" if column.qualifier else text


def _timed(sides: Sides) -> bool:
    """Whether rows of both sides have an event time."""
    return bool(sides.left.node.schema.times and sides.right.node.schema.times)


def _shown(node: ast.Relation) -> str:
    """A relation in a help line: as written, unless that is long."""
    text = f"({inline.relation(node)})" if isinstance(node, ast.Join) else inline.relation(node)
    return text if len(text) <= LONGEST_SIDE else "…"


def endless_outer(node: ast.Join, sides: Sides, bounds: TimeBounds, others: Sequence[Expr]) -> CompileError:
    """CQ0406 for an outer join that would keep rows without a match forever."""
    endless = sides.right if sides.left.node.bounded else sides.left
    if any(s.node.bounded and not s.node.schema.times for s in (sides.left, sides.right)):
        looks_up = sides.right.node.bounded and node.kind != "FULL"
        by_time: tuple[str, ...] = (THROUGH_A_FILE if looks_up else FROM_A_FILE,)
    else:
        by_time = missing_bound(written_in(node), sides, bounds, others).diagnostics[0].help
    look_up = _look_up_way(node, sides) if node.kind == "LEFT" else ""
    ways = (look_up, *(f"or, to join rows by time, {way}" for way in by_time)) if look_up else by_time
    untimed = without_watermark(sides.right.node, sides.left.node) if node.kind != "FULL" else ""
    ways = (*ways, f"or {untimed}") if untimed else ways
    return compile_error(
        "CQ0406",
        f"rows without a match would never leave this {node.kind} JOIN: {endless.title} has no end",
        keyword_span(node),
        help=ways,
    )


def without_watermark(first: LogicalNode, then: LogicalNode) -> str:
    """The way out for rows of sources with a WATERMARK that would come first without one; "" if they would not."""
    if not may_come_before(first, then, untimed=True):
        return ""
    timed = next((s for s in sources_of(topological((first,))) if s.event_time is not None), None)
    return f'declare "{timed.name}" without a WATERMARK: its rows then come first' if timed is not None else ""


def source_to_move(join: UntimedJoin) -> tuple[SourceDef, SourceDef] | None:
    """A source, and the one before which it must come so that no left row waits for right rows: those of the join
    itself, or of one on its right."""
    joins = [join, *(n for n in topological((join.right,)) if isinstance(n, UntimedJoin) and n.emits_at_end)]
    for j in joins:
        if (at := place_before(j.right, j.left)) is not None:
            return sources_of(topological((j.right,)))[-1], at
    return None


def rows_that_never_leave(join: UntimedJoin, later: SourceDef, before: SourceDef, in_any_order: bool) -> CompileError:
    """CQ0406 for left rows without a match that would wait for right rows from an endless input, because one source
    comes after another. in_any_order: they would wait in other orders, too."""
    endless = next(s for s in sources_of(topological((join.left,))) if not s.bounded)
    whom = "it" if before is endless else f'"{before.name}"'
    return compile_error(
        "CQ0406",
        f'rows without a match would never leave: "{endless.name}" has no end, and "{later.name}" comes after {whom}',
        join.span,
        help=THROUGH_A_FILE
        if in_any_order
        else f'declare "{later.name}" before "{before.name}": its rows then come first',
    )


def side_that_never_comes(side: LogicalNode, other: LogicalNode, span: Span) -> CompileError:
    """CQ0406 for a side whose rows come when all inputs have ended (groups, sorted rows …) beside an endless one."""
    endless = next(s for s in sources_of(topological((other,))) if not s.bounded)
    cause = f"this join would never return a row: {_known_at_end(side, endless)}"
    return compile_error("CQ0406", cause, span, help=THROUGH_A_FILE)


def rows_that_wait(node: LogicalNode, endless: SourceDef) -> Diagnostic:
    """The warning that rows beside an endless input come when all inputs have ended."""
    cause = f"these rows are not emitted while the query runs: {_known_at_end(node, endless)}"
    return Diagnostic("CQ0406", cause, node.span, severity="warning", help=("run this part as a query of its own",))


def _known_at_end(node: LogicalNode, endless: SourceDef) -> str:
    read = " and ".join(f'"{s.name}"' for s in sources_of(topological((node,))))
    told = f"what is computed from {read or 'constants'} is known only when all inputs have ended"
    return f'{told}, but "{endless.name}" has no end'


# ---------------------------------------------------------------------------------------------------- missing bounds


def missing_bound(written: Written, sides: Sides, bounds: TimeBounds, others: Sequence[Expr]) -> CompileError:
    """Why a join of two streams has no lower or no upper bound.

    others: the conditions that are neither such a bound nor on a key; one of them may have been meant as a bound.
    """
    for side in (sides.left, sides.right):
        if not side.node.schema.times:
            return _without_time(written, side, sides, others)
    needs_lower, needs_upper = bounds.lower_us == -UNBOUNDED_US, bounds.upper_us == UNBOUNDED_US
    for part in others:
        if isinstance(part, Call) and part.function.name in FLIPPED and sides.meet_in(part):
            found = _unfit(part, sides)
            needed = needs_upper if _is_upper(part, sides) else needs_lower
            if found is not None and (needed or part.args[0].type.is_interval):
                return found
    return _unbounded(written, sides, bounds, others)


def _unbounded(written: Written, sides: Sides, bounds: TimeBounds, others: Sequence[Expr]) -> CompileError:
    needs_lower, needs_upper = bounds.lower_us == -UNBOUNDED_US, bounds.upper_us == UNBOUNDED_US
    left, right = time_name(sides.left), time_name(sides.right)
    if needs_lower and needs_upper:
        cause, bound = f"how far apart {left} and {right} may be", within(sides)
    elif needs_upper:
        cause, bound = f"how much later than {left} {right} may be", f"{right} <= {left} + {SOME}"
    else:
        cause, bound = f"how much earlier than {left} {right} may be", f"{right} >= {left} - {SOME}"
    if written.using:
        way = f"write ON in place of {written.using}, and add AND {bound}"
    elif written.on is None:
        way = f"add WHERE {bound}"
    elif inline.level(written.on) < inline.AND:
        condition = inline.expr(written.on)
        condition = condition if len(condition) <= LONGEST_SHOWN else "…"
        way = f"put the condition in parentheses: ({condition}) AND {_widest(others, sides) or bound}"
    else:
        way = f"add AND {bound}"
    span = bounds.span if bounds.span != NOWHERE else written.span
    return compile_error("CQ0408", f"{_JOIN} must limit {cause}", span, help=way)


def _widest(others: Sequence[Expr], sides: Sides) -> str:
    """Time bounds that contain all that conditions below OR or NOT say of the first pair of times they name; else
    empty."""
    said = [b for part in others for e in walk(part) if (b := bounds_of(e, sides)) is not None]
    said = [b for b in said if b.times == said[0].times]
    lowest = min((b.lower_us for b in said if b.lower_us > -UNBOUNDED_US), default=None)
    highest = max((b.upper_us for b in said if b.upper_us < UNBOUNDED_US), default=None)
    if lowest is None or highest is None or lowest > highest or said[0].times is None:
        return ""
    left_time, right_time = said[0].times
    left, right = time_name(sides.left, left_time), time_name(sides.right, right_time)
    shift_us = left_time.shift_us - right_time.shift_us
    return f"{right} BETWEEN {_moved(left, lowest + shift_us)} AND {_moved(left, highest + shift_us)}"


def bounds_apart(sides: Sides, bounds: TimeBounds, other: TimeBounds) -> CompileError:
    """CQ0408 for two bounds about different event times of one side. other: the one that is not like `bounds`.

    The wider bound adds how far apart the times of one row may be.
    """
    assert bounds.times is not None and other.times is not None
    apart = [
        (relation, mine, its)
        for relation, mine, its in zip((sides.left, sides.right), bounds.times, other.times, strict=True)
        if mine != its
    ]
    relation, mine, its = apart[0]
    left_time, right_time = bounds.times
    left, right = time_name(sides.left, left_time), time_name(sides.right, right_time)
    slack_us = sum(t.lag_us for r, _, _ in apart for t in r.node.schema.times)
    shift_us = left_time.shift_us - right_time.shift_us  # of the columns against the event times
    if bounds.upper_us == UNBOUNDED_US:
        wider = f"{right} <= {_moved(left, other.upper_us + slack_us + shift_us)}"
    else:
        wider = f"{right} >= {_moved(left, other.lower_us - slack_us + shift_us)}"
    return compile_error(
        "CQ0408",
        f"both bounds of a join must be about one event time of {relation.title}: "
        f"{time_name(relation, mine)} or {time_name(relation, its)}",
        other.span,
        help=f"keep this condition, and add a wider one about {time_name(relation, mine)}: AND {wider}",
    )


def lacks_bounds(node: ast.Join, error: CompileError) -> bool:
    """Whether the error is about missing bounds, in this join of two streams and not one below it."""
    look_up = isinstance(node.right, ast.TableRef) and node.right.as_of is not None
    if node.kind not in {"INNER", "LEFT"} or node.asof or look_up or isinstance(node.right, ast.Unnest):
        return False
    return condition_span(node).holds(error.diagnostics[0].span) and [d.code for d in error.diagnostics] == ["CQ0408"]


def bounds_in_where(node: ast.Join, error: CompileError, parts: Sequence[ast.Expr]) -> CompileError:
    """The error of a join without bounds, if the conditions `parts` of WHERE are the bounds it lacks."""
    text = inline.conjunction(parts)
    text = text if len(text) <= LONGEST_SHOWN else "…"
    if node.on is None:
        way = f"write ON in place of USING, and move the bounds from WHERE to it: AND {text}"
    else:
        whole = "the condition of ON in parentheses, and " if inline.level(node.on) < inline.AND else ""
        way = f"{'put ' if whole else ''}{whole}move the bounds from WHERE to ON: AND {text}"
    first = error.diagnostics[0]
    spans = parts[0].span.to(parts[-1].span)
    return CompileError(replace(first, help=(way,), labels=(Label(spans, "belongs in ON"),)))


def _moved(time: str, by_us: int) -> str:
    """A time plus or minus a constant, as written in a query."""
    if not by_us:
        return time
    return f"{time} {'+' if by_us > 0 else '-'} INTERVAL '{write_duration(abs(by_us))}'"


def excluding_bounds(sides: Sides, bounds: TimeBounds) -> CompileError:
    """CQ0408 for bounds that no two rows satisfy."""
    left, right = time_name(sides.left), time_name(sides.right)
    least, most = write_duration(bounds.lower_us), write_duration(bounds.upper_us)
    return compile_error(
        "CQ0408",
        f"no two rows match: {right} - {left} must be at least {least} and at most {most}",
        bounds.span,
        help=f"write the lower bound first: {within(sides)}",
    )


def _without_time(written: Written, side: Relation, sides: Sides, others: Sequence[Expr]) -> CompileError:
    """A side has no event time at all: reported at the column of it that the condition uses as one."""
    columns = (e for part in others for e in walk(part) if isinstance(e, Column) and sides.of(e.index)[0] is side)
    meant = next((e for e in columns if e.type.is_timestamp), None)
    if meant is not None:
        return no_event_time(side, meant.name, sides.of(meant.index)[1], meant.span, _JOIN)
    span = side.span if side.span != NOWHERE else written.span
    return no_event_time(side, *first_time(side), span, _JOIN)


def _is_upper(part: Call, sides: Sides) -> bool:
    """Whether a comparison bounds how late the right row may be, not how early."""
    sign, columns = part.function.name, columns_of(part.args[0])
    return (sign if max(columns, default=0) >= sides.width else FLIPPED[sign]) in {"<", "<="}


def _unfit(part: Call, sides: Sides) -> CompileError | None:
    """Why a comparison of the two sides is not a bound; None if it does not compare times."""
    if any(a.type.is_interval for a in part.args):
        return _difference(part, sides)
    if any(not a.type.is_timestamp for a in part.args):
        return None
    found = (_unfit_time(a, part, sides) for a in part.args)
    return next((e for e in found if e is not None), None)


def _difference(part: Expr, sides: Sides) -> CompileError:
    return compile_error(
        "CQ0408",
        "the bounds of a join must compare the event times themselves, or their difference with a constant interval",
        part.span,
        help=f"write {within(sides)}",
    )


def _unfit_time(e: Expr, part: Call, sides: Sides) -> CompileError | None:
    """What is wrong with one side of a comparison of times."""
    match e:
        case Column(index=index, name=name):
            relation, own = sides.of(index)
            known = relation.node.schema.time_of(own) is not None
            return None if known else no_event_time(relation, name, own, e.span, _JOIN)
        case Call(function=f, args=args) if f.name in {"+", "-"} and len(args) == 2:
            for moved, by in moves(f.name, args):
                if moved.type.is_timestamp:
                    return _unfit_time(moved, part, sides) or _unfit_offset(by, part, sides)
        case Call(function=f, args=(a, b)) if f.name in _MONTHS:
            by = a if a.type.kind is Kind.INTERVAL_MONTH else b
            return _months(by, part)
    return compile_error(
        "CQ0408",
        "a bound must be an event time, plus or minus a constant interval",
        e.span if e.span != NOWHERE else part.span,
        help=_wider_way(part, sides),
    )


def _unfit_offset(by: Expr, part: Call, sides: Sides) -> CompileError | None:
    if constant_us(by) is not None:
        return None
    return compile_error(
        "CQ0408",
        "the bound of a join must be a constant interval: it decides how long rows are kept",
        by.span if by.span != NOWHERE else part.span,
        label="not a constant",
        help=_wider_way(part, sides),
    )


def _wider_way(part: Call, sides: Sides) -> str:
    left, right = time_name(sides.left), time_name(sides.right)
    bound = f"{right} <= {left} + {WIDE}" if _is_upper(part, sides) else f"{right} >= {left} - {WIDE}"
    return f"keep this condition, and add a wider one with a constant: AND {bound}"


def _months(by: Expr, part: Expr) -> CompileError:
    return compile_error(
        "CQ0408",
        "the bound of a join cannot be in months or years: they differ in length",
        by.span if by.span != NOWHERE else part.span,
        label=str(by.type),
        help=f"write it in days: {in_days(by)}",
    )
