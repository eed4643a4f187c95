"""WindowAggregate: rows are assigned to windows by integer arithmetic, then grouped.

A row at the step `u` (a microsecond, or a calendar month) is in the windows that start at the points of the grid (every
slide) in (u - size, u]: the last of them is `u - pmod(u - offset, slide)`. If windows do not overlap that is the only
one; else the others are exploded, and for windows that grow, their ends. With a slide longer than the size, a row
further than the size behind its grid point is in no window.
"""

from __future__ import annotations

from cq.lang.calendar import DAY_US
from cq.planner.operators import Window, WindowAggregate, WindowKind
from cq.spark.context import Context, lowers, timed
from cq.spark.grouping import GroupTexts, place_of_group
from cq.spark.position import CteRows, Lowered, micros, plus, select_list, timestamp


@lowers("window")
def lower_window(node: WindowAggregate, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    window = node.window
    grouping = GroupTexts(node.keys, node.aggregates, rows, context)
    if window.kind is WindowKind.ATTACHED:
        start, ends = rows.columns[window.start_column], rows.columns[window.time.column]
        placed, by = f"{micros(start)} as _start, {micros(ends)} as _end", ["_start", "_end"]
        text, ends = f"select {placed},\n         {grouping.inner}\n  from {rows.name}{rows.on_time}", "_end"
    else:
        ends, by = window_end(window), ["_start", "_end"] if window.kind is WindowKind.CUMULATE else ["_start"]
        text = in_windows(window, grouping.inner, timed(rows, window.time, context), context)
    step = context.step("placed", text)
    own = [timestamp("_start"), timestamp(ends), timestamp(f"{ends} - 1L"), *grouping.results]
    return Lowered(
        f"select {select_list(own)},\n"
        f"         {plus(ends, node.lag_us)} as _w, -1L as _s, {place_of_group('_start')} as _o\n"
        f"  from {step}\n"
        f"  group by {', '.join((*by, *grouping.keys))}"
    )


def window_end(window: Window) -> str:
    """The end of a window in microseconds from its columns `_start` and, if windows grow, `_end`."""
    if window.kind is WindowKind.CUMULATE:
        return "_end"
    if not window.by_calendar:
        return plus("_start", window.size)
    return _time_of(window, plus(_step_of(window, "_start"), window.size))


def in_windows(window: Window, more: str, rows: str, context: Context) -> str:
    """A SELECT of `more`, and of `_start` for each window that contains a row of the CTE `rows`, whose time is `_u`.

    If windows with one start grow, also of `_end`.
    """
    if window.by_calendar:
        rows = context.step("months", f"select *, {_step_of(window, '_u')} as _step from {rows}")
    step = "_step" if window.by_calendar else "_u"
    kept = f"\n  where {_into_window(window, step)} < {window.size}L" if window.slide > window.size else ""
    bounds = ("_start", "_end") if window.kind is WindowKind.CUMULATE else ("_start",)
    starts = ", ".join(f"{text} as {name}" for name, text in zip(bounds, _bounds(window, step), strict=True))
    if not window.by_calendar:
        return f"select {starts},\n         {more}\n  from {rows}{kept}"
    months = context.step("in_months", f"select {starts.replace(' as _', ' as _month')}, *\n  from {rows}{kept}")
    times = ", ".join(f"{_time_of(window, name.replace('_', '_month'))} as {name}" for name in bounds)
    return f"select {times},\n         {more}\n  from {months}"


def _step_of(window: Window, micros: str) -> str:
    """Months from January 1970 to the month of a time in microseconds."""
    shifted = plus(micros, -window.shift_us)
    day = f"date_from_unix_date(cast((({shifted}) - pmod({shifted}, {DAY_US}L)) div {DAY_US}L as int))"
    return f"cast((year({day}) - 1970) * 12 + month({day}) - 1 as BIGINT)"


def _time_of(window: Window, step: str) -> str:
    """The start of a month, in microseconds."""
    first = f"unix_date(add_months(date'1970-01-01', cast({step} as int)))"
    return plus(f"{first} * {DAY_US}L", window.shift_us)


def _into_window(window: Window, step: str) -> str:
    """How far a row is after its grid point, in steps."""
    return f"pmod({plus(step, -window.offset)}, {window.slide}L)"


def _bounds(window: Window, step: str) -> tuple[str, ...]:
    """The starts of a row's windows and, if windows with one start grow, their ends, in steps."""
    into, slide = _into_window(window, step), f"{window.slide}L"
    if window.kind is WindowKind.CUMULATE:
        start = f"{step} - pmod({plus(step, -window.offset)}, {window.size}L)"
        ends = f"sequence({step} - {into} + {slide}, {start} + {window.size}L, {slide})"
        return start, f"explode({ends})"
    if window.size <= window.slide:
        return (f"{step} - {into}",)
    first = f"{step} - {into} - {slide} * (({window.size - 1}L - {into}) div {slide})"
    return (f"explode(sequence({first}, {step} - {into}, {slide}))",)
