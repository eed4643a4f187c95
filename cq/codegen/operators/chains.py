"""trigger, in chains: several workers evaluate the transactions of a ticket, the kernel delivers their results.

Functions of the stage are called before the kernel takes a ticket (cq/runtime/engine/ways/chains.py says by whom and
when): `begin`, `collect` for a share's events (cq/codegen/collecting.py), `evaluate` for a share's transactions. A row
that a transaction names is laid out in the access like an entry of its table, so that the code of the serial loop reads
and writes it there. Only the kernel inserts and deletes rows.

If transactions take their places as they run (cq/runtime/engine/ways/requests.py), `evaluate` evaluates one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from cq.codegen.accessed_rows import Accessed, undone
from cq.codegen.collecting import (
    CollectedEvent,
    PlacedProgram,
    collected,
    event_row,
    image,
    stage_function,
    write_collect,
)
from cq.codegen.flow import CHAINED, Flow, consumes
from cq.codegen.keyed_tables import prepare, tables_of
from cq.codegen.matching import assign_all
from cq.codegen.operators.trigger import TransactionWriter
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.hash_tables import TableLocals, load_fields, outlives
from cq.codegen.state.keyed_rows import KeyedLayout, delete_row
from cq.codegen.transaction_outputs import (
    ACCEPTED,
    REJECTED,
    Emitted,
    Made,
    count_rejection,
    deliver_made,
    keep_value,
    kept_value,
    made_of,
    made_of_records,
    relations_read,
)
from cq.codegen.values import Row, Val, kept_parts
from cq.codegen.writer import expr
from cq.lang.types import VARCHAR, Physical
from cq.planner.operators import Trigger
from cq.planner.physical.transactions import transactions_of
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import Delete, Insert, Program, Step, every
from cq.records import dataclass, field
from cq.runtime.layout import chains as c
from cq.runtime.layout.pipeline import Chains

ARGUMENTS = ("state", "batch", "share", "constants")
OF_ONE = ("state", "transaction", "constants")
BRING = "if chains_bring(state, transaction, constants) == 0:\n    return -1"  # without memory for texts
# How many transactions ahead the parts of a transaction are fetched. Each part leads to the next one, so there must be
# time between them: a line from another core takes 60 to 100 ns. With this and the arrays, evaluating an event of Toll
# Processing, three transactions, took two workers 115 ns instead of 142. Other distances were not measured.
AHEAD_ITSELF, AHEAD_ACCESSES, AHEAD_ENTRIES = 8, 5, 3
assert AHEAD_ITSELF <= c.QUEUE_END
# The number of accesses of a later transaction that the kernel fetches, from the first: it does not know yet which rows
# come or go. Fetching more would delay the current event for rows that mostly stay. Other numbers were not measured.
FETCHED = 4


def write_chains(stage: StageDraft, leaf: LogicalNode) -> Chains:
    """Write the functions that run before the kernel."""
    every_one = collected(stage)
    with stage_function(stage, "chains_begin", ARGUMENTS, 0) as flow:
        for node in transactions_of(stage.plan):
            prepare(flow, node, tables_of(flow, node))
        flow.writer.code("return 1")
    with stage_function(stage, "chains_collect", ARGUMENTS, 0) as flow:
        write_collect(flow, leaf)
    with stage_function(stage, "chains_bring", OF_ONE, 0) as flow:
        _write_bring(flow, every_one)
    if kernel_writes(stage):
        with stage_function(stage, "chains_store", OF_ONE, 0) as flow:
            _write_store(flow, every_one)
    with stage_function(stage, "chains_evaluate", ARGUMENTS, -1) as flow:
        (_write_evaluate_one if stage.asks else _write_evaluate)(flow, leaf, every_one)
    return Chains(
        begin="chains_begin",
        collect="chains_collect",
        evaluate="chains_evaluate",
        event_words=every_one.words,
        events=events_word(stage),
        programs=tuple(p.first for p in every_one.programs),
        access_bytes=every_one.access_bytes,
        nodes=tuple(n.identity for n in transactions_of(stage.plan)),
    )


def events_word(stage: StageDraft) -> int:
    """The word of the state that leads to the events of a ticket."""
    key = (id(stage.plan), "events")
    if key not in stage.scratch:
        stage.scratch[key] = stage.scratch_words(1, "EVENTS")
    return stage.scratch[key]


def moves(stage: StageDraft, *steps: type[Step]) -> bool:
    """Whether rows come or go through such steps."""
    return any(_moves(p, *steps) for n in transactions_of(stage.plan) for p in n.programs)


def _moves(program: Program, *steps: type[Step]) -> bool:
    return any(isinstance(s, steps or (Insert, Delete)) for s in every(program.steps))


def kernel_writes(stage: StageDraft) -> bool:
    """Whether rows may be left to the kernel: they come or go, or have texts."""
    return moves(stage) or any(KeyedLayout.of(t).has_texts for n in transactions_of(stage.plan) for t in n.tables)


# -- the rows of a transaction ---------------------------------------------------------------------------------------


def _tables(flow: Flow) -> list[TableLocals]:
    """The tables of all operators of the stage that run transactions."""
    return [t for n in transactions_of(flow.stage.plan) for t in tables_of(flow, n)]


@contextmanager
def _each_access(flow: Flow, every_one: CollectedEvent) -> Iterator[str]:
    """Inside, for each access of the transaction: a local that leads to it."""
    writer = flow.writer
    access = writer.let(expr("ld_i64(transaction, W)", W=c.TRANSACTION_ACCESSES), "access")
    count = writer.let(expr("ld_i64(transaction, W)", W=c.TRANSACTION_COUNT), "count")
    with writer.for_(writer.fresh("n"), 0, count), flow.scope.block():
        yield access
        writer.code("A += SIZE", A=access, SIZE=every_one.access_bytes)


def _of_table(
    flow: Flow, every_one: CollectedEvent, access: str, then: Callable[[TableLocals, KeyedLayout], None]
) -> None:
    """then: writes what to do with the row that an access names, by its table."""
    tables = _tables(flow)
    number = flow.writer.let(expr("ld_i64(A, W) >> SHIFT", A=access, W=c.ACCESS_TAG, SHIFT=c.TAG_TABLE_SHIFT), "number")
    for n, (table, layout) in enumerate(zip(tables, every_one.shapes, strict=True)):
        with flow.scope.when(ast.Constant(True) if len(tables) == 1 else expr("N == T", N=number, T=n)):
            then(table, layout)


def _find(
    flow: Flow, every_one: CollectedEvent, access: str, entry: str, then: Callable[[TableLocals, KeyedLayout], None]
) -> None:
    """Set the local `entry` to the row of an access in its table, or 0. then: writes what to do if it is there."""

    def sought(table: TableLocals, layout: KeyedLayout) -> None:
        flow.writer.set(entry, layout.keys.find(table, _keys(flow, layout, access)))
        with flow.scope.when(expr("E != 0", E=entry)):
            then(table, layout)

    _of_table(flow, every_one, access, sought)


def _copy_in(flow: Flow, access: str, entry: str, table: TableLocals, layout: KeyedLayout) -> None:
    """Copy the row of an entry into the access, with its texts, because the kernel moves those of the table."""
    writer = flow.writer
    writer.code("copy_row(E, A)", E=entry, A=access)
    for f in layout.fields:
        if f.type.physical is Physical.BYTES:
            length = flow.scope.let(expr("string_length(E, W)", E=entry, W=f.word), "length")
            address = flow.scope.let(expr("string_address(T, E, W)", T=table.table, E=entry, W=f.word), "text")
            for n, part in enumerate(outlives(flow.scope, Val(f.type, (address, length))).parts):
                writer.code("st_i64(A, W, V)", A=access, W=image(f.at(n)), V=part)


def _copy_out(flow: Flow, access: str, entry: ast.expr | str, table: TableLocals, layout: KeyedLayout) -> None:
    """Copy the row of the access into its entry; in the kernel, which alone uses the texts of the table."""
    if not layout.has_texts:
        flow.writer.code("write_row(A, E)", A=access, E=entry)
        return
    values = load_fields(flow.scope, layout.fields, _entry_of(access), None)
    layout.store(flow.scope, expr("E", E=entry), table.address, values)


def _write_bring(flow: Flow, every_one: CollectedEvent) -> None:
    """Bring the rows of a transaction into its accesses as earlier ones have left them."""
    writer, scope = flow.writer, flow.scope
    with _each_access(flow, every_one) as access:
        state = writer.let(expr("ld_i64(A, W)", A=access, W=c.ACCESS_STATE), "state_")
        with scope.when(expr("S & REPEATED == 0", S=state, REPEATED=c.REPEATED)):
            writer.set(state, expr("S & LATEST", S=state, LATEST=c.LATEST))
            entry = writer.let(ast.Constant(0), "entry")
            before = writer.let(expr("ld_i64(A, W)", A=access, W=c.ACCESS_BEFORE), "before")
            with scope.when(expr("B != 0", B=before)):
                kept = expr("S | ld_i64(B, W) & KEPT", S=state, B=before, W=c.ACCESS_STATE, KEPT=c.FOUND | c.CHANGED)
                writer.set(state, kept)
                writer.set(entry, expr("ld_i64(B, W)", B=before, W=c.ACCESS_ENTRY))
                writer.code("copy_row(B + N, A)", B=before, N=8 * c.ACCESS_IMAGE, A=access)
            with scope.otherwise():
                with scope.when(expr("ld_i64(A, W) != NO_ROW", A=access, W=c.ACCESS_TAG, NO_ROW=c.NO_ROW)):
                    _find(flow, every_one, access, entry, partial(_copy_in, flow, access, entry))
                with scope.when(expr("E != 0", E=entry)):
                    writer.set(state, expr("S | FOUND", S=state, FOUND=c.FOUND))
            writer.code("st_i64(A, W, E)", A=access, W=c.ACCESS_ENTRY, E=entry)
            writer.code("st_i64(A, W, S)", A=access, W=c.ACCESS_STATE, S=state)
    writer.code("return 1")


def _write_store(flow: Flow, every_one: CollectedEvent) -> None:
    """Store the rows of a transaction that are left to the kernel in their tables: those that exist and that no later
    transaction names, and those that it has made or deleted."""
    writer, scope = flow.writer, flow.scope
    wanted = c.LATEST | c.FOUND | c.CHANGED
    with _each_access(flow, every_one) as access:
        state = writer.let(expr("ld_i64(A, W)", A=access, W=c.ACCESS_STATE), "state_")
        for step, left, write in ((Delete, c.TURNED, _remove), (Insert, c.TURNED | c.FOUND, _make)):
            if moves(flow.stage, step):
                with scope.when(expr("S & BITS == LEFT", S=state, BITS=c.TURNED | c.FOUND, LEFT=left)):
                    _of_table(flow, every_one, access, partial(write, flow, access))
        kept = expr("S & BITS == WANTED", S=state, BITS=wanted | c.TURNED, WANTED=wanted)
        with scope.when(kept), scope.when(expr("workers_write(A) == 0", A=access)):
            entry = writer.let(ast.Constant(0), "entry")
            _find(flow, every_one, access, entry, partial(_copy_out, flow, access, entry))
    writer.code("return 1")


def _remove(flow: Flow, access: str, table: TableLocals, layout: KeyedLayout) -> None:
    """Remove the row from its table. Without locks another transaction may have deleted it."""
    delete_row(flow.scope, table, layout, _keys(flow, layout, access))


def _make(flow: Flow, access: str, table: TableLocals, layout: KeyedLayout) -> None:
    """Insert the row into its table."""
    entry = layout.keys.probe(table, _keys(flow, layout, access), ast.Constant(0), lambda _: None)
    _copy_out(flow, access, entry, table, layout)


def _entry_of(access: ast.expr | str) -> ast.expr:
    """The part of an access that is laid out like an entry."""
    return expr("A + N", A=access, N=8 * c.ACCESS_IMAGE)


def _keys(flow: Flow, layout: KeyedLayout, access: str) -> list[Val]:
    """The key of the row that an access names."""
    found = []
    for f in layout.keys.fields:
        parts = kept_parts(ast.Name(access, ast.Load()), image(f.word), f.type)
        found.append(Val(f.type, tuple(flow.scope.let(p, "key") for p in parts)))
    return found


# -- evaluate --------------------------------------------------------------------------------------------------------


def _write_evaluate(flow: Flow, leaf: LogicalNode, every_one: CollectedEvent) -> None:
    """Evaluate from the cursor on, up to a transaction that is not ready."""
    writer, scope = flow.writer, flow.scope
    size = every_one.access_bytes
    at = writer.let(expr("ld_i64(share, W)", W=c.SHARE_CURSOR), "at")
    writer.code("done = 0\ntransaction = 0\nif AT != 0:\n    transaction = ld_i64(AT, 0)", AT=at)
    with writer.while_(expr("transaction != 0")), scope.block():
        writer.code("if transaction_ready(transaction, SIZE) == 0:\n    break", SIZE=size)
        _write_fetch(flow, every_one, at)
        _write_one(flow, leaf, every_one)
        writer.code("done = 1\nAT += 8\ntransaction = ld_i64(AT, 0)", AT=at)
    writer.code("st_i64(share, W, pick(transaction != 0, AT, 0))\nreturn done", W=c.SHARE_CURSOR, AT=at)


def _write_fetch(flow: Flow, every_one: CollectedEvent, at: str) -> None:
    """Prefetch what later transactions of the queue need: the farthest one itself, then the accesses of a nearer one,
    then their entries. at: where the current one is."""
    writer, scope = flow.writer, flow.scope
    tables = _tables(flow)
    writer.code("prefetch(ld_i64(AT, TURNS))", AT=at, TURNS=AHEAD_ITSELF)
    for turns in (AHEAD_ACCESSES, AHEAD_ENTRIES):
        ahead = writer.let(expr("ld_i64(AT, TURNS)", AT=at, TURNS=turns), "ahead")
        with scope.when(expr("A != 0", A=ahead)):
            access = writer.let(expr("ld_i64(A, W)", A=ahead, W=c.TRANSACTION_ACCESSES), "later")
            count = writer.let(expr("ld_i64(A, W)", A=ahead, W=c.TRANSACTION_COUNT), "count")
            with writer.for_(writer.fresh("n"), 0, count), scope.block():
                if turns == AHEAD_ACCESSES:
                    writer.code("prefetch(A)", A=access)
                else:
                    _write_fetch_entry(flow, tables, access)
                writer.code("A += SIZE", A=access, SIZE=every_one.access_bytes)


def _write_fetch_entry(flow: Flow, tables: Sequence[TableLocals], access: str) -> None:
    """Prefetch the row's place in the table of an access, if no access before it has the row."""
    writer, scope = flow.writer, flow.scope
    with scope.when(expr("ld_i64(A, W) == 0", A=access, W=c.ACCESS_BEFORE)):
        tag = writer.let(expr("ld_i64(A, W)", A=access, W=c.ACCESS_TAG), "tag")
        for n, table in enumerate(tables):
            with scope.when(expr("T >> SHIFT == N", T=tag, SHIFT=c.TAG_TABLE_SHIFT, N=n)):
                slot = expr("shr_u(T & MASK, S)", T=tag, MASK=c.TAG_HASH_MASK, S=table.shift)
                with scope.when(expr("I == 0", I=table.index)):
                    writer.code("prefetch(A)", A=table.in_slot(slot))
                with scope.otherwise():
                    writer.code("prefetch(I + S * 8)", I=table.index, S=slot)


