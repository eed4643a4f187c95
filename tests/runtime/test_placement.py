"""Which shares of transactions workers take: under every placement all of them, and each placement in its own order."""

from __future__ import annotations

import itertools

import pytest

from cq.runtime.engine.plant import power_of_two
from cq.runtime.engine.ways.chains import SHARES_A_WORKER
from cq.runtime.engine.ways.placement import homes_of, shares_of
from cq.ways import PLACEMENTS

MACHINES = list(itertools.product(range(1, 18), range(1, 5)))  # workers, sockets


def orders(placement: str, workers: int, sockets: int) -> list[tuple[int, ...]]:
    count = power_of_two(SHARES_A_WORKER * workers)
    return [shares_of(placement, w, homes_of(workers, sockets), count) for w in range(workers)]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_share_is_some_workers_and_no_worker_looks_twice(placement: str) -> None:
    for workers, sockets in MACHINES:
        taken = orders(placement, workers, sockets)
        count = power_of_two(SHARES_A_WORKER * workers)
        assert {share for own in taken for share in own} == set(range(count))
        assert all(len(set(own)) == len(own) >= SHARES_A_WORKER for own in taken)


def test_an_unknown_placement_is_no_other_one() -> None:
    """It was stealing."""
    with pytest.raises(KeyError, match="probe"):
        shares_of("probe", 0, (0,), 4)


def test_a_worker_has_shares_of_its_own_and_keeps_to_them_or_begins_with_them() -> None:
    for workers, sockets in MACHINES:
        nothing, stealing = orders("shared_nothing", workers, sockets), orders("stealing", workers, sockets)
        count = power_of_two(SHARES_A_WORKER * workers)
        assert sum(map(len, nothing)) == count and max(map(len, nothing)) - min(map(len, nothing)) <= 1
        assert all(own[: len(alone)] == alone for own, alone in zip(stealing, nothing, strict=True))
        assert all(len(own) == count for own in stealing)
        assert orders("shared_everything", workers, sockets) == [tuple(range(count))] * workers


def test_a_worker_takes_those_of_its_socket_before_those_of_others() -> None:
    assert homes_of(4, 2) == (0, 0, 1, 1) and homes_of(3, 2) == (0, 0, 1) and homes_of(2, 4) == (0, 2)
    #                                         own         of its socket, then of the other one
    assert orders("per_socket", 4, 2)[1] == (4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15)
    assert orders("per_socket", 4, 2)[2] == (8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
    for workers, _ in MACHINES:
        assert orders("per_socket", workers, 1) == orders("stealing", workers, 1)
