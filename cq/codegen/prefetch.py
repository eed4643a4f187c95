"""Prefetching: the table entry a later row will need is fetched while this one is computed.

Only for keys that are plain columns of the source, or of the stage before: then the key of a row a few iterations ahead
costs a load and a hash. A useless prefetch does no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce

from cq.codegen.expressions.arrays import count_of, element
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow
from cq.codegen.join_sides import KeptSide, Side
from cq.codegen.state.hash_tables import Keys, TableLocals
from cq.codegen.state.prefetched_entries import LINE_BYTES, prefetch_entry, prefetch_numbered
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Column, Expr
from cq.lang.types import BIGINT, Physical
from cq.planner.plan.logical import at_leaf
from cq.planner.plan.node import LogicalNode
from cq.runtime.containers.lists import LIST_PLACE, LIST_USED
from cq.runtime.containers.runs_words import ROWS_MASK, RUN_PLACE, RUN_ROWS
from cq.runtime.containers.table_words import FETCH_INDEX, FETCH_SLOT, TABLE_ARENA
from cq.runtime.layout.words import Word, beside

# Bytes of an array that a prefetch fetches; the processor fetches the rest itself when the kernel reads on. Without it
# a kernel of Grep and Sum, whose arrays are 104 bytes long and half of them never read, took 14 % more, with twice as
# many bytes 3 % more.
ARRAY_BYTES = 128

# Bytes of a run of rows to prefetch.
RUN_BYTES = 128

# Bytes of a key's contiguous rows to prefetch: ten rows of one value.
SIDE_BY_SIDE_BYTES = 192

# Later elements are not prefetched: they would have left the cache when the kernel reads them.
MOST_ELEMENTS = Word(64, "MOST_ELEMENTS")


def prefetch(
    flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr], changed: bool = False
) -> None:
    """Write a prefetch for the key `exprs` over rows of `input`, if the key can be computed ahead cheaply.

    changed: as in `prefetch_entry`.
    """
    ahead, soon = flow.ahead, flow.soon
    below = source_columns(flow, input, exprs)
    if ahead is not None and soon is not None and below:
        _prefetch_entry(flow, keys, table, below, ahead, soon, changed)


def _prefetch_entry(
    flow: Flow, keys: Keys, table: TableLocals, below: Sequence[Expr], ahead: Row, soon: Row, changed: bool = False
) -> None:
    """Write a prefetch of the slot for the key of the row `ahead`, and of the entry for that of the row `soon`."""
    prefetch_entry(
        keys,
        table,
        lambda: [emit(flow.scope, ahead, e) for e in below],
        lambda: [emit(flow.scope, soon, e) for e in below],
        changed,
    )


def prefetch_ends(
    flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr], lists: Sequence[int]
) -> None:
    """Write prefetches for the ends of lists that a later row will write to, once its slot and entry were prefetched.

    lists: the words of an entry that begin them. The entry is known: it is the first of its hash, for nearly all keys.
    Texts are not hashed once more for that.
    """
    below = source_columns(flow, input, exprs)
    texts = any(e.type.physical is Physical.BYTES for e in below)
    if flow.soon is None or not below or not lists or texts:
        return
    scope = flow.scope
    with scope.when(table.fetches(FETCH_SLOT)):
        hash32 = keys.hash(scope, [emit(scope, flow.soon, e) for e in below])
        entry = scope.let(table.in_slot(scope.let(expr("shr_u(H, S)", H=hash32, S=table.shift), "slot")), "at")
        arena = scope.let(expr("ld_i64(T, W)", T=table.table, W=TABLE_ARENA), "arena")
        for word in lists:
            place, used = (beside(word, n, s) for n, s in ((LIST_PLACE, "PLACE"), (LIST_USED, "USED")))
            flow.writer.code("prefetch_to_write(A + ld_i64(E, P) + ld_i64(E, U))", A=arena, E=entry, P=place, U=used)


def prefetch_members(
    flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr], number_word: int,
    sets: Iterable[tuple[Keys, TableLocals, Expr]],
) -> None:  # fmt: skip
    """Write prefetches for the group of a later row, and for its members of sets of distinct values.

    A member's key is the number of the group, read from the entry to which the slot of the group leads, and a value.
    Texts are not hashed once more for that.
    """
    below = source_columns(flow, input, exprs)
    if flow.steps is None or not below or any(e.type.physical is Physical.BYTES for e in below):
        prefetch(flow, input, keys, table, exprs, changed=True)
        return
    slot, entry, row = flow.steps
    scope = flow.scope
    _prefetch_entry(flow, keys, table, below, slot, entry, changed=True)
    columns = [(members, held, source_columns(flow, input, (value,))) for members, held, value in sets]
    cheap = [(m, held, c[0]) for m, held, c in columns if c and c[0].type.physical is not Physical.BYTES]
    if not cheap:
        return
    with scope.when(reduce(lambda a, b: expr("A or B", A=a, B=b), (held.is_large() for _, held, _ in cheap))):
        at = _entry_of(flow, keys, table, below, row)
        with scope.when(expr("E != 0", E=at)):
            number = Val(BIGINT, (scope.let(expr("ld_i64(E, W)", E=at, W=number_word), "number"),))
            for members, held, column in cheap:
                value = emit(scope, row, column)
                prefetch_entry(members, held, partial(list, (number, Val(value.type, value.parts))), None, changed=True)


def prefetch_records(flow: Flow, node: LogicalNode, mine: KeptSide, other: KeptSide) -> None:
    """Write a prefetch for the entry and the first record that a row of one side will meet on the other.

    The entry is known by then: it is the first that the slot of the key leads to, for nearly all keys.
    """
    below = source_columns(flow, mine.input, mine.exprs)
    if flow.steps is None or not below:
        return
    slot, entry, row = flow.steps
    scope, writer, table = flow.scope, flow.writer, other.key_table(flow, node)
    _prefetch_entry(flow, other.keys, table, below, slot, entry)
    with scope.when(table.is_large()):
        found = _entry_of(flow, other.keys, table, below, row)
        with scope.when(expr("E != 0", E=found)):
            first = scope.let(other.first_of(found), "first")
            record, _ = other.record(flow, node, first)
            writer.code("prefetch(X)", X=record)
            several = other.has_several(found)
            if several is not None:
                with scope.when(several):
                    for line in range(LINE_BYTES, SIDE_BY_SIDE_BYTES, LINE_BYTES):
                        writer.code("prefetch(X + N)", X=record, N=line)


def prefetch_last(flow: Flow, node: LogicalNode, mine: Side) -> None:
    """Write a prefetch for what keeping a row will change: the entry of its key, and the key's last record."""
    below = source_columns(flow, mine.input, mine.exprs)
    if flow.steps is None or not below:
        return
    slot, entry, row = flow.steps
    scope, table = flow.scope, mine.key_table(flow, node)
    _prefetch_entry(flow, mine.keys, table, below, slot, entry, changed=True)
    with scope.when(table.is_large()):
        found = _entry_of(flow, mine.keys, table, below, row)
        with scope.when(expr("E != 0", E=found)):
            record, _ = mine.record(flow, node, scope.let(mine.last_of(found), "last"))
            flow.writer.code("prefetch_to_write(X)", X=record)


