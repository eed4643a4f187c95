"""Relations between runs hold for random queries: parts make the whole, first rows give first results, and the order in
which rows come within the delay changes nothing for what goes by time."""

from __future__ import annotations

import pytest
from random_relations import parted, prefixed, reordered


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_a_condition_parts_the_rows_of_a_view(first: int) -> None:
    assert not [said for seed in range(first, first + 40) if (said := parted(seed))]


def test_the_first_rows_give_the_first_results() -> None:
    found = [prefixed(seed) for seed in range(150)]
    assert not [said for said in found if said]
    assert sum(said is not None for said in found) > 30


def test_rows_in_another_order_within_the_delay_give_the_same_by_time() -> None:
    assert not [said for seed in range(6) for said in reordered(seed)]