def _write_evaluate_one(flow: Flow, leaf: LogicalNode, every_one: CollectedEvent) -> None:
    """Evaluate the transaction at the cursor."""
    flow.writer.code("transaction = ld_i64(share, W)", W=c.SHARE_CURSOR)
    with flow.scope.block():
        _write_one(flow, leaf, every_one)
    flow.writer.code("return 1")


def _write_one(flow: Flow, leaf: LogicalNode, every_one: CollectedEvent) -> None:
    """Evaluate the transaction in the local `transaction`."""
    writer, scope = flow.writer, flow.scope
    size = every_one.access_bytes
    writer.code("i = ld_i64(transaction, W)", W=c.TRANSACTION_ROW)
    row = event_row(flow, leaf)
    program = writer.let(expr("ld_i64(transaction, W)", W=c.TRANSACTION_PROGRAM), "program")
    writer.code(BRING)
    for number, p in enumerate(every_one.programs):
        with scope.when(expr("P == N", P=program, N=number)):
            _Evaluated(flow, p.node, p.program, tables_of(flow, p.node), row, place=p, size=size).write_all()
    writer.code("transaction_settled(transaction, SIZE)", SIZE=size)


@dataclass(slots=True)
class _Evaluated(TransactionWriter):
    """Writes one program over the rows in its accesses. `Accessed.entry` is the entry part of the access.

    size: bytes of an access.
    """

    place: PlacedProgram = field(kw_only=True)
    size: int = field(kw_only=True)

    def write_all(self) -> None:
        """The program's body, the rows after it, what it emits."""
        writer, transaction = self.flow.writer, ast.Name("transaction", ast.Load())
        self.evaluate(self.place.number)
        with self.scope.when(expr("O == DONE", O=self.outcome, DONE=ACCEPTED)):
            for at in self.accessed.values():
                if at.number in self.place.single:
                    with self.scope.when(expr("D == 1", D=at.dirty)):
                        self.leave_row(at)
            if self.records is not None and self.place.records is not None:
                word = self.place.at(self.place.records)
                writer.code("st_i64(transaction, W, R)", W=word, R=self.records.head)
            for made, words in zip(self.emitted, self.place.emitted, strict=True):
                writer.code("st_i64(transaction, W, pick(T, 1, 0))", W=self.place.at(words[0]), T=made.there)
                with self.scope.when(made.there):
                    for value, word in zip(made.values, words[1:], strict=True):
                        keep_value(self.scope, transaction, self.place.at(word), value)
        with self.scope.when(expr("O == BAD", O=self.outcome, BAD=REJECTED)):
            keep_value(self.scope, transaction, c.TRANSACTION_VALUES, self.reason)
            if undone(self.node, self.program):
                writer.code(BRING)
        writer.code("st_i64(transaction, W, O)", W=c.TRANSACTION_OUTCOME, O=self.outcome)

    def note_changes(self) -> None:
        """Nothing is noted: the rows are brought in again."""

    def access(self, number: int) -> str:
        """The access with this number; of several to one row it need not be the first."""
        single = self.place.single.get(number)
        if single is not None:
            return self.flow.writer.let(expr("ld_i64(transaction, W)", W=self.place.at(single)), "access")
        found = self.place.lists[number]
        assert self.element is not None, "an element of no array"
        return self.flow.writer.let(
            expr(
                "ld_i64(transaction, W) + (P * OF + TURN) * SIZE",
                W=self.place.at(found.word), P=self.element, OF=found.of, TURN=found.turn, SIZE=self.size,
            ), "access",
        )  # fmt: skip

    def fetch(self, at: Accessed) -> None:
        scope, writer, layout = self.scope, self.flow.writer, KeyedLayout.of(at.table)
        access = writer.let(expr("access_of_row(A)", A=self.access(at.number)), "access")
        writer.set(at.entry, _entry_of(access))
        with scope.when(expr("ld_i64(A, W) & FOUND != 0", A=access, W=c.ACCESS_STATE, FOUND=c.FOUND)):
            writer.set(at.found, True)
            values = layout.load(scope, at.table, expr("E", E=at.entry), None)
            assign_all(self.flow, at.others, [values[n] for n in at.table.others])

    def put_row(self, at: Accessed) -> None:
        """Write the current state of a row that an element names to its access."""
        writer = self.flow.writer
        if at.access.table in self.moving:
            self.leave_row(at)
            return
        access = writer.let(expr("E - N", E=at.entry, N=8 * c.ACCESS_IMAGE), "access")
        KeyedLayout.of(at.table).store(self.scope, expr("E", E=at.entry), None, at.others)
        writer.code("st_i64(A, W, ld_i64(A, W) | CHANGED)", A=access, W=c.ACCESS_STATE, CHANGED=c.CHANGED)

    def leave_row(self, at: Accessed) -> None:
        """Write the current state of the row to its access, with a state that says whether it exists. What elements
        have made or deleted before stays TURNED."""
        writer = self.flow.writer
        row = writer.let(expr("E - N", E=at.entry, N=8 * c.ACCESS_IMAGE), "access")
        KeyedLayout.of(at.table).store(self.scope, expr("E", E=at.entry), None, at.others)
        now = writer.let(expr("pick(F, FOUND, 0)", F=at.found, FOUND=c.FOUND), "now")
        was = writer.let(expr("ld_i64(A, W)", A=row, W=c.ACCESS_STATE), "was")
        kept = c.LATEST | c.TURNED
        state = writer.let(expr("S & KEPT | CHANGED | N", S=was, KEPT=kept, CHANGED=c.CHANGED, N=now), "state_")
        with self.scope.when(expr("S & FOUND != N", S=was, FOUND=c.FOUND, N=now)):
            writer.set(state, expr("S | TURNED", S=state, TURNED=c.TURNED))
            writer.code("st_i64(A, W, 0)", A=row, W=c.ACCESS_ENTRY)
        writer.code("st_i64(A, W, S)", A=row, W=c.ACCESS_STATE, S=state)


