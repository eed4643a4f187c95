"""The tables of triggers in a function: where they are, and their initial rows."""

from __future__ import annotations

from collections.abc import Sequence

from cq.codegen.flow import Flow
from cq.codegen.state.hash_tables import TableLocals
from cq.codegen.state.keyed_rows import KeyedLayout, write_initial_rows
from cq.codegen.writer import expr
from cq.planner.operators import Trigger
from cq.runtime.layout.pipeline import Slot


def tables_of(flow: Flow, node: Trigger) -> list[TableLocals]:
    """The tables in locals of the function."""
    found = []
    for number, table in enumerate(node.tables):
        layout = KeyedLayout.of(table)
        slot = flow.stage.table_slot(node, f"table{number}", layout.shape)
        local = flow.tables.get(slot.offset)
        if local is None:
            address = expr("ld_i64(state, W)", W=slot.offset)
            local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shape.entry_words, address)
            flow.stale.append(local.reload)
        found.append(local)
    return found


def prepare(flow: Flow, node: Trigger, tables: Sequence[TableLocals]) -> None:
    """Fill the tables with their initial rows, before the first event and at the end."""
    if not any(t.rows for t in node.tables):
        return
    ready = flow.stage.slot(node, "ready", lambda offset: Slot("ready", offset, node=node.identity))
    with flow.scope.when(expr("ld_i64(state, W) == 0", W=ready.offset)):
        for table, local in zip(node.tables, tables, strict=True):
            if table.rows:
                write_initial_rows(flow.scope, table, KeyedLayout.of(table), local)
        flow.writer.code("st_i64(state, W, 1)", W=ready.offset)
