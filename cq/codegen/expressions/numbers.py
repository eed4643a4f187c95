"""Kernel forms of arithmetic, comparison and functions of DOUBLE."""

from __future__ import annotations

import ast
import math

from cq.codegen.expressions import int128
from cq.codegen.expressions.forms import Strict, form, pure, stored_parts
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.types import INTEGER_BITS, NAN_BITS, Kind, Physical, integer_range
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode

_WIDE = {Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL}  # results that use all 64 bits: the operation itself may overflow
_NARROW = {Kind.DATE: 32, Kind.INTERVAL_MONTH: 32}


def overflow(scope: Scope, call: Strict, condition: ast.expr) -> None:
    """Stop with an overflow error when the condition holds."""
    with scope.when(condition):
        scope.fail(ErrorCode.OVERFLOW, f"{call.type} overflow", call.span)


def check_range(scope: Scope, call: Strict, value: ast.expr) -> None:
    """Stop when a 64-bit value is outside the range of a narrower integer result."""
    bits = INTEGER_BITS.get(call.type.kind) or _NARROW.get(call.type.kind, 64)
    if bits < 64:
        half = 1 << (bits - 1)
        overflow(scope, call, expr("V < LOW or V > HIGH", V=value, LOW=-half, HIGH=half - 1))


def _settle(call: Strict, value: ast.expr) -> ast.expr:
    """A floating-point result, rounded to its type."""
    return expr("f32_round(V)", V=value) if call.type.kind is Kind.REAL else value


def _arithmetic(scope: Scope, call: Strict, op: str) -> None:
    """a op b for + - *: checked integers, plain floats, decimals, which fit by their type."""
    if int128.is_int128(call.type):
        int128.arithmetic(scope, call, op)
        return
    a, b = (v.it for v in call.args)
    if call.type.is_float:
        sign = {"add": "A + B", "sub": "A - B", "mul": "A * B"}[op]
        call.give(scope, scope.let(_settle(call, expr(sign, A=a, B=b))))
        return
    if call.type.kind in _WIDE or (op == "mul" and any(v.type.kind in _WIDE for v in call.args)):
        overflow(scope, call, expr(f"{op}_ovf(A, B)", A=a, B=b))
    value = scope.let(expr(f"w{op}(A, B)", A=a, B=b))
    if call.type.kind is not Kind.DECIMAL:
        check_range(scope, call, value)
    call.give(scope, value)


@form("add")
def _add(scope: Scope, call: Strict) -> None:
    _arithmetic(scope, call, "add")


@form("subtract")
def _subtract(scope: Scope, call: Strict) -> None:
    _arithmetic(scope, call, "sub")


@form("multiply")
def _multiply(scope: Scope, call: Strict) -> None:
    _arithmetic(scope, call, "mul")


def _is_zero(value: Val) -> ast.expr:
    if int128.is_int128(value.type):
        return int128.is_zero(value)
    return expr("B == ZERO", B=value.it, ZERO=0.0 if value.type.is_float else 0)


def zero_divisor(scope: Scope, call: Strict, divisor: Val) -> None:
    """Stop with an error when the divisor is zero."""
    with scope.when(_is_zero(divisor)):
        scope.fail(ErrorCode.DIVISION_BY_ZERO, "division by zero", call.span)


def _quotient(scope: Scope, call: Strict) -> None:
    """a / b where b is not zero."""
    if int128.is_int128(call.type):
        int128.give_checked(scope, call, int128.quotient_status(call))
        return
    a, b = (v.it for v in call.args)
    if call.type.is_float:
        call.give(scope, scope.let(_settle(call, expr("f64_div(A, B)", A=a, B=b))))
    elif call.type.kind is Kind.DECIMAL:
        _decimal_quotient(scope, call)
    else:
        call.give(scope, scope.let(expr("sdiv(A, B)", A=a, B=b)))


def _too_large(call: Strict) -> ast.expr | None:
    """Whether the quotient of two integers overflows their type: the smallest integer divided by -1."""
    if not call.type.is_integer:
        return None
    a, b = (v.it for v in call.args)
    return expr("A == LOW and B == -1", A=a, B=b, LOW=integer_range(call.type)[0])


