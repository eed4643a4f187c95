"""sort: the rows of each partition, or the first of them by order, are kept until the partition leaves."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import (
    CLOSER_ARGUMENTS,
    FINISHER_ARGUMENTS,
    Flow,
    closes,
    closing,
    consumes,
    due_by_data,
    finishes,
    function,
    row_of,
)
from cq.codegen.prefetch import prefetch
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.entry_moves import Held, holds, ranked_rows
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    TableLocals,
    as_words,
    lay_out,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.values import Row, Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Column
from cq.lang.types import INT64_MIN, Physical
from cq.planner.operators import OrderKey, Sort
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import ranks_words as ranks
from cq.runtime.containers.ranks_words import KEY_TEXT, KEY_TEXT_DESCENDING, KEY_WORD, KIND_BITS
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word, beside


@dataclass(frozen=True, slots=True)
class SortLayout:
    """Layout: `keys` in the entry of a partition; the order words, the columns and texts that are no columns in a
    record. compared: what the order compares, in the form of RANKS_KEYS."""

    keys: Keys
    fields: tuple[EntryField, ...]
    columns: int
    compared: tuple[int, ...]
    shapes: tuple[TableShape, TableShape]


def layout_of(node: Sort) -> SortLayout:
    keys = Keys.of([(k.type, k.nullable) for k in node.partition], name="PARTITION_KEY")
    order_words = _leads(node.order) + sum(_width(k) for k in node.order)
    columns = [(f.type, f.nullable) for f in node.input.schema.fields]
    computed = [(k.expr.type, False) for k in node.order if _is_text(k) and not isinstance(k.expr, Column)]
    first = Word(ranks.RANKED_ORDER + order_words, "RANKED_VALUES")
    fields, end = lay_out([*columns, *computed], first, "RANKED")
    left, texts = iter(fields[len(columns) :]), list[EntryField | None]()
    for k in node.order:
        texts.append((fields[k.expr.index] if isinstance(k.expr, Column) else next(left)) if _is_text(k) else None)
    entry = TableShape(keys.next_word + ranks.RANK_WORDS, keys.next_word - ENTRY_FIRST, string_words(keys.fields))
    record = TableShape(end, 0, string_words(fields))
    compared = tuple(_compared(node.order, texts))
    return SortLayout(keys, fields, len(columns), compared, (entry, record))


def _leads(order: Sequence[OrderKey]) -> bool:
    """Whether the order words begin with one that decides most comparisons: the first key is NULL in some rows only."""
    return order[0].expr.nullable


def _width(key: OrderKey) -> int:
    """How many order words a key has: one for NULLs, if possible, then those of its value."""
    return key.expr.nullable + (2 if key.expr.type.physical is Physical.I128 else 1)


def _is_text(key: OrderKey) -> bool:
    return key.expr.type.physical is Physical.BYTES


def _compared(order: Sequence[OrderKey], texts: Sequence[EntryField | None]) -> list[int]:
    """The words of a record that are compared one after the other, and how."""
    found: list[int] = []
    word = ranks.RANKED_ORDER + _leads(order)
    for key, text in zip(order, texts, strict=True):
        for _ in range(_width(key)):
            found.append((word << KIND_BITS) + KEY_WORD)
            word += 1
        if text is not None:
            found.append((text.word << KIND_BITS) + (KEY_TEXT_DESCENDING if key.descending else KEY_TEXT))
    return found


def _slot(stage: StageDraft, node: Sort) -> Slot:
    layout = layout_of(node)
    keep = -1 if node.keep is None else node.keep
    return stage.slot(
        node, "rows",
        lambda offset: Slot(
            "rows", offset, "ranks", node.identity, shapes=layout.shapes,
            parameters=(keep, node.offset, *layout.compared),
        ),
    )  # fmt: skip


@holds("sort")
def held_rows(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of each partition."""
    assert isinstance(node, Sort)
    return (ranked_rows("rows", layout_of(node).keys),)


