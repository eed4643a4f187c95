"""Running a compiled query: one protocol, several engines, one summary.

`run_query` opens the sources and sinks, lets an engine carry rows from one to the other, and counts and hashes what
comes out. An engine is a function (`ENGINES`) that reads the `Feed`s in any way it likes and hands record batches of
each output, in order, to `Delivery.rows`; it returns what only it can know: how many rows were late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cq.compiler import Compiled
from cq.connectors.physical import batch_of, rows_of
from cq.connectors.protocol import BATCH_ROWS, Sink, Source, SourceBatch
from cq.connectors.rowhash import RowHash
from cq.connectors.sinks import Memory, result_schema
from cq.connectors.sources import open_source
from cq.connectors.targets import OutputClosed
from cq.errors import NOWHERE, CompileError, CqError, DataError, Diagnostic, UsageError, did_you_mean
from cq.grammar.ast import CreateRelation

if TYPE_CHECKING:
    import pyarrow as pa

    from cq.planner.operators import SourceDef


MAX_THREADS = 1025  # of one run; the limit of -j too


class Interrupted(Exception):
    """Somebody asked the run to stop; what has been delivered stands."""


class Enough(Exception):
    """Every output has the rows it was limited to."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """threads: workers of the native engine; 0 runs everything in the calling thread.  limit: rows of each output.

    unhashed: outputs whose rows are not hashed as they pass; they are missing in the hashes of the summary.
    """

    threads: int | None = None
    batch_rows: int | None = None
    limit: int | None = None
    unhashed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, least, most in (("threads", 0, MAX_THREADS), ("batch_rows", 1, 2**31), ("limit", 0, 2**63)):
            value = getattr(self, name)
            if value is not None and not (type(value) is int and least <= value < most):
                cause = (
                    f"{name} is a whole number from {least}{f' to {most - 1}' if most <= 2**31 else ''}, not {value!r}"
                )
                raise UsageError(Diagnostic("CQ0208", cause))


@dataclass(slots=True)
class Progress:
    """What a run has done so far; read by others while it runs, written by the thread that runs it."""

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    shares: dict[str, Callable[[], float | None]] = field(default_factory=dict)
    summary: RunSummary | None = None  # of the run, complete when it has ended, also by an error
    began: float | None = None  # when the first row was asked for: everything is compiled
    stop: bool = False
    on_stop: list[Callable[[], None]] = field(default_factory=list)

    def interrupt(self) -> None:
        """Ask the run to stop. Safe in a signal handler: it sets flags and takes no lock."""
        self.stop = True
        for stop in self.on_stop:
            stop()


@dataclass(slots=True)
class RunSummary:
    """What a run did: rows by stream and by output, the hash of every output, and how it ended."""

    engine: str
    rows_in: dict[str, int] = field(default_factory=dict)
    bad_rows: dict[str, int] = field(default_factory=dict)
    late_rows: int | None = 0  # dropped by event-time operators, once a path; None: the engine does not count them
    rows_out: dict[str, int] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # from the first row asked for to the end
    start_seconds: float = 0.0  # before that: compiling, opening
    interrupted: bool = False
    limited: bool = False
    output_closed: bool = False  # whoever read standard output has gone


class Feed:
    """One source as engines see it: batches of the columns asked for, counted as they are taken."""

    def __init__(self, stream: SourceDef, source: Source, progress: Progress) -> None:
        self.stream, self.name, self.source = stream, stream.name, source
        self._progress = progress
        name = self.name
        progress.rows_in[name] = 0
        progress.shares[name] = source.share_done
        progress.on_stop.append(source.interrupt)

    def __iter__(self) -> Iterator[SourceBatch]:
        if self._progress.began is None:
            self._progress.began = time.perf_counter()
        for batch in self.source.batches():
            if self._progress.stop:
                break
            self._progress.rows_in[self.name] += batch.batch.num_rows
            yield batch
        if self._progress.stop:
            raise Interrupted


class Delivery:
    """The outputs of a run: rows are cut to the limit, counted, hashed and written.  rows_out: rows of each so far."""

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        limits: Mapping[str, int | None],
        progress: Progress,
        unhashed: frozenset[str] = frozenset(),
    ) -> None:
        self.hashes = {name: RowHash() for name in sinks if name not in unhashed}
        self.rows_out = dict.fromkeys(sinks, 0)
        self._sinks, self._limits, self._progress = sinks, limits, progress
        progress.rows_out.update(self.rows_out)

    def hash_by(self, hashing: Callable[[], RowHash]) -> None:
        """Rows are hashed this way. Before the first of them."""
        self.hashes = {name: hashing() for name in self.hashes}

    def limited(self, output: str) -> bool:
        """Whether the output takes only so many rows."""
        return self._limits[output] is not None

    def full(self, outputs: Iterable[str] | None = None, counts: Mapping[str, int] | None = None) -> bool:
        """Whether these outputs, or all there are, have the rows they are limited to. counts: rows not yet delivered"""
        names = self.rows_out if outputs is None else outputs
        there = counts if counts is not None else self.rows_out
        return all((limit := self._limits[n]) is not None and there[n] >= limit for n in names)

    def rows(self, output: str, batch: pa.RecordBatch, part: Iterable[str] | None = None) -> None:
        """The next rows of an output. Raises Enough once no output, or none of this part, takes more."""
        limit = self._limits[output]
        if limit is not None:
            batch = batch.slice(0, max(0, limit - self.rows_out[output]))
        if batch.num_rows:
            if output in self.hashes:
                self.hashes[output].update(batch)
            self.rows_out[output] += batch.num_rows
            self._sinks[output].write(batch)
            self._progress.rows_out[output] = self.rows_out[output]
        if limit is not None and self.full(part):
            raise Enough


Engine = Callable[[Compiled, Sequence[Feed], Delivery, RunOptions], int | None]
"""Carries the rows of all feeds through the query to the delivery; returns how many were late, if it knows."""


def run_query(
    compiled: Compiled,
    sinks: Mapping[str, Sink],
    engine: str = "native",
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Run a query to its end, or until interrupted, and return the summary.

    sinks: one for every output, by name. When it returns they are closed and whole. When it raises they are aborted:
    rows written to a terminal or pipe are everything before the error's position, files are as before.
    """
    run = engine_named(engine)
    progress, options = progress or Progress(), options or RunOptions()
    limits = {o.name: _least(o.limit, options.limit) for o in compiled.outputs}
    delivery = Delivery(sinks, limits, progress, options.unhashed)
    progress.summary = summary = RunSummary(engine)
    feeds: list[Feed] = []
    began = time.perf_counter()
    try:
        feeds = open_feeds(compiled, progress, wanted_columns(compiled, engine, options))
        summary.late_rows, summary.limited, summary.interrupted = _carry(run, compiled, feeds, delivery, options)
        # a part of a bounded result must not look whole; of an unbounded one there are only parts
        _end(sinks, whole=not summary.interrupted or not all(s.bounded for s in compiled.sources))
    except OutputClosed:
        summary.output_closed = True
        _end(sinks, whole=False)
    except BaseException:
        _end(sinks, whole=False)
        raise
    finally:
        for feed in feeds:
            summary.bad_rows[feed.name] = feed.source.bad_rows
            feed.source.close()
        ended = time.perf_counter()
        summary.start_seconds = (progress.began or ended) - began
        summary.seconds = ended - (progress.began or began)
        summary.rows_in = dict(progress.rows_in)
        summary.rows_out = dict(delivery.rows_out)
        summary.hashes = {name: h.digest for name, h in delivery.hashes.items()}
    return summary


