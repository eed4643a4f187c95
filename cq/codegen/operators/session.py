"""session: a row extends the open sessions of its group that it touches, or begins one; at an instant they leave."""

from __future__ import annotations

import ast

from cq.codegen.arrivals import arrival_of
from cq.codegen.expressions.emit import emit
from cq.codegen.flow import (
    CLOSER_ARGUMENTS,
    Closer,
    DueWord,
    Flow,
    StagePlan,
    closes,
    closing,
    consumes,
    due_by_data,
    function,
    row_of,
)
from cq.codegen.prefetch import prefetch
from cq.codegen.state.aggregate_parts import Entry
from cq.codegen.state.aggregates import Parts
from cq.codegen.state.hash_tables import Keys, Sought, TableLocals, lay_out, load_fields, string_words
from cq.codegen.state.moving import Held, holds, interval_entries
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.lang.types import TIMESTAMP
from cq.planner.operators import SessionAggregate
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import intervals, order
from cq.runtime.containers.table_words import ENTRY_FIRST
from cq.runtime.layout import abi
from cq.runtime.layout.job import Slot, TableShape

START, LAST = order.INTERVAL_START, order.INTERVAL_LAST


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a session's things are in its entry, behind its times."""

    keys: Keys
    parts: Parts
    shape: TableShape


def layout_of(node: SessionAggregate) -> Layout:
    keys = Keys(*lay_out([(k.type, k.nullable) for k in node.keys], order.INTERVAL_KEYS, "SESSION_KEY"))
    parts = Parts.of(node.aggregates, keys.next_word, "SESSION")
    strings = (*string_words(keys.fields), *parts.strings)
    shape = TableShape(parts.next_word, keys.next_word - order.INTERVAL_KEYS, strings, parts.arrivals)
    return Layout(keys, parts, shape)


def _slot(stage: StagePlan, node: SessionAggregate) -> Slot:
    shapes, closes = (layout_of(node).shape,), (node.gap_us + node.lag_us - 1,)
    return stage.slot(
        node, "sessions",
        lambda offset: Slot(
            "sessions", offset, "intervals", node.identity, shapes=shapes, parameters=closes
        ),
    )  # fmt: skip


@holds("session")
def held_session(node: LogicalNode) -> tuple[Held, ...]:
    """The open sessions."""
    assert isinstance(node, SessionAggregate)
    return (interval_entries("sessions", layout_of(node).keys),)


@due_by_data("session")
def session_due(stage: StagePlan, node: LogicalNode) -> tuple[DueWord, ...]:
    """A gap after the last row of some session."""
    assert isinstance(node, SessionAggregate)
    return (DueWord(_slot(stage, node), intervals.INTERVALS_NEXT),)


@consumes("session", copies_text=False)
def consume_session(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Find the sessions of the row's group that it touches, make them one that it is in, and add to that."""
    assert isinstance(node, SessionAggregate)
    with flow.on_time(node):
        scope, layout, slot = flow.scope, layout_of(node), _slot(flow.stage, node)
        local = _table(flow, slot, layout)
        time = row.column(node.time.column).it
        if node.time.shift_us:
            time = scope.let(expr("T + S", T=time, S=node.time.shift_us), "t")
        prefetch(flow, node.input, layout.keys, local, node.keys)
        values = [emit(scope, row, k) for k in node.keys]
        arrival = arrival_of(flow, node)
        entry = Entry(_session_of(flow, node, layout, slot, local, values, time, arrival), local.address)
        layout.parts.add(scope, entry, row, arrival)


def _table(flow: Flow, slot: Slot, layout: Layout) -> TableLocals:
    """The table of the open sessions in locals of the function."""
    local = flow.tables.get(slot.offset)
    if local is None:
        table = expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=intervals.INTERVALS_TABLE)
        local = flow.tables[slot.offset] = TableLocals.fixed(flow.scope, layout.shape.entry_words, table)
        flow.stale.append(local.reload)
    return local


