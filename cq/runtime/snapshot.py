"""A paused run as a value: where it stands in its sources, and the state of every stage.

A snapshot is taken when nothing is under way, so a few words of admission and the described state of each stage are all
there is. It goes into a fresh engine of the same job and the same number of tasks (the same `threads` where a stage has
lanes); the rows from `rows` on are then pushed again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cq.runtime import merge as m
from cq.runtime import stage as s
from cq.runtime.abi import STATE_LATE_ROWS
from cq.runtime.build import Plant
from cq.runtime.host import Host
from cq.runtime.job import Container, Slot, Stage
from cq.runtime.state import made

_ADMISSION = (m.ADMISSION_SERIAL, m.ADMISSION_MINIMUM, m.ADMISSION_BOUNDARY, m.ADMISSION_LATE_ROWS)
_SOURCE = (m.SOURCE_ENDED, m.SOURCE_MAX, m.SOURCE_WATERMARK, m.SOURCE_TAKEN)
_SINK = (s.SINK_LEFT, s.SINK_ROWS, s.SINK_BATCHES)
_KINDS = {Container.TABLE: "table", Container.PANES: "panes", Container.BUFFER: "buffer"}

StateBytes = dict[str, bytes]  # by slot name; "" holds the counters every state has


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at `serial`: all rows below it are processed and their results delivered, none from it on.

    rows: how many of each source that is.  states: by stage, then by task.
    """

    serial: int
    rows: tuple[int, ...]
    admission: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    sinks: tuple[tuple[int, ...], ...]
    states: tuple[tuple[StateBytes, ...], ...]


class SnapshotMismatch(Exception):
    """The snapshot is of another job, or of a run with another number of tasks."""


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
    return Snapshot(admission[0], rows, admission, sources, sinks, states)


def put_snapshot(host: Host, plant: Plant, snapshot: Snapshot) -> None:
    """A fresh plant, which no worker runs yet, stands where the snapshot was taken."""
    shape = [len(states) for states in plant.states]
    if [len(states) for states in snapshot.states] != shape or len(snapshot.sources) != len(plant.sources):
        raise SnapshotMismatch(f"tasks {shape} and {len(plant.sources)} sources")
    targets: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(plant.admission, _ADMISSION, snapshot.admission)]
    targets += [(a, _SOURCE, w) for a, w in zip(plant.sources, snapshot.sources, strict=True)]
    targets += [(a, _SINK, w) for a, w in zip(plant.sinks, snapshot.sinks, strict=True)]
    for address, indices, words in targets:
        for index, word in zip(indices, words, strict=True):
            host.set_word(address, index, word)
    for spec, states, saved in zip(plant.job.stages, plant.states, snapshot.states, strict=True):
        for state, parts in zip(states, saved, strict=True):
            _load_state(host, spec, state, parts)


def _save_state(host: Host, spec: Stage, state: int) -> StateBytes:
    parts = {slot.name: _save_slot(host, slot, host.word(state, slot.offset)) for slot in spec.slots}
    return {"": struct.pack("<q", host.word(state, STATE_LATE_ROWS)), **parts}


def _save_slot(host: Host, slot: Slot, word: int) -> bytes:
    if slot.container is Container.WORD:
        return struct.pack("<q", word)
    kind = _KINDS[slot.container]
    size = 8 * host.function(f"{kind}_saved_words")(word)
    room = made(host.function("room_new")(size), slot.name)
    try:
        host.function(f"{kind}_save")(word, room)
        return host.read(room, size)
    finally:
        host.function("room_drop")(room)


def _load_state(host: Host, spec: Stage, state: int, parts: StateBytes) -> None:
    if parts.keys() != {"", *(slot.name for slot in spec.slots)}:
        raise SnapshotMismatch(f"state of stage {spec.name}")
    host.set_word(state, STATE_LATE_ROWS, struct.unpack("<q", parts[""])[0])
    for slot in spec.slots:
        content = parts[slot.name]
        if slot.container is Container.WORD:
            host.set_word(state, slot.offset, struct.unpack("<q", content)[0])
            continue
        read = host.function(f"{_KINDS[slot.container]}_load")(host.word(state, slot.offset), host.place(content))
        if 8 * read != len(content):
            raise SnapshotMismatch(f"{slot.name} of stage {spec.name}")
