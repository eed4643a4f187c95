"""Inputs that know their types: what converts exactly, text that is not UTF-8, damage that no column asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connectors_fixture import read, stream

from cq.connectors import memory
from cq.connectors.arrow import source as arrow_source
from cq.connectors.inference import infer_given
from cq.connectors.memory import as_reader
from cq.connectors.parquet import source
from cq.lang import types as T
from cq.lang.schema import Field

Write = Callable[[Path, pa.Table], str]


def parquet(directory: Path, table: pa.Table) -> str:
    pq.write_table(table, directory / "t.parquet", write_page_checksum=True)
    return str(directory / "t.parquet")


def ipc(directory: Path, table: pa.Table) -> str:
    with pa.ipc.new_file(str(directory / "t.arrow"), table.schema) as out:
        out.write_table(table)
    return str(directory / "t.arrow")


# ------------------------------------------------------------------------------------------------ integers as DECIMALs


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64()])
@pytest.mark.parametrize("write", [parquet, ipc, lambda _, t: t.to_pandas(), lambda _, t: polars.from_arrow(t)])
def test_integers_become_decimals_exactly(
    tmp_path: Path, type_: pa.DataType, write: Callable[[Path, pa.Table], object]
) -> None:
    given = write(tmp_path, pa.table({"d": pa.array([1, 0, 99], type_)}))
    seen = read(stream([Field("d", T.decimal(12, 2))]), given)
    assert seen.error is None and seen.rows == [(100,), (0,), (9900,)]


def test_integer_too_large_for_its_decimal_is_a_bad_row() -> None:
    values = pa.table({"d": pa.array([999, 1000, -1000, None, 2**63 - 1, -999], pa.int64())})
    seen = read(stream([Field("d", T.decimal(5, 2))], on_error="skip"), values)
    assert (seen.rows, seen.bad) == ([(99900,), (None,), (-99900,)], 3)
    error = read(stream([Field("d", T.decimal(5, 2))]), values).error
    assert error is not None and error.first.place == "<s>:2" and "'1000' as DECIMAL(5,2)" in error.first.message


def test_every_int64_fits_no_decimal_and_those_that_do_are_exact() -> None:
    values = pa.table({"d": pa.array([10**17, -(10**18) + 1, 10**18], pa.int64())})
    seen = read(stream([Field("d", T.decimal(18, 0))], on_error="skip"), values)
    assert (seen.rows, seen.bad) == ([(10**17,), (-(10**18) + 1,)], 1)


def test_int64_and_wider_decimals_fit_a_decimal_of_38_digits_exactly() -> None:
    integers = pa.table({"d": pa.array([2**63 - 1, -(2**63), None], pa.int64())})
    fields = [Field("d", T.decimal(38, 19))]
    assert read(stream(fields), integers).rows == [((2**63 - 1) * 10**19,), (-(2**63) * 10**19,), (None,)]
    values = [Decimal("-0.5"), Decimal(10**37), None]
    for type_, scale in ((pa.decimal128(38, 0), 0), (pa.decimal256(50, 2), 2)):
        given = pa.table({"d": pa.array([Decimal(7), values[1], None], type_)})
        seen = read(stream([Field("d", T.decimal(38, scale))], on_error="skip"), given)
        assert (seen.rows, seen.bad) == (([(7,), (10**37,), (None,)], 0) if scale == 0 else ([(700,), (None,)], 1))


# ---------------------------------------------------------------------------------------------------- elements of lists


@pytest.mark.parametrize(
    ("elements", "element", "expected"),
    [
        (pa.array([1, 2], pa.int64()), T.decimal(12, 2), (100, 200)),
        (pa.array([1_999, -1], pa.timestamp("ns")), T.TIMESTAMP, (1, -1)),
        (pa.array(["a", "b"]).dictionary_encode(), T.VARCHAR, ("a", "b")),
        (pa.array([1.5, 2.5], pa.float32()), T.DOUBLE, (1.5, 2.5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("large", [False, True])
def test_elements_are_converted_as_columns_are(
    elements: pa.Array, element: T.DataType, expected: tuple[object, ...], large: bool
) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 2], pa.int32()), elements, mask=pa.array([False, True, False]))
    given = pa.table({"a": lists.cast(pa.large_list(elements.type)) if large else lists})
    seen = read(stream([Field("a", T.array(element))]), given)
    assert seen.error is None and seen.rows == [(expected,), (None,), ((),)]


@pytest.mark.parametrize("write", [parquet, ipc, lambda _, t: t])
@pytest.mark.parametrize(
    ("value", "way"), [({"sku": "x"}, "remove the column, or convert it"), (1, "declare it BIGINT ARRAY")]
)
def test_list_whose_elements_have_another_type_does_not_fit(
    tmp_path: Path, write: Callable[[Path, pa.Table], object], value: object, way: str
) -> None:
    error = read(stream([Field("a", T.array(T.VARCHAR))]), write(tmp_path, pa.table({"a": [[value], []]}))).error
    assert error is not None and error.first.code == "CQ0603" and "is declared VARCHAR ARRAY" in error.first.message
    assert error.first.help[0].startswith(way)


# --------------------------------------------------------------------------------------------------------- times of day


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
@pytest.mark.parametrize("write", [parquet, ipc, lambda _, t: t])
def test_times_of_day_of_any_unit_are_cut_to_microseconds(
    tmp_path: Path, type_: pa.DataType, write: Callable[[Path, pa.Table], object]
) -> None:
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type_.unit]
    counts = pa.array([0, None, 86_400 * unit - 1], pa.int32() if type_.bit_width == 32 else pa.int64())
    given = write(tmp_path, pa.table({"t": counts.view(type_)}))
    seen = read(stream([Field("t", T.TIME)]), given)
    last = (86_400 * unit - 1) * 10**6 // unit
    assert seen.error is None and seen.rows == [(0,), (None,), (last,)]


def test_times_beyond_the_day_are_bad_rows(tmp_path: Path) -> None:
    given = pa.table({"t": pa.array([0, 86_400_000_000, -1], pa.int64()).view(pa.time64("us"))})
    for source_ in (given, parquet(tmp_path, given)):
        seen = read(stream([Field("t", T.TIME)], on_error="skip"), source_)
        assert seen.error is None and (seen.rows, seen.bad) == ([(0,)], 2)


# ------------------------------------------------------------------------------------------------------- rows of dicts


def test_batches_with_and_without_nulls_are_checked_each_for_itself() -> None:
    batches = [pa.record_batch({"B": ["x", "y"], "a": pa.array(v, pa.int64())}) for v in ([1, 2], [3, None], [5, 6])]
    declared = "a bigint!, b varchar"
    failed = read(stream(declared), pa.Table.from_batches(batches))
    assert failed.rows == [(1, "x"), (2, "y"), (3, "x")] and failed.error is not None and "CQ0704" in str(failed.error)
    skipping = read(stream(declared, on_error="skip"), pa.Table.from_batches(batches), wanted=(1, 0))
    assert skipping.rows == [("x", 1), ("y", 2), ("x", 3), ("x", 5), ("y", 6)] and skipping.bad == 1
    assert skipping.places == [f"<s>:{row}" for row in (1, 2, 3, 5, 6)]
    assert {tuple(batch.schema.names) for batch in skipping.batches} == {("b", "a")}


def test_rows_of_dicts_have_the_columns_of_all_rows() -> None:
    rows = [{"a": 1}, {"b": "x", "a": 2}, {"c": 1.5}]
    assert [f.name for f in infer_given(rows, "s")] == ["a", "b", "c"]
    assert as_reader(rows, None, "s").read_all().to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": 2, "b": "x", "c": None},
        {"a": None, "b": None, "c": 1.5},
    ]


# ---------------------------------------------------------------------------------------------- text that is not UTF-8


BYTES = [b"a", b"\xff\xfe", None, "é".encode(), b"b\x80"]


def text(type_: pa.DataType) -> pa.Array:
    plain = pa.array(BYTES, pa.binary()).view(pa.string())
    if pa.types.is_dictionary(type_):
        indices = pa.array([0, 1, None, 2, 3], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, plain.drop_null(), safe=False)
    if pa.types.is_large_string(type_):
        return pa.array(BYTES, pa.large_binary()).view(type_)
    if pa.types.is_list(type_):
        return pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), plain)
    return plain


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("write", [parquet, ipc])
def test_text_that_is_not_utf8_is_a_bad_row_by_row_and_column(tmp_path: Path, write: Write, type_: pa.DataType) -> None:
    path = write(tmp_path, pa.table({"id": [1, 2, 3, 4, 5], "name": text(type_)}))
    letters = tmp_path / "bad.jsonl"
    seen = read(stream("id bigint, name varchar", path=path, on_error="dead_letter", bad_rows=str(letters)))
    assert seen.error is None and (seen.rows, seen.bad) == ([(1, "a"), (3, None), (4, "é")], 2)
    first = json.loads(letters.read_text().splitlines()[0])
    assert (first["record"], first["column"], first["code"]) == (2, "name", "CQ0702")
    failed = read(stream("id bigint, name varchar", path=path))
    assert failed.rows == [(1, "a")] and failed.error is not None
    assert failed.error.first.place == f"{path}:2"
    assert failed.error.first.message == r"cannot read '\xff\xfe' as VARCHAR in column name: its bytes are not UTF-8"


@pytest.mark.parametrize("write", [parquet, ipc])
def test_lists_of_text_that_is_not_utf8_are_bad_rows(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"id": [1, 2, 3, 4, 5], "names": text(pa.list_(pa.string()))}))
    seen = read(stream([Field("id", T.BIGINT), Field("names", T.array(T.VARCHAR))], path=path, on_error="skip"))
    assert seen.error is None and [r[0] for r in seen.rows] == [1, 3, 4] and seen.bad == 2


def test_broken_offsets_are_damage_and_no_bad_rows(tmp_path: Path) -> None:
    path = ipc(tmp_path, pa.table({"name": ["abc", "def", "ghi"]}))
    data = Path(path).read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 3, 6, 9))
    assert data.count(offsets) == 1
    Path(path).write_bytes(data.replace(offsets, offsets[:8] + b"\xff\xff\xff\x7f" + offsets[12:]))
    seen = read(stream("name varchar", path=path, on_error="skip"))
    assert seen.rows == [] and seen.error is not None and seen.error.code == "CQ0701"


# ----------------------------------------------------------------------------------------------- damage nobody asks for


@pytest.mark.parametrize("wanted", [[], [0], [0, 1]])
def test_damaged_row_group_is_noticed_whatever_the_query_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: list[int]
) -> None:
    monkeypatch.setattr(source, "READ_ROWS", 100)
    monkeypatch.setattr(source, "ROWS_TOGETHER", 250)
    table = pa.table({"id": list(range(1000)), "name": [f"name {n}" for n in range(1000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=500, use_dictionary=False, write_page_checksum=True)
    path = tmp_path / "t.parquet"
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(1)
    for column in range(2):
        chunk = group.column(column)
        data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0x55
    path.write_bytes(data)
    seen = read(stream("id bigint, name varchar", path=str(path)), wanted=wanted)
    assert len(seen.rows) == 500 and seen.error is not None and seen.error.code == "CQ0701"


def test_query_without_a_column_reads_the_smallest_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    real = pq.ParquetFile.iter_batches

    def spy(self: pq.ParquetFile, **options: object) -> object:
        asked.append(options["columns"])  # type: ignore[arg-type]
        return real(self, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    table = pa.table({"long": [f"{n}" * 20 for n in range(1000)], "id": list(range(1000)), "flag": [True] * 1000})
    seen = read(stream("long varchar, id bigint", path=parquet(tmp_path, table)), wanted=[])
    assert len(seen.rows) == 1000 and asked == [["id"]]


@pytest.mark.parametrize(
    ("write", "sizes"),
    [(lambda _, table: table, [40, 10, 9, 10, 10, 20]), (ipc, [10] * 5 + [9] + [10] * 4)],
    ids=["in memory", "of a file"],
)
def test_rows_in_memory_that_need_no_look_come_in_large_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, pa.Table], object], sizes: list[int]
) -> None:
    monkeypatch.setattr(memory, "READY_ROWS", 40)
    monkeypatch.setattr(arrow_source, "READ_ROWS", 10)
    ids = [None if n == 57 else n for n in range(100)]
    given = write(tmp_path, pa.table({"id": pa.array(ids, pa.int64())}))
    path = {"path": given} if isinstance(given, str) else {}
    seen = read(stream("id bigint!", on_error="skip", **path), None if path else given)
    assert seen.rows == [(n,) for n in ids if n is not None]
    assert [b.num_rows for b in seen.batches] == sizes
    assert [int(p.rsplit(":", 1)[1]) for p in seen.places] == [n + 1 for n in range(100) if n != 57]
