"""Sources other than CSV, sinks, and the hash of output rows."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors_fixture import read, stream

from cq.connectors import files, infer
from cq.connectors.access import FileAccess
from cq.connectors.parquet import source
from cq.connectors.physical_rows import batch_of, rows_of
from cq.connectors.rowhash import RowHash
from cq.connectors.sinks.cell_text import csv_rows, json_rows
from cq.connectors.sinks.terminal import Screen, Table
from cq.connectors.sinks.writers import MemorySink, open_sink
from cq.errors import UsageError
from cq.lang import types as T
from cq.lang.schema import Field
from cq.lang.value_text import read_span

NUMBERS = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", None, "c"]})


def parquet(directory: Path, table: pa.Table, name: str = "t.parquet", **options: object) -> str:
    pq.write_table(table, directory / name, **options)
    return str(directory / name)


def ipc(directory: Path, table: pa.Table, name: str = "t.arrow") -> str:
    with pa.ipc.new_file(str(directory / name), table.schema) as out:
        out.write_table(table)
    return str(directory / name)


# ------------------------------------------------------------------------------------------------ self-describing files


@pytest.mark.parametrize("write", [parquet, ipc])
def test_files_with_types_become_the_declared_types(tmp_path: Path, write: object) -> None:
    assert callable(write)
    seen = read(stream("name varchar, id bigint", path=write(tmp_path, NUMBERS)))
    assert seen.rows == [("a", 1), (None, 2), ("c", None)]
    assert [str(t) for t in seen.batches[0].schema.types] == ["string", "int64"]
    assert [p.rsplit(":", 1)[1] for p in seen.places] == ["1", "2", "3"]


def test_row_groups_keep_counting_rows(tmp_path: Path) -> None:
    table = pa.table({"id": list(range(100))})
    seen = read(stream("id bigint", path=parquet(tmp_path, table, row_group_size=7)))
    assert [p.rsplit(":", 1)[1] for p in seen.places] == [str(n) for n in range(1, 101)]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet files are read 100 rows at a time, by three threads, whatever the machine has."""
    monkeypatch.setattr(source, "READ_ROWS", 100)
    monkeypatch.setattr(source, "ROWS_TOGETHER", 250)
    monkeypatch.setattr(source, "cores", lambda: 3)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("rows, group", [(1000, 1000), (1000, 333), (1001, 7), (100, 100), (99, 30), (0, 10)])
