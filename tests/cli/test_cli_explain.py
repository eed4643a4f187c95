"""`cq explain` and EXPLAIN: every stage of a query can be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import cq, ref

import cq as api


@pytest.mark.parametrize("stage", ["stages", "code"])
def test_a_text_without_output_has_no_stages(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, _, err = cq(capfd, "explain", "--stage", stage, "-c", "CREATE STREAM s (a INT)")
    assert code == 2 and "the query has no output" in err
    assert cq(capfd, "run", "-c", "CREATE STREAM s (a INT)") == (2, "", err)


@pytest.mark.parametrize("stage", ["text", "logical", "rewritten", "stages", "code", "spark"])
def test_explain_shows_every_stage(capfd: pytest.CaptureFixture[str], stage: str) -> None:
    code, out, _ = cq(capfd, "explain", "q.cq", "--stage", stage)
    assert code == 0 and out
    if stage in {"logical", "stages"}:
        assert json.loads(cq(capfd, "explain", "q.cq", "--stage", stage, "--format", "json")[1])["nodes"]


def test_explain_statement_in_a_query_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ref(capfd, "-c", "EXPLAIN SELECT id FROM b", "b=bids.csv")
    assert code == 0 and "scan  b" in out


def stages(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, out, err = cq(capfd, *arguments)
    assert code == 0, err
    return out


def test_what_is_explained_is_what_would_run_with_the_workers_of_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory'); SET parallelism = 3;"
    windows = "FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) GROUP BY window_start, window_end;"
    query = f"SELECT window_start, COUNT(*) AS n {windows}"
    explain = ("explain", "--stage", "stages", "-c", stream + query)
    of_text = stages(capfd, *explain)
    assert of_text.startswith("3 workers")
    assert stages(capfd, *explain, "-j", "3") == of_text
    assert stages(capfd, *explain, "-s", "parallelism=2").startswith("2 workers")
    statement = stream + "EXPLAIN STAGES " + query
    assert stages(capfd, "run", "-c", statement).startswith("3 workers")
    assert stages(capfd, "run", "-j", "4", "-c", statement).startswith("4 workers")
    assert api.sql(stream + query).explain("stages", threads=5).startswith("5 workers")


def test_an_analysis_runs_the_query_and_writes_nothing(capfd: pytest.CaptureFixture[str], place: Path) -> None:
    text = (place / "q.cq").read_text()
    (place / "w.cq").write_text(
        "CREATE SINK out WITH (connector = 'file', path = 'out.csv');"
        + text.replace("SELECT w", "INSERT INTO out SELECT w")
    )
    code, out, err = cq(capfd, "explain", "w.cq", "--analyze", "-j", "0")
    assert code == 0, err
    assert "read 3 rows, wrote 2" in out and "every 1 minute" in out and not (place / "out.csv").exists()
    facts = json.loads(cq(capfd, "explain", "w.cq", "--analyze", "-j", "0", "--format", "json")[1])
    assert facts["run"]["rows_in"] == 3 and facts["nodes"][0]["rows_out"] == 3


def test_an_analysis_is_of_the_stages_that_ran(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = cq(capfd, "explain", "q.cq", "--analyze", "--stage", "logical")
    assert code == 2 and "--analyze shows only the stages that ran" in err and "leave --stage out" in err


def test_identities_are_shown_when_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    short, long = (cq(capfd, "explain", "q.cq", *v)[1] for v in ((), ("-v",)))
    identity = json.loads(cq(capfd, "explain", "q.cq", "--format", "json")[1])["nodes"][1]["identity"][:8]
    assert identity not in short and identity in long
