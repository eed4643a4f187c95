"""The tests of kept memory and of 128-bit arithmetic notice planted bugs."""

from __future__ import annotations

import pytest
from mutate import Mutant

MEMORY = ("test_native_memory.py",)
MUTANTS = {
    "a kept block is taken by load and store": Mutant(
        "cq.runtime.shelf",
        "            thing = at_xchg(place, 0)",
        "            thing = at_load(place)\n            at_xchg(place, 0)",
        MEMORY,
        "schedule",
    ),
    "a place is filled without a look at what is in it": Mutant(
        "cq.runtime.shelf", "at_cas(place, 0, thing)", "at_xchg(place, thing) == 0", MEMORY, "schedule"
    ),
    "kept blocks are not counted": Mutant(
        "cq.runtime.memory", "if at_add(kept_words(), room) + room <= MOST_KEPT_BYTES:", "if room > 0:", MEMORY, "most"
    ),
    "a kept block is not zeroed": Mutant(
        "cq.runtime.memory", "            if zero == 1:", "            if zero == 2:", MEMORY, "zero"
    ),
    "a shelf is too small by one byte": Mutant(
        "cq.runtime.memory", "clz(size - EXTRA_BYTES - 1)", "clz(size - EXTRA_BYTES - 2)", MEMORY, "shelf"
    ),
    "ties are rounded up": Mutant(
        "cq.runtime.wide", "(rest != 0 or significand & 1 == 1)", "(rest != 0 or significand >= 0)",
        ("test_native_wide.py",),
    ),
    "the rest of an average is forgotten": Mutant(
        "cq.runtime.wide", "_to_double(q_hi, q_lo, rest)", "_to_double(q_hi, q_lo, 0)", ("test_native_wide.py",)
    ),
}  # fmt: skip


@pytest.mark.mutants
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_noticed(name):
    caught, said = MUTANTS[name].verdict()
    assert caught, said
