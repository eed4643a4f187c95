"""OVER: one operator for each partition, order and frame, below the projection that uses its columns.

An order other than the event time needs a Sort below. An aggregate of all rows of a partition is a join with the
results of groups or, in partitions that close with a window, a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from cq.errors import Span, compile_error
from cq.lang.error_places import MISSING
from cq.lang.expressions import Case, Coalesce, Column, Expr, IsNull, Literal, Or, transform
from cq.lang.schema import TimeAttribute
from cq.lang.types import BIGINT, BOOLEAN, TIMESTAMP, DataType, some_value
from cq.planner.binding.built_expressions import aggregate_call, column, compared, differ, integer
from cq.planner.binding.calls import OverCall, Rank
from cq.planner.binding.frames import RUNNING_FRAME, WrittenFrame, is_ranged, walks
from cq.planner.binding.scope import Hole, Room, holes_of
from cq.planner.binding.sorting import closing_times, sorted_within
from cq.planner.operators import Aggregate, Frame, Frames, Join, JoinKind, Lag, OrderKey, Over, Unit
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace

Spec = tuple[tuple[Expr, ...], tuple[OrderKey, ...], bool, WrittenFrame | None]
"""What the calls computed by one operator share: partition, order, whether they cover the whole partition, frame."""
Call = Lag | AggregateCall | Rank


def add_overs(node: LogicalNode, overs: Sequence[OverCall]) -> tuple[LogicalNode, Callable[[Expr], Expr]]:
    """`node` with the columns of all OVER calls added, and the function that puts those columns into their holes.

    Calls with others in their arguments are added after these.
    """
    columns: dict[int, Column] = {}

    def fill(expr: Expr) -> Expr:
        return transform(expr, lambda e: columns[e.index] if isinstance(e, Hole) and e.room is Room.OVER else e)

    specs = dict.fromkeys((o.partition, o.order, o.whole, o.frame) for o in overs)
    orders = list(dict.fromkeys(s[:2] for s in specs))
    ordered = {s[:2] for s in specs if not s[2] and (s[1] or _turn(node, s) > AT_ITS_TIME)}
    levels = _levels(overs)
    rows = _Rows(node, node, several=len(ordered) > 1 or (any(levels) and bool(ordered)))
    for level in range(max(levels, default=-1) + 1):
        for spec in sorted(specs, key=lambda s: (_turn(node, s), orders.index(s[:2]))):
            mine = [
                i for i, o in enumerate(overs)
                if (o.partition, o.order, o.whole, o.frame) == spec and levels[i] == level
            ]  # fmt: skip
            if mine:
                calls = [_filled(overs[i], fill) for i in mine]
                indices = rows.add(spec, calls, overs[mine[0]].span, above_others=level > 0)
                columns |= {i: column(rows.node, index) for i, index in zip(mine, indices, strict=True)}
    return rows.node, fill


def _levels(overs: Sequence[OverCall]) -> list[int]:
    """The depth of nested calls in the arguments of each; the inner calls of a call come before it."""
    levels: list[int] = []
    for over in overs:
        inner = [h.index for e in _arguments(over) for h in holes_of(e, Room.OVER)]
        levels.append(max((levels[i] + 1 for i in inner), default=0))
    return levels


def _arguments(over: OverCall) -> Sequence[Expr]:
    if isinstance(over.call, AggregateCall):
        return over.call.expressions
    return (over.call.arg,) if isinstance(over.call, Lag) else ()


def _filled(over: OverCall, fill: Callable[[Expr], Expr]) -> Call:
    """The call with columns in the holes of its inner calls."""
    if isinstance(over.call, AggregateCall):
        return over.call.map(fill)
    return replace(over.call, arg=fill(over.call.arg)) if isinstance(over.call, Lag) else over.call


AT_ONCE, AT_ITS_TIME, LATER, SORTED, WHOLE = range(5)


def _turn(node: LogicalNode, spec: Spec) -> int:
    """The order in which specs are added: those first that keep the rows in order of arrival."""
    _, order, whole, bounds = spec
    if whole:
        return WHOLE
    time = _time_of(node, order)
    if (order and time is None) or (bounds is not None and not bounds.rows and not bounds.is_of_time(time)):
        return SORTED
    if bounds is None or bounds.ends_by_the_row:
        return AT_ONCE
    return AT_ITS_TIME if not bounds.rows and not bounds.end.unbounded else LATER


@dataclass(slots=True)
class _Rows:
    """The rows of a SELECT, to which calls are added, one spec after another.

    arrived: the rows in order of arrival, with the first columns of `node`.  several: more than one order is needed.
    order: the partition and order of the rows now, if not the order of arrival.  sorted: whether a Sort made that
    order.  number: the row's arrival number, once rows have been reordered.
    """

    node: LogicalNode
    arrived: LogicalNode
    several: bool
    order: tuple[tuple[Expr, ...], tuple[OrderKey, ...]] | None = None
    sorted: bool = False
    number: OrderKey | None = None

    def add(self, spec: Spec, calls: Sequence[Call], span: Span, above_others: bool) -> list[int]:
        """Add the calls of a spec; return their columns. above_others: they read columns of other calls, and the order
        of their rows does not matter."""
        partition, order, whole, bounds = spec
        if whole:
            arrived = self.node if above_others else self.arrived
            self.node = _of_whole_partitions(self.node, arrived, partition, calls, span)
            return list(range(len(self.node.schema) - len(calls), len(self.node.schema)))
        if bounds is not None and not bounds.rows and not order:
            raise compile_error(
                "CQ0302",
                f"{bounds.unit} needs an ORDER BY in OVER: without one all rows are peers",
                bounds.span,
                help=f"write OVER (PARTITION BY … ORDER BY … {bounds.unit} …)",
            )
        time = self._in_order(partition, order, _turn(self.node, spec) == SORTED, span)
        first = len(self.node.schema)
        if bounds is not None:
            self._frame(spec, time, calls, span)
            indices = list(range(len(self.node.schema) - len(calls), len(self.node.schema)))
        elif any(isinstance(c, Rank) for c in calls):
            plain = [c for c in calls if not isinstance(c, Rank)]
            ranks = [c for c in calls if isinstance(c, Rank)]
            self.node, second = _ranked(self.node, partition, time, order, plain, ranks, span)
            after, before = count(second), count(first)
            indices = [next(after) if isinstance(c, Rank) else next(before) for c in calls]
        else:
            plain = [c for c in calls if not isinstance(c, Rank)]
            self.node = _over(self.node, partition, time, plain, span)
            indices = list(range(first, first + len(calls)))
        self.arrived = self.arrived if self.order is not None else self.node
        return indices

    def _in_order(
        self, partition: tuple[Expr, ...], order: tuple[OrderKey, ...], must_sort: bool, span: Span
    ) -> TimeAttribute | None:
        """Put the rows of each partition in this order. Return its event time, if rows wait for that."""
        if self.order == (partition, order) and (self.sorted or not must_sort):
            return None
        if self.order is None and not must_sort:
            return _time_of(self.node, order)
        self._remember(span)
        ties = (self.number,) if self.order is not None and self.number is not None else ()
        self.node = sorted_within(self.node, partition, (*order, *ties), span)
        self.order, self.sorted = (partition, order), True
        return None

    def _remember(self, span: Span) -> None:
        """Number the rows before they are reordered, if others need them in order of arrival."""
        if self.number is None and self.order is None and self.several:
            self.node = _over(self.node, (), None, [aggregate_call("count", span=span)], span)
            self.number = OrderKey(column(self.node, len(self.node.schema) - 1), False, True)

    def _frame(self, spec: Spec, time: TimeAttribute | None, calls: Sequence[Call], span: Span) -> None:
        """Each row beside aggregates of the rows around it."""
        partition, order, _, bounds = spec
        assert bounds is not None
        key: OrderKey | None = None
        if bounds.rows:
            frame = bounds.frame(Unit.ROWS, None)
        elif time is not None and bounds.is_of_time(time):
            frame = bounds.frame(Unit.TIME, TIMESTAMP)
        else:
            key, fits = self._key(partition, order, bounds, span)
            frame = bounds.frame(Unit.KEY, fits)
        held = key is not None or frame.end is None or (self.sorted and frame.unit is Unit.ROWS and frame.end > 0)
        moves = held or (frame.unit is Unit.ROWS and frame.end is not None and frame.end > 0)
        times = closing_times(self.node, partition) if held else ()
        if held and not times and not self.node.bounded:
            raise compile_error(
                "CQ0406",
                "a frame to the last row of the partition would wait for the end of an unbounded input",
                bounds.span,
                help=("end it at the CURRENT ROW", "or a few rows after it: ROWS BETWEEN CURRENT ROW AND 5 FOLLOWING"),
            )
        if moves and not self.sorted:
            self._remember(span)
        aggregates = tuple(c for c in calls if isinstance(c, AggregateCall))
        assert len(aggregates) == len(calls), "only aggregates have frames"
        peer = self._peer(partition, order, span) if bounds.rows and bounds.without_peers else None
        names = _names(self.node, [_name(c) for c in aggregates])
        self.node = Frames(
            self.node, partition, time, aggregates, names, frame=frame, held=held, times=times, key=key,
            walks=bounds.walks, peer=peer, span=span,
        )  # fmt: skip
        if moves and not self.sorted:
            self.order = (partition, order)

    def _key(
        self, partition: tuple[Expr, ...], order: tuple[OrderKey, ...], bounds: WrittenFrame, span: Span
    ) -> tuple[OrderKey, DataType | None]:
        """The key of a range, and the type of its distances. If only peers matter they are numbered."""
        if not bounds.of_peers:
            key = bounds.key(order)
            return key, key.expr.type
        if bounds.unit == "RANGE" and len(order) == 1 and is_ranged(order[0].expr):
            return order[0], order[0].expr.type
        return OrderKey(self._group(partition, order, span), False, True), None

    def _peer(self, partition: tuple[Expr, ...], order: tuple[OrderKey, ...], span: Span) -> Expr:
        """A one-word number that is equal exactly for peers of a row. Without an order all rows are peers."""
        if not order:
            return integer(0)
        first = order[0].expr
        plain = len(order) == 1 and is_ranged(first) and not first.nullable
        return first if plain or _time_of(self.node, order) is not None else self._group(partition, order, span)

    def _group(self, partition: tuple[Expr, ...], order: tuple[OrderKey, ...], span: Span) -> Expr:
        """A new column: the ordinal of the row's peer group in the order, in which the rows are."""
        self.node, index = _ranked(self.node, partition, None, order, (), [Rank(True)], span)
        return column(self.node, index)


