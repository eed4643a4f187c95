"""Kernel forms of CAST and TRY_CAST: one for every pair of families of types. A bad value is an error, or NULL."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from cq.codegen.expressions.constants import constant_text
from cq.codegen.expressions.forms import Strict, form, give_text, pure, stored_parts
from cq.codegen.expressions.rounding import in_bigint, power_of_ten
from cq.codegen.expressions.zone_tables import zone_by_instant, zone_by_local
from cq.codegen.values import Scope, default_parts
from cq.codegen.writer import expr
from cq.lang.calendar import DAY_US
from cq.lang.casts import cannot_cast
from cq.lang.expressions import Cast
from cq.lang.types import INTEGER_BITS, REAL, DataType, Kind, Physical, integer_range
from cq.records import replace
from cq.runtime.layout.abi import ErrorCode

_EXACT_INTEGER = 2**53  # every integer up to here is a double
_FAMILIES = {Kind.REAL: "float", Kind.DOUBLE: "float", Kind.VARCHAR: "text", Kind.INTERVAL_MONTH: "months"}


def cast_form(e: Cast) -> str:
    """The kernel form of a cast."""
    source, target = e.arg.type, e.type
    if source == target or source.kind is Kind.NULL:
        return "cast_same"
    wider = source.is_integer and target.is_integer and _bits(source) < _bits(target)
    if wider or (source == REAL and target.is_float):
        return "cast_widened"
    return f"cast_{_family(source)}_{_family(target)}"


def _family(type_: DataType) -> str:
    if type_.physical is Physical.I128:
        return "wide"
    return "integer" if type_.is_integer else _FAMILIES.get(type_.kind, type_.kind.value.lower())


def _bits(type_: DataType) -> int:
    return INTEGER_BITS[type_.kind]


@contextmanager
def unless(scope: Scope, call: Strict, bad: ast.expr) -> Iterator[None]:
    """Inside, the value is convertible; otherwise the cast fails, or its result stays NULL."""
    assert isinstance(call.node, Cast)
    if call.node.try_:
        with scope.when(expr("not BAD", BAD=bad)):
            yield
        return
    with scope.when(bad):
        _fail_cast(scope, call)
    yield


def _fail_cast(scope: Scope, call: Strict) -> None:
    """Write the exit with the error of a value that cannot be cast."""
    (value,) = call.args
    if value.type.kind is Kind.ARRAY:
        scope.fail(ErrorCode.BAD_CAST, call.text, call.span)
        return
    told = cannot_cast("{}", call.type)
    scope.fail(ErrorCode.BAD_CAST, told, call.span, shown=replace(value, null=None))


def give_read(scope: Scope, call: Strict, status: ast.expr) -> None:
    """The result is the value a library function left in the state, if its status, an ErrorCode, is 0."""
    answer = scope.let(status, "status")
    with scope.when(expr("S == CODE", S=answer, CODE=ErrorCode.NO_MEMORY)):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
    with unless(scope, call, expr("S != 0", S=answer)):
        call.give(scope, *stored_parts(scope, call.type))


def settled(call: Strict, value: ast.expr) -> ast.expr:
    """A double, rounded to REAL if the result is one."""
    return expr("f32_round(V)", V=value) if call.type == REAL else value


@form("cast_same")
def _same(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    call.give(scope, *(value.parts if value.type == call.type else default_parts(call.type)))


@pure("cast_widened")
def _widened(scope: Scope, call: Strict) -> ast.expr:
    return call.args[0].it


# -- between numbers and BOOLEAN --------------------------------------------------------------------------------------


def _checked_integer(scope: Scope, call: Strict, whole: ast.expr) -> None:
    low, high = integer_range(call.type)
    if _bits(call.type) == 64:
        call.give(scope, whole)
        return
    with unless(scope, call, expr("W < LOW or W > HIGH", W=whole, LOW=low, HIGH=high)):
        call.give(scope, whole)


@form("cast_integer_integer")
def _integer_integer(scope: Scope, call: Strict) -> None:
    _checked_integer(scope, call, call.args[0].it)


@form("cast_decimal_integer")
def _decimal_integer(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    whole = expr("sdiv(A, UNIT)", A=value.it, UNIT=power_of_ten(value.type.scale))
    _checked_integer(scope, call, scope.let(whole))


@form("cast_float_integer")
def _float_integer(scope: Scope, call: Strict) -> None:
    whole = scope.let(expr("f64_trunc(A)", A=call.args[0].it))
    if _bits(call.type) == 64:
        fits = in_bigint(whole)
    else:
        low, high = integer_range(call.type)
        fits = expr("W >= LOW and W <= HIGH", W=whole, LOW=float(low), HIGH=float(high))
    with unless(scope, call, expr("not FITS", FITS=fits)):
        call.give(scope, scope.let(expr("f64_to_i64(W)", W=whole)))


@pure("cast_boolean_integer")
def _boolean_integer(scope: Scope, call: Strict) -> ast.expr:
    return expr("pick(A, 1, 0)", A=call.args[0].it)


@pure("cast_integer_float")
def _integer_float(scope: Scope, call: Strict) -> ast.expr:
    return settled(call, expr("i64_to_f64(A)", A=call.args[0].it))


@pure("cast_boolean_float")
def _boolean_float(scope: Scope, call: Strict) -> ast.expr:
    return expr("pick_f64(A, 1.0, 0.0)", A=call.args[0].it)


@pure("cast_float_float")
def _float_float(scope: Scope, call: Strict) -> ast.expr:
    return settled(call, call.args[0].it)


@form("cast_decimal_float")
def _decimal_float(scope: Scope, call: Strict) -> None:
    """Round once: in the division of a small value by a power of ten, both doubles; else in the library."""
    (value,) = call.args
    unit = power_of_ten(value.type.scale)
    made = ast.Name(scope.writer.let(ast.Constant(0.0)), ast.Load())
    with scope.when(expr("A <= MOST and A >= -MOST", A=value.it, MOST=_EXACT_INTEGER)):
        quotient = expr("f64_div(i64_to_f64(A), i64_to_f64(UNIT))", A=value.it, UNIT=unit)
        scope.writer.set(made.id, quotient)
    with scope.otherwise():
        scope.writer.set(made.id, expr("avg_i128(A >> 63, A, UNIT)", A=value.it, UNIT=unit))
    call.give(scope, scope.let(settled(call, made)))


def _to_boolean(family: str, zero: float) -> None:
    @pure(f"cast_{family}_boolean")
    def is_not_zero(scope: Scope, call: Strict) -> ast.expr:
        return expr("A != ZERO", A=call.args[0].it, ZERO=zero)


_to_boolean("integer", 0)
_to_boolean("decimal", 0)
_to_boolean("float", 0.0)


def _scaled_up(scope: Scope, call: Strict, value: ast.expr, shift: int) -> None:
    """value * 10**shift, if it fits the digits of the result's type."""
    bound = 10 ** max(0, call.type.precision - shift)
    with unless(scope, call, expr("A >= BOUND or A <= -BOUND", A=value, BOUND=bound)):
        call.give(scope, scope.let(expr("A * UNIT", A=value, UNIT=power_of_ten(shift))))


