"""Random queries over random rows: native, compiled and interpreted, is the reference bit for bit; Spark its multiset.

The long command is `python -m tests.random_soak` (tests/README.md), which runs the chunks here as well, two processes
at a time. What is found is printed with its seed and as a case for tests/slt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from random_chunk import spark_chunk
from random_soak import Chunk, in_process
from spark_fixture import spark  # noqa: F401

pytestmark = pytest.mark.timeout(3_600)  # a test waits for chunks that other processes run, however busy the machine is

PROCESSES = 2
COMPILED = [Chunk("compiled", 1_000_000 + 20 * n, 20, 14) for n in range(8)]  # 160 plans, 2,240 cases
INTERPRETED = [Chunk("interpreted", 130 * n, 130, 1) for n in range(8)]  # 1,040 plans
SPARK_PLANS = 110

Running = dict[Chunk, Future[dict[str, Any]]]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """All chunks, on their way."""
    with ThreadPoolExecutor(PROCESSES) as pool:
        yield {c: pool.submit(in_process, c) for c in (*COMPILED, *INTERPRETED)}
        pool.shutdown(cancel_futures=True)


def result_of(running: Running, chunk: Chunk) -> dict[str, Any]:
    """What the chunk's process told, once nothing was found."""
    result = running[chunk].result()
    assert "crash" not in result, result["crash"]
    assert not result["mismatches"], "\n\n".join(result["mismatches"])
    return result


@pytest.mark.parametrize("chunk", COMPILED, ids=lambda c: f"seeds {c.first}")
def test_compiled_plans_are_the_reference(running: Running, chunk: Chunk) -> None:
    counts = result_of(running, chunk)["counts"]
    assert counts["compiled cases"] + counts.get("refused", 0) * chunk.trials == chunk.plans * chunk.trials


@pytest.mark.parametrize("chunk", INTERPRETED, ids=lambda c: f"seeds {c.first}")
def test_generated_code_interpreted_is_the_reference(running: Running, chunk: Chunk) -> None:
    counts = result_of(running, chunk)["counts"]
    assert counts["interpreted cases"] + counts.get("refused", 0) == chunk.plans


def test_there_were_enough_different_plans(running: Running) -> None:
    results = [result_of(running, c) for c in (*COMPILED, *INTERPRETED)]
    counts = sum((Counter(r["counts"]) for r in results), Counter[str]())
    assert counts["compiled cases"] >= 2_000 and counts["interpreted cases"] >= 1_000, counts
    assert len({m for c in COMPILED for m in result_of(running, c)["modules"]}) >= 150


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("first", range(2_000_000, 2_000_000 + SPARK_PLANS, 10))
def test_spark_gives_the_reference_as_a_multiset(first: int) -> None:
    found = spark_chunk(range(first, first + 10))
    assert not found.mismatches, "\n\n".join(found.mismatches)
