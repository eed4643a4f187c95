"""SessionRows: the open sessions of every group, each with its rows."""

from __future__ import annotations

from cq.planner.operators import SessionRows
from cq.records import dataclass
from cq.reference.evaluate import Row, keys_of
from cq.reference.operator import NEVER, Clock, RowOperator, runs


@dataclass
class KeptSession:
    """Times of a session's first and last row by time, and its rows with their arrivals."""

    first: int
    last: int
    rows: list[tuple[int, Row]]


@runs("session_rows")
class SessionRowsRows(RowOperator):
    """A row joins the sessions it touches, at most two: one before and one after it."""

    def __init__(self, node: SessionRows, clock: Clock) -> None:
        super().__init__(node, clock)
        self._key = keys_of(node.keys) if node.keys else lambda row: ()
        self._column, self._shift, self._gap = node.time.column, node.time.shift_us, node.gap_us
        self._lag = node.lag_us
        self._open: dict[Row, list[KeptSession]] = {}

    def on_row(self, port: int, row: Row) -> None:
        if self.drop_if_late():
            return
        time = row[self._column] + self._shift
        joined = KeptSession(time, time, [(self.clock.arrival(), row)])
        apart = []
        for session in self._open.get(self._key(row), []):
            if session.first - self._gap <= time <= session.last + self._gap:
                joined.first, joined.last = min(joined.first, session.first), max(joined.last, session.last)
                joined.rows += session.rows
            else:
                apart.append(session)
        self._open[self._key(row)] = [*apart, joined]

    def next_instant(self) -> int:
        return min((self._leaves(s) for sessions in self._open.values() for s in sessions), default=NEVER)

    def _leaves(self, session: KeptSession) -> int:
        return session.last + self._gap + self._lag

    def on_instant(self, instant: int) -> None:
        closing = []
        for key, sessions in list(self._open.items()):
            closing += [(s.first, min(s.rows)[0], s) for s in sessions if self._leaves(s) <= instant]
            self._open[key] = [s for s in sessions if self._leaves(s) > instant]
            if not self._open[key]:
                del self._open[key]
        for start, _, session in sorted(closing, key=lambda item: item[:2]):
            end = session.last + self._gap
            rows = sorted(session.rows, key=lambda item: item[0])
            self.out += [(*row, start, end, end - 1) for _, row in rows]
