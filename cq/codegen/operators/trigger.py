"""trigger: the serial loop. A transaction works on copies of the rows it names; if accepted, it writes them back.

What a program reads is found once and then kept in locals, so that a rejection has nothing to undo. Two accesses of one
table may name the same row: whichever is read later takes over what the other one holds (`Accessed.live`).

Elements of an array name any number of rows: each is written to its entry, or given back to the access it was taken
from, before the next element; the old contents of the entry are kept, and put back on a rejection.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import tee

from cq.codegen.accessed_rows import Accessed, for_leaf, hand_over, moving, passing, take_over, undone
from cq.codegen.expressions.constants import literal
from cq.codegen.expressions.emit import emit
from cq.codegen.fetching import fetch_ahead
from cq.codegen.flow import FINISHER_ARGUMENTS, Flow, closing, consumes, finishes, function, row_of
from cq.codegen.keyed_tables import prepare, tables_of
from cq.codegen.matching import assign_all, where_not_null
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.entry_moves import Held, entries, holds
from cq.codegen.state.hash_tables import Births, EntryField, TableLocals, outlives
from cq.codegen.state.keyed_rows import KeyedLayout, delete_row
from cq.codegen.state.undo import Undo
from cq.codegen.transaction_outputs import (
    ACCEPTED,
    REJECTED,
    Emitted,
    Made,
    Records,
    as_held,
    count_rejection,
    deliver_made,
    made_of,
    made_of_records,
    relations_read,
    rows_of_steps,
)
from cq.codegen.values import Row, Scope, Val, is_true, null_of
from cq.codegen.writer import expr
from cq.codegen.zipped_arrays import Arrays
from cq.lang.expressions import Expr, Literal
from cq.lang.schema import Field
from cq.lang.types import BIGINT, VARCHAR, Physical
from cq.planner.operators import Trigger
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import (
    FAILURES,
    Access,
    Choose,
    Condition,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Local,
    Program,
    Read,
    Reject,
    Set,
    Step,
    Update,
    emits_for_elements,
    every,
)
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ERROR_CODES, ErrorCode
from cq.runtime.layout.pipeline import Slot


@holds("trigger")
def held_trigger(node: LogicalNode) -> tuple[Held, ...]:
    """The rows of the tables."""
    assert isinstance(node, Trigger)
    return tuple(entries(f"table{n}", KeyedLayout.of(t).keys) for n, t in enumerate(node.tables))


def _copies_text(node: LogicalNode) -> bool:
    """Texts of rows are copied: writing to a table may move them. Changes by elements of arrays are noted."""
    assert isinstance(node, Trigger)
    texts = any(f.type.physical is Physical.BYTES for t in node.tables for f in t.fields)
    return texts or any(undone(node, p) for p in node.programs)


@consumes("trigger", copies_text=_copies_text)
def consume_trigger(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Run the programs one after the other, then deliver what they have emitted."""
    assert isinstance(node, Trigger)
    tables = tables_of(flow, node)
    prepare(flow, node, tables)
    fetch_ahead(flow, node, [(KeyedLayout.of(t).keys, local) for t, local in zip(node.tables, tables, strict=True)])
    made: list[Made] = []
    for number, every_row in enumerate(node.programs):
        program = for_leaf(flow, node, every_row)
        if program is not None:
            made += TransactionWriter(flow, node, program, tables, row).write(number)
    if made and not node.contents:
        deliver_made(flow, node, row, made)