def prefetch_runs(
    flow: Flow, input: LogicalNode, exprs: Sequence[Expr], keys: Keys, table: TableLocals, runs: tuple[Word, Word],
    row_bytes: int,
) -> None:  # fmt: skip
    """Write a prefetch for the entry that a later row will need, the rows it will meet and where it will be stored.

    runs: where in an entry the run of the other side is, and its own.  row_bytes: of a row of its own side.
    """
    below = source_columns(flow, input, exprs)
    if flow.steps is None or not below:
        return
    slot, entry, row = flow.steps
    scope, writer = flow.scope, flow.writer
    _prefetch_entry(flow, keys, table, below, slot, entry)
    with scope.when(table.is_large()):
        at = _entry_of(flow, keys, table, below, row)
        with scope.when(expr("E != 0", E=at)):
            arena = scope.let(expr("ld_i64(T, W)", T=table.table, W=TABLE_ARENA), "arena")
            other, own = (scope.let(expr("A + N", A=at, N=run), "run") for run in runs)
            met = scope.let(expr("A + ld_i64(R, W)", A=arena, R=other, W=RUN_PLACE), "met")
            for line in range(0, RUN_BYTES, LINE_BYTES):
                writer.code("prefetch(M + N)", M=met, N=line)
            last = expr("ld_i64(R, W) & MASK", R=own, W=RUN_ROWS, MASK=ROWS_MASK)
            writer.code(
                "prefetch(A + ld_i64(R, W) + N * SIZE)", A=arena, R=own, W=RUN_PLACE, N=last, SIZE=row_bytes
            )  # fmt: skip


