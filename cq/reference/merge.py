"""Admission: the sources of a connected query become one sequence of rows and ends.

Rows are merged by (running maximum of the source's event time, position of the source in the file, row number): every
source keeps its own order and nothing is sorted. The end of a source comes right after its last row; that of an empty
source at the start. A source without a WATERMARK has no event time: its running maximum stays before all times, so its
rows, and then its end, come before the rows of all sources that have one (such sources are in order of position).

A source with an IDLE TIMEOUT may fall silent: right after its last row, like an end. Nothing waits for it then, until
it speaks again. If there is such a source, an arrival is returned only when the next one of every source is known, and
not as soon as no unknown one can precede it: which rows were admitted before a source speaks again is visible in the
result.
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
    """A row of a source, ready to be numbered; with `row` None the end of the source, or the start of a silence.

    number: the row's number in its source, from 1.  place: its place in errors.  failure: why its event time cannot be
    computed; such a row does not move the watermark.
    """

    source: str
    row: Row | None
    time: int = BEFORE_ALL
    place: str = ""
    failure: Failure | None = None
    silent: bool = False


@dataclass(slots=True)
class _Lane:
    """The waiting arrivals of one source. greatest: the running maximum of its event times so far.

    broken: why its next row cannot be read. It stays next in this source and, if its rows have event times, after those
    of sources without.
    """

    source: SourceDef
    greatest: int = BEFORE_ALL
    waiting: deque[tuple[int, Arrival]] = field(default_factory=deque)
    ended: bool = False
    broken: Exception | None = None

    def bound(self) -> tuple[int, int]:
        """No future arrival of this source precedes this."""
        if self.waiting:
            return self.waiting[0][0], self.source.position
        timed = self.broken is not None and self.source.event_time is not None
        return max(self.greatest, BEFORE_ALL + timed), self.source.position


class Merge:
    """Takes the arrivals of each source in order; returns them in the order of admission once that is known."""

    def __init__(self, sources: Sequence[SourceDef]) -> None:
        self._lanes = {s.name: _Lane(s) for s in sources}
        self._open = list(self._lanes.values())
        self._silent: list[_Lane] = []
        self._may_be_silent = any(s.idle_us is not None for s in sources)

    def put(self, arrival: Arrival) -> None:
        """Add the next arrival of a source. Nothing follows the end of a source."""
        lane = self._lanes[arrival.source]
        assert not lane.ended, f"a row of {arrival.source} after its end"
        if arrival.row is None:
            lane.ended = not arrival.silent
        elif arrival.time > lane.greatest:
            lane.greatest = arrival.time
        lane.waiting.append((lane.greatest, arrival))

    def broke(self, source: str, error: Exception) -> None:
        """The source has a next row, which cannot be read."""
        self._lanes[source].broken = error

    @property
    def over(self) -> bool:
        """Whether all sources have ended."""
        return not self._open and not self._silent

    @property
    def silent(self) -> list[str]:
        """The sources nobody waits for."""
        return [lane.source.name for lane in self._silent]

    def speaking(self) -> list[str]:
        """The silent sources that have something again."""
        return [lane.source.name for lane in self._silent if lane.waiting or lane.broken is not None]

    def speak(self, source: str, greatest: int) -> None:
        """The source is no longer silent; its running maximum is at least this. If it has ended, its end comes at
        once."""
        lane = self._lanes[source]
        lane.greatest = max(lane.greatest, greatest)
        lane.waiting = deque((max(key, greatest), arrival) for key, arrival in lane.waiting)
        if lane.waiting and lane.waiting[0][1].row is None:
            lane.waiting[0] = (BEFORE_ALL - 1, lane.waiting[0][1])
        self._silent.remove(lane)
        self._open.append(lane)

    def take(self) -> Arrival | None:
        """The next arrival of the sequence; None when a source has to speak first (see `waits_for`)."""
        if not self._open:
            return None
        lane = self._open[0] if len(self._open) == 1 else min(self._open, key=_Lane.bound)
        if not lane.waiting or self._unknown():
            return None
        arrival = lane.waiting.popleft()[1]
        if arrival.row is None:
            self._open.remove(lane)
            if arrival.silent:
                self._silent.append(lane)
        return arrival

    def _unknown(self) -> list[_Lane]:
        """The sources whose next arrival must be known before any other is returned."""
        return [x for x in self._open if not x.waiting and x.broken is None] if self._may_be_silent else []

    def waits_for(self) -> str | None:
        """The source whose next arrival decides; None when all have ended or are silent. Raises the error if it cannot
        be read."""
        if not self._open:
            return None
        lane = min(self._unknown() or self._open, key=_Lane.bound)
        if lane.broken is not None and not lane.waiting:
            raise lane.broken
        return lane.source.name
