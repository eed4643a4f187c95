"""Shared by operators over sessions: the open sessions of each key, which a row extends, begins or joins.

What a session holds besides its times and its key depends on the operator: aggregates (operators/session.py), or all
its rows (operators/session_rows.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import CLOSER_ARGUMENTS, Flow, closing, function
from cq.codegen.prefetch import prefetch
from cq.codegen.stage_draft import Closer, DueWord, StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.hash_tables import Keys, Sought, TableLocals, lay_out
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.planner.operators import SessionAggregate, SessionRows
from cq.records import dataclass
from cq.runtime.containers import intervals, order
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Word

START, LAST = order.INTERVAL_START, order.INTERVAL_LAST


def session_keys(node: SessionAggregate | SessionRows) -> Keys:
    """Where the key of a session is in its entry, after its times."""
    return Keys(*lay_out([(k.type, k.nullable) for k in node.keys], order.INTERVAL_KEYS, "SESSION_KEY"))


@dataclass(frozen=True, slots=True)
class Sessions:
    """The open sessions of an operator in the state of a stage.

    start(flow, session): initialises a new session's contents.  absorb(flow, session, later): merges the contents of a
    later session that is joined to it.
    """

    node: SessionAggregate | SessionRows
    keys: Keys
    shape: TableShape
    slot: Slot
    start: Callable[[Flow, Entry], None]
    absorb: Callable[[Flow, Entry, Entry], None]

    @staticmethod
    def slot_of(
        stage: StageDraft, node: SessionAggregate | SessionRows, shape: TableShape, container: str = "intervals"
    ) -> Slot:
        closes = (node.gap_us + node.lag_us - 1,)
        return stage.slot(
            node, "sessions",
            lambda offset: Slot("sessions", offset, container, node.identity, shapes=(shape,), parameters=closes),
        )  # fmt: skip

    def closed(self, flow: Flow, session: Entry) -> None:
        """Write code that removes the first session that is due."""
        flow.writer.code("intervals_closed(P, E)", P=self.state(flow), E=session.address)

    def bounds(self, flow: Flow) -> list[Val]:
        """Start, end and event time of a session that is due."""
        lags = ((0, "end"), (1, "time"))
        ends = (flow.scope.let(expr("instant - N", N=self.node.lag_us + n), hint) for n, hint in lags)
        type_ = self.node.input.schema.type_of(self.node.time)
        return [Val(type_, (t,)) for t in (ast.Name("start", ast.Load()), *ends)]

    def state(self, flow: Flow) -> ast.expr:
        """The address of the intervals."""
        return ast.Name(flow.writer.word("state", self.slot.offset, "sessions"), ast.Load())

    def table(self, flow: Flow) -> TableLocals:
        """The table of the open sessions in locals of the function."""
        local = flow.tables.get(self.slot.offset)
        if local is None:
            table = expr("ld_i64(ld_i64(state, W), T)", W=self.slot.offset, T=intervals.INTERVALS_TABLE)
            local = flow.tables[self.slot.offset] = TableLocals.fixed(flow.scope, self.shape.entry_words, table)
            flow.stale.append(local.reload)
        return local

    def of_row(self, flow: Flow, row: Row) -> tuple[Entry, ast.expr]:
        """Write the search for the sessions of the row's group that it touches, and merge them into one with the row;
        return its entry, with its new times, and the arrival of the row."""
        node, scope, local = self.node, flow.scope, self.table(flow)
        time = row.column(node.time.column).it
        if node.time.shift_us:
            time = scope.let(expr("T + S", T=time, S=node.time.shift_us), "t")
        prefetch(flow, node.input, self.keys, local, node.keys)
        values = [emit(scope, row, k) for k in node.keys]
        arrival = arrival_of(flow, node)
        return self._joined(flow, Sought.of(self.keys, local, values), time, arrival), arrival

    def _joined(self, flow: Flow, sought: Sought, time: ast.expr, arrival: ast.expr) -> Entry:
        writer, scope, local, gap = flow.writer, flow.scope, sought.t, Word(self.node.gap_us, "GAP_US")
        session = writer.let(ast.Constant(0), "session")  # one that the row touches, and another that starts later
        later = writer.let(ast.Constant(0), "later")
        least, most = Word(abi.BEFORE_ALL + gap, "FIRST_WITH_GAP"), Word(abi.NEVER - 1 - gap, "LAST_WITH_GAP")
        first = scope.let(expr("max(T, LEAST) - GAP", T=time, LEAST=least, GAP=gap), "first")
        last = scope.let(expr("min(T, MOST) + GAP", T=time, MOST=most, GAP=gap), "last")
        state = self.state(flow)
        at = writer.let(expr("shr_u(H, S)", H=sought.hash32, S=local.shift), "slot")
        root = writer.let(ast.Constant(0), "entry")
        sought.walk_index(at, root, lambda: writer.code("E = 0\nbreak", E=root), lambda: writer.code("break"))
        with scope.when(expr("E != 0", E=root)):
            links = scope.let(expr("ld_i64(E, W)", E=root, W=order.INTERVAL_LINKS), "links")
            start = scope.let(expr("ld_i64(E, W)", E=root, W=START), "start_")
            end = scope.let(expr("ld_i64(E, W)", E=root, W=LAST), "last_")
            alone = "L == 0 or T >= S and (L < AFTER or T <= E)"  # no other one of the group can touch the row
            with scope.when(expr(alone, L=links, T=time, S=start, E=end, AFTER=order.LINKED_AFTER)):
                inside = expr("S <= TO and E >= SINCE", S=start, TO=last, E=end, SINCE=first)
                with scope.when(inside):
                    writer.set(session, root)
            with scope.otherwise():
                touched = expr("intervals_touched(P, AT, T, SINCE, TO)", P=state, AT=at, T=time, SINCE=first, TO=last)
                writer.set(session, touched)
                writer.set(later, expr("ld_i64(P, W)", P=state, W=intervals.INTERVALS_LATER))
        found = Entry(ast.Name(session, ast.Load()), local.address)
        with scope.when(expr("S == 0", S=session)):
            made = expr("intervals_insert(P, AT, H, A, T)", P=state, AT=at, H=sought.hash32, A=arrival, T=time)
            sought.make(session, made)
            self.start(flow, found)
        with scope.otherwise():
            with scope.when(expr("L != 0", L=later)):
                self._absorb(flow, found, Entry(ast.Name(later, ast.Load()), local.address))
            writer.code("st_i64(E, W, min(ld_i64(E, W), T))", E=session, W=START, T=time)
            writer.code("st_i64(E, W, max(ld_i64(E, W), T))", E=session, W=LAST, T=time)
        return found

    def _absorb(self, flow: Flow, session: Entry, later: Entry) -> None:
        """Merge a session and one that starts later into the first of them."""
        code, e, other = flow.writer.code, session.address, later.address
        self.absorb(flow, session, later)
        code("st_i64(E, W, min(ld_i64(E, W), ld_i64(L, W)))", E=e, L=other, W=ENTRY_FIRST)
        code("st_i64(E, W, ld_i64(L, W))", E=e, L=other, W=LAST)
        code("st_i64(L, W, NEVER)", L=other, W=START, NEVER=abi.NEVER)


def session_due_words(slot: Slot) -> tuple[DueWord, ...]:
    """A gap after the last row of some session."""
    return (DueWord(slot, intervals.INTERVALS_NEXT),)


Leave = Callable[[Flow, Entry], None]
"""(function, session) -> write the rows of the first session that is due. Its start and first arrival are in the locals
`start` and `arrival`. Called again until it has called `Sessions.closed`."""


def close_sessions(stage: StageDraft, sessions: Sessions, leave: Leave) -> None:
    """Write the function that emits the sessions that are due; it resumes where a full port stopped it."""
    node, slot = sessions.node, sessions.slot
    name = f"close_{slot.offset}"
    (due,) = session_due_words(slot)
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Name("start", ast.Load()))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        writer, scope, state = flow.writer, flow.scope, sessions.state(flow)
        writer.code("if ld_i64(P, NEXT) != instant:\n    return 0", P=state, NEXT=intervals.INTERVALS_NEXT)
        count = expr("ld_i64(P, W)", P=state, W=intervals.INTERVALS_COUNT)
        with scope.when(expr("N == 0 and intervals_due(P, instant) == 0", N=count, P=state)):
            flow.no_memory("sessions that close")
        with writer.while_(expr("N != 0", N=count)), scope.block():
            for port in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            entry = scope.let(expr("intervals_first(P)", P=state), "entry")
            table = scope.let(expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=intervals.INTERVALS_TABLE), "table")
            writer.code("start = ld_i64(E, W)\narrival = ld_i64(E, FIRST)", E=entry, W=START, FIRST=ENTRY_FIRST)
            leave(flow, Entry(entry, table))
        flow.leave(ast.Constant(abi.DONE))
