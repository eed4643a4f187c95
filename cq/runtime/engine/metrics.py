"""The progress of a run, read from shared memory while it goes on: nothing is stopped or locked.

Numbers of different stages are not from the same instant; none ever decreases.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.records import dataclass
from cq.runtime.base.host import Host
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.ways.pace import intervals_of
from cq.runtime.flow import admission_words as m
from cq.runtime.layout.chains import CHAINS_ORDER
from cq.runtime.layout.requests import ORDER_LOCK_NS, ORDER_SYNC_NS


@dataclass(frozen=True, slots=True)
class StageMetrics:
    """One stage. busy_ns: worker time in its kernel.  queued: items waiting.  workers: inside now.

    state_bytes: held by its containers, when last measured.
    turn_wait_ns, row_wait_ns: the part of busy_ns that transactions waited for their turn and for rows, if their scheme
    makes them wait.  punctuations: if their length adapts, (events at most, how many of these there were), ascending.
    """

    name: str
    rows_in: int
    rows_out: int
    items: int
    calls: int
    busy_ns: int
    queued: int
    workers: int
    state_bytes: int
    turn_wait_ns: int
    row_wait_ns: int
    punctuations: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The run. rows: admitted from each source.  watermark: the minimum over the sources.  sinks: rows delivered.

    rejected_events: by each trigger that a stage runs.
    """

    rows: tuple[int, ...]
    late_rows: int
    watermark: int
    stages: tuple[StageMetrics, ...]
    sinks: tuple[int, ...]
    rejected_events: tuple[tuple[str, int], ...]


def _waited(host: Host, chains: int) -> tuple[int, int]:
    """How long transactions of a stage have waited for a turn, and for rows."""
    order = host.word(chains, CHAINS_ORDER)
    return (host.word(order, ORDER_SYNC_NS), host.word(order, ORDER_LOCK_NS)) if order else (0, 0)


def read_metrics(host: Host, plant: Plant) -> Metrics:
    """The current numbers."""
    stages = []
    for spec, stage in zip(plant.pipeline.stages, plant.stages, strict=True):
        rows_in, rows_out, busy_ns, items, calls, workers = (
            host.word(stage, index)
            for index in (
                s.STAGE_ROWS_IN, s.STAGE_ROWS_OUT, s.STAGE_BUSY_NS, s.STAGE_ITEMS, s.STAGE_CALLS, s.STAGE_ACTIVE,
            )
        )  # fmt: skip
        queued = host.function("ring_size")(host.word(stage, s.STAGE_INPUT))
        state_bytes = host.word(stage, s.STAGE_STATE_BYTES)
        counts = (rows_in, rows_out, items, calls, busy_ns, queued, workers, state_bytes)
        chains = host.word(stage, s.STAGE_OWN) if spec.chains is not None else 0
        waited, intervals = (_waited(host, chains), intervals_of(host, chains)) if chains else ((0, 0), ())
        stages.append(StageMetrics(spec.name, *counts, *waited, intervals))
    return Metrics(
        tuple(host.word(source, m.SOURCE_TAKEN) for source in plant.sources),
        host.word(plant.admission, m.ADMISSION_LATE_ROWS),
        host.word(plant.admission, m.ADMISSION_MINIMUM),
        tuple(stages),
        tuple(host.word(sink, s.SINK_ROWS) for sink in plant.sinks),
        tuple(
            (r.trigger, sum(host.word(state, r.word) for state in states))
            for spec, states in zip(plant.pipeline.stages, plant.states, strict=True)
            for r in spec.rejections
        ),
    )
