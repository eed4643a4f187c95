"""semi_join: left rows without a match in a log by key; right rows in a multimap, or their keys alone in a table.

Without a residual condition a right row is its key: the first row of a key matches all left rows that wait for it, and
later left rows find the key. So no right row is kept, and no left row is looked at twice.
"""

from __future__ import annotations

import ast

from cq.codegen.ended_inputs import has_ended
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, consumes, finishes, row_of
from cq.codegen.join_sides import LastingSide, Side, write_unmatched
from cq.codegen.matching import LEFT, RIGHT, stops_when_asked, where_not_null, where_passes
from cq.codegen.prefetch import prefetch
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.entry_moves import Held, entries, holds, log_entries, multimap_entries
from cq.codegen.state.hash_tables import Keys, TableLocals, string_words
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.planner.operators import JoinKind, SemiJoin
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import TableShape


def left_side(node: SemiJoin) -> Side:
    """The left rows that wait."""
    return Side.of(node, LEFT, keeps_null_keys=node.kind is JoinKind.ANTI)


def known_keys(node: SemiJoin) -> Keys:
    """The keys of right rows, if only those are kept."""
    return Keys.of([(k.type, False) for k in node.right_keys], ordered=False, name="MATCH_KEY")


@holds("semi_join")
def held_semi_join(node: LogicalNode) -> tuple[Held, ...]:
    """The left rows that wait, if any do, and the right rows or their keys."""
    assert isinstance(node, SemiJoin)
    left, right = left_side(node), LastingSide.of(node, RIGHT)
    others = entries("right", known_keys(node)) if node.residual is None else multimap_entries("right", right.keys)
    return (others,) if node.right_first else (log_entries("left", left.keys), others)


@consumes("semi_join", copies_text=False)
def consume_semi_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A left row leaves if it has a match, else it waits; a right row releases the left rows that waited for it.

    If the right side comes first, no row waits.
    """
    assert isinstance(node, SemiJoin)
    if port == LEFT:
        _look_up(flow, node, row)
    else:
        _release(flow, node, row)


def _table(flow: Flow, node: SemiJoin) -> TableLocals:
    """The keys of right rows, in locals of the function."""
    keys = known_keys(node)
    shape = TableShape(keys.next_word, keys.next_word - ENTRY_FIRST, string_words(keys.fields))
    slot = flow.stage.table_slot(node, "right", shape)
    if slot.offset not in flow.tables:
        table = TableLocals.fixed(flow.scope, shape.entry_words, expr("ld_i64(state, W)", W=slot.offset))
        flow.tables[slot.offset] = table
        flow.stale.append(table.reload)
    return flow.tables[slot.offset]


def _look_up(flow: Flow, node: SemiJoin, row: Row) -> None:
    scope, writer, left = flow.scope, flow.writer, left_side(node)
    values = left.columns_of(row)
    keys = [emit(scope, row, k) for k in left.exprs]
    matched = writer.let(ast.Constant(0), "matched")
    kept = "" if node.right_first else writer.let(ast.Constant(0), "kept")
    ended = None if node.right_first else has_ended(flow, node, RIGHT)
    with where_not_null(flow, keys) as known:
        if not node.right_first:
            writer.set(kept, 1 if ended is None else expr("1 - E", E=ended))
        if node.residual is None:
            right = _table(flow, node)
            prefetch(flow, left.input, known_keys(node), right, left.exprs)
            found = known_keys(node).find(right, known)
            writer.set(matched, expr("pick(E != 0, 1, 0)", E=found))
        else:
            _match(flow, node, known, values, matched)
    if node.right_first:
        with scope.when(expr("M == LEAVES", M=matched, LEAVES=int(node.kind is JoinKind.SEMI))):
            flow.deliver(node, row_of(scope, values))
        return
    if node.kind is JoinKind.ANTI:
        with scope.when(expr("M == 0", M=matched)):
            _wait(flow, node, keys, values)
        return
    with scope.when(expr("K == 1 and M == 0", K=kept, M=matched)):
        _wait(flow, node, [Val(k.type, k.parts) for k in keys], values)
    with scope.when(expr("M == 1", M=matched)):
        flow.deliver(node, row_of(scope, values))


def _match(flow: Flow, node: SemiJoin, keys: list[Val], values: list[Val], matched: str) -> None:
    """Set `matched` to 1 if a right row with these keys passes the residual condition; stops at the first that does."""
    scope, writer, right = flow.scope, flow.writer, LastingSide.of(node, RIGHT)
    reference = writer.let(ast.Constant(0), "ref")
    right.first_record(flow, node, keys, reference)
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        stops_when_asked(flow, node)
        _, theirs = right.next(flow, node, reference, keys)
        with where_passes(flow, node.residual, row_of(scope, [*values, *theirs])):
            writer.set(matched, 1)
            writer.set(reference, 0)


def _wait(flow: Flow, node: SemiJoin, keys: list[Val], values: list[Val]) -> None:
    """Append the left row to those of its key in its log; of an ANTI join it leaves at the end if nothing matches."""
    left, waits = left_side(node), ast.Constant(int(node.kind is JoinKind.ANTI))
    entry = left.keys.probe(left.key_table(flow, node), keys, flow.serial, lambda e: None)
    left.keep(flow, node, entry, ast.Constant(abi.NEVER), waits, values)


def _release(flow: Flow, node: SemiJoin, row: Row) -> None:
    """Keep the right row, or its key if it is new, and release the left rows whose first match it is."""
    scope, writer = flow.scope, flow.writer
    left, right = left_side(node), LastingSide.of(node, RIGHT)
    values = [] if node.residual is None else right.columns_of(row)
    keys = [emit(scope, row, k) for k in right.exprs]
    reference = "" if node.right_first else writer.let(ast.Constant(0), "ref")
    with where_not_null(flow, keys) as known:
        if node.residual is None:
            table, names = _table(flow, node), known_keys(node)
            prefetch(flow, right.input, names, table, right.exprs)
            found = names.find(table, known)
            with scope.when(expr("E == 0", E=found)):
                names.probe(table, known, flow.serial, lambda e: None)
                if not node.right_first:
                    left.first_record(flow, node, known, reference)
        else:
            right.keep(flow, node, known, values)
            if not node.right_first:
                left.first_record(flow, node, known, reference)
    if node.right_first:
        return
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        stops_when_asked(flow, node)
        here = writer.let(ast.Name(reference, ast.Load()), "here")
        _, mine = left.next(flow, node, reference, ())
        with where_passes(flow, node.residual, row_of(scope, [*mine, *values])):
            left.unlist(flow, node, here)
            if node.kind is JoinKind.SEMI:
                flow.deliver(node, row_of(scope, mine))


@finishes("semi_join")
def finish_semi_join(stage: StageDraft, node: LogicalNode) -> None:
    """Of an ANTI join: a function that emits the left rows that nothing has matched, by arrival."""
    assert isinstance(node, SemiJoin)
    left = left_side(node)
    write_unmatched(stage, node, [left], lambda flow, log: left.first_unmatched(flow, node))
