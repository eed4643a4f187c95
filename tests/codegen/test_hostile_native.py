"""Queries and inputs that want to break generated code: they run as the reference does, or are refused with a code."""

from __future__ import annotations

import re
import time

import pyarrow as pa
import pytest
from cases import Prepared, Way

from cq.compiler.passes import Compiled, compile
from cq.errors import CompileError, SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind
from cq.spark.lower import lower

CANARY = "canary7f3a"
STREAM = "CREATE STREAM t (id BIGINT, name VARCHAR, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"
ROWS = [(1, "a", 1_000_000), (2, None, 2_000_000), (None, CANARY, 3_000_000), (-5, "b", 12_000_000)]


def same(text: str, rows: list[tuple[object, ...]] | None = None, *, compiled: bool = False) -> Prepared:
    """Native, interpreted and where asked compiled, gives what the reference gives. The prepared query."""
    prepared = Prepared(STREAM + text)
    prepared.give({"t": ROWS if rows is None else rows})
    wanted = prepared.reference()
    ways = [Way(0, 2, interpreted=True)] + ([Way(2, 2)] if compiled else [])
    for way in ways:
        assert prepared.native(way) == wanted, str(way)
    return prepared


def code(compiled: Compiled) -> str:
    return "".join(stage.module for pipeline in compiled.for_workers(0).after("emit") for stage in pipeline.stages)


HOSTILE_NAMES = [
    "import os",
    "__class__",
    "state",
    "ld_i64",
    "lambda",
    "x\\'); raise",
    "{0.__class__}",
    "%(x)s",
    "a\u202eb",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_of_streams_views_and_columns_never_reach_generated_code(name: str) -> None:
    hostile = '"' + (name + CANARY).replace('"', '""') + '"'
    text = (
        f"CREATE STREAM {hostile} ({hostile} VARCHAR, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'memory');\n"
        f"CREATE VIEW v AS SELECT window_end, {hostile}, COUNT(*) AS n "
        f"FROM TUMBLE(TABLE {hostile}, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
        f"GROUP BY window_start, window_end, {hostile};\n"
        f"SELECT {hostile} AS {hostile}, n, '{CANARY}' AS c FROM v WHERE {hostile} <> '{CANARY}';"
    )
    try:
        prepared = Prepared(text)
    except CompileError as error:
        assert error.code.startswith("CQ01"), error
        return
    assert CANARY not in code(prepared.compiled)


def test_comments_literals_and_parameters_never_reach_generated_code() -> None:
    text = (
        f"/* {CANARY} */ SELECT name || '{CANARY}' AS x -- {CANARY}\n"
        f"FROM t WHERE name LIKE '%{CANARY}%' OR name IN ('{CANARY}', 'a');"
    )
    prepared = same(text)
    assert CANARY not in code(prepared.compiled)


@pytest.mark.parametrize("payload", ["'; DROP TABLE x; --", "\\", "\\'", "`", "${spark.x}", "*/ 1", "\u2028", "\t"])
def test_text_stays_a_literal_in_sql_for_spark(payload: str) -> None:
    quoted = "'" + payload.replace("'", "''") + "'"
    name = '"' + payload.replace('"', '""') + '"'
    try:
        plan = bind(parse(SourceText("t.cq", f"{STREAM}SELECT id AS {name}, {quoted} AS x FROM t;"))).plan
    except CompileError as error:
        assert error.code.startswith("CQ01"), error
        return
    for query in lower(plan):
        outside = re.sub(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`", "", query.text)
        assert "DROP" not in outside and "spark.x" not in outside, outside


@pytest.mark.optimised
def test_a_huge_list_of_values_is_searched_in_reasonable_code() -> None:
    began = time.process_time()
    values = ", ".join(str(n * 7) for n in range(3_000))
    same(f"SELECT id FROM t WHERE id + 6 IN ({values});")
    assert time.process_time() - began < 60


@pytest.mark.parametrize("depth", [5, 40, 190])
def test_deep_expressions_run_or_are_refused(depth: int) -> None:
    shapes = [
        "SELECT " + "(id + " * depth + "1" + ")" * depth + " AS x FROM t;",
        "SELECT " + "CASE WHEN id > 0 THEN " * depth + "1" + " END" * depth + " AS x FROM t;",
        "SELECT " + "COALESCE(NULLIF(" * (depth // 2) + "id" + ", 5), 7)" * (depth // 2) + " AS x FROM t;",
        "SELECT id FROM t WHERE " + "(NOT " * depth + "id = 1" + ")" * depth + ";",
        "SELECT " + "CONCAT(" * depth + "name" + ", 'x')" * depth + " AS x FROM t;",
    ]
    for text in shapes:
        try:
            same(text)
        except CompileError as error:
            assert error.code in {"CQ0103", "CQ0501", "CQ0502"}, error


def test_many_columns_and_many_aggregates_run() -> None:
    window = "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end;"
    same("SELECT " + ", ".join(f"id + {n} AS c{n}" for n in range(120)) + " FROM t;")
    same("SELECT " + ", ".join(f"SUM(id + {n}) AS s{n}, MAX(id - {n}) AS m{n}" for n in range(60)) + f" {window}")
    with pytest.raises(CompileError, match="text values"):  # where they lie is a word of bits
        same("SELECT " + ", ".join(f"MAX(name || '{n}') AS m{n}" for n in range(40)) + f" {window}")


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 4096, 300_000])
def test_strings_of_every_length_are_keys_and_results(size: int) -> None:
    rows: list[tuple[object, ...]] = [
        (n, "é" * (size // 2) + "x" * (size % 2) + str(n % 2), n * 4_000_000) for n in range(8)
    ]
    same(
        "SELECT window_end, name, COUNT(*) AS n, MAX(name) AS most "
        "FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND) "
        "GROUP BY window_start, window_end, name;",
        rows,
    )


@pytest.mark.parametrize("time", [-(2**62), -62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999, 2**62])
def test_event_times_thousands_of_years_away_are_times(time: int) -> None:
    same(
        "SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
        "GROUP BY window_start, window_end;",
        [(1, "a", 0), (2, "b", time), (3, "c", 1_000_000)],
    )


def test_sliced_arrays_and_arrays_without_validity_are_read_where_they_lie() -> None:
    prepared = Prepared(STREAM + "SELECT id, name, ts FROM t WHERE id IS NOT NULL;")
    rows = [(None if n % 3 == 0 else n, None if n % 5 == 0 else str(n) * 9, n * 1000) for n in range(50)]
    prepared.give({"t": rows})
    (table,) = prepared.given().values()
    slices = [table.slice(n, 10).combine_chunks().to_batches()[0] for n in range(0, 50, 10)]
    shifted = [pa.RecordBatch.from_arrays([c.slice(1, len(c) - 2) for c in b.columns], schema=b.schema) for b in slices]
    prepared.compiled.request.inputs.given["t"] = shifted  # type: ignore[index]
    assert prepared.native(Way(0, 3, interpreted=True)) == prepared.reference()


def test_a_text_that_cannot_be_bound_leaves_nothing_behind() -> None:
    with pytest.raises(CompileError):
        compile("SELECT 1 FROM nowhere;")
    same("SELECT id FROM t;")
