"""Warnings where decimal places are lost: by a cast to a DECIMAL without digits, which is DECIMAL(10, 0), as in Spark,
where PostgreSQL keeps them all; and by a value that a column of whole numbers, or of arrays of them, takes without a
cast."""

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

KEPT_BY = {  # of whole numbers, they are whole
    "negate", "+", "-", "*", "%", "abs", "greatest", "least", "array", "element_at", "array_concat", "array_slice",
    "array_sort", "array_order", "array_reverse", "array_distinct", "array_compact", "array_remove",
    "array_intersect", "array_except", "array_min", "array_max", "array_sum",
}  # fmt: skip
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
    """A warning where a column of whole numbers, or of arrays of them, takes a value that can have decimal places."""
    whole = field.type.element or field.type
    found = _with_places(value) if whole.is_integer else None
    if found is None:
        return
    text = f'column "{field.name}" is {field.type}, so decimal places of this {found.type} are cut off'
    to_round, to_cut = f"CAST(ROUND(…) AS {whole}) to round them", f"CAST(… AS {whole}) to cut them off"
    way = f"write {to_round}, or {to_cut}"
    if found.type.element is not None:
        way = f"write CAST(… AS {field.type}) to cut them off"
    yield Diagnostic("CQ0309", text, found.span, str(found.type), severity="warning", help=(way,))


def _with_places(value: Expr) -> Expr | None:
    """What can have decimal places: the value, or the first such element of an array that is written; None for none."""
    if isinstance(value, Call) and value.function.name == "array":
        return next((found for e in value.args if (found := _with_places(e)) is not None), None)
    return None if _is_whole(folded(value)) else value


def _is_whole(value: Expr) -> bool:
    """Whether a value is a whole number, an array of whole numbers, or nothing at all, in every row."""
    type_ = value.type.element or value.type
    match value:
        case Literal(value=None):
            return True
        case _ if not (type_.is_float or (type_.kind is Kind.DECIMAL and type_.scale)):
            return True
        case Literal(value=numbers):
            one = 10**type_.scale if type_.kind is Kind.DECIMAL else 1
            return all(n is None or n % one == 0 for n in (numbers if value.type.element else (numbers,)))
        case Call(function=function, args=args) if function.name in KEPT_BY:
            return all(map(_is_whole, args))
        case Call(function=function, args=args):
            return function.name in MADE_BY and len(args) == 1
        case Cast(arg=arg):
            return arg.type.kind is not Kind.VARCHAR and _is_whole(arg)
        case Case(branches=branches, default=default):
            return all(_is_whole(v) for _, v in branches) and _is_whole(default)
        case Coalesce(args=args):
            return all(map(_is_whole, args))
    return False
