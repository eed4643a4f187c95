"""Aggregates give what DuckDB gives. MODE is left out: of several most frequent values DuckDB has another."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

import cq

duckdb = pytest.importorskip("duckdb")

STREAM = "CREATE STREAM s (k BIGINT, n BIGINT, x BIGINT, y DOUBLE, t VARCHAR) WITH (connector = 'memory');\n"
CALLS = [
    *(f"{name}(y, x)" for name in ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")),
    *(f"REGR_{name}(y, x)" for name in ("COUNT", "AVGX", "AVGY", "SXX", "SYY", "SXY")),
    *("ARG_MIN(t, n)", "ARG_MAX(n, y)", "MIN_BY(y, n)", "MAX_BY(t, x * 1000 + n)"),
    *("FIRST(x)", "LAST(t)", "ANY_VALUE(y)", "FIRST(t) FILTER (WHERE x > 4)"),
    *("MEDIAN(x)", "MEDIAN(y)", "QUANTILE_CONT(y, 0.3)", "QUANTILE_DISC(x, 0.3)", "QUANTILE_DISC(y, 0.95)"),
    *("QUANTILE_CONT(x, 1) FILTER (WHERE y < 0.5)", "MEDIAN(DISTINCT x)", "STRING_AGG(t, '+')"),
    *("STRING_AGG(t, ', ') FILTER (WHERE x > 2)", "STDDEV_SAMP(y)", "VAR_POP(x)", "BIT_XOR(x)", "COUNT_IF(x > 4)"),
]


def rows() -> pa.Table:
    """Of several groups, with NULLs; `n` numbers the rows."""
    dice = random.Random(11)
    count, texts = 120, [None, "", "x", "é", "a text of more than twelve bytes"]
    return pa.table(
        {
            "k": pa.array([dice.randrange(7) for _ in range(count)], pa.int64()),
            "n": pa.array(range(count), pa.int64()),
            "x": pa.array([dice.choice([None, *range(9)]) for _ in range(count)], pa.int64()),
            "y": pa.array([dice.choice([None, dice.uniform(-1, 1), 0.25]) for _ in range(count)], pa.float64()),
            "t": pa.array([dice.choice(texts) for _ in range(count)]),
        }
    )


def test_aggregates_give_what_duckdb_gives() -> None:
    given = rows()
    query = f"SELECT k, {', '.join(f'{call} AS a{i}' for i, call in enumerate(CALLS))} FROM s GROUP BY k"
    found = cq.sql(f"{STREAM}{query};").run(inputs={"s": given}, engine="reference")["result"].to_arrow().to_pylist()
    with duckdb.connect() as base:
        base.execute("SET threads = 1")
        base.register("s", given)
        names = ["k", *(f"a{i}" for i in range(len(CALLS)))]
        wanted = {row[0]: dict(zip(names, row, strict=True)) for row in base.execute(query).fetchall()}
    assert len(found) == len(wanted) == 7
    wrong = [
        (call, row["k"], row[f"a{i}"], theirs)
        for row in found
        for i, call in enumerate(CALLS)
        if not same(row[f"a{i}"], theirs := wanted[row["k"]][f"a{i}"])
    ]
    assert not wrong


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return ours == theirs


def test_aggregates_of_many_values_are_those_of_the_reference() -> None:
    dice = random.Random(3)
    count = 6000
    given = pa.table(
        {
            "k": pa.array([dice.randrange(2) for _ in range(count)], pa.int64()),
            "n": pa.array([dice.randrange(-5000, 5000) for _ in range(count)], pa.int64()),
            "x": pa.array([dice.choice([None, dice.randrange(50)]) for _ in range(count)], pa.int64()),
            "y": pa.array([dice.choice([None, dice.uniform(-1, 1)]) for _ in range(count)], pa.float64()),
            "t": pa.array([f"text number {dice.randrange(3000)}" for _ in range(count)]),
        }
    )
    counted = "APPROX_COUNT_DISTINCT(n) AS dn, APPROX_COUNT_DISTINCT(y) AS dy, APPROX_COUNT_DISTINCT(t) AS dt"
    query = cq.sql(
        f"{STREAM}SELECT k, MEDIAN(n) AS m, MEDIAN(y) AS my, MODE(x) AS often, STRING_AGG(t, ', ') AS t, {counted} "
        "FROM s GROUP BY k;"
    )
    wanted = query.run(inputs={"s": given}, engine="reference")["result"].to_arrow()
    assert query.run(inputs={"s": given}, threads=2)["result"].to_arrow().equals(wanted)
