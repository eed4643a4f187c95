"""A query that is fed step by step: what `Query.start` runs on, natively or on the reference."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from cq.compiler import Compiled
from cq.connectors.bad_rows import BadRows
from cq.connectors.physical import batch_of, rows_of
from cq.connectors.protocol import SourceBatch
from cq.connectors.sources import PiecedSource
from cq.engines import Feed, Progress
from cq.errors import CqError, Diagnostic, UsageError
from cq.planner.operators import SourceDef

Ready = list[tuple[str, pa.RecordBatch]]


class Steps(Protocol):
    """One run of a query, one push at a time; called by one thread at a time."""

    def push(self, stream: str, batch: SourceBatch) -> None:
        """Rows of a stream, all its columns, behind all earlier ones."""
        ...

    def end(self, stream: str) -> None:
        """The stream has no more rows."""
        ...

    def ready(self) -> Ready:
        """(output, batch) of everything the rows pushed so far cause and nobody took yet, in order."""
        ...

    def failure(self) -> CqError | None:
        """Why the run stopped, if an error stopped it; all rows before it were given by `ready`."""
        ...

    def close(self) -> None:
        """Workers have ended, memory is free; may be called twice."""
        ...


def start(compiled: Compiled, engine: str, threads: int, batch_rows: int | None) -> Steps:
    """A run of the query that waits for rows. CQ0901 when the engine cannot be fed step by step."""
    match engine:
        case "native":
            return NativeSteps(compiled, threads, batch_rows)
        case "reference":
            return ReferenceSteps(compiled)
        case _:
            cause = f'the engine "{engine}" takes whole inputs only'
            raise UsageError(Diagnostic("CQ0901", cause, help=("start the query on native or reference",)))


class ReferenceSteps:
    """The reference, row by row."""

    def __init__(self, compiled: Compiled) -> None:
        from cq.reference.engine import Session

        self._session = Session(compiled.plan)
        self._streams = {s.name: s for s in compiled.sources}
        self._outputs = {o.name: o.node.schema.fields for o in compiled.outputs}
        self._given = dict.fromkeys(self._outputs, 0)

    def push(self, stream: str, batch: SourceBatch) -> None:
        from cq.reference.engine import Placed

        types = [f.type for f in self._streams[stream].fields]
        for k, row in enumerate(rows_of(batch.batch, types)):
            self._session.push(stream, Placed(row, batch.place.of(k)))

    def end(self, stream: str) -> None:
        self._session.end(stream)

    def ready(self) -> Ready:
        found: Ready = []
        for name, fields in self._outputs.items():
            rows = [d.row for d in self._session.result.outputs[name][self._given[name] :]]
            if rows:
                self._given[name] += len(rows)
                found.append((name, batch_of(rows, fields)))
        return found

    def failure(self) -> CqError | None:
        return self._session.result.error

    def close(self) -> None:
        """Nothing is open."""


class NativeSteps:
    """The native engine; threads=0 does all its work inside these calls."""

    def __init__(self, compiled: Compiled, threads: int, batch_rows: int | None) -> None:
        from cq.native import Reading, arrow_schema
        from cq.runtime.engine import BATCH_ROWS, Engine

        self._job = compiled.for_workers(threads).after("emit")
        self._source = compiled.request.source
        self._names = [o.name for o in compiled.outputs]
        self._numbers = {spec.name: n for n, spec in enumerate(self._job.sources)}
        streams = {s.name: s for s in compiled.sources}
        self._readings = [Reading(_no_feed(streams[spec.name]), spec) for spec in self._job.sources]
        rows = batch_rows if batch_rows is not None else compiled.setting("batch_rows", BATCH_ROWS)
        schemas = [arrow_schema(o) for o in compiled.outputs]
        self._engine = Engine(self._job, threads=threads, batch_rows=rows, schemas=schemas)

    def push(self, stream: str, batch: SourceBatch) -> None:
        number = self._numbers[stream]
        reading = self._readings[number]
        reading.places.append((reading.rows, batch.place))
        reading.rows += batch.batch.num_rows
        self._engine.push(number, batch.batch.select([c.name for c in reading.spec.columns]))

    def end(self, stream: str) -> None:
        self._engine.end(self._numbers[stream])

    def ready(self) -> Ready:
        return [(self._names[sink], batch) for sink, batch in self._engine.drain()]

    def failure(self) -> CqError | None:
        from cq.native import placed

        failed = self._engine.failure
        return None if failed is None else placed(failed, self._job, self._readings, self._source)

    def close(self) -> None:
        self._engine.close()


def _no_feed(stream: SourceDef) -> Feed:
    """The feed of a stream whose rows are pushed: it has none of its own."""
    return Feed(stream, PiecedSource(stream.name, iter(()), BadRows("fail"), None, ahead=False), Progress())
