"""Output ports in generated code: how a row's values reach the buffers of a port.

While a function runs, a port's row count, buffer addresses and string fill levels live in locals (`open`); code that
leaves the function, or calls something that may move buffers, writes them back first (`flush`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.values import Scope, Val, high_low
from cq.codegen.writer import as_expr, expr, word_at
from cq.errors import NOWHERE
from cq.lang.schema import Schema
from cq.lang.types import DataType, Kind
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode, Storage
from cq.runtime.layout.pipeline import ColumnSpec, PortSpec

_STORAGE = {
    Kind.BOOLEAN: Storage.BIT,
    Kind.TINYINT: Storage.I8,
    Kind.SMALLINT: Storage.I16,
    Kind.INTEGER: Storage.I32,
    Kind.DATE: Storage.I32,
    Kind.INTERVAL_MONTH: Storage.I32,
    Kind.REAL: Storage.F32,
    Kind.DOUBLE: Storage.F64,
    Kind.DECIMAL: Storage.I128,
    Kind.VARCHAR: Storage.UTF8,
    Kind.BINARY: Storage.UTF8,  # bytes, not text
    Kind.ARRAY: Storage.UTF8,
    Kind.NULL: Storage.BIT,
}
_STORE = {
    Storage.I8: "st_i8(D, R, V)",
    Storage.I16: "st_i16(D, R, V)",
    Storage.I32: "st_i32(D, R, V)",
    Storage.I64: "st_i64(D, R, V)",
    Storage.F32: "st_f32(D, R, V)",
    Storage.F64: "st_f64(D, R, V)",
}
_POSITION = (
    abi.POSITION_SERIAL, abi.POSITION_INSTANT, abi.POSITION_NODE, abi.POSITION_START, abi.POSITION_ARRIVAL,
)  # fmt: skip


def storage(type_: DataType) -> Storage:
    """How a column of this type lies in memory."""
    return _STORAGE.get(type_.kind, Storage.I64)


def column_specs(schema: Schema) -> tuple[ColumnSpec, ...]:
    """The columns of a schema as they cross a port."""
    return tuple(ColumnSpec(f.name, storage(f.type), f.nullable) for f in schema.fields)


@dataclass(frozen=True, slots=True)
class Position:
    """Orders a row among other lanes' rows of the same ticket. serial: of its cause."""

    serial: ast.expr
    instant: ast.expr
    node: int | ast.expr
    start: ast.expr
    arrival: ast.expr


