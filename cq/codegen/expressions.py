"""Scalar expressions to statements: the value of each node in locals, computed once on every way that needs it.

Evaluation is strict and left to right but for AND, OR, CASE and COALESCE, which become branches. A function of the
registry is either a kernel form of `FORMS` or `PURE`, under the name its entry gives in `native`, or its own body,
copied into the module. What can fail or has a guard runs only for values that are not NULL.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from functools import cache
from types import FunctionType

from cq.codegen.bodies import copied
from cq.codegen.values import Row, Scope, Val, any_null, is_true, null_of
from cq.codegen.writer import expr
from cq.errors import Span, compile_error
from cq.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or
from cq.runtime import abi
from cq.runtime.abi import ErrorCode
from cq.types import BOOLEAN, VARCHAR, DataType, Kind, Physical

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
        """The result is these parts."""
        scope.assign(self.result, Val(self.type, parts, ast.Constant(False) if self.result.null else None))


PureForm = Callable[[Scope, Strict], ast.expr]

FORMS: dict[str, Form] = {}
PURE: dict[str, PureForm] = {}

NO_ARRAYS = "an array stands only in UNNEST(SPLIT(text, separator))"
ARRAY_WAYS = ("UNNEST(SPLIT(…)) gives one row for each element", "or run it in plain Python: --engine reference")


def form(name: str) -> Callable[[Form], Form]:
    """Register the writer of a kernel form."""

    def register(function: Form) -> Form:
        assert name not in FORMS and name not in PURE, f"two kernel forms named {name}"
        FORMS[name] = function
        return function

    return register


def pure(name: str) -> Callable[[PureForm], PureForm]:
    """Register a kernel form that is one expression, valid for whatever the parts of a NULL hold."""

    def register(function: PureForm) -> PureForm:
        assert name not in FORMS and name not in PURE, f"two kernel forms named {name}"
        PURE[name] = function
        return function

    return register


@cache
def load_forms() -> None:
    """Every kernel form is registered."""
    from cq.codegen import casts, numbers, rounding, text, times

    assert all(module.__name__ for module in (casts, numbers, rounding, text, times))


def emit(scope: Scope, row: Row, e: Expr) -> Val:
    """Write what computes `e` for the row; the locals that hold it."""
    if e.type.physical is Physical.LIST:
        raise compile_error("CQ0501", NO_ARRAYS, e.span, label=str(e.type), help=ARRAY_WAYS)
    match e:
        case Column(index=index):
            return row.column(index)
        case Literal():
            return literal(scope, e)
    key = (id(row), e)
    found = scope.at_hand(key)
    if found is not None:
        return found
    match e:
        case And(args=args) | Or(args=args):
            made = _connective(scope, row, args, stop=isinstance(e, Or))
        case IsNull(arg=arg):
            null = emit(scope, row, arg).null
            made = Val(BOOLEAN, (ast.Constant(False) if null is None else null,))
        case Case():
            made = _case(scope, row, e)
        case Coalesce(args=args):
            made = _coalesce(scope, row, args, e.type, e.nullable)
        case Call() | Cast():
            made = _strict(scope, row, e)
        case _:
            raise AssertionError(f"an expression of unknown kind: {type(e).__name__}")
    return scope.remember(key, made)


def literal(scope: Scope, e: Literal) -> Val:
    """A constant from the table, loaded once a function. NULL, TRUE and FALSE are part of the kernel's shape."""
    if e.value is None:
        return null_of(e.type)
    if e.type.kind is Kind.BOOLEAN:
        return Val(BOOLEAN, (ast.Constant(bool(e.value)),))
    key = ("literal", e.type, repr(e.value))
    if key in scope.prologue:
        return scope.prologue[key]
    hoist = scope.writer.hoist
    parts: tuple[ast.expr, ...]
    match e.type.physical:
        case Physical.BYTES:
            place = scope.constants.text(e.value)
            address = hoist(expr("wadd(constants, ld_i64(constants, PLACE))", PLACE=place), "k")
            parts = (_name(address), _name(hoist(expr("ld_i64(constants, PLACE)", PLACE=place + 1), "k")))
        case Physical.F64:
            place = scope.constants.word(_float_bits(e.value))
            parts = (_name(hoist(expr("ld_f64(constants, PLACE)", PLACE=place), "k")),)
        case _:
            place = scope.constants.word(e.value)
            parts = (_name(hoist(expr("ld_i64(constants, PLACE)", PLACE=place), "k")),)
    made = scope.prologue[key] = Val(e.type, parts)
    return made


def _name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def constant_text(scope: Scope, text: str) -> Val:
    """A string of the table."""
    return literal(scope, Literal(VARCHAR, False, text))


def constant_table(scope: Scope, name: str, content: bytes) -> ast.expr:
    """The address of bytes in the table."""
    key = ("table", name)
    if key not in scope.prologue:
        place = scope.constants.table(name, content)
        address = scope.writer.hoist(expr("wadd(constants, ld_i64(constants, PLACE))", PLACE=place), "k")
        scope.prologue[key] = Val(VARCHAR, (_name(address), ast.Constant(len(content))))
    return scope.prologue[key].parts[0]