def _entry_of(flow: Flow, keys: Keys, table: TableLocals, below: Sequence[Expr], row: Row) -> str:
    """A local: the address of the entry that the slot of a row's key leads to, prefetched; 0 if there is none."""
    scope, writer = flow.scope, flow.writer
    hash32 = keys.hash(scope, [emit(scope, row, e) for e in below])
    place = scope.let(expr("shr_u(H, S)", H=hash32, S=table.shift), "slot")
    found = writer.let(table.in_slot(place), "at")
    with scope.when(expr("I != 0", I=table.index)):
        item = scope.let(expr("ld_i64(I, S)", I=table.index, S=place), "item")
        writer.set(found, expr("pick(X != 0, E, 0)", X=item, E=table.numbered(item)))
    return found


def prefetch_array(flow: Flow, input: LogicalNode, array: Expr) -> None:
    """Write a prefetch for the bytes of an array of a later row, if it is a column of the source.

    The prefetch goes beyond the end of a short array: mostly into the next row's.
    """
    below = source_columns(flow, input, (array,))
    if flow.lists is None or not below:
        return
    bytes_row, _, _ = flow.lists
    address, _ = emit(flow.scope, bytes_row, below[0]).parts
    for line in range(0, ARRAY_BYTES, LINE_BYTES):
        flow.writer.code("prefetch(A + N)", A=address, N=line)


def prefetch_elements(
    flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr], lists: Sequence[bool]
) -> None:
    """Write prefetches for the keys that elements of arrays give in later rows. lists: which of `exprs` are arrays,
    from which a key takes the element at one common place."""
    below = source_columns(flow, input, exprs)
    if flow.lists is None or not below:
        return
    _, slot_row, entry_row = flow.lists
    with flow.scope.when(table.is_large()), _each_key(flow, slot_row, below, lists) as values:
        prefetch_entry(keys, table, lambda: values, None)
    with flow.scope.when(table.fetches(FETCH_INDEX)), _each_key(flow, entry_row, below, lists) as values:
        prefetch_numbered(keys, table, values)


@contextmanager
def _each_key(flow: Flow, row: Row, exprs: Sequence[Expr], lists: Sequence[bool]) -> Iterator[list[Val]]:
    """Inside, the keys for one place of the arrays after the other, as if no element were NULL."""
    scope, writer = flow.scope, flow.writer
    values = [emit(scope, row, e) for e in exprs]
    counts = [ast.Name(writer.let(ast.Constant(0), "count"), ast.Load()) for _ in exprs]
    least: ast.expr = ast.Constant(MOST_ELEMENTS)
    for value, count, listed in zip(values, counts, lists, strict=True):
        if listed:
            with scope.when(ast.Constant(True) if value.null is None else expr("not N", N=value.null)):
                writer.set(count.id, count_of(scope, value))
            least = expr("min(L, C)", L=least, C=count)
    turn = writer.fresh("p")
    with writer.for_(turn, 0, scope.let(least, "places")), scope.block():
        place = ast.Name(turn, ast.Load())
        keys = [element(scope, v, c, place) if of else v for v, c, of in zip(values, counts, lists, strict=True)]
        yield [Val(k.type, k.parts) for k in keys]


def source_columns(flow: Flow, node: LogicalNode, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """The expressions over the scan that the rows come from, below filters, projections and unions, if all are plain
    columns there."""
    found = at_leaf(node, exprs, flow.leaf)
    below = found[1] if found is not None else ()
    return below if all(isinstance(e, Column) for e in below) else ()
