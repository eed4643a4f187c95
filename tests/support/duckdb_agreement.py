"""The result of a query on DuckDB, compared with that of the reference."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pytest

import cq

duckdb = pytest.importorskip("duckdb")

A_AND_B = """
CREATE STREAM a (k BIGINT, t VARCHAR, v BIGINT) WITH (connector = 'memory');
CREATE STREAM b (k BIGINT, t VARCHAR, w DOUBLE) WITH (connector = 'memory');
"""


def a_and_b(seed: int) -> dict[str, pa.Table]:
    """Rows of both streams, with NULLs and many equal keys."""
    dice = random.Random(seed)
    keys, texts = [None, 1, 2, 3, 4, 5], [None, "", "x", "y", "a text of more than twelve bytes"]
    made = {}
    for name, value, kind in (("a", "v", pa.int64()), ("b", "w", pa.float64())):
        columns = {"k": pa.array([dice.choice(keys) for _ in range(40)], pa.int64())}
        columns["t"] = pa.array([dice.choice(texts) for _ in range(40)])
        columns[value] = pa.array([dice.randrange(9) for _ in range(40)], kind)
        made[name] = pa.table(columns)
    return made


def agreed_rows(streams: str, query: str, given: Mapping[str, pa.Table]) -> Counter[tuple[object, ...]]:
    """The rows that both return, in any order; an AssertionError if they differ."""
    run = cq.sql(streams + query + ";").run(inputs=given, engine="reference")
    found = Counter(_counted(row.values()) for row in run["result"].to_arrow().to_pylist())
    with duckdb.connect() as base:
        for name, table in given.items():
            base.register(name, table)
        assert found == Counter(map(_counted, base.execute(query).fetchall()))
    return found


def _counted(row: Iterable[object]) -> tuple[object, ...]:
    """The row with tuples for lists."""
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
