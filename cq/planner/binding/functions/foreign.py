"""Short forms in the words of further systems: ksqlDB, Flink, ClickHouse, DuckDB, Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.functions.array_building import DESCENDING, NULLS_FIRST
from cq.lang.functions.time_formats import BadPattern, java_pattern
from cq.lang.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, TIMESTAMP, VARCHAR, Kind
from cq.planner.binding.conversion import convert
from cq.planner.binding.functions.shorthands import SHORTHANDS, ShorthandBinder, shorthand
from cq.records import replace

_TRUNC_UNITS = {
    **dict.fromkeys(["year", "yyyy", "yy"], "year"), **dict.fromkeys(["month", "mon", "mm"], "month"),
    "quarter": "quarter", "week": "week",
}  # fmt: skip
_CLICKHOUSE_STARTS = {
    f"tostartof{unit}": unit for unit in ("second", "minute", "hour", "day", "month", "quarter", "year")
}


@shorthand("strlen")
def _strlen(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """STRLEN(text): OCTET_LENGTH(text)."""
    return binder.call("octet_length", binder.exactly(node, 1), node.span, node.args, node.name_span)


@shorthand("split_index")
def _split_index(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """SPLIT_INDEX(text, separator, n): piece n of SPLIT, counted from 0; NULL if there is none."""
    text, separator, number = binder.exactly(node, 3)
    pieces = binder.call("split", [text, separator], node.span, node.args[:2])
    one = Literal(INTEGER, False, 1, span=number.span)
    place = binder.call("+", [number, one], node.span, node.args[2:])
    none = binder.compare("<", number, Literal(INTEGER, False, 0, span=number.span), node.span)
    place = binder.conditional([none], [Literal(place.type, True, None), place], node.span)
    return binder.call("element_at", [pieces, place], node.span, [node, node], node.name_span)


@shorthand("extractjsonfield")
def _extractjsonfield(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """EXTRACTJSONFIELD(text, path): GET_JSON_OBJECT(text, path)."""
    return binder.call("get_json_object", binder.exactly(node, 2), node.span, node.args, node.name_span)


@shorthand("format_timestamp", "format_date", "formatdatetime")
def _format_timestamp(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FORMAT_TIMESTAMP(time, pattern): DATE_FORMAT(time, pattern), and of BigQuery STRFTIME of (pattern, time)."""
    match node.args:
        case (ast.StringLiteral(pattern) as first, second) if "%" in pattern:
            return SHORTHANDS["strftime"](binder, replace(node, args=(second, first)))
    return binder.call("date_format", binder.exactly(node, 2), node.span, node.args, node.name_span)


_MYSQL_FIELDS = {
    "i": "M", "s": "S", "M": "B", "W": "A", "e": "-d", "c": "-m", "k": "-H", "l": "-I", "h": "I", "r": "I:%M:%S %p",
}  # fmt: skip


