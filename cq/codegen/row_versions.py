"""The latest right row of each key, for joins that give a left row one match: a table with an entry for each key."""

from __future__ import annotations

import ast
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow
from cq.codegen.matching import Matches, deliver_match, where_not_null
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    TableLocals,
    lay_out,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.values import Row
from cq.codegen.writer import expr
from cq.planner.operators.joined import Joined
from cq.records import dataclass
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.pipeline import TableShape


@dataclass(frozen=True, slots=True)
class VersionLayout:
    """An entry: the key, then the right columns, then their null words."""

    keys: Keys
    fields: tuple[EntryField, ...]
    shape: TableShape


def layout_of(node: Joined) -> VersionLayout:
    keys = Keys.of([(k.type, False) for k in node.right_keys], ordered=False, name="VERSION_KEY")
    columns = [(f.type, f.nullable) for f in node.right.schema.fields]
    fields, end = lay_out(columns, keys.next_word, "VERSION_VALUE")
    strings = (*string_words(keys.fields), *string_words(fields))
    return VersionLayout(keys, fields, TableShape(end, keys.next_word - ENTRY_FIRST, strings))


def _table(flow: Flow, node: Joined, layout: VersionLayout) -> TableLocals:
    slot = flow.stage.table_slot(node, "versions", layout.shape)
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(state, W)", W=slot.offset)
        local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shape.entry_words, table)
        flow.stale.append(local.reload)
    return local


def replace_version(flow: Flow, node: Joined, row: Row) -> None:
    """The right row becomes its key's latest; one with a NULL in the key matches nothing and is not kept."""
    scope, layout = flow.scope, layout_of(node)
    local = _table(flow, node, layout)
    keys = [emit(scope, row, k) for k in node.right_keys]
    with where_not_null(flow, keys) as known:
        entry = layout.keys.probe(local, known, flow.serial, lambda e: None)
        values = [row.column(i) for i in range(len(layout.fields))]
        for f, value in zip(layout.fields, values, strict=True):
            store_field(scope, f, entry, local.address, value)
        store_nulls(scope, layout.fields, entry, values)


def look_up_version(flow: Flow, node: Joined, row: Row, matches: Matches) -> None:
    """The left row beside its key's latest right row, or beside NULLs, or not at all."""
    scope, layout = flow.scope, layout_of(node)
    local = _table(flow, node, layout)
    keys = [emit(scope, row, k) for k in node.left_keys]
    entry = flow.writer.let(expr("0"), "match")
    with where_not_null(flow, keys) as known:
        flow.writer.set(entry, layout.keys.find(local, known))
    found = expr("E != 0", E=entry)
    load = partial(load_fields, scope, layout.fields, ast.Name(entry, ast.Load()), local.address)
    deliver_match(flow, node, row, found, load, matches)
