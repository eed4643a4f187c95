"""Joins whose rows match within one window: the rows of a key are in runs, one for each window
(cq/runtime/containers/runs.py).

A left row that leaves alone meets no right row after its match. It keeps its place in the run, by which rows that wait
are found; but a walk joins neighbouring rows with a match, and later ones step over all of them at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closing, function, row_of
from cq.codegen.matching import (
    LEFT,
    RIGHT,
    KeptMatch,
    Others,
    assign_all,
    leave_if_matched,
    match_waiting,
    meet,
    meet_or_leave,
    where_not_null,
)
from cq.codegen.prefetch import prefetch_runs
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.entry_moves import Held, window_runs
from cq.codegen.state.hash_tables import (
    EntryField,
    Keys,
    TableLocals,
    lay_out,
    load_field,
    load_fields,
    store_field,
    store_nulls,
    string_words,
)
from cq.codegen.values import Row, Val, null_of
from cq.codegen.waiting_rows import over
from cq.codegen.writer import expr
from cq.lang.expressions import Column, Expr
from cq.lang.schema import TimeAttribute
from cq.lang.types import Physical
from cq.planner.operators import IntervalJoin, JoinKind
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import runs_words as words
from cq.runtime.containers.table_words import ENTRY_FIRST, TABLE_ARENA, TABLE_COUNT
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word


@dataclass(frozen=True, slots=True)
class WindowSide:
    """One input, and the form of its rows in runs.

    due_us: how long after a row's own time its window is over.  waits: rows that nothing has matched by then leave.
    marked: a row notes whether it has a match.
    fields: of the columns that a row keeps; the others are its time and the parts of its key in `told`.
    """

    port: int
    input: LogicalNode
    exprs: tuple[Expr, ...]
    time: TimeAttribute
    due_us: int
    waits: bool
    marked: bool
    told: dict[int, int]
    fields: dict[int, EntryField]
    row_words: int

    @staticmethod
    def of(node: IntervalJoin, port: int) -> WindowSide:
        """The side of a port."""
        input, exprs = node.inputs[port], (node.left_keys, node.right_keys)[port]
        time = (node.left_time, node.right_time)[port]
        expiry_us = (node.left_expiry_us, node.right_expiry_us)[port]
        waits = (node.kind.left_unmatched, node.kind.right_unmatched)[port]
        told = {e.index: n for n, e in enumerate(exprs) if isinstance(e, Column) and not e.type.is_float}
        kept = [n for n in range(len(input.schema)) if n not in told and n != time.column]
        columns = [(input.schema.fields[n].type, input.schema.fields[n].nullable) for n in kept]
        marked = waits or (node.kind is JoinKind.SEMI and port == LEFT)
        first = words.ROW_WAITING if marked else 0
        fields, end = lay_out(columns, first, ("LEFT_VALUE", "RIGHT_VALUE")[port])
        by_column = dict(zip(kept, fields, strict=True))
        return WindowSide(
            port, input, exprs, time, time.shift_us + expiry_us + 1, waits, marked, told, by_column, max(end, 1)
        )  # fmt: skip

    @property
    def name(self) -> str:
        return ("left", "right")[self.port]

    @property
    def row_bytes(self) -> int:
        return self.row_words * 8

    @property
    def shape(self) -> TableShape:
        return TableShape(self.row_words, 0, string_words(list(self.fields.values())))

    def load(self, flow: Flow, row: ast.expr, table: ast.expr, due: ast.expr, keys: Sequence[Val]) -> list[Val]:
        """The values of the row at an address. due: when its window ends.  keys: those of its key."""
        loaded = load_fields(flow.scope, list(self.fields.values()), row, table)
        values = dict(zip(self.fields, loaded, strict=True))
        for column, n in self.told.items():
            values[column] = Val(keys[n].type, keys[n].parts)
        if self.time.column not in self.told:
            at = flow.scope.let(expr("D - N", D=due, N=self.due_us), "time")
            values[self.time.column] = Val(self.input.schema.fields[self.time.column].type, (at,))
        return [values[n] for n in range(len(self.input.schema))]


@dataclass(frozen=True, slots=True)
class WindowedJoin:
    """Such a join. An entry of a window: the key, the runs of both sides and, where rows wait, the entry's number."""

    node: IntervalJoin
    keys: Keys
    sides: tuple[WindowSide, WindowSide]

    @staticmethod
    def of(node: IntervalJoin) -> WindowedJoin:
        keys = Keys.of([(k.type, False) for k in node.left_keys], ordered=False, name="RUNS_KEY")
        return WindowedJoin(node, keys, (WindowSide.of(node, LEFT), WindowSide.of(node, RIGHT)))

    @property
    def waits(self) -> bool:
        """Whether rows of any side wait."""
        return self.sides[LEFT].waits or self.sides[RIGHT].waits

    @property
    def shapes(self) -> tuple[TableShape, ...]:
        entry_words = self.keys.next_word + words.KEY_NUMBER + self.waits
        keys = TableShape(entry_words, self.keys.next_word - ENTRY_FIRST, string_words(self.keys.fields))
        return keys, self.sides[LEFT].shape, self.sides[RIGHT].shape

    def slot(self, stage: StageDraft) -> Slot:
        """The state word of its windows."""
        node, more = self.node, (int(self.keys.next_word), int(self.waits))
        return stage.slot(
            node, "runs", lambda at: Slot("runs", at, "runs", node.identity, shapes=self.shapes, parameters=more)
        )

    def runs(self, flow: Flow) -> str:
        """The address of its windows, in a local of the function."""
        return flow.writer.word("state", self.slot(flow.stage).offset, "runs")

    def table(self, flow: Flow) -> TableLocals:
        """The keys of the current window, in locals of the function."""
        offset = self.slot(flow.stage).offset
        if offset not in flow.tables:
            runs = self.runs(flow)
            at_hand = expr("ld_i64(R, W)", R=runs, W=words.RUNS_TABLE)
            table = TableLocals.fixed(flow.scope, self.shapes[0].entry_words, at_hand)
            flow.tables[offset] = table
            flow.stale.append(lambda: table.use(at_hand))
        return flow.tables[offset]

    def run_of(self, side: WindowSide) -> Word:
        """Where in an entry the run of a side is, in bytes."""
        name = f"{side.name.upper()}_RUN_BYTES"
        return Word((self.keys.next_word + side.port * words.RUN_WORDS) * 8, name)

    @property
    def number_word(self) -> Word:
        return Word(self.keys.next_word + words.KEY_NUMBER, "RUNS_KEY_NUMBER")


