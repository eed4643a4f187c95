"""The native engine under `run_query`: feeds to record batches, the engine's failures to errors with a place.

An error of a source ends the run like one of a kernel: everything the rows before it cause is delivered first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from cq.codegen.state.saved_rows import saved_rows
from cq.connectors.physical_rows import batch_of
from cq.connectors.protocol import EventTimer, Place, SourceBatch, Times, UnreadableTime
from cq.engines.data_errors import ways_out, written_at
from cq.engines.effort import effort_for
from cq.engines.protocol import Counts, Enough, Interrupted, RunOptions
from cq.errors import NOWHERE, CqError, DataError, Diagnostic, EngineError, SourceText, Span, compile_error
from cq.lang import error_places
from cq.lang.types import to_arrow
from cq.lang.value_text import size_text
from cq.planner.binding.settings import DEFAULT_MEMORY_SHARE, NO_MEMORY_LIMIT
from cq.process_limits import usable_memory_bytes, usable_sockets
from cq.records import dataclass, field
from cq.runtime.engine.clock import TimeFault
from cq.runtime.engine.engine import SILENCE, TICKET_ROWS, Engine, Silence
from cq.runtime.engine.failure import EngineFailure, message
from cq.runtime.engine.plant import DEFAULT_SHARING, SettledSharing
from cq.runtime.engine.ways.pace import LADDER
from cq.runtime.layout.abi import ERROR_CODES, STATE_LATE_ROWS, ErrorCode
from cq.runtime.layout.pipeline import Pipeline, Site, SourceSpec

if TYPE_CHECKING:
    from cq.compiler.passes import Compiled
    from cq.engines.protocol import Delivery, Feed
    from cq.planner.plan.logical import Output
    from cq.planner.plan.node import LogicalNode
    from cq.planner.plan.transactions import KeyedTable

FEWER_GROUPS = "use shorter windows, or group by fewer keys"
ONE_BY_ONE = (
    "or run fewer transactions together: SET punctuation_interval = 50, or one after the other: "
    "SET transactions = 'serial'"
)
FAR_US = 1 << 62  # instants beyond are not times: the end, or none
PLACES_KEPT = 4096  # batches whose places in their files are remembered: more than can be in flight


@dataclass(slots=True)
class Reading:
    """One source being read: the columns the pipeline wants, and where recent rows stand in their files."""

    feed: Feed
    spec: SourceSpec
    rows: int = 0
    places: deque[tuple[int, Place]] = field(default_factory=lambda: deque(maxlen=PLACES_KEPT))

    def batches(self) -> Iterator[pa.RecordBatch | Silence]:
        """Record batches of the wanted columns. Raises where a row of the source cannot be read."""
        for taken in self.feed:
            yield SILENCE if taken.silent else self.take(taken)

    def take(self, taken: SourceBatch) -> pa.RecordBatch:
        """The wanted columns of a batch; remembers the batch's place."""
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


def memory_limit(compiled: Compiled, options: RunOptions) -> int | None:
    """Bytes the state of the query may take: as requested, else as SET in the text, else a share of usable memory."""
    asked = options.memory_limit
    if asked is None:
        usable = usable_memory_bytes()
        default = NO_MEMORY_LIMIT if usable is None else int(usable * DEFAULT_MEMORY_SHARE)
        said = compiled.settings.memory_limit
        asked = default if said is None else said
    return None if asked == NO_MEMORY_LIMIT else asked


def settled_sharing(pipeline: Pipeline, batch_rows: int) -> tuple[int, SettledSharing]:
    """The most rows of a ticket, and how workers that share a ticket's transactions run them."""
    sharing = next((stage.sharing for stage in pipeline.stages if stage.sharing is not None), None)
    if sharing is None:
        return batch_rows, DEFAULT_SHARING
    sockets = usable_sockets() if sharing.placement == "per_socket" else ()
    most = LADDER[-1] if sharing.events is None else sharing.events
    return min(batch_rows, most), SettledSharing(sharing.events is None, sharing.placement, sockets)


def batch_rows(compiled: Compiled, options: RunOptions) -> int:
    """The most rows of a batch: as requested, else as SET in the text, else the number that suits the engine best."""
    asked = options.batch_rows if options.batch_rows is not None else compiled.settings.batch_rows
    return TICKET_ROWS if asked is None else asked


