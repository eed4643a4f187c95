"""The engine: runs a Pipeline over record batches and returns record batches, in the one order the query defines.

    engine = Engine(pipeline, threads=2)
    failure = engine.run([batches_of_source_0, batches_of_source_1], on_batch)

or step by step: `push`, `end`, then `drain` or `results`. With `threads=0` everything happens inside these calls, on
the calling thread; otherwise that many daemon threads stay inside one native loop each and these calls only feed and
drain. They wait in slices, so Ctrl-C is seen within SLICE_NS; closing waits for the tickets that workers are
processing.

Roles     one feeder: the thread that calls the engine.  `threads` workers (cq/runtime/engine/worker.py).  With
          threads=0, after `interrupt`, a thread that stores STATE_STOPPING as the feeder does, before `close` or never.
Shared    what the native functions name that the feeder calls, and the two words below.
Progress  the feeder waits for results or room, in slices of SLICE_NS, and in `close` for the tickets in progress.
Order     the feeder calls native functions for everything it shares with workers except two words: it stores
          ADMISSION_PAUSED and STATE_STOPPING plainly, whole and aligned, and workers load them at every ticket, and
          wherever they test many pairs for one row. What it does next (`engine_idle`) takes ADMISSION_BUSY by CAS, so
          that a ticket cut after that has seen the pause. A stage's rings are drained, and states read, after
          `engine_idle` has found everything at rest: its loads of BUSY locks and pools come after the stores with which
          workers gave those back.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from cq.process_limits import usable_cpus
from cq.runtime.base.effort import Effort
from cq.runtime.base.host import CompiledHost, Host, InterpretedHost
from cq.runtime.containers.state import held_by_operator, save_slot
from cq.runtime.engine import stage as s
from cq.runtime.engine.build import NO_LIMIT, build, close
from cq.runtime.engine.clock import ComputedTimes, SourceClock
from cq.runtime.engine.failure import EngineFailure, read_failure
from cq.runtime.engine.graph import graph
from cq.runtime.engine.metrics import Metrics, read_metrics
from cq.runtime.engine.plant import DEFAULT_SHARING, Plant, SettledSharing
from cq.runtime.engine.snapshot import Snapshot, put_snapshot, saved_states, take_snapshot
from cq.runtime.engine.ways.placement import homes_of
from cq.runtime.flow.admission_words import (
    ADMISSION_LATE_ROWS,
    ADMISSION_PAUSED,
    ADMISSION_SERIAL,
    BREAK_OF_SOURCE,
    END_OF_SOURCE,
    SILENCE_OF_SOURCE,
    SOURCE_ENDED,
    SOURCE_MAX,
    SOURCE_RING,
    SOURCE_TAKEN,
)
from cq.runtime.flow.arrow import Dictionaries, ShownRows, adopt, lend, plain_schema
from cq.runtime.flow.batch import ITEM_STAGE, LOAN_FIRST
from cq.runtime.layout.abi import STATE_STOPPING, Storage
from cq.runtime.layout.pipeline import Pipeline, Slot
from cq.ways import HEURISTICS

SLICE_NS = 50_000_000  # how long the feeder waits before it looks at signals again
# of a core that no worker needs, before sleeping: about 25 us. Only where the caller waits for results: a feeder of
# many rows waits for longer than that, so it would yield in vain.
YIELDS = 100
INLINE_STEPS = 64  # threads=0: visits between two looks at the results
GRACE_NS = 1_000_000_000  # how long an interrupted run may take for the current rows
TICKET_ROWS = 16384  # columns of 128 KiB: several fit the second-level cache (measured best from 4k to 16k)

OnBatch = Callable[[int, pa.RecordBatch], None]


class Silence:
    """Marks a place among the batches of a source where it was silent for so long that the others go on without it."""


SILENCE = Silence()
Batches = Iterator["pa.RecordBatch | Silence"]


class _Feed:
    """Iterators of record batches, the batch of each that was read and not taken yet, and the first error of any."""

    def __init__(self, sources: Sequence[Batches]) -> None:
        self.sources = sources
        self.waiting: list[pa.RecordBatch | Silence | None] = [None] * len(sources)
        self.broken: dict[int, Exception] = {}

    def peek(self, number: int) -> pa.RecordBatch | Silence | None:
        """The next batch of a source; None at its end, or after an error: then it has no more and does not end."""
        if self.waiting[number] is None and number not in self.broken:
            try:
                self.waiting[number] = next(self.sources[number], None)
            except Exception as error:
                self.broken[number] = error
        return self.waiting[number]

    def taken(self, number: int) -> None:
        """Note that the engine has taken the batch."""
        self.waiting[number] = None

    def speaks(self, number: int) -> bool:
        """Whether there is something that ends a silence: rows, the end, or an error."""
        batch = self.peek(number)
        return batch is None or (not isinstance(batch, Silence) and batch.num_rows > 0)


class Engine:
    """One run of a pipeline. Methods are called by one thread at a time; `close` (or `with`) ends it."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        threads: int = 0,
        batch_rows: int = TICKET_ROWS,
        heuristic: str = HEURISTICS[0],
        memory_limit: int | None = None,
        schemas: Sequence[pa.Schema] | None = None,
        interpreted: bool = False,
        snapshot: Snapshot | None = None,
        sharing: SettledSharing = DEFAULT_SHARING,
        effort: Effort = Effort.FULL,
    ) -> None:
        """A run that has not begun, or continues from a snapshot.

        memory_limit: bytes that the states of all stages may hold; beyond them the run fails with LIMIT.
        schemas: of each sink's batches, with the layouts of its columns.
        sharing: as in `build`.  effort: as in `CompiledHost`.
        """
        assert batch_rows > 0 and threads >= 0 and not (interpreted and threads), "engine options"
        self.pipeline = pipeline
        self._host = InterpretedHost() if interpreted else CompiledHost(effort)
        given = schemas if schemas is not None else [plain_schema(p.columns) for p in pipeline.sinks]
        self._shown = [ShownRows.of(schema) for schema in given]
        self._may_have_texts = [any(c.storage is Storage.UTF8 for c in spec.columns) for spec in pipeline.sources]
        self._dictionaries = Dictionaries()
        self._inline = threads == 0
        limit = NO_LIMIT if memory_limit is None else memory_limit
        with self._host.active():
            threads = threads if pipeline.workers is None else min(threads, pipeline.workers)
            saved = () if snapshot is None else saved_states(pipeline, snapshot)
            order = HEURISTICS.index(heuristic)
            self._plant = build(self._host, pipeline, threads, batch_rows, order, limit, saved, sharing)
            if snapshot is not None:
                try:
                    put_snapshot(self._host, self._plant, snapshot)
                except BaseException:
                    close(self._plant)
                    raise
        self._loans: list[deque[int]] = [deque() for _ in pipeline.sources]
        self._pushed_rows = list(snapshot.rows) if snapshot is not None else [0] * len(pipeline.sources)
        self._ended = [self._has_ended(source) for source in self._plant.sources]
        self._over = list(self._ended)  # including sources whose end is still held
        self._held: list[deque[Callable[[], bool]]] = [deque() for _ in pipeline.sources]
        self._silent = [False] * len(pipeline.sources)
        self._interrupted_ns = 0  # when the run was asked to stop, until the kernels are stopped
        self._ending = threading.Lock()  # between a thread that stops the kernels and one that frees their states
        self._settles = False  # a source has just ended its silence: admission must know before anything else is given
        self._stashed: list[deque[pa.RecordBatch]] = [deque() for _ in pipeline.sinks]
        self._threads: list[threading.Thread] = []
        self._clocks: dict[int, SourceClock] = {}
        # workers do not keep the engine alive: one that was not closed must stop them before its memory is freed
        self._end = weakref.finalize(self, _end, self._host, self._plant, self._loans, self._threads, self._clocks)
        self._yields = YIELDS if threads < usable_cpus() else 0
        for number in range(threads):
            self._threads.append(self._start(number))

    def _has_ended(self, source: int) -> bool:
        with self._host.active():
            return self._host.word(source, SOURCE_ENDED) == 1

    def _start(self, number: int) -> threading.Thread:
        loop, plant = self._host.function("worker_loop"), self._plant
        sockets = plant.sharing.sockets
        home = sockets[homes_of(plant.workers, len(sockets))[number]] if len(sockets) > 1 else ()

        def work(engine: int, worker: int) -> None:
            if home:
                os.sched_setaffinity(0, home)  # of this thread
            loop(engine, worker)

        thread = threading.Thread(target=work, args=(plant.engine, number), name=f"cq worker {number}", daemon=True)
        thread.start()
        return thread

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- feeding -----------------------------------------------------------------------------------------------------

    def push(self, source: int, batch: pa.RecordBatch) -> None:
        """Append the batch to its source. Waits for room; results meanwhile wait for `drain`.

        If there is none until another source has rows, the batch is held until then. batch: the columns of the source's
        spec. It is lent until every row of it is processed. After the run has failed it is ignored.
        """
        self._give(source, lambda: self._offer(source, batch))

    def end(self, source: int) -> None:
        """The source has no more rows."""
        self._give(source, lambda: self._offer_end(source), last=True)

    def silence(self, source: int) -> None:
        """Others stop waiting for the source until it gives something, which comes after everything given before."""
        self._give(source, lambda: self._offer_silence(source))

    def _give(self, source: int, offer: Callable[[], bool], last: bool = False) -> None:
        """Wait until what the source gives is taken, or nothing moves until another source gives something."""
        assert not self._over[source], "something after the end of its source"
        self._over[source] = last
        self._held[source].append(offer)
        with self._host.active():
            self._advance()
            while self._held[source]:
                seen, still = self._signal(), self._idle()
                if self._advance():
                    continue
                if still:
                    return
                self._rest(seen)

    def _give_held(self) -> bool:
        """Whether a source took something that it was given before."""
        moved = False
        for held in self._held:
            while held and held[0]():
                held.popleft()
                moved = True
        return moved

    def _settled(self, source: int) -> bool:
        """Whether the source may give something now. Before and after a silent source speaks, everything given is
        processed: so what is admitted with it and without it does not depend on timing."""
        if not (self._settles or self._silent[source]):
            return True
        if self._outcome() == s.RUNNING and not self._all_done():
            return False
        self._settles = False
        return True

    def event_times(self, source: int, batch: pa.RecordBatch) -> ComputedTimes:
        """The event times of a batch of the columns that the source delivers, for a source that delivers none."""
        with self._host.active():
            if source not in self._clocks:
                self._clocks[source] = SourceClock(self._host, self.pipeline, source)
            return self._clocks[source].times(batch)

    def _offer(self, source: int, batch: pa.RecordBatch) -> bool:
        """Whether the source took the batch: it has room, or needs no more."""
        if self._outcome() != s.RUNNING or batch.num_rows == 0:
            return True
        ring = self._host.word(self._plant.sources[source], SOURCE_RING)
        if not self._settled(source) or not self._host.function("ring_has_room")(ring):
            return False
        self._settles, self._silent[source] = self._silent[source], False
        assert batch.num_columns == len(self.pipeline.sources[source].columns), "columns of a source"
        loan = lend(self._host, batch, self._plant.storages[source])
        if self._may_have_texts[source]:
            self._dictionaries.show(self._host, loan, source, batch)
        self._host.set_word(loan, LOAN_FIRST, self._pushed_rows[source])
        self._pushed_rows[source] += batch.num_rows
        self._loans[source].append(loan)
        self._host.function("ring_push")(ring, loan)
        self._wake()
        return True

    def _offer_end(self, source: int, mark: int = END_OF_SOURCE) -> bool:
        """Whether there was room for the mark after which the source gives no more."""
        if not self._mark(source, mark):
            return False
        self._settles, self._silent[source] = self._silent[source], False
        self._ended[source] = True
        return True

    def _offer_silence(self, source: int) -> bool:
        """Whether there was room for the mark after which others do not wait for the source; one mark is enough."""
        if not self._silent[source]:
            self._silent[source] = self._mark(source, SILENCE_OF_SOURCE)
        return self._silent[source]

    def _mark(self, source: int, mark: int) -> bool:
        ring = self._host.word(self._plant.sources[source], SOURCE_RING)
        if not self._settled(source):
            return False
        if self._outcome() == s.RUNNING and not self._host.function("ring_push")(ring, mark):
            return False
        self._wake()
        return True

    def _wake(self) -> None:
        if self._threads:
            self._host.function("wake_workers")(self._plant.engine, len(self._threads))

    def _advance(self) -> bool:
        """Whether something moved: held batches given, work done inline, results taken, batches given back."""
        moved = self._give_held()
        moved = (self._inline and self._host.function("run_inline")(self._plant.engine, INLINE_STEPS) > 0) or moved
        if self._host.interrupts:  # the interrupted function has no result
            raise self._host.interrupts[0]
        moved = self._take_results() or moved
        self._return_loans()
        return moved

    def _return_loans(self) -> None:
        in_use, give_back = self._host.function("loan_in_use"), self._host.function("loan_return")
        for loans in self._loans:
            while loans and in_use(loans[0]) == 0:
                give_back(loans.popleft())

    # -- draining ----------------------------------------------------------------------------------------------------

    def _take_results(self) -> bool:
        """Whether there were results; they are queued in the order of each sink."""
        pop, found = self._host.function("ring_pop"), False
        for number, sink in enumerate(self._plant.sinks):
            ring = self._host.word(sink, s.SINK_RING)
            while (parcel := pop(ring)) != 0:
                columns = self.pipeline.sinks[number].columns
                self._stashed[number].append(adopt(self._host, parcel, columns, self._shown[number]))
                found = True
        if found:
            self._wake()  # a worker may have waited for room
        return found

    def drain(self) -> list[tuple[int, pa.RecordBatch]]:
        """(sink, batch) of all results of the rows pushed so far, as far as they can be known; then nothing moves."""
        with self._host.active():
            while True:
                seen, still = self._signal(), self.finished or self._all_done()
                if self._advance():
                    continue
                if still:
                    break
                if not self._inline:
                    self._rest(seen, self._yields)
            self._advance()
        return [(n, stash.popleft()) for n, stash in enumerate(self._stashed) for _ in range(len(stash))]

    def ready(self) -> list[tuple[int, pa.RecordBatch]]:
        """(sink, batch) of the results available now; does not wait."""
        with self._host.active():
            self._advance()
        return [(n, stash.popleft()) for n, stash in enumerate(self._stashed) for _ in range(len(stash))]

    def results(self, sink: int) -> Iterator[pa.RecordBatch]:
        """The batches of a sink, to the end of the run. All sources have ended, or another generator pushes."""
        while True:
            with self._host.active():
                seen = self._signal()
                over = self.finished
                moved = self._advance()
            while self._stashed[sink]:
                yield self._stashed[sink].popleft()
            if over:
                return
            if not moved:
                self._rest(seen)

    def run(self, sources: Sequence[Batches], on_batch: OnBatch) -> EngineFailure | None:
        """Pass all results of the sources to `on_batch(sink, batch)`; return the failure that ended the run, if any.

        An exception of an iterator is raised after all results of earlier rows are delivered, unless that fails.
        """
        feed = _Feed(sources)
        while True:
            if self._interrupted_ns and time.monotonic_ns() - self._interrupted_ns > GRACE_NS:
                self._hasten()
            with self._host.active():
                seen = self._signal()
                over = self.finished
                moved = not over and self._feed(feed)
                moved = self._advance() or moved
                if not moved and feed.broken and not over and self._all_done():
                    over = not self._advance()
            for number, stash in enumerate(self._stashed):
                while stash:
                    on_batch(number, stash.popleft())
                    moved = True
            if over:
                if feed.broken and self._outcome_is_running():
                    raise self._deciding(feed.broken)
                return self.failure
            if not moved:
                self._rest(seen)

    def interrupt(self) -> None:
        """Ask the run to stop. Sources are expected to end; after GRACE_NS, rows that test many pairs or call Python
        stop where they are, and the run fails with STOPPED. Safe in a signal handler and in any thread.

        With threads=0 a kernel may keep the calling thread from checking the time: then a separate thread does.
        """
        if self._interrupted_ns:
            return
        self._interrupted_ns = time.monotonic_ns()
        if self._inline:
            timer = threading.Timer(GRACE_NS / 1e9, self._hasten)
            timer.daemon = True
            timer.start()

    def _hasten(self) -> None:
        """Stop the kernels after the grace period; once per request, not after the end: the states are gone."""
        with self._ending:
            if self._interrupted_ns and self._end.alive:
                self._interrupted_ns = 0
                _stop_kernels(self._host, self._plant)

    def _deciding(self, broken: Mapping[int, Exception]) -> Exception:
        """The error of the source whose next row admission waits for."""

        def bound(number: int) -> tuple[bool, int, int]:
            source = self._plant.sources[number]
            waits = self._host.word(source, SOURCE_TAKEN) < self._pushed_rows[number]
            return waits, self._host.word(source, SOURCE_MAX), number

        with self._host.active():
            return broken[min(broken, key=bound)]

    def _feed(self, feed: _Feed) -> bool:
        """Whether a source had room for one more batch. One that was silent goes first, and the others wait for it."""
        moved = False
        speaking = next((n for n, silent in enumerate(self._silent) if silent and feed.speaks(n)), None)
        for number in range(len(feed.sources)) if speaking is None else (speaking,):
            if self._ended[number]:
                continue
            batch = feed.peek(number)
            if isinstance(batch, Silence):
                if self._offer_silence(number):
                    feed.taken(number)
                    moved = True
            elif batch is None:
                moved = self._offer_end(number, BREAK_OF_SOURCE if number in feed.broken else END_OF_SOURCE) or moved
            elif self._offer(number, batch):
                feed.taken(number)
                moved = True
        return moved

    # -- pausing -----------------------------------------------------------------------------------------------------

    def pause(self) -> Snapshot:
        """Stop the run at a serial: all rows below it are processed, their results wait for `drain`; no others are.

        What was pushed beyond it is left to the run that continues from the snapshot.
        """
        assert not self.finished, "a run that is over cannot pause"
        with self._host.active():
            self._host.set_word(self._plant.admission, ADMISSION_PAUSED, 1)
            while True:
                seen = self._signal()
                if self._advance():
                    continue
                if self._all_done():
                    break
                self._rest(seen)
            self._take_results()
            return take_snapshot(self._host, self._plant)

    # -- state of the run --------------------------------------------------------------------------------------------

    def _outcome(self) -> int:
        return self._host.word(self._plant.engine, s.ENGINE_OUTCOME)

    def _outcome_is_running(self) -> bool:
        with self._host.active():
            return self._outcome() == s.RUNNING

    def _signal(self) -> int:
        return self._host.word(self._plant.engine, s.ENGINE_SIGNAL)

    def _rest(self, seen: int, yields: int = 0) -> None:
        """Wait for the workers for a slice, first for this many yields; the inline engine has none."""
        assert not self._inline, "the inline engine stands still: its feeder waits for something it must do itself"
        self._host.function("feeder_wait")(self._plant.engine, seen, yields, SLICE_NS)

    def _idle(self) -> bool:
        """Whether everything pushed is processed and sent."""
        return bool(self._host.function("engine_idle")(self._plant.engine))

    def _all_done(self) -> bool:
        """The same; if not, the signal moves when it may be."""
        return bool(self._host.function("engine_settled")(self._plant.engine))

    @property
    def finished(self) -> bool:
        """Whether the run is over: no further results will come, though some may not be taken yet."""
        with self._host.active():
            return self._outcome() != s.RUNNING

    @property
    def failure(self) -> EngineFailure | None:
        """The failure that ended the run, if it is over and failed."""
        with self._host.active():
            outcome = self._outcome()
            if outcome in {s.RUNNING, s.FINISHED}:
                return None
            return read_failure(self._host, self._plant.pipeline, self._host.word(outcome, ITEM_STAGE))

    def ended(self, source: int) -> bool:
        """Whether the source was told that it has no more rows."""
        return self._ended[source]

    def state_sum(self, word: int) -> int:
        """A counter of the state, over all states of all stages. Only idle workers may run meanwhile."""
        with self._host.active():
            return sum(self._sum(states, word) for states in (*self._plant.states, *self._plant.views))

    def counted(self) -> list[list[tuple[int, int]]]:
        """By stage, by operator that its pipeline counts, in that order: the rows it emitted, and its late rows."""
        with self._host.active():
            return [
                [(self._sum([*states, *views], c.rows), self._sum([*states, *views], c.late)) for c in stage.counters]
                for stage, states, views in zip(
                    self.pipeline.stages, self._plant.states, self._plant.views, strict=True
                )
            ]

    def _sum(self, states: Sequence[int], word: int) -> int:
        return sum(self._host.word(state, word) for state in states)

    def held_bytes(self) -> list[dict[str, int]]:
        """For each stage, for each operator that keeps something, by identity: its bytes. The run is over."""
        with self._host.active():
            return [
                held_by_operator(self._host, *of) for of in zip(self.pipeline.stages, self._plant.states, strict=True)
            ]

    def saved(self, stage: int, slot: Slot) -> bytes:
        """The contents of a slot of a stage that has one state, as in a snapshot. Everything pushed is processed
        (`drain`)."""
        (state,) = self._plant.states[stage]
        with self._host.active():
            return save_slot(self._host, slot, self._host.word(state, slot.offset))

    def graph(self) -> str:
        """The stages as they run, and where their rows go."""
        with self._host.active():
            return graph(self._host, self._plant)

    def metrics(self) -> Metrics:
        """The progress so far; nothing stops for it."""
        with self._host.active():
            return read_metrics(self._host, self._plant)

    @property
    def late_rows(self) -> int:
        """Rows that came below the watermark of their source."""
        with self._host.active():
            return self._host.word(self._plant.admission, ADMISSION_LATE_ROWS)

    @property
    def serial(self) -> int:
        """Rows admitted so far: the serial of the next one."""
        with self._host.active():
            return self._host.word(self._plant.admission, ADMISSION_SERIAL)

    def close(self) -> None:
        """Stop the workers and free everything; results handed out stay valid. May be called again."""
        with self._ending:
            self._end()


def _stop_kernels(host: Host, plant: Plant) -> None:
    """Stop rows that test many pairs between two of them, and rows that call Python before they do."""
    with host.active():
        for state in (state for states in (*plant.states, *plant.views) for state in states):
            host.set_word(state, STATE_STOPPING, 1)


def _end(
    host: Host,
    plant: Plant,
    loans: Sequence[deque[int]],
    threads: Sequence[threading.Thread],
    clocks: Mapping[int, SourceClock],
) -> None:
    """The work of `close`; also for an engine that was not closed when it is collected, or when the process ends."""
    _stop_kernels(host, plant)
    with host.active():
        host.set_word(plant.engine, s.ENGINE_STOP, 1)
        while any(thread.is_alive() for thread in threads):
            host.function("wake_workers")(plant.engine, len(threads))
            for thread in threads:
                thread.join(0.01)
        for waiting in loans:
            while waiting:
                host.function("loan_return")(waiting.popleft())
        for clock in clocks.values():
            clock.close()
        close(plant)
