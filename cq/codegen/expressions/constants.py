"""Constants in kernels: literals, texts and tables, read from the stage's constants and hoisted out of loops."""

from __future__ import annotations

import ast
import struct

from cq.codegen.values import Scope, Val, null_of, words_of_value
from cq.codegen.writer import expr
from cq.lang.expressions import Literal, Value
from cq.lang.types import BOOLEAN, VARCHAR, DataType, Kind, Physical


def literal(scope: Scope, e: Literal) -> Val:
    """A constant from the table, loaded once per function. NULL, TRUE and FALSE are part of the kernel's shape."""
    if e.value is None:
        return null_of(e.type)
    if e.type.kind is Kind.BOOLEAN:
        return Val(BOOLEAN, (ast.Constant(bool(e.value)),))
    key = ("literal", e.type, repr(e.value))
    if key in scope.prologue:
        return scope.prologue[key]
    hoist = scope.writer.hoist
    parts: tuple[ast.expr, ...]
    match e.type.physical:
        case Physical.BYTES if e.type.kind is Kind.ARRAY:
            content = array_bytes(e.value, e.type)
            address = hoist(_table_address(scope, f"array {e.type} {e.value!r}", content), "k")
            parts = (_name(address), ast.Constant(len(content)))
        case Physical.BYTES:
            place = scope.constants.text(e.value)
            address = hoist(expr("wadd(constants, ld_i64(constants, PLACE))", PLACE=place), "k")
            parts = (_name(address), _name(hoist(expr("ld_i64(constants, PLACE)", PLACE=place + 1), "k")))
        case Physical.F64:
            place = scope.constants.word(_float_bits(e.value))
            parts = (_name(hoist(expr("ld_f64(constants, PLACE)", PLACE=place), "k")),)
        case Physical.I128:
            places = [scope.constants.word(w) for w in words_of_value(e.value)]
            parts = tuple(_name(hoist(expr("ld_i64(constants, PLACE)", PLACE=p), "k")) for p in places)
        case _:
            place = scope.constants.word(e.value)
            parts = (_name(hoist(expr("ld_i64(constants, PLACE)", PLACE=place), "k")),)
    made = scope.prologue[key] = Val(e.type, parts)
    return made


def _name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def constant_text(scope: Scope, text: str) -> Val:
    """A string of the table."""
    return literal(scope, Literal(VARCHAR, False, text))


def constant_table(scope: Scope, name: str, content: bytes) -> ast.expr:
    """The address of bytes in the table."""
    key = ("table", name)
    if key not in scope.prologue:
        address = scope.writer.hoist(_table_address(scope, name, content), "k")
        scope.prologue[key] = Val(VARCHAR, (_name(address), ast.Constant(len(content))))
    return scope.prologue[key].parts[0]


def array_bytes(value: tuple[Value, ...], type_: DataType) -> bytes:
    """An array as kernels hold it."""
    from cq.connectors.physical_rows import array_of  # imports Arrow and numpy: 0.14 s of a check
    from cq.runtime.flow.lists import array_of_lists

    content: bytes = array_of_lists(array_of([value], type_))[0].as_py()
    return content


def _table_address(scope: Scope, name: str, content: bytes) -> ast.expr:
    place = scope.constants.table(name, content)
    return expr("wadd(constants, ld_i64(constants, PLACE))", PLACE=place)


def _float_bits(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)
