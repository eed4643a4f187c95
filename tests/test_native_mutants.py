"""The tests of allocator, arenas and 128-bit arithmetic notice planted bugs."""

from __future__ import annotations

import pytest
from mutate import Mutant

MEMORY = ("test_native_interleave.py", "test_native_memory.py")
MUTANTS = {
    "a released block is published before it is linked": Mutant(
        "cq.runtime.memory",
        "        st_i64(block, 0, head)\n        if at_cas(pool, head, block):\n            return",
        "        if at_cas(pool, head, block):\n            st_i64(block, 0, head)\n            return",
        MEMORY,
        "schedule",
    ),
    "returned blocks are taken by load and store": Mutant(
        "cq.runtime.memory",
        "    block = at_xchg(pool, 0)",
        "    block = at_load(pool)\n    at_xchg(pool, 0)",
        MEMORY,
        "schedule",
    ),
    "the limit is checked and then forgotten": Mutant(
        "cq.runtime.memory",
        "        if at_cas(heap, used, used + size):\n            return 1",
        "        at_add(heap, size)\n        return 1",
        MEMORY,
        "schedule",
    ),
    "a block goes to the pool of whoever frees it": Mutant(
        "cq.runtime.memory", "    if ld_i64(block, BLOCK_POOL) != pool or", "    if", MEMORY, "another_pool"
    ),
    "a size class is too large by one byte": Mutant(
        "cq.runtime.memory", "((size - 1 - shl(1, power))", "((size - shl(1, power))", MEMORY, "class"
    ),
    "an arena drops the piece that holds the offset": Mutant(
        "cq.runtime.arena", "if first + chunks > limit:", "if first > limit:", MEMORY, "arena"
    ),
    "a larger directory forgets where chunks were": Mutant(
        "cq.runtime.arena", "target = (chunk & (larger - 1))", "target = (chunk & (slots - 1))", MEMORY, "arena"
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
