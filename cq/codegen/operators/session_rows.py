"""session_rows: a row is kept in the open sessions of its group that it touches, or begins one; then they leave.

The rows of a session are a list of its entry (cq/runtime/containers/interval_rows.py). Texts follow the words of their
row, which has their lengths and their offsets from its beginning.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.flow import Flow, closes, consumes, due_by_data, row_of
from cq.codegen.sessions import Sessions, close_sessions, session_due_words, session_keys
from cq.codegen.stage_draft import DueWord, StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.entry_moves import Held, holds, interval_entries
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    lay_out,
    load_field,
    null_words,
    store_nulls,
    store_words,
    string_words,
)
from cq.codegen.values import Row, Scope, Val
from cq.codegen.writer import expr
from cq.lang.types import Physical
from cq.planner.operators import SessionRows
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import lists, order
from cq.runtime.containers.interval_rows import KEPT_BYTES, KEPT_VALUES
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word


@dataclass(frozen=True, slots=True)
class SessionRowsLayout:
    """keys, list_word: where the key of a session and the list of its rows are in its entry. fields: where the columns
    of a row are in the list, in words from its beginning; row_words: the words of a row without texts."""

    keys: Keys
    list_word: int
    fields: tuple[EntryField, ...]
    row_words: int
    shape: TableShape

    def list(self, session: Entry) -> ast.expr:
        """The address of the list of rows."""
        return expr("E + W * 8", E=session.address, W=self.list_word)


def layout_of(node: SessionRows) -> SessionRowsLayout:
    keys = session_keys(node)
    list_word = Word(keys.next_word, "SESSION_ROWS")
    fields, row_words = lay_out([(f.type, f.nullable) for f in node.input.schema.fields], KEPT_VALUES, "KEPT")
    strings = (*string_words(keys.fields), list_word)
    shape = TableShape(list_word + lists.LIST_WORDS, keys.next_word - order.INTERVAL_KEYS, strings)
    return SessionRowsLayout(keys, list_word, fields, row_words, shape)


def _slot(stage: StageDraft, node: SessionRows) -> Slot:
    return Sessions.slot_of(stage, node, layout_of(node).shape, "interval_rows")


def _sessions(stage: StageDraft, node: SessionRows, layout: SessionRowsLayout) -> Sessions:
    def absorb(flow: Flow, session: Entry, later: Entry) -> None:
        mine, theirs = layout.list(session), layout.list(later)
        with flow.scope.when(expr("kept_join(T, L, M) == 0", T=session.table, L=mine, M=theirs)):
            flow.no_memory("rows of sessions")

    return Sessions(node, layout.keys, layout.shape, _slot(stage, node), lambda flow, session: None, absorb)


@holds("session_rows")
def held_session_rows(node: LogicalNode) -> tuple[Held, ...]:
    """The open sessions with their rows."""
    assert isinstance(node, SessionRows)
    return (interval_entries("sessions", layout_of(node).keys),)


@due_by_data("session_rows")
def session_rows_due(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """A gap after the last row of some session."""
    assert isinstance(node, SessionRows)
    return session_due_words(_slot(stage, node))


@consumes("session_rows", copies_text=False)
def consume_session_rows(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Find the sessions of the row's group that it touches, merge them into one with the row, and keep the row."""
    assert isinstance(node, SessionRows)
    with flow.on_time(node):
        layout = layout_of(node)
        sessions = _sessions(flow.stage, node, layout)
        session, _ = sessions.of_row(flow, row)
        _keep(flow, layout, sessions.state(flow), session, [row.column(n) for n in range(len(layout.fields))])


def _keep(flow: Flow, layout: SessionRowsLayout, state: ast.expr, session: Entry, values: Sequence[Val]) -> None:
    """Write the values as the last row of the session."""
    scope, writer = flow.scope, flow.writer
    lengths = {f.word: _length(scope, v) for f, v in zip(layout.fields, values, strict=True) if _is_text(f)}
    size: ast.expr = ast.Constant(layout.row_words * 8)
    for length in lengths.values():
        size = expr("S + (L + 7 & -8)", S=size, L=length)
    size = scope.let(size, "size")
    kept = scope.let(expr("kept_new(P, T, L, N)", P=state, T=session.table, L=layout.list(session), N=size), "kept")
    with scope.when(expr("K == 0", K=kept)):
        flow.no_memory("rows of sessions")
    at: ast.expr = ast.Constant(layout.row_words * 8)
    for f, value in zip(layout.fields, values, strict=True):
        if not _is_text(f):
            store_words(scope, kept, f, value)
            continue
        length, at = lengths[f.word], scope.let(at, "at")
        writer.code("st_i64(K, W, L)", K=kept, W=f.word, L=length)
        writer.code("st_i64(K, W, AT)", K=kept, W=f.at(1), AT=at)
        writer.code("copy(K + AT, A, L)", K=kept, AT=at, A=value.parts[0], L=length)
        at = expr("AT + (L + 7 & -8)", AT=at, L=length)
    store_nulls(scope, layout.fields, kept, values)


def _is_text(f: EntryField) -> bool:
    return f.type.physical is Physical.BYTES


def _length(scope: Scope, text: Val) -> ast.expr:
    """The number of bytes; 0 for NULL."""
    length = text.parts[1]
    return length if text.null is None else scope.let(expr("pick(N, 0, L)", N=text.null, L=length), "length")


def _load(scope: Scope, layout: SessionRowsLayout, kept: ast.expr) -> list[Val]:
    """The values of a kept row."""
    nulls = {w: scope.let(expr("ld_i64(K, W)", K=kept, W=w), "nulls") for w in null_words(layout.fields)}
    found: list[Val] = []
    for f in layout.fields:
        if not _is_text(f):
            found.append(load_field(scope, f, kept, ast.Constant(0), nulls.get(f.null_word)))
            continue
        length = scope.let(expr("ld_i64(K, W)", K=kept, W=f.word), "length")
        address = scope.let(expr("K + ld_i64(K, W)", K=kept, W=f.at(1)), "text")
        null = expr("N & BIT != 0", N=nulls[f.null_word], BIT=1 << f.null_bit) if f.null_bit >= 0 else None
        found.append(Val(f.type, (address, length), None if null is None else scope.let(null, "null")))
    return found


@closes("session_rows")
def close_session_rows(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the rows of the sessions that are due."""
    assert isinstance(node, SessionRows)
    layout = layout_of(node)
    sessions = _sessions(stage, node, layout)

    def leave(flow: Flow, session: Entry) -> None:
        """Emit the first row that is still there; LIST_ORDERED of its list is the number of bytes that have left."""
        scope = flow.scope
        rows = scope.let(layout.list(session), "rows")
        left = scope.let(expr("ld_i64(L, W)", L=rows, W=lists.LIST_ORDERED), "left")
        kept = scope.let(expr("list_items(T, L) + B", T=session.table, L=rows, B=left), "kept")
        left = scope.let(expr("B + ld_i64(K, W)", B=left, K=kept, W=KEPT_BYTES), "left")
        flow.writer.code("st_i64(L, W, B)", L=rows, W=lists.LIST_ORDERED, B=left)
        flow.deliver(node, row_of(scope, [*_load(scope, layout, kept), *sessions.bounds(flow)]))
        with scope.when(expr("B == ld_i64(L, W)", B=left, L=rows, W=lists.LIST_USED)):
            sessions.closed(flow, session)

    close_sessions(stage, sessions, leave)