@dataclass(slots=True)
class TransactionWriter:
    """Writes one program; see the module docstring."""

    flow: Flow
    node: Trigger
    program: Program
    tables: Sequence[TableLocals]
    row: Row
    accessed: dict[int, Accessed] = field(default_factory=dict)
    locals: dict[int, Val] = field(default_factory=dict)
    met: list[Accessed] = field(default_factory=list)  # that may be live after the code written so far
    emitted: Sequence[Emitted] = ()  # rows emitted by an accepted event, in order
    records: Records | None = None  # or these, where elements of arrays emit rows
    frames: list[Row] = field(default_factory=list)  # kept alive: values are cached by the identity of their row
    outcome: str = ""
    undos: dict[tuple[int, int], Undo] = field(default_factory=dict)  # by the loop's first local, and the table
    undoing: dict[int, Undo] = field(default_factory=dict)  # by the table, of the current loop
    repeated: Each | None = None  # the current loop
    element: ast.expr | None = None  # the index of the current element
    passing: frozenset[int] = frozenset()
    moving: frozenset[int] = frozenset()  # tables whose entries move before the end
    reason: Val = field(default_factory=lambda: null_of(VARCHAR))

    @property
    def scope(self) -> Scope:
        return self.flow.scope

    def write(self, number: int) -> list[Made]:
        """Write the program; return what it may have made, in order."""
        self.evaluate(number)
        self.commit()
        count_rejection(self.flow, self.node, number, self.outcome)
        if self.records is not None:
            head = ast.Name(self.records.head, ast.Load())
            return made_of_records(self.node, number, self.outcome, head, self.reason, self.scope)
        return made_of(self.outcome, number, self.emitted, self.reason, relations_read(self.flow, self.node))

    def evaluate(self, number: int) -> None:
        """Leave its outcome, its accesses and what it has emitted in locals."""
        writer, scope = self.flow.writer, self.scope
        self.outcome = writer.let(ast.Constant(0), "outcome")
        self.reason = scope.variables(VARCHAR, True, "reason")
        for step in every(self.program.steps):
            if isinstance(step, Read) and step.access not in self.accessed:
                access = self.node.access(step.access)
                self.accessed[step.access] = Accessed.declare(
                    scope, step.access, access, self.node.tables[access.table]
                )
            if isinstance(step, Set | Each):
                for n in (step.local,) if isinstance(step, Set) else step.locals:
                    self.declare_local(n)
        self.passing = passing(self.node, self.program.steps)
        self.moving = moving(self.node, self.program.steps)
        self.note_changes()
        emits = self.emitted_rows(number)
        with writer.while_(True), scope.block(), self.rejecting():
            if self.program.when is not None:
                fires = is_true(emit(scope, self.frame(), self.program.when))
                writer.code("if not F:\n    break", F=fires)
            self.steps(self.program.steps, emits)
            writer.set(self.outcome, ACCEPTED)
            writer.code("break")

    def emitted_rows(self, number: int) -> Iterator[Emitted]:
        """Where the rows that the steps emit will be, one after the other; none if there are records."""
        if emits_for_elements(self.program.steps):
            self.records = Records.none(self.scope)
            return iter(())
        first = sum(len(p.outputs) for p in self.node.programs[:number])
        turns, self.emitted = rows_of_steps(self.scope, self.program.steps, first)
        return iter([self.emitted[t] for t in turns])

    def note_changes(self) -> None:
        """Make an undo for everything that elements of arrays change before a possible rejection."""
        loops = [s for s in every(self.program.steps) if isinstance(s, Each)]
        for loop in (s for s in loops if s.local in undone(self.node, self.program)):
            named = Counter(self.node.access(n).table for n in passing(self.node, (loop,)))
            for table, times in sorted(named.items()):
                layout, moved = KeyedLayout.of(self.node.tables[table]), table in moving(self.node, (loop,))
                fields = layout.fields if moved else self.changed(table, loop.steps)
                if moved or fields:
                    by_key = table in self.moving
                    self.undos[loop.local, table] = Undo.of(
                        self.scope, self.tables[table], layout, fields, times, by_key
                    )
        inner = {s.local for loop in loops for s in every(loop.steps) if isinstance(s, Each)}
        assert not any(local in inner for local, _ in self.undos), "a loop that changes rows inside a loop"

    # -- ways out

    @contextmanager
    def rejecting(self) -> Iterator[None]:
        """Inside, an expression that fails rejects the event. Running out of memory, or a stop, still ends the run."""
        if self.program.strict:
            yield
            return
        before = self.scope.fail_with

        def fail(code: ErrorCode, site: int) -> None:
            if code in {ErrorCode.NO_MEMORY, ErrorCode.STOPPED}:
                before(code, site)
            else:
                self.reject(FAILURES[ERROR_CODES[code]])

        self.scope.fail_with = fail
        yield
        self.scope.fail_with = before

    def reject(self, reason: str) -> None:
        """Leave the program: the event is rejected. If rejections are not allowed, the run ends."""
        if self.program.strict:
            self.scope.fail(ErrorCode.REFUSED, reason, self.program.span)
            return
        self.leave(literal(self.scope, Literal(VARCHAR, False, reason)))

    def leave(self, reason: Val) -> None:
        self.scope.assign(self.reason, reason)
        self.flow.writer.set(self.outcome, REJECTED)
        self.flow.writer.code("break")

    # -- steps

    def frame(self) -> Row:
        """The current frame."""
        make: list[Callable[[], Val]] = [partial(self.row.column, c) for c in range(self.node.width)]
        for number, access in enumerate(self.node.accesses):
            if isinstance(access, Local):
                make.append(partial(self.locals.__getitem__, number))
            elif number in self.accessed:
                make += self.accessed[number].columns(self.scope)
            else:
                width = 1 + len(self.node.tables[access.table].fields)
                make += [partial(_never, self.node, access)] * width
        self.frames.append(Row(self.scope, make))
        return self.frames[-1]

    def steps(self, steps: Sequence[Step], emits: Iterator[Emitted]) -> None:
        for step in steps:
            with self.scope.block():
                self.flow.writer.line(step.line, type(step).__name__.lower())
                self.step(step, emits)

    def step(self, step: Step, emits: Iterator[Emitted]) -> None:
        scope = self.scope
        match step:
            case Read(access=number):
                self.read(self.accessed[number])
            case Update():
                self.update(step)
            case Insert():
                self.insert(step, emits)
            case Delete(access=number, condition=condition):
                at = self.accessed[number]
                with scope.when(expr("F", F=at.found)), self.where(condition):
                    self.flow.writer.set(at.found, False)
                    self.flow.writer.set(at.dirty, 1)
                    assign_all(self.flow, at.others, [null_of(v.type) for v in at.others])
            case Choose():
                met = is_true(emit(scope, self.frame(), step.condition))
                with scope.when(met):
                    self.steps(step.then, emits)
                with scope.otherwise():
                    self.steps(step.otherwise, emits)
            case Set(local=number, value=value):
                new = scope.variables(value.type, True, "new")
                scope.assign(new, emit(scope, self.frame(), value))
                scope.assign(self.locals[number], new)
            case Each():
                self.each(step, emits)
            case Reject(reason=reason):
                with scope.when(ast.Constant(True)):  # a block, so that more code may follow it
                    self.leave(emit(scope, self.frame(), reason))
            case Emit(values=values, condition=condition):
                with self.where(condition):
                    frame = self.frame()
                    made = [emit(scope, frame, v) for v in values]
                    if self.records is not None:
                        self.records.add(made)
                    else:
                        self.emit_at(next(emits), made)

    def emit_at(self, row: Emitted, values: Sequence[Val]) -> None:
        assign_all(self.flow, row.values, as_held(row, values))
        assert isinstance(row.there, ast.Name)
        self.flow.writer.set(row.there.id, True)

    @contextmanager
    def where(self, condition: Expr | None) -> Iterator[None]:
        """Inside, the condition is TRUE, if there is one."""
        if condition is None:
            yield
            return
        with self.scope.when(is_true(emit(self.scope, self.frame(), condition))):
            yield

    def read(self, at: Accessed) -> None:
        """Load the row of the access's key into its locals, unless it is there already."""
        scope, writer = self.scope, self.flow.writer
        with scope.when(expr("L == 0", L=at.live)):
            frame = self.frame()
            key = [emit(scope, frame, k) for k in at.access.key]
            writer.set(at.found, False)
            writer.set(at.entry, 0)
            assign_all(self.flow, at.others, [null_of(v.type) for v in at.others])
            with where_not_null(self.flow, key) as known:
                assign_all(self.flow, at.key, known)
                writer.set(at.live, 1)
                self.fetch(at)
                for other in self.met:
                    if other is not at and other.access.table == at.access.table:
                        take_over(self.flow, at, other, self.passing)
        if at not in self.met:
            self.met.append(at)

    def fetch(self, at: Accessed) -> None:
        """Load the row of the access's key, which is in its locals, if it exists."""
        scope, writer = self.scope, self.flow.writer
        local, layout = self.tables[at.access.table], KeyedLayout.of(at.table)
        writer.set(at.entry, layout.keys.find(local, at.key))
        with scope.when(expr("E != 0", E=at.entry)):
            writer.set(at.found, True)
            values = layout.load(scope, at.table, expr("E", E=at.entry), local.address)
            kept = [outlives(self.scope, values[c]) for c in at.table.others]
            assign_all(self.flow, at.others, kept)

    # -- elements of arrays

    def declare_local(self, number: int) -> None:
        if number not in self.locals:
            local = self.node.accesses[number]
            assert isinstance(local, Local)
            self.locals[number] = self.scope.variables(local.type, True, "local")

    def each(self, step: Each, emits: Iterator[Emitted]) -> None:
        """The steps for each element of the arrays.

        They are written twice: elements of whole arrays exist and are not NULL, which leaves little to check.
        """
        scope, met = self.scope, [*self.met]
        frame = self.frame()
        arrays = Arrays.measured(scope, [emit(scope, frame, a) for a in step.arrays])
        emits, again = tee(emits)
        with scope.when(arrays.whole):
            self.each_element(step, arrays, True, emits)
        self.met = met
        with scope.otherwise():
            self.each_element(step, arrays, False, again)
        with scope.when(expr("O == BAD", O=self.outcome, BAD=REJECTED)):
            self.flow.writer.code("break")

    def each_element(self, step: Each, arrays: Arrays, whole: bool, emits: Iterator[Emitted]) -> None:
        """The steps for each element of arrays that are known to be whole, or may not be."""
        scope, writer = self.scope, self.flow.writer
        behind = undone(self.node, self.program).get(step.local)  # whether a whole array's change may be undone
        undos = {t: u for (local, t), u in self.undos.items() if local == step.local and (behind or not whole)}
        for undo in undos.values():
            undo.begin(arrays.most)
        turn = writer.fresh("p")
        with writer.for_(turn, 0, arrays.most), scope.block():
            index = self.element = ast.Name(turn, ast.Load())
            arrays.take(scope, [self.locals[n] for n in step.locals], index, whole)
            if step.numbered:
                number = self.locals[step.local + len(step.arrays)]
                scope.assign(number, Val(BIGINT, (expr("P + 1", P=index),)))
            self.meet_again(step)
            self.steps(step.steps, emits)
            self.undoing, self.repeated = undos, step
            self.give_back(passing(self.node, (step,)))

    def meet_again(self, step: Each) -> None:
        """From the second iteration on, rows that the steps read and no element names are live at their start."""
        inside = {i.access for i in every(step.steps) if isinstance(i, Read)} - passing(self.node, (step,))
        self.met += [at for n in sorted(inside) if (at := self.accessed[n]) not in self.met]

    def give_back(self, numbers: frozenset[int]) -> None:
        """Put the rows of these accesses, with their changes, back where they were: the next element names others."""
        scope, writer = self.scope, self.flow.writer
        for at in (self.accessed[n] for n in sorted(numbers)):
            with scope.when(expr("L == 1", L=at.live)):
                for other in self.met:
                    if other.number not in numbers and other.access.table == at.access.table:
                        with scope.when(expr("S == N", S=at.source, N=1 + other.number)):
                            hand_over(self.flow, at, other)
                with scope.when(expr("L == 1 and D == 1", L=at.live, D=at.dirty)):
                    self.put_row(at)
                for name in (at.live, at.dirty, at.source):
                    writer.set(name, 0)

    def put_row(self, at: Accessed) -> None:
        """Write the current state of a row that an element names to the table."""
        scope, writer, number = self.scope, self.flow.writer, at.access.table
        local, layout = self.tables[number], KeyedLayout.of(at.table)
        assert self.repeated is not None, "a row that an element names, in no loop"
        beside = [n for n in passing(self.node, (self.repeated,)) if self.node.access(n).table == number]
        if number in self.moving and len(beside) > 1:  # a row of another access may have moved the entry of this one
            writer.set(at.entry, layout.keys.find(local, at.key))
        if number in self.undoing:
            self.undoing[number].keep(at.entry, at.key)
        fields = self.changed(number, self.repeated.steps)
        if number not in self.moving:
            layout.store(scope, expr("E", E=at.entry), local.address, at.others, fields)
            return
        with scope.when(expr("not F", F=at.found)):
            delete_row(scope, local, layout, at.key)
        with scope.otherwise():
            with scope.when(expr("E == 0", E=at.entry)):
                writer.set(at.entry, layout.keys.probe(local, at.key, self.flow.serial, lambda _: None))
            layout.store(scope, expr("E", E=at.entry), local.address, at.others, fields)

    def changed(self, number: int, steps: Sequence[Step]) -> Sequence[EntryField]:
        """The fields that these steps may change in a row that stays in a table: all, if it is inserted again."""
        table = self.node.tables[number]
        fields = KeyedLayout.of(table).fields
        changes = [s for s in every(steps) if isinstance(s, Insert | Update)]
        mine = [s for s in changes if self.node.access(s.access).table == number]
        if any(isinstance(s, Insert) for s in mine):
            return fields
        columns = {c for s in mine if isinstance(s, Update) for c in s.columns}
        return [f for f, c in zip(fields, table.others, strict=True) if c in columns]

    def update(self, step: Update) -> None:
        at = self.accessed[step.access]
        with self.scope.when(expr("F", F=at.found)), self.where(step.condition):
            frame = self.frame()
            values = [emit(self.scope, frame, v) for v in step.values]
            new = self.held(at, dict(zip(step.columns, values, strict=True)))
            self.demand(at, new, step.columns, at.table.conditions_on(step.columns))
            self.put(at, new)

    def insert(self, step: Insert, emits: Iterator[Emitted]) -> None:
        """Check the table's constraints on the row before looking whether the row exists."""
        at = self.accessed[step.access]
        frame = self.frame()
        values = [emit(self.scope, frame, v) for v in step.values]
        new = self.held(at, dict(enumerate(values)))
        self.demand(at, new, range(len(values)), at.table.conditions)
        with self.scope.when(expr("not F", F=at.found)):
            self.put(at, new)
        if step.conflict is None:
            with self.scope.otherwise():
                self.reject(at.table.duplicate())
        elif step.conflict:
            with self.scope.otherwise():
                self.steps(step.conflict, emits)

    def held(self, at: Accessed, values: dict[int, Val]) -> list[Val]:
        """All columns of the row with these values; new ones in variables."""
        made = []
        for column, now in enumerate(at.columns(self.scope)[1:]):
            if column not in values:
                made.append(now())
                continue
            made.append(self.scope.variables(values[column].type, True, "new"))
            self.scope.assign(made[-1], values[column])
        return made

    def demand(self, at: Accessed, new: Sequence[Val], columns: Iterable[int], conditions: Sequence[Condition]) -> None:
        """Reject the event if the row, in which these columns are new, violates a constraint of the table. conditions:
        those of the table that it must not meet."""
        for column in sorted(columns):
            null = new[column].null
            if null is not None and not at.table.fields[column].nullable:
                with self.scope.when(null):
                    self.reject(at.table.missing(column))
        self.frames.append(row_of(self.scope, list(new)))
        for condition in conditions:
            met = emit(self.scope, self.frames[-1], condition.expr)
            broken = expr("not M", M=met.it) if met.null is None else expr("not N and not M", N=met.null, M=met.it)
            with self.scope.when(broken):
                self.reject(at.table.broken(condition))

    def put(self, at: Accessed, new: Sequence[Val]) -> None:
        """Set the row to these values."""
        assign_all(self.flow, at.others, [new[c] for c in at.table.others])
        self.flow.writer.set(at.found, True)
        self.flow.writer.set(at.dirty, 1)

    # -- the end

    def commit(self) -> None:
        """Write an accepted transaction to the tables; discard a rejected one."""
        with self.scope.when(expr("O == DONE", O=self.outcome, DONE=ACCEPTED)):
            self.write_rows()
        if self.undos:
            with self.scope.when(expr("O == BAD", O=self.outcome, BAD=REJECTED)):
                for undo in reversed(self.undos.values()):
                    undo.put_back()

    def write_rows(self) -> None:
        """Write the rows of the accesses to the tables: first existing rows, then deletions, then new ones."""
        steps = list(every(self.program.steps))
        for at in self.accessed.values():
            with self.scope.when(expr("D == 1 and F and E != 0", D=at.dirty, F=at.found, E=at.entry)):
                local = self.tables[at.access.table]
                if at.access.table in self.moving:
                    self.flow.writer.set(at.entry, KeyedLayout.of(at.table).keys.find(local, at.key))
                fields = self.changed(at.access.table, self.program.steps)
                KeyedLayout.of(at.table).store(self.scope, expr("E", E=at.entry), local.address, at.others, fields)
        deleted = {s.access for s in steps if isinstance(s, Delete)}
        if any(n in deleted for n in self.accessed):
            for at in self.accessed.values():
                self.remove(at)
        if any(isinstance(s, Insert) for s in steps):
            for at in self.accessed.values():
                self.make(at)

    def remove(self, at: Accessed) -> None:
        """Delete the entry if the row is gone."""
        with self.scope.when(expr("D == 1 and not F and E != 0", D=at.dirty, F=at.found, E=at.entry)):
            delete_row(self.scope, self.tables[at.access.table], KeyedLayout.of(at.table), at.key)

    def make(self, at: Accessed) -> None:
        """Make an entry if the row is new."""
        local = self.tables[at.access.table]
        layout = KeyedLayout.of(at.table)
        with self.scope.when(expr("D == 1 and F and E == 0", D=at.dirty, F=at.found, E=at.entry)):
            entry = layout.keys.probe(local, at.key, self.flow.serial, lambda _: None)
            layout.store(self.scope, entry, local.address, at.others)


