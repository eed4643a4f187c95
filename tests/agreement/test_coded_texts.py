"""Texts that come as codes of a dictionary mean what the texts do: every way of running gives the same rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from cases import Prepared, Way
from pyarrow import parquet

from cq.api import sql
from cq.connectors.dictionary_codes import MOST_TEXTS, coded
from cq.connectors.parquet import source

COLUMNS = "k VARCHAR, v BIGINT NOT NULL, ts TIMESTAMP NOT NULL"
STREAM = f"CREATE STREAM t ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
OTHER = f"CREATE STREAM u ({COLUMNS}, WATERMARK FOR ts);"
QUERIES = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY k",
    "two keys": "SELECT k, v % 3 AS r, COUNT(*) AS n FROM t GROUP BY k, v % 3",
    "computed key": "SELECT UPPER(k) AS u, COUNT(*) AS n FROM t GROUP BY UPPER(k)",
    "filtered groups": "SELECT k, MAX(v) AS m FROM t WHERE k LIKE '%1%' OR k IS NULL GROUP BY k",
    "distinct": "SELECT COUNT(DISTINCT k) AS n, COUNT(k) AS m FROM t",
    "texts kept": "SELECT v % 5 AS r, MIN(k) AS low, MAX(k) AS high FROM t GROUP BY v % 5",
    "windows": "SELECT window_start, k, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND) "
    "GROUP BY window_start, window_end, k",
    "hops": "SELECT window_end, k, SUM(v) AS n FROM "
    "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND) GROUP BY window_start, window_end, k",
    "running": "SELECT k, SUM(v) OVER (PARTITION BY k) AS total, LAG(k) OVER (PARTITION BY v % 7) AS before FROM t",
    "rows": "SELECT k, LENGTH(k) AS n, k || '!' AS loud FROM t WHERE k <> 'key 3'",
    "order": "SELECT k, v FROM t ORDER BY k, v LIMIT 20",
    "union": "SELECT k, COUNT(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k",
    "join": "SELECT t.k, t.v, u.v AS w FROM t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' SECOND",
}
ROWS, INDEX = 600, pa.int32()


def texts_of(dice: random.Random, count: int) -> list[str]:
    """Short ones and long ones, one of them empty, one twice: a dictionary may say the same again."""
    made = [f"key {n}" if n % 2 else f"a key that is longer than others, number {n}" for n in range(count)]
    made[dice.randrange(count)] = ""
    made[dice.randrange(count)] = made[0]
    return made


def table_of(dice: random.Random, rows: int, index_type: pa.DataType = INDEX) -> pa.Table:
    """Batches whose dictionaries change or stay, with NULLs, offsets, and texts that no row has."""
    kept, parts, second = texts_of(dice, 40), [], 0
    while rows > 0:
        size = min(rows, dice.choice([1, 7, 64, 150]))
        rows -= size
        if dice.random() < 0.3:
            kept = texts_of(dice, dice.choice([1, 3, 30, 90]))
        codes = [None if dice.random() < 0.1 else dice.randrange(len(kept)) for _ in range(size + 2)]
        array = pa.DictionaryArray.from_arrays(pa.array(codes, index_type), pa.array(kept)).slice(1, size)
        times = []
        for _ in range(size):
            second += dice.choice([0, 0, 0, 1])
            times.append((second - dice.choice([0, 0, 1, 5])) * 1_000_000)
        values = pa.array([dice.randrange(50) for _ in range(size)])
        parts.append(pa.record_batch([array, values, pa.array(times, pa.timestamp("us"))], ["k", "v", "ts"]))
    return pa.Table.from_batches(parts)


def plain(table: pa.Table) -> pa.Table:
    """The table with texts."""
    return table.set_column(0, "k", table["k"].cast(pa.string()))


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("interpreted", [True, False], ids=["interpreted", "compiled"])
@pytest.mark.one_in(2)
def test_codes_give_the_rows_that_texts_do(name, interpreted):
    dice = random.Random(name)
    given = {"t": table_of(dice, ROWS), "u": table_of(dice, ROWS, pa.int8())}
    asked = Prepared(STREAM + OTHER + QUERIES[name])
    asked.give_tables({n: plain(t) for n, t in given.items()})
    expected = asked.reference()
    assert not expected.error and any(map(len, expected.rows.values()))
    asked.give_tables(given)
    assert asked.reference() == expected
    threads, sizes = ((0,), (3, 4096)) if interpreted else ((0, 1, 2, 4), (1, 3, 4096))
    for way in (Way(t, b, interpreted=interpreted) for t in threads for b in sizes):
        assert not asked.native(way).difference(expected), f"{name}, {way}"


def test_a_file_of_codes_is_read_as_codes_and_gives_the_rows_that_texts_do(tmp_path, monkeypatch):
    table = plain(table_of(random.Random(1), 30_000).combine_chunks())
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=9_000)
    found = []
    real = source._coded_columns
    monkeypatch.setattr(source, "_coded_columns", lambda *asked: found.append(real(*asked)) or found[-1])
    for name in ("groups", "windows", "rows"):
        query = sql(STREAM + QUERIES[name], t=tmp_path / "t.parquet")
        expected = query.run(engine="reference").to_arrow()
        assert found.pop() == () and len(expected)
        for threads in (0, 1, 2):
            assert query.run(threads=threads).to_arrow() == expected
            assert found.pop() == ("k",)


def test_a_file_of_texts_that_hardly_repeat_is_read_as_texts(tmp_path):
    texts = pa.array([f"text number {n}" for n in range(5_000)])
    parquet.write_table(pa.table({"k": texts}), tmp_path / "t.parquet")
    opened = parquet.ParquetFile(tmp_path / "t.parquet")
    assert opened.metadata.row_group(0).column(0).has_dictionary_page
    assert not source._is_coded(opened.metadata, 0)


def dictionary(codes, texts, type_=INDEX):
    return pa.DictionaryArray.from_arrays(pa.array(codes, type_), texts)


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()], ids=str)
@pytest.mark.parametrize("values", [pa.string(), pa.large_string()], ids=str)
def test_codes_of_any_width_become_codes_of_32_bits(type_, values):
    given = dictionary([2, None, 0, 1, 2], pa.array(["a", "b", "c"], values), type_).slice(1)
    found = coded(given)
    assert found is not None and found.type == pa.dictionary(pa.int32(), pa.string())
    assert found.to_pylist() == [None, "a", "b", "c"]


def test_a_number_under_null_is_no_code():
    codes = pa.Array.from_buffers(pa.int32(), 3, [pa.py_buffer(b"\x05"), pa.array([0, 99, 1], pa.int32()).buffers()[1]])
    found = coded(pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False))
    assert found is not None and found.to_pylist() == ["a", None, "b"]
    assert set(memoryview(found.indices.buffers()[1]).cast("i")) <= {0, 1}


@pytest.mark.parametrize(
    "given",
    [
        dictionary([0, 1, 1], pa.array(["a", None])),
        dictionary([0], pa.array(["a", "b"])),
        dictionary([None], pa.array([], pa.string())),
        dictionary([0, 1], pa.array([b"a", b"b"])),
        dictionary([0] * (MOST_TEXTS + 2), pa.array(map(str, range(MOST_TEXTS + 1)))),
        pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(["a", "b"]), safe=False),
        pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int32()), pa.array(["a", "b"]), safe=False),
    ],
    ids=["NULL among the texts", "more texts than rows", "no texts", "bytes", "too many", "a code too high", "below 0"],
)  # fmt: skip
def test_a_dictionary_that_is_not_worth_it_or_not_sound_is_left(given):
    assert coded(given) is None
