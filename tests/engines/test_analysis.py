"""`explain --analyze`: rows, late rows and memory of every operator, however the query runs; nothing when it is off."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from cases import Prepared, spread_out

from cq.engines import native
from cq.engines.analysis import analyze, drawn
from cq.runtime.engine.engine import Engine
from cq.runtime.engine.ways import partial

SECOND = 1_000_000
STREAM = "CREATE STREAM s (k BIGINT NOT NULL, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory'); "
# windows of 10 s; the last row is late:          [------0------)[------1----)  late
ROWS = [(k, v, t * SECOND) for k, v, t in ((1, 5, 1), (2, 6, 2), (1, 1, 3), (1, 7, 11), (2, 8, 12), (2, 9, 4))]
WINDOW = "TUMBLE(TABLE big, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
QUERY = (
    f"{STREAM}CREATE VIEW big AS SELECT k, v, ts FROM s WHERE v > 1;"
    f"CREATE VIEW counts AS SELECT window_end, k, COUNT(*) AS n FROM {WINDOW} GROUP BY window_start, window_end, k;"
    "SELECT k, n FROM counts WHERE n > 0;"
    "SELECT k, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS last FROM big;"
)
GIVEN = {"scan": 6, "filter": 5, "window": 4, "over": 4}  # rows; the first filter's
LATE = {"window": 1, "over": 1}


def analyzed(text: str, threads: int, interpreted: bool = True) -> dict[str, Any]:
    """The facts of a run of the query over ROWS."""
    prepared = Prepared(text)
    prepared.give({"s": ROWS})

    def begin(pipeline: Any, **options: Any) -> Engine:
        return Engine(pipeline, **{**options, "threads": 0}, interpreted=True)

    with patch.object(native, "Engine", begin if interpreted else Engine), patch.object(partial, "ROWS_A_GROUP", 0):
        return analyze(prepared.compiled, threads)


@pytest.mark.parametrize("threads", [0, 2, 4])
def test_rows_of_each_operator_are_those_that_it_gave_however_it_runs(threads: int) -> None:
    with spread_out():
        facts = analyzed(QUERY, threads)
    assert len(facts["stages"]) > 1 or threads == 0 or facts["stages"][0]["runs"] != "one loop"
    given: dict[str, int] = {}
    late: dict[str, int] = {}
    for node in facts["nodes"]:
        first = node["operator"] not in given
        if node["rows_out"] is not None and first:
            given[node["operator"]] = node["rows_out"]
        late[node["operator"]] = late.get(node["operator"], 0) + node["late_rows"]
    assert {o: given[o] for o in GIVEN} == GIVEN
    assert {o: n for o, n in late.items() if n} == LATE
    counts = {"rows_in": 6, "rows_out": 8, "late_rows": 2, "rejected_events": {}}
    assert facts["run"] | {"seconds": 0} == {"seconds": 0, "threads": threads, **counts, "over": True}


@pytest.mark.parametrize(
    ("threads", "said"),
    [(0, "in one thread"), (1, "with 1 worker"), (2, "with 1 of 2 workers"), (4, "with 1 of 4 workers")],
)
def test_a_loop_that_runs_with_fewer_workers_than_asked_for_says_why(threads: int, said: str) -> None:
    text = (
        f"{STREAM}CREATE TABLE seen (k BIGINT PRIMARY KEY, n BIGINT);"
        "CREATE TRIGGER t AFTER INSERT ON s INSERT INTO seen VALUES (k, 1) ON CONFLICT (k) DO UPDATE SET n = n + 1;"
        "SELECT k FROM t;"
    )
    first, _, _, reason, *_ = drawn(analyzed(text, threads)).splitlines()
    assert first.split(" s ")[1].startswith(f"{said}: read 6 rows")
    assert ("pays from 8 workers" in reason) == (threads > 1), reason


def test_what_comes_in_is_what_those_below_gave() -> None:
    nodes = analyzed(QUERY, 1)["nodes"]
    assert all(n["rows_in"] == sum(nodes[i]["rows_out"] for i in n["inputs"]) for n in nodes if n["inputs"])
    kept = {n["operator"]: n["held_bytes"] is not None for n in nodes}
    assert kept["window"] and kept["over"] and not kept["scan"] and not kept["project"]


def test_panes_of_several_workers_are_no_rows() -> None:
    with spread_out():
        text = f"{STREAM}CREATE VIEW big AS SELECT * FROM s; SELECT COUNT(*) AS n FROM {WINDOW} GROUP BY window_end;"
        nodes = analyzed(text, 2)["nodes"]
    fills, collects = (n for n in nodes if n["operator"] == "window")
    assert (fills["rows_in"], fills["rows_out"], fills["late_rows"]) == (6, None, 1)
    assert (collects["rows_in"], collects["rows_out"]) == (None, 2)


def test_rows_that_are_written_before_the_filter_decides_count_when_it_passes() -> None:
    nodes = analyzed(STREAM + "SELECT k FROM s WHERE v > 6;", 1)["nodes"]
    assert [n["rows_out"] for n in nodes if n["operator"] != "project"] == [6, 3]


def test_the_text_has_a_line_for_each_operator_and_says_whose_time_it_is() -> None:
    facts = analyzed(QUERY, 0)
    lines = drawn(facts).splitlines()
    assert "read 6 rows, wrote 8, dropped 2 late" in lines[0]
    (window,) = (line.split() for line in lines if " window " in line)
    assert window[:3] == ["5", "4", "1"] and "every 10 seconds by k: count(*) AS n" in " ".join(window)
    assert "its operators run as one loop" in lines[-1]


def test_kernels_count_only_for_an_analysis() -> None:
    prepared = Prepared(QUERY)
    plain = prepared.compiled.for_workers(1)
    counting = prepared.compiled.counting().for_workers(1)
    assert not plain.after("emit")[0].stages[0].counters and "GIVEN" not in plain.explain("code")
    assert "GIVEN" in counting.explain("code")


def test_a_compiled_run_counts_as_an_interpreted_one() -> None:
    def of(facts: dict[str, Any]) -> list[tuple[int, int]]:
        return [(n["rows_out"], n["late_rows"]) for n in facts["nodes"]]

    assert of(analyzed(QUERY, 2, interpreted=False)) == of(analyzed(QUERY, 2))
