"""join: each side's rows in a log by key; a row meets those of the other log, then joins its own.

Where the other side has ended its log is complete: a row meets what it can at once, and only rows without a match are
kept, if they are to leave at the end.
The log is that of interval joins, with records that never expire: 48 of a record's bytes are about expiry and order. A
container without them would keep more rows in a cache, and nothing else.
"""

from __future__ import annotations

import ast
from contextlib import nullcontext

from cq.codegen.ended import has_ended
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, StagePlan, consumes, finishes, row_of
from cq.codegen.keeping import LEFT, RIGHT, Side, alone, write_unmatched
from cq.codegen.matching import stops_when_asked, where_not_null, where_passes
from cq.codegen.prefetch import prefetch, prefetch_records
from cq.codegen.state.hash_tables import load_fields
from cq.codegen.state.moving import Held, holds, log_entries
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.planner.operators import Join
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import log_words as words
from cq.runtime.layout import abi


def side_of(node: Join, port: int) -> Side:
    return Side.of(node, port, keeps_null_keys=_outer(node, port))


def _outer(node: Join, port: int) -> bool:
    """Whether rows of the port leave at the end if nothing has matched them."""
    return node.left_outer if port == LEFT else node.right_outer


@holds("join")
def held_join(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of both sides."""
    assert isinstance(node, Join)
    return tuple(log_entries(side.name, side.keys) for side in (side_of(node, port) for port in (LEFT, RIGHT)))


@consumes("join", copies_text=False)
def consume_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside each match in the other log, in order of arrival; then it is kept."""
    assert isinstance(node, Join)
    scope, writer = flow.scope, flow.writer
    mine, other = side_of(node, port), side_of(node, 1 - port)
    own = mine.key_table(flow, node)
    ended = has_ended(flow, node, 1 - port)
    prefetch_records(flow, node, mine, other)
    with scope.when(expr("E == 0", E=ended)) if ended is not None else nullcontext():
        prefetch(flow, mine.input, mine.keys, own, mine.exprs)
    values = [row.column(i) for i in range(len(mine.fields))]
    keys = [emit(scope, row, k) for k in mine.exprs]
    kept, matched, reference = (writer.let(ast.Constant(0), hint) for hint in ("kept", "matched", "ref"))
    with where_not_null(flow, keys) as known:
        writer.set(kept, 1 if ended is None else expr("1 - E", E=ended))
        other.first_record(flow, node, known, reference)
    _meet(flow, node, port, reference, matched, values)
    if _outer(node, port):
        with scope.when(expr("E == 0 or M == 0", E=ended, M=matched)) if ended is not None else nullcontext():
            _keep(flow, node, port, keys, expr("1 - M", M=matched), values)
    else:
        with scope.when(expr("K == 1", K=kept)):
            _keep(flow, node, port, [Val(k.type, k.parts) for k in keys], ast.Constant(0), values)


def _meet(flow: Flow, node: Join, port: int, reference: str, matched: str, values: list[Val]) -> None:
    """Deliver the row beside each of its matches, from the reference on."""
    scope, writer, other = flow.scope, flow.writer, side_of(node, 1 - port)
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        stops_when_asked(flow, node)
        record, chunk = other.record(flow, node, reference)
        writer.set(reference, expr("ld_i64(R, W)", R=record, W=words.RECORD_NEXT))
        theirs = load_fields(scope, other.fields, record, chunk)
        joined = row_of(scope, [*values, *theirs] if port == LEFT else [*theirs, *values])
        with where_passes(flow, node.residual, joined):
            if _outer(node, 1 - port):
                writer.code("st_i64(R, W, 0)", R=record, W=words.RECORD_PROOF)
            if _outer(node, port):
                writer.set(matched, 1)
            flow.deliver(node, joined)


def _keep(flow: Flow, node: Join, port: int, keys: list[Val], waits: ast.expr, values: list[Val]) -> None:
    """The row is the last of its key in its side's log. waits: 1 when it has no match yet and is to leave without."""
    mine, other = side_of(node, port), side_of(node, 1 - port)
    entry = mine.keys.probe(mine.key_table(flow, node), keys, flow.serial, lambda e: None)
    if node.right_outer:  # rows of both sides are numbered together
        flow.writer.code("log_number_after(L, M)", L=mine.log(flow, node), M=other.log(flow, node))
    mine.keep(flow, node, entry, ast.Constant(abi.NEVER), waits, values)


@finishes("join")
def finish_join(stage: StagePlan, node: LogicalNode) -> None:
    """A function that emits the rows that nothing has matched, by arrival."""
    assert isinstance(node, Join)
    both = (side_of(node, LEFT), side_of(node, RIGHT))
    sides = both if node.right_outer else both[:1]
    write_unmatched(stage, node, sides, lambda flow, log: alone(flow, node, both, node.right_outer, log))
