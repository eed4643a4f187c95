"""Bitmaps of results: a bit a row, kept in a word while rows are written and dropped."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cq

DECLARED = (
    "CREATE STREAM s (a BIGINT, b BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts) WITH (connector = 'memory');\n"
)


def rows(count: int) -> pa.Table:
    """a is NULL every third row, b every fifth; both repeat with periods that no word of 64 bits has."""
    return pa.table(
        {
            "a": pa.array([None if n % 3 == 0 else n % 7 for n in range(count)], pa.int64()),
            "b": pa.array([None if n % 5 == 0 else n for n in range(count)], pa.int64()),
            "ts": pa.array(range(count), pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 1000])
@pytest.mark.parametrize("batch_rows", [7, 4096])
def test_bits_are_those_of_their_rows_whatever_was_dropped_between(count: int, batch_rows: int) -> None:
    given = rows(count)
    query = cq.sql(DECLARED + "SELECT a, b, a > 3 AS large, b IS NULL AS gone FROM s WHERE a <> 2;", s=given)
    made = query.run(batch_rows=batch_rows, threads=0)["result"].to_pylist()
    assert made == [
        {"a": r["a"], "b": r["b"], "large": r["a"] > 3, "gone": r["b"] is None}
        for r in given.to_pylist()
        if r["a"] is not None and r["a"] != 2
    ]


@pytest.mark.parametrize("threads", [0, 2])
def test_bits_of_a_window_are_those_of_its_groups(threads: int) -> None:
    text = (
        "SELECT b, MAX(a) AS most, MAX(a) > 3 AS large FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) "
        "GROUP BY window_start, window_end, b;"
    )
    made = cq.sql(DECLARED + text, s=rows(500)).run(threads=threads)["result"].to_pylist()
    seen: dict[int | None, list[int]] = {}
    for row in rows(500).to_pylist():
        seen.setdefault(row["b"], []).extend([row["a"]] if row["a"] is not None else [])
    most = {b: max(a) if a else None for b, a in seen.items()}
    assert made == [{"b": b, "most": m, "large": None if m is None else m > 3} for b, m in most.items()]


def test_what_a_predicate_refuses_to_be_null_overflows_only_where_it_is_there() -> None:
    """The slot of a NULL holds anything: here what would overflow."""
    big = 2**62
    a = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.array([1, big, 2], pa.int64()).buffers()[1]])
    given = pa.table({"a": a, "b": pa.array([1, 1, 1], pa.int64()), "ts": pa.array([1, 2, 3], pa.timestamp("us"))})
    made = cq.sql(DECLARED + "SELECT a * 4 AS x FROM s WHERE a > 0 AND b IS NOT NULL;", s=given).run()
    assert made["result"].to_pylist() == [{"x": 4}, {"x": 8}]
