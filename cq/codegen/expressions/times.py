"""Kernel forms of date and timestamp functions that can fail or make text; the others use their own bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from cq.codegen.expressions.constants import constant_table, constant_text
from cq.codegen.expressions.forms import Strict, form, give_text, result_of, stored
from cq.codegen.expressions.numbers import check_range, overflow
from cq.codegen.expressions.zone_tables import zone_by_instant, zone_by_local
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.lang.calendar import DAY_US
from cq.lang.expressions import Literal
from cq.lang.functions.time_formats import fields_of, no_time, reserved_digits
from cq.lang.functions.time_making import LAST_WHOLE_MONTH, MONTH_NAMES, WEEKDAY_NAMES
from cq.lang.types import Kind
from cq.records import replace
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.values.patterns import NAME_BYTES


def _timestamp_of(name: str, unit_us: int) -> None:
    @form(name)
    def made(scope: Scope, call: Strict) -> None:
        overflow(scope, call, expr("mul_ovf(A, UNIT)", A=call.args[0].it, UNIT=unit_us))
        call.give(scope, scope.let(expr("wmul(A, UNIT)", A=call.args[0].it, UNIT=unit_us)))


_timestamp_of("timestamp_seconds", 1_000_000)
_timestamp_of("timestamp_millis", 1_000)


def _days_later(name: str, sign: str) -> None:
    @form(name)
    def moved(scope: Scope, call: Strict) -> None:
        made = scope.let(expr(f"A {sign} B", A=call.args[0].it, B=call.args[1].it))
        check_range(scope, call, made)
        call.give(scope, made)


_days_later("date_add", "+")
_days_later("date_sub", "-")


@form("date_at")
def _date_at(scope: Scope, call: Strict) -> None:
    days, time = (v.it for v in call.args)
    overflow(scope, call, expr("mul_ovf(A, DAY)", A=days, DAY=DAY_US))
    midnight = scope.let(expr("wmul(A, DAY)", A=days, DAY=DAY_US))
    overflow(scope, call, expr("add_ovf(A, B)", A=midnight, B=time))
    call.give(scope, scope.let(expr("wadd(A, B)", A=midnight, B=time)))


@form("add_months")
def _add_months(scope: Scope, call: Strict) -> None:
    time, months = call.args
    if time.type.kind is Kind.INTERVAL_MONTH:
        time, months = months, time
    _months_later(scope, call, time.it, months.it)


@form("subtract_months")
def _subtract_months(scope: Scope, call: Strict) -> None:
    time, months = call.args
    _months_later(scope, call, time.it, expr("-M", M=months.it))


def _months_later(scope: Scope, call: Strict, time: ast.expr, months: ast.expr) -> None:
    if call.type.kind is Kind.DATE:
        made = scope.let(expr("days_plus_months(A, M)", A=time, M=months))
        check_range(scope, call, made)
    else:
        fits = scope.let(expr("time_plus_months(state, A, M)", A=time, M=months))
        overflow(scope, call, expr("FITS == 0", FITS=fits))
        made = scope.let(stored(call.type))
    call.give(scope, made)


# -- made from numbers, and names -------------------------------------------------------------------------------------


@form("make_date")
def _make_date(scope: Scope, call: Strict) -> None:
    year, month, day = (v.it for v in call.args)
    status = expr("make_date(state, Y, M, D)", Y=year, M=month, D=day)
    why = "there is no such day"
    call.give(scope, scope.let(result_of(scope, call, status, ErrorCode.BAD_ARGUMENT, why)))


@form("make_timestamp")
def _make_timestamp(scope: Scope, call: Strict) -> None:
    parts = dict(zip(("Y", "MO", "D", "H", "MI", "S"), (v.it for v in call.args), strict=True))
    status = expr("make_timestamp(state, Y, MO, D, H, MI, S)", **parts)
    why = "there is no such time"
    call.give(scope, scope.let(result_of(scope, call, status, ErrorCode.BAD_ARGUMENT, why)))


@form("last_day")
def _last_day(scope: Scope, call: Strict) -> None:
    (days,) = (v.it for v in call.args)
    overflow(scope, call, expr("A > LAST", A=days, LAST=LAST_WHOLE_MONTH))
    year = scope.let(expr("year_of_days(A)", A=days), "year")
    month = scope.let(expr("month_of_days(A)", A=days), "month")
    last = expr("days_in_month(Y, M)", Y=year, M=month)
    call.give(scope, scope.let(expr("days_from_civil(Y, M, LAST)", Y=year, M=month, LAST=last)))


def _short_name(name: str, names: tuple[str, ...], number: str) -> None:
    @form(name)
    def named(scope: Scope, call: Strict) -> None:
        all_names, _ = constant_text(scope, "".join(n[:3] for n in names)).parts
        at = expr(number, A=call.args[0].it)
        call.give(scope, scope.let(expr("NAMES + AT * 3", NAMES=all_names, AT=at), "text"), ast.Constant(3))


_short_name("dayname", WEEKDAY_NAMES, "floormod(A + 3, 7)")
_short_name("monthname", MONTH_NAMES, "month_of_days(A) - 1")


# -- time zones -------------------------------------------------------------------------------------------------------


def _by_zone(name: str, sign: str, table_of: Callable[[Scope, str], ast.expr]) -> None:
    ways = {"+": ("add_ovf(A, O)", "wadd(A, O)"), "-": ("sub_ovf(A, O)", "wsub(A, O)")}
    too_far, moved = ways[sign]

    @form(name)
    def made(scope: Scope, call: Strict) -> None:
        literal = call.node.children[1]
        assert isinstance(literal, Literal) and isinstance(literal.value, str), "a zone that is no literal"
        time = call.args[0].it
        offset = scope.let(expr("zone_offset(TABLE, A)", TABLE=table_of(scope, literal.value), A=time), "offset")
        overflow(scope, call, expr(too_far, A=time, O=offset))
        call.give(scope, scope.let(expr(moved, A=time, O=offset)))


_by_zone("from_utc_timestamp", "+", zone_by_instant)
_by_zone("to_utc_timestamp", "-", zone_by_local)


# -- patterns ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def pattern_table(pattern: str) -> tuple[bytes, int]:
    """The pattern in the form cq/runtime/values/patterns.py reads, and its number of fields: one a byte of text."""
    fields = fields_of(pattern)
    content: list[bytes] = []
    for number, field in enumerate(fields):
        letter = ord(field.letter)
        if field.letter == "'":
            content += [bytes((letter, 0, 0, byte)) for byte in field.text.encode()]
        else:
            content.append(bytes((letter, field.count, min(255, reserved_digits(fields, number)), 0)))
    names = b"".join(n.encode().ljust(NAME_BYTES, b"\0") for n in (*MONTH_NAMES, *WEEKDAY_NAMES))
    return names + b"".join(content), len(content)


def _pattern(scope: Scope, call: Strict) -> dict[str, ast.expr]:
    literal = call.node.children[1]
    assert isinstance(literal, Literal) and isinstance(literal.value, str), "a pattern that is no literal"
    content, count = pattern_table(literal.value)
    return {"TABLE": constant_table(scope, f"pattern {literal.value}", content), "COUNT": ast.Constant(count)}


@form("date_format")
def _date_format(scope: Scope, call: Strict) -> None:
    give_text(scope, call, expr("write_time(state, A, TABLE, COUNT)", A=call.args[0].it, **_pattern(scope, call)))


def _read_status(scope: Scope, call: Strict) -> ast.expr:
    text, length = call.args[0].parts
    return expr("read_by_pattern(state, T, L, TABLE, COUNT)", T=text, L=length, **_pattern(scope, call))


@form("to_timestamp")
def _to_timestamp(scope: Scope, call: Strict) -> None:
    pattern = call.node.children[1]
    assert isinstance(pattern, Literal), "a pattern that is no literal"
    why, text = no_time("{}", pattern.value), replace(call.args[0], null=None)
    call.give(scope, scope.let(result_of(scope, call, _read_status(scope, call), ErrorCode.BAD_CAST, why, text)))


@form("try_to_timestamp")
def _try_to_timestamp(scope: Scope, call: Strict) -> None:
    with scope.when(expr("STATUS == 0", STATUS=_read_status(scope, call))):
        call.give(scope, scope.let(stored(call.type)))
