"""Kernel forms of functions that make texts from texts, or from their bytes."""

from __future__ import annotations

import ast
import math
import struct
from functools import lru_cache

from cq.codegen.expressions.constants import constant_table, constant_text
from cq.codegen.expressions.forms import Strict, form, give_text, pure, result_of
from cq.codegen.expressions.text import texts
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.functions.text_building import MOST_LETTERS
from cq.runtime.layout.abi import STATE_RESULT, ErrorCode

# -- texts from texts -------------------------------------------------------------------------------------------------


def _demand_room(scope: Scope, call: Strict, too_long: ast.expr) -> None:
    with scope.when(too_long):
        scope.fail(ErrorCode.BAD_ARGUMENT, f"a text of more than {MOST_LETTERS} characters", call.span)


@form("split_part")
def _split_part(scope: Scope, call: Strict) -> None:
    (text, length), (separator, size), (number,) = (v.parts for v in call.args)
    with scope.when(expr("N == 0", N=number)):
        scope.fail(ErrorCode.BAD_ARGUMENT, "SPLIT_PART counts pieces from 1, or from -1 at the end", call.span)
    holes = {"T": text, "L": length, "S": separator, "LS": size}
    first = scope.let(expr("piece_start(T, L, S, LS, N)", N=number, **holes), "first")
    empty = constant_text(scope, "")
    result = scope.variables(call.type, False, "piece")
    scope.assign(result, empty)
    with scope.when(expr("F >= 0", F=first)):
        end = scope.let(expr("split_end(T, L, F, S, LS)", F=first, **holes), "end")
        scope.assign(result, Val(call.type, (expr("T + F", T=text, F=first), expr("E - F", E=end, F=first))))
    call.give(scope, *result.parts)


@form("substring_index")
def _substring_index(scope: Scope, call: Strict) -> None:
    (text, length), (separator, size), (count,) = (v.parts for v in call.args)
    result = scope.variables(call.type, False, "part")
    scope.assign(result, constant_text(scope, ""))
    with scope.when(expr("N != 0 and LS > 0", N=count, LS=size)):
        scope.assign(result, Val(call.type, (text, length)))
        found = expr("separator_at(T, L, S, LS, N)", T=text, L=length, S=separator, LS=size, N=count)
        at = scope.let(found, "at")
        with scope.when(expr("AT >= 0 and N > 0", AT=at, N=count)):
            scope.assign(result, Val(call.type, (text, at)))
        with scope.when(expr("AT >= 0 and N < 0", AT=at, N=count)):
            behind = scope.let(expr("AT + LS", AT=at, LS=size), "behind")
            parts = (expr("T + B", T=text, B=behind), expr("L - B", L=length, B=behind))
            scope.assign(result, Val(call.type, parts))
    call.give(scope, *result.parts)


def _pad(name: str, before: bool) -> None:
    @form(name)
    def padded(scope: Scope, call: Strict) -> None:
        (text, length), (count,) = (v.parts for v in call.args[:2])
        padding, size = (call.args[2] if len(call.args) == 3 else constant_text(scope, " ")).parts
        _demand_room(scope, call, expr("N > MOST", N=count, MOST=MOST_LETTERS))
        made = expr(
            "text_pad(state, T, L, N, P, LP, BEFORE)",
            T=text, L=length, N=count, P=padding, LP=size, BEFORE=int(before),
        )  # fmt: skip
        give_text(scope, call, made)


_pad("lpad", True)
_pad("rpad", False)


@form("repeat")
def _repeat(scope: Scope, call: Strict) -> None:
    (text, length), (times,) = (v.parts for v in call.args)
    letters = scope.let(expr("text_length(T, L)", T=text, L=length), "letters")
    _demand_room(scope, call, expr("N > 0 and K > udiv(MOST, N)", N=times, K=letters, MOST=MOST_LETTERS))
    give_text(scope, call, expr("text_repeat(state, T, L, N)", T=text, L=length, N=times))


@form("space")
def _space(scope: Scope, call: Strict) -> None:
    (count,) = (v.it for v in call.args)
    _demand_room(scope, call, expr("N > MOST", N=count, MOST=MOST_LETTERS))
    give_text(scope, call, expr("text_blank(state, N)", N=count))


@form("reverse")
def _reverse(scope: Scope, call: Strict) -> None:
    give_text(scope, call, expr("text_reverse(state, T, LT)", **texts(call, "T")))


@form("translate")
def _translate(scope: Scope, call: Strict) -> None:
    give_text(scope, call, expr("text_translate(state, T, LT, C, LC, O, LO)", **texts(call, "T", "C", "O")))


@form("overlay")
def _overlay(scope: Scope, call: Strict) -> None:
    (text, length), (other, size), (start,) = (v.parts for v in call.args[:3])
    letters = expr("text_length(T, L)", T=other, L=size)
    count = call.args[3].it if len(call.args) == 4 else scope.let(letters, "count")
    made = expr(
        "text_overlay(state, T, L, O, LO, S, N)", T=text, L=length, O=other, LO=size, S=start, N=count
    )  # fmt: skip
    give_text(scope, call, made)


@form("concat_ws")
def _concat_ws(scope: Scope, call: Strict) -> None:
    """Two passes over the arguments that are not NULL: their length, then their bytes."""
    separator, *values = call.args
    if separator.null is None:
        _joined(scope, call, separator, values)
    else:
        with scope.when(expr("not N", N=separator.null)):
            _joined(scope, call, separator, values)


