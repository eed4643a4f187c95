"""Arrow record batches into the engine and out of it.

Compiled code shares buffers with Arrow through the C Data Interface, in both directions without a copy. Interpreted
code works on copies in its simulated memory, behind the same structures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cq.records import dataclass
from cq.runtime.base.host import CompiledHost, Host, InterpretedHost
from cq.runtime.containers.state import made, words
from cq.runtime.flow.arrow_words import ARROW_WORDS
from cq.runtime.flow.batch import LOAN_ARRAY, LOAN_COLUMNS, LOAN_ELEMENTS
from cq.runtime.flow.lists import WORD_DIGITS, lists_of_array
from cq.runtime.flow.packing import NARROW, NOTHING, TOO_LARGE
from cq.runtime.flow.parcel import PARCEL_PORT
from cq.runtime.layout.abi import (
    COLUMN_DICTIONARY,
    COLUMN_WORDS,
    OUT_DATA,
    OUT_OFFSETS,
    OUT_VALIDITY,
    OUT_WORDS,
    PORT_COLUMNS,
    PORT_ROWS,
    STORAGE_BYTES,
    STRING_SLACK_BYTES,
    Storage,
)
from cq.runtime.layout.pipeline import ColumnSpec

_CANONICAL = {
    Storage.BIT: pa.bool_(),
    Storage.I8: pa.int8(),
    Storage.I16: pa.int16(),
    Storage.I32: pa.int32(),
    Storage.I64: pa.int64(),
    Storage.F32: pa.float32(),
    Storage.F64: pa.float64(),
    Storage.I128: pa.decimal128(38, 0),
    Storage.UTF8: pa.string(),
}


def plain_schema(columns: Sequence[ColumnSpec]) -> pa.Schema:
    """The schema of columns of which only the layout is known."""
    return pa.schema([pa.field(c.name, _CANONICAL[c.storage], c.nullable) for c in columns])


# -- in --------------------------------------------------------------------------------------------------------------


class Dictionaries:
    """Numbers the dictionaries of a run: one with the same texts as the last one of its column keeps its number.

    What is remembered about the codes of a dictionary is tied to its number, because addresses are reused.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[pa.Array, int]] = {}
        self._numbers = 0

    def number(self, source: int, column: int, texts: pa.Array) -> int:
        """The number of the dictionary of a column."""
        last = self._last.get((source, column))
        if last is not None and last[0].equals(texts):
            return last[1]
        self._numbers += 1
        self._last[source, column] = texts, self._numbers
        return self._numbers

    def show(self, host: Host, loan: int, source: int, batch: pa.RecordBatch) -> None:
        """Write the numbers into the column table of a loan that shows the batch."""
        table = host.word(loan, LOAN_COLUMNS)
        for index, column in enumerate(batch.columns):
            if pa.types.is_dictionary(column.type):
                number = self.number(source, index, column.dictionary)
                host.set_word(table + index * COLUMN_WORDS * 8, COLUMN_DICTIONARY, number)


def lend(host: Host, batch: pa.RecordBatch, storages: int) -> int:
    """A loan that shows the batch. storages: -> one word a column, the layouts the batch has.

    A VARCHAR column may come as 32-bit codes into a dictionary of `string` without NULL, each of them in its range;
    if kernels have arrays, lists may come. ArrowCapacityError if their arrays are too large.
    """
    loan = made(host.function("loan_new")(batch.num_columns), "loan")
    array = loan + LOAN_ARRAY * 8
    if isinstance(host, InterpretedHost):
        _export_copies(host, batch, array)
    else:
        batch._export_to_c(array)
    for index, type_ in enumerate(batch.schema.types):
        if pa.types.is_list(type_):
            host.set_word(host.word(loan, LOAN_ELEMENTS), index, _layout(type_.value_type))
    opened = host.function("loan_open")(loan, storages)
    if opened != 1:
        host.function("loan_return")(loan)
        if opened == TOO_LARGE:
            raise pa.ArrowCapacityError("a batch of arrays takes more than 2 GiB")
        made(0, "copy of strings or arrays")
    return loan


def _layout(type_: pa.DataType) -> int:
    """The layout of the elements of a list."""
    if pa.types.is_null(type_):
        return NOTHING
    if pa.types.is_decimal(type_) and type_.precision <= WORD_DIGITS:
        return NARROW
    storage = storage_of(type_)
    assert storage is not None, f"a list of {type_}"
    return int(storage)


