"""Kernel forms of integer functions that can fail, be NULL, or shift; the others use their own bodies."""

from __future__ import annotations

import ast

from cq.codegen.expressions.forms import Strict, form, pure
from cq.codegen.expressions.numbers import overflow, zero_divisor
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.lang.functions.integers import SEVERAL_ROWS
from cq.lang.types import INTEGER_BITS
from cq.runtime.layout.abi import ErrorCode


@form("pmod")
def _pmod(scope: Scope, call: Strict) -> None:
    zero_divisor(scope, call, call.args[1])
    a, b = (v.it for v in call.args)
    value = ast.Name(scope.writer.let(ast.Constant(0)), ast.Load())
    with scope.when(expr("B != -1", B=b)):
        scope.writer.set(value.id, expr("srem(A, B)", A=a, B=b))
    with scope.when(expr("V < 0 and B > 0", V=value, B=b)):
        scope.writer.set(value.id, expr("V + B", V=value, B=b))
    call.give(scope, value)


def _by_library(name: str, function: str) -> None:
    @form(name)
    def computed(scope: Scope, call: Strict) -> None:
        a, b = (v.it for v in call.args)
        value = scope.let(expr(f"{function}(A, B)", A=a, B=b))
        overflow(scope, call, expr("V < 0", V=value))
        call.give(scope, value)


_by_library("gcd", "common_divisor")
_by_library("lcm", "common_multiple")


@form("factorial")
def _factorial(scope: Scope, call: Strict) -> None:
    (a,) = (v.it for v in call.args)
    with scope.when(expr("A >= 0 and A <= 20", A=a)):
        call.give(scope, scope.let(expr("product_up_to(A)", A=a)))


def _shift(name: str, wide: str, narrow: str) -> None:
    """Shifts of words, and of the lower halves of words."""

    @pure(name)
    def shifted(scope: Scope, call: Strict) -> ast.expr:
        a, b = (v.it for v in call.args)
        return expr(wide if INTEGER_BITS[call.type.kind] == 64 else narrow, A=a, B=b)


_shift("shiftleft", "shl(A, B)", "shl(shl(A, B & 31), 32) >> 32")
_shift("shiftright", "A >> (B & 63)", "A >> (B & 31)")
_shift("shiftrightunsigned", "shr_u(A, B)", "shl(shr_u(A & 4294967295, B & 31), 32) >> 32")


@form("single_row")
def _single_row(scope: Scope, call: Strict) -> None:
    (rows,) = (v.it for v in call.args)
    with scope.when(expr("N > 1", N=rows)):
        scope.fail(ErrorCode.BAD_ARGUMENT, SEVERAL_ROWS, call.span)
    call.give(scope, ast.Constant(True))
