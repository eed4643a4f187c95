"""The tables of the pane of the last row are read when the pane changes, not for every row."""

import re

import pyarrow as pa
import pytest

import cq
from cq.compiler.passes import compile as compile_query

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 's.csv');\n"
GRID = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND)"
QUERIES = {
    "aggregate": STREAM + "SELECT k, COUNT(DISTINCT v) AS n FROM s GROUP BY k;",
    "window of a grid": STREAM + f"SELECT k, COUNT(DISTINCT v) AS n {GRID} GROUP BY window_start, window_end, k;",
    "window its rows belong to": STREAM + f"CREATE VIEW w AS SELECT * {GRID};\n"
    "SELECT k, COUNT(DISTINCT v) AS n FROM w GROUP BY window_start, window_end, k;",
}


@pytest.mark.parametrize("query", QUERIES)
def test_tables_are_read_where_a_row_finds_another_pane(query):
    (pipeline,) = compile_query(QUERIES[query]).for_workers(1).after("emit")
    body = pipeline.stages[0].module.split("def rows_0(")[1].split("\ndef ")[0]
    (found,) = re.finditer(r"\n( +)(?:pane|record)\d+ = panes_\w+\(", body)
    reads = re.findall(r"\n( +)table\d+ = ld_i64\(\w+, PANE_TABLES\w*\)", body)
    assert len(reads) == 2 and all(len(indent) >= len(found[1]) for indent in reads)
    assert re.search(r"\n( +)if [^\n]*:\n$", body[: found.start() + 1])[1] == found[1][4:]


def test_tables_are_read_again_where_a_session_closes_between_two_rows():
    """At 30 s a session closes for each of 300 keys: a group more of each, and the table has grown."""
    text = """
    CREATE STREAM s (k BIGINT NOT NULL, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');
    CREATE VIEW w AS SELECT k, COUNT(*) AS n
      FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY window_start, window_end, k;
    CREATE VIEW u AS SELECT k, 0 AS n FROM s UNION ALL SELECT k, n FROM w;
    SELECT k, n, COUNT(*) AS times FROM u GROUP BY k, n HAVING COUNT(*) > 1;"""
    times = [1_000_000 + n if n < 300 else 30_000_000 for n in range(312)]
    keys = [n % 300 for n in range(312)]
    rows = pa.table({"k": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.timestamp("us"))})
    found = cq.sql(text, s=rows).run(threads=0)["result"].to_pylist()
    assert found == [{"k": k, "n": n, "times": 2} for n in (0, 1) for k in range(12)]
