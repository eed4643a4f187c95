"""Windows in FROM and in GROUP BY: `TUMBLE(TABLE s, DESCRIPTOR(ts), size)` and every other spelling of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import CompileError, Span, compile_error, did_you_mean
from cq.grammar import ast
from cq.grammar.inline import name as name_of
from cq.lang.calendar import DAY_US
from cq.lang.expressions import Column, Expr, Literal, transform
from cq.lang.schema import TimeAttribute
from cq.lang.types import DataType, Kind
from cq.lang.value_text import write_duration
from cq.lang.zones import zone_of, zone_of_session
from cq.planner.binding.calls import WINDOW_FIELDS, window_hole
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.literals import bind_interval, in_days
from cq.planner.binding.scope import CountWindow, Hole, PendingWindow, Relation, Room, SessionWindow, Visible
from cq.planner.binding.time_attributes import no_event_time, time_attribute
from cq.planner.operators import AssignWindows, OrderKey, SessionRows, Window, WindowKind
from cq.planner.operators.window import WINDOW_COLUMNS
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace

# Panes that one row of a hopping window may touch: state and work grow with it; `cq limits` shows it.
MAX_PANES = 10_000
# Sessions of rows up to the year 190,000 end before the last representable instant, so all of them are emitted.
MAX_GAP_YEARS = 100_000
MAX_GAP_US = MAX_GAP_YEARS * 365 * 86_400_000_000

MAX_ROWS = 1_000_000  # rows in a window that counts them: they are kept for each key
MAX_MONTHS = 12 * 10_000  # as many as there are years in a date literal
# By how much, at most, windows of the calendar may start later than their month, per month of their length.
SHORTEST_MONTH_DAYS = 28

# Parameters by position, after the relation and the time.
TABLE_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "cumulate": ("step", "size", "offset"),
    "session": ("gap",),
}
# In a GROUP BY the names are the same; Spark's `window(ts, size, slide, start)` has its own order.
SPARK_PARAMETERS = ("size", "slide", "offset")
PARAMETER_ALIASES = {"data": "table", "timecol": "time", "ts": "time", "start": "offset"}
TABLE_FORMS = {
    "tumble": "TUMBLE(TABLE s, DESCRIPTOR(ts), size [, offset])",
    "hop": "HOP(TABLE s, DESCRIPTOR(ts), slide, size [, offset])",
    "cumulate": "CUMULATE(TABLE s, DESCRIPTOR(ts), step, size [, offset])",
    "session": "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), gap)",
}
GROUP_FORMS = {
    "tumble": "TUMBLE(ts, size [, offset])",
    "hop": "HOP(ts, slide, size [, offset])",
    "cumulate": "CUMULATE(ts, step, size [, offset])",
    "session": "SESSION(ts, gap)",
    "session_window": "session_window(ts, gap)",
    "window": "window(ts, size [, slide [, offset]])",
}
COUNT_FORMS = {
    "tumble": "TUMBLE(TABLE s PARTITION BY k [, DESCRIPTOR(ts)], ROWS 100)",
    "hop": "HOP(TABLE s PARTITION BY k [, DESCRIPTOR(ts)], ROWS 10, ROWS 100), where the first number is the slide",
}
MEANINGS = {
    "size": "the length of each window",
    "slide": "the time from the start of one window to that of the next",
    "step": "how much longer each window is than the one before it",
    "gap": "how long a key is silent before its session ends",
}
_INTERVALS = {
    "size": "INTERVAL '1' MINUTE",
    "slide": "INTERVAL '10' SECOND",
    "step": "INTERVAL '10' SECOND",
    "gap": "INTERVAL '30' MINUTE",
}


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function as written: its name, where that is, and its form for help lines."""

    name: str
    name_span: Span
    form: str

    @property
    def title(self) -> str:
        return self.name.upper()

    @property
    def example(self) -> str:
        """The form with an interval for each parameter that needs one."""
        text = self.form.partition(" [")[0] + (")" if "[" in self.form else "")
        for name, interval in _INTERVALS.items():
            text = text.replace(f", {name}", f", {interval}")
        return text


@dataclass(frozen=True, slots=True)
class WindowArguments:
    """The parts of a window call, not yet bound."""

    kind: str
    call: WindowCall
    time: ast.Node | None  # None: the only event time there is, or the window counts rows
    values: Mapping[str, ast.Node]
    span: Span
    partition_by: tuple[ast.Expr, ...] | None = None  # None: the call is in GROUP BY
    counts_rows: bool = False


