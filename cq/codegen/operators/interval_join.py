"""interval_join: each side's rows in a log by key; a row meets those of the other log, then is added to its own.

Rows that match only within the same windows are in runs instead (cq/codegen/window_joins.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from cq.codegen import window_joins
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closes, closing, consumes, due_by_data, function
from cq.codegen.join_sides import KeptTime, Side, alone, leave_unmatched
from cq.codegen.matching import (
    LEFT,
    RIGHT,
    KeptMatch,
    Others,
    leave_if_matched,
    match_waiting,
    meet,
    meet_or_leave,
    where_not_null,
)
from cq.codegen.prefetch import prefetch_last, prefetch_records
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.entry_moves import Held, holds, log_entries
from cq.codegen.values import Row, Val
from cq.codegen.waiting_rows import over, over_next
from cq.codegen.writer import expr
from cq.lang.schema import TimeAttribute
from cq.planner.operators import IntervalJoin
from cq.planner.operators.joined import in_reach
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import log_words as words
from cq.runtime.layout import abi
from cq.runtime.layout.words import Word


@dataclass(frozen=True, slots=True)
class TimedSide:
    """One input.

    expiry_us: more than this after its time, nothing matches a row.
    lower_us, upper_us: the least and most that a partner's time may be after a row's own time.
    """

    side: Side
    time: TimeAttribute
    expiry_us: int
    lower_us: int
    upper_us: int


def timed_side(node: IntervalJoin, port: int) -> TimedSide:
    expiry = in_reach((node.left_expiry_us, node.right_expiry_us)[port])
    lower, upper = in_reach(node.lower_us), in_reach(node.upper_us)
    if port == LEFT:
        return TimedSide(_side(node, LEFT, node.left_time, expiry), node.left_time, expiry, lower, upper)
    return TimedSide(_side(node, RIGHT, node.right_time, expiry), node.right_time, expiry, -upper, -lower)


def _side(node: IntervalJoin, port: int, time: TimeAttribute, expiry_us: int) -> Side:
    """The side of a port, whose records derive their time from their expiry."""
    return Side.of(node, port, time=KeptTime(time.column, time.shift_us + expiry_us + 1))


def _sides(node: IntervalJoin) -> tuple[Side, Side]:
    return timed_side(node, LEFT).side, timed_side(node, RIGHT).side


@holds("interval_join")
def held_interval_join(node: LogicalNode) -> tuple[Held, ...]:
    """The kept rows of both sides."""
    assert isinstance(node, IntervalJoin)
    if node.in_windows:
        return window_joins.held_windows(node)
    return tuple(log_entries(side.name, side.keys) for side in _sides(node))


@due_by_data("interval_join")
def due_words(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """Rows expire, and left rows may leave, as the watermark advances."""
    assert isinstance(node, IntervalJoin)
    if node.in_windows:
        return (window_joins.due_window(stage, node),)
    return tuple(DueWord(side.slot(stage, node), words.LOG_NEXT) for side in _sides(node))


@consumes("interval_join", copies_text=False)
def consume_interval_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside each match in the other log, in order of arrival; then it is kept while others may match it."""
    assert isinstance(node, IntervalJoin)
    take = window_joins.take if node.in_windows else _take
    with flow.on_time(node):
        take(flow, node, port, row)


def _take(flow: Flow, node: IntervalJoin, port: int, row: Row) -> None:
    scope, writer = flow.scope, flow.writer
    timed, partner = timed_side(node, port), timed_side(node, 1 - port)
    mine, other = timed.side, partner.side
    own, others = mine.key_table(flow, node), other.key_table(flow, node)
    prefetch_records(flow, node, mine, other)
    prefetch_last(flow, node, mine)
    values = mine.columns_of(row)
    time = scope.let(expr("T + S", T=values[timed.time.column].it, S=timed.time.shift_us), "t")
    expiry = scope.let(expr("T + N", T=time, N=timed.expiry_us + 1), "expiry")
    keys = [emit(scope, row, k) for k in mine.exprs]
    kept, reference = (writer.let(ast.Constant(0), hint) for hint in ("kept", "ref"))
    with where_not_null(flow, keys) as known:
        entry = other.keys.find(others, known)
        with scope.when(expr("E != 0", E=entry)):
            since = expr("log_since(L, E + LIST, T + LOWER, SIZE)",
                L=other.address(flow, node), E=entry, LIST=Word(other.keys.next_word * 8, "LOG_KEY_LIST_BYTES"),
                T=time, LOWER=_lower(partner), SIZE=other.record_bytes,
            )  # fmt: skip
            writer.set(reference, since)
        gone = over if _outer(node, port) or not node.meets_later_rows(port) else over_next
        writer.set(kept, expr("pick(X > OVER, 1, 0)", X=expiry, OVER=gone(flow)))
    rows = Others(
        other.name, other.input, expr("R != 0", R=reference), lambda: _next(flow, node, port, reference, time)
    )
    waits: ast.expr = ast.Constant(0)
    stays = expr("K == 1", K=kept)
    if node.kind.left_only and port == LEFT:
        stays = expr("K == 1 and M == 0", K=kept, M=leave_if_matched(flow, node, values, rows, kept))
        waits = ast.Constant(int(node.kind.left_unmatched))
    elif node.kind.left_only:
        match_waiting(flow, node, values, rows)
    elif _outer(node, port):
        waits = expr("1 - M", M=meet_or_leave(flow, node, port, values, rows, kept))
    else:
        meet(flow, node, port, values, rows)
    with scope.when(stays):
        place = mine.keys.probe(own, [Val(k.type, k.parts) for k in keys], flow.serial, lambda e: None)
        if node.kind.right_unmatched:  # rows of both sides are numbered together
            writer.code("log_number_after(L, M)", L=mine.address(flow, node), M=other.address(flow, node))
        mine.keep(flow, node, place, expiry, waits, values)


