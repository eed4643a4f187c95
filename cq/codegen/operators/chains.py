"""trigger, in chains: several workers evaluate the transactions of a ticket, the kernel hands on what they have left.

Three functions of the stage are called before the kernel takes a ticket (cq/runtime/engine/ways/chains.py says by whom
and when): `begin`, `collect` of a share's events, `evaluate` of a share's transactions. What the last one makes stands
in the memory of the event (cq/runtime/layout/chains.py). A row that a transaction names is there as an entry of its
table would be, so that the code of the serial loop reads and writes it; tables are written by the kernel alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cq.codegen.accessed import Accessed
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CHAINED, Flow, StagePlan, consumes
from cq.codegen.matching import assign_all
from cq.codegen.operators.trigger import ACCEPTED, REJECTED, Made, Transaction, deliver_made, prepare, tables_of
from cq.codegen.ports import Position
from cq.codegen.scan import source_row
from cq.codegen.state.hash_tables import TableLocals
from cq.codegen.state.keyed_rows import Layout
from cq.codegen.values import Row, Scope, Val, any_null, is_true, null_of, value_words
from cq.codegen.writer import expr
from cq.lang.expressions import can_fail
from cq.lang.types import VARCHAR, DataType, Kind, Physical
from cq.planner.operators import Trigger
from cq.planner.physical.chains import accesses_of, transactions_of
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import Delete, Emit, Insert, Program, every
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout import chains as c
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.job import Chains
from cq.runtime.layout.words import WORDS_A_LINE, Word

ARGUMENTS = ("state", "batch", "share", "constants")


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a program's transaction is in the memory of an event: its words, its accesses by number, and what it emits:
    for each step a word that is 1 if it has, and the values.

    number: of the program in its operator.  tables: how many tables operators before that one have.
    """

    node: Trigger
    number: int
    program: Program
    tables: int
    first: int
    emitted: tuple[tuple[int, ...], ...]
    accesses: dict[int, int]


