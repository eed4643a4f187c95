"""session: a row extends the open sessions of its group that it touches, or begins one; they leave when due."""

from __future__ import annotations

from cq.codegen.flow import Flow, closes, consumes, due_by_data, row_of
from cq.codegen.sessions import Sessions, close_sessions, session_due_words, session_keys
from cq.codegen.stage_draft import DueWord, StageDraft
from cq.codegen.state.accumulators import Entry
from cq.codegen.state.aggregates import Accumulators
from cq.codegen.state.entry_moves import Held, holds, interval_entries
from cq.codegen.state.hash_tables import Keys, load_fields, string_words
from cq.codegen.values import Row
from cq.planner.operators import SessionAggregate
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.containers import order
from cq.runtime.layout.pipeline import Slot, TableShape


@dataclass(frozen=True, slots=True)
class SessionLayout:
    """The layout of a session's entry, after its times."""

    keys: Keys
    accumulators: Accumulators
    shape: TableShape


def layout_of(node: SessionAggregate) -> SessionLayout:
    keys = session_keys(node)
    accumulators = Accumulators.of(node.aggregates, keys.next_word, "SESSION")
    strings = (*string_words(keys.fields), *accumulators.strings)
    shape = TableShape(accumulators.next_word, keys.next_word - order.INTERVAL_KEYS, strings, accumulators.arrivals)
    return SessionLayout(keys, accumulators, shape)


def _slot(stage: StageDraft, node: SessionAggregate) -> Slot:
    return Sessions.slot_of(stage, node, layout_of(node).shape)


def _sessions(stage: StageDraft, node: SessionAggregate, layout: SessionLayout) -> Sessions:
    def start(flow: Flow, session: Entry) -> None:
        layout.accumulators.start(flow.scope, session)

    def absorb(flow: Flow, session: Entry, later: Entry) -> None:
        layout.accumulators.merge(flow.scope, session, later)

    return Sessions(node, layout.keys, layout.shape, _slot(stage, node), start, absorb)


@holds("session")
def held_session(node: LogicalNode) -> tuple[Held, ...]:
    """The open sessions."""
    assert isinstance(node, SessionAggregate)
    return (interval_entries("sessions", layout_of(node).keys),)


@due_by_data("session")
def session_due(stage: StageDraft, node: LogicalNode) -> tuple[DueWord, ...]:
    """A gap after the last row of some session."""
    assert isinstance(node, SessionAggregate)
    return session_due_words(_slot(stage, node))


@consumes("session", copies_text=False)
def consume_session(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Find the sessions of the row's group that it touches, merge them into one with the row, and add the row."""
    assert isinstance(node, SessionAggregate)
    with flow.on_time(node):
        layout = layout_of(node)
        entry, arrival = _sessions(flow.stage, node, layout).of_row(flow, row)
        layout.accumulators.add(flow.scope, entry, row, arrival)


@closes("session")
def close_session(stage: StageDraft, node: LogicalNode) -> None:
    """A function that emits the results of the sessions that are due."""
    assert isinstance(node, SessionAggregate)
    layout = layout_of(node)
    sessions = _sessions(stage, node, layout)

    def leave(flow: Flow, session: Entry) -> None:
        scope, entry, table = flow.scope, session.address, session.table
        values = [*sessions.bounds(flow), *load_fields(scope, layout.keys.fields, entry, table)]
        with flow.of_group(node.key_names, layout.keys, entry, table, node.lag_us):
            values += layout.accumulators.values(scope, session)
            flow.deliver(node, row_of(scope, values))
        sessions.closed(flow, session)

    close_sessions(stage, sessions, leave)
