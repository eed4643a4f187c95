"""Calls of the user's functions: as code of the stage where their bodies are plain, else by asking Python.

Code says when it does not know what Python would do (`plain_python`), and then Python is asked for this row: arguments
go into a record, a call by address, the result comes out of it (`cq.runtime.layout.job.UserCall`).
"""

from __future__ import annotations

import ast

from cq.codegen.expressions.forms import Strict, form, no_memory
from cq.codegen.expressions.plain_python import Unfit, native_form
from cq.codegen.values import Constants, Scope, Val, value_words
from cq.codegen.writer import expr
from cq.lang.expressions import Call, Cast, Expr
from cq.lang.functions.user import FORM, UserFunction, UserScalar
from cq.lang.types import Kind, Physical
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.job import UserCall

_FAILURES = (
    (ErrorCode.OVERFLOW, "has a result that is too large, or raised an OverflowError"),
    (ErrorCode.DIVISION_BY_ZERO, "raised a ZeroDivisionError"),
    (ErrorCode.BAD_ARGUMENT, "raised an exception, or returned no value of its type"),
)


def is_user_call(e: Expr) -> bool:
    """Whether an expression is a call of a function of the user."""
    return isinstance(e, Call) and isinstance(e.function, UserScalar)


def why_python(function: UserFunction) -> str:
    """Why kernels ask Python for every value of a function; empty where its body is compiled."""
    try:
        native_form(function, Constants(), "user0")
    except Unfit as why:
        return str(why)
    return ""


def takes_step_bytes(e: Expr) -> bool:
    """Whether an expression takes bytes that live for one step: for a text it makes, or for such a record."""
    if is_user_call(e):
        return True
    return isinstance(e, Call | Cast) and e.type.physical is Physical.BYTES


@form(FORM)
def _user_function(scope: Scope, call: Strict) -> None:
    assert isinstance(call.node, Call) and isinstance(call.node.function, UserScalar)
    made = UserCall(scope.constants.user_function(call.node.function.made_of), call.node.function.made_of)
    native = _native(scope, made)
    if native is None:
        _ask_python(scope, call, made)
        return
    fault, value = scope.writer.fresh("fault"), scope.writer.fresh("v")
    arguments = [expr("pick(V, 1, 0)", V=a.it) if a.type.kind is Kind.BOOLEAN else a.it for a in call.args]
    called = ast.Call(ast.Name(native, ast.Load()), [ast.Name("constants", ast.Load()), *arguments], [])
    targets = ast.Tuple([ast.Name(n, ast.Store()) for n in (fault, value)], ast.Store())
    scope.writer.here().append(ast.Assign([targets], called, lineno=0))
    call.give(scope, expr("V != 0", V=value) if call.type.kind is Kind.BOOLEAN else expr("V", V=value))
    with scope.when(expr("F != 0", F=fault)):
        _ask_python(scope, call, made)


def _native(scope: Scope, made: UserCall) -> str | None:
    """The name of the function as code of the stage, which has it then; None where its body cannot be."""
    prefix = f"user{made.word}"
    name = f"{prefix}_0"
    if name in scope.writer.signatures:
        return name
    try:
        native = native_form(made.function, scope.constants, prefix)
    except Unfit:
        return None
    for definition, signature in native.functions:
        scope.writer.adopt(definition, signature)
    assert native.name == name
    return name


def _ask_python(scope: Scope, call: Strict, made: UserCall) -> None:
    """The result is what the Python function gives."""
    record = scope.let(expr("step_bytes(state, SIZE)", SIZE=8 * made.words), "record")
    no_memory(scope, call, expr("R == 0", R=record))
    for number, argument in enumerate(call.args):
        for half, word in enumerate(value_words(argument)):
            scope.writer.code("st_i64(R, W, V)", R=record, W=made.argument(number) + half, V=word)
        if made.function.sees_null:
            null = 0 if argument.null is None else expr("pick(N, 1, 0)", N=argument.null)
            scope.writer.code("st_i64(R, W, V)", R=record, W=made.null(number), V=null)
    status = scope.let(expr("call2(ld_i64(constants, W), state, R)", W=made.word, R=record), "status")
    with scope.when(expr("S != 0", S=status)):
        no_memory(scope, call, expr("S == CODE", S=status, CODE=ErrorCode.NO_MEMORY))
        for code, cause in _FAILURES:
            with scope.when(expr("S == CODE", S=status, CODE=code)):
                scope.fail(code, f"{made.function.name}() {cause}", call.span)
    _take(scope, call, made, record)


def _take(scope: Scope, call: Strict, made: UserCall, record: ast.expr) -> None:
    """The result of the call is what the record holds."""
    at = made.result
    match call.type.physical:
        case Physical.F64:
            parts = [expr("ld_f64(R, W)", R=record, W=at)]
        case Physical.I64 if call.type.kind is Kind.BOOLEAN:
            parts = [expr("ld_i64(R, W) != 0", R=record, W=at)]
        case Physical.I64:
            parts = [expr("ld_i64(R, W)", R=record, W=at)]
        case _:
            parts = [expr("ld_i64(R, W)", R=record, W=at + half) for half in (0, 1)]
    null = None
    if call.result.null is not None:
        null = scope.let(expr("ld_i64(R, W) != 0", R=record, W=made.result_null), "null")
    scope.assign(call.result, Val(call.type, tuple(scope.let(p) for p in parts), null))