class PipelineRun:
    """One pipeline of a query on an engine of its own. What shares no source is apart: most queries have one part."""

    def __init__(self, compiled: Compiled, pipeline: Pipeline, feeds: Mapping[str, Feed], options: RunOptions) -> None:
        """options: threads and batch_rows are set."""
        assert options.threads is not None and options.batch_rows is not None
        outputs = {o.name: o for o in compiled.outputs}
        self.pipeline = pipeline
        self.readings = [Reading(feeds[spec.name], spec) for spec in pipeline.sources]
        for reading in self.readings:
            reading.feed.source.start()  # threads that read ahead have the first rows when the engine is built
        self.numbers = {spec.name: n for n, spec in enumerate(pipeline.sources)}
        self._names = [sink.name for sink in pipeline.sinks]
        self._source = compiled.request.source
        schemas = [arrow_schema(outputs[name]) for name in self._names]
        most, sharing = settled_sharing(pipeline, options.batch_rows)
        self.engine = Engine(
            pipeline,
            threads=options.threads,
            batch_rows=most,
            sharing=sharing,
            heuristic=compiled.settings.heuristic,
            memory_limit=options.memory_limit,
            schemas=schemas,
            effort=effort_for(pipeline, (reading.feed.source.about_rows for reading in self.readings)),
        )
        for reading in self.readings:
            timer = self.timer(reading.spec.name)
            if timer is not None:
                reading.feed.source.time_by(timer)

    def timer(self, stream: str) -> EventTimer | None:
        """What computes the event times of a stream; None if a column has them."""
        number = self.numbers[stream]
        spec = self.pipeline.sources[number]
        if spec.time is None or spec.time.entry is None:
            return None
        return EventTimer(partial(self._times, number), spec.columns[0].name)

    def _times(self, number: int, batch: pa.RecordBatch) -> Times:
        names = [c.name for c in self.pipeline.sources[number].delivered]
        computed = self.engine.event_times(number, batch if batch.schema.names == names else batch.select(names))
        return Times(computed.values, {f.row: self._unreadable(f) for f in computed.faults})

    def _unreadable(self, fault: TimeFault) -> UnreadableTime:
        site = self.pipeline.stages[0].sites[fault.site]
        return UnreadableTime(ERROR_CODES[fault.code], message(site, fault.said, fault.shown), _span(site))

    def push(self, stream: str, batch: SourceBatch) -> None:
        """Take the next rows of a stream."""
        reading = self.readings[self.numbers[stream]]
        self.engine.push(self.numbers[stream], reading.take(batch))

    def silence(self, stream: str) -> None:
        """Others stop waiting for the stream until its next rows."""
        self.engine.silence(self.numbers[stream])

    def end(self, stream: str) -> None:
        """The stream has no more rows."""
        self.engine.end(self.numbers[stream])

    def satisfied(self) -> bool:
        """Whether every output has reached its row limit."""
        rows = self.engine.metrics().sinks
        return all(sink.limit == given for sink, given in zip(self.pipeline.sinks, rows, strict=True))

    def taken(self) -> dict[str, int]:
        """How many rows of each stream were processed: all that were pushed, except those that others hold back."""
        rows = self.engine.metrics().rows
        return {name: rows[number] for name, number in self.numbers.items()}

    def table_rows(self, stage: int, node: LogicalNode, number: int, table: KeyedTable) -> pa.Table:
        """The rows of a table of triggers, by birth. Everything pushed has been processed."""
        slots = {slot.name: slot for slot in self.pipeline.stages[stage].slots if slot.node == node.identity}
        if table.rows and not any(self.engine.saved(stage, slots["ready"])):
            return pa.Table.from_batches([batch_of(table.rows, table.fields)])  # it has seen no event
        return saved_rows(table, self.engine.saved(stage, slots[f"table{number}"]))

    def ready(self, settled: bool = True) -> list[tuple[str, pa.RecordBatch]]:
        """(output, batch) of results not taken yet: all that follow from what was pushed, or those available now."""
        found = self.engine.drain() if settled else self.engine.ready()
        return [(self._names[sink], batch) for sink, batch in found]

    def failure(self) -> CqError | None:
        """The error that ended the run, if one did."""
        failed = self.engine.failure
        return None if failed is None else placed(failed, self.pipeline, self.readings, self._source)

    def run(self, deliver: Callable[[str, pa.RecordBatch], None]) -> None:
        """Read all sources to their end. An error of one is raised after all results of the rows before it.

        A source is read when the engine has room for it: the merge may wait for one while another is far ahead.
        """

        def hand_on(sink: int, rows: pa.RecordBatch) -> None:
            deliver(self._names[sink], rows)

        failed = self.engine.run([r.batches() for r in self.readings], hand_on)
        if failed is not None:
            if failed.code is ErrorCode.STOPPED:
                raise Interrupted
            raise placed(failed, self.pipeline, self.readings, self._source)


