"""Queries of the tests with tokens and clauses changed are refused with a code and a place, or run alike on both."""

from __future__ import annotations

from collections import Counter

import pytest
from mutated_text import mutated, said_of

SLICE, LONG = range(0, 600, 150), range(600, 30_000, 150)


@pytest.mark.parametrize("first", [*SLICE, *(pytest.param(n, marks=pytest.mark.long) for n in LONG)])
def test_a_query_with_mistakes_is_refused_or_means_the_same_everywhere(first: int) -> None:
    came: Counter[str] = Counter()
    for seed in range(first, first + 150):
        kind, said = said_of(seed)
        assert not said, said
        came[kind] += 1
    assert came["refused"] and came["run"]


def test_mutants_are_those_of_their_seeds_and_differ_from_what_they_were() -> None:
    made = [mutated(seed) for seed in range(50)]
    assert made == [mutated(seed) for seed in range(50)]
    assert sum(text != source.head + source.query for source, text in made) > 40
