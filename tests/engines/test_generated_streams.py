"""Streams of the generator connector: native twins write only the columns that matter, and the rows are the same."""

from __future__ import annotations

import pytest

import cq
from cq.compiler.passes import compile
from cq.connectors import registry
from cq.connectors.read_ahead import Ahead

WITH = "WITH (connector = 'generator', workload = 'linear_road', profile = 'tiny', queries = '0.5', rows = 3000)"


def rows(text: str, engine: str) -> list[dict[str, object]]:
    return cq.sql(text).run(engine=engine).to_arrow().to_pylist()


@pytest.mark.parametrize(
    "columns",
    [
        "*",
        "qid, day",
        '"QID", "Day"',
        "vid",
    ],
)
def test_declared_columns_have_the_same_values_in_whatever_case(columns: str) -> None:
    declared = '("QID" BIGINT, "Day" BIGINT, vid BIGINT)' if columns != "qid, day" else ""
    text = f"CREATE STREAM r {declared} {WITH}; SELECT {columns} FROM r"
    found = rows(text, "native")
    assert found == rows(text, "reference")
    assert any(row[name] for row in found for name in row)


def test_a_column_that_is_only_checked_has_its_values() -> None:
    text = f"CREATE STREAM r (time BIGINT, tod TINYINT) {WITH}; SELECT time FROM r"
    found = {}
    for engine in ("native", "reference"):
        with pytest.raises(cq.DataError) as raised:
            rows(text, engine)
        found[engine] = str(raised.value)
    assert found["native"] == found["reference"]
    assert "CQ0702" in found["native"]


def test_nothing_is_read_for_a_file_of_queries_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(Ahead, "start", lambda self: started.append(self))
    endless = "CREATE STREAM e WITH (connector = 'generator', workload = 'bids');"
    text = f"{endless} CREATE STREAM r {WITH}; SELECT price FROM e; SELECT vid FROM r;"
    with pytest.raises(cq.CompileError, match="CQ0502"):
        cq.sql(text).run()
    assert started == []


def test_a_stream_that_computes_its_rows_keeps_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, made in registry.SOURCES.items():
        assert made.computes == (name == "generator"), name
    monkeypatch.setattr("cq.compiler.passes.usable_cpus", lambda: 8)
    generated = compile(f"CREATE STREAM r {WITH}; SELECT vid FROM r")
    written = compile("SELECT * FROM (VALUES (1)) AS v (x)")
    assert generated.workers() == 7
    assert generated.workers(8) == 8
    assert compile(f"SET parallelism = 3; CREATE STREAM r {WITH}; SELECT vid FROM r").workers() == 3
    assert written.workers() == 8
    monkeypatch.setattr("cq.compiler.passes.usable_cpus", lambda: 1)
    assert generated.workers() == 1
