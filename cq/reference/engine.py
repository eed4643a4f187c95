"""The reference engine: a bound plan over finite inputs, in plain Python, row by row. It defines what a query means.

`run` takes whole inputs; `ReferenceRun` takes one row after another and shows what it causes. Outputs that share no
source are independent queries: each connected part of the plan has its own serials and its own watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from cq.errors import DataError, Diagnostic, UsageError
from cq.lang import error_places
from cq.lang.functions import Failure
from cq.planner.plan.logical import LogicalPlan, parts
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef, sources_of
from cq.planner.plan.transactions import KeyedTable
from cq.records import dataclass, field
from cq.reference.evaluate import Row, evaluator
from cq.reference.graph import Delivered, Graph, Position, Stopped
from cq.reference.merge import Arrival, Merge
from cq.reference.operator import BEFORE_ALL, NEVER
from cq.reference.operators.trigger import TriggerRows

__all__ = [
    "Delivered",
    "KeptRows",
    "Position",
    "Quiet",
    "ReferenceResult",
    "ReferenceRun",
    "SourceCounts",
    "SourceRow",
    "run",
]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source row with its place in error messages, such as `txn/03.jsonl:18842`."""

    row: Row
    place: str


class Quiet(Enum):
    """Marks a gap among the rows of an input: there is none at the moment, or none for so long that it counts as
    idle."""

    NOW = "now"
    SILENT = "silent"


@dataclass(slots=True)
class SourceCounts:
    """rows: given to the engine.  without_time: dropped, their event time was NULL.  late: below the watermark."""

    rows: int = 0
    without_time: int = 0
    late: int = 0


@dataclass(slots=True)
class ReferenceResult:
    """The result of a run.

    outputs: by name, the rows in order with their positions.  sources: counts by source.  late: for each operator that
    dropped late rows, how many.  error: the first data error, or None; `outputs` hold the results of all earlier
    events.  failed_at: serial and instant of the event that failed, unless the error came from outside of the
    operators.
    """

    outputs: dict[str, list[Delivered]]
    sources: dict[str, SourceCounts] = field(default_factory=dict)
    late: list[tuple[LogicalNode, int]] = field(default_factory=list)
    error: DataError | None = None
    failed_at: tuple[int, int] | None = None

    def rows(self, name: str | None = None) -> list[Row]:
        """The rows of an output, by default of the only one."""
        if name is None:
            (name,) = self.outputs
        return [d.row for d in self.outputs[name]]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """A table of triggers at some moment: its rows in order of creation, and how many rows of each source were
    processed.

    full: whether every output of the part has reached its limit, so that no more rows are taken.
    """

    table: KeyedTable
    rows: list[Row]
    taken: Mapping[str, int]
    full: bool


