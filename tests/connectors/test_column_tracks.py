"""Tracks advanced by several threads: they stay in step, none runs away, an error comes out in its place."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from cq.connectors.column_tracks import MOST_AHEAD, MOST_APART, STEPS_AHEAD, ColumnTracks, Track


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


def tracks(watched: list[Watched]) -> list[Track[int]]:
    """Each a place of its own, in every step."""
    return [Track(place, iter(range(w.items)), iter(w)) for place, w in enumerate(watched)]


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_tracks_stay_in_step(helpers: int) -> None:
    watched = [Watched(500) for _ in range(5)]
    steps = list(ColumnTracks(tracks(watched), helpers, "t"))
    assert steps == [[n] * 5 for n in range(1, 501)]
    assert not any(w.shared for w in watched)


@pytest.mark.parametrize("helpers", [0, 1, 3])
@pytest.mark.parametrize("stretch", [1, 7, 40])
def test_tracks_that_take_turns_give_every_step_once(helpers: int, stretch: int) -> None:
    steps = range(300)
    turns = [[s for s in steps if s // stretch % 2 == turn] for turn in (0, 1)]
    watched = [Watched(300), *(Watched(len(mine)) for mine in turns)]
    mine = [Track(1, iter(t), map([-1, *t].__getitem__, w)) for t, w in zip(turns, watched[1:], strict=True)]
    found = list(ColumnTracks([*mine, Track(0, iter(steps), iter(watched[0]))], helpers, "t"))
    assert found == [[s + 1, s] for s in steps]
    assert not any(w.shared for w in watched)


def test_track_of_a_later_stretch() -> None:
    first, later, other = Watched(18), Watched(18), Watched(36)
    steps = iter(
        ColumnTracks([Track(0, iter(range(18)), iter(first)), Track(0, iter(range(18, 36)), iter(later)),
                  Track(1, iter(range(36)), iter(other))], 1, "t")
    )  # fmt: skip
    for taken in range(1, 37):
        next(steps)
        assert first.made <= taken + STEPS_AHEAD and other.made <= taken + STEPS_AHEAD
        assert later.made <= MOST_APART + STEPS_AHEAD + 1 and later.made + 18 <= max(taken + MOST_AHEAD, 18)
    assert later.made == 18 and next(steps, None) is None


def test_no_track_runs_away() -> None:
    watched = [Watched(100) for _ in range(3)]
    steps = iter(ColumnTracks(tracks(watched), 2, "t"))
    for taken in range(1, 101):
        next(steps)
        assert all(taken <= w.made <= taken + STEPS_AHEAD for w in watched)
    assert next(steps, None) is None


@pytest.mark.parametrize("helpers", [0, 2])
def test_error_comes_out_at_its_step_and_the_first_place_decides(helpers: int) -> None:
    watched = [Watched(50), Watched(50, "second", 20), Watched(50, "third", 20), Watched(50, "fourth", 21)]
    steps = iter(ColumnTracks(tracks(watched), helpers, "t"))
    assert [next(steps) for _ in range(20)] == [[n] * 4 for n in range(1, 21)]
    with pytest.raises(ValueError, match="second"):
        next(steps)


def test_helpers_have_ended_when_the_reader_stops_early() -> None:
    steps = iter(ColumnTracks(tracks([Watched(1_000_000) for _ in range(4)]), 3, "early"))
    next(steps)
    steps.close()
    assert not [t for t in threading.enumerate() if t.name == "cq-decode-early"]


def test_nothing_is_advanced_before_the_first_step_is_asked_for() -> None:
    watched = Watched(10)
    steps = ColumnTracks(tracks([watched]), 2, "idle")
    assert watched.made == 0
    assert not [t for t in threading.enumerate() if t.name == "cq-decode-idle"]
    assert len(list(steps)) == 10
