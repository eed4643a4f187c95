"""Calls of scalar functions over bound arguments."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import Span
from cq.lang.expressions import Call, Expr, Literal
from cq.lang.functions import Refusal, Scalar, Signature, resolve
from cq.planner.binding.conversion import convert


def resolve_function(name: str, args: Sequence[Expr]) -> tuple[Scalar, Signature] | Refusal:
    """The registry's entry for these arguments, constants included, or its refusal."""
    constants = tuple(a.value if isinstance(a, Literal) else None for a in args)
    return resolve(name, tuple(a.type for a in args), constants)


def apply(found: tuple[Scalar, Signature], args: Sequence[Expr], span: Span) -> Call:
    """The call, with its arguments converted to the parameter types; whether it can be NULL is derived."""
    entry, signature = found
    converted = tuple(convert(a, t) for a, t in zip(args, signature.params, strict=True))
    return Call(signature.returns, entry.nullable([a.nullable for a in converted]), entry, converted, span=span)
