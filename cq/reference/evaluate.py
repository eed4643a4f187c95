"""Expressions as Python closures over a row: the meaning of every bound expression.

`evaluator(expr)` is built once and called for each row. Three-valued logic, strict left to right evaluation and the
short-circuits of AND, OR, CASE and COALESCE are described in `cq.lang.expressions`. A value without a result raises
`Failure` with the span of the innermost expression at fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from cq.errors import NOWHERE, Span
from cq.lang.casts import caster
from cq.lang.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or
from cq.lang.functions import Failure

Row = tuple[Any, ...]
Evaluator = Callable[[Row], Any]

NAN = math.nan  # a single object, so that Python's dictionaries find it again


def evaluator(expr: Expr) -> Evaluator:
    """The value of `expr` for a row, as a function."""
    match expr:
        case Column(index=i):
            return itemgetter(i)
        case Literal(value=value):
            return lambda row: value
        case Call():
            return _call(expr)
        case Cast(arg=arg, type=type_, try_=soft):
            return _cast(evaluator(arg), caster(arg.type, type_, soft), soft, expr.span)
        case And(args=args):
            return _and([evaluator(a) for a in args])
        case Or(args=args):
            return _or([evaluator(a) for a in args])
        case IsNull(arg=arg):
            inner = evaluator(arg)
            return lambda row: inner(row) is None
        case Case(branches=branches, default=default):
            return _case([(evaluator(c), evaluator(v)) for c, v in branches], evaluator(default))
        case Coalesce(args=args):
            return _coalesce([evaluator(a) for a in args])
        case _:
            raise AssertionError(f"an expression of unknown kind: {type(expr).__name__}")


def evaluate(expr: Expr, row: Row = ()) -> Any:
    """The value of `expr` for one row."""
    return evaluator(expr)(row)


def rows_of(exprs: Sequence[Expr]) -> Callable[[Row], Row]:
    """The values of several expressions as a row."""
    if exprs and all(isinstance(e, Column) for e in exprs):
        positions = [e.index for e in exprs if isinstance(e, Column)]
        if len(positions) == 1:
            (only,) = positions
            return lambda row: (row[only],)
        return itemgetter(*positions)
    parts = [evaluator(e) for e in exprs]
    return lambda row: tuple([part(row) for part in parts])


def keys_of(exprs: Sequence[Expr]) -> Callable[[Row], Row]:
    """The values of grouping expressions: -0.0 is 0.0 and every NaN the same."""
    values = rows_of(exprs)
    floats = [i for i, e in enumerate(exprs) if e.type.is_float]
    if not floats:
        return values

    def key(row: Row) -> Row:
        parts = list(values(row))
        for i in floats:
            parts[i] = grouped(parts[i])
        return tuple(parts)

    return key


def grouped(value: float | None) -> float | None:
    """A DOUBLE as a key."""
    if value is None:
        return None
    return NAN if math.isnan(value) else value + 0.0


def _call(expr: Call) -> Evaluator:
    entry, signature = expr.function, expr.signature
    body = partial(entry.body, signature) if entry.typed else entry.body
    compute = _applied(body, [evaluator(a) for a in expr.args], entry.handles_null)
    if not expr.fails_itself:
        return compute
    span = expr.span

    def checked(row: Row) -> Any:
        try:
            return compute(row)
        except Failure as failure:
            if failure.span is NOWHERE:
                failure.span = span
            raise

    return checked


def _applied(body: Callable[..., Any], args: Sequence[Evaluator], handles_null: bool) -> Evaluator:
    if handles_null:
        return lambda row: body(*[a(row) for a in args])
    if len(args) == 1:
        (only,) = args

        def one(row: Row) -> Any:
            x = only(row)
            return None if x is None else body(x)

        return one
    if len(args) == 2:
        left, right = args

        def two(row: Row) -> Any:
            x, y = left(row), right(row)
            return None if x is None or y is None else body(x, y)

        return two

    def many(row: Row) -> Any:
        values = [a(row) for a in args]
        return None if None in values else body(*values)

    return many


def _cast(arg: Evaluator, convert: Callable[[Any], Any], soft: bool, span: Span) -> Evaluator:
    def cast(row: Row) -> Any:
        value = arg(row)
        if value is None:
            return None
        try:
            return convert(value)
        except Failure as failure:
            if soft:
                return None
            failure.span = span
            raise

    return cast


def _and(args: Sequence[Evaluator]) -> Evaluator:
    def conjunction(row: Row) -> bool | None:
        unknown = False
        for a in args:
            value = a(row)
            if value is None:
                unknown = True
            elif not value:
                return False
        return None if unknown else True

    return conjunction


def _or(args: Sequence[Evaluator]) -> Evaluator:
    def disjunction(row: Row) -> bool | None:
        unknown = False
        for a in args:
            value = a(row)
            if value is None:
                unknown = True
            elif value:
                return True
        return None if unknown else False

    return disjunction


def _case(branches: Sequence[tuple[Evaluator, Evaluator]], default: Evaluator) -> Evaluator:
    def choose(row: Row) -> Any:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return default(row)

    return choose


def _coalesce(args: Sequence[Evaluator]) -> Evaluator:
    def first(row: Row) -> Any:
        for a in args:
            value = a(row)
            if value is not None:
                return value
        return None

    return first