def held_windows(node: IntervalJoin) -> tuple[Held, ...]:
    """The rows of both sides."""
    return (window_runs("runs", WindowedJoin.of(node).keys),)


def due_window(stage: StageDraft, node: IntervalJoin) -> DueWord:
    """The first window that is over."""
    return DueWord(WindowedJoin.of(node).slot(stage), words.RUNS_NEXT)


def take(flow: Flow, node: IntervalJoin, port: int, row: Row) -> None:
    """The row beside each match in the run of the other side, by arrival; then append it to its own."""
    scope, writer, join = flow.scope, flow.writer, WindowedJoin.of(node)
    mine, other = join.sides[port], join.sides[1 - port]
    values = [row.column(i) for i in range(len(mine.input.schema))]
    due = scope.let(expr("T + N", T=values[mine.time.column].it, N=mine.due_us), "due")
    keys = [emit(scope, row, k) for k in mine.exprs]
    at, end = (writer.let(ast.Constant(0), hint) for hint in ("at", "run_end"))
    stretch = writer.let(ast.Constant(0), "stretch"), writer.let(ast.Constant(0), "behind")
    run = _Run(flow, join, other, due, keys, at, end, stretch)
    if not mine.marked:
        with _kept(flow, join, port, due, keys) as found, _unless_right_row_kept(flow, join, mine, found):
            run.begin(found)
            if node.kind.left_only:
                match_waiting(flow, node, values, run.others)
            else:
                meet(flow, node, port, values, run.others)
            _keep(flow, join, mine, found, values, ast.Constant(0))
        return
    entry, kept = (writer.let(ast.Constant(0), hint) for hint in ("entry", "kept"))
    with _kept(flow, join, port, due, keys) as found:
        writer.set(entry, found)
        writer.set(kept, 1)
        run.begin(found)
    if node.kind.left_only:
        stays = expr("K == 1 and M == 0", K=kept, M=leave_if_matched(flow, node, values, run.others, kept))
        matched: ast.expr = ast.Constant(0)
    else:
        matched = ast.Name(meet_or_leave(flow, node, port, values, run.others, kept), ast.Load())
        stays = expr("K == 1", K=kept)
    with scope.when(stays):
        _keep(flow, join, mine, ast.Name(entry, ast.Load()), values, matched)


@contextmanager
def _unless_right_row_kept(flow: Flow, join: WindowedJoin, mine: WindowSide, entry: ast.expr) -> Iterator[None]:
    """Inside, the row may still match some left row of its key and window that leaves alone.

    Without a residual condition the first right row matches all of them, so later ones are neither compared nor kept.
    """
    if not join.node.kind.left_only or join.node.residual is not None:
        yield
        return
    run = expr("ld_i64(E + N, W) & MASK == 0", E=entry, N=join.run_of(mine), W=words.RUN_ROWS, MASK=words.ROWS_MASK)
    with flow.scope.when(run):
        yield


