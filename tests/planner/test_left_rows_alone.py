"""Sub-queries and SEMI and ANTI JOIN are joins by time where their conditions limit how far apart two rows are."""

from __future__ import annotations

import re

import pytest
from planner_fixture import plan_of

from cq.compiler.passes import compile
from cq.errors import CompileError
from cq.planner.operators import IntervalJoin, JoinKind, SemiJoin

PER_MIN = """CREATE VIEW per_min AS SELECT window_end, auction, COUNT(*) AS n
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, auction;
"""


ENDLESS = "".join(
    f"CREATE STREAM {name} (auction BIGINT, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts) "
    "WITH (connector = 'generator', workload = 'bids');\n"
    for name in ("bid", "sale")
)


def joined(text: str) -> IntervalJoin:
    """The only join by time of a query."""
    (found,) = (n for n in plan_of(PER_MIN + text).nodes() if isinstance(n, IntervalJoin))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "NOT EXISTS (SELECT 1 FROM bid AS b WHERE b.auction = a.auction AND b.ts BETWEEN a.ts AND a.ts + {})",
        "NOT EXISTS (SELECT 1 FROM bid AS b WHERE a.ts - b.ts < {} AND b.ts < a.ts)",
        "auction NOT IN (SELECT auction FROM bid AS b WHERE b.ts BETWEEN a.ts AND a.ts + {})",
        "(auction, ts) NOT IN (SELECT auction, ts FROM bid)",
        "ts NOT IN (SELECT window_end FROM per_min)",
    ],
)
def test_a_test_with_bounds_on_the_times_is_a_join_by_time_of_which_left_rows_leave_alone(text: str) -> None:
    for negated in (True, False):
        test = text.format("INTERVAL '5' SECOND")
        test = test if negated else test.replace("NOT ", "")
        made = joined(f"SELECT a.price FROM bid AS a WHERE {test};")
        assert isinstance(made, IntervalJoin) and made.kind is (JoinKind.ANTI if negated else JoinKind.SEMI)
        assert made.schema.fields == made.left.schema.fields and made.schema.times and made.state.bounded


def test_a_left_row_alone_lags_as_long_as_it_may_wait_for_its_match_or_for_the_proof_of_none() -> None:
    on = "ON a.auction = b.auction AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts + INTERVAL '7' SECOND"
    lags = []
    for kind in ("SEMI", "ANTI", "LEFT"):
        (time,) = joined(f"SELECT a.price FROM bid AS a {kind} JOIN bid AS b {on};").schema.times
        lags.append(time.lag_us)
    assert lags == [7_000_000, 7_000_001, 7_000_001]


@pytest.mark.parametrize(
    ("rows", "test"),
    [
        ("TUMBLE(TABLE bid, DESCRIPTOR(ts), {})", "auction IN (SELECT auction FROM sale @)"),
        ("TUMBLE(TABLE bid, DESCRIPTOR(ts), {})", "auction IN (SELECT auction FROM sale AS s WHERE s.price > 5 @)"),
        ("TUMBLE(TABLE bid, DESCRIPTOR(ts), {}) AS b", "EXISTS (SELECT 1 FROM sale WHERE sale.auction = b.auction @)"),
        ("SESSION(TABLE bid PARTITION BY auction, ts, {}) AS b", "b.auction IN (SELECT auction FROM sale AS s @)"),
    ],
)
def test_limit_on_the_times_that_an_error_suggests_compiles_where_it_is_pasted(rows: str, test: str) -> None:
    query = ENDLESS + "SELECT COUNT(*) AS n FROM {} WHERE {} GROUP BY window_start, window_end{};"
    by_key = ", auction" if rows.startswith("SESSION") else ""
    text = query.format(rows.format("INTERVAL '1' MINUTE"), test, by_key)
    with pytest.raises(CompileError, match="filtered rows have no event time") as raised:
        compile(text.replace("@", ""))
    (limit,) = re.findall("in the sub-query: (.*)", raised.value.diagnostics[0].help[0])
    plan = compile(text.replace("@", limit)).after("bind").plan
    assert any(isinstance(n, IntervalJoin) for n in plan.nodes())


def test_growing_test_says_which_time_of_its_rows_counts() -> None:
    rows = "SESSION(TABLE bid PARTITION BY auction, ts, INTERVAL '1' MINUTE) AS b"
    text = (
        f"{ENDLESS} SELECT b.auction FROM {rows} WHERE EXISTS "
        "(SELECT 1 FROM sale AS c WHERE c.auction = b.auction AND c.ts BETWEEN b.{0} AND b.{0} + INTERVAL '5' SECOND);"
    )
    (test,) = (n for n in compile(text.format("ts")).after("bind").plan.nodes() if isinstance(n, SemiJoin))
    assert test.state.way.startswith("the event time of the left rows is window_end or window_time, not ts: ")
    kinds = [type(n) for n in compile(text.format("window_end")).after("bind").plan.nodes()]
    assert IntervalJoin in kinds and SemiJoin not in kinds


def test_a_test_without_times_comes_after_those_with_times() -> None:
    text = (
        "SELECT price FROM bid AS a WHERE auction IN (SELECT auction FROM bid) "
        "AND EXISTS (SELECT 1 FROM bid AS b WHERE b.ts = a.ts);"
    )
    kinds = [type(n) for n in plan_of(text).nodes() if isinstance(n, SemiJoin | IntervalJoin)]
    assert kinds == [IntervalJoin, SemiJoin]
