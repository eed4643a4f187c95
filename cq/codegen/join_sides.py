"""The kept rows of joins, by the side they came from and by key.

Rows that leave, by time or because nothing has matched them at the end, are in a log (cq/runtime/containers/log.py);
rows that stay are in a multimap (cq/runtime/containers/multimap.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import ClassVar

from cq.codegen.flow import FINISHER_ARGUMENTS, Flow, closing, function, row_of
from cq.codegen.matching import LEFT, RIGHT, assign_all
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    Sought,
    TableLocals,
    lay_out,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.values import Row, Scope, Val, null_of
from cq.codegen.writer import Fill, expr
from cq.lang.expressions import Column, Expr
from cq.lang.types import Physical
from cq.planner.operators.joined import Joined
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import log_words as words
from cq.runtime.containers import multimap_words as multimap
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word


@dataclass(frozen=True, slots=True)
class KeptTime:
    """A column that a record derives from its expiry, a fixed time later: the record has no word for the column."""

    column: int
    behind_us: int


@dataclass(frozen=True, slots=True)
class KeptSide:
    """One input whose rows are kept. An entry of the table of its keys: the key, then the words of its list, which
    begin with the numbers of the first and the last record. A record: the row.

    fields: of its columns, except those stored elsewhere.
    """

    name: str
    input: LogicalNode
    exprs: tuple[Expr, ...]
    keys: Keys
    fields: tuple[EntryField, ...]
    shapes: tuple[TableShape, TableShape]

    container: ClassVar[str]  # its name
    table_word: ClassVar[int]  # the word of the container that leads to its table
    next_word: ClassVar[int]  # the word of a record that leads to the next one

    @property
    def record_bytes(self) -> int:
        return self.shapes[1].entry_words * 8

    def slot(self, stage: StageDraft, node: LogicalNode) -> Slot:
        """The state word of its container."""
        return stage.slot(
            node, self.name, lambda offset: Slot(self.name, offset, self.container, node.identity, shapes=self.shapes)
        )

    def address(self, flow: Flow, node: LogicalNode) -> str:
        """The address of its container, in a local of the function."""
        return flow.writer.word("state", self.slot(flow.stage, node).offset, self.container)

    def key_table(self, flow: Flow, node: LogicalNode) -> TableLocals:
        """The table of its keys, in locals of the function."""
        offset = self.slot(flow.stage, node).offset
        if offset not in flow.tables:
            table = expr("ld_i64(C, W)", C=self.address(flow, node), W=self.table_word)
            flow.tables[offset] = TableLocals.fixed(flow.scope, self.shapes[0].entry_words, table)
            flow.stale.append(flow.tables[offset].reload)
        return flow.tables[offset]

    def columns_of(self, row: Row) -> list[Val]:
        """The values of a row of the input."""
        return [row.column(i) for i in range(len(self.input.schema))]

    def variables(self, scope: Scope) -> list[Val]:
        """Variables for the values of a row, which may be NULL."""
        return [scope.variables(f.type, True) for f in self.input.schema.fields]

    def first_record(self, flow: Flow, node: LogicalNode, keys: Sequence[Val], reference: str) -> None:
        """Set the reference to the first row with these keys; leave it 0 if there is none."""
        entry = self.keys.find(self.key_table(flow, node), keys)
        with flow.scope.when(expr("E != 0", E=entry)):
            flow.writer.set(reference, self.first_of(entry))

    def first_of(self, entry: Fill) -> ast.expr:
        """The reference of the first row of this entry's key."""
        ends = Word(self.keys.next_word * 8, "KEY_ENDS_BYTES")
        return expr("ld_i64(E + ENDS, 0) & FIRST", E=entry, ENDS=ends, FIRST=words.REFERENCE_MASK)

    def has_several(self, entry: Fill) -> ast.expr | None:
        """Whether this entry's key has several rows, if its rows may be contiguous; else None."""
        raise NotImplementedError

    def record(self, flow: Flow, node: LogicalNode, reference: Fill) -> tuple[ast.expr, ast.expr]:
        """The record that a reference leads to, and where its texts are."""
        raise NotImplementedError

    def load(self, scope: Scope, record: ast.expr, texts: ast.expr, keys: Sequence[Val]) -> list[Val]:
        """The values of the row in a record with this key."""
        raise NotImplementedError

    def next(self, flow: Flow, node: LogicalNode, reference: str, keys: Sequence[Val]) -> tuple[ast.expr, list[Val]]:
        """The record that a reference leads to and its values; advances the reference to the next record of its key."""
        record, texts = self.record(flow, node, reference)
        flow.writer.set(reference, expr("ld_i64(R, W)", R=record, W=self.next_word))
        return record, self.load(flow.scope, record, texts, keys)