@dataclass(slots=True)
class Port:
    """One port in the function being written."""

    number: int
    spec: PortSpec
    scope: Scope
    positions: bool  # its rows come from one of several lanes
    watermarks: bool = False  # its rows carry their watermarks: the function has it in `watermark`
    causes: bool = False  # its rows carry their cause: the function has it in `cause`
    rows: str = ""
    capacity: str = ""
    place: str = ""
    columns: str = ""
    data: list[str] = field(default_factory=list)
    validity: list[str] = field(default_factory=list)
    bits: list[dict[str, str]] = field(default_factory=list)  # by column: bitmap -> the word with the next row's bit
    offsets: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    room: list[str] = field(default_factory=list)
    position_list: str = ""
    watermark_list: str = ""
    cause_list: str = ""

    def open(self) -> None:
        """Put the port's words into locals at the start of the function."""
        hoist = self.scope.writer.hoist
        place = expr("out + N * (SIZE * 8)", N=self.number, SIZE=abi.PORT_WORDS) if self.number else expr("out")
        self.place = hoist(place, f"port{self.number}_")
        self.rows = hoist(self._word(abi.PORT_ROWS), "rows")
        self.capacity = hoist(self._word(abi.PORT_CAPACITY), "capacity")
        self.columns = hoist(self._word(abi.PORT_COLUMNS), "out_columns")
        if self.positions:
            self.position_list = hoist(self._word(abi.PORT_POSITIONS), "positions")
        if self.watermarks:
            self.watermark_list = hoist(self._word(abi.PORT_WATERMARKS), "marks")
        if self.causes:
            self.cause_list = hoist(self._word(abi.PORT_CAUSES), "causes")
        for n, column in enumerate(self.spec.columns):
            text = column.storage is Storage.UTF8
            self.data.append(hoist(self._column(n, abi.OUT_DATA), f"out{n}_data"))
            self.validity.append(hoist(self._column(n, abi.OUT_VALIDITY), f"out{n}_valid") if column.nullable else "")
            maps = [self.validity[n]] * column.nullable + [self.data[n]] * (column.storage is Storage.BIT)
            self.bits.append({b: hoist(self._bit_word(b), f"out{n}_bits") for b in maps})
            self.offsets.append(hoist(self._column(n, abi.OUT_OFFSETS), f"out{n}_offsets") if text else "")
            self.used.append(hoist(self._column(n, abi.OUT_BYTES), f"out{n}_used") if text else "")
            self.room.append(hoist(self._column(n, abi.OUT_BYTES_CAPACITY), f"out{n}_room") if text else "")

    def _word(self, word: int) -> ast.expr:
        return expr("ld_i64(P, W)", P=self.place, W=word)

    def _column(self, n: int, word: int) -> ast.expr:
        return word_at(self.columns, n, abi.OUT_WORDS, word)

    def _bit_word(self, bitmap: str) -> ast.expr:
        return expr("ld_i64(B, R >> 6)", B=bitmap, R=self.rows)

    def flush(self) -> None:
        """Write row count and string fill levels back."""
        code = self.scope.writer.code
        code("st_i64(P, W, R)", P=self.place, W=abi.PORT_ROWS, R=self.rows)
        for n, used in enumerate(self.used):
            if used:
                code("st_i64(C, N * SIZE + W, U)", C=self.columns, N=n, SIZE=abi.OUT_WORDS, W=abi.OUT_BYTES, U=used)

    def reload(self) -> None:
        """Reload what a call may have moved."""
        set_ = self.scope.writer.set
        set_(self.capacity, self._word(abi.PORT_CAPACITY))
        set_(self.columns, self._word(abi.PORT_COLUMNS))
        if self.positions:
            set_(self.position_list, self._word(abi.PORT_POSITIONS))
        if self.watermarks:
            set_(self.watermark_list, self._word(abi.PORT_WATERMARKS))
        if self.causes:
            set_(self.cause_list, self._word(abi.PORT_CAUSES))
        for n in range(len(self.data)):
            set_(self.data[n], self._column(n, abi.OUT_DATA))
            if self.validity[n]:
                set_(self.validity[n], self._column(n, abi.OUT_VALIDITY))
            if self.used[n]:
                set_(self.offsets[n], self._column(n, abi.OUT_OFFSETS))
                set_(self.room[n], self._column(n, abi.OUT_BYTES_CAPACITY))

    def reopen(self) -> None:
        """Reload everything: other functions have written to the port since `flush`."""
        set_ = self.scope.writer.set
        set_(self.rows, self._word(abi.PORT_ROWS))
        for n, used in enumerate(self.used):
            if used:
                set_(used, self._column(n, abi.OUT_BYTES))
        self.reload()
        for words in self.bits:
            for bitmap, word in words.items():
                set_(word, self._bit_word(bitmap))

    def append(self, values: Sequence[Val], position: Position, roomy: bool, keep: ast.expr | None = None) -> None:
        """Append a row. roomy: the caller has checked that there is room for it.

        keep: the row is always written, and counted if this holds: no branch for the processor to predict.
        """
        scope, code = self.scope, self.scope.writer.code
        if not roomy:
            with scope.when(expr("R >= CAP", R=self.rows, CAP=self.capacity)):
                self.flush()
                with scope.when(expr("port_grow(out, N) == 0", N=self.number)):
                    scope.fail(ErrorCode.NO_MEMORY, "result rows", NOWHERE)
                self.reload()
        for n, (column, value) in enumerate(zip(self.spec.columns, values, strict=True)):
            self._store(n, column, value)
        if self.watermarks:
            code("st_i64(M, R, watermark)", M=self.watermark_list, R=self.rows)
        if self.causes:
            code("st_i64(C, R, cause)", C=self.cause_list, R=self.rows)
        if self.positions:
            words = (position.serial, position.instant, as_expr(position.node), position.start, position.arrival)
            at = scope.let(expr("P + R * (SIZE * 8)", P=self.position_list, R=self.rows, SIZE=abi.POSITION_WORDS), "at")
            for word, value_ in zip(_POSITION, words, strict=True):
                code("st_i64(A, W, V)", A=at, W=word, V=value_)
        code("R = R + K", R=self.rows, K=1 if keep is None else expr("pick(X, 1, 0)", X=keep))

    def _store(self, n: int, column: ColumnSpec, value: Val) -> None:
        code = self.scope.writer.code
        if self.validity[n]:
            valid = expr("not N", N=value.null) if value.null is not None else ast.Constant(True)
            self._store_bit(n, self.validity[n], valid)
        match column.storage:
            case Storage.UTF8:
                self._store_text(n, value)
            case Storage.I128:
                high, low = high_low(value)
                code("st_i64(D, R * 2, V)", D=self.data[n], R=self.rows, V=low)
                code("st_i64(D, R * 2 + 1, V)", D=self.data[n], R=self.rows, V=high)
            case Storage.BIT:
                self._store_bit(n, self.data[n], value.it)
            case storage_:
                code(_STORE[storage_], D=self.data[n], R=self.rows, V=value.it)

    def _store_bit(self, n: int, bitmap: str, value: ast.expr) -> None:
        """Put the row's bit into its word and the word into the bitmap, without waiting for earlier stores."""
        word = self.bits[n][bitmap]
        below = expr("W & (shl(1, R & 63) - 1)", W=word, R=self.rows)  # the bits of earlier rows; none in a new word
        self.scope.writer.set(word, expr("BELOW | shl(pick(V, 1, 0), R & 63)", BELOW=below, V=value, R=self.rows))
        self.scope.writer.code("st_i64(B, R >> 6, W)", B=bitmap, R=self.rows, W=word)

    def _store_text(self, n: int, value: Val) -> None:
        scope, code = self.scope, self.scope.writer.code
        address, length = value.parts
        with scope.when(expr("U + L > ROOM", U=self.used[n], L=length, ROOM=self.room[n])):
            self.flush()
            with scope.when(expr("port_bytes(out, N, C, L) == 0", N=self.number, C=n, L=length)):
                scope.fail(ErrorCode.NO_MEMORY, "result text", NOWHERE)
            self.reload()
        code("copy_text(D + U, A, L)", D=self.data[n], U=self.used[n], A=address, L=length)
        code("U = U + L", U=self.used[n], L=length)
        code("st_i32(OFF, R + 1, U)", OFF=self.offsets[n], R=self.rows, U=self.used[n])
