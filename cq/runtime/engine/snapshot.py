"""A paused run as a value: where it stands in its sources, and the state of every stage.

A snapshot is taken when nothing is under way, so a few words of admission and the described state of each stage are all
there is. It goes into a fresh engine of the same job, with any number of workers; the rows from `rows` on are then
pushed again. Lanes stay as they were, parts that workers have filled go to as many parts at least, and of states in
which only rows were counted the counts go to the first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cq.runtime.base.host import Host
from cq.runtime.containers.state import load_slot, save_slot
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import Plant
from cq.runtime.flow import admission as m
from cq.runtime.layout.abi import STATE_LATE_ROWS
from cq.runtime.layout.job import Job, Stage

_ADMISSION = (m.ADMISSION_SERIAL, m.ADMISSION_MINIMUM, m.ADMISSION_BOUNDARY, m.ADMISSION_LATE_ROWS)
_SOURCE = (m.SOURCE_ENDED, m.SOURCE_MAX, m.SOURCE_WATERMARK, m.SOURCE_TAKEN)
_SINK = (s.SINK_LEFT, s.SINK_ROWS, s.SINK_BATCHES)

StateBytes = dict[str, bytes]  # by slot name; "" holds the counters every state has


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at `serial`: all rows below it are processed and their results delivered, none from it on.

    rows: how many of each source that is.  sent: rows each stage has sent to the next.  states: by stage, then by task.
    """

    serial: int
    rows: tuple[int, ...]
    admission: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    sinks: tuple[tuple[int, ...], ...]
    sent: tuple[int, ...]
    states: tuple[tuple[StateBytes, ...], ...]


class SnapshotMismatch(Exception):
    """The snapshot is of another job."""


def saved_states(job: Job, snapshot: Snapshot) -> tuple[int, ...]:
    """How many states of each stage the snapshot has."""
    if len(snapshot.states) != len(job.stages):
        raise SnapshotMismatch(f"{len(snapshot.states)} stages")
    return tuple(len(states) for states in snapshot.states)


def take_snapshot(host: Host, plant: Plant) -> Snapshot:
    """The run as it stands. Nothing is under way, and nothing comes in meanwhile."""

    def picked(address: int, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(host.word(address, index) for index in indices)

    sources = tuple(picked(source, _SOURCE) for source in plant.sources)
    admission = picked(plant.admission, _ADMISSION)
    states = tuple(
        tuple(_save_state(host, spec, state) for state in states)
        for spec, states in zip(plant.job.stages, plant.states, strict=True)
    )
    rows = tuple(words[_SOURCE.index(m.SOURCE_TAKEN)] for words in sources)
    sinks = tuple(picked(sink, _SINK) for sink in plant.sinks)
    sent = tuple(host.word(stage, s.STAGE_SENT) for stage in plant.stages)
    return Snapshot(admission[0], rows, admission, sources, sinks, sent, states)


def put_snapshot(host: Host, plant: Plant, snapshot: Snapshot) -> None:
    """A fresh plant, which no worker runs yet, stands where the snapshot was taken."""
    if len(snapshot.sources) != len(plant.sources):
        raise SnapshotMismatch(f"{len(snapshot.sources)} sources")
    targets: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(plant.admission, _ADMISSION, snapshot.admission)]
    targets += [(a, _SOURCE, w) for a, w in zip(plant.sources, snapshot.sources, strict=True)]
    targets += [(a, _SINK, w) for a, w in zip(plant.sinks, snapshot.sinks, strict=True)]
    for address, indices, words in targets:
        for index, word in zip(indices, words, strict=True):
            host.set_word(address, index, word)
    for stage, sent in zip(plant.stages, snapshot.sent, strict=True):
        host.set_word(stage, s.STAGE_SENT, sent)
    for spec, states, saved in zip(plant.job.stages, plant.states, snapshot.states, strict=True):
        if spec.slots and len(saved) > len(states):
            raise SnapshotMismatch(f"{len(saved)} states of stage {spec.name}")
        for number, parts in enumerate(saved):
            _load_state(host, spec, states[number if spec.slots else 0], parts)


def _save_state(host: Host, spec: Stage, state: int) -> StateBytes:
    parts = {slot.name: save_slot(host, slot, host.word(state, slot.offset)) for slot in spec.slots}
    return {"": struct.pack("<q", host.word(state, STATE_LATE_ROWS)), **parts}


def _load_state(host: Host, spec: Stage, state: int, parts: StateBytes) -> None:
    if parts.keys() != {"", *(slot.name for slot in spec.slots)}:
        raise SnapshotMismatch(f"state of stage {spec.name}")
    late_rows = host.word(state, STATE_LATE_ROWS) + struct.unpack("<q", parts[""])[0]
    host.set_word(state, STATE_LATE_ROWS, late_rows)
    for slot in spec.slots:
        if not load_slot(host, slot, state, parts[slot.name]):
            raise SnapshotMismatch(f"{slot.name} of stage {spec.name}")
