"""What plain Python of the user may call besides its own functions: builtins over numbers, and functions of `math`.

An entry writes the call for arguments of known kinds, or returns None where the kind of Python's result would depend
on the values. Wherever Python raises, or gets a number that does not fit a word, it sets the fault.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from typing import Protocol

from cq.codegen.writer import expr

Typed = tuple[str, ast.expr]  # a kind, and a local or constant of it
MOST_DOUBLE = 1.7976931348623157e308


class Writing(Protocol):
    """The function being written."""

    def let(self, value: ast.expr) -> ast.expr: ...
    def fault_if(self, condition: ast.expr) -> ast.expr: ...
    def real(self, value: Typed) -> ast.expr: ...
    def truth(self, value: Typed) -> ast.expr: ...
    def finite(self, made: ast.expr) -> ast.expr: ...
    def power(self, a: ast.expr, b: ast.expr) -> ast.expr: ...


Known = Callable[["Writing", list[Typed]], Typed | None]


def _integer(body: Writing, value: Typed) -> ast.expr:
    kind, made = value
    return body.let(expr("pick(V, 1, 0)", V=made)) if kind == "bool" else made


def _abs(body: Writing, given: list[Typed]) -> Typed | None:
    match given:
        case [("float", x)]:
            return "float", body.let(expr("f64_abs(X)", X=x))
        case [value]:
            n = _integer(body, value)
            bad = body.fault_if(expr("N == LEAST", N=n, LEAST=-(2**63)))
            return "int", body.let(expr("pick(N < 0 and not BAD, 0 - N, N)", N=n, BAD=bad))
    return None


def _least_or_most(sign: str) -> Known:
    """`min` and `max`: the first of equal ones, as Python compares."""

    def fold(body: Writing, given: list[Typed]) -> Typed | None:
        kinds = {kind for kind, _ in given}
        if len(given) < 2 or len(kinds) != 1 or kinds == {"bool"}:
            return None
        (kind,) = kinds
        made = given[0][1]
        for _, other in given[1:]:
            pick = "pick_f64" if kind == "float" else "pick"
            made = body.let(expr(f"{pick}(B {sign} A, B, A)", A=made, B=other))
        return kind, made

    return fold


def _int(body: Writing, given: list[Typed]) -> Typed | None:
    match given:
        case [("float", x)]:
            return _whole(body, x, "f64_trunc(X)")
        case [value]:
            return "int", _integer(body, value)
    return None


def _whole(body: Writing, x: ast.expr, template: str) -> Typed:
    """The int that a function returns for a double."""
    bad = body.fault_if(expr("not (X > LEAST and X < MOST)", X=x, LEAST=-(2.0**62), MOST=2.0**62))
    safe = body.let(expr("pick_f64(BAD, 0.0, X)", BAD=bad, X=x))
    return "int", body.let(expr(f"f64_to_i64({template})", X=safe))


def _rounded(template: str) -> Known:
    def made(body: Writing, given: list[Typed]) -> Typed | None:
        match given:
            case [("float", x)]:
                return _whole(body, x, template)
            case [value]:
                return "int", _integer(body, value)
        return None

    return made


def _round(body: Writing, given: list[Typed]) -> Typed | None:
    """To the nearest int, halves to the even one."""
    match given:
        case [("float", x)]:
            bad = body.fault_if(expr("not f64_abs(X) < MOST", X=x, MOST=2.0**52))
            safe = body.let(expr("pick_f64(BAD, 0.0, X)", BAD=bad, X=x))
            below = body.let(expr("f64_to_i64(f64_floor(X))", X=safe))
            rest = body.let(expr("X - i64_to_f64(N)", X=safe, N=below))
            return "int", body.let(expr("N + pick(D > 0.5 or D == 0.5 and N & 1 == 1, 1, 0)", N=below, D=rest))
        case [value]:
            return "int", _integer(body, value)
    return None


def _float(body: Writing, given: list[Typed]) -> Typed | None:
    return ("float", body.real(given[0])) if len(given) == 1 else None


def _bool(body: Writing, given: list[Typed]) -> Typed | None:
    return ("bool", body.truth(given[0])) if len(given) == 1 else None


BUILTINS: dict[object, Known] = {
    builtins.abs: _abs,
    builtins.min: _least_or_most("<"),
    builtins.max: _least_or_most(">"),
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.round: _round,
}


def _real_function(template: str, guard: str = "") -> Known:
    """A function of doubles. guard: where it has no result; elsewhere results that are not finite go to Python."""
    places = 2 if "B" in template else 1

    def made(body: Writing, given: list[Typed]) -> Typed | None:
        if len(given) != places:
            return None
        fills = dict(zip("AB", map(body.real, given), strict=False))
        if guard:
            bad = body.fault_if(expr(guard, **fills))
            fills["A"] = body.let(expr("pick_f64(BAD, 1.0, A)", BAD=bad, A=fills["A"]))
        return "float", body.finite(expr(template, **fills))

    return made


def _test(template: str) -> Known:
    def made(body: Writing, given: list[Typed]) -> Typed | None:
        if len(given) != 1:
            return None
        return "bool", body.let(expr(template, A=body.real(given[0]), MOST=MOST_DOUBLE))

    return made


def _power(body: Writing, given: list[Typed]) -> Typed | None:
    if len(given) != 2:
        return None
    return "float", body.finite(body.power(body.real(given[0]), body.real(given[1])))


_BY_NAME = ("exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "cbrt", "expm1")

MATHS: dict[object, Known] = {
    **{getattr(math, name): _real_function(f"f64_{name}(A)") for name in _BY_NAME},
    math.fabs: _real_function("f64_abs(A)"),
    math.sqrt: _real_function("f64_sqrt(A)", "not A >= 0.0"),
    math.log: _real_function("f64_ln(A)", "not A > 0.0"),
    math.log2: _real_function("f64_log2(A)", "not A > 0.0"),
    math.log10: _real_function("f64_log10(A)", "not A > 0.0"),
    math.log1p: _real_function("f64_log1p(A)", "not A > -1.0"),
    math.atan2: _real_function("f64_atan2(A, B)"),
    math.pow: _power,
    math.floor: _rounded("f64_floor(X)"),
    math.ceil: _rounded("f64_ceil(X)"),
    math.trunc: _rounded("f64_trunc(X)"),
    math.isnan: _test("A != A"),
    math.isinf: _test("f64_abs(A) > MOST"),
    math.isfinite: _test("f64_abs(A) <= MOST"),
}
