"""A way out gives the rows that were asked for: each is read from the error, written into the query, and run."""

from __future__ import annotations

import re

import pytest

import cq

TRIPS = [
    {"id": 1, "long_us": 540_000_000, "words": "card tip"},
    {"id": 2, "long_us": 660_000_000, "words": "card"},
    {"id": 3, "long_us": 660_000_001, "words": None},
]
EPOCH = "CAST('1970-01-01' AS TIMESTAMP)"
LONG = f"(TIMESTAMP_MICROS(long_us) - {EPOCH})"


def way_out(query: str) -> str:
    """The first way out of the only mistake of a query over trips."""
    with pytest.raises(cq.CompileError) as stopped:
        cq.sql(query, trips=TRIPS).check()
    return stopped.value.first.help[0]


def rows(query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in cq.sql(query, trips=TRIPS).run(engine="reference").to_pylist()]


@pytest.mark.parametrize(("op", "expected"), [(">", [(2,), (3,)]), ("<=", [(1,)])])
def test_interval_is_compared_by_its_length(op: str, expected: list[tuple[int]]) -> None:
    query = f"SELECT id FROM trips WHERE {LONG} {op} '00:10:00'"
    (constant,) = re.findall(r"^write (INTERVAL '.*')$", way_out(query))
    assert rows(query.replace("'00:10:00'", constant)) == expected


def test_text_is_compared_as_an_interval_by_its_length() -> None:
    query = f"SELECT id FROM (SELECT id, long_us, '00:10:00' AS least FROM trips) AS t WHERE {LONG} > least"
    (computed,) = re.findall(r"^for text as 00:02:00, write (.*)$", way_out(query))
    assert rows(query.replace("> least", f"> {computed}")) == [(2,), (3,)]


def test_left_join_of_elements_keeps_a_row_of_which_none_passes() -> None:
    joined = "LEFT JOIN UNNEST(SPLIT(t.words, ' ')) AS u(w) ON u.w LIKE '%p'"
    query = f"SELECT t.id, u.w FROM trips AS t {joined}"
    (other,) = re.findall(r"here k: (LEFT JOIN .*)$", way_out(query))
    assert rows(query.replace(joined, re.sub(r"\bk\b", "id", other))) == [(1, "tip"), (2, None), (3, None)]


@pytest.mark.parametrize("value", ["COALESCE(words, id)", "CASE WHEN id < 3 THEN words ELSE id END"])
def test_numbers_beside_text_become_text(value: str) -> None:
    query = f"SELECT {value} AS v FROM trips"
    (cast,) = re.findall(r"^write (CAST\(id AS VARCHAR\))$", way_out(query))
    mixed = re.sub(r"\bid\b(?=\)| END)", lambda _: cast, value)
    assert rows(query.replace(value, mixed)) == [("card tip",), ("card",), ("3",)]


def test_numbers_in_a_union_with_text_become_text() -> None:
    query = "SELECT id FROM trips UNION ALL SELECT words FROM trips WHERE id = 2"
    (cast,) = re.findall(r"^CAST one of them: (.*)$", way_out(query))
    assert sorted(rows(query.replace("SELECT id", f"SELECT {cast}"))) == [("1",), ("2",), ("3",), ("card",)]


QUOTES = [{"sym": "a", "at": n, "price": price} for n, price in [(10, 3), (10, 5), (10, 4), (70, 2)]]
TRADES = [{"sym": "a", "at": n} for n in (5, 10, 60, 80)]
TIMED = "".join(
    f"CREATE STREAM {name} ({columns}, at BIGINT, ts AS TIMESTAMP '1970-01-01' + at * INTERVAL '1' SECOND, "
    "WATERMARK FOR ts);\n"
    for name, columns in (("quotes", "sym VARCHAR, price BIGINT"), ("trades", "sym VARCHAR"))
)


def timed(query: str) -> cq.Query:
    return cq.sql(TIMED + query, quotes=QUOTES, trades=TRADES)


def test_asof_join_with_aggregates_of_one_time_gives_those_of_the_groups() -> None:
    grouped = "SELECT sym, ts, MAX(price) AS top FROM quotes GROUP BY sym, ts"
    query = f"SELECT t.at, q.top FROM trades AS t ASOF JOIN ({grouped}) AS q ON t.sym = q.sym AND t.ts >= q.ts"
    with pytest.raises(cq.CompileError) as stopped:
        timed(query).check()
    (over,) = re.findall(r"(MAX\(x\) OVER .*)$", stopped.value.first.help[0])
    over = over.replace("(x)", "(price)").replace("BY k", "BY sym")
    found = timed(query.replace(grouped, f"SELECT sym, ts, {over} AS top FROM quotes")).run(engine="reference")
    assert found.to_pylist() == [{"at": 10, "top": 5}, {"at": 60, "top": 5}, {"at": 80, "top": 2}]


def test_sorted_rows_are_grouped_by_the_time_that_windows_have() -> None:
    view = "CREATE VIEW v AS SELECT ts, price FROM quotes ORDER BY price LIMIT 3;\n"
    with pytest.raises(cq.CompileError) as stopped:
        timed(f"{view}SELECT COUNT(*) AS n FROM TUMBLE(v, ts, INTERVAL '1' MINUTE) GROUP BY window_start").check()
    (groups,) = re.findall(r"GROUP BY (DATE_TRUNC.*)$", stopped.value.first.help[0])
    found = timed(f"{view}SELECT {groups} AS start, COUNT(*) AS n FROM v GROUP BY {groups} ORDER BY start")
    assert [row["n"] for row in found.run(engine="reference").to_pylist()] == [2, 1]