def table_function(
    node: ast.TableFunction, relation: Relation, arguments: WindowArguments, binder: ExprBinder
) -> Relation:
    """The relation with the windows of a table function pending, and their bounds among its columns."""
    if arguments.counts_rows:
        return replace(relation, window=PendingWindow(_count_window(arguments, relation, binder), node.span))
    window = bind_window(arguments, relation, binder)
    names = set(WINDOW_FIELDS)
    alias = node.alias
    columns = [replace(c, qualifier=alias) if alias is not None else c for c in relation.columns if c.name not in names]
    qualifier = alias or next((c.qualifier for c in columns if c.qualifier), None)
    type_ = relation.node.schema.type_of(window.time)
    columns += [
        Visible(n, qualifier, window_hole(i, type_, node.span), hidden=i == 2) for n, i in WINDOW_FIELDS.items()
    ]
    return replace(relation, columns=tuple(columns), window=PendingWindow(window, node.span))


def with_windows(relation: Relation) -> Relation:
    """The relation with rows assigned to the windows of the pending window function, if there is one: the bounds are
    ordinary columns."""
    if relation.window is None:
        return relation
    window, span = relation.window.window, relation.window.span
    if isinstance(window, CountWindow):
        raise compile_error(
            "CQ0502",
            "a window of a number of rows needs a GROUP BY",
            span,
            help=(
                "add GROUP BY with the columns of PARTITION BY, and aggregate the others",
                "or compute a value over each row and those before it: SUM(x) OVER (PARTITION BY k ROWS 99 PRECEDING)",
            ),
        )
    node: AssignWindows | SessionRows
    if isinstance(window, SessionWindow):
        node = SessionRows(relation.node, window.keys or (), window.time, window.gap_us, span=span)
    else:
        node = AssignWindows(relation.node, window, span=span)
    first = len(relation.node.schema)

    def column(e: Expr) -> Expr:
        if not (isinstance(e, Hole) and e.room is Room.WINDOW):
            return e
        return Column(e.type, False, first + e.index, WINDOW_COLUMNS[e.index], span=e.span)

    columns = tuple(replace(c, expr=transform(c.expr, column)) for c in relation.columns)
    return replace(relation, node=node, columns=columns, window=None)


def retimed(relation: Relation, node: LogicalNode) -> Relation:
    """The relation, whose pending window function goes by the event time of rows of `node`: some of the relation's
    rows, which may come later."""
    if relation.window is None or isinstance(relation.window.window, CountWindow):
        return relation
    window = relation.window.window
    time = node.schema.time_of(window.time.column)
    assert time is not None, "rows of windows that lost their event time"
    return replace(relation, window=replace(relation.window, window=replace(window, time=time)))


def split_table_arguments(node: ast.TableFunction) -> tuple[ast.TableArgument, WindowArguments]:
    """The relation a window table function reads, and its other arguments by name."""
    call = WindowCall(node.name, node.name_span, TABLE_FORMS[node.name])
    plain = [a for a in node.args if not isinstance(a, ast.NamedArgument)]
    timed = not (len(plain) > 1 and isinstance(plain[1], ast.RowCount))
    order = ("table", *(["time"] if timed else []), *TABLE_PARAMETERS[node.name])
    values = _by_name(call, order, node.args)
    table = values.pop("table", None)
    if isinstance(table, ast.StringLiteral):  # a path, without TABLE before it
        table = ast.TableArgument(table.value, is_path=True, span=table.span, name_span=table.span)
    if not isinstance(table, ast.TableArgument):
        span = table.span if table is not None else call.name_span
        raise _misused(call, f"the first argument of {call.title} must be a stream or view", span)
    if any(isinstance(v, ast.RowCount) for v in values.values()):
        time = values.pop("time", None)
        return table, WindowArguments(node.name, call, time, values, node.span, tuple(table.partition_by), True)
    time = _take_time(call, values)
    if table.partition_by and node.name != "session":
        raise compile_error(
            "CQ0302",
            f"{call.title} takes no PARTITION BY: only SESSION and windows of a number of rows do",
            table.partition_by[0].span.to(table.partition_by[-1].span),
            help="remove it, and write the key in GROUP BY beside window_start and window_end",
        )
    return table, WindowArguments(node.name, call, time, values, node.span, tuple(table.partition_by))


