"""`cq explain` and EXPLAIN: every stage of a query can be shown."""

from __future__ import annotations

import json

import pytest
from command_line import cq, ref


@pytest.mark.parametrize("stage", ["stages", "code"])
def test_a_text_without_output_has_no_stages(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, _, err = cq(capfd, "explain", "--stage", stage, "-c", "CREATE STREAM s (a INT)")
    assert code == 2 and "the query has no output" in err


@pytest.mark.parametrize("stage", ["text", "logical", "rewritten", "stages", "code", "spark"])
def test_explain_shows_every_stage(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, out, _ = cq(capfd, "explain", "q.cq", "--stage", stage)
    assert code == 0 and out
    if stage in {"logical", "stages"}:
        assert json.loads(cq(capfd, "explain", "q.cq", "--stage", stage, "--format", "json")[1])["nodes"]


def test_explain_statement_in_a_query_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ref(capfd, "-c", "EXPLAIN SELECT id FROM b", "b=bids.csv")
    assert code == 0 and "scan  b" in out