@due_by_data("sort")
def sort_due(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """The time of some partition; none if all leave at the end.

    None either if admission sends all such times, unless rows come that an earlier stage has made at instants. A stage
    that collects the rows of several workers takes none of its own.
    """
    assert isinstance(node, Sort)
    if not node.times or stage.planned.collects or (node.on_grid and not stage.planned.instants):
        return ()
    return (_due(stage, node),)


def _due(stage: StageDraft, node: Sort) -> DueWord:
    """When the first partition leaves."""
    return DueWord(_slot(stage, node), ranks.RANKS_NEXT)


@consumes("sort", copies_text=False)
def consume_sort(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Add the row to its partition; at the end late rows count too."""
    assert isinstance(node, Sort)
    if node.times:
        with flow.on_time(node):
            _keep(flow, node, row)
        return
    late, flow.late = flow.late, None
    _keep(flow, node, row)
    flow.late = late


def _keep(flow: Flow, node: Sort, row: Row) -> None:
    """Add the row to its partition, unless enough rows that precede it are kept."""
    scope, layout, slot = flow.scope, layout_of(node), _slot(flow.stage, node)
    state = ast.Name(flow.writer.word("state", slot.offset, "ranks"), ast.Load())
    local = _table(flow, slot, layout)
    prefetch(flow, node.input, layout.keys, local, node.partition)
    values = [emit(scope, row, k) for k in node.partition]
    given = [emit(scope, row, k.expr) for k in node.order]
    arrival = arrival_of(flow, node)
    leaves: ast.expr = ast.Constant(abi.NEVER)
    if node.times:
        time = node.times[0]
        leaves = expr("T + S", T=row.column(time.column).it, S=time.shift_us + time.lag_us + 1)

    def fresh(e: ast.expr) -> None:
        flow.writer.code("ranks_open(R, E, T)", R=state, E=e, T=leaves)

    entry = layout.keys.probe(local, values, arrival, fresh)
    order = [word for key, value in zip(node.order, given, strict=True) for word in _order_words(scope, key, value)]
    if _leads(node.order):
        order.insert(0, _lead(scope, node.order[0], *order[:2]))
    if node.keep is None:
        _store(flow, node, layout, state, entry, row, given, order, arrival)
        return
    worst = beside(layout.keys.next_word, ranks.RANK_WORST, "RANK")
    with scope.when(expr("W <= ld_i64(E, WORST)", W=order[0], E=entry, WORST=worst)):
        _store(flow, node, layout, state, entry, row, given, order, arrival)


def _table(flow: Flow, slot: Slot, layout: SortLayout) -> TableLocals:
    """The table of the partitions in locals of the function."""
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=ranks.RANKS_TABLE)
        local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shapes[0].entry_words, table)
        flow.stale.append(local.reload)
    return local


def _order_words(scope: Scope, key: OrderKey, value: Val) -> list[ast.expr]:
    """Words that compare as the values of the key do: a word for NULLs, if there can be some, then the value."""
    found: list[ast.expr] = []
    if key.expr.nullable:
        null = value.null if value.null is not None else ast.Constant(False)
        first, other = (0, 1) if key.nulls_first else (1, 0)
        found.append(scope.let(expr("pick(N, A, B)", N=null, A=first, B=other), "null_rank"))
    if _is_text(key):
        address, length = value.parts
        if value.null is not None:
            length = scope.let(expr("pick(N, 0, L)", N=value.null, L=length), "length")
        words: list[ast.expr] = [scope.let(expr("text_order(A, L)", A=address, L=length), "rank")]
    else:
        words = as_words(scope, value)
        if key.expr.type.is_float:  # the bits of negative numbers grow as the number gets smaller
            words = [scope.let(expr("pick(W < 0, W ^ MOST, W)", W=words[0], MOST=abi.NEVER), "rank")]
        elif key.expr.type.physical is Physical.I128:  # the low word has no sign
            low, high = words
            words = [high, scope.let(expr("W ^ LEAST", W=low, LEAST=INT64_MIN), "rank")]
    if key.descending:
        words = [scope.let(expr("W ^ -1", W=word), "rank") for word in words]
    return [*found, *words]


def _lead(scope: Scope, key: OrderKey, null_rank: ast.expr, word: ast.expr) -> ast.expr:
    """A word that orders rows as the first key does, except adjacent values: NULL is at the very end."""
    least, most = -abi.NEVER - 1, abi.NEVER
    null, at = (0, least) if key.nulls_first else (1, most)
    return scope.let(expr("pick(R == N, AT, W >> 1)", R=null_rank, N=null, AT=at, W=word), "lead")


def _store(
    flow: Flow, node: Sort, layout: SortLayout, state: ast.expr, entry: ast.expr, row: Row, given: Sequence[Val],
    order: Sequence[ast.expr], arrival: ast.expr,
) -> None:  # fmt: skip
    """Add a record with the row and its order words to the partition."""
    scope, writer = flow.scope, flow.writer
    record = ast.Name(writer.let(expr("record_new(R)", R=state), "record"), ast.Load())
    with scope.when(expr("R == 0", R=record)):
        flow.no_memory("rows that are sorted")
    for n, word in enumerate(order):
        writer.code("st_i64(R, W, V)", R=record, W=beside(ranks.RANKED_ORDER, n, str(n)), V=word)
    values = [row.column(i) for i in range(layout.columns)]
    values += [_plain(scope, v) for k, v in zip(node.order, given, strict=True) if _is_text(k) and _computed(k)]
    for f, value in zip(layout.fields, values, strict=True):
        store_field(scope, f, record, state, value)
    store_nulls(scope, layout.fields, record, values)
    writer.code("ranks_commit(R, E, A)", R=state, E=entry, A=arrival)


def _computed(key: OrderKey) -> bool:
    return not isinstance(key.expr, Column)


def _plain(scope: Scope, value: Val) -> Val:
    """A text, empty where it is NULL."""
    if value.null is None:
        return value
    address, length = value.parts
    return Val(value.type, (address, scope.let(expr("pick(N, 0, L)", N=value.null, L=length), "length")))


@closes("sort")
def close_sort(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the partitions that are due; it resumes where a full port stopped it."""
    assert isinstance(node, Sort)
    if not node.times:
        return
    slot = _slot(stage, node)
    name = f"close_{slot.offset}"
    due = _due(stage, node)
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        stage.writer.code("if DUE != instant:\n    return DONE", DUE=due.next_end, DONE=abi.DONE)
        _emit(flow, node, slot, ast.Name("instant", ast.Load()))


@finishes("sort")
def finish_sort(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits every partition."""
    assert isinstance(node, Sort)
    slot = _slot(stage, node)
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{slot.offset}", FINISHER_ARGUMENTS, node, event) as flow:
        _emit(flow, node, slot, ast.Constant(abi.NEVER))


def _emit(flow: Flow, node: Sort, slot: Slot, instant: ast.expr) -> None:
    writer, scope, layout = flow.writer, flow.scope, layout_of(node)
    state = ast.Name(writer.word("state", slot.offset, "ranks"), ast.Load())
    left = expr("ld_i64(R, W)", R=state, W=ranks.RANKS_LEFT)
    with scope.when(expr("LEFT == 0 and ranks_due(R, I) == 0", LEFT=left, R=state, I=instant)):
        flow.no_memory("rows that are sorted")
    with writer.while_(expr("LEFT != 0", LEFT=left)), scope.block():
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                flow.leave(ast.Constant(abi.MORE))
        record = scope.let(expr("ranks_first(R)", R=state), "record")
        writer.code("arrival = ld_i64(E, FIRST)", E=record, FIRST=ranks.RANKED_FIRST)
        values = load_fields(scope, layout.fields[: layout.columns], record, state)
        flow.deliver(node, row_of(scope, values))
        writer.code("ranks_pop(R)", R=state)
    flow.leave(ast.Constant(abi.DONE))
