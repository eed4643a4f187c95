"""Two relations side by side: temporal look-up in a keyed window result, and one row per element of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import Span, amount, compile_error
from cq.grammar import ast, inline
from cq.grammar.unsupported import SAME_PLACE
from cq.lang.expressions import (
    Call,
    Cast,
    Column,
    Expr,
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
from cq.planner.binding.joins.sides import condition, joined_relation, keyed, kind_of, side_by_side
from cq.planner.binding.joins.times import Sides
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation, Visible, visible_columns
from cq.planner.binding.time_attributes import no_event_time
from cq.planner.binding.traits import key_columns
from cq.planner.binding.type_errors import json_array_help
from cq.planner.operators import Filter, Project, TemporalJoin, Unnest, Windowed


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
