"""Route a row through the operators of a stage while code is written: depth first, one event at a time.

A `Flow` is one function of the stage being written: its scope, its open ports, and what is known about the event (its
serial, whether it may be late, the instant when a window is closing). `deliver` hands a node's row to the ports and
nodes that read it, in plan order, and each writes its code in place; the operator's own file defines that code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter

from cq.codegen.expressions.emit import emit
from cq.codegen.ports import Port, Position
from cq.codegen.row_words import words_of
from cq.codegen.stage_draft import DueWord, StageDraft
from cq.codegen.state.hash_tables import Keys, TableLocals
from cq.codegen.state.pane_tables import PaneAtHand
from cq.codegen.values import Row, Scope, Val
from cq.codegen.writer import Writer, as_expr, expr
from cq.entries import enter
from cq.errors import NOWHERE
from cq.lang.expressions import Expr, can_fail
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import sources_of
from cq.records import dataclass, field, replace
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Counter, GroupKey, Groups, Met
from cq.runtime.layout.words import Word

NODE, START, ARRIVAL = abi.STATE_ERROR_NODE, abi.STATE_ERROR_START, abi.STATE_ERROR_ARRIVAL
GROUP, ENTRY, TABLE = abi.STATE_ERROR_GROUP, abi.STATE_ERROR_ENTRY, abi.STATE_ERROR_TABLE
CHAINED = "chains"  # consumes events whose transactions were evaluated before
FATAL = Word(2, "FATAL")  # "late" of a late row whose source says late = 'fail'


CLOSER_ARGUMENTS = ("state", "out", "constants", "instant", "serial")
FINISHER_ARGUMENTS = ("state", "out", "constants", "serial")
PASSED_ARGUMENTS = (*FINISHER_ARGUMENTS, "turn", "arrival")  # then the words of the row's columns
PASS, PASS_ROW = "pass", "pass_row"  # how the names of functions begin that take rows on


def passed_row_arguments(stage: StageDraft) -> tuple[str, ...]:
    """The arguments of a function that takes rows on while a batch is taken; the words of the row's columns follow.

    Rows that a later stage takes carry their cause and, if it asks for it, their watermark.
    """
    carried = ("watermark",) * stage.passes_watermarks + ("cause",) * (not stage.planned.final)
    return (*PASSED_ARGUMENTS, "batch", "port", "row", "late", *carried)


@dataclass(frozen=True, slots=True)
class Event:
    """What a function of the stage handles: a source row, or something due at an instant or at the end.

    failed: the function's result on an error.  row, port: where errors place it; -1 if it is not a row.
    late: nonzero if the row is late, FATAL if that ends the run.
    roomy: the function checks beforehand that the ports have room.
    instant: at which it makes rows, NEVER for the end; None: its function says what causes them.
    """

    serial: ast.expr
    position: Position
    failed: ast.expr
    row: ast.expr
    port: int | ast.expr = 0
    late: ast.expr | None = None
    roomy: bool = False
    instant: ast.expr | None = None


def closing(stage: StageDraft, node: LogicalNode, instant: ast.expr, start: ast.expr) -> Event:
    """The event of an operator that emits what is due; its function has the locals serial and arrival."""
    serial, arrival = ast.Name("serial", ast.Load()), ast.Name("arrival", ast.Load())
    position = Position(serial, instant, stage.order[id(node)] + 1, start, arrival)
    return Event(serial, position, ast.Constant(abi.ERROR), expr("-1"), instant=instant)


def _rows_made(stage: StageDraft, instant: ast.expr) -> None:
    """The position of rows made at an instant, or at the end, in the next stage.

    Their watermark makes everything due before the instant be served before they are taken.
    """
    code, at_end = stage.writer.code, isinstance(instant, ast.Constant)
    if stage.passes_watermarks:
        code("watermark = W", W=instant if at_end else expr("I - 1", I=instant))
    if not stage.planned.final:
        code("cause = C", C=abi.CAUSE_END if at_end else expr("I + BASE", I=instant, BASE=abi.CAUSE_INSTANT))


@dataclass(frozen=True, slots=True)
class GroupAtHand:
    """The group errors name: 1 + its place in StageDraft.groups, its entry, its table, its window's start.

    For a row that another one matched, the entry is its time, and there is no table.
    """

    number: int
    entry: ast.expr
    table: ast.expr
    start: ast.expr


@dataclass(slots=True)
class Flow:
    """One function being written; see the module docstring."""

    stage: StageDraft
    scope: Scope
    ports: dict[int, Port]
    event: Event
    position: Position
    late: ast.expr | None  # as in Event; None once late rows have been dropped
    branch: int | None = None  # the branch of the stage whose lanes hold the row of a leaf
    turn: int = 0  # how often this row has reached operators of branches, over all branches
    group: GroupAtHand | None = None  # whose values are computed
    keep: ast.expr | None = None  # a filter's condition, where rows are written first and counted if it holds
    leaf: LogicalNode | None = None  # where the rows come from
    ahead: Row | None = None  # the source row several iterations ahead, for prefetching
    soon: Row | None = None  # and one half as far ahead
    steps: tuple[Row, Row, Row] | None = None  # the rows whose three-step look-ups are at step 1, 2, 3
    # the rows whose arrays are fetched, and whose elements' look-ups are at step 1 and 2
    lists: tuple[Row, Row, Row] | None = None
    has_batch: bool = False  # the function takes rows of a batch, its argument
    at_end: bool = False  # the function emits rows at the end of all inputs
    passing: LogicalNode | None = None  # whose rows the function takes on (passing.py)
    tables: dict[int, TableLocals] = field(default_factory=dict)
    panes: dict[int, PaneAtHand] = field(default_factory=dict)
    stale: list[Callable[[], None]] = field(default_factory=list)  # write code that reloads what other functions change
    reloads: list[list[ast.stmt]] = field(default_factory=list)  # blocks after calls of such functions

    @property
    def writer(self) -> Writer:
        return self.stage.writer

    @property
    def serial(self) -> ast.expr:
        return self.event.serial

    @property
    def roomy(self) -> bool:
        return self.event.roomy

    def flush(self) -> None:
        """Write back everything kept in locals."""
        for port in self.ports.values():
            port.flush()

    def no_memory(self, what: str) -> None:
        self.scope.fail(ErrorCode.NO_MEMORY, what, NOWHERE)

    def leave(self, result: ast.expr) -> None:
        """Return from the function after writing everything back."""
        self.flush()
        self.writer.code("return X", X=result)

    @contextmanager
    def of_group(
        self, names: tuple[str, ...], keys: Keys, entry: ast.expr, table: ast.expr, lag_us: int | None
    ) -> Iterator[None]:
        """Inside, and in stateless operators after it, failures are reported with the group of this entry.

        lag_us: as in Groups.
        """
        made = tuple(
            GroupKey(n, f.type, f.word, f.null_word, f.null_bit) for n, f in zip(names, keys.fields, strict=True)
        )
        self.stage.groups.append(Groups(made, lag_us))
        self.group = GroupAtHand(len(self.stage.groups), entry, table, self.position.start)
        yield
        self.group = None

    @contextmanager
    def beside(self, side: str, time: ast.expr) -> Iterator[None]:
        """Inside, failures are reported with the kept row they concern: its side of the join, and its event time."""
        assert self.group is None, "a pair inside a group"
        self.stage.groups.append(Met(side))
        self.group = GroupAtHand(len(self.stage.groups), time, ast.Constant(0), self.position.start)
        yield
        self.group = None

    @contextmanager
    def on_time(self, node: LogicalNode) -> Iterator[None]:
        """Inside, the row is on time; a late one was counted at `node` instead."""
        if self.late is None:
            yield
            return
        late, self.late = self.late, None
        with self.scope.when(expr("L != 0", L=late)):
            if any(s.strict for s in sources_of(self.stage.plan.nodes())):
                with self.scope.when(expr("L == FATAL", L=late, FATAL=FATAL)):
                    self.scope.fail(ErrorCode.LATE, "the row is late: its event time is below the watermark", node.span)
            self.writer.code("st_i64(state, W, ld_i64(state, W) + N)", W=abi.STATE_LATE_ROWS, N=node.copies)
            self.count(node, attrgetter("late"), node.copies)
        with self.scope.otherwise():
            yield
        self.late = late

    def _readers(self, node: LogicalNode) -> Iterator[tuple[LogicalNode, int]]:
        """The readers of a node's rows in this branch, and at which input.

        With several branches, the results of a leaf's row are ordered by turns, counted over all branches in the order
        in which one loop would take them.
        """
        turns = self.stage.turns
        for reader, port in self.stage.readers.get(id(node), ()):
            if self.branch is None or id(node) not in turns:
                yield reader, port
                continue
            behind = self.turn + turns.get(id(reader), 1)
            if self.branch in self.stage.sees[id(reader)]:
                self.position = replace(self.position, node=self.turn)
                yield reader, port
            self.turn = behind

    def count(self, node: LogicalNode, word: Callable[[Counter], int], rows: ast.expr | int) -> None:
        """Add to a counter of the operator, if there is one."""
        counter = self.stage.counters.get(id(node))
        if counter is not None:
            self.writer.code("st_i64(state, W, ld_i64(state, W) + N)", W=word(counter), N=rows)

    def _counts_here(self, node: LogicalNode) -> bool:
        """Whether its rows are counted in this branch: what is below the operators with state runs in several."""
        seen = self.stage.sees.get(id(node))
        return self.branch is None or not seen or id(node) not in self.stage.prefix or self.branch == min(seen)

    def _passes_on(self, node: LogicalNode) -> bool:
        """Whether a function of its own takes the rows of `node` on."""
        if node is self.passing or self.group is not None or self.keep is not None:
            return False
        if self.at_end:
            return id(node) in self.stage.passing_at_end
        return self.has_batch and id(node) in self.stage.passing_rows

    def after_call(self) -> None:
        """A function was called that may have written to ports and changed tables: locals are read again here, at the
        end of a block.

        Those of tables that code further on uses are not known yet: they are written when the function is complete.
        """
        for port in self.ports.values():
            port.reopen()
        self.reloads.append(self.writer.here())

    def complete(self) -> None:
        """Write what reloads locals after calls."""
        for block in self.reloads:
            with self.writer.into(block):
                for read_again in self.stale:
                    read_again()

    def _pass_on(self, node: LogicalNode, row: Row) -> None:
        """Call the function that takes the rows of `node` on."""
        name = f"{PASS if self.at_end else PASS_ROW}_{self.stage.order[id(node)]}"
        self.stage.passed[name] = node
        words = [w for i, f in enumerate(node.schema.fields) for w in words_of(f, row.column(i))]
        arguments = PASSED_ARGUMENTS if self.at_end else passed_row_arguments(self.stage)
        late = ast.Constant(0) if self.late is None else self.late
        mine = {
            "turn": as_expr(self.position.node), "arrival": self.position.arrival, "port": as_expr(self.event.port),
            "row": self.event.row, "late": late,
        }  # fmt: skip
        given = [mine.get(a, as_expr(a)) for a in arguments]
        self.flush()
        status = self.writer.let(ast.Call(ast.Name(name, ast.Load()), [*given, *words], []), "status")
        with self.writer.if_(expr("S == DONE", S=status, DONE=abi.DONE)):
            self.after_call()
        with self.writer.otherwise():
            self.writer.code("return X", X=as_expr(status) if self.at_end else self.event.failed)

    def deliver(self, node: LogicalNode, row: Row) -> None:
        """Hand a row of `node` to its readers, in plan order."""
        if self._passes_on(node):
            self._pass_on(node, row)
            return
        if self._counts_here(node):
            self.count(node, attrgetter("rows"), 1 if self.keep is None else expr("pick(X, 1, 0)", X=self.keep))
        for number in self.stage.outputs.get(id(node), ()):
            values = [row.column(i) for i in range(len(node.schema))]
            self.ports[number].append(values, self.position, self.roomy, self.keep)
        group = self.group
        for reader, port in self._readers(node):
            self.group = group if reader.groups is not None and not reader.keeps_state else None
            with self.scope.block():
                self.writer.line(reader.span.line, reader.operator)
                name = "gather" if id(reader) in self.stage.gathered else reader.operator
                name = CHAINED if id(reader) in self.stage.chained else name
                CONSUME[name](self, reader, port, row)
        self.group = group


Consume = Callable[[Flow, LogicalNode, int, Row], None]
CONSUME: dict[str, Consume] = {}
CopiesText = Callable[[LogicalNode], bool] | bool
COPIES_TEXT: dict[str, CopiesText] = {}


def consumes(operator: str, *, copies_text: CopiesText) -> Callable[[Consume], Consume]:
    """Register what an operator does with a row of input `port`.

    copies_text: whether it makes texts that live for one step, other than those of its expressions. There is no
    default: texts of an operator that omitted it would never be freed.
    """

    def register(function: Consume) -> Consume:
        enter(CONSUME, operator, function, "@consumes")
        COPIES_TEXT[operator] = copies_text
        return function

    return register


Close = Callable[[StageDraft, LogicalNode], None]
CLOSE: dict[str, Close] = {}
FINISH: dict[str, Close] = {}


Due = Callable[[StageDraft, LogicalNode], tuple[DueWord, ...]]
DUE_BY_DATA: dict[str, Due] = {}
DUE_ON_GRID: dict[str, Due] = {}


def due_by_data(operator: str) -> Callable[[Due], Due]:
    """Register where an operator keeps closing times that depend on its rows, and are on no grid known beforehand.

    Rows then come with their watermarks, and what is due is served before a row is taken.
    """

    def register(function: Due) -> Due:
        enter(DUE_BY_DATA, operator, function, "@due_by_data")
        return function

    return register


def due_on_grid(operator: str) -> Callable[[Due], Due]:
    """Register where an operator keeps its next closing time, if admission cuts tickets at all it can have.

    Then rows need not check it, unless they are made at instants of an earlier stage.
    """

    def register(function: Due) -> Due:
        enter(DUE_ON_GRID, operator, function, "@due_on_grid")
        return function

    return register


def closes(operator: str) -> Callable[[Close], Close]:
    """Register what writes the function that serves an operator's closing times."""

    def register(function: Close) -> Close:
        enter(CLOSE, operator, function, "@closes")
        return function

    return register


