"""The planner must not know the binary contract, and keeps to what that has room for: its limits are tied to it here."""

from __future__ import annotations

from cq.planner.physical.choose import MOST_PARTS
from cq.runtime.engine.ways import deals


def test_parts_by_key_are_as_many_as_the_byte_of_a_row_tells_apart() -> None:
    assert MOST_PARTS == deals.MOST_PARTS == 2**8 - 1
