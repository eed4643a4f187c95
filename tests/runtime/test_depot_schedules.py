"""A depot that closes while its parcels come back, in every schedule: nothing is left, nothing that is gone is used."""

from __future__ import annotations

import pytest
from interleave import explore

from cq.runtime.base.ops import release, st_i64, zalloc
from cq.runtime.base.simulation import memory
from cq.runtime.flow import parcel as p
from cq.runtime.layout.abi import PORT_ROWS

CAPACITY = 4


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    """On the free list: each place that is looked at is a point where another thread may run."""
    monkeypatch.setattr(p, "IDLE_PARCELS", 2)


def depot_with(idle: int, out: int):
    """Sets up a depot of columnless parcels, so many of them on its free list and so many under way."""

    def setup() -> list[int]:
        specs = zalloc(8)
        depot = p.depot_new(0, specs, CAPACITY, CAPACITY)
        release(specs)
        parcels = [p.parcel_get(depot) for _ in range(idle + out)]
        for parcel in parcels[out:]:
            p.parcel_return(parcel)
        return [depot, *parcels[:out]]

    return setup


def close(shared: list[int]) -> None:
    p.depot_close(shared[0])


def give_back(number: int):
    return lambda shared: p.parcel_return(shared[number])


def all_is_gone(_: list[int], __: list[object]) -> None:
    memory().check_no_leaks()


@pytest.mark.parametrize("idle", [0, 1])
def test_a_parcel_that_comes_back_while_its_depot_closes_leaves_nothing(idle):
    """I2 of parcels: whoever comes second, the one that closes or the one that returns, frees parcel and depot."""
    assert explore(depot_with(idle, 1), [close, give_back(1)], all_is_gone, preemptions=3).complete


def test_parcels_that_come_back_together_while_their_depot_closes_leave_nothing():
    threads = [close, give_back(1), give_back(2)]
    assert explore(depot_with(0, 2), threads, all_is_gone, preemptions=2).complete


def test_a_parcel_that_came_back_is_taken_by_one_of_those_who_look():
    """I1 of parcels: idle or with one owner, while another one comes back."""

    def take(shared: list[int]) -> int:
        parcel = p.parcel_get(shared[0])
        st_i64(parcel, p.PARCEL_PORT + PORT_ROWS, 1)  # as its owner: what was done to it before must be over
        return parcel

    def check(shared: list[int], results: list[int | None]) -> None:
        taken = [parcel for parcel in results if parcel]
        assert len(set(taken)) == len(taken) == 2
        for parcel in taken:
            p.parcel_return(parcel)
        close(shared)
        all_is_gone(shared, results)

    assert explore(depot_with(1, 1), [take, take, give_back(1)], check, preemptions=2).complete
