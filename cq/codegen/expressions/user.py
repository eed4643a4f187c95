"""Calls of the user's functions: as code of the stage if their bodies are plain, else by calling Python.

The code reports when it does not know what Python would do (`plain_python`), and then Python is called for this row:
arguments go into a record, a call by address, the results come out of it (`cq.runtime.layout.pipeline.UserCall`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.expressions.forms import Strict, form
from cq.codegen.expressions.plain_python import native_form
from cq.codegen.expressions.plain_source import Unfit
from cq.codegen.values import Constants, Scope, Val, value_words
from cq.codegen.writer import expr
from cq.errors import Span
from cq.lang.expressions import Call, Cast, Expr
from cq.lang.functions.user import FORM, UserFunction, UserScalar
from cq.lang.types import DataType, Kind, Physical
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import UserCall

_FAILURES = (
    (ErrorCode.OVERFLOW, "has a result that is too large, or raised an OverflowError"),
    (ErrorCode.DIVISION_BY_ZERO, "raised a ZeroDivisionError"),
    (ErrorCode.BAD_ARGUMENT, "raised an exception, or returned no value of its type"),
    (ErrorCode.NO_MEMORY, "needs more memory"),
)


def is_user_call(e: Expr) -> bool:
    """Whether an expression is a call of a user function."""
    return isinstance(e, Call) and isinstance(e.function, UserScalar)


def why_python(function: UserFunction) -> str:
    """Why kernels call Python for every value of a function; empty if its body is compiled."""
    try:
        native_form(function, Constants(), "user0")
    except Unfit as why:
        return str(why)
    return ""


def takes_step_bytes(e: Expr) -> bool:
    """Whether an expression takes bytes that live for one step: for a text it makes, or a user call's record."""
    if is_user_call(e):
        return True
    return isinstance(e, Call | Cast) and e.type.physical is Physical.BYTES


@form(FORM)
def _user_function(scope: Scope, call: Strict) -> None:
    assert isinstance(call.node, Call) and isinstance(call.node.function, UserScalar)
    (made,) = user_values(scope, call.node.function.made_of, call.args, call.span)
    scope.assign(call.result, made if call.result.null is not None else Val(made.type, made.parts))


def user_values(scope: Scope, function: UserFunction, args: Sequence[Val], span: Span) -> list[Val]:
    """Write the call of a user function; return its results."""
    unknown = function.may_be_null and not function.moves
    results = [scope.variables(slot.type, slot.optional or unknown, "made") for slot in function.results]
    called = UserCall(scope.constants.user_function(function), function)
    native = _native(scope, called)
    if native is None:
        _ask_python(scope, called, args, results, span)
        return results
    fault, values = scope.writer.fresh("fault"), [scope.writer.fresh("v") for _ in results]
    given = [expr("pick(V, 1, 0)", V=a.it) if a.type.kind is Kind.BOOLEAN else a.it for a in args]
    made = ast.Call(ast.Name(native, ast.Load()), [ast.Name("constants", ast.Load()), *given], [])
    targets = ast.Tuple([ast.Name(n, ast.Store()) for n in (fault, *values)], ast.Store())
    scope.writer.here().append(ast.Assign([targets], made, lineno=0))
    for result, value in zip(results, values, strict=True):
        one = expr("V != 0" if result.type.kind is Kind.BOOLEAN else "V", V=value)
        scope.assign(result, Val(result.type, (one,)))
    with scope.when(expr("F != 0", F=fault)):
        _ask_python(scope, called, args, results, span)
    return results


def _native(scope: Scope, made: UserCall) -> str | None:
    """The name of the function as code of the stage, after adding it there; None if its body cannot be compiled."""
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


def _ask_python(scope: Scope, made: UserCall, args: Sequence[Val], results: Sequence[Val], span: Span) -> None:
    """The results come from the Python function. It may take any time, so a request to stop is checked before it."""
    name = f"{made.function.name}()"
    with scope.when(expr("at_load_acq(state + A) != 0", A=abi.STATE_STOPPING * 8)):
        scope.fail(ErrorCode.STOPPED, "stopped", span)
    record = scope.let(expr("step_bytes(state, SIZE)", SIZE=8 * made.words), "record")
    with scope.when(expr("R == 0", R=record)):
        scope.fail(ErrorCode.NO_MEMORY, name, span)
    for number, argument in enumerate(args):
        for half, word in enumerate(value_words(argument)):
            scope.writer.code("st_i64(R, W, V)", R=record, W=made.argument(number) + half, V=word)
        if made.function.sees_null:
            null = 0 if argument.null is None else expr("pick(N, 1, 0)", N=argument.null)
            scope.writer.code("st_i64(R, W, V)", R=record, W=made.null(number), V=null)
    status = scope.let(expr("call2(ld_i64(constants, W), state, R)", W=made.word, R=record), "status")
    with scope.when(expr("S != 0", S=status)):
        for code, cause in _FAILURES:
            with scope.when(expr("S == CODE", S=status, CODE=code)):
                scope.fail(code, f"{name} {cause}", span, asked=True)
    for number, result in enumerate(results):
        parts = tuple(scope.let(p) for p in _taken(result.type, record, made.result + 2 * number))
        null_at = expr("ld_i64(R, W) != 0", R=record, W=made.result_null)
        scope.assign(result, Val(result.type, parts, None if result.null is None else scope.let(null_at, "null")))


def _taken(type_: DataType, record: ast.expr, at: int) -> list[ast.expr]:
    """The parts of a result, read from the record."""
    match type_.physical:
        case Physical.F64:
            return [expr("ld_f64(R, W)", R=record, W=at)]
        case Physical.I64:
            template = "ld_i64(R, W) != 0" if type_.kind is Kind.BOOLEAN else "ld_i64(R, W)"
            return [expr(template, R=record, W=at)]
        case _:
            return [expr("ld_i64(R, W)", R=record, W=at + half) for half in (0, 1)]