@dataclass(frozen=True, slots=True)
class Side(KeptSide):
    """A side whose rows are in a log: they leave. time: the column without a field."""

    time: KeptTime | None

    container = "log"
    table_word = words.LOG_TABLE
    next_word = words.RECORD_NEXT

    @staticmethod
    def of(node: Joined, port: int, keeps_null_keys: bool = False, time: KeptTime | None = None) -> Side:
        """The side of a port. keeps_null_keys: keep rows although nothing can match them."""
        exprs = (node.left_keys, node.right_keys)[port]
        input = node.inputs[port]
        keys = Keys.of([(k.type, keeps_null_keys and k.nullable) for k in exprs], ordered=False, name="LOG_KEY")
        told = -1 if time is None else time.column
        columns = [(f.type, f.nullable) for n, f in enumerate(input.schema.fields) if n != told]
        fields, end = lay_out(columns, words.RECORD_VALUES, ("LEFT_VALUE", "RIGHT_VALUE")[port])
        shapes = (
            TableShape(keys.next_word + words.LIST_WORDS, keys.next_word - ENTRY_FIRST, string_words(keys.fields)),
            TableShape(end, 0, string_words(fields)),
        )
        return Side(("left", "right")[port], input, exprs, keys, fields, shapes, time)

    def has_several(self, entry: Fill) -> ast.expr | None:
        return None

    def last_of(self, entry: Fill) -> ast.expr:
        """The reference of the last row of this entry's key."""
        return expr("shr_u(ld_i64(E + ENDS, 0), 32)", E=entry, ENDS=Word(self.keys.next_word * 8, "KEY_ENDS_BYTES"))

    def record(self, flow: Flow, node: LogicalNode, reference: Fill) -> tuple[ast.expr, ast.expr]:
        """The record that a reference leads to, and its chunk."""
        scope = flow.scope
        chunk = scope.let(expr("log_chunk(L, R)", L=self.address(flow, node), R=reference), "chunk")
        return scope.let(expr("log_record(C, R, SIZE)", C=chunk, R=reference, SIZE=self.record_bytes), "record"), chunk

    def keep(
        self, flow: Flow, node: LogicalNode, entry: ast.expr, expiry: Fill, waits: Fill, values: list[Val]
    ) -> None:
        """Append the row to those of its key in the log. waits: 1 if it is to leave when nothing matches it."""
        scope = flow.scope
        appended = expr(
            "log_append(L, E, X, S, N)", L=self.address(flow, node), E=entry, X=expiry, S=flow.serial, N=waits
        )  # fmt: skip
        reference = flow.writer.let(appended, "ref")
        with scope.when(expr("R == 0", R=reference)):
            flow.no_memory("rows that may match")
        record, chunk = self.record(flow, node, reference)
        stored = [v for n, v in enumerate(values) if self.time is None or n != self.time.column]
        for f, value in zip(self.fields, stored, strict=True):
            store_field(scope, f, record, chunk, value)
        store_nulls(scope, self.fields, record, stored)

    def unlist(self, flow: Flow, node: LogicalNode, reference: Fill) -> None:
        """Take the row off its list: nothing meets it any more, and it is not emitted as unmatched."""
        flow.writer.code("log_unlist(L, R)", L=self.address(flow, node), R=reference)

    def load(self, scope: Scope, record: ast.expr, chunk: ast.expr, keys: Sequence[Val] = ()) -> list[Val]:
        """The values of the row in a record; its key is among them."""
        values = load_fields(scope, self.fields, record, chunk)
        if self.time is not None:
            at = expr("ld_i64(R, W) - N", R=record, W=words.RECORD_EXPIRY, N=self.time.behind_us)
            type_ = self.input.schema.fields[self.time.column].type
            values.insert(self.time.column, Val(type_, (scope.let(at, "time"),), None))
        return values

    def first_unmatched(self, flow: Flow, node: LogicalNode) -> list[Val]:
        """The values of the first row that waits in its log; `arrival` has its arrival."""
        reference = flow.writer.let(expr("log_proof(L, NEVER)", L=self.address(flow, node), NEVER=abi.NEVER), "ref")
        record, chunk = self.record(flow, node, reference)
        flow.writer.code("arrival = ld_i64(R, W)", R=record, W=words.RECORD_SERIAL)
        return self.load(flow.scope, record, chunk)


