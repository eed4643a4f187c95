"""Frames: window functions over a frame of the partition's rows, by position, by event time or by a key.

If rows are walked, the frame is collected as a list, whose elements, without excluded ones, are the rows of a GROUP BY.
"""

from __future__ import annotations

from cq.lang.types import Kind
from cq.planner.operators import Frame, Frames, OrderKey, Unit, Without
from cq.spark.context import Context, aggregate, argument, lowers, released, timed
from cq.spark.operators.over import POSITION
from cq.spark.position import END, CteRows, Lowered, event_time, micros, plus


@lowers("frames")
def lower_frames(node: Frames, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = rows.columns
    keys = [f"{context.text(p, columns)} as _k{i}" for i, p in enumerate(node.partition)]
    arguments = [f"{argument(c, columns, context)} as _a{i}" for i, c in enumerate(node.aggregates)]
    places = [f"{_place(node, columns, context)} as _p"] if node.frame.unit is not Unit.ROWS else []
    places += [f"{context.text(node.peer, columns)} as _q"] if node.peer is not None else []
    more = ", ".join((*columns, *keys, *arguments, *places))
    if node.times:
        late, below = False, f"select {more}, _u, _w, _s, _o\n  from {timed(rows, node.times[0], context)}"
    elif node.order is None:
        late, below = rows.late, f"select {more}, {rows.position}\n  from {rows.name}"
    else:
        late, below = False, released(rows, node.order, more, context)
    within = f"partition by {', '.join(f'_k{i}' for i in range(len(keys)))} " if keys else ""
    over = f" over ({within}order by {_order(node.frame, node.key)} {_between(node.frame)})"
    step = context.step("in_order", below)
    if node.keeps_rows:
        late = False
        step = context.step("kept", f"select *,\n         {_kept(node, within)}\n  from {step}")
    own = "".join(f"{c}, " for c in columns)
    if node.walks:
        listed = f"select *, row_number() over ({within}order by _w, _s, _o) as _n\n  from {step}"
        return _walked(node, rows, context.step("numbered", listed), over, late, context)
    calls = [aggregate(c, f"_a{i}", over, POSITION) for i, c in enumerate(node.aggregates)]
    added = ",\n         ".join(f"{text} as c{i}" for i, text in enumerate(calls, rows.width))
    return Lowered(f"select {own}{_position(node, late)},\n         {added}\n  from {step}", late)


def _walked(node: Frames, rows: CteRows, step: str, over: str, late: bool, context: Context) -> Lowered:
    """Frames as lists, whose rows, without excluded ones, are grouped by the row whose frame it is."""
    told = [c for c, there in (("_p", node.frame.unit is not Unit.ROWS), ("_q", node.peer is not None)) if there]
    members = ", ".join((*(f"_a{i}" for i in range(len(node.aggregates))), "_n", *told, f"{POSITION} as _at"))
    own = "".join(f"{c}, " for c in rows.columns)
    more = ", ".join(("_n", *told))
    collected = f"collect_list(struct({members})){over} as _f"
    lists = context.step("lists", f"select {own}{_position(node, late)}, {more},\n         {collected}\n  from {step}")
    frame = "_f" if node.frame.without is None else f"filter(_f, f -> not ({_left_out(node, told)}))"
    position = "_w, _s, _o, _late" if late else "_w, _s, _o"
    each = context.step("each", f"select {own}{position}, explode_outer({frame}) as _e\n  from {lists}")
    kept = "".join(f"first({c}) as {c}, " for c in rows.columns)
    shown = "_w, _s, _o, first(_late) as _late" if late else position
    calls = [aggregate(c, f"_e._a{i}", position="_e._at") for i, c in enumerate(node.aggregates)]
    added = ",\n         ".join(f"{text} as c{i}" for i, text in enumerate(calls, rows.width))
    return Lowered(f"select {kept}{shown},\n         {added}\n  from {each}\n  group by _w, _s, _o", late)


def _left_out(node: Frames, told: list[str]) -> str:
    """Whether the row f is excluded."""
    same = "f._n = _n"
    if node.frame.without is Without.ROW:
        return same
    (peer,) = told
    peers = f"f.{peer} <=> {peer}"
    return peers if node.frame.without is Without.GROUP else f"{peers} and {same.replace('=', '<>')}"


def _kept(node: Frames, within: str) -> str:
    """The first position of the row's partition, and that of the row it waits for."""
    by = f"over ({within}order by _w, _s, _o)"
    last = f", lead({POSITION}, {node.following}) {by} as _last" if node.following else ""
    return f"min({POSITION}) over ({within.rstrip()}) as _first{last}"


def _position(node: Frames, late: bool) -> str:
    """The position at which rows are emitted."""
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
    """The key of a range, as a number."""
    if node.key is None:
        assert node.order is not None
        return event_time(node.order, columns)
    text, type_ = context.text(node.key.expr, columns), node.key.expr.type
    if type_.kind is Kind.DATE:
        return f"cast(unix_date({text}) as BIGINT)"
    if type_.is_timestamp:
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
