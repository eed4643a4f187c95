"""The addresses of a pipeline's structures in native memory, and how all ways make theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cq.records import dataclass, field
from cq.runtime.containers.state import made, new_state, words
from cq.runtime.engine import stage as s
from cq.runtime.flow import parcel as p
from cq.runtime.layout.abi import NEVER, SPARE_ROWS, STATE_INSTANT
from cq.runtime.layout.pipeline import Pipeline, PortSpec, StageSpec
from cq.ways import PLACEMENTS

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host


def power_of_two(least: int) -> int:
    """The smallest power of two, at least 2, that is not below `least`."""
    return 1 << max(1, (least - 1).bit_length())


class SettledSharing(NamedTuple):
    """How the workers of a run share transactions that run together: `cq.ways.Sharing`, on this machine.

    adaptive: whether the engine chooses how many events at a time.  placement: one of PLACEMENTS.
    sockets: the processors of each; if there are several, workers stay on theirs.
    """

    adaptive: bool = False
    placement: str = PLACEMENTS[0]
    sockets: Sequence[Sequence[int]] = ()


DEFAULT_SHARING = SettledSharing()  # unless the query sets anything


@dataclass(slots=True)
class Plant:
    """The addresses of everything that was built. stages, sinks, sources: in the order of the pipeline.

    views: by stage, states besides its own that have the same containers.
    saved: how many states each stage had in the run that this one continues; none for a new run.
    """

    host: Host
    pipeline: Pipeline
    workers: int
    saved: tuple[int, ...] = ()
    sharing: SettledSharing = DEFAULT_SHARING
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
    views: list[list[int]] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)
    pools: list[int] = field(default_factory=list)
    closing: list[Callable[[], object]] = field(default_factory=list)

    def ring(self, capacity: int) -> int:
        """A ring for at least `capacity` values, dropped with the plant."""
        self.rings.append(made(self.host.function("ring_new")(power_of_two(capacity)), "ring"))
        return self.rings[-1]

    def pool(self, homes: int) -> tuple[int, list[int]]:
        """An empty pool, dropped with the plant, and its homes."""
        self.pools.append(made(self.host.function("pool_new")(homes), "pool"))
        return self.pools[-1], [self.host.function("pool_home")(self.pools[-1], n) for n in range(homes)]

    def reorder_buffer(self, capacity: int) -> int:
        """A reorder buffer for at least `capacity` tickets in flight, dropped with the plant."""
        self.buffers.append(made(self.host.function("reorder_new")(power_of_two(capacity)), "reorder buffer"))
        return self.buffers[-1]

    def when_closed(self, drop: Callable[[], object]) -> None:
        """Register what frees a way's own structures at the close: after tasks and states, the last one first."""
        self.closing.append(drop)

    def block(self, size_words: int) -> int:
        """Zero words on a cache line of their own, kept as long as the host."""
        address = self.host.place(bytes(8 * size_words + 64))
        return (address + 63) & ~63


class Carried(NamedTuple):
    """What parcels carry besides columns, for each row or for all of them."""

    segments: bool
    positions: bool
    watermarks: bool
    causes: bool


def new_depot(host: Host, port: PortSpec, limit: int, capacity: int, carried: Carried) -> int:
    """Parcels of a port. capacity: for stages that make no more rows than they take; they grow beyond it."""
    specs = words(w for c in port.columns for w in (int(c.storage), int(c.nullable)))
    depot = made(
        host.function("depot_new")(len(port.columns), host.place(specs), limit, capacity + SPARE_ROWS), port.name
    )
    flags = (p.DEPOT_SEGMENTED, p.DEPOT_POSITIONED, p.DEPOT_MARKED, p.DEPOT_CAUSED)
    for word, flag in zip(flags, carried, strict=True):
        host.set_word(depot, word, int(flag))
    return depot


def new_states(plant: Plant, spec: StageSpec, count: int) -> list[int]:
    """The states of a stage."""
    states: list[int] = []
    plant.states.append(states)
    plant.views.append([])
    for _ in range(count):
        states.append(new_state(plant.host, spec))
        plant.host.set_word(states[-1], STATE_INSTANT, NEVER)
    return states


def new_views(plant: Plant, spec: StageSpec, state: int, count: int) -> list[int]:
    """States besides the last stage's one, with their own cursors, errors and texts, and with its containers."""
    assert all(slot.container for slot in spec.slots), "a plain word of the state would not be shared"
    views = plant.views[-1]
    for _ in range(count):
        views.append(plant.host.place(bytes(8 * spec.state_words)))
        plant.when_closed(partial(plant.host.function("step_drop"), views[-1]))
        plant.host.set_word(views[-1], STATE_INSTANT, NEVER)
        for slot in spec.slots:
            plant.host.set_word(views[-1], slot.offset, plant.host.word(state, slot.offset))
    return views


def new_tasks(plant: Plant, spec: StageSpec, stage: int, states: Sequence[int]) -> list[int]:
    """A task for each of these states; state 0: it gets one when it runs."""
    tasks: list[int] = []
    plant.tasks.append(tasks)
    for state in states:
        tasks.append(made(plant.host.function("task_new")(stage, state), spec.name))
    return tasks


def idle_tasks(plant: Plant, spec: StageSpec, stage: int, states: Sequence[int]) -> None:
    """A pool of tasks, one for each of these states, and a reorder buffer for as many."""
    host = plant.host
    tasks = new_tasks(plant, spec, stage, states)
    idle, homes = plant.pool(len(tasks))
    for task, home in zip(tasks, homes, strict=True):
        host.set_word(task, s.TASK_HOME, home)
        host.function("pool_put")(home, task)
    host.set_word(stage, s.STAGE_TASKS, len(tasks))
    host.set_word(stage, s.STAGE_TASK, idle)
    host.set_word(stage, s.STAGE_REORDER, plant.reorder_buffer(len(tasks)))
