"""SessionAggregate: the open sessions of every group, each with its bounds and its states."""

from __future__ import annotations

from typing import Any

from cq.lang.error_places import window_group
from cq.lang.functions import Failure
from cq.planner.operators import SessionAggregate
from cq.planner.operators.window import FIRST_KEY, WINDOW_END, WINDOW_START
from cq.records import dataclass
from cq.reference.evaluate import Row, keys_of
from cq.reference.fold import fold
from cq.reference.operator import NEVER, Clock, RowOperator, runs


@dataclass
class Session:
    """Times of its first and last row by time, the arrival of the row that came first, a state for each aggregate."""

    first: int
    last: int
    arrival: int
    states: list[Any]


@runs("session")
class SessionAggregateRows(RowOperator):
    """A row joins the sessions it touches, at most two: one before and one after it."""

    def __init__(self, node: SessionAggregate, clock: Clock) -> None:
        super().__init__(node, clock)
        self._key = keys_of(node.keys) if node.keys else lambda row: ()
        self._columns = [(n, k.type) for n, k in zip(node.key_names, node.keys, strict=True)]
        self._folds = [fold(call) for call in node.aggregates]
        self._column, self._shift, self._gap = node.time.column, node.time.shift_us, node.gap_us
        self._lag = node.lag_us
        self._open: dict[Row, list[Session]] = {}  # by start

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        time = row[self._column] + self._shift
        sessions = self._open.setdefault(self._key(row), [])
        touched = [s for s in sessions if s.first - self._gap <= time <= s.last + self._gap]
        arrival = self.clock.arrival()
        if touched:
            session = touched[0]
            for later in touched[1:]:
                self._join(session, later)
                sessions.remove(later)
            session.first, session.last = min(session.first, time), max(session.last, time)
        else:
            session = Session(time, time, arrival, [f.zero for f in self._folds])
            sessions.append(session)
            sessions.sort(key=lambda s: s.first)
        session.states = [f.add(state, row, arrival) for f, state in zip(self._folds, session.states, strict=True)]

    def _join(self, session: Session, later: Session) -> None:
        session.last = later.last
        session.arrival = min(session.arrival, later.arrival)
        pairs = zip(self._folds, session.states, later.states, strict=True)
        session.states = [f.merge(mine, other) for f, mine, other in pairs]

    def next_instant(self) -> int:
        return min(
            (s.last + self._gap + self._lag for sessions in self._open.values() for s in sessions), default=NEVER
        )

    def on_instant(self, instant: int) -> None:
        closing = []
        for key, sessions in list(self._open.items()):
            closing += [(s.first, s.arrival, key, s) for s in sessions if s.last + self._gap + self._lag <= instant]
            self._open[key] = [s for s in sessions if s.last + self._gap + self._lag > instant]
            if not self._open[key]:
                del self._open[key]
        for start, _, key, session in sorted(closing, key=lambda item: item[:2]):
            end = session.last + self._gap
            try:
                values = [f.value(state) for f, state in zip(self._folds, session.states, strict=True)]
            except Failure as failure:
                failure.place = window_group(start, end, self._columns, key)
                raise
            self.out.append((start, end, end - 1, *key, *values))

    def place_of(self, row: Row) -> str:
        return window_group(row[WINDOW_START], row[WINDOW_END], self._columns, row[FIRST_KEY:][: len(self._columns)])
