"""Frames in generated code: where the rows of a partition, and the state of their frame, are kept."""

from __future__ import annotations

import ast

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow
from cq.codegen.prefetch import prefetch
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.aggregates import Accumulators
from cq.codegen.state.hash_tables import EntryField, Keys, TableLocals, lay_out, string_words
from cq.codegen.state.kept_values import KeptValues
from cq.codegen.values import Row
from cq.codegen.writer import expr
from cq.lang.schema import TimeAttribute
from cq.lang.types import INT64_MAX, INT64_MIN
from cq.planner.operators import Frames, Unit
from cq.records import dataclass
from cq.runtime.containers import frames as words
from cq.runtime.containers.records import RECORDS_LINKS
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word, beside


@dataclass(frozen=True, slots=True)
class FramedLayout:
    """Layout: the entry of a partition has `keys`, the back, the FRAME words; a record has its place, the row if rows
    are kept, and its accumulators.

    null: the word that is -1 where the key is NULL and that comes first, 1 where it comes last, else 0.
    peer: the word that identifies peers in a frame of rows.
    back: how many words further on those of the back are in the entry than in a record.
    kept: replaces accumulators in a record where frames are recomputed row by row: then the back has the frame's state.
    """

    keys: Keys
    null: int
    place: int
    peer: int
    accumulators: Accumulators
    row: tuple[EntryField, ...]
    kept: KeptValues | None
    back: int
    frame: int
    shapes: tuple[TableShape, TableShape]

    def at(self, word: int) -> int:
        """A FRAME word of the entry."""
        return beside(self.frame, word, "FRAME")


def layout_of(node: Frames) -> FramedLayout:
    keys = Keys.of([(k.type, k.nullable) for k in node.partition], name="PARTITION_KEY")
    null = Word(RECORDS_LINKS + 1, "FRAMED_NULL")
    place = Word(null + has_null(node), "FRAMED_PLACE")
    peer = Word(place + (node.frame.unit is not Unit.ROWS), "FRAMED_PEER")
    columns = [(f.type, f.nullable) for f in node.input.schema.fields] if node.keeps_rows else []
    row, first = lay_out(columns, peer + (node.peer is not None), "FRAMED_ROW")
    at = keys.next_word if node.walks else first
    accumulators = Accumulators.of(node.aggregates, at, "FRAMED", of_none=node.frame.may_be_empty)
    kept = KeptValues.lay_out(accumulators, first) if node.walks else None
    back = keys.next_word - accumulators.first_word
    frame = keys.next_word + accumulators.next_word - accumulators.first_word
    texts = tuple(w + back for w in accumulators.strings)
    entry = TableShape(frame + words.FRAME_WORDS, keys.next_word - ENTRY_FIRST, (*string_words(keys.fields), *texts))
    of_row, last = (accumulators.strings, accumulators.next_word) if kept is None else (kept.strings, kept.next_word)
    record = TableShape(last, 0, (*string_words(row), *of_row))
    return FramedLayout(keys, null, place, peer, accumulators, row, kept, back, Word(frame, "FRAMES"), (entry, record))


def rows_slot(stage: StageDraft, node: Frames) -> Slot:
    shapes = layout_of(node).shapes
    return stage.slot(node, "rows", lambda offset: Slot("rows", offset, "frames", node.identity, shapes=shapes))


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """Where a row is in its partition: its number, its time or its key. null: as in FramedLayout, if present."""

    value: ast.expr
    null: ast.expr | None = None


def has_null(node: Frames) -> bool:
    return node.key is not None and node.key.expr.nullable


def word_of(record: ast.expr, word: int) -> ast.expr:
    return expr("ld_i64(R, W)", R=record, W=word)


def time_of(flow: Flow, node: Frames, row: Row) -> ast.expr:
    """The event time of a row."""
    order = node.order
    assert isinstance(order, TimeAttribute)
    at = row.column(order.column).it
    return flow.scope.let(expr("T + S", T=at, S=order.shift_us), "t") if order.shift_us else at