def _float_bits(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


def _connective(scope: Scope, row: Row, args: tuple[Expr, ...], stop: bool) -> Val:
    """AND (stop = FALSE) and OR (stop = TRUE): the first argument equal to `stop` decides, else NULL, else not stop."""
    first = emit(scope, row, args[0])
    result = ast.Name(scope.writer.let(first.it), ast.Load())
    assert isinstance(result, ast.Name)
    null: ast.expr | None = None
    if any(a.nullable for a in args):
        null = ast.Name(scope.writer.let(first.null or ast.Constant(False), "n"), ast.Load())
    _rest(scope, row, args[1:], stop, result, null)
    return Val(BOOLEAN, (result,), null)


def _rest(scope: Scope, row: Row, args: tuple[Expr, ...], stop: bool, result: ast.Name, null: ast.expr | None) -> None:
    """Each further argument is looked at only while the result is open: not yet `stop`, or NULL."""
    for arg in args:
        if null is None:
            undecided = expr("not R" if stop else "R", R=result)
        else:
            undecided = expr("not R or N" if stop else "R or N", R=result, N=null)
        with scope.when(undecided):
            value = emit(scope, row, arg)
            if null is None:
                scope.writer.set(result.id, value.it)
                continue
            assert isinstance(null, ast.Name)
            if value.null is not None:
                with scope.when(value.null):
                    scope.writer.set(result.id, not stop)
                    scope.writer.set(null.id, True)
            hit = value.it if stop else expr("not V", V=value.it)
            with scope.when(hit if value.null is None else expr("not N and H", N=value.null, H=hit)):
                scope.writer.set(result.id, stop)
                scope.writer.set(null.id, False)


def _case(scope: Scope, row: Row, e: Case) -> Val:
    result = scope.variables(e.type, e.nullable)

    def branch(rest: tuple[tuple[Expr, Expr], ...]) -> None:
        if not rest:
            scope.assign(result, emit(scope, row, e.default))
            return
        (condition, value), *others = rest
        with scope.when(is_true(emit(scope, row, condition))):
            scope.assign(result, emit(scope, row, value))
        with scope.otherwise():
            branch(tuple(others))

    branch(e.branches)
    return result


def _coalesce(scope: Scope, row: Row, args: tuple[Expr, ...], type_: DataType, nullable: bool) -> Val:
    result = scope.variables(type_, nullable)

    def rest(left: tuple[Expr, ...]) -> None:
        value = emit(scope, row, left[0])
        if value.null is None or len(left) == 1:
            scope.assign(result, value)
            return
        with scope.when(expr("not N", N=value.null)):
            scope.assign(result, Val(type_, value.parts))
        with scope.otherwise():
            rest(left[1:])

    rest(args)
    return result


def _strict(scope: Scope, row: Row, e: Call | Cast) -> Val:
    """A function of values that are not NULL; NULL in, NULL out, unless the entry says otherwise."""
    load_forms()
    args = tuple(emit(scope, row, a) for a in e.children)
    if isinstance(e, Cast):
        from cq.codegen.casts import cast_form

        name, text = cast_form(e), f"the value cannot be cast to {e.type}"
        handles_null, may_be_null = False, e.try_
    else:
        name, text = e.function.native, e.function.name
        handles_null, may_be_null = e.function.handles_null, e.function.may_be_null
    null = None if handles_null else any_null(args)
    if name in PURE:
        call = Strict(e, args, Val(e.type, ()), text)
        value = scope.let(PURE[name](scope, call))
        return Val(e.type, (value,), scope.let(null, "n") if null is not None else None)
    result = scope.variables(e.type, e.nullable)
    call = Strict(e, args, result, text)
    if null is None:
        _write(scope, call, name)
    else:
        with scope.when(expr("not N", N=null)):
            _write(scope, call, name)
    assert result.null is not None or not may_be_null, f"{text} may be NULL and its node says it is not"
    return result


def _write(scope: Scope, call: Strict, name: str) -> None:
    if name:
        FORMS[name](scope, call)
    else:
        assert isinstance(call.node, Call)
        call.give(scope, copied_body(scope, call))


def copied_body(scope: Scope, call: Strict) -> ast.expr:
    """A call of the entry's own Python body, copied into the module as a function."""
    assert isinstance(call.node, Call) and isinstance(call.node.function.body, FunctionType)
    name = copied(scope.writer, call.node.function.body)
    made = ast.Call(_name(name), [a.it for a in call.args], [])
    return expr("MADE != 0", MADE=made) if call.type.kind is Kind.BOOLEAN else made


# -- results of library functions -------------------------------------------------------------------------------------


def give_text(scope: Scope, call: Strict, made: ast.expr) -> None:
    """The result is the text a library function made: its address, 0 without memory; its length is in the state."""
    address = scope.let(made, "text")
    _no_memory(scope, call, expr("A == 0", A=address))
    call.give(scope, address, scope.let(expr("ld_i64(state, W)", W=abi.STATE_RESULT), "size"))


def result_of(scope: Scope, call: Strict, status: ast.expr, why: ErrorCode) -> ast.expr:
    """The value a library function left in the state. `status` is its answer: an ErrorCode; it fails as `why`."""
    answer = scope.let(status, "status")
    _no_memory(scope, call, expr("S == CODE", S=answer, CODE=int(ErrorCode.NO_MEMORY)))
    with scope.when(expr("S != 0", S=answer)):
        scope.fail(why, call.text, call.span)
    return stored(call.type)


def stored(type_: DataType) -> ast.expr:
    """The value of this type in the state's result word."""
    load = "ld_f64(state, W)" if type_.physical is Physical.F64 else "ld_i64(state, W)"
    return expr(f"{load} != 0" if type_.kind is Kind.BOOLEAN else load, W=abi.STATE_RESULT)


def _no_memory(scope: Scope, call: Strict, condition: ast.expr) -> None:
    with scope.when(condition):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
