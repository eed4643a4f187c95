"""Turn a Pipeline into the structures the workers run on: admission, stages, tasks, sinks, all in native memory.

Everything is allocated here, before the first row, except what grows with the data; all of it is freed by `close`.
"""

from __future__ import annotations

from cq.runtime.base.host import Host
from cq.runtime.containers.state import drop_state, made, native_name, weighed_slots, words
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import DEFAULT_SHARING, Carried, Plant, SettledSharing, new_depot
from cq.runtime.engine.user_calls import place_constants
from cq.runtime.engine.ways.pace import adapt
from cq.runtime.engine.ways.protocol import Making, Runner, runners
from cq.runtime.flow import admission_words as m
from cq.runtime.flow.batch import ITEM_KIND, PARCEL
from cq.runtime.flow.grids import grid_words
from cq.runtime.layout.abi import BEFORE_ALL, COLUMN_WORDS, NEVER
from cq.runtime.layout.pipeline import Pipeline, SourceSpec
from cq.ways import Way

EVENTS_WAITING = 4  # items before a stage that collects panes: workers that run ahead of it fill new ones
PENDING_BATCHES = (
    4  # record batches of one source that wait for admission: one in use, one ready, decoding ahead of that
)
TICKETS_A_WORKER = 8  # waiting at each stage: enough to bridge a slow ticket, few enough to stay in the cache
WAITING_RESULTS = 16  # parcels in each sink, then the last stage waits for the feeder; at 64 they leave the cache
NO_LIMIT = 2**63 - 1
# If the length of punctuations adapts, results leave in parcels of this many rows, as with the fixed length. With
# 10,000 rows at a time an event takes 6 to 10 % less, and results of 16 punctuations would wait for one another.
PARCEL_ROWS = 500
MOST_SEGMENTS = 1024  # in a ticket; one with more crossings and source changes is cut earlier