def run_native(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> Counts:
    """Run a compiled query."""
    threads = compiled.workers(options.threads)
    pipelines: tuple[Pipeline, ...] = compiled.for_workers(threads).after("emit")
    check_parts(compiled, pipelines, delivery.limited)
    settled = RunOptions(threads, batch_rows(compiled, options), memory_limit=memory_limit(compiled, options))
    counts = Counts(0, {})
    for pipeline in pipelines:
        run = PipelineRun(compiled, pipeline, {f.name: f for f in feeds}, settled)
        names = [sink.name for sink in pipeline.sinks]
        with run.engine:
            over = False
            delivery.on_interrupt(run.engine.interrupt)
            try:
                run.run(partial(delivery.rows, part=names))
                over = True
            except Interrupted as interrupted:
                interrupted.counts = _counted(counts, run.engine)
                raise
            except Enough:
                if delivery.full():
                    raise
            finally:
                if options.on_end is not None:
                    options.on_end(run.engine, over)
            counts = _counted(counts, run.engine)
    return counts


def _counted(before: Counts, engine: Engine) -> Counts:
    """The engine's counts added to those of the parts before it."""
    assert before.late_rows is not None and before.rejected_events is not None, "native runs count"
    late = before.late_rows + engine.state_sum(STATE_LATE_ROWS)
    return Counts.of(late, (*before.rejected_events.items(), *engine.metrics().rejected_events))


def check_parts(compiled: Compiled, pipelines: Sequence[Pipeline], limited: Callable[[str], bool]) -> None:
    """Parts run one after the other: only the last may be endless, unless all its outputs are limited."""
    endless = {s.name for s in compiled.sources if not s.bounded}
    for pipeline in pipelines[:-1]:
        if any(spec.name in endless for spec in pipeline.sources) and not all(
            limited(sink.name) for sink in pipeline.sinks
        ):
            names = ", ".join(sink.name for sink in pipeline.sinks)
            help = "move each into a query file of its own, and run them in parallel"
            text = f"the queries in this file share no source and run one after the other, but {names} never ends"
            raise compile_error("CQ0502", text, NOWHERE, help=help)


def arrow_schema(output: Output) -> pa.Schema:
    """The columns of an output as results show them."""
    return pa.schema([pa.field(f.name, to_arrow(f.type), f.nullable) for f in output.node.schema.fields])


def placed(failure: EngineFailure, pipeline: Pipeline, readings: Sequence[Reading], source: SourceText) -> CqError:
    """The failure as an error a user can act on: code, file and line of the row, the expression."""
    code = ERROR_CODES[failure.code]
    sites = pipeline.stages[failure.stage].sites
    site = sites[failure.site] if 0 <= failure.site < len(sites) else None
    text = message(site, failure.said, failure.shown) if site else "the engine stopped"
    if failure.code is ErrorCode.NO_MEMORY:
        help = ("give the process more memory", f"or keep less: {FEWER_GROUPS}")
        return EngineError(Diagnostic(code, f"out of memory: {text}", help=help))
    if failure.code is ErrorCode.LIMIT:
        return _beyond_limit(failure, pipeline, source)
    place = readings[failure.source].place_of(failure.row) if failure.row >= 0 else _due_place(failure)
    if failure.met is not None:
        place += error_places.met(failure.met.side, failure.met.time)
    span = _span(site) if site else NOWHERE
    ways = ways_out(code, text, written_at(span, source))
    return DataError(Diagnostic(code, text, span, severity="data error", place=place, help=ways).at(source))


def _span(site: Site) -> Span:
    """Where in the text the site is."""
    return Span(site.line, site.column, site.end_line, site.end_column) if site.line else NOWHERE


def _beyond_limit(failure: EngineFailure, pipeline: Pipeline, source: SourceText) -> CqError:
    """The state exceeded the memory limit: how large it is, where most of it is, and what to do."""
    used, allowed = (size_text(n) for n in (failure.held_bytes, failure.limit_bytes))
    text = f"the state of the query takes {used}, more than the memory limit of {allowed}"
    more = size_text(2 * failure.held_bytes)
    together = any(stage.way.traits.together for stage in pipeline.stages)
    raised = f"raise the limit: SET memory_limit = '{more}', or more: the run had not ended"
    less = "; ".join(dict.fromkeys(h.way for h in failure.holders if h.way)) or FEWER_GROUPS
    ways = (raised, *([ONE_BY_ONE] if together else []), f"or keep less: {less}")
    placed = [h for h in failure.holders if h.line]
    if not placed:
        return EngineError(Diagnostic("CQ0802", text, help=ways))
    names = " and ".join(f"{h.operator} (line {h.line})" for h in placed)
    span = Span(placed[0].line, placed[0].column, placed[0].line, placed[0].column + 1)
    return EngineError(Diagnostic("CQ0802", f"{text}; most of it belongs to {names}", span, help=ways).at(source))


def _due_place(failure: EngineFailure) -> str:
    """The place of a failure that was not in a row: a group, or only the time it was due."""
    group = failure.group
    if group is None:
        return error_places.closing(failure.instant) if abs(failure.instant) < FAR_US else error_places.END
    if group.window is None:
        return error_places.group(group.columns, group.key)
    return error_places.window_group(*group.window, group.columns, group.key)
