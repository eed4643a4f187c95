"""The graph of operators and the processing of one event: `docs/language.md`, "Meaning", as code.

A row: (1) is it late, its time below the watermark of its own source before it? (2) the watermark moves (the minimum
over the sources that have not ended), and every instant it passes at which some operator has something to do is served,
ascending, each through the whole graph; (3) the row itself goes through the graph. The end of a source is a separate
event, with step (2) only. At the very end the remaining instants are served, then the operators are told of the end.

Within an event the operators are visited inputs first, each reading its inputs in order. Rows of one event are
delivered as they leave the graph; if an operator fails, the rows it had already emitted go on to the operators below it
(one of them may fail at an even earlier row, which is then the error), and operators later in the order of visits get
nothing from that event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cq.lang.functions import Failure
from cq.planner.plan.logical import Output
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef
from cq.records import dataclass
from cq.reference.evaluate import Row
from cq.reference.operator import BEFORE_ALL, NEVER, Clock, RowOperator
from cq.reference.operators import operator_of


class Position(NamedTuple):
    """The position of a row in the total order: the source row that caused it (the next one, for rows caused by an
    end), the instant it left at (NEVER if the row itself or the end of the input caused it), and its number within
    that."""

    serial: int
    instant: int
    ordinal: int


class Delivered(NamedTuple):
    """A row of a result."""

    row: Row
    position: Position


class Stopped(Exception):
    """The graph failed at an event; its rows before the failure are delivered."""

    def __init__(self, failure: Failure, instant: int) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.instant = instant


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator of the visit, and the outputs it reads by port."""

    operator: RowOperator
    reads: tuple[tuple[int, RowOperator], ...]


@dataclass(slots=True)
class _Progress:
    delay_us: int
    greatest: int = BEFORE_ALL
    ended: bool = False
    silent: bool = False

    def watermark(self) -> int:
        if self.ended:
            return NEVER
        return self.greatest - self.delay_us if self.greatest > BEFORE_ALL else BEFORE_ALL


