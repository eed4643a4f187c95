"""The order in which the rows of sources come that no statement declares."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from planner_fixture import plan_of

import cq
from cq.lang.schema import Field
from cq.lang.types import BIGINT
from cq.planner.binding.catalog import Environment
from cq.planner.plan.source import sources_of


def infer(name: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    return (Field("k", BIGINT, True), Field("v", BIGINT, True))


def order(text: str) -> list[str]:
    """The sources of a query over undeclared files and inputs, in the order in which their rows come."""
    given = {name: {"connector": "memory"} for name in ("a", "b", "c") if re.search(rf"\b{name}\b", text)}
    plan = plan_of(text, Environment(inputs=given, infer=infer))
    return [s.name for s in sources_of(plan.nodes())]


DECLARED = "CREATE STREAM s (k BIGINT, v BIGINT) WITH (connector = 'file', path = 's.csv'); "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", ["b", "a"]),
        ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k", ["b", "a"]),
        ("SELECT b.v FROM a RIGHT JOIN b ON a.k = b.k", ["a", "b"]),
        ("SELECT a.v FROM a, b WHERE a.k = b.k", ["b", "a"]),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k", ["c", "b", "a"]),
        ("SELECT a.v FROM a JOIN (SELECT b.k FROM b JOIN c ON b.k = c.k) x ON a.k = x.k", ["c", "b", "a"]),
        ("SELECT v FROM a WHERE k IN (SELECT k FROM b)", ["b", "a"]),
        ("SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", ["b", "a"]),
        ("SELECT v, (SELECT MAX(v) FROM b) AS best FROM a", ["b", "a"]),
        ("SELECT a.v FROM a JOIN (VALUES (1), (2)) AS t (k) ON a.k = t.k", ["a", "values"]),
        ("SELECT a.v FROM a JOIN a AS other ON a.k = other.v", ["a"]),
        ("SELECT v FROM a UNION ALL SELECT v FROM b", ["a", "b"]),
        ("SELECT v FROM a EXCEPT SELECT v FROM b", ["a", "b"]),
    ],
)
def test_what_rows_are_looked_up_in_comes_first(text: str, expected: list[str]) -> None:
    assert order(text + ";") == expected


def test_files_and_pipes_by_path() -> None:
    assert order("SELECT o.v FROM 'o.csv' AS o JOIN 'p.csv' AS p ON o.k = p.k;") == ["p", "o"]
    assert order("SELECT o.v FROM '-' AS o JOIN 'p.csv' AS p ON o.k = p.k;")[0] == "p"
    assert order("SELECT o.v FROM 'p.csv' AS p JOIN '-' AS o ON o.k = p.k;")[0] == "p"  # a pipe never comes first


def test_declared_streams_stay_where_the_text_has_them() -> None:
    other = DECLARED.replace("STREAM s", "STREAM t")
    assert order(f"{DECLARED}{other}SELECT s.v FROM s JOIN t ON s.k = t.k;") == ["s", "t"]
    assert order(f"{DECLARED}SELECT s.v FROM s JOIN a ON s.k = a.k;") == ["a", "s"]
    assert order(f"{DECLARED}SELECT s.v FROM a JOIN s ON s.k = a.k;") == ["s", "a"]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_rows_of_the_left_pass_in_their_order(engine: str) -> None:
    orders = [{"id": n, "customer": n * 7 % 3} for n in range(8)]
    customers = [{"id": n, "name": f"c{n}"} for n in (2, 0, 1)]
    text = "SELECT orders.id, name FROM orders JOIN customers ON customer = customers.id LIMIT 5;"
    result = cq.sql(text, orders=orders, customers=customers).run(engine=engine)
    assert result.to_pylist() == [{"id": n, "name": f"c{n * 7 % 3}"} for n in range(5)]
