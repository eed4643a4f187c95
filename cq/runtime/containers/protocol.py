"""Containers: each declares how the engine makes, saves and drops it, in the file that defines it.

A container is a structure behind a word of a stage's state: it is made empty, filled by kernels, measured while the
stage runs, saved as flat words and loaded again, and freed. `register` names its native functions by role; code that
builds, measures, saves or frees states looks them up by role. To add one, add a file to this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from cq.entries import enter
from cq.records import dataclass
from cq.runtime.base.interpret import CONTAINERS, load_modules
from cq.runtime.base.native import native, unfit
from cq.runtime.base.ops import ld_i64, st_i64
from cq.runtime.layout.pipeline import Slot, TableShape
from cq.runtime.layout.words import Struct

Native = Callable[..., Any]
Place = Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class Apart:
    """How a collector takes over containers filled by workers, one each (cq/runtime/engine/ways/parts.py).

    hand_over(container, target, part, watermark): moves what closes at or before the watermark to the target; returns
    how many groups that are, or -1 without memory. part: its number, above 0.
    groups(container, lasting): how many groups it holds; lasting: 1: only those that no watermark closes.
    A group is a unit of work: merging it takes about as long as filling it with a few rows.
    """

    hand_over: Native
    groups: Native


@dataclass(frozen=True, slots=True)
class Container:
    """One kind of container, by the name that slots give.

    new(*arguments): the address of an empty one, or 0.  arguments: what `new` takes for a slot; its second argument
    places bytes and returns their address.  drop(container): frees it; 0 is none.
    saved_words(container): the most words that save(container, target) writes; that returns how many it wrote.
    load(container, source): adds what was saved; returns the words read, or 0.
    arrivals(container, target): how many arrival numbers its entries hold; target: 0, or where `put_arrival` lists
    them. taken(container): puts in order what it took from others, entry by entry (cq/codegen/move_functions.py); 0
    without memory.
    held_bytes(container): memory it holds.
    settle(container): 1, and it may be saved, and any thread may look things up in it while nothing is added; 0 without
    memory. None: it always may.
    apart: how to collect what workers have filled separately; None: workers may not do that.
    """

    name: str
    arguments: Callable[[Slot, Place], tuple[int, ...]]
    new: Native
    drop: Native
    saved_words: Native
    save: Native
    load: Native
    arrivals: Native
    taken: Native
    held_bytes: Native
    settle: Native | None
    apart: Apart | None


_arrival = Struct("ARRIVAL")
ARRIVAL_NUMBER = _arrival.word()
ARRIVAL_TIE = _arrival.word()  # orders equal numbers
ARRIVAL_PLACE = _arrival.word()  # where the number is
ARRIVAL_WORDS = _arrival.size()


@native("void(i64, i64, i64, i64)")
def put_arrival(target: int, n: int, place: int, tie: int) -> None:
    """Add the n-th arrival number, which is at `place`, to the list at `target`, if there is one."""
    if target != 0:
        st_i64(target, n * ARRIVAL_WORDS + ARRIVAL_NUMBER, ld_i64(place, 0))
        st_i64(target, n * ARRIVAL_WORDS + ARRIVAL_TIE, tie)
        st_i64(target, n * ARRIVAL_WORDS + ARRIVAL_PLACE, place)


ROLES = {"drop": 1, "saved_words": 1, "save": 2, "load": 2, "arrivals": 2, "taken": 1, "held_bytes": 1}
"""With how many arguments a function is called."""

_REGISTERED: dict[str, Container] = {}


def register(container: Container) -> None:
    """Let slots name this container."""
    problems = [*unfit(container, ROLES if container.settle is None else {**ROLES, "settle": 1})]
    if container.apart is not None:
        problems += unfit(container.apart, {"hand_over": 4, "groups": 2})
    enter(_REGISTERED, container.name, container, "container", problems)


@cache
def containers() -> dict[str, Container]:
    """All containers by name."""
    load_modules(CONTAINERS)
    return _REGISTERED


def container_of(slot: Slot) -> Container | None:
    """The container behind a slot; None for a plain word."""
    return containers()[slot.container] if slot.container else None


def string_bits(shape: TableShape) -> int:
    """One bit for each entry word that begins a string."""
    return sum(1 << word for word in shape.string_words)


def arrival_bits(shape: TableShape) -> int:
    """One bit for each entry word that holds an arrival."""
    return sum(1 << word for word in shape.arrival_words)
