"""Timing: contenders take turns within each round, and medians and ratios within rounds are reported.

The machine may be shared. Turns within a round see the same load, so a ratio is taken within each round and then the
median over the rounds; CPU seconds of the process are reported beside the wall clock.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

Contender = Callable[[], int | None]
"""Do all the work once and return the number of result rows, or None if it is not to be compared."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a contender."""

    wall_s: float
    cpu_s: float


@dataclass(slots=True)
class Race:
    """All rounds of some contenders over the same input. units: in one run (rows, words)."""

    units: int
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    def wall_s(self, name: str) -> list[float]:
        return [t.wall_s for t in self.turns[name]]

    def cpu_s(self, name: str) -> list[float]:
        return [t.cpu_s for t in self.turns[name]]

    def rate(self, name: str) -> float:
        """Millions of units a second, by the wall clock: the median."""
        return self.units / median(self.wall_s(name)) / 1e6

    def spread(self, name: str) -> tuple[float, float]:
        """The lowest and the highest rate by the wall clock."""
        times = self.wall_s(name)
        return self.units / max(times) / 1e6, self.units / min(times) / 1e6

    def cpu_rate(self, name: str) -> float:
        """Millions of units a CPU second: the median."""
        return self.units / median(self.cpu_s(name)) / 1e6

    def faster(self, name: str, other: str, by: str = "wall") -> float | None:
        """How many times as fast as `other`: the median of the ratios within rounds. by: wall, cpu."""
        if name not in self.turns or other not in self.turns:
            return None
        times = self.wall_s if by == "wall" else self.cpu_s
        return median(b / a for a, b in zip(times(name), times(other), strict=True))


def run_race(units: int, contenders: Mapping[str, Contender], rounds: int) -> Race:
    """Every contender once per round, with a different one first each time; a warm-up round is not counted."""
    race = Race(units, {name: [] for name in contenders})
    names = list(contenders)
    rows = {name: contenders[name]() for name in names}
    assert len(set(rows.values()) - {None}) <= 1, f"contenders disagree about the number of result rows: {rows}"
    for number in range(rounds):
        for name in _rotated(names, number):
            race.turns[name].append(timed(contenders[name]))
    return race


def _rotated(names: Sequence[str], by: int) -> list[str]:
    at = by % len(names)
    return [*names[at:], *names[:at]]


def timed(contender: Contender) -> Turn:
    """One run; garbage of earlier ones is collected before it begins."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    contender()
    return Turn(time.perf_counter() - wall, time.process_time() - cpu)
