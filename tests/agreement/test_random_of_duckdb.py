"""Random queries over bounded inputs give the rows that DuckDB gives, in any order."""

from __future__ import annotations

import pytest
from random_chunk import duckdb_chunk

pytest.importorskip("duckdb")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", range(0, 120, 60))
def test_duckdb_gives_the_rows_of_the_reference(first: int) -> None:
    found = duckdb_chunk(range(first, first + 60), trials=2)
    assert not found.mismatches, "\n\n".join(found.mismatches)
    assert found.counts["duckdb cases"] >= 110