def _joined(scope: Scope, call: Strict, separator: Val, values: list[Val]) -> None:
    between, width = separator.parts
    count = ast.Name(scope.writer.let(ast.Constant(0), "count"), ast.Load())
    size = ast.Name(scope.writer.let(ast.Constant(0), "size"), ast.Load())
    present = [ast.Constant(True) if v.null is None else expr("not N", N=v.null) for v in values]
    for value, there in zip(values, present, strict=True):
        with scope.when(there):
            scope.writer.set(size.id, expr("S + L", S=size, L=value.parts[1]))
            scope.writer.set(count.id, expr("C + 1", C=count))
    with scope.when(expr("C > 1", C=count)):
        scope.writer.set(size.id, expr("S + (C - 1) * W", S=size, C=count, W=width))
    address = scope.let(expr("step_bytes(state, S)", S=size), "text")
    with scope.when(expr("A == 0", A=address)):
        scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
    at = ast.Name(scope.writer.let(expr("A + 0", A=address), "at"), ast.Load())
    scope.writer.set(count.id, 0)
    for value, there in zip(values, present, strict=True):
        part, length = value.parts
        with scope.when(there):
            with scope.when(expr("C > 0", C=count)):
                scope.writer.code("copy(AT, B, W)", AT=at, B=between, W=width)
                scope.writer.set(at.id, expr("AT + W", AT=at, W=width))
            scope.writer.code("copy(AT, T, L)", AT=at, T=part, L=length)
            scope.writer.set(at.id, expr("AT + L", AT=at, L=length))
            scope.writer.set(count.id, expr("C + 1", C=count))
    call.give(scope, address, size)


@form("levenshtein")
def _levenshtein(scope: Scope, call: Strict) -> None:
    status = expr("text_distance(state, A, LA, B, LB)", **texts(call, "A", "B"))
    call.give(scope, scope.let(result_of(scope, call, status, ErrorCode.BAD_ARGUMENT)))


# -- bytes ------------------------------------------------------------------------------------------------------------


@form("ascii")
def _ascii(scope: Scope, call: Strict) -> None:
    text, length = call.args[0].parts
    value = ast.Name(scope.writer.let(ast.Constant(0)), ast.Load())
    with scope.when(expr("L > 0", L=length)):
        scope.writer.set(value.id, expr("code_point(T, 0)", T=text))
    call.give(scope, value)


@pure("octet_length")
def _octet_length(scope: Scope, call: Strict) -> ast.expr:
    return call.args[0].parts[1]


@pure("bit_length")
def _bit_length(scope: Scope, call: Strict) -> ast.expr:
    return expr("L * 8", L=call.args[0].parts[1])


@pure("crc32")
def _crc32(scope: Scope, call: Strict) -> ast.expr:
    return expr("check_sum(T, LT)", **texts(call, "T"))


@pure("xxhash64")
def _xxhash64(scope: Scope, call: Strict) -> ast.expr:
    return expr("xxhash_64(T, LT, 42)", **texts(call, "T"))


def _of_number(name: str, template: str) -> None:
    @form(name)
    def written(scope: Scope, call: Strict) -> None:
        give_text(scope, call, expr(template, A=call.args[0].it))


_of_number("chr", "write_character(state, A)")
_of_number("hex", "write_bits(state, A, 4)")
_of_number("bin", "write_bits(state, A, 1)")


def _of_text(name: str, native: str) -> None:
    @form(name)
    def made(scope: Scope, call: Strict) -> None:
        give_text(scope, call, expr(f"{native}(state, T, LT)", **texts(call, "T")))


_of_text("hex_text", "write_hex")
_of_text("sha1", "digest_sha1")
_of_text("url_encode", "write_url")
_of_text("to_base64", "write_base64")


def _read(name: str, native: str) -> None:
    """A form that is NULL where its native function leaves a length below 0."""

    @form(name)
    def read(scope: Scope, call: Strict) -> None:
        made = scope.let(expr(f"{native}(state, T, LT)", **texts(call, "T")), "text")
        with scope.when(expr("A == 0", A=made)):
            scope.fail(ErrorCode.NO_MEMORY, call.text, call.span)
        size = scope.let(expr("ld_i64(state, W)", W=STATE_RESULT), "size")
        with scope.when(expr("S >= 0", S=size)):
            call.give(scope, made, size)


_read("url_decode", "read_url")
_read("unhex", "read_hex")
_read("unbase64", "read_base64")


def _with_table(name: str) -> None:
    @form(name)
    def digest(scope: Scope, call: Strict) -> None:
        table = constant_table(scope, name, round_constants(name))
        give_text(scope, call, expr(f"digest_{name}(state, T, LT, TABLE)", TABLE=table, **texts(call, "T")))


_with_table("md5")
_with_table("sha256")


@lru_cache(maxsize=2)
def round_constants(name: str) -> bytes:
    """The constants of a digest's rounds, in the form cq/runtime/values/digests.py reads."""
    if name == "md5":
        addends = [int(abs(math.sin(i + 1)) * 2**32) for i in range(64)]
        rotations = [
            (7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21)[i // 16 * 4 + i % 4] for i in range(64)
        ]
        return struct.pack("<128I", *addends, *rotations)
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))]
    addends = [_fraction_of_root(p, 3) for p in primes]
    return struct.pack("<72I", *addends, *(_fraction_of_root(p, 2) for p in primes[:8]))


def _fraction_of_root(number: int, degree: int) -> int:
    """The first 32 bits of the fraction of a root, exactly."""
    scaled = number << 32 * degree
    root = int(float(number) ** (1 / degree) * 2**32)
    while root**degree > scaled:
        root -= 1
    while (root + 1) ** degree <= scaled:
        root += 1
    return root & 0xFFFFFFFF
