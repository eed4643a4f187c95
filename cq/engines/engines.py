"""The engines by name: each reads the feeds of a query and delivers its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from cq.compiler.passes import Compiled
from cq.connectors.physical_rows import batch_of, rows_of
from cq.connectors.protocol import READ_ROWS
from cq.connectors.sinks.writers import CsvText, result_schema
from cq.engines.data_errors import with_ways_out
from cq.engines.feeding import demand_ends, demand_no_silence, native_packages
from cq.engines.protocol import Counts, Delivery, Engine, Enough, Feed, Interrupted, RunOptions
from cq.errors import CompileError, DataError, Diagnostic, UsageError, did_you_mean
from cq.garbage_collection import collector_paused


def _time_by_reference(feeds: Sequence[Feed]) -> None:
    """Computed event times follow the reference."""
    from cq.reference.event_times import timer_of

    for feed in feeds:
        timer = timer_of(feed.stream)
        if timer is not None:
            feed.source.time_by(timer)


def _run_reference(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> Counts:
    """Run the bound plan, row by row. Rows are delivered at the end, even if the end is an error."""
    from cq.reference.engine import Quiet, ReferenceRun, SourceRow

    _time_by_reference(feeds)
    run = ReferenceRun(compiled.plan)

    def enough() -> bool:
        return delivery.full(counts={name: len(rows) for name, rows in run.result.outputs.items()})

    def rows(feed: Feed) -> Iterator[SourceRow | Quiet]:
        types = [f.type for f in feed.stream.fields]
        for taken in feed:
            if enough():
                return
            for k, row in enumerate(rows_of(taken.batch, types)):
                yield SourceRow(row, taken.place.of(k))
            yield Quiet.SILENT if taken.silent else Quiet.NOW

    failed: BaseException | None = None
    try:
        run.feed({feed.stream.name: rows(feed) for feed in feeds})
        if run.result.error is not None:
            failed = with_ways_out(run.result.error, compiled.request.source)
    except DataError as error:
        failed = error
    except Interrupted as interrupted:
        interrupted.counts = Counts.of(run.late_rows, run.rejected_events)
        failed = interrupted
    for output in compiled.outputs:
        delivered = [d.row for d in run.result.outputs[output.name]]
        for start in range(0, len(delivered), READ_ROWS):
            with suppress(Enough):
                delivery.rows(output.name, batch_of(delivered[start : start + READ_ROWS], output.node.schema.fields))
    if delivery.full():
        raise Enough
    if failed is not None:
        raise failed
    return Counts.of(run.late_rows, run.rejected_events)


def _run_native(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> Counts:
    with native_packages():
        with collector_paused():
            from cq.engines.native import run_native
            from cq.runtime.flow.hashing import NativeRowHash

        delivery.hash_by(NativeRowHash)
        delivery.write_by(_csv_text)
        return run_native(compiled, feeds, delivery, options)


def _csv_text(delimiter: str) -> CsvText:
    from cq.runtime.writers import csv_text

    return csv_text(delimiter)


def _run_spark(compiled: Compiled, feeds: Sequence[Feed], delivery: Delivery, options: RunOptions) -> Counts:
    """Run the bound plan over whole tables, on Spark; delivers nothing before a data error and counts no late rows."""
    import pyarrow as pa

    from cq.reference.operators.trigger import replayed
    from cq.spark.run import run_spark

    demand_ends(feed.stream for feed in feeds if feed.most_rows is None)
    demand_no_silence(feeds)
    _time_by_reference(feeds)
    inputs: dict[str, pa.Table] = {}
    rejected: list[tuple[str, int]] = []
    for feed in feeds:
        schema = result_schema(feed.stream.fields)
        batches = [taken.batch.cast(schema) for taken in feed]
        inputs[feed.name] = pa.Table.from_batches(batches, schema=schema)
    try:
        loop = partial(replayed, rejected=rejected)
        tables = run_spark(compiled.plan, inputs, ordered=True, loop=loop, told=delivery.waits_for)
    except CompileError as error:
        raise error.at(compiled.request.source) from None
    finally:
        delivery.waits_for("")
    for name, table in tables.items():
        for batch in table.to_batches(max_chunksize=READ_ROWS):
            with suppress(Enough):
                delivery.rows(name, batch)
    return Counts.of(None, rejected)


ENGINES: dict[str, Engine] = {"native": _run_native, "spark": _run_spark, "reference": _run_reference}


def engine_named(name: str) -> Engine:
    """The engine of that name; CQ0901 lists them."""
    if name not in ENGINES:
        help = (did_you_mean(name, ENGINES), "engines: " + ", ".join(ENGINES))
        raise UsageError(Diagnostic("CQ0901", f'there is no engine "{name}"', help=tuple(h for h in help if h)))
    return ENGINES[name]
