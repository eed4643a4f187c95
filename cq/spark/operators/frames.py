"""Frames: window functions over a frame of the partition's rows, by where they leave or by event time."""

from __future__ import annotations

from cq.planner.operators import Frame, Frames
from cq.spark.context import Context, aggregate, argument, lowers, released
from cq.spark.operators.over import POSITION
from cq.spark.position import Lowered, Rows, event_time, plus


@lowers("frames")
def lower_frames(node: Frames, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = rows.columns
    keys = [f"{context.text(p, columns)} as _k{i}" for i, p in enumerate(node.partition)]
    arguments = [f"{argument(c, columns, context)} as _a{i}" for i, c in enumerate(node.aggregates)]
    time = [f"{event_time(node.order, columns)} as _t"] if node.order is not None else []
    more = ", ".join((*columns, *keys, *arguments, *time))
    if node.order is None:
        late, below = rows.late, f"select {more}, {rows.position}\n  from {rows.name}"
    else:
        late, below = False, released(rows, node.order, more, context)
    partition = f"partition by {', '.join(f'_k{i}' for i in range(len(keys)))} " if keys else ""
    over = f" over ({partition}order by {'_t' if node.frame.by_time else '_w, _s, _o'} {_between(node.frame)})"
    calls = [aggregate(c, f"_a{i}", over, POSITION) for i, c in enumerate(node.aggregates)]
    added = ",\n         ".join(f"{text} as c{i}" for i, text in enumerate(calls, rows.width))
    position = "_w, _s, _o, _late" if late else "_w, _s, _o"
    if node.behind_us is not None:
        position = f"{plus('_t', node.behind_us)} as _w, -1L as _s, concat(array(_w, _s), _o) as _o"
    own = "".join(f"{c}, " for c in columns)
    return Lowered(f"select {own}{position},\n         {added}\n  from {context.step('in_order', below)}", late)


def _between(frame: Frame) -> str:
    start = "unbounded preceding" if frame.start is None else _bound(frame.start, frame.by_time)
    return f"{'range' if frame.by_time else 'rows'} between {start} and {_bound(frame.end, frame.by_time)}"


def _bound(offset: int, by_time: bool) -> str:
    if offset == 0:
        return "current row"
    return f"{abs(offset)}{'L' if by_time else ''} {'preceding' if offset < 0 else 'following'}"