def _decimal_quotient(scope: Scope, call: Strict) -> None:
    """The unscaled quotient at the result's scale, halves away from zero."""
    a, b = call.args
    power = call.type.scale - a.type.scale + b.type.scale
    factor = scope.constants.word(10**power) if power <= 18 else -1
    assert factor >= 0, "a decimal quotient that needs more than 64 bits of scale"
    k = scope.let(expr("ld_i64(constants, PLACE)", PLACE=factor))
    divisor = scope.let(expr("pick(B < 0, 0 - B, B)", B=b.it))
    dividend = scope.let(expr("pick(B < 0, 0 - A, A)", A=a.it, B=b.it))
    slot = expr("state + OFFSET", OFFSET=abi.STATE_RESULT * 8)
    done = scope.let(expr("mul_div_half_up(A, K, B, SLOT)", A=dividend, K=k, B=divisor, SLOT=slot))
    overflow(scope, call, expr("D == 0", D=done))
    call.give(scope, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT)))


@form("divide")
def _divide(scope: Scope, call: Strict) -> None:
    zero_divisor(scope, call, call.args[1])
    if (too_large := _too_large(call)) is not None:
        overflow(scope, call, too_large)
    _quotient(scope, call)


@form("try_divide")
def _try_divide(scope: Scope, call: Strict) -> None:
    possible = expr("not ZERO", ZERO=_is_zero(call.args[1]))
    if (too_large := _too_large(call)) is not None:
        possible = expr("POSSIBLE and not LARGE", POSSIBLE=possible, LARGE=too_large)
    with scope.when(possible):
        if not int128.is_int128(call.type):
            _quotient(scope, call)
            return
        with scope.when(expr("S == 0", S=scope.let(int128.quotient_status(call), "status"))):
            call.give(scope, *stored_parts(scope, call.type))


@form("modulo")
def _modulo(scope: Scope, call: Strict) -> None:
    zero_divisor(scope, call, call.args[1])
    if int128.is_int128(*(v.type for v in call.args)):
        int128.remainder(scope, call)
        return
    a, b = (v.it for v in call.args)
    if call.type.is_float:
        call.give(scope, scope.let(_settle(call, expr("f64_rem(A, B)", A=a, B=b))))
        return
    value = ast.Name(scope.writer.let(ast.Constant(0)), ast.Load())
    with scope.when(expr("B != -1", B=b)):
        scope.writer.set(value.id, expr("srem(A, B)", A=a, B=b))
    call.give(scope, value)


@form("negate")
def _negate(scope: Scope, call: Strict) -> None:
    if int128.is_int128(call.type):
        int128.negate(scope, call)
        return
    (a,) = (v.it for v in call.args)
    if call.type.is_float:
        call.give(scope, scope.let(expr("-A", A=a)))
        return
    value = scope.let(expr("wsub(0, A)", A=a))
    if call.type.kind in _WIDE:
        overflow(scope, call, expr("sub_ovf(0, A)", A=a))
    elif call.type.kind is not Kind.DECIMAL:
        check_range(scope, call, value)
    call.give(scope, value)


@form("abs")
def _abs(scope: Scope, call: Strict) -> None:
    if int128.is_int128(call.type):
        int128.absolute(scope, call)
        return
    (a,) = (v.it for v in call.args)
    if call.type.is_float:
        call.give(scope, scope.let(expr("f64_abs(A)", A=a)))
        return
    if call.type.kind in _WIDE:
        overflow(scope, call, expr("sub_ovf(0, A)", A=a))
    value = scope.let(expr("pick(A < 0, wsub(0, A), A)", A=a))
    if call.type.kind is not Kind.DECIMAL:
        check_range(scope, call, value)
    call.give(scope, value)


# -- comparison -------------------------------------------------------------------------------------------------------

_SIGNS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}


def compare(scope: Scope, a: Val, b: Val, name: str) -> ast.expr:
    """a <sign> b as SQL compares: NaN equals NaN and sorts last, text by bytes."""
    sign = _SIGNS[name]
    match a.type.physical:
        case Physical.BYTES:
            if name in {"equal", "not_equal"}:
                floats = a.type.element is not None and a.type.element.is_float
                # NULL has length 0
                bytes_ = "(LA == 0 or same_floats(A, B) != 0)" if floats else "text_same(A, B, LA) == 1"
                same = expr(f"LA == LB and {bytes_}", A=a.parts[0], LA=a.parts[1], B=b.parts[0], LB=b.parts[1])
                return same if name == "equal" else expr("not SAME", SAME=same)
            order = scope.let(_text_order(a, b))
            return expr(f"ORDER {sign} 0", ORDER=order)
        case Physical.F64:
            return expr(_float_comparison(name), A=a.it, B=b.it)
        case Physical.I128:
            return expr(int128.COMPARISONS[name], **int128.holes(a, b))
        case _:
            return expr(f"A {sign} B", A=a.it, B=b.it)