class Graph:
    """The operators of one connected part of a plan. `results[name]` grows as events are processed."""

    def __init__(self, nodes: Sequence[LogicalNode], outputs: Sequence[Output], sources: Sequence[SourceDef]) -> None:
        self.clock = Clock()
        self.operators = [operator_of(n, self.clock) for n in nodes]
        self._by_node = by_node = {id(o.node): o for o in self.operators}
        self._steps = [
            _Step(o, tuple((port, by_node[id(i)]) for port, i in enumerate(o.node.inputs))) for o in self.operators
        ]
        self._timed = [o for o in self.operators if o.defines("next_instant")]
        self._scans = {
            s.name: [o for o in self.operators if o.node.source is not None and o.node.source.name == s.name]
            for s in sources
        }
        self._below = {s.name: self._reached(s.name) for s in sources}
        self._progress = {s.name: _Progress(s.delay_us) for s in sources if s.event_time is not None}
        self._strict = {s.name for s in sources if s.strict}
        self.results: dict[str, list[Delivered]] = {o.name: [] for o in outputs}
        self._delivery = [(self.results[o.name], by_node[id(o.node)], o.limit) for o in outputs]
        self.watermark = BEFORE_ALL
        self.serial = 0  # of the next row

    def _reached(self, source: str) -> list[_Step]:
        """The steps that a row of the source can reach, without scans: they already hold the row."""
        reached = {id(o) for o in self._scans[source]}
        steps = []
        for step in self._steps:
            if any(id(o) in reached for _, o in step.reads):
                reached.add(id(step.operator))
                steps.append(step)
        return steps

    @property
    def full(self) -> bool:
        """Whether every output has reached its limit: nothing that comes later is visible."""
        return all(limit is not None and len(rows) >= limit for rows, _, limit in self._delivery)

    def row(self, source: str, row: Row, time: int) -> bool:
        """Process one accepted row and give it a serial; return whether it was late."""
        progress = self._progress.get(source)
        late = progress is not None and time < progress.watermark()
        if progress is not None and time > progress.greatest:
            progress.greatest = time
            self._move_watermark()
            if self.full:
                return late
        self.clock.late, self.clock.late_fails = late, source in self._strict
        for scan in self._scans[source]:
            scan.on_row(0, row)
        self._visit(self._below[source], NEVER, None)
        self.clock.late = False
        self.serial += 1
        return late

    def end(self, source: str) -> None:
        """The source has ended: it no longer holds back the watermark."""
        progress = self._progress.get(source)
        if progress is not None:
            progress.ended = True
            self._move_watermark()

    def silence(self, source: str) -> None:
        """The source has nothing for now: it no longer holds back the watermark."""
        if source in self._progress:
            self._progress[source].silent = True
            self._move_watermark()

    def speak(self, source: str) -> int:
        """The source is no longer silent. Return its running maximum, raised so that the watermark does not fall."""
        progress = self._progress.get(source)
        if progress is None:
            return BEFORE_ALL
        progress.silent = False
        if self.watermark > BEFORE_ALL:
            progress.greatest = max(progress.greatest, self.watermark + progress.delay_us)
        return progress.greatest

    def finish(self) -> None:
        """All sources have ended: serve the remaining instants, then tell the operators."""
        self.watermark = NEVER
        self._serve_instants()
        self.clock.now = self.clock.over = NEVER
        if not self.full:
            self._visit(self._steps, NEVER, lambda operator: operator.on_end())

    def _move_watermark(self) -> None:
        watermark = min((p.watermark() for p in self._progress.values() if not p.silent), default=BEFORE_ALL)
        if watermark == NEVER and any(p.silent for p in self._progress.values()):
            return
        if watermark > self.watermark:
            self.watermark = watermark
            self._serve_instants()

    def _serve_instants(self) -> None:
        """Serve every instant up to the watermark, ascending."""
        while self._timed and not self.full:
            instant = min([o.next_instant() for o in self._timed])
            if instant > self.watermark or instant == NEVER:
                break
            self._serve(instant)
        self.clock.now = self.clock.over = self.watermark

    def _serve(self, instant: int) -> None:
        def act(operator: RowOperator) -> None:
            if operator.next_instant() <= instant:
                operator.on_instant(instant)

        self.clock.now, self.clock.over = instant, instant - 1
        self._visit(self._steps, instant, act)

    def _visit(self, steps: Sequence[_Step], instant: int, then: Callable[[RowOperator], None] | None) -> None:
        """Visit every step once: pass it its inputs' rows of this event, then let it do what the event itself requires;
        then deliver."""
        at = 0
        try:
            for at, step in enumerate(steps):  # noqa: B007 - where it stopped is asked below
                on_row = step.operator.on_row
                for port, read in step.reads:
                    if read.out:
                        for row in read.out:
                            on_row(port, row)
                if then is not None:
                    then(step.operator)
        except Failure as failure:
            failure = self._pass_on(steps, at, self._told(steps[at].operator.node, failure))
            self._deliver(instant)
            if self.full:
                return
            raise Stopped(failure, instant) from None
        self._deliver(instant)

    def _pass_on(self, steps: Sequence[_Step], at: int, failure: Failure) -> Failure:
        """Pass the rows emitted before a failure through the operators below it; return the failure with the least
        position."""
        cut = {id(steps[at].operator)}
        for step in steps[at + 1 :]:
            if not any(id(read) in cut for _, read in step.reads):
                continue
            cut.add(id(step.operator))
            try:
                for port, read in step.reads:
                    for row in read.out:
                        step.operator.on_row(port, row)
                    if id(read) in cut:
                        break
            except Failure as earlier:
                failure = self._told(step.operator.node, earlier)
        return failure

    def _told(self, node: LogicalNode, failure: Failure) -> Failure:
        """The failure of an operator, with the group whose result the row was, if the operator processes such rows
        alone."""
        groups = node.groups
        if groups is None or node.keeps_state:
            return failure
        path = [node]
        while path[-1].inputs[0] is not groups:
            path.append(path[-1].inputs[0])
        operator = self._by_node[id(groups)]
        failed = next(row for row in operator.out if _fails(row, path[::-1]))
        failure.place = operator.place_of(failed)
        return failure

    def _deliver(self, instant: int) -> None:
        for rows, operator, limit in self._delivery:
            if operator.out:
                new = operator.out if limit is None else operator.out[: max(0, limit - len(rows))]
                rows.extend(
                    [Delivered(row, Position(self.serial, instant, ordinal)) for ordinal, row in enumerate(new)]
                )
        for o in self.operators:
            if o.out:
                o.out.clear()


def _fails(row: Row, nodes: Sequence[LogicalNode]) -> bool:
    """Whether a row fails in one of these stateless operators, each of which reads the one before."""
    rows = [row]
    try:
        for node in nodes:
            operator = operator_of(node, Clock())
            for r in rows:
                operator.on_row(0, r)
            rows = operator.out
    except Failure:
        return True
    return False