# -- the kernel ------------------------------------------------------------------------------------------------------


@consumes(CHAINED, copies_text=False)
def consume_chains(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Insert or delete in the tables the rows that an event's transactions have made or deleted, and deliver what they
    emit."""
    assert isinstance(node, Trigger)
    writer, scope = flow.writer, flow.scope
    every_one = collected(flow.stage)
    events = writer.word("state", events_word(flow.stage), "events")
    event = writer.let(expr("E + i * SIZE", E=events, SIZE=8 * every_one.words), "event")
    made: list[Made] = []
    first = 0
    for p in (p for p in every_one.programs if p.node is node):
        if _moves(p.program):
            _write_fetch_moved(flow, every_one, event, p)
        transaction = writer.let(expr("E + N", E=event, N=8 * p.first), "transaction")
        outcome = writer.let(expr("ld_i64(T, W)", T=transaction, W=c.TRANSACTION_OUTCOME), "outcome")
        if kernel_writes(flow.stage):
            left = expr("ld_i64(T, W) != 0", T=transaction, W=c.TRANSACTION_LEFT)
            stored = expr("chains_store(state, T, constants) == 0", T=transaction)
            fired = expr("O != UNFIRED", O=outcome, UNFIRED=c.UNFIRED)
            with scope.when(fired), scope.when(left), scope.when(stored):
                flow.no_memory("rows of a table")
        count_rejection(flow, node, p.number, outcome)
        emitted = []
        beside = ast.Name(event, ast.Load())
        for at in p.emitted:
            there = expr("ld_i64(E, W) == 1", E=event, W=at[0])
            values = (kept_value(beside, word, f.type) for f, word in zip(p.program.outputs, at[1:], strict=True))
            emitted.append(Emitted(there, first, tuple(values)))
        reason = kept_value(beside, p.first + c.TRANSACTION_VALUES, VARCHAR)
        if p.records is None:
            made += made_of(outcome, p.number, emitted, reason, relations_read(flow, node))
        else:
            head = expr("ld_i64(E, W)", E=event, W=p.records)
            made += made_of_records(node, p.number, outcome, head, reason, scope)
        first += len(p.program.outputs)
    if made and not node.contents:
        deliver_made(flow, node, row, made)


def _write_fetch_moved(flow: Flow, every_one: CollectedEvent, event: str, p: PlacedProgram) -> None:
    """Prefetch the rows that the program may make or delete for a later event, from the worker that evaluated it."""
    writer = flow.writer
    ahead = 8 * (c.EVENTS_BEHIND * every_one.words + p.first)
    access = writer.let(expr("ld_i64(E + N, W)", E=event, N=ahead, W=c.TRANSACTION_ACCESSES), "later")
    for number in range(min(len(p.single), FETCHED)):
        writer.code("prefetch(A + N)", A=access, N=number * every_one.access_bytes)
