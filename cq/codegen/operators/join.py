"""join: the rows of each side are kept by key; a row meets those of the other side, then is added to its own.

Rows that leave at the end if nothing has matched them are in a log, the others in a multimap. Once the other side has
ended, it is complete: a row meets its matches at once, and only rows without a match are kept, if they are to leave at
the end. If the right side is known to come first, no left row is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import nullcontext

from cq.codegen.ended_inputs import has_ended
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, consumes, finishes, row_of
from cq.codegen.join_sides import KeptSide, LastingSide, Side, alone, write_unmatched
from cq.codegen.matching import LEFT, RIGHT, assign_all, stops_when_asked, where_not_null, where_passes
from cq.codegen.prefetch import prefetch, prefetch_records
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.entry_moves import Held, holds, log_entries, multimap_entries
from cq.codegen.values import Row, Val, null_of
from cq.codegen.writer import expr
from cq.planner.operators import Join
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import log_words as words
from cq.runtime.layout import abi


def side_of(node: Join, port: int) -> KeptSide:
    return _waiting_side(node, port) if _waits(node, port) else LastingSide.of(node, port)


def _waiting_side(node: Join, port: int) -> Side:
    """The side of a port whose rows wait."""
    return Side.of(node, port, keeps_null_keys=True)


def _waits(node: Join, port: int) -> bool:
    """Whether rows of the port leave at the end if nothing has matched them."""
    return node.left_waits if port == LEFT else node.kind.right_unmatched


def _kept(node: Join) -> tuple[int, ...]:
    """The ports whose rows are kept."""
    return (RIGHT,) if node.right_first else (LEFT, RIGHT)


@holds("join")
def held_join(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of both sides, or of the right one alone."""
    assert isinstance(node, Join)
    kept = {port: side_of(node, port) for port in _kept(node)}
    return tuple(
        (log_entries if _waits(node, port) else multimap_entries)(side.name, side.keys) for port, side in kept.items()
    )


