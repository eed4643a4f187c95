"""Which joins know that their right rows come first."""

from __future__ import annotations

import pytest

from cq.compiler.passes import compile
from cq.errors import CompileError
from cq.planner.operators.joined import UntimedJoin

FILES = """
CREATE STREAM first (k BIGINT, v BIGINT) WITH (path = 'first.csv');
CREATE STREAM o (k BIGINT, v BIGINT) WITH (path = 'o.csv');
CREATE STREAM later (k BIGINT, v BIGINT) WITH (path = 'later.csv');
CREATE STREAM timed (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (path = 'timed.csv');
CREATE STREAM live (k BIGINT, v BIGINT) WITH (path = 'live.csv', follow = true);
CREATE STREAM quiet (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts IDLE TIMEOUT INTERVAL '1' SECOND)
WITH (path = 'quiet.csv');
"""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT o.k FROM o LEFT JOIN first ON o.k = first.k", [True]),
        ("SELECT o.k FROM o JOIN first ON o.k = first.k", [True]),
        ("SELECT o.k FROM first RIGHT JOIN o ON o.k = first.k", [True]),
        ("SELECT o.k FROM o LEFT JOIN later ON o.k = later.k", [False]),
        ("SELECT timed.k FROM timed LEFT JOIN later ON timed.k = later.k", [True]),
        ("SELECT o.k FROM o LEFT JOIN timed ON timed.k = o.k", [False]),
        ("SELECT quiet.k FROM quiet JOIN timed ON timed.k = quiet.k", [False]),
        ("SELECT live.k FROM live LEFT JOIN later ON later.k = live.k", [True]),
        ("SELECT o.k FROM o JOIN live ON o.k = live.k", [False]),
        ("SELECT a.k FROM o AS a LEFT JOIN o AS b ON a.k = b.k", [False]),
        ("SELECT o.k FROM o LEFT JOIN (SELECT k FROM first WHERE v > 1) AS f ON f.k = o.k", [True]),
        ("SELECT o.k FROM o LEFT JOIN (SELECT k, COUNT(*) AS n FROM first GROUP BY k) AS f ON f.k = o.k", [False]),
        ("SELECT k FROM o WHERE NOT EXISTS (SELECT 1 FROM first AS f WHERE f.k = o.k)", [True]),
        ("SELECT k FROM o WHERE k IN (SELECT k FROM later)", [False]),
        ("SELECT o.k FROM o LEFT JOIN first ON o.k = first.k LEFT JOIN later ON o.k = later.k", [True, False]),
        ("SELECT o.k FROM o JOIN first AS a ON a.k = o.k LEFT JOIN first AS b ON b.v = o.k", [True, True]),
        ("SELECT o.k FROM o JOIN first AS a ON a.k = o.k WHERE o.v NOT IN (SELECT v FROM first)", [True] * 4),
        ("SELECT o.k FROM o JOIN later AS a ON a.k = o.k LEFT JOIN later AS b ON b.v = o.k", [False, False]),
        ("SELECT k FROM live WHERE k NOT IN (SELECT k FROM first)", [True] * 3),
        ("SELECT live.k FROM live JOIN first AS a ON a.k = live.k ANTI JOIN first AS b ON b.v = live.k", [True, True]),
        ("SELECT live.k FROM live JOIN first AS a USING (k) WHERE live.v NOT IN (SELECT v FROM first)", [True] * 4),
        ("SELECT live.k FROM live LEFT JOIN first AS a USING (k) LEFT JOIN first AS b ON b.v = live.k", [True, True]),
        ("SELECT live.k FROM first AS a JOIN live USING (k) LEFT JOIN first AS b ON b.v = live.k", [False, True]),
        ("SELECT live.k FROM live SEMI JOIN first AS a USING (k) LEFT JOIN first AS b ON b.v = live.k", [True, True]),
        ("SELECT o.k FROM o FULL JOIN first AS a USING (k) LEFT JOIN first AS b ON b.v = o.k", [True, True]),
        ("SELECT k FROM live LEFT JOIN (SELECT o.k FROM o LEFT JOIN first USING (k)) AS r USING (k)", [True, True]),
        ("SELECT o.k FROM o LEFT JOIN (SELECT o.k FROM o LEFT JOIN first USING (k)) AS r USING (k)", [True, False]),
        ("SELECT o.k FROM (SELECT k FROM o UNION ALL SELECT k FROM first) AS o LEFT JOIN first USING (k)", [False]),
    ],
)
def test_right_rows_come_first_where_their_sources_end_before_left_rows_come(text: str, first: list[bool]) -> None:
    plan = compile(FILES + text).after("bind").plan
    assert [n.right_first for n in plan.nodes() if isinstance(n, UntimedJoin)] == first


