"""Frames: window functions over a frame of the partition's rows, by where they leave, by event time or by a key."""

from __future__ import annotations

from cq.lang.types import Kind
from cq.planner.operators import Frame, Frames, OrderKey, Unit
from cq.spark.context import Context, aggregate, argument, lowers, released, timed
from cq.spark.operators.over import POSITION
from cq.spark.position import END, Lowered, Rows, event_time, micros, plus


@lowers("frames")
def lower_frames(node: Frames, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = rows.columns
    keys = [f"{context.text(p, columns)} as _k{i}" for i, p in enumerate(node.partition)]
    arguments = [f"{argument(c, columns, context)} as _a{i}" for i, c in enumerate(node.aggregates)]
    places = [f"{_place(node, columns, context)} as _p"] if node.frame.unit is not Unit.ROWS else []
    more = ", ".join((*columns, *keys, *arguments, *places))
    if node.times:
        late, below = False, f"select {more}, _u, _w, _s, _o\n  from {timed(rows, node.times[0], context)}"
    elif node.order is None:
        late, below = rows.late, f"select {more}, {rows.position}\n  from {rows.name}"
    else:
        late, below = False, released(rows, node.order, more, context)
    within = f"partition by {', '.join(f'_k{i}' for i in range(len(keys)))} " if keys else ""
    over = f" over ({within}order by {_order(node.frame, node.key)} {_between(node.frame)})"
    calls = [aggregate(c, f"_a{i}", over, POSITION) for i, c in enumerate(node.aggregates)]
    added = ",\n         ".join(f"{text} as c{i}" for i, text in enumerate(calls, rows.width))
    step = context.step("in_order", below)
    if node.keeps_rows:
        late = False
        step = context.step("kept", f"select *,\n         {_kept(node, within)}\n  from {step}")
    own = "".join(f"{c}, " for c in columns)
    return Lowered(f"select {own}{_position(node, late)},\n         {added}\n  from {step}", late)


def _kept(node: Frames, within: str) -> str:
    """The first position of the row's partition, and that of the row it waits for."""
    by = f"over ({within}order by _w, _s, _o)"
    last = f", lead({POSITION}, {node.following}) {by} as _last" if node.following else ""
    return f"min({POSITION}) over ({within.rstrip()}) as _first{last}"


def _position(node: Frames, late: bool) -> str:
    """Where rows leave."""
    if node.behind_us is not None:
        return f"{plus('_p', node.behind_us)} as _w, -1L as _s, concat(array(_w, _s), _o) as _o"
    if not node.keeps_rows:
        return "_w, _s, _o, _late" if late else "_w, _s, _o"
    place = "concat(array(_first._w, _first._s), _first._o, array(_w, _s), _o)"
    if node.times:
        return f"{plus('_u', node.times[0].lag_us + 1)} as _w, -1L as _s, {place} as _o"
    if not node.following:
        return f"{END} as _w, {END} as _s, {place} as _o"
    ends = (f"coalesce(_last.{c}, {e}) as {c}" for c, e in (("_w", END), ("_s", END), ("_o", place)))
    return ", ".join(ends)


def _place(node: Frames, columns: tuple[str, ...], context: Context) -> str:
    """What a range is of, as a number."""
    if node.key is None:
        assert node.order is not None
        return event_time(node.order, columns)
    text, type_ = context.text(node.key.expr, columns), node.key.expr.type
    if type_.kind is Kind.DATE:
        return f"cast(unix_date({text}) as BIGINT)"
    if type_.kind is Kind.TIMESTAMP:
        return micros(text)
    if type_.kind is Kind.DECIMAL:
        return f"cast({text} * {10**type_.scale} as BIGINT)"
    return f"cast({text} as BIGINT)"


def _order(frame: Frame, key: OrderKey | None) -> str:
    if frame.unit is Unit.ROWS:
        return "_w, _s, _o"
    if key is None:
        return "_p"
    return f"_p {'desc' if key.descending else 'asc'} nulls {'first' if key.nulls_first else 'last'}"


def _between(frame: Frame) -> str:
    unit = "rows" if frame.unit is Unit.ROWS else "range"
    start = "unbounded preceding" if frame.start is None else _bound(frame.start, unit)
    end = "unbounded following" if frame.end is None else _bound(frame.end, unit)
    return f"{unit} between {start} and {end}"


def _bound(offset: int, unit: str) -> str:
    if offset == 0:
        return "current row"
    return f"{abs(offset)}{'L' if unit == 'range' else ''} {'preceding' if offset < 0 else 'following'}"
