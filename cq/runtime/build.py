"""From a Job to the structures the workers run on: admission, stages, tasks, sinks, all in native memory.

Everything is allocated here, before the first row, except what grows with the data; all of it is freed by `close`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cq.runtime import merge as m
from cq.runtime import stage as s
from cq.runtime.abi import BEFORE_ALL, NEVER, Storage
from cq.runtime.batch import ITEM_KIND, PARCEL
from cq.runtime.host import Host
from cq.runtime.job import ColumnSpec, Job, PortSpec, SourceSpec, Stage, StageKind
from cq.runtime.state import drop_state, made, new_state, words

PENDING_BATCHES = (
    4  # record batches of one source that wait for admission: one in use, one ready, decoding ahead of that
)
TICKETS_A_WORKER = 8  # waiting at each stage: enough to ride over a slow ticket, few enough to stay in the cache
WAITING_RESULTS = 64  # parcels in each sink; then the last stage waits for the feeder
MOST_SEGMENTS = 1024  # in a ticket; one that has more crossings and turns of sources is cut earlier


@dataclass(slots=True)
class Plant:
    """The addresses of everything that was built. stages, sinks, sources: in the order of the job."""

    host: Host
    job: Job
    workers: int
    engine: int = 0
    admission: int = 0
    stages: list[int] = field(default_factory=list)
    sinks: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    rings: list[int] = field(default_factory=list)
    depots: list[list[int]] = field(default_factory=list)
    tasks: list[list[int]] = field(default_factory=list)
    states: list[list[int]] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)

    def ring(self, capacity: int) -> int:
        """A ring for at least `capacity` values, dropped with the plant."""
        size = 2
        while size < capacity:
            size *= 2
        self.rings.append(made(self.host.function("ring_new")(size), "ring"))
        return self.rings[-1]

    def block(self, size_words: int) -> int:
        """Zero words on a cache line of their own, kept as long as the host."""
        address = self.host.place(bytes(8 * size_words + 64))
        return (address + 63) & ~63


def build(host: Host, job: Job, workers: int, batch_rows: int, heuristic: int) -> Plant:
    """All structures of a job. workers: 0 runs inline, as one."""
    plant = Plant(host, job, max(workers, 1))
    plant.engine = plant.block(s.ENGINE_WORDS)
    try:
        for number in range(len(job.stages)):
            _build_stage(plant, number, batch_rows)
        _build_sinks(plant)
        _build_admission(plant, batch_rows)
    except BaseException:
        close(plant)
        raise
    for index, value in (
        (s.ENGINE_STAGES, len(plant.stages)),
        (s.ENGINE_STAGE_TABLE, host.place(words(plant.stages))),
        (s.ENGINE_ADMISSION, plant.admission),
        (s.ENGINE_SINKS, len(plant.sinks)),
        (s.ENGINE_SINK_TABLE, host.place(words(plant.sinks))),
        (s.ENGINE_HEURISTIC, heuristic),
        (s.ENGINE_WORKERS, plant.workers),
    ):
        host.set_word(plant.engine, index, value)
    host.function("conclude_if_satisfied")(plant.engine)
    return plant


# -- stages ----------------------------------------------------------------------------------------------------------


def _build_stage(plant: Plant, number: int, batch_rows: int) -> None:
    host, spec = plant.host, plant.job.stages[number]
    stage = plant.block(s.STAGE_WORDS)
    shared = spec.kind is StageKind.STATELESS and plant.workers > 1
    last = number == len(plant.job.stages) - 1
    entries = host.entries(spec)
    depots = [_new_depot(host, port, batch_rows, not last) for port in spec.ports]
    plant.depots.append(depots)
    for index, value in (
        (s.STAGE_ENGINE, plant.engine),
        (s.STAGE_KIND, s.SHARED if shared else s.SINGLE),
        (s.STAGE_KERNEL, entries[spec.entry]),
        (s.STAGE_CONSTANTS, host.place(spec.constants)),
        (s.STAGE_INPUT, plant.ring(TICKETS_A_WORKER * plant.workers)),
        (s.STAGE_PORTS, len(spec.ports)),
        (s.STAGE_DEPOTS, host.place(words(depots))),
        (s.STAGE_NUMBER, number),
        (s.STAGE_SOURCES, len(plant.job.sources)),
    ):
        host.set_word(stage, index, value)
    if plant.stages:
        host.set_word(plant.stages[-1], s.STAGE_NEXT, stage)
    plant.stages.append(stage)
    _build_tasks(plant, spec, stage, 2 * plant.workers if shared else 1)


def _new_depot(host: Host, port: PortSpec, batch_rows: int, segmented: bool) -> int:
    specs = words(w for c in port.columns for w in (int(c.storage), int(c.nullable)))
    # a full ticket fits on top of a port that is not full, so growing is for stages that make more rows than they take
    capacity = 2 * batch_rows + 64
    return made(
        host.function("depot_new")(len(port.columns), host.place(specs), batch_rows, capacity, int(segmented), 0),
        port.name,
    )


def _build_tasks(plant: Plant, spec: Stage, stage: int, count: int) -> None:
    """One task in STAGE_TASK, or a ring of several; each with a state of its own."""
    host = plant.host
    tasks: list[int] = []
    states: list[int] = []
    plant.tasks.append(tasks)
    plant.states.append(states)
    for _ in range(count):
        states.append(new_state(host, spec))
        tasks.append(made(host.function("task_new")(stage, states[-1]), spec.name))
    host.set_word(stage, s.STAGE_TASKS, count)
    if count == 1:
        host.set_word(stage, s.STAGE_TASK, tasks[0])
        return
    idle = plant.ring(count)
    for task in tasks:
        host.function("ring_push")(idle, task)
    slots = 1
    while slots < count:
        slots *= 2
    plant.buffers.append(made(host.function("reorder_new")(slots), spec.name))
    host.set_word(stage, s.STAGE_TASK, idle)
    host.set_word(stage, s.STAGE_REORDER, plant.buffers[-1])


def _build_sinks(plant: Plant) -> None:
    for port in plant.job.sinks:
        sink = plant.block(s.SINK_WORDS)
        plant.host.set_word(sink, s.SINK_RING, plant.ring(WAITING_RESULTS))
        plant.host.set_word(sink, s.SINK_LEFT, -1 if port.limit is None else port.limit)
        plant.sinks.append(sink)


# -- admission -------------------------------------------------------------------------------------------------------


def _build_admission(plant: Plant, batch_rows: int) -> None:
    host, job = plant.host, plant.job
    table = plant.block(m.SOURCE_WORDS * len(job.sources))
    for number, spec in enumerate(job.sources):
        source = table + number * m.SOURCE_WORDS * 8
        plant.sources.append(source)
        plant.storages.append(host.place(words(int(c.storage) for c in spec.columns)))
        _fill_source(plant, source, spec)
    plant.admission = plant.block(m.ADMISSION_WORDS)
    segments = min(MOST_SEGMENTS, 2 * batch_rows + 2 * len(job.sources) + 8)
    home = plant.ring(TICKETS_A_WORKER * plant.workers + 2 * plant.workers + 2)
    for _ in range(TICKETS_A_WORKER * plant.workers + 2 * plant.workers + 1):
        plant.tickets.append(made(host.function("ticket_new")(home, len(job.sources), segments), "ticket"))
        host.function("ring_push")(home, plant.tickets[-1])
    closes = bool(job.grids) or job.every_advance
    for index, value in (
        (m.ADMISSION_SOURCES, len(job.sources)),
        (m.ADMISSION_SOURCE_TABLE, table),
        (m.ADMISSION_MINIMUM, BEFORE_ALL),
        (m.ADMISSION_BOUNDARY, BEFORE_ALL + 1 if closes else NEVER),
        (m.ADMISSION_GRIDS, len(job.grids)),
        (m.ADMISSION_GRID_TABLE, host.place(words(w for g in job.grids for w in (g.period_us, g.offset_us)))),
        (m.ADMISSION_EVERY, int(job.every_advance)),
        (m.ADMISSION_TICKETS, home),
        (m.ADMISSION_BATCH_ROWS, batch_rows),
        (m.ADMISSION_SEGMENTS, segments),
        (m.ADMISSION_OUTPUT, host.word(plant.stages[0], s.STAGE_INPUT)),
    ):
        host.set_word(plant.admission, index, value)


def _fill_source(plant: Plant, source: int, spec: SourceSpec) -> None:
    host, time = plant.host, spec.time
    host.set_word(source, m.SOURCE_RING, plant.ring(PENDING_BATCHES))
    host.set_word(source, m.SOURCE_MAX, BEFORE_ALL)
    host.set_word(source, m.SOURCE_WATERMARK, BEFORE_ALL)
    if time is None:
        return
    column: ColumnSpec = spec.columns[time.column]
    plain = column.storage is Storage.I64 and time.scale == 1 and time.shift == 0
    for index, value in (
        (m.SOURCE_TIMED, 1),
        (m.SOURCE_DELAY, spec.delay_us),
        (m.SOURCE_TIME_COLUMN, time.column),
        (m.SOURCE_SCALE, time.scale),
        (m.SOURCE_SHIFT, time.shift),
        (m.SOURCE_STORAGE, int(column.storage)),
        (m.SOURCE_PLAIN, int(plain)),
    ):
        host.set_word(source, index, value)


# -- the end ---------------------------------------------------------------------------------------------------------


def close(plant: Plant) -> None:
    """Everything is freed, except parcels that are with Arrow. No thread uses the plant any more."""
    host = plant.host
    call = host.function
    for ring in [host.word(stage, s.STAGE_INPUT) for stage in plant.stages[1:]]:
        _return_parcels(host, ring)
    for sink in plant.sinks:
        _return_parcels(host, host.word(sink, s.SINK_RING))
    for spec, tasks, states in zip(plant.job.stages, plant.tasks, plant.states, strict=False):
        for task in tasks:
            call("task_drop")(task, len(spec.ports))
        for state in states:
            drop_state(host, spec, state)
    for ticket in plant.tickets:
        call("ticket_drop")(ticket)
    for buffer in plant.buffers:
        call("reorder_drop")(buffer)
    for ring in plant.rings:
        call("ring_drop")(ring)
    for depots in plant.depots:
        for depot in depots:
            call("depot_close")(depot)
    plant.stages.clear()
    plant.sinks.clear()
    for kept in (plant.tasks, plant.states, plant.tickets, plant.buffers, plant.rings, plant.depots):
        kept.clear()


def _return_parcels(host: Host, ring: int) -> None:
    """The ring holds no parcels; failures, which are part of their stage, are left out."""
    while (item := host.function("ring_pop")(ring)) != 0:
        if host.word(item, ITEM_KIND) == PARCEL:
            host.function("parcel_return")(item)
