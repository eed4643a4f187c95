"""From a Job to the structures the workers run on: admission, stages, tasks, sinks, all in native memory.

Everything is allocated here, before the first row, except what grows with the data; all of it is freed by `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cq.runtime.base.host import Host
from cq.runtime.containers.protocol import container_of
from cq.runtime.containers.state import drop_state, made, new_state, weighed_slots, words
from cq.runtime.engine import partials as q
from cq.runtime.engine import stage as s
from cq.runtime.flow import admission as m
from cq.runtime.flow import parcel as p
from cq.runtime.flow import split as x
from cq.runtime.flow.batch import ITEM_KIND, ITEM_LINK, PARCEL
from cq.runtime.layout.abi import BEFORE_ALL, NEVER, STATE_INSTANT, Storage
from cq.runtime.layout.job import ColumnSpec, Job, PortSpec, Slot, SourceSpec, Stage, StageKind

# of a window's rows, for each group in each worker's panes: with fewer, merging takes more than a second worker gives
ROWS_A_GROUP = 8
EVENTS_WAITING = 4  # items before a stage that collects panes: workers that run ahead of it fill fresh ones
PENDING_BATCHES = (
    4  # record batches of one source that wait for admission: one in use, one ready, decoding ahead of that
)
TICKETS_A_WORKER = 8  # waiting at each stage: enough to ride over a slow ticket, few enough to stay in the cache
WAITING_RESULTS = 16  # parcels in each sink, then the last stage waits for the feeder; at 64 they leave the cache
NO_LIMIT = 2**63 - 1
MOST_SEGMENTS = 1024  # in a ticket; one that has more crossings and turns of sources is cut earlier


def power_of_two(least: int) -> int:
    """The smallest power of two, from 2 on, that is not below `least`."""
    return 1 << max(1, (least - 1).bit_length())


@dataclass(slots=True)
class Plant:
    """The addresses of everything that was built. stages, sinks, sources: in the order of the job.

    saved: how many states each stage had in the run that this one goes on from; none: it begins.
    """

    host: Host
    job: Job
    workers: int
    saved: tuple[int, ...] = ()
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
    hybrids: list[int] = field(default_factory=list)
    bags: list[int] = field(default_factory=list)
    splits: list[int] = field(default_factory=list)

    def ring(self, capacity: int) -> int:
        """A ring for at least `capacity` values, dropped with the plant."""
        self.rings.append(made(self.host.function("ring_new")(power_of_two(capacity)), "ring"))
        return self.rings[-1]

    def bag(self, homes: int) -> tuple[int, list[int]]:
        """An empty bag, dropped with the plant, and its homes."""
        self.bags.append(made(self.host.function("bag_new")(homes), "bag"))
        return self.bags[-1], [self.host.function("bag_home")(self.bags[-1], n) for n in range(homes)]

    def reorder_buffer(self, capacity: int) -> int:
        """A reorder buffer for at least `capacity` tickets in flight, dropped with the plant."""
        self.buffers.append(made(self.host.function("reorder_new")(power_of_two(capacity)), "reorder buffer"))
        return self.buffers[-1]

    def block(self, size_words: int) -> int:
        """Zero words on a cache line of their own, kept as long as the host."""
        address = self.host.place(bytes(8 * size_words + 64))
        return (address + 63) & ~63


def build(
    host: Host,
    job: Job,
    workers: int,
    batch_rows: int,
    heuristic: int,
    state_limit_bytes: int = NO_LIMIT,
    saved: tuple[int, ...] = (),
) -> Plant:
    """All structures of a job. workers: 0 runs inline, as one.  saved: as of a plant."""
    plant = Plant(host, job, max(workers, 1), saved)
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
        (s.ENGINE_STATE_LIMIT, state_limit_bytes),
    ):
        host.set_word(plant.engine, index, value)
    host.function("conclude_if_satisfied")(plant.engine)
    return plant


# -- stages ----------------------------------------------------------------------------------------------------------


def _build_stage(plant: Plant, number: int, batch_rows: int) -> None:
    host, spec = plant.host, plant.job.stages[number]
    stage = plant.block(s.STAGE_WORDS)
    last = number == len(plant.job.stages) - 1
    kind = _way_of(spec, plant.workers)
    entries = host.entries(spec)
    collects = number > 0 and plant.job.stages[number - 1].kind is StageKind.PARTIAL
    lanes = max(spec.lanes, 1)
    limit = batch_rows if lanes == 1 else max(256, 4 * batch_rows // lanes)  # a lane with four times its share is full
    # a full ticket fits on top of a port that is not full; a SHARED stage takes what there is after every ticket
    capacity = limit if kind == s.SHARED else 2 * limit
    # the rows of lanes get their segments when they are merged
    carried = Carried(not last and lanes == 1, lanes > 1, spec.passes_watermarks, not last)
    depots = [_new_depot(host, port, limit, capacity, carried) for port in spec.ports]
    plant.depots.append(depots)
    weighed = weighed_slots(host, spec)
    for index, value in (
        (s.STAGE_ENGINE, plant.engine),
        (s.STAGE_KIND, kind),
        (s.STAGE_KERNEL, entries[spec.entry]),
        (s.STAGE_CONSTANTS, host.place(spec.constants)),
        (s.STAGE_INPUT, plant.ring(EVENTS_WAITING if collects else TICKETS_A_WORKER * plant.workers)),
        (s.STAGE_PORTS, len(spec.ports)),
        (s.STAGE_DEPOTS, host.place(words(depots))),
        (s.STAGE_NUMBER, number),
        (s.STAGE_SLOTS, host.place(words(weighed))),
        (s.STAGE_SLOT_COUNT, len(weighed) // 2),
        (s.STAGE_SOURCES, len(plant.job.sources)),
    ):
        host.set_word(stage, index, value)
    if plant.stages:
        host.set_word(plant.stages[-1], s.STAGE_NEXT, stage)
        if collects:
            host.set_word(stage, s.STAGE_PARTIALS, host.word(plant.stages[-1], s.STAGE_PARTIALS))
    plant.stages.append(stage)
    match kind:
        case s.SINGLE:
            host.set_word(stage, s.STAGE_TASK, _new_tasks(plant, spec, stage, _new_states(plant, spec, 1))[0])
        case s.SHARED:
            states = _new_states(plant, spec, 2 * plant.workers)  # one under way, one waiting for its turn
            _build_shared(plant, spec, stage, states)
        case s.PARTIAL:
            states = _new_states(plant, spec, _part_count(plant, number))
            _build_shared(plant, spec, stage, [0] * (2 * plant.workers))
            _build_partials(plant, number, stage, states)
        case _:
            _build_lanes(plant, spec, stage, batch_rows, entries, not last)


def _way_of(spec: Stage, workers: int) -> int:
    """How a stage is run, as it says. One worker needs no order restored."""
    if spec.kind is StageKind.STATELESS:
        return s.SHARED if workers > 1 else s.SINGLE
    return _WAYS[spec.kind]


_WAYS = {StageKind.STATEFUL: s.SINGLE, StageKind.PARTITIONED: s.LANED, StageKind.PARTIAL: s.PARTIAL}


def _part_count(plant: Plant, number: int) -> int:
    """A part a worker; what more workers have left in parts of theirs is collected from there."""
    return max(plant.workers, plant.saved[number] if plant.saved else 0)


class Carried(NamedTuple):
    """What parcels carry for each row beside its columns, or for all of them."""

    segments: bool = False
    positions: bool = False
    watermarks: bool = False
    causes: bool = False


def _new_depot(host: Host, port: PortSpec, limit: int, capacity: int, carried: Carried) -> int:
    """Parcels of a port. capacity: for stages that make no more rows than they take; beyond it they grow."""
    specs = words(w for c in port.columns for w in (int(c.storage), int(c.nullable)))
    depot = made(host.function("depot_new")(len(port.columns), host.place(specs), limit, capacity + 64), port.name)
    flags = (p.DEPOT_SEGMENTED, p.DEPOT_POSITIONED, p.DEPOT_MARKED, p.DEPOT_CAUSED)
    for word, flag in zip(flags, carried, strict=True):
        host.set_word(depot, word, int(flag))
    return depot


def _new_states(plant: Plant, spec: Stage, count: int) -> list[int]:
    """The states of a stage."""
    states: list[int] = []
    plant.states.append(states)
    for _ in range(count):
        states.append(new_state(plant.host, spec))
        plant.host.set_word(states[-1], STATE_INSTANT, NEVER)
    return states


def _new_tasks(plant: Plant, spec: Stage, stage: int, states: Sequence[int]) -> list[int]:
    """A task for each of these states; 0: it gets one when it runs."""
    tasks: list[int] = []
    plant.tasks.append(tasks)
    for state in states:
        tasks.append(made(plant.host.function("task_new")(stage, state), spec.name))
    return tasks


def _build_shared(plant: Plant, spec: Stage, stage: int, states: Sequence[int]) -> None:
    """A bag of tasks, one for each of these states, and a reorder buffer for as many."""
    host = plant.host
    tasks = _new_tasks(plant, spec, stage, states)
    idle, homes = plant.bag(len(tasks))
    for task, home in zip(tasks, homes, strict=True):
        host.set_word(task, s.TASK_HOME, home)
        host.function("bag_put")(home, task)
    host.set_word(stage, s.STAGE_TASKS, len(tasks))
    host.set_word(stage, s.STAGE_TASK, idle)
    host.set_word(stage, s.STAGE_REORDER, plant.reorder_buffer(len(tasks)))


def _build_partials(plant: Plant, number: int, stage: int, states: Sequence[int]) -> None:
    """The parts that workers fill; the next stage, when it is built, is their collector."""
    host, (spec, collector) = plant.host, plant.job.stages[number : number + 2]
    targets = {slot.node: slot.offset for slot in collector.slots if _handed_over(slot)}
    slots = [(slot.offset, targets[slot.node]) for slot in spec.slots if _handed_over(slot)]
    partials = plant.block(q.PARTIALS_PARTS + len(states) * q.PART_WORDS)
    for index, value in (
        (q.PARTIALS_COUNT, len(states)),
        (q.PARTIALS_ROWS_IN, stage + 8 * s.STAGE_ROWS_IN),
        (q.PARTIALS_SLOTS, host.place(words(w for pair in slots for w in pair))),
        (q.PARTIALS_SLOT_COUNT, len(slots)),
        (q.PARTIALS_ROWS_A_GROUP, ROWS_A_GROUP),
        (q.PARTIALS_SPREAD, len(states) if ROWS_A_GROUP == 0 else 1),
    ):
        host.set_word(partials, index, value)
    for place, state in enumerate(states):
        host.set_word(partials, q.PARTIALS_PARTS + place * q.PART_WORDS + q.PART_STATE, state)
    host.set_word(stage, s.STAGE_PARTIALS, partials)


def _handed_over(slot: Slot) -> bool:
    """Whether workers fill what the slot holds apart, and one collects it."""
    container = container_of(slot)
    return container is not None and container.hand_over is not None


def _build_lanes(
    plant: Plant, spec: Stage, stage: int, batch_rows: int, entries: dict[str, int], chained: bool
) -> None:
    """A task for each of its lanes, and splits for two tickets a worker and two more."""
    host, lanes, count = plant.host, plant.block(x.LANES_WORDS), spec.lanes
    splits = 2 * plant.workers + 2
    tasks = _new_tasks(plant, spec, stage, _new_states(plant, spec, count))
    carried = Carried(chained, False, spec.passes_watermarks, chained)
    depots = [_new_depot(host, port, batch_rows, batch_rows, carried) for port in spec.ports]
    plant.depots.append(depots)
    plant.hybrids.append(made(host.function("hybrid_new")(count, power_of_two(2 * splits)), spec.name))
    idle, homes = plant.bag(splits)
    for home in homes:
        plant.splits.append(made(host.function("split_new")(count, home), spec.name))
    assert spec.lane_entry is not None
    for index, value in (
        (x.LANES_COUNT, count),
        (x.LANES_ROUTE, host.place(bytes(n % count for n in range(x.PARTITIONS)))),
        (x.LANES_ENTRY, entries[spec.lane_entry]),
        (x.LANES_HYBRID, plant.hybrids[-1]),
        (x.LANES_TASKS, host.place(words(tasks))),
        (x.LANES_SPLITS, idle),
        (x.LANES_SPREAD, plant.reorder_buffer(splits)),
        (x.LANES_MERGED, plant.reorder_buffer(splits)),
        (x.LANES_DEPOTS, host.place(words(depots))),
        (x.LANES_CHAINED, int(chained)),
    ):
        host.set_word(lanes, index, value)
    host.set_word(stage, s.STAGE_LANES, lanes)
    host.set_word(stage, s.STAGE_TASK, idle)
    host.set_word(stage, s.STAGE_TASKS, splits)


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
    idle, homes = plant.bag((TICKETS_A_WORKER + 2) * plant.workers + 2)
    for home in homes:
        marks = batch_rows if job.watermarks else 0
        plant.tickets.append(made(host.function("ticket_new")(home, len(job.sources), segments, marks), "ticket"))
    for index, value in (
        (m.ADMISSION_SOURCES, len(job.sources)),
        (m.ADMISSION_SOURCE_TABLE, table),
        (m.ADMISSION_MINIMUM, BEFORE_ALL),
        (m.ADMISSION_BOUNDARY, BEFORE_ALL + 1 if job.grids else NEVER),
        (m.ADMISSION_GRIDS, len(job.grids)),
        (m.ADMISSION_GRID_TABLE, host.place(words(w for g in job.grids for w in (g.period_us, g.offset_us)))),
        (m.ADMISSION_MARKED, int(job.watermarks)),
        (m.ADMISSION_TICKETS, idle),
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
    for split in plant.splits:
        _return_merged(host, split)
        call("split_drop")(split)
    for hybrid in plant.hybrids:
        call("hybrid_drop")(hybrid)
    for ticket in plant.tickets:
        call("ticket_drop")(ticket)
    for buffer in plant.buffers:
        call("reorder_drop")(buffer)
    for ring in plant.rings:
        call("ring_drop")(ring)
    for bag in plant.bags:
        call("bag_drop")(bag)
    for depots in plant.depots:
        for depot in depots:
            call("depot_close")(depot)
    for kept in (plant.stages, plant.sinks, plant.tasks, plant.states, plant.tickets, plant.buffers, plant.hybrids):
        kept.clear()
    for kept in (plant.rings, plant.depots, plant.splits, plant.bags):
        kept.clear()


def _return_parcels(host: Host, ring: int) -> None:
    """The ring holds no parcels; failures, which are part of their stage, are left out."""
    while (item := host.function("ring_pop")(ring)) != 0:
        if host.word(item, ITEM_KIND) == PARCEL:
            host.function("parcel_return")(item)


def _return_merged(host: Host, split: int) -> None:
    """The parcels a split holds, merged or not yet, are returned."""
    records = host.word(split, x.SPLIT_RECORDS)
    count = (host.word(split, x.SPLIT_PLACES) - records) // (8 * x.RECORD_WORDS)
    heads = [host.word(split, x.SPLIT_FIRST)]
    heads += [host.word(records + 8 * x.RECORD_WORDS * lane, x.RECORD_FIRST) for lane in range(count)]
    for head in heads:
        parcel = head
        while parcel != 0:
            following = host.word(parcel, ITEM_LINK)
            host.function("parcel_return")(parcel)
            parcel = following
