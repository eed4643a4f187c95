"""A join keeps no rows for a side that has no more: what it holds does not grow with the other side."""

from __future__ import annotations

import pyarrow as pa
import pytest
from cases import Prepared

import cq
from cq.engines.protocol import RunOptions
from cq.errors import EngineError

STREAMS = """
CREATE STREAM item (id BIGINT, weight BIGINT) WITH (connector = 'memory');
CREATE STREAM place (auction BIGINT, town BIGINT) WITH (connector = 'memory');
CREATE STREAM sale (auction BIGINT, price BIGINT) WITH (connector = 'memory');
"""
ITEMS, SALES = 1_000, 600_000
LIMIT = 8 << 20  # kept, the sales alone would take 24 bytes each
MATCHED = SALES // 2  # every other sale is of an item


def given(prepared: Prepared) -> None:
    numbers = range(SALES)
    tables = {
        "item": pa.table({"id": range(ITEMS), "weight": range(ITEMS)}),
        "sale": pa.table({"auction": [n % (2 * ITEMS) for n in numbers], "price": list(numbers)}),
        "place": pa.table({"auction": range(ITEMS), "town": range(ITEMS)}),
    }
    prepared.give_tables({name: table for name, table in tables.items() if name in prepared.fields})


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT price, weight FROM item JOIN sale ON id = auction;", MATCHED),
        (
            "SELECT price FROM (SELECT id + 1 - 1 AS id FROM item WHERE weight >= 0) AS i JOIN sale ON id = auction;",
            MATCHED,
        ),
        ("SELECT price, town FROM item JOIN place ON id = place.auction JOIN sale ON id = sale.auction;", MATCHED),
        ("SELECT price, weight FROM item LEFT JOIN sale ON id = auction WHERE weight < 100;", MATCHED // 10),
    ],
    ids=["two sources", "a filter below", "joined sources", "items without a sale"],
)
@pytest.mark.parametrize("threads", [0, 2])
def test_rows_are_not_kept_for_a_source_that_has_ended(query: str, rows: int, threads: int) -> None:
    prepared = Prepared(STREAMS + query)
    given(prepared)
    outcome = prepared.run("native", RunOptions(threads, memory_limit=LIMIT))
    assert (outcome.error, len(outcome.rows["result"])) == ("", rows)


@pytest.mark.parametrize("threads", [0, 2])
def test_rows_are_kept_for_a_source_that_goes_on(threads: int) -> None:
    sale_first = "".join(sorted(STREAMS.strip().splitlines(keepends=True), reverse=True))
    prepared = Prepared(sale_first + "\nSELECT price, weight FROM sale JOIN item ON id = auction;")
    given(prepared)
    with pytest.raises(EngineError, match="CQ0802"):
        prepared.run("native", RunOptions(threads, memory_limit=LIMIT))
    outcome = prepared.run("native", RunOptions(threads))
    assert (outcome.error, len(outcome.rows["result"])) == ("", MATCHED)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_rows_without_a_match_leave_at_the_end_all_the_same(kind: str) -> None:
    prepared = Prepared(STREAMS + f"SELECT id, weight, auction, price FROM item {kind} sale ON id = auction;")
    prepared.give(
        {"item": [(1, 10), (2, 20), (None, 30), (2, 40)], "sale": [(2, 1), (3, 2), (None, 3), (2, 4), (3, 5)]},
        cuts=(2,),
    )
    expected = prepared.reference()
    for threads, batch_rows in ((0, 1), (0, 4096), (2, 1), (4, 3)):
        found = prepared.run("native", RunOptions(threads, batch_rows))
        assert found == expected, found.difference(expected)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(("given", "passing"), [([2, None], 0), ([], 3), ([-1], 3)])
def test_rows_that_not_in_lets_pass_leave_when_they_come(given: list[int | None], passing: int, threads: int) -> None:
    query = """
    CREATE STREAM bid (auction BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    WITH (connector = 'generator', workload = 'bids'ROWS);
    SELECT auction FROM bid WHERE auction NOT IN (SELECT k FROM given) LIMIT 3;
    """
    rows = "" if passing else ", rows = 1000"  # a row that leaves ends a run that would never end
    table = pa.table({"k": pa.array(given, pa.int64())})
    assert len(cq.sql(query.replace("ROWS", rows), given=table).run(threads=threads).to_pylist()) == passing
