"""Relations between runs hold for random queries: parts make the whole, first rows give first results, and neither the
order in which rows come within the delay nor the stream they come from changes what does not go by position."""

from __future__ import annotations

import pytest
from random_relations import parted, prefixed, reordered
from random_unordered import in_other_ways


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", range(0, 60, 30))
def test_a_condition_parts_the_rows_of_a_view(first: int) -> None:
    assert not [said for seed in range(first, first + 30) if (said := parted(seed))]


def test_the_first_rows_give_the_first_results() -> None:
    found = [prefixed(seed) for seed in range(50)]
    assert not [said for said in found if said]
    assert sum(said is not None for said in found) > 10


def test_rows_in_another_order_within_the_delay_give_the_same_by_time() -> None:
    assert not [said for seed in range(3) for said in reordered(seed)]


def test_rows_that_are_moved_or_come_as_two_streams_give_the_same() -> None:
    found = [in_other_ways(seed) for seed in range(12)]
    assert not [said for said in found if said]
    assert sum(said is not None for said in found) > 9
