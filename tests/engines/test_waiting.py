"""Rows that wait for the watermark leave as soon as any row has moved it far enough, however stages are cut."""

from __future__ import annotations

import datetime as dt

import pytest
from cases import spread_out

import cq
from cq.compiler.passes import compile
from cq.ways import Way

STREAM = "CREATE STREAM s (line VARCHAR, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
LAGS = """CREATE VIEW o AS SELECT k, v, ts, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS p FROM u;
SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS t FROM o;"""
LANES = f"{STREAM} CREATE VIEW u AS SELECT line AS k, v, ts FROM s; {LAGS}"
CHAIN = f"""{STREAM}
CREATE VIEW u AS SELECT w AS k, v, ts FROM s, UNNEST(SPLIT(s.line, ' ')) AS x(w) WHERE w <> 'x'; {LAGS}"""
SHAPES = {LANES: [Way.LANES], CHAIN: [Way.ANY, Way.LANES]}


@pytest.mark.parametrize("text", [pytest.param(LANES, id="lanes"), pytest.param(CHAIN, id="chain")])
@pytest.mark.parametrize(("engine", "threads"), [("reference", 0), ("native", 0), ("native", 2)])
def test_row_leaves_with_the_push_that_moves_the_watermark_past_it(text: str, engine: str, threads: int) -> None:
    with spread_out():
        (pipeline,) = compile(text).for_workers(2).after("emit")
    assert [s.way for s in pipeline.stages] == SHAPES[text], "the shape this is about"
    with spread_out(), cq.sql(text).start(engine=engine, threads=threads) as run:
        seen = []
        for number, (line, second) in enumerate([("a", 1), ("b", 2), ("x", 4), ("a", 5), ("x", 20)]):
            at = dt.datetime(2024, 1, 1, 0, 0, second)
            run.push("s", [{"line": line, "v": number, "ts": at}])
            seen.append([row["v"] for batch in run.results() for row in batch.to_pylist() if row["k"] != "x"])
    assert seen == [[], [], [0, 1], [], [3]]
