"""A stage whose code is too large to be compiled is refused at the operator that has most of it."""

from __future__ import annotations

import pytest

import cq
from cq.codegen import writer

ROWS = {"k": [1, 1, 2]}


def test_code_beyond_the_limit_is_refused_with_its_place_and_runs_on_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = " + ".join(f"k * {n}" for n in range(60))
    query = cq.sql(f"SELECT k, n * 2 AS n\nFROM (SELECT k, {many} AS n FROM t WHERE k > 0)", t=ROWS)
    monkeypatch.setattr(writer, "MOST_NODES", 1_000)
    with pytest.raises(cq.CompileError) as caught:
        query.run(threads=0)
    assert caught.value.code == "CQ0802" and "--> <python>:2:" in str(caught.value)
    assert "--engine reference" in str(caught.value)
    assert len(query.run(engine="reference")["result"]) == 3