@dataclass(frozen=True, slots=True)
class LastingSide(KeptSide):
    """A side whose rows are in a multimap: they stay, and rows with a NULL in the key are not kept.

    told: the column and the place in the key of each value that is read from the key; it has no field.
    """

    told: tuple[tuple[int, int], ...]

    container = "multimap"
    table_word = multimap.MULTIMAP_TABLE
    next_word = multimap.ROW_NEXT

    @staticmethod
    def of(node: Joined, port: int) -> LastingSide:
        """The side of a port."""
        exprs, others = (node.left_keys, node.right_keys)[port], (node.left_keys, node.right_keys)[1 - port]
        schema = node.inputs[port].schema
        keys = Keys.of([(k.type, False) for k in exprs], ordered=False)
        said = {k.index: n for n, k in enumerate(exprs) if isinstance(k, Column) and _says(k, others[n])}
        columns = [(f.type, f.nullable) for n, f in enumerate(schema.fields) if n not in said]
        fields, end = lay_out(columns, multimap.ROW_VALUES, ("LEFT_VALUE", "RIGHT_VALUE")[port])
        shapes = (
            TableShape(keys.next_word + multimap.ENDS_WORDS, keys.next_word - ENTRY_FIRST, string_words(keys.fields)),
            TableShape(end, 0, string_words(fields)),
        )
        name, told = ("left", "right")[port], tuple(sorted(said.items()))
        return LastingSide(name, node.inputs[port], exprs, keys, fields, shapes, told)

    def record(self, flow: Flow, node: LogicalNode, reference: Fill) -> tuple[ast.expr, ast.expr]:
        """The record with a number, and its multimap."""
        rows = ast.Name(self.address(flow, node), ast.Load())
        at = expr("multimap_record(M, R, SIZE)", M=rows, R=reference, SIZE=self.record_bytes)
        return flow.scope.let(at, "record"), rows

    def has_several(self, entry: Fill) -> ast.expr | None:
        ends = Word(self.keys.next_word * 8, "KEY_ENDS_BYTES")
        held = expr("ld_i64(E + ENDS, 0)", E=entry, ENDS=ends)
        return expr("shr_u(H, BITS) > H & FIRST", H=held, BITS=multimap.NUMBER_BITS, FIRST=words.REFERENCE_MASK)

    @property
    def defers(self) -> bool:
        """Whether its rows may be deferred (cq/runtime/containers/deferred.py)."""
        return bool(self.exprs) and all(k.type.physical is not Physical.BYTES for k in self.exprs)

    def first_record(self, flow: Flow, node: LogicalNode, keys: Sequence[Val], reference: str) -> None:
        """`KeptSide.first_record`, after resolving deferred rows."""
        if self.defers:
            scope, rows = flow.scope, self.address(flow, node)
            table = self.key_table(flow, node)
            with scope.when(expr("ld_i64(M, W) != 0", M=rows, W=multimap.MULTIMAP_DEFERRED)):
                with scope.when(expr("multimap_ask(M) == 0", M=rows)):
                    flow.no_memory("rows that may match")
                table.reload()
        KeptSide.first_record(self, flow, node, keys, reference)

    def keep(self, flow: Flow, node: LogicalNode, keys: Sequence[Val], values: Sequence[Val]) -> None:
        """Append the row to those of its key in the multimap."""
        scope, writer = flow.scope, flow.writer
        rows = ast.Name(self.address(flow, node), ast.Load())
        place = writer.let(ast.Constant(0), "record")
        record = ast.Name(place, ast.Load())
        if self.defers:
            deferred = self._deferred(flow, node)
            with scope.when(expr("D != 0", D=deferred)):
                writer.set(place, self._deferred_record(flow, node, deferred, keys))
            with scope.when(expr("D == 0", D=deferred)):
                writer.set(place, self._listed_record(flow, node, keys))
        else:
            writer.set(place, self._listed_record(flow, node, keys))
        told = dict(self.told)
        stored = [v for n, v in enumerate(values) if n not in told]
        for f, value in zip(self.fields, stored, strict=True):
            store_field(scope, f, record, rows, value)
        store_nulls(scope, self.fields, record, stored)

    def _deferred(self, flow: Flow, node: LogicalNode) -> str:
        """A local: where its rows are deferred, once there are enough of them; 0 if they are not."""
        scope, writer = flow.scope, flow.writer
        rows, table = self.address(flow, node), self.key_table(flow, node)
        deferred = writer.let(expr("ld_i64(M, W)", M=rows, W=multimap.MULTIMAP_DEFERRED), "deferred")
        full = expr("ld_i64(M, N) >= ld_i64(M, W)", M=rows, N=multimap.MULTIMAP_COUNT, W=multimap.MULTIMAP_DEFERS_AT)
        with scope.when(full):
            writer.code("multimap_defer(M)", M=rows)
            table.reload()
            writer.set(deferred, expr("ld_i64(M, W)", M=rows, W=multimap.MULTIMAP_DEFERRED))
        return deferred

    def _deferred_record(self, flow: Flow, node: LogicalNode, deferred: str, keys: Sequence[Val]) -> ast.expr:
        """Where a record holding the values of a new deferred row with this key would begin."""
        scope = flow.scope
        sought = Sought.of(self.keys, self.key_table(flow, node), keys)
        key = [part for word in sought.words for part in (word.value, word.high) if part is not None]
        values = self.shapes[1].entry_words - multimap.ROW_VALUES
        size = Word((values + len(key)) * 8, "DEFERRED_BYTES")
        row = scope.let(expr("deferred_row(D, H, SIZE)", D=deferred, H=sought.hash32, SIZE=size), "row")
        with scope.when(expr("R == 0", R=row)):
            flow.no_memory("rows that may match")
        for n, part in enumerate(key):
            flow.writer.code("st_i64(R, W, V)", R=row, W=Word(values + n, f"DEFERRED_KEY{n}"), V=part)
        return expr("R - FIRST", R=row, FIRST=Word(multimap.ROW_VALUES * 8, "ROW_VALUES_BYTES"))

    def _listed_record(self, flow: Flow, node: LogicalNode, keys: Sequence[Val]) -> ast.expr:
        """A new record, the last one in the list of the key."""
        scope, rows = flow.scope, self.address(flow, node)
        entry = self.keys.probe(self.key_table(flow, node), keys, flow.serial, lambda e: None)
        ends = Word(self.keys.next_word * 8, "KEY_ENDS_BYTES")
        appended = expr("multimap_append(M, E + ENDS, SIZE)", M=rows, E=entry, ENDS=ends, SIZE=self.record_bytes)
        record = scope.let(appended, "made")
        with scope.when(expr("R == 0", R=record)):
            flow.no_memory("rows that may match")
        return record

    def load(self, scope: Scope, record: ast.expr, texts: ast.expr, keys: Sequence[Val]) -> list[Val]:
        """The values of the row in a record with this key."""
        values = load_fields(scope, self.fields, record, texts)
        for column, place in self.told:
            values.insert(column, Val(keys[place].type, keys[place].parts))
        return values


