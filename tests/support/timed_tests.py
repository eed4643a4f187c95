"""Tests that are slow or never end, run only by tests/project/test_mutate.py."""

from __future__ import annotations

import time

import pytest

from cq.runtime.engine.ways.placement import shares_of


def found() -> tuple[int, ...]:
    """(0,); test_mutate.py plants a bug."""
    return shares_of("shared_nothing", 0, (0,), 1)


@pytest.mark.parametrize("_", range(3))
def test_slow(_: int) -> None:
    """0.6 s of the second that one test has; all three take more."""
    end = time.process_time() + 0.6
    while time.process_time() < end:
        assert found() == (0,)


def test_waiting() -> None:
    while not found():
        pass


def test_endless() -> None:
    while True:
        found()