@dataclass(frozen=True, slots=True)
class Framed:
    """The partition of a row, in the function being written."""

    layout: FramedLayout
    frames: ast.expr
    table: ast.expr
    entry: ast.expr

    @staticmethod
    def of(flow: Flow, row: Row, node: Frames, make: bool) -> Framed:
        scope, layout = flow.scope, layout_of(node)
        frames, local = framed_state(flow, node)
        prefetch(flow, node.input, layout.keys, local, node.partition)
        values = [emit(scope, row, k) for k in node.partition]

        def fresh(e: ast.expr) -> None:
            layout.accumulators.start(scope, back_of(layout, e, local.address))

        arrival = arrival_of(flow, node) if make and node.keeps_rows else flow.serial
        entry = layout.keys.probe(local, values, arrival, fresh) if make else layout.keys.find(local, values)
        return Framed(layout, frames, local.address, entry)

    @property
    def back(self) -> Entry:
        """The state of the back."""
        return back_of(self.layout, self.entry, self.table)

    def word(self, which: int) -> ast.expr:
        """A FRAME word."""
        return expr("ld_i64(E, W)", E=self.entry, W=self.layout.at(which))

    def record(self, flow: Flow, number: ast.expr, keeps: bool = False) -> Entry:
        """The record with this number. keeps: as in Entry."""
        return Entry(flow.scope.let(expr("record_at(F, N)", F=self.frames, N=number), "record"), self.frames, keeps)


def framed_state(flow: Flow, node: Frames) -> tuple[ast.expr, TableLocals]:
    """The rows of frames, and the table of their partitions in locals of the function."""
    slot = rows_slot(flow.stage, node)
    frames = ast.Name(flow.writer.word("state", slot.offset, "frames"), ast.Load())
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=words.FRAMES_TABLE)
        local = TableLocals.fixed(flow.scope, layout_of(node).shapes[0].entry_words, table)
        flow.tables[slot.offset] = local
        flow.stale.append(local.reload)
    return frames, local


def back_of(layout: FramedLayout, entry: ast.expr, table: ast.expr) -> Entry:
    return Entry(expr("E + B * 8", E=entry, B=layout.back), table)


def is_less(at: Framed, node: Frames, bound: PartitionPlace, which: int, after: bool = True) -> ast.expr:
    """Whether a bound is before the row at FRAME_START or FRAME_NEXT; if not `after`, whether it is after that row."""
    if node.frame.unit is Unit.ROWS:
        mine = PartitionPlace(at.word(words.FRAME_DROPPED if which == words.FRAME_START else words.FRAME_TAKEN))
    else:
        record = expr("record_at(F, N)", F=at.frames, N=at.word(which))
        null = word_of(record, at.layout.null) if bound.null is not None else None
        mine = PartitionPlace(word_of(record, at.layout.place), null)
    a, b = (bound, mine) if after else (mine, bound)
    less = expr("A < B", A=a.value, B=b.value)
    if a.null is None or b.null is None:
        return less
    return expr("M < N or M == N and L", M=a.null, N=b.null, L=less)


def is_taken(flow: Flow, node: Frames, at: Framed, place: PartitionPlace) -> ast.expr:
    """Whether the first row after the frame belongs to the frame of the row at a place."""
    within = expr("N != 0", N=at.word(words.FRAME_NEXT))
    if node.frame.end is None:
        return within
    end = bound_of(flow, node, place, node.frame.end)
    return expr("N and not L", N=within, L=is_less(at, node, end, words.FRAME_NEXT))


def is_dropped(node: Frames, at: Framed, start: PartitionPlace) -> ast.expr:
    """Whether the first row of the frame precedes the frame's start."""
    less = is_less(at, node, start, words.FRAME_START, after=False)
    return expr("D < T and L", D=at.word(words.FRAME_DROPPED), T=at.word(words.FRAME_TAKEN), L=less)


def bound_of(flow: Flow, node: Frames, place: PartitionPlace, offset: int) -> PartitionPlace:
    """A bound of the frame, saturated at the ends of all time. The frame of NULL is all NULLs."""
    if offset == 0:
        return place
    at: ast.expr = expr("wadd(P, O)", P=place.value, O=offset)
    if node.frame.unit is not Unit.ROWS:
        beyond, edge = ("P < E", INT64_MIN - offset) if offset < 0 else ("P > E", INT64_MAX - offset)
        known = expr(beyond, P=place.value, E=edge)
        at = expr("pick(B, L, AT)", B=known, L=INT64_MIN if offset < 0 else INT64_MAX, AT=at)
    if place.null is not None:
        at = expr("pick(N != 0, P, AT)", N=place.null, P=place.value, AT=at)
    return PartitionPlace(flow.scope.let(at, "bound"), place.null)
