"""Random queries over random rows: native, compiled and interpreted, is the reference bit for bit; Spark its multiset.

The long command is `python -m tests.random_soak` (tests/README.md); each test here runs a chunk as it does, in a
process of its own. What is found is printed with its seed and as a case for tests/slt.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from random_chunk import spark_chunk
from random_coverage import FIRST_SEED, queries_of_constructs
from random_soak import Chunk, in_process
from spark_fixture import spark  # noqa: F401

pytestmark = pytest.mark.timeout(3_600)  # a chunk takes a minute, and longer the busier the machine is

COMPILED = [Chunk("compiled", 1_000_000 + 20 * n, 10, 14) for n in range(2)]  # 140 cases over 10 plans each
INTERPRETED = [Chunk("interpreted", 130 * n, 55, 1) for n in range(2)]  # 55 plans each
SPARK_PLANS = 6


def counts_of(chunk: Chunk) -> dict[str, Any]:
    """What the chunk's process counted, once nothing was found, and plans are seldom alike or refused."""
    result = in_process(chunk)
    assert "crash" not in result, result["crash"]
    mismatches, modules, counts = result["mismatches"], result["modules"], result["counts"]
    assert isinstance(mismatches, list) and isinstance(modules, list) and isinstance(counts, dict)
    assert not mismatches, "\n\n".join(mismatches)
    assert len(modules) >= 0.9 * chunk.plans, counts
    return counts


@pytest.mark.one_in(2)
@pytest.mark.optimised
@pytest.mark.parametrize("chunk", COMPILED, ids=lambda c: f"seeds {c.first}")
def test_compiled_plans_are_the_reference(chunk: Chunk) -> None:
    counts = counts_of(chunk)
    assert counts["compiled cases"] + counts.get("refused", 0) * chunk.trials == chunk.plans * chunk.trials


@pytest.mark.one_in(2)
@pytest.mark.parametrize("chunk", INTERPRETED, ids=lambda c: f"seeds {c.first}")
def test_generated_code_interpreted_is_the_reference(chunk: Chunk) -> None:
    counts = counts_of(chunk)
    assert counts["interpreted cases"] + counts.get("refused", 0) == chunk.plans


@pytest.mark.long
def test_every_construct_is_drawn_by_four_hundred_queries() -> None:
    missing = {"none is drawn yet"}
    constructs: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    for first in range(FIRST_SEED, FIRST_SEED + 400, 40):
        for all_of_them, these in zip(
            (constructs, operators), queries_of_constructs(range(first, first + 40)), strict=True
        ):
            all_of_them.update(these)
        missing = {name for counts in (constructs, operators) for name, count in counts.items() if not count}
        if missing == {"trigger"}:  # random_triggers.py draws those
            return
    pytest.fail(f"not drawn: {missing}")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("first", range(2_000_000, 2_000_000 + SPARK_PLANS, 6))
def test_spark_gives_the_reference_as_a_multiset(first: int) -> None:
    found = spark_chunk(range(first, first + 6))
    assert not found.mismatches, "\n\n".join(found.mismatches)
