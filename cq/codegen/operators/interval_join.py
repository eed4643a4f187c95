"""interval_join: each side's rows in a log by key; a row meets those of the other log, then joins its own."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import (
    CLOSER_ARGUMENTS,
    Closer,
    DueWord,
    Flow,
    StagePlan,
    closes,
    closing,
    consumes,
    due_by_data,
    function,
    row_of,
)
from cq.codegen.matching import assign_all, where_not_null, where_passes
from cq.codegen.prefetch import prefetch
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
from cq.codegen.state.moving import Held, holds, log_entries
from cq.codegen.values import Row, Val, null_of
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.lang.schema import TimeAttribute
from cq.planner.operators import IntervalJoin
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import log_words as words
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.job import Slot, TableShape
from cq.runtime.layout.words import Word

LEFT, RIGHT = 0, 1  # ports
FARTHEST_US = 1 << 60  # beyond every difference of two times; sums of it and a time stay within 64 bits


@dataclass(frozen=True, slots=True)
class Side:
    """One input. An entry of its log: the key, then the words of its list (log_words.py). A record: the row.

    expiry_us: from one microsecond past this after its time on, nothing matches a row.
    lower_us, upper_us: how much later than a row's own time that of a partner may be.
    """

    name: str
    input: LogicalNode
    time: TimeAttribute
    exprs: tuple[Expr, ...]
    expiry_us: int
    lower_us: int
    upper_us: int
    keys: Keys
    fields: tuple[Field, ...]
    shapes: tuple[TableShape, TableShape]

    @property
    def record_bytes(self) -> int:
        return self.shapes[1].entry_words * 8


def side_of(node: IntervalJoin, port: int) -> Side:
    exprs = (node.left_keys, node.right_keys)[port]
    input = node.inputs[port]
    keys = Keys.of([(k.type, False) for k in exprs], ordered=False, name="LOG_KEY")
    fields, end = lay_out(
        [(f.type, f.nullable) for f in input.schema.fields], words.RECORD_VALUES, ("LEFT_VALUE", "RIGHT_VALUE")[port]
    )
    shapes = (
        TableShape(keys.next_word + words.LIST_WORDS, keys.next_word - ENTRY_FIRST, string_words(keys.fields)),
        TableShape(end, 0, string_words(fields)),
    )
    expiry = _in_reach((node.left_expiry_us, node.right_expiry_us)[port])
    lower, upper = _in_reach(node.lower_us), _in_reach(node.upper_us)
    if port == LEFT:
        return Side("left", input, node.left_time, exprs, expiry, lower, upper, keys, fields, shapes)
    return Side("right", input, node.right_time, exprs, expiry, -upper, -lower, keys, fields, shapes)


def _in_reach(distance_us: int) -> int:
    """The distance, or one in its direction that no two times have either."""
    return max(-FARTHEST_US, min(distance_us, FARTHEST_US))


def _slot(stage: StagePlan, node: LogicalNode, side: Side) -> Slot:
    """The state word of a side's log."""
    return stage.slot(node, side.name, lambda offset: Slot(side.name, offset, "log", node.identity, shapes=side.shapes))


def _log(flow: Flow, node: LogicalNode, side: Side) -> str:
    """The address of a side's log, in a local of the function."""
    return flow.writer.hoist(expr("ld_i64(state, W)", W=_slot(flow.stage, node, side).offset), "log")


def _key_table(flow: Flow, node: LogicalNode, side: Side) -> TableLocals:
    """The keys of a side's log, in locals of the function."""
    offset = _slot(flow.stage, node, side).offset
    if offset not in flow.tables:
        table = expr("ld_i64(L, W)", L=_log(flow, node, side), W=words.LOG_TABLE)
        flow.tables[offset] = TableLocals.fixed(flow.scope, side.shapes[0].entry_words, table)
        flow.stale.append(flow.tables[offset].reload)
    return flow.tables[offset]


@holds("interval_join")
def held_interval_join(node: LogicalNode) -> tuple[Held, ...]:
    """The kept rows of both sides."""
    assert isinstance(node, IntervalJoin)
    return tuple(log_entries(side.name, side.keys) for side in (side_of(node, port) for port in (LEFT, RIGHT)))


@due_by_data("interval_join")
def due_words(stage: StagePlan, node: LogicalNode) -> tuple[DueWord, ...]:
    """Rows expire, and left rows may leave, as the watermark advances."""
    assert isinstance(node, IntervalJoin)
    return tuple(DueWord(_slot(stage, node, side_of(node, port)), words.LOG_NEXT) for port in (LEFT, RIGHT))