@form("cast_integer_decimal")
def _integer_decimal(scope: Scope, call: Strict) -> None:
    _scaled_up(scope, call, call.args[0].it, call.type.scale)


@form("cast_boolean_decimal")
def _boolean_decimal(scope: Scope, call: Strict) -> None:
    _scaled_up(scope, call, scope.let(expr("pick(A, 1, 0)", A=call.args[0].it)), call.type.scale)


@form("cast_decimal_decimal")
def _decimal_decimal(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    shift = call.type.scale - value.type.scale
    if shift >= 0:
        _scaled_up(scope, call, value.it, shift)
        return
    units = scope.let(expr("divided_half_up(A, UNIT)", A=value.it, UNIT=power_of_ten(-shift)))
    _scaled_up(scope, call, units, 0)


@form("cast_float_decimal")
def _float_decimal(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    digits = {"P": call.type.precision, "S": call.type.scale}
    give_read(
        scope,
        call,
        expr("double_to_decimal(state, A, REAL, P, S)", A=value.it, REAL=int(value.type == REAL), **digits),
    )


# -- between times ---------------------------------------------------------------------------------------


@pure("cast_timestamp_date")
def _timestamp_date(scope: Scope, call: Strict) -> ast.expr:
    return expr("floordiv(A, DAY)", A=call.args[0].it, DAY=DAY_US)


@form("cast_date_timestamp")
def _date_timestamp(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    with unless(scope, call, expr("mul_ovf(A, DAY)", A=value.it, DAY=DAY_US)):
        call.give(scope, scope.let(expr("wmul(A, DAY)", A=value.it, DAY=DAY_US)))


@pure("cast_timestamp_time")
def _timestamp_time(scope: Scope, call: Strict) -> ast.expr:
    return expr("floormod(A, DAY)", A=call.args[0].it, DAY=DAY_US)


@pure("cast_interval_time")
def _interval_time(scope: Scope, call: Strict) -> ast.expr:
    return expr("floormod(A, DAY)", A=call.args[0].it, DAY=DAY_US)


@pure("cast_time_interval")
def _time_interval(scope: Scope, call: Strict) -> ast.expr:
    return call.args[0].it


# -- instants ---------------------------------------------------------------------------------------------------------


@pure("cast_timestamp_ltz_timestamp_ltz")
def _same_instant(scope: Scope, call: Strict) -> ast.expr:
    return call.args[0].it


def _from_instant(family: str, made: str) -> None:
    @form(f"cast_timestamp_ltz_{family}")
    def converted(scope: Scope, call: Strict) -> None:
        (value,) = call.args
        zone = zone_by_instant(scope, value.type.zone)
        offset = scope.let(expr("zone_offset(ZONE, A)", ZONE=zone, A=value.it), "offset")
        with unless(scope, call, expr("add_ovf(A, O)", A=value.it, O=offset)):
            local = scope.let(expr("wadd(A, O)", A=value.it, O=offset), "local")
            call.give(scope, expr(made, LOCAL=local, DAY=DAY_US))


_from_instant("timestamp", "LOCAL")
_from_instant("date", "floordiv(LOCAL, DAY)")
_from_instant("time", "floormod(LOCAL, DAY)")


@form("cast_timestamp_timestamp_ltz")
def _timestamp_instant(scope: Scope, call: Strict) -> None:
    _give_instant(scope, call, call.args[0].it)


@form("cast_date_timestamp_ltz")
def _date_instant(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    with unless(scope, call, expr("mul_ovf(A, DAY)", A=value.it, DAY=DAY_US)):
        _give_instant(scope, call, scope.let(expr("wmul(A, DAY)", A=value.it, DAY=DAY_US)))


def _give_instant(scope: Scope, call: Strict, local: ast.expr) -> None:
    """The instant of a local time."""
    zone = zone_by_local(scope, call.type.zone)
    offset = scope.let(expr("zone_offset(ZONE, A)", ZONE=zone, A=local), "offset")
    with unless(scope, call, expr("sub_ovf(A, O)", A=local, O=offset)):
        call.give(scope, scope.let(expr("wsub(A, O)", A=local, O=offset)))


@form("cast_text_timestamp_ltz")
def _text_instant(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    zone = zone_by_local(scope, call.type.zone)
    give_read(scope, call, expr("read_instant(state, T, L, ZONE)", T=text, L=length, ZONE=zone))


@form("cast_timestamp_ltz_text")
def _instant_text(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    zone = zone_by_instant(scope, value.type.zone)
    give_text(scope, call, expr("write_instant(state, A, ZONE)", A=value.it, ZONE=zone))


# -- text -------------------------------------------------------------------------------------------------------------


@form("cast_text_integer")
def _text_integer(scope: Scope, call: Strict) -> None:
    low, high = integer_range(call.type)
    text, length = call.args[0].parts
    give_read(scope, call, expr("read_integer(state, T, L, LOW, HIGH)", T=text, L=length, LOW=low, HIGH=high))


@form("cast_text_decimal")
def _text_decimal(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    digits = {"P": call.type.precision, "S": call.type.scale}
    give_read(scope, call, expr("read_decimal(state, T, L, P, S)", T=text, L=length, **digits))


def _text_to(family: str, function: str) -> None:
    @form(f"cast_text_{family}")
    def read(scope: Scope, call: Strict) -> None:
        text, length = call.args[0].parts
        give_read(scope, call, expr(f"{function}(state, T, L)", T=text, L=length))


_text_to("boolean", "read_boolean")
_text_to("date", "read_date")
_text_to("time", "read_time_of_day")
_text_to("timestamp", "read_timestamp")


@form("cast_text_float")
def _text_float(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    real = int(call.type == REAL)
    give_read(scope, call, expr("read_double(state, T, L, REAL)", T=text, L=length, REAL=real))


@form("cast_text_binary")
def _text_binary(scope: Scope, call: Strict) -> None:
    call.give(scope, *call.args[0].parts)


@form("cast_binary_text")
def _binary_text(scope: Scope, call: Strict) -> None:
    content, length = call.args[0].parts
    with unless(scope, call, expr("is_utf8(T, L) == 0", T=content, L=length)):
        call.give(scope, content, length)


@form("cast_boolean_text")
def _boolean_text(scope: Scope, call: Strict) -> None:
    yes, no = (constant_text(scope, text).parts for text in ("true", "false"))
    condition = call.args[0].it
    call.give(scope, *(scope.let(expr("pick(A, Y, N)", A=condition, Y=y, N=n)) for y, n in zip(yes, no, strict=True)))


@form("cast_float_text")
def _float_text(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    give_text(scope, call, expr("write_double(state, A, REAL)", A=value.it, REAL=int(value.type == REAL)))


@form("cast_decimal_text")
def _decimal_text(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    give_text(scope, call, expr("write_decimal(state, A, SCALE)", A=value.it, SCALE=value.type.scale))


def _to_text(family: str, function: str) -> None:
    @form(f"cast_{family}_text")
    def written(scope: Scope, call: Strict) -> None:
        give_text(scope, call, expr(f"{function}(state, A)", A=call.args[0].it))


_to_text("integer", "write_integer")
_to_text("date", "write_date")
_to_text("time", "write_time_of_day")
_to_text("timestamp", "write_timestamp")
_to_text("interval", "write_interval")
_to_text("months", "write_months")
