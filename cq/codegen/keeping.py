"""What joins share that keep the rows of both sides: a log by key for each (cq/runtime/containers/log.py)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from cq.codegen.flow import Flow, StagePlan
from cq.codegen.state.hash_tables import (
    Field,
    Keys,
    TableLocals,
    lay_out,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.values import Val
from cq.codegen.writer import Fill, expr
from cq.lang.expressions import Expr
from cq.planner.operators.joined import Joined
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import log_words as words
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.job import Slot, TableShape

LEFT, RIGHT = 0, 1  # ports


@dataclass(frozen=True, slots=True)
class Side:
    """One input. An entry of its log: the key, then the words of its list (log_words.py). A record: the row."""

    name: str
    input: LogicalNode
    exprs: tuple[Expr, ...]
    keys: Keys
    fields: tuple[Field, ...]
    shapes: tuple[TableShape, TableShape]

    @staticmethod
    def of(node: Joined, port: int, keeps_null_keys: bool = False) -> Side:
        """The side of a port. keeps_null_keys: rows are kept although nothing can match them."""
        exprs = (node.left_keys, node.right_keys)[port]
        input = node.inputs[port]
        keys = Keys.of([(k.type, keeps_null_keys and k.nullable) for k in exprs], ordered=False, name="LOG_KEY")
        columns = [(f.type, f.nullable) for f in input.schema.fields]
        fields, end = lay_out(columns, words.RECORD_VALUES, ("LEFT_VALUE", "RIGHT_VALUE")[port])
        shapes = (
            TableShape(keys.next_word + words.LIST_WORDS, keys.next_word - ENTRY_FIRST, string_words(keys.fields)),
            TableShape(end, 0, string_words(fields)),
        )
        return Side(("left", "right")[port], input, exprs, keys, fields, shapes)

    @property
    def record_bytes(self) -> int:
        return self.shapes[1].entry_words * 8

    def slot(self, stage: StagePlan, node: LogicalNode) -> Slot:
        """The state word of its log."""
        return stage.slot(
            node, self.name, lambda offset: Slot(self.name, offset, "log", node.identity, shapes=self.shapes)
        )

    def log(self, flow: Flow, node: LogicalNode) -> str:
        """The address of its log, in a local of the function."""
        return flow.writer.hoist(expr("ld_i64(state, W)", W=self.slot(flow.stage, node).offset), "log")

    def key_table(self, flow: Flow, node: LogicalNode) -> TableLocals:
        """The keys of its log, in locals of the function."""
        offset = self.slot(flow.stage, node).offset
        if offset not in flow.tables:
            table = expr("ld_i64(L, W)", L=self.log(flow, node), W=words.LOG_TABLE)
            flow.tables[offset] = TableLocals.fixed(flow.scope, self.shapes[0].entry_words, table)
            flow.stale.append(flow.tables[offset].reload)
        return flow.tables[offset]

    def record(self, flow: Flow, node: LogicalNode, reference: Fill) -> tuple[ast.expr, ast.expr]:
        """The record that a reference leads to, and its chunk."""
        scope = flow.scope
        chunk = scope.let(expr("log_chunk(L, R)", L=self.log(flow, node), R=reference), "chunk")
        return scope.let(expr("log_record(C, R, SIZE)", C=chunk, R=reference, SIZE=self.record_bytes), "record"), chunk

    def keep(
        self, flow: Flow, node: LogicalNode, entry: ast.expr, expiry: Fill, waits: Fill, values: list[Val]
    ) -> None:
        """The row is the last of its key in the log. waits: 1 when it is to leave if nothing matches it."""
        scope = flow.scope
        appended = expr(
            "log_append(L, E, X, S, N)", L=self.log(flow, node), E=entry, X=expiry, S=flow.serial, N=waits
        )  # fmt: skip
        reference = flow.writer.let(appended, "ref")
        with scope.when(expr("R == 0", R=reference)):
            flow.no_memory("rows that may match")
        record, chunk = self.record(flow, node, reference)
        for f, value in zip(self.fields, values, strict=True):
            store_field(scope, f, record, chunk, value)
        store_nulls(scope, self.fields, record, values)
