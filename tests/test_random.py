"""Random queries over random rows: native, compiled and interpreted, is the reference bit for bit; Spark its multiset.

The long command is `python -m tests.random_soak` (tests/README.md). What is found is printed with its seed and as a
case for tests/slt.
"""

from __future__ import annotations

import pytest
from random_chunk import Found, run_chunk, spark_chunk
from spark_fixture import spark  # noqa: F401

COMPILED_PLANS, TRIALS = 160, 14  # 2,240 cases
INTERPRETED_PLANS = 1_040
SPARK_PLANS = 110
CHUNKS = 16  # tests of each kind, so that several processes can share them


def seeds(first: int, plans: int, chunk: int) -> range:
    size = -(-plans // CHUNKS)
    return range(first + chunk * size, first + min(plans, (chunk + 1) * size))


def agrees(found: Found) -> None:
    assert not found.mismatches, "\n\n".join(found.mismatches)
    cases = sum(n for name, n in found.counts.items() if name.endswith("cases"))
    assert cases and found.counts["refused"] * 20 <= cases, found.counts


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_generated_code_interpreted_is_the_reference(chunk: int) -> None:
    agrees(run_chunk(seeds(0, INTERPRETED_PLANS, chunk), 1, interpreted=True))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compiled_plans_are_the_reference(chunk: int) -> None:
    found = run_chunk(seeds(1_000_000, COMPILED_PLANS, chunk), TRIALS, interpreted=False)
    agrees(found)
    assert len(found.modules) * 16 >= COMPILED_PLANS * 15 // CHUNKS, "plans that differ only in their seeds"


@pytest.mark.spark
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.usefixtures("spark")
def test_spark_gives_the_reference_as_a_multiset(chunk: int) -> None:
    found = spark_chunk(seeds(2_000_000, SPARK_PLANS, chunk))
    assert not found.mismatches, "\n\n".join(found.mismatches)
