"""Expressions as functions in one generated module, run interpreted or compiled on values of columns.

kernels = Kernels([expr, …])             columns of an expression are its `Column` nodes, by index
with kernels.interpreted() as run:       or kernels.compiled()
    run(number, values)                  the value, or a `Stopped` with the user's error code
"""

from __future__ import annotations

import ast
import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from cq.codegen.expressions.constants import array_bytes
from cq.codegen.expressions.emit import emit
from cq.codegen.values import Constants, Row, Scope, Sites, Val, words_of_value
from cq.codegen.writer import Writer, expr
from cq.connectors.physical_rows import values_of
from cq.lang.expressions import Column, Expr, walk
from cq.lang.types import DataType, Kind, Physical, content_of, to_arrow
from cq.records import dataclass
from cq.runtime.base import kernel
from cq.runtime.base.interpret import interpret_stage, stage_scope
from cq.runtime.base.simulation import Memory
from cq.runtime.flow.lists import lists_of_array
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ERROR_CODES, ErrorCode
from cq.runtime.values.text import step_drop, step_reset

WORDS = 3  # of a value: whether it is NULL, and its parts
ARGUMENTS = ("state", "constants", "inputs", "out")


@dataclass(frozen=True)
class Stopped:
    """The function ended in a data error."""

    code: str


Run = Callable[[int, Sequence[Any]], Any]


class Kernels:
    """One function for each expression, in one module."""

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self.exprs = exprs
        self.writer, self.constants = Writer(), Constants()
        for number, e in enumerate(exprs):
            self._write(f"e{number}", e)
        self.source = self.writer.finish(stage_scope())

    def _write(self, name: str, e: Expr) -> None:
        writer = self.writer

        def fail(code: ErrorCode, site: int) -> None:
            writer.code("st_i64(state, W, CODE)", W=abi.STATE_ERROR_CODE, CODE=int(code))
            writer.code("return 1")

        with writer.function(name, ARGUMENTS):
            scope = Scope(writer, self.constants, Sites(), fail)
            columns = {c.index: c for c in walk(e) if isinstance(c, Column)}
            value = emit(scope, Row(scope, [_loader(scope, columns[i]) for i in sorted(columns)]), e)
            writer.code("st_i64(out, 0, pick(N, 1, 0))", N=value.null if value.null is not None else False)
            for place, part in enumerate(value.parts, 1):
                if e.type.physical is Physical.F64:
                    writer.code("st_f64(out, W, V)", W=place, V=part)
                else:
                    shown = expr("pick(V, 1, 0)", V=part) if e.type.kind is Kind.BOOLEAN else part
                    writer.code("st_i64(out, W, V)", W=place, V=shown)
            writer.code("return 0")

    @contextmanager
    def interpreted(self, reset: bool = True) -> Iterator[Run]:
        """The functions over a bounds-checked memory, which must not leak. reset: step bytes end with each call."""
        functions = interpret_stage(self.source)
        with Memory() as memory:
            state = memory.place(bytes(8 * abi.STATE_FIRST_FREE), writable=True)
            constants = memory.place(self.constants.pack())
            out = memory.place(bytes(8 * WORDS), writable=True)

            def run(number: int, values: Sequence[Any]) -> Any:
                if reset:
                    step_reset(state)
                packed, _ = _packed(self._columns(number), values, memory.place)
                stopped = functions[f"e{number}"](state, constants, memory.place(packed), out)
                return self._outcome(number, stopped, state, out, memory.read)

            yield run
            step_drop(state)
            memory.check_no_leaks()

    @contextmanager
    def compiled(self) -> Iterator[Run]:
        """The functions as machine code."""
        stage = kernel.compile_stage(self.source, self.writer.signatures, [f"e{n}" for n in range(len(self.exprs))])
        library = kernel.library()
        functions = [
            kernel.callable_at(stage.addresses[f"e{n}"], "i64(i64, i64, i64, i64)") for n in range(len(self.exprs))
        ]
        kept: list[Any] = []

        def place(content: bytes) -> int:
            kept.append(ctypes.create_string_buffer(content, len(content) + 1))
            return ctypes.addressof(kept[-1])

        state, out = place(bytes(8 * abi.STATE_FIRST_FREE)), place(bytes(8 * WORDS))
        constants = place(self.constants.pack())
        fixed = len(kept)

        def run(number: int, values: Sequence[Any]) -> Any:
            del kept[fixed:]
            library.function("step_reset")(state)
            packed, _ = _packed(self._columns(number), values, place)
            stopped = functions[number](state, constants, place(packed), out)
            return self._outcome(number, stopped, state, out, ctypes.string_at)

        yield run
        library.function("step_drop")(state)

    def _columns(self, number: int) -> list[DataType]:
        found = {c.index: c.type for c in walk(self.exprs[number]) if isinstance(c, Column)}
        return [found[i] for i in sorted(found)]

    def _outcome(self, number: int, stopped: int, state: int, out: int, read: Callable[[int, int], bytes]) -> Any:
        if stopped:
            (code,) = struct.unpack("<q", read(state + 8 * abi.STATE_ERROR_CODE, 8))
            return Stopped(ERROR_CODES[ErrorCode(code)])
        null, first, second = struct.unpack("<3q", read(out, 8 * WORDS))
        type_ = self.exprs[number].type
        if null:
            return None
        if type_.kind is Kind.ARRAY:
            lists = lists_of_array(pa.array([read(first, second)], pa.binary()), to_arrow(type_))
            return values_of(lists, type_)[0]
        if type_.physical is Physical.BYTES:
            content = read(first, second) if second else b""
            return content if type_.kind is Kind.BINARY else content.decode()
        if type_.physical is Physical.F64:
            return struct.unpack("<d", struct.pack("<q", first))[0]
        if type_.physical is Physical.I128:
            return second << 64 | first % 2**64
        return bool(first) if type_.kind is Kind.BOOLEAN else first


def _loader(scope: Scope, column: Column) -> Callable[[], Val]:
    def load() -> Val:
        at = column.index * WORDS
        null = scope.let(expr("ld_i64(inputs, W) != 0", W=at), "n") if column.nullable else None
        if column.type.physical is Physical.F64:
            parts: tuple[ast.expr, ...] = (scope.let(expr("ld_f64(inputs, W)", W=at + 1)),)
        elif column.type.physical in {Physical.BYTES, Physical.I128}:
            parts = tuple(scope.let(expr("ld_i64(inputs, W)", W=at + n)) for n in (1, 2))
        elif column.type.kind is Kind.BOOLEAN:
            parts = (scope.let(expr("ld_i64(inputs, W) != 0", W=at + 1)),)
        else:
            parts = (scope.let(expr("ld_i64(inputs, W)", W=at + 1)),)
        return Val(column.type, parts, null)

    return load


def _packed(types: Sequence[DataType], values: Sequence[Any], place: Callable[[bytes], int]) -> tuple[bytes, list[int]]:
    """The words of the inputs, and where the texts among them were placed."""
    words, placed = b"", []
    for type_, value in zip(types, values, strict=True):
        if value is None:
            words += struct.pack("<3q", 1, 0, 0)
        elif type_.physical is Physical.F64:
            words += struct.pack("<qdq", 0, value, 0)
        elif type_.physical is Physical.BYTES:
            content = array_bytes(value, type_) if type_.kind is Kind.ARRAY else content_of(value)
            placed.append(place(content))
            words += struct.pack("<3q", 0, placed[-1], len(content))
        elif type_.physical is Physical.I128:
            words += struct.pack("<3q", 0, *words_of_value(value))
        else:
            words += struct.pack("<3q", 0, int(value), 0)
    return words, placed
