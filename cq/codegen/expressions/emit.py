"""Scalar expressions to statements: the value of each node in locals, computed once on every path that needs it.

Evaluation is strict and left to right except for AND, OR, CASE and COALESCE, which become branches. A function of the
registry is either a kernel form of `FORMS` or `PURE`, under the name its entry gives in `native`, or its own body,
copied into the module. What can fail or has a guard runs only for values that are not NULL. A node may say that it is
not NULL although its kind may be: it is the event time of a row that was accepted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from types import FunctionType

from cq.codegen.expressions import (
    arrays,
    int128_casts,
    integers,
    json_text,
    numbers,
    regular,
    rounding,
    text,
    text_building,
    times,
    user,
)
from cq.codegen.expressions.casts import cast_form
from cq.codegen.expressions.constants import literal
from cq.codegen.expressions.forms import FORMS, PURE, Strict
from cq.codegen.expressions.inlining import copied
from cq.codegen.values import Row, Scope, Val, any_null, is_true
from cq.codegen.writer import expr
from cq.entries import refuse
from cq.lang.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or
from cq.lang.functions import all_scalars
from cq.lang.functions.user import FORM as USER_FUNCTION
from cq.lang.types import BOOLEAN, DataType, Kind

NESTED_CHOICES = 16  # branches of a CASE in each other's else: more would nest too deep for Python
Choice = tuple[ast.expr | None, Callable[[], None]]  # a condition, and what writes its value

_REGISTERED = (
    arrays,
    integers,
    json_text,
    numbers,
    rounding,
    text,
    regular,
    text_building,
    times,
    user,
    int128_casts,
)  # imported for the kernel forms they register


def unmatched(forms: Collection[str]) -> Iterator[str]:
    """Functions whose kernel form is not registered, and forms that no function names."""
    named = {entry.native: name for name, entry in all_scalars().items() if entry.native}
    yield from (f"there is no form {f}, which function {named[f]} names" for f in named if f not in forms)
    of_others = {USER_FUNCTION, *(f for f in forms if f.startswith("cast_"))}
    yield from (f"no function names form {f}" for f in forms if f not in named and f not in of_others)


refuse("kernel forms", unmatched({*FORMS, *PURE}))


def emit(scope: Scope, row: Row, e: Expr) -> Val:
    """Write code that computes `e` for the row; return the locals that hold it."""
    match e:
        case Column(index=index):
            return row.column(index)
        case Literal():
            return literal(scope, e)
    key = (id(row), e)
    found = scope.at_hand(key)
    if found is not None:
        return found
    if e in row.given:
        return scope.remember(key, row.given[e]())
    match e:
        case And(args=args) | Or(args=args):
            made = _connective(scope, row, args, stop=isinstance(e, Or))
        case IsNull(arg=arg):
            null = emit(scope, row, arg).null
            made = Val(BOOLEAN, (ast.Constant(False) if null is None else null,))
        case Case():
            made = _case(scope, row, e)
        case Coalesce(args=args):
            made = _coalesce(scope, row, args, e.type)
        case Call() | Cast():
            made = _strict(scope, row, e)
        case _:
            raise AssertionError(f"an expression of unknown kind: {type(e).__name__}")
    return scope.remember(key, made)


def _connective(scope: Scope, row: Row, args: tuple[Expr, ...], stop: bool) -> Val:
    """AND (stop = FALSE) and OR (stop = TRUE): the first argument equal to `stop` decides, else NULL, else not stop."""
    first = emit(scope, row, args[0])
    result = ast.Name(scope.writer.let(first.it, "any" if stop else "all"), ast.Load())
    assert isinstance(result, ast.Name)
    null: ast.expr | None = None
    if any(a.nullable for a in args):
        null = ast.Name(scope.writer.let(first.null or ast.Constant(False), "n"), ast.Load())
    _rest(scope, row, args[1:], stop, result, null)
    return Val(BOOLEAN, (result,), null)


def _rest(scope: Scope, row: Row, args: tuple[Expr, ...], stop: bool, result: ast.Name, null: ast.expr | None) -> None:
    """Each further argument is evaluated only while the result is open: not yet `stop`, or NULL."""
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
    values = [e.default, *(v for _, v in e.branches)]
    result = scope.variables(e.type, any(v.nullable for v in values), "case")

    def take(value: Expr) -> None:
        scope.assign(result, emit(scope, row, value))

    def branch(condition: Expr, value: Expr) -> Choice:
        return is_true(emit(scope, row, condition)), partial(take, value)

    choices: list[Callable[[], Choice]] = [partial(branch, *b) for b in e.branches]
    _first(scope, [*choices, lambda: (None, partial(take, e.default))])
    return result


def _coalesce(scope: Scope, row: Row, args: tuple[Expr, ...], type_: DataType) -> Val:
    result = scope.variables(type_, all(a.nullable for a in args), "coalesce")

    def argument(number: int) -> Choice:
        value = emit(scope, row, args[number])
        if value.null is None or number == len(args) - 1:
            return None, partial(scope.assign, result, value)
        return expr("not N", N=value.null), partial(scope.assign, result, Val(type_, value.parts))

    _first(scope, [partial(argument, n) for n in range(len(args))])
    return result


def _first(scope: Scope, choices: Sequence[Callable[[], Choice]]) -> None:
    """Write the first choice whose condition holds; the last one has none.

    Each is in the else of the one before; after NESTED_CHOICES of them a flag says whether to test the next ones.
    """

    def rest(at: int, end: int, undecided: str) -> None:
        if at == end:
            scope.writer.set(undecided, 1)
            return
        condition, take = choices[at]()
        if condition is None:
            take()
            return
        with scope.when(condition):
            take()
        with scope.otherwise():
            rest(at + 1, end, undecided)

    if len(choices) <= NESTED_CHOICES:
        rest(0, len(choices) + 1, "")
        return
    undecided = scope.writer.let(ast.Constant(1), "undecided")
    for start in range(0, len(choices), NESTED_CHOICES):
        with scope.when(expr("U == 1", U=undecided)):
            scope.writer.set(undecided, 0)
            rest(start, min(start + NESTED_CHOICES, len(choices)), undecided)


def _strict(scope: Scope, row: Row, e: Call | Cast) -> Val:
    """A function of values that are not NULL; NULL in, NULL out, unless the entry declares otherwise."""
    args = tuple(emit(scope, row, a) for a in e.children)
    if isinstance(e, Cast):
        name, hint, text = cast_form(e), "cast", f"the value cannot be cast to {e.type}"
        handles_null, may_be_null = False, e.try_
    else:
        name, text = e.function.native, e.function.name
        hint = name or text
        handles_null, may_be_null = e.function.handles_null, e.function.may_be_null
    null = None if handles_null else any_null(args)
    if name in PURE:
        call = Strict(e, args, Val(e.type, ()), text)
        value = scope.let(PURE[name](scope, call), hint)
        return Val(e.type, (value,), scope.let(null, f"{hint}_null") if null is not None else None)
    result = scope.variables(e.type, e.nullable or may_be_null, hint)
    call = Strict(e, args, result, text)
    if null is None:
        _write(scope, call, name)
    else:
        with scope.when(expr("not N", N=null)):
            _write(scope, call, name)
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
    made = ast.Call(ast.Name(name, ast.Load()), [a.it for a in call.args], [])
    return expr("MADE != 0", MADE=made) if call.type.kind is Kind.BOOLEAN else made
