"""The state of a stage: words, and the containers that its slots describe.

A state is a block of words. `new_state` makes what its slots describe, `drop_state` frees it. Only described words are
state: a snapshot walks the slots and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cq.runtime.containers.protocol import container_of
from cq.runtime.layout.abi import STRING_SLACK_BYTES
from cq.runtime.layout.pipeline import Slot, StageSpec

if TYPE_CHECKING:  # a host needs llvmlite; the files of this folder are read where it may be absent
    from cq.runtime.base.host import Host


class OutOfMemory(Exception):
    """There is no memory, or the limit leaves none, for a structure of the engine."""


def made(address: int, what: str) -> int:
    """Check that the address is not 0, and return it."""
    if address == 0:
        raise OutOfMemory(what)
    return address


def words(values: Iterable[int]) -> bytes:
    """Signed words as bytes."""
    listed = list(values)
    return struct.pack(f"<{len(listed)}q", *listed)


def native_name(function: Callable[..., Any]) -> str:
    """The name of a native function in a host."""
    return str(function.__name__)


def new_state(host: Host, stage: StageSpec) -> int:
    """The address of a new state."""
    state = host.place(bytes(8 * stage.state_words))
    for slot in stage.slots:
        if slot.container:
            host.set_word(state, slot.offset, new_container(host, slot))
    return state


def drop_state(host: Host, stage: StageSpec, state: int) -> None:
    """Free the containers and the step memory of a state."""
    for slot in stage.slots:
        if (container := container_of(slot)) is not None:
            host.function(native_name(container.drop))(host.word(state, slot.offset))
            host.set_word(state, slot.offset, 0)
    host.function("step_drop")(state)


def weighed_slots(host: Host, stage: StageSpec) -> list[int]:
    """The argument of `state_held_bytes`: for each container its offset, and the address of what measures it."""
    found: list[int] = []
    for slot in stage.slots:
        if (container := container_of(slot)) is not None:
            found += [slot.offset, host.address(native_name(container.held_bytes))]
    return found


def settled_slots(host: Host, stage: StageSpec) -> list[int]:
    """The argument of `state_settle`: for each container to settle its offset, and the address of what settles it."""
    found: list[int] = []
    for slot in stage.slots:
        if (container := container_of(slot)) is not None and container.settle is not None:
            found += [slot.offset, host.address(native_name(container.settle))]
    return found


def held_by_operator(host: Host, stage: StageSpec, states: Sequence[int]) -> dict[str, int]:
    """Bytes that the containers in these states of a stage hold, by the identity of the operator they belong to."""
    found: dict[str, int] = {}
    for slot in stage.slots:
        if (container := container_of(slot)) is not None:
            weigh = host.function(native_name(container.held_bytes))
            held = sum(weigh(host.word(state, slot.offset)) for state in states)
            found[slot.node] = found.get(slot.node, 0) + held
    return found


def save_slot(host: Host, slot: Slot, word: int) -> bytes:
    """The contents of a slot of a state, as bytes without addresses."""
    container = container_of(slot)
    if container is None:
        return struct.pack("<q", word)
    if container.settle is not None:
        made(host.function(native_name(container.settle))(word), slot.name)
    size = 8 * host.function(native_name(container.saved_words))(word)
    room = made(host.function("room_new")(size), slot.name)
    try:
        written = 8 * host.function(native_name(container.save))(word, room)
        return host.read(room, written)
    finally:
        host.function("room_drop")(room)


def load_slot(host: Host, slot: Slot, state: int, content: bytes) -> bool:
    """Load the saved contents of such a slot into the state, beside its own; return whether that succeeded."""
    if container_of(slot) is None:
        host.set_word(state, slot.offset, struct.unpack("<q", content)[0])
        return True
    return load_container(host, slot, host.word(state, slot.offset), content)


def new_container(host: Host, slot: Slot) -> int:
    """An empty container of the slot's kind."""
    container = container_of(slot)
    assert container is not None, "a plain word"
    return made(host.function(native_name(container.new))(*container.arguments(slot, host.place)), slot.name)


def load_container(host: Host, slot: Slot, address: int, content: bytes) -> bool:
    """Load the saved contents of such a slot into the container, beside its own; return whether that succeeded."""
    container = container_of(slot)
    assert container is not None, "a plain word"
    load = host.function(native_name(container.load))
    with lent(host, content, slot.name) as saved:
        return bool(8 * load(address, saved) == len(content))


@contextmanager
def lent(host: Host, content: bytes, what: str) -> Iterator[int]:
    """The address of a temporary copy of the bytes; some bytes after it may be read."""
    room = made(host.function("room_new")(len(content) + STRING_SLACK_BYTES), what)
    try:
        host.write(room, content)
        yield room
    finally:
        host.function("room_drop")(room)
