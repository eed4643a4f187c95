"""Admission: the sources of a connected query become one sequence of rows and ends.

Rows are merged by (running maximum of the source's event time, position of the source in the file, row number): every
source keeps its own order and nothing is sorted. The end of a source comes right after its last row; that of an empty
source at the start. A source without a WATERMARK has no event time: its running maximum stays before all times, so its
rows, and then its end, come before the rows of all that have one (such sources among themselves by position).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from cq.lang.functions import Failure
from cq.planner.plan.source import SourceDef
from cq.records import dataclass, field
from cq.reference.evaluate import Row
from cq.reference.operator import BEFORE_ALL


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of a source, ready to be numbered; with `row` None the end of the source.

    number: the row's number in its source, from 1.  place: where errors say it stands.  failure: why its event time
    cannot be computed; such a row moves nothing.
    """

    source: str
    row: Row | None
    time: int = BEFORE_ALL
    place: str = ""
    failure: Failure | None = None


@dataclass(slots=True)
class _Lane:
    """What waits of one source. greatest: the running maximum of the event time of all it ever gave.

    broken: why its next row cannot be read. It stays next in this source, and where its rows have event times, behind
    those of sources that have none.
    """

    source: SourceDef
    greatest: int = BEFORE_ALL
    waiting: deque[tuple[int, Arrival]] = field(default_factory=deque)
    ended: bool = False
    broken: Exception | None = None

    def bound(self) -> tuple[int, int]:
        """No arrival still to come from this source goes before this."""
        if self.waiting:
            return self.waiting[0][0], self.source.position
        timed = self.broken is not None and self.source.event_time is not None
        return max(self.greatest, BEFORE_ALL + timed), self.source.position


class Merge:
    """Takes the arrivals of each source in its order; gives them back in the order of admission once it is known."""

    def __init__(self, sources: Sequence[SourceDef]) -> None:
        self._lanes = {s.name: _Lane(s) for s in sources}
        self._open = list(self._lanes.values())

    def put(self, arrival: Arrival) -> None:
        """Add the next arrival of a source. After the end of a source there is nothing."""
        lane = self._lanes[arrival.source]
        assert not lane.ended, f"a row of {arrival.source} after its end"
        if arrival.row is None:
            lane.ended = True
        elif arrival.time > lane.greatest:
            lane.greatest = arrival.time
        lane.waiting.append((lane.greatest, arrival))

    def broke(self, source: str, error: Exception) -> None:
        """The source has a next row, which cannot be read."""
        self._lanes[source].broken = error

    def take(self) -> Arrival | None:
        """The next arrival of the sequence; None when a source has to speak first (see `waits_for`)."""
        if not self._open:
            return None
        lane = self._open[0] if len(self._open) == 1 else min(self._open, key=_Lane.bound)
        if not lane.waiting:
            return None
        arrival = lane.waiting.popleft()[1]
        if arrival.row is None:
            self._open.remove(lane)
        return arrival

    def waits_for(self) -> str | None:
        """The source whose next arrival decides; None when all have ended. Raises why it cannot be read, if so."""
        if not self._open:
            return None
        lane = min(self._open, key=_Lane.bound)
        if lane.broken is not None and not lane.waiting:
            raise lane.broken
        return lane.source.name