def _says(key: Expr, other: Expr) -> bool:
    """Whether an equal value of the other side determines a value of the key: its bits are the same."""
    return key.type == other.type and key.type.physical in {Physical.I64, Physical.I128}


Alone = Callable[[Flow, str], list[Val]]
"""(function, the log) -> write the values of the row that is made of the first row of the log."""


def write_unmatched(stage: StageDraft, node: LogicalNode, sides: Sequence[Side], values: Alone) -> None:
    """A function that emits, at the end, the rows of these sides that nothing has matched, by arrival."""
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{sides[0].slot(stage, node).offset}", FINISHER_ARGUMENTS, node, event) as flow:
        leave_unmatched(flow, node, sides, ast.Constant(abi.NEVER), values)
        flow.leave(ast.Constant(abi.DONE))


def leave_unmatched(flow: Flow, node: LogicalNode, sides: Sequence[Side], instant: ast.expr, values: Alone) -> None:
    """Emit the unmatched rows that are due at the instant; the function returns MORE at a full port."""
    writer, scope = flow.writer, flow.scope
    writer.code("arrival = 0")
    logs = [side.address(flow, node) for side in sides]
    first = expr("log_first(L, M, I)", L=logs[0], M=logs[-1], I=instant)
    log = writer.let(first, "waits")
    with writer.while_(expr("L != 0", L=log)), scope.block():
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                flow.leave(ast.Constant(abi.MORE))
        flow.deliver(node, row_of(scope, values(flow, log)))
        writer.code("log_proved(L)", L=log)
        writer.set(log, first)


def alone(flow: Flow, node: LogicalNode, sides: Sequence[Side], both: bool, log: str) -> list[Val]:
    """The first row waiting in the log, beside NULLs. both: rows of either side may; left ones of an event first."""
    left, right = sides
    if not both:
        return [*left.first_unmatched(flow, node), *(null_of(f.type) for f in right.input.schema.fields)]
    scope = flow.scope
    values = [side.variables(scope) for side in sides]
    with scope.when(expr("L == LEFT", L=log, LEFT=left.address(flow, node))):
        assign_all(flow, values[LEFT], left.first_unmatched(flow, node))
        flow.writer.code("arrival = arrival * 2")
    with scope.otherwise():
        assign_all(flow, values[RIGHT], right.first_unmatched(flow, node))
        flow.writer.code("arrival = arrival * 2 + 1")
    return [*values[LEFT], *values[RIGHT]]