@pytest.mark.parametrize("columns", [1, 2, 20])
def test_columns_decoded_side_by_side_stay_in_their_rows(tmp_path: Path, rows: int, group: int, columns: int) -> None:
    made = {f"c{k}": pa.array([n * 31 + k for n in range(rows)], pa.int64()) for k in range(columns - 1)}
    made["text"] = pa.array([f"{n}" * (n % 50) for n in range(rows)])
    path = parquet(tmp_path, pa.table(made), row_group_size=group)
    declared = stream("text varchar" + "".join(f", c{k} bigint" for k in range(columns - 1)), path=path)
    seen = read(declared)
    assert seen.error is None
    assert seen.rows == [(f"{n}" * (n % 50), *(n * 31 + k for k in range(columns - 1))) for n in range(rows)]
    assert [p.rsplit(":", 1)[1] for p in seen.places] == [str(n + 1) for n in range(rows)]


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("column", [0, 1])
def test_everything_before_a_damaged_page_is_delivered(tmp_path: Path, column: int) -> None:
    table = pa.table({"id": list(range(1000)), "name": [f"name {n}" for n in range(1000)]})
    path = parquet(tmp_path, table, row_group_size=500, use_dictionary=False, write_page_checksum=True)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(column)
    data = bytearray(Path(path).read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0x55
    Path(path).write_bytes(data)
    seen = read(stream("id bigint, name varchar", path=path))
    assert seen.rows == [(n, f"name {n}") for n in range(500)]
    assert seen.error is not None and seen.error.code == "CQ0701"
    assert seen.error.first.place == path and "after row 500" in seen.error.first.message


def test_text_too_long_for_one_batch_is_cut_at_the_same_row_in_every_column() -> None:
    numbers = pa.RecordBatch.from_pydict({"n": [1, 2, 3, 4, 5]})
    words = pa.RecordBatch.from_pydict({"w": ["a", "b", "c", "d", "e"]})
    parts = list(source._cut([[numbers], [words.slice(0, 2), words.slice(2, 2), words.slice(4)]]))
    assert [[b.to_pydict() for b in part] for part in parts] == [
        [{"n": [1, 2]}, {"w": ["a", "b"]}],
        [{"n": [3, 4]}, {"w": ["c", "d"]}],
        [{"n": [5]}, {"w": ["e"]}],
    ]


def test_value_without_a_place_in_the_declared_type_is_a_bad_row(tmp_path: Path) -> None:
    path = parquet(tmp_path, pa.table({"id": [1, 300, 2]}))
    seen = read(stream([Field("id", T.TINYINT)], path=path, on_error="skip"))
    assert (seen.rows, seen.bad) == ([(1,), (2,)], 1)
    error = read(stream([Field("id", T.TINYINT)], path=path)).error
    assert error is not None and error.first.place == f"{path}:2" and "'300' as TINYINT" in error.first.message


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (pa.timestamp("s"), "cannot read '4611686018427387904' as TIMESTAMP in column t"),
        (pa.timestamp("s", "No/Where"), "cannot read '4611686018427387904' as TIMESTAMP in column t"),
    ],
)
def test_time_beyond_the_years_of_python_is_a_bad_row(type_: pa.DataType, message: str) -> None:
    rows = pa.table({"t": pa.array([0, 1 << 62], type_)})
    assert read(stream("t timestamp", on_error="skip"), rows).bad == 1
    error = read(stream("t timestamp"), rows).error
    assert error is not None and error.first.message == message


def test_bad_row_may_hold_other_values_that_python_does_not(tmp_path: Path) -> None:
    rows = pa.table({"n": [300], "t": pa.array([1 << 62], pa.timestamp("us"))})
    letters = tmp_path / "bad.jsonl"
    fields = [Field("n", T.TINYINT), Field("t", T.TIMESTAMP)]
    assert read(stream(fields, on_error="dead_letter", bad_rows=str(letters)), rows).bad == 1
    assert json.loads(json.loads(letters.read_text())["raw"]) == {"n": 300, "t": 1 << 62}


def test_arrow_stream_with_something_behind_its_end_is_damaged(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2]})
    with pa.ipc.new_stream(str(tmp_path / "s.arrows"), table.schema) as out:
        out.write_table(table)
    once = (tmp_path / "s.arrows").read_bytes()
    assert read(stream("id bigint", path=str(tmp_path / "s.arrows"))).rows == [(1,), (2,)]
    (tmp_path / "s.arrows").write_bytes(once + once)
    seen = read(stream("id bigint", path=str(tmp_path / "s.arrows")))
    assert (
        seen.rows == [(1,), (2,)] and seen.error is not None and "more data after the end" in seen.error.first.message
    )


def test_text_that_becomes_shorter_while_it_is_read_does_not_look_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id\n1\n2\n")

    def cut(file: io.FileIO, *_: str) -> io.FileIO:
        os.truncate(path, 5)
        return file

    monkeypatch.setattr(files, "unpacked", cut)
    seen = read(stream("id bigint", path=str(path)))
    assert seen.error is not None and seen.error.first.message == "it became shorter while it was read"


def test_columns_of_one_name_in_a_file_get_no_guess(tmp_path: Path) -> None:
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    error = read(stream("a bigint", path=parquet(tmp_path, rows))).error
    assert error is not None and error.first.help == ("its columns: a, a",)