@consumes("join", copies_text=False)
def consume_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside each match on the other side, in order of arrival; then it is kept."""
    assert isinstance(node, Join)
    if node.right_first:
        (_look_up if port == LEFT else _learn)(flow, node, row)
        return
    scope, writer = flow.scope, flow.writer
    mine, other = side_of(node, port), side_of(node, 1 - port)
    own = mine.key_table(flow, node)
    ended = has_ended(flow, node, 1 - port)
    prefetch_records(flow, node, mine, other)
    with scope.when(expr("E == 0", E=ended)) if ended is not None else nullcontext():
        prefetch(flow, mine.input, mine.keys, own, mine.exprs)
    values = mine.columns_of(row)
    keys = [emit(scope, row, k) for k in mine.exprs]
    kept, matched, reference = (writer.let(ast.Constant(0), hint) for hint in ("kept", "matched", "ref"))
    with where_not_null(flow, keys) as known:
        writer.set(kept, 1 if ended is None else expr("1 - E", E=ended))
        other.first_record(flow, node, known, reference)
    _meet(flow, node, port, reference, matched, keys, values)
    if _waits(node, port):
        with scope.when(expr("E == 0 or M == 0", E=ended, M=matched)) if ended is not None else nullcontext():
            _wait(flow, node, port, keys, expr("1 - M", M=matched), values)
    else:
        with scope.when(expr("K == 1", K=kept)):
            LastingSide.of(node, port).keep(flow, node, [Val(k.type, k.parts) for k in keys], values)


def _learn(flow: Flow, node: Join, row: Row) -> None:
    """Keep a right row: left ones come later."""
    mine = side_of(node, RIGHT)
    prefetch(flow, mine.input, mine.keys, mine.key_table(flow, node), mine.exprs)
    values = mine.columns_of(row)
    keys = [emit(flow.scope, row, k) for k in mine.exprs]
    if node.kind.right_unmatched:
        _wait(flow, node, RIGHT, keys, ast.Constant(1), values)
        return
    with where_not_null(flow, keys) as known:
        LastingSide.of(node, RIGHT).keep(flow, node, known, values)


def _look_up(flow: Flow, node: Join, row: Row) -> None:
    """Match a left row with all right rows so far; in an outer join it leaves beside NULLs if none matches."""
    mine, other = side_of(node, LEFT), side_of(node, RIGHT)
    prefetch_records(flow, node, mine, other)
    values = mine.columns_of(row)
    keys = [emit(flow.scope, row, k) for k in mine.exprs]
    reference = flow.writer.let(ast.Constant(0), "ref")
    with where_not_null(flow, keys) as known:
        other.first_record(flow, node, known, reference)
    if node.kind.left_unmatched:
        _meet_or_alone(flow, node, reference, keys, values)
    else:
        _meet(flow, node, LEFT, reference, "", keys, values)


def _meet_or_alone(flow: Flow, node: Join, reference: str, keys: Sequence[Val], values: list[Val]) -> None:
    """Deliver the left row beside each of its matches, from the reference on; if there is none, beside NULLs.

    Written at one place, so that downstream code is written once, however many such joins there are.
    """
    scope, writer, other = flow.scope, flow.writer, side_of(node, RIGHT)
    alone = writer.let(ast.Constant(1), "alone")
    with writer.while_(expr("R | A != 0", R=reference, A=alone)), scope.block():
        passes = writer.let(ast.Constant(0), "passes")
        theirs = other.variables(scope)
        with scope.when(expr("R != 0", R=reference)):
            record, loaded = _next(flow, node, other, reference, keys)
            assign_all(flow, theirs, loaded)
            with where_passes(flow, node.residual, row_of(scope, [*values, *loaded])):
                _matched(flow, node, RIGHT, record)
                writer.set(passes, 1)
        with scope.otherwise():
            writer.set(passes, 1)
        with scope.when(expr("P == 1", P=passes)):
            writer.set(alone, 0)
            flow.deliver(node, row_of(scope, [*values, *theirs]))


def _meet(
    flow: Flow, node: Join, port: int, reference: str, matched: str, keys: Sequence[Val], values: list[Val]
) -> None:  # fmt: skip
    """Deliver the row beside each of its matches, from the reference on."""
    scope, writer, other = flow.scope, flow.writer, side_of(node, 1 - port)
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        record, theirs = _next(flow, node, other, reference, keys)
        joined = row_of(scope, [*values, *theirs] if port == LEFT else [*theirs, *values])
        with where_passes(flow, node.residual, joined):
            _matched(flow, node, 1 - port, record)
            if _waits(node, port):
                writer.set(matched, 1)
            flow.deliver(node, joined)


def _next(flow: Flow, node: Join, side: KeptSide, reference: str, keys: Sequence[Val]) -> tuple[ast.expr, list[Val]]:
    """`KeptSide.next`, unless the run is to stop."""
    stops_when_asked(flow, node)
    return side.next(flow, node, reference, keys)


def _matched(flow: Flow, node: Join, port: int, record: ast.expr) -> None:
    """Mark the record of a row of the port: it does not leave at the end."""
    if _waits(node, port):
        flow.writer.code("st_i64(R, W, 0)", R=record, W=words.RECORD_PROOF)


def _wait(flow: Flow, node: Join, port: int, keys: list[Val], waits: ast.expr, values: list[Val]) -> None:
    """Append the row to those of its key in its side's log. waits: 1 if it has no match yet and is to leave without."""
    mine, other = _waiting_side(node, port), side_of(node, 1 - port)
    entry = mine.keys.probe(mine.key_table(flow, node), keys, flow.serial, lambda e: None)
    if node.left_waits and node.kind.right_unmatched:  # rows of both sides are numbered together
        flow.writer.code("log_number_after(L, M)", L=mine.address(flow, node), M=other.address(flow, node))
    mine.keep(flow, node, entry, ast.Constant(abi.NEVER), waits, values)


@finishes("join")
def finish_join(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the rows that nothing has matched, by arrival."""
    assert isinstance(node, Join)
    left, right = both = (_waiting_side(node, LEFT), _waiting_side(node, RIGHT))
    sides = [side for side, port in zip(both, (LEFT, RIGHT), strict=True) if _waits(node, port)]

    def values(flow: Flow, log: str) -> list[Val]:
        if sides == [right]:
            return [*(null_of(f.type) for f in left.fields), *right.first_unmatched(flow, node)]
        return alone(flow, node, both, node.kind.right_unmatched, log)

    write_unmatched(stage, node, sides, values)
