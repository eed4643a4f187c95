"""Kernel forms of functions of dates and timestamps that can fail; the others are their own bodies."""

from __future__ import annotations

import ast

from cq.codegen.expressions.forms import Strict, form, stored
from cq.codegen.expressions.numbers import check_range, overflow
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.lang.types import Kind


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
