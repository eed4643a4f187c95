"""What a way of running a stage says about itself, once, in the file that defines it.

A stage is made of what all stages have (cq/runtime/engine/build.py) and what its way adds. Workers know a way by the
addresses of its native functions, which stand in the stage's words. To add one, add a file to this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cq.runtime.base.interpret import WAYS, load_modules
from cq.runtime.engine.plant import Plant
from cq.runtime.layout.job import Stage, StageKind

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

Native = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Making:
    """A stage being made: its number in the job and its address. entries: of its kernel's module, by name."""

    plant: Plant
    number: int
    address: int
    batch_rows: int
    entries: dict[str, int]

    @property
    def spec(self) -> Stage:
        return self.plant.job.stages[self.number]

    @property
    def is_last(self) -> bool:
        return self.number == len(self.plant.job.stages) - 1


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running a stage.

    build(making): its states, its tasks and what else it needs are there, dropped with the plant.
    describe(host, stage): the way in words, as `explain` has it.
    serve(stage, worker): how much one worker could do for the stage now; 0 when nothing.
    idle(stage): 1 when it has nothing to do and nothing to send; holds while nothing new comes in.
    flush(stage): 1 and rows that it kept for company are sent; None: it keeps none.
    alone: whether one worker at a time is inside.  emptied: whether its ports are emptied after every item.
    """

    kind: StageKind
    build: Callable[[Making], None]
    describe: Callable[[Host, int], str]
    serve: Native
    idle: Native
    flush: Native | None
    alone: bool
    emptied: bool


_REGISTERED: dict[StageKind, Way] = {}


def register(way: Way) -> None:
    """Stages of this kind are run this way."""
    assert way.kind not in _REGISTERED, f"there is a way for {way.kind.value} stages"
    _REGISTERED[way.kind] = way


@cache
def ways() -> dict[StageKind, Way]:
    """All ways, by the kind of stage they run."""
    load_modules(WAYS)
    return _REGISTERED


def way_of(spec: Stage, workers: int) -> Way:
    """How a stage is run by so many workers. A single one needs no order restored."""
    alone = spec.kind is StageKind.STATELESS and workers == 1
    return ways()[StageKind.STATEFUL if alone else spec.kind]
