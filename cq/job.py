"""A started query: rows are pushed to it, and what they cause is taken from it, from any number of threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cq.compiler.passes import Compiled
from cq.connectors.bad_rows import BadRows
from cq.connectors.memory import read_memory
from cq.connectors.requests import Opened
from cq.connectors.rules import Rules
from cq.connectors.sources import PiecedSource
from cq.engines import stepping
from cq.engines.kept_tables import Satisfied, tables_of
from cq.engines.protocol import RunOptions
from cq.errors import CqError, Diagnostic, UsageError, did_you_mean
from cq.result import KeptTable

if TYPE_CHECKING:
    import asyncio

_TABLES = "tables whose rows, changes or trigger output a query reads: "


class Job:
    """A started query. Threads may share it: calls take turns.

    `results(name)` yields the results so far that nobody has taken yet, then stops; `async for` over it waits for more
    until the job has ended. A row that fails inside the query (a division by zero) ends the job: the error is raised
    once everything before it has been taken.
    """

    def __init__(self, compiled: Compiled, engine: str, options: RunOptions) -> None:
        self._streams = {s.name: s for s in compiled.streams}
        self._steps = stepping.start(compiled, engine, options)
        self._tables = list(dict.fromkeys(t.name for *_, t in tables_of(compiled.plan.nodes())))
        self._waiting: dict[str, deque[pa.RecordBatch]] = {o.name: deque() for o in compiled.outputs}
        self._open = dict.fromkeys(self._streams)
        self._rows = dict.fromkeys(self._streams, 0)
        self._bad = {n: _bad_rows(s.option("on_error")) for n, s in self._streams.items()}
        self._lock = threading.RLock()
        self._process = os.getpid() if options.threads else None  # the only process that has the workers
        self._closed = False
        self._failure: CqError | None = None  # the error that had ended the job when it was closed
        self._changes = 0
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def push(self, stream: str, data: Any) -> None:
        """Push rows to a stream, after all earlier ones: an Arrow batch or table, a frame, a list of dicts, a reader.

        A DataError for a row that cannot be read (`on_error = fail`) leaves the job as it was: none of the rows is
        taken. Each batch of a reader counts as a separate push.
        """
        if isinstance(data, pa.RecordBatchReader):
            for part in data:
                self.push(stream, part)
            return
        with self._lock:
            self._demand_open(stream)
            declared = self._streams[stream]
            pieces = read_memory(data, stream, Rules.of(declared), first=self._rows[stream] + 1)
            source = PiecedSource(stream, Opened(pieces, None, None), self._bad[stream])
            timer = self._steps.timer(stream)
            if timer is not None:
                source.time_by(timer)
            for batch in list(source.batches()):
                self._rows[stream] += batch.batch.num_rows
                self._steps.push(stream, batch)
        self._wake()

    def idle(self, stream: str) -> None:
        """Mark a stream with an IDLE TIMEOUT as idle: no other stream waits for it until rows are pushed to it again.

        Those come after everything that could be processed by then; any below the watermark are late.
        """
        with self._lock:
            self._demand_open(stream)
            if self._streams[stream].idle_us is None:
                help = ("declare it: WATERMARK FOR column IDLE TIMEOUT INTERVAL '10' SECOND",)
                raise UsageError(Diagnostic("CQ0602", f"stream {stream} is declared without IDLE TIMEOUT", help=help))
            self._steps.silence(stream)
        self._wake()

    def end(self, stream: str | None = None) -> None:
        """End a stream, or every stream: results that only the end decides are then known."""
        with self._lock:
            if stream is not None:
                self._demand_open(stream)
            for name in [stream] if stream is not None else list(self._open):
                self._steps.end(name)
                del self._open[name]
        self._wake()

    def results(self, output: str = "result") -> Batches:
        """The record batches of an output, in the order the query defines."""
        if output not in self._waiting:
            help = tuple(h for h in (did_you_mean(output, self._waiting), "outputs: " + ", ".join(self._waiting)) if h)
            raise UsageError(Diagnostic("CQ0201", f'there is no output "{output}"', help=help))
        return Batches(self, output)

    def table(self, name: str) -> KeptTable:
        """A table of triggers after all events pushed so far, except those that wait for another stream.

        No transaction is half done, whatever the scheme. Raises the error that ended the job, if one did.
        """
        with self._lock:
            if name not in self._tables:
                ways = (did_you_mean(name, self._tables), _TABLES + (", ".join(self._tables) or "none"))
                text = f'the run has no table "{name}"'
                raise UsageError(Diagnostic("CQ0201", text, help=tuple(way for way in ways if way)))
            if self._closed:
                help = ("read it before the job is closed: inside `with`, after end() or before it",)
                raise UsageError(Diagnostic("CQ0602", f'the job is closed, and the table "{name}" is gone', help=help))
            self._collect()
            failure = self._steps.failure()
            if failure is not None:
                raise failure
            try:
                kept = self._steps.table(name)
            except Satisfied:
                text = f"every output has the rows that its LIMIT asks for: no more events are taken into {name}"
                raise UsageError(Diagnostic("CQ0602", text, help=("remove the LIMIT",))) from None
        return KeptTable(name, kept.rows, kept.events)

    @property
    def bad_rows(self) -> dict[str, int]:
        """How many rows of each stream could not be read so far; none of them was taken."""
        return {name: bad.count for name, bad in self._bad.items()}

    @property
    def ended(self) -> bool:
        """Whether no stream can receive rows any more."""
        return not self._open or self._closed

    def close(self) -> None:
        """Stop the job; results that are ready, and the error that ended it, can still be taken.

        May be called twice.
        """
        with self._lock:
            if not self._closed:
                try:
                    if self._has_workers:
                        self._collect()
                    self._failure = self._steps.failure()
                finally:
                    self._closed = True
                    self._steps.close()
        self._wake()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and not self._closed:
            self.end()
        self.close()

    def take(self, output: str) -> pa.RecordBatch | None:
        """The next batch of an output that is ready; None when there is none now. Raises the error that ended the job
        when nothing is left before it."""
        with self._lock:
            if not self._waiting[output] and not self._closed:
                self._collect()
            if self._waiting[output]:
                return self._waiting[output].popleft()
            failure = self._failure if self._closed else self._steps.failure()
        if failure is not None:
            raise failure
        return None

    @property
    def changes(self) -> int:
        """How often rows were pushed, or a stream or the job ended."""
        return self._changes

    async def sleep_until_changed(self, seen: int) -> None:
        """Wait until `changes` differs from `seen`."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._changes != seen:
                return
            self._sleepers.append((loop, future))
        try:
            await future
        finally:
            with self._lock:
                self._sleepers = [(at, who) for at, who in self._sleepers if who is not future]

    @property
    def _has_workers(self) -> bool:
        return self._process in {None, os.getpid()}

    def _collect(self) -> None:
        self._demand_workers()
        for name, batch in self._steps.ready():
            self._waiting[name].append(batch)

    def _wake(self) -> None:
        with self._lock:
            sleepers, self._sleepers = self._sleepers, []
            self._changes += 1
        for loop, future in sleepers:
            with suppress(RuntimeError):  # the loop was closed while a task slept: nobody is left to wake up
                loop.call_soon_threadsafe(_finish, future)

    def _demand_workers(self) -> None:
        """CQ0602 in a forked child: workers are not forked, and waiting for them would never end."""
        if not self._has_workers:
            help = ("start the query in the child process, or with threads=0",)
            raise UsageError(Diagnostic("CQ0602", "the workers of this query belong to another process", help=help))

    def _demand_open(self, stream: str) -> None:
        self._demand_workers()
        if stream not in self._streams:
            help = (did_you_mean(stream, self._streams), "streams: " + ", ".join(self._streams))
            raise UsageError(
                Diagnostic("CQ0201", f'the query reads no stream "{stream}"', help=tuple(h for h in help if h))
            )
        if stream not in self._open or self._closed:
            raise UsageError(Diagnostic("CQ0602", f"stream {stream} has ended"))


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _bad_rows(policy: str) -> BadRows:
    """Pushed rows have no file for dead letters: they are counted."""
    return BadRows("fail" if policy == "fail" else "skip")


class Batches:
    """The record batches of one output of a job."""

    def __init__(self, job: Job, output: str) -> None:
        self._job, self._output = job, output

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._job.take(self._output)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        while True:
            over, seen = self._job.ended, self._job.changes
            batch = self._job.take(self._output)
            if batch is not None:
                yield batch
            elif over:
                return
            else:
                await self._job.sleep_until_changed(seen)
