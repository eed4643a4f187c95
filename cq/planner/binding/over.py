"""OVER: one Over operator for each partition and order, below the projection that uses their columns.

An order that is not the event time is that of a Sort below. An aggregate of all rows of a partition is a join with the
results of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import Span, compile_error
from cq.lang.error_places import MISSING
from cq.lang.expressions import Case, Coalesce, Column, Expr, IsNull, Literal, Or, transform
from cq.lang.schema import TimeAttribute
from cq.lang.types import BIGINT, BOOLEAN, Kind, Physical
from cq.planner.binding.calls import OverCall, Rank
from cq.planner.binding.frames import RUNNING_FRAME, Bounds
from cq.planner.binding.made import aggregate_call, column, compared, differ, integer
from cq.planner.binding.scope import Hole, Room
from cq.planner.binding.sorting import sorted_within
from cq.planner.operators import Aggregate, Frames, Join, Lag, OrderKey, Over
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode


def add_overs(node: LogicalNode, overs: Sequence[OverCall]) -> tuple[LogicalNode, Callable[[Expr], Expr]]:
    """`node` with the columns of all OVER calls added, and what puts those columns into their holes."""
    columns: dict[int, Column] = {}
    specs = dict.fromkeys((o.whole, o.partition, o.order, o.frame) for o in overs)
    by_arrival = [s for s in specs if not s[0] and (not s[2] or _time_of(node, s[2]) is not None)]
    by_arrival.sort(key=lambda s: s[3] is not None and not s[3].rows)  # rows wait for a range to end
    by_order = [s for s in specs if not s[0] and s not in by_arrival]
    arrived, sorts, number = node, 0, None
    for spec in (*by_arrival, *by_order, *(s for s in specs if s[0])):
        whole, partition, order, bounds = spec
        mine = [i for i, o in enumerate(overs) if (o.whole, o.partition, o.order, o.frame) == spec]
        span = overs[mine[0]].span
        if whole:
            node = _beside_groups(node, arrived, partition, [overs[i].call for i in mine], span)
            columns |= {i: column(node, len(node.schema) - len(mine) + n) for n, i in enumerate(mine)}
            continue
        time = _time_of(node, order)
        if order and time is None:
            if number is None and len([s for s in specs if s[2]]) > 1:
                node = _over(node, (), None, [aggregate_call("count", span=span)], span)
                number = OrderKey(column(node, len(node.schema) - 1), False, True)
            ties = (number,) if sorts and number is not None else ()  # an earlier sort has moved the rows
            node, sorts = sorted_within(node, partition, (*order, *ties), span), sorts + 1
        plain = {i: c for i in mine if not isinstance(c := overs[i].call, Rank)}
        ranks = {i: c for i in mine if isinstance(c := overs[i].call, Rank)}
        first = second = len(node.schema)
        if bounds is not None:
            node = _framed(node, partition, time, bounds, [overs[i].call for i in mine], span)
        elif ranks:
            node, second = _ranked(node, partition, time, order, list(plain.values()), list(ranks.values()), span)
        else:
            node = _over(node, partition, time, list(plain.values()), span)
        arrived = arrived if sorts else node
        columns |= {i: column(node, first + n) for n, i in enumerate(plain)}
        columns |= {i: column(node, second + n) for n, i in enumerate(ranks)}

    def fill(expr: Expr) -> Expr:
        return transform(expr, lambda e: columns[e.index] if isinstance(e, Hole) and e.room is Room.OVER else e)

    return node, fill


def _over(
    node: LogicalNode, partition: tuple[Expr, ...], time: TimeAttribute | None,
    calls: Sequence[Lag | AggregateCall], span: Span,
) -> Over:  # fmt: skip
    return Over(node, partition, time, tuple(calls), _names(node, [_name(c) for c in calls]), span=span)


def _framed(
    node: LogicalNode, partition: tuple[Expr, ...], time: TimeAttribute | None, bounds: Bounds,
    calls: Sequence[Lag | AggregateCall | Rank], span: Span,
) -> Frames:  # fmt: skip
    """Each row beside aggregates of the rows around it. They come in order where that is not of the event time."""
    aggregates = tuple(c for c in calls if isinstance(c, AggregateCall))
    names = _names(node, [_name(c) for c in aggregates])
    return Frames(node, partition, time, aggregates, names, frame=bounds.frame(time), span=span)


def _beside_groups(
    node: LogicalNode, arrived: LogicalNode, partition: tuple[Expr, ...],
    calls: Sequence[Lag | AggregateCall | Rank], span: Span,
) -> LogicalNode:  # fmt: skip
    """Each row beside the results of its partition, the last columns. arrived: the rows as they came, with the first
    columns of `node`. CQ0406 on an endless input."""
    if not node.bounded:
        raise compile_error(
            "CQ0406",
            "OVER of a whole partition would wait for the end of an unbounded input",
            span,
            help=(
                f"for a running result write {RUNNING_FRAME} after PARTITION BY",
                "or aggregate in a window: GROUP BY window_start, window_end",
            ),
        )
    aggregates = tuple(c for c in calls if isinstance(c, AggregateCall))
    assert len(aggregates) == len(calls), "only aggregates are about whole partitions"
    columns = [e.name for e in partition if isinstance(e, Column)]
    named = [
        pair
        for n, e in enumerate(partition, 1)
        for pair in _never_null(e, e.name if isinstance(e, Column) and columns.count(e.name) == 1 else f"key{n}")
    ]
    keys, key_names = tuple(k for k, _ in named), tuple(name for _, name in named)
    groups = Aggregate(arrived, keys, aggregates, key_names, _names(node, [_name(c) for c in aggregates]), span=span)
    return Join(node, groups, keys, tuple(column(groups, n) for n in range(len(keys))), span=span)


def _never_null(key: Expr, name: str) -> list[tuple[Expr, str]]:
    """Keys, with names, that are equal where this one is, NULL and NULL being equal: a join matches no NULL."""
    if not key.nullable:
        return [(key, name)]
    other = {Kind.BOOLEAN: False, Kind.ARRAY: ()}.get(key.type.kind, FILLERS[key.type.physical])
    filler = Literal(key.type, False, other)
    return [(Coalesce(key.type, False, (key, filler)), name), (IsNull(BOOLEAN, False, key), name + MISSING)]


FILLERS = {Physical.I64: 0, Physical.I128: 0, Physical.F64: 0.0, Physical.BYTES: ""}


def _ranked(
    node: LogicalNode, partition: tuple[Expr, ...], time: TimeAttribute | None, order: tuple[OrderKey, ...],
    plain: Sequence[Lag | AggregateCall], ranks: Sequence[Rank], span: Span,
) -> tuple[LogicalNode, int]:  # fmt: skip
    """The rows, which come in order, with the plain calls and then with their ranks; the column of the first rank.

    A row is the first of its peers when one of its keys differs from that of the row before. RANK is the number of the
    last such row, DENSE_RANK how many there have been.
    """
    numbered = len(node.schema) + len(plain)
    before = tuple(Lag(k.expr, 1, None, k.expr.type, True, span=span) for k in order)
    node = _over(node, partition, time, [*plain, aggregate_call("count", span=span), *before], span)
    number = column(node, numbered)
    parts = [compared("=", number, integer(1), span)]
    parts += [differ(k.expr, column(node, numbered + 1 + n), span) for n, k in enumerate(order)]
    begins = Or(BOOLEAN, False, tuple(parts), span=span)
    last = aggregate_call("max", Case(BIGINT, False, ((begins, number),), integer(0), span=span), span=span)
    calls = [aggregate_call("count", condition=begins, span=span) if r.dense else last for r in ranks]
    return _over(node, partition, None, calls, span), len(node.schema)


def _names(node: LogicalNode, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted names, numbered where the row has them already."""
    taken = list(node.schema.names)
    for name in wanted:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.append(unique)
    return tuple(taken[len(node.schema) :])


def _name(call: Lag | AggregateCall) -> str:
    return "lag" if isinstance(call, Lag) else call.function.name


def _time_of(node: LogicalNode, order: tuple[OrderKey, ...]) -> TimeAttribute | None:
    """The event time that is the whole order, ascending; None where the order is another."""
    if len(order) != 1 or order[0].descending or not isinstance(order[0].expr, Column):
        return None
    return node.schema.time_of(order[0].expr.index)
