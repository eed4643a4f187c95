"""Functions and casts on Spark over random and tricky values give what the reference gives; many calls in one query."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from random_json import CALLS as JSON_CALLS
from random_json import document as random_json
from random_regexes import calls as calls_of_regex
from random_regexes import pattern as random_regex
from random_regexes import text as random_regex_text
from spark_agreement import column, physical
from spark_fixture import spark, view_name  # noqa: F401
from time_patterns import BEYOND, MOMENTS, READ, TEXTS, WRITTEN, reading, writing

from cq.lang.casts import castable
from cq.lang.expressions import Call, Cast, Column, Expr, Literal, format_expr
from cq.lang.functions import Failure, Scalar, Signature, all_scalars
from cq.lang.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    INTERVAL_MONTH,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VARCHAR,
    DataType,
    Kind,
    decimal,
    round_to_real,
)
from cq.reference.evaluate import evaluate
from cq.spark.exchange import forget, query, to_spark
from cq.spark.expressions import CONSTANT_ARGUMENTS, Expressions
from cq.spark.ingest import from_view, stored_type, to_result

pytestmark = pytest.mark.spark

DAY_US = 86_400_000_000
NAN, INF = math.nan, math.inf
FLOATS = [0.0, -0.0, 1.0, 1.5, -2.5, 2.675, 0.285, 1e300, -1e300, NAN, INF, -INF, 0.1, 12345.678, 5e-324, 127.9, 128.0]
FLOATS += [2147483647.9, 2147483648.0, 2.0**63, -(2.0**63), 9.223372036854775e18, 1e17, 1e7, 9999999.0, 1e-4, 3.5e38]
NUMBER_TEXTS = (
    "1 -1 +1 12.5 -.5 5. . 1e3 1E-3 1e400 1e-400 nan NaN inf -INF +Infinity 1f 1D 1L 0x10 0x1p3 1_000 ٣ 128 32768 "
    "2147483648 9223372036854775807 9223372036854775808 00012 1,5 1.005 -999.995 999.994 123456789012345678 1e17 "
    "1e-19 12345678901234567.5 --1 + e1 -0.0 4.9e-324 16777217 0.1 3.5e38"
)
WORDS = ["", " ", " 7 ", "\t7\n", "1 2", "\u00a012", "true", " T ", "yes", "n", "on", "tr"]
TIME_TEXTS = """2024-02-29|2023-02-29|2024-2-9|2024|24-02-29|2024-02-29 10:00|2024-02-29 10|+2024-01-01|0000-01-01
|2024-02-29T10:00:00.123456789Z|2024-02-29t10:00:00 UTC|2024-02-29 10:00:00+00:00|2024-02-29 10:00:00+02:00
|2024-02-29 10:00:00 Europe/Berlin|2024-02-29 24:00:00|2024-02-29 23:60:00|2024-02-29 23:59:60|2024-02-29 1:2:3.
|10000-01-01|294247-01-10 04:00:54.775807|294247-01-10 04:00:54.775808|5881580-07-12|2024-02-29x|2024-02-29 10:00 x
| 2024-02-29 |2024-02-29T|-0001-01-01""".replace("\n", "").split("|")
LETTERS = ["", "a", "b", "ab", "aXbX", "äöß", "ß💡a", " a ", "%", "_", "a%", "\\", "ABC", "ΑΣ", "a,b,,c", ",", "xyaxy"]
LETTERS += ["\uffff", "💡", "b%c", "a_c", "a\nc", "ŉ", "hello world"]
VALUES: dict[DataType, list[Any]] = {
    BOOLEAN: [True, False],
    TINYINT: [0, 1, -1, 5, 127, -128],
    SMALLINT: [0, 1, -1, 300, 32767, -32768],
    INTEGER: [0, 1, -1, 2, 3, -3, 10, 2**31 - 1, -(2**31)],
    BIGINT: [0, 1, -1, 2, 3, -5, 100, 2**31, -(2**31) - 1, 10**17, 2**53 + 1, 2**63 - 1, -(2**63)],
    DOUBLE: FLOATS,
    REAL: [round_to_real(x) for x in FLOATS],
    decimal(5, 2): [0, 1, -1, 150, -250, 267, 55, 99999, -99999],
    decimal(18, 6): [0, 1, -1, 1_500_000, -2_500_000, 2_675_000, 127_999_999, 10**18 - 1, 1 - 10**18],
    decimal(18, 0): [0, 1, -7, 10**18 - 1],
    decimal(38, 10): [0, 1, -1, 15_000_000_000, -25_000_000_000, 123_456_789_012_345_678_901, 10**38 - 1, 1 - 10**38],
    VARCHAR: [*NUMBER_TEXTS.split(), *WORDS, *TIME_TEXTS, *LETTERS],
    BINARY: [
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xc3\xb1",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"ab" * 20,
    ],
    DATE: [0, -1, 59, 365, 11016, 18628, 19782, -25567, -719528, 2932897, 106751991, 106751992, 2**31 - 1],
    TIMESTAMP: [0, -1, 1, -DAY_US, 1709210096789012, 1704067199999999, 253402300800000000, -62135596800000001, 2**62],
    INTERVAL: [0, 1, -1, DAY_US, -3_600_000_000, 90_061_000_001, 2**62],
    INTERVAL_MONTH: [0, 1, -1, 12, -14, 27],
}
CONSTANTS = {"like": "!", "round": 2, "trunc": 1, "date_format": "EEE d MMMM yyyy hh:mm:ss.SSS a"}
CONSTANTS |= dict.fromkeys(("to_timestamp", "try_to_timestamp"), "yyyy-MM-dd HH:mm")
CONSTANTS |= {"from_utc_timestamp": "Europe/Berlin", "to_utc_timestamp": "America/New_York"}
ROWS, SIGNATURES, CALLS_AT_ONCE = 50, 6, 80


class Batch:
    """Expressions over columns of one table, computed by Spark in one query."""

    def __init__(self) -> None:
        self.columns: list[tuple[DataType, list[Any]]] = []
        self.asked: list[tuple[Expr, int]] = []  # the expression, and where its columns begin

    def add(self, expr: Expr, types: Sequence[DataType], rows: Sequence[tuple[Any, ...]]) -> None:
        self.asked.append((expr, len(self.columns)))
        self.columns += [(t, [row[i] for row in rows]) for i, t in enumerate(types)]

    def results(self, session: Any) -> list[list[Any]]:
        """For each expression its values, in the order of the rows."""
        arrays = [
            pa.array(values, pa.int64()) if t.kind is Kind.INTERVAL else column(values, t).cast(stored_type(t))
            for t, values in self.columns
        ]
        height = len(arrays[0])
        names = [f"l{i}" for i in range(len(arrays))]
        view, write = view_name(), Expressions()
        to_spark(session, pa.table([*arrays, pa.array(range(height))], names=[*names, "n"]), view)
        shown = [f"({from_view(name, t)})" for name, (t, _) in zip(names, self.columns, strict=True)]
        texts = [
            f"{to_result(write.text(e, shown[start:]), e.type)} as x{i}" for i, (e, start) in enumerate(self.asked)
        ]
        table = query(session, f"select n, {', '.join(texts)} from {view}", write.constants.values).sort_by("n")
        forget(session, view)
        return [physical(table.column(f"x{i}"), e.type) for i, (e, _) in enumerate(self.asked)]


def exactly(x: Any, y: Any) -> bool:
    """Equal and of one type; DOUBLEs, of arrays too, but for the last digits, -0.0 apart from 0.0."""
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(exactly(a, b) for a, b in zip(x, y, strict=True))
    if isinstance(x, float) and isinstance(y, float):
        if math.isnan(x) or math.isnan(y) or x == 0.0:
            return repr(x) == repr(y)
        return math.isclose(x, y, rel_tol=1e-14)  # Java's EXP and POWER may differ from C's in the last one
    return type(x) is type(y) and x == y


def signatures(entry: Scalar, rng: random.Random) -> list[Signature]:
    """Some of the types the entry takes as they are."""
    constant = CONSTANTS.get(entry.name)
    found = []
    for count in (1, 2, 3):
        for types in product(VALUES, repeat=count):
            constants = [None] * count
            if entry.name in CONSTANTS and CONSTANT_ARGUMENTS[entry.name] < count:
                constants[CONSTANT_ARGUMENTS[entry.name]] = constant
            signature = entry.signature(types, constants)
            if signature is not None and signature.params == types:
                found.append(signature)
    return rng.sample(found, min(SIGNATURES, len(found)))


def call(entry: Scalar, signature: Signature) -> Call:
    args: list[Expr] = [Column(t, True, i) for i, t in enumerate(signature.params)]
    place = CONSTANT_ARGUMENTS.get(entry.name)
    if place is not None and place < len(args):
        args[place] = Literal(signature.params[place], False, CONSTANTS[entry.name])
    return Call(signature.returns, True, entry, tuple(args))


def is_beyond(entry: Scalar, row: tuple[Any, ...]) -> bool:
    """Whether Spark, which counts code points as INT, would not see the very number."""
    return entry.name in {"substring", "binary_substring"} and any(isinstance(v, int) and abs(v) > 2**30 for v in row)


def value_or_failure(expr: Expr, row: tuple[Any, ...]) -> Any:
    try:
        return evaluate(expr, row)
    except Failure as failure:
        return failure


def test_functions_of_random_values_agree(spark):  # noqa: F811
    rng = random.Random(20)
    jobs: list[tuple[Call, list[tuple[Any, ...]], list[Any]]] = []
    for entry in all_scalars().values():
        for signature in signatures(entry, rng):
            expr = call(entry, signature)
            rows: list[tuple[Any, ...]] = []
            while len(rows) < ROWS:
                row = tuple(None if rng.random() < 0.08 else rng.choice(VALUES[t]) for t in signature.params)
                if is_beyond(entry, row) or isinstance(value_or_failure(expr, row), Failure):
                    row = (None,) * len(row)
                rows.append(row)
            jobs.append((expr, rows, [evaluate(expr, row) for row in rows]))
    wrong = []
    for start in range(0, len(jobs), CALLS_AT_ONCE):
        batch, chunk = Batch(), jobs[start : start + CALLS_AT_ONCE]
        for expr, rows, _ in chunk:
            batch.add(expr, expr.signature.params, rows)
        for (expr, rows, wanted), got in zip(chunk, batch.results(spark), strict=True):
            for row, x, y in zip(rows, wanted, got, strict=True):
                if not exactly(x, y):
                    wrong.append(f"{expr.function.name}{row}: reference {x!r}, Spark {y!r}")
    assert not wrong


def test_times_are_read_and_written_by_patterns_alike(spark):  # noqa: F811
    jobs = [(reading(p), VARCHAR, TEXTS) for p in READ] + [(writing(p), TIMESTAMP, MOMENTS) for p in WRITTEN]
    height = max(len(values) for _, _, values in jobs)
    batch = Batch()
    rows = [
        [(None if v in BEYOND else v,) for v in values] + [(None,)] * (height - len(values)) for _, _, values in jobs
    ]
    for (expr, type_, _), mine in zip(jobs, rows, strict=True):
        batch.add(expr, [type_], mine)
    wrong = [
        f"{expr.args[1].value!r} {row}: reference {evaluate(expr, row)!r}, Spark {y!r}"
        for (expr, _, _), mine, got in zip(jobs, rows, batch.results(spark), strict=True)
        for row, y in zip(mine, got, strict=True)
        if not exactly(evaluate(expr, row), y)
    ]
    assert not wrong


def test_regular_expressions_find_the_same(spark):  # noqa: F811
    rng = random.Random(3)
    exprs = [e for _ in range(60) for e in calls_of_regex(random_regex(rng))]
    # Java takes an emoji for two characters
    assert not differences_of_texts(spark, exprs, [random_regex_text(rng).replace("💡", "é") for _ in range(40)])


def test_values_in_json_are_the_same(spark):  # noqa: F811
    rng = random.Random(4)
    assert not differences_of_texts(spark, JSON_CALLS, [random_json(rng) for _ in range(200)])


def differences_of_texts(session: Any, exprs: Sequence[Call], texts: Sequence[str]) -> list[str]:
    """Where calls of column 0 differ from the reference."""
    batch = Batch()
    for expr in exprs:
        batch.add(expr, [VARCHAR], [(t,) for t in texts])
    return [
        f"{format_expr(expr)} of {text!r}: reference {evaluate(expr, (text,))!r}, Spark {y!r}"
        for expr, got in zip(exprs, batch.results(session), strict=True)
        for text, y in zip(texts, got, strict=True)
        if not exactly(evaluate(expr, (text,)), y)
    ]


@pytest.mark.parametrize("source", VALUES, ids=str)
def test_casts_of_tricky_values_agree(spark, source):  # noqa: F811
    values = [*VALUES[source], None]
    batch = Batch()
    rows: list[list[tuple[Any, ...]]] = []
    for target in VALUES:
        if target == source or target.is_interval or not castable(source, target):
            continue
        for soft in (True, False):
            expr = Cast(target, True, Column(source, True, 0), soft)
            mine = [(None,) if isinstance(value_or_failure(expr, (v,)), Failure) else (v,) for v in values]
            batch.add(expr, [source], mine)
            rows.append(mine)
    wrong = []
    for (expr, _), mine, got in zip(batch.asked, rows, batch.results(spark), strict=True):
        for row, y in zip(mine, got, strict=True):
            x = evaluate(expr, row)
            if not exactly(x, y):
                wrong.append(f"{row[0]!r} as {expr.type}: reference {x!r}, Spark {y!r}")
    assert not wrong
