"""Running a compiled query: one protocol, several engines, one summary.

`run_query` opens the sources and sinks, lets an engine carry rows from one to the other, and counts and hashes the
output. An engine is a function (`ENGINES`) that reads the `Feed`s in any way it likes and hands record batches of
each output, in order, to `Delivery.rows`; it returns what only it can know: how many rows were late, and how
many events were rejected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cq.compiler.passes import Compiled
from cq.connectors.protocol import Contradiction, Sink, Source, SourceBatch
from cq.connectors.rowhash import RowHash
from cq.connectors.sinks.targets import OutputClosed
from cq.errors import Diagnostic, UsageError
from cq.planner.binding.settings import BATCH_ROWS, BOUNDS, PARALLELISM, within
from cq.records import dataclass, field, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from cq.connectors.sinks.writers import CsvText
    from cq.planner.plan.source import SourceDef
    from cq.runtime.engine.engine import Engine as NativeEngine


MOST_ROWS = 2**63 - 1  # of an input or an output


@dataclass(frozen=True, slots=True)
class Counts:
    """What only an engine can count; None for what it does not count.

    late_rows: dropped by event-time operators, once per path.  rejected_events: by trigger, where there were any.
    """

    late_rows: int | None = None
    rejected_events: Mapping[str, int] | None = None

    @staticmethod
    def of(late_rows: int | None, rejected: Iterable[tuple[str, int]]) -> Counts:
        """rejected: for each operator that runs a trigger. Where several run the same, they reject the same events."""
        found: dict[str, int] = {}
        for trigger, events in rejected:
            found[trigger] = max(events, found.get(trigger, 0))
        return Counts(late_rows, {trigger: events for trigger, events in found.items() if events})


class Interrupted(Exception):
    """The run was asked to stop; rows delivered so far are valid. counts: at that point."""

    counts = Counts()


class Enough(Exception):
    """Every output has reached its row limit."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run; UsageError (CQ0208) for a value out of range.

    threads: workers of the native engine; 0 runs everything in the calling thread; None: as the text SETs, else one for
    each usable processor, less one if a generator is read.  batch_rows: the most rows of a batch.
    limit: rows of each output.
    unhashed: outputs whose rows are not hashed as they pass; the summary has no hash of them.
    input_rows: the first rows of each stream that are read; None: all.
    memory_limit: bytes that the state of the query may take; NO_MEMORY_LIMIT: all there are.
    on_end: called with each engine before it is closed, and whether its run is over; native engine only.
    """

    threads: int | None = None
    batch_rows: int | None = None
    limit: int | None = None
    unhashed: frozenset[str] = frozenset()
    memory_limit: int | None = None
    input_rows: int | None = None
    on_end: Callable[[NativeEngine, bool], None] | None = None

    def __post_init__(self) -> None:
        bounds = {"threads": BOUNDS[PARALLELISM], "batch_rows": BOUNDS[BATCH_ROWS]}
        bounds |= {"limit": (0, MOST_ROWS), "input_rows": (1, MOST_ROWS)}
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if value is not None and not (type(value) is int and least <= value <= most):
                raise UsageError(Diagnostic("CQ0208", f"{name} takes {within(least, most)}, not {value!r}"))


@dataclass(slots=True)
class Progress:
    """What a run has done so far; read by others while it runs, written by the thread that runs it."""

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    shares: dict[str, Callable[[], float | None]] = field(default_factory=dict)
    summary: RunSummary | None = None  # complete when the run has ended, even by an error
    compiling: tuple[str, int, int] | None = None  # what is being compiled, functions done, functions in all
    began: float | None = None  # when the first row was requested: everything is compiled
    stop: bool = False
    on_stop: list[Callable[[], None]] = field(default_factory=list)
    on_note: Callable[[str], None] = lambda note: None  # called with what happened to an input, when the run reaches it
    silent: dict[str, int] = field(default_factory=dict)  # how often a stream fell silent: see IDLE TIMEOUT
    waiting_for: str = ""  # why the first row was not requested yet, in words, besides compiling
    engine: str = ""  # which of several engines runs, in a comparison: "spark: "

    def begin(self) -> None:
        """Start a run; there may have been one before it."""
        self.began = None
        self.on_stop.clear()
        for counts in (self.rows_in, self.rows_out, self.shares, self.silent):
            counts.clear()

    def compiles(self, what: str, done: int, total: int) -> None:
        """Note how many functions of this are compiled."""
        self.compiling = (what, done, total)

    def interrupt(self) -> None:
        """Ask the run to stop. Safe in a signal handler and in any thread; asking again changes nothing."""
        if self.stop:
            return
        self.stop = True
        for stop in self.on_stop:
            stop()


@dataclass(slots=True)
class RunSummary:
    """What a run did: rows by stream and by output, the hash of every output, and how it ended."""

    engine: str
    rows_in: dict[str, int] = field(default_factory=dict)
    bad_rows: dict[str, int] = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)  # the files that bad rows were written to
    blank_lines: dict[str, int] = field(default_factory=dict)  # of text between rows; they are not rows
    late_rows: int | None = 0  # as of Counts
    rejected_events: Mapping[str, int] | None = field(default_factory=dict)  # as of Counts
    rows_out: dict[str, int] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # from the first request for a row to the end
    start_seconds: float = 0.0  # before that: compiling, opening
    silent: dict[str, int] = field(default_factory=dict)  # how often other streams went on without this one
    notes: list[str] = field(default_factory=list)  # what happened to inputs: a followed file was replaced
    contradictions: dict[str, Contradiction] = field(default_factory=dict)  # by stream: one may have ended the run
    interrupted: bool = False
    limited: bool = False
    left: tuple[str, ...] = ()  # outputs whose reader closed before their last row
    unwritten: tuple[str, ...] = ()  # outputs that were discarded: their files are unchanged


class Feed:
    """One source as engines see it: batches of the requested columns, counted as they are taken.

    idle_s: how long a source that is being polled may have no rows before it is silent; None: forever.
    most_rows: the feed ends after this many; None: at the end of its source.
    """

    def __init__(
        self,
        stream: SourceDef,
        source: Source,
        progress: Progress,
        idle_s: float | None = None,
        now: Callable[[], float] = time.monotonic,
        most_rows: int | None = None,
    ) -> None:
        self.stream, self.name, self.source, self.idle_s = stream, stream.name, source, idle_s
        self.most_rows = most_rows
        self._now = now
        self._nothing_since: float | None = None  # None while it is silent
        self._silent = False
        self._progress = progress
        self._noted = 0
        name = self.name
        progress.rows_in[name] = 0
        # holds no feed: that would make a cycle with the progress, and keep the results until garbage collection
        progress.shares[name] = partial(_share_done, source, progress.rows_in, name, most_rows)
        progress.on_stop.append(source.interrupt)

    def __iter__(self) -> Iterator[SourceBatch]:
        if self._progress.began is None:
            self._progress.began = time.perf_counter()
        for read in self.source.batches():
            if self._progress.stop:
                break
            self._tell()
            batch = self._cut(read)
            self._progress.rows_in[self.name] += batch.batch.num_rows
            yield batch
            if self._progress.rows_in[self.name] == self.most_rows:
                break
            if self.idle_s is not None and self._falls_silent(batch.batch.num_rows, self.idle_s):
                self._progress.silent[self.name] = self._progress.silent.get(self.name, 0) + 1
                yield replace(batch, batch=batch.batch.slice(0, 0), silent=True)
        self._tell()
        if self._progress.stop:
            raise Interrupted

    def _cut(self, batch: SourceBatch) -> SourceBatch:
        """The batch without the rows after the last one that is read."""
        if self.most_rows is None:
            return batch
        room = self.most_rows - self._progress.rows_in[self.name]
        if batch.batch.num_rows <= room:
            return batch
        return replace(batch, batch=batch.batch.slice(0, room), place=batch.place.slice(0, room))

    def _falls_silent(self, rows: int, idle_s: float) -> bool:
        """Whether the source has had nothing for that long."""
        if rows:
            self._nothing_since, self._silent = None, False
            return False
        if self._nothing_since is None:
            self._nothing_since = self._now()
        falls = not self._silent and self._now() - self._nothing_since >= idle_s
        self._silent = self._silent or falls
        return falls

    def _tell(self) -> None:
        for note in self.source.notes[self._noted :]:
            self._noted += 1
            self._progress.on_note(note)


def _share_done(source: Source, rows_in: Mapping[str, int], name: str, most_rows: int | None) -> float | None:
    """The fraction of the rows read so far, from 0 to 1; None if unknown."""
    share = source.share_done()
    return share if most_rows is None else max(share or 0.0, rows_in[name] / most_rows)


class Delivery:
    """The outputs of a run: rows are cut to the limit, counted, hashed and written.  rows_out: rows of each so far.

    When the reader of standard output closes it, those outputs take no more rows; in a run whose rows end and that has
    other outputs, the others still get all their rows.  left: the outputs whose reader has closed.
    """

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        limits: Mapping[str, int | None],
        progress: Progress,
        unhashed: frozenset[str] = frozenset(),
        ends: bool = True,
    ) -> None:
        self.hashes = {name: RowHash() for name in sinks if name not in unhashed}
        self.rows_out = dict.fromkeys(sinks, 0)
        self.left: list[str] = []
        self._sinks, self._limits, self._progress, self._ends = sinks, dict(limits), progress, ends
        progress.rows_out.update(self.rows_out)

    def hash_by(self, hashing: Callable[[], RowHash]) -> None:
        """Set how rows are hashed, before the first of them."""
        self.hashes = {name: hashing() for name in self.hashes}

    def write_by(self, csv_text: Callable[[str], CsvText]) -> None:
        """Set what makes lines of CSV, by their delimiter, before the first row."""
        from cq.connectors.sinks.writers import Csv

        for sink in self._sinks.values():
            if isinstance(sink, Csv):
                sink.write_by(csv_text)

    def limited(self, output: str) -> bool:
        """Whether the output has a row limit."""
        return self._limits[output] is not None

    def waits_for(self, what: str) -> None:
        """Show what the run waits for; nothing: rows."""
        self._progress.waiting_for = what

    def on_interrupt(self, stop: Callable[[], None]) -> None:
        """Register `stop`, to be called by a signal handler or another thread when the run is asked to stop."""
        self._progress.on_stop.append(stop)

    def full(self, outputs: Iterable[str] | None = None, counts: Mapping[str, int] | None = None) -> bool:
        """Whether these outputs, or all outputs, have reached their limits. counts: rows not yet delivered"""
        names = self.rows_out if outputs is None else outputs
        there = counts if counts is not None else self.rows_out
        return all((limit := self._limits[n]) is not None and there[n] >= limit for n in names)

    def rows(self, output: str, batch: pa.RecordBatch, part: Iterable[str] | None = None) -> None:
        """Deliver the next rows of an output. Raises Enough once no output, or none of this part, takes more."""
        limit = self._limits[output]
        if limit is not None:
            batch = batch.slice(0, max(0, limit - self.rows_out[output]))
        if batch.num_rows:
            if output in self.hashes:
                self.hashes[output].update(batch)
            self._write(output, batch)
        if self._limits[output] is not None and self.full(part):
            raise Enough

    def _write(self, output: str, batch: pa.RecordBatch) -> None:
        try:
            self._sinks[output].write(batch)
        except OutputClosed:
            on_stdout = [name for name, sink in self._sinks.items() if not sink.lasts]
            gone = on_stdout if output in on_stdout else [output]
            self.left += gone
            self._limits.update((name, self.rows_out[name]) for name in gone)
            if not self._ends or self.full():
                raise
            return
        self.rows_out[output] += batch.num_rows
        self._progress.rows_out[output] = self.rows_out[output]


Engine = Callable[[Compiled, Sequence[Feed], Delivery, RunOptions], Counts]
"""Carry the rows of all feeds through the query to the delivery, and count the rows left out."""
