"""Keyed tables in generated code: where their columns are in an entry, and their initial rows."""

from __future__ import annotations

import ast
import struct
from collections.abc import Sequence
from functools import lru_cache

from cq.codegen.expressions.constants import array_bytes
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    TableLocals,
    lay_out,
    load_fields,
    null_bits,
    null_words,
    store_field,
    string_words,
)
from cq.codegen.values import Scope, Val, words_of_value
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.types import DataType, Kind, Physical, content_of
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import TableShape

WORD = 8


@dataclass(frozen=True, slots=True)
class KeyedLayout:
    """An entry: the key, then the other columns, then their null words."""

    keys: Keys
    fields: tuple[EntryField, ...]
    shape: TableShape

    @staticmethod
    def of(table: KeyedTable) -> KeyedLayout:
        keys = Keys.of([(table.fields[c].type, False) for c in table.key], ordered=False, name="KEY")
        others = [table.fields[c] for c in table.others]
        fields, end = lay_out([(f.type, f.nullable) for f in others], keys.next_word)
        strings = (*string_words(keys.fields), *string_words(fields))
        return KeyedLayout(keys, fields, TableShape(end, keys.next_word - ENTRY_FIRST, strings))

    @property
    def has_texts(self) -> bool:
        """Whether a non-key column is a text."""
        return any(f.type.physical is Physical.BYTES for f in self.fields)

    def store(
        self,
        scope: Scope,
        entry: ast.expr,
        table: ast.expr | None,
        values: list[Val],
        changed: Sequence[EntryField] | None = None,
    ) -> None:
        """Write the non-key columns into an entry. table: None if texts are addresses and lengths.

        changed: the only ones that may differ from what the entry holds.
        """
        written = self.fields if changed is None else changed
        for f, value in zip(self.fields, values, strict=True):
            if f in written:
                store_field(scope, f, entry, table, value)
        for word in null_words(written):
            scope.writer.code("st_i64(E, W, N)", E=entry, W=word, N=null_bits(values, self.fields, word))

    def load(self, scope: Scope, table: KeyedTable, entry: ast.expr, address: ast.expr | None) -> list[Val]:
        """All columns of the table, from an entry. address: of the table; None as in `store`."""
        key = load_fields(scope, self.keys.fields, entry, address)
        others = load_fields(scope, self.fields, entry, address)
        by_column = dict(zip((*table.key, *table.others), (*key, *others), strict=True))
        return [by_column[c] for c in range(len(table.fields))]


def delete_row(scope: Scope, table: TableLocals, layout: KeyedLayout, key: Sequence[Val]) -> None:
    """Write code that deletes the entry with this key, if there is one. Other entries may move."""
    with scope.when(expr("table_make_dense(T) == 0", T=table.table)):
        scope.fail(ErrorCode.NO_MEMORY, "rows of a table", NOWHERE)
    table.reload()
    entry = layout.keys.find(table, key)
    with scope.when(expr("E != 0", E=entry)):
        scope.writer.code("table_delete(T, E)", T=table.table, E=entry)


def write_initial_rows(scope: Scope, table: KeyedTable, layout: KeyedLayout, local: TableLocals) -> None:
    """Write a loop that makes the entries of a table's initial rows; the table is empty."""
    writer = scope.writer
    offset = scope.constants.table(f"rows of {table.name}", packed_rows(table))
    rows = writer.let(expr("wadd(constants, ld_i64(constants, PLACE))", PLACE=offset), "rows")
    number = writer.fresh("row")
    size = WORD * sum(_words(f.type) for f in table.fields)
    with writer.for_(number, 0, len(table.rows)), scope.block():
        record = scope.let(expr("R + N * SIZE", R=rows, N=number, SIZE=size), "record")
        values = _unpacked(scope, table, rows, record)
        key = [Val(values[c].type, values[c].parts) for c in table.key]
        entry = layout.keys.probe(local, key, ast.Constant(0), lambda _: None)
        layout.store(scope, entry, local.address, [values[c] for c in table.others])


@lru_cache(maxsize=64)
def packed_rows(table: KeyedTable) -> bytes:
    """A table's initial rows: for each column a word that is 1 for NULL, then its words; for a text or an array its
    offset after all rows, and its length in bytes."""
    behind = bytearray()
    words: list[int] = []
    start = WORD * sum(_words(f.type) for f in table.fields) * len(table.rows)
    for row in table.rows:
        for f, value in zip(table.fields, row, strict=True):
            words.append(value is None)
            if f.type.physical is Physical.BYTES and value is not None:
                content = array_bytes(value, f.type) if f.type.kind is Kind.ARRAY else content_of(value)
                words += [start + len(behind), len(content)]
                behind += content
            else:
                words += _value_words(f.type, value)
    return b"".join((w & (2**64 - 1)).to_bytes(WORD, "little") for w in words) + bytes(behind)


def _words(type_: DataType) -> int:
    return 1 + (2 if type_.physical in {Physical.BYTES, Physical.I128} else 1)


def _value_words(type_: DataType, value: object) -> list[int]:
    if value is None:
        return [0] * (_words(type_) - 1)
    match type_.physical:
        case Physical.I128:
            assert isinstance(value, int)
            return list(words_of_value(value))
        case Physical.F64:
            assert isinstance(value, float)
            return [int.from_bytes(struct.pack("<d", value), "little")]
    assert isinstance(value, int)
    return [int(value)]


def _unpacked(scope: Scope, table: KeyedTable, rows: str, record: ast.expr) -> list[Val]:
    values = []
    word = 0
    for f in table.fields:
        null = scope.let(expr("ld_i64(R, W) != 0", R=record, W=word), "null")
        first = expr("ld_i64(R, W)", R=record, W=word + 1)
        second = expr("ld_i64(R, W)", R=record, W=word + 2)
        parts: tuple[ast.expr, ...]
        match f.type.physical:
            case Physical.BYTES:
                parts = (scope.let(expr("wadd(R, A)", R=rows, A=first), "text"), scope.let(second, "length"))
            case Physical.I128:
                parts = (scope.let(first, "low"), scope.let(second, "high"))
            case Physical.F64:
                parts = (scope.let(expr("ld_f64(R, W)", R=record, W=word + 1), "number"),)
            case _ if f.type.kind is Kind.BOOLEAN:
                parts = (scope.let(expr("A != 0", A=first), "truth"),)
            case _:
                parts = (scope.let(first, "value"),)
        values.append(Val(f.type, parts, null))
        word += _words(f.type)
    return values