@pytest.mark.parametrize(
    ("text", "later", "before"),
    [
        ("live LEFT JOIN behind AS b USING (k)", "behind", "live"),
        ("live LEFT JOIN first USING (k) LEFT JOIN behind AS b USING (k)", "behind", "live"),
        ("live JOIN behind AS a USING (k) LEFT JOIN behind AS b USING (k)", "behind", "live"),
        ("(SELECT k FROM first UNION ALL SELECT k FROM live) AS u LEFT JOIN behind AS b USING (k)", "behind", "first"),
        ("live LEFT JOIN (SELECT o.k FROM o LEFT JOIN later USING (k)) AS r USING (k)", "later", "o"),
    ],
)
def test_way_out_names_the_source_that_another_must_come_before(text: str, later: str, before: str) -> None:
    behind = "CREATE STREAM behind (k BIGINT, v BIGINT) WITH (path = 'behind.csv');"
    with pytest.raises(CompileError) as raised:
        compile(f"{FILES}{behind} SELECT 1 AS one FROM {text}")
    assert raised.value.code == "CQ0406"
    assert raised.value.diagnostics[0].help == (f'declare "{later}" before "{before}": its rows then come first',)


def test_rows_that_would_wait_in_any_order_of_the_sources_are_written_to_a_file_first() -> None:
    both = "SELECT first.k FROM first LEFT JOIN o USING (k) UNION ALL SELECT o.k FROM o LEFT JOIN first USING (k)"
    for order in (FILES, FILES.replace(" first ", " x ").replace(" o ", " first ").replace(" x ", " o ")):
        with pytest.raises(CompileError, match="rows without a match would never leave") as raised:
            compile(f"{order} SELECT 1 AS one FROM live LEFT JOIN ({both}) AS u USING (k)")
        (way,) = raised.value.diagnostics[0].help
        assert way.startswith("write the rows of the side that ends to a file first") and "join that file" in way
    written = "CREATE STREAM u (k BIGINT) WITH (path = 'u.csv');"
    compile(f"{written} {FILES} SELECT 1 AS one FROM live LEFT JOIN u USING (k)")


def test_rows_of_a_file_that_are_left_rows_too_are_not_looked_up_first() -> None:
    union = "(SELECT k FROM first UNION ALL SELECT k FROM live) AS u JOIN o USING (k)"
    with pytest.raises(CompileError, match="rows without a match would never leave") as raised:
        compile(f"{FILES} SELECT 1 AS one FROM {union} ANTI JOIN first USING (k)")
    assert "and read that file here" in raised.value.diagnostics[0].help[0]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT k FROM live UNION ALL SELECT COUNT(*) FROM o", "SELECT COUNT(*)"),
        ("SELECT k FROM live UNION ALL SELECT v FROM (SELECT v FROM o ORDER BY v LIMIT 3) AS u", "v LIMIT 3"),
        ("SELECT k FROM live UNION ALL SELECT o.k FROM o LEFT JOIN later USING (k)", "o LEFT JOIN"),
        (
            "SELECT k FROM live UNION ALL SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM o GROUP BY k) AS g",
            "SELECT MAX(n)",
        ),
        ("SELECT k FROM live UNION ALL SELECT o.k FROM o JOIN later USING (k)", ""),
        ("SELECT k FROM live UNION ALL SELECT o.k FROM o LEFT JOIN first USING (k)", ""),
        ("SELECT COUNT(*) AS n FROM o", ""),
        ("SELECT COUNT(*) AS n FROM o; SELECT k FROM live", ""),  # they share no source and run one after the other
        ("SELECT COUNT(*) AS n FROM o; SELECT live.k FROM live JOIN o USING (k)", "SELECT COUNT(*)"),
        ("EXPLAIN SELECT k FROM live UNION ALL SELECT COUNT(*) FROM o", "SELECT COUNT(*)"),
        ("SELECT k FROM live; EXPLAIN SELECT COUNT(*) AS n FROM o", ""),
    ],
)
def test_rows_that_wait_for_the_end_of_all_inputs_are_warned_of_beside_an_endless_one(text: str, at: str) -> None:
    """They were awaited in silence."""
    warned = [d for d in compile(FILES + text).warnings if d.code == "CQ0406"]
    assert [d.message.rpartition(", but ")[2] for d in warned] == ['"live" has no end'] * bool(at)
    lines = (FILES + text).splitlines()
    assert all(lines[d.span.line - 1][d.span.column - 1 :].startswith(at) for d in warned)
