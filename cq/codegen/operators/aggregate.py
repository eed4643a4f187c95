"""aggregate: one table over the whole input, emitted when all inputs have ended."""

from __future__ import annotations

import ast

from cq.codegen.arrivals import arrival_of
from cq.codegen.flow import FINISHER_ARGUMENTS, Flow, closing, consumes, finishes, function, row_of
from cq.codegen.operators.window import add_row, fold, groups_in_order, may_share_groups, pane_at_hand
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.aggregates import nothing
from cq.codegen.state.entry_moves import Held, holds
from cq.codegen.state.groups import GroupLayout, group_layout, held_groups
from cq.codegen.state.hash_tables import load_fields
from cq.codegen.values import Row
from cq.codegen.writer import expr
from cq.planner.operators import Aggregate
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import pane_words as panes
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot


def _slots(stage: StageDraft, node: Aggregate, layout: GroupLayout) -> tuple[Slot, Slot]:
    """One pane that never ends, and the cursor of the final emission."""
    pane = stage.slot(
        node, "groups",
        lambda offset: Slot(
            "groups", offset, "panes", node.identity, shapes=layout.shapes, parameters=(0, 0, 0, 0, 0, 0)
        ),
    )  # fmt: skip
    cursor = stage.slot(node, "cursor", lambda offset: Slot("cursor", offset, node=node.identity))
    return pane, cursor


@holds("aggregate")
def held_aggregate(node: LogicalNode) -> tuple[Held, ...]:
    """The groups, which several workers may have filled separately."""
    assert isinstance(node, Aggregate)
    merges = node.merges_exactly and node.merge_pays
    return (held_groups("groups", group_layout(node.keys, node.aggregates), merges),)


@consumes("aggregate", copies_text=False)
def consume_aggregate(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Add the row to the one pane; late rows too."""
    assert isinstance(node, Aggregate)
    layout = group_layout(node.keys, node.aggregates)
    slot, _ = _slots(flow.stage, node, layout)
    groups = flow.writer.word("state", slot.offset, "groups")
    second = expr("ld_i64(G, W)", G=groups, W=panes.PANES_OPENS) if flow.stage.by_key else ast.Constant(0)
    pane = pane_at_hand(flow, slot, pane=0)
    (record,) = pane.marks
    with flow.scope.when(expr("R == 0", R=record)):
        flow.writer.set(record, expr("panes_attach(G, NEVER, S)", G=groups, NEVER=abi.NEVER, S=second))
        with flow.scope.when(expr("R == 0", R=record)):
            flow.no_memory("groups")
        pane.use(record)
    late, flow.late = flow.late, None
    add_row(flow, node, layout, pane, row, arrival_of(flow, node))
    flow.late = late


@finishes("aggregate")
def finish_aggregate(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the groups by first arrival, or one row for an empty input."""
    assert isinstance(node, Aggregate)
    layout = group_layout(node.keys, node.aggregates)
    slot, cursor = _slots(stage, node, layout)
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{slot.offset}", FINISHER_ARGUMENTS, node, event) as flow:
        state = flow.writer.word("state", slot.offset, "panes")
        if stage.planned.collects:
            fold(flow, layout, state, may_share_groups)
        _emit(flow, node, layout, state, cursor)


def _emit(flow: Flow, node: Aggregate, layout: GroupLayout, state: str, cursor: Slot) -> None:
    writer, scope = flow.writer, flow.scope
    writer.code("arrival = 0")
    record = writer.let(ast.Constant(0), "record")
    with writer.if_(expr("ld_i64(P, W) > 0", P=state, W=panes.PANES_COUNT)):  # the only one, filled by any worker
        writer.set(record, expr("ld_i64(ld_i64(P, W), 0)", P=state, W=panes.PANES_LIST))
    with writer.otherwise():
        writer.set(record, expr("panes_attach(P, NEVER, 0)", P=state, NEVER=abi.NEVER))
    with scope.when(expr("R == 0", R=record)):
        flow.no_memory("groups")
    table = writer.let(expr("ld_i64(R, W)", R=record, W=panes.PANE_TABLES), "table")
    first = writer.let(expr("ld_i64(state, W)", W=cursor.offset), "from_")
    groups = groups_in_order(flow, state, table, first, flow.stage.planned.collects)
    count = groups.count
    if not node.keys:
        with scope.when(expr("N == 0 and F == 0", N=count, F=first)):
            flow.deliver(node, row_of(scope, [nothing(c) for c in node.aggregates]))
            writer.code("st_i64(state, W, 1)", W=cursor.offset)
    group = writer.fresh("group")
    with writer.for_(group, first, count), scope.block():
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                writer.code("st_i64(state, W, G)", W=cursor.offset, G=group)
                flow.leave(ast.Constant(abi.MORE))
        entry = groups.entry(group)
        writer.code("arrival = ld_i64(E, W)", E=entry.address, W=ENTRY_FIRST)
        values = load_fields(scope, layout.keys.fields, entry.address, entry.table)
        with flow.of_group(node.key_names, layout.keys, entry.address, entry.table, None):
            values += layout.accumulators.values(scope, entry)
            flow.deliver(node, row_of(scope, values))
    done = count if node.keys else expr("max(N, 1)", N=count)  # no rows still give one row, once
    writer.code("st_i64(state, W, N)", W=cursor.offset, N=done)
    flow.leave(ast.Constant(abi.DONE))