def group_window(node: ast.Call) -> WindowArguments:
    """The window that `GROUP BY TUMBLE(ts, i)`, `HOP(ts, slide, size)` or Spark's `window(ts, …)` makes."""
    spark = node.name == "window"
    name = "session" if node.name == "session_window" else node.name
    call = WindowCall(node.name, node.name_span, GROUP_FORMS[node.name])
    order = SPARK_PARAMETERS if spark else TABLE_PARAMETERS[name]
    untimed = bool(node.args) and isinstance(node.args[0], ast.IntervalLiteral)
    values = _by_name(call, order if untimed else ("time", *order), node.args)
    time = None if untimed else _take_time(call, values)
    if spark:
        name = "hop" if "slide" in values else "tumble"
    return WindowArguments(name, call, time, values, node.span)


def _by_name(call: WindowCall, order: Sequence[str], args: Sequence[ast.Node]) -> dict[str, ast.Node]:
    """The arguments of a window call by name, including those by position. order: the names by position."""
    positional = [a for a in args if not isinstance(a, ast.NamedArgument)]
    if len(positional) > len(order):
        cause = f"{call.title} takes at most {len(order)} arguments, not {len(positional)}"
        raise _misused(call, cause, positional[len(order)].span)
    values = dict(zip(order, positional, strict=False))
    for name, argument in _named(args, set(order), call).items():
        if name in values:
            raise _misused(call, f'the argument "{argument.name}" is given twice', argument.span)
        values[name] = argument.value
    return values


def _take_time(call: WindowCall, values: dict[str, ast.Node]) -> ast.Node:
    """Take the argument that names the event time out of the others."""
    time = values.pop("time", None)
    if time is None or isinstance(time, ast.IntervalLiteral):
        span = call.name_span if time is None else time.span
        raise _misused(call, f"{call.title} needs the event time of its rows before its intervals", span)
    return time


def _count_window(arguments: WindowArguments, relation: Relation, binder: ExprBinder) -> CountWindow:
    """A window that counts rows. CQ0302 unless it is TUMBLE(size) or HOP(slide, size)."""
    kind, values = arguments.kind, arguments.values
    names = {"tumble": ("size",), "hop": ("slide", "size")}.get(kind)
    other = next((v for v in values.values() if not isinstance(v, ast.RowCount)), None)
    if names is None or set(values) != set(names) or other is not None:
        raise compile_error(
            "CQ0302",
            f"{arguments.call.title} cannot count rows like this",
            (other or next(iter(values.values()))).span,
            help=tuple(COUNT_FORMS.values()),
        )
    counts = {n: _rows_of(n, v, binder) for n, v in values.items() if isinstance(v, ast.RowCount)}
    by = tuple(replace(binder, clause=Clause("PARTITION BY")).bind(k) for k in arguments.partition_by or ())
    order: tuple[OrderKey, ...] = ()
    if arguments.time is not None:
        time = time_attribute(arguments.time, relation, binder)
        f = relation.node.schema.fields[time.column]
        order = (OrderKey(Column(f.type, f.nullable, time.column, f.name), False, True),)
    return CountWindow(counts["size"], counts.get("slide", counts["size"]), by, order, arguments.span)


def _rows_of(name: str, node: ast.RowCount, binder: ExprBinder) -> int:
    """The constant number of rows of a size or slide."""
    value = folded(binder.bind(node.count))
    if not isinstance(value, Literal) or not value.type.is_integer or value.value is None or value.value < 1:
        raise compile_error(
            "CQ0403",
            f"the {name} of a window of rows must be a constant number, at least 1",
            node.span,
            help="write ROWS 100",
        )
    if value.value > MAX_ROWS:
        raise compile_error(
            "CQ0403",
            f"a window can have at most {MAX_ROWS:,} rows: it keeps them for each key",
            node.span,
            help="use a window of event time: TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
        )
    rows: int = value.value
    return rows


def _check_months(arguments: WindowArguments, type_: DataType, column: str) -> None:
    """CQ0502 for months of instants in a zone other than UTC: they start at its midnight. column: the event time."""
    zone = zone_of_session()
    if type_.kind is Kind.TIMESTAMP_LTZ and zone_of(zone).offsets != (0,):
        raise compile_error(
            "CQ0502",
            f"windows of months over a TIMESTAMP_LTZ are supported in UTC only, but time_zone is {zone}",
            arguments.values["size"].span,
            help=f"make the local time the event time: t AS {name_of(column)} AT TIME ZONE '{zone}', WATERMARK FOR t",
        )


