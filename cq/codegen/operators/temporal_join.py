"""temporal_join: right rows replace their key's entry, left rows look it up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, StagePlan, closes, consumes
from cq.codegen.matching import assign_all, where_not_null, where_passes
from cq.codegen.operators.over import table_slot
from cq.codegen.state.hash_tables import (
    Field,
    Keys,
    TableLocals,
    lay_out,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.state.moving import Held, entries, holds
from cq.codegen.values import Row, Val
from cq.codegen.waiting import close_buffer, when_due
from cq.codegen.writer import expr
from cq.planner.operators import TemporalJoin
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.job import Slot, TableShape


@dataclass(frozen=True, slots=True)
class Layout:
    """An entry: the key, then the right columns anybody reads, then their null words."""

    keys: Keys
    kept: tuple[int, ...]
    fields: tuple[Field, ...]
    shape: TableShape


def layout_of(node: TemporalJoin) -> Layout:
    keys = Keys.of([(k.type, False) for k in node.right_keys], ordered=False, name="VERSION_KEY")
    kept = tuple(range(len(node.right.schema)))
    columns = [node.right.schema.fields[i] for i in kept]
    fields, end = lay_out([(c.type, c.nullable) for c in columns], keys.next_word, "VERSION_VALUE")
    strings = (*string_words(keys.fields), *string_words(fields))
    return Layout(keys, kept, fields, TableShape(end, keys.next_word - ENTRY_FIRST, strings))


def _table(flow: Flow, slot: Slot, layout: Layout) -> TableLocals:
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(state, W)", W=slot.offset)
        local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shape.entry_words, table)
        flow.stale.append(local.reload)
    return local


@consumes("temporal_join", copies_text=False)
def consume_temporal_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Port 0 is the right side: it takes effect first within an event."""
    assert isinstance(node, TemporalJoin)
    layout = layout_of(node)
    slot = table_slot(flow.stage, node, "versions", layout.shape)
    if port == 0:
        with flow.on_time(node):
            _replace(flow, node, layout, _table(flow, slot, layout), row)
        return
    with flow.on_time(node):
        if flow.stage.waits:
            when_due(flow, node, node.left, node.left_time, row, partial(_look_up, node=node))
        else:
            _look_up(flow, row, node)


@closes("temporal_join")
def close_temporal_join(stage: StagePlan, node: LogicalNode) -> None:
    """With a delay: a function that looks up for the left rows the watermark has reached."""
    assert isinstance(node, TemporalJoin)
    if stage.waits:
        close_buffer(stage, node, node.left, partial(_look_up, node=node))


@holds("temporal_join")
def held_temporal_join(node: LogicalNode) -> tuple[Held, ...]:
    """The latest right row of each key."""
    assert isinstance(node, TemporalJoin)
    return (entries("versions", layout_of(node).keys),)


def _replace(flow: Flow, node: TemporalJoin, layout: Layout, local: TableLocals, row: Row) -> None:
    """The right row becomes its key's latest; a NULL in the key matches nothing and is not kept."""
    keys = [emit(flow.scope, row, k) for k in node.right_keys]
    with where_not_null(flow, keys) as known:
        _write(flow, layout, local, known, row)


def _write(flow: Flow, layout: Layout, local: TableLocals, keys: list[Val], row: Row) -> None:
    scope = flow.scope
    entry = layout.keys.probe(local, keys, flow.serial, lambda e: None)
    values = [row.column(i) for i in layout.kept]
    for f, value in zip(layout.fields, values, strict=True):
        store_field(scope, f, entry, local.address, value)
    store_nulls(scope, layout.fields, entry, values)


def _look_up(flow: Flow, row: Row, node: TemporalJoin) -> None:
    """The left row beside its key's latest right row, or beside NULLs, or not at all."""
    scope = flow.scope
    layout = layout_of(node)
    local = _table(flow, table_slot(flow.stage, node, "versions", layout.shape), layout)
    keys = [emit(scope, row, k) for k in node.left_keys]
    entry = flow.writer.let(expr("0"), "match")
    with where_not_null(flow, keys) as known:
        flow.writer.set(entry, layout.keys.find(local, known))
    if node.left_outer:
        _left_outer(flow, node, layout, local, entry, row)
        return
    with scope.when(expr("E != 0", E=entry)):
        joined = row.with_added(len(node.left.schema), _values(flow, layout, local, entry))
        with where_passes(flow, node.residual, joined):
            flow.deliver(node, joined)


def _values(flow: Flow, layout: Layout, local: TableLocals, entry: str) -> list[Val]:
    return load_fields(flow.scope, layout.fields, expr("E", E=entry), local.address)


def _left_outer(flow: Flow, node: TemporalJoin, layout: Layout, local: TableLocals, entry: str, row: Row) -> None:
    """Right columns in variables, NULL unless the match holds."""
    scope = flow.scope
    right = [scope.variables(f.type, True, f"right{n}_") for n, f in enumerate(layout.fields)]
    with scope.when(expr("E != 0", E=entry)):
        values = _values(flow, layout, local, entry)
        with where_passes(flow, node.residual, row.with_added(len(node.left.schema), values)):
            assign_all(flow, right, values)
    flow.deliver(node, row.with_added(len(node.left.schema), right))