def test_null_where_a_value_is_demanded_is_bad_even_when_nobody_wants_the_column(tmp_path: Path) -> None:
    path = parquet(tmp_path, NUMBERS)
    seen = read(stream("id bigint, name varchar!", path=path, on_error="skip"), wanted=[0])
    assert seen.rows == [(1,), (None,)]
    error = read(stream("id bigint, name varchar!", path=path), wanted=[0]).error
    assert error is not None and error.code == "CQ0704"


def test_unwanted_columns_that_cannot_be_wrong_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    real = pq.ParquetFile.iter_batches

    def spy(self: pq.ParquetFile, **options: object) -> object:
        asked.append(options["columns"])  # type: ignore[arg-type]
        return real(self, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    path = parquet(tmp_path, pa.table({"a": [1], "b": [2], "c": pa.array([3], pa.int64())}))
    read(stream("a bigint, b bigint!, c bigint", path=path), wanted=[2])
    assert asked == [["c"]]  # b is NOT NULL, and the statistics say that it has no NULL


def test_no_wanted_column_still_gives_every_row(tmp_path: Path) -> None:
    seen = read(stream("id bigint", path=parquet(tmp_path, NUMBERS.select(["id"]))), wanted=[])
    assert seen.rows == [(), (), ()]


def test_column_of_another_kind_is_refused_with_the_type_to_declare(tmp_path: Path) -> None:
    error = read(stream("name bigint", path=parquet(tmp_path, NUMBERS))).error
    assert error is not None and error.code == "CQ0603"
    convert = "name VARCHAR, name_value AS CAST(name AS BIGINT)"
    assert error.first.help == (f"declare the text and convert it: {convert}",)


def test_times_of_any_unit_become_microseconds_cut_downwards() -> None:
    table = pa.table({
        "a": pa.array([-1, 1500], pa.timestamp("ns")),
        "b": pa.array([1, 2], pa.timestamp("s", "Europe/Berlin")),
    })  # fmt: skip
    assert read(stream("a timestamp, b timestamp"), table).rows == [(-1, 1_000_000), (1, 2_000_000)]


def test_dictionaries_and_large_strings_become_strings() -> None:
    table = pa.table(
        {"a": pa.array(["x", "y", None]).dictionary_encode(), "b": pa.array(["p", "q", None], pa.large_string())}
    )
    seen = read(stream("a varchar, b varchar"), table)
    assert seen.rows == [("x", "p"), ("y", "q"), (None, None)]
    assert [str(t) for t in seen.batches[0].schema.types] == ["string", "string"]


# ---------------------------------------------------------------------------------------------------------- in memory


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: t.to_batches(),
        lambda t: t.to_reader(),
        lambda t: pandas.DataFrame({"id": pandas.array([1, 2, None], "Int32"), "name": ["a", None, "c"]}),
        polars.from_arrow,
        lambda t: t.to_pylist(),
        lambda t: t.to_pydict(),
    ],
    ids=["table", "batch", "batches", "reader", "pandas", "polars", "rows", "columns"],
)
def test_everything_tabular_in_memory_is_an_input(make: object) -> None:
    assert callable(make)
    seen = read(stream("id bigint, name varchar"), make(NUMBERS))
    assert seen.error is None
    assert seen.rows == [(1, "a"), (2, None), (None, "c")]


def test_rows_of_dicts_take_python_values_of_the_declared_types() -> None:
    fields = [Field("d", T.decimal(7, 2)), Field("t", T.TIMESTAMP), Field("day", T.DATE)]
    rows = [{"d": Decimal("1.5"), "t": dt.datetime(1970, 1, 1, 0, 0, 1), "day": dt.date(1970, 1, 2)}, {}]
    assert read(stream(fields), rows).rows == [(150, 1_000_000, 1), (None, None, None)]


def test_something_that_is_no_table_is_refused_by_name() -> None:
    error = read(stream("id bigint"), 42).error
    assert error is not None and error.code == "CQ0602" and "int" in error.first.message


