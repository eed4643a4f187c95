"""The transactional applications as measured: a shipped query, and generated rows in Arrow memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.measure import Contender
from cq.compiler.passes import compile
from cq.engines.native import arrow_schema
from cq.records import dataclass
from cq.runtime.engine.engine import TICKET_ROWS, Engine
from cq.runtime.layout.pipeline import Pipeline
from cq.ways import UNCHECKED
from cq.workloads import WORKLOADS

QUERIES = Path(__file__).parent.parent.parent / "queries" / "transactions"
INTERVAL = 500  # events per punctuation, as in the paper
SL, GS, OB, TP = "streaming_ledger", "grep_and_sum", "online_bidding", "toll_processing"
TITLES = {GS: "Grep and Sum", SL: "Streaming Ledger", OB: "Online Bidding", TP: "Toll Processing"}
STREAMS = {
    SL: {"opening": "ledger_accounts", "ledger": "ledger"},
    GS: {"record": "grep_sum_records", "request": "grep_sum"},
    OB: {"opening": "bidding_goods", "bidding": "bidding"},
    TP: {"report": "toll_reports"},
}
ROWS_OF = {SL: "accounts", GS: "records", OB: "goods", TP: ""}
DEFAULTS: dict[str, Mapping[str, Any]] = {SL: {"balance": 1_000_000}, GS: {}, OB: {}, TP: {}}


@cache
def planned(name: str, scheme: str, workers: int) -> tuple[Pipeline, list[pa.Schema]]:
    """The pipeline of an application by a scheme for this many workers, and its output columns."""
    text = (QUERIES / f"{name}.cq").read_text(encoding="utf-8")
    compiled = compile(text, name, settings={"transactions": scheme})
    (pipeline,) = compiled.for_workers(workers).after("emit")
    return pipeline, [arrow_schema(o) for o in compiled.outputs]


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of all workers went in one run, as shares."""

    useful: float
    sync: float
    lock: float
    others: float


class Application:
    """One application over this many events. knobs: parameters of its generators that differ from the defaults."""

    def __init__(self, name: str, events: int, knobs: Mapping[str, Any] | None = None) -> None:
        self.name, self.events = name, events
        given = {**DEFAULTS[name], **(knobs or {})}
        self.tables = {}
        for stream, workload in STREAMS[name].items():
            known = WORKLOADS[workload].parameters
            rows = events if "interval_us" in known else given.get(ROWS_OF[name], 10_000)
            chosen = {k: v for k, v in {**given, "rows": rows}.items() if k in known}
            made = pa.Table.from_batches(WORKLOADS[workload].generate(**chosen), WORKLOADS[workload].schema)
            self.tables[stream] = made.combine_chunks()

    def runner(self, scheme: str, workers: int, interval: int = INTERVAL) -> Runner:
        """The application by a scheme on this many workers."""
        pipeline, schemas = planned(self.name, scheme, workers)
        together = any(s.way.traits.together for s in pipeline.stages)
        assert together == (scheme != "serial"), f"{self.name} does not run by {scheme}"
        rows = min(interval, TICKET_ROWS) if together else TICKET_ROWS
        return Runner(self, pipeline, workers, rows, schemas, scheme == UNCHECKED)


@dataclass(frozen=True, slots=True)
class Runner:
    """A pipeline over the rows of an application."""

    application: Application
    pipeline: Pipeline
    workers: int
    batch_rows: int
    schemas: list[pa.Schema]
    unchecked: bool

    def engine(self) -> Engine:
        return Engine(self.pipeline, threads=self.workers, batch_rows=self.batch_rows, schemas=self.schemas)

    def batches(self) -> list[list[pa.RecordBatch]]:
        """The columns of each source that the pipeline reads."""
        tables = self.application.tables
        return [tables[s.name].select([c.name for c in s.columns]).to_batches() for s in self.pipeline.sources]

    def contender(self) -> Contender:
        """A whole run: built, fed, drained, closed. Returns the number of rows, unless it depends on time."""
        batches = self.batches()

        def run() -> int | None:
            rows, _, _ = self._run(batches)
            return None if self.unchecked else rows

        return run

    def _run(self, batches: list[list[pa.RecordBatch]]) -> tuple[int, float, list[Any]]:
        rows = 0

        def count(_: int, batch: pa.RecordBatch) -> None:
            nonlocal rows
            rows += batch.num_rows

        with self.engine() as engine:
            begun = time.perf_counter()
            failure = engine.run([iter(b) for b in batches], count)
            wall_s = time.perf_counter() - begun
            assert failure is None, failure
            return rows, wall_s, list(engine.metrics().stages)

    def spent(self, useful_ns: float) -> Spent:
        """Where the time of the workers goes. useful_ns: the time of the serial loop for all transactions."""
        _, wall_s, stages = self._run(self.batches())
        whole = self.workers * wall_s * 1e9
        busy, turns, rows = (sum(getattr(s, n) for s in stages) for n in ("busy_ns", "turn_wait_ns", "row_wait_ns"))
        sync = max(0.0, whole - busy) + turns
        return Spent(useful_ns / whole, sync / whole, rows / whole, max(0.0, whole - sync - rows - useful_ns) / whole)

    def busy_ns(self) -> int:
        """The time that all stages take from the workers."""
        return sum(s.busy_ns for s in self._run(self.batches())[2])

    def latencies(self, size: int) -> list[float]:
        """Microseconds from handing over this many events to the last of their results, one ticket at a time."""
        *openings, events = self.batches()
        found = []
        with self.engine() as engine:
            for number, opening in enumerate(openings):
                for batch in opening:
                    engine.push(number, batch)
                engine.end(number)
            engine.drain()
            last = len(openings)
            (whole,) = pa.Table.from_batches(events).combine_chunks().to_batches()
            for first in range(0, len(whole) - size + 1, size):
                ticket = whole.slice(first, size)
                begun = time.perf_counter()
                engine.push(last, ticket)
                engine.drain()
                found.append((time.perf_counter() - begun) * 1e6)
        return found


def percentiles(values: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    return median(values), sorted(values)[int(len(values) * 0.99)]
