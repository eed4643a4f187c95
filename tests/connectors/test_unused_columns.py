"""Columns that nobody declared and the query does not use: nothing in them is looked at, on every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cq import sql
from cq.connectors.csv.blocks import BLOCK_BYTES
from cq.errors import DataError

UNFIT = pa.schema([pa.field("u", pa.uint64(), False), pa.field("id", pa.int64()), pa.field("b", pa.binary())])
ROWS = [{"u": 2**64 - 1, "id": 1, "b": b"\xff"}, {"u": 1, "id": 2, "b": b"a"}]  # no BIGINT, and no text


def parquet(directory: Path, table: pa.Table) -> Any:
    pq.write_table(table, directory / "t.parquet")
    return str(directory / "t.parquet")


def packed_arrow(directory: Path, table: pa.Table) -> Any:
    pyarrow.feather.write_feather(table, str(directory / "t.arrow"), compression="lz4")
    return str(directory / "t.arrow")


def arrow_stream(directory: Path, table: pa.Table) -> Any:
    with pa.ipc.new_stream(str(directory / "s.arrow"), table.schema) as out:
        out.write_table(table)
    return str(directory / "s.arrow")


def in_memory(directory: Path, table: pa.Table) -> Any:
    return table


def frame(directory: Path, table: pa.Table) -> Any:
    return table.to_pandas()


def dicts(directory: Path, table: pa.Table) -> Any:
    return [{"u": 2**63 - 1, "id": 1, "b": "x"}, {"u": 1, "id": 2, "b": None}]


QUERIES = {
    "SELECT id FROM t": [{"id": 1}, {"id": 2}],
    "SELECT COUNT(*) AS n FROM t": [{"n": 2}],
    "SELECT COUNT(*) AS n FROM (SELECT * FROM t)": [{"n": 2}],
    "SELECT 7 AS x FROM t": [{"x": 7}, {"x": 7}],
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id WHERE b.id > 1": [{"id": 2}],
    "CREATE VIEW v AS SELECT * FROM t; SELECT SUM(id) AS s FROM v": [{"s": 3}],
}


@pytest.mark.parametrize("write", [parquet, packed_arrow, arrow_stream, in_memory, frame, dicts])
def test_values_of_unused_columns_are_not_looked_at(tmp_path: Path, write: Any) -> None:
    given = write(tmp_path, pa.Table.from_pylist(ROWS, schema=UNFIT))
    for query, rows in QUERIES.items():
        assert sql(query, t=given).run(engine="reference")["result"].to_pylist() == rows, query


@pytest.mark.parametrize("threads", [0, 2])
def test_native_engine_reads_no_more_than_the_reference(tmp_path: Path, threads: int) -> None:
    given = parquet(tmp_path, pa.Table.from_pylist(ROWS, schema=UNFIT))
    for query, rows in QUERIES.items():
        assert sql(query, t=given).run(threads=threads)["result"].to_pylist() == rows, query


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("query", ["SELECT u FROM t", "SELECT id FROM t WHERE u > 0", "SELECT * FROM t"])
def test_used_column_is_checked(tmp_path: Path, query: str, engine: str) -> None:
    with pytest.raises(DataError, match="cannot read '18446744073709551615' as BIGINT in column u"):
        sql(query, t=parquet(tmp_path, pa.Table.from_pylist(ROWS, schema=UNFIT))).run(engine=engine)


def test_declared_column_is_checked_though_nobody_uses_it(tmp_path: Path) -> None:
    given = parquet(tmp_path, pa.Table.from_pylist(ROWS, schema=UNFIT))
    with pytest.raises(DataError, match="in column u"):
        sql("CREATE STREAM t (u BIGINT, id BIGINT); SELECT id FROM t", t=given).run(engine="reference")


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_row_that_contradicts_an_unused_guess_is_a_row(tmp_path: Path, ending: str, engine: str) -> None:
    rows = 2 * BLOCK_BYTES // 100
    wide = "w" * 100  # fills what guesses are made from
    many = {"csv": f"1,5,{wide}\n", "jsonl": f'{{"id": 1, "v": 5, "w": "{wide}"}}\n'}[ending] * rows
    last = {"csv": "1,abc,\n1\n", "jsonl": '{"id": 1, "v": {"a": [1]}}\n[\n'}[ending]
    path = tmp_path / f"t.{ending}"
    path.write_text(("id,v,w\n" if ending == "csv" else "") + many + last)
    declared = f"CREATE STREAM t WITH (path = '{path}', on_error = 'skip'); "
    for query, sums in (
        ("SELECT COUNT(*) AS n FROM t", [{"n": rows + 1}]),
        ("SELECT SUM(id) AS s FROM t", [{"s": rows + 1}]),
    ):
        result = sql(declared + query).run(engine=engine)
        assert (result["result"].to_pylist(), dict(result.stats.bad_rows)) == (sums, {"t": 1}), query


def test_columns_that_only_case_tells_apart_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "A": 2}\n{"A": 3}\n')
    rows = sql("SELECT a FROM t", t=str(path)).run(engine="reference")["result"].to_pylist()
    assert rows == [{"a": 1}, {"a": None}]  # whether "A" is used or not


def test_event_time_is_used(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,ts\n1,2024-01-01 00:00:00\n2,\n")
    text = f"CREATE STREAM t (WATERMARK FOR ts) WITH (path = '{path}', on_error = 'skip'); SELECT id FROM t"
    result = sql(text).run(engine="reference")
    assert (result["result"].to_pylist(), dict(result.stats.bad_rows)) == ([{"id": 1}], {"t": 1})


def test_delay_of_a_file_counts_rows_whose_other_columns_cannot_be_read(tmp_path: Path) -> None:
    wide = "w" * 100
    path = tmp_path / "t.csv"
    rows = f"2024-01-01 00:00:30,1,{wide}\n" * (2 * BLOCK_BYTES // 100)
    path.write_text("ts,v,w\n" + rows + "2024-01-01 00:00:58,1,\n2024-01-01 00:00:09,abc,\n")
    window = f"TUMBLE('{path}', DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    result = sql(f"SELECT COUNT(*) AS n FROM {window} GROUP BY window_end").run(engine="reference")
    assert result.stats.late_rows == 0 and sum(row["n"] for row in result.to_pylist()) == rows.count("\n") + 2
