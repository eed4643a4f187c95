"""A run that is paused every few rows and continues in another plan of its query: `wander`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from cases import Outcome, Prepared, spread_out

from cq.engines import native
from cq.engines.protocol import RunOptions
from cq.errors import DataError
from cq.records import dataclass, replace
from cq.runtime.engine.clock import ComputedTimes
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.failure import EngineFailure
from cq.runtime.engine.metrics import Metrics
from cq.runtime.engine.snapshot import pipeline_shape
from cq.runtime.engine.ways import partial
from cq.runtime.layout.pipeline import Pipeline

Plans = Mapping[
    tuple[str, ...], Sequence[tuple[Pipeline, int]]
]  # by the outputs of a part: pipelines, and workers for each
STEPS = (1, 2, 5, 13)  # rows of a source between two pauses
MOST_MOVES = 12


def plans_of(prepared: Prepared) -> Plans:
    """The distinct plans: one loop and, cut into as many stages as possible, plans for two and four workers."""
    found: dict[tuple[str, ...], list[tuple[Pipeline, int]]] = {}
    with spread_out():
        spread = [(pipeline, n) for n in (2, 4) for pipeline in prepared.compiled.for_workers(n).after("emit")]
    for pipeline, workers in [(pipeline, 1) for pipeline in prepared.compiled.for_workers(1).after("emit")] + spread:
        mine = found.setdefault(tuple(sink.name for sink in pipeline.sinks), [])
        if all(pipeline_shape(pipeline) != pipeline_shape(other) for other, _ in mine):
            mine.append((pipeline, workers))
    # where admission looks for the next closing time: carried over unchanged to another plan
    assert all(len({frozenset(pipeline.grids) for pipeline, _ in mine}) == 1 for mine in found.values()), (
        "other closing times"
    )
    return found


class Wandering:
    """The part of an engine that `cq.engines.native` sees."""

    def __init__(self, plans: Plans, rng: random.Random, interpreted: bool, pipeline: Pipeline, **options: Any) -> None:
        self._first = pipeline
        self._plans = plans[tuple(sink.name for sink in pipeline.sinks)]
        self._rng = rng
        self._interpreted = interpreted
        self._options = {**options, "batch_rows": rng.choice((1, 3, 64))}
        self.shapes: list[object] = []
        self._engine = self._begin(None)

    def _begin(self, snapshot: Any) -> Engine:
        pipeline, workers = self._rng.choice(self._plans)
        self.shapes.append(pipeline_shape(pipeline))
        threads = 0 if self._interpreted else self._rng.choice((0, workers))
        return Engine(
            pipeline, **{**self._options, "threads": threads}, interpreted=self._interpreted, snapshot=snapshot
        )

    def __enter__(self) -> Wandering:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def event_times(self, source: int, batch: pa.RecordBatch) -> ComputedTimes:
        names = [c.name for c in self._engine.pipeline.sources[source].delivered]
        times = self._engine.event_times(source, batch.select(names))
        faults = (replace(f, site=self._place_of(0, f.site)[1]) for f in times.faults)
        return replace(times, faults=tuple(faults))

    def interrupt(self) -> None:
        self._engine.interrupt()

    def state_sum(self, word: int) -> int:
        return self._engine.state_sum(word)

    def metrics(self) -> Metrics:
        return self._engine.metrics()

    def run(
        self, sources: Sequence[Iterator[pa.RecordBatch]], on_batch: Callable[[int, pa.RecordBatch], None]
    ) -> EngineFailure | None:
        """Like `Engine.run`. Sources are read ahead; unreadable rows are met where the engine would meet them."""
        given = [_Read.of(batches) for batches in sources]
        taken = [0] * len(given)
        for _ in range(MOST_MOVES):
            for number, read in enumerate(given):
                for batch in self._rows(number, read, taken[number], self._rng.choice(STEPS)):
                    self._engine.push(number, batch)
            for sink, batch in self._engine.drain():
                on_batch(sink, batch)
            if self._engine.finished:
                return self._failure()
            snapshot = self._engine.pause()
            for sink, batch in self._engine.drain():
                on_batch(sink, batch)
            if self._engine.finished:
                return self._failure()
            self._engine.close()
            self._engine = self._begin(snapshot)
            taken = list(snapshot.rows)
        rest = [read.then_broken(self._rows(n, read, taken[n], None)) for n, read in enumerate(given)]
        self._engine.run(rest, on_batch)
        return self._failure()

    def _rows(self, number: int, read: _Read, first: int, count: int | None) -> list[pa.RecordBatch]:
        """Rows of a source from `first` on, with the columns of the current plan: plans read them in any order."""
        if read.rows is None:
            return []
        names = [c.name for c in self._engine.pipeline.sources[number].columns]
        left = read.rows.num_rows - first  # a slice of a table without columns may be longer than the table
        return read.rows.slice(first, left if count is None else min(count, left)).select(names).to_batches()

    def _failure(self) -> EngineFailure | None:
        """The failure that ended the run, with its site in the plan that the caller knows."""
        failure = self._engine.failure
        if failure is None or failure.site < 0:
            return failure
        stage, site = self._place_of(failure.stage, failure.site)
        return replace(failure, stage=stage, site=site)

    def _place_of(self, stage: int, number: int) -> tuple[int, int]:
        """The stage and number in the caller's plan for a site in this one."""
        site = self._engine.pipeline.stages[stage].sites[number]
        return next((n, other.sites.index(site)) for n, other in enumerate(self._first.stages) if site in other.sites)


@dataclass(frozen=True)
class _Read:
    """The rows of a source, None where there are none, and the error raised after them, if any."""

    rows: pa.Table | None
    broken: Exception | None

    @classmethod
    def of(cls, batches: Iterator[pa.RecordBatch]) -> _Read:
        found: list[pa.RecordBatch] = []
        broken: Exception | None = None
        try:
            found.extend(batches)  # keeps those before an error
        except DataError as error:
            broken = error
        return cls(pa.Table.from_batches(found) if found else None, broken)

    def then_broken(self, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """These last batches of it, and then its error."""
        yield from batches
        if self.broken is not None:
            raise self.broken


def wander(prepared: Prepared, plans: Plans, seed: int, interpreted: bool) -> tuple[Outcome, int]:
    """The result of a run that moves from plan to plan; and how many times another plan took over."""
    made: list[Wandering] = []

    def begin(pipeline: Pipeline, **options: Any) -> Wandering:
        made.append(Wandering(plans, random.Random(f"wander {seed}"), interpreted, pipeline, **options))
        return made[-1]

    with patch.object(native, "Engine", begin), patch.object(partial, "ROWS_A_GROUP", 0):
        outcome = prepared.run("native", RunOptions(1, 64))
    moves = sum(a != b for m in made for a, b in zip(m.shapes, m.shapes[1:], strict=False))
    return outcome, moves
