"""Structs as columns: by the path to each field, wherever the rows come from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors_fixture import read, stream

import cq
from cq.connectors.inference import infer_given
from cq.connectors.nested import MAX_DEPTH, flat_batch, flat_schema
from cq.lang import types as T
from cq.lang.schema import Field

ROWS = [
    {"id": 1, "user": {"id": 7, "name": "ada", "home": {"city": "Wien", "zip": 1010}}},
    {"id": 2, "user": None},
    {"id": 3, "user": {"id": 9, "name": None, "home": None}},
]
FIELDS = [Field("user.home.city", T.VARCHAR), Field("id", T.BIGINT), Field("user.id", T.BIGINT)]
TAKEN = [("Wien", 1, 7), (None, 2, None), (None, 3, 9)]
DECLARED = "CREATE STREAM s (id BIGINT, user ROW(id BIGINT, name VARCHAR, home STRUCT<city VARCHAR, zip BIGINT>));\n"


def written(directory: Path, kind: str) -> Path:
    path, table = directory / f"e.{kind}", pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
    elif kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as out:
            out.write_table(table)
    else:
        path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
def test_fields_are_columns_by_their_paths(tmp_path: Path, kind: str) -> None:
    seen = read(stream(FIELDS, path=str(written(tmp_path, kind))))
    assert seen.error is None and seen.rows == TAKEN


@pytest.mark.parametrize("given", [ROWS, pa.Table.from_pylist(ROWS), pa.Table.from_pylist([ROWS[0], *ROWS])[1:]])
def test_fields_of_what_is_in_memory(given: object) -> None:
    assert read(stream(FIELDS), given).rows == TAKEN
    names = ["id", "user.id", "user.name", "user.home.city", "user.home.zip"]
    assert [f.name for f in infer_given(given, "s")] == names


def test_only_the_fields_that_are_read_are_decoded(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    assert column.path_in_schema == "user.name"
    data[column.data_page_offset] ^= 0xFF
    path.write_bytes(data)
    assert read(stream(FIELDS, path=str(path))).rows == TAKEN
    assert read(stream([Field("user.name", T.VARCHAR)], path=str(path))).error is not None


def test_a_bad_value_inside_a_struct_is_a_bad_row() -> None:
    table = pa.table({"s": pa.StructArray.from_arrays([pa.array([1, 300, None])], names=["x"])})
    seen = read(stream([Field("s.x", T.TINYINT)], on_error="skip"), table)
    assert (seen.rows, seen.bad) == ([(1,), (None,)], 1)


def test_structs_as_deep_as_they_come() -> None:
    type_: pa.DataType = pa.int64()
    for _ in range(MAX_DEPTH + 5):
        type_ = pa.struct([pa.field("a", type_)])
    schema = pa.schema([pa.field("a", type_)])
    (leaf,) = flat_schema(schema)
    assert leaf.name.count(".") == MAX_DEPTH and pa.types.is_struct(leaf.type)
    assert flat_batch(pa.RecordBatch.from_arrays([pa.nulls(2, type_)], schema=schema)).num_columns == 1


def test_queries_name_fields_and_rows_are_refused_as_values() -> None:
    text = DECLARED + (
        "SELECT s.user.home.city, user.id + 1 AS next, (user).name, user.* EXCLUDE (id) FROM s WHERE user.id > 0;"
        "SELECT home.zip, COUNT(*) AS n FROM (SELECT user.* FROM s) AS t GROUP BY home.zip ORDER BY home.zip;"
        "SELECT a.id FROM s AS a JOIN s AS b ON a.user.id = b.user.id WHERE b.user.home.city = 'Wien';"
    )
    first, second, third = cq.sql(text, s=ROWS).run(engine="reference").values()
    assert first.to_arrow().column_names == ["city", "next", "name", "name_1", "home.city", "home.zip"]
    assert first.to_arrow().to_pydict()["next"] == [8, 10]
    assert second.to_arrow().to_pydict() == {"zip": [None, 1010], "n": [2, 1]}
    assert third.to_arrow().to_pydict() == {"id": [1]}
    with cq.sql(DECLARED + "SELECT user.home.city FROM s WHERE user.id > 0").start(engine="reference") as job:
        job.push("s", [{"id": 4, "user": None}])
        job.push("s", [{"id": 5}, {"user": {"id": 1, "home": {"city": "Graz"}}}])
        assert [r["city"] for b in job.results() for r in b.to_pylist()] == ["Graz"]
    for asked, code in (
        ("user", "CQ0501"),
        ("s.user.home", "CQ0501"),
        ("user.nam", "CQ0203"),
        ("x.id", "CQ0203"),
        ("user.home.city.x", "CQ0203"),
    ):
        with pytest.raises(cq.CompileError) as caught:
            cq.sql(DECLARED + f"SELECT {asked} FROM s").check()
        assert caught.value.code == code
    assert "user.home.city ->> 'x'" in caught.value.hint