def _outer(node: IntervalJoin, port: int) -> bool:
    """Whether rows of the port leave once nothing can match them any more and nothing has."""
    return node.kind.left_unmatched if port == LEFT else node.kind.right_unmatched


def _has_match(flow: Flow, node: IntervalJoin, port: int, reference: str, record: ast.expr) -> None:
    """Note that a kept row of the port has a match: it is not emitted as unmatched. One that leaves alone is taken off
    its list."""
    if node.kind.left_only and port == LEFT:
        timed_side(node, port).side.unlist(flow, node, reference)
    elif _outer(node, port):
        flow.writer.code("st_i64(R, W, 0)", R=record, W=words.RECORD_PROOF)


@contextmanager
def _next(flow: Flow, node: IntervalJoin, port: int, reference: str, time: ast.expr) -> Iterator[KeptMatch]:
    """Inside, the record at the reference is within the interval around a row of the port; advances the reference.

    A record holds its expiry, which is its time plus a constant. After a record so late that no later one can be within
    the interval, however far out of order they came, the search ends.
    """
    scope, other = flow.scope, timed_side(node, 1 - port)
    here = flow.writer.let(ast.Name(reference, ast.Load()), "here")
    record, chunk = other.side.record(flow, node, here)
    flow.writer.set(reference, expr("ld_i64(R, W)", R=record, W=words.RECORD_NEXT))
    theirs = scope.let(expr("ld_i64(R, W)", R=record, W=words.RECORD_EXPIRY), "theirs")
    upper = other.expiry_us + 1 - other.lower_us
    lead = expr("ld_i64(L, W)", L=other.side.address(flow, node), W=words.LOG_LEAD)
    with scope.when(expr("X - LEAD > T + UPPER", X=theirs, LEAD=lead, T=time, UPPER=upper)):
        flow.writer.set(reference, 0)
    within = expr("X >= T + LOWER and X <= T + UPPER", X=theirs, T=time, LOWER=_lower(other), UPPER=upper)
    with scope.when(within):
        then = expr("X - N", X=theirs, N=other.expiry_us + 1)
        values = other.side.load(scope, record, chunk)
        yield KeptMatch(values, then, lambda: _has_match(flow, node, 1 - port, here, record))


def _lower(other: TimedSide) -> int:
    """How much later than a row's time the earliest expiry of a partner on the other side can be."""
    return other.expiry_us + 1 - other.upper_us


def _alone(flow: Flow, node: IntervalJoin, sides: tuple[Side, Side], log: str) -> list[Val]:
    """The first row waiting in the log, beside NULLs unless left rows leave alone."""
    if node.kind.left_only:
        return sides[LEFT].first_unmatched(flow, node)
    return alone(flow, node, sides, node.kind.right_unmatched, log)


@closes("interval_join")
def close_interval_join(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the rows now known to have no match, by arrival, then frees the rows nothing can match."""
    assert isinstance(node, IntervalJoin)
    if node.in_windows:
        window_joins.close(stage, node)
        return
    sides = _sides(node)
    name = f"expire_{sides[LEFT].slot(stage, node).offset}"
    first, second = due_words(stage, node)
    due = expr("min(A, B)", A=first.next_end, B=second.next_end)
    stage.closers.append(Closer(name, due, stage.order[id(node)]))
    instant = ast.Name("instant", ast.Load())
    event = closing(stage, node, instant, ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        if node.kind.left_unmatched:
            waiting = sides if node.kind.right_unmatched else sides[:1]
            leave_unmatched(flow, node, waiting, instant, lambda f, log: _alone(f, node, sides, log))
        for side in sides:
            flow.writer.code("log_forget(L, instant)", L=side.address(flow, node))
        flow.leave(ast.Constant(abi.DONE))