def _least(a: int | None, b: int | None) -> int | None:
    return a if b is None else b if a is None else min(a, b)


@dataclass(frozen=True, slots=True)
class Collected:
    """The rows of every output, in order, and the data error that stopped the run, if one did."""

    tables: dict[str, pa.Table]
    summary: RunSummary
    error: DataError | None = None


def collect(compiled: Compiled, engine: str = "native", options: RunOptions | None = None) -> Collected:
    """Run a query into memory, whatever sinks it declares."""
    sinks = {o.name: Memory(result_schema(o.node.schema.fields)) for o in compiled.outputs}
    error, summary = None, RunSummary(engine)
    try:
        summary = run_query(compiled, sinks, engine, options)
    except DataError as e:
        error = e
    return Collected({name: sink.table() for name, sink in sinks.items()}, summary, error)


def wanted_columns(compiled: Compiled, engine: str, options: RunOptions) -> dict[str, list[int]]:
    """By stream, the columns the native engine reads; the others read what is declared."""
    if engine != "native":
        return {}
    with native_packages():
        from cq.native import workers

    jobs = compiled.for_workers(workers(compiled, options)).after("emit")
    places = {s.name: [f.name for f in s.fields] for s in compiled.sources}
    return {spec.name: [places[spec.name].index(c.name) for c in spec.columns] for job in jobs for spec in job.sources}


def open_feeds(compiled: Compiled, progress: Progress, wanted: Mapping[str, Sequence[int]]) -> list[Feed]:
    """All sources of the query, opened, with the columns that are wanted; when one cannot be, none stays open."""
    feeds: list[Feed] = []
    inputs = compiled.request.inputs
    try:
        letters = any(s.option("on_error", "fail") == "dead_letter" for s in compiled.sources)
        reserved = compiled.read_files if letters else frozenset()
        for stream in compiled.sources:
            try:
                source = open_source(stream, inputs, wanted.get(stream.name), reserved)
            except CqError as error:
                raise _at_option(error, compiled, stream.name) from None
            feeds.append(Feed(stream, source, progress))
    except BaseException:
        for feed in feeds:
            feed.source.close()
        raise
    return feeds