def placed(stage: StagePlan) -> tuple[tuple[Placed, ...], int]:
    """The transactions of an event, and how many words they take."""
    found: list[Placed] = []
    end, tables = 0, 0
    for node in transactions_of(stage.plan):
        end = _place(found, node, tables, end)
        tables += len(node.tables)
    return tuple(found), -(-end // WORDS_A_LINE) * WORDS_A_LINE


def _place(found: list[Placed], node: Trigger, tables: int, end: int) -> int:
    """Place the programs of an operator from a word on; the word behind them."""
    for number, program in enumerate(node.programs):
        first, end = end, end + c.TRANSACTION_VALUES + WORDS_A_VALUE
        emitted = []
        for step in every(program.steps):
            if isinstance(step, Emit):
                emitted.append((end, *(end + 1 + n * WORDS_A_VALUE for n in range(len(step.values)))))
                end += 1 + len(step.values) * WORDS_A_VALUE
        accesses = {}
        for access in accesses_of(program):
            accesses[access] = end
            end += c.ACCESS_IMAGE + Layout.of(node.tables[node.access(access).table]).shape.entry_words
        found.append(Placed(node, number, program, tables, first, tuple(emitted), accesses))
    return end


def write_chains(stage: StagePlan, leaf: LogicalNode) -> Chains:
    """Write the functions that come before the kernel."""
    _, words = placed(stage)
    with _entry(stage, "chains_begin") as flow:
        for node in transactions_of(stage.plan):
            prepare(flow, node, tables_of(flow, node))
        flow.writer.code("return 1")
    with _entry(stage, "chains_collect") as flow:
        _write_collect(flow, leaf)
        flow.writer.code("return 1")
    with _entry(stage, "chains_evaluate") as flow:
        _write_evaluate(flow, leaf)
    return Chains(
        begin="chains_begin",
        collect="chains_collect",
        evaluate="chains_evaluate",
        event_words=words,
        events=events_word(stage),
    )


def events_word(stage: StagePlan) -> int:
    """The word of the state that says where the events of a ticket are."""
    key = (id(stage.plan), "events")
    if key not in stage.scratch:
        stage.scratch[key] = stage.scratch_words(1, "EVENTS")
    return stage.scratch[key]


@contextmanager
def _entry(stage: StagePlan, name: str) -> Iterator[Flow]:
    """A function of the stage that is called before the kernel, and emits nothing. Without memory it returns 0."""

    def fail(code: ErrorCode, site: int) -> None:
        stage.writer.code("failed(state, CODE, SITE, -1, -1, 0)\nreturn 0", CODE=code, SITE=site)

    zero = ast.Constant(0)
    with stage.writer.function(name, ARGUMENTS):
        scope = Scope(stage.writer, stage.constants, stage.sites, fail)
        yield Flow(stage, scope, {}, zero, Position(zero, ast.Constant(abi.NEVER), 0, zero, zero), None, False)


def _row(flow: Flow, leaf: LogicalNode) -> Row:
    """The event whose number is in the local `i`."""
    places = flow.stage.columns.setdefault(0, {})
    return source_row(flow.scope, leaf.schema, places, 0, ast.Name("i", ast.Load()))


# -- collect ---------------------------------------------------------------------------------------------------------


def _write_collect(flow: Flow, leaf: LogicalNode) -> None:
    writer, scope = flow.writer, flow.scope
    programs, words = placed(flow.stage)
    row = _row(flow, leaf)
    events = writer.hoist(expr("ld_i64(share, W)", W=c.SHARE_EVENTS), "events")
    for word, name in ((c.SHARE_FIRST, "lo"), (c.SHARE_END, "hi")):
        writer.code("N = ld_i64(share, W)", N=name, W=word)
    with writer.for_("i", "lo", "hi"), scope.block():
        event = writer.let(expr("E + i * SIZE", E=events, SIZE=8 * words), "event")
        for number, p in enumerate(programs):
            when = p.program.when
            if when is None or can_fail(when):
                with scope.block():
                    _collect_one(flow, row, event, number, p)
                continue
            with scope.when(is_true(emit(scope, row, when))):
                _collect_one(flow, row, event, number, p)
            with scope.otherwise():
                writer.code(
                    "st_i64(E, W, UNFIRED)", E=event, W=p.first + c.TRANSACTION_OUTCOME, UNFIRED=c.UNFIRED
                )  # fmt: skip


def _collect_one(flow: Flow, row: Row, event: str, number: int, p: Placed) -> None:
    """A transaction and what it names are in the lists of the share."""
    writer, scope = flow.writer, flow.scope
    transaction = writer.let(expr("E + N", E=event, N=8 * p.first), "transaction")
    for word, value in (
        (c.TRANSACTION_ROW, ast.Name("i", ast.Load())),
        (c.TRANSACTION_PROGRAM, ast.Constant(number)),
        (c.TRANSACTION_OUTCOME, ast.Constant(0)),
    ):
        writer.code("st_i64(T, W, V)", T=transaction, W=word, V=value)
    mine = writer.let(ast.Constant(0), "mine")  # the hash by which the transaction has its share
    for turn, (access_number, first) in enumerate(p.accesses.items()):
        access = p.node.access(access_number)
        layout = Layout.of(p.node.tables[access.table])
        at = writer.let(expr("E + N", E=event, N=8 * first), "access")
        key = [emit(scope, row, k) for k in access.key]
        null = any_null(key)
        words = (
            (c.ACCESS_TRANSACTION, ast.Name(transaction, ast.Load())),
            (c.ACCESS_BEFORE, ast.Constant(0)),
            (c.ACCESS_DONE, ast.Constant(0)),
            (c.ACCESS_LATEST, ast.Constant(0)),
        )
        for word, value in words:
            writer.code("st_i64(A, W, V)", A=at, W=word, V=value)
        with scope.when(ast.Constant(True) if null is None else expr("not N", N=null)):
            known = [Val(k.type, k.parts) for k in key]
            for f, part_of_key in zip(layout.keys.fields, known, strict=True):
                for n, part in enumerate(value_words(part_of_key)):
                    writer.code("st_i64(A, W, V)", A=at, W=_image(f.at(n)), V=part)
            hash32 = layout.keys.hash(scope, known)
            kind = ((p.tables + access.table) << c.PLACE_TABLE_SHIFT) | (layout.shape.key_words << c.PLACE_KEY_SHIFT)
            writer.code("st_i64(A, W, KIND | H)", A=at, W=c.ACCESS_PLACE, KIND=kind, H=hash32)
            writer.code("list_access(list_for(share, H), A)", A=at, H=hash32)
            if turn == 0:
                writer.set(mine, hash32)
        if null is not None:
            with scope.otherwise():
                writer.code("st_i64(A, W, NO_ROW)", A=at, W=c.ACCESS_PLACE, NO_ROW=c.NO_ROW)
    writer.code("list_transaction(list_for(share, H), T)", H=mine, T=transaction)


def _image(word: int) -> int:
    """A word of an entry, in an access."""
    name = f"IMAGE_{word.name}" if isinstance(word, Word) else ""
    return Word(c.ACCESS_IMAGE + word, name) if name else c.ACCESS_IMAGE + word


# -- evaluate --------------------------------------------------------------------------------------------------------


def _write_evaluate(flow: Flow, leaf: LogicalNode) -> None:
    """From the cursor on, up to a transaction that is not ready."""
    writer, scope = flow.writer, flow.scope
    programs, _ = placed(flow.stage)
    row = _row(flow, leaf)
    writer.code("done = 0\ntransaction = ld_i64(share, W)", W=c.SHARE_CURSOR)
    with writer.while_(expr("transaction != 0")), scope.block():
        writer.code("i = ld_i64(transaction, W)", W=c.TRANSACTION_ROW)
        program = writer.let(expr("ld_i64(transaction, W)", W=c.TRANSACTION_PROGRAM), "program")
        ready = writer.let(ast.Constant(1), "ready")
        for number, p in enumerate(programs):
            with scope.when(expr("P == N", P=program, N=number)):
                for first in p.accesses.values():
                    before = scope.let(expr("ld_i64(transaction, W)", W=first - p.first + c.ACCESS_BEFORE), "before")
                    with scope.when(expr("B != 0", B=before)), scope.when(
                        expr("at_load_acq(B + W) == 0", B=before, W=8 * c.ACCESS_DONE)
                    ):  # fmt: skip
                        writer.set(ready, 0)
                with scope.when(expr("R == 1", R=ready)):
                    _Evaluated(flow, p.node, p.program, tables_of(flow, p.node), row, place=p).write_all()
        writer.code("if R == 0:\n    break", R=ready)
        writer.code("done = 1\ntransaction = ld_i64(transaction, W)", W=c.TRANSACTION_NEXT)
    writer.code("st_i64(share, W, transaction)\nreturn done", W=c.SHARE_CURSOR)


@dataclass(slots=True)
class _Evaluated(Transaction):
    """Writes one program over the rows that stand beside its transaction."""

    place: Placed = field(kw_only=True)

    def write_all(self) -> None:
        """The rows before the transaction, its body, the rows behind it, what it emits."""
        for access, first in self.place.accesses.items():
            self.bring(access, first)
        self.evaluate(self.place.number)
        with self.scope.when(expr("O == DONE", O=self.outcome, DONE=ACCEPTED)):
            for access in self.place.accesses:
                self.publish(access)
            for made, words in zip(self.emitted, self.place.emitted, strict=True):
                self.flow.writer.code("st_i64(transaction, W, pick(T, 1, 0))", W=self.at(words[0]), T=made.there)
                with self.scope.when(made.there):
                    for value, word in zip(made.values, words[1:], strict=True):
                        _store(self.flow, "transaction", self.at(word), value)
        with self.scope.when(expr("O == BAD", O=self.outcome, BAD=REJECTED)):
            _store(self.flow, "transaction", c.TRANSACTION_VALUES, self.reason)
        self.flow.writer.code("st_i64(transaction, W, O)", W=c.TRANSACTION_OUTCOME, O=self.outcome)
        for first in self.place.accesses.values():
            self.flow.writer.code("at_store_rel(transaction + W, 1)", W=8 * self.at(first + c.ACCESS_DONE))

    def at(self, word: int) -> int:
        """A word of the event's memory, from the transaction on."""
        return word - self.place.first

    def bring(self, number: int, first: int) -> None:
        """The row is beside the transaction as those before it have left it."""
        scope, writer = self.scope, self.flow.writer
        access = self.node.access(number)
        table, layout = self.tables[access.table], Layout.of(self.node.tables[access.table])
        at = self.access(number)
        before = scope.let(expr("ld_i64(A, W)", A=at, W=c.ACCESS_BEFORE), "before")
        last = layout.shape.entry_words - layout.keys.next_word
        with scope.when(expr("B != 0", B=before)):
            state = expr("ld_i64(B, W) & KEPT", B=before, W=c.ACCESS_STATE, KEPT=c.FOUND | c.CHANGED)
            writer.code("st_i64(A, W, S)", A=at, W=c.ACCESS_STATE, S=state)
            writer.code("st_i64(A, W, ld_i64(B, W))", A=at, W=c.ACCESS_ENTRY, B=before)
            for word in range(layout.keys.next_word, layout.keys.next_word + last):
                writer.code("st_i64(A, W, ld_i64(B, W))", A=at, B=before, W=_image(word))
        with scope.otherwise():
            found = writer.let(ast.Constant(0), "entry")
            with scope.when(expr("ld_i64(A, W) != NO_ROW", A=at, W=c.ACCESS_PLACE, NO_ROW=c.NO_ROW)):
                entry = layout.keys.find(table, _keys(self.flow, layout, at))
                writer.set(found, entry)
            writer.code("st_i64(A, W, E)", A=at, W=c.ACCESS_ENTRY, E=found)
            writer.code("st_i64(A, W, pick(E != 0, FOUND, 0))", A=at, W=c.ACCESS_STATE, E=found, FOUND=c.FOUND)
            with scope.when(expr("E != 0", E=found)):
                for word in range(layout.keys.next_word, layout.keys.next_word + last):
                    writer.code("st_i64(A, W, ld_i64(E, F))", A=at, W=_image(word), E=found, F=word)

    def access(self, number: int) -> ast.expr:
        """The address of an access."""
        return expr("transaction + N", N=8 * self.at(self.place.accesses[number]))

    def fetch(self, at: Accessed) -> None:
        scope, writer, layout = self.scope, self.flow.writer, Layout.of(at.table)
        access = self.access(at.number)
        with scope.when(expr("ld_i64(A, W) & FOUND != 0", A=access, W=c.ACCESS_STATE, FOUND=c.FOUND)):
            writer.set(at.found, True)
            values = layout.load(scope, at.table, _entry_of(access), ast.Constant(0))
            assign_all(self.flow, at.others, [values[n] for n in at.table.others])

    def publish(self, number: int) -> None:
        """The row is beside the transaction as it has left it: where another access of it has it, from there."""
        scope, writer = self.scope, self.flow.writer
        mine, layout = self.accessed[number], Layout.of(self.accessed[number].table)
        at = self.access(number)
        for other in self.accessed.values():
            if other.access.table != mine.access.table:
                continue
            same: ast.expr = expr("L == 1 and D == 1", L=other.live, D=other.dirty)
            with scope.when(same), scope.when(self._one_row(number, other.number)):
                layout.store(scope, _entry_of(at), ast.Constant(0), other.others)
                state = expr("CHANGED | pick(F, FOUND, 0)", CHANGED=c.CHANGED, F=other.found, FOUND=c.FOUND)
                if other is mine:
                    was = expr("ld_i64(A, W) & FOUND", A=at, W=c.ACCESS_STATE, FOUND=c.FOUND)
                    turned = expr("W != pick(F, FOUND, 0)", W=was, F=other.found, FOUND=c.FOUND)
                    state = expr("S | pick(T, TURNED, 0)", S=state, T=turned, TURNED=c.TURNED)
                writer.code("st_i64(A, W, S)", A=at, W=c.ACCESS_STATE, S=state)

    def _one_row(self, number: int, other: int) -> ast.expr:
        if number == other:
            return ast.Constant(True)
        return expr("access_same(A, B) == 1", A=self.access(number), B=self.access(other))


def _entry_of(access: ast.expr) -> ast.expr:
    """What stands in an access as an entry."""
    return expr("A + N", A=access, N=8 * c.ACCESS_IMAGE)


def _keys(flow: Flow, layout: Layout, access: ast.expr) -> list[Val]:
    """The key of the row that an access names."""
    entry = _entry_of(access)
    return [_part(flow, entry, f.word, f.type) for f in layout.keys.fields]


def _part(flow: Flow, entry: ast.expr, word: int, type_: DataType) -> Val:
    parts = tuple(flow.scope.let(p, "key") for p in _parts(entry, word, type_))
    return Val(type_, parts)


# -- values beside a transaction: whether it is NULL, then its parts, of texts the address and the length

WORDS_A_VALUE = 3


def _store(flow: Flow, transaction: str, word: int, value: Val) -> None:
    code = flow.writer.code
    null = ast.Constant(0) if value.null is None else expr("pick(N, 1, 0)", N=value.null)
    code("st_i64(T, W, N)", T=transaction, W=word, N=null)
    for n, part in enumerate(value_words(value)):
        code("st_i64(T, W, V)", T=transaction, W=word + 1 + n, V=part)


def _loaded(transaction: str, word: int, type_: DataType) -> Val:
    at = ast.Name(transaction, ast.Load())
    return Val(type_, tuple(_parts(at, word + 1, type_)), expr("ld_i64(T, W) != 0", T=at, W=word))


def _parts(at: ast.expr, word: int, type_: DataType) -> list[ast.expr]:
    """The parts of a value whose words are in memory from this one on."""
    match type_.physical:
        case Physical.F64:
            return [expr("ld_f64(A, W)", A=at, W=word)]
        case Physical.I64:
            template = "ld_i64(A, W) != 0" if type_.kind is Kind.BOOLEAN else "ld_i64(A, W)"
            return [expr(template, A=at, W=word)]
        case _:
            return [expr("ld_i64(A, W)", A=at, W=word + half) for half in (0, 1)]


# -- the kernel ------------------------------------------------------------------------------------------------------


@consumes(CHAINED, copies_text=False)
def consume_chains(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """What the transactions of an event have left is in the tables; what they emit is handed on."""
    assert isinstance(node, Trigger)
    writer, scope = flow.writer, flow.scope
    tables = tables_of(flow, node)
    programs, words = placed(flow.stage)
    events = writer.hoist(expr("ld_i64(state, W)", W=events_word(flow.stage)), "events")
    event = writer.let(expr("E + i * SIZE", E=events, SIZE=8 * words), "event")
    programs = tuple(p for p in programs if p.node is node)
    moves = any(isinstance(s, Insert | Delete) for p in node.programs for s in every(p.steps))
    made: list[Made] = []
    first = 0
    for p in programs:
        outcome = writer.let(expr("ld_i64(E, W)", E=event, W=p.first + c.TRANSACTION_OUTCOME), "outcome")
        with scope.when(expr("O != UNFIRED", O=outcome, UNFIRED=c.UNFIRED)):
            _write_tables(flow, node, tables, event, p, moves)
        emits = (s for s in every(p.program.steps) if isinstance(s, Emit))
        for step, at in zip(emits, p.emitted, strict=True):
            there = expr("O == DONE and ld_i64(E, W) == 1", O=outcome, DONE=ACCEPTED, E=event, W=at[0])
            values = tuple(_loaded(event, word, v.type) for v, word in zip(step.values, at[1:], strict=True))
            made.append(Made(there, 2 * p.number, null_of(VARCHAR), first, values))
        rejected = expr("O == BAD", O=outcome, BAD=REJECTED)
        reason = _loaded(event, p.first + c.TRANSACTION_VALUES, VARCHAR)
        made.append(Made(rejected, 2 * p.number + 1, reason, 0, ()))
        first += len(p.program.outputs)
    if not node.contents:
        deliver_made(flow, node, row, made)


def _write_tables(flow: Flow, node: Trigger, tables: Sequence[TableLocals], event: str, p: Placed, moves: bool) -> None:
    """Rows that no later transaction of the ticket names are in the tables; those that come or go do so in order."""
    scope, writer = flow.scope, flow.writer
    states = {}
    for number, at in p.accesses.items():
        states[number] = writer.let(expr("ld_i64(E, W)", E=event, W=at + c.ACCESS_STATE), "left")
    for number, at in p.accesses.items():
        table, layout = tables[node.access(number).table], Layout.of(node.tables[node.access(number).table])
        kept = expr("S & KEPT == KEPT", S=states[number], KEPT=c.FOUND | c.CHANGED)
        latest = expr("ld_i64(E, W) == 1", E=event, W=at + c.ACCESS_LATEST)
        with scope.when(kept), scope.when(latest):
            access = expr("E + N", E=event, N=8 * at)
            entry: ast.expr = scope.let(expr("ld_i64(A, W)", A=access, W=c.ACCESS_ENTRY), "entry")
            if moves:
                entry = layout.keys.find(table, _keys(flow, layout, access))
            with scope.when(expr("E != 0", E=entry)):
                for word in range(layout.keys.next_word, layout.shape.entry_words):
                    writer.code("st_i64(E, F, ld_i64(A, W))", E=entry, F=word, A=access, W=_image(word))
    if not moves:
        return
    for there in (False, True):
        for number, at in p.accesses.items():
            turned = expr("S & T == V", S=states[number], T=c.TURNED | c.FOUND, V=c.TURNED | (c.FOUND if there else 0))
            with scope.when(turned):
                access = expr("E + N", E=event, N=8 * at)
                table, layout = tables[node.access(number).table], Layout.of(node.tables[node.access(number).table])
                if there:
                    entry = layout.keys.probe(table, _keys(flow, layout, access), flow.serial, lambda _: None)
                    for word in range(layout.keys.next_word, layout.shape.entry_words):
                        writer.code("st_i64(E, F, ld_i64(A, W))", E=entry, F=word, A=access, W=_image(word))
                else:
                    with scope.when(expr("table_make_dense(T) == 0", T=table.table)):
                        flow.no_memory("rows of a table")
                    table.reload()
                    entry = layout.keys.find(table, _keys(flow, layout, access))
                    writer.code("table_delete(T, E)", T=table.table, E=entry)