def _text_order(a: Val, b: Val) -> ast.expr:
    return expr("text_compare(A, LA, B, LB)", A=a.parts[0], LA=a.parts[1], B=b.parts[0], LB=b.parts[1])


def _float_comparison(name: str) -> str:
    """NaN is above everything and equal to itself."""
    return {
        "equal": "A == B or A != A and B != B",
        "not_equal": "not (A == B or A != A and B != B)",
        "less": "A < B or A == A and B != B",
        "less_equal": "A <= B or B != B",
        "greater": "A > B or A != A and B == B",
        "greater_equal": "A >= B or A != A",
    }[name]


def _comparison(name: str) -> None:
    @pure(name)
    def compared(scope: Scope, call: Strict) -> ast.expr:
        a, b = call.args
        return compare(scope, a, b, name)


for _sign in _SIGNS:
    _comparison(_sign)


@pure("not")
def _not(scope: Scope, call: Strict) -> ast.expr:
    return expr("not A", A=call.args[0].it)


def _extreme(scope: Scope, call: Strict, name: str) -> None:
    """The largest or smallest argument that is not NULL; NULL when all are. Equal values: the first one."""
    found = ast.Name(scope.writer.let(ast.Constant(False), "n"), ast.Load())
    best = scope.variables(call.type, False)
    for arg in call.args:
        present = expr("not N", N=arg.null) if arg.null is not None else ast.Constant(True)
        with scope.when(present):
            better = compare(scope, arg, best, name)
            with scope.when(expr("not FOUND or BETTER", FOUND=found, BETTER=better)):
                scope.assign(best, Val(call.type, arg.parts))
                scope.writer.set(found.id, True)
    if call.result.null is None:
        call.give(scope, *best.parts)
    else:
        with scope.when(found):
            call.give(scope, *best.parts)


@form("greatest")
def _greatest(scope: Scope, call: Strict) -> None:
    _extreme(scope, call, "greater")


@form("least")
def _least(scope: Scope, call: Strict) -> None:
    _extreme(scope, call, "less")


# -- functions of DOUBLE ----------------------------------------------------------------------------------------------

_GREATEST = 1.7976931348623157e308


def _logarithm(name: str, op: str, bound: float = 0.0) -> None:
    @form(name)
    def logarithm(scope: Scope, call: Strict) -> None:
        (a,) = (v.it for v in call.args)
        with scope.when(expr("not A <= BOUND", A=a, BOUND=ast.Constant(bound))):  # NULL up to there; NaN stays
            call.give(scope, scope.let(expr(f"{op}(A)", A=a)))


_logarithm("ln", "f64_ln")
_logarithm("log10", "f64_log10")
_logarithm("log2", "f64_log2")
_logarithm("log1p", "f64_log1p", -1.0)


@form("log")
def _log(scope: Scope, call: Strict) -> None:
    base, a = (v.it for v in call.args)
    with scope.when(expr("not A <= 0.0 and not B <= 0.0", A=a, B=base)):
        call.give(scope, scope.let(expr("f64_div(f64_ln(A), f64_ln(B))", A=a, B=base)))


def _constant(name: str, value: float) -> None:
    @pure(name)
    def constant(scope: Scope, call: Strict) -> ast.expr:
        return ast.Constant(value)


_constant("pi", math.pi)
_constant("e", math.e)


@form("isnan")
def _isnan(scope: Scope, call: Strict) -> None:
    (a,) = call.args
    present = ast.Constant(True) if a.null is None else expr("not N", N=a.null)
    call.give(scope, scope.let(expr("PRESENT and A != A", PRESENT=present, A=a.it)))


@form("power")
def _power(scope: Scope, call: Strict) -> None:
    """C's pow, except where Java gives NaN: a NaN exponent, and 1 and -1 to an infinite power."""
    x, y = (v.it for v in call.args)
    value = ast.Name(scope.writer.let(expr("bits_f64(NAN)", NAN=NAN_BITS)), ast.Load())
    with scope.when(expr("Y == Y and not (f64_abs(X) == 1.0 and f64_abs(Y) > MOST)", X=x, Y=y, MOST=_GREATEST)):
        scope.writer.set(value.id, expr("f64_pow(X, Y)", X=x, Y=y))
    call.give(scope, value)
