"""The queries of queries/tpch/ give over Parquet what DuckDB gives; natively in the order of the reference."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from paths import QUERIES
from pyarrow import parquet
from spark_fixture import spark  # noqa: F401

import cq
from cq.workloads import WORKLOADS

pytestmark = pytest.mark.optimised

duckdb = pytest.importorskip("duckdb")

FOLDER = QUERIES / "tpch"
NAMES = sorted(path.stem for path in FOLDER.glob("*.cq"))
COMPILED = ("q1", "q3", "q6", "q12", "q14")
JOINED = ("q7", "q8", "q9", "q18", "q21")  # take the reference longest
FEW = ("q17",)  # whose parts are too rare for so few rows: its one value is NULL
ORDERS = 3_000
ROWS = {
    "lineitem": 4 * ORDERS, "orders": ORDERS, "customer": ORDERS // 10, "supplier": ORDERS // 150,
    "part": ORDERS * 2 // 15, "partsupp": ORDERS * 8 // 15, "nation": 25, "region": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Every table as a Parquet file."""
    place = tmp_path_factory.mktemp("tpch")
    for name, rows in ROWS.items():
        size = {"orders": ORDERS} if "orders" in WORKLOADS[f"tpch_{name}"].parameters else {}
        batches = WORKLOADS[f"tpch_{name}"].generate(rows=rows, **size)
        parquet.write_table(pa.Table.from_batches(batches), place / f"{name}.parquet")
    return {name: place / f"{name}.parquet" for name in ROWS}


def loaded(name: str, files: Mapping[str, Path]) -> tuple[cq.Query, dict[str, Path], str]:
    """The query, the files it reads, and its SELECT."""
    text = (FOLDER / f"{name}.cq").read_text(encoding="utf-8")
    streams = re.findall(r"^CREATE STREAM (\w+)", text, re.MULTILINE)
    return cq.sql(text), {stream: files[stream] for stream in streams}, text.split(";\n")[-2]


@pytest.fixture(scope="module")
def by_reference(files: Mapping[str, Path]) -> Callable[[str], cq.Result]:
    """What the reference gives for a query, computed once."""

    @cache
    def result(name: str) -> cq.Result:
        query, inputs, _ = loaded(name, files)
        return query.run(inputs=inputs, engine="reference")

    return result


def same(ours: object, theirs: object) -> bool:
    """DuckDB divides decimals as doubles."""
    if isinstance(theirs, float):
        assert isinstance(ours, Decimal | float)
        return math.isclose(float(ours), theirs, rel_tol=1e-6)
    return ours == theirs


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long if n in JOINED else []) for n in NAMES])
def test_a_query_gives_what_duckdb_gives(
    name: str, files: Mapping[str, Path], by_reference: Callable[[str], cq.Result]
) -> None:
    _, inputs, select = loaded(name, files)
    found = [tuple(row.values()) for row in by_reference(name)["result"].to_arrow().to_pylist()]
    with duckdb.connect() as base:
        for stream, path in inputs.items():
            base.execute(f"CREATE VIEW {stream} AS FROM '{path}'")
        expected = base.execute(select).fetchall()
    assert found and (found[0][-1] is not None) == (name not in FEW)
    assert len(found) == len(expected)
    assert all(map(same, ours, theirs) for ours, theirs in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in COMPILED else pytest.mark.long) for n in NAMES])
def test_a_query_gives_natively_what_the_reference_gives(
    name: str, files: Mapping[str, Path], by_reference: Callable[[str], cq.Result]
) -> None:
    query, inputs, _ = loaded(name, files)
    native = query.run(inputs=inputs, threads=2, batch_rows=4096)
    assert native.stats.hashes == by_reference(name).stats.hashes


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_query_gives_what_spark_gives(name: str, files: Mapping[str, Path], spark: object) -> None:  # noqa: F811
    query, inputs, _ = loaded(name, files)
    cq.diff(query, inputs=inputs, against="spark").raise_if_different()
