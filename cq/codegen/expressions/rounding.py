"""Kernel forms of CEIL, FLOOR, ROUND and TRUNC."""

from __future__ import annotations

import ast

from cq.codegen.expressions import int128
from cq.codegen.expressions.forms import Strict, form, result_of
from cq.codegen.expressions.numbers import check_range, overflow
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.lang.expressions import Literal
from cq.lang.types import REAL, Kind
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.values.decimals import DOWN, UP

LOWEST, BEYOND = -9223372036854775808.0, 9223372036854775808.0  # the bounds of BIGINT; the second is just outside


def in_bigint(value: ast.expr) -> ast.expr:
    """Whether a whole double is a BIGINT; not for NaN."""
    return expr("V >= LOW and V < HIGH", V=value, LOW=LOWEST, HIGH=BEYOND)


def power_of_ten(n: int) -> ast.expr:
    """10**n for 0 <= n <= 18."""
    assert 0 <= n <= 18, f"10**{n} is no word"
    return ast.Constant(10**n)


def _whole(name: str, of_decimal: str, way: int) -> None:
    @form(name)
    def rounded(scope: Scope, call: Strict) -> None:
        (value,) = call.args
        if int128.is_int128(value.type):
            int128.whole(scope, call, way)
        elif value.type.kind is Kind.DECIMAL:
            unit = power_of_ten(value.type.scale)
            call.give(scope, scope.let(expr(of_decimal, A=value.it, UNIT=unit)))
        elif value.type.is_integer:
            call.give(scope, value.it)
        else:
            whole = scope.let(expr(f"f64_{name}(A)", A=value.it))
            overflow(scope, call, expr("not FITS", FITS=in_bigint(whole)))
            call.give(scope, scope.let(expr("f64_to_i64(W)", W=whole)))


_whole("floor", "floordiv(A, UNIT)", DOWN)
_whole("ceil", "-floordiv(-A, UNIT)", UP)


@form("round")
def _round(scope: Scope, call: Strict) -> None:
    value = call.args[0]
    digits = call.args[1].it if len(call.args) == 2 else ast.Constant(0)
    if value.type.is_float:
        real = int(value.type == REAL)
        status = expr("round_double(state, A, D, REAL)", A=value.it, D=digits, REAL=real)
        call.give(scope, scope.let(result_of(scope, call, status, ErrorCode.OVERFLOW)))
    elif value.type.kind is Kind.DECIMAL:
        _round_decimal(scope, call)
    else:
        status = expr("round_integer(state, A, D)", A=value.it, D=digits)
        made = scope.let(result_of(scope, call, status, ErrorCode.OVERFLOW))
        check_range(scope, call, made)
        call.give(scope, made)


def _literal_digits(call: Strict) -> int:
    """The second argument; 0 without it."""
    if len(call.args) < 2:
        return 0
    literal = call.node.children[1]
    assert isinstance(literal, Literal) and literal.value is not None, "digits that are no literal"
    return int(literal.value)


def _round_decimal(scope: Scope, call: Strict) -> None:
    """The number of digits is a literal; the result has its own scale."""
    digits = _literal_digits(call)
    value = call.args[0]
    cut = value.type.scale - digits
    if int128.is_int128(value.type, call.type):
        int128.cut_at(scope, call, digits, rounded=True)
    elif cut <= 0:
        call.give(scope, value.it)
    elif cut > 18:  # more digits than the value has
        call.give(scope, ast.Constant(0))
    else:
        units = expr("divided_half_up(A, UNIT)", A=value.it, UNIT=power_of_ten(cut))
        if digits < 0:
            units = expr("UNITS * STEP", UNITS=units, STEP=power_of_ten(-digits))
        call.give(scope, scope.let(units))


@form("trunc")
def _trunc(scope: Scope, call: Strict) -> None:
    value = call.args[0]
    if value.type.is_float:
        call.give(scope, scope.let(expr("f64_trunc(A) + 0.0", A=value.it)))
        return
    digits = _literal_digits(call)
    cut = value.type.scale - digits
    if int128.is_int128(value.type):
        int128.cut_at(scope, call, digits, rounded=False)
    elif cut <= 0:
        call.give(scope, value.it)
    elif cut > 18:
        call.give(scope, ast.Constant(0))
    else:
        units = expr("sdiv(A, UNIT)", A=value.it, UNIT=power_of_ten(cut))
        if digits < 0:
            units = expr("UNITS * STEP", UNITS=units, STEP=power_of_ten(-digits))
        call.give(scope, scope.let(units))
