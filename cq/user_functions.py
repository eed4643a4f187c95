"""`@cq.udf` and `@cq.udaf`: Python functions, with SQL types from their annotations, as functions that queries can
call."""

from __future__ import annotations

import datetime
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, overload

from cq.errors import CompileError, Diagnostic, UsageError
from cq.grammar import ast
from cq.grammar.parser import parse_expression
from cq.lang.aggregates.user import UserFold
from cq.lang.functions.user import USER_KINDS, PassedType, UserFunction
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTERVAL,
    TIMESTAMP,
    VARCHAR,
    DataType,
)
from cq.planner.binding.literals import bind_type

ANNOTATED: dict[Any, DataType] = {
    int: BIGINT,
    float: DOUBLE,
    bool: BOOLEAN,
    str: VARCHAR,
    bytes: BINARY,
    datetime.date: DATE,
    datetime.datetime: TIMESTAMP,
    datetime.timedelta: INTERVAL,
}
WAYS = (
    "annotations: " + ", ".join(f"{k.__name__} ({t})" for k, t in ANNOTATED.items()) + ", and Optional of them",
    'other types by name: @cq.udf("DECIMAL(12, 2)", ["DECIMAL(12, 2)", "INT"])',
)
_Function = Callable[..., Any]


@overload
def udf(returns: _Function, /) -> UserFunction: ...
@overload
def udf(
    returns: str | None = None, arguments: Sequence[str] | None = None, *, name: str | None = None
) -> Callable[[_Function], UserFunction]: ...
def udf(returns: Any = None, arguments: Sequence[str] | None = None, *, name: str | None = None) -> Any:
    """Make a Python function one that queries can call, given to `cq.sql` or `cq.load` as one of `functions`.

    @cq.udf uses the annotations; @cq.udf("DECIMAL(12, 2)", ["BIGINT"]) SQL types, in which an optional parameter still
    is one by its annotation. name: what queries call it, in lower case; left out, its own name.
    It must be pure. NULL for a parameter that is not Optional gives NULL. An exception is a data error of the row.
    Raises UsageError (CQ0302) for a function whose types cannot be told.
    """
    if callable(returns):
        return _made(returns, None, None, None)
    return lambda function: _made(function, returns, arguments, name)


def _made(function: _Function, returns: str | None, arguments: Sequence[str] | None, name: str | None) -> UserFunction:
    if isinstance(function, UserFunction) or not inspect.isroutine(function):
        raise _unusable(f"{function!r} is not a plain Python function")
    called = _name((name or function.__name__).lower())
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise _unusable(f"{called}() is a generator or asynchronous", "return one value for a row")
    hints, parameters = _hints(function, called), _parameters(function, called)
    slots = _slots(called, parameters, hints, arguments)
    return UserFunction(function, called, slots, _slot(called, "the result", hints.get("return"), returns))


def udaf(returns: Any = None, arguments: Sequence[str] | None = None, *, name: str | None = None) -> Any:
    """Make a class one that queries can call as an aggregate, given to `cq.sql` or `cq.load` as one of `functions`.

    The class has `zero`, the state before any row: a tuple of int, float and bool values; `add(state, value, …)`, which
    returns the state with one more row, of the same types; and `result(state)`. Types are told as for `cq.udf`: of the
    values by the annotations of `add`, of the result by that of `result`. Rows are added in order; those with a NULL
    are skipped, and where no row is left the result is NULL.
    Raises UsageError (CQ0302) for a class that is not of this form.
    """
    if isinstance(returns, type):
        return _fold(returns, None, None, None)
    if not isinstance(returns, str | None):
        raise _unusable(f"{returns!r} is not a class", "write @cq.udaf above a class with zero, add and result")
    return lambda made: _fold(made, returns, arguments, name)


