"""What people type first, and what operators do at their corners, gives the rows that DuckDB gives."""

from __future__ import annotations

from collections import Counter

import pytest
from paths import SLT
from slt_format import SltCase, read_cases, read_row, write_row

from cq.compiler.passes import compile

pytest.importorskip("duckdb")

from slt_of_duckdb import rows_of_duckdb

FILES = [SLT / "first_queries.slt", SLT / "wild.slt", SLT / "short_forms.slt", *sorted((SLT / "corners").glob("*.slt"))]
CASES = [case for path in FILES for case in read_cases(path) if not case.no_duckdb]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.file}: {c.name}")
@pytest.mark.one_in(2)
def test_a_case_gives_the_rows_of_duckdb(case: SltCase) -> None:
    """In any order, and in that order where DuckDB is asked for it."""
    compiled = compile(case.text)
    (output,) = compiled.outputs
    fields = output.node.schema.fields
    expected = [write_row(read_row(line, fields), fields) for line in case.rows["result"]]
    found = rows_of_duckdb(case, compiled)
    assert Counter(found) == Counter(expected)
    assert found == expected or not case.ordered
