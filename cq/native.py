"""The native engine under `run_query`: feeds to record batches, the engine's failures to errors with a place.

An error of a source ends the run like one of a kernel: everything the rows before it cause is delivered first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from cq import places
from cq.connectors.protocol import Place, SourceBatch
from cq.engines import Enough
from cq.errors import NOWHERE, CqError, DataError, Diagnostic, EngineError, SourceText, Span, compile_error
from cq.runtime.abi import ERROR_CODES, STATE_LATE_ROWS, ErrorCode
from cq.runtime.engine import BATCH_ROWS, Engine
from cq.runtime.failure import EngineFailure
from cq.runtime.job import Job, SourceSpec
from cq.types import to_arrow

if TYPE_CHECKING:
    from cq.compiler import Compiled
    from cq.engines import Delivery, Feed, RunOptions
    from cq.planner.logical import Output

FAR_US = 1 << 62  # instants beyond are no times: the end, or none
PLACES_KEPT = 4096  # batches whose places in their files are remembered: more than can be in flight


@dataclass(slots=True)
class Reading:
    """One source while it is read: the columns the job wants, and where recent rows stand in their files."""

    feed: Feed
    spec: SourceSpec
    rows: int = 0
    places: deque[tuple[int, Place]] = field(default_factory=lambda: deque(maxlen=PLACES_KEPT))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns. Raises where a row of the source cannot be read."""
        for taken in self.feed:
            yield self.take(taken)

    def take(self, taken: SourceBatch) -> pa.RecordBatch:
        """The wanted columns of a batch, whose place is remembered."""
        if taken.batch.num_rows:
            self.places.append((self.rows, taken.place))
            self.rows += taken.batch.num_rows
        names = [c.name for c in self.spec.columns]
        return taken.batch if taken.batch.schema.names == names else taken.batch.select(names)

    def place_of(self, row: int) -> str:
        """`file:line` of a row, counted from 0 over the whole source."""
        for first, place in reversed(self.places):
            if first <= row:
                return place.of(row - first)
        return f"{self.spec.name}: row {row + 1}"


def workers(compiled: Compiled, options: RunOptions) -> int:
    """How many workers run the query: as asked for this run, else as its text says, else one for each core."""
    return options.threads if options.threads is not None else compiled.setting("parallelism", os.cpu_count() or 1)


class Part:
    """One job of a query on an engine of its own. What shares no source is apart: most queries have one part."""

    def __init__(self, compiled: Compiled, job: Job, feeds: Mapping[str, Feed], threads: int, batch_rows: int) -> None:
        outputs = {o.name: o for o in compiled.outputs}
        self.job = job
        self.readings = [Reading(feeds[spec.name], spec) for spec in job.sources]
        self.numbers = {spec.name: n for n, spec in enumerate(job.sources)}
        self._names = [sink.name for sink in job.sinks]
        self._source = compiled.request.source
        schemas = [arrow_schema(outputs[name]) for name in self._names]
        self.engine = Engine(job, threads=threads, batch_rows=batch_rows, schemas=schemas)

    def push(self, stream: str, batch: SourceBatch) -> None:
        """The next rows of a stream."""
        reading = self.readings[self.numbers[stream]]
        self.engine.push(self.numbers[stream], reading.take(batch))

    def end(self, stream: str) -> None:
        """The stream has no more rows."""
        self.engine.end(self.numbers[stream])

    def ready(self, settled: bool = True) -> list[tuple[str, pa.RecordBatch]]:
        """(output, batch) of results not taken yet: all that follow from what was pushed, or those there are now."""
        found = self.engine.drain() if settled else self.engine.ready()
        return [(self._names[sink], batch) for sink, batch in found]

    def failure(self) -> CqError | None:
        """What ended the run, unless it goes on or all went well."""
        failed = self.engine.failure
        return None if failed is None else placed(failed, self.job, self.readings, self._source)

    def run(self, deliver: Callable[[str, pa.RecordBatch], None]) -> None:
        """Read all sources to their end. An error of one is raised after all results of the rows before it.

        A source is read when the engine has room for it: the merge may wait for one while another is far ahead.
        """

        def hand_on(sink: int, rows: pa.RecordBatch) -> None:
            deliver(self._names[sink], rows)

        failed = self.engine.run([r.batches() for r in self.readings], hand_on)
        if failed is not None:
            raise placed(failed, self.job, self.readings, self._source)