def test_physical_values_survive_the_way_through_arrow() -> None:
    fields = [
        Field("a", T.array(T.BIGINT)), Field("b", T.decimal(18, 3)), Field("c", T.INTERVAL), Field("d", T.BOOLEAN),
        Field("e", T.decimal(38, 9)),
    ]  # fmt: skip
    rows = [((1, 2), -123, 5, True, 1 - 10**38), (None, None, None, None, None), ((), 10**17, -5, False, 2**64 + 5)]
    batch = batch_of(rows, fields)
    assert list(rows_of(batch, [f.type for f in fields])) == rows
    assert list(rows_of(batch.slice(1), [f.type for f in fields])) == rows[1:]


# ---------------------------------------------------------------------------------------------------------- inference


def test_columns_of_csv_are_the_narrowest_types_its_rows_fit(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,p,name,ts,day\n1,1.5,x,2024-01-01 00:00:00,2024-01-01\n2,,,,\n")
    fields = infer({"path": "t.csv"}, FileAccess(tmp_path))
    assert [str(f) for f in fields] == ["id BIGINT", "p DOUBLE", "name VARCHAR", "ts TIMESTAMP", "day DATE"]


def test_generator_says_its_own_columns_and_gives_rows() -> None:
    options = {"connector": "generator", "workload": "bids", "rows": "10"}
    fields = infer(options)
    seen = read(stream(fields, **options))
    assert len(seen.rows) == 10 and seen.places[0] == "<s>:1"


# --------------------------------------------------------------------------------------------------------------- access


def test_query_text_cannot_leave_its_directories(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "t.csv").write_text("id\n1\n")
    (inside / "link.csv").symlink_to(outside / "t.csv")
    access = FileAccess(inside, (inside,))
    for path in ("../out/t.csv", str(outside / "t.csv"), "link.csv", "/etc/passwd"):
        with pytest.raises(UsageError) as refused:
            access.open(path)
        assert refused.value.code == "CQ0601" and "--restrict" in refused.value.hint
    with FileAccess(inside, (inside, outside)).open("link.csv") as file:
        assert file.read() == b"id\n1\n"


# ---------------------------------------------------------------------------------------------------------------- sinks

EVERY_TYPE = pa.RecordBatch.from_arrays(
    [
        pa.array([1, None, -3]),
        pa.array([1.0, float("nan"), 1e300]),
        pa.array(["", None, 'a,"b"\n']),
        pa.array([0, -1, None], pa.timestamp("us")),
        pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(7, 2)),
        pa.array([True, None, False]),
        pa.array([0, 19782, None], pa.date32()),
    ],
    names=["i", "f", "s", "t", "d", "b", "day"],
)
FIELDS = [
    Field("i", T.BIGINT), Field("f", T.DOUBLE), Field("s", T.VARCHAR), Field("t", T.TIMESTAMP),
    Field("d", T.decimal(7, 2)), Field("b", T.BOOLEAN), Field("day", T.DATE),
]  # fmt: skip


def test_csv_quotes_only_what_needs_it_and_tells_null_from_empty() -> None:
    assert csv_rows(EVERY_TYPE, ",").decode() == (
        '1,1.0,"",1970-01-01 00:00:00,1.50,true,1970-01-01\n'
        ",nan,,1969-12-31 23:59:59.999999,,,2024-02-29\n"
        '-3,1e+300,"a,""b""\n",,-0.01,false,\n'
    )


def test_json_keeps_exact_numbers_and_has_null_for_what_is_none() -> None:
    first, second, _ = json_rows(EVERY_TYPE).decode().splitlines()
    assert first == '{"i": 1, "f": 1.0, "s": "", "t": "1970-01-01 00:00:00", "d": 1.50, "b": true, "day": "1970-01-01"}'
    assert second.startswith('{"i": null, "f": null, "s": null,')
    assert (
        json_rows(EVERY_TYPE, nan_text=True).decode().splitlines()[1].startswith('{"i": null, "f": "nan", "s": null,')
    )


