"""The watermarks of a batch's rows: filled as the definition says, searched as a list is."""

from __future__ import annotations

import bisect
import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.flow.watermarks import marks_fill, marks_follow, marks_reach


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request):
    with request.param(marks_fill, marks_follow, marks_reach) as made:
        yield made


@pytest.mark.parametrize("seed", range(5))
def test_first_place_that_reached_an_instant_is_found_wherever_the_search_begins(run, seed):
    dice = random.Random(seed)
    size = dice.choice([1, 2, 7, 100])
    marks = sorted(dice.randrange(2 * size) for _ in range(size))
    at = run.place_words(*marks)
    for instant in range(-1, 2 * size + 1):
        reached = bisect.bisect_left(marks, instant)
        for first in {0, reached // 2, reached, min(reached + 1, size)}:
            for last in {first, (first + size) // 2, size}:
                assert run.marks_reach(at, first, last, instant) == max(first, min(reached, last))


def test_watermarks_follow_the_maximum_but_not_past_the_other_sources_and_never_fall(run):
    times = [5, 3, 9, 9, 20, 30]
    marks = run.zeros(6 * 8)
    run.marks_follow(marks, 6, run.place_words(*times), 4, 2, 12, 4)
    assert run.words(marks, 6) == [4, 4, 7, 7, 12, 12]
    run.marks_fill(marks, 2, 99)
    assert run.words(marks, 6) == [99, 99, 7, 7, 12, 12]