@contextmanager
def _kept(flow: Flow, join: WindowedJoin, port: int, due: ast.expr, keys: Sequence[Val]) -> Iterator[ast.expr]:
    """Inside, the row's window is not over and it has a key; yields the key's entry in the current window.

    Nothing else can match the row: its matches are in the same window.
    """
    scope = flow.scope
    runs, table = join.runs(flow), join.table(flow)
    with where_not_null(flow, keys) as known, scope.when(expr("D > OVER", D=due, OVER=over(flow))):
        with scope.when(expr("D != ld_i64(R, W)", D=due, R=runs, W=words.RUNS_DUE)):
            with scope.when(expr("runs_window(R, D) == 0", R=runs, D=due)):
                flow.no_memory("open windows")
            table.use(expr("ld_i64(R, W)", R=runs, W=words.RUNS_TABLE))
        mine, other = join.sides[port], join.sides[1 - port]
        prefetch_runs(
            flow, mine.input, mine.exprs, join.keys, table, (join.run_of(other), join.run_of(mine)), mine.row_bytes
        )
        yield join.keys.probe(table, known, flow.serial, lambda e: _number(flow, join, table, e))


def _number(flow: Flow, join: WindowedJoin, table: TableLocals, entry: ast.expr) -> None:
    """Store the number of a new entry if rows wait."""
    if join.waits:
        number = expr("ld_i64(T, W) - 1", T=table.table, W=TABLE_COUNT)
        flow.writer.code("st_i64(E, W, N)", E=entry, W=join.number_word, N=number)


def _keep(
    flow: Flow, join: WindowedJoin, mine: WindowSide, entry: ast.expr, values: Sequence[Val], matched: ast.expr
) -> None:  # fmt: skip
    """Append the row to its key's run; it waits for a match if it has none and is to leave alone then."""
    scope, writer, table = flow.scope, flow.writer, join.table(flow)
    run = scope.let(expr("E + N", E=entry, N=join.run_of(mine)), "run")
    stored = [(f, values[column]) for column, f in mine.fields.items()]
    texts: ast.expr = ast.Constant(0)
    for _, value in stored:
        if value.type.physical is Physical.BYTES:
            length = value.parts[1] if value.null is None else expr("pick(N, 0, L)", N=value.null, L=value.parts[1])
            texts = expr("T + L", T=texts, L=length)
    added = expr("run_add(T, R, SIZE, TEXTS)", T=table.table, R=run, SIZE=mine.row_bytes, TEXTS=texts)
    place: ast.expr = ast.Name(writer.let(added, "row"), ast.Load())
    with scope.when(expr("P == 0", P=place)):
        flow.no_memory("rows that may match")
    for f, value in stored:
        store_field(scope, f, place, table.address, value)
    store_nulls(scope, [f for f, _ in stored], place, [v for _, v in stored])
    if mine.waits:
        writer.code("st_i64(P, W, M)", P=place, W=words.ROW_MATCHED, M=matched)
        with scope.when(expr("M == 0", M=matched)):
            key = expr("ld_i64(E, W) * 2 + SIDE", E=entry, W=join.number_word, SIDE=mine.port)
            last = expr("(ld_i64(R, W) & MASK) - 1", R=run, W=words.RUN_ROWS, MASK=words.ROWS_MASK)
            waits = expr("runs_wait(R, K, P, S) == 0", R=join.runs(flow), K=key, P=last, S=flow.serial)
            with scope.when(waits):
                flow.no_memory("rows that may match")