def _fold(made: type, returns: str | None, arguments: Sequence[str] | None, name: str | None) -> UserFold:
    called = _name((name or made.__name__).lower())
    add, result = (_method(made, called, n) for n in ("add", "result"))
    fields = _fields(called, getattr(made, "zero", None))
    hints, parameters = _hints(add, called), _parameters(add, called)[1:]
    if not parameters or len(_parameters(result, called)) != 1:
        raise _unusable(f"{called} needs add(state, value, …) and result(state)")
    slots = _slots(called, parameters, hints, arguments)
    if any(s.optional for s in slots):
        raise _unusable(f"{called}.add() takes Optional values, and rows with NULL are skipped", "leave Optional out")
    returned = _slot(called, "the result", _hints(result, called).get("return"), returns)
    return UserFold(called, made.__doc__ or "", (fields, made.zero), add, result, slots, returned)  # type: ignore[attr-defined]


def _method(made: type, called: str, name: str) -> _Function:
    found = getattr(made, name, None)
    if not inspect.isfunction(found):
        raise _unusable(f"{called} has no function {name}", "write zero, add(state, value) and result(state)")
    return found


def _fields(called: str, zero: Any) -> tuple[PassedType, ...]:
    kinds = {bool: BOOLEAN, int: BIGINT, float: DOUBLE}
    if not isinstance(zero, tuple) or not zero or any(type(v) not in kinds for v in zero):
        raise _unusable(f"{called}.zero is no tuple of int, float and bool values", "write zero = (0.0, 0)")
    if any(type(v) is int and not INT64_MIN <= v <= INT64_MAX for v in zero):
        raise _unusable(f"{called}.zero holds an int of more than 64 bits")
    return tuple(PassedType(kinds[type(v)]) for v in zero)


def _name(called: str) -> str:
    if not (called.isidentifier() and called.isascii()):
        raise _unusable(f"{called!r} is no name of a function", 'give it one: @cq.udf(name="risk")')
    return called


def _slots(
    called: str, parameters: list[str], hints: dict[str, Any], arguments: Sequence[str] | None
) -> tuple[PassedType, ...]:
    if arguments is not None and len(arguments) != len(parameters):
        raise _unusable(f"{called}() has {len(parameters)} parameters, and {len(arguments)} types are given")
    return tuple(
        _slot(called, f"parameter {p}", hints.get(p), None if arguments is None else arguments[i])
        for i, p in enumerate(parameters)
    )


def _hints(function: _Function, called: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError) as error:
        raise _unusable(f"the annotations of {called}() cannot be read: {error}") from None


def _parameters(function: _Function, called: str) -> list[str]:
    found = inspect.signature(function).parameters.values()
    odd = [p.name for p in found if p.kind not in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    if odd:
        raise _unusable(f"{called}() has parameters that are not positional: {', '.join(odd)}", "name each parameter")
    return [p.name for p in found]


def _slot(called: str, what: str, hint: Any, written: str | None) -> PassedType:
    """A parameter or the result; an explicit type takes precedence over the annotation."""
    optional = False
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        members = typing.get_args(hint)
        rest = [m for m in members if m is not type(None)]
        optional = len(rest) < len(members)
        hint = rest[0] if len(rest) == 1 else hint
    if written is not None:
        return PassedType(_type_named(called, written), optional)
    if hint not in ANNOTATED:
        given = "no annotation" if hint is None else f"the annotation {getattr(hint, '__name__', hint)}"
        raise _unusable(f"{what} of {called}() has {given}, which is not an SQL type", *WAYS)
    return PassedType(ANNOTATED[hint], optional)


def _type_named(called: str, written: str) -> DataType:
    try:
        node = parse_expression(f"CAST(NULL AS {written})")
        type_ = bind_type(node.type) if isinstance(node, ast.Cast) else None
    except CompileError as error:
        raise _unusable(f"{called}(): {written!r} is no type: {error.first.message}") from None
    if type_ is None or type_.kind not in USER_KINDS:
        raise _unusable(f"{called}() cannot take or return {written}", "numbers, texts and times can be")
    return type_


def _unusable(cause: str, *help: str) -> UsageError:
    return UsageError(Diagnostic("CQ0302", cause, help=help))