@consumes("interval_join", copies_text=False)
def consume_interval_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside each match in the other log, in order of arrival; then it is kept while others may match it."""
    assert isinstance(node, IntervalJoin)
    with flow.on_time(node):
        _take(flow, node, port, row)


def _take(flow: Flow, node: IntervalJoin, port: int, row: Row) -> None:
    scope, writer = flow.scope, flow.writer
    mine, other = side_of(node, port), side_of(node, 1 - port)
    own, others = _key_table(flow, node, mine), _key_table(flow, node, other)
    prefetch(flow, mine.input, other.keys, others, mine.exprs)
    prefetch(flow, mine.input, mine.keys, own, mine.exprs)
    values = [row.column(i) for i in range(len(mine.fields))]
    time = scope.let(expr("T + S", T=values[mine.time.column].it, S=mine.time.shift_us), "t")
    expiry = scope.let(expr("T + N", T=time, N=mine.expiry_us + 1), "expiry")
    keys = [emit(scope, row, k) for k in mine.exprs]
    kept, matched, reference = (writer.let(ast.Constant(0), hint) for hint in ("kept", "matched", "ref"))
    with where_not_null(flow, keys) as known:
        entry = other.keys.find(others, known)
        with scope.when(expr("E != 0", E=entry)):
            since = expr("log_since(L, E + LIST, T + LOWER, SIZE)",
                L=_log(flow, node, other), E=entry, LIST=Word(other.keys.next_word * 8, "LOG_KEY_LIST_BYTES"),
                T=time, LOWER=_lower(other), SIZE=other.record_bytes,
            )  # fmt: skip
            writer.set(reference, since)
        writer.set(kept, expr("pick(X > OVER, 1, 0)", X=expiry, OVER=_over(flow)))
    if node.left_outer and port == LEFT:
        _meet_or_leave(flow, node, reference, time, values, matched, kept)
    else:
        _meet(flow, node, port, reference, time, values)
    with scope.when(expr("K == 1", K=kept)):
        place = mine.keys.probe(own, [Val(k.type, k.parts) for k in keys], flow.serial, lambda e: None)
        waits = expr("1 - M", M=matched) if node.left_outer and port == LEFT else ast.Constant(0)
        _keep(flow, node, mine, place, expiry, waits, values)


def _over(flow: Flow) -> ast.expr:
    """Every instant up to it is over: the watermark, or what is just before the instant that is served."""
    watermark = expr("ld_i64(state, W)", W=flow.stage.watermark_word())
    return expr("min(W, I - 1)", W=watermark, I=flow.position.instant)


def _next_record(
    flow: Flow, node: IntervalJoin, other: Side, reference: str, time: ast.expr
) -> tuple[ast.expr, ast.expr, ast.expr, ast.expr]:
    """The record at the reference, its chunk, its time, whether that is within the interval; the reference moves on.

    A record says its expiry: its time is that much earlier.
    """
    scope = flow.scope
    chunk = scope.let(expr("log_chunk(L, R)", L=_log(flow, node, other), R=reference), "chunk")
    record = scope.let(expr("log_record(C, R, SIZE)", C=chunk, R=reference, SIZE=other.record_bytes), "record")
    flow.writer.set(reference, expr("ld_i64(R, W)", R=record, W=words.RECORD_NEXT))
    theirs = scope.let(expr("ld_i64(R, W)", R=record, W=words.RECORD_EXPIRY), "theirs")
    upper = other.expiry_us + 1 - other.lower_us
    inside = expr("X >= T + LOWER and X <= T + UPPER", X=theirs, T=time, LOWER=_lower(other), UPPER=upper)
    return record, chunk, expr("X - N", X=theirs, N=other.expiry_us + 1), inside


def _lower(other: Side) -> int:
    """How much later than a row's time the earliest expiry of a partner on the other side is."""
    return other.expiry_us + 1 - other.upper_us


def _meet(flow: Flow, node: IntervalJoin, port: int, reference: str, time: ast.expr, values: list[Val]) -> None:
    """Deliver the row beside each of its matches, from the reference on."""
    scope, writer, other = flow.scope, flow.writer, side_of(node, 1 - port)
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        record, chunk, then, inside = _next_record(flow, node, other, reference, time)
        with scope.when(inside):
            theirs = load_fields(scope, other.fields, record, chunk)
            joined = row_of(scope, [*values, *theirs] if port == LEFT else [*theirs, *values])
            with where_passes(flow, node.residual, joined, flow.beside(other.name, then)):
                if node.left_outer:
                    writer.code("st_i64(R, W, 0)", R=record, W=words.RECORD_PROOF)
                flow.deliver(node, joined)


