"""Columns of bytes: BINARY in every self-describing input and output, hexadecimal digits in text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors_fixture import read, stream

import cq
from cq.connectors.inference import infer_given
from cq.lang import types as T
from cq.lang.arrow_buffers import from_hexadecimal, hexadecimal
from cq.lang.schema import Field

VALUES = [b"\x00\xff", b"", None, b"a", b"\x0a" * 40]
ENGINES = ("reference", "native")


def written(directory: Path, name: str, table: pa.Table) -> str:
    path = str(directory / name)
    if name.endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as out:
            out.write_table(table)
    return path


def of(*values: bytes | None, type_: Any = None) -> pa.Array:
    return pa.array(values, type_ or pa.binary())


COLUMNS = {
    "binary": of(*VALUES),
    "large": of(*VALUES, type_=pa.large_binary()),
    "view": of(*VALUES, type_=pa.binary_view()),
    "fixed": of(b"ab", None, b"\xff\x00", b"cd", b"\x00\x00", type_=pa.binary(2)),
    "coded": of(*VALUES).dictionary_encode(),
    "sliced": of(b"before", *VALUES, b"after").slice(1, len(VALUES)),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("give", ["t.parquet", "t.arrow", "arrow", "pandas", "polars"])
def test_columns_of_bytes_are_inferred_as_binary(tmp_path: Path, column: str, give: str) -> None:
    table = pa.table({"n": range(len(VALUES)), "b": COLUMNS[column]})
    wanted = COLUMNS[column].to_pylist()
    if give in {"t.parquet", "t.arrow"}:
        text, inputs = f"SELECT * FROM '{written(tmp_path, give, table)}'", {}
    else:
        made: dict[str, Callable[[], Any]] = {
            "arrow": lambda: table,
            "pandas": table.to_pandas,
            "polars": lambda: polars.from_arrow(table.cast(pa.schema([("n", pa.int64()), ("b", pa.binary())]))),
        }
        text, inputs = "SELECT * FROM given", {"given": made[give]()}
        assert [f.type for f in infer_given(inputs["given"], "given")][1] == T.BINARY
    for engine in ENGINES:
        found = cq.run(text, inputs, engine=engine).to_arrow()
        assert (found["b"].type, found["b"].to_pylist()) == (pa.binary(), wanted)


def test_arrays_of_bytes_and_python_rows() -> None:
    rows = [{"b": b"\xff", "a": [b"\x00", None, b""]}, {"b": None, "a": []}, {"b": b"a", "a": None}]
    for engine in ENGINES:
        found = cq.run("SELECT b, a, a[1] AS f, CARDINALITY(a) AS n FROM s", {"s": rows}, engine=engine).to_pylist()
        assert found == [
            {**row, "f": (row["a"] or [None])[0], "n": None if row["a"] is None else len(row["a"])} for row in rows
        ]


def test_a_column_of_bytes_declared_as_text_is_text() -> None:
    table = pa.table({"b": of(b"a", "é".encode(), b"\xff", None)})
    seen = read(stream("b varchar", on_error="skip"), table)
    assert (seen.rows, seen.bad) == ([("a",), ("é",), (None,)], 1)
    error = read(stream("b varchar"), table).error
    assert error is not None and "declare it BINARY: b BINARY" in error.first.help[0]


@pytest.mark.parametrize("column", [pa.array(["a"]), pa.array([1])])
def test_other_columns_are_not_bytes(column: pa.Array) -> None:
    error = read(stream([Field("b", T.BINARY)]), pa.table({"b": column})).error
    assert error is not None and error.code == "CQ0603"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet", "arrow"])
def test_what_is_written_reads_back(tmp_path: Path, format_: str, engine: str) -> None:
    path = tmp_path / f"out.{format_}"
    lists = "" if format_ == "csv" else ", a BINARY ARRAY"
    table = pa.table({"n": range(len(VALUES)), "b": of(*VALUES), "a": pa.array([[v] for v in VALUES])})
    shown = f"n, b{', a' if lists else ''}"
    cq.run(f"CREATE SINK o WITH (path = '{path}'); INSERT INTO o SELECT {shown} FROM s", {"s": table}, engine=engine)
    declared = f"CREATE STREAM back (n BIGINT, b BINARY{lists}) WITH (path = '{path}'); SELECT * FROM back"
    assert cq.run(declared, engine=engine).to_pylist() == table.select(shown.split(", ")).to_pylist()


def test_text_forms() -> None:
    table = pa.table({"n": range(len(VALUES)), "b": of(*VALUES)})
    out = cq.run("SELECT n, b FROM s", {"s": table})
    digits = ["00FF", "", "NULL", "61", "0A" * 40]
    lines = [line.split() for line in str(out).splitlines()[2:]]
    assert [(line[1:] or [""])[0].rstrip("…") for line in lines] == [d[:59] if len(d) > 60 else d for d in digits]


def test_csv_and_json_say_nothing_null_and_empty_apart(tmp_path: Path) -> None:
    table = pa.table({"b": of(*VALUES), "n": range(len(VALUES))})
    for engine in ENGINES:
        for format_ in ("csv", "jsonl"):
            sink = f"CREATE SINK o WITH (path = '{tmp_path}/o.{format_}'); INSERT INTO o SELECT * FROM s"
            cq.run(sink, {"s": table}, engine=engine)
        assert (tmp_path / "o.csv").read_text() == 'b,n\n00FF,0\n"",1\n,2\n61,3\n' + "0A" * 40 + ",4\n"
        values = [json.loads(line)["b"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
        assert values == ["00FF", "", None, "61", "0A" * 40]


@pytest.mark.parametrize("bad", ["0g", "0", "00f", "0x00", r"\x00", " 00", "00 ", "00 ff", "é"])
@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_other_digits_are_unreadable(tmp_path: Path, format_: str, bad: str) -> None:
    texts = ["00ff", bad, "0AfF"]
    path = tmp_path / f"in.{format_}"
    lines = ["n,b", *(f"{n},{t}" for n, t in enumerate(texts))]
    if format_ == "jsonl":
        lines = [json.dumps({"n": n, "b": t}) for n, t in enumerate(texts)]
    path.write_text("\n".join(lines) + "\n")
    declared = f"CREATE STREAM s (n BIGINT, b BINARY) WITH (path = '{path}'%s); SELECT * FROM s"
    for engine in ENGINES:
        with pytest.raises(cq.CqError) as caught:
            cq.run(declared % "", engine=engine)
        assert caught.value.code == "CQ0702" and "write two hexadecimal digits for each byte" in str(caught.value)
        with pytest.warns(UserWarning, match="1 row could not be read"):
            found = cq.run(declared % ", on_error = 'skip'", engine=engine).to_pylist()
        assert found == [{"n": 0, "b": b"\x00\xff"}, {"n": 2, "b": b"\x0a\xff"}]


def test_dead_letters_show_digits(tmp_path: Path) -> None:
    letters = tmp_path / "bad.jsonl"
    fields = [Field("b", T.BINARY), Field("n", T.INTEGER)]
    table = pa.table({"b": of(b"\xff\x00", b"a"), "n": pa.array([2**40, 1], pa.int64())})
    seen = read(stream(fields, on_error="dead_letter", bad_rows=str(letters)), table)
    assert (seen.rows, seen.bad) == ([(b"a", 1)], 1)
    assert json.loads(json.loads(letters.read_text())["raw"]) == {"b": "FF00", "n": 2**40}


def test_hexadecimal_digits_of_whole_columns() -> None:
    draw = random.Random(7)
    for _ in range(200):
        values = [draw.choice([None, b"", draw.randbytes(draw.randrange(20))]) for _ in range(draw.randrange(9))]
        start = draw.randrange(len(values) + 1)
        column = of(*values).slice(start)
        texts = hexadecimal(column)
        texts.validate(full=True)
        assert texts.to_pylist() == [None if v is None else v.hex().upper() for v in values[start:]]
        back = from_hexadecimal(texts)
        assert back is not None and back.equals(of(*values[start:]))
    for wrong in ("0", "0g", "é", "0 0"):
        assert from_hexadecimal(pa.array(["00", wrong, "00"])) is None
    assert from_hexadecimal(pa.array(["0", "000"])) is None  # even together
