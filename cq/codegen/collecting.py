"""Transactions in chains, first part: their layout in the memory of an event, and the function that collects them.

Of the rows that a program may name, only those that its event leads to are collected: a condition that depends on the
event alone is evaluated here, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import assert_never

from cq.codegen.expressions.arrays import count_of, element
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Event, Flow
from cq.codegen.lane_keys import needs_no_state
from cq.codegen.ports import Position
from cq.codegen.scan import source_row
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.hash_tables import string_words
from cq.codegen.state.keyed_rows import KeyedLayout
from cq.codegen.transaction_outputs import WORDS_A_VALUE
from cq.codegen.values import Row, Scope, Val, any_null, is_true, null_of, value_words
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.lang.types import BIGINT
from cq.planner.operators import Trigger
from cq.planner.physical.named_rows import accesses_of, decided, homes_of, lists_of
from cq.planner.physical.transactions import MOST_TABLES, transactions_of
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import (
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    Local,
    Program,
    Read,
    Reject,
    Set,
    Step,
    Update,
    emits_for_elements,
    every,
    frame_starts,
    turns_of_emits,
)
from cq.records import dataclass, field
from cq.runtime.layout import abi
from cq.runtime.layout import chains as c
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.requests import NOTHING, READS, REQUEST_BYTES, WRITES
from cq.runtime.layout.words import WORDS_A_LINE, Word


@dataclass(frozen=True, slots=True)
class ListedPlace:
    """Where the accesses named by elements of arrays are.

    word: of the event, -> the first one.  turn: which of an element's accesses this is, and how many it has.
    """

    each: Each
    word: int
    turn: int
    of: int


@dataclass(frozen=True, slots=True)
class PlacedProgram:
    """Where a program's transaction is in the memory of an event: its words, the rows it emits, and the words that lead
    to its accesses.

    number: of the program in its operator.  tables: how many tables operators before that one have.
    emitted: for each row that an event may cause, a word that is 1 if it does, and the values.
    records: the word that leads to the first record of its emitted rows, where it emits rows for elements of arrays.
    single: by access, the word that leads to it; 0 there: the event does not name it.  lists: by access.
    home: the access to whose row the transaction belongs, if the event names it.
    """

    node: Trigger
    number: int
    program: Program
    tables: int
    first: int
    emitted: tuple[tuple[int, ...], ...]
    records: int | None
    single: dict[int, int]
    lists: dict[int, ListedPlace]
    home: int | None

    def at(self, word: int) -> int:
        """A word of the event's memory, from the transaction on."""
        return word - self.first


@dataclass(frozen=True, slots=True)
class CollectedEvent:
    """The transactions of an event, how many words they take, and the bytes of an access."""

    programs: tuple[PlacedProgram, ...]
    words: int
    access_bytes: int
    shapes: tuple[KeyedLayout, ...]  # of all tables of the stage, in order


def collected(stage: StageDraft) -> CollectedEvent:
    """What is collected for each event of the stage."""
    found: list[PlacedProgram] = []
    shapes: list[KeyedLayout] = []
    end = 0
    nodes = transactions_of(stage.plan)
    homes = homes_of(nodes)
    for at, node in enumerate(nodes):
        end = _place(found, node, len(shapes), end, {n: home for (by, n), home in homes.items() if by == at})
        shapes += map(KeyedLayout.of, node.tables)
    assert len(shapes) <= MOST_TABLES, "more tables than a tag can tell"
    largest = max((s.shape.entry_words + (1 if string_words(s.keys.fields) else 0) for s in shapes), default=0)
    asked = REQUEST_BYTES if stage.asks else 0
    return CollectedEvent(tuple(found), _whole_lines(end), asked + 8 * (c.ACCESS_IMAGE + largest), tuple(shapes))