def _over(
    node: LogicalNode, partition: tuple[Expr, ...], time: TimeAttribute | None,
    calls: Sequence[Lag | AggregateCall], span: Span,
) -> Over:  # fmt: skip
    return Over(node, partition, time, tuple(calls), _names(node, [_name(c) for c in calls]), span=span)


def _of_whole_partitions(
    node: LogicalNode, arrived: LogicalNode, partition: tuple[Expr, ...], calls: Sequence[Call], span: Span
) -> LogicalNode:  # fmt: skip
    """Each row beside aggregates of its partition, as the last columns. arrived: as in _Rows."""
    times = closing_times(node, partition)
    aggregates = tuple(c for c in calls if isinstance(c, AggregateCall))
    if not times:
        return _beside_groups(node, arrived, partition, calls, span)
    names, frame = _names(node, [_name(c) for c in aggregates]), Frame(None, None, Unit.ROWS)
    return Frames(
        node, partition, None, aggregates, names, frame=frame, held=True, times=times,
        walks=any(map(walks, aggregates)), span=span,
    )  # fmt: skip


def _beside_groups(
    node: LogicalNode, arrived: LogicalNode, partition: tuple[Expr, ...],
    calls: Sequence[Call], span: Span,
) -> LogicalNode:  # fmt: skip
    """Each row beside the results of its partition, as the last columns. arrived: the rows in order of arrival, with
    the first columns of `node`. CQ0406 on an endless input."""
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
    others = tuple(column(groups, n) for n in range(len(keys)))
    return Join(node, groups, keys, others, None, JoinKind.INNER, span=span)