def test_an_interval_is_written_as_a_clock_and_read_back() -> None:
    """It used to be a number of microseconds."""
    ages = pa.array([90_000_000, None, -1_500_000, 90_000_000], pa.duration("us"))
    batch = pa.RecordBatch.from_arrays([ages], names=["age"])
    long, short = "00:01:30", "-00:00:01.5"
    assert [read_span(text) for text in (long, short, "2 00:00:00", "1:2:3", "00:60:00")] == [
        90_000_000, -1_500_000, 172_800_000_000, None, None
    ]  # fmt: skip
    assert csv_rows(batch, ",").decode().splitlines() == [long, "", short, long]
    assert csv_rows(batch.slice(2), ",").decode().splitlines() == [short, long]
    assert [json.loads(line)["age"] for line in json_rows(batch).splitlines()] == [long, None, short, long]


def test_json_of_arrays_and_hostile_text_is_json() -> None:
    texts = ['a"\\\n\x00\x1f\x7f', "\u2028é😀", None]
    batch = pa.RecordBatch.from_pydict({'q"': texts, "l": pa.array([[1.5, None, float("nan")], None, []])})
    for rows in (batch, batch.slice(1)):
        read_back = [json.loads(line) for line in json_rows(rows).splitlines()]
        assert [row['q"'] for row in read_back] == texts[-rows.num_rows :]
        assert [row["l"] for row in read_back] == [[1.5, None, None], None, []][-rows.num_rows :]
        as_texts = [json.loads(line)["l"] for line in json_rows(rows, nan_text=True).splitlines()]
        assert as_texts == [[1.5, None, "nan"], None, []][-rows.num_rows :]


READ_BACK = ["out.csv", "out.jsonl", "out.parquet", "out.arrow", "out.csv.gz", "out.json.zst"]


@pytest.mark.parametrize("name", READ_BACK)
def test_what_a_sink_wrote_a_source_reads_back(tmp_path: Path, name: str) -> None:
    sink = open_sink(FIELDS, {"path": name, "nan": "text"}, FileAccess(tmp_path))
    sink.write(EVERY_TYPE)
    assert os.listdir(tmp_path) != [name], "the file has its name before it is whole"
    sink.close()
    assert os.listdir(tmp_path) == [name]
    seen = read(stream(FIELDS, path=str(tmp_path / name)))
    assert repr(seen.rows) == repr(list(rows_of(EVERY_TYPE, [f.type for f in FIELDS])))


def test_aborted_sink_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("old")
    sink = open_sink(FIELDS, {"path": "out.csv"}, FileAccess(tmp_path))
    sink.write(EVERY_TYPE)
    sink.abort()
    assert os.listdir(tmp_path) == ["out.csv"] and (tmp_path / "out.csv").read_text() == "old"


def test_sink_onto_a_source_is_refused_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id\n1\n")
    (tmp_path / "other.csv").hardlink_to(tmp_path / "in.csv")
    status = (tmp_path / "in.csv").stat()
    with pytest.raises(UsageError) as refused:
        open_sink(FIELDS, {"path": "other.csv"}, FileAccess(tmp_path), frozenset({(status.st_dev, status.st_ino)}))
    assert refused.value.code == "CQ0605"


