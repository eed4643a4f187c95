"""How many events each trigger has rejected: in the summary of a run, in its JSON, in Python, and in an analysis."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from command_line import cq as run_cq
from command_line import ref
from spark_fixture import spark  # noqa: F401

import cq
from cq.cli.progress import summary_text
from cq.engines.analysis import analyze, drawn
from cq.engines.protocol import Counts, RunSummary

TRIGGERS = """
CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT CHECK (n < 3));
INSERT INTO a VALUES (1, 1);
CREATE TRIGGER t AFTER INSERT ON e BEGIN INSERT INTO a VALUES (new.k, 10 / new.n); SELECT new.k; END;
CREATE TRIGGER u AFTER INSERT ON e WHEN (new.k > 1) BEGIN IF new.k > 4 THEN RAISE 'no'; END IF; END;
CREATE TRIGGER v AFTER INSERT ON e BEGIN SELECT new.k, n FROM a WHERE k = new.k; END;
"""
# t: the key is there | 10 | 10 / 0 | 2 | 0;  u: nothing for 1, and no 5
EVENTS = [{"k": k, "n": n} for k, n in ((1, 9), (2, 1), (3, 0), (4, 5), (5, 90))]
STREAM = "CREATE STREAM e (k BIGINT, n BIGINT);"
ALL = "SELECT * FROM t; SELECT k, reason FROM t_rejected; SELECT * FROM a; SELECT * FROM u; SELECT * FROM v;"
COUNTED = {"t": 3, "u": 1}
WAYS = [("reference", ""), ("native", ""), *(("native", s) for s in ("chains", "lock", "lock_a", "mvlk", "pat"))]


def asked(queries: str, scheme: str = "") -> cq.Query:
    setting = f"SET transactions = '{scheme}';" if scheme else ""
    return cq.sql(setting + STREAM + TRIGGERS + queries, e=EVENTS)


@pytest.mark.parametrize(("engine", "scheme"), WAYS)
def test_events_are_counted_by_trigger_however_many_operators_run_it(engine: str, scheme: str) -> None:
    result = asked(ALL, scheme).run(engine=engine, threads=2 if engine == "native" else None)
    assert result.stats.rejected_events == COUNTED and result.stats.late_rows == 0
    assert len(result["result_2"].to_pylist()) == COUNTED["t"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_counts_them_too() -> None:
    assert asked(ALL).run(engine="spark").stats.rejected_events == COUNTED


@pytest.mark.filterwarnings("ignore:trigger .* does not run")
@pytest.mark.parametrize("engine", ["reference", "native"])
def test_only_triggers_that_run_and_reject_are_named(engine: str) -> None:
    assert asked("SELECT * FROM u; SELECT * FROM v;").run(engine=engine).stats.rejected_events == {"u": 1, "t": 3}
    alone = asked("SELECT k FROM u;").run(engine=engine).stats.rejected_events
    assert alone == {"u": 1}, "t and v share a table that nothing reads"


@pytest.mark.filterwarnings("ignore:trigger .* does not run")
@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_run_that_stops_at_its_limit_counts_none_unless_none_can_be_rejected(engine: str) -> None:
    assert asked("SELECT k FROM t LIMIT 1;").run(engine=engine).stats.rejected_events is None
    looked_up = "SELECT e.k, a.n FROM e JOIN a FOR SYSTEM_TIME AS OF e.ts ON a.k = e.k LIMIT 1;"
    stream = "CREATE STREAM e (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts);"
    table = "CREATE TABLE a (k BIGINT PRIMARY KEY, n BIGINT); INSERT INTO a VALUES (1, 2);"
    events = [{"k": 1, "ts": dt.datetime(2024, 1, 1)}] * 2
    assert cq.sql(stream + table + looked_up, e=events).run(engine=engine).stats.rejected_events == {}


def test_parts_and_operators_of_one_trigger_reject_the_same_events() -> None:
    assert Counts.of(2, [("t", 3), ("u", 0), ("t", 3), ("v", 1)]) == Counts(2, {"t": 3, "v": 1})


def test_an_analysis_says_how_many() -> None:
    facts = analyze(asked(ALL).bound(), 1)
    assert facts["run"]["rejected_events"] == COUNTED
    assert "late, rejected 3 events (t), 1 (u)\n" in drawn(facts)
    assert "rejected" not in drawn(analyze(cq.sql("SELECT k FROM e", e=EVENTS).bound(), 1))


def test_the_closing_line_says_how_many_or_that_they_are_not_counted() -> None:
    def said(rejected: dict[str, int] | None) -> str:
        return summary_text(RunSummary("native", {"e": 5}, rows_out={"o": 2}, rejected_events=rejected))

    assert " · wrote 2 rows to o · rejected 1 event (t) · ran" in said({"t": 1})
    assert " · rejected 1,200 events (a\\x1b), 1 (u) · " in said({"a\x1b": 1200, "u": 1})
    assert " · rejected events not counted · " in said(None) and "rejected" not in said({})


def test_the_command_line_says_it_as_text_and_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("k,n\n" + "".join(f"{e['k']},{e['n']}\n" for e in EVENTS), encoding="utf-8")
    query = tmp_path / "q.cq"
    query.write_text(STREAM.replace(");", ") WITH (path = 'e.csv');") + TRIGGERS + ALL, encoding="utf-8")
    assert " · rejected 3 events (t), 1 (u) · " in ref(capfd, str(query), "-f", "table")[2]
    told = run_cq(capfd, "run", str(query), "-j", "1", "-f", "table", "--summary", "json")[2]
    assert json.loads(told.splitlines()[-1])["rejected_events"] == COUNTED
