"""Short forms that choose one of several values, and operators under the function names of other systems."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import CompileError, compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import BINARY, DOUBLE, NULL, VARCHAR, decimal
from cq.planner.binding.functions.shorthands import ShorthandBinder, shorthand
from cq.planner.binding.literals import integer_literal

_UTF8 = {"UTF-8", "UTF8"}

# -- one of several ---------------------------------------------------------------------------------------------------


@shorthand("decode")
def _decode(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """DECODE(x, value, result, … [, other]): CASE by IS NOT DISTINCT FROM: NULL equals NULL; without `other` NULL.
    DECODE(binary [, 'UTF-8']): CAST(binary AS VARCHAR)."""
    x, *rest = binder.positional(node, 1)
    if len(rest) < 2 and x.type in {BINARY, NULL}:
        _demand_utf8(node, rest)
        return binder.bind_cast(x, VARCHAR, node.span)
    if len(rest) < 2:
        raise compile_error(
            "CQ0302", "DECODE takes a value, then pairs of a value and a result", node.span,
            help="write DECODE(x, 1, 'one', 2, 'two', 'other'), or DECODE(binary, 'UTF-8'); UNHEX(text) "
            "reads hexadecimal digits",
        )  # fmt: skip
    pairs = len(rest) // 2
    other = rest[2 * pairs] if len(rest) % 2 else _nothing(node)
    conditions = [binder.not_distinct(x, rest[2 * n], node.span) for n in range(pairs)]
    return binder.conditional(conditions, [*(rest[2 * n + 1] for n in range(pairs)), other], node.span, node.args)


@shorthand("encode")
def _encode(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ENCODE(text [, 'UTF-8']): CAST(text AS BINARY)."""
    x, *rest = binder.positional(node, 1)
    if len(rest) > 1 or x.type not in {VARCHAR, NULL}:
        help = "for its digits write HEX(x) or TO_BASE64(x)" if x.type == BINARY else "write ENCODE(text, 'UTF-8')"
        raise compile_error("CQ0302", "ENCODE takes a text, and 'UTF-8'", node.span, help=help)
    _demand_utf8(node, rest)
    return binder.bind_cast(x, BINARY, node.span)


def _demand_utf8(node: ast.Call, charset: Sequence[Expr]) -> None:
    """Refuse another character set than UTF-8."""
    said = charset[0] if charset else None
    if said is None or (isinstance(said, Literal) and str(said.value).upper() in _UTF8):
        return
    cause = f"{node.name.upper()} knows the character set 'UTF-8' only"
    help = f"write {node.name.upper()}(x, 'UTF-8'); for digits as text there are HEX, UNHEX, TO_BASE64 and UNBASE64"
    raise compile_error("CQ0501", cause, said.span, help=help)


@shorthand("elt", "choose")
def _elt(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ELT(n, x, y, …): CASE n WHEN 1 THEN x WHEN 2 THEN y … END."""
    number, *values = binder.positional(node, 1)
    if not values:
        raise _needs_values(node, "ELT(n, 'first', 'second')")
    places = [integer_literal(n, node.span) for n in range(1, len(values) + 1)]
    conditions = [binder.compare("=", number, place, node.span) for place in places]
    return binder.conditional(conditions, [*values, _nothing(node)], node.span, node.args)


@shorthand("field")
def _field(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FIELD(x, y, z, …): 1 if x equals y, 2 if it equals z, …; 0 if it equals none."""
    x, *values = binder.positional(node, 1)
    if not values:
        raise _needs_values(node, "FIELD(x, 'first', 'second')")
    conditions = [binder.compare("=", x, value, node.span) for value in values]
    places = [integer_literal(n, node.span) for n in (*range(1, len(values) + 1), 0)]
    return binder.conditional(conditions, places, node.span)


@shorthand("equal_null")
def _equal_null(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """EQUAL_NULL(x, y): x IS NOT DISTINCT FROM y."""
    x, y = binder.exactly(node, 2)
    return binder.not_distinct(x, y, node.span)


@shorthand("typeof", "pg_typeof")
def _typeof(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TYPEOF(x): the name of the type of x, a constant."""
    (x,) = binder.exactly(node, 1)
    return Literal(VARCHAR, False, str(x.type), span=node.span)


def _nothing(node: ast.Call) -> Literal:
    return Literal(NULL, True, None, span=node.span)


def _needs_values(node: ast.Call, way: str) -> CompileError:
    return compile_error("CQ0302", f"{node.name.upper()} needs values to choose from", node.span, help=f"write {way}")


# -- operators --------------------------------------------------------------------------------------------------------

OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "fmod": "%"}


@shorthand(*OPERATORS)
def _operator(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """ADD(x, y): x + y; likewise SUBTRACT, MULTIPLY, DIVIDE and FMOD are - * / %."""
    return call(binder, node, OPERATORS[node.name], binder.exactly(node, 2))


@shorthand("negative")
def _negative(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """NEGATIVE(x): -x."""
    return call(binder, node, "negate", binder.exactly(node, 1))


@shorthand("square")
def _square(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """SQUARE(x): x * x."""
    (x,) = binder.exactly(node, 1)
    return call(binder, node, "*", [x, x])


@shorthand("safe_divide")
def _safe_divide(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """SAFE_DIVIDE(x, y): TRY_DIVIDE of DOUBLEs."""
    return call(binder, node, "try_divide", [binder.bind_cast(x, DOUBLE, x.span) for x in binder.exactly(node, 2)])


TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*"}


@shorthand(*TRIED)
def _tried(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """TRY_ADD(x, y): x + y, but NULL on integer overflow; likewise TRY_SUBTRACT and TRY_MULTIPLY are - and *."""
    args = binder.exactly(node, 2)
    made = call(binder, node, TRIED[node.name], args)
    if made.type.is_float:
        return made
    if not made.type.is_integer:
        way = "write x + y: of DECIMALs there are 38 digits, and CAST(x AS DOUBLE) has no limit"
        cause = f"{node.name.upper()} is of integers and DOUBLEs, not of {made.type}"
        raise compile_error("CQ0302", cause, node.span, help=way)
    digits = decimal(19, 0)  # so that two integers also have a product
    wide = call(binder, node, TRIED[node.name], [binder.bind_cast(x, digits, x.span) for x in args])
    return binder.bind_cast(wide, made.type, node.span, safe=True)


@shorthand("getbit", "bit_get")
def _getbit(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """GETBIT(x, n): BITAND(SHIFTRIGHT(x, n), 1)."""
    shifted = call(binder, node, "shiftright", binder.exactly(node, 2))
    return call(binder, node, "bitand", [shifted, integer_literal(1, node.span)])


# -- texts ------------------------------------------------------------------------------------------------------------


@shorthand("insert", "stuff")
def _insert(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """INSERT(text, start, length, other), STUFF(…): OVERLAY(text, other, start, length)."""
    text, start, length, other = binder.exactly(node, 4)
    return call(binder, node, "overlay", [text, other, start, length])


@shorthand("find_in_set")
def _find_in_set(binder: ShorthandBinder, node: ast.Call) -> Expr:
    """FIND_IN_SET(x, 'a,b,c'): ARRAY_POSITION(SPLIT('a,b,c', ','), x)."""
    x, listed = binder.exactly(node, 2)
    pieces = call(binder, node, "split", [listed, Literal(VARCHAR, False, ",", span=node.span)])
    return call(binder, node, "array_position", [pieces, x])


def call(binder: ShorthandBinder, node: ast.Call, name: str, args: Sequence[Expr]) -> Expr:
    return binder.call(name, args, node.span, [node] * len(args), node.name_span)
