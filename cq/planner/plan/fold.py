"""Constant folding: the registry's own bodies give the value, so a constant is what a row would see."""

from __future__ import annotations

from cq.lang.casts import caster
from cq.lang.expressions import And, Call, Case, Cast, Coalesce, Expr, IsNull, Literal, Or, Value, can_fail, transform
from cq.lang.functions import Failure, Signature


def fold(expr: Expr) -> Expr:
    """The value of a node over constants; the node unchanged if it has other inputs, or if computing it fails.

    A failure stays in place: whether it happens depends on whether a row ever gets there.
    """
    match expr:
        case Call(args=args) if all(isinstance(a, Literal) for a in args):
            return _call(expr)
        case Cast(arg=Literal(value=v)):
            return _cast(expr, v)
        case IsNull(arg=Literal(value=v)):
            return Literal(expr.type, False, v is None, span=expr.span)
        case IsNull(arg=a) if not a.nullable and not can_fail(a):
            return Literal(expr.type, False, False, span=expr.span)
        case And():
            return _logical(expr, expr.args, False)
        case Or():
            return _logical(expr, expr.args, True)
        case Case():
            return _case(expr)
        case Coalesce():
            return _coalesce(expr)
        case _:
            return expr


def _call(expr: Call) -> Expr:
    values = [a.value for a in expr.args if isinstance(a, Literal)]
    if not expr.function.handles_null and any(v is None for v in values):
        return Literal(expr.type, True, None, span=expr.span)
    signature = Signature(tuple(a.type for a in expr.args), expr.type)
    try:
        value = expr.function.body(signature, *values) if expr.function.typed else expr.function.body(*values)
    except Failure:
        return expr
    return Literal(expr.type, value is None, value, span=expr.span)


def _cast(expr: Cast, value: Value) -> Expr:
    if value is None:
        return Literal(expr.type, True, None, span=expr.span)
    try:
        result = caster(expr.arg.type, expr.type, expr.try_)(value)
    except Failure:
        return Literal(expr.type, True, None, span=expr.span) if expr.try_ else expr
    return Literal(expr.type, False, result, span=expr.span)


def _logical(expr: And | Or, args: tuple[Expr, ...], decides: bool) -> Expr:
    """AND and OR: the deciding value cuts off the rest, the other truth value drops out; NULL stays."""
    kept: list[Expr] = []
    for a in args:
        if isinstance(a, Literal) and a.value is decides:
            kept.append(a)
            break
        if not (isinstance(a, Literal) and a.value is (not decides)):
            kept.append(a)
    if not kept:
        return Literal(expr.type, False, not decides, span=expr.span)
    if len(kept) == 1:
        return kept[0]
    return expr if len(kept) == len(args) else expr.with_children(kept)


def _case(expr: Case) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    for condition, value in expr.branches:
        if isinstance(condition, Literal) and condition.value is True:
            if not branches:
                return value
            return Case(expr.type, expr.nullable, tuple(branches), value, span=expr.span)
        if not isinstance(condition, Literal):
            branches.append((condition, value))
    if not branches:
        return expr.default
    if len(branches) == len(expr.branches):
        return expr
    return Case(expr.type, expr.nullable, tuple(branches), expr.default, span=expr.span)


def _coalesce(expr: Coalesce) -> Expr:
    kept: list[Expr] = []
    for a in expr.args:
        if isinstance(a, Literal) and a.value is None:
            continue
        kept.append(a)
        if not a.nullable:
            break
    if not kept:
        return Literal(expr.type, True, None, span=expr.span)
    if len(kept) == 1:
        return kept[0]
    return expr if len(kept) == len(expr.args) else expr.with_children(kept)


def folded(expr: Expr) -> Expr:
    """`expr` with every constant part computed."""
    return transform(expr, fold)


def constant(expr: Expr) -> Literal:
    """The value of an expression without columns. Raises the Failure of computing it, with its place."""
    at = found = folded(expr)
    if isinstance(found, Literal):
        return found
    while open_ := [c for c in at.children if not isinstance(c, Literal)]:
        at = open_[0]
    try:
        match at:
            case Call(function=f, args=args):
                values = [a.value for a in args if isinstance(a, Literal)]
                f.body(*([at.signature, *values] if f.typed else values))
            case Cast(arg=Literal(type=source, value=value), type=target):
                caster(source, target)(value)
    except Failure as failure:
        failure.span = at.span
        raise
    raise AssertionError(f"an expression without columns that is no constant: {at}")
