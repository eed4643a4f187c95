"""Run a compiled query: sources opened, an engine chosen, sinks filled, everything closed, one summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cq.compiler.passes import Compiled, demand_output
from cq.connectors.protocol import Contradiction, Sink
from cq.connectors.sinks.partitioned import Partitioned
from cq.connectors.sinks.targets import OutputClosed
from cq.connectors.sinks.writers import JsonLines, MemorySink, result_schema
from cq.engines.engines import engine_named
from cq.engines.feeding import demand_ends, natives_of, open_feeds, wanted_columns
from cq.engines.protocol import Counts, Delivery, Engine, Enough, Feed, Interrupted, Progress, RunOptions, RunSummary
from cq.errors import CompileError, CqError, DataError, printable
from cq.garbage_collection import collector_paused
from cq.grammar import inline
from cq.hints import face
from cq.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


def run_query(
    compiled: Compiled,
    sinks: Mapping[str, Sink],
    engine: str = "native",
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Run a query to its end, or until interrupted, and return the summary.

    sinks: one for every output, by name. When it returns they are closed and complete. When it raises or is interrupted
    they are aborted: a terminal, a pipe or the file of an endless input has all rows before the error's position; other
    files are unchanged.
    """
    run = engine_named(engine)
    progress, options = progress or Progress(), options or RunOptions()
    progress.begin()
    limits = {o.name: _least(o.limit, options.limit) for o in compiled.outputs}
    ends = not any(map(compiled.endless, compiled.outputs))
    delivery = Delivery(sinks, limits, progress, options.unhashed, ends)
    progress.summary = summary = RunSummary(engine)
    feeds: list[Feed] = []
    began = time.perf_counter()
    try:
        with collector_paused():
            wanted, natives = wanted_columns(compiled, engine, options), natives_of(engine)
        feeds = open_feeds(compiled, progress, wanted, natives, options.input_rows)  # a pipe may make it wait
        counts, summary.limited, summary.interrupted = _carry(run, compiled, feeds, delivery, options)
        summary.late_rows, summary.rejected_events = counts.late_rows, counts.rejected_events
        whole = not summary.interrupted  # a partial result must not look complete
        delivery.left += _end(sinks, whole, delivery.left)
    except OutputClosed:
        _end(sinks, whole=False)
    except BaseException:
        _end(sinks, whole=False)
        raise
    finally:
        for feed in feeds:
            _note_source(summary, feed)
            feed.source.close()
        ended = time.perf_counter()
        summary.start_seconds = (progress.began or ended) - began
        summary.seconds = ended - (progress.began or began)
        for name, sink in sinks.items():
            parts = sink.parts if isinstance(sink, Partitioned) else [sink]
            nulls = sum(part.nulls for part in parts if isinstance(part, JsonLines))
            if nulls:
                summary.notes.append(_no_number(name, nulls))
                progress.on_note(summary.notes[-1])
        summary.rows_in = dict(progress.rows_in)
        summary.silent = dict(progress.silent)
        summary.rows_out = dict(delivery.rows_out)
        summary.left = tuple(delivery.left)
        if summary.interrupted:
            summary.unwritten = tuple(name for name, sink in sinks.items() if sink.lasts and not sink.stays)
        summary.hashes = {name: h.digest for name, h in delivery.hashes.items()}
    return summary


def _note_source(summary: RunSummary, feed: Feed) -> None:
    """Put into the summary what a source says of its rows."""
    name, source = feed.name, feed.source
    summary.bad_rows[name] = source.bad_rows
    if source.letters is not None:
        summary.letters[name] = str(source.letters)
    summary.blank_lines[name] = source.blank_lines
    summary.notes += source.notes
    if source.contradiction is not None:
        summary.contradictions[name] = source.contradiction


