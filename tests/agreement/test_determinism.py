"""A slice of `python -m tests.determinism`: one hash for every shipped query, and it is the reference's."""

from __future__ import annotations

import pytest
from determinism import QUERIES, disagreements, prepared, run, runs

from cq.connectors.sinks.writers import MemorySink, result_schema
from cq.engines.query import run_query

pytestmark = pytest.mark.optimised

NAMES = sorted(p.stem for p in QUERIES.glob("*.cq"))
ROWS, SMALL_ROWS = 20_000, 1_000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.one_in(2)
def test_output_is_one_whatever_the_threads_and_batches(name: str) -> None:
    found = list(runs(QUERIES / f"{name}.cq", ROWS, SMALL_ROWS, threads=(0, 2, 4), batch_rows=(7, 4096)))
    assert len(found) == 9 and all(rows for _, rows, _ in found[0].hashes)
    assert not disagreements(found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.one_in(2)
def test_output_is_that_of_the_reference(name: str) -> None:
    compiled = prepared(QUERIES / f"{name}.cq", ROWS)
    sinks = {o.name: MemorySink(result_schema(o.node.schema.fields)) for o in compiled.outputs}
    summary = run_query(compiled, sinks, "reference")
    assert run(compiled, ROWS, 2, 4096).hashes == tuple(
        (n, summary.rows_out[n], summary.hashes[n]) for n in sorted(sinks)
    )