def bind_window(arguments: WindowArguments, relation: Relation, binder: ExprBinder) -> Window | SessionWindow:
    """The window: constants checked, and the time found among the relation's time attributes."""
    values = {n: _interval(n, v, binder, months=arguments.kind != "session") for n, v in arguments.values.items()}
    needed = {"hop": ("size", "slide"), "cumulate": ("size", "step"), "session": ("gap",)}.get(
        arguments.kind, ("size",)
    )
    for name in needed:
        if name not in values:
            raise _without(arguments, name)
    time = _its_time(arguments, relation) or time_attribute(arguments.time, relation, binder)
    if arguments.kind == "session":
        by = arguments.partition_by
        keys = None if by is None else tuple(replace(binder, clause=Clause("PARTITION BY")).bind(k) for k in by)
        gap_us: int = values["gap"].value
        if gap_us > MAX_GAP_US:
            raise compile_error(
                "CQ0403",
                f"the gap of a session must not be longer than {MAX_GAP_YEARS:,} years: its sessions would never end",
                arguments.values["gap"].span,
                help=f"write {arguments.call.example}",
            )
        return SessionWindow(time, gap_us, keys, arguments.span)
    kind = WindowKind(arguments.kind)
    by_calendar = _in_months(arguments, values)
    if by_calendar:
        schema = relation.node.schema
        _check_months(arguments, schema.type_of(time), schema.names[time.column])
    lengths = {n: v.value for n, v in values.items()}
    size = lengths["size"]
    moves = "step" if kind is WindowKind.CUMULATE else "slide"
    slide = lengths.get(moves, size)
    window = Window(kind, time, size, slide, by_calendar=by_calendar)
    if by_calendar and size > MAX_MONTHS:
        raise compile_error(
            "CQ0403",
            f"a window must not be longer than {MAX_MONTHS // 12:,} years",
            arguments.values["size"].span,
            help="write INTERVAL '1' YEAR, or GROUP BY without a window",
        )
    if kind is WindowKind.CUMULATE and size % slide:
        raise compile_error(
            "CQ0403",
            "the size of CUMULATE must be a multiple of its step",
            arguments.values["size"].span,
            help=f"write INTERVAL '{window.length_text(size + slide - size % slide)}', or a step that divides the size",
        )
    panes = -(-size // window.pane)
    if panes > MAX_PANES:
        raise compile_error(
            "CQ0403",
            f"each window would consist of {panes:,} pieces of {window.length_text(window.pane)}; "
            f"the limit is {MAX_PANES:,}",
            arguments.values[moves].span,
            help=f"choose a {moves} that divides the size, or a longer {moves}",
        )
    offset = lengths.get("offset", 0)
    if by_calendar and "offset" in values and values["offset"].type.kind is Kind.INTERVAL:
        return replace(window, shift_us=_within_a_period(offset, window, arguments.values["offset"].span))
    return replace(window, offset=offset % window.period)


def _in_months(arguments: WindowArguments, values: Mapping[str, Literal]) -> bool:
    """Whether a window's lengths are calendar months. CQ0403 if only some of them are."""
    months = {n: v.type.kind is Kind.INTERVAL_MONTH for n, v in values.items()}
    by_calendar = months["size"]
    for name in (n for n in values if n not in ("size", "offset") and months[n] != by_calendar):
        unit = "MONTH" if by_calendar else "DAY"
        raise compile_error(
            "CQ0403",
            f"the size and the {name} of a window must both be of months or years, or both of days or less",
            arguments.values[name].span,
            label=str(values[name].type),
            help=f"write the {name} in the units of the size: INTERVAL '1' {unit}",
        )
    if months.get("offset", False) and not by_calendar:
        raise compile_error(
            "CQ0403",
            "the offset of a window of days or less must be of days or less, too: months differ in length",
            arguments.values["offset"].span,
            label=str(values["offset"].type),
            help="write it as INTERVAL '1' DAY",
        )
    return by_calendar


def _within_a_period(offset_us: int, window: Window, span: Span) -> int:
    """The offset of calendar windows, in days or less, shorter than the shortest of them."""
    limit_us = window.period * SHORTEST_MONTH_DAYS * DAY_US
    if abs(offset_us) >= limit_us:
        raise compile_error(
            "CQ0403",
            f"the offset must be shorter than {write_duration(limit_us)}, as the windows are {window}",
            span,
            help="write whole months as INTERVAL '1' MONTH",
        )
    return offset_us


def _its_time(arguments: WindowArguments, relation: Relation) -> TimeAttribute | None:
    """The event time of a window that names none; None if it names one. CQ0402 if there are several."""
    if arguments.time is not None:
        return None
    times = relation.node.schema.times
    if len(times) != 1:
        names = [relation.node.schema.names[t.column] for t in times]
        if not times:
            raise no_event_time(relation, "ts", None, arguments.span)
        cause = f"{relation.title} has several event times"
        raise compile_error("CQ0402", cause, arguments.span, help=f"name one before the intervals: {', '.join(names)}")
    return times[0]


def _without(arguments: WindowArguments, name: str) -> CompileError:
    """CQ0403 for a window without the interval `name`."""
    call = arguments.call
    order = "the given interval is its slide" if name == "size" and "slide" in arguments.values else ""
    return compile_error(
        "CQ0403",
        f"{call.title} needs a {name}: {MEANINGS[name]}",
        call.name_span,
        label=order,
        help=f"write {call.example}",
    )


def _interval(name: str, node: ast.Node, binder: ExprBinder, months: bool) -> Literal:
    """A constant interval; positive unless it is an offset. months: whether months are allowed."""
    value = binder.bind(node)  # type: ignore[arg-type]
    if isinstance(value, Literal) and value.type.kind is Kind.VARCHAR:
        value = _spark_interval(value)
    value = folded(value)
    of_months = value.type.kind is Kind.INTERVAL_MONTH
    if not isinstance(value, Literal) or value.value is None or not (value.type.kind is Kind.INTERVAL or of_months):
        other = "" if value.type.kind is Kind.INTERVAL or of_months else f", not {value.type}"
        raise compile_error(
            "CQ0403",
            f"the {name} of a window must be a constant interval{other}",
            node.span,
            label="not a constant" if not other else str(value.type),
            help="write it as INTERVAL '10' SECOND",
        )
    if of_months and not months:
        raise compile_error(
            "CQ0403",
            f"the {name} of a session must be a constant interval of days or less: months differ in length",
            node.span,
            label=str(value.type),
            help=f"write it as {in_days(value)}",
        )
    if value.value <= 0 and name != "offset":
        raise compile_error(
            "CQ0403",
            f"the {name} of a window must be longer than zero",
            node.span,
            help=f"write a length of more than 0, such as {_shortest(node, name)}",
        )
    return value


def _shortest(node: ast.Node, name: str) -> str:
    """An interval of one of the units in the text, else a typical one for this name."""
    return f"INTERVAL '1' {node.parts[-1].unit}" if isinstance(node, ast.IntervalLiteral) else _INTERVALS[name]


def _spark_interval(text: Literal) -> Literal:
    """Spark's `'10 seconds'` as an interval: amounts and units alternate."""
    words = str(text.value).removeprefix("interval ").split()
    units = {u.lower(): u for u in ast.INTERVAL_UNITS}
    parts = []
    for amount, unit in zip(words[::2], words[1::2], strict=False):
        known = units.get(unit.lower()) or units.get(unit.lower().removesuffix("s"))
        if known is None:
            break
        parts.append(ast.IntervalPart(amount, known, span=text.span))
    if not parts or len(parts) * 2 != len(words):
        raise compile_error(
            "CQ0403",
            f"'{text.value}' is not an interval",
            text.span,
            help="write INTERVAL '10' SECOND, or '10 seconds'",
        )
    return bind_interval(ast.IntervalLiteral(tuple(parts), span=text.span))


def _named(args: Sequence[ast.Node], known: set[str], call: WindowCall) -> dict[str, ast.NamedArgument]:
    """The arguments given by name, each under its name here."""
    out: dict[str, ast.NamedArgument] = {}
    for a in args:
        if isinstance(a, ast.NamedArgument):
            name = PARAMETER_ALIASES.get(a.name, a.name)
            if name not in known:
                raise compile_error(
                    "CQ0302",
                    f'{call.title} has no argument "{a.name}"',
                    a.name_span,
                    help=(did_you_mean(a.name, known), f"arguments: {', '.join(sorted(known))}"),
                )
            if name in out:
                raise _misused(call, f'the argument "{a.name}" is given twice', a.span)
            out[name] = a
    return out


def _misused(call: WindowCall, cause: str, span: Span) -> CompileError:
    """CQ0302 for arguments that do not fit, with the form of the call."""
    return compile_error("CQ0302", cause, span, help=(f"usage: {call.form}", f"example: {call.example}"))