class ReferenceRun:
    """A plan fed row by row. Rows wait until the order of admission is known (see `cq.reference.merge`).

    push(source, row), silence(source), end(source), in any interleaving of the sources; `finish` ends all others. Each
    returns the new rows of every output that the call caused.
    """

    def __init__(self, plan: LogicalPlan) -> None:
        self._parts = [_PartRun(nodes, plan) for nodes in parts(plan)]
        self._part_of = {name: part for part in self._parts for name in part.sources}
        self.result = ReferenceResult({o.name: [] for o in plan.outputs})
        for part in self._parts:
            part.share(self.result)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources the plan reads, by position in the file."""
        found = sorted((d.position, name) for part in self._parts for name, d in part.sources.items())
        return tuple(name for _, name in found)

    @property
    def late_rows(self) -> int:
        """How many late rows operators have dropped so far."""
        return sum(o.late_rows for part in self._parts for o in part.graph.operators)

    @property
    def rejected_events(self) -> list[tuple[str, int]]:
        """By operator and trigger: how many events it has rejected so far."""
        return [pair for part in self._parts for o in part.graph.operators for pair in o.rejected_events.items()]

    def push(self, source: str, row: Row | SourceRow) -> dict[str, list[Delivered]]:
        """Push one more row of a source."""
        return self._seen(self._part_of[source], lambda part: part.push(source, row))

    def silence(self, source: str) -> dict[str, list[Delivered]]:
        """Let nobody wait for the source until its next row, which comes after all rows pushed before it."""
        return self._seen(self._part_of[source], lambda part: part.silence(source))

    def end(self, source: str) -> dict[str, list[Delivered]]:
        """End the source; after the last one the query ends."""
        return self._seen(self._part_of[source], lambda part: part.end(source))

    def finish(self) -> ReferenceResult:
        """End every remaining source, in order of position, and return the whole result."""
        for part in self._parts:
            part.finish()
        return self.result

    def watermark(self, source: str) -> int:
        """The watermark of the part of the plan that reads the source; `BEFORE_ALL` at the start, `NEVER` at the
        end."""
        return self._part_of[source].graph.watermark

    def kept(self, name: str) -> KeptRows:
        """The current rows of a table of triggers in the plan."""
        return next(
            KeptRows(table, operator.rows_of(number), part.taken, part.graph.full)
            for part in self._parts
            for operator in part.graph.operators
            if isinstance(operator, TriggerRows)
            for number, table in enumerate(operator.tables)
            if table.name == name
        )

    def _seen(self, part: _PartRun, act: Any) -> dict[str, list[Delivered]]:
        before = {name: len(rows) for name, rows in part.graph.results.items()}
        act(part)
        return {name: rows[before[name] :] for name, rows in part.graph.results.items()}

    def feed(self, inputs: Mapping[str, Iterable[Row | SourceRow | Quiet]]) -> ReferenceResult:
        """Run every part over its whole inputs."""
        for part in self._parts:
            part.run({name: iter(inputs.get(name, s.rows or ())) for name, s in part.sources.items()})
        return self.result


class _PartRun:
    """A connected part of the plan: its own merge, serials and watermark."""

    def __init__(self, nodes: Sequence[LogicalNode], plan: LogicalPlan) -> None:
        self.sources: dict[str, SourceDef] = {s.name: s for s in sources_of(nodes)}
        members = {id(n) for n in nodes}
        self.graph = Graph(nodes, [o for o in plan.outputs if id(o.node) in members], list(self.sources.values()))
        self._merge = Merge(list(self.sources.values()))
        self._time = {n: evaluator(s.event_time) if s.event_time else None for n, s in self.sources.items()}
        self._counts = {name: SourceCounts() for name in self.sources}
        self._ended: set[str] = set()
        self.taken = dict.fromkeys(self.sources, 0)  # rows processed so far
        self._result = ReferenceResult({})

    def share(self, result: ReferenceResult) -> None:
        """Make `result` hold the results of this part."""
        result.outputs.update(self.graph.results)
        result.sources.update(self._counts)
        self._result = result

    def run(self, inputs: Mapping[str, Iterator[Row | SourceRow | Quiet]]) -> None:
        """Pull from the source that decides, until all have ended, a row fails or all limits are reached.

        When it has nothing at the moment, the silent ones are asked.
        """
        while not self._over() and not self._merge.over:
            source = self._merge.waits_for()
            if source is None or self._pull(source, inputs[source]) is Quiet.NOW:
                for silent in self._merge.silent:
                    self._pull(silent, inputs[silent])

    def _pull(self, source: str, rows: Iterator[Row | SourceRow | Quiet]) -> Row | SourceRow | Quiet | None:
        """Take what the source yields next."""
        try:
            row = next(rows, None)
        except Exception as error:  # from the connector; rows of other sources may come before
            self._merge.broke(source, error)
            self._admit()
            return None
        if row is None:
            self.end(source)
        elif row is Quiet.SILENT:
            self.silence(source)
        elif not isinstance(row, Quiet):
            self.push(source, row)
        return row

    def push(self, source: str, given: Row | SourceRow) -> None:
        counts = self._counts[source]
        counts.rows += 1
        row, place = (given.row, given.place) if isinstance(given, SourceRow) else (given, f"{source}:{counts.rows}")
        time_of = self._time[source]
        time: int | None = BEFORE_ALL
        failed: Failure | None = None
        if time_of is not None:
            try:
                time = time_of(row)
            except Failure as failure:
                failed = failure
        if time is None:
            counts.without_time += 1
        elif not self._over():
            self._merge.put(Arrival(source, row, time, place, failed))
            self._admit()

    def silence(self, source: str) -> None:
        if not self._over() and source not in self._merge.silent:
            self._merge.put(Arrival(source, None, silent=True))
            self._admit()

    def end(self, source: str) -> None:
        if not self._over():
            self._ended.add(source)
            self._merge.put(Arrival(source, None))
            self._admit()

    def finish(self) -> None:
        for source in self.sources:
            if source not in self._ended:
                self.end(source)

    def _speak(self) -> None:
        """Wait again for sources that were silent and now have something."""
        for source in self._merge.speaking():
            self._merge.speak(source, self.graph.speak(source))

    def _admit(self) -> None:
        self._speak()
        while not self._over() and (arrival := self._merge.take()) is not None:
            if arrival.failure is not None:
                self._fail(arrival.failure, arrival.place)
                return
            try:
                if arrival.row is not None:
                    self.taken[arrival.source] += 1
                    self._counts[arrival.source].late += self.graph.row(arrival.source, arrival.row, arrival.time)
                    continue
                if arrival.silent:
                    self.graph.silence(arrival.source)
                    self._speak()
                    continue
                self.graph.end(arrival.source)
                if self._merge.over:
                    self.graph.finish()
                    self._tell_late()
            except Stopped as stop:
                due = error_places.closing(stop.instant) if stop.instant < NEVER else error_places.END
                place = arrival.place if arrival.place and stop.instant == NEVER else due
                self._result.failed_at = (self.graph.serial, stop.instant)
                self._fail(stop.failure, (stop.failure.place or place) + stop.failure.met)
                return

    def _tell_late(self) -> None:
        self._result.late.extend((o.node, o.late_rows) for o in self.graph.operators if o.late_rows)

    def _over(self) -> bool:
        """Whether nothing more can be visible: a row has failed, or every output has reached its limit."""
        return self._result.error is not None or self.graph.full

    def _fail(self, failure: Failure, place: str) -> None:
        self._result.error = DataError(
            Diagnostic(failure.code, failure.message, failure.span, severity="data error", place=place)
        )
        self._tell_late()


def run(plan: LogicalPlan, inputs: Mapping[str, Iterable[Row | SourceRow]]) -> ReferenceResult:
    """The whole result of a plan over finite inputs, by source name: rows of physical values (`cq.lang.types`).

    A data error stops the run; it is in `error`, and everything before its position is delivered. The parts of a plan
    that share no source run one after the other; those after a failed one have no results.
    """
    whole = ReferenceRun(plan)
    missing = [s.name for s in sources_of(plan.nodes()) if s.name not in inputs and s.rows is None]
    if missing:
        raise UsageError(Diagnostic("CQ0602", f"no input is given for {', '.join(missing)}"))
    return whole.feed(inputs)
