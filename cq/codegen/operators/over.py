"""over: one entry per partition, holding the values that LAG will need and the running aggregates."""

from __future__ import annotations

import ast
from functools import partial

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, closes, consumes
from cq.codegen.prefetch import prefetch
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.aggregates import Accumulators
from cq.codegen.state.entry_moves import Held, entries, holds
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    TableLocals,
    load_field,
    outlives,
    store_field,
    string_words,
    words_of,
)
from cq.codegen.values import Row, Val
from cq.codegen.waiting_rows import close_buffer, when_due
from cq.codegen.writer import Fill, expr
from cq.lang.expressions import Column
from cq.lang.types import Physical
from cq.planner.operators import Lag, Over
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, replace
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout.pipeline import TableShape
from cq.runtime.layout.words import Word, beside


@dataclass(frozen=True, slots=True)
class LagRing:
    """The last `offset` values of a LAG's argument: a counting word, then for each a NULL word and the value."""

    call: Lag
    word: int

    @property
    def stride(self) -> int:
        return 1 + words_of(self.call.arg.type)

    @property
    def words(self) -> int:
        return 1 + self.stride * self.call.offset

    @property
    def string_words(self) -> tuple[int, ...]:
        if self.call.arg.type.physical is not Physical.BYTES:
            return ()
        return tuple(self.word + 2 + n * self.stride for n in range(self.call.offset))


@dataclass(frozen=True, slots=True)
class OverLayout:
    """The layout of a partition's entry."""

    keys: Keys
    lags: tuple[LagRing, ...]
    accumulators: Accumulators
    shape: TableShape


def layout_of(node: Over) -> OverLayout:
    keys = Keys.of([(k.type, k.nullable) for k in node.partition], ordered=False, name="PARTITION_KEY")
    word = keys.next_word
    lags: list[LagRing] = []
    for call in node.calls:
        if isinstance(call, Lag):
            lags.append(LagRing(call, Word(word, f"LAG{len(lags)}_SEEN")))
            word += lags[-1].words
    accumulators = Accumulators.of([c for c in node.calls if isinstance(c, AggregateCall)], word, "RUNNING")
    strings = (*string_words(keys.fields), *(w for ring in lags for w in ring.string_words), *accumulators.strings)
    shape = TableShape(accumulators.next_word, keys.next_word - ENTRY_FIRST, strings)
    if (until := node.until) is not None:
        place = next(i for i, e in enumerate(node.partition) if isinstance(e, Column) and e.index == until.column)
        shape = replace(shape, until_word=keys.fields[place].word, behind_us=until.shift_us + until.lag_us)
    return OverLayout(keys, tuple(lags), accumulators, shape)


def _copies_text(node: LogicalNode) -> bool:
    """LAG gives the value that is being overwritten."""
    assert isinstance(node, Over)
    return any(c.type.physical is Physical.BYTES for c in node.calls)


@consumes("over", copies_text=_copies_text)
def consume_over(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """With a delay the row waits for the watermark; else it is processed at once."""
    assert isinstance(node, Over)
    if node.order is None:
        _take(flow, row, node)
        return
    with flow.on_time(node):
        if flow.stage.planned.waits:
            when_due(flow, node, 0, row, partial(_take, node=node))
        else:
            _take(flow, row, node)


@closes("over")
def close_over(stage: StageDraft, node: LogicalNode) -> None:
    """With a delay: a function that takes the rows the watermark has reached."""
    assert isinstance(node, Over)
    if node.order is not None and stage.planned.waits:
        close_buffer(stage, node, 0, partial(_take, node=node))


def over_table(flow: Flow, node: Over) -> tuple[TableLocals, OverLayout]:
    """The node's table in locals of the function, and the layout of its entries."""
    layout = layout_of(node)
    slot = flow.stage.table_slot(node, "partitions", layout.shape)
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(state, W)", W=slot.offset)
        local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shape.entry_words, table)
        flow.stale.append(local.reload)
    return local, layout


def _take(flow: Flow, row: Row, node: Over) -> None:
    """Look the partition up, compute the calls, remember the row, deliver it."""
    scope = flow.scope
    local, layout = over_table(flow, node)
    prefetch(flow, node.input, layout.keys, local, node.partition)
    values = [emit(scope, row, k) for k in node.partition]

    def fresh(e: ast.expr) -> None:
        layout.accumulators.start(scope, Entry(e, local.address))

    entry = Entry(layout.keys.recall(local, values, flow.serial, fresh), local.address)
    lagged = iter([_lag(flow, ring, entry, row) for ring in layout.lags])
    layout.accumulators.add(scope, entry, row, ast.Constant(0))
    running = iter(layout.accumulators.values(scope, entry))
    results = [next(lagged) if isinstance(call, Lag) else next(running) for call in node.calls]
    flow.deliver(node, row.with_added(len(node.input.schema), results))


def _lag(flow: Flow, ring: LagRing, entry: Entry, row: Row) -> Val:
    """The value `offset` rows back, then the ring advances. The new value replaces the oldest."""
    scope, call, writer = flow.scope, ring.call, flow.writer
    result = scope.variables(call.type, call.nullable, "lag")
    seen = scope.let(expr("ld_i64(E, W)", E=entry.address, W=ring.word), "seen")
    place: ast.expr = ast.Constant(0)
    if call.offset > 1:
        place = scope.let(expr("srem(S, N)", S=seen, N=call.offset), "place")
    value = emit(scope, row, call.arg)
    held = EntryField(call.arg.type, Word(1, "LAG_VALUE"), Word(0, "LAG_NULL"), 0)
    values = beside(ring.word, 1, "VALUES")
    inside = expr("E + (W + P * STRIDE) * 8", E=entry.address, W=values, P=place, STRIDE=ring.stride)
    at = scope.let(inside, "lagged")
    with scope.when(expr("S >= N", S=seen, N=call.offset)):
        nulls = scope.let(expr("ld_i64(A, W)", A=at, W=held.null_word), "nulls")
        old = load_field(scope, held, at, entry.table, nulls)
        copied = outlives(scope, old)
        scope.assign(result, copied if result.null is not None else Val(call.type, copied.parts))
    if call.default is not None:
        with scope.otherwise():
            scope.assign(result, emit(scope, row, call.default))
    is_null: Fill = 0 if value.null is None else expr("pick(N, 1, 0)", N=value.null)
    writer.code("st_i64(A, W, N)", A=at, W=held.null_word, N=is_null)
    store_field(scope, held, at, entry.table, value)
    writer.code("st_i64(E, W, S + 1)", E=entry.address, W=ring.word, S=seen)
    return result


@holds("over")
def held_over(node: LogicalNode) -> tuple[Held, ...]:
    """An entry for each partition."""
    assert isinstance(node, Over)
    return (entries("partitions", layout_of(node).keys),)