def _never(node: Trigger, access: Access) -> Val:
    raise AssertionError(f"a program reads {node.tables[access.table].name} for another one")


@finishes("trigger")
def finish_trigger(stage: StageDraft, node: LogicalNode) -> None:
    """With `contents`: a function that emits the rows of all tables, table by table."""
    assert isinstance(node, Trigger)
    if not node.contents:
        return
    cursor = stage.slot(node, "cursor", lambda offset: Slot("cursor", offset, node=node.identity))
    event = closing(stage, node, ast.Constant(abi.NEVER), ast.Constant(0))
    with function(stage, f"finish_{cursor.offset}", FINISHER_ARGUMENTS, node, event) as flow:
        tables = tables_of(flow, node)
        flow.writer.code("arrival = 0")
        prepare(flow, node, tables)
        before = flow.writer.let(ast.Constant(0), "before")
        for number, table in enumerate(node.tables):
            _emit_rows(flow, node, number, table, tables[number], cursor, before)
        flow.leave(ast.Constant(abi.DONE))


def _emit_rows(
    flow: Flow, node: Trigger, number: int, table: KeyedTable, local: TableLocals, cursor: Slot, before: str
) -> None:
    """Emit the rows of one table. before: how many rows the tables before it have."""
    scope, writer = flow.scope, flow.writer
    writer.code("table_settle(T)", T=local.table)
    births = Births.of(writer, local.table)
    first = writer.let(expr("max(ld_i64(state, W) - B, 0)", W=cursor.offset, B=before), "from_")
    turn = writer.fresh("row")
    with writer.for_(turn, first, births.count), scope.block():
        writer.code("arrival = B + N", B=before, N=turn)
        for port in flow.ports.values():
            with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                writer.code("st_i64(state, W, arrival)", W=cursor.offset)
                flow.leave(ast.Constant(abi.MORE))
        entry = scope.let(births.entry(turn), "entry")
        values = KeyedLayout.of(table).load(scope, table, entry, local.address)
        shown = [v for n, t in enumerate(node.tables) for v in (values if n == number else map(_null, t.fields))]
        flow.deliver(node, row_of(scope, [Val(BIGINT, (ast.Constant(number),)), *shown]))
    writer.code("B = B + N", B=before, N=births.count)
    writer.code("st_i64(state, W, max(ld_i64(state, W), B))", W=cursor.offset, B=before)


def _null(f: Field) -> Val:
    return null_of(f.type)
