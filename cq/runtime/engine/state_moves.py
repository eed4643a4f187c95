"""From the states of one plan to those of another of the same query: what each operator holds, wherever it was held.

Plans divide state in different ways: one loop, lanes by one key or another, stages in a chain, panes that workers have
filled separately. All share the operator and the name of the slot (`Slot.key`). So the containers of the old plan are
filled as they were, and their contents are moved into those of the new one, by functions that the new plan's stages
provide (`StageSpec.moving`), each entry to its lane.

Arrivals  Each plan numbers rows in its own way, and only the order of the numbers matters. So the numbers of each
          operator become -n .. -1, in the same order: below all that come. Equal ones, which one loop gives to the rows
          of an instant, are ordered as they were kept.
Words     Plain words count what is emitted at the end: in a run that goes on, those of all states are equal.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from cq.runtime.base.host import Host
from cq.runtime.containers.protocol import ARRIVAL_NUMBER, ARRIVAL_TIE, ARRIVAL_WORDS, container_of
from cq.runtime.containers.state import lent, load_container, made, native_name, new_container
from cq.runtime.engine.plant import Plant
from cq.runtime.engine.stage import STAGE_OWN
from cq.runtime.flow.split_words import LANES_ROUTE, PARTITIONS
from cq.runtime.layout.abi import ROUTING_LANE, ROUTING_ROUTE, ROUTING_WORDS, STATE_LATE_ROWS
from cq.runtime.layout.pipeline import Slot, StageSpec

StateBytes = dict[str, bytes]  # by slot key; "" holds the counters every state has


def saved_slots(stage: StageSpec) -> tuple[Slot, ...]:
    """The slots that a snapshot contains."""
    return tuple(slot for slot in stage.slots if not slot.transient)


def move_states(
    host: Host, plant: Plant, saved: Sequence[Sequence[StateBytes]], slots: Collection[tuple[str, str]]
) -> str:
    """Move what the operators of a plan held, saved by stage and state, into the states of the plant.

    slots: key and contents of the plan's.  Returns what does not fit; then the plant is unusable.
    """
    states = [state for stage in saved for state in stage]
    held = {key for state in states for key in state if key}
    wanted = [slot for stage in plant.pipeline.stages for slot in saved_slots(stage)]
    if held != {slot.key for slot in wanted} or any((slot.key, slot.contents) not in slots for slot in wanted):
        return "other operators, or others of their columns"
    host.set_word(plant.states[0][0], STATE_LATE_ROWS, sum(_word(state[""]) for state in states))
    for number, stage in enumerate(plant.pipeline.stages):
        if not stage.way.traits.hands_over:
            wrong = _move_stage(host, plant, number, states)
            if wrong:
                return wrong
    return ""


def _move_stage(host: Host, plant: Plant, number: int, states: Sequence[StateBytes]) -> str:
    """Move what the operators of one stage held into its states; return what does not fit."""
    slots = saved_slots(plant.pipeline.stages[number])
    for slot in slots:
        if not slot.container:
            _put_word(host, plant.states[number], slot, states)
    for node in dict.fromkeys(slot.node for slot in slots if slot.container):
        mine = [slot for slot in slots if slot.container and slot.node == node]
        with _filled(host, mine, states) as found:
            if any(0 in containers for containers in found.values()):
                return f"a {mine[0].operator} of another shape, or no memory"
            _number_arrivals(host, mine, found)
            for slot in mine:
                _move_slot(host, plant, number, slot, found[slot.key])
    return ""


def _word(content: bytes) -> int:
    (word,) = struct.unpack("<q", content)
    return int(word)


def _put_word(host: Host, targets: Sequence[int], slot: Slot, states: Sequence[StateBytes]) -> None:
    """Set the word of all targets to the word that all states have under this key."""
    (word,) = {_word(state[slot.key]) for state in states if slot.key in state}
    for target in targets:
        host.set_word(target, slot.offset, word)


@contextmanager
def _filled(host: Host, slots: Sequence[Slot], states: Sequence[StateBytes]) -> Iterator[dict[str, list[int]]]:
    """Temporary containers of these slots with their saved contents, by slot key; 0 for what does not fit."""
    made_so_far: list[tuple[Slot, int]] = []
    found: dict[str, list[int]] = {slot.key: [] for slot in slots}
    try:
        for slot in slots:
            for state in states:
                if slot.key in state:
                    made_so_far.append((slot, new_container(host, slot)))
                    address = made_so_far[-1][1]
                    fits = load_container(host, slot, address, state[slot.key])
                    found[slot.key].append(address if fits else 0)
        yield found
    finally:
        for slot, address in made_so_far:
            host.function(_role(slot, "drop"))(address)


def _role(slot: Slot, role: str) -> str:
    """The native function of a slot's container in this role."""
    return native_name(getattr(container_of(slot), role))


def _number_arrivals(host: Host, slots: Sequence[Slot], found: dict[str, list[int]]) -> None:
    """Replace the arrival numbers in all containers of an operator by -n .. -1, in their order."""
    lists = [(host.function(_role(slot, "arrivals")), address) for slot in slots for address in found[slot.key]]
    counts = [arrivals(address, 0) for arrivals, address in lists]
    total = sum(counts)
    if total == 0:
        return
    size = 8 * ARRIVAL_WORDS
    room = made(host.function("room_new")(size * total), "arrival numbers")
    try:
        at = room
        for (arrivals, address), count in zip(lists, counts, strict=True):
            arrivals(address, at)
            at += size * count
        listed = np.frombuffer(host.read(room, size * total), np.int64).reshape(total, ARRIVAL_WORDS)
        order = np.lexsort((listed[:, ARRIVAL_TIE], listed[:, ARRIVAL_NUMBER]))  # by number, then tie, then as listed
        with lent(host, order.astype("<i8").tobytes(), "arrival numbers") as places:
            host.function("renumber")(room, places, total)
    finally:
        host.function("room_drop")(room)


def _move_slot(host: Host, plant: Plant, number: int, slot: Slot, sources: Sequence[int]) -> None:
    """Move the contents of these containers into the slot of a stage's states, each entry to the state of its lane."""
    stage = plant.pipeline.stages[number]
    assert stage.moving is not None, "a stage with containers"
    moving = stage.moving()
    branch, name = next((branch, name) for key, branch, name in moving.entries if key == slot.key)
    move = host.moving_entries(moving)[name]
    constants = host.place(moving.constants)
    call, taken = host.function("call_move"), host.function(_role(slot, "taken"))
    route = 0
    if stage.lanes is not None:
        routes = host.word(host.word(plant.stages[number], STAGE_OWN), LANES_ROUTE)
        route = routes + branch * PARTITIONS
    for lane, state in enumerate(plant.states[number]):
        target = host.word(state, slot.offset)
        with lent(host, bytes(8 * ROUTING_WORDS), slot.name) as routing:
            host.set_word(routing, ROUTING_ROUTE, route)
            host.set_word(routing, ROUTING_LANE, lane)
            for source in sources:
                made(call(move, source, target, constants, routing), slot.name)
        made(taken(target), slot.name)
