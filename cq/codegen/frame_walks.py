"""Frames recomputed row by row: aggregates that keep all values, DISTINCT, and frames that leave rows out.

A record keeps the arguments of its row. Whenever the frame has changed, the state in the partition's entry is reset,
and the rows of the frame are added to it. So a row costs as much as its frame has rows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.flow import Flow
from cq.codegen.frame_state import Framed, PartitionPlace, bound_of, has_null, is_dropped, is_taken, layout_of, word_of
from cq.codegen.state.accumulators import Accumulator, Entry
from cq.codegen.state.entry_moves import Held, Mover
from cq.codegen.state.hash_tables import Keys, TableLocals, string_words
from cq.codegen.state.kept_values import Once
from cq.codegen.values import Val
from cq.codegen.writer import expr
from cq.planner.operators import Frames, Unit, Without
from cq.runtime.containers import frames as words
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.pipeline import TableShape


def walked(flow: Flow, node: Frames, at: Framed, place: PartitionPlace) -> Entry:
    """The state of a row's frame, from the first row that has not left it."""
    scope, writer, frame = flow.scope, flow.writer, node.frame
    changed = ast.Name(writer.let(ast.Constant(frame.without is not None), "changed"), ast.Load())
    with writer.while_(is_taken(flow, node, at, place)), scope.block():
        writer.code("frame_take(F, E)", F=at.frames, E=at.entry)
        writer.set(changed.id, ast.Constant(True))
    if frame.start is not None:
        start = bound_of(flow, node, place, frame.start)
        with writer.while_(is_dropped(node, at, start)), scope.block():
            writer.code("frame_drop(F, E)", F=at.frames, E=at.entry)
            writer.set(changed.id, ast.Constant(True))
    with scope.when(changed):
        _walk(flow, node, at)
    return at.back


def _walk(flow: Flow, node: Frames, at: Framed) -> None:
    """Compute the state from the rows of the frame that are not left out."""
    scope, writer, kept = flow.scope, flow.writer, at.layout.kept
    assert kept is not None
    at.layout.accumulators.clear(scope, at.back)
    once = _sets(flow, node, at)
    now = scope.let(expr("record_at(F, N)", F=at.frames, N=at.word(words.FRAME_NOW)), "now")
    number = ast.Name(writer.let(at.word(words.FRAME_DROPPED), "number"), ast.Load())
    link = ast.Name(writer.let(at.word(words.FRAME_START), "link"), ast.Load())
    with writer.while_(expr("N < T", N=number, T=at.word(words.FRAME_TAKEN))), scope.block():
        record = at.record(flow, link)
        left_out = _is_left_out(node, at, record.address, now, number)
        if left_out is None:
            kept.count(scope, at.back, record, number, once)
        else:
            with scope.when(expr("not L", L=left_out)):
                kept.count(scope, at.back, record, number, once)
        writer.set(link.id, expr("record_link(R, SIDE)", R=at.record(flow, link).address, SIDE=words.BEHIND))
        writer.set(number.id, expr("N + 1", N=number))


def _is_left_out(
    node: Frames, at: Framed, record: ast.expr, now: ast.expr, number: ast.expr
) -> ast.expr | None:  # fmt: skip
    """Whether a row of the frame is left out; None if none can be."""
    without = node.frame.without
    if without is None:
        return None
    same = expr("N == L", N=number, L=at.word(words.FRAME_LEFT))
    if without is Without.ROW:
        return same
    told = [at.layout.peer if node.frame.unit is Unit.ROWS else at.layout.place]
    told += [at.layout.null] if has_null(node) else []
    peers, *more = (expr("A == B", A=word_of(record, w), B=word_of(now, w)) for w in told)
    for other in more:
        peers = expr("P and Q", P=peers, Q=other)
    return peers if without is Without.GROUP else expr("P and not S", P=peers, S=same)


def _set_of(accumulator: Accumulator) -> Keys:
    """The key of the set of a DISTINCT accumulator."""
    return Keys.of([(accumulator.args[0].type, False)], ordered=False, name="MEMBER")


def _distinct(node: Frames) -> list[Accumulator]:
    return [p for p in layout_of(node).accumulators.all if p.distinct]


def _sets(flow: Flow, node: Frames, at: Framed) -> Once:
    """Empty the sets of the DISTINCT accumulators; return what adds to them, as `Accumulators.add` expects it."""
    tables: list[tuple[Keys, TableLocals]] = []
    distinct = [p for p in at.layout.accumulators.all if p.distinct]
    for number, accumulator in enumerate(distinct):
        keys = _set_of(accumulator)
        shape = TableShape(keys.next_word, keys.next_word - ENTRY_FIRST, string_words(keys.fields))
        slot = flow.stage.table_slot(node, f"members{number}", shape)
        table = TableLocals.declare(flow.scope, shape.entry_words)
        flow.writer.code("table_clear(ld_i64(state, W))", W=slot.offset)
        table.use(expr("ld_i64(state, W)", W=slot.offset))
        tables.append((keys, table))

    def once(accumulator: Accumulator, value: Val, then: Callable[[], None]) -> None:
        keys, table = tables[distinct.index(accumulator)]
        keys.probe(table, [value], ast.Constant(0), lambda e: then())

    return once


def held_sets(node: Frames) -> tuple[Held, ...]:
    """The sets are empty between rows."""
    nothing: Callable[[Mover], None] = lambda mover: None  # noqa: E731
    return tuple(Held(f"members{n}", nothing) for n in range(len(_distinct(node)))) if node.walks else ()