def _whole_lines(words: int) -> int:
    return -(-words // WORDS_A_LINE) * WORDS_A_LINE


def _place(found: list[PlacedProgram], node: Trigger, tables: int, end: int, homes: Mapping[int, int]) -> int:
    """Place the programs of an operator from a word on; return the word after them."""
    for number, program in enumerate(node.programs):
        first, end = end, end + c.TRANSACTION_VALUES + WORDS_A_VALUE
        emitted: list[tuple[int, ...]] = []
        records = None
        if emits_for_elements(program.steps):
            records, end = end, end + 1
        for _ in range(turns_of_emits(program.steps)[1] if records is None else 0):
            emitted.append((end, *(end + 1 + n * WORDS_A_VALUE for n in range(len(program.outputs)))))
            end += 1 + len(program.outputs) * WORDS_A_VALUE
        lists = {}
        for listed in lists_of(node, program):
            for turn, access in enumerate(listed.accesses):
                lists[access] = ListedPlace(listed.each, end, turn, len(listed.accesses))
            end += 1
        single = {}
        for access in accesses_of(program):
            if access not in lists:
                single[access] = end
                end += 1
        home = homes.get(number)
        found.append(PlacedProgram(node, number, program, tables, first, tuple(emitted), records, single, lists, home))
    return end


@contextmanager
def stage_function(stage: StageDraft, name: str, arguments: Sequence[str], without_memory: int) -> Iterator[Flow]:
    """A function of the stage that emits nothing. Without memory it returns `without_memory`."""

    def fail(code: ErrorCode, site: int) -> None:
        stage.writer.code("failed(state, CODE, SITE, -1, -1, 0)\nreturn R", CODE=code, SITE=site, R=without_memory)

    zero = ast.Constant(0)
    position = Position(zero, ast.Constant(abi.NEVER), 0, zero, zero)
    event = Event(zero, position, ast.Constant(without_memory), expr("-1"), -1)
    with stage.writer.function(name, arguments):
        scope = Scope(stage.writer, stage.constants, stage.sites, fail)
        yield Flow(stage, scope, {}, event, position, None)


def event_row(flow: Flow, leaf: LogicalNode) -> Row:
    """The event whose number is in the local `i`."""
    known = flow.stage.columns.setdefault(0, {})
    return source_row(flow.scope, leaf.schema, known, 0, ast.Name("i", ast.Load()))


def write_collect(flow: Flow, leaf: LogicalNode) -> None:
    """The body of the function that collects the rows that a share names."""
    writer, scope = flow.writer, flow.scope
    every_one = collected(flow.stage)
    row = event_row(flow, leaf)
    events = writer.word("share", c.SHARE_EVENTS, "events")
    for word, name in ((c.SHARE_FIRST, "lo"), (c.SHARE_END, "hi")):
        writer.code("N = ld_i64(share, W)", N=name, W=word)
    with writer.for_("i", "lo", "hi"), scope.block():
        event = writer.let(expr("E + i * SIZE", E=events, SIZE=8 * every_one.words), "event")
        for number, p in enumerate(every_one.programs):
            when = p.program.when
            if when is None or not _decided_at_once(p.node, when):
                with scope.block():
                    _Collecting(flow, row, every_one, p).write(event, number)
                continue
            with scope.when(is_true(emit(scope, row, when))):
                _Collecting(flow, row, every_one, p).write(event, number)
            with scope.otherwise():
                writer.code(
                    "st_i64(E, W, UNFIRED)", E=event, W=p.first + c.TRANSACTION_OUTCOME, UNFIRED=c.UNFIRED
                )  # fmt: skip
    writer.code("return 1")


def _decided_at_once(node: Trigger, condition: Expr) -> bool:
    return decided(node, condition) and needs_no_state(Schema(node.frame), condition)


@dataclass(slots=True)
class _Collecting:
    """Writes the code that collects the transaction of one program for an event.

    frame: the event, and the elements of arrays.  at: a local, -> where the next access will be.
    sure, perhaps: accesses that the code written so far collects in all cases, or in some.
    """

    flow: Flow
    row: Row
    all: CollectedEvent
    place: PlacedProgram
    transaction: str = ""
    at: str = ""
    sure: set[int] = field(default_factory=set)
    perhaps: set[int] = field(default_factory=set)

    @property
    def scope(self) -> Scope:
        return self.flow.scope

    def write(self, event: str, number: int) -> None:
        """The transaction has its accesses, and all are in the lists of the share."""
        writer, p = self.flow.writer, self.place
        self.transaction = writer.let(expr("E + N", E=event, N=8 * p.first), "transaction")
        self.at = writer.let(self.room(), "access")
        with self.scope.when(expr("A == 0", A=self.at)):
            self.scope.fail(ErrorCode.NO_MEMORY, "rows that transactions name", NOWHERE)
        asks = self.flow.stage.asks
        if asks:
            writer.code("A += BEFORE", A=self.at, BEFORE=REQUEST_BYTES)
        for word, value in (
            (c.TRANSACTION_ROW, ast.Name("i", ast.Load())),
            (c.TRANSACTION_PROGRAM, ast.Constant(number)),
            (c.TRANSACTION_OUTCOME, ast.Constant(0)),
            (c.TRANSACTION_ACCESSES, ast.Name(self.at, ast.Load())),
            *((p.at(word), ast.Constant(0)) for word in p.single.values()),
        ):
            writer.code("st_i64(T, W, V)", T=self.transaction, W=word, V=value)
        self.steps(p.program.steps)
        size = self.all.access_bytes
        used = expr("A - ld_i64(T, W)", A=self.at, T=self.transaction, W=c.TRANSACTION_ACCESSES)
        writer.code("st_i64(T, W, sdiv(U, SIZE))", T=self.transaction, W=c.TRANSACTION_COUNT, U=used, SIZE=size)
        behind = expr("A - BEFORE", A=self.at, BEFORE=REQUEST_BYTES) if asks else expr("A", A=self.at)
        writer.code("st_i64(share, W, A)", W=c.SHARE_ROOM, A=behind)
        if asks:
            writer.code("asked(share, T)", T=self.transaction)
        else:
            home: ast.expr = ast.Constant(0)
            if p.home is not None:
                home = expr("ld_i64(T, W)", T=self.transaction, W=p.at(p.single[p.home]))
            listed = expr("list_transaction(share, T, HOME, SIZE) == 0", T=self.transaction, HOME=home, SIZE=size)
            with self.scope.when(listed):
                self.scope.fail(ErrorCode.NO_MEMORY, "rows that transactions name", NOWHERE)

    def room(self) -> ast.expr:
        """-> room for the most accesses it can have."""
        most: ast.expr = ast.Constant(len(self.place.single))
        for listed in lists_of(self.place.node, self.place.program):
            _, _, elements = self.elements(listed.each)
            most = expr("M + C * N", M=most, C=elements, N=len(listed.accesses))
        return expr("share_room(share, M * SIZE)", M=most, SIZE=self.all.access_bytes)

    def elements(self, step: Each) -> tuple[list[Val], list[ast.expr], ast.expr]:
        """The arrays, their lengths, and the longest length."""
        writer, scope = self.flow.writer, self.scope
        arrays = [emit(scope, self.row, a) for a in step.arrays]
        counts: list[ast.expr] = []
        for array in arrays:
            count = writer.let(ast.Constant(0), "count")
            with scope.when(ast.Constant(True) if array.null is None else expr("not N", N=array.null)):
                writer.set(count, count_of(scope, array))
            counts.append(ast.Name(count, ast.Load()))
        most = counts[0]
        for count_ in counts[1:]:
            most = expr("max(M, C)", M=most, C=count_)
        return arrays, counts, scope.let(most, "elements")

    def steps(self, steps: Sequence[Step]) -> None:
        """Collect the accesses that these steps read."""
        for step in steps:
            match step:
                case Read(access=number):
                    self.single(number)
                case Choose(condition=condition, then=then, otherwise=otherwise):
                    self.choose(condition, then, otherwise)
                case Insert(conflict=conflict) if conflict is not None:
                    self.steps(conflict)
                case Each():
                    self.each(step)
                case Insert() | Update() | Delete() | Set() | Reject() | Emit():
                    pass
                case _:
                    assert_never(step)

    def choose(self, condition: Expr, then: Sequence[Step], otherwise: Sequence[Step]) -> None:
        if not _decided_at_once(self.place.node, condition):
            self.steps(then)
            self.steps(otherwise)
            return
        before = set(self.sure)
        with self.scope.when(is_true(emit(self.scope, self.row, condition))):
            self.steps(then)
        one, self.sure = self.sure, before
        with self.scope.otherwise():
            self.steps(otherwise)
        self.perhaps |= one | self.sure
        self.sure &= one

    def single(self, number: int) -> None:
        """Collect the access, unless it is collected already."""
        if number in self.sure or number in self.place.lists:
            return
        word = self.place.at(self.place.single[number])
        absent = expr("ld_i64(T, W) == 0", T=self.transaction, W=word)
        with self.scope.when(absent if number in self.perhaps else ast.Constant(True)):
            self.flow.writer.code("st_i64(T, W, A)", T=self.transaction, W=word, A=self.at)
            self.name(number, self.row)
        self.sure.add(number)

    def each(self, step: Each) -> None:
        """Collect the rows that each element names; rows that the event names directly are collected once."""
        writer, scope = self.flow.writer, self.scope
        mine = {n: at for n, at in self.place.lists.items() if at.each is step}
        for inside in every(step.steps):
            if isinstance(inside, Read):
                self.single(inside.access)
        if not mine:
            return
        word = next(iter(mine.values())).word
        writer.code("st_i64(T, W, A)", T=self.transaction, W=self.place.at(word), A=self.at)
        arrays, counts, most = self.elements(step)
        turn = writer.fresh("p")
        with writer.for_(turn, 0, most), scope.block():
            index = ast.Name(turn, ast.Load())
            values: dict[int, Val] = {}
            for number, (array, count) in enumerate(zip(arrays, counts, strict=True), step.local):
                local = self.place.node.accesses[number]
                assert isinstance(local, Local)
                values[number] = scope.variables(local.type, True, "local")
                with scope.when(expr("P < C", P=index, C=count)):
                    scope.assign(values[number], element(scope, array, count, index))
            if step.numbered:
                values[step.local + len(arrays)] = Val(BIGINT, (expr("P + 1", P=index),))
            frame = self.frame(values)
            for number in sorted(mine, key=lambda n: mine[n].turn):
                self.name(number, frame)

    def frame(self, values: dict[int, Val]) -> Row:
        """The event with the values of these locals; nothing else is read."""
        node = self.place.node
        starts = frame_starts(node.width, node.tables, node.accesses)
        made: list[Val] = [null_of(f.type) for f in node.frame[node.width :]]
        for number, value in values.items():
            made[starts[number] - node.width] = value
        return self.row.with_added(node.width, made)

    def name(self, access_number: int, frame: Row) -> None:
        """Add an access, to the row with its key."""
        writer, scope = self.flow.writer, self.scope
        access = self.place.node.access(access_number)
        if self.flow.stage.asks:
            steps = (s for s in every(self.place.program.steps) if isinstance(s, Update | Insert | Delete))
            mode = WRITES if any(s.access == access_number for s in steps) else READS
            writer.code("ask(A, MODE)", A=self.at, MODE=mode)
        number = self.place.tables + access.table
        layout = self.all.shapes[number]
        key = [emit(scope, frame, k) for k in access.key]
        null = any_null(key)
        for word, value in (
            (c.ACCESS_BEFORE, ast.Constant(0)),
            (c.ACCESS_DONE, ast.Constant(0)),
            (c.ACCESS_TRANSACTION, ast.Name(self.transaction, ast.Load())),
            (c.ACCESS_STATE, ast.Constant(0)),
        ):
            writer.code("st_i64(A, W, V)", A=self.at, W=word, V=value)
        with scope.when(ast.Constant(True) if null is None else expr("not N", N=null)):
            known = [Val(k.type, k.parts) for k in key]
            for f, part_of_key in zip(layout.keys.fields, known, strict=True):
                for n, part in enumerate(value_words(part_of_key)):
                    writer.code("st_i64(A, W, V)", A=self.at, W=image(f.at(n)), V=part)
            shape = layout.shape
            kind = (
                number << c.TAG_TABLE_SHIFT
                | shape.key_words << c.TAG_KEY_SHIFT
                | shape.entry_words << c.TAG_WORDS_SHIFT
                | (c.TAG_ROW_TEXTS if layout.has_texts else 0)
            )
            texts = string_words(layout.keys.fields)
            if texts:
                kind |= c.TAG_KEY_TEXTS
                bits = sum(1 << word for word in texts)
                writer.code("st_i64(A, W, BITS)", A=self.at, W=image(shape.entry_words), BITS=bits)
            hash32 = layout.keys.hash(scope, known)
            writer.code("st_i64(A, W, KIND | H)", A=self.at, W=c.ACCESS_TAG, KIND=kind, H=hash32)
        if null is not None:
            with scope.otherwise():
                writer.code("st_i64(A, W, NO_ROW)", A=self.at, W=c.ACCESS_TAG, NO_ROW=c.NO_ROW)
                if self.flow.stage.asks:
                    writer.code("ask(A, MODE)", A=self.at, MODE=NOTHING)
        writer.code("A += SIZE", A=self.at, SIZE=self.all.access_bytes)


def image(word: int) -> int:
    """A word of an entry, in an access."""
    name = f"IMAGE_{word.name}" if isinstance(word, Word) else ""
    return Word(c.ACCESS_IMAGE + word, name) if name else c.ACCESS_IMAGE + word