@pytest.mark.parametrize("path", ["missing/out.csv", ".", "out.xyz"])
def test_sink_that_cannot_be_opened_says_why(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_sink(FIELDS, {"path": path}, FileAccess(tmp_path))
    assert refused.value.code in {"CQ0605", "CQ0602"}


def test_terminal_shows_null_and_nothing_that_moves_the_cursor() -> None:
    text = io.StringIO()
    table = Table("out", ["n", "s"], Screen(text, colour=False))
    table.write(pa.record_batch({"n": [1, None], "s": ["\x1b[2Jx\r", "日本"]}))
    table.write(pa.record_batch({"n": [12345], "s": ["y"]}))
    table.close()
    assert text.getvalue() == "    n  s\n─────  ────────────\n    1  \\x1b[2Jx\\x0d\n NULL  日本\n12345  y\n"


@pytest.mark.parametrize(
    ("batches", "shown", "told"),
    [
        ([[1, 2]], 2, ""),
        ([[1], [2], [3]], 2, "… 1 more row; "),
        ([[1, 2, 3, 4], [5] * 3000], 2, "… 3,002 more rows; "),
        ([[1], []], 0, "… 1 more row; "),
    ],
)
def test_terminal_shows_the_first_rows_and_counts_the_others(batches: list[list[int]], shown: int, told: str) -> None:
    for ends in (Table.close, Table.abort):  # a run that is stopped says it as well
        text = io.StringIO()
        table = Table("out", ["n"], Screen(text, colour=False), shown, "; more")
        for batch in batches:
            table.write(pa.record_batch({"n": pa.array(batch, pa.int64())}))
        ends(table)
        lines = [line for line in text.getvalue().splitlines() if line not in {"n", "─"}]
        assert [line for line in lines if line.isdigit()] == [str(n) for n in range(1, shown + 1)]
        assert "".join(lines[shown:]) == (f"{told}more" if told else "")


def test_terminal_says_which_output_has_more_rows() -> None:
    text = io.StringIO()
    screen = Screen(text, colour=False, titles=True)
    for name in ("a", "b"):
        table = Table(name, ["n"], screen, 1)
        table.write(pa.record_batch({"n": [1, 2]}))
        table.close()
    assert [line.partition(";")[0] for line in text.getvalue().splitlines() if "more" in line] == [
        "a: … 1 more row",
        "b: … 1 more row",
    ]


# ----------------------------------------------------------------------------------------------------------------- hash


def digest(*batches: pa.RecordBatch) -> str:
    h = RowHash()
    for b in batches:
        h.update(b)
    return h.digest


def test_hash_does_not_see_batches() -> None:
    rng = random.Random(3)
    words = ["", "a", "abcdefgh", "abcdefghi", "x" * 300, "é" * 50, None]
    table = pa.table({
        "n": [rng.choice([1, 2, None]) for _ in range(500)],
        "s": pa.array([rng.choice(words) for _ in range(500)], pa.string()),
        "f": [rng.choice([0.0, float("nan"), None]) for _ in range(500)],
        "l": pa.array([rng.choice([[], ["a", None], ["x" * 300], None]) for _ in range(500)], pa.list_(pa.string())),
    })  # fmt: skip
    whole = digest(*table.to_batches())
    for size in (1, 7, 100):
        assert digest(*table.to_batches(max_chunksize=size)) == whole
    assert digest(table.slice(1).to_batches()[0]) != whole


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2], [2, 1]),
        ([1, None], [None, 1]),
        ([0, 1], [None, 1]),
        ([""], [None]),
        (["a", "bc"], ["ab", "c"]),
        (["a\0"], ["a"]),
        ([0.0], [-0.0]),
        (["x" * 300 + "a"], ["x" * 300 + "b"]),
        ([1], [1, None]),
        ([True], [False]),
        ([Decimal("1.0")], [Decimal("-1.0")]),
        ([Decimal(5)], [Decimal(2**64 + 5)]),
        ([[1, 2]], [[2, 1]]),
        ([[1], [2]], [[1, 2], []]),
        ([[], [1]], [None, [1]]),
        ([[None]], [[]]),
        ([["a", "b"]], [["ab", ""]]),
    ],
)
def test_hash_tells_results_apart(a: list[object], b: list[object]) -> None:
    assert digest(pa.record_batch({"x": a})) != digest(pa.record_batch({"x": b}))


