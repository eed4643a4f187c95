"""Short forms for times, in other systems' words, and for the parts of a URL."""

from __future__ import annotations

import re

from cq.errors import CompileError, compile_error
from cq.grammar import ast
from cq.grammar.intervals import read_summands
from cq.lang.calendar import DAY_US, days_from_civil
from cq.lang.expressions import Expr, Literal
from cq.lang.functions.time_making import WEEKDAY_NAMES
from cq.lang.types import BIGINT, DATE, INTEGER, INTERVAL, INTERVAL_MONTH, TIME, TIMESTAMP, VARCHAR, Kind
from cq.planner.binding.conversion import convert
from cq.planner.binding.functions.instants import as_instant
from cq.planner.binding.functions.shorthands import ShorthandBinder, shorthand
from cq.planner.binding.literals import bind_interval, integer_literal
from cq.planner.plan.fold import folded

# -- times ------------------------------------------------------------------------------------------------------------

BUCKET_ORIGIN = days_from_civil(2000, 1, 3) * DAY_US  # a Monday


@shorthand("time_bucket", "date_bin")
def _time_bucket(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TIME_BUCKET(INTERVAL '5' MINUTE, time [, origin]): the start of the time's bucket, counted from 2000-01-03."""
    width, time, *rest = binder.positional(node, 2)
    width = folded(width)
    if (
        isinstance(width, Literal) and width.type == VARCHAR and isinstance(width.value, str)
    ):  # TIME_BUCKET('5 minutes', ts)
        width = folded(bind_interval(ast.IntervalLiteral(read_summands(width.value, width.span), span=width.span)))
    if len(rest) > 1 or width.type != INTERVAL or not isinstance(width, Literal) or not width.value or width.value < 0:
        raise compile_error(
            "CQ0302",
            f"{node.name.upper()} takes a constant width of days or less, a time and optionally an origin",
            width.span,
            help="write TIME_BUCKET(INTERVAL '5' MINUTE, ts); for months and years DATE_TRUNC('month', ts)",
        )
    micros = _micros(binder, node, time)
    instants = time.type.kind is Kind.TIMESTAMP_LTZ
    origin = _micros(binder, node, rest[0]) if rest else Literal(BIGINT, False, BUCKET_ORIGIN % width.value)
    behind = binder.call("-", [micros, origin], node.span, node.args)
    inside = binder.call("pmod", [behind, Literal(BIGINT, False, width.value)], node.span, node.args)
    start = binder.call("-", [micros, inside], node.span, node.args)
    made = binder.call("timestamp_micros", [start], node.span, node.args, node.name_span)
    return as_instant(made) if instants else made


def _micros(binder: ShorthandBinder, node: ast.Call, time: Expr) -> Expr:
    """A time as a number of microseconds."""
    whole = time if time.type.is_timestamp else binder.bind_cast(time, TIMESTAMP, time.span)
    return binder.call("unix_micros", [whole], node.span, node.args)


@shorthand("add_months")
def _add_months(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ADD_MONTHS(time, count): time + count * INTERVAL '1' MONTH."""
    time, count = binder.exactly(node, 2)
    if count.type.is_integer:
        count = binder.call("*", [count, Literal(INTERVAL_MONTH, False, 1)], node.span, node.args)
    return binder.call("add_months", [time, count], node.span, node.args, node.name_span)


LENGTHS = {
    "to_microseconds": 1, "to_milliseconds": 1_000, "to_seconds": 1_000_000, "to_minutes": 60_000_000,
    "to_hours": 3_600_000_000, "to_days": DAY_US, "to_weeks": 7 * DAY_US,
}  # fmt: skip
MONTHS = {"to_months": 1, "to_quarters": 3, "to_years": 12, "to_decades": 120}


@shorthand(*LENGTHS, *MONTHS)
def _length(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_DAYS(n): n * INTERVAL '1' DAY; likewise for other units."""
    (count,) = binder.exactly(node, 1)
    unit = (
        Literal(INTERVAL_MONTH, False, MONTHS[node.name])
        if node.name in MONTHS
        else Literal(INTERVAL, False, LENGTHS[node.name])
    )
    return binder.call("*", [count, unit], node.span, [node, node], node.name_span)


@shorthand("make_time")
def _make_time(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """MAKE_TIME(hour, minute, second): the TIME of MAKE_TIMESTAMP on any day."""
    parts = binder.exactly(node, 3)
    day = [Literal(INTEGER, False, n, span=node.span) for n in (1970, 1, 1)]
    time = binder.call("make_timestamp", [*day, *parts], node.span, [node, node, node, *node.args], node.name_span)
    return binder.bind_cast(time, TIME, node.span)


@shorthand("next_day")
def _next_day(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """NEXT_DAY(date, 'Mon'): the first date after `date` that falls on this weekday, a constant."""
    date, weekday = binder.exactly(node, 2)
    named = weekday.value.lower() if isinstance(weekday, Literal) and isinstance(weekday.value, str) else ""
    numbers = [n for n, day in enumerate(WEEKDAY_NAMES) if named in {day.lower(), day[:2].lower(), day[:3].lower()}]
    if not numbers:
        cause = "NEXT_DAY takes the name of a weekday as a constant"
        way = "write NEXT_DAY(d, 'Mon'), or 'Monday'; ISODOW(d) is the number of its weekday"
        raise compile_error("CQ0302", cause, weekday.span, help=way)
    date = binder.bind_cast(date, DATE, date.span)
    ahead = binder.call("weekday", [date], node.span, [node])
    for name, number in (("-", numbers[0] - 1), ("pmod", 7), ("+", 1)):
        other = integer_literal(number, node.span)
        args = [other, ahead] if name == "-" else [ahead, other]
        ahead = binder.call(name, args, node.span, [node, node])
    return binder.call("date_add", [date, binder.bind_cast(ahead, INTEGER, node.span)], node.span, [node, node])


@shorthand("yearweek")
def _yearweek(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """YEARWEEK(date): ISOYEAR(date) * 100 + WEEK(date)."""
    (date,) = binder.exactly(node, 1)
    year, week = (binder.call(name, [date], node.span, node.args, node.name_span) for name in ("isoyear", "week"))
    hundreds = binder.call("*", [year, integer_literal(100, node.span)], node.span, [node, node])
    return binder.call("+", [hundreds, week], node.span, [node, node])


@shorthand("epoch_ns")
def _epoch_ns(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """EPOCH_NS(time): UNIX_MICROS(time) * 1000."""
    (time,) = binder.exactly(node, 1)
    thousand = integer_literal(1000, node.span)
    return binder.call("*", [_micros(binder, node, time), thousand], node.span, [node, node])


@shorthand("convert_timezone")
def _convert_timezone(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """CONVERT_TIMEZONE([from,] to, time): FROM_UTC_TIMESTAMP(TO_UTC_TIMESTAMP(time, from), to); `from` is UTC by
    default."""
    *zones, time = binder.positional(node, 2)
    if len(zones) > 2:
        cause = "CONVERT_TIMEZONE takes one or two zones and a time"
        way = "write CONVERT_TIMEZONE('UTC', 'Europe/Berlin', ts)"
        raise compile_error("CQ0302", cause, node.span, help=way)
    if len(zones) == 2:
        time = binder.call("to_utc_timestamp", [time, zones[0]], node.span, [node.args[2], node.args[0]])
    return binder.call("from_utc_timestamp", [time, zones[-1]], node.span, [node.args[-1], node.args[len(zones) - 1]])


@shorthand("to_timestamp_ltz")
def _to_timestamp_ltz(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TO_TIMESTAMP_LTZ(number, 0) and (number, 3): the TIMESTAMP_LTZ that many seconds, or milliseconds, after 1970."""
    number, digits = binder.exactly(node, 2)
    names = {0: "timestamp_seconds", 3: "timestamp_millis"}
    if not isinstance(digits, Literal) or digits.value not in names:
        raise compile_error(
            "CQ0302", "TO_TIMESTAMP_LTZ counts seconds, 0, or milliseconds, 3", digits.span,
            help="write TO_TIMESTAMP_LTZ(millis, 3); a text is read by TO_TIMESTAMP(text, 'yyyy-MM-dd HH:mm:ss')",
        )  # fmt: skip
    return as_instant(binder.call(names[digits.value], [number], node.span, node.args[:1], node.name_span))


# -- URLs -------------------------------------------------------------------------------------------------------------

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_IN_FRONT = r"^(?:[^:/?#]+:)?(?://[^/?#]*)?"
URL_PARTS = {
    "PROTOCOL": r"^([A-Za-z][A-Za-z0-9+.\-]*):",
    "HOST": rf"^{_SCHEME}//(?:[^/?#@]*@)?([^/?#:@]*)",
    "AUTHORITY": rf"^{_SCHEME}//([^/?#]*)",
    "USERINFO": rf"^{_SCHEME}//([^/?#@]*)@",
    "PATH": rf"{_IN_FRONT}([^?#]*)",
    "FILE": rf"{_IN_FRONT}([^#]*)",
    "QUERY": r"^[^?#]*\?([^#]*)",
    "REF": r"(?s)^[^#]*#(.*)",
}


@shorthand("parse_url")
def _parse_url(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """PARSE_URL(url, 'HOST'), PARSE_URL(url, 'QUERY', 'key'): REGEXP_EXTRACT of the part; NULL if missing or empty."""
    url, part, *keys = binder.positional(node, 2)
    pattern = URL_PARTS.get(str(part.value)) if isinstance(part, Literal) else None
    if pattern is None or len(keys) > 1:
        raise _no_part(part)
    if keys:
        if not isinstance(keys[0], Literal) or not isinstance(keys[0].value, str) or pattern != URL_PARTS["QUERY"]:
            raise _no_part(keys[0])
        name = re.sub(r"[^0-9A-Za-z]", lambda c: f"\\x{{{ord(c[0]):X}}}", keys[0].value)
        pattern = rf"^[^?#]*\?(?:[^#]*?&)??{name}=([^&#]*)"
    args = [url, Literal(VARCHAR, False, pattern, span=part.span), Literal(INTEGER, False, 1, span=part.span)]
    found = binder.call("regexp_extract", args, node.span, [*node.args[:2], node], node.name_span)
    empty = binder.compare("=", found, Literal(VARCHAR, False, ""), node.span)
    return binder.conditional([empty], [Literal(VARCHAR, True, None), convert(found, VARCHAR)], node.span)


def _no_part(given: Expr) -> CompileError:
    return compile_error(
        "CQ0302", "PARSE_URL takes the name of a part, and optionally a key for QUERY, as literals", given.span,
        help=f"parts: {', '.join(URL_PARTS)}; write PARSE_URL(url, 'HOST') or PARSE_URL(url, 'QUERY', 'key')",
    )  # fmt: skip
