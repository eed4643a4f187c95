"""Implicit conversions made explicit: which types go together, and the cast or converted constant that unifies them."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import CompileError, Label, Span, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Cast, Column, Expr, Literal
from cq.lang.functions import COUNTS_OF_TIMES, Refusal, lookup
from cq.lang.types import (
    DATE,
    INTEGER,
    NULL,
    REAL,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    array,
    common_type,
    decimal,
    integer_range,
)
from cq.planner.binding.literals import TIME_FORMS, read_constant
from cq.records import replace


def convert(expr: Expr, type_: DataType) -> Expr:
    """`expr` as `type_`: unchanged, a converted constant, or a cast that fails only for values too large."""
    if expr.type == type_:
        return expr
    if isinstance(expr, Literal):
        value = _converted(expr, type_)
        if value is not None or expr.value is None:
            return Literal(type_, expr.value is None, value, span=expr.span)
    return Cast(type_, expr.nullable, expr, span=expr.span)


def _converted(literal: Literal, type_: DataType) -> int | float | None:
    """The value of a numeric constant in a wider type; None when it needs a real cast."""
    value, source = literal.value, literal.type
    if value is None or not (source.is_integer or source.kind is Kind.DECIMAL):
        return None
    if type_.kind is Kind.DECIMAL and type_.scale >= source.scale:
        scaled: int = value * 10 ** (type_.scale - source.scale)
        return scaled if abs(scaled) < 10**type_.precision else None
    if type_.is_float and type_ != REAL:
        quotient: float = value / 10**source.scale  # a quotient of integers is rounded once
        return quotient
    if type_.is_integer and source.is_integer:
        low, high = integer_range(type_)
        return value if low <= value <= high else None
    return None


def settled(expr: Expr) -> Expr:
    """A bare NULL as an INTEGER, if nothing else gives it a type, and an empty array likewise; others unchanged."""
    if expr.type == array(NULL):
        return convert(expr, array(INTEGER))
    return convert(expr, INTEGER) if expr.type == NULL else expr


def unsettled(expr: Expr) -> DataType:
    """The type of an expression; for a bare NULL the NULL type, even once it was settled."""
    return NULL if isinstance(expr, Literal) and expr.value is None else expr.type


def narrowed_integer(expr: Expr, other: DataType) -> Expr:
    """An integer constant beside a DECIMAL as the DECIMAL of its own digits, as in Spark; anything else unchanged."""
    if not (isinstance(expr, Literal) and expr.type.is_integer and other.kind is Kind.DECIMAL):
        return expr
    return convert(expr, decimal(len(str(abs(expr.value))), 0))


def common(a: Expr, b: Expr) -> DataType | None:
    """The type both convert to; an integer constant counts by its own digits."""
    return common_type(narrowed_integer(a, b.type).type, narrowed_integer(b, a.type).type)


def time_text(text: Expr, other: Expr) -> Expr:
    """A string constant beside a date or time as a constant of that type. CQ0104 when it does not parse."""
    if not (isinstance(text, Literal) and text.type == VARCHAR and text.value is not None):
        return text
    if other.type.kind not in TIME_FORMS:
        return text
    for type_ in (other.type, TIMESTAMP) if other.type == DATE else (other.type,):
        value = read_constant(text.value, type_)
        if value is not None:
            return replace(text, type=type_, value=value)
    raise compile_error(
        "CQ0104",
        f"'{text.value}' is not a valid {other.type}",
        text.span,
        label=f"not a {other.type}",
        labels=(Label(other.span, str(other.type)),),
        help=f"write it as '{TIME_FORMS[other.type.kind]}'",
    )


def instead(args: Sequence[Expr], shape: str, examples: Sequence[str] = ()) -> tuple[str, ...]:
    """What to write if a function of this shape does not take the arguments: a number instead of a text, or an
    example."""
    for a in args:
        if a.type.kind is Kind.VARCHAR and "number" in shape:
            return (f"for text, use TRY_CAST({_named(a, 'text')} AS DOUBLE) (NULL on failure) or CAST (an error)",)
        if a.type.kind is Kind.BINARY:
            name = _named(a, "x")
            return (f"for its bytes as text, write CAST({name} AS VARCHAR); for its digits, HEX({name})",)
        if (a.type.is_timestamp or a.type.kind is Kind.DATE) and shape.startswith(("median(", "quantile_cont(")):
            name, fraction = _named(a, "ts"), "0.5" if shape.startswith("median(") else "0.9"
            return (f"of times, take one of the values: PERCENTILE_DISC({fraction}) WITHIN GROUP (ORDER BY {name})",)
    return tuple(f"example: {e}" for e in examples)


def _named(value: Expr, other: str) -> str:
    """The name of a column; for any other expression, a placeholder."""
    return inline.name(value.name) if isinstance(value, Column) else other


def not_taken(refusal: Refusal, name: str, args: Sequence[Expr], nodes: Sequence[ast.Node], span: Span) -> CompileError:
    """The error for arguments that a function does not take: at the wrong one, else at the call with the types of
    all."""
    if refusal.argument is not None and refusal.argument < len(nodes):
        at = nodes[refusal.argument].span
        return compile_error(refusal.code, refusal.message, at, help=refusal.help)
    entry = lookup(name)
    assert entry is not None, f"the function {name} is not in the registry"
    labels = tuple(Label(n.span, str(a.type)) for n, a in zip(nodes, args, strict=False))
    if entry.name in COUNTS_OF_TIMES and len(args) == 1 and args[0].type.is_integer:
        made = f"{COUNTS_OF_TIMES[entry.name].upper()}({_named(args[0], 'number')})"
        return compile_error(refusal.code, refusal.message, span, labels=labels, help=f"for a TIMESTAMP, write {made}")
    help = (refusal.help or f"usage: {entry.shape}", *instead(args, entry.shape, entry.examples[:1]))
    return compile_error(refusal.code, refusal.message, span, labels=labels, help=help)