def test_hash_is_the_same_for_every_nan_and_whatever_lies_under_null() -> None:
    quiet = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    assert digest(pa.record_batch({"x": quiet[:1]})) == digest(pa.record_batch({"x": quiet[1:]}))
    under = [pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(np.array([n]))]) for n in (5, 6)]
    assert digest(pa.record_batch({"x": under[0]})) == digest(pa.record_batch({"x": under[1]}))


def test_dates_that_python_does_not_know_have_a_hash_in_lists_too() -> None:
    far = [pa.array([days], pa.int32()).cast(pa.date32()) for days in (2**31 - 1, 2**31 - 2)]
    a, b = (digest(pa.record_batch({"x": pa.ListArray.from_arrays([0, 1], days)})) for days in far)
    assert a != b


def test_hash_of_these_rows_never_changes() -> None:
    """People compare hashes of different versions."""
    assert digest(EVERY_TYPE) == "2823a959b517757d"


def test_memory_sink_gives_a_table_with_the_types_of_the_output() -> None:
    sink = MemorySink(pa.schema([pa.field(f.name, T.to_arrow(f.type)) for f in FIELDS]))
    assert sink.table().num_rows == 0
    sink.write(EVERY_TYPE)
    assert sink.table().num_rows == 3


def stream_of(directory: Path, table: pa.Table, chunk: int) -> str:
    with pa.ipc.new_stream(str(directory / "s.arrows"), table.schema) as out:
        out.write_table(table, max_chunksize=chunk)
    return str(directory / "s.arrows")


def test_share_that_is_read_grows_to_one_over_files_of_every_format(tmp_path: Path) -> None:
    from cq.connectors.files import Files
    from cq.connectors.rules import Rules

    table = pa.table({"id": list(range(300_000))})
    parquet(tmp_path, table, row_group_size=100_000)
    stream_of(tmp_path, table, 100_000)
    with pa.ipc.new_file(str(tmp_path / "f.arrow"), table.schema) as out:
        out.write_table(table, max_chunksize=100_000)
    (tmp_path / "t.csv").write_text("id\n" + "\n".join(map(str, range(300_000))) + "\n")
    for name in ("t.parquet", "f.arrow", "s.arrows", "t.csv"):
        (tmp_path / f"again.{name}").write_bytes((tmp_path / name).read_bytes())
        files = Files(f"*{name}", {}, Rules.of(stream("id bigint")), FileAccess(tmp_path))
        shares = [files.share_done()] + [files.share_done() for _ in files.pieces()] + [files.share_done()]
        assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1 and len(set(shares)) > 2, name


@pytest.mark.parametrize("shown", ["/dev/fd", "/nowhere"])
def test_file_is_read_by_its_descriptor_where_the_system_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    from cq.connectors import native_file

    monkeypatch.setattr(native_file, "DESCRIPTORS", shown)
    path = Path(ipc(tmp_path, NUMBERS))
    with FileAccess(tmp_path).open(path.name) as file:
        path.unlink()  # another file may stand under its name by now
        path.write_bytes(b"something else")
        with native_file.native(file) as its_own:
            assert isinstance(its_own, pa.OSFile) == (shown == "/dev/fd")
            assert pa.ipc.open_file(its_own).read_all() == NUMBERS


def test_reading_ahead_ends_when_nobody_reads(tmp_path: Path) -> None:
    import threading

    from cq.connectors.inputs import Inputs
    from cq.connectors.sources import open_source

    path = parquet(tmp_path, pa.table({"id": list(range(200_000))}), row_group_size=1000)
    source = open_source(stream("id bigint", path=path), Inputs(FileAccess(tmp_path)))
    next(source.batches())
    source.close()
    assert not [t for t in threading.enumerate() if t.name == "cq-read-s"]


@pytest.mark.parametrize("delimiter", ["", "ab", "\n", '"'])
def test_a_sink_refuses_the_delimiters_that_a_source_refuses(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_sink(FIELDS, {"path": "out.csv", "delimiter": delimiter}, FileAccess(tmp_path))
    assert refused.value.code == "CQ0208" and not list(tmp_path.iterdir())