def _session_of(
    flow: Flow, node: SessionAggregate, layout: Layout, slot: Slot, local: TableLocals, values: list[Val],
    time: ast.expr, arrival: ast.expr,
) -> ast.expr:  # fmt: skip
    """The one session of the group that a row of this time is in, with its times as they are now."""
    writer, scope = flow.writer, flow.scope
    session = writer.let(ast.Constant(0), "session")  # that the row touches, and a second one that starts later
    later = writer.let(ast.Constant(0), "later")
    first = scope.let(expr("max(T, LEAST) - GAP", T=time, LEAST=abi.BEFORE_ALL + node.gap_us, GAP=node.gap_us), "first")
    last = scope.let(expr("min(T, MOST) + GAP", T=time, MOST=abi.NEVER - 1 - node.gap_us, GAP=node.gap_us), "last")
    state = writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "sessions")
    sought = Sought.of(layout.keys, local, values)
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
        layout.parts.start(scope, found)
    with scope.otherwise():
        with scope.when(expr("L != 0", L=later)):
            _absorb(flow, layout, found, Entry(ast.Name(later, ast.Load()), local.address))
        writer.code("st_i64(E, W, min(ld_i64(E, W), T))", E=session, W=START, T=time)
        writer.code("st_i64(E, W, max(ld_i64(E, W), T))", E=session, W=LAST, T=time)
    return found.address


def _absorb(flow: Flow, layout: Layout, session: Entry, later: Entry) -> None:
    """A session and one that starts later are one: the first of them."""
    code, e, other = flow.writer.code, session.address, later.address
    layout.parts.merge(flow.scope, session, later)
    code("st_i64(E, W, min(ld_i64(E, W), ld_i64(L, W)))", E=e, L=other, W=ENTRY_FIRST)
    code("st_i64(E, W, ld_i64(L, W))", E=e, L=other, W=LAST)
    code("st_i64(L, W, NEVER)", L=other, W=START, NEVER=abi.NEVER)


@closes("session")
def close_session(stage: StagePlan, node: LogicalNode) -> None:
    """A function that emits the sessions that are due; it goes on where a full port stopped it."""
    assert isinstance(node, SessionAggregate)
    layout, slot = layout_of(node), _slot(stage, node)
    name = f"close_{slot.offset}"
    (due,) = session_due(stage, node)
    stage.closers.append(Closer(name, due.next_end, stage.order[id(node)]))
    event = closing(stage, node, ast.Name("instant", ast.Load()), ast.Name("start", ast.Load()))
    with function(stage, name, CLOSER_ARGUMENTS, node, event) as flow:
        writer, scope = flow.writer, flow.scope
        state = writer.hoist(expr("ld_i64(state, W)", W=slot.offset), "sessions")
        writer.code("if ld_i64(P, NEXT) != instant:\n    return 0", P=state, NEXT=intervals.INTERVALS_NEXT)
        count = expr("ld_i64(P, W)", P=state, W=intervals.INTERVALS_COUNT)
        with scope.when(expr("N == 0 and intervals_due(P, instant) == 0", N=count, P=state)):
            flow.no_memory("sessions that close")
        with writer.while_(expr("N != 0", N=count)), scope.block():
            for port in flow.ports.values():
                with scope.when(expr("R >= ld_i64(P, W)", R=port.rows, P=port.place, W=abi.PORT_LIMIT)):
                    flow.leave(ast.Constant(abi.MORE))
            entry = scope.let(expr("intervals_first(P)", P=state), "entry")
            _emit_session(flow, node, layout, slot, entry)
            writer.code("intervals_closed(P, E)", P=state, E=entry)
        flow.leave(ast.Constant(abi.DONE))


def _emit_session(flow: Flow, node: SessionAggregate, layout: Layout, slot: Slot, entry: ast.expr) -> None:
    writer, scope = flow.writer, flow.scope
    table = scope.let(expr("ld_i64(ld_i64(state, W), T)", W=slot.offset, T=intervals.INTERVALS_TABLE), "table")
    writer.code("start = ld_i64(E, W)\narrival = ld_i64(E, FIRST)", E=entry, W=START, FIRST=ENTRY_FIRST)
    ends = (scope.let(expr("instant - N", N=node.lag_us + n), hint) for n, hint in ((0, "end"), (1, "time")))
    times = (ast.Name("start", ast.Load()), *ends)
    values = [*(Val(TIMESTAMP, (t,)) for t in times), *load_fields(scope, layout.keys.fields, entry, table)]
    with flow.of_group(node.key_names, layout.keys, entry, table, node.lag_us):
        values += layout.parts.values(scope, Entry(entry, table))
        flow.deliver(node, row_of(scope, values))
