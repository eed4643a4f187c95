"""Warnings where decimal places are lost: by a cast to a DECIMAL without digits, which is DECIMAL(10, 0), as in Spark,
where PostgreSQL keeps them all; and by a value that a whole number's column takes without a cast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cq.errors import Diagnostic
from cq.grammar import ast
from cq.lang.expressions import Call, Case, Cast, Coalesce, Expr, Literal, walk
from cq.lang.schema import Field
from cq.lang.types import Kind
from cq.planner.binding.literals import DECIMAL_NAMES
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode

KEPT_BY = {"negate", "+", "-", "*", "%", "abs", "greatest", "least"}  # of whole numbers, they are whole
MADE_BY = {"round", "trunc"}


def rounded_casts(script: ast.Script, nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """A warning for every such cast of a value that can have decimal places, which it rounds away."""
    bare = {n.span: n.type for n in ast.walk(script) if isinstance(n, ast.Cast) and isinstance(n.type, ast.SimpleType)}
    bare = {span: t for span, t in bare.items() if t.name.upper() in DECIMAL_NAMES and not t.params}
    if not bare:
        return
    warned = set()
    for node in nodes:
        for expr, _ in node.expressions():
            for e in walk(expr):
                if isinstance(e, Cast) and e.span in bare and e.span not in warned and not e.arg.type.is_integer:
                    warned.add(e.span)
                    name = bare[e.span].name.upper()
                    text = f"{name} without digits is DECIMAL(10, 0), so decimal places are rounded away"
                    way = f"write the number of digits and of decimal places: {name}(18, 2)"
                    yield Diagnostic("CQ0309", text, bare[e.span].span, severity="warning", help=(way,))


def places_cut_off(value: Expr, field: Field) -> Iterator[Diagnostic]:
    """A warning where a column of whole numbers takes a value that can have decimal places."""
    if field.type.is_integer and not _is_whole(folded(value)):
        text = f'column "{field.name}" is {field.type}, so decimal places of this {value.type} are cut off'
        way = f"write CAST(ROUND(…) AS {field.type}) to round them, or CAST(… AS {field.type}) to cut them off"
        yield Diagnostic("CQ0309", text, value.span, str(value.type), severity="warning", help=(way,))


def _is_whole(value: Expr) -> bool:
    """Whether a value is a whole number, or none at all, in every row."""
    match value:
        case Literal(value=None):
            return True
        case _ if not (value.type.is_float or (value.type.kind is Kind.DECIMAL and value.type.scale)):
            return True
        case Literal(value=number):
            one = 10**value.type.scale if value.type.kind is Kind.DECIMAL else 1
            return bool(number % one == 0)
        case Call(function=function, args=args) if function.name in KEPT_BY:
            return all(map(_is_whole, args))
        case Call(function=function, args=args):
            return function.name in MADE_BY and len(args) == 1
        case Cast(arg=arg):
            return _is_whole(arg)
        case Case(branches=branches, default=default):
            return all(_is_whole(v) for _, v in branches) and _is_whole(default)
        case Coalesce(args=args):
            return all(map(_is_whole, args))
    return False