def _never_null(key: Expr, name: str) -> list[tuple[Expr, str]]:
    """Named keys that are equal exactly where this one is, with NULL equal to NULL: a join does not match NULLs."""
    if not key.nullable:
        return [(key, name)]
    filler = Literal(key.type, False, some_value(key.type))
    return [(Coalesce(key.type, False, (key, filler)), name), (IsNull(BOOLEAN, False, key), name + MISSING)]


def _ranked(
    node: LogicalNode, partition: tuple[Expr, ...], time: TimeAttribute | None, order: tuple[OrderKey, ...],
    plain: Sequence[Lag | AggregateCall], ranks: Sequence[Rank], span: Span,
) -> tuple[LogicalNode, int]:  # fmt: skip
    """The rows, which must be in order, with the plain calls and then the ranks; and the column of the first rank.

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
    many = aggregate_call("count", condition=begins, span=span)
    calls = [replace(many, said="dense_rank") if r.dense else replace(last, said="rank") for r in ranks]
    return _over(node, partition, None, calls, span), len(node.schema)


def _names(node: LogicalNode, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted names, numbered if the row already has them."""
    taken = list(node.schema.names)
    for name in wanted:
        unique, number = name, 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.append(unique)
    return tuple(taken[len(node.schema) :])


def _name(call: Lag | AggregateCall) -> str:
    return "lag" if isinstance(call, Lag) else call.said or call.function.name


def _time_of(node: LogicalNode, order: tuple[OrderKey, ...]) -> TimeAttribute | None:
    """The event time that is the whole order, ascending; None for any other order."""
    if len(order) != 1 or order[0].descending or not isinstance(order[0].expr, Column):
        return None
    return node.schema.time_of(order[0].expr.index)
