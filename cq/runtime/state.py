"""The state of a stage: words, and the containers that its slots describe.

A state is a block of words. `new_state` makes what the slots say, `drop_state` frees it. Only described words are
state: a snapshot walks the slots and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from cq.runtime.host import Host
from cq.runtime.job import Container, Slot, Stage, TableShape


class OutOfMemory(Exception):
    """There is no memory, or the limit leaves none, for a structure of the engine."""


def made(address: int, what: str) -> int:
    """The address, which is not 0."""
    if address == 0:
        raise OutOfMemory(what)
    return address


def words(values: Iterable[int]) -> bytes:
    """Signed words as bytes."""
    listed = list(values)
    return struct.pack(f"<{len(listed)}q", *listed)


def string_bits(shape: TableShape) -> int:
    """One bit for each entry word that begins a string."""
    return sum(1 << word for word in shape.string_words)


def new_container(host: Host, slot: Slot) -> int:
    """The address of an empty container of the slot's description; for a WORD its first value."""
    match slot.container:
        case Container.WORD:
            return slot.initial
        case Container.TABLE:
            (shape,) = slot.shapes
            return made(host.function("table_new")(shape.entry_words, string_bits(shape), 0), slot.name)
        case Container.PANES:
            shapes = host.place(words(w for s in slot.shapes for w in (s.entry_words, string_bits(s))))
            return made(host.function("panes_new")(*slot.parameters, len(slot.shapes), shapes), slot.name)
        case Container.BUFFER:
            (shape,) = slot.shapes
            return made(host.function("buffer_new")(shape.entry_words, string_bits(shape)), slot.name)


_DROPS = {Container.TABLE: "table_drop", Container.PANES: "panes_drop", Container.BUFFER: "buffer_drop"}


def new_state(host: Host, stage: Stage) -> int:
    """The address of a state in which nothing has happened."""
    state = host.place(bytes(8 * stage.state_words))
    for slot in stage.slots:
        host.set_word(state, slot.offset, new_container(host, slot))
    return state


def drop_state(host: Host, stage: Stage, state: int) -> None:
    """The containers and the step memory of a state are freed."""
    for slot in stage.slots:
        if slot.container in _DROPS:
            host.function(_DROPS[slot.container])(host.word(state, slot.offset))
            host.set_word(state, slot.offset, 0)
    host.function("step_drop")(state)