def storage_of(type_: pa.DataType) -> Storage | None:
    """The memory layout of a column of this type; None for types the engine does not make."""
    t = pa.types
    if t.is_boolean(type_):
        return Storage.BIT
    if t.is_string(type_) or t.is_binary(type_):
        return Storage.UTF8
    if t.is_decimal128(type_):
        return Storage.I128
    if t.is_float32(type_) or t.is_float64(type_):
        return Storage.F32 if t.is_float32(type_) else Storage.F64
    if t.is_signed_integer(type_) or t.is_temporal(type_):
        return {8: Storage.I8, 16: Storage.I16, 32: Storage.I32, 64: Storage.I64}[type_.bit_width]
    return None


def _export_copies(host: InterpretedHost, batch: pa.RecordBatch, array: int) -> None:
    """An ArrowArray over copies in simulated memory that needs no release."""
    children = [_copied_array(host, column) for column in batch.columns]
    parent = (batch.num_rows, 0, 0, 1, len(children), 0, host.place(words(children)), 0, 0, 0)
    assert len(parent) == ARROW_WORDS
    for index, value in enumerate(parent):
        host.set_word(array, index, value)


def _copied_array(host: InterpretedHost, array: pa.Array) -> int:
    """The address of its ArrowArray."""
    lists = pa.types.is_list(array.type)
    own = array.buffers()[:2] if lists else array.buffers()
    buffers = [host.memory.place(_padded(b)) if b is not None else 0 for b in own]
    children = host.place(words((_copied_array(host, array.values),))) if lists else 0
    dictionary = _copied_array(host, array.dictionary) if pa.types.is_dictionary(array.type) else 0
    sizes = (len(array), array.null_count, array.offset, len(buffers), int(lists))
    return host.place(words((*sizes, host.place(words(buffers)), children, dictionary, 0, 0)))


def _padded(buffer: pa.Buffer) -> bytes:
    return bytes(memoryview(buffer)) + bytes(STRING_SLACK_BYTES)


# -- out -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownRows:
    """How the rows of a sink are shown. filled: as kernels fill them, with arrays as `binary`."""

    schema: pa.Schema
    filled: pa.Schema
    lists: bool

    @staticmethod
    def of(schema: pa.Schema) -> ShownRows:
        """schema: of the batches, with lists."""
        filled = [f.with_type(pa.binary()) if pa.types.is_list(f.type) else f for f in schema]
        return ShownRows(schema, pa.schema(filled), any(pa.types.is_list(f.type) for f in schema))


def adopt(host: Host, parcel: int, columns: Sequence[ColumnSpec], shown: ShownRows) -> pa.RecordBatch:
    """The rows of a parcel as a record batch, which owns the parcel from now on; arrays are copied, as lists."""
    batch = _adopted(host, parcel, columns, shown.filled)
    if not shown.lists:
        return batch
    pairs = zip(batch.columns, shown.schema.types, strict=True)
    lists = [lists_of_array(c, type_) if pa.types.is_list(type_) else c for c, type_ in pairs]
    return pa.RecordBatch.from_arrays(lists, schema=shown.schema)


def _adopted(host: Host, parcel: int, columns: Sequence[ColumnSpec], schema: pa.Schema) -> pa.RecordBatch:
    if isinstance(host, CompiledHost):
        array = host.function("parcel_export")(parcel, host.address("parcel_arrow_release"))
        return pa.RecordBatch._import_from_c(array, schema)
    port = parcel + PARCEL_PORT * 8
    rows = host.word(port, PORT_ROWS)
    outs = host.word(port, PORT_COLUMNS)
    arrays = [
        _copied_column(host, outs + n * OUT_WORDS * 8, column, schema.field(n).type, rows)
        for n, column in enumerate(columns)
    ]
    host.function("parcel_return")(parcel)
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _copied_column(host: Host, out: int, column: ColumnSpec, type_: pa.DataType, rows: int) -> pa.Array:
    def buffer(word: int, size: int) -> Any:
        address = host.word(out, word)
        return pa.py_buffer(host.read(address, size)) if address else None

    bits = (rows + 7) // 8
    buffers = [buffer(OUT_VALIDITY, bits)]
    match column.storage:
        case Storage.UTF8:
            offsets = host.read(host.word(out, OUT_OFFSETS), 4 * (rows + 1))
            size = int.from_bytes(offsets[-4:], "little")
            buffers += [pa.py_buffer(offsets), buffer(OUT_DATA, size)]
        case Storage.BIT:
            buffers.append(buffer(OUT_DATA, bits))
        case storage:
            buffers.append(buffer(OUT_DATA, STORAGE_BYTES[storage] * rows))
    return pa.Array.from_buffers(type_, rows, buffers)