def finishes(operator: str) -> Callable[[Close], Close]:
    """Register what writes the function an operator runs when all inputs have ended."""

    def register(function: Close) -> Close:
        enter(FINISH, operator, function, "@finishes")
        return function

    return register


def row_of(scope: Scope, values: list[Val]) -> Row:
    """A row whose values are at hand."""

    def given(value: Val) -> Callable[[], Val]:
        return lambda: value

    return Row(scope, [given(v) for v in values])


def computed(flow: Flow, exprs: tuple[Expr, ...], row: Row) -> Row:
    """A row of expressions over another row: those that can fail are computed now, in order, the rest on demand."""

    def late(e: Expr) -> Callable[[], Val]:
        return lambda: emit(flow.scope, row, e)

    made = Row(flow.scope, [late(e) for e in exprs])
    for index, e in enumerate(exprs):
        if can_fail(e):
            made.column(index)
    return made


@contextmanager
def function(
    stage: StageDraft, name: str, arguments: tuple[str, ...], node: LogicalNode, event: Event, *others: LogicalNode
) -> Iterator[Flow]:
    """Write the function of the stage that handles an event of `node`, or of other nodes; inside, its Flow."""

    def fail(code: ErrorCode, site: int) -> None:
        flow.flush()
        at = flow.position
        stage.writer.code(
            "failed(state, CODE, SITE, PORT, ROW, SERIAL)",
            CODE=code, SITE=site, PORT=event.port, ROW=event.row, SERIAL=at.serial,
        )  # fmt: skip
        if stage.lanes:  # the rest of the position: rows that other lanes emitted before it come first
            for word, value in ((NODE, at.node), (START, at.start), (ARRIVAL, at.arrival)):
                stage.writer.code("st_i64(state, W, V)", W=word, V=value)
        if flow.group is not None:
            g = flow.group
            for word, value in ((GROUP, ast.Constant(g.number)), (ENTRY, g.entry), (TABLE, g.table), (START, g.start)):
                stage.writer.code("st_i64(state, W, V)", W=word, V=value)
        stage.writer.code("return X", X=event.failed)

    with stage.writer.function(name, arguments):
        for value in (event.position.start, event.position.arrival):
            if isinstance(value, ast.Name) and value.id not in arguments:  # unknown if a failure comes first
                stage.writer.preset(value.id)
        scope = Scope(stage.writer, stage.constants, stage.sites, fail, in_lanes=stage.lanes)
        numbers = sorted(set().union(*(reachable_ports(stage, n) for n in (node, *others))))
        carried = (stage.lanes, stage.passes_watermarks, not stage.planned.final)
        ports = {n: Port(n, stage.ports[n], scope, *carried) for n in numbers}
        flow = Flow(stage, scope, ports, event, event.position, event.late)
        flow.at_end = isinstance(event.instant, ast.Constant)
        for port in ports.values():
            port.open()
        if event.instant is not None:
            _rows_made(stage, event.instant)
        yield flow
        flow.complete()


def reachable_ports(stage: StageDraft, node: LogicalNode) -> set[int]:
    """Ports that rows of `node` can reach within one event."""
    return {port for at in reached(stage, node) for port in stage.outputs.get(id(at), ())}


def reached(stage: StageDraft, node: LogicalNode) -> list[LogicalNode]:
    """The operators that emit within one event what comes of a row of `node`, itself included: not past operators that
    keep rows for later."""
    found, seen = [node], {id(node)}
    for at in found:
        for reader, port in stage.readers.get(id(at), ()):
            if not reader.holds_back(port) and id(reader) not in seen:
                seen.add(id(reader))
                found.append(reader)
    return found