@shorthand("date_format")
def _date_format(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """DATE_FORMAT(time, '%Y-%m'): with MySQL's % pattern, where %i is the minute; otherwise a function."""
    time, pattern = binder.exactly(node, 2)
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and "%" in pattern.value:
        directives = re.sub("%(.)", lambda d: "%" + _MYSQL_FIELDS.get(d[1], d[1]), pattern.value)
        try:
            letters = java_pattern(directives)
        except BadPattern as bad:
            raise compile_error(
                "CQ0302", f"in the pattern '{pattern.value}' {bad}", pattern.span,
                help="fields: %Y %y %m %c %M %b %d %e %H %k %h %l %i %s %p %a %W %j %f %T %%, or yyyy-MM-dd HH:mm",
            ) from None  # fmt: skip
        pattern = Literal(VARCHAR, False, letters, span=pattern.span)
    return binder.call("date_format", [time, pattern], node.span, node.args, node.name_span)


@shorthand("timestamptostring")
def _timestamptostring(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TIMESTAMPTOSTRING(millis, pattern): DATE_FORMAT(TIMESTAMP_MILLIS(millis), pattern)."""
    value, pattern = binder.exactly(node, 2)
    time = binder.call("timestamp_millis", [value], node.span, node.args[:1]) if value.type.is_integer else value
    return binder.call("date_format", [time, pattern], node.span, node.args, node.name_span)


@shorthand("sort_array")
def _sort_array(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """SORT_ARRAY(array [, ascending]): the elements in order, NULLs first; with FALSE, in reverse."""
    array, *ascending = binder.positional(node, 1)
    given = ascending[0] if len(ascending) == 1 else Literal(BOOLEAN, False, True, span=node.span)
    if len(ascending) > 1 or not isinstance(given, Literal) or given.type != BOOLEAN or given.value is None:
        raise compile_error(
            "CQ0302", "SORT_ARRAY takes an array and optionally TRUE or FALSE", given.span, help="SORT_ARRAY(xs, FALSE)"
        )
    order = Literal(INTEGER, False, NULLS_FIRST if given.value else DESCENDING, span=node.span)
    return binder.call("array_order", [array, array, order], node.span, [node] * 3, node.name_span)


@shorthand(*_CLICKHOUSE_STARTS)
def _tostartof(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TOSTARTOFHOUR(time): DATE_TRUNC('hour', time); likewise for other units."""
    (time,) = binder.exactly(node, 1)
    return binder.call(f"date_trunc_{_CLICKHOUSE_STARTS[node.name]}", [time], node.span, node.args, node.name_span)


@shorthand("epoch")
def _epoch(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """EPOCH(time), EPOCH(INTERVAL): the seconds since 1970, or in the interval, including the fraction, as DOUBLE."""
    (value,) = binder.exactly(node, 1)
    return seconds_of(binder, value, node)


def seconds_of(binder: ShorthandBinder, value: Expr, node: ast.Node) -> Expr:
    """The seconds of a time since 1970, or of an INTERVAL, as DOUBLE."""
    if value.type == INTERVAL:
        start = Literal(TIMESTAMP, False, 0, span=value.span)
        value = binder.call("+", [start, value], value.span, [node, node])
    elif not value.type.is_timestamp:
        value = binder.bind_cast(value, TIMESTAMP, value.span)
    micros = convert(binder.call("unix_micros", [value], value.span, [node]), DOUBLE)
    return binder.call("/", [micros, Literal(DOUBLE, False, 1e6, span=value.span)], value.span, [node, node])


def as_one(binder: ShorthandBinder, values: Sequence[Expr], node: ast.Call) -> Expr:
    """The value that COUNT(DISTINCT a, b) counts: a distinct text for each distinct row of values, NULL if one of them
    is.

    Each value is preceded by its length. A zero has no sign, as in comparisons.
    """
    parts: list[Expr] = []
    for value in values:
        zero = Literal(value.type, False, 0.0, span=value.span)
        real = value.type.kind in (Kind.REAL, Kind.DOUBLE)
        unsigned = binder.call("+", [value, zero], value.span, [node, node]) if real else value
        text = binder.bind_cast(unsigned, VARCHAR, value.span)
        parts += [binder.call("length", [text], value.span, [node]), Literal(VARCHAR, False, ":"), text]
    return binder.call("concat", parts, node.span, [node] * len(parts))


def part_of_length(binder: ShorthandBinder, part: str, length: Expr, node: ast.Node) -> Expr:
    """EXTRACT(EPOCH FROM b - a). CQ0302 for other parts: an INTERVAL has none."""
    if length.type == INTERVAL and part.lower() == "epoch":
        return seconds_of(binder, length, node)
    raise compile_error(
        "CQ0302", f"{part.upper()} takes a time, not an INTERVAL", length.span, label=str(length.type),
        help="the length as a number of seconds is EXTRACT(EPOCH FROM b - a), in whole units TIMESTAMPDIFF(HOUR, a, b)",
    )  # fmt: skip


@shorthand("width_bucket")
def _width_bucket(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """WIDTH_BUCKET(x, low, high, n): the number, from 1, of the one of n equal parts that contains x; 0 below, n + 1
    above."""
    x, low, high, parts = (binder.bind_cast(a, DOUBLE, a.span) for a in binder.exactly(node, 4))

    def call(name: str, *args: Expr) -> Expr:
        return binder.call(name, list(args), node.span, [node] * len(args))

    one = Literal(DOUBLE, False, 1.0, span=node.span)
    inside = call("+", call("floor", call("/", call("*", call("-", x, low), parts), call("-", high, low))), one)
    below, above = binder.compare("<", x, low, node.span), binder.compare(">=", x, high, node.span)
    zero = Literal(DOUBLE, False, 0.0, span=node.span)
    found = binder.conditional([below, above], [zero, call("+", parts, one), convert(inside, DOUBLE)], node.span)
    return binder.bind_cast(found, BIGINT, node.span)


@shorthand("trunc")
def _trunc(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TRUNC(date, 'MM'): DATE_TRUNC('month', date) as a DATE; likewise for 'YEAR', 'QUARTER' and 'WEEK'. For a number,
    a function."""
    args = binder.positional(node, 1)
    unit = args[1] if len(args) == 2 else None
    is_time = args[0].type.is_timestamp or args[0].type.kind is Kind.DATE
    if not is_time or not isinstance(unit, Literal) or unit.type != VARCHAR:
        return binder.call("trunc", args, node.span, node.args, node.name_span)
    name = _TRUNC_UNITS.get(str(unit.value).lower())
    if name is None:
        raise compile_error(
            "CQ0302", f"TRUNC has no unit '{unit.value}'", unit.span, help="units: YEAR, QUARTER, MONTH, WEEK"
        )
    start = binder.call(f"date_trunc_{name}", [args[0]], node.span, node.args[1:], node.name_span)
    return binder.bind_cast(start, DATE, node.span)
