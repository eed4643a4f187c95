"""Runners: each declares how the engine runs the stages of one way (cq/ways.py), in the file that defines it.

A stage consists of what all stages have (cq/runtime/engine/build.py) and what its runner adds. Workers know a runner by
the addresses of its native functions, which are in the stage's words. To add one, name its way and add a file to this
folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from cq.entries import enter
from cq.records import dataclass
from cq.runtime.base.interpret import WAYS, load_modules
from cq.runtime.base.native import unfit
from cq.runtime.engine.plant import Plant
from cq.runtime.layout.pipeline import StageSpec
from cq.ways import Way

if TYPE_CHECKING:  # a host needs llvmlite; native functions are read where it may be absent
    from cq.runtime.base.host import Host

Native = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Making:
    """A stage being made: its number in the pipeline and its address. entries: of its kernel's module, by name."""

    plant: Plant
    number: int
    address: int
    batch_rows: int
    entries: dict[str, int]

    @property
    def spec(self) -> StageSpec:
        return self.plant.pipeline.stages[self.number]

    @property
    def is_last(self) -> bool:
        return self.number == len(self.plant.pipeline.stages) - 1


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs stages one way.

    build(making): makes its states, its tasks and what else it needs, all freed with the plant.
    describe(host, stage): the way in words, as `explain` shows it.
    serve(stage, worker): how much one worker could do for the stage now; 0 if nothing.
    idle(stage): 1 if it has nothing to do and nothing to send; holds while nothing new comes in.
    flush(stage): sends rows that it kept to send them together, and returns 1; None: it keeps none.
    alone: whether one worker at a time is inside.  emptied: whether its ports are emptied after every item.
    """

    way: Way
    build: Callable[[Making], None]
    describe: Callable[[Host, int], str]
    serve: Native
    idle: Native
    flush: Native | None
    alone: bool
    emptied: bool


ROLES = {"serve": 2, "idle": 1}
"""With how many arguments a function is called."""

_REGISTERED: dict[Way, Runner] = {}


def register(runner: Runner) -> None:
    """Register the runner of its way."""
    problems = [*unfit(runner, ROLES if runner.flush is None else {**ROLES, "flush": 1})]
    if runner.alone and runner.way.traits.spreads:
        problems.append(f"has one worker at a time, and spreads work: {', '.join(runner.way.traits.spreads)}")
    enter(_REGISTERED, runner.way, runner, "runner", problems)


@cache
def runners() -> dict[Way, Runner]:
    """One runner for each way."""
    load_modules(WAYS)
    missing = [way.name for way in Way if way not in _REGISTERED]
    assert not missing, f"no runner for {', '.join(missing)}"
    return _REGISTERED
