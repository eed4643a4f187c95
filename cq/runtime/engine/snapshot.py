"""A paused run as a value: its positions in its sources, and what the operators of the query hold.

A snapshot is taken when nothing is in progress, so a few words of admission and the described state of each stage are
enough. It goes into a new engine of any plan of the same query, with any number of workers; the rows from `rows` on
are then pushed again. In a pipeline with the same stages, lanes stay as they were, parts that workers have filled go to
at least as many parts, and counts of rows go to the first of several states. In another pipeline the operators'
contents are moved (cq/runtime/engine/state_moves.py).
"""

from __future__ import annotations

import struct

from cq.records import dataclass
from cq.runtime.base.host import Host
from cq.runtime.containers.state import load_slot, save_slot
from cq.runtime.engine import stage as s
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.state_moves import StateBytes, move_states, saved_slots
from cq.runtime.flow import admission_words as m
from cq.runtime.layout.abi import STATE_LATE_ROWS
from cq.runtime.layout.pipeline import Lanes, Pipeline, StageSpec

_ADMISSION = (m.ADMISSION_SERIAL, m.ADMISSION_MINIMUM, m.ADMISSION_BOUNDARY, m.ADMISSION_LATE_ROWS)
_SOURCE = (m.SOURCE_ENDED, m.SOURCE_MAX, m.SOURCE_WATERMARK, m.SOURCE_TAKEN)
_SINK = (s.SINK_LEFT, s.SINK_ROWS, s.SINK_BATCHES)

StageShape = tuple[str, Lanes | None, tuple[tuple[str, str], ...]]
"""What decides how the state of a stage is divided: how it runs, how its rows are routed, and its slots and their
contents."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at `serial`: all rows below it are processed and their results delivered, none from it on.

    rows: how many of each source that is.  shape: of the pipeline's stages.  sent: rows each stage has sent to the
    next.  states: by stage, then by task.
    """

    serial: int
    rows: tuple[int, ...]
    admission: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    sinks: tuple[tuple[int, ...], ...]
    shape: tuple[StageShape, ...]
    sent: tuple[int, ...]
    states: tuple[tuple[StateBytes, ...], ...]


class SnapshotMismatch(Exception):
    """The snapshot belongs to another query."""


def pipeline_shape(pipeline: Pipeline) -> tuple[StageShape, ...]:
    """Pipelines of one shape have states that are divided in the same way."""
    return tuple(
        (stage.way.value, stage.lanes, tuple((slot.key, slot.contents) for slot in stage.slots))
        for stage in pipeline.stages
    )


def saved_states(pipeline: Pipeline, snapshot: Snapshot) -> tuple[int, ...]:
    """How many states of each stage the snapshot has; none for a pipeline of another shape."""
    return tuple(len(states) for states in snapshot.states) if snapshot.shape == pipeline_shape(pipeline) else ()


def take_snapshot(host: Host, plant: Plant) -> Snapshot:
    """The current run. Nothing is in progress, and nothing comes in meanwhile."""

    def picked(address: int, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(host.word(address, index) for index in indices)

    sources = tuple(picked(source, _SOURCE) for source in plant.sources)
    admission = picked(plant.admission, _ADMISSION)
    states = tuple(
        tuple(_save_state(host, spec, state) for state in states)
        for spec, states in zip(plant.pipeline.stages, plant.states, strict=True)
    )
    rows = tuple(words[_SOURCE.index(m.SOURCE_TAKEN)] for words in sources)
    sinks = tuple(picked(sink, _SINK) for sink in plant.sinks)
    sent = tuple(host.word(stage, s.STAGE_SENT) for stage in plant.stages)
    return Snapshot(admission[0], rows, admission, sources, sinks, pipeline_shape(plant.pipeline), sent, states)


def put_snapshot(host: Host, plant: Plant, snapshot: Snapshot) -> None:
    """Put a new plant, which no worker runs yet, where the snapshot was taken.

    Raises SnapshotMismatch for one of another query.
    """
    if (len(snapshot.sources), len(snapshot.sinks)) != (len(plant.sources), len(plant.sinks)):
        raise SnapshotMismatch(f"{len(snapshot.sources)} sources, {len(snapshot.sinks)} outputs")
    targets: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [(plant.admission, _ADMISSION, snapshot.admission)]
    targets += [(a, _SOURCE, w) for a, w in zip(plant.sources, snapshot.sources, strict=True)]
    targets += [(a, _SINK, w) for a, w in zip(plant.sinks, snapshot.sinks, strict=True)]
    for address, indices, words in targets:
        for index, word in zip(indices, words, strict=True):
            host.set_word(address, index, word)
    if snapshot.shape == pipeline_shape(plant.pipeline):
        _put_states(host, plant, snapshot)
        return
    wrong = move_states(host, plant, snapshot.states, {slot for *_, slots in snapshot.shape for slot in slots})
    if wrong:
        raise SnapshotMismatch(wrong)


def _put_states(host: Host, plant: Plant, snapshot: Snapshot) -> None:
    """Load the states of a pipeline of the same shape."""
    for stage, sent in zip(plant.stages, snapshot.sent, strict=True):
        host.set_word(stage, s.STAGE_SENT, sent)
    for spec, states, saved in zip(plant.pipeline.stages, plant.states, snapshot.states, strict=True):
        for number, parts in enumerate(saved):
            _load_state(host, spec, states[number if spec.slots else 0], parts)


def _save_state(host: Host, spec: StageSpec, state: int) -> StateBytes:
    parts = {slot.key: save_slot(host, slot, host.word(state, slot.offset)) for slot in saved_slots(spec)}
    return {"": struct.pack("<q", host.word(state, STATE_LATE_ROWS)), **parts}


def _load_state(host: Host, spec: StageSpec, state: int, parts: StateBytes) -> None:
    late_rows = host.word(state, STATE_LATE_ROWS) + struct.unpack("<q", parts[""])[0]
    host.set_word(state, STATE_LATE_ROWS, late_rows)
    for slot in saved_slots(spec):
        if not load_slot(host, slot, state, parts[slot.key]):
            raise SnapshotMismatch(f"{slot.name} of stage {spec.name}")
