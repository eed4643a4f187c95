"""WindowAggregate: rows are put into their windows by integer arithmetic, then grouped.

A row at `u` microseconds is in the windows that start at the points of the grid (every slide) in (u - size, u]: the
last of them is `u - pmod(u - offset, slide)`. Where windows do not overlap that is all; else the others are exploded,
and of windows that grow their ends. With a slide longer than the size, a row further than the size behind its grid
point is in no window.
"""

from __future__ import annotations

from cq.planner.operators import Window, WindowAggregate, WindowKind
from cq.spark.context import Context, lowers, timed
from cq.spark.grouping import Grouping, place_of_group
from cq.spark.position import Lowered, Rows, micros, plus, select_list, timestamp


@lowers("window")
def lower_window(node: WindowAggregate, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    window = node.window
    grouping = Grouping(node.keys, node.aggregates, rows, context)
    if window.kind is WindowKind.ATTACHED:
        start, end = rows.columns[window.start_column], rows.columns[window.time.column]
        placed, ends, by = f"{micros(start)} as _start, {micros(end)} as _end", "_end", ["_start", "_end"]
        text = f"select {placed},\n         {grouping.inner}\n  from {rows.name}{rows.on_time}"
    else:
        grows = window.kind is WindowKind.CUMULATE
        ends, by = ("_end", ["_start", "_end"]) if grows else (plus("_start", window.size_us), ["_start"])
        text = in_windows(window, grouping.inner, timed(rows, window.time, context))
    step = context.step("placed", text)
    own = [timestamp("_start"), timestamp(ends), timestamp(f"{ends} - 1L"), *grouping.results]
    return Lowered(
        f"select {select_list(own)},\n"
        f"         {plus(ends, node.lag_us)} as _w, -1L as _s, {place_of_group('_start')} as _o\n"
        f"  from {step}\n"
        f"  group by {', '.join((*by, *grouping.keys))}"
    )


def in_windows(window: Window, more: str, rows: str) -> str:
    """A SELECT of `more`, and of `_start`: of each window that holds a row of the CTE `rows`, whose time is `_u`.

    Where windows of one start grow, also of `_end`.
    """
    kept = f"\n  where {_into_window(window)} < {window.size_us}L" if window.slide_us > window.size_us else ""
    return f"select {_start(window)},\n         {more}\n  from {rows}{kept}"


def _into_window(window: Window) -> str:
    """How far a row is behind its grid point, in microseconds."""
    return f"pmod({plus('_u', -window.offset_us)}, {window.slide_us}L)"


def _start(window: Window) -> str:
    """The starts of a row's windows, as the column `_start`."""
    into, slide = _into_window(window), f"{window.slide_us}L"
    if window.kind is WindowKind.CUMULATE:
        start = f"_u - pmod({plus('_u', -window.offset_us)}, {window.size_us}L)"
        return (
            f"{start} as _start, explode(sequence(_u - {into} + {slide}, {start} + {window.size_us}L, {slide})) as _end"
        )
    if window.size_us <= window.slide_us:
        return f"_u - {into} as _start"
    first = f"_u - {into} - {slide} * (({window.size_us - 1}L - {into}) div {slide})"
    return f"explode(sequence({first}, _u - {into}, {slide})) as _start"