def run_reading_again(
    compiled: Compiled,
    opened: Callable[[Compiled], Mapping[str, Sink]],
    engine: str = "native",
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Run a query as `run_query` does, and once more if a row contradicts the guessed type of a file's column.

    The column then has the narrowest type that also holds that row. It stays an error if rows of the run may have been
    seen, if the input cannot be read twice, or if the query does not accept the other type.
    opened: opens the sinks of a run, whose columns may have other types than those of the run before.  CQ0606 for a
    text without outputs.
    """
    demand_output(compiled.plan)
    progress = progress or Progress()
    notes: list[str] = []
    while True:
        sinks = opened(compiled)
        try:
            summary = run_query(compiled, sinks, engine, options, progress)
        except DataError as error:
            found = None if any(sink.stays for sink in sinks.values()) else _contradiction(compiled, error, progress)
            if found is None:
                raise
            stream, contradiction = found
            try:
                compiled = compiled.widened(stream, contradiction.column, contradiction.type)
            except CompileError:
                raise error from None
            notes.append(_read_again(stream, contradiction))
            progress.on_note(notes[-1])
            continue
        summary.notes[:0] = notes
        return summary


def _contradiction(compiled: Compiled, error: DataError, progress: Progress) -> tuple[str, Contradiction] | None:
    """The guess that the error is about, with its stream, if the stream can be read again."""
    found = progress.summary.contradictions if progress.summary is not None else {}
    streams = {s.name: s for s in compiled.streams}
    for name, contradiction in found.items():
        said, first = contradiction.said, error.first
        if (said.place, said.message) == (first.place, first.message):
            again = not compiled.request.inputs.is_read_once(streams[name]) and streams[name].bounded
            return (name, contradiction) if again else None
    return None


def _read_again(stream: str, found: Contradiction) -> str:
    column = f"{printable(found.column)} is {found.type}"
    return f"{printable(stream)} is read again: {column}, because {found.said.place} holds '{found.shown}'"


def _no_number(output: str, count: int) -> str:
    what = f"{count:,} value{'s' if count > 1 else ''} of {printable(output)}"
    keep = (
        f"to keep them, write to a sink: CREATE SINK {printable(inline.name(output))} WITH (path = '…', nan = 'text')"
    )
    return f"{what} {'are' if count > 1 else 'is'} null in JSON, which has no NaN and no infinity; {keep}"


def _least(a: int | None, b: int | None) -> int | None:
    return a if b is None else b if a is None else min(a, b)


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """The rows of every output, in order, and the data error that stopped the run, if any."""

    tables: dict[str, pa.Table]
    summary: RunSummary
    error: DataError | None = None


def collect(
    compiled: Compiled, engine: str = "native", options: RunOptions | None = None, progress: Progress | None = None
) -> CollectedRun:
    """Run a query into memory, ignoring its declared sinks; a data error is returned beside the rows before it.

    Errors of other kinds are raised; CQ0901 for a stream without an end, unless every output has a limit.
    """
    options = options or RunOptions()
    if options.limit is None and options.input_rows is None and any(o.limit is None for o in compiled.outputs):
        demand_ends(compiled.streams, f"or read only the first rows of it: {face().first_rows}")
    sinks: dict[str, MemorySink] = {}

    def opened(compiled: Compiled) -> Mapping[str, Sink]:
        sinks.update({o.name: MemorySink(result_schema(o.node.schema.fields)) for o in compiled.outputs})
        return sinks

    error, summary = None, RunSummary(engine)
    try:
        summary = run_reading_again(compiled, opened, engine, options, progress)
    except DataError as e:
        error = e
    return CollectedRun({name: sink.table() for name, sink in sinks.items()}, summary, error)


def _carry(
    run: Engine, compiled: Compiled, feeds: list[Feed], delivery: Delivery, options: RunOptions
) -> tuple[Counts, bool, bool]:
    """Run the engine and return (counts, stopped at the limit, interrupted)."""
    try:
        if delivery.full():
            raise Enough
        return run(compiled, feeds, delivery, options), False, False
    except Enough:
        return _uncounted(compiled), True, False
    except Interrupted as interrupted:
        return interrupted.counts, False, True
    except DataError as error:
        raise error.at(compiled.request.source) from None


def _uncounted(compiled: Compiled) -> Counts:
    """The counts of a run that stops at its limits: how many more rows it reads is not defined."""
    from cq.planner.physical.transactions import transactions_of

    may_be_late = any(n.uses_time for n in compiled.plan.nodes())
    may_be_rejected = any(n.rejects for n in transactions_of(compiled.plan))
    return Counts(None if may_be_late else 0, None if may_be_rejected else {})


@contextmanager
def opening_sinks() -> Iterator[dict[str, Sink]]:
    """A dict to be filled with sinks: if one cannot be opened, those before it leave nothing behind."""
    sinks: dict[str, Sink] = {}
    try:
        yield sinks
    except BaseException:
        _end(sinks, whole=False)
        raise


def _end(sinks: Mapping[str, Sink], whole: bool, left: Sequence[str] = ()) -> list[str]:
    """Close every sink or, if its rows are incomplete, abort it; one that fails aborts those after it.

    left: the outputs whose reader has closed. Returns those whose reader closes now, which is no failure.
    """
    waiting, leaving = list(sinks.items()), list[str]()
    try:
        while waiting and whole:
            name, sink = waiting[0]
            try:
                (sink.abort if name in left else sink.close)()
            except OutputClosed:
                leaving.append(name)
            waiting.pop(0)
    finally:
        for _, sink in waiting:
            with suppress(CqError, OutputClosed, OSError):
                sink.abort()
    return leaving