def _at_option(error: CqError, compiled: Compiled, stream: str) -> CqError:
    """The error at the path the text declares, unless it has a place or the path was given outside the text."""
    if error.diagnostics[1:] or error.first.span != NOWHERE or stream in compiled.request.inputs.given:
        return error
    for node in compiled.script.statements:
        for option in node.options if isinstance(node, CreateRelation) and node.name == stream else ():
            if option.key == "path":
                placed = replace(error.first, span=option.value.span).at(compiled.request.source)
                return type(error)(placed)
    return error


def _carry(
    run: Engine, compiled: Compiled, feeds: list[Feed], delivery: Delivery, options: RunOptions
) -> tuple[int | None, bool, bool]:
    """(late rows, stopped at the limit, interrupted)."""
    try:
        if delivery.full():
            raise Enough
        return run(compiled, feeds, delivery, options), False, False
    except Enough:
        return None, True, False
    except Interrupted:
        return None, False, True


@contextmanager
def opening_sinks() -> Iterator[dict[str, Sink]]:
    """A dict to be filled with sinks: when one cannot be opened, those before it leave nothing behind."""
    sinks: dict[str, Sink] = {}
    try:
        yield sinks
    except BaseException:
        _end(sinks, whole=False)
        raise


def _end(sinks: Mapping[str, Sink], whole: bool) -> None:
    """Every sink is closed, or, when its rows are not all there, aborted; one that fails aborts those after it."""
    waiting = list(sinks.values())
    try:
        while waiting and whole:
            waiting[0].close()
            waiting.pop(0)
    finally:
        for sink in waiting:
            with suppress(CqError, OutputClosed, OSError):
                sink.abort()


# ------------------------------------------------------------------------------------------------------------ engines


def _run_reference(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> int:
    """The bound plan, row by row. It gives its rows at the end, also when that is an error."""
    from cq.reference.engine import Placed, Session

    session = Session(compiled.plan)

    def enough() -> bool:
        return delivery.full(counts={name: len(rows) for name, rows in session.result.outputs.items()})

    def rows(feed: Feed) -> Iterator[Placed]:
        types = [f.type for f in feed.stream.fields]
        for taken in feed:
            if enough():
                return
            for k, row in enumerate(rows_of(taken.batch, types)):
                yield Placed(row, taken.place.of(k))

    failed: BaseException | None = None
    try:
        session.feed({feed.stream.name: rows(feed) for feed in feeds})
        failed = session.result.error
    except (DataError, Interrupted) as error:
        failed = error
    for output in compiled.outputs:
        delivered = [d.row for d in session.result.outputs[output.name]]
        for start in range(0, len(delivered), BATCH_ROWS):
            with suppress(Enough):
                delivery.rows(output.name, batch_of(delivered[start : start + BATCH_ROWS], output.node.schema.fields))
    if delivery.full():
        raise Enough
    if failed is not None:
        raise failed
    return sum(rows for _, rows in session.result.late)


def _run_native(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> int:
    with native_packages():
        from cq.native import run_native
        from cq.runtime.hashing import NativeRowHash

        delivery.hash_by(NativeRowHash)
        return run_native(compiled, feeds, delivery, options)


@contextmanager
def native_packages() -> Iterator[None]:
    """What needs numba or llvmlite; without them CQ0604 and the engine that needs neither."""
    try:
        yield
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in {"numba", "llvmlite"}:
            raise
        ways = ("pip install numba llvmlite", "or run it in plain Python: --engine reference")
        raise UsageError(Diagnostic("CQ0604", f"the native engine needs the package {e.name}", help=ways)) from None


def _run_spark(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> None:
    """The bound plan over whole tables, on Spark; it gives nothing before a data error and counts no late rows."""
    import pyarrow as pa

    from cq.spark.run import run_spark

    inputs = {}
    for feed in feeds:
        schema = result_schema(feed.stream.fields)
        batches = [taken.batch.cast(schema) for taken in feed]
        inputs[feed.name] = pa.Table.from_batches(batches, schema=schema)
    try:
        tables = run_spark(compiled.plan, inputs, ordered=True)
    except CompileError as error:
        raise error.at(compiled.request.source) from None
    for name, table in tables.items():
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            with suppress(Enough):
                delivery.rows(name, batch)


ENGINES: dict[str, Engine] = {"native": _run_native, "spark": _run_spark, "reference": _run_reference}


def engine_named(name: str) -> Engine:
    """The engine of that name; CQ0901 lists them."""
    if name not in ENGINES:
        help = (did_you_mean(name, ENGINES), "engines: " + ", ".join(ENGINES))
        raise UsageError(Diagnostic("CQ0901", f'there is no engine "{name}"', help=tuple(h for h in help if h)))
    return ENGINES[name]
