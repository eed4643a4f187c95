"""Kernel forms of functions of JSON text."""

from __future__ import annotations

import ast
import struct
from functools import lru_cache

from cq.codegen.expressions.constants import constant_table
from cq.codegen.expressions.forms import Strict, form, give_text, stored
from cq.codegen.values import Scope
from cq.codegen.writer import expr
from cq.lang.expressions import Literal
from cq.lang.functions.json_text import path_of
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode
from cq.runtime.values.json_paths import STEP


@lru_cache(maxsize=256)
def path_table(path: str) -> bytes:
    """The path in the form cq/runtime/values/json_paths.py reads."""
    steps = path_of(path)
    assert steps is not None, "a path that is none"
    names, words = b"", [len(steps)]
    for step in steps:
        name = step.encode() if isinstance(step, str) else b""
        number = -1 if isinstance(step, str) else step
        words += [number, (1 + STEP * len(steps)) * 4 + len(names), len(name)]
        names += name
    return struct.pack(f"<{len(words)}i", *words) + names


def _path(scope: Scope, call: Strict) -> ast.expr:
    path: object = "$"
    if len(call.args) == 2:
        literal = call.node.children[1]
        assert isinstance(literal, Literal), "a path that is no literal"
        path = literal.value
    return constant_table(scope, f"path {path}", path_table(str(path)))


def _asked(scope: Scope, call: Strict, question: str) -> ast.expr:
    """The result of a function of a text and a path; fails if it is 0."""
    text, length = call.args[0].parts
    made = scope.let(expr(question, T=text, L=length, PATH=_path(scope, call)), "text")
    with scope.when(expr("A == 0", A=made)):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
    return made


def _if_found(name: str, question: str) -> None:
    """Register the form of a function whose result is NULL if the length of what is made is below 0."""

    @form(name)
    def found(scope: Scope, call: Strict) -> None:
        made = _asked(scope, call, question)
        size = scope.let(expr("ld_i64(state, W)", W=STATE_RESULT), "size")
        with scope.when(expr("S >= 0", S=size)):
            call.give(scope, made, size)


_if_found("json_value", "json_at(state, T, L, PATH, 0)")
_if_found("get_json_object", "json_at(state, T, L, PATH, 1)")
_if_found("json_array_elements", "json_elements(state, T, L, PATH)")


@form("json_array_length")
def _json_array_length(scope: Scope, call: Strict) -> None:
    _asked(scope, call, "json_count(state, T, L, PATH)")
    count = scope.let(stored(call.type), "count")
    with scope.when(expr("N >= 0", N=count)):
        call.give(scope, count)


@form("json_quote")
def _json_quote(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    give_text(scope, call, expr("json_quoted(state, T, L)", T=text, L=length))


@form("json_valid")
def _json_valid(scope: Scope, call: Strict) -> None:
    valid = _asked(scope, call, "json_is_valid(state, T, L, PATH)")
    call.give(scope, expr("A == 1", A=valid))
