"""Two relations side by side: temporal look-up in a keyed window result, and one row per element of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import Span, amount, compile_error
from cq.grammar import ast, inline
from cq.grammar.unsupported import SAME_PLACE
from cq.lang.expressions import (
    Call,
    Cast,
    Coalesce,
    Column,
    Expr,
    Or,
    can_fail,
    columns_of,
    conjunction,
    conjuncts,
    remap,
)
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind
from cq.lang.value_text import write_duration
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.joins.mistakes import condition_span, refused_look_up, within
from cq.planner.binding.joins.times import Sides
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING, Relation, Visible, one_named, shifted, visible_columns
from cq.planner.binding.time_attributes import no_event_time
from cq.planner.binding.traits import key_columns
from cq.planner.binding.type_errors import json_array_help
from cq.planner.operators import Filter, JoinKind, Project, TemporalJoin, Unnest, Windowed
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.records import replace

ON = Clause("ON", advice="aggregate in a view first")
_OUTER = ("LEFT", "RIGHT", "FULL")


def temporal_join(
    node: ast.Join, left: Relation, right: Relation, as_of: ast.Expr, parameters: Mapping[str, ParameterValue]
) -> Relation:
    """`left [LEFT] JOIN right FOR SYSTEM_TIME AS OF left.ts ON …`: the right row with the key at that time."""
    if node.kind not in {"INNER", "LEFT"} or node.asof:
        raise refused_look_up(node)
    attribute = time_as_of(left, as_of, parameters)
    width = len(left.node.schema)
    both = side_by_side(left, right, width)
    on = condition(node, both, left, right, parameters)
    left_keys, right_keys, rest = keyed(conjuncts(on), width, constants=True)
    aggregate, keys = _keyed(left, right, as_of.span)
    chosen = _choose_keys(aggregate, keys, right_keys, right, condition_span(node))
    for i, (a, b) in enumerate(zip(left_keys, right_keys, strict=True)):
        if i not in chosen:
            moved = remap(b, {c: c + width for c in columns_of(b)})
            rest.append(_equality(on, a, moved))
    joined = TemporalJoin(
        left.node,
        right.node,
        tuple(left_keys[i] for i in chosen),
        tuple(right_keys[i] for i in chosen),
        conjunction(rest) if rest else None,
        kind_of(node),
        left_time=attribute,
        span=node.span,
    )
    return joined_relation(joined, node, left, right)


def time_as_of(left: Relation, as_of: ast.Expr, parameters: Mapping[str, ParameterValue]) -> TimeAttribute:
    """The event time named by AS OF. CQ0402 for anything else, CQ0502 for one that lags behind the watermark."""
    binder = ExprBinder(left, parameters, Clause("FOR SYSTEM_TIME AS OF"), SelectCalls({}))
    time = binder.bind(as_of)
    attribute = left.node.schema.time_of(time.index) if isinstance(time, Column) else None
    if attribute is None:
        name, index = (time.name, time.index) if isinstance(time, Column) else ("", None)
        raise no_event_time(left, name, index, as_of.span, "a temporal look-up")
    _demand_prompt(attribute, as_of.span, (_as_a_stream(left, attribute),))
    return attribute


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


def _equality(condition: Expr, left: Expr, right: Expr) -> Expr:
    """The equality of `condition` between these two, which turned out not to be on a key."""
    for part in conjuncts(condition):
        if isinstance(part, Call) and set(part.args) == {left, right}:
            return part
    raise AssertionError("an equality that was never written")


def _keyed(left: Relation, right: Relation, span: Span) -> tuple[Windowed, dict[int, int]]:
    """The window aggregate on the right, and which key each column is. CQ0408 if there is none."""
    found = key_columns(right.node)
    by_time = f"join the rows by time: JOIN … ON … AND {within(Sides(left, right))}"
    if found is None or not found[0].keys:
        raise compile_error(
            "CQ0408",
            f"{right.title} is not the result of windows grouped by a key, so FOR SYSTEM_TIME AS OF cannot look it up",
            right.span if right.span.line else span,
            help=(
                "make it a view that groups by a key in TUMBLE or HOP windows",
                f"or {by_time}" if right.node.schema.times else "",
            ),
        )
    if not right.node.schema.times:
        raise compile_error(
            "CQ0408",
            f"{right.title} does not select window_end, so FOR SYSTEM_TIME AS OF cannot look it up",
            right.span if right.span.line else span,
            help="add window_end to its select list",
        )
    for time in right.node.schema.times:
        _demand_prompt(time, right.span if right.span.line else span, (by_time,))
    return found


def _choose_keys(
    aggregate: Windowed, keys: dict[int, int], right_keys: list[Expr], right: Relation, span: Span
) -> list[int]:
    """Which equalities are on the group keys, one for each key, in key order. CQ0408 when a key has none."""
    chosen = []
    for key, name in enumerate(aggregate.key_names):
        match = next((i for i, e in enumerate(right_keys) if keys.get(_bare_column(e)) == key), None)
        if match is None:
            raise compile_error(
                "CQ0408",
                f'{right.title} has one row for each value of "{name}", but ON does not compare it for equality',
                span,
                help=f"group keys: {', '.join(aggregate.key_names)}; select each, and compare each for equality in ON",
            )
        chosen.append(match)
    return chosen


def _bare_column(expr: Expr) -> int:
    """The column that an equality is on, through a widening cast; -1 when it is computed."""
    while isinstance(expr, Cast):
        expr = expr.arg
    return expr.index if isinstance(expr, Column) else -1


def unnest(node: ast.Unnest, left: Relation, parameters: Mapping[str, ParameterValue], outer: bool = False) -> Relation:
    """`left, UNNEST(array) AS alias(column)`: the left row once for each element; if `outer`, at least once."""
    if len(node.arrays) != 1:
        help = ("unnest one", f"or {SAME_PLACE}")
        raise compile_error("CQ0501", "UNNEST of several arrays is not supported yet", node.span, help=help)
    array = ExprBinder(left, parameters, Clause("UNNEST"), SelectCalls({})).bind(node.arrays[0])
    if array.type.kind is not Kind.ARRAY:
        raise compile_error(
            "CQ0302",
            f"UNNEST takes an array, not {array.type}",
            node.arrays[0].span,
            label=str(array.type),
            help=_array_ways(array),
        )
    names = [*node.columns]
    if len(names) > 1 + node.ordinality:
        raise compile_error(
            "CQ0307", f"UNNEST has {len(names)} names for {amount(1 + node.ordinality, 'column')}", node.span
        )
    element = names[0] if names else (node.alias or "unnest")
    ordinality = (names[1] if len(names) > 1 else "ordinality") if node.ordinality else None
    result = Unnest(left.node, array, element, ordinality, outer, span=node.span)
    added = visible_columns(result, node.alias)[len(left.node.schema) :]
    columns: tuple[Visible, ...] = (*left.columns, *added)
    return Relation(result, columns, f"{left.title} with UNNEST", span=left.span)


def _array_ways(value: Expr) -> tuple[str, ...]:
    """How a text becomes the array that UNNEST takes."""
    if value.type.kind is not Kind.VARCHAR:
        return ()
    if not isinstance(value, Column):
        return ("SPLIT(text, ' ') creates an array of words",)
    name = inline.name(value.name)
    return (f"SPLIT({name}, ' ') creates an array of words", json_array_help(name))


def _demand_prompt(time: TimeAttribute, span: Span, ways: Sequence[str]) -> None:
    """CQ0502 for a time that lags behind the watermark: by then, the row to look up has been replaced."""
    if time.lag_us:
        raise compile_error(
            "CQ0502",
            "a temporal look-up cannot use the times of a session or of a join of streams yet: "
            "they lag behind the watermark",
            span,
            help=ways,
        )


def _as_a_stream(left: Relation, time: TimeAttribute) -> str:
    """How rows whose time lags behind the watermark can use a look-up."""
    below = left.node
    while isinstance(below, Project | Filter):
        below = below.input
    way = "write this result to a file and read it as a stream of its own: its rows "
    if isinstance(below, Windowed):
        name = inline.name(left.node.schema.names[time.column])
        return way + f"are in the order of {name}, so declare WATERMARK FOR {name}"
    return way + f"are out of order, so declare WATERMARK FOR ts AS ts - INTERVAL '{write_duration(time.lag_us)}'"