def build(
    host: Host,
    pipeline: Pipeline,
    workers: int,
    batch_rows: int,
    heuristic: int,
    state_limit_bytes: int = NO_LIMIT,
    saved: tuple[int, ...] = (),
    sharing: SettledSharing = DEFAULT_SHARING,
) -> Plant:
    """All structures of a pipeline. workers: 0 runs inline, as one.  saved: as in a plant.

    sharing: how workers share transactions that run together; adaptive up to `batch_rows`.
    """
    plant = Plant(host, pipeline, max(workers, 1), saved, sharing)
    plant.engine = plant.block(s.ENGINE_WORDS)
    try:
        for number, spec in enumerate(pipeline.stages):
            adapts = sharing.adaptive and spec.way.traits.together
            _build_stage(plant, number, min(batch_rows, PARCEL_ROWS) if adapts else batch_rows)
        _build_sinks(plant)
        _build_admission(plant, batch_rows)
        last = max((n for n, spec in enumerate(pipeline.stages) if spec.way.traits.together), default=None)
        if sharing.adaptive and last is not None:  # only one decides: two would measure each other
            adapt(plant, plant.stages[last], batch_rows, behind=len(plant.tickets) * (last + 1))
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
    """Build what all stages have, then what the stage's runner adds."""
    host, spec = plant.host, plant.pipeline.stages[number]
    runner, entries = runners()[spec.way], host.entries(spec)
    making = Making(plant, number, plant.block(s.STAGE_WORDS), batch_rows, entries)
    collects = number > 0 and plant.pipeline.stages[number - 1].way.traits.hands_over
    depots = _new_depots(making, runner)
    weighed = weighed_slots(host, spec)
    for index, value in (
        (s.STAGE_ENGINE, plant.engine),
        (s.STAGE_WAY, tuple(Way).index(runner.way)),
        (s.STAGE_SERVE, host.address(native_name(runner.serve))),
        (s.STAGE_IDLE, host.address(native_name(runner.idle))),
        (s.STAGE_FLUSH, host.address(native_name(runner.flush)) if runner.flush is not None else 0),
        (s.STAGE_ALONE, int(runner.alone)),
        (s.STAGE_KERNEL, entries[spec.entry]),
        (s.STAGE_CONSTANTS, place_constants(host, spec)),
        (s.STAGE_INPUT, plant.ring(EVENTS_WAITING if collects else TICKETS_A_WORKER * plant.workers)),
        (s.STAGE_PORTS, len(spec.ports)),
        (s.STAGE_DEPOTS, host.place(words(depots))),
        (s.STAGE_NUMBER, number),
        (s.STAGE_SLOTS, host.place(words(weighed))),
        (s.STAGE_SLOT_COUNT, len(weighed) // 2),
        (s.STAGE_SOURCES, len(plant.pipeline.sources)),
    ):
        host.set_word(making.address, index, value)
    if plant.stages:
        host.set_word(plant.stages[-1], s.STAGE_NEXT, making.address)
        if collects:
            assert runner.way is Way.LOOP, "a loop collects what workers fill"
            host.set_word(making.address, s.STAGE_OWN, host.word(plant.stages[-1], s.STAGE_OWN))
    plant.stages.append(making.address)
    runner.build(making)


def _new_depots(making: Making, runner: Runner) -> list[int]:
    """A depot for each port of the stage's tasks."""
    spec, batch_rows = making.spec, making.batch_rows
    lanes = 1 if spec.lanes is None else spec.lanes.count
    limit = batch_rows if lanes == 1 else max(256, 4 * batch_rows // lanes)  # a lane is full at four times its share
    # a full ticket fits on top of a port that is not full; if ports are emptied after every item, a ticket fits
    capacity = limit if runner.emptied else 2 * limit
    sends_on = not making.is_last
    # the rows of lanes get their segments when they are merged
    carried = Carried(sends_on and lanes == 1, lanes > 1, spec.passes_watermarks, sends_on)
    making.plant.depots.append([new_depot(making.plant.host, port, limit, capacity, carried) for port in spec.ports])
    return making.plant.depots[-1]


def _build_sinks(plant: Plant) -> None:
    for port in plant.pipeline.sinks:
        sink = plant.block(s.SINK_WORDS)
        plant.host.set_word(sink, s.SINK_RING, plant.ring(WAITING_RESULTS))
        plant.host.set_word(sink, s.SINK_LEFT, -1 if port.limit is None else port.limit)
        plant.sinks.append(sink)


# -- admission -------------------------------------------------------------------------------------------------------


def _build_admission(plant: Plant, batch_rows: int) -> None:
    host, pipeline = plant.host, plant.pipeline
    table = plant.block(m.SOURCE_WORDS * len(pipeline.sources))
    for number, spec in enumerate(pipeline.sources):
        source = table + number * m.SOURCE_WORDS * 8
        plant.sources.append(source)
        plant.storages.append(host.place(words(int(c.storage) for c in spec.columns)))
        host.set_word(source, m.SOURCE_EMPTY, plant.block(COLUMN_WORDS * max(1, len(spec.columns))))
        _fill_source(plant, source, spec)
    plant.admission = plant.block(m.ADMISSION_WORDS)
    segments = min(MOST_SEGMENTS, 2 * batch_rows + 2 * len(pipeline.sources) + 8)
    idle, homes = plant.pool((TICKETS_A_WORKER + 2) * plant.workers + 2)
    for home in homes:
        marks, mixed = (batch_rows if carried else 0 for carried in (pipeline.watermarks, pipeline.mixed))
        ticket = host.function("ticket_new")(home, len(pipeline.sources), segments, marks, mixed)
        plant.tickets.append(made(ticket, "ticket"))
    for index, value in (
        (m.ADMISSION_SOURCES, len(pipeline.sources)),
        (m.ADMISSION_SOURCE_TABLE, table),
        (m.ADMISSION_MINIMUM, BEFORE_ALL),
        (m.ADMISSION_BOUNDARY, BEFORE_ALL + 1 if pipeline.grids else NEVER),
        (m.ADMISSION_GRIDS, len(pipeline.grids)),
        (m.ADMISSION_GRID_TABLE, host.place(words(w for grid in pipeline.grids for w in grid_words(grid)))),
        (m.ADMISSION_MARKED, int(pipeline.watermarks)),
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
    for index, value in (
        (m.SOURCE_TIMED, 1),
        (m.SOURCE_DELAY, spec.delay_us),
        (m.SOURCE_TIME_COLUMN, time.column),
        (m.SOURCE_SCALE, time.scale),
        (m.SOURCE_STORAGE, int(spec.columns[time.column].storage)),
        (m.SOURCE_PLAIN, int(spec.plain)),
    ):
        host.set_word(source, index, value)


# -- the end ---------------------------------------------------------------------------------------------------------


def close(plant: Plant) -> None:
    """Free everything except parcels that Arrow holds. No thread uses the plant any more."""
    host = plant.host
    call = host.function
    for ring in [host.word(stage, s.STAGE_INPUT) for stage in plant.stages[1:]]:
        _return_parcels(host, ring)
    for sink in plant.sinks:
        _return_parcels(host, host.word(sink, s.SINK_RING))
    for spec, tasks, states in zip(plant.pipeline.stages, plant.tasks, plant.states, strict=False):
        for task in tasks:
            call("task_drop")(task, len(spec.ports))
        for state in states:
            drop_state(host, spec, state)
    for drop in reversed(plant.closing):
        drop()
    for ticket in plant.tickets:
        call("ticket_drop")(ticket)
    for buffer in plant.buffers:
        call("reorder_drop")(buffer)
    for ring in plant.rings:
        call("ring_drop")(ring)
    for pool in plant.pools:
        call("pool_drop")(pool)
    for depots in plant.depots:
        for depot in depots:
            call("depot_close")(depot)
    plant.closing.clear()
    for kept in (plant.stages, plant.sinks, plant.tasks, plant.states, plant.views, plant.tickets, plant.buffers):
        kept.clear()
    for kept in (plant.rings, plant.depots, plant.pools):
        kept.clear()


def _return_parcels(host: Host, ring: int) -> None:
    """Empty the ring of parcels; failures, which are part of their stage, are left out."""
    while (item := host.function("ring_pop")(ring)) != 0:
        if host.word(item, ITEM_KIND) == PARCEL:
            host.function("parcel_return")(item)
