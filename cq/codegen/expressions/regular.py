"""Kernel forms of regular expressions: their automata as tables of constants."""

from __future__ import annotations

import ast
import struct
from functools import lru_cache

from cq.codegen.expressions.constants import constant_table, constant_text
from cq.codegen.expressions.forms import Strict, form, give_text, result_of
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Literal
from cq.lang.functions.regular import kept_by, kept_groups, pieces_of
from cq.lang.regex.automaton import Move, automaton_of
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.values.regular import ASCII_POINTS, BOUND, HEADER, INSERT_WORDS


@lru_cache(maxsize=256)
def regex_table(pattern: str, kept: tuple[int, ...]) -> bytes:
    """The automaton of a pattern in the form cq/runtime/values/regular.py reads."""
    made = automaton_of(pattern, kept)
    following = BOUND + 2 * len(made.bounds)
    cells = len(made.following) * made.class_count
    places: dict[Move | None, int] = {None: -1}
    content: list[int] = []
    for move in (m for row in made.moves for m in row):
        if move is not None and move not in places:
            places[move] = len(content)
            source, slots = move.found or (0, 0)
            content += [
                int(move.found is not None),
                source,
                slots,
                len(move.ways),
                *(w for way in move.ways for w in way),
            ]
    header = {
        "classes": made.class_count, "slots": made.slots, "widest": made.widest,
        **dict(zip(("beyond", "line", "letter", "other"), made.starts, strict=True)),
        "bounds": len(made.bounds), "next": following, "moves": following + cells, "content": following + 2 * cells,
    }  # fmt: skip
    ascii_classes = bytes(made.class_of(point) for point in range(ASCII_POINTS))
    steps = [n for row in made.following for n in row]
    words = (*made.bounds, *made.classes, *steps, *(places[m] for row in made.moves for m in row), *content)
    return (
        struct.pack(f"<{len(HEADER)}i", *(header[name] for name in HEADER))
        + ascii_classes
        + struct.pack(f"<{len(words)}i", *words)
    )


def _literal(call: Strict, index: int) -> object:
    argument = call.node.children[index]
    assert isinstance(argument, Literal), "a pattern that is no literal"
    return argument.value


def _table(scope: Scope, call: Strict, kept: tuple[int, ...]) -> ast.expr:
    pattern = str(_literal(call, 1))
    return constant_table(scope, f"regex {kept} {pattern}", regex_table(pattern, kept))


def _text(call: Strict) -> dict[str, ast.expr]:
    text, length = call.args[0].parts
    return {"T": text, "L": length}


@form("regexp_like")
def _regexp_like(scope: Scope, call: Strict) -> None:
    call.give(scope, scope.let(expr("regex_like(TABLE, T, L) != 0", TABLE=_table(scope, call, ()), **_text(call))))


@form("regexp_count")
def _regexp_count(scope: Scope, call: Strict) -> None:
    status = expr("regex_count(state, TABLE, T, L)", TABLE=_table(scope, call, (0,)), **_text(call))
    call.give(scope, scope.let(result_of(scope, call, status, ErrorCode.NO_MEMORY)))


@form("regexp_extract")
def _regexp_extract(scope: Scope, call: Strict) -> None:
    group = _literal(call, 2) if len(call.args) == 3 else 0
    assert isinstance(group, int)
    kept = kept_groups(group)
    table, slot = _table(scope, call, kept), 2 * kept.index(group)
    memory = scope.let(expr("regex_memory(state, TABLE)", TABLE=table), "memory")
    with scope.when(expr("M == 0", M=memory)):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
    result = scope.variables(call.type, False, "part")
    scope.assign(result, constant_text(scope, ""))
    found = expr("regex_find(TABLE, M, T, L, 0) != 0", TABLE=table, M=memory, **_text(call))
    with scope.when(found), scope.when(expr("ld_i64(M, SLOT) >= 0", M=memory, SLOT=slot)):
        first = scope.let(expr("ld_i64(M, SLOT)", M=memory, SLOT=slot), "first")
        end = expr("ld_i64(M, SLOT)", M=memory, SLOT=slot + 1)
        parts = (expr("T + F", T=call.args[0].parts[0], F=first), expr("E - F", E=end, F=first))
        scope.assign(result, Val(call.type, parts))
    call.give(scope, *result.parts)


@form("regexp_extract_all")
def _regexp_extract_all(scope: Scope, call: Strict) -> None:
    group = _literal(call, 2) if len(call.args) == 3 else 0
    assert isinstance(group, int)
    kept = kept_groups(group)
    holes = {"TABLE": _table(scope, call, kept), "SLOT": ast.Constant(2 * kept.index(group)), **_text(call)}
    give_text(scope, call, expr("regex_matches(state, TABLE, T, L, SLOT)", **holes))


@form("regexp_replace")
def _regexp_replace(scope: Scope, call: Strict) -> None:
    replacement = str(_literal(call, 2))
    kept, pieces = kept_by(replacement), pieces_of(replacement)
    content, words = b"", []
    for piece in pieces:
        written = piece.encode() if isinstance(piece, str) else b""
        slot = -1 if isinstance(piece, str) else 2 * kept.index(piece)
        words += [slot, len(pieces) * INSERT_WORDS * 4 + len(content), len(written)]
        content += written
    by = constant_table(scope, f"replacement {replacement}", struct.pack(f"<{len(words)}i", *words) + content)
    holes = {"TABLE": _table(scope, call, kept), "BY": by, "N": ast.Constant(len(pieces)), **_text(call)}
    give_text(scope, call, expr("regex_replace(state, TABLE, T, L, BY, N)", **holes))
