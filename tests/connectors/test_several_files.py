"""Several files of one stream that differ in their columns, with `union_by_name` and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cq import sql
from cq.connectors import infer
from cq.errors import CqError, DataError

ENGINES = [{"engine": "reference"}, {"threads": 0}, {"threads": 2}]


def rows_of(query: str, directory: Path, pattern: str, how: dict[str, Any], **options: str) -> list[dict[str, Any]]:
    written = "".join(f", {key} = '{value}'" for key, value in options.items())
    declared = f"CREATE STREAM t WITH (path = '{directory}/{pattern}'{written}); "
    return sql(declared + query).run(**how)["result"].to_pylist()


@pytest.fixture
def csvs(tmp_path: Path) -> Path:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n3,4\n")
    (tmp_path / "3.csv").write_text("a,b,c\n5,6.5,x\n")
    (tmp_path / "4.csv").write_text("a\n8\n")
    (tmp_path / "5.csv").write_text("")
    (tmp_path / "6.csv").write_text("A,d\n")  # no rows: its types are those of others
    return tmp_path


@pytest.mark.parametrize("how", ENGINES)
def test_columns_of_all_files_are_those_duckdb_finds(csvs: Path, how: dict[str, Any]) -> None:
    found = rows_of("SELECT a, b, c FROM t", csvs, "*.csv", how, union_by_name="true")
    shown = f"SELECT a, b, c FROM read_csv('{csvs}/[1-4].csv', union_by_name = true) ORDER BY a"
    assert [tuple(row.values()) for row in found] == duckdb.sql(shown).fetchall()
    assert [str(c) for c in infer({"path": f"{csvs}/*.csv", "union_by_name": "true"})] == [
        "a BIGINT", "b DOUBLE", "c VARCHAR", "d VARCHAR"
    ]  # fmt: skip


@pytest.mark.parametrize("how", ENGINES)
def test_column_that_is_not_used_stops_nothing(csvs: Path, how: dict[str, Any]) -> None:
    assert rows_of("SELECT SUM(a) AS s FROM t", csvs, "[1-5].csv", how) == [{"s": 18}]
    assert rows_of("SELECT COUNT(*) AS n FROM t", csvs, "*.csv", how) == [{"n": 4}]


@pytest.mark.parametrize("how", ENGINES)
def test_file_that_lacks_a_used_column_is_refused_before_any_row(
    csvs: Path, how: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"CREATE STREAM t WITH (path = '{csvs}/*.csv'); CREATE SINK s WITH (connector = 'stdout');"
    with pytest.raises(DataError, match=r"4\.csv has no column 'b', which earlier files have") as stopped:
        sql(text + "INSERT INTO s SELECT a, b FROM t").run(**how)
    assert "union_by_name = 'true'" in stopped.value.first.help[0] and capfd.readouterr().out == ""


def test_star_says_which_columns_only_later_files_have(csvs: Path) -> None:
    query = sql(f"CREATE STREAM t WITH (path = '{csvs}/[1-3].csv'); SELECT * FROM t")
    said = [d.message for d in query.check()]
    assert any(f"the first file does not have: c VARCHAR of {csvs}/3.csv" in m and "union_by_name" in m for m in said)
    assert query.run(engine="reference").to_arrow().column_names == ["a", "b"]


def test_column_of_later_files_is_no_unknown_one(csvs: Path) -> None:
    with pytest.raises(CqError, match=r'column "c" of stream "t" is in .*3\.csv, and not in the first') as refused:
        rows_of("SELECT c FROM t", csvs, "[1-3].csv", ENGINES[0])
    assert "union_by_name = 'true'" in refused.value.first.help[0]


def parquet(path: Path, **columns: Any) -> None:
    pq.write_table(pa.table(columns), path)


def arrow(path: Path, **columns: Any) -> None:
    pyarrow.feather.write_feather(pa.table(columns), str(path))


@pytest.mark.parametrize("how", ENGINES)
@pytest.mark.parametrize(("write", "ending"), [(parquet, "parquet"), (arrow, "arrow")])
def test_typed_files_with_other_columns_and_types(tmp_path: Path, write: Any, ending: str, how: dict[str, Any]) -> None:
    write(tmp_path / f"1.{ending}", id=pa.array([0], pa.int32()), v=[0.5], s=[{"x": 1}])
    write(tmp_path / f"2.{ending}", id=[1], w=["x"])
    write(tmp_path / f"3.{ending}", id=[2], v=[7], s=[{"x": 2, "y": "z"}])
    found = rows_of("SELECT * FROM t", tmp_path, f"*.{ending}", how, union_by_name="true")
    names = ["id", "v", "s.x", "w", "s.y"]
    expected = [(0, 0.5, 1, None, None), (1, None, None, "x", None), (2, 7.0, 2, None, "z")]
    assert [tuple(row[n] for n in names) for row in found] == expected
    assert rows_of("SELECT SUM(id) AS s FROM t", tmp_path, f"*.{ending}", how) == [{"s": 3}]
    with pytest.raises(DataError, match=r"2\.\w+ has no column 'v'"):
        rows_of("SELECT v FROM t", tmp_path, f"*.{ending}", how)


def test_column_in_types_without_a_common_one_is_left_out_with_both(tmp_path: Path) -> None:
    parquet(tmp_path / "1.parquet", id=[1], v=[1])
    parquet(tmp_path / "2.parquet", id=[2], v=["x"])
    options = {"union_by_name": "true"}
    assert rows_of("SELECT id FROM t", tmp_path, "*.parquet", ENGINES[0], **options) == [{"id": 1}, {"id": 2}]
    with pytest.raises(
        CqError, match=r'column "v" of stream "t" is BIGINT in .*1\.parquet and VARCHAR in .*2\.parquet'
    ):
        rows_of("SELECT v FROM t", tmp_path, "*.parquet", ENGINES[0], **options)
    with pytest.raises(DataError, match=r"column v of .*2\.parquet is VARCHAR and is declared BIGINT"):
        rows_of("SELECT v FROM t", tmp_path, "*.parquet", ENGINES[0])


def test_fields_of_json_lines_that_later_files_have(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "2.jsonl").write_text('{"a": 2.5, "b": {"c": "x"}}\n')
    said = sql(f"CREATE STREAM t WITH (path = '{tmp_path}/*.jsonl'); SELECT * FROM t").check()
    assert any("b.c VARCHAR of" in d.message for d in said)
    found = rows_of("SELECT * FROM t", tmp_path, "*.jsonl", ENGINES[0], union_by_name="true")
    assert found == [{"a": 1.0, "b.c": None}, {"a": 2.5, "b.c": "x"}]


def test_declared_columns_may_be_missing_where_that_is_said(csvs: Path) -> None:
    declared = f"CREATE STREAM t (a BIGINT, c VARCHAR) WITH (path = '{csvs}/[1-4].csv', union_by_name = 'true'); "
    for how in ENGINES:
        found = sql(declared + "SELECT a, c FROM t").run(**how)["result"].to_pylist()
        assert [(r["a"], r["c"]) for r in found] == [(1, None), (4, None), (5, "x"), (8, None)]
    for column, why in (("c VARCHAR NOT NULL", "NOT NULL"), ("e VARCHAR", "no file has the column 'e'")):
        with pytest.raises(DataError, match=why):
            sql(declared.replace("c VARCHAR", column) + "SELECT a FROM t").run(engine="reference")


def test_event_time_has_to_be_in_every_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x,ts\n1,2024-01-01 00:00:00\n")
    (tmp_path / "2.csv").write_text("ts,x\n2024-01-01 00:00:01,2\n")
    (tmp_path / "3.csv").write_text("ts\n2024-01-01 00:00:02\n")
    window = (
        "SELECT COUNT(x) AS n, COUNT(*) AS m FROM TUMBLE(t, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end"
    )
    options = f"path = '{tmp_path}/*.csv', union_by_name = 'true'"
    text = f"CREATE STREAM t (x BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH ({options}); {window}"
    for how in ENGINES:
        assert sql(text).run(**how)["result"].to_pylist() == [{"n": 2, "m": 3}]
    (tmp_path / "4.csv").write_text("x\n4\n")
    with pytest.raises(DataError, match=r"4\.csv has no column 'ts', which gives the event time"):
        sql(text.replace("all", '"all"')).run(engine="reference")
