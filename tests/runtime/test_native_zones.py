"""Distances of time zones that kernels look up are those of `cq.lang.zones`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from both_ways import Compiled, Interpreted

from cq.codegen.expressions.zone_tables import zone_table
from cq.lang.zones import CYCLE_END_US, CYCLE_START_US, CYCLE_US, zone_of
from cq.runtime.values.zones import zone_offset


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__)
def run(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param(zone_offset) as run:
        yield run


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Tokyo", "+05:45"])
@pytest.mark.parametrize("by_local_time", [False, True])
def test_distance_is_that_of_the_table(run: Any, name: str, by_local_time: bool) -> None:
    zone, table = zone_of(name), run.place(zone_table(name, by_local_time))
    changes, rng = zone.local if by_local_time else zone.utc, random.Random(name)
    times = [t + by for t in (*changes[:20], *changes[-20:]) for by in (-1, 0, 1)]
    times += [-(2**63), 2**63 - 1, CYCLE_START_US, *(CYCLE_END_US + by for by in (-1, 0, 1, CYCLE_US))]
    times += [rng.randrange(-(2**62), 2**62) for _ in range(50)] + [rng.randrange(-(2**52), 2**54) for _ in range(100)]
    for time in times:
        expected = zone.offset_of(time) if by_local_time else zone.offset_at(time)
        assert run.zone_offset(table, time) == expected, time
