"""A query that is fed step by step: the base of `Query.start`, native or on the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from cq.compiler.passes import Compiled
from cq.connectors.bad_rows import BadRows
from cq.connectors.physical_rows import batch_of, rows_of
from cq.connectors.protocol import EventTimer, SourceBatch
from cq.connectors.requests import Opened
from cq.connectors.sources import PiecedSource, open_source
from cq.engines.data_errors import with_ways_out
from cq.engines.engines import engine_named
from cq.engines.feeding import native_packages
from cq.engines.kept_tables import Satisfied, TableAfter, by_key, tables_of
from cq.engines.protocol import Feed, Progress, RunOptions
from cq.errors import CqError, Diagnostic, UsageError
from cq.planner.plan.source import SourceDef

if TYPE_CHECKING:
    from cq.planner.physical.stages import PhysicalPlan

Ready = list[tuple[str, pa.RecordBatch]]


class Steps(Protocol):
    """One run of a query, one push at a time; called by one thread at a time."""

    def timer(self, stream: str) -> EventTimer | None:
        """What computes the event times of a stream before its rows are pushed; None if a column has them."""
        ...

    def push(self, stream: str, batch: SourceBatch) -> None:
        """Rows of a stream, with all its columns, after all earlier ones."""
        ...

    def silence(self, stream: str) -> None:
        """Others stop waiting for the stream until its next rows, which come after all rows pushed before them."""
        ...

    def end(self, stream: str) -> None:
        """The stream has no more rows."""
        ...

    def ready(self) -> Ready:
        """(output, batch) of all results of the rows pushed so far that were not taken yet, in order."""
        ...

    def table(self, name: str) -> TableAfter:
        """The rows of one of the query's trigger tables, by key. `ready` was called since the last push.

        Raises Satisfied where the table's rows depend on how far the run went beyond its last row.
        """
        ...

    def failure(self) -> CqError | None:
        """The error that stopped the run, if any; `ready` has returned all rows before it."""
        ...

    def close(self) -> None:
        """Workers have ended, memory is freed; may be called twice."""
        ...


def start(compiled: Compiled, engine: str, options: RunOptions) -> Steps:
    """A run of the query that waits for rows, except those the query contains. CQ0901 for an engine without steps."""
    engine_named(engine)
    match engine:
        case "native":
            steps: Steps = NativeSteps(compiled, options)
        case "reference":
            steps = ReferenceSteps(compiled)
        case _:
            cause = f'the engine "{engine}" cannot run step by step'
            raise UsageError(Diagnostic("CQ0901", cause, help=("start the query on native or reference",)))
    for source in compiled.constants:
        for batch in open_source(source, compiled.request.inputs).batches():
            steps.push(source.name, batch)
        steps.end(source.name)
    return steps


class ReferenceSteps:
    """The reference, row by row."""

    def __init__(self, compiled: Compiled) -> None:
        from cq.reference.engine import ReferenceRun

        self._run, self._source = ReferenceRun(compiled.plan), compiled.request.source
        self._streams = {s.name: s for s in compiled.sources}
        self._given_rows = {s.name for s in compiled.streams}
        self._outputs = {o.name: o.node.schema.fields for o in compiled.outputs}
        self._given = dict.fromkeys(self._outputs, 0)

    def timer(self, stream: str) -> EventTimer | None:
        from cq.reference.event_times import timer_of

        return timer_of(self._streams[stream])

    def push(self, stream: str, batch: SourceBatch) -> None:
        from cq.reference.engine import SourceRow

        types = [f.type for f in self._streams[stream].fields]
        for k, row in enumerate(rows_of(batch.batch, types)):
            self._run.push(stream, SourceRow(row, batch.place.of(k)))

    def silence(self, stream: str) -> None:
        self._run.silence(stream)

    def end(self, stream: str) -> None:
        self._run.end(stream)

    def ready(self) -> Ready:
        found: Ready = []
        for name, fields in self._outputs.items():
            rows = [d.row for d in self._run.result.outputs[name][self._given[name] :]]
            if rows:
                self._given[name] += len(rows)
                found.append((name, batch_of(rows, fields)))
        return found

    def table(self, name: str) -> TableAfter:
        kept = self._run.kept(name)
        if kept.full:
            raise Satisfied
        rows = pa.Table.from_batches([batch_of(kept.rows, kept.table.fields)])
        return TableAfter(by_key(rows, kept.table), {s: n for s, n in kept.taken.items() if s in self._given_rows})

    def failure(self) -> CqError | None:
        error = self._run.result.error
        return None if error is None else with_ways_out(error, self._source)

    def close(self) -> None:
        """Nothing is open."""


class NativeSteps:
    """The native engine; with threads=0 it does all its work inside these calls."""

    def __init__(self, compiled: Compiled, options: RunOptions) -> None:
        with native_packages():
            from cq.engines.native import PipelineRun, batch_rows, memory_limit

        threads = options.threads or 0
        feeds = {s.name: _no_feed(s) for s in compiled.sources}
        for_workers = compiled.for_workers(threads)
        pipelines = for_workers.after("emit")
        self._plans: Sequence[PhysicalPlan] = for_workers.after("place")
        self._given_rows = {s.name for s in compiled.streams}
        with native_packages():
            limit = memory_limit(compiled, options)
            share = None if limit is None else max(1, limit // len(pipelines))  # they are all there at once
            settled = RunOptions(threads, batch_rows(compiled, options), memory_limit=share)
            self._runs = [PipelineRun(compiled, pipeline, feeds, settled) for pipeline in pipelines]
        self._run_of = {name: run for run in self._runs for name in run.numbers}

    def timer(self, stream: str) -> EventTimer | None:
        return self._run_of[stream].timer(stream)

    def push(self, stream: str, batch: SourceBatch) -> None:
        self._run_of[stream].push(stream, batch)

    def silence(self, stream: str) -> None:
        self._run_of[stream].silence(stream)

    def end(self, stream: str) -> None:
        self._run_of[stream].end(stream)

    def ready(self) -> Ready:
        return [found for run in self._runs for found in run.ready()]

    def table(self, name: str) -> TableAfter:
        run, stage, node, number, table = next(
            (run, stage, *found)
            for run, plan in zip(self._runs, self._plans, strict=True)
            for stage, spec in enumerate(plan.stages)
            for found in tables_of(spec.plan.nodes())
            if found[2].name == name
        )
        if run.satisfied():
            raise Satisfied
        events = {s: n for s, n in run.taken().items() if s in self._given_rows}
        return TableAfter(by_key(run.table_rows(stage, node, number, table), table), events)

    def failure(self) -> CqError | None:
        return next((f for run in self._runs if (f := run.failure()) is not None), None)

    def close(self) -> None:
        for run in self._runs:
            run.engine.close()


def _no_feed(stream: SourceDef) -> Feed:
    """The feed of a stream whose rows are pushed: it has no source."""
    return Feed(stream, PiecedSource(stream.name, Opened(iter(()), None, None), BadRows("fail")), Progress())