def _meet_or_leave(
    flow: Flow, node: IntervalJoin, reference: str, time: ast.expr, values: list[Val], matched: str, kept: str
) -> None:
    """Deliver the left row beside each of its matches; one that has none and is not kept beside NULLs.

    One turn a match and one without, so that what is downstream is written once.
    """
    scope, writer, other = flow.scope, flow.writer, side_of(node, RIGHT)
    right = [scope.variables(f.type, True) for f in other.fields]
    found = writer.let(ast.Constant(1), "found")
    with writer.while_(expr("F == 1", F=found)), scope.block():
        writer.set(found, 0)
        with writer.while_(expr("R != 0 and F == 0", R=reference, F=found)), scope.block():
            record, chunk, then, inside = _next_record(flow, node, other, reference, time)
            with scope.when(inside):
                theirs = load_fields(scope, other.fields, record, chunk)
                joined = row_of(scope, [*values, *theirs])
                with where_passes(flow, node.residual, joined, flow.beside(other.name, then)):
                    assign_all(flow, right, theirs)
                    writer.set(found, 1)
                    writer.set(matched, 1)
        with scope.when(expr("F == 1 or (M == 0 and K == 0)", F=found, M=matched, K=kept)):
            flow.deliver(node, row_of(scope, [*values, *right]))


def _keep(
    flow: Flow, node: LogicalNode, side: Side, entry: ast.expr, expiry: ast.expr, waits: ast.expr, values: list[Val]
) -> None:
    """The row is the last of its key in its side's log. waits: 1 for a left row that is to leave without a match."""
    scope, writer = flow.scope, flow.writer
    log = _log(flow, node, side)
    reference = writer.let(
        expr("log_append(L, E, X, S, N)", L=log, E=entry, X=expiry, S=flow.serial, N=waits), "ref"
    )  # fmt: skip
    with scope.when(expr("R == 0", R=reference)):
        flow.no_memory("rows that may match")
    chunk = scope.let(expr("log_chunk(L, R)", L=log, R=reference), "chunk")
    record = scope.let(expr("log_record(C, R, SIZE)", C=chunk, R=reference, SIZE=side.record_bytes), "record")
    for f, value in zip(side.fields, values, strict=True):
        store_field(scope, f, record, chunk, value)
    store_nulls(scope, side.fields, record, values)


@closes("interval_join")
def close_interval_join(stage: StagePlan, node: LogicalNode) -> None:
    """A function that emits the left rows now known to have no match, then frees the rows nothing can match."""
    assert isinstance(node, IntervalJoin)
    left, right = (side_of(node, port) for port in (LEFT, RIGHT))
    name = f"expire_{_slot(stage, node, left).offset}"
    first, second = due_words(stage, node)
    due = expr("min(A, B)", A=first.next_end, B=second.next_end)
    stage.closers.append(Closer(name, due, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        if node.left_outer:
            _leave(flow, node, left, right)
        for side in (left, right):
            flow.writer.code("log_forget(L, instant)", L=_log(flow, node, side))
        flow.leave(ast.Constant(abi.DONE))


def _leave(flow: Flow, node: IntervalJoin, left: Side, right: Side) -> None:
    """Every left row that is due, beside NULLs; when a port is full the function says MORE."""
    scope, writer = flow.scope, flow.writer
    log = _log(flow, node, left)
    proof = expr("log_proof(L, instant)", L=log)
    reference = writer.let(proof, "ref")
    with writer.while_(expr("R != 0", R=reference)), scope.block():
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                flow.leave(ast.Constant(abi.MORE))
        chunk = scope.let(expr("log_chunk(L, R)", L=log, R=reference), "chunk")
        record = scope.let(expr("log_record(C, R, SIZE)", C=chunk, R=reference, SIZE=left.record_bytes), "record")
        writer.code("arrival = ld_i64(R, W)", R=record, W=words.RECORD_SERIAL)
        values = load_fields(scope, left.fields, record, chunk)
        flow.deliver(node, row_of(scope, [*values, *(null_of(f.type) for f in right.fields)]))
        writer.code("log_proved(L)", L=log)
        writer.set(reference, proof)
