"""Warnings where decimal places are lost: by a cast to a DECIMAL without digits, which is DECIMAL(10, 0), as in Spark,
where PostgreSQL keeps them all; and by a value that is stored in a column of whole numbers, or of arrays of them,
without a cast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cq.errors import NOWHERE, Diagnostic, Span
from cq.grammar import ast
from cq.lang.expressions import Call, Case, Cast, Coalesce, Column, Expr, Literal, walk
from cq.lang.schema import Field
from cq.lang.types import DataType, Kind
from cq.planner.binding.built_expressions import column
from cq.planner.binding.literals import DECIMAL_NAMES
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode, topological
from cq.records import replace

KEPT_BY = {  # for whole numbers, these are whole
    "negate", "+", "-", "*", "%", "abs", "greatest", "least", "array", "element_at", "array_concat", "array_slice",
    "array_sort", "array_order", "array_reverse", "array_distinct", "array_compact", "array_remove",
    "array_intersect", "array_except", "array_min", "array_max", "array_sum",
}  # fmt: skip
MADE_BY = {"round", "trunc"}


def rounded_casts(script: ast.Script, nodes: Iterable[LogicalNode]) -> Iterator[Diagnostic]:
    """A warning for each cast of this kind that rounds away decimal places a value can have."""
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
    """A warning if a value that can have decimal places is stored in a column of whole numbers, or of arrays of
    them."""
    found = _with_places(value, ()) if _whole(field).is_integer else None
    if found is not None:
        yield _cut_off(found, field)


def columns_cut_off(rows: LogicalNode, fields: Sequence[Field], spans: Sequence[Span]) -> Iterator[Diagnostic]:
    """The same for the columns of a query. spans: where they are written; a finding within one is marked alone."""
    if all(_is_whole(column(rows, n), ()) for n, f in enumerate(fields) if _whole(f).is_integer):
        return
    for value, field, span in zip(_columns_with_places(rows), fields, spans, strict=True):
        if value is not None and _whole(field).is_integer:
            yield _cut_off(value if span.holds(value.span) else replace(value, span=span), field)


def _whole(field: Field) -> DataType:
    """The type of a column's values, or of their elements."""
    return field.type.element or field.type


def _cut_off(value: Expr, field: Field) -> Diagnostic:
    text = f'column "{field.name}" is {field.type}, so decimal places of this {value.type} are cut off'
    way = f"write CAST(ROUND(…) AS {_whole(field)}) to round them, or CAST(… AS {_whole(field)}) to cut them off"
    if value.type.element is not None:
        way = f"write CAST(… AS {field.type}) to cut them off"
    return Diagnostic("CQ0309", text, value.span, str(value.type), severity="warning", help=(way,))


Places = Sequence[Expr | None]
"""For each column, a value of it that can have decimal places; None where none can, or nothing is known of it."""


def _columns_with_places(rows: LogicalNode) -> Places:
    found: dict[int, Places] = {}
    for node in topological((rows,)):
        found[id(node)] = [_of_column(node, column(node, c), found) for c in range(len(node.schema))]
    return found[id(rows)]


def _of_column(node: LogicalNode, own: Column, found: Mapping[int, Places]) -> Expr | None:
    """The first value of a column that can have decimal places. found: for the columns of its inputs, by `id(node)`."""
    if node.source is not None and node.source.rows is not None:
        cells = (row[own.index] for row in node.source.rows)
        values: Iterable[Expr] = (Literal(own.type, cell is None, cell) for cell in cells)
        return next((v for v in values if not _is_whole(v, ())), None)
    pulled = node.pull(own)
    if pulled is None:
        return _with_places(own, ())
    causes = (_with_places(value, found[id(node.inputs[port])]) for port, value in pulled)
    return next((cause for cause in causes if cause is not None), None)


def _with_places(value: Expr, below: Places) -> Expr | None:
    """The value that can have decimal places, or the first such element of a written array; None if there is none."""
    if isinstance(value, Call) and value.function.name == "array":
        return next((found for e in value.args if (found := _with_places(e, below)) is not None), None)
    if isinstance(value, Column) and value.span == NOWHERE and below:
        return below[value.index]
    return None if _is_whole(folded(value), below) else value


def _is_whole(value: Expr, below: Places) -> bool:
    """Whether a value is a whole number, an array of whole numbers, or NULL in every row."""
    type_ = value.type.element or value.type
    match value:
        case Literal(value=None):
            return True
        case _ if not (type_.is_float or (type_.kind is Kind.DECIMAL and type_.scale)):
            return True
        case Literal(value=numbers):
            one = 10**type_.scale if type_.kind is Kind.DECIMAL else 1
            return all(n is None or n % one == 0 for n in (numbers if value.type.element else (numbers,)))
        case Column(index=index):
            return bool(below) and below[index] is None
        case Call(function=function, args=args) if function.name in KEPT_BY:
            return all(_is_whole(a, below) for a in args)
        case Call(function=function, args=args):
            return function.name in MADE_BY and all(isinstance(a, Literal) and (a.value or 0) <= 0 for a in args[1:])
        case Cast(arg=arg):
            return arg.type.kind is not Kind.VARCHAR and _is_whole(arg, below)
        case Case(branches=branches, default=default):
            return all(_is_whole(v, below) for v in (*(v for _, v in branches), default))
        case Coalesce(args=args):
            return all(_is_whole(a, below) for a in args)
    return False
