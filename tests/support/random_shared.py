"""Random queries that DuckDB can also run, with the same rows as the reference, in any order.

They read bounded inputs without times. Expressions use only operations that both compute to the last bit; rows that are
numbered, or cut off by a LIMIT, are ordered by all columns, so that rows that swap places are identical.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from random_drawing import Drawing, Relation
from random_expressions import Vocabulary, random_bytes, random_text
from random_results import RESULTS
from random_statements import Query, Stream, pruned

import cq
from cq.errors import CqError
from cq.lang.schema import Field
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    DataType,
    Kind,
    decimal,
    to_arrow,
)

TYPES = (BIGINT, BIGINT, INTEGER, DOUBLE, decimal(9, 2), decimal(20, 4), VARCHAR, VARCHAR, BINARY, BOOLEAN, DATE,
         TIMESTAMP)  # fmt: skip
FUNCTIONS = frozenset(
    ["+", "-", "*", "=", "<>", "<", "<=", ">", ">=", "not", "abs", "negate", "upper", "lower", "length", "year",
     "month", "day", "hour", "is distinct from", "is not distinct from", "least", "greatest", "reverse"]
)  # fmt: skip
AGGREGATES = ("count", "count", "sum", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor",
              "median", "quantile_disc")  # fmt: skip
SHARED = Vocabulary(TYPES, FUNCTIONS, AGGREGATES, shared=True)
NAMES = ("k", "v", "x", "y", "z", "w", "select", "Order", "naïve", "two words")
TOO_LARGE = ("CQ0705",)


def shared_query(seed: int) -> Query:
    """The query of a seed."""
    rng = random.Random(f"shared {seed}")
    d = Drawing(rng, vocabulary=SHARED)
    streams = []
    for i in range(rng.choice([1, 2, 2])):
        types = [rng.choice(TYPES) for _ in range(rng.randint(1, 4))]
        names = rng.sample(NAMES, len(types))
        fields = tuple(Field(n, t, rng.random() < 0.8) for n, t in zip(names, types, strict=True))
        streams.append(Stream(f"s{i}", fields, None, 0))
    d.query = Query(tuple(streams), (), (), "SECOND")
    d.relations += [d.relation(d.query, s.name, Relation(s.name, (), ())) for s in streams]
    wanted, tries = rng.choice([1, 2, 2, 3, 4]), 0
    while len(d.query.views) < wanted and tries < 60:
        tries += 1
        step = rng.choice(RESULTS)
        d.attempt(lambda step=step: step(d))  # type: ignore[misc]
    last = d.query.views[-1].name
    return pruned(Query(tuple(streams), d.query.views, ((last, None),), "SECOND"))


def shared_tables(query: Query, seed: int) -> dict[str, pa.Table]:
    """Rows for every stream: few distinct values in a column, including NULL, or none at all."""
    rng = random.Random(f"tables {seed}")
    made = {}
    for stream in query.streams:
        count = rng.choice([0, 1, 2, 6, 12, 25])
        columns = []
        for field in stream.fields:
            pool = [_value(rng, field.type) for _ in range(rng.choice([1, 2, 3, 6]))]
            pool += [None] * (field.nullable and rng.choice([0, 1, 1, 9]))
            columns.append(pa.array([rng.choice(pool) for _ in range(count)], to_arrow(field.type)))
        made[stream.name] = pa.table(columns, names=[f.name for f in stream.fields])
    return made


def _value(rng: random.Random, type_: DataType) -> Any:
    small = rng.choice([0, 1, 2, -1, rng.randint(-60, 60)])
    match type_.kind:
        case Kind.BOOLEAN:
            return rng.random() < 0.5
        case Kind.VARCHAR:
            return random_text(rng).replace("\x00", "")
        case Kind.BINARY:
            return random_bytes(rng)
        case Kind.DOUBLE:
            return small / 4
        case Kind.DECIMAL:
            return Decimal(small).scaleb(-rng.choice([0, 1, 2]))
        case Kind.DATE:
            return date(2024, 2, 28) + timedelta(days=small)
        case Kind.TIMESTAMP:
            return datetime(1970, 1, 1) + timedelta(seconds=small, microseconds=rng.choice([0, 1, 500_000]))
        case _:
            return small


def third_opinion(base: Any, query: Query, tables: Mapping[str, pa.Table]) -> str | None:
    """How the reference and DuckDB differ; empty if they agree, None if DuckDB rejects the query.

    base: a connection to DuckDB.
    """
    wanted, refusal = _of_duckdb(base, query, tables)
    if refusal:
        return None
    try:
        ours = cq.sql(query.text()).run(inputs=tables, engine="reference")["result"].to_arrow()
    except CqError as e:
        return None if e.code in TOO_LARGE else f"error {e}"
    found = _counted(row.values() for row in ours.to_pylist())
    more, less = list((found - wanted).items())[:3], list((wanted - found).items())[:3]
    return f"only the reference has {more}, only DuckDB {less}" if more or less else ""


def _of_duckdb(base: Any, query: Query, tables: Mapping[str, pa.Table]) -> tuple[Counter[Any], str]:
    """The rows, counted, or why there are none."""
    import duckdb

    base.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'; SET threads = 1; BEGIN")
    try:
        for name, table in tables.items():
            base.register(name, table)
        for view in query.views:
            base.execute(view.text())
        return _counted(base.execute(f"SELECT * FROM {query.outputs[0][0]}").fetchall()), ""
    except duckdb.Error as e:
        return Counter(), str(e)
    finally:
        base.execute("ROLLBACK")
        for name in tables:
            base.unregister(name)


def _counted(rows: Iterable[Iterable[Any]]) -> Counter[Any]:
    """The rows with their counts; equal numbers count as one whatever their type, to ten digits."""
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, Decimal | int | float) and abs(value) < 2**53:
        return float(f"{value:.10g}") + 0.0
    return value