@dataclass(frozen=True, slots=True)
class _Run:
    """The run of a side, row by row. at: the address of the next row.  end: the address after the last.

    due: when the window of its rows ends.  keys: those of its key.  stretch: the addresses of the last stretch of rows
    that meet no others, and behind it.
    """

    flow: Flow
    join: WindowedJoin
    side: WindowSide
    due: ast.expr
    keys: Sequence[Val]
    at: str
    end: str
    stretch: tuple[str, str]

    def begin(self, entry: ast.expr) -> None:
        """Write code that goes to the run in an entry of the current window."""
        scope, writer = self.flow.scope, self.flow.writer
        run = scope.let(expr("E + N", E=entry, N=self.join.run_of(self.side)), "others")
        arena = expr("ld_i64(T, W)", T=self.join.table(self.flow).table, W=TABLE_ARENA)
        writer.set(self.at, expr("A + ld_i64(R, W)", A=arena, R=run, W=words.RUN_PLACE))
        rows = expr("ld_i64(R, W) & MASK", R=run, W=words.RUN_ROWS, MASK=words.ROWS_MASK)
        writer.set(self.end, expr("A + ROWS * SIZE", A=self.at, ROWS=rows, SIZE=self.side.row_bytes))

    @property
    def others(self) -> Others:
        return Others(self.side.name, self.side.input, expr("A != E", A=self.at, E=self.end), self._next)

    @contextmanager
    def _next(self) -> Iterator[KeptMatch]:
        writer, side = self.flow.writer, self.side
        row = ast.Name(writer.let(ast.Name(self.at, ast.Load()), "other"), ast.Load())
        writer.set(self.at, expr("A + SIZE", A=self.at, SIZE=side.row_bytes))
        with self._without_match(row):
            values = side.load(self.flow, row, self.join.table(self.flow).address, self.due, self.keys)
            yield KeptMatch(
                values, expr("D - N", D=self.due, N=side.due_us - side.time.shift_us), lambda: self._has_match(row)
            )  # fmt: skip

    @contextmanager
    def _without_match(self, row: ast.expr) -> Iterator[None]:
        """Inside, the row still meets others: one that leaves alone meets none after its match.

        Rows with a match beside each other become a stretch, whose length its first row has.
        """
        if not (self.join.node.kind.left_only and self.side.marked):
            yield
            return
        scope, writer = self.flow.scope, self.flow.writer
        first, behind = self.stretch
        length = scope.let(expr("ld_i64(P, W)", P=row, W=words.ROW_MATCHED), "stretch_bytes")
        with scope.when(expr("N != 0", N=length)):
            writer.set(self.at, expr("P + N", P=row, N=length))
            with writer.if_(expr("P == B", P=row, B=behind)):
                writer.code("st_i64(F, W, A - F)", F=first, W=words.ROW_MATCHED, A=self.at)
            with writer.otherwise():
                writer.set(first, row)
            writer.set(behind, ast.Name(self.at, ast.Load()))
        with scope.when(expr("N == 0", N=length)):
            yield

    def _has_match(self, row: ast.expr) -> None:
        if self.side.marked:
            self.flow.writer.code("st_i64(P, W, SIZE)", P=row, W=words.ROW_MATCHED, SIZE=self.side.row_bytes)


def close(stage: StageDraft, node: IntervalJoin) -> None:
    """A function that empties the windows that are over, after emitting the rows that nothing has matched."""
    join, instant = WindowedJoin.of(node), ast.Name("instant", ast.Load())
    name = f"expire_{join.slot(stage).offset}"
    stage.closers.append(Closer(name, due_window(stage, node).next_end, stage.order[id(node)]))
    event = closing(stage, node, instant, ast.Constant(0))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        runs = join.runs(flow)
        alone = flow.writer.let(expr("runs_over(R, I)", R=runs, I=instant), "alone")
        if join.waits:
            with flow.writer.while_(expr("A == 1", A=alone)), flow.scope.block():
                _leave(flow, join, runs)
                flow.writer.code("st_i64(R, W, ld_i64(R, W) + 1)", R=runs, W=words.RUNS_CURSOR)
                flow.writer.set(alone, expr("runs_over(R, I)", R=runs, I=instant))
        flow.leave(ast.Constant(abi.DONE))


def _leave(flow: Flow, join: WindowedJoin, runs: str) -> None:
    """Emit the current row, beside NULLs unless left rows leave alone; with rows of both sides, left ones of an event
    first."""
    scope, writer = flow.scope, flow.writer
    for port in flow.ports.values():
        with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
            flow.leave(ast.Constant(abi.MORE))

    def word(which: int, hint: str) -> ast.expr:
        return scope.let(expr("ld_i64(R, W)", R=runs, W=which), hint)

    writer.code("arrival = ld_i64(R, W)", R=runs, W=words.RUNS_SERIAL)
    table, entry, row = word(words.RUNS_KEYS, "keys"), word(words.RUNS_ENTRY, "entry"), word(words.RUNS_ROW, "row")
    due = word(words.RUNS_OVER, "due")
    keys = [load_field(scope, f, entry, table, None) for f in join.keys.fields]
    left, right = join.sides
    if not right.waits:
        nulls = [] if join.node.kind.left_only else [null_of(f.type) for f in right.input.schema.fields]
        flow.deliver(join.node, row_of(scope, [*left.load(flow, row, table, due, keys), *nulls]))
        return
    values = [[scope.variables(f.type, True) for f in side.input.schema.fields] for side in join.sides]
    writer.code("arrival = arrival * 2 + ld_i64(R, W)", R=runs, W=words.RUNS_SIDE)
    with scope.when(expr("ld_i64(R, W) == LEFT", R=runs, W=words.RUNS_SIDE, LEFT=LEFT)):
        assign_all(flow, values[LEFT], left.load(flow, row, table, due, keys))
    with scope.otherwise():
        assign_all(flow, values[RIGHT], right.load(flow, row, table, due, keys))
    flow.deliver(join.node, row_of(scope, [*values[LEFT], *values[RIGHT]]))