def run_native(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> int:
    """Run a compiled query; returns how many rows event-time operators dropped as late."""
    threads = workers(compiled, options)
    batch_rows = options.batch_rows if options.batch_rows is not None else compiled.setting("batch_rows", BATCH_ROWS)
    jobs: tuple[Job, ...] = compiled.for_workers(threads).after("emit")
    check_parts(compiled, jobs, delivery.limited)
    late = 0
    for job in jobs:
        part = Part(compiled, job, {f.name: f for f in feeds}, threads, batch_rows)
        names = [sink.name for sink in job.sinks]
        with part.engine:
            try:
                part.run(partial(delivery.rows, part=names))
            except Enough:
                if delivery.full():
                    raise
            late += part.engine.state_sum(STATE_LATE_ROWS)
    return late


def check_parts(compiled: Compiled, jobs: Sequence[Job], limited: Callable[[str], bool]) -> None:
    """Parts run one after the other: none but the last may be endless, unless all its outputs are limited."""
    endless = {s.name for s in compiled.sources if not s.bounded}
    for job in jobs[:-1]:
        if any(spec.name in endless for spec in job.sources) and not all(limited(sink.name) for sink in job.sinks):
            names = ", ".join(sink.name for sink in job.sinks)
            help = "put them into files of their own and run these side by side"
            text = f"the queries of this file share no source, and {names} never ends"
            raise compile_error("CQ0502", text, NOWHERE, help=help)


def arrow_schema(output: Output) -> pa.Schema:
    """The columns of an output as results show them."""
    return pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in output.node.schema.fields])


def placed(failure: EngineFailure, job: Job, readings: Sequence[Reading], source: SourceText) -> CqError:
    """The failure as an error a user can act on: code, file and line of the row, the expression."""
    code = ERROR_CODES[failure.code]
    sites = job.stages[failure.stage].sites
    site = sites[failure.site] if 0 <= failure.site < len(sites) else None
    text = site.text if site else "the engine stopped"
    if failure.code is ErrorCode.NO_MEMORY:
        help = ("give the process more memory, or make windows shorter or keys fewer",)
        return EngineError(Diagnostic(code, f"out of memory: {text}", help=help))
    place = readings[failure.source].place_of(failure.row) if failure.row >= 0 else _due_place(failure)
    span = Span(site.line, site.column, site.end_line, site.end_column) if site and site.line else None
    ways = _ways_out(failure.code, text)
    diagnostic = Diagnostic(code, text, severity="data error", place=place, help=ways)
    if span is not None:
        diagnostic = Diagnostic(code, text, span, severity="data error", place=place, help=ways)
    return DataError(diagnostic.at(source))


def _due_place(failure: EngineFailure) -> str:
    """What was no row: a group, or only when it was."""
    group = failure.group
    if group is None:
        return places.closing(failure.instant) if abs(failure.instant) < FAR_US else places.END
    if group.start is None:
        return places.group(group.columns, group.key)
    return places.window_group(group.start, failure.instant, group.columns, group.key)


def _ways_out(code: ErrorCode, text: str) -> tuple[str, ...]:
    match code:
        case ErrorCode.OVERFLOW:
            if any(time in text for time in ("DATE", "TIMESTAMP", "INTERVAL")):
                return ("no type holds more: leave such rows out with WHERE, or write CASE",)
            return ("CAST an operand to a wider type, or to DOUBLE",)
        case ErrorCode.DIVISION_BY_ZERO:
            return ("write NULLIF(b, 0) as the divisor to get NULL instead, or TRY_DIVIDE(a, b) for a / b",)
        case ErrorCode.BAD_CAST:
            return ("write TRY_CAST to get NULL instead",)
        case _:
            return ()
