"""Kernel forms: the registry of functions written as kernel code, and what a form reads and returns."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.entries import enter
from cq.errors import Span
from cq.lang.expressions import Call, Cast
from cq.lang.types import DataType, Kind, Physical
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode

Form = Callable[[Scope, "Strict"], None]
"""Writes a kernel form: reads `call.args` (not NULL there) and assigns `call.result`."""


class Strict:
    """One strict call being written: its arguments, and where its result goes."""

    __slots__ = ("args", "node", "result", "span", "text")

    def __init__(self, node: Call | Cast, args: tuple[Val, ...], result: Val, text: str) -> None:
        self.node = node
        self.args = args
        self.result = result
        self.span: Span = node.span
        self.text = text

    @property
    def type(self) -> DataType:
        return self.node.type

    def give(self, scope: Scope, *parts: ast.expr) -> None:
        """Set the result to these parts."""
        scope.assign(self.result, Val(self.type, parts, ast.Constant(False) if self.result.null else None))


PureForm = Callable[[Scope, Strict], ast.expr]

FORMS: dict[str, Form] = {}
PURE: dict[str, PureForm] = {}


def form(name: str) -> Callable[[Form], Form]:
    """Register the writer of a kernel form."""

    def register(function: Form) -> Form:
        enter(FORMS, name, function, "kernel form", ["there is a pure one of that name"] if name in PURE else [])
        return function

    return register


def pure(name: str) -> Callable[[PureForm], PureForm]:
    """Register a kernel form that is one expression, valid whatever the parts of a NULL hold."""

    def register(function: PureForm) -> PureForm:
        enter(PURE, name, function, "pure kernel form", ["there is a form of that name"] if name in FORMS else [])
        return function

    return register


# -- results of library functions -------------------------------------------------------------------------------------


def give_text(scope: Scope, call: Strict, made: ast.expr) -> None:
    """The result is the text a library function made: its address, 0 if out of memory; its length is in the state."""
    address = scope.let(made, "text")
    no_memory(scope, call, expr("A == 0", A=address))
    call.give(scope, address, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size"))


def result_of(
    scope: Scope, call: Strict, status: ast.expr, code: ErrorCode, why: str = "", shown: Val | None = None
) -> ast.expr:
    """The value a library function left in the state. `status`: its result, an ErrorCode; the error raised is `code`.

    why: the message of the error; by default it names the function.  shown: as in `Scope.fail`.
    """
    answer = scope.let(status, "status")
    no_memory(scope, call, expr("S == CODE", S=answer, CODE=ErrorCode.NO_MEMORY))
    with scope.when(expr("S != 0", S=answer)):
        scope.fail(code, why or call.text, call.span, shown=shown)
    return stored(call.type)


def stored(type_: DataType) -> ast.expr:
    """The value of this type in the state's result word."""
    load = "ld_f64(state, W)" if type_.physical is Physical.F64 else "ld_i64(state, W)"
    return expr(f"{load} != 0" if type_.kind is Kind.BOOLEAN else load, W=abi.STATE_RESULT)


def stored_parts(scope: Scope, type_: DataType) -> tuple[ast.expr, ...]:
    """The parts of the value of this type in the state's result words, in locals."""
    if type_.physical is not Physical.I128:
        return (scope.let(stored(type_)),)
    return tuple(scope.let(expr("ld_i64(state, W)", W=w)) for w in (abi.STATE_RESULT, abi.STATE_RESULT_HIGH))


def no_memory(scope: Scope, call: Strict, condition: ast.expr) -> None:
    """Stop, out of memory, if the condition holds."""
    with scope.when(condition):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
