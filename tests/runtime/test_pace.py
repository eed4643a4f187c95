"""How many events a punctuation has where that adapts: the rule, and what it comes to by what punctuations cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from cq.runtime.base.ops import ld_i64, st_i64, zalloc
from cq.runtime.base.simulation import Memory
from cq.runtime.engine.ways import pace
from cq.runtime.engine.ways.pace import (
    FIRST_RUNG,
    LADDER,
    LATENCY_NS,
    PACE_ADMISSION,
    PACE_BEHIND,
    PACE_LADDER,
    PACE_MOST,
    PACE_RUNG,
    PACE_WORDS,
    pace_note,
    pace_step,
)
from cq.runtime.flow.admission_words import ADMISSION_INTERVAL, ADMISSION_WORDS

MOST, FAST = len(LADDER) - 1, LATENCY_NS // 2


def test_a_longer_one_is_tried_and_kept_only_if_an_event_takes_less() -> None:
    assert pace_step(10, MOST, 0, 1000, 0, FAST) == 1  # it is not known yet what a longer one gives
    assert pace_step(11, MOST, 1, 960, 1000, FAST) == 1  # better: and on
    assert pace_step(11, MOST, 1, 980, 1000, FAST) == -1  # by less than noise
    assert pace_step(10, 10, 0, 1000, 980, FAST) == 0  # none may be tried now
    assert pace_step(MOST, MOST, 0, 1000, 0, FAST) == 0


def test_a_shorter_one_is_taken_where_results_wait_too_long() -> None:
    assert pace_step(11, MOST, 1, 500, 1000, LATENCY_NS + 1) == -1  # however much it gains
    assert pace_step(5, MOST, 0, 1000, 0, LATENCY_NS + 1) == -1
    assert pace_step(0, MOST, 0, 1000, 0, LATENCY_NS + 1) == 0


@pytest.fixture
def memory() -> Iterator[None]:
    with Memory():
        yield


def wander(
    monkeypatch: pytest.MonkeyPatch, event_ns: Callable[[int], float], most: int = LADDER[-1], count: int = 6_000
) -> list[int]:
    """The lengths of punctuations of which an event takes so long, by their length. Nine are on their way."""
    now = 1_000
    monkeypatch.setattr(pace, "clock_ns", lambda: now)
    admission, state = zalloc(ADMISSION_WORDS * 8), zalloc(PACE_WORDS * 8)
    ladder = zalloc(len(LADDER) * 8)
    for n, events in enumerate(LADDER):
        st_i64(ladder, n, events)
    given = {PACE_ADMISSION: admission, PACE_LADDER: ladder, PACE_MOST: most, PACE_BEHIND: 9, PACE_RUNG: FIRST_RUNG}
    for word, value in given.items():
        st_i64(state, word, value)
    pace.pace_tell(state)
    waiting = [ld_i64(admission, ADMISSION_INTERVAL)] * 9
    found = []
    for _ in range(count):
        waiting.append(ld_i64(admission, ADMISSION_INTERVAL))
        rows, begun = waiting.pop(0), now
        now += round(rows * event_ns(rows))
        pace_note(state, rows, begun, 1)
        found.append(rows)
    return found


@pytest.mark.usefixtures("memory")
def test_punctuations_grow_until_a_longer_one_gains_little(monkeypatch: pytest.MonkeyPatch) -> None:
    # 100 ns an event and 30 µs a punctuation: 2,000 events gain 3.2 % over 1,600, and 2,500 another 2.6 %
    found = wander(monkeypatch, lambda rows: 100 + 30_000 / rows)
    assert sorted(found[-3000:])[1500] == 2_000
    assert max(found) == 2_500 and found[-3000:].count(2_500) < 300  # which is tried from time to time


@pytest.mark.usefixtures("memory")
def test_punctuations_become_shorter_until_they_take_as_long_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    found = wander(monkeypatch, lambda rows: 4_000)  # 500 events take 2 ms
    assert sorted(found[-3000:])[1500] == LATENCY_NS // 4_000 == 125
    assert min(found) == 125


@pytest.mark.usefixtures("memory")
def test_an_interrupted_worker_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(1)
    found = wander(monkeypatch, lambda rows: 100 + 30_000 / rows + (r.random() < 0.2) * 50_000)
    assert 1_000 <= sorted(found[-3000:])[1500] <= 2_500


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("most", [1, 3, 700, 10_000])
def test_punctuations_keep_within_the_ladder(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    r = random.Random(most)
    found = wander(monkeypatch, lambda rows: r.choice((1, 100, 10_000)), most)
    assert set(found) <= {min(events, most) for events in LADDER}
    falling = wander(monkeypatch, lambda rows: 100_000 / rows, most)  # an event costs less and less
    assert max(falling) == most
