"""The native engine under `run_query`: feeds to record batches, the engine's failures to errors with a place.

An error of a source ends the run like one of a kernel: everything the rows before it cause is delivered first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from cq.connectors.protocol import Place
from cq.errors import CqError, DataError, Diagnostic, EngineError, SourceText, Span
from cq.runtime.abi import ERROR_CODES, STATE_LATE_ROWS, ErrorCode
from cq.runtime.engine import BATCH_ROWS, Engine, EngineFailure
from cq.runtime.job import Job, SourceSpec
from cq.types import to_arrow

if TYPE_CHECKING:
    from cq.compiler import Compiled
    from cq.engines import Delivery, Feed, RunOptions
    from cq.planner.logical import Output

PLACES_KEPT = 4096  # batches whose places in their files are remembered: more than can be in flight


@dataclass(slots=True)
class Reading:
    """One source while it is read: the columns the job wants, and where recent rows stand in their files."""

    feed: Feed
    spec: SourceSpec
    error: CqError | None = None
    rows: int = 0
    places: deque[tuple[int, Place]] = field(default_factory=lambda: deque(maxlen=PLACES_KEPT))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns. An error of the source ends them and is kept."""
        names = [c.name for c in self.spec.columns]
        try:
            for taken in self.feed:
                self.places.append((self.rows, taken.place))
                self.rows += taken.batch.num_rows
                yield taken.batch.select(names)
        except DataError as error:
            self.error = error

    def place_of(self, row: int) -> str:
        """`file:line` of a row, counted from 0 over the whole source."""
        for first, place in reversed(self.places):
            if first <= row:
                return place.of(row - first)
        return f"{self.spec.name}: row {row + 1}"


def workers(compiled: Compiled, options: RunOptions) -> int:
    """How many workers run the query: as asked for this run, else as its text says, else one for each core."""
    return options.threads if options.threads is not None else compiled.setting("parallelism", os.cpu_count() or 1)


def run_native(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> int:
    """Run the job of a compiled query; returns how many rows event-time operators dropped as late."""
    threads = workers(compiled, options)
    job: Job = compiled.for_workers(threads).after("emit")
    by_name = {feed.name: feed for feed in feeds}
    readings = [Reading(by_name[spec.name], spec) for spec in job.sources]
    batch_rows = options.batch_rows if options.batch_rows is not None else compiled.setting("batch_rows", BATCH_ROWS)
    outputs = compiled.outputs
    with Engine(job, threads=threads, batch_rows=batch_rows, schemas=[arrow_schema(o) for o in outputs]) as engine:
        failure = _carry(engine, readings, [o.name for o in outputs], delivery)
        if failure is not None:
            raise placed(failure, job, readings, compiled.request.source)
        return engine.state_sum(STATE_LATE_ROWS)


def _carry(
    engine: Engine, readings: Sequence[Reading], names: Sequence[str], delivery: Delivery
) -> EngineFailure | None:
    """Feed and deliver to the end. An error of a source comes after all results of the rows before it."""
    sources = [r.batches() for r in readings]
    waiting: list[pa.RecordBatch | None] = [next(s, None) for s in sources]
    while not engine.finished:
        for number, reading in enumerate(readings):
            batch = waiting[number]
            if batch is not None:
                engine.push(number, batch)
                waiting[number] = next(sources[number], None)
            elif reading.error is not None:
                _deliver(engine, names, delivery)
                if engine.failure is not None:
                    return engine.failure
                raise reading.error
            elif not engine.ended(number):
                engine.end(number)
        _deliver(engine, names, delivery)
    _deliver(engine, names, delivery)
    return engine.failure


def _deliver(engine: Engine, names: Sequence[str], delivery: Delivery) -> None:
    for sink, batch in engine.drain():
        delivery.rows(names[sink], batch)


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
    place = readings[failure.source].place_of(failure.row) if failure.row >= 0 else "a closing window"
    span = Span(site.line, site.column, site.end_line, site.end_column) if site and site.line else None
    diagnostic = Diagnostic(code, text, severity="data error", place=place, help=_ways_out(failure.code))
    if span is not None:
        diagnostic = Diagnostic(code, text, span, severity="data error", place=place, help=_ways_out(failure.code))
    return DataError(diagnostic.at(source))


def _ways_out(code: ErrorCode) -> tuple[str, ...]:
    match code:
        case ErrorCode.OVERFLOW:
            return ("CAST an operand to a wider type",)
        case ErrorCode.DIVISION_BY_ZERO:
            return ("write TRY_DIVIDE(a, b), or NULLIF(b, 0), to get NULL instead",)
        case ErrorCode.BAD_CAST:
            return ("write TRY_CAST to get NULL instead",)
        case _:
            return ()
