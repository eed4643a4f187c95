"""Iterators advanced by several threads: they stay in step, none runs away, an error comes out in its place."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from cq.connectors.lockstep import STEPS_AHEAD, Lockstep


class Watched:
    """Counts to `items`; knows how far it is and whether two threads were in it at once."""

    def __init__(self, items: int, name: str = "", fails_at: int = -1) -> None:
        self.items, self.name, self.fails_at = items, name, fails_at
        self.made, self.inside, self.shared = 0, 0, False

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.inside += 1
        self.shared |= self.inside > 1
        for _ in range(random.Random(self.made).randrange(200)):
            pass  # uneven work, so that threads overtake one another
        try:
            if self.made == self.fails_at:
                raise ValueError(self.name)
            if self.made == self.items:
                raise StopIteration
            self.made += 1
            return self.made
        finally:
            self.inside -= 1


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_iterators_stay_in_step(helpers: int) -> None:
    watched = [Watched(500) for _ in range(5)]
    steps = list(Lockstep([iter(w) for w in watched], helpers, "t"))
    assert steps == [[n] * 5 for n in range(1, 501)]
    assert not any(w.shared for w in watched)


def test_no_iterator_runs_away() -> None:
    watched = [Watched(100) for _ in range(3)]
    steps = iter(Lockstep([iter(w) for w in watched], 2, "t"))
    for taken in range(1, 101):
        next(steps)
        assert all(taken <= w.made <= taken + STEPS_AHEAD for w in watched)
    assert next(steps, None) is None


@pytest.mark.parametrize("helpers", [0, 2])
def test_error_comes_out_at_its_step_and_the_first_iterator_decides(helpers: int) -> None:
    watched = [Watched(50), Watched(50, "second", 20), Watched(50, "third", 20), Watched(50, "fourth", 21)]
    steps = iter(Lockstep([iter(w) for w in watched], helpers, "t"))
    assert [next(steps) for _ in range(20)] == [[n] * 4 for n in range(1, 21)]
    with pytest.raises(ValueError, match="second"):
        next(steps)


def test_helpers_have_ended_when_the_reader_stops_early() -> None:
    steps = iter(Lockstep([iter(Watched(1_000_000)) for _ in range(4)], 3, "early"))
    next(steps)
    steps.close()
    assert not [t for t in threading.enumerate() if t.name == "cq-decode-early"]


def test_nothing_is_advanced_before_the_first_step_is_asked_for() -> None:
    watched = Watched(10)
    lockstep = Lockstep([iter(watched)], 2, "idle")
    assert watched.made == 0
    assert not [t for t in threading.enumerate() if t.name == "cq-decode-idle"]
    assert len(list(lockstep)) == 10
