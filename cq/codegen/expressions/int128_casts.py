"""Kernel forms of CAST and TRY_CAST to and from DECIMALs of two words."""

from __future__ import annotations

import ast

from cq.codegen.expressions.casts import give_read, settled, unless
from cq.codegen.expressions.forms import Strict, form, give_text, pure
from cq.codegen.expressions.int128 import COMPARISONS, give_words, holes, is_zero
from cq.codegen.expressions.rounding import power_of_ten
from cq.codegen.values import Scope, Val, words_of_value
from cq.codegen.writer import expr
from cq.lang.types import BIGINT, REAL, WORD_DIGITS, Physical, as_decimal_digits, decimal, integer_range
from cq.runtime.layout import abi
from cq.runtime.values.decimals import CUT

_BIGINT_DIGITS = 19  # the digits of 2**63; its DECIMAL has 20, as in Spark


def _rescaled(scope: Scope, call: Strict, value: Val) -> None:
    """An integer or a DECIMAL at the scale of the result, if it has the digits for it."""
    precision, scale = as_decimal_digits(value.type)
    if value.type.is_integer:
        precision = min(precision, _BIGINT_DIGITS)
    shift = call.type.scale - scale
    fits = 0 <= shift <= call.type.precision - precision
    words = holes(value)
    if fits and shift == 0:
        give_words(scope, call, words["LA"], words["HA"])
    elif fits and shift <= WORD_DIGITS and len(value.parts) == 1:
        low, high = (expr(f"{op}(A, UNIT)", A=value.it, UNIT=power_of_ten(shift)) for op in ("wmul", "smulhi"))
        give_words(scope, call, low, high)
    elif shift == 0:
        with unless(scope, call, expr("not FITS", FITS=_within(call.type.precision, words))):
            wide = call.type.physical is Physical.I128
            call.give(scope, *(scope.let(words[w]) for w in (("LA", "HA") if wide else ("LA",))))
    else:
        status = expr("decimal_rescaled(state, HA, LA, SHIFT, P)", SHIFT=shift, P=call.type.precision, **words)
        give_read(scope, call, status)


def _within(digits: int, words: dict[str, ast.expr]) -> ast.expr:
    """Whether a number of two words has at most this many digits."""
    below, above = (_bound(n) for n in (10**digits, -(10**digits)))
    return expr(
        "BELOW and ABOVE",
        BELOW=expr(COMPARISONS["less"], **words, **below),
        ABOVE=expr(COMPARISONS["greater"], **words, **above),
    )


def _bound(number: int) -> dict[str, ast.expr]:
    """The words of a number, as the right side of a comparison."""
    low, high = words_of_value(number)
    return {"LB": ast.Constant(low), "HB": ast.Constant(high)}


for _family in ("integer_wide", "decimal_wide", "wide_wide", "wide_decimal"):

    @form(f"cast_{_family}")
    def _to_decimal(scope: Scope, call: Strict) -> None:
        _rescaled(scope, call, call.args[0])


@form("cast_boolean_wide")
def _boolean_wide(scope: Scope, call: Strict) -> None:
    one = scope.let(expr("pick(A, 1, 0)", A=call.args[0].it))
    _rescaled(scope, call, Val(decimal(1, 0), (one,)))


@form("cast_float_wide")
def _float_wide(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    digits = {"P": call.type.precision, "S": call.type.scale, "REAL": int(value.type == REAL)}
    give_read(scope, call, expr("double_to_wide_decimal(state, A, REAL, P, S)", A=value.it, **digits))


@form("cast_text_wide")
def _text_wide(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    digits = {"P": call.type.precision, "S": call.type.scale}
    give_read(scope, call, expr("read_wide_decimal(state, T, L, P, S)", T=text, L=length, **digits))


@form("cast_wide_text")
def _wide_text(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    made = expr("write_wide_decimal(state, HA, LA, SCALE)", SCALE=value.type.scale, **holes(value))
    give_text(scope, call, made)


@form("cast_wide_integer")
def _wide_integer(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    words = holes(value)
    low, high = words["LA"], words["HA"]
    if value.type.scale > 0:
        scope.writer.code("decimal_whole(state, HA, LA, CUT, WAY)", CUT=value.type.scale, WAY=CUT, **words)
        low, high = (scope.let(expr("ld_i64(state, W)", W=w)) for w in (abi.STATE_RESULT, abi.STATE_RESULT_HIGH))
    bad = expr("H != L >> 63", H=high, L=low)
    if call.type != BIGINT:
        least, most = integer_range(call.type)
        bad = expr("BAD or L < LEAST or L > MOST", BAD=bad, L=low, LEAST=least, MOST=most)
    with unless(scope, call, bad):
        call.give(scope, low)


@form("cast_wide_float")
def _wide_float(scope: Scope, call: Strict) -> None:
    (value,) = call.args
    made = scope.let(expr("decimal_to_double(HA, LA, SCALE)", SCALE=value.type.scale, **holes(value)))
    call.give(scope, scope.let(settled(call, made)))


@pure("cast_wide_boolean")
def _wide_boolean(scope: Scope, call: Strict) -> ast.expr:
    return expr("not ZERO", ZERO=is_zero(call.args[0]))
