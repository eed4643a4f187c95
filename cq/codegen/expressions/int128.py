"""Arithmetic and rounding of DECIMALs of two words: inline if the type of the result leaves room, else in
cq/runtime/values/decimals.py."""

from __future__ import annotations

import ast

from cq.codegen.expressions.forms import Strict, stored_parts
from cq.codegen.values import Scope, Val, default_parts, high_low
from cq.codegen.writer import expr
from cq.lang.types import MAX_DECIMAL_DIGITS, DataType, Physical, decimal
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.values.decimals import CUT

WIDEST = decimal(MAX_DECIMAL_DIGITS, 0)


def is_int128(*types: DataType) -> bool:
    """Whether one of these is a DECIMAL of two words."""
    return any(t.physical is Physical.I128 for t in types)


def holes(*values: Val) -> dict[str, ast.expr]:
    """The words of values for a template: HA and LA of the first, HB and LB of the second."""
    pairs = [high_low(v) for v in values]
    return {half + "AB"[n]: word for n, pair in enumerate(pairs) for half, word in zip("HL", pair, strict=True)}


def is_zero(value: Val) -> ast.expr:
    """Whether the value is 0."""
    low, high = value.parts
    return expr("L | H == 0", L=low, H=high)


def give_checked(scope: Scope, call: Strict, status: ast.expr) -> None:
    """The result is the value the library left in the state; overflow if the status says so."""
    with scope.when(expr("S != 0", S=scope.let(status, "status"))):
        scope.fail(ErrorCode.OVERFLOW, f"{call.type} overflow", call.span)
    call.give(scope, *stored_parts(scope, call.type))


def give_words(scope: Scope, call: Strict, low: ast.expr, high: ast.expr) -> None:
    """The result has these words."""
    call.give(scope, scope.let(low), scope.let(high))


_NEGATED_HIGH = "pick(LA == 0, wsub(0, HA), ~HA)"


def _sum(scope: Scope, call: Strict, op: str) -> None:
    a, b = call.args
    words = holes(a, b)
    if call.type.precision < MAX_DECIMAL_DIGITS:  # operands of the result's type: it has a digit more than they need
        if op == "add":
            give_words(scope, call, expr("wadd(LA, LB)", **words), expr("add128w_hi(HA, LA, HB, LB)", **words))
        else:
            high = expr("wsub(wsub(HA, HB), pick(ult(LA, LB), 1, 0))", **words)
            give_words(scope, call, expr("wsub(LA, LB)", **words), high)
        return
    if op == "sub":
        negated = {"HA": words["HB"], "LA": words["LB"]}
        words["HB"] = scope.let(expr(_NEGATED_HIGH, **negated))
        words["LB"] = scope.let(expr("wsub(0, LA)", **negated))
    scale = max(a.type.scale, b.type.scale)
    status = expr(
        "decimal_sum(state, HA, LA, UPA, HB, LB, UPB, CUT, P)",
        UPA=scale - a.type.scale, UPB=scale - b.type.scale, CUT=scale - call.type.scale, P=call.type.precision, **words,
    )  # fmt: skip
    give_checked(scope, call, status)


def arithmetic(scope: Scope, call: Strict, op: str) -> None:
    """a op b for add, sub and mul."""
    if op != "mul":
        _sum(scope, call, op)
        return
    a, b = call.args
    if not is_int128(a.type, b.type):
        give_words(scope, call, expr("wmul(A, B)", A=a.it, B=b.it), expr("smulhi(A, B)", A=a.it, B=b.it))
        return
    cut = a.type.scale + b.type.scale - call.type.scale
    status = expr("decimal_product(state, HA, LA, HB, LB, CUT, P)", CUT=cut, P=call.type.precision, **holes(a, b))
    give_checked(scope, call, status)


def quotient_status(call: Strict) -> ast.expr:
    """The status of a / b where b is not 0."""
    a, b = call.args
    up = call.type.scale - a.type.scale + b.type.scale
    return expr("decimal_quotient(state, HA, LA, UP, HB, LB, P)", UP=up, P=call.type.precision, **holes(a, b))


def remainder(scope: Scope, call: Strict) -> None:
    """a % b where b is not 0."""
    scope.writer.code("decimal_remainder(state, HA, LA, HB, LB)", **holes(*call.args))
    call.give(scope, *stored_parts(scope, call.type))


def negate(scope: Scope, call: Strict) -> None:
    words = holes(*call.args)
    give_words(scope, call, expr("wsub(0, LA)", LA=words["LA"]), expr(_NEGATED_HIGH, **words))


def absolute(scope: Scope, call: Strict) -> None:
    words = holes(*call.args)
    low = expr("pick(HA < 0, wsub(0, LA), LA)", **words)
    give_words(scope, call, low, expr(f"pick(HA < 0, {_NEGATED_HIGH}, HA)", **words))


COMPARISONS = {
    "equal": "LA == LB and HA == HB",
    "not_equal": "LA != LB or HA != HB",
    "less": "HA < HB or HA == HB and ult(LA, LB)",
    "less_equal": "HA < HB or HA == HB and not ult(LB, LA)",
    "greater": "HA > HB or HA == HB and ult(LB, LA)",
    "greater_equal": "HA > HB or HA == HB and not ult(LA, LB)",
}


def whole(scope: Scope, call: Strict, way: int) -> None:
    """CEIL and FLOOR; `way` as in the library."""
    (value,) = call.args
    _whole(scope, value, value.type.scale, way)
    call.give(scope, *stored_parts(scope, call.type))


def _whole(scope: Scope, value: Val, cut: int, way: int) -> None:
    scope.writer.code("decimal_whole(state, HA, LA, CUT, WAY)", CUT=cut, WAY=way, **holes(value))


def cut_at(scope: Scope, call: Strict, digits: int, rounded: bool) -> None:
    """ROUND and TRUNC at so many digits after the point, or before it when negative."""
    value = call.args[0]
    cut = value.type.scale - digits
    if cut <= 0:
        call.give(scope, *value.parts)
        return
    if cut > MAX_DECIMAL_DIGITS:  # more digits than the value has
        call.give(scope, *default_parts(call.type))
        return
    if not rounded:
        _whole(scope, value, cut, CUT)
    else:
        scope.writer.code("decimal_rescaled(state, HA, LA, SHIFT, P)", SHIFT=-cut, P=MAX_DECIMAL_DIGITS, **holes(value))
    if digits >= 0:
        call.give(scope, *stored_parts(scope, call.type))
        return
    low, high = stored_parts(scope, WIDEST)
    status = expr("decimal_rescaled(state, H, L, SHIFT, P)", H=high, L=low, SHIFT=-digits, P=call.type.precision)
    give_checked(scope, call, status)
