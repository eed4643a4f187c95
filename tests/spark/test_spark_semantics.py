"""What Spark computes for the expressions our functions become: tests/golden/spark_semantics.txt, line by line."""

from __future__ import annotations

import re
from datetime import timedelta
from math import isnan
from typing import Any

import pyarrow as pa
import pytest
from paths import GOLDEN
from spark_fixture import spark  # noqa: F401

from cq.errors import CqError
from cq.spark.exchange import from_spark
from cq.spark.jre import find_java
from cq.spark.session import spark_errors

pytestmark = pytest.mark.spark


def read_page() -> dict[str, list[tuple[str, str]]]:
    """The page's topics: for each, its expressions and what stands beside them."""
    page: dict[str, list[tuple[str, str]]] = {}
    topic = ""
    for line in (GOLDEN / "spark_semantics.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("# "):
            topic = line[2:]
            page[topic] = []
        elif topic and " -> " in line:
            expression, outcome = line.rsplit(" -> ", 1)
            page[topic].append((expression.rstrip(), outcome))
    return page


PAGE = read_page()
# Java before 19 does not print the shortest text of every double (JDK-4511638); native and reference do.
SHORTEST_SINCE_JAVA_19 = {"CAST(2.0E23D AS STRING)"}


def shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return repr(value)
        case float():
            return "NaN" if isnan(value) else repr(value)
        case timedelta():
            return f"us {value // timedelta(microseconds=1)}"
        case list():
            return f"[{', '.join(map(shown, value))}]"
        case _:
            return str(value)


def first_value(column: pa.ChunkedArray) -> str:
    """The first value as the page shows it; Python has no dates before year 1 and after 9999."""
    try:
        return shown(column[0].as_py())
    except (OverflowError, ValueError):
        unit = "day" if pa.types.is_date(column.type) else "us"
        return f"{unit} {column.cast(pa.int32() if unit == 'day' else pa.int64())[0].as_py()}"


def outcomes(session: Any, expressions: list[str]) -> list[str]:
    """What Spark makes of each expression, all in one query."""
    with spark_errors():
        frame = session.sql("SELECT " + ", ".join(f"{e} AS x{i}" for i, e in enumerate(expressions)))
        row = from_spark(frame)
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    return [f"{kind}  {first_value(column)}" for kind, column in zip(kinds, row.columns, strict=True)]


def outcome_alone(session: Any, expression: str) -> str:
    try:
        return outcomes(session, [expression])[0]
    except CqError as error:
        condition = re.match(r"Spark failed with ([A-Z0-9_.]+): ", error.first.message)
        return f"refused {condition[1]}" if condition else f"error {error.code}"


@pytest.mark.parametrize("topic", PAGE)
@pytest.mark.one_in(2)
def test_spark_computes_what_the_page_says(spark, topic):  # noqa: F811
    page = [line for line in PAGE[topic] if line[0] not in SHORTEST_SINCE_JAVA_19 or (find_java().major or 0) >= 19]
    has_value = [e for e, outcome in page if not re.match(r"error |refused |\?", outcome)]
    try:
        seen = dict(zip(has_value, outcomes(spark, has_value), strict=True))
    except CqError:  # one of them fails: find out which
        seen = {}
    now = [(e, seen[e] if e in seen else outcome_alone(spark, e)) for e, _ in page]
    assert now == page


def test_no_expression_stands_on_the_page_twice():
    expressions = [e for topic in PAGE.values() for e, _ in topic]
    assert sorted(set(expressions)) == sorted(expressions)
