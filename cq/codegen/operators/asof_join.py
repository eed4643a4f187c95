"""asof_join: rows wait for the watermark; then right ones are kept by key in order of time, and left ones look them up.

For right rows a table keeps the latest of each key; if a left row asks for the next one, a log keeps the candidates.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closes, closing, consumes, due_by_data
from cq.codegen.flow import function as stage_function
from cq.codegen.join_sides import Side
from cq.codegen.matching import Matches, deliver_match, where_not_null
from cq.codegen.row_versions import layout_of, look_up_version, replace_version
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.entry_moves import Held, entries, holds, log_entries
from cq.codegen.values import Row, Val
from cq.codegen.waiting_rows import close_buffer, keep_row, when_over
from cq.codegen.writer import expr
from cq.planner.operators import AsofJoin
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers import log_words as words
from cq.runtime.layout import abi
from cq.runtime.layout.words import Word

LEFT, RIGHT = 0, 1  # ports


@consumes("asof_join", copies_text=False)
def consume_asof_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A right row that follows all earlier ones is kept at once; every other row waits."""
    assert isinstance(node, AsofJoin)
    with flow.on_time(node):
        if port == LEFT:
            keep_row(flow, node, LEFT, row)
        else:
            when_over(flow, node, RIGHT, row, partial(_keep, node=node))


@due_by_data("asof_join")
def due_words(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """Right rows in a log expire; the node says when waiting rows are due."""
    assert isinstance(node, AsofJoin)
    return (DueWord(Side.of(node, RIGHT).slot(stage, node), words.LOG_NEXT),) if node.ahead else ()


@closes("asof_join")
def close_asof_join(stage: StageDraft, node: LogicalNode) -> None:
    """Look up left rows that are due, then keep right rows that are due; then free those that are no longer needed."""
    assert isinstance(node, AsofJoin)
    close_buffer(stage, node, LEFT, partial(_look_up, node=node))
    close_buffer(stage, node, RIGHT, partial(_keep, node=node))
    for due in due_words(stage, node):
        name = f"expire_{due.slot.offset}"
        stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
        event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
        with stage_function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
            flow.writer.code("log_forget(L, instant)", L=Side.of(node, RIGHT).address(flow, node))
            flow.leave(ast.Constant(abi.DONE))


@holds("asof_join")
def held_asof_join(node: LogicalNode) -> tuple[Held, ...]:
    """The latest right row of each key, or those that may be the next."""
    assert isinstance(node, AsofJoin)
    if node.ahead:
        return (log_entries("right", Side.of(node, RIGHT).keys),)
    return (entries("versions", layout_of(node).keys),)


def _keep(flow: Flow, row: Row, node: AsofJoin) -> None:
    if not node.ahead:
        replace_version(flow, node, row)
        return
    scope, right = flow.scope, Side.of(node, RIGHT)
    table = right.key_table(flow, node)
    keys = [emit(scope, row, k) for k in right.exprs]
    values = right.columns_of(row)
    with where_not_null(flow, keys) as known:
        entry = right.keys.probe(table, known, flow.serial, lambda e: None)
        behind_us = node.right_time.shift_us + node.right_expiry_us
        expiry = scope.let(expr("T + N", T=values[node.right_time.column].it, N=behind_us), "expiry")
        right.keep(flow, node, entry, expiry, ast.Constant(0), values)


def _look_up(flow: Flow, row: Row, node: AsofJoin) -> None:
    look_up = _look_ahead if node.ahead else look_up_version
    look_up(flow, node, row, partial(_near, flow, node))


@contextmanager
def _near(flow: Flow, node: AsofJoin, joined: Row) -> Iterator[None]:
    """Inside, the right row that was found is not too far from the left one."""
    if not node.limited:
        yield
        return
    left, right = node.left_time, node.right_time
    shift_us = left.shift_us - right.shift_us
    mine, theirs = (joined.column(c).it for c in (left.column, len(node.left.schema) + right.column))
    near, limit_us = ("R - L <= N", node.upper_us) if node.ahead else ("R - L >= N", node.lower_us)
    with flow.scope.when(expr(near, R=theirs, L=mine, N=limit_us + shift_us)):
        yield


def _look_ahead(flow: Flow, node: AsofJoin, row: Row, matches: Matches) -> None:
    """The left row beside the first right row of its key that is late enough, or beside NULLs, or not at all.

    A record holds its expiry, which is its time plus a constant. Those of a key are in order of time, so `log_since`
    finds the very first.
    """
    scope, right = flow.scope, Side.of(node, RIGHT)
    table, log = right.key_table(flow, node), right.address(flow, node)
    keys = [emit(scope, row, k) for k in node.left_keys]
    reference = flow.writer.let(ast.Constant(0), "ref")
    with where_not_null(flow, keys) as known:
        entry = right.keys.find(table, known)
        with scope.when(expr("E != 0", E=entry)):
            later_us = node.left_time.shift_us + node.lower_us + node.right_expiry_us
            since = expr("log_since(L, E + LIST, T + N, SIZE)",
                L=log, E=entry, LIST=Word(right.keys.next_word * 8, "LOG_KEY_LIST_BYTES"),
                T=row.column(node.left_time.column).it, N=later_us, SIZE=right.record_bytes,
            )  # fmt: skip
            flow.writer.set(reference, since)

    def load() -> list[Val]:
        record, chunk = right.record(flow, node, reference)
        return right.load(scope, record, chunk)

    deliver_match(flow, node, row, expr("R != 0", R=reference), load, matches)
