"""Kernel forms of the functions of VARCHAR. A part of a text is not copied; new text lives until the next row."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.expressions.case_tables import case_table
from cq.codegen.expressions.constants import constant_table, constant_text
from cq.codegen.expressions.forms import Strict, form, give_text, no_memory, pure
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Call, Literal
from cq.lang.functions import Failure
from cq.lang.functions.text import ANY_ONE, Pattern, like_pattern
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode

_ALL = 2**63 - 1  # how many code points SUBSTRING takes by default
_FIRST_LETTER = {"lower": ord("A"), "upper": ord("a")}


def texts(call: Strict, *names: str) -> dict[str, ast.expr]:
    """The parts of the arguments as holes: address and length, `T` and `LT` for the name `T`."""
    holes = {}
    for name, value in zip(names, call.args, strict=True):
        holes[name], holes["L" + name] = value.parts
    return holes


def _constant(call: Strict, index: int) -> object:
    """The value of an argument that is a literal; None for others."""
    argument = call.node.children[index]
    return argument.value if isinstance(argument, Literal) else None


@pure("length")
def _length(scope: Scope, call: Strict) -> ast.expr:
    return expr("text_length(T, LT)", **texts(call, "T"))


def _case(name: str) -> None:
    @form(name)
    def cased(scope: Scope, call: Strict) -> None:
        table = constant_table(scope, name, case_table(name))
        made = expr("text_case(state, T, LT, FIRST, TABLE)", FIRST=_FIRST_LETTER[name], TABLE=table, **texts(call, "T"))
        give_text(scope, call, made)


_case("lower")
_case("upper")


@form("initcap")
def _initcap(scope: Scope, call: Strict) -> None:
    small = constant_table(scope, "lower", case_table("lower"))
    lower = expr("text_case(state, T, LT, FIRST, TABLE)", FIRST=_FIRST_LETTER["lower"], TABLE=small, **texts(call, "T"))
    text = scope.let(lower, "text")
    no_memory(scope, call, expr("A == 0", A=text))
    size = scope.let(expr("ld_i64(state, W)", W=STATE_RESULT), "size")
    table = constant_table(scope, "title", case_table("title"))
    give_text(scope, call, expr("text_titles(state, T, L, TABLE)", T=text, L=size, TABLE=table))


# -- parts of a text --------------------------------------------------------------------------------------------------


def _give_part(scope: Scope, call: Strict, first: ast.expr, end: ast.expr) -> None:
    """The result is the part of the first argument between two offsets."""
    address, _ = call.args[0].parts
    start = scope.let(expr("A + F", A=address, F=first), "text")
    call.give(scope, start, scope.let(expr("E - F", E=end, F=first), "size"))


@form("substring")
def _substring(scope: Scope, call: Strict) -> None:
    address, length = call.args[0].parts
    start = call.args[1].it
    count = call.args[2].it if len(call.args) == 3 else ast.Constant(_ALL)
    first = scope.let(expr("substring_start(T, L, S)", T=address, L=length, S=start), "first")
    end = scope.let(expr("substring_end(T, L, S, N, F)", T=address, L=length, S=start, N=count, F=first), "end")
    _give_part(scope, call, first, end)


@form("binary_substring")
def _binary_substring(scope: Scope, call: Strict) -> None:
    length, start = call.args[0].parts[1], call.args[1].it
    count = call.args[2].it if len(call.args) == 3 else ast.Constant(_ALL)
    first = scope.let(expr("binary_start(L, S)", L=length, S=start), "first")
    end = scope.let(expr("binary_end(L, S, N, F)", L=length, S=start, N=count, F=first), "end")
    _give_part(scope, call, first, end)


@form("text_slice")
def _text_slice(scope: Scope, call: Strict) -> None:
    address, length = call.args[0].parts
    first = scope.let(expr("substring_start(T, L, N)", T=address, L=length, N=call.args[1].it), "first")
    end = scope.let(expr("slice_end(T, L, N, F)", T=address, L=length, N=call.args[2].it, F=first), "end")
    _give_part(scope, call, first, end)


@form("left")
def _left(scope: Scope, call: Strict) -> None:
    address, length = call.args[0].parts
    end = scope.let(expr("text_forward(T, L, 0, N)", T=address, L=length, N=call.args[1].it), "end")
    _give_part(scope, call, ast.Constant(0), end)


@form("right")
def _right(scope: Scope, call: Strict) -> None:
    address, length = call.args[0].parts
    first = scope.let(expr("text_last(T, L, N)", T=address, L=length, N=call.args[1].it), "first")
    _give_part(scope, call, first, length)


def _trim(name: str, at_start: bool, at_end: bool) -> None:
    @form(name)
    def trimmed(scope: Scope, call: Strict) -> None:
        address, length = call.args[0].parts
        characters = call.args[1] if len(call.args) == 2 else constant_text(scope, " ")
        holes = dict(zip(("T", "L", "C", "LC"), (address, length, *characters.parts), strict=True))
        first: ast.expr = ast.Constant(0)
        end = length
        if at_start:
            first = scope.let(expr("trim_start(T, L, C, LC)", **holes), "first")
        if at_end:
            end = scope.let(expr("trim_end(T, L, F, C, LC)", F=first, **holes), "end")
        _give_part(scope, call, first, end)


_trim("trim", True, True)
_trim("ltrim", True, False)
_trim("rtrim", False, True)


# -- new texts --------------------------------------------------------------------------------------------------------


@form("concat")
def _concat(scope: Scope, call: Strict) -> None:
    if len(call.args) == 1:
        call.give(scope, *call.args[0].parts)
        return
    total = scope.let(_sum([value.parts[1] for value in call.args]), "size")
    address = scope.let(expr("step_bytes(state, N)", N=total), "text")
    with scope.when(expr("A == 0", A=address)):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
    at: ast.expr = address
    for value in call.args:
        part, length = value.parts
        scope.writer.code("copy(AT, T, L)", AT=at, T=part, L=length)
        at = scope.let(expr("AT + L", AT=at, L=length), "text")
    call.give(scope, address, total)


def _sum(values: Sequence[ast.expr]) -> ast.expr:
    total = values[0]
    for value in values[1:]:
        total = ast.BinOp(total, ast.Add(), value)
    return total


@form("replace")
def _replace(scope: Scope, call: Strict) -> None:
    give_text(scope, call, expr("text_replace(state, T, LT, S, LS, R, LR)", **texts(call, "T", "S", "R")))


# -- search -----------------------------------------------------------------------------------------------------------


@pure("position")
def _position(scope: Scope, call: Strict) -> ast.expr:
    return expr("text_position(T, LT, P, LP)", **texts(call, "P", "T"))


@pure("strpos")
def _strpos(scope: Scope, call: Strict) -> ast.expr:
    return expr("text_position(T, LT, P, LP)", **texts(call, "T", "P"))


_STARTS = "LP <= LT and mem_eq(T, P, LP)"
_ENDS = "LP <= LT and mem_eq(T + (LT - LP), P, LP)"
_CONTAINS = "mem_find(T, LT, P, LP) >= 0"


@pure("starts_with")
def _starts_with(scope: Scope, call: Strict) -> ast.expr:
    return expr(_STARTS, **texts(call, "T", "P"))


@pure("ends_with")
def _ends_with(scope: Scope, call: Strict) -> ast.expr:
    return expr(_ENDS, **texts(call, "T", "P"))


@pure("contains")
def _contains(scope: Scope, call: Strict) -> ast.expr:
    return expr(_CONTAINS, **texts(call, "T", "P"))


# -- LIKE -------------------------------------------------------------------------------------------------------------


@form("like")
def _like(scope: Scope, call: Strict) -> None:
    known = _known_pattern(call)
    simple = _simple_like(scope, call.args[0], known) if known is not None else None
    if simple is not None:
        call.give(scope, scope.let(simple))
        return
    text, pattern = call.args[:2]
    escape = call.args[2] if len(call.args) == 3 else constant_text(scope, "\\")
    holes = dict(zip(("T", "L", "P", "LP", "E", "LE"), (*text.parts, *pattern.parts, *escape.parts), strict=True))
    if known is None:
        with scope.when(expr("like_is_valid(P, LP, E, LE) == 0", **{k: holes[k] for k in ("P", "LP", "E", "LE")})):
            cause = "the escape of LIKE is not one character, or stands before no _, % or escape"
            scope.fail(ErrorCode.BAD_ARGUMENT, cause, call.span)
    call.give(scope, scope.let(expr("text_like(T, L, P, LP, E, LE) != 0", **holes)))


def _known_pattern(call: Strict) -> Pattern | None:
    """The pattern's stretches, if pattern and escape are literals and valid."""
    assert isinstance(call.node, Call)
    pattern = _constant(call, 1)
    escape = _constant(call, 2) if len(call.args) == 3 else "\\"
    if not isinstance(pattern, str) or not isinstance(escape, str):
        return None
    try:
        return like_pattern(pattern, escape)
    except Failure:
        return None


def _simple_like(scope: Scope, text: Val, stretches: Pattern) -> ast.expr | None:
    """The condition for a pattern of plain text with `%` at its ends, or once inside it; None for others."""
    if len(stretches) > 3 or any(c == ANY_ONE for s in stretches for c in s):
        return None
    plain = ["".join(map(str, s)) for s in stretches]
    match plain:
        case [only]:
            return _holding(scope, "LP == LT and mem_eq(T, P, LP)", text, only)
        case [start, ""]:
            return _holding(scope, _STARTS, text, start)
        case ["", end]:
            return _holding(scope, _ENDS, text, end)
        case [start, end]:
            fits = expr("L >= N", L=text.parts[1], N=len(start.encode()) + len(end.encode()))
            both = (_holding(scope, _STARTS, text, start), _holding(scope, _ENDS, text, end))
            return ast.BoolOp(ast.And(), [fits, *both])
        case ["", inside, ""]:
            return _holding(scope, _CONTAINS, text, inside)
        case _:
            return None


def _holding(scope: Scope, condition: str, text: Val, part: str) -> ast.expr:
    constant = constant_text(scope, part)
    return expr(condition, T=text.parts[0], LT=text.parts[1], P=constant.parts[0], LP=constant.parts[1])
